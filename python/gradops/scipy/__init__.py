"""SciPy's functions with its names and definitions on NumPy, PyTorch, TensorFlow and JAX, with derivatives.

A module is imported when it is first used: ``from gradops.scipy import stats``, or ``gradops.scipy.stats``.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

from .._names import missing
from ._names import unknown

__all__ = "fft integrate interpolate linalg ndimage optimize signal sparse spatial special stats".split()


def __dir__() -> list[str]:
    return sorted(__all__)


def __getattr__(name: str) -> Any:
    if name in __all__:
        return importlib.import_module(f"{__name__}.{name}")
    raise missing(__name__, name, unknown(__name__, name, __all__))


def find(path: str) -> Any:
    """Return the object at a dotted path such as ``stats.norm.logpdf``, this module for ""; None if there is none."""
    found: Any = sys.modules[__name__]
    for name in filter(None, path.split(".")):
        found = getattr(found, name, None)
    return found
