"""R's NA, where a comparison met NaN and code decides by it, and where a tensor has no place for it."""

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
from . import values
from .values import MARK

_COMPARISONS = frozenset(("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"))


def doubtful(value):
    """R's positions at which a tensor is not finite, or 0; in NumPy's compiled functions by the values of the trace.

    No guard is set there: the caller may only choose between ways to the same values.
    """
    x = data_of(value)
    while isinstance(x, Traced):
        x = x.value
    numbers = np.asarray(ops.convert_to_numpy(x)).ravel(order="F")
    return np.flatnonzero(~np.isfinite(numbers) | (numbers == 0)) + 1


def decided(value, form: str):
    """The values for R, where they are missing, and None for values that must stay unknown.

    Args:
        value: the value that decides.
        form: of R's syntax, as ``"if"``, the function that asks, ``"values"`` for all numbers, ``"whole"`` for
            numbers that R cuts to whole ones, or ``"order"`` for functions of the order of elements.
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
    """The numbers, all of which are looked at; NaN is equal to NaN here."""
    for part in (ops.real(x), ops.imag(x)) if x.dtype.kind == "c" else (x,):
        absent = ops.isnan(part)
        look(absent)
        look(ops.where(absent, 0.0, part))
    return values.to_r(x.value)


def placed(value, table):
    """The values of numbers whose place among others decides: which are less, which equal; None as of :func:`decided`.

    Args:
        value: the numbers.
        table: the others.
    """
    x: Any = data_of(value)
    others: Any = data_of(table)
    if not isinstance(x, Traced) or x.dtype.kind not in "bif":
        return None
    look = x.program.look
    try:
        numbers = _without_nan(x, look)
        if isinstance(others, Traced):
            _ordered(others, look)
            ordered: Any = ops.sort(_without_nan(others, look))
        else:
            ordered = np.unique(np.asarray(others, dtype=np.float64))
        for side in ("left", "right"):
            look(ops.searchsorted(ordered, numbers, side))
    except JitError:
        return None
    return values.to_r(x.value)


def _ordered(x: Traced, look):
    """The numbers, where others in the same order would do: the place of each in the sorted ones is looked at."""
    if x.size > 1 or x.dtype.kind == "f":
        numbers = _without_nan(x, look)
        look(ops.searchsorted(ops.sort(numbers), numbers))
    return values.to_r(x.value)


def _without_nan(x: Traced, look) -> Traced:
    """A vector of numbers, 0 where they are NaN, which is looked at."""
    numbers = ops.reshape(ops.cast(x, "float64"), (-1,))
    absent = ops.isnan(numbers)
    if not look(ops.any(absent)):
        return numbers
    look(absent)
    return ops.where(absent, 0.0, numbers)


def _missing(x: Traced) -> Traced | None:
    """The places where R has NA for truth values, or for the numbers that decide; None for nowhere."""
    name, arguments = made_by(x)
    if name in _COMPARISONS:
        return _either(*[_of_number(y) for y in arguments])
    if name == "logical_not" or name == "cast":
        return _of(arguments[0])
    if name == "logical_xor":
        return _either(*map(_of, arguments))
    if name == "where" and len(arguments) == 3:
        condition, *chosen = arguments
        found = [_of(y) for y in chosen]
        if any(y is not None for y in found):
            found = [ops.where(condition, *[False if y is None else y for y in found])]
        return _either(_of(condition), *found)
    if name in ("logical_and", "logical_or"):
        settles = ops.logical_not if name == "logical_and" else _same
        (a, b), (missing_a, missing_b) = arguments, map(_of, arguments)
        missing = _either(missing_a, missing_b)
        if missing is None:
            return None
        return _without(missing, *[_without(settles(y), m) for y, m in ((a, missing_a), (b, missing_b))])
    if name in ("any", "all"):
        y, *settings = arguments
        missing = _of(y)
        if missing is None:
            return None
        settles = ops.logical_not if name == "all" else _same
        return _without(ops.any(missing, *settings), ops.any(_without(settles(y), missing), *settings))
    if name in ("concatenate", "stack"):
        parts, *settings = arguments
        found = [_of(y) for y in parts]
        if all(y is None for y in found):
            return None
        return getattr(ops, name)([ops.zeros_like(x) if y is None else y for x, y in zip(parts, found)], *settings)
    if facts_of(name).moves and isinstance(arguments[0], Traced):
        missing = _of(arguments[0])
        moved = None if missing is None else registry[name].call(missing, *arguments[1:])
        if not isinstance(moved, (list, tuple)):  # of several parts it is not known which one decides
            return moved
    return _of_number(x)


def _same(x):
    return x


def _of(x) -> Traced | None:
    return _missing(x) if isinstance(x, Traced) else None


def _of_number(x) -> Traced | None:
    return ops.isnan(x) if isinstance(x, Traced) and x.dtype.kind == "f" else None


def _either(*missing) -> Traced | None:
    found = [x for x in missing if x is not None]
    return found[0] if len(found) == 1 else ops.logical_or(*found) if found else None


def _without(x, *settled) -> Traced:
    for other in settled:
        if other is not None:
            x = ops.logical_and(x, ops.logical_not(other))
    return x


def is_recorded(value) -> bool:
    """True if a derivative is being recorded for a tensor: by the tape, torch, TensorFlow's tapes or JAX.

    TensorFlow does not say so of its forward accumulators.
    """
    if isinstance(value, autodiff.Variable):
        return bool(value.requires_grad) and recording.get()
    backend = backends.of(value)
    return backend is not None and backend.derivatives.records(value)


def keeps(value) -> bool:
    """True if code that asks for R's numbers gets the tensor: a derivative is recorded, or there are no values yet."""
    return is_recorded(value) or known(value) is None


def if_known(value):
    """The values for R, or None inside a trace, where there are none."""
    array = known(value)
    return None if array is None or array.dtype.kind not in "biufc" else values.to_r(array)


# NA where a tensor has no place for it: as a truth, as a whole number -------------------------------------------------


TRUTHS = {
    "all": ("x",),
    "any": ("x",),
    "cond": ("pred",),
    "count_nonzero": ("x",),
    "dot_product_attention": ("mask",),
    "logical_and": ("x1", "x2"),
    "logical_not": ("x",),
    "logical_or": ("x1", "x2"),
    "logical_xor": ("x1", "x2"),
    "nonzero": ("x",),
    "select": ("condlist",),
    "where": ("condition",),
}
"""Arguments that are read as true or false. As numbers, all but 0 are true, NaN too."""

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
"""Arguments whose numbers go into another dtype, and which that is."""


def truth(value, name: str):
    """A condition of R's as it is.

    Raises:
        ArgumentError: NA in it.
    """
    if any(map(_has_nan, _of_numbers(value))):
        raise ArgumentError(
            f"`{name}` must not have NA, which is neither true nor false.",
            argument=name,
            hint="`is.na()` tells where it is; `condition %in% TRUE` takes it for FALSE",
        )
    return value


def deciding(function: Callable) -> Callable:
    """A function of R's that gives a condition."""
    return lambda *state: truth(function(*state), "cond")


def check_holds(op: str, name: str, value, dtype: str | None) -> None:
    """Raise where a dtype does not hold R's numbers: NA among whole numbers and booleans, and numbers out of range.

    Raises:
        ArgumentError: NA; a number beyond an integer dtype, except in a cast.
    """
    if dtype is None:
        return
    target = dtypes.canonical(dtype)
    if target != "bool" and target not in dtypes.INTEGERS:
        return
    for numbers in _of_numbers(value):
        if _has_nan(numbers):
            raise ArgumentError(
                f"`{op}`: `{name}` must not have NA, as it becomes {target}.",
                argument=name,
                hint="take a floating dtype, in which NA is NaN, or leave it out",
            )
        if op != "cast" and numbers.size and numbers.dtype.kind in "iuf":
            _checks.check_held(op, name, [numbers.min().item(), numbers.max().item()], target)


def _of_numbers(value) -> Iterator[np.ndarray]:
    """R's numbers in nested values; those of tensors are not looked at."""
    if value.__class__ is dict and MARK in value:
        yield value[MARK]
    elif value.__class__ is dict:
        yield from _of_numbers(list(value.values()))
    elif value.__class__ is list or value.__class__ is tuple:
        for item in value:
            yield from _of_numbers(item)
    elif value.__class__ is float:
        yield np.asarray(value)


def _has_nan(numbers: np.ndarray) -> bool:
    return numbers.dtype.kind in "fc" and bool(np.isnan(numbers).any())
