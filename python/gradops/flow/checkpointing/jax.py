"""Checkpointing on JAX: a scope names its operations for the policy that says which results are not saved."""

from __future__ import annotations

import contextlib

import jax
from jax.ad_checkpoint import checkpoint_name

from ... import _tree
from ...backends.jax import rules, traces
from ...backends.policy import BEGIN, END, NeedsPolicy, checkpoint_policy, derivative
from .policies import Policy


@contextlib.contextmanager
def checkpointed():
    """A scope whose operations are marked for ``gradops.checkpoint_policy``."""
    if not traces.tracing():
        yield
        return
    if derivative.get() == "ask":
        raise NeedsPolicy
    with traces.watching(_mark):
        yield


def _mark(apply, xs):
    xs = list(xs)
    for i, x in enumerate(xs):
        if isinstance(x, jax.Array) and not jax.dtypes.issubdtype(x.dtype, jax.dtypes.extended):
            xs[i] = checkpoint_name(x, BEGIN)
            break
    out = apply(xs)
    if isinstance(out, (list, tuple)):
        return [_name_end(y) for y in out]
    return _name_end(out)


def _name_end(y):
    return checkpoint_name(y, END) if isinstance(y, jax.Array) else y


def checkpoint(run, inputs: list, policy: Policy, in_scope):
    """``run(*inputs)``, stored as its inputs, and as the policy says: by JAX's own."""

    def call(flat, xs):
        if policy.others:
            return jax.checkpoint(_marked(flat, policy.names), policy=checkpoint_policy)(*xs)
        own = jax.checkpoint_policies
        chosen = own.dots_saveable if policy.products else own.save_only_these_names(*policy.names)
        return jax.checkpoint(flat, policy=chosen)(*xs)

    return _tree.by_leaves(call, run, inputs)


def _marked(flat, names: frozenset):
    """``flat``, in which the operations that made a value of these names are marked as those of a scope are."""

    # JAX's own `save_anything_except_these_names` frees what `checkpoint_name` returns, and stores what it was given,
    # which is the same value.
    def replayed(*xs):
        program = jax.make_jaxpr(flat)(*xs)
        equations, known = program.jaxpr.eqns, dict(zip(program.jaxpr.constvars, program.consts))
        known.update(zip(program.jaxpr.invars, xs))
        named = {v for e in equations if e.primitive.name == "name" and e.params["name"] in names for v in e.invars}
        for equation in equations:
            if equation.primitive.name == "name" and equation.params["name"] in names:
                known[equation.outvars[0]] = rules.read(equation.invars[0], known)
            elif named.isdisjoint(equation.outvars):
                rules.evaluate([equation], known)
            else:
                rules.evaluate([equation], known, _mark)
        return [rules.read(v, known) for v in program.jaxpr.outvars]

    return replayed


def named(x, name: str):
    return checkpoint_name(x, name)
