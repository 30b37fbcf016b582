"""JAX 0.4.35, whose core has a stack of transforms with levels: intercepting every operation while a scope is open."""

from __future__ import annotations

import contextlib

from ._private import core, older_stack


class _Seen(core.Tracer):
    """A wrapper around an array passed to an operation; ``full_lower`` removes it from the operation's result."""

    __slots__ = ["value"]

    def __init__(self, trace, value):
        super().__init__(trace)
        self.value = value

    @property
    def aval(self):
        return core.get_aval(self.value)

    def full_lower(self):
        return self.value


class _Watching(core.Trace):
    """The innermost transform, which receives every operation first."""

    def __init__(self, main, sublevel, around, below):
        super().__init__(main, sublevel)
        self.around = around
        self.below = below

    def pure(self, value):
        return _Seen(self, value)

    lift = sublift = pure

    def process_primitive(self, primitive, tracers, params):
        return self._bind(primitive, (), tracers, params)

    def process_call(self, primitive, f, tracers, params):
        return self._bind(primitive, (f,), tracers, params)

    process_map = process_call

    def process_custom_jvp_call(self, primitive, f, jvp, tracers, **params):
        return self._bind(primitive, (f, jvp), tracers, params)

    def process_custom_vjp_call(self, primitive, f, fwd, bwd, tracers, **params):
        return self._bind(primitive, (f, fwd, bwd), tracers, params)

    def _bind(self, primitive, functions, tracers, params):
        def apply(xs):
            return primitive.bind(*functions, *xs, **params)

        with core.new_dynamic(self.below):
            return self.around(apply, [t.value for t in tracers])


@contextlib.contextmanager
def watching(around):
    """``traces.watching`` while a transform is in progress."""
    with core.new_main(_Watching, dynamic=True, around=around, below=older_stack().dynamic.level):
        yield


def carried():
    """``traces.carried``."""
    stack = older_stack()

    @contextlib.contextmanager
    def scope():
        state = core.thread_local_state.trace_state
        before, state.trace_stack = state.trace_stack, stack
        try:
            yield
        finally:
            state.trace_stack = before

    return scope
