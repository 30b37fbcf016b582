"""R's NA, which is NaN in a tensor of floats, where a tensor has no place for it: as a truth, as a whole number."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from ... import dtypes
from ...errors import ArgumentError
from ...ops import _checks
from .values import MARK

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
    if any(map(_has_nan, _numbers(value))):
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
    for numbers in _numbers(value):
        if _has_nan(numbers):
            raise ArgumentError(
                f"`{op}`: `{name}` must not have NA, as it becomes {target}.",
                argument=name,
                hint="take a floating dtype, in which NA is NaN, or leave it out",
            )
        if op != "cast" and numbers.size and numbers.dtype.kind in "iuf":
            _checks.check_held(op, name, [numbers.min().item(), numbers.max().item()], target)


def _numbers(value) -> Iterator[np.ndarray]:
    """R's numbers in nested values; those of tensors are not looked at."""
    if value.__class__ is dict and MARK in value:
        yield value[MARK]
    elif value.__class__ is dict:
        yield from _numbers(list(value.values()))
    elif value.__class__ is list or value.__class__ is tuple:
        for item in value:
            yield from _numbers(item)
    elif value.__class__ is float:
        yield np.asarray(value)


def _has_nan(numbers: np.ndarray) -> bool:
    return numbers.dtype.kind in "fc" and bool(np.isnan(numbers).any())
