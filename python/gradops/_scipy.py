"""SciPy's modules, as attributes that are imported when they are first read.

Importing them takes longer than importing all of gradops, which most programs then use without them.
"""

from __future__ import annotations

import importlib
from typing import Any


def __getattr__(name: str) -> Any:
    try:
        if not name.startswith("_"):
            module = globals()[name] = importlib.import_module(f"scipy.{name}")
            return module
    except ModuleNotFoundError:  # code that looks at modules, as PyTorch's compiler does, expects an AttributeError
        pass
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
