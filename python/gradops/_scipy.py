"""SciPy's modules, imported when they are first used.

Importing them takes longer than importing all of gradops, and most programs do not use them.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

import numpy as np

_COPY = "scipy._lib.array_api_compat.numpy"
"""SciPy's copy of NumPy's namespace, private; without it, SciPy is imported as usual."""

_LATER = frozenset({"ctypeslib", "f2py", "ma", "matlib", "polynomial", "testing"})
"""Modules that NumPy imports when they are first used, and SciPy's copy at once: half of the time of SciPy's import."""


def __getattr__(name: str) -> Any:
    try:
        if not name.startswith("_"):
            _copy_namespace()
            module = globals()[name] = importlib.import_module(f"scipy.{name}")
            return module
    except ModuleNotFoundError:  # Dynamo inspects modules and expects an AttributeError
        pass
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _copy_namespace() -> None:
    """Import SciPy's copy of NumPy's namespace; the copy gets these modules of NumPy when they are first used."""
    names, listed = np.__all__, np.__dir__
    if "scipy" in sys.modules or not callable(listed):
        return
    left_out = _LATER - vars(np).keys()
    try:
        np.__all__ = [name for name in names if name not in left_out]
        np.__dir__ = lambda: [name for name in listed() if name not in left_out]  # type: ignore[method-assign]
        copy = importlib.import_module(_COPY)
    except ModuleNotFoundError:
        return
    finally:
        np.__all__, np.__dir__ = names, listed  # type: ignore[method-assign]

    def later(name: str) -> Any:
        if name in left_out:
            return getattr(np, name)
        raise AttributeError(f"module {_COPY!r} has no attribute {name!r}")

    copy.__getattr__ = later  # type: ignore[method-assign]
