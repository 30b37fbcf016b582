"""JAX: seeing every operation, of ``jax.numpy`` too, while a scope is open.

JAX has no public way to the transformation in progress; ``supported`` says whether this version has what is used of
its core.
"""

from __future__ import annotations

import contextlib
from typing import Any

import jax

from ...errors import BackendError
from ._private import SCOPES, DynamicJaxprTrace, core, private

supported = private.supported(SCOPES)


@contextlib.contextmanager
def watching(around):
    """A scope in which ``around(apply, xs)`` stands between each operation and the transformation in progress.

    ``apply(xs)`` runs the operation on ``xs``. Where nothing is transformed nothing is watched.
    """
    if not supported:
        raise BackendError(
            f"this scope does not know JAX {jax.__version__}.", hint="use it as a decorator of a function"
        )
    current = core.trace_ctx.trace
    if current is core.eval_trace or current is None:
        yield
        return
    with core.set_current_trace(_trace(current, around)):
        yield


def tracing() -> bool:
    """Whether a transformation is in progress; True where that cannot be seen."""
    return not supported or core.trace_ctx.trace is not core.eval_trace and core.trace_ctx.trace is not None


def staging() -> bool:
    """Whether a program is being traced, to be run or differentiated later; True where that cannot be seen."""
    if not supported:
        return True
    trace = core.trace_ctx.trace
    while trace is not None:
        if isinstance(trace, DynamicJaxprTrace):
            return True
        trace = getattr(trace, "parent_trace", None)
    return False


def carried():
    """A function that gives a scope in which another thread takes part in this one's transformation, or in none."""
    current = core.trace_ctx.trace if supported else None
    if current is None:
        return contextlib.nullcontext
    return lambda: core.set_current_trace(current)


def is_tracer(x) -> bool:
    return isinstance(x, jax.core.Tracer)


def _trace(parent, around):
    class Watching(core.Trace):
        def __init__(self):
            super().__init__()
            self.requires_low = parent.requires_low
            self.parent_trace = parent

        def is_valid(self):
            return parent.is_valid()

        def stage_value(self, value):
            return parent.stage_value(value)

        def cur_qdd(self, x):
            return parent.cur_qdd(x)

        def process_primitive(self, primitive, tracers, params, /):
            return _bind(parent, around, primitive, tracers, params)

        def process_call(self, primitive, f, tracers, params, /):
            return _bind(parent, around, primitive, tracers, dict(params, subfuns=(f,)))

        def process_map(self, primitive, f, tracers, params, /):
            return _bind(parent, around, primitive, tracers, dict(params, subfuns=(f,)))

        def process_custom_jvp_call(self, primitive, f, jvp, tracers, /, **params):
            return _bind(parent, around, primitive, tracers, dict(params, subfuns=(f, jvp)))

        def process_custom_vjp_call(self, primitive, f, fwd, bwd, tracers, /, **params):
            return _bind(parent, around, primitive, tracers, dict(params, subfuns=(f, fwd, bwd)))

    return Watching()


def _bind(parent, around, primitive, tracers, params) -> Any:
    def apply(xs):
        xs = tuple(xs)
        return primitive.bind_with_trace(parent, xs, tuple(map(core.typeof, xs)), params)

    with core.set_current_trace(parent):
        return around(apply, tracers)
