"""Functions written as source: made at run time, shown in tracebacks like any other."""

from __future__ import annotations

import linecache
import weakref
from collections.abc import Callable
from typing import Any


def function(source: str, name: str, place: str, scope: dict[str, Any]) -> Callable:
    """The function ``name`` that ``source`` defines.

    Args:
        place: what tracebacks call it; no two functions that live at once may share it.
        scope: the names that the source uses; they become the function's globals.
    """
    file = f"<gradops {place}>"
    exec(compile(source, file, "exec"), scope)
    made = scope[name]
    linecache.cache[file] = len(source), None, source.splitlines(keepends=True), file
    weakref.finalize(made, linecache.cache.pop, file, None).atexit = False
    return made
