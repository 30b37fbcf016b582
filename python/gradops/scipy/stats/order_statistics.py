"""Order statistics: ranges of quantiles, median deviations, modes, ranks and expectiles."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ... import ops
from ...annotations import Axes, Axis, Operand, Tensor
from ...errors import ArgumentError, ArgumentTypeError, ShapeError
from ...ops import _checks
from .._define import composed
from .._tensors import option, wrong
from ._samples import Sample, of_sample, real

NORMAL_QUARTILE = 0.67448975019608174320


def _scaled(function, value, scale, options):
    if isinstance(scale, str):
        option(function, scale.lower(), options, "scale")
        scale = options[scale.lower()]
    return value if type(scale) in (int, float) and scale == 1 else value / scale


@of_sample
def iqr(
    x: Tensor, axis: Axes = None, rng: Any = (25, 75), scale: Any = 1.0, nan_policy="propagate", interpolation="linear",
    keepdims=False,
) -> Tensor:  # fmt: skip
    """Range between two percentiles, the quartiles by default.

    Args:
        rng: the two percentages.
        scale: what to divide by; ``"normal"`` makes the range of quartiles an estimate of the standard deviation of
            normal variables.
        interpolation: ``"linear"``, ``"lower"``, ``"higher"``, ``"midpoint"`` or ``"nearest"``.

    Raises:
        ArgumentError: percentages that are none; an unknown ``interpolation`` or ``scale``.

    Gradient:
        By the elements that the percentiles are made of, held fixed, and by ``scale``.
    """
    sample = Sample("iqr", x, axis, nan_policy, keepdims, name="x")
    ends = np.sort(np.asarray(rng, float).reshape(-1))
    if ends.shape != (2,) or not (0 <= ends[0] and ends[1] <= 100):
        raise ArgumentError(f"`{sample.function}`: `rng` must be two percentages.", argument="rng")
    values, quantile = sample.x, ops.quantile
    if sample.mask is not None:
        values, quantile = ops.where(sample.mask, values, math.nan), ops.nanquantile
    low, high = (quantile(values, float(p) / 100, -1, interpolation, True) for p in ends)
    return sample.result(_scaled(sample.function, high - low, scale, {"normal": 2 * NORMAL_QUARTILE}))


@of_sample
def median_abs_deviation(
    x: Tensor, axis: Axes = 0, center: Any = None, scale: Any = 1.0, nan_policy="propagate", *, keepdims=False
) -> Tensor:
    """Median of the distances from the median.

    Args:
        center: a function of a tensor and ``axis`` in place of the median.
        scale: what to divide by; ``"normal"`` makes it an estimate of the standard deviation of normal variables.
        nan_policy: ``"propagate"`` or ``"raise"``; ``"omit"`` without ``center``.

    Raises:
        ArgumentTypeError: a ``center`` that is no function.
        ArgumentError: an unknown ``scale``.

    Gradient:
        By the elements that the medians are made of, held fixed, and by ``scale``.
    """
    own = center is None or center is np.median
    sample = Sample("median_abs_deviation", x, axis, nan_policy, keepdims, omit=own, name="x")
    if not own and not callable(center):
        raise ArgumentTypeError(f"`{sample.function}`: `center` must be a function.", argument="center")
    x = sample.x
    if sample.mask is not None:
        middle = ops.nanmedian(ops.where(sample.mask, x, math.nan), -1, True)
        found = ops.nanmedian(ops.where(sample.mask, ops.abs(x - middle), math.nan), -1, True)
    else:
        middle = ops.median(x, -1, True) if own else ops.expand_dims(center(x, axis=-1), -1)
        found = ops.median(ops.abs(x - middle), -1, True)
    return sample.result(_scaled(sample.function, found, scale, {"normal": NORMAL_QUARTILE}))


# Ranks ----------------------------------------------------------------------------------------------------------------


def _runs(ordered):
    """Return where runs of equal elements start in ordered ones; all NaN are one run."""
    ahead, behind = ordered[..., 1:], ordered[..., :-1]
    new = (ahead != behind) & (behind == behind)
    return ops.concatenate([ops.ones_like(ordered[..., :1]) == 1, new], -1)


def _bounds(new, count: int):
    """Return the positions of the first and the last element of each element's run."""
    place = np.arange(count)
    first = ops.associative_scan(ops.maximum, ops.where(new, place, 0), axis=-1)
    ends = ops.concatenate([new[..., 1:], ops.ones_like(new[..., :1])], -1)
    return first, ops.associative_scan(ops.minimum, ops.where(ends, place, count), True, axis=-1)


class ModeResult(NamedTuple):
    """The result of :func:`mode`."""

    mode: Any
    count: Any


@of_sample
def mode(a: Tensor, axis: Axes = 0, nan_policy="propagate", keepdims=False):
    """The most frequent element; among several the smallest.

    Args:
        nan_policy: ``"propagate"``, which counts NaN like other elements, ``"omit"`` or ``"raise"``.

    Returns:
        A named tuple ``mode`` and ``count``, of ``a``'s shape without ``axis``, of its floating dtype and int64.

    Raises:
        ShapeError: no elements along ``axis``.

    Gradient:
        None: a constant.
    """
    sample = Sample("mode", ops.stop_gradient(real("scipy.stats.mode", a=a)[0]), axis, nan_policy, keepdims)
    count = sample.x.shape[-1]
    if not count:
        raise ShapeError(f"`{sample.function}`: there are no elements along `axis`.", argument="a")
    omitted = sample.mask is not None
    ordered = ops.sort(ops.where(sample.mask, sample.x, math.nan) if omitted else sample.x)
    first, final = _bounds(_runs(ordered), count)
    length = final - first + 1
    if omitted:
        length = ops.where(ordered == ordered, length, 0)
    at = ops.expand_dims(ops.argmax(length, -1), -1)
    found = (ops.take_along_axis(ordered, at, -1), ops.cast(ops.max(length, -1, True), "int64"))
    return ModeResult(*map(sample.result, found))


@of_sample
def rankdata(a: Tensor, method="average", *, axis: Axis | None = None, nan_policy="propagate") -> Tensor:
    """Ranks from 1 on.

    Args:
        method: the rank of equal elements: the ``"average"``, ``"min"`` or ``"max"`` of ranks; ``"dense"`` numbers
            the distinct values; ``"ordinal"`` ranks equal elements in their order.
        axis: None ranks all elements, as a vector.
        nan_policy: ``"propagate"`` makes all ranks NaN if an element is; ``"omit"`` ranks the others; ``"raise"``.

    Returns:
        A floating tensor of ``a``'s shape.

    Raises:
        ArgumentError: an unknown ``method``.

    Gradient:
        None: constants.
    """
    function = "scipy.stats.rankdata"
    option(function, method, ("average", "min", "max", "dense", "ordinal"), "method")
    (a,) = real(function, a=a)
    a = ops.stop_gradient(ops.reshape(a, (-1,)) if axis is None else a)
    axis = -1 if axis is None else axis
    sample = Sample(function, a, axis, "raise" if nan_policy == "raise" else "propagate")
    option(function, nan_policy, ("propagate", "omit", "raise"), "nan_policy")
    x = sample.x
    if not x.shape[-1]:
        return a
    order = ops.argsort(x)
    new = _runs(ops.take_along_axis(x, order, -1))
    if method == "ordinal":
        ranks = ops.argsort(order) + 1
    else:
        if method == "dense":
            found = ops.cumsum(ops.cast(new, "int64"), -1)
        else:
            first, final = _bounds(new, x.shape[-1])
            found = first + 1 if method == "min" else final + 1 if method == "max" else (first + final) / 2 + 1
        ranks = ops.take_along_axis(found, ops.argsort(order), -1)
    ranks = ops.cast(ranks, ops.dtype(x))
    lost = ops.isnan(x) if nan_policy == "omit" else ops.any(ops.isnan(x), -1, True)
    return ops.moveaxis(ops.where(lost, math.nan, ranks), -1, sample.axes[0] if sample.axes else -1)


# Expectiles -----------------------------------------------------------------------------------------------------------


def _weighted(function, name, values, weights, weight_name):
    """Return values and weights as vectors; weights are 1 by default."""
    if weights is None:
        (values,) = real(function, **{name: values})
        return ops.reshape(values, (-1,)), ops.ones_like(ops.reshape(values, (-1,)))
    values, weights = real(function, **{name: values, weight_name: weights})
    if tuple(values.shape) != tuple(weights.shape) and len(weights.shape):
        raise wrong(weight_name, f"have the shape of `{name}`", tuple(weights.shape), ShapeError, of=function)
    known = _checks.known(weights)
    if known is not None and not (np.all(known >= 0) and 0 < np.sum(known) < math.inf):
        raise wrong(weight_name, "not be negative, and have a finite sum above 0", of=function)
    return ops.reshape(values, (-1,)), ops.reshape(weights + ops.zeros_like(values), (-1,))


@composed
def expectile(a: Tensor, alpha: Operand = 0.5, *, weights: Tensor = None) -> Tensor:
    """Expectile: ``t`` with ``alpha`` times the mean excess above equal to ``1 - alpha`` times the mean excess below.

    It is the largest, for ``alpha`` below 1/2 the smallest, of the means in which each element below one of them has
    the weight ``1 - alpha`` and each other ``alpha``.

    Args:
        a: all elements count, of any shape.
        alpha: from 0, the smallest element, over 1/2, the mean, to 1, the largest.
        weights: of ``a``'s shape.

    Returns:
        A tensor without dimensions.

    Raises:
        ArgumentError: an ``alpha`` outside of 0 to 1; weights that are negative or all 0.

    Gradient:
        By ``a``, ``alpha`` and ``weights``: that of the mean.
    """
    function = "scipy.stats.expectile"
    a, weights = _weighted(function, "a", a, weights, "weights")
    if ops.is_tensor(alpha):
        a, weights, alpha = real(function, a=a, weights=weights, alpha=alpha)
    known = _checks.known(alpha)
    if known is not None and not (known.ndim == 0 and 0 <= known <= 1):
        raise ArgumentError(f"`{function}`: `alpha` must be from 0 to 1.", argument="alpha")
    order = ops.argsort(a)
    x, w = ops.take(a, order), ops.take(weights, order)
    below, mass = (ops.cumsum(y, 0) - y for y in (w * x, w))
    total = (1 - alpha) * mass + alpha * (ops.sum(w) - mass)
    some = total > 0
    means = ((1 - alpha) * below + alpha * (ops.sum(w * x) - below)) / ops.where(some, total, 1.0)
    high, low = ops.max(ops.where(some, means, -math.inf)), ops.min(ops.where(some, means, math.inf))
    found = ops.where(alpha >= 0.5, high, low)
    return ops.where(ops.any(ops.isnan(a)), math.nan, found)


__all__ = ["expectile", "iqr", "median_abs_deviation", "mode", "rankdata"]
