"""Changes to Python while R runs it: warnings, interrupts, progress bars, the default backend and profilers.

Warnings and progress go to R. Interrupts are delayed while raising them would leave Python's state inconsistent.
"""

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

# Functions that an interrupt must not cut short. It would leave a scope half entered or half left; it would be lost
# where Python ignores exceptions (`__del__`); and JAX's compiled code would take it for a failed comparison of cache
# keys.
_WHOLE = frozenset(("__enter__", "__exit__", "__del__", "__eq__", "__hash__", "_xla_gc_callback"))


def set_warn(warn: Callable) -> None:
    """Show gradops' warnings in R, by the R function ``warn(message, category)``."""
    show = warnings.showwarning

    def showwarning(message, category, filename, lineno, file=None, line=None):
        if file is None and threading.current_thread() is threading.main_thread() and _is_in_gradops():
            warn(errors.format_code(str(message)), category.__name__)
        else:
            show(message, category, filename, lineno, file, line)

    warnings.showwarning = showwarning
    # Warn every time, as R does. "sys" is the module that Python reports for calls from R.
    warnings.filterwarnings("always", category=UserWarning, module=r"(sys$|gradops\b)")
    # R's functions return Inf without a warning.
    warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"gradops\.")
    warnings.filterwarnings("default", category=ComplexWarning, module=r"gradops\.")  # a RuntimeWarning, but useful
    warnings.filterwarnings("always", category=MismatchWarning)


def can_skip_recording() -> bool:
    """Return True if a compiled program may replace recording: NumPy is the backend, and no scope watches the tape."""
    return (
        config.default_backend() is backends.embedded()
        and not modes.ends.open()
        and modes.recording.get()
        and tape.current.get() is None
        and not anomaly.is_anomaly_enabled()
        and not profiler.running()
    )


def _flag(name: str) -> ctypes.c_int | None:
    """Return a C flag of R; None if R is not in this process."""
    try:
        return ctypes.c_int.in_dll(ctypes.CDLL("R.dll" if sys.platform == "win32" else None), name)
    except (AttributeError, OSError, TypeError, ValueError):
        return None


_pending = _flag("UserBreak" if sys.platform == "win32" else "R_interrupts_pending")
_suspended = _flag("R_interrupts_suspended")


clock: Any = None
"""The :class:`Clock` of R's current call while it is being measured, else None."""


def call_interruptible(function: Callable, arguments, keywords):
    """Call an R function with R's interrupts suspended until the function itself allows them.

    reticulate catches interrupts only inside the function; an earlier one would jump over Python's frames. ``.free``
    tells the function that interrupts were not suspended before, so that it may allow them.
    """
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


def _is_in_gradops() -> bool:
    frame = sys._getframe(2)
    while frame is not None:
        if frame.f_globals.get("__name__", "").startswith("gradops."):
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False


def choose_backend(name: str) -> Callable[[], None]:
    """Make ``name`` the default backend of the process, for R's ``local_backend()``.

    A scope (``config.backend_scope``) belongs to a thread, so the threads on which JAX calls R back would not see it.

    Returns:
        A function that restores the previous default and JAX's 64-bit mode.
    """
    before, undo = config.backend(), backends.lookup(name).prepare(config.floatx())
    config.set_backend(name)

    def leave() -> None:
        config.set_backend(before)
        if undo is not None and before != name:
            undo()

    return leave


def set_progress(show: Callable, patience: float) -> None:
    """Show progress bars in R for work that takes longer than ``patience`` seconds.

    ``show(label, total, done)`` is an R function; at the end it is called with NULL for ``done``.
    """
    _display.patience = float(patience)
    _display.host = lambda: _Bar(show)


class _Bar:
    """A progress bar with those methods of rich's that gradops uses; it calls R at most ten times a second."""

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
    """Make reticulate's handler of interrupts raise only where the exception will reach R.

    Otherwise it retries a little later: while a scope is entered or left; in functions that reticulate itself calls,
    which could swallow the exception (they are short; a function still running after 0.1 s is the user's); and in
    TensorFlow's code, for one second at most. If R's flag suspends interrupts, the R function ``may_interrupt()``
    returns True if they are suspended only for this call of Python. If it returns False, R sees the interrupt when it
    allows interrupts again.

    Returns:
        True if the handler was replaced, so that R has to install it again.
    """
    pending, suspended, handler = _pending, _suspended, reticulate.interrupt_handler()
    if pending is None or suspended is None or handler is None:
        return False
    waiting = _Waiting()

    def in_the_way(frame) -> float:
        """Return the seconds after which to retry, or 0 if the exception may be raised now."""
        if any(f.f_code.co_name in _WHOLE for f, _ in walk_stack(frame)):
            return 0.005
        if _is_in_tensorflow(frame) and waiting.seconds_for("tensorflow") < 1:
            return 0.001
        entry = _entered_from_r(frame)
        own = entry.f_globals.get("__name__", "").startswith("gradops.interop.")
        return 0 if own or waiting.seconds_for(entry) > 0 else 0.1

    def python_interrupt_handler(signum, frame):
        if waiting.asking:  # the handler itself was interrupted
            return
        if not pending.value:  # R has already handled the interrupt
            return waiting.end()
        waiting.asking, before = True, suspended.value
        try:
            seconds = in_the_way(frame)
            if seconds:
                _ask_again(seconds)
                return
            waiting.end()
            pending.value = 0  # else R could take the interrupt inside `may_interrupt()` and jump out of it
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
    """The obstacles to a pending interrupt, and the time since when each has been in the way."""

    def __init__(self) -> None:
        self.asking = False
        self._since: dict = {}

    def seconds_for(self, what) -> float:
        now = time.monotonic()
        return now - self._since.setdefault(what, now)

    def end(self) -> None:
        self._since.clear()


def _is_in_tensorflow(frame) -> bool:
    """Return True if TensorFlow's Python code is running.

    TensorFlow's compiled code may call it and ignore its exceptions. An interrupt raised there surfaces later as a
    ``SystemError``, or crashes the process.
    """
    while frame is not None and not threads.runs_r(frame):
        package = frame.f_globals.get("__name__", "").partition(".")[0]
        if package in ("tensorflow", "gradops"):
            return package == "tensorflow"
        frame = frame.f_back
    return False


def _ask_again(seconds: float) -> None:
    """Make Python call its interrupt handler again; reticulate's own request may go unnoticed by Python 3.11."""

    def ask() -> None:
        time.sleep(seconds)
        _thread.interrupt_main()

    _thread.start_new_thread(ask, ())


def _entered_from_r(frame):
    """Return the frame of the Python function that R called last, or of the program's first function."""
    while frame.f_back is not None and not threads.runs_r(frame.f_back):
        frame = frame.f_back
    return frame


# A call from R under profilers ----------------------------------------------------------------------------------------


class Clock:
    """The time that R's calls spend in Python, excluding the R functions that Python calls meanwhile."""

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
        """Make a call from R, with the clock running."""
        return self._turned(perf_counter(), function, arguments, keywords)

    def paused(self, function: Callable) -> Callable:
        """Wrap an R function that Python calls so that the clock pauses."""
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
    """Python's profiler on R's thread. It restores the previous profiler when it stops."""

    def start(self) -> None:
        self._before = sys.getprofile()
        self._profile = cProfile.Profile()
        self._profile.enable()

    def stop(self) -> dict[str, list]:
        """Return a row for each function, as columns, without the functions that lead into R and the profiler's own."""
        self._profile.disable()
        stats = pstats.Stats(self._profile).stats  # type: ignore[attr-defined]
        sys.setprofile(self._before)  # after `Stats`, which disables profiling again
        found = []
        for (file, line, name), (_, calls, own, total, _) in stats.items():
            if file != __file__ and "rpytools" not in file and "rpycall" not in name:
                place = "" if file == "~" else f"{'/'.join(Path(file).parts[-3:])}:{line}"
                found.append((name, place, calls, own, total))
        columns = zip(*found) if found else [[]] * 5
        return dict(zip(("name", "place", "calls", "self", "total"), map(list, columns)))
