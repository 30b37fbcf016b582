"""Python functions that call R functions.

Each has a signature made from the R function's formals, because gradops inspects signatures.
"""

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
from .session import call_interruptible
from .values import MARK, backend_of, r_array


class _Default:
    """Placeholder for a default that only R can evaluate; never passed on to R."""

    def __repr__(self) -> str:
        return "<R default>"


_DEFAULT = _Default()


def callback(function: Callable, names: list[str], defaults: list) -> Callable:
    """Return a Python function that calls an R function on R's thread, from any thread.

    Args:
        function: calls R. It returns R's value, or ``{"<R error>": key, ...}``, which is raised as an exception. If a
            Python exception caused the R error, that exception is raised, since a library may catch its own.
        names: the names of R's formals.
        defaults: for each formal ``"none"`` (no default), ``"null"`` (``NULL``), ``{"value": x}`` (a constant) or
            ``"r"`` (any other expression).
    """

    held = Held(function)

    def on_r_thread(arguments, keywords):
        if any(value is _DEFAULT for value in (*arguments, *keywords.values())):
            arguments, keywords = drop_defaults(names, arguments, keywords)
        result = call_interruptible(held.function, arguments, keywords)
        if result.__class__ is dict and "<R error>" in result:
            error: Any = result["python"] or CallbackError(result["message"])
            error.gradops_key = result["<R error>"]
            if result.get("status"):
                error.status_code = result["status"]
            if result.get("unknown"):  # a JitError tells loops that Python may run them
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
    call.own_order = True  # type: ignore[attr-defined]  # keep the order of R's named lists, which are dicts here
    return call


holding: ContextVar[Held | None] = ContextVar("gradops_holding", default=None)
"""The R objects that the current call from R needs; every graph that the call records keeps them alive."""


def keeping(function: Callable, held: Held) -> Callable:
    """Wrap ``function`` so that :data:`holding` is ``held`` while it runs."""

    def call(*arguments, **keywords):
        with changed(holding, held):
            return function(*arguments, **keywords)

    call.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
    call.own_order = True  # type: ignore[attr-defined]
    return call


def drop_defaults(names: list[str], arguments: tuple, keywords: dict) -> tuple[tuple, dict]:
    """Remove the arguments for which R's default applies; later positional arguments are passed by name."""
    keywords = {name: value for name, value in keywords.items() if value is not _DEFAULT}
    first = next((i for i, value in enumerate(arguments) if value is _DEFAULT), len(arguments))
    for name, value in zip(names[first:], arguments[first:]):
        if value is not _DEFAULT:
            keywords[name] = value
    return arguments[:first], keywords


class Held:
    """A reference to a function that holds an R object. Only R's thread may release R objects."""

    __slots__ = ("function",)

    def __init__(self, function: Callable):
        self.function = function

    def __del__(self, drop=threads.drop, over=sys.is_finalizing):
        if not over() and hasattr(self, "function"):  # an interrupt may arrive before __init__
            drop(self.function)


def signature(names: list[str], defaults: list) -> inspect.Signature:
    """Return the signature for R's formals; ``defaults`` as for :func:`callback`."""
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
"""R's function that makes a ``callback`` from an R function in a capsule; set when R loads this module."""


def set_adopt(function: Callable) -> None:
    global adopt
    adopt = function
    threads.set_thread(reticulate.call_in_event_loop)
    reticulate.serve_its_functions()


def _result(value, arguments):
    """Convert an R function's result: arrays to tensors of the arguments' backend, R functions to callbacks."""
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
