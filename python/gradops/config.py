"""Settings: the default backend and the default float type.

The default backend serves only calls in which there is no tensor (numbers, lists, R vectors);
wherever there is one, the tensor chooses. Settings made by a scope are local to the thread or task.
"""

from __future__ import annotations

import os
from contextvars import ContextVar

from . import backends
from ._scopes import Ends, EndsOfThread, Scope
from .backends.tracing import constant
from .defaults import epsilon, floatx, set_epsilon, set_floatx

__all__ = ["backend", "epsilon", "floatx", "set_backend", "set_epsilon", "set_floatx", "use_backend"]

_scoped: ContextVar[str | None] = ContextVar("gradops_backend", default=None)
_settings: dict = {"backend": os.environ.get("GRADOPS_BACKEND") or "numpy"}


@constant
def backend() -> str:
    """Name of the default backend: ``"numpy"`` unless set here, by a scope or by ``GRADOPS_BACKEND``."""
    return _scoped.get() or _settings["backend"]


def set_backend(name: str) -> None:
    """Choose the default backend of the process: ``"numpy"``, ``"torch"``, ``"tensorflow"`` or ``"jax"``.

    Choosing ``"jax"`` while ``floatx()`` is ``"float64"`` turns on JAX's 64-bit mode, as JAX would
    otherwise round every number to float32.

    Raises:
        BackendError: an unknown or uninstalled backend; the setting stays what it was.
    """
    backends.by_name(name).prepare(floatx())
    _settings["backend"] = name


class use_backend(Scope):
    """Scope in which ``name`` is the default backend, in this thread or task only.

    Use as ``with use_backend("torch"):`` or as decorator, on functions, coroutines and generators. For ``"jax"``
    JAX's 64-bit mode is on inside where ``floatx()`` needs it, and afterwards what it was.

    Raises:
        BackendError: an unknown or uninstalled backend.
    """

    def __init__(self, name: str):
        self._name = name

    def __enter__(self) -> None:
        prepared = backends.by_name(self._name).prepared(floatx())
        prepared.__enter__()
        before = _scoped.get()
        _scoped.set(self._name)
        _ends.push(self, lambda: _scoped.set(before))
        _ends_of_thread.push(self, lambda: prepared.__exit__(None, None, None))

    def __exit__(self, *error) -> None:
        _ends_of_thread.leave(self)
        _ends.leave(self)

    def _again(self) -> use_backend:
        return use_backend(self._name)


_ends = Ends("gradops_backends")
_ends_of_thread = EndsOfThread()


def default_backend() -> backends.Backend:
    """The default backend's module, loaded; to ``torch.compile`` NumPy's arrays are tensors."""
    loaded = backends.by_name(backends.traced(backend()))
    loaded.prepare(floatx())
    return loaded
