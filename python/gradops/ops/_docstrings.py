"""Docstring sections that functions share, or that follow from an op's facts, written once."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable, Mapping
from typing import TypeVar

from ._checks import check_real
from ._registry import families

F = TypeVar("F", bound=Callable)

SECTIONS = ("Args", "Returns", "Raises", "Gradient", "Examples", "See Also")
"""The sections of docstrings in order."""


PARAMETERS = {"data_format": '``"channels_last"`` (also None) or ``"channels_first"``.'}
"""Descriptions of parameters that many ops have."""


IMPORTS = {"np": "import numpy as np", "gradops": "import gradops", "ops": "from gradops import ops"}


def imports(example: str, others: Mapping[str, str] | None = None) -> list[str]:
    """Return the import lines for the names that an example uses without importing them.

    Args:
        others: import lines by name, in addition to ``IMPORTS``.
    """
    named = set(re.findall(r"(?<![\w.])(?<!from )(\w+)\.", example))
    return [line for name, line in {**IMPORTS, **(others or {})}.items() if name in named and line not in example]


def completed(function: Callable, arguments: Mapping[str, str], **texts: str) -> str:
    """Return a function's docstring with the sections and parameter lines that its family shares."""
    head, *parts = re.split(r"^([A-Z][A-Za-z ]+):\n", inspect.cleandoc(function.__doc__ or ""), flags=re.M)
    own = {title: text.rstrip() for title, text in zip(parts[::2], parts[1::2])}
    names = list(inspect.signature(function).parameters)
    said = re.findall(r"\w+", " ".join(re.findall(r"^    (\S[^:]*):", own.get("Args", ""), re.M)))
    lines = [f"{name}: {arguments[name]}" for name in names if name in arguments and name not in said]
    own["Args"] = "\n".join([*filter(None, [own.get("Args")]), *(_filled(line, 8) for line in lines)])
    for title, text in texts.items():
        lines = text.replace("{first}", names[0]).splitlines()
        if title == "Raises":
            own[title] = "\n".join([*filter(None, [own.get(title)]), *(_filled(line, 8) for line in lines)])
        elif title not in own:
            own[title] = "\n".join(_filled(line, 4) for line in lines)
    sections = [f"{title}:\n{own[title]}" for title in sorted(own, key=SECTIONS.index) if own[title]]
    return "\n\n".join([head.rstrip(), *sections])


def _filled(text: str, indent: int) -> str:
    if len(text) <= 112:
        return f"    {text}"
    return textwrap.fill(text, 116, initial_indent="    ", subsequent_indent=" " * indent)


def family(arguments: Mapping[str, str] | None = None, *, returns="", raises="", gradient="") -> Callable[[F], F]:
    """Return a decorator that adds a family's shared sections to the docstrings of its functions.

    Args:
        arguments: descriptions of parameters by name, for the functions that have them.
        returns, raises, gradient: sections. Errors are added to those in the docstring; the other sections are used
            where the docstring has none. ``{first}`` is the name of the first parameter.
    """

    def decorate(function: F) -> F:
        function.__doc__ = completed(function, arguments or {}, Returns=returns, Raises=raises, Gradient=gradient)
        return function

    return decorate


def op_docstring(entry, function: Callable) -> str:
    """Return the docstring of an op, completed with what follows from its declaration."""
    text, start, example = _add_sections(entry, function).partition(">>> ")
    example, also, rest = example.partition("See Also:")
    indent = text[text.rfind("\n") + 1 :]
    lines = "".join(f">>> {line}\n{indent}" for line in imports(example)) if start else ""
    return f"{text}{lines}{start}{example}{also}{rest}"


def _add_sections(entry, function: Callable) -> str:
    own, annotated = function.__doc__ or "", entry.annotations.values()
    returns, raises = "", []
    if entry.facts.elementwise:
        returns, raises = _elementwise_sections(entry)
    if "Raises:\n" in own:
        raises = []
    if ("Axis" in annotated or "Axes" in annotated) and "AxisError:" not in own:
        raises.append("AxisError: an axis out of range.")
    if not raises and (not returns or "Returns:\n" in own) and not PARAMETERS.keys() & entry.parameters:
        return own
    return completed(function, PARAMETERS, Returns=returns, Raises="\n".join(raises))


def _elementwise_sections(entry) -> tuple[str, list[str]]:
    """Return the sections on results and errors of an elementwise op."""
    is_one, first = len(entry.tensors) == 1, f"``{entry.tensors[0]}``"
    shape = f"{first}'s shape" if is_one else "the broadcast shape"
    if not entry.differentiable:
        returns = f"A bool tensor of {shape}. It has no gradient."
    elif is_one:
        returns = f"A tensor of {shape} and dtype; integers and bools give ``floatx``."
    else:
        returns = f"A tensor of {shape}, in the operands' promoted dtype."
    raises = [] if is_one else ["ShapeError: shapes that do not broadcast."]
    if entry.check is check_real:
        raises.append(f"ArgumentTypeError: {f'a complex {first}' if is_one else 'complex operands'}.")
    return returns, raises


def add_related() -> None:
    """Add to the docstrings of ops without "See Also" the nearest ops of the family, at most three."""
    found: dict[str, list] = {}
    for text in sorted(families, key=lambda text: "\n" not in text):  # first the module that describes the family
        found.setdefault(text.partition("\n")[0], []).extend(getattr(*entry) for entry in families[text])
    for members in found.values():
        for position, function in enumerate(members):
            text = function.__doc__
            if len(members) > 1 and "See Also:\n" not in text:
                near = sorted(range(len(members)), key=lambda other: abs(other - position))[1:4]
                links = ", ".join(f":func:`{members[other].__name__}`" for other in near)
                last = text[text.rfind("\n") + 1 :]
                indent = last if last.isspace() else ""
                function.__doc__ = f"{text.rstrip()}\n\n{indent}See Also:\n{indent}    {links}.\n{indent}"
