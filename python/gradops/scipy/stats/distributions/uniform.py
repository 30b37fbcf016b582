"""Uniform distributions of real numbers, of integers, and of logarithms."""

from __future__ import annotations

import math

from ..._formulas import choose, exp, log, log1p
from ._arguments import both
from ._discrete import Discrete, is_whole
from ._family import Continuous
from ._shared import plain, standardized_moments


class _Uniform(Continuous):
    """Uniform distribution on the interval from ``loc`` to ``loc + scale``."""

    support_ = (0.0, 1.0)

    def _logpdf(self, z):
        return 0 * z

    def _steep(self):
        return False, False

    def _tail(self, z, lower, as_log):
        if as_log:
            return log(z) if lower else log1p(-z)
        return z if lower else 1 - z

    def _quantile(self, p, lower, log):
        p, q = plain(p, log)
        return p if lower else q

    def _stats(self):
        return 0.5, 1 / 12, 0.0, -1.2

    def _entropy(self):
        return 0.0


class _Randint(Discrete):
    """Uniform distribution of the integers from ``low`` to ``high - 1``."""

    whole = ("low", "high")
    instead = (0.0, 1.0)

    def _support(self, low, high):
        return low, high - 1

    def _valid(self, low, high):
        return both(high > low, is_whole(low), is_whole(high))

    def _logpmf(self, k, low, high):
        return 0 * k - log(high - low)

    def _tail(self, k, lower, as_log, low, high):
        value = (k - low + 1 if lower else high - 1 - k) / (high - low)
        return log(value) if as_log else value

    def _stats(self, low, high):
        d = high - low
        square = d * d
        return (low + high - 1) / 2, (square - 1) / 12, 0 * d, -1.2 * (square + 1) / (square - 1)

    def _entropy(self, low, high):
        return log(high - low)


class _Loguniform(Continuous):
    """Log-uniform distribution: the exponential of a uniform variable, between ``a`` and ``b``."""

    instead = (1.0, 2.0)

    def _support(self, a, b):
        return a, b

    def _valid(self, a, b):
        return both(a > 0, b > a, b < math.inf)

    def _inner(self, a, b):
        return a + (b - a) / 2

    def _logpdf(self, z, a, b):
        return -log(z) - log(log(b / a))

    def _steep(self, *shapes):
        return False, False

    def _tail(self, z, lower, as_log, a, b):
        part = (log(z / a) if lower else log(b / z)) / log(b / a)
        return log(part) if as_log else part

    def _quantile(self, p, lower, as_log, a, b):
        p, q = plain(p, as_log)
        p, q = (p, q) if lower else (q, p)
        whole = log(b / a)
        return choose(p < 0.5, lambda of: a * exp(of(p, 0.5) * whole), lambda of: b * exp(-of(q, 0.5) * whole))

    def _stats(self, a, b):
        whole = log(b / a)
        return standardized_moments(*[(b**n - a**n) / (n * whole) for n in (1, 2, 3, 4)])

    def _entropy(self, a, b):
        return (log(a) + log(b)) / 2 + log(log(b / a))


uniform = _Uniform("uniform")

randint = _Randint("randint", "low, high")

loguniform = _Loguniform("loguniform", "a, b")

reciprocal = _Loguniform("reciprocal", "a, b")

__all__ = ["loguniform", "randint", "reciprocal", "uniform"]
