"""JAX: scopes that intercept every operation, including the operations of ``jax.numpy``.

JAX has no public access to the transform in progress. ``supported`` is True if this version has the private names of
its core that are used here.
"""

from __future__ import annotations

import contextlib
from typing import Any

import jax
from jax.interpreters import ad

from .._names import resolve
from ._private import SCOPES, DynamicJaxprTrace, bind, core, older_stack, private, transformations

_older = older_stack() is not None
if _older:
    from . import traces_older

supported = private.supported(SCOPES) or _older


tells_forward = (
    getattr(jax.config, "jax_use_direct_linearize", True)
    and resolve("jax._src.interpreters.ad.LinearizeTrace") is not None
)
"""True if JAX marks reverse mode separately; before JAX 0.7 reverse mode is linearized forward mode."""


@contextlib.contextmanager
def watching(around):
    """A scope that calls ``around(apply, xs)`` in place of each operation; ``apply(xs)`` runs it on ``xs``.

    Without a transform in progress nothing is intercepted.
    """
    if not tracing():
        yield
        return
    if _older:
        scope = traces_older.watching(around)
    else:
        private.need(SCOPES, hint="use it as a decorator of a function")
        scope = core.set_current_trace(_trace(core.trace_ctx.trace, around))
    with scope:
        yield


def tracing() -> bool:
    """True if a transform is in progress, or if that cannot be determined."""
    if _older or not supported:
        return bool(transformations())
    return core.trace_ctx.trace is not core.eval_trace and core.trace_ctx.trace is not None


def staging() -> bool:
    """True if a program is being traced, to be run or differentiated later, or if that cannot be determined."""
    return any(issubclass(kind, DynamicJaxprTrace) for kind in transformations())


def forward() -> bool:
    """True if a transform in progress is forward mode, or linearizes.

    False if that cannot be determined: see ``refuses_forward``.
    """
    trace = core.trace_ctx.trace if supported and tells_forward else None
    while trace is not None:
        if isinstance(trace, ad.JVPTrace) or getattr(trace, "is_vjp", True) is False:
            return True
        trace = getattr(trace, "parent_trace", None)
    return False


_REFUSALS = ("to a custom_vjp function", "'custom_lin'", "unhashable type: 'list'")  # the last in shard_map


def refuses_forward(error: Exception) -> bool:
    """True if an error is JAX's rejection of ``jax.custom_vjp`` in forward mode, where :func:`forward` cannot tell."""
    return not tells_forward and any(words in str(error) for words in _REFUSALS)


def carried():
    """A function that returns a scope for another thread, to join this thread's transform if there is one."""
    if _older:
        return traces_older.carried()
    current = core.trace_ctx.trace if supported else None
    if current is None:
        return contextlib.nullcontext
    return lambda: core.set_current_trace(current)


def is_tracer(x) -> bool:
    return isinstance(x, jax.core.Tracer)


def trace_of(x):
    """The transform that a tracer belongs to; the array itself if it is not a tracer or this cannot be determined."""
    return getattr(x, "_trace", x)


def _trace(parent, around):
    class Watching(core.Trace):
        def __init__(self):
            super().__init__()
            self.requires_low = getattr(parent, "requires_low", True)  # from JAX 0.6
            self.parent_trace = parent

        def is_valid(self):
            return parent.is_valid()

        def stage_value(self, value):
            return parent.stage_value(value)

        def cur_qdd(self, x):
            return parent.cur_qdd(x)

        def process_primitive(self, primitive, tracers, params, /):
            return _bind(parent, around, primitive, (), tracers, params)

        def process_call(self, primitive, f, tracers, params, /):
            return _bind(parent, around, primitive, (f,), tracers, params)

        def process_map(self, primitive, f, tracers, params, /):
            return _bind(parent, around, primitive, (f,), tracers, params)

        def process_custom_jvp_call(self, primitive, f, jvp, tracers, /, **params):
            return _bind(parent, around, primitive, (f, jvp), tracers, params)

        def process_custom_vjp_call(self, primitive, f, fwd, bwd, tracers, /, **params):
            return _bind(parent, around, primitive, (f, fwd, bwd), tracers, params)

    return Watching()


def _bind(parent, around, primitive, functions, tracers, params) -> Any:
    def apply(xs):
        return bind(primitive, parent, functions, tuple(xs), params)

    with core.set_current_trace(parent):
        return around(apply, tracers)
