"""Settings: the default backend, the default float type, lost gradients, and checks of compiled programs.

The default backend applies only to calls without a tensor (numbers, lists, R vectors);
otherwise the tensor selects the library. Settings made by a scope are local to the thread or task.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextvars import ContextVar

from . import backends
from ._names import namespace
from ._scopes import Ends, EndsOfThread, Scope, note_change
from .backends import tracing
from .dtypes import epsilon, floatx, set_epsilon, set_floatx
from .errors import ArgumentError, Given, meant

__all__ = [
    "backend",
    "backend_scope",
    "check",
    "epsilon",
    "floatx",
    "lost_gradients",
    "lost_gradients_scope",
    "set_backend",
    "set_check",
    "set_epsilon",
    "set_floatx",
    "set_lost_gradients",
]

_scoped: ContextVar[str | None] = ContextVar("gradops_backend", default=None)
_scoped_losses: ContextVar[str | None] = ContextVar("gradops_lost_gradients", default=None)
_settings: dict = {"backend": os.environ.get("GRADOPS_BACKEND") or "numpy", "lost_gradients": "error"}
_CHECKS = ("off", "first", "sample", "always", "error")
_after_check: list[Callable[[], None]] = []


@tracing.constant
def backend() -> str:
    """The name of the default backend: ``"numpy"`` unless set here, by a scope or by ``GRADOPS_BACKEND``.

    Examples:
        >>> from gradops import config
        >>> with config.backend_scope("numpy"):
        ...     print(config.backend())
        numpy

    See Also:
        :func:`set_backend`, :func:`backend_scope`.
    """
    return _scoped.get() or _settings["backend"]


def set_backend(name: str) -> None:
    """Set the default backend of the process: ``"numpy"``, ``"torch"``, ``"tensorflow"`` or ``"jax"``.

    Setting ``"jax"`` while ``floatx()`` is ``"float64"`` turns on JAX's 64-bit mode; otherwise JAX
    would round every number to float32.

    Raises:
        BackendError: an unknown or uninstalled backend; the setting does not change.

    Examples:
        Numbers and lists are converted to it, tensors are unchanged:

        >>> import gradops
        >>> gradops.config.set_backend("numpy")
        >>> gradient = gradops.grad(lambda x: x**2)(3.0)
        >>> print(type(gradient).__module__, gradient)
        numpy 6.0

    See Also:
        :func:`backend_scope` for a block, :func:`backend`, :func:`gradops.to_backend`.
    """
    backends.lookup(name).prepare(floatx())
    _settings["backend"] = name
    note_change()


class backend_scope(Scope):
    """A scope that sets the default backend to ``name``, in this thread or task only.

    Use it as ``with backend_scope("torch"):`` or as a decorator, on functions, coroutines and generators. For
    ``"jax"``, JAX's 64-bit mode is on inside if ``floatx()`` needs it, and restored afterwards.

    Raises:
        BackendError: an unknown or uninstalled backend.

    Examples:
        >>> import gradops
        >>> with gradops.config.backend_scope("numpy"):
        ...     print(gradops.grad(lambda x: x**2)(3.0))
        6.0

        This example needs ``gradops[torch]``:

        >>> with gradops.config.backend_scope("torch"):
        ...     gradops.grad(lambda x: x**2)(3.0)
        tensor(6., dtype=torch.float64)

    See Also:
        :func:`set_backend`, :func:`backend`.
    """

    def __init__(self, name: str):
        self._name = name

    def __enter__(self) -> None:
        prepared = backends.lookup(self._name).prepared(floatx())
        prepared.__enter__()
        before = _scoped.get()
        _choose(self._name)
        _ends.push(self, lambda: _choose(before))
        _ends_of_thread.push(self, lambda: prepared.__exit__(None, None, None))

    def __exit__(self, *error) -> None:
        _ends_of_thread.leave(self)
        _ends.leave(self)

    def _again(self) -> backend_scope:
        return backend_scope(self._name)


def _choose(name: str | None) -> None:
    _scoped.set(name)
    note_change()


_ends = Ends("gradops_backends")
_ends_of_thread = EndsOfThread()


def lost_gradients() -> str:
    """The action if a function being differentiated would lose a gradient: ``"error"`` unless set.

    Examples:
        >>> from gradops import config
        >>> config.lost_gradients()
        'error'

    See Also:
        :func:`set_lost_gradients`, :func:`lost_gradients_scope`.
    """
    return _scoped_losses.get() or _settings["lost_gradients"]


def set_lost_gradients(action: str) -> None:
    """Set the action if a function being differentiated would lose a gradient.

    ``float(x)`` of a variable that requires a gradient is a number without one, so the derivative would be 0. In
    a function that :func:`gradops.grad`, ``value_and_grad`` and :mod:`gradops.functional` differentiate this raises an
    error in every call; so do ``int()``, ``complex()``, a text inserted into a string, and a NumPy result for tensors
    of another library. Outside of such functions, where ``backward()`` may never be called, it is a warning.

    Args:
        action: ``"error"``, or ``"warn"`` for a warning and a gradient of 0.

    Raises:
        ArgumentError: any other action.

    Examples:
        >>> import gradops
        >>> gradops.config.set_lost_gradients("error")
        >>> gradops.grad(lambda x: x * float(x))(3.0)
        Traceback (most recent call last):
            ...
        gradops.errors.GradientError: a variable that requires a gradient was made a Python float: ...

    See Also:
        :func:`lost_gradients_scope` for a block, :func:`lost_gradients`.
    """
    _settings["lost_gradients"] = _action(action)


class lost_gradients_scope(Scope):
    """A scope that applies :func:`set_lost_gradients` in this thread or task only; ``with`` or decorator.

    Raises:
        ArgumentError: see :func:`set_lost_gradients`.

    Examples:
        A part that is meant to be constant is marked, so nothing is lost:

        >>> import gradops
        >>> with gradops.config.lost_gradients_scope("error"):
        ...     print(gradops.grad(lambda x: x * float(gradops.stop_gradient(x)))(3.0))
        3.0

    See Also:
        :func:`set_lost_gradients`, :func:`gradops.stop_gradient`.
    """

    def __init__(self, action: str):
        self._action = _action(action)

    def __enter__(self) -> None:
        before = _scoped_losses.get()
        _scoped_losses.set(self._action)
        _ends.push(self, lambda: _scoped_losses.set(before))

    def __exit__(self, *error) -> None:
        _ends.leave(self)

    def _again(self) -> lost_gradients_scope:
        return lost_gradients_scope(self._action)


def _action(given) -> str:
    return _choice(given, ("error", "warn"), "action", '"error" or "warn"')


def check() -> str:
    """How compiled programs on NumPy are checked: ``"sample"`` unless set here or by ``GRADOPS_CHECK``.

    Examples:
        >>> from gradops import config
        >>> before = config.check()
        >>> config.set_check("first")
        >>> config.check()
        'first'
        >>> config.set_check(before)

    See Also:
        :func:`set_check`.
    """
    return _settings["check"]


def set_check(mode: str) -> None:
    """Set how compiled programs on NumPy are compared with NumPy, in this process.

    :func:`gradops.jit` and everything compiled automatically (``optimize``, ``inference``, R's ``gradient()``) run
    native code. The reference executor calls NumPy for each step of a program. If a result differs by more than
    rounding errors explain, the call returns the reference executor's result, the program runs without native code from
    then on, and one :class:`~gradops.errors.MismatchWarning` names the op. ``explain()`` reports it as well.

    Args:
        mode: ``"sample"`` checks a new program before its first result, and its calls 2, 4, 8, ... as long as this
            takes at most 2 % of the running time. ``"first"`` checks only new programs, ``"always"`` each call,
            ``"off"`` none. ``"error"`` is for tests: it checks the first 100 calls of a program and every tenth after
            them, and raises a :class:`~gradops.errors.MismatchError`. A program that was compiled while checks were off
            is not checked later.

    Raises:
        ArgumentError: any other mode.

    Examples:
        >>> import gradops
        >>> before = gradops.config.check()
        >>> gradops.config.set_check("error")
        >>> print(gradops.jit(lambda x: x**2)(3.0))
        9.0
        >>> gradops.config.set_check(before)

    See Also:
        :func:`check`; the environment variable ``GRADOPS_NATIVE=off`` and ``jit(f, native=False)``, which disable
        native code.
    """
    _settings["check"] = _check(mode, "mode")
    note_change()
    for call in _after_check:
        call()


def add_check_listener(call: Callable[[], None]) -> None:
    """Call ``call`` after each :func:`set_check`."""
    _after_check.append(call)


def _check(given, name: str) -> str:
    return _choice(given, _CHECKS, name, f"one of {', '.join(_CHECKS)}")


def _choice(given, options: tuple, name: str, wanted: str) -> str:
    """Return ``given``; raises if it is not one of ``options``."""
    if not isinstance(given, str) or given not in options:
        raise ArgumentError(
            f"`{name}` must be {wanted}; got {{given}}.",
            argument=name,
            hint=meant(given, options),
            given=Given(repr(given), given),
        )
    return given


_settings["check"] = _check(os.environ.get("GRADOPS_CHECK") or "sample", "GRADOPS_CHECK")


def default_backend() -> backends.Backend:
    """The default backend, loaded."""
    loaded = backends.computing(backends.lookup(backend()))
    loaded.prepare(floatx())
    return loaded


_RENAMED = {"use_backend": "backend_scope", "use_lost_gradients": "lost_gradients_scope"}

__dir__, __getattr__ = namespace(__name__, renamed={old: f"{__name__}.{new}" for old, new in _RENAMED.items()})
