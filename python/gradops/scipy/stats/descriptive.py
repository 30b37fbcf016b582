"""Means, moments and scores of observations."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ... import ops
from ...annotations import Axes, DType, Operand, Tensor
from ...errors import ArgumentError
from ...ops import _checks
from ...ops._matrices import epsilon
from .._define import family
from ._samples import ARGUMENTS, RANGE, Sample, extreme, of_sample, real

__all__ = """
    describe gmean gstd gzscore hmean kstat kstatvar kurtosis moment pmean sem skew variation zmap zscore
""".split()


def _cast(a, dtype):
    return a if dtype is None else ops.cast(a, dtype)


# Means ----------------------------------------------------------------------------------------------------------------

weighted = family(
    ARGUMENTS | {"dtype": "to which ``a`` is cast before.", "weights": "of ``a``'s shape, or a vector along ``axis``."},
    returns="A tensor of ``a``'s shape without ``axis``, of its floating dtype.",
    raises=f"{RANGE}\nShapeError: weights that do not fit.",
    gradient="By ``a`` and ``weights``, of the formula.",
)


@weighted
def gmean(
    a: Tensor, axis: Axes = 0, dtype: DType = None, weights: Tensor = None, *, nan_policy="propagate", keepdims=False
) -> Tensor:
    """Geometric mean, ``exp(mean(log(a)))``."""
    sample = Sample("gmean", _cast(a, dtype), axis, nan_policy, keepdims, weights)
    return sample.result(ops.exp(sample.mean(ops.log(sample.x))))


def _not_negative(x):
    return ops.where(x < 0, np.nan, x)


@weighted
def hmean(
    a: Tensor, axis: Axes = 0, dtype: DType = None, *, weights: Tensor = None, nan_policy="propagate", keepdims=False
) -> Tensor:
    """Harmonic mean, ``1 / mean(1 / a)``: 0 if an element is 0, NaN if one is negative."""
    sample = Sample("hmean", _cast(a, dtype), axis, nan_policy, keepdims, weights)
    return sample.result(1 / sample.mean(1 / _not_negative(sample.x)))


@weighted
def pmean(
    a: Tensor, p: Operand, *, axis: Axes = 0, dtype: DType = None, weights: Tensor = None, nan_policy="propagate",
    keepdims=False,
) -> Tensor:  # fmt: skip
    """Power mean, ``mean(a**p)**(1 / p)``: the geometric mean for ``p`` 0; NaN if an element is negative.

    Args:
        p: a finite number.

    Raises:
        ShapeError: a ``p`` with dimensions.
        ArgumentError: an infinite ``p``.

    Gradient:
        By ``a``, ``weights`` and ``p``, of the formula; by a ``p`` of 0 that is a tensor NaN.
    """
    values = _checks.known(p)
    if values is not None and not (values.ndim == 0 and values.dtype.kind in "iuf" and np.isfinite(values)):
        raise ArgumentError("`scipy.stats.pmean`: `p` must be a finite real number.", argument="p")
    if values is not None and values == 0:
        return gmean(a, axis, dtype, weights, nan_policy=nan_policy, keepdims=keepdims)
    if ops.is_tensor(p):
        a, p = real("scipy.stats.pmean", a=_cast(a, dtype), p=p)
    sample = Sample("pmean", _cast(a, dtype), axis, nan_policy, keepdims, weights)
    return sample.result(sample.mean(_not_negative(sample.x) ** p) ** (1 / p))


# Moments --------------------------------------------------------------------------------------------------------------


@of_sample
def moment(
    a: Tensor, order: Any = 1, axis: Axes = 0, nan_policy="propagate", *, center: Tensor = None, keepdims=False
) -> Tensor:
    """Moment about the mean, or about ``center``: the mean of ``(a - center)**order``.

    Args:
        order: an integer, or several, whose moments are stacked along a new first dimension.
        center: a number, or a tensor without dimensions.

    Raises:
        ArgumentError: an ``order`` that is not a whole number, or is negative.

    Gradient:
        By ``a`` and ``center``, of the formula.
    """
    orders = np.asarray(order)
    if orders.dtype.kind not in "iuf" or orders.ndim > 1 or not orders.size or np.any((orders % 1 != 0) | (orders < 0)):
        raise ArgumentError("`scipy.stats.moment`: `order` must be whole numbers from 0 on.", argument="order")
    sample = Sample("moment", a, axis, nan_policy, keepdims)
    if center is not None:
        center = real("scipy.stats.moment", a=sample.x, center=center)[1]
        if len(center.shape):
            raise ArgumentError("`scipy.stats.moment`: `center` must be one number.", argument="center")
    found = [sample.result(_moment(sample, int(k), center)) for k in orders.reshape(-1)]
    return ops.stack(found) if orders.ndim else found[0]


def _moment(sample, order, center):
    if order == 0:
        return 0 * sample.mean() + 1
    return 0 * sample.mean() if order == 1 and center is None else sample.moment(order, center)


def _squared(sample):
    """Return the variance, and where it is not 0."""
    m2 = sample.moment(2)
    constant = m2 <= ops.square(epsilon(m2) * sample.mean())
    return m2, constant


def _corrected(value, other, n, least):
    """Return the unbiased estimate ``other`` where there are more than ``least`` observations."""
    if isinstance(n, int):
        return other(n) if n > least else value
    enough = n > least
    return ops.where(enough, other(ops.where(enough, n, least + 1.0)), value)


def _skew(sample, bias):
    m2, constant = _squared(sample)
    ratio = sample.moment(3) / ops.where(constant, np.nan, m2) ** 1.5
    return ratio if bias else _corrected(ratio, lambda n: ((n - 1) * n) ** 0.5 / (n - 2) * ratio, sample.n, 2)


def _kurtosis(sample, fisher, bias):
    m2, constant = _squared(sample)
    ratio = sample.moment(4) / ops.square(ops.where(constant, np.nan, m2))
    if not bias:
        ratio = _corrected(
            ratio, lambda n: ((n * n - 1) * ratio - 3 * (n - 1) ** 2) / ((n - 2) * (n - 3)) + 3, sample.n, 3
        )
    return ratio - 3 if fisher else ratio


@of_sample
def skew(a: Tensor, axis: Axes = 0, bias=True, nan_policy="propagate", *, keepdims=False) -> Tensor:
    """Skewness: the third central moment divided by the cubed standard deviation.

    Returns:
        A tensor of ``a``'s shape without ``axis``; NaN where all elements are equal.
    """
    sample = Sample("skew", a, axis, nan_policy, keepdims)
    return sample.result(_skew(sample, bias))


@of_sample
def kurtosis(a: Tensor, axis: Axes = 0, fisher=True, bias=True, nan_policy="propagate", *, keepdims=False) -> Tensor:
    """Kurtosis: the fourth central moment divided by the squared variance, minus 3 with ``fisher``.

    Returns:
        A tensor of ``a``'s shape without ``axis``; NaN where all elements are equal.
    """
    sample = Sample("kurtosis", a, axis, nan_policy, keepdims)
    return sample.result(_kurtosis(sample, fisher, bias))


class DescribeResult(NamedTuple):
    """The result of :func:`describe`."""

    nobs: Any
    minmax: Any
    mean: Any
    variance: Any
    skewness: Any
    kurtosis: Any


@of_sample
def describe(a: Tensor, axis: Axes = 0, ddof: Operand = 1, bias=True, nan_policy="propagate"):
    """Count, extremes, mean, variance, skewness and kurtosis.

    Args:
        bias: False for unbiased skewness and kurtosis.

    Returns:
        A named tuple ``nobs``, ``minmax``, a pair, ``mean``, ``variance``, ``skewness`` and ``kurtosis``, of tensors of
        ``a``'s shape without ``axis``; ``nobs`` is one integer if all elements count.

    Gradient:
        The formulas'.
    """
    sample = Sample("describe", a, axis, nan_policy)
    n = sample.n if sample.mask is None else ops.cast(sample.result(sample.n), "int64")
    low, high = extreme(sample, ops.min, np.inf), extreme(sample, ops.max, -np.inf)
    found = (sample.mean(), sample.var(ddof), _skew(sample, bias), _kurtosis(sample, True, bias))
    return DescribeResult(n, (sample.result(low), sample.result(high)), *map(sample.result, found))


@of_sample
def kstat(data: Tensor, n: Any = 2, *, axis: Axes = None, nan_policy="propagate", keepdims=False) -> Tensor:
    """K-statistic: the symmetric unbiased estimate of the ``n``-th cumulant.

    Args:
        n: from 1 to 4.

    Raises:
        ArgumentError: another ``n``.
    """
    _checks.choice("scipy.stats.kstat", n, (1, 2, 3, 4), "n")
    sample = Sample("kstat", data, axis, nan_policy, keepdims, name="data")
    return sample.result(_kstat(sample, n))


def _kstat(sample, order):
    """Return the k-statistic from central moments, which do not cancel as sums of powers do."""
    n = sample.n
    if order == 1:
        return sample.mean()
    if isinstance(n, int) and n < order:
        return sample.mean() * np.nan
    m2 = sample.moment(2)
    if order == 2:
        return m2 * n / (n - 1)
    if order == 3:
        return sample.moment(3) * n * n / ((n - 1) * (n - 2))
    scale = n * n / ((n - 1) * (n - 2) * (n - 3))
    return ((n + 1) * sample.moment(4) - 3 * (n - 1) * m2 * m2) * scale


@of_sample
def kstatvar(data: Tensor, n: Any = 2, *, axis: Axes = None, nan_policy="propagate", keepdims=False) -> Tensor:
    """Unbiased estimate of the variance of :func:`kstat`.

    Args:
        n: 1 or 2.

    Raises:
        ArgumentError: another ``n``.
    """
    _checks.choice("scipy.stats.kstatvar", n, (1, 2), "n")
    sample = Sample("kstatvar", data, axis, nan_policy, keepdims, name="data")
    count, k2 = sample.n, _kstat(sample, 2)
    if n == 1:
        return sample.result(k2 / count)
    return sample.result((2 * count * k2 * k2 + (count - 1) * _kstat(sample, 4)) / (count * (count + 1)))


# Spread and scores ----------------------------------------------------------------------------------------------------


@of_sample
def sem(a: Tensor, axis: Axes = 0, ddof: Operand = 1, nan_policy="propagate", *, keepdims=False) -> Tensor:
    """Standard error of the mean: the standard deviation divided by the square root of the count.

    Gradient:
        Of the formula; 0 where all elements are equal.
    """
    sample = Sample("sem", a, axis, nan_policy, keepdims)
    return sample.result(sample.std(ddof) / sample.n**0.5)


@of_sample
def variation(a: Tensor, axis: Axes = 0, nan_policy="propagate", ddof: Operand = 0, *, keepdims=False) -> Tensor:
    """Coefficient of variation: the standard deviation divided by the mean.

    Returns:
        A tensor of ``a``'s shape without ``axis``; infinite with the mean's sign if ``ddof`` equals the count.

    Gradient:
        Of the formula; 0 where all elements are equal.
    """
    sample = Sample("variation", a, axis, nan_policy, keepdims)
    mean, none = sample.mean(), sample.n - ddof == 0
    value = sample.std(ddof) / mean
    if none is not False:
        value = ops.where(none & (sample.var() > 0), ops.sign(mean) * np.inf, value)
    return sample.result(value)


@of_sample
def gstd(a: Tensor, axis: Axes = 0, ddof: Operand = 1, *, keepdims=False, nan_policy="propagate") -> Tensor:
    """Geometric standard deviation: ``exp`` of the standard deviation of the logarithms."""
    sample = Sample("gstd", a, axis, nan_policy, keepdims)
    sample.x = ops.log(sample.x)
    return sample.result(ops.exp(sample.std(ddof)))


def _scores(function, scores, compare, axis, ddof, nan_policy, same):
    sample = Sample(function, compare, axis, nan_policy, True, name="a" if same else "compare")
    mean, std = sample.result(sample.mean()), sample.result(sample.std(ddof))
    if same:
        constant = std <= ops.abs(epsilon(std) * mean)
        std = ops.where(constant, np.nan, std)
    lost = ops.isnan(scores)
    return ops.where(lost, np.nan, (ops.where(lost, 1.0, scores) - mean) / std)


@of_sample
def zmap(scores: Tensor, compare: Tensor, axis: Axes = 0, ddof: Operand = 0, nan_policy="propagate") -> Tensor:
    """Distances of ``scores`` from the mean of ``compare``, in standard deviations of ``compare``.

    Args:
        nan_policy: ``"propagate"``, ``"omit"`` or ``"raise"``, of ``compare``.

    Returns:
        A tensor of the shape that ``scores`` and ``compare`` without ``axis`` broadcast to.

    Raises:
        ShapeError: shapes that do not broadcast.

    Gradient:
        By both, of the formula.
    """
    same = scores is compare
    scores, compare = real("scipy.stats.zmap", scores=scores, compare=compare)
    return _scores("zmap", scores, compare, axis, ddof, nan_policy, same)


@of_sample
def zscore(a: Tensor, axis: Axes = 0, ddof: Operand = 0, nan_policy="propagate") -> Tensor:
    """Distances from the mean in standard deviations.

    Returns:
        A tensor of ``a``'s shape; NaN where all elements are equal.
    """
    (a,) = real("scipy.stats.zscore", a=a)
    return _scores("zscore", a, a, axis, ddof, nan_policy, True)


@of_sample
def gzscore(a: Tensor, *, axis: Axes = 0, ddof: Operand = 0, nan_policy="propagate") -> Tensor:
    """:func:`zscore` of the logarithms.

    Returns:
        A tensor of ``a``'s shape; NaN where all elements are equal.
    """
    (a,) = real("scipy.stats.gzscore", a=a)
    lost = ops.isnan(a)
    a = ops.where(lost, np.nan, ops.log(ops.where(lost, 1.0, a)))
    return _scores("gzscore", a, a, axis, ddof, nan_policy, True)
