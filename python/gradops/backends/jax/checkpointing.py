"""Checkpointing on JAX: a scope names its operations, and a policy reads the names to decide what to save."""

from __future__ import annotations

import contextlib
import functools
import io
import os
import re

import jax
from jax.ad_checkpoint import checkpoint_name

from ... import _call_sites, _tree
from ..._scopes import changed
from ...errors import BackendError
from ..checkpoint_policies import Policy
from ..interface import Residual
from ..policy import BEGIN, END, NeedsPolicy, checkpoint_policy, derivative
from . import rules, traces
from ._private import exclude_from_sources


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
        if policy.named:
            return jax.checkpoint(_marked(flat, policy), policy=_selection(policy))(*xs)
        return jax.checkpoint(flat, policy=jax.checkpoint_policies.dots_saveable if policy.products else None)(*xs)

    return _tree.call_flat(call, run, inputs)


_SAVED, _OVER = "gradops_checkpoint_saved_", "gradops_checkpoint_over"
"""The names that bracket an operation whose result is saved.

The first one ends in the operation's name and, after a blank, the value's.
"""


def _marked(flat, policy: Policy):
    """``flat`` with marks on the operations that made a value named by the policy."""

    # JAX's own policies of names see the result of `checkpoint_name`. Its argument is the same value under another
    # name: operations that use the argument, such as the derivative of `exp`, recompute it, or save it.
    def replayed(*xs):
        program = jax.make_jaxpr(flat)(*xs)
        jaxpr = program.jaxpr
        known = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*program.consts, *xs]))
        made = {v: e for e in jaxpr.eqns for v in e.outvars}
        marked: dict[int, str] = {}
        passed = set()
        for e in jaxpr.eqns:
            if e.primitive.name == "name" and e.params["name"] in policy.named and not hasattr(e.invars[0], "val"):
                source = made.get(e.invars[0])
                # An operation with a program of its own is saved or not part by part, not as one result.
                saved = policy.saves(e.params["name"])
                if source is not None and not (saved and source.primitive.multiple_results):
                    marked[id(source)] = e.params["name"]
                    passed.add(id(e))
        for e in jaxpr.eqns:
            if id(e) in marked:
                saved = policy.saves(marked[id(e)])
                begin, end = (f"{_SAVED}{e.primitive.name} {marked[id(e)]}", _OVER) if saved else (BEGIN, END)
                rules.evaluate([e], known, functools.partial(_mark, begin=begin, end=end))
            elif id(e) in passed:
                known[e.outvars[0]] = rules.read(e.invars[0], known)
            else:
                rules.evaluate([e], known)
        return [rules.read(v, known) for v in jaxpr.outvars]

    return replayed


def _selection(policy: Policy):
    """A policy for ``jax.checkpoint`` of a function from :func:`_marked`."""
    inside = "", False
    source, target = policy.places
    offloaded = jax.checkpoint_policies.save_and_offload_only_these_names(
        names_which_can_be_saved=[],
        names_which_can_be_offloaded=sorted(policy.offloaded),
        offload_src=source,
        offload_dst=target,
    )

    def verdict(primitive, name: str):
        return offloaded(primitive, name=name) if name in policy.offloaded else policy.saves(name) == "save"

    def select(primitive, *avals, **params):
        nonlocal inside
        if primitive.name != "name":
            operation, found = inside
            if operation == primitive.name:
                return found
            saved = policy.others and checkpoint_policy(primitive, *avals, **params)
            return saved or policy.products and jax.checkpoint_policies.dots_saveable(primitive, *avals, **params)
        name = params["name"]
        if name == _OVER:
            inside = "", False
        elif name.startswith(_SAVED):
            operation, _, given = name[len(_SAVED) :].partition(" ")
            inside = operation, verdict(primitive, given)
        elif policy.others and name in (BEGIN, END) or name not in policy.named:
            return policy.others and checkpoint_policy(primitive, *avals, **params)
        else:
            return verdict(primitive, name)
        return False

    return select


def named(x, name: str):
    return checkpoint_name(x, name)


_RESIDUAL = re.compile(r"(\w+)(?:<\w+>)?\[([\d,]*)\] (?:from the argument xs\[(\d+)\]|(?:from a|from|)\s*(.*))")


def residuals(at, names: list[str]) -> list[Residual]:
    """The lines of ``jax.ad_checkpoint.print_saved_residuals``, read."""
    _exclude_gradops()
    text = io.StringIO()

    def run(*xs):
        return tuple(at.run(*xs))

    with contextlib.redirect_stdout(text), changed(derivative, "ask"):
        try:
            jax.ad_checkpoint.print_saved_residuals(run, *at.leaves)
        except NeedsPolicy:
            derivative.set("on")
            jax.ad_checkpoint.print_saved_residuals(jax.checkpoint(run, policy=checkpoint_policy), *at.leaves)
    found = []
    for line in text.getvalue().splitlines():
        read = _RESIDUAL.fullmatch(line)
        if read is None:
            raise BackendError(f"`print_saved_residuals`: JAX saves a value of an unknown kind: {line}")
        short, sizes, argument, where = read.groups()
        shape = tuple(map(int, filter(None, sizes.split(","))))
        if argument is not None:
            where = names[int(argument)]
        elif "gradops_checkpoint_" in where or where.endswith("from "):
            where = "saved by a checkpoint"
        found.append(Residual(_dtype(short), shape, where))
    return found


@functools.cache
def _exclude_gradops() -> None:
    for path in (os.path.dirname(_call_sites.__file__) + os.sep, "<gradops"):
        exclude_from_sources(path)


def _dtype(short: str) -> str:
    """A dtype by JAX's short name, such as ``f32``."""
    letters = {"f": "float", "bf": "bfloat", "i": "int", "u": "uint", "c": "complex"}
    kind = short.rstrip("0123456789")
    return letters.get(kind, kind) + short[len(kind) :]
