"""What Python does otherwise while R runs it: warnings go to R, and interrupts wait for scopes to open and close."""

from __future__ import annotations

import _thread
import ctypes
import sys
import threading
import time
import warnings
from collections.abc import Callable
from traceback import walk_stack

from ..functional import _progress
from . import _r_thread

# Functions that an interrupt must not cut short: a scope would be entered or left half done, and where Python ignores
# exceptions the interrupt would be lost.
_WHOLE = frozenset(("__enter__", "__exit__", "__del__", "_xla_gc_callback"))


def set_warn(warn: Callable) -> None:
    """Let warnings that come from gradops be R's: ``warn(message, category)`` is an R function."""
    show = warnings.showwarning

    def showwarning(message, category, filename, lineno, file=None, line=None):
        if file is None and threading.current_thread() is threading.main_thread() and _in_gradops():
            warn(str(message), category.__name__)
        else:
            show(message, category, filename, lineno, file, line)

    warnings.showwarning = showwarning
    # As in R, every time; "sys" is where Python believes that R calls from.
    warnings.filterwarnings("always", category=UserWarning, module=r"(sys$|gradops\b)")
    # Where R's functions give Inf, they do so silently.
    warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"gradops\.")


def _r_interrupts_suspended() -> ctypes.c_int:
    """R's own flag; where R cannot be found, a number that nobody reads."""
    try:
        return ctypes.c_int.in_dll(ctypes.CDLL(None), "R_interrupts_suspended")
    except (AttributeError, OSError, TypeError, ValueError):
        return ctypes.c_int(0)


_suspended = _r_interrupts_suspended()


def interrupts_suspended() -> bool:
    """Whether R suspends interrupts now."""
    return bool(_suspended.value)


def into_r(function: Callable, arguments, keywords):
    """Call an R function. R ignores interrupts on the way, as reticulate catches them inside of the function only, and
    one before that would jump over Python's frames; the function itself allows them, unless it is told that they were
    suspended before (``.suspended``)."""
    before, _suspended.value = _suspended.value, 1
    if before:
        keywords = {**keywords, ".suspended": True}
    try:
        return function(*arguments, **keywords)
    finally:
        _suspended.value = before


def _in_gradops() -> bool:
    frame = sys._getframe(2)
    while frame is not None:
        if frame.f_globals.get("__name__", "").startswith("gradops."):
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False


def set_progress(show: Callable) -> None:
    """Let R show progress: ``show(label, total, done)`` is an R function, at the end called without ``done``."""
    _progress.host = lambda: _Bar(show)


class _Bar:
    """A progress bar with the methods of rich's that are used, told R ten times a second."""

    def __init__(self, show: Callable):
        self._show, self._done, self._next = show, 0, 0.0

    def start(self) -> None:
        pass

    def add_task(self, label: str, total: int) -> None:
        self._label, self._total = label, total

    def advance(self, task, count: int) -> None:
        self.update(task, self._done + count)

    def update(self, task, completed: int) -> None:
        self._done = completed
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + 0.1
            self._show(self._label, self._total, completed)

    def stop(self) -> None:
        self._show(self._label, self._total, None)


def hold_interrupts() -> bool:
    """Have reticulate's handler of interrupts raise only where the exception arrives in R.

    It is put off, for R to see when it runs next, while a scope begins or ends and while R suspends interrupts, when
    reticulate's handler would ask again at once, without end; and in what reticulate itself calls, which may take the
    exception for a plain failure and forget it. That ends at once; code that does not is asked again, by reticulate
    within half a second, and is then a function of the user's. In TensorFlow's code it is put off for a second at most.
    Returns whether that could be done, so that R installs the handler anew.
    """
    try:
        import rpycall
    except ImportError:
        return False
    handler = rpycall.python_interrupt_handler
    put_off: tuple = (None, 0.0)
    first = last = 0.0

    def python_interrupt_handler(signum, frame):
        nonlocal put_off, first, last
        if _suspended.value or any(f.f_code.co_name in _WHOLE for f, _ in walk_stack(frame)):
            return None
        if _in_tensorflow(frame):
            before, last = last, time.monotonic()
            first = last if last - before > 0.5 else first
            if last - first < 1:
                _ask_again()
                return None
        entry = _entered_from_r(frame)
        if not entry.f_globals.get("__name__", "").startswith("gradops.interop."):
            (before, at), now = put_off, time.monotonic()
            put_off = (id(entry), now)
            if before != id(entry) or now - at > 2:
                return None
        return handler(signum, None)

    rpycall.python_interrupt_handler = python_interrupt_handler
    return True


def _in_tensorflow(frame) -> bool:
    """Whether TensorFlow's Python code runs, at work for gradops or the user.

    Its compiled code calls it and may not look at what it raises: the exception surfaces later as a ``SystemError``, or
    the process ends.
    """
    while frame is not None and not _r_thread.runs_r(frame):
        package = frame.f_globals.get("__name__", "").partition(".")[0]
        if package in ("tensorflow", "gradops"):
            return package == "tensorflow"
        frame = frame.f_back
    return False


def _ask_again() -> None:
    """Have Python call its handler once more, in a moment; reticulate's does nothing where R was faster."""
    timer = threading.Timer(0.001, _thread.interrupt_main)
    timer.daemon = True
    timer.start()


def _entered_from_r(frame):
    """The frame of the Python function that R has called last, or that the program began with."""
    while frame.f_back is not None and not _r_thread.runs_r(frame.f_back):
        frame = frame.f_back
    return frame
