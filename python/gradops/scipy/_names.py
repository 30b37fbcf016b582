"""Names of the modules in ``gradops.scipy``, and the errors for names of SciPy's that they lack.

Such an error suggests a similar name or says why the function is missing.
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from .._names import closest, missing
from ..errors import meant
from ._examples import complete, rows, show


def unknown(module: str, name: str, known: Iterable[str], refused: Mapping[str, str] | None = None) -> str:
    """Return the message of the error for ``module.name``."""
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
    """Return a hint for a word that SciPy rejected: a similar word in SciPy's message, or the argument's default."""
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
    """Return the public names that a package has imported from its modules.

    Args:
        scope: the package's globals.
    """
    below = f"{scope['__name__']}."
    modules = [m for name, m in list(sys.modules.items()) if name.startswith(below) and name[len(below)] != "_"]
    return sorted({name for m in modules for name in getattr(m, "__all__", ()) if name in scope})


REFUSED: dict[str, Mapping[str, str]] = {}
"""For each module the names of SciPy's that it lacks, and why."""


def places(table: str) -> dict[str, str]:
    """Return the module below a package that defines each name, from lines such as ``airys: airy airye``."""
    found: dict[str, str] = {}
    for word in table.split():
        if word[-1] == ":":
            place = word[:-1]
        else:
            found[word] = place
    return found


def namespace(
    module: str,
    names: list[str],
    refused: Mapping[str, str] | None = None,
    later: Mapping[str, str] | None = None,
) -> tuple[Callable[[], list[str]], Callable[[str], Any]]:
    """Return ``__dir__`` and ``__getattr__`` of a module with SciPy's names.

    Examples are added to the docstrings of the module's functions.

    Args:
        refused: says why some of SciPy's names are missing.
        later: for each name the module below, which is imported when the name is first used.
    """
    REFUSED[module] = refused or {}
    later = later or {}
    below = {place.partition(".")[0] for place in later.values()}.union(names if later else ()).difference(later)
    if not later:
        show(module)

    def is_function(name: str) -> bool:
        return name in later and name[0].islower() and not later[name].startswith("distributions.")

    def __dir__() -> list[str]:
        return sorted(names)

    def __getattr__(name: str):
        if name in later:
            value = getattr(importlib.import_module(f"{module}.{later[name]}"), name)
            own = getattr(value, "__name__", name)  # the row of the function's own name serves all its names
            for row in rows(module, own):
                if row.name == own:
                    complete(module, row, value, is_function)
            setattr(sys.modules[module], name, value)  # later uses do not come here
            return value
        if name in below:
            return importlib.import_module(f"{module}.{name}")
        raise missing(module, name, unknown(module, name, names, refused))

    return __dir__, __getattr__
