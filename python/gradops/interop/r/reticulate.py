"""All uses of reticulate's internals on Python's side; R/python-reticulate.R is the counterpart in R.

reticulate adds two modules to the Python that it starts: ``rpycall``, which is compiled, and ``rpytools``. Each
function here tolerates missing or changed internals, and :func:`missing` lists what this version lacks.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import CodeType
from typing import Any

from . import threads

threads.running_r.append("/rpytools/")


def runs() -> bool:
    """Return True if R runs this Python."""
    return "rpycall" in sys.modules


def missing() -> list[str]:
    """Return the names used here that this version of reticulate lacks."""
    if not runs():
        return ["rpycall"]
    import rpycall
    import rpytools.thread

    known = {
        "rpycall.call_r_function": hasattr(rpycall, "call_r_function"),
        "rpycall.schedule_python_function_on_main_thread": _schedule() is not None,
        "rpycall.python_interrupt_handler": interrupt_handler() is not None,
        "rpytools.call.make_python_function": _code_of_wrappers() is not None,
        "rpytools.thread.safe_call_r_function_on_main_thread": hasattr(rpytools.thread, _ON_MAIN_THREAD),
    }
    return [name for name, there in known.items() if not there]


# R functions ----------------------------------------------------------------------------------------------------------


def capsule_of(value) -> Any:
    """Return the R function behind a Python function made by reticulate; None for other functions."""
    code: Any = _code_of_wrappers()
    made = code is not None and getattr(value, "__code__", None) is code
    return value.__closure__[code.co_freevars.index("f")].cell_contents if made else None


_wrappers: list[CodeType | None] = []


def _code_of_wrappers() -> CodeType | None:
    """Return the code object shared by all functions that ``make_python_function`` returns."""
    if not _wrappers:
        make = getattr(sys.modules.get("rpytools.call"), "make_python_function", None)
        constants = make.__code__.co_consts if make is not None else ()
        _wrappers.append(next((c for c in constants if isinstance(c, CodeType) and "f" in c.co_freevars), None))
    return _wrappers[0]


# Threads --------------------------------------------------------------------------------------------------------------

_ON_MAIN_THREAD = "safe_call_r_function_on_main_thread"


def serve_its_functions() -> None:
    """Route calls of R functions that reticulate itself passed to Python through our queue for R's thread."""
    try:
        from rpycall import call_r_function
        from rpytools import thread
    except ImportError:
        return

    def on_r_thread(f, *args, **kwargs):
        try:
            return threads.call(call_r_function, f, *args, **kwargs), None
        except Exception as error:
            return None, error

    if hasattr(thread, _ON_MAIN_THREAD):
        setattr(thread, _ON_MAIN_THREAD, on_r_thread)


def _schedule() -> Callable | None:
    try:
        from rpycall import schedule_python_function_on_main_thread
    except ImportError:
        return None
    return schedule_python_function_on_main_thread


def call_in_event_loop(function: Callable) -> None:
    """Have R's event loop call ``function``."""
    schedule = _schedule()
    if schedule is not None:
        schedule(function, None)


# Interrupts -----------------------------------------------------------------------------------------------------------


def interrupt_handler() -> Callable | None:
    """Return reticulate's handler of interrupts in Python, which raises if R's interrupt flag is set."""
    return getattr(sys.modules.get("rpycall"), "python_interrupt_handler", None)


def set_interrupt_handler(handler: Callable) -> None:
    """Replace reticulate's handler; the change takes effect when R next installs the handler."""
    sys.modules["rpycall"].python_interrupt_handler = handler  # type: ignore[attr-defined]
