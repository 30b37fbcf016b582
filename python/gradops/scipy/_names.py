"""The error for a name of SciPy's that is not here: what is near, or why there is none."""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from .._names import closest, missing
from ..errors import meant
from ._examples import show


def unknown(module: str, name: str, known: Iterable[str], refused: Mapping[str, str] | None = None) -> str:
    """The words of the error for ``module.name``."""
    message = f"module {module!r} has no attribute {name!r}"
    if name.startswith("_"):
        return message
    why = (refused or {}).get(name)
    if why is None and _is_scipys(module.removeprefix("gradops."), name):
        why = "SciPy has it; gradops has no derivative for it"
    if why is not None:
        message += f": {why}"
    found = closest(name, known)
    if found is not None:
        message += f"\nHint: did you mean `{found}`?"
    return message


def word_meant(bound: inspect.BoundArguments, said: str, argument: str | None = None) -> str | None:
    """The hint for SciPy's refusal of a word: another that it speaks of, or the argument's default, is like it."""
    for name, value in bound.arguments.items():
        if isinstance(value, str) and (name == argument or value in said):
            known = [*re.findall(r"['\"]([\w-]+)['\"]", said), bound.signature.parameters[name].default]
            if name == "window":
                known += importlib.import_module("scipy.signal.windows").__all__
            hint = meant(value, [word for word in known if word != value])
            if hint is not None:
                return hint
    return None


def _is_scipys(module: str, name: str) -> bool:
    try:
        return hasattr(importlib.import_module(module), name)
    except ImportError:
        return False


def gathered(scope: Mapping[str, Any]) -> list[str]:
    """The public names of a package's modules that the package has imported.

    Args:
        scope: the package's own names.
    """
    below = f"{scope['__name__']}."
    modules = [m for name, m in list(sys.modules.items()) if name.startswith(below) and name[len(below)] != "_"]
    return sorted({name for m in modules for name in getattr(m, "__all__", ()) if name in scope})


REFUSED: dict[str, Mapping[str, str]] = {}
"""By module: SciPy's names that are not here, and why."""


def namespace(
    module: str, names: list[str], refused: Mapping[str, str] | None = None
) -> tuple[Callable[[], list[str]], Callable[[str], Any]]:
    """``__dir__`` and ``__getattr__`` of a module with SciPy's names; ``refused`` says why some are not here.

    The docstrings of its functions get their examples.
    """
    REFUSED[module] = refused or {}
    show(module)

    def __dir__() -> list[str]:
        return sorted(names)

    def __getattr__(name: str):
        raise missing(module, name, unknown(module, name, names, refused))

    return __dir__, __getattr__
