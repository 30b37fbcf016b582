"""Zipf's distribution on all positive integers, and up to a largest one."""

from __future__ import annotations

import math

import numpy as np

from .... import ops
from ... import special
from ..._formulas import choose, exp, log, log1p, where
from ..._tensors import constant_like
from ...special.zetas import zeta_slope
from ._arguments import both
from ._discrete import Discrete, is_whole
from ._shared import exprel, finite, standardized_moments

_FIRST = np.arange(20.0)

_BERNOULLI = [1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160, -691 / 1307674368000, 1 / 74724249600]


def power_sum(first, last, a):
    """Return the sum of ``j**-a`` for j from ``first`` to ``last``, positive tensors of integers.

    Twenty terms are added; the rest uses the Euler-Maclaurin formula.
    """
    first, last, a = first + 0 * last + 0 * a, last + 0 * first + 0 * a, a + 0 * first + 0 * last
    j = ops.expand_dims(first, -1) + constant_like(_FIRST, first)
    inside = j <= ops.expand_dims(last, -1)
    total = ops.sum(where(inside, exp(-ops.expand_dims(a, -1) * log(where(inside, j, 1.0))), 0.0), -1)

    def rest(of):
        start, end, power = of(first, 1.0) + 20.0, of(last, 30.0), of(a, 1.0)
        rise = log(end / start)
        low, high = exp(-power * log(start)), exp(-power * log(end))
        value = start * low * rise * exprel((1 - power) * rise) + (low + high) / 2
        rising = power
        for k, weight in enumerate(_BERNOULLI):
            low, high = low / start, high / end
            value = value + weight * rising * (low - high)
            low, high, rising = low / start, high / end, rising * (power + 2 * k + 1) * (power + 2 * k + 2)
        return value

    return total + choose(last >= first + 20, rest, lambda of: 0 * of(a, 0.0))


class _Zipf(Discrete):
    """Zipf's distribution: probabilities proportional to ``k**-a``."""

    support_ = (1.0, math.inf)
    instead = (2.0,)

    def _valid(self, a):
        return a > 1

    def _logpmf(self, k, a):
        return -a * log(k) - log1p(special.zetac(a))

    def _tail(self, k, lower, as_log, a):
        whole = special.zeta(a, 1.0)
        return _tail_from_pair(power_sum(1.0 + 0 * k, k, a) / whole, special.zeta(a, k + 1) / whole, lower, as_log)

    def _stats(self, a):
        one, two, three, four = [
            finite(a > n + 1, lambda a, n=n: special.zeta(a - n, 1.0) / special.zeta(a, 1.0), a, math.inf)
            for n in (1, 2, 3, 4)
        ]
        return standardized_moments(one, two, three, four)

    def _entropy(self, a):
        whole = special.zeta(a, 1.0)
        return log(whole) - a * zeta_slope(a, 1.0) / whole


def _tail_from_pair(below, above, lower: bool, as_log: bool):
    """Return a tail; the larger of both is 1 minus the smaller, so that derivatives are accurate."""
    own, other = (below, above) if lower else (above, below)
    if not as_log:
        return choose(own < 0.5, lambda of: of(own, 0.25), lambda of: 1 - of(other, 0.25))
    return choose(own < 0.5, lambda of: log(of(own, 0.25)), lambda of: log1p(-of(other, 0.25)))


class _Zipfian(Discrete):
    """Zipf's distribution up to ``n``, for any nonnegative ``a``."""

    whole = ("n",)

    def _support(self, a, n):
        return 1.0, n

    def _valid(self, a, n):
        return both(a >= 0, a < math.inf, n >= 1, is_whole(n))

    def _logpmf(self, k, a, n):
        return -a * log(k) - log1p(power_sum(2.0 + 0 * n, n, a))

    def _tail(self, k, lower, as_log, a, n):
        one = 1.0 + 0 * (k + n)
        whole = power_sum(one, n, a)
        return _tail_from_pair(power_sum(one, k, a) / whole, power_sum(k + 1, n, a) / whole, lower, as_log)

    def _stats(self, a, n):
        one = 1.0 + 0 * n
        whole = power_sum(one, n, a)
        return standardized_moments(*[power_sum(one, n, a - i) / whole for i in (1, 2, 3, 4)])


zipf = _Zipf("zipf", "a")

zipfian = _Zipfian("zipfian", "a, n")

__all__ = ["zipf", "zipfian"]
