"""The binomial distribution, and the Bernoulli distribution of one trial."""

from __future__ import annotations

from ..._formulas import exp, log_binomial, log_choose, power, sqrt, times_log, times_log1m, where
from ...special.incomplete import BETA
from ._arguments import both
from ._discrete import Discrete, is_count, is_part


class _Binom(Discrete):
    """Binomial distribution: successes of probability ``p`` in ``n`` trials."""

    whole = counts = ("n",)

    def _support(self, n, p):
        return 0.0, n

    def _valid(self, n, p):
        return both(is_count(n), is_part(p))

    def _logpmf(self, k, n, p):
        return log_binomial(k, n - k, p)

    inside = (1.0, 2.0, 0.5)

    def _bases(self, k, n, p):
        return p, 1 - p

    def _power_density(self, k, n, p):
        return power(p, k) * power(1 - p, n - k) * exp(log_choose(k, n - k))

    def _tail(self, k, lower, log, n, p):
        return BETA[not lower, log](k + 1, n - k, p)

    def _stats(self, n, p):
        q = 1 - p
        return n * p, n * p * q, (q - p) / sqrt(n * p * q), (1 - 6 * p * q) / (n * p * q)


class _Bernoulli(Discrete):
    """Bernoulli distribution: 1 with the probability ``p``, else 0."""

    support_ = (0.0, 1.0)

    def _valid(self, p):
        return is_part(p)

    def _inner(self, p):
        return 1.0  # at 1 the tail has the power 0, and so a slope even if its base is 0

    inside = (1.0, 0.5)

    def _logpmf(self, k, p):
        return times_log(k, p) + times_log1m(1 - k, p)

    def _density_from_log(self, log_of, k, shapes):
        (p,) = shapes
        return k * p + (1 - k) * (1 - p)

    def _tail(self, k, lower, as_log, p):
        if as_log:
            return times_log1m(1 - k, p) if lower else times_log(1 - k, p)
        return (1 - p if lower else p) + 0 * k

    def _quantile(self, q, lower, log, *shapes):
        if log:
            return super()._quantile(q, lower, log, *shapes)
        (p,) = shapes
        none = (q <= 1 - p) & (q < 1) if lower else (q >= p) & (q > 0)
        return where(q == (0.0 if lower else 1.0), -1.0, where(none, 0.0, 1.0)) + 0 * (q + p)

    def _stats(self, p):
        return binom._stats(1, p)

    def _entropy(self, p):
        return -times_log(p, p) - times_log1m(1 - p, p)


bernoulli = _Bernoulli("bernoulli", "p")

binom = _Binom("binom", "n, p")

__all__ = ["bernoulli", "binom"]
