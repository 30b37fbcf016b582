"""Families of whole numbers by their powers."""

from __future__ import annotations

import math

from .. import special
from .._formulas import choose, complement, exp, log, log1p, log_complement
from ..special import incomplete
from ..special.zetas import zeta_slope
from ._arguments import both
from ._discrete import Discrete, is_whole
from ._sums import power_sum
from ._tails import of_raw_moments
from .hazards import finite


class _Zipf(Discrete):
    """Zipf's distribution: of ``k**-a``."""

    support_ = (1.0, math.inf)
    instead = (2.0,)

    def _valid(self, a):
        return a > 1

    def _logpmf(self, k, a):
        return -a * log(k) - log1p(special.zetac(a))

    def _tail(self, k, lower, as_log, a):
        whole = special.zeta(a, 1.0)
        return _of_pair(power_sum(1.0 + 0 * k, k, a) / whole, special.zeta(a, k + 1) / whole, lower, as_log)

    def _stats(self, a):
        one, two, three, four = [
            finite(a > n + 1, lambda a, n=n: special.zeta(a - n, 1.0) / special.zeta(a, 1.0), a, math.inf)
            for n in (1, 2, 3, 4)
        ]
        return of_raw_moments(one, two, three, four)

    def _entropy(self, a):
        whole = special.zeta(a, 1.0)
        return log(whole) - a * zeta_slope(a, 1.0) / whole


def _of_pair(below, above, lower: bool, as_log: bool):
    """A tail, of both: the larger one by the smaller, as its slopes are those with the other sign."""
    own, other = (below, above) if lower else (above, below)
    if not as_log:
        return choose(own < 0.5, lambda of: of(own, 0.25), lambda of: 1 - of(other, 0.25))
    return choose(own < 0.5, lambda of: log(of(own, 0.25)), lambda of: log1p(-of(other, 0.25)))


class _Zipfian(Discrete):
    """Zipf's distribution up to ``n``, of any ``a`` from 0 on."""

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
        return _of_pair(power_sum(one, k, a) / whole, power_sum(k + 1, n, a) / whole, lower, as_log)

    def _stats(self, a, n):
        one = 1.0 + 0 * n
        whole = power_sum(one, n, a)
        return of_raw_moments(*[power_sum(one, n, a - i) / whole for i in (1, 2, 3, 4)])


class _Logser(Discrete):
    """Logarithmic series distribution: of ``p**k / k``."""

    support_ = (1.0, math.inf)
    instead = (0.5,)

    def _valid(self, p):
        return both(p > 0, p < 1)

    def _logpmf(self, k, p):
        return k * log(p) - log(k) - log(-log1p(-p))

    def _tail(self, k, lower, as_log, p):
        """The tail by the incomplete beta function of a second shape that is all but 0."""
        tiny = 1e-30
        upper = incomplete.log_betainc(k + 1, tiny, p) - math.log(tiny) - log(-log1p(-p))
        if as_log:
            return log_complement(upper) if lower else upper
        return complement(upper) if lower else exp(upper)

    def _stats(self, p):
        q, size = 1 - p, -1 / log1p(-p)
        one, two, three = size * p / q, size * p / (q * q), size * p * (1 + p) / q**3
        return of_raw_moments(one, two, three, size * p * (1 + 4 * p + p * p) / q**4)


logser = _Logser("logser", "p")
zipf = _Zipf("zipf", "a")
zipfian = _Zipfian("zipfian", "a, n")

__all__ = ["logser", "zipf", "zipfian"]
