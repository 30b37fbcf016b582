"""Modes of recording: a flag that is local to the thread or asyncio task, and the error for a lost gradient.

The public scopes (:class:`no_grad` and its kin) set gradops' flag and PyTorch's mode together; libraries' own scopes
are entered with them and left in order. :func:`lose_gradient` raises or warns where a gradient would silently end.
"""

from __future__ import annotations

import re
import threading
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from contextvars import ContextVar
from typing import Any, overload

from .. import backends, config
from .._scopes import Ends, EndsOfThread, F, PlainScope, S, Scope, changed
from ..backends import tracing
from ..errors import ArgumentTypeError, GradientError, GradopsError
from ..ops import _pandas
from ..ops._checks import check_flags
from . import torch_tape

recording: ContextVar[bool] = ContextVar("gradops_recording", default=True)


def is_grad_enabled() -> bool:
    """True if operations on variables (and on torch tensors) are recorded for differentiation.

    Examples:
        >>> from gradops import autodiff
        >>> with autodiff.no_grad():
        ...     print(autodiff.is_grad_enabled())
        False
        >>> autodiff.is_grad_enabled()
        True

    See Also:
        :func:`no_grad`, :func:`set_grad_enabled`.
    """
    return recording.get()


_inside: ContextVar[str] = ContextVar("gradops_inside", default="")
"""The kind of the user's innermost running function: "recorded" on the tape, "differentiated" by its library, "own"
for one with its own gradient, or ""."""


@tracing.read_as(lambda xs, f, /, *args, **kwargs: f(*args, **kwargs))
def differentiated(xs, f: Callable, /, *args, **kwargs):
    """Call ``f(*args, **kwargs)``, a user's function that is being differentiated with respect to ``xs``."""
    with changed(_inside, "recorded" if any(hasattr(type(x), "_given") for x in xs) else "differentiated"):
        try:
            return f(*args, **kwargs)
        except Exception as error:
            hidden = _hidden(error)
            if hidden is not None:
                raise hidden from None
            library = _library_of(error)
            if library is not None:
                raise foreign_variable_error(library) from error
            raise


def _library_of(error: Exception) -> str | None:
    """The library whose function rejected a variable with this error; None for another error."""
    if not isinstance(error, TypeError):
        return None
    said = str(error)
    if "gradops.autodiff.variable." in said:
        return "jax"
    takes_tensors = "Tensor" in said or "invalid combination of arguments" in said
    return "torch" if takes_tensors and re.search(r"\b(Variable|Parameter)\b", said) else None


def foreign_variable_error(library: str) -> ArgumentTypeError:
    """The error for a variable passed to a library's own function, whose tensors have gradients of their own."""
    name, example = _LIBRARIES[library]
    return ArgumentTypeError(
        f"a function of {name} got a variable of gradops, which stands for a number or a NumPy array in a "
        "function that is differentiated.",
        argument="x",
        hint=f"differentiate the function at a tensor of its library, such as `{example}`, or write it with "
        "`gradops.ops`, whose functions take both",
    )


_LIBRARIES = {
    "jax": ("JAX", "jnp.array(1.0)"),
    "tensorflow": ("TensorFlow", "tf.constant(1.0)"),
    "torch": ("PyTorch", "torch.tensor(1.0)"),
}


def _hidden(error: Exception) -> GradopsError | None:
    """The gradops error that NumPy or pandas replaced with one of their own; None for other errors.

    NumPy says "setting an array element with a sequence" if a ``float()`` raised, pandas "No numeric types to
    aggregate" and "Transform function failed".
    """
    if isinstance(error, GradopsError):
        return None
    inner: BaseException | None = error.__cause__ or error.__context__
    while inner is not None and not isinstance(inner, GradopsError):
        inner = inner.__cause__ or inner.__context__
    if inner is None or isinstance(error, ValueError) and error.__cause__ is inner:
        return inner
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    where = "" if frame is None else frame.tb_frame.f_globals.get("__name__", "")
    return inner if _pandas.raised(where) else None


def call_with_own_gradient(f: Callable, *args):
    """Call ``f(*args)``, a function with its own gradient: values that leave the graph inside lose nothing."""
    with changed(_inside, "own"):
        return f(*args)


def is_recorded() -> bool:
    """True inside a function that is being differentiated with respect to variables."""
    return _inside.get() == "recorded"


def lose_gradient(what: str, hint: str, level: int, inside: bool = False) -> None:
    """Report that a gradient would be lost silently: an error in a function being differentiated, otherwise a warning.

    Args:
        what, hint: the cause of the loss, and a way to keep the gradient.
        level: the stack level of the warning; 1 is the caller.
        inside: True to report as inside of a function being differentiated.

    Raises:
        GradientError: inside such a function, unless ``config.set_lost_gradients("warn")`` is set.
    """
    where = "differentiated" if inside else _inside.get()
    if where == "own":
        return
    if where and config.lost_gradients() == "error":
        raise GradientError(what, hint=f'{hint}; `gradops.config.set_lost_gradients("warn")` gives a warning instead')
    warnings.warn(f"{what}\nHint: {hint}", stacklevel=level + 1)


_inferring: ContextVar[bool] = ContextVar("gradops_inferring", default=False)
"""True inside an :class:`inference_mode`, where ``enable_grad`` records nothing."""

ends = Ends("gradops_modes")
"""The scopes that set ``recording``."""


class _ThreadMode(threading.local):
    """Torch's mode belongs to the thread, not the task: who set it last, and its value before all scopes."""

    last: tuple = ()
    outside: bool = True


_thread = _ThreadMode()

series_depth: ContextVar[int] = ContextVar("gradops_series_depth", default=0)
"""The level of the innermost enclosing :func:`gradops.functional.jet`."""

series_end: ContextVar[int] = ContextVar("gradops_series_end", default=0)
"""Results up to this nesting level have no series; modes and scopes set it."""


def set_recording(value: bool) -> None:
    """Switch recording on or off, on the tape and in Taylor mode, where off ends series."""
    recording.set(value)
    series_end.set(0 if value else series_depth.get())


def torch_before() -> bool | None:
    """Torch's mode for this thread or task, even if another task's scope set the thread's; None without torch."""
    torch = torch_tape.loaded()
    if torch is None:
        return None
    # gradops' mode belongs to the task, PyTorch's to the thread. While a task waits inside its scope, another one runs
    # in the same thread with PyTorch's mode as the first has set it. `last` tells who set it last, so that a scope
    # entered now restores the mode of its own task, not the one that another task happens to have set.
    mine = ends.open()
    if not _thread.last:
        _thread.outside = torch.is_grad_enabled()
    if _thread.last is mine or not _thread.last:
        return torch.is_grad_enabled()
    return recording.get() if mine else _thread.outside


def entered(scope, end) -> None:
    """Note that a scope has set the modes, and how to restore them."""
    ends.push(scope, end)
    _thread.last = ends.open()


def left(scope) -> None:
    """End a scope that :func:`entered` noted."""
    ends.leave(scope)
    _thread.last = ends.open()


def restorer(before: bool | None):
    """A function that restores the present modes, and torch's mode ``before``."""
    was, inferring, end = recording.get(), _inferring.get(), series_end.get()

    def restore():
        torch = torch_tape.loaded()
        if torch is not None and before is not None and torch.is_grad_enabled() != before:
            torch.set_grad_enabled(before)
        recording.set(was)  # after torch's, because `jet` follows torch's mode
        _inferring.set(inferring)
        series_end.set(end)

    return restore


_of_libraries: dict[str, EndsOfThread] = {}


def enter_native(library: str, scope, stack: ExitStack) -> None:
    """Enter a library's own scope, which ``stack`` ends.

    Libraries store modes per thread and expect scopes to end in reverse order of entering, across tasks as well.
    """
    scope.__enter__()

    def end():
        torch = torch_tape.loaded()
        enabled = torch is not None and torch.is_grad_enabled()
        scope.__exit__(None, None, None)
        if torch is not None:  # keep the present mode, not that of entering
            torch.set_grad_enabled(enabled)

    ends_of_library = _of_libraries.setdefault(library, EndsOfThread())
    ends_of_library.push(scope, end)
    stack.callback(ends_of_library.leave, scope)


class _Mode(PlainScope):
    """A scope that sets the flag."""

    value: bool

    def __enter__(self):
        restore, torch = restorer(torch_before()), torch_tape.loaded()
        if torch is None:
            self._set()
            entered(self, restore)
            return self
        with ExitStack() as stack:  # restores everything if a part raises
            stack.callback(restore)
            self._set()
            self._enter_torch(torch, stack)
            entered(self, stack.pop_all().close)
        return self

    def __exit__(self, *error):
        left(self)

    def _set(self) -> None:
        set_recording(self.value and not _inferring.get())

    def _enter_torch(self, torch, stack: ExitStack) -> None:
        torch.set_grad_enabled(self.value)  # undone by the restorer
        stack.enter_context(_derivatives_of(torch).forward_scope(self.value))


class no_grad(_Mode):
    """A scope that records nothing: results on variables and torch tensors need no gradient.

    Use it as ``with no_grad():`` or as a decorator, with or without parentheses, on functions, coroutines
    and generators. It is local to the thread or task and restored on error. After ``torch.no_grad``.

    Examples:
        >>> import gradops
        >>> from gradops import autodiff
        >>> w = gradops.Variable(2.0, requires_grad=True)
        >>> with autodiff.no_grad():
        ...     constant = w**2
        >>> print(constant.requires_grad)
        False
        >>> (w * constant).backward()
        >>> print(w.grad.numpy())
        4.0

    See Also:
        :func:`enable_grad`, :func:`inference_mode`, :func:`gradops.stop_gradient_scope`, which records inside.
    """

    value = False


class enable_grad(_Mode):
    """A scope that records operations again, inside a :class:`no_grad`. After ``torch.enable_grad``.

    Examples:
        >>> import gradops
        >>> from gradops import autodiff
        >>> w = gradops.Variable(2.0, requires_grad=True)
        >>> with autodiff.no_grad():
        ...     with autodiff.enable_grad():
        ...         loss = w**2
        >>> loss.backward()
        >>> print(w.grad.numpy())
        4.0

    See Also:
        :func:`no_grad`, :func:`set_grad_enabled`.
    """

    value = True


class _Recorded(_Mode):
    """The scope of gradops' own derivatives, which records inside any mode; series that have ended do not resume."""

    value = True

    def _set(self) -> None:
        recording.set(True)
        _inferring.set(False)

    def _enter_torch(self, torch, stack: ExitStack) -> None:
        if torch.is_inference_mode_enabled() or not torch.is_grad_enabled():
            series_end.set(series_depth.get())
        if torch.is_inference_mode_enabled():
            enter_native("torch", torch.inference_mode(False), stack)
        if not torch.is_grad_enabled():
            derivatives = _derivatives_of(torch)
            derivatives.record(True)
            stack.callback(derivatives.record, False)


def _derivatives_of(torch):
    """PyTorch's derivatives in gradops."""
    owner: Any = backends.owner(torch.Tensor)
    return owner.derivatives


def ensured_recording() -> AbstractContextManager[Any]:
    """A scope that records operations; it costs little if they are recorded anyway."""
    return changed(recording, True) if recording.get() and torch_tape.loaded() is None else _Recorded()


class inference_mode(_Mode):
    """Like :class:`no_grad`, but :class:`enable_grad` inside it records nothing either.

    Torch tensors made inside are torch's inference tensors. ``inference_mode(False)`` is a scope that
    records operations. After ``torch.inference_mode``.

    Examples:
        >>> import gradops
        >>> from gradops import autodiff
        >>> w = gradops.Variable(2.0, requires_grad=True)
        >>> with autodiff.inference_mode(), autodiff.enable_grad():
        ...     print((w**2).requires_grad)
        False
        >>> (w**2).backward()
        >>> print(w.grad.numpy())
        4.0

    See Also:
        :func:`no_grad`.
    """

    value = False

    @overload
    def __new__(cls, mode: F) -> F: ...  # type: ignore[misc]
    @overload
    def __new__(cls: type[S], mode: bool = True) -> S: ...
    def __new__(cls, mode=True) -> Any:
        if callable(mode):
            return super().__new__(cls, mode)
        check_flags("inference_mode", mode=mode)
        self = super().__new__(cls)
        self.value = not mode
        return self

    def _again(self):
        return type(self)(not self.value)

    def _set(self) -> None:
        _inferring.set(not self.value)
        super()._set()

    def _enter_torch(self, torch, stack: ExitStack) -> None:
        enter_native("torch", torch.inference_mode(not self.value), stack)


class set_grad_enabled(_Mode):
    """Switch recording on or off, from here on as a statement, for a block as a scope or decorator. After ``torch``'s.

    Examples:
        One function for training and evaluation:

        >>> import gradops
        >>> from gradops import autodiff
        >>> w = gradops.Variable(2.0, requires_grad=True)
        >>> def predict(train):
        ...     with autodiff.set_grad_enabled(train):
        ...         return w**2
        >>> predict(train=False).requires_grad
        False
        >>> predict(train=True).backward()
        >>> print(w.grad.numpy())
        4.0

    See Also:
        :func:`no_grad`, :func:`enable_grad`, :func:`is_grad_enabled`.
    """

    _restore: Callable[[], None]

    def __new__(cls, mode: bool):
        check_flags("set_grad_enabled", mode=mode)
        self = Scope.__new__(cls)
        self.value = bool(mode)
        restore, torch = restorer(torch_before()), torch_tape.loaded()
        with ExitStack() as stack:
            stack.callback(restore)
            self._set()
            if torch is not None:
                self._enter_torch(torch, stack)
            self._restore = stack.pop_all().close
        return self

    def __enter__(self):
        entered(self, self._restore)
        return self

    def _again(self):
        return type(self)(self.value)

    def __call__(self, function):
        self._restore()
        return super().__call__(function)
