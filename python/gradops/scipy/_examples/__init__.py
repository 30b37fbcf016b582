"""Adds examples and "See Also" to the docstrings of ``gradops.scipy``, from tables with a row for each function.

Each of SciPy's modules has a module here, with its table in ``ROWS``; ``scipy.signal.windows`` is ``WINDOWS`` in
``signal``. The row ``gammainc(a, 1.0) at a = 2.0 -> -0.276196`` makes the example

    >>> import gradops
    >>> from gradops.scipy import special
    >>> print(gradops.grad(lambda a: special.gammainc(a, 1.0))(2.0).round(6))
    -0.276196

A long example gets a separate line for the function. A row with ``by`` instead of ``at`` uses ``gradops.jacobian``.
A row ``name: ...`` has an expression that does not begin with the function. A row with only a name has the example's
lines below it, indented; only the imports are added to them. Further lines of a result are indented, too.

The rows of a paragraph become each other's "See Also", with the names in a first line ``see ...``. A line ``also ...``
lists names without an example, such as constants. ``tests/python/test_scipy_docstrings.py`` prints the result of a new
row, and tests that finite differences of SciPy's function agree with it.
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
import textwrap
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from ...ops._docstrings import completed, imports

INDENT = " " * 4
MAX_SEE_ALSO = 5
"""The largest number of functions of its paragraph that a "See Also" lists."""
MAX_LINE_WIDTH = 100
"""The largest width of an example on one line."""

_ROW = re.compile(r"(?:(\w+): )?((\w*).*) (at|by) (\w+) = (.*?) -> (.*)", re.DOTALL)


class Row(NamedTuple):
    """An example of a function, with its result, and the functions to see."""

    name: str
    example: str
    see: list[str]


def show(module: str) -> None:
    """Complete the docstrings of a module's functions from its rows.

    Args:
        module: the name of an imported module, such as ``gradops.scipy.linalg``.
    """
    scope = vars(sys.modules[module])
    for row in rows(module):
        complete(module, row, scope[row.name], lambda name: inspect.isfunction(scope.get(name)))


def complete(module: str, row: Row, value: Any, is_function: Callable[[str], bool]) -> None:
    """Complete the docstring of a function or object from its row.

    Args:
        is_function: returns True for the name of a function of the module.
    """
    own = getattr(value, "__module__", None) or ""
    if own.startswith("gradops.scipy") and "\nSee Also:\n" not in (value.__doc__ or ""):
        text = inspect.cleandoc(value.__doc__ or "").rstrip()
        if "\nRaises:\n" not in text and (errors := _errors(value)):
            text = completed(value, {}, Raises=errors)
        if row.example:
            text += f"\n\nExamples:\n{textwrap.indent(_imports(module, row.example) + row.example, INDENT)}"
        others = ", ".join(f":{'func' if is_function(name) else 'obj'}:`{name}`" for name in row.see)
        value.__doc__ = f"{text}\n\nSee Also:\n{textwrap.indent(textwrap.fill(f'{others}.', 112), INDENT)}"


def rows(module: str, word: str = "") -> Iterator[Row]:
    """Yield the rows of a module, with the text of their examples.

    Args:
        word: read only the paragraphs with this word.
    """
    top, _, below = module.removeprefix("gradops.scipy.").partition(".")
    table = getattr(importlib.import_module(f"{__name__}.{top}"), below.upper() or "ROWS")
    for paragraph in filter(None, table.strip().split("\n\n")):
        if word and not re.search(rf"\b{word}\b", paragraph):
            continue
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
            near = sorted((n for n in names if n != name), key=lambda n: abs(names.index(n) - i))[:MAX_SEE_ALSO]
            yield Row(name, text, sorted(near, key=names.index) + see)


def _example(module: str, line: str) -> tuple[str, str]:
    """Return the name and the lines of a row's example."""
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
    if len(lines[0]) > MAX_LINE_WIDTH:
        lines = [f">>> f = {function}", line.format(transform, "f", value)]
    return said or name, "\n".join([*lines, result])


def _errors(function) -> str:
    """Return the section on errors for a function whose tensors broadcast, or that takes functions."""
    kinds = [str(p.annotation) for p in inspect.signature(function).parameters.values()]
    if "Function" in kinds:
        return "ArgumentTypeError: a function that is not callable, or whose result is not a number or tensor."
    tensors = sum(kind in ("Tensor", "Operand") for kind in kinds)
    shapes = "\nShapeError: shapes that do not broadcast." if tensors > 1 else ""
    return f"ArgumentTypeError: an argument that is not a number or a tensor.{shapes}" if tensors else ""


def _imports(module: str, example: str) -> str:
    """Return the lines that import the modules in an example."""
    home, _, own = module.rpartition(".")
    above, _, package = home.rpartition(".")
    others = {package: f"from {above} import {package}", own: f"from {home} import {own}"}
    return "".join(f">>> {line}\n" for line in imports(example, others))
