"""The ops as R writes them: axes and positions count from 1, whole numbers come as R's doubles."""

from __future__ import annotations

import contextlib
import inspect
import operator
from collections.abc import Callable

import gradops

from ... import _functions, ops
from ...annotations import kind_of
from ...ops._dispatch import registry
from . import code_comparisons, values
from .errors import Failure

# Results that are positions: all of them (None), or those of a tuple, by an expression of the arguments.
INDEX_RESULTS: dict[str, str | None] = {
    "argmax": None,
    "argmin": None,
    "argpartition": None,
    "argsort": None,
    "ctc_decode": "(0,)",
    "digitize": None,
    "nanargmax": None,
    "nanargmin": None,
    "nonzero": None,
    "searchsorted": None,
    "top_k": "(1,)",
    "unique": "range(1, 1 + bool(return_index) + bool(return_inverse))",
    "unravel_index": None,
}

TENSORS = ("Tensor", "Operand", "Tensors", "Structure", "Index", "Indices")
_CONVERSIONS = {
    "Axis": "as_axis",
    "Axes": "as_axis",
    "Index": "as_index",
    "Indices": "as_index",
    "Integer": "as_integer",
    "Integers": "as_integers",
    "Shape": "as_shape",
}


def find(name: str) -> Callable:
    """The public function of an op, or of the package."""
    for place in (ops, gradops):
        with contextlib.suppress(AttributeError):
            return operator.attrgetter(name)(place)
    return registry[name].call  # of another package


def annotation(parameter: inspect.Parameter) -> str:
    """The name that ``gradops.annotations`` gives a parameter's annotation."""
    if parameter.annotation is parameter.empty:
        return "Axes" if parameter.name.endswith("axis") else ""
    word = kind_of(parameter.annotation)
    if word == "X":  # anything, of whose type the result is
        return ""
    return "Axis" if word == "Integer" and parameter.name == "axis" else word


def parameters(function: Callable) -> dict[str, inspect.Parameter]:
    return dict(inspect.signature(function).parameters)


def has_positions(name: str, function: Callable) -> bool:
    """True if R's form has ``zero_indexed``: positions go in as tensors, or come out."""
    return name in INDEX_RESULTS or any(annotation(p) in ("Index", "Indices") for p in parameters(function).values())


_SPECIAL = {"indices_or_sections": "as_sections", ("tensordot", "axes"): "as_tensordot_axes"}

# Tensor arguments that hold whole numbers (and all of the bitwise ops): R's doubles pass where they are whole.
_WHOLE = {
    "bincount": ("x",),
    "gcd": ("x1", "x2"),
    "lcm": ("x1", "x2"),
    "ldexp": ("x2",),
    "left_shift": ("x", "y"),
    "right_shift": ("x", "y"),
}

_TEMPLATE = """
def call({signature}):
    try:
{body}
    except Exception as error:
        return Failure(error)
"""


def op(name: str) -> Callable:
    """The form of an op for R: all arguments by position in Python's order, ``zero_indexed`` last.

    ``*operands`` come as one list, ``**lengths`` as one named list.
    """
    function = find(name)
    found = parameters(function)
    tensors = [p for p in found if annotation(found[p]) in ("", *TENSORS)]
    positions = [p for p in tensors if annotation(found[p]) in ("Index", "Indices")]
    others = [p for p in tensors if p not in positions]
    lines, call = [], []
    for name_ in tensors if name.startswith("bitwise_") else _WHOLE.get(name, ()):
        lines.append(f"{name_} = whole({name_})")
    lines += [f"if {_may_be_missing(n)}: truth({n}, {n!r})" for n in code_comparisons.TRUTHS.get(name, ())]
    if name == "while_loop":
        lines.append("cond = deciding(cond)")
    into, dtype = code_comparisons.INTO.get(name, ((), ""))
    lines += [f"given_{name_} = {name_}" for name_ in into]
    if others:
        lines.append(f"if {_any_container(others)}: {_listed(others)} = from_r(({_listed(others)}))")
    if positions:
        tensors_ = f"({_listed(others)})" if others else "()"
        read = f"positions_from_r(({_listed(positions)}), {tensors_})"
        lines.append(f"if {_any_container(positions)}: {_listed(positions)} = {read}")
    lines += [f"if {_may_be_missing(f'given_{n}')}: check_holds({name!r}, {n!r}, given_{n}, {dtype})" for n in into]
    for name_, parameter in found.items():
        kind = annotation(parameter)
        if kind in _CONVERSIONS:
            conversion = _SPECIAL.get((name, name_)) or _SPECIAL.get(name_) or _CONVERSIONS[kind]
            extra = ", zero_indexed" if conversion == "as_index" else ""
            lines.append(f"{name_} = {conversion}({name_}, {name_!r}{extra})")
        call.append(_CALLED[parameter.kind].format(name_))
    result = f"_function({', '.join(call)})"
    if name in INDEX_RESULTS:
        result = f"{result} if zero_indexed else one_based({result}, {INDEX_RESULTS[name]})"
    lines.append(f"return {result}")
    signature = [*found, "zero_indexed=False"] if has_positions(name, function) else found
    source = _TEMPLATE.format(signature=", ".join(signature), body="\n".join(f"        {line}" for line in lines))
    scope = {**vars(values), **vars(code_comparisons), "Failure": Failure, "_function": function}
    return _functions.function(source, "call", f"op {name} for R", scope)


def _listed(names: list[str]) -> str:
    return "".join(f"{name}, " for name in names)


def _any_container(names: list[str]) -> str:
    return " or ".join(f"{name}.__class__ in CONTAINERS" for name in names)


def _may_be_missing(name: str) -> str:
    return f"{name}.__class__ in CONTAINERS or {name}.__class__ is float"


_CALLED = {
    inspect.Parameter.POSITIONAL_ONLY: "{0}",
    inspect.Parameter.POSITIONAL_OR_KEYWORD: "{0}",
    inspect.Parameter.VAR_POSITIONAL: "*{0}",
    inspect.Parameter.KEYWORD_ONLY: "{0}={0}",
    inspect.Parameter.VAR_KEYWORD: "**named({0})",
}
