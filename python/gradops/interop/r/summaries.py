"""R's summaries of tensors: variances divide by one less than their count, matrices are of columns."""

from __future__ import annotations

import math

import numpy as np

from ... import ops
from ...errors import ArgumentError, ShapeError
from ...ops._compose import beside
from ...scipy._tensors import floating
from .arrays import beside_each_other, flat

FUZZ = 4 * 2.0**-52
CONTINUOUS = {4: (0, 1), 5: (0.5, 0.5), 6: (0, 0), 7: (1, 1), 8: (1 / 3, 1 / 3), 9: (3 / 8, 3 / 8)}
"""Of the types of quantiles from 4 on: ``a`` and ``b`` of Hyndman and Fan (1996)."""


def weighted_mean(x, w, na_rm: bool):
    x, w = map(flat, beside_each_other(x, w))
    if na_rm:
        missing = ops.isnan(x)
        x, w = (ops.where(missing, 0.0, v) for v in (x, w))
    return ops.sum(x * w) / ops.sum(w)


def quantile(x, probs, kind: float, na_rm: bool):
    """The quantiles by one of the nine types, all of which weigh two neighbours in order."""
    x = ops.sort(floating(flat(x))[0])
    missing = ops.isnan(x)
    n = ops.cast(ops.sum(ops.logical_not(missing)), "float64") if na_rm else float(x.shape[0])
    probs = ops.cast(probs, "float64")
    low, weight = _discrete(n, probs, kind) if kind <= 3 else _continuous(n, probs, *CONTINUOUS[int(kind)])

    def at(place):
        return ops.take(x, ops.cast(ops.clip(place, 1, n) - 1, "int64"), 0)

    weight, first = beside(weight, x), at(low)
    between = ops.where(weight == 0, first, first + weight * (at(low + 1) - first))  # an infinite one may weigh nothing
    return between if na_rm else ops.where(ops.any(missing), math.nan, between)


def _discrete(n, probs, kind: float):
    place = n * probs - (0.5 if kind == 3 else 0.0)
    low = ops.floor(place + FUZZ)
    if kind == 3:
        return low, ops.where((place != low) | (low % 2 == 1), 1.0, 0.0)
    return low, ops.where(place > low, 1.0, 0.5 * (kind - 1))


def _continuous(n, probs, a: float, b: float):
    place = a + probs * (n + 1 - a - b)
    low = ops.floor(place + FUZZ)
    return low, ops.where(ops.abs(place - low) < FUZZ, 0.0, place - low)


def variance(x):
    """The variance of the elements that are not missing."""
    return ops.nanvar(x) * _correction(x)


def deviation(x, na_rm: bool):
    """The square root of the variance, whose gradient is 0, not NaN, where all elements are equal."""
    return (ops.nanstd if na_rm else ops.std)(x) * ops.sqrt(_correction(x, na_rm))


def _correction(x, na_rm: bool = True):
    n = ops.sum(ops.where(ops.isnan(x), 0.0, 1.0)) if na_rm else ops.sum(ops.ones_like(floating(x)[0]))
    return n / (n - 1)


def covariance(x, y=None, unit: bool = False):
    """The covariances of columns; for two vectors a number.

    Args:
        unit: of columns of length 1, whose covariances are correlations.
    """
    given = [_vector_or_matrix(v) for v in (x, y) if v is not None]
    vectors = all(len(v.shape) == 1 for v in given)
    first = last = _centred(given[0], unit)
    if len(given) > 1:
        last = _centred(given[1], unit)
    n = int(first.shape[0])
    if n != last.shape[0]:
        raise ShapeError(f"`x` and `y` must have equally many rows; got {n} and {last.shape[0]}.", argument="y")
    value = ops.matmul(ops.transpose(first), last)
    if not unit:
        value = value / beside(max(n - 1, 0), value)
    elif n == 0:
        value = value / beside(0.0, value)  # NaN, for R's NA
    return ops.reshape(value, ()) if vectors else value


def _vector_or_matrix(x):
    x = floating(x)[0]
    return x if len(x.shape) == 2 else flat(x)


def _centred(x, unit: bool):
    x = ops.reshape(x, (-1, 1)) if len(x.shape) == 1 else x
    x = x - ops.mean(x, 0, True)
    return x / ops.sqrt(ops.sum(ops.square(x), 0, True)) if unit else x


def cov2cor(V):
    V = floating(V)[0]
    unit = 1 / ops.sqrt(ops.diagonal(V))
    found = V * ops.expand_dims(unit, 1) * ops.expand_dims(unit, 0)
    return ops.where(np.eye(V.shape[0]) == 1, 1.0, found)


def scaled(x, center, scale):
    """Columns less their means, or ``center``, by their root mean squares, or ``scale``; False leaves either out."""
    (x,) = floating(x)
    x = ops.reshape(x, (-1, 1)) if len(x.shape) < 2 else x
    if center is not False:
        x = x - (ops.mean(x, 0) if center is True else _for_columns(center, x))
    if scale is not False:
        size = ops.sqrt(ops.sum(ops.square(x), 0) / max(1, int(x.shape[0]) - 1))
        x = x / (size if scale is True else _for_columns(scale, x))
    return x


def _for_columns(value, x):
    value = flat(floating(value)[0])
    if value.shape[0] != x.shape[1]:
        raise ArgumentError("`center` and `scale` must have one number for each column.", argument="center")
    return beside(value, x)
