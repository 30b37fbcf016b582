"""Checkpointing on JAX: a scope names its operations, and a policy reads the names to decide what to save."""

from __future__ import annotations

import contextlib
import functools

import jax
from jax.ad_checkpoint import checkpoint_name

from ... import _tree
from ..checkpoint_policies import Policy
from ..policy import BEGIN, END, NeedsPolicy, checkpoint_policy, derivative
from . import rules, traces


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


def _mark(apply, xs, begin: str = BEGIN, end: str = END):
    xs = list(xs)
    for i, x in enumerate(xs):
        if isinstance(x, jax.Array) and not jax.dtypes.issubdtype(x.dtype, jax.dtypes.extended):
            xs[i] = checkpoint_name(x, begin)
            break
    out = apply(xs)
    if isinstance(out, (list, tuple)):
        return [_name_end(y, end) for y in out]
    return _name_end(out, end)


def _name_end(y, end: str):
    return checkpoint_name(y, end) if isinstance(y, jax.Array) else y


def checkpoint(run, inputs: list, policy: Policy, in_scope):
    """``run(*inputs)`` by ``jax.checkpoint``, saving its inputs and what the policy selects."""

    def call(flat, xs):
        if policy.products:
            return jax.checkpoint(flat, policy=jax.checkpoint_policies.dots_saveable)(*xs)
        if not policy.names:
            return jax.checkpoint(flat)(*xs)
        own = checkpoint_policy if policy.others else _saved(policy.names)
        return jax.checkpoint(_marked(flat, policy), policy=own)(*xs)

    return _tree.call_flat(call, run, inputs)


_SAVED, _OVER = "gradops_checkpoint_saved_", "gradops_checkpoint_over"
"""The names that bracket an operation whose result is saved; the first one ends in the operation's name."""


def _marked(flat, policy: Policy):
    """``flat`` with marks on the operations that made a value named by the policy."""

    # JAX's own policies of names see the result of `checkpoint_name`. Its argument is the same value under another
    # name: operations that use the argument, such as the derivative of `exp`, recompute it, or save it.
    def replayed(*xs):
        program = jax.make_jaxpr(flat)(*xs)
        jaxpr = program.jaxpr
        known = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*program.consts, *xs]))
        made = {v: e for e in jaxpr.eqns for v in e.outvars}
        marked, passed = set(), set()
        for e in jaxpr.eqns:
            if e.primitive.name == "name" and e.params["name"] in policy.names and not hasattr(e.invars[0], "val"):
                source = made.get(e.invars[0])
                # An operation with a program of its own is saved or not part by part, not as one result.
                if source is not None and (policy.others or not source.primitive.multiple_results):
                    marked.add(id(source))
                    passed.add(id(e))
        for e in jaxpr.eqns:
            if id(e) in marked:
                begin, end = (BEGIN, END) if policy.others else (_SAVED + e.primitive.name, _OVER)
                rules.evaluate([e], known, functools.partial(_mark, begin=begin, end=end))
            elif id(e) in passed:
                known[e.outvars[0]] = rules.read(e.invars[0], known)
            else:
                rules.evaluate([e], known)
        return [rules.read(v, known) for v in jaxpr.outvars]

    return replayed


def _saved(names: frozenset[str]):
    inside = None

    def policy(primitive, *avals, **params) -> bool:
        nonlocal inside
        if primitive.name != "name":
            return primitive.name == inside
        name = params["name"]
        if name == _OVER:
            inside = None
        elif name.startswith(_SAVED):
            inside = name[len(_SAVED) :]
        return name in names

    return policy


def named(x, name: str):
    return checkpoint_name(x, name)
