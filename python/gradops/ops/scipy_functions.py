"""SciPy's functions on gradops' own arrays: the functions of the same names in ``gradops.scipy``."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from types import FrameType
from typing import Any

import numpy as np

from .. import _scipy

find: Callable[[str], Any] = lambda path: None  # noqa: E731
"""Return what ``gradops.scipy`` has at a path, ``stats.norm.logpdf``, or None; ``gradops.scipy`` puts its own here."""


@cache
def special_function(ufunc: np.ufunc) -> Callable | None:
    """Return the function of ``gradops.scipy.special`` for one of SciPy's ufuncs."""
    return find(f"special.{ufunc.__name__}") if name_of(ufunc).startswith("scipy.") else None


def name_of(ufunc: np.ufunc) -> str:
    """Return a ufunc's name, with the module for one of SciPy's."""
    name = ufunc.__name__
    return f"scipy.special.{name}" if getattr(_scipy.special, name, None) is ufunc else name


def hint() -> str | None:
    """Return a hint that names the function to call instead of the running SciPy function, if there is one."""
    path = _running()
    if path is None:
        return None
    if find(path) is None:
        return f"`scipy.{path}` loses gradients, and `gradops.scipy` does not have it"
    return f"`gradops.scipy.{path}` keeps them"


def _running() -> str | None:
    """Return the public SciPy function that read the array: the outermost of SciPy's frames on the stack.

    None if a user's function that SciPy calls read the array.
    """
    found: str | None = None
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        package = frame.f_globals.get("__name__", "").partition(".")[0]
        if package == "scipy":
            found = _public_name(frame) or found
        elif found is not None or package not in ("gradops", "numpy", "functools"):
            break
        frame = frame.f_back
    return found


def _public_name(frame: FrameType) -> str | None:
    """Return the path of a frame's function if its module exports it; for a method, with the distribution's name."""
    name, home = frame.f_code.co_name, frame.f_globals["__name__"]
    wrapped = frame.f_locals.get("f")
    if getattr(wrapped, "__module__", "").startswith("scipy."):  # one of SciPy's wrappers
        name, home = wrapped.__name__, wrapped.__module__
    module = home.split(".")[1]
    shown = getattr(_scipy, module, None)
    if name == "__init__":
        name = type(frame.f_locals.get("self")).__name__
    distribution = getattr(frame.f_locals.get("self"), "dist", frame.f_locals.get("self"))
    owner = getattr(distribution, "name", None)
    if isinstance(owner, str) and hasattr(getattr(shown, owner, None), name):
        return f"{module}.{owner}.{name}"
    return f"{module}.{name}" if callable(getattr(shown, name, None)) else None
