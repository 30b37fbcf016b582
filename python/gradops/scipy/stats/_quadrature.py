"""Means of functions of a random variable, and inverses of distribution functions, where no formula gives them."""

from __future__ import annotations

import math

import numpy as np

from ... import ops
from ...annotations import Operand, Tensor
from ...extend import derivative
from ...ops._compose import NUMBERS
from .._define import ufunc
from .._formulas import choose, exp, sqrt, where
from .._tensors import beside
from ._tails import LOG_2, log_tails

_T = 0.1 * (np.arange(56) + 0.5)
_ODDS = np.exp(-math.pi * np.sinh(_T))
_P = _ODDS / (1 + _ODDS)
_W = 0.1 * math.pi * np.cosh(_T) * _ODDS / (1 + _ODDS) ** 2


def expectation(quantile, function, shapes):
    """The mean of ``function(z, *shapes)``, z = ``quantile(p, lower, *shapes)``, by the double exponential rule.

    The nodes are those of Takahasi and Mori (1974) on (0, 1), of which each half keeps the digits of its tail.
    """
    like = next((v for v in shapes if type(v) not in NUMBERS), np.zeros(()))
    columns = [v if type(v) in NUMBERS else ops.expand_dims(v, -1) for v in shapes]
    p, w = beside(_P, like), beside(_W, like)
    low, high = [function(quantile(p, lower, *columns), *columns) for lower in (True, False)]
    return ops.sum(w * (low + high), -1)


def moments(family, shapes):
    """Mean, variance, skewness and excess kurtosis."""

    def quantile(p, lower, *shapes):
        return family._quantile(p, lower, False, *shapes)

    mean = expectation(quantile, lambda z, *_: z, shapes)
    centre = ops.expand_dims(mean, -1)
    var, third, fourth = [expectation(quantile, lambda z, *_, n=n: (z - centre) ** n, shapes) for n in (2, 3, 4)]
    return mean, var, third / (var * sqrt(var)), fourth / (var * var) - 3


# Inverses -------------------------------------------------------------------------------------------------------------


def _solve(family, lower: bool):
    """On the host: where the logarithm of a tail of ``family`` is ``p``, by Newton's method within a bracket."""
    positive = family.support_[0] == 0
    sign = 1 if lower else -1

    def place(u):
        return np.exp(u) if positive else u

    def solve(p, shape):
        dtype = p.dtype
        p, shape = [v.astype("float64").ravel() for v in np.broadcast_arrays(p, shape)]
        size = np.broadcast_shapes(p.shape, shape.shape)
        found = np.full(size, np.nan)
        good = (p > -np.inf) & (p <= 0) & np.asarray(family._valid(shape))
        with np.errstate(all="ignore"):
            found[good] = inside(p[good], shape[good])
        return found.astype(dtype)

    def inside(p, shape):
        def excess(u):
            return sign * (family._tail(place(u), lower, True, shape) - p)

        limit = family.reach
        low, high = np.full(p.shape, -1.0), np.full(p.shape, 1.0)
        for _ in range(24):
            low = np.where(excess(low) > 0, np.maximum(2 * low, -limit), low)
            high = np.where(excess(high) < 0, np.minimum(2 * high, limit), high)
        u = (low + high) / 2
        for _ in range(200):
            z = place(u)
            log_tail = family._tail(z, lower, True, shape)
            above = sign * (log_tail - p) > 0
            low, high = np.where(above, low, u), np.where(above, u, high)
            slope = sign * np.exp(family._logpdf(z, shape) - log_tail) * (z if positive else 1)
            step = (log_tail - p) / slope
            new = u - step
            new = np.where((new > low) & (new < high), new, (low + high) / 2)
            done = np.abs(new - u) <= 1e-15 * np.maximum(np.abs(u), 1e-3)
            u = new
            if done.all():
                break
        return place(u)

    def on_arrays(p, shape):
        shapes = np.broadcast_shapes(np.shape(p), np.shape(shape))
        return solve(np.asarray(p), np.asarray(shape)).reshape(shapes)

    return on_arrays


def quantile_of(family):
    """``_quantile`` of a family of one shape, of which only the tails are known.

    The solution is found as a constant. Two of Newton's steps from it, which no longer change it, have its derivatives
    to third order.
    """

    def made(lower: bool):
        name = "lower" if lower else "upper"

        def solution(p: Operand, shape: Operand) -> Tensor: ...

        solution.__qualname__ = f"_{family.name}_{name}"
        solution.__doc__ = "The place of a tail's logarithm."
        op = ufunc(_solve(family, lower))(solution)
        derivative(op, p=lambda g: 0 * g, shape=lambda g: 0 * g)
        return op

    ops_by_side = {lower: made(lower) for lower in (True, False)}

    def by_tail(p, lower, shape):
        z = ops_by_side[lower](p, shape)
        for _ in range(2):
            log_tail = family._tail(z, lower, True, shape)
            step = (log_tail - p) * exp(log_tail - family._logpdf(z, shape))
            z = z - step if lower else z + step
        return z

    def quantile(p, lower, as_log, shape):
        own, other = log_tails(p, as_log)
        first, last = (own, other) if lower else (other, own)
        a, b = family.ends
        value = choose(
            first < -LOG_2,
            lambda of: by_tail(where(of(first, -1.0) == -math.inf, -1.0, of(first, -1.0)), True, of(shape, 1.0)),
            lambda of: by_tail(where(of(last, -0.7) == -math.inf, -0.7, of(last, -0.7)), False, of(shape, 1.0)),
        )
        return where(first == -math.inf, a, where(last == -math.inf, b, value))

    return quantile
