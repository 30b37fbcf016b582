"""``stop_gradient_scope``: what is made inside has no gradient to what is outside."""

from __future__ import annotations

import contextlib
import functools
import sys
from contextvars import ContextVar

from .. import backends
from ..autodiff.modes import _Mode, recording
from .elementary import stop_gradient


class _Scope(_Mode):
    """A scope of the thread or task: context manager and decorator.

    ``_begin`` starts it and gives the stack that ends it. It ends once every scope of its kind that was
    entered after it is left too, so scopes may be left in any order, as those in generators are.
    """

    _decorating = False

    def __enter__(self):
        frame = _Frame(self, self._begin())
        frames = _frames.get() or {}
        _frames.set({**frames, type(self): (*frames.get(type(self), ()), frame)})
        return self

    def __exit__(self, *error):
        frames = _frames.get() or {}
        mine = frames.get(type(self), ())
        for frame in reversed(mine):
            if frame.owner is self and frame.open:
                frame.open = False
                break
        while mine and not mine[-1].open:
            mine[-1].undo.close()
            mine = mine[:-1]
        _frames.set({**frames, type(self): mine})

    def _again(self):
        again = type(self)()
        again._decorating = True
        return again

    def _begin(self) -> contextlib.ExitStack:
        raise NotImplementedError


class _Frame:
    """An entered scope."""

    __slots__ = ("owner", "undo", "open")

    def __init__(self, owner: _Scope, undo: contextlib.ExitStack):
        self.owner = owner
        self.undo = undo
        self.open = True


_frames: ContextVar[dict | None] = ContextVar("gradops_frames", default=None)


class stop_gradient_scope(_Scope):
    """Scope in which what is made has no gradient to what is outside.

    Use as ``with stop_gradient_scope():`` or as decorator, with or without parentheses, on functions,
    coroutines and generators. Scopes nest, are local to the thread or task, and end on errors. As
    decorator of a generator the scope holds while the generator runs, not between its values; a ``with``
    in a generator holds until the block is left, also for the caller, as ``torch.no_grad`` does.

    What is covered:

    - variables and PyTorch: every operation, forward-mode derivatives of PyTorch included;
    - TensorFlow: every operation, for the tapes and forward accumulators that are active when the scope
      is entered, eager and in ``tf.function`` (there also for derivatives taken through the function).
      Tapes that are opened inside record what is inside;
    - JAX: every operation of gradops and of ``jax.numpy``, under ``jax.grad``, ``jit``, ``vmap`` and
      ``scan``. Derivatives taken inside the scope by ``jax.grad`` work and are constants outside.

    Raises:
        BackendError: a version of JAX or TensorFlow in which the scope cannot see the active transformation
            or tape; as a decorator it works with any.

    Gradient:
        None from inside to outside; after RETURNN's ``stop_gradient_scope``.
    """

    def __enter__(self):
        if not backends.compiling():
            return super().__enter__()
        self._before = sys.modules["torch"].is_grad_enabled()
        sys.modules["torch"].set_grad_enabled(False)
        return self

    def __exit__(self, *error):
        if backends.compiling():
            sys.modules["torch"].set_grad_enabled(self._before)
        else:
            super().__exit__(*error)

    def _begin(self) -> contextlib.ExitStack:
        with contextlib.ExitStack() as stack:
            before = recording.get()
            recording.set(False)
            stack.callback(recording.set, before)
            for backend in backends.in_use():
                if not (self._decorating and backend.derivatives.cuts_results):
                    stack.enter_context(backend.derivatives.stopped())
            return stack.pop_all()

    def __call__(self, function):
        decorated = super().__call__(function)
        if not any(backend.derivatives.cuts_results for backend in backends.in_use()):
            return decorated

        @functools.wraps(decorated)
        def wrapped(*args, **kwargs):
            return stop_gradient(decorated(*args, **kwargs))

        return wrapped
