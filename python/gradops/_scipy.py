"""SciPy's modules, imported when they are first used.

Importing them takes longer than importing all of gradops, and most programs do not use them.
"""

from __future__ import annotations

import importlib
from typing import Any


def __getattr__(name: str) -> Any:
    try:
        if not name.startswith("_"):
            module = globals()[name] = importlib.import_module(f"scipy.{name}")
            return module
    except ModuleNotFoundError:  # Dynamo inspects modules and expects an AttributeError
        pass
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
