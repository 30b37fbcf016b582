"""Ops that R packages and scripts define."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from ... import _source, backends, extend
from ...ops._dispatch import registry
from .ops import op
from .values import from_r


def extended_op(name: str, body: Callable, is_composed: bool, kernels, rules, facts) -> Callable:
    """The R form of an op of R functions; those formals of ``body`` that have no default are its tensors."""
    named: dict[str, Any] = {f: tuple(v) if isinstance(v, list) else v for f, v in dict(facts).items()}
    made = extend.op(_function(re.sub(r"\W", "_", name), body, is_composed), name=name, **named)
    for backend, kernel in dict(kernels).items():
        extend.kernel(made, backend, _of_library(backend, kernel))
    if rules:
        extend.derivative(made, **dict(rules))
    return op(name)


def _of_library(name: str, kernel: Callable) -> Callable:
    """``kernel``, whose results may be numbers and arrays of R's, with those of a library."""

    def call(*arguments):
        found = kernel(*arguments)
        owner = backends.by_name(name)
        several = isinstance(found, (list, tuple))
        made = [y if backends.of(y) is owner else owner.convert(y) for y in (found if several else [found])]
        return tuple(made) if several else made[0]

    return call


def _function(name: str, body: Callable, is_composed: bool) -> Callable:
    """``body``, an R function, as one of Python's that declares its arguments."""
    parameters = inspect.signature(body).parameters.values()
    tensors = [p.name for p in parameters if p.default is p.empty]
    given = ", ".join(p.name if p.default is p.empty else f"{p.name}=None" for p in parameters)
    passed = ", ".join(p.name for p in parameters)
    source = f"def {name}({given}):\n    {f'return body({passed})' if is_composed else '...'}\n"
    function = _source.function(source, name, f"R op {name}", {"body": body, "__name__": "r"})
    kind = "Operand" if len(tensors) > 1 else "Tensor"
    function.__annotations__ = dict.fromkeys(tensors, kind)
    return function


def check_extended_op(name: str, arguments: list, natural: bool, tolerance: float) -> None:
    """:func:`gradops.extend.check` of R's arguments."""
    entry = registry[name]
    given = from_r(tuple(arguments))
    for position in entry.positions:
        given = (*given[:position], np.asarray(given[position]), *given[position + 1 :])
    extend.check(entry.call, *given, natural=natural, tolerance=tolerance)
