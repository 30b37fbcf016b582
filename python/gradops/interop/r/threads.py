"""The thread that runs R, and the queue of calls that other threads make of R.

R runs on one thread. Calls from other threads wait in a queue, which R's thread serves

- while it waits for work in :func:`run` or :func:`wait_until`;
- while it runs Python code or waits for a lock (``Thread.join``, ``Future.result``): a signal makes Python run a
  handler there (SIGURG, which programs ignore by default and must expect at any time);
- in R's event loop (``Sys.sleep()``, the prompt), which is woken through reticulate.

R's thread cannot serve while it waits inside a library's compiled code. If it uses no processor time for ``patience``
seconds, a waiting call raises ``ThreadError``.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from contextvars import copy_context
from queue import Empty, SimpleQueue
from typing import Any

from ... import backends
from ...errors import ThreadError

patience = 10.0
"""Seconds for which a call waits while R's thread uses no processor time."""

ident: int | None = None
"""The identifier of R's thread."""

_SIGNAL = getattr(signal, "SIGURG", None)

running_r: list[str] = []
"""Folders of the Python code between Python and R; ``reticulate.py`` and ``rpy2.py`` add theirs."""

_calls: deque[_Call] = deque()
_dropped: deque = deque()
_bell: SimpleQueue = SimpleQueue()
_waiting = 0
arranged = 0
"""The number of backends at the last call of :func:`arrange_backward`."""
_notified = False
_notices: deque = deque()
"""An element for each request to R's event loop that has not run yet."""
_notify: Callable | None = None
_may_serve: Callable[[], bool] = lambda: True  # noqa: E731


def set_thread(
    notify: Callable | None = None,
    may_serve: Callable[[], bool] | None = None,
    thread: threading.Thread | None = None,
) -> None:
    """Declare the current thread, or ``thread``, to be R's.

    ``notify(function)`` makes R's event loop call ``function``. ``may_serve()`` returns True if R can be called at this
    moment, in the middle of Python code.
    """
    global ident, _notify, _may_serve
    ident = threading.get_ident() if thread is None else thread.ident
    _notify = notify
    _may_serve = may_serve or _may_serve
    if _SIGNAL is not None and is_current() and threading.current_thread() is threading.main_thread():
        if signal.getsignal(_SIGNAL) in (signal.SIG_DFL, signal.SIG_IGN):
            signal.signal(_SIGNAL, lambda *_: serve())


def is_current() -> bool:
    """Return True if the current thread is R's."""
    return threading.get_ident() == ident


def set_patience(seconds: float) -> None:
    global patience
    patience = float(seconds)


class _Call:
    """A call to be made on another thread with the state (contexts, recording) of this one."""

    def __init__(self, function: Callable, arguments: tuple, keywords: dict):
        self.function = function
        self.arguments = arguments
        self.keywords = keywords
        self.context = copy_context()
        self.states = _states()
        self.caller = threading.current_thread()
        self.done = threading.Event()
        self.value: Any = None
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            self.value = self.context.run(self._run)
        except BaseException as error:
            self.error = error
        self.done.set()

    def _run(self):
        with contextlib.ExitStack() as stack:
            for state in self.states:
                stack.enter_context(state())
            return self.function(*self.arguments, **self.keywords)

    def result(self):
        error, self.error = self.error, None
        if error is None:
            return self.value
        try:
            raise error
        finally:
            del error


def _states() -> list[Callable]:
    """Return scopes that carry the libraries' thread-local state (recording, graphs, transformations) to a thread."""
    return [backend.derivatives.carried() for backend in backends.loaded_backends()]


# Other threads --------------------------------------------------------------------------------------------------------


def call(function: Callable, *arguments, **keywords):
    """Call ``function`` on R's thread and return its result.

    Raises:
        ThreadError: R's thread has ended, or is blocked.
    """
    if ident is None or is_current():
        return function(*arguments, **keywords)
    made = _Call(function, arguments, keywords)
    _calls.append(made)
    since, worked, pause = time.monotonic(), _processor_time(), 0.02
    _wake()
    while not made.done.wait(pause):
        pause = min(2 * pause, 0.5)
        now, used = time.monotonic(), _processor_time()
        if used - worked > 0.02 * (now - since):
            since, worked = now, used
        if (now - since > patience or not _alive()) and _withdraw(made):
            raise _unserved()
        _wake()
    if isinstance(made.error, KeyboardInterrupt):
        raise ThreadError("the call of an R function was interrupted.") from None
    return made.result()


def drop(value) -> None:
    """Release ``value`` on R's thread: the last reference to an R object must be dropped there."""
    if not is_current():
        _dropped.append(value)
        if _waiting:
            _bell.put(None)


def _withdraw(made: _Call) -> bool:
    try:
        _calls.remove(made)
        return True
    except ValueError:  # R's thread has taken it
        return False


def _wake() -> None:
    """Make R's thread serve the queue, whatever it is doing."""
    global _notified
    if _waiting:
        _bell.put(None)
        return
    if _SIGNAL is not None and ident == threading.main_thread().ident:
        ctypes.pythonapi.PyErr_SetInterruptEx(int(_SIGNAL))  # Python code serves at its next step
        if _is_in_python():
            signal.pthread_kill(ident, _SIGNAL)  # type: ignore[arg-type]  # interrupts a wait for a lock
    # Python's queue of pending calls has 32 slots and runs them one after the other. Serving may itself be a pending
    # call; scheduling into a full queue would then wait for it while holding what R waits for. So at most 8 are queued.
    if _notify is not None and not _notified and len(_notices) < 8:
        _notified = True
        _notices.append(None)
        _notify(_serve_noticed)


def _serve_noticed() -> None:
    _notices.pop()
    serve()


def _is_in_python() -> bool:
    """Return True if R's thread runs Python code; in R code a signal could interrupt system calls."""
    frame = sys._current_frames().get(ident)  # type: ignore[arg-type]
    return frame is not None and not runs_r(frame)


def runs_r(frame) -> bool:
    """Return True if a frame belongs to reticulate's or rpy2's code."""
    return any(folder in frame.f_code.co_filename for folder in running_r)


def _alive() -> bool:
    return any(thread.ident == ident and thread.is_alive() for thread in threading.enumerate())


def _processor_time() -> float:
    """Return the processor time of R's thread in seconds; 0 where the system does not report it."""
    try:
        return time.clock_gettime(time.pthread_getcpuclockid(ident))  # type: ignore[arg-type]
    except (AttributeError, OSError):
        return 0.0


def _unserved() -> ThreadError:
    name = threading.current_thread().name
    if not _alive():
        return ThreadError(
            f"thread {name!r} calls an R function, but the thread that R runs on is over.",
            hint="start R (the first use of rpy2) on the main thread",
        )
    frame = sys._current_frames().get(ident)  # type: ignore[arg-type]
    where = "" if frame is None else f" in `{frame.f_code.co_name}` ({frame.f_code.co_filename}:{frame.f_lineno})"
    return ThreadError(
        f"thread {name!r} calls an R function, but R's thread waits{where} and cannot run it.",
        hint="have R's thread serve while it waits: `call_in_thread(f, ...)` in place of `f(...)`",
    )


# R's thread -----------------------------------------------------------------------------------------------------------


def arrange_backward() -> None:
    """Run the backward passes started by R's thread on that thread: torch would use its own threads for a GPU."""
    global arranged
    if is_current():
        arranged = backends.count()
        for backend in backends.loaded_backends():
            backend.derivatives.use_one_thread()


def serve() -> None:
    """Make the waiting calls and release dropped objects."""
    global _notified
    _notified = False
    _dropped.clear()
    while _calls and is_current() and _may_serve():
        try:
            made = _calls.popleft()
        except IndexError:
            return
        made.run()
        if isinstance(made.error, KeyboardInterrupt):
            raise made.error


def run(function: Callable, *arguments, **keywords):
    """Call ``function`` on another thread while R's thread, the current one, serves.

    An interrupt ends the wait, and the other thread's calls of R fail from then on. Python's garbage collector is
    disabled meanwhile: reticulate passes R objects collected on another thread to R's thread through Python's 32
    pending calls. If none is free, it waits with the interpreter's lock held, and R's thread could not run any.
    """
    if not is_current():
        return function(*arguments, **keywords)
    made = _Call(function, arguments, keywords)
    collects = gc.isenabled()
    gc.disable()

    def work():
        made.run()
        _bell.put(None)

    try:
        threading.Thread(target=work, name="gradops", daemon=True).start()
        wait_until(made.done.is_set)
    finally:
        if collects:
            gc.enable()
    return made.result()


def wait_until(ready: Callable[[], bool], every: float | None = 0.05) -> None:
    """Serve until ``ready()`` is true; it is checked after each call and every ``every`` seconds.

    Between two waits Python runs its pending calls, including calls of reticulate's own R functions.
    """
    global _waiting
    _waiting += 1
    try:
        while not ready():
            try:  # not `suppress()`: an interrupt is delayed while a scope is entered or left
                _bell.get(timeout=every)
            except Empty:
                pass
            serve()
    finally:
        _waiting -= 1
        if _waiting:
            _bell.put(None)  # this wait may have taken a notice meant for an outer one
