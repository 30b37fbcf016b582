"""Changes to Python while R runs it: warnings, interrupts, the backend in use, and profilers of calls."""

from __future__ import annotations

import _thread
import cProfile
import ctypes
import pstats
import sys
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from traceback import walk_stack
from typing import Any

from numpy.exceptions import ComplexWarning

from ... import _display, backends, config
from ...autodiff import modes
from ...autodiff.diagnostics import anomaly, profiler
from ...errors import MismatchWarning
from ...flow.checkpointing import tape
from . import errors, reticulate, threads

# Functions that an interrupt must not cut short: a scope would be entered or left half done; where Python ignores
# exceptions the interrupt would be lost; and compiled code that compares keys of its caches (JAX's) takes it for their
# failure.
_WHOLE = frozenset(("__enter__", "__exit__", "__del__", "__eq__", "__hash__", "_xla_gc_callback"))


def set_warn(warn: Callable) -> None:
    """Make gradops' warnings R's: ``warn(message, category)`` is an R function."""
    show = warnings.showwarning

    def showwarning(message, category, filename, lineno, file=None, line=None):
        if file is None and threading.current_thread() is threading.main_thread() and _in_gradops():
            warn(errors.with_code(str(message)), category.__name__)
        else:
            show(message, category, filename, lineno, file, line)

    warnings.showwarning = showwarning
    # As in R, every time; "sys" is where Python believes that R calls from.
    warnings.filterwarnings("always", category=UserWarning, module=r"(sys$|gradops\b)")
    # Where R's functions give Inf, they do so silently.
    warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"gradops\.")
    warnings.filterwarnings("default", category=ComplexWarning, module=r"gradops\.")  # which is one of these
    warnings.filterwarnings("always", category=MismatchWarning)


def in_no_scope() -> bool:
    """True where a derivative is NumPy's own, recorded, and watched by no scope: a program may stand for it."""
    return (
        config.default_backend() is backends.embedded()
        and not modes.ends.open()
        and modes.recording.get()
        and tape.current.get() is None
        and not anomaly.is_anomaly_enabled()
        and not profiler.running()
    )


def _flag(name: str) -> ctypes.c_int | None:
    """A flag of R's own; None where there is no R in this process."""
    try:
        return ctypes.c_int.in_dll(ctypes.CDLL("R.dll" if sys.platform == "win32" else None), name)
    except (AttributeError, OSError, TypeError, ValueError):
        return None


_pending = _flag("UserBreak" if sys.platform == "win32" else "R_interrupts_pending")
_suspended = _flag("R_interrupts_suspended")


clock: Any = None
"""The clock of a call of R's, while one is measured: a :class:`Clock`."""


def into_r(function: Callable, arguments, keywords):
    """Call an R function. R ignores interrupts on the way, as reticulate catches them inside of the function only, and
    one before that would jump over Python's frames; the function itself allows them, unless R's user suspends them:
    only where R's flag is up need it look (``.free``)."""
    if clock is not None:
        function = clock.paused(function)
    if _suspended is None:
        return function(*arguments, **keywords)
    before, _suspended.value = _suspended.value, 1
    if not before:
        keywords = {**keywords, ".free": True}
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


def choose_backend(name: str) -> Callable[[], None]:
    """Make ``name`` the default backend of the process, as R's ``local_backend()`` does.

    A scope of this thread (``config.backend_scope``) would not be seen by the threads on which JAX calls R back.

    Returns:
        A function that restores the default before, and JAX's 64-bit mode.
    """
    before, undo = config.backend(), backends.by_name(name).prepare(config.floatx())
    config.set_backend(name)

    def leave() -> None:
        config.set_backend(before)
        if undo is not None and before != name:
            undo()

    return leave


def set_progress(show: Callable, patience: float) -> None:
    """Show progress by R, after so many seconds.

    ``show(label, total, done)`` is an R function, at the end called without ``done``.
    """
    _display.patience = float(patience)
    _display.host = lambda: _Bar(show)


class _Bar:
    """A progress bar with the methods of rich's that are used, of which R hears ten times a second."""

    def __init__(self, show: Callable):
        self._show, self._next = show, 0.0

    def start(self) -> None:
        pass

    def add_task(self, label: str, total: int | None) -> None:
        self._label, self._total = label, total

    def update(self, task, completed: int) -> None:
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + 0.1
            self._show(self._label, self._total, completed)

    def stop(self) -> None:
        self._show(self._label, self._total, None)


def hold_interrupts(may_interrupt: Callable) -> bool:
    """Have reticulate's handler of interrupts raise only where the exception arrives in R.

    It is asked again a little later while a scope begins or ends; in functions that reticulate itself calls, which may
    take the exception for a plain failure and forget it (they end at once, others are the user's); and in TensorFlow's
    code, for a second at most. Where R's flag suspends interrupts, ``may_interrupt()``, an R function, is True if that
    is only for the call of Python; otherwise R sees the interrupt when it allows them again.

    Returns:
        True if that could be done, so that R installs the handler anew.
    """
    pending, suspended, handler = _pending, _suspended, reticulate.interrupt_handler()
    if pending is None or suspended is None or handler is None:
        return False
    waiting = _Waiting()

    def in_the_way(frame) -> float:
        """Seconds after which to ask again; 0 where the exception may be raised."""
        if any(f.f_code.co_name in _WHOLE for f, _ in walk_stack(frame)):
            return 0.005
        if _in_tensorflow(frame) and waiting.seconds_for("tensorflow") < 1:
            return 0.001
        entry = _entered_from_r(frame)
        own = entry.f_globals.get("__name__", "").startswith("gradops.interop.")
        return 0 if own or waiting.seconds_for(entry) > 0 else 0.1

    def python_interrupt_handler(signum, frame):
        if waiting.asking:  # interrupted itself
            return
        if not pending.value:  # R was faster
            return waiting.over()
        waiting.asking, before = True, suspended.value
        try:
            seconds = in_the_way(frame)
            if seconds:
                _ask_again(seconds)
                return
            waiting.over()
            pending.value = 0  # or R might take the interrupt while it is asked, and jump out of its function
            try:
                allowed = not before or may_interrupt()
            finally:
                pending.value = 1
            if allowed:
                suspended.value = 0
                handler(signum, None)
        finally:
            waiting.asking, suspended.value = False, before

    reticulate.set_interrupt_handler(python_interrupt_handler)
    return True


class _Waiting:
    """The obstacle to a requested interrupt, and for how long it has been in the way."""

    def __init__(self) -> None:
        self.asking = False
        self._since: dict = {}

    def seconds_for(self, what) -> float:
        now = time.monotonic()
        return now - self._since.setdefault(what, now)

    def over(self) -> None:
        self._since.clear()


def _in_tensorflow(frame) -> bool:
    """True if TensorFlow's Python code runs, at work for gradops or the user.

    Its compiled code calls it and may not look at its exceptions: an exception surfaces later as a ``SystemError``, or
    the process ends.
    """
    while frame is not None and not threads.runs_r(frame):
        package = frame.f_globals.get("__name__", "").partition(".")[0]
        if package in ("tensorflow", "gradops"):
            return package == "tensorflow"
        frame = frame.f_back
    return False


def _ask_again(seconds: float) -> None:
    """Have Python call its handler once more: reticulate does so too, but Python 3.11 may not notice."""

    def ask() -> None:
        time.sleep(seconds)
        _thread.interrupt_main()

    _thread.start_new_thread(ask, ())


def _entered_from_r(frame):
    """The frame of the Python function that R has called last, or that the program began with."""
    while frame.f_back is not None and not threads.runs_r(frame.f_back):
        frame = frame.f_back
    return frame


# A call from R under profilers ----------------------------------------------------------------------------------------


class Clock:
    """The time that R's calls spend in Python, without that in the R functions which Python calls meanwhile."""

    def __init__(self):
        self.seconds = 0.0
        self._since: float | None = None

    def start(self) -> None:
        global clock
        clock = self

    def stop(self) -> float:
        global clock
        clock = None
        return self.seconds

    def call(self, function: Callable, *arguments, **keywords):
        """A call from R."""
        return self._turned(perf_counter(), function, arguments, keywords)

    def paused(self, function: Callable) -> Callable:
        """An R function that Python calls."""
        return lambda *arguments, **keywords: self._turned(None, function, arguments, keywords)

    def _turned(self, since: float | None, function: Callable, arguments, keywords):
        before = self._note(since)
        try:
            return function(*arguments, **keywords)
        finally:
            self._note(None if before is None else perf_counter())

    def _note(self, since: float | None) -> float | None:
        before, self._since = self._since, since
        if before is not None:
            self.seconds += perf_counter() - before
        return before


class Functions:
    """Python's profiler on the thread of R, and the profiler that was there before it."""

    def start(self) -> None:
        self._before = sys.getprofile()
        self._profile = cProfile.Profile()
        self._profile.enable()

    def stop(self) -> dict[str, list]:
        """A row for each function, as columns; those that lead into R, and its own, are left out."""
        self._profile.disable()
        stats = pstats.Stats(self._profile).stats  # type: ignore[attr-defined]
        sys.setprofile(self._before)  # after `Stats`, which disables once more
        found = []
        for (file, line, name), (_, calls, own, total, _) in stats.items():
            if file != __file__ and "rpytools" not in file and "rpycall" not in name:
                place = "" if file == "~" else f"{'/'.join(Path(file).parts[-3:])}:{line}"
                found.append((name, place, calls, own, total))
        columns = zip(*found) if found else [[]] * 5
        return dict(zip(("name", "place", "calls", "self", "total"), map(list, columns)))
