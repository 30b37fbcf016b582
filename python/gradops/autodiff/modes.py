"""The recording mode: one flag, local to the thread or asyncio task; and the error or warning for a lost gradient."""

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
for a gradient of its own, or ""."""


@tracing.read_as(lambda xs, f, /, *args, **kwargs: f(*args, **kwargs))
def differentiated(xs, f: Callable, /, *args, **kwargs):
    """``f(*args, **kwargs)`` as a function of the user's that is being differentiated by ``xs``."""
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
    """Return the library whose function raised an error as it does not take a variable; None for another error."""
    if not isinstance(error, TypeError):
        return None
    said = str(error)
    if "gradops.autodiff.variable." in said:
        return "jax"
    takes_tensors = "Tensor" in said or "invalid combination of arguments" in said
    return "torch" if takes_tensors and re.search(r"\b(Variable|Parameter)\b", said) else None


def foreign_variable_error(library: str) -> ArgumentTypeError:
    """The error of a library's function that got a variable, as the library's tensors have gradients of their own."""
    name, example = _LIBRARIES[library]
    return ArgumentTypeError(
        f"a function of {name} got a variable of gradops, which stands for a number or an array of NumPy's in a "
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
    """Our error, where NumPy or pandas have raised one of their own in its place; None where they have not.

    NumPy says "setting an array element with a sequence" where a ``float()`` raised, pandas "No numeric types to
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


def with_own_gradient(f: Callable, *args):
    """``f(*args)`` as a function whose gradient is its own, so that values which leave the graph in it lose nothing."""
    with changed(_inside, "own"):
        return f(*args)


def is_recorded() -> bool:
    """True if this runs in a function that is being differentiated by variables."""
    return _inside.get() == "recorded"


def lose_gradient(what: str, hint: str, level: int, inside: bool = False) -> None:
    """Say that a gradient would be lost silently: an error in a function that is differentiated, else a warning.

    Args:
        what, hint: the cause of the loss, and a way to keep the gradient.
        level: of the warning: 1 is the caller.
        inside: True if the result of such a function is meant.

    Raises:
        GradientError: there, unless ``config.set_lost_gradients("warn")`` has it otherwise.
    """
    where = "differentiated" if inside else _inside.get()
    if where == "own":
        return
    if where and config.lost_gradients() == "error":
        raise GradientError(what, hint=f'{hint}; `gradops.config.set_lost_gradients("warn")` has a warning instead')
    warnings.warn(f"{what}\nHint: {hint}", stacklevel=level + 1)


_inferring: ContextVar[bool] = ContextVar("gradops_inferring", default=False)
"""True inside an :class:`inference_mode`, in which ``enable_grad`` records nothing."""

ends = Ends("gradops_modes")
"""The scopes that set ``recording``."""


class _OfThread(threading.local):
    """Torch's mode is the thread's, not the task's: who set it last, and its value before all scopes."""

    last: tuple = ()
    outside: bool = True


_thread = _OfThread()

series_depth: ContextVar[int] = ContextVar("gradops_series_depth", default=0)
"""The level of the innermost :func:`gradops.functional.jet` around."""

series_end: ContextVar[int] = ContextVar("gradops_series_end", default=0)
"""Results at this level of nesting and below have no series; modes and scopes set it."""


def set_recording(value: bool) -> None:
    """Record or not from here on: on the tape, and in Taylor mode, which records nothing, keep series or end them."""
    recording.set(value)
    series_end.set(0 if value else series_depth.get())


def torch_before() -> bool | None:
    """Torch's mode for this thread or task, also where another task's scope set the thread's; None without torch."""
    torch = torch_tape.loaded()
    if torch is None:
        return None
    # gradops' mode is the task's and PyTorch's the thread's. While a task waits in its scope another one runs in the
    # same thread, with PyTorch's mode as the first has left it. Whoever set it last is known (`last`), so that a scope
    # which is entered now takes as "before" what its own task had, and not what another one happens to have set.
    mine = ends.open()
    if not _thread.last:
        _thread.outside = torch.is_grad_enabled()
    if _thread.last is mine or not _thread.last:
        return torch.is_grad_enabled()
    return recording.get() if mine else _thread.outside


def entered(scope, end) -> None:
    """Note that a scope has set the modes, and how it gives them back."""
    ends.push(scope, end)
    _thread.last = ends.open()


def left(scope) -> None:
    """End a scope that :func:`entered` noted."""
    ends.leave(scope)
    _thread.last = ends.open()


def restorer(before: bool | None):
    """A function that gives back the modes of now, and torch's of ``before``."""
    was, inferring, end = recording.get(), _inferring.get(), series_end.get()

    def restore():
        torch = torch_tape.loaded()
        if torch is not None and before is not None and torch.is_grad_enabled() != before:
            torch.set_grad_enabled(before)
        recording.set(was)  # after torch's, which `jet` follows
        _inferring.set(inferring)
        series_end.set(end)

    return restore


_of_libraries: dict[str, EndsOfThread] = {}


def enter_native(library: str, scope, stack: ExitStack) -> None:
    """Enter a library's own scope, which ``stack`` ends.

    Libraries hold their modes by thread and expect that the last entered ends first, whoever entered it.
    """
    scope.__enter__()

    def end():
        torch = torch_tape.loaded()
        enabled = torch is not None and torch.is_grad_enabled()
        scope.__exit__(None, None, None)
        if torch is not None:  # as it is now, not as it was when the scope was entered
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
        with ExitStack() as stack:  # which gives everything back where a part of it raises
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
        torch.set_grad_enabled(self.value)  # which the restorer gives back
        stack.enter_context(_derivatives_of(torch).forward_scope(self.value))


class no_grad(_Mode):
    """Scope in which nothing is recorded: results on variables and torch tensors need no gradient.

    Use as ``with no_grad():`` or as decorator, with or without parentheses, on functions, coroutines
    and generators. Local to the thread or task and restored on error. After ``torch.no_grad``.

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
    """Scope in which operations are recorded again, inside a :class:`no_grad`. After ``torch.enable_grad``.

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
    """A scope of gradops' own derivatives, which record inside any mode; series that have ended have none here."""

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
    """A scope in which operations are recorded, which costs little where they are anyway."""
    return changed(recording, True) if recording.get() and torch_tape.loaded() is None else _Recorded()


class inference_mode(_Mode):
    """The same as :class:`no_grad`, except that :class:`enable_grad` inside it records nothing either.

    Torch tensors made inside are torch's inference tensors. ``inference_mode(False)`` is a scope in which
    operations are recorded. After ``torch.inference_mode``.

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
    """Record or not from here on, as a statement; as scope or decorator until its end. After ``torch``'s.

    Examples:
        One function for training and for evaluation:

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
