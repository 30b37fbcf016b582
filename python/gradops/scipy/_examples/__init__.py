"""Examples and references of docstrings: a row for each function, in a module for each of SciPy's.

Those of ``scipy.signal.windows`` are ``WINDOWS`` in ``signal``.

``gammainc(a, 1.0) at a = 2.0 -> -0.276196`` is the example

    >>> import gradops
    >>> from gradops.scipy import special
    >>> print(gradops.grad(lambda a: special.gammainc(a, 1.0))(2.0).round(6))
    -0.276196

A long one has a line for the function. With ``by`` in place of ``at`` it is of ``gradops.jacobian``. ``name: ...``
has an expression that does not begin with the function, and a name alone has lines of its own below it, indented, to
which only the imports are added. More lines of a result are indented, too. The rows of a paragraph are each other's
"See Also", with the names of a first line ``see ...``; ``also ...`` are functions without an example, as constants
are. ``tests/python/test_scipy_docstrings.py`` says what a new row prints, and whether differences of SciPy's function
print the same.
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
import textwrap
from collections.abc import Iterator
from typing import Any, NamedTuple

from ...ops._docstrings import completed, imports

INDENT = " " * 4
NEAR = 5
"""How many of a paragraph's functions another one points to."""
WIDTH = 100
"""Of an example on one line."""

_ROW = re.compile(r"(?:(\w+): )?((\w*).*) (at|by) (\w+) = (.*?) -> (.*)", re.DOTALL)


class Row(NamedTuple):
    """An example of a function, with its result, and the functions to see."""

    name: str
    example: str
    see: list[str]


def show(module: str) -> None:
    """Complete the docstrings of a module of SciPy's names by its rows.

    Args:
        module: the name of the module, which is imported.
    """
    scope = vars(sys.modules[module])
    for row in rows(module):
        value: Any = scope[row.name]
        own = getattr(value, "__module__", None) or ""
        if own.startswith("gradops.scipy") and "\nSee Also:\n" not in (value.__doc__ or ""):
            text = inspect.cleandoc(value.__doc__ or "").rstrip()
            if "\nRaises:\n" not in text and (errors := _errors(value)):
                text = completed(value, {}, Raises=errors)
            if row.example:
                text += f"\n\nExamples:\n{textwrap.indent(_imports(module, row.example) + row.example, INDENT)}"
            others = ", ".join(
                f":{'func' if inspect.isfunction(scope.get(name)) else 'obj'}:`{name}`" for name in row.see
            )
            value.__doc__ = f"{text}\n\nSee Also:\n{textwrap.indent(textwrap.fill(f'{others}.', 112), INDENT)}"


def rows(module: str) -> Iterator[Row]:
    """The rows of a module, with the text of their examples."""
    top, _, below = module.removeprefix("gradops.scipy.").partition(".")
    table = getattr(importlib.import_module(f"{__name__}.{top}"), below.upper() or "ROWS")
    for paragraph in filter(None, table.strip().split("\n\n")):
        found: list[tuple[str, str]] = []
        see: list[str] = []
        for line in re.split(r"\n(?! )", paragraph):
            first, _, rest = line.partition(" ")
            if first == "see":
                see = rest.split()
            elif first == "also":
                found += [(name, "") for name in rest.split()]
            else:
                found.append(_example(module.rpartition(".")[2], line))
        names = [name for name, _ in found]
        for i, (name, text) in enumerate(found):
            near = sorted((n for n in names if n != name), key=lambda n: abs(names.index(n) - i))[:NEAR]
            yield Row(name, text, sorted(near, key=names.index) + see)


def _example(module: str, line: str) -> tuple[str, str]:
    """A row's name and lines."""
    match = _ROW.fullmatch(line)
    if match is None:
        name, _, text = line.partition("\n")
        return name, inspect.cleandoc(text)
    said, call, name, kind, argument, value, result = match.groups()
    call = call if said else f"{module}.{call}"
    transform = {"at": "grad", "by": "jacobian"}[kind]
    result = re.sub(r"^ {4}", "", result, flags=re.MULTILINE)
    function = f"lambda {argument}: {call}"
    line = ">>> print(gradops.{}({})({}).round(6))"
    lines = [line.format(transform, function, value)]
    if len(lines[0]) > WIDTH:
        lines = [f">>> f = {function}", line.format(transform, "f", value)]
    return said or name, "\n".join([*lines, result])


def _errors(function) -> str:
    """The errors of a function of tensors that broadcast, or of functions."""
    kinds = [str(p.annotation) for p in inspect.signature(function).parameters.values()]
    if "Function" in kinds:
        return "ArgumentTypeError: a function that cannot be called, or whose result is no number or tensor."
    tensors = sum(kind in ("Tensor", "Operand") for kind in kinds)
    shapes = "\nShapeError: shapes that do not broadcast." if tensors > 1 else ""
    return f"ArgumentTypeError: an argument that is not a number or a tensor.{shapes}" if tensors else ""


def _imports(module: str, example: str) -> str:
    """The lines that import what an example names."""
    home, _, own = module.rpartition(".")
    above, _, package = home.rpartition(".")
    others = {package: f"from {above} import {package}", own: f"from {home} import {own}"}
    return "".join(f">>> {line}\n" for line in imports(example, others))
