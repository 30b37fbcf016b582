"""``stop_gradient_scope``: what is made inside has no gradient to what is outside."""

from __future__ import annotations

import contextlib
import functools
import sys
from contextvars import ContextVar

from .. import backends
from ..autodiff.modes import _Mode, recording
from .flow import stop_gradient


class stop_gradient_scope(_Mode):
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

    value = False
    _decorating = False

    def __enter__(self):
        if _compiling():
            self._entered.append(sys.modules["torch"].is_grad_enabled())
            sys.modules["torch"].set_grad_enabled(False)
            return self
        frame = _Frame(self._stop())
        _frames.set((*_frames.get(), frame))
        self._entered.append(frame)
        return self

    def __exit__(self, *error):
        entered = self._entered.pop()
        if isinstance(entered, bool):
            sys.modules["torch"].set_grad_enabled(entered)
        else:
            entered.leave()

    def _stop(self) -> contextlib.ExitStack:
        """Stop what can be recording now, and how to take that back."""
        with contextlib.ExitStack() as stack:
            before = recording.get()
            recording.set(False)
            stack.callback(recording.set, before)
            for name in ("torch", "tensorflow", "jax"):
                if _in_use(name):
                    native = backends.by_name(name).module.gradients
                    if not (self._decorating and getattr(native, "cuts_results", False)):
                        stack.enter_context(native.stopped())
            return stack.pop_all()

    def _again(self):
        again = type(self)()
        again._decorating = True
        return again

    def __call__(self, function):
        decorated = super().__call__(function)
        jax = backends.by_name("jax").module.gradients if _in_use("jax") else None
        if not getattr(jax, "cuts_results", False):
            return decorated

        @functools.wraps(decorated)
        def wrapped(*args, **kwargs):
            return stop_gradient(decorated(*args, **kwargs))

        return wrapped


_frames: ContextVar[tuple] = ContextVar("gradops_stop_frames", default=())


class _Frame:
    """An entered scope. It is undone once every scope entered after it is left too.

    So scopes may be left in any order, as those in generators are.
    """

    def __init__(self, undo: contextlib.ExitStack):
        self.undo = undo
        self.open = True

    def leave(self):
        self.open = False
        frames = _frames.get()
        while frames and not frames[-1].open:
            frames[-1].undo.close()
            frames = frames[:-1]
        _frames.set(frames)


def _in_use(name: str) -> bool:
    """Whether a library is loaded to the end: only then can its tensors exist."""
    spec = getattr(sys.modules.get(name), "__spec__", None)
    return spec is not None and not getattr(spec, "_initializing", False)


def _compiling() -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and hasattr(torch, "compiler") and torch.compiler.is_compiling()
