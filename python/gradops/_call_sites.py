"""Where the user's code called gradops: for anomaly mode, and for the reasons why a function was compiled again."""

from __future__ import annotations

import linecache
import os
import sys
from collections.abc import Callable, Iterator
from types import FrameType

_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_LIBRARIES = frozenset(("numpy", "scipy", "torch", "tensorflow", "keras", "jax", "jaxlib", "functools", "contextlib"))
_host: Callable[[], str | None] | None = None


def set_host(describe: Callable[[], str | None] | None) -> None:
    """Set the function of a host such as R that describes its own calls, innermost first, one on a line."""
    global _host
    _host = describe


def has_host() -> bool:
    """True if a host describes its calls."""
    return _host is not None


def host_calls() -> str | None:
    """Return the host's description of its present calls; None without a host, or where Python code called gradops."""
    return None if _host is None else _host()


def frames() -> Iterator[FrameType]:
    """Yield the Python frames outside of gradops, innermost first."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith(_HERE) and not file.startswith("<gradops"):
            yield frame
        frame = frame.f_back


def users_line() -> str:
    """Return the innermost line of the user's code, as ``"model.py:12: `if x > 0:`"``; "" where there is none."""
    if (calls := host_calls()) is not None:
        return f"`{calls.partition(chr(10))[0].strip()}`"
    for frame in frames():
        if frame.f_globals.get("__name__", "").partition(".")[0] not in _LIBRARIES:
            file, number = frame.f_code.co_filename, frame.f_lineno
            text = linecache.getline(file, number, frame.f_globals).strip()
            return f"{os.path.basename(file)}:{number}" + (f": `{text}`" if text else "")
    return ""
