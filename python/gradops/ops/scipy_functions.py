"""SciPy's functions on an array of gradops' own: the functions of ``gradops.scipy`` by the same names."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from types import FrameType
from typing import Any

import numpy as np

from .. import _scipy

find: Callable[[str], Any] = lambda path: None  # noqa: E731
"""The function of ``gradops.scipy`` by its path, ``stats.norm.logpdf``; None where there is none."""


@cache
def of_ufunc(ufunc: np.ufunc) -> Callable | None:
    """The function of ``gradops.scipy.special`` that a ufunc of SciPy's is."""
    return find(f"special.{ufunc.__name__}") if name_of(ufunc).startswith("scipy.") else None


def name_of(ufunc: np.ufunc) -> str:
    """A ufunc's name with SciPy's module where it is one of SciPy's."""
    name = ufunc.__name__
    return f"scipy.special.{name}" if getattr(_scipy.special, name, None) is ufunc else name


def hint() -> str | None:
    """The function to call in place of the one of SciPy's that is running, if one is."""
    path = _running()
    if path is None:
        return None
    if find(path) is None:
        return f"`scipy.{path}` loses gradients, and `gradops.scipy` does not have it"
    return f"`gradops.scipy.{path}` keeps them"


def _running() -> str | None:
    """The public function of SciPy that looked at the array: the outermost of the frames that are SciPy's.

    A function of the user's that SciPy calls did it itself.
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
    """The path of a frame's function where its module shows it; of a distribution's method with the distribution."""
    name, home = frame.f_code.co_name, frame.f_globals["__name__"]
    wrapped = frame.f_locals.get("f")
    if getattr(wrapped, "__module__", "").startswith("scipy."):  # a wrapper of SciPy's
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
