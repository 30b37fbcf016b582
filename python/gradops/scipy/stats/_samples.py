"""Observations along axes: which of them count under ``nan_policy``, and their means."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ... import ops
from ...errors import ArgumentError, ArgumentTypeError, ShapeError
from ...ops import _checks
from ...ops._compose import NUMBERS
from ...ops.reductions import root
from .._define import family
from .._tensors import constant_like, floating, is_complex, option

__all__ = ["ARGUMENTS", "RANGE", "Sample", "extreme", "known_number", "last", "of_sample", "real", "root"]

POLICIES = ("propagate", "omit", "raise")

ARGUMENTS = {
    "bias": "False corrects the bias under a normal distribution.",
    "ddof": "subtracted from the count in the variance.",
    "nan_policy": '``"propagate"``, ``"omit"`` or ``"raise"``.',
}
RANGE = "AxisError: an axis out of range."
of_sample = family(
    ARGUMENTS,
    returns="A tensor of ``{first}``'s shape without ``axis``, of its floating dtype.",
    raises=RANGE,
    gradient="Of the formula.",
)


def real(function: str, **given) -> list:
    """Return tensors of the promoted floating dtype; NumPy arrays are converted to another argument's library.

    Raises:
        ArgumentTypeError: an argument that is not a number or tensor; a complex tensor.
    """
    for name, x in given.items():
        if x is None or isinstance(x, str):
            raise ArgumentTypeError(f"`{function}`: `{name}` must be a tensor; got {x!r:.80}.", argument=name)
    if all(type(x) in NUMBERS for x in given.values()):
        given = {name: ops.convert_to_tensor(x) for name, x in given.items()}
    found = floating(*given.values())
    for name, x in zip(given, found):
        if is_complex(x):
            raise ArgumentTypeError(f"`{function}`: `{name}` must be real.", argument=name)
    like = next((x for x in found if not isinstance(x, (np.ndarray, np.generic))), None)
    return [
        constant_like(x, like) if like is not None and isinstance(x, (np.ndarray, np.generic)) else x for x in found
    ]


def known_number(function: str, name: str, value) -> float:
    """Return a setting as a float; it must be a known real number and has no derivative."""
    values = _checks.known(value) if not isinstance(value, str) and value is not None else None
    if hasattr(value, "_node") or values is None or values.ndim or values.dtype.kind not in "biuf":
        raise ArgumentTypeError(
            f"`{function}`: `{name}` must be a known real number; got {{value}}.",
            argument=name,
            value=_checks.describe(value),
        )
    return values[()].item()


def last(x, axes: tuple[int, ...]):
    """Merge some dimensions of ``x`` into one, the last."""
    rank = len(x.shape)
    if len(axes) == 1:
        return x if axes[0] == rank - 1 else ops.moveaxis(x, axes[0], -1)
    if not axes:
        return ops.expand_dims(x, -1)
    moved = ops.moveaxis(x, axes, tuple(range(-len(axes), 0)))
    return ops.reshape(moved, (*moved.shape[: rank - len(axes)], -1))


class Sample:
    """Observations along the last dimension.

    Attributes:
        x: a tensor of a floating dtype; 1 where ``nan_policy`` omits an element.
        mask: True where an element counts; None if all do.
        n: the number that count: an integer, or a tensor whose last size is 1.
    """

    def __init__(self, function, a, axis=0, nan_policy="propagate", keepdims=False, weights=None, omit=True, name="a"):
        self.function = function if function.startswith("scipy.") else f"scipy.stats.{function}"
        option(self.function, nan_policy, POLICIES, "nan_policy")
        given = real(self.function, **({name: a} if weights is None else {name: a, "weights": weights}))
        a = given[0] if len(given[0].shape) else ops.reshape(given[0], (1,))
        self.axes, self.keepdims = _checks.check_axes(self.function, axis, len(a.shape)), keepdims
        self.x = last(a, self.axes)
        self.weights = None if weights is None else self._weights(given[1], len(a.shape))
        self.mask: Any = None
        if nan_policy == "raise":
            values = _checks.known(a)
            if values is None or np.isnan(values).any():
                why = "values that a program does not know" if values is None else "NaN"
                raise ArgumentError(f"`{self.function}`: `{name}` has {why}.", argument=name, hint="nan_policy='omit'")
        if nan_policy == "omit":
            if not omit:
                raise ArgumentError(
                    f"`{self.function}` does not leave out NaN: `nan_policy` must be 'propagate' or 'raise'.",
                    argument="nan_policy",
                    hint="leave NaN out before",
                )
            self.keep(ops.logical_not(ops.isnan(self.x if self.weights is None else self.x + self.weights)))

    def _weights(self, weights, rank: int):
        if len(weights.shape) == rank:
            return last(weights, self.axes)
        if len(weights.shape) == len(self.axes) == 1 and weights.shape[0] in (1, None, self.x.shape[-1]):
            return weights
        raise ShapeError(
            f"`{self.function}`: `weights` must have the dimensions of `a` or be a vector along `axis`; got the shape "
            f"{tuple(weights.shape)}.",
            argument="weights",
        )

    def keep(self, mask) -> None:
        """Omit elements where ``mask`` is false."""
        self.mask = mask if self.mask is None else self.mask & mask
        self.x = ops.where(mask, self.x, 1.0)
        if self.weights is not None:
            self.weights = ops.where(mask, self.weights, 1.0)

    @property
    def n(self):
        size = self.x.shape[-1]
        if self.mask is None and isinstance(size, int):
            return size
        return self.sum(ops.ones_like(self.x))

    def sum(self, y):
        """Return the sum of the elements that count, with a last size of 1."""
        return ops.sum(y if self.mask is None else ops.where(self.mask, y, 0.0), -1, True)

    def mean(self, y=None):
        """Return the weighted mean of the elements that count, with a last size of 1."""
        y = self.x if y is None else y
        if self.weights is None:
            return ops.mean(y, -1, True) if self.mask is None else self.sum(y) / ops.where(self.n > 0, self.n, math.nan)
        return self.sum(y * self.weights) / self.sum(self.weights + ops.zeros_like(self.x))

    def moment(self, order: int, center=None):
        """Return the mean of powers of the distances from ``center``, by default the mean."""
        distance = self.x - (self.mean() if center is None else center)
        return self.mean(distance**order)

    def var(self, ddof=0):
        """Return the sum of squared distances from the mean, divided by ``n - ddof``."""
        if type(ddof) is int and ddof == 0:
            return self.moment(2)
        n = self.n
        free = n - ddof
        if type(free) in (int, float):
            return self.moment(2) * (n / free if free > 0 else math.nan)
        return self.moment(2) * (n / ops.where(free > 0, free, math.nan))

    def std(self, ddof=0):
        return self.root(self.var(ddof))

    def root(self, var):
        """Return the root of a variance, with a derivative of 0 where all elements equal the mean."""
        distance = self.x - self.mean()
        return root(var, distance if self.mask is None else ops.where(self.mask, distance, 0.0))

    def marked(self, y):
        """Return a result with NaN where an element is NaN, which trimming a sorted sample would lose."""
        return ops.where(ops.any(ops.isnan(self.x), -1, True), math.nan, y)

    def result(self, y):
        """Return a result with the axes removed, or kept as size 1."""
        y = y[..., 0]
        for axis in sorted(self.axes) if self.keepdims else ():
            y = ops.expand_dims(y, axis)
        return y


def extreme(sample, reduce, neutral):
    """Return the smallest or largest element that counts, NaN if none does."""
    if sample.mask is None:
        return reduce(sample.x, -1, True)
    value = reduce(ops.where(sample.mask, sample.x, neutral), -1, True)
    return ops.where(ops.any(sample.mask, -1, True), value, math.nan)
