"""Correlation and linear regression of two samples."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ... import ops
from ...annotations import Axes, Tensor
from ...errors import ArgumentError, ShapeError
from ...ops import _checks
from .._define import family
from .._tensors import option
from ._samples import Sample, real, root
from .distributions.student_t import t

paired = family(
    raises="ShapeError: shapes that do not broadcast, fewer than two pairs.",
    gradient="By both samples, of the formulas.",
)


def _tail(statistic, df, alternative):
    """Return the p-value of a statistic with Student's t distribution."""
    student: Any = t
    if alternative == "less":
        return student.cdf(statistic, df)
    if alternative == "greater":
        return student.sf(statistic, df)
    return 2 * student.sf(ops.abs(statistic), df)


def _t_statistic(r, df):
    """Return the t statistic of a correlation, infinite for -1 and 1."""
    full = ops.abs(r) >= 1
    inner = ops.where(full, 0.0, r)
    return ops.where(full, ops.sign(r) * math.inf, inner * ops.sqrt(df / ((1 - inner) * (1 + inner))))


def _paired(function, x, y, axis, nan_policy="propagate", keepdims=False):
    """Return two samples broadcast to one shape, with observations along the last dimension."""
    x, y = real(f"scipy.stats.{function}", x=x, y=y)
    x, y = x + ops.zeros_like(y), y + ops.zeros_like(x)
    x, y = (Sample(function, z, axis, nan_policy, keepdims, omit=False, name=n) for z, n in ((x, "x"), (y, "y")))
    if x.x.shape[-1] is not None and x.x.shape[-1] < 2:
        raise ShapeError(f"`scipy.stats.{function}`: at least two pairs are needed.", argument="x")
    return x, y, x.x - x.mean(), y.x - y.mean()


ALTERNATIVES = ("two-sided", "less", "greater")


class PearsonRResult(NamedTuple):
    """The result of :func:`pearsonr`."""

    statistic: Any
    pvalue: Any


@paired
def pearsonr(x: Tensor, y: Tensor, *, alternative="two-sided", method=None, axis: Axes = 0):
    """Pearson's correlation of two samples, and its p-value for independent normal samples.

    Args:
        alternative: ``"two-sided"``, ``"less"`` or ``"greater"``.
        method: None; SciPy's resampling has no derivative.

    Returns:
        A named tuple ``statistic`` and ``pvalue``, of the shape that both broadcast to, without ``axis``; NaN where
        all elements of one are equal.

    Raises:
        AxisError: an axis out of range.
        ArgumentError: an unknown ``alternative``, a ``method``.
    """
    function = "scipy.stats.pearsonr"
    option(function, alternative, ALTERNATIVES, "alternative")
    if method is not None:
        raise ArgumentError(f"`{function}`: `method` must be None: resampling has no derivative.", argument="method")
    sample, _, dx, dy = _paired("pearsonr", x, y, axis)
    dx, dy = (d / ops.where(largest > 0, largest, math.nan) for d, largest in ((dx, _largest(dx)), (dy, _largest(dy))))
    r = ops.sum(dx * dy, -1, True) / ops.sqrt(ops.sum(dx * dx, -1, True) * ops.sum(dy * dy, -1, True))
    r = ops.clip(r, -1.0, 1.0)
    n = sample.n
    if n == 2:
        r = ops.round(r)
        p = ops.where(r == r, 1.0, r)
    else:
        p = _tail(_t_statistic(r, n - 2), n - 2, alternative)
    return PearsonRResult(sample.result(r), sample.result(p))


@paired
def pointbiserialr(x: Tensor, y: Tensor):
    """Point biserial correlation of bools with numbers, computed by :func:`pearsonr`.

    Returns:
        A named tuple ``statistic`` and ``pvalue``, of the shape that both broadcast to, without the first dimension.
    """
    return pearsonr(x, y)


def _largest(d):
    return ops.stop_gradient(ops.max(ops.abs(d), -1, True))


class _Line(NamedTuple):
    slope: Any
    intercept: Any
    rvalue: Any
    pvalue: Any
    stderr: Any


class LinregressResult(_Line):
    """The result of :func:`linregress`."""

    intercept_stderr: Any = None


@paired
def linregress(
    x: Tensor, y: Tensor, alternative="two-sided", *, axis: Axes = 0, nan_policy="propagate", keepdims=False
):
    """Fit a straight line to pairs by least squares.

    Args:
        alternative: of the slope's probability: ``"two-sided"``, ``"less"`` or ``"greater"``.
        nan_policy: ``"propagate"`` or ``"raise"``.

    Returns:
        A named tuple ``slope``, ``intercept``, ``rvalue``, the correlation, ``pvalue`` and ``stderr`` of the slope,
        with an attribute ``intercept_stderr``, of the shape that both broadcast to, without ``axis``.

    Raises:
        AxisError: an axis out of range.
        ArgumentError: an ``x`` of equal elements; an unknown ``alternative``.
    """
    function = "scipy.stats.linregress"
    option(function, alternative, ALTERNATIVES, "alternative")
    first, second, dx, dy = _paired("linregress", x, y, axis, nan_policy, keepdims)
    values = _checks.known(_largest(dx))
    if values is not None and np.any(values == 0):
        raise ArgumentError(f"`{function}`: the elements of `x` must not be equal.", argument="x")
    n = first.n
    sxx, sxy, syy = (ops.mean(z, -1, True) for z in (dx * dx, dx * dy, dy * dy))
    slope = sxy / sxx
    flat = syy == 0
    r = ops.where(flat, math.nan, ops.clip(sxy / ops.sqrt(sxx * ops.where(flat, 1.0, syy)), -1.0, 1.0))
    if n == 2:
        p, error = ops.where(second.x[..., :1] == second.x[..., 1:], 1.0, 0.0) + 0 * slope, 0 * slope
    else:
        p = _tail(_t_statistic(r, n - 2), n - 2, alternative)
        error = root((1 - r * r) * syy / sxx / (n - 2), dy - slope * dx)
    mean = first.mean()
    line = LinregressResult(*map(first.result, (slope, second.mean() - slope * mean, r, p, error)))
    line.intercept_stderr = first.result(error * ops.sqrt(sxx + mean * mean))
    return line


__all__ = ["linregress", "pearsonr", "pointbiserialr"]
