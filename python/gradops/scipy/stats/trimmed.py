"""Means and extremes of the observations within limits, and trimmed means."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import ops
from ...annotations import Axes, Operand, Tensor
from ...errors import ArgumentError
from ...ops import _checks
from .._define import family
from ._samples import ARGUMENTS, RANGE, Sample, extreme, known_number, of_sample

limited = family(
    ARGUMENTS | {"limits": "a pair of numbers; None is no limit.", "inclusive": "whether each limit itself is within."},
    returns="A tensor of ``a``'s shape without ``axis``; NaN where no more than ``ddof`` elements are within.",
    raises=f"{RANGE}\nArgumentError: no element is within the limits.",
    gradient="By ``a``, with the selection of elements held fixed.",
)


def _limited(function, a, limits, inclusive, axis, nan_policy, keepdims) -> Sample:
    """Return the observations within limits."""
    sample = Sample(function, a, axis, nan_policy, keepdims)
    if limits is None:
        return sample
    (low, high), (with_low, with_high) = limits, inclusive
    x, beyond = sample.x, None
    for limit, test in ((low, ops.less if with_low else ops.less_equal),
                        (high, ops.greater if with_high else ops.greater_equal)):  # fmt: skip
        if limit is not None:
            found = test(x, limit)
            beyond = found if beyond is None else beyond | found
    if beyond is not None:
        values = _checks.known(beyond)
        if values is not None and values.all():
            raise ArgumentError(f"`{sample.function}`: no element of `a` is within the limits.", argument="a")
        sample.keep(ops.logical_not(beyond))
    return sample


@limited
def tmean(
    a: Tensor, limits: Any = None, inclusive: Any = (True, True), axis: Axes = None, *, nan_policy="propagate",
    keepdims=False,
) -> Tensor:  # fmt: skip
    """Mean of the elements within limits.

    Returns:
        A tensor of ``a``'s shape without ``axis``; NaN where no element is within.
    """
    sample = _limited("tmean", a, limits, inclusive, axis, nan_policy, keepdims)
    return sample.result(sample.mean())


def _tvar(function, a, limits, inclusive, axis, ddof, nan_policy, keepdims):
    sample = _limited(function, a, limits, inclusive, axis, nan_policy, keepdims)
    return sample, sample.var(ddof)


@limited
def tvar(
    a: Tensor, limits: Any = None, inclusive: Any = (True, True), axis: Axes = 0, ddof: Operand = 1, *,
    nan_policy="propagate", keepdims=False,
) -> Tensor:  # fmt: skip
    """Variance of the elements within limits."""
    sample, var = _tvar("tvar", a, limits, inclusive, axis, ddof, nan_policy, keepdims)
    return sample.result(var)


@limited
def tstd(
    a: Tensor, limits: Any = None, inclusive: Any = (True, True), axis: Axes = 0, ddof: Operand = 1, *,
    nan_policy="propagate", keepdims=False,
) -> Tensor:  # fmt: skip
    """Standard deviation of the elements within limits, the root of :func:`tvar`.

    Gradient:
        By ``a``, with the selection of elements held fixed; 0 where they are equal.
    """
    sample, var = _tvar("tstd", a, limits, inclusive, axis, ddof, nan_policy, keepdims)
    return sample.result(sample.root(var))


@limited
def tsem(
    a: Tensor, limits: Any = None, inclusive: Any = (True, True), axis: Axes = 0, ddof: Operand = 1, *,
    nan_policy="propagate", keepdims=False,
) -> Tensor:  # fmt: skip
    """Standard error of the mean of the elements within limits.

    Gradient:
        By ``a``, with the selection of elements held fixed; 0 where they are equal.
    """
    sample, var = _tvar("tsem", a, limits, inclusive, axis, ddof, nan_policy, keepdims)
    return sample.result(sample.root(var) / sample.n**0.5)


@of_sample
def tmin(
    a: Tensor, lowerlimit: Operand = None, axis: Axes = 0, inclusive=True, nan_policy="propagate", *, keepdims=False
) -> Tensor:
    """The smallest element that is not below a limit.

    Args:
        inclusive: whether the limit itself counts.

    Returns:
        A tensor of ``a``'s shape without ``axis``, of its floating dtype; NaN where all elements are below.

    Raises:
        ArgumentError: all elements are below the limit.

    Gradient:
        To the smallest element; equal ones share it.
    """
    sample = _limited("tmin", a, (lowerlimit, None), (inclusive, True), axis, nan_policy, keepdims)
    return sample.result(extreme(sample, ops.min, np.inf))


@of_sample
def tmax(
    a: Tensor, upperlimit: Operand = None, axis: Axes = 0, inclusive=True, nan_policy="propagate", *, keepdims=False
) -> Tensor:
    """The largest element that is not above a limit.

    Args:
        inclusive: whether the limit itself counts.

    Returns:
        A tensor of ``a``'s shape without ``axis``, of its floating dtype; NaN where all elements are above.

    Raises:
        ArgumentError: all elements are above the limit.

    Gradient:
        To the largest element; equal ones share it.
    """
    sample = _limited("tmax", a, (None, upperlimit), (True, inclusive), axis, nan_policy, keepdims)
    return sample.result(extreme(sample, ops.max, -np.inf))


# Trimmed means --------------------------------------------------------------------------------------------------------


@of_sample
def trim_mean(a: Tensor, proportiontocut, axis: Axes = 0, *, nan_policy="propagate", keepdims=False) -> Tensor:
    """Mean without the smallest and the largest elements.

    Args:
        proportiontocut: the share to cut off at each end, rounded down to a number of elements.
        nan_policy: ``"propagate"`` or ``"raise"``.

    Raises:
        ArgumentError: a share that leaves no elements; ``nan_policy="omit"``.

    Gradient:
        By the remaining elements, with their selection held fixed.
    """
    sample = Sample("trim_mean", a, axis, nan_policy, keepdims, omit=False)
    count = sample.x.shape[-1]
    cut = int(known_number(sample.function, "proportiontocut", proportiontocut) * count)
    if not 0 <= cut <= count - cut:
        raise ArgumentError(f"`{sample.function}`: `proportiontocut` is too large.", argument="proportiontocut")
    left = ops.sort(sample.x)[..., cut : count - cut]
    return sample.result(sample.marked(ops.mean(left, -1, True)))


__all__ = ["tmax", "tmean", "tmin", "trim_mean", "tsem", "tstd", "tvar"]
