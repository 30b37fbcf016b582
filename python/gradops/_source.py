"""Functions written as source: made at run time, shown in tracebacks like any other."""

from __future__ import annotations

import functools
import linecache
import weakref
from collections.abc import Callable
from types import CodeType
from typing import Any


def function(source: str, name: str, place: str, scope: dict[str, Any]) -> Callable:
    """The function ``name`` that ``source`` defines.

    Args:
        place: its name in tracebacks; no two functions that live at once may share it.
        scope: the names that the source uses; they become the function's globals.
    """
    file = f"<gradops {place}>"
    exec(compile(source, file, "exec"), scope)
    return _shown(scope[name], source, file)


def alike(source: str, name: str, place: str, scope: dict[str, Any]) -> Callable:
    """The same as :func:`function` for sources that differ in the name alone, which are compiled once."""
    file = f"<gradops {place}>"
    exec(_compiled(source.replace(f"def {name}(", "def _(", 1)), scope)
    made = scope.pop("_")
    names = {field: name for field in ("co_name", "co_qualname") if hasattr(made.__code__, field)}  # Python 3.11
    made.__code__ = made.__code__.replace(co_filename=file, **names)
    return _shown(made, source, file)


@functools.cache
def _compiled(source: str) -> CodeType:
    return compile(source, "<gradops>", "exec")


def _shown(made: Callable, source: str, file: str) -> Callable:
    linecache.cache[file] = len(source), None, source.splitlines(keepends=True), file
    weakref.finalize(made, linecache.cache.pop, file, None).atexit = False
    return made
