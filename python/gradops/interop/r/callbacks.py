"""R functions as Python functions with the signature of their formals, as gradops looks at signatures."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from contextvars import ContextVar
from threading import get_ident
from typing import Any

from ... import backends
from ..._scopes import changed
from ...errors import JitError
from . import reticulate, threads
from .errors import CallbackError
from .session import into_r
from .values import MARK, backend_of, r_array


class _Default:
    """Stands for a default that R knows: never passed on."""

    def __repr__(self) -> str:
        return "<R default>"


_DEFAULT = _Default()


def callback(function: Callable, names: list[str], defaults: list) -> Callable:
    """A Python function of an R function, with a signature as R's formals say.

    ``function`` returns R's value, or ``{"<R error>": key, ...}``, which is raised: as the Python exception that
    caused it, if one did, since a library may wait for its own. ``defaults`` holds, for each formal,
    ``"none"`` for a formal without default, ``"null"`` for ``NULL``, ``{"value": x}`` for a constant and ``"r"`` for
    any other. It runs on R's thread, whichever thread calls.
    """

    held = Held(function)

    def on_r_thread(arguments, keywords):
        if any(value is _DEFAULT for value in (*arguments, *keywords.values())):
            arguments, keywords = without_defaults(names, arguments, keywords)
        result = into_r(held.function, arguments, keywords)
        if result.__class__ is dict and "<R error>" in result:
            error: Any = result["python"] or CallbackError(result["message"])
            error.gradops_key = result["<R error>"]
            if result.get("status"):
                error.status_code = result["status"]
            if result.get("unknown"):  # by which loops know that Python may run them
                raise error from JitError(result["message"])
            raise error
        return _result(result, (arguments, keywords))

    def call(*arguments, **keywords):
        if get_ident() != threads.ident:
            return threads.call(on_r_thread, arguments, keywords)
        if threads.arranged < backends.count():
            threads.arrange_backward()
        return on_r_thread(arguments, keywords)

    call.__signature__ = signature(names, defaults)  # type: ignore[attr-defined]
    call.own_order = True  # type: ignore[attr-defined]  # of lists with names, which are dicts here
    return call


holding: ContextVar[Held | None] = ContextVar("gradops_holding", default=None)
"""The R objects that the function called by R needs for as long as anything made by that call may call R."""


def keeping(function: Callable, held: Held) -> Callable:
    """``function`` called where ``held`` is :data:`holding`."""

    def call(*arguments, **keywords):
        with changed(holding, held):
            return function(*arguments, **keywords)

    call.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
    call.own_order = True  # type: ignore[attr-defined]
    return call


def without_defaults(names: list[str], arguments: tuple, keywords: dict) -> tuple[tuple, dict]:
    """The arguments but for those that R has a default for; those after one go by name."""
    keywords = {name: value for name, value in keywords.items() if value is not _DEFAULT}
    first = next((i for i, value in enumerate(arguments) if value is _DEFAULT), len(arguments))
    for name, value in zip(names[first:], arguments[first:]):
        if value is not _DEFAULT:
            keywords[name] = value
    return arguments[:first], keywords


class Held:
    """Holds a function that holds an R object, which only R's thread may release."""

    __slots__ = ("function",)

    def __init__(self, function: Callable):
        self.function = function

    def __del__(self, drop=threads.drop, over=sys.is_finalizing):
        if not over() and hasattr(self, "function"):  # an interrupt comes even before __init__
            drop(self.function)


def signature(names: list[str], defaults: list) -> inspect.Signature:
    """A signature as R's formals say; ``defaults`` as for :func:`callback`."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    found = []
    for name, default in zip(names, defaults):
        if name == "...":
            found.append(inspect.Parameter("args", inspect.Parameter.VAR_POSITIONAL))
            kind = inspect.Parameter.KEYWORD_ONLY  # type: ignore[assignment]
            continue
        known = default.__class__ is dict
        value = default["value"] if known else {"none": inspect.Parameter.empty, "null": None, "r": _DEFAULT}[default]
        parameter = inspect.Parameter("x", kind, default=value)
        parameter._name = name  # type: ignore[attr-defined]  # R's names may have dots
        found.append(parameter)
    try:
        return inspect.Signature(found)
    except ValueError:  # R allows a formal without default after one with; Python does not
        return inspect.Signature(found, __validate_parameters__=False)


adopt: Callable | None = None
"""R's function that makes a ``callback`` of the R function in a capsule; set when R loads this module."""


def set_adopt(function: Callable) -> None:
    global adopt
    adopt = function
    threads.set_thread(reticulate.in_event_loop)
    reticulate.serve_its_functions()


def _result(value, arguments):
    """The result of an R function: its arrays as tensors of the arguments' backend, its functions with signatures."""
    kind = value.__class__
    if kind is dict and MARK not in value:
        return {name: _result(item, arguments) for name, item in value.items()}
    if kind is tuple or kind is list:
        return kind(_result(item, arguments) for item in value)
    if kind is dict:
        array = r_array(value[MARK])
        return backend_of(arguments).convert(array)
    capsule = reticulate.capsule_of(value)
    return value if capsule is None or adopt is None else adopt(capsule)
