"""Errors for R, in R's terms.

They are returned as values because reticulate takes a millisecond to translate a raised exception.
"""

from __future__ import annotations

import itertools
import re
import traceback
from collections import OrderedDict
from types import BuiltinFunctionType, FunctionType, MethodType

import numpy as np

from ...errors import LITERALS, Bounds, Code, Element, Field, Given, GradopsError, Item, ModelError, Position, TypeOf


class CallbackError(Exception):
    """An R function that gradops called has failed."""

    __module__ = "gradops.interop.r"  # R knows it by this name

    gradops_callback = True


_numbered: OrderedDict[int, BaseException] = OrderedDict()
_numbers = itertools.count(1)


def numbered(error: BaseException) -> CallbackError:
    """Return ``error`` with a number in its text, for libraries that pass on only text; see :func:`original`."""
    number = next(_numbers)
    _numbered[number] = error
    if len(_numbered) > 16:
        _numbered.popitem(last=False)
    return CallbackError(f"{error} [gradops error {number}]")


def original(error: BaseException) -> BaseException:
    """Return the error that :func:`numbered` numbered, if its number is in the text of ``error``; else ``error``."""
    found = re.search(r"\[gradops error (\d+)\]", str(error))
    return _numbered.get(int(found[1]), error) if found else error


class Failure:
    """An exception, returned to R."""

    __module__ = "gradops.interop.r"  # R knows it by this name

    def __init__(self, error: BaseException):
        self.error = error

    def traceback(self) -> str:
        """Return the Python traceback of the error, as Python prints it."""
        return "".join(traceback.format_exception(self.error)).rstrip()

    def fields(self) -> dict:
        """Return the fields of an R condition; ``key`` if an R function failed and R already has its condition."""
        error: BaseException | None = original(self.error)
        seen: list = []
        while error is not None and error not in seen:
            if hasattr(error, "gradops_key"):
                about = {"model": seen[0].message} if seen and isinstance(seen[0], ModelError) else {}
                return {"kind": "callback", "message": str(error), "key": error.gradops_key, **about}
            seen.append(error)
            error = error.__cause__ or error.__context__
        error = original(self.error)
        if isinstance(error, GradopsError):
            hint = error.hint_template
            return {
                "kind": error.kind,
                "message": message(error, error.template),
                "argument": argument(error.argument),
                "hint": None if hint is None else message(error, hint),
            }
        return {"kind": "python", "message": format_code(f"{type(error).__name__}: {error}")}


# Translation to R: the fields of an error, and code as R writes it.

_TYPES = {
    type(None): "NULL",
    str: "character",
    float: "numeric",
    int: "numeric",
    bool: "logical",
    list: "list",
    tuple: "list",
    dict: "list",
    np.ndarray: "array",
}
_FUNCTIONS = (FunctionType, MethodType, BuiltinFunctionType)


def message(error: GradopsError, template: str) -> str:
    """Return a message or hint of an error in R's terms, without the op's name, which R adds itself."""
    return error.worded(format_code(re.sub(r"^`[a-z_.0-9]+`: ", "", template)), field)


def format_code(text: str) -> str:
    """Return ``text`` with code in backticks and shapes of one dimension as R writes them."""
    return re.sub(r"(\(\d+),\)", r"\1)", re.sub(r"`[^`]+`", lambda found: code(found[0]), text))


def field(said: Field) -> str:
    """Return a field of a message in R's terms: positions count from 1, types are R's."""
    match said:
        case Position():
            return code(str(_one_based(said.place)))
        case Element():
            return f"[{', '.join(str(_one_based(place)) for place in said.places)}]{said.part}"
        case Bounds():
            end = "" if said.low >= 0 else f", or from -1 to {said.low} counted from the end,"
            return f"from {1 if said.low <= 0 else said.low + 1} to {said.size}{end}"
        case Item():
            return f"`{said.argument}[[{said.place + 1}]]`"
        case TypeOf():
            return _type(said.type)
        case Given():
            return _given(said)
        case Code():
            return said.r
    return str(said)


def argument(name: str | None) -> str | None:
    """Return an argument's name in R, where ``function`` is a reserved word."""
    return "f" if name == "function" else name


def code(text: str) -> str:
    """Translate Python names in code to R's: ``op_exp()`` for ``gradops.ops.exp``; NULL, TRUE and FALSE."""
    text = re.sub(r"(?<![\w.])(gradops\.)?ops\.(?=[a-z])", "op_", text)
    text = re.sub(r"gradops\.config\.(?=[a-z_])", "config_", text)
    text = re.sub(r"gradops\.(functional\.|autodiff\.)?(?=[a-z])", "", text)
    text = re.sub(r"(?<![\w.])(?=(stop|scaled|custom)_gradient\()", "op_", text)
    text = text.replace("`function`", f"`{argument('function')}`")
    return re.sub(r"\b(None|True|False)\b", lambda found: LITERALS[found[0]].r, text)


def _one_based(place):
    match place:
        case list() | tuple():
            return type(place)(map(_one_based, place))
        case dict():
            return {name: _one_based(part) for name, part in place.items()}
    return place + 1 if type(place) is int and place >= 0 else place


def _type(kind: type) -> str:
    return "function" if issubclass(kind, _FUNCTIONS) else _TYPES.get(kind, kind.__name__)


def _given(said: Given) -> str:
    if said.type is type(None):
        return "NULL"
    if said.value is None:
        return "a function" if issubclass(said.type, _FUNCTIONS) else format_code(said.text)
    if isinstance(said.value, bool):
        return "a logical value"
    if isinstance(said.value, str):
        return '"' + said.value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return f"{said.value:g}" if isinstance(said.value, float) else str(said.value)
