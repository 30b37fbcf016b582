"""Checkpointing on JAX: a scope names its operations for the policy that says which results are not saved."""

from __future__ import annotations

import contextlib

import jax
from jax.ad_checkpoint import checkpoint_name

from ... import _tree
from ...backends.jax import traces
from ...backends.policy import BEGIN, END, NeedsPolicy, derivative


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


def checkpoint(run, inputs: list):
    """``run(*inputs)``, stored as its inputs: by JAX's own."""
    return _tree.by_leaves(lambda flat, xs: jax.checkpoint(flat)(*xs), run, inputs)
