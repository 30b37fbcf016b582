"""Settings: the default backend and the default float type.

The default backend serves only calls in which there is no tensor (numbers, lists, R vectors);
wherever there is one, the tensor chooses. Settings made by a scope are local to the thread or task.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from . import backends
from .defaults import epsilon, floatx, set_epsilon, set_floatx

__all__ = ["backend", "epsilon", "floatx", "set_backend", "set_epsilon", "set_floatx", "use_backend"]

_scoped: ContextVar[str | None] = ContextVar("gradops_backend", default=None)
_settings: dict = {"backend": os.environ.get("GRADOPS_BACKEND") or "numpy"}


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


@contextmanager
def use_backend(name: str) -> Iterator[None]:
    """Scope in which ``name`` is the default backend, in this thread or task only.

    Raises:
        BackendError: an unknown or uninstalled backend.
    """
    backends.by_name(name).prepare(floatx())
    token = _scoped.set(name)
    try:
        yield
    finally:
        _scoped.reset(token)


def default_backend() -> backends.Backend:
    """The default backend's module, loaded."""
    loaded = backends.by_name(backend())
    loaded.prepare(floatx())
    return loaded
