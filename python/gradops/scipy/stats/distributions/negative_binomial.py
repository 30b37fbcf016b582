"""The negative binomial distribution, and the geometric distribution."""

from __future__ import annotations

import math

from ..._formulas import exp, log, log1p, log_binomial, log_choose, power, refined, sqrt, times_log1m
from ...special.incomplete import BETA
from ._arguments import both
from ._discrete import Discrete
from ._shared import hazard_probability


class _Nbinom(Discrete):
    """Negative binomial distribution: failures before ``n`` successes of probability ``p``; ``n`` may be any positive
    number."""

    instead = (1.0, 0.5)

    def _valid(self, n, p):
        return both(n > 0, p > 0, p <= 1)

    def _logpmf(self, k, n, p):
        return log_binomial(n, k, p) - log1p(k / n)

    inside = (1.0, 1.0, 0.5)

    def _bases(self, k, n, p):
        return (1 - p,)

    def _power_density(self, k, n, p):
        return p**n * power(1 - p, k) * exp(log_choose(n, k) - log1p(k / n))

    def _tail(self, k, lower, log, n, p):
        return BETA[lower, log](n, k + 1, p)

    def _stats(self, n, p):
        q = 1 - p
        return n * q / p, n * q / (p * p), (2 - p) / sqrt(n * q), 6 / n + p * p / (n * q)


class _Geom(Discrete):
    """Geometric distribution: trials up to the first success, of probability ``p``."""

    support_ = (1.0, math.inf)
    instead = (0.5,)

    def _valid(self, p):
        return both(p > 0, p <= 1)

    def _logpmf(self, k, p):
        return times_log1m(k - 1, p) + log(p)

    inside = (1.0, 0.5)

    def _bases(self, k, p):
        return (1 - p,)

    def _power_density(self, k, p):
        return p * power(1 - p, k - 1)

    def _tail(self, k, lower, as_log, p):
        if as_log and not lower:
            return times_log1m(k, p)

        def tail_at_one(of):
            upper = power(1 - of(p, 0.5), of(k, 1.0))
            value = 1 - upper if lower else upper
            return log(value) if as_log else value

        return refined(
            p + 0 * k == 1,
            tail_at_one,
            lambda of: hazard_probability(-times_log1m(of(k, 1.0), of(p, 0.5)), lower, as_log),
        )

    def _stats(self, p):
        q = 1 - p
        return 1 / p, q / (p * p), (2 - p) / sqrt(q), 6 + p * p / q

    def _entropy(self, p):
        return -log(p) - times_log1m(1 - p, p) / p


geom = _Geom("geom", "p")

nbinom = _Nbinom("nbinom", "n, p")

__all__ = ["geom", "nbinom"]
