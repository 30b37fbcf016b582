"""The ops by name, and their families, read from the source of the ops' modules.

A module's `__family__` is the head of a family; python/gradops/ops/__init__.py describes the convention.
"""

from __future__ import annotations

import ast
import csv
import functools
import inspect
import pathlib
import re
import sys
from collections.abc import Callable

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python"))

from gradops.ops import _registry  # noqa: E402


def rows() -> list[dict[str, str]]:
    """Return a row for each op, sorted by its name in R: ``r_name``, ``python_name``, ``r_args``.

    tools/ops.csv has the exceptions: ops that only R has, other names, and arguments that do not follow from Python's.
    """
    with open(ROOT / "tools" / "ops.csv", newline="") as file:
        found = list(csv.DictReader(file))
    others = _registry.names - {"image", "nn"} - {row["python_name"] for row in found}
    found += [{"r_name": f"op_{name.replace('.', '_')}", "python_name": name, "r_args": ""} for name in others]
    return sorted(found, key=lambda row: row["r_name"])


@functools.cache
def heads(module: str) -> dict[str, str]:
    """Return the head of the family of each function that a module defines."""
    source = ast.parse(inspect.getsource(sys.modules[module]))
    found, head = {}, ast.get_docstring(source) or ""
    for node in source.body:
        if isinstance(node, ast.FunctionDef):
            found[node.name] = head
        elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__family__":
            head = inspect.cleandoc(ast.literal_eval(node.value))
    return found


def title(function: Callable) -> str:
    """Return the title of an op's family."""
    return heads(function.__module__)[function.__name__].partition("\n")[0].rstrip(".")


def gathered(functions: list[Callable]) -> dict[str, tuple[str, list[Callable]]]:
    """Return the description and the functions of each family by its title, the describing module's functions first.

    Raises:
        ValueError: a family without a description, or with two.
    """

    def place(function: Callable) -> tuple:
        known = heads(function.__module__)
        return "\n" not in known[function.__name__], function.__module__, list(known).index(function.__name__)

    found: dict[str, list[Callable]] = {}
    for function in sorted(dict.fromkeys(functions), key=place):
        found.setdefault(title(function), []).append(function)
    texts = {}
    for name, members in found.items():
        described = {head for f in members if "\n" in (head := heads(f.__module__)[f.__name__])}
        if len(described) != 1:
            raise ValueError(f"the family {name!r} has {len(described)} descriptions, not one")
        texts[name] = described.pop().partition("\n")[2].strip()
    return {name: (texts[name], members) for name, members in sorted(found.items())}


def slug(name: str) -> str:
    """Return the name of a family's page, such as ``ops_powers_and_roots``."""
    return "ops_" + re.sub(r"\W+", "_", name.lower()).strip("_")
