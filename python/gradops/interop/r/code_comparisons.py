"""R's NA in conditions, integers and traced programs.

A comparison with NaN is NA in R but False in a tensor. This module finds such elements when R code branches on them,
and raises errors where NA would go into a dtype that cannot hold it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ... import autodiff, backends, dtypes, ops
from ...autodiff.modes import recording
from ...autodiff.variable import data_of
from ...errors import ArgumentError, JitError
from ...jit.array import Traced
from ...jit.guards import made_by
from ...ops import _checks
from ...ops._checks import known
from ...ops._dispatch import facts_of, registry
from ...ops._registry import rule, rule_of
from . import values
from .values import MARK


def doubtful(value):
    """Return R's positions at which a tensor is 0 or not finite; for a traced tensor, by the values of the trace.

    This sets no guard, so the caller may only use it to choose between computations of equal values.
    """
    x = data_of(value)
    while isinstance(x, Traced):
        x = x.value
    numbers = np.asarray(ops.convert_to_numpy(x)).ravel(order="F")
    return np.flatnonzero(~np.isfinite(numbers) | (numbers == 0)) + 1


def decided(value, form: str):
    """Return a traced tensor's values for R and where they are NA; None if they must stay unknown.

    Reading the values sets guards, so the program is specialised to what R code decides by.

    Args:
        value: the value that R code decides by.
        form: the R construct that reads it, such as ``"if"``; or ``"values"`` for all numbers, ``"whole"`` for numbers
            that R truncates to integers, or ``"order"`` for functions that depend only on the order of elements.
    """
    x = data_of(value)
    if not isinstance(x, Traced) or x.dtype.kind not in "bifc":
        return None
    look = x.program.look
    try:
        if form == "values" and x.dtype.kind in "fc":
            return _numbers(x, look), False
        if form == "order":
            return _ordered(x, look), False
        missing = _missing(x)
        if x.dtype.kind in "fc":
            if form in ("switch", "whole"):
                x = ops.trunc(x)
            elif form in ("if", "while", "&&", "||"):
                x = ops.not_equal(x, 0)
            else:
                return None
        found = look(x)
        absent = None if missing is None else look(missing)
    except JitError:
        return None
    return values.to_r(np.asarray(found)), absent is not None and values.to_r(np.broadcast_to(absent, np.shape(found)))


def _numbers(x: Traced, look):
    """Return the numbers and guard on all of them; NaN equals NaN here."""
    for part in (ops.real(x), ops.imag(x)) if x.dtype.kind == "c" else (x,):
        absent = ops.isnan(part)
        look(absent)
        look(ops.where(absent, 0.0, part))
    return values.to_r(x.value)


def placed(value, table):
    """Return the values of traced numbers, guarding only on their ranks in a table; None as for :func:`decided`.

    Args:
        value: the numbers.
        table: the numbers they are compared with.
    """
    x: Any = data_of(value)
    others: Any = data_of(table)
    if not isinstance(x, Traced) or x.dtype.kind not in "bif":
        return None
    look = x.program.look
    try:
        numbers = _fill_nan(x, look)
        if isinstance(others, Traced):
            _ordered(others, look)
            ordered: Any = ops.sort(_fill_nan(others, look))
        else:
            ordered = np.unique(np.asarray(others, dtype=np.float64))
        for side in ("left", "right"):
            look(ops.searchsorted(ordered, numbers, side))
    except JitError:
        return None
    return values.to_r(x.value)


def _ordered(x: Traced, look):
    """Return the numbers, guarding only on their order: on the rank of each among the sorted numbers."""
    if x.size > 1 or x.dtype.kind == "f":
        numbers = _fill_nan(x, look)
        look(ops.searchsorted(ops.sort(numbers), numbers))
    return values.to_r(x.value)


def _fill_nan(x: Traced, look) -> Traced:
    """Return the numbers as a vector with 0 for NaN, and guard on which are NaN."""
    numbers = ops.reshape(ops.cast(x, "float64"), (-1,))
    absent = ops.isnan(numbers)
    if not look(ops.any(absent)):
        return numbers
    look(absent)
    return ops.where(absent, 0.0, numbers)


def _missing(x: Traced) -> Traced | None:
    """Return where R has NA in a truth value, or in the numbers it was computed from; None for nowhere."""
    name, arguments = made_by(x)
    own = rule_of("R missing", name)
    if own is not None:
        return own(name, *arguments)
    if facts_of(name).moves and isinstance(arguments[0], Traced):
        missing = _missing_if_traced(arguments[0])
        moved = None if missing is None else registry[name].call(missing, *arguments[1:])
        if not isinstance(moved, (list, tuple)):  # an op with several results does not tell which one ``x`` is
            return moved
    return _nan_if_traced(x)


@rule("R missing", "equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
def _missing_in_comparison(name: str, *numbers):
    return _either(*map(_nan_if_traced, numbers))


@rule("R missing", "logical_not", "cast", "logical_xor")
def _missing_in_any(name: str, *arguments):
    return _either(*map(_missing_if_traced, arguments))


@rule("R missing", "where")
def _missing_in_choice(name: str, condition, *chosen):
    found = [_missing_if_traced(y) for y in chosen]
    if any(y is not None for y in found):
        found = [ops.where(condition, *[False if y is None else y for y in found])]
    return _either(_missing_if_traced(condition), *found)


@rule("R missing", "logical_and", "logical_or")
def _missing_in_logic(name: str, *arguments):
    settles = ops.logical_not if name == "logical_and" else _same
    (a, b), (missing_a, missing_b) = arguments, map(_missing_if_traced, arguments)
    missing = _either(missing_a, missing_b)
    if missing is None:
        return None
    return _and_not(missing, *[_and_not(settles(y), m) for y, m in ((a, missing_a), (b, missing_b))])


@rule("R missing", "any", "all")
def _missing_in_truth(name: str, y, *settings):
    missing = _missing_if_traced(y)
    if missing is None:
        return None
    settles = ops.logical_not if name == "all" else _same
    return _and_not(ops.any(missing, *settings), ops.any(_and_not(settles(y), missing), *settings))


@rule("R missing", "concatenate", "stack")
def _missing_in_parts(name: str, parts, *settings):
    found = [_missing_if_traced(y) for y in parts]
    if all(y is None for y in found):
        return None
    return getattr(ops, name)([ops.zeros_like(x) if y is None else y for x, y in zip(parts, found)], *settings)


def _same(x):
    return x


def _missing_if_traced(x) -> Traced | None:
    return _missing(x) if isinstance(x, Traced) else None


def _nan_if_traced(x) -> Traced | None:
    return ops.isnan(x) if isinstance(x, Traced) and x.dtype.kind == "f" else None


def _either(*missing) -> Traced | None:
    found = [x for x in missing if x is not None]
    return found[0] if len(found) == 1 else ops.logical_or(*found) if found else None


def _and_not(x, *settled) -> Traced:
    for other in settled:
        if other is not None:
            x = ops.logical_and(x, ops.logical_not(other))
    return x


def is_recorded(value) -> bool:
    """Return True if a derivative is being recorded for a tensor: by the tape, torch, TensorFlow's tapes or JAX.

    TensorFlow does not report its forward accumulators.
    """
    if isinstance(value, autodiff.Variable):
        return bool(value.requires_grad) and recording.get()
    backend = backends.backend_of(value)
    return backend is not None and backend.derivatives.records(value)


def keeps(value) -> bool:
    """Return True if R code gets the tensor, not its numbers: it is recorded for a derivative or has no values yet."""
    return is_recorded(value) or known(value) is None


def if_known(value):
    """Return the values for R, or None inside a trace, where there are no values."""
    array = known(value)
    return None if array is None or array.dtype.kind not in "biufc" else values.to_r(array)


# NA where a tensor cannot hold it: in a condition, in an integer ------------------------------------------------------


_GIVEN = (("x",), "dtype")
INTO: dict[str, tuple[tuple[str, ...], str]] = {
    "array": _GIVEN,
    "cast": _GIVEN,
    "convert_to_tensor": _GIVEN,
    "cumprod": _GIVEN,
    "cumsum": _GIVEN,
    "full": (("fill_value",), "dtype"),
    "full_like": (("fill_value",), "dtype or ops.dtype(x)"),
    "linspace": (("start", "stop"), "dtype"),
    "prod": _GIVEN,
    "scatter_update": (("updates",), "ops.dtype(inputs)"),
    "slice_update": (("updates",), "ops.dtype(inputs)"),
}
"""Arguments whose numbers are converted to another dtype, with an expression for that dtype."""


def truth(value, name: str):
    """Return a condition from R unchanged.

    Raises:
        ArgumentError: the condition contains NA.
    """
    if any(map(_has_nan, _number_arrays(value))):
        raise ArgumentError(
            f"`{name}` must not have NA, which is neither true nor false.",
            argument=name,
            hint="find NA by `is.na()`; `condition %in% TRUE` treats it as FALSE",
        )
    return value


def deciding(function: Callable) -> Callable:
    """Wrap an R function that returns a condition so that NA raises an error. The op refuses what is no function."""
    return function if not callable(function) else lambda *state: truth(function(*state), "cond")


def check_holds(op: str, name: str, value, dtype: str | None) -> None:
    """Check that a dtype can hold R's numbers.

    Raises:
        ArgumentError: NA for an integer or bool dtype; a number outside the range of an integer dtype, except in a
            cast.
    """
    if dtype is None:
        return
    target = dtypes.canonical(dtype)
    if target != "bool" and target not in dtypes.INTEGERS:
        return
    for numbers in _number_arrays(value):
        if _has_nan(numbers):
            raise ArgumentError(
                f"`{op}`: `{name}` must not have NA, as it becomes {target}.",
                argument=name,
                hint="use a floating dtype, which has NaN for NA, or leave `dtype` out",
            )
        if op != "cast" and numbers.size and numbers.dtype.kind in "iuf":
            _checks.check_held(op, name, [numbers.min().item(), numbers.max().item()], target)


def _number_arrays(value) -> Iterator[np.ndarray]:
    """Yield the arrays of R's numbers in nested values; tensors are skipped."""
    if value.__class__ is dict and MARK in value:
        yield value[MARK]
    elif value.__class__ is dict:
        yield from _number_arrays(list(value.values()))
    elif value.__class__ is list or value.__class__ is tuple:
        for item in value:
            yield from _number_arrays(item)
    elif value.__class__ is float:
        yield np.asarray(value)


def _has_nan(numbers: np.ndarray) -> bool:
    return numbers.dtype.kind in "fc" and bool(np.isnan(numbers).any())
