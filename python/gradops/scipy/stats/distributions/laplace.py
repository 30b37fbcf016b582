"""The Laplace and discrete Laplace distributions."""

from __future__ import annotations

from .... import ops
from ..._formulas import absolute, choose, exp, expm1, log1p, log_complement, tail_probability, where
from ._discrete import Discrete
from ._family import INFINITE, Continuous
from ._shared import LOG_2, log_tails


class _Laplace(Continuous):
    """Laplace distribution."""

    def _logpdf(self, z):
        return -ops.abs(z) - LOG_2

    def _tail(self, z, lower, as_log):
        z = z if lower else -z
        if as_log:
            return choose(z < 0, lambda of: of(z, -1.0) - LOG_2, lambda of: log1p(exp(-of(z, 1.0)) * -0.5))
        return choose(z < 0, lambda of: exp(of(z, -1.0)) / 2, lambda of: 1 - exp(-of(z, 1.0)) / 2)

    def _quantile(self, p, lower, as_log):
        own, other = log_tails(p, as_log)
        z = choose(own < -LOG_2, lambda of: of(own, -1.0) + LOG_2, lambda of: -LOG_2 - of(other, -1.0))
        return z if lower else -z

    def _stats(self):
        return 0.0, 2.0, 0.0, 3.0

    def _entropy(self):
        return LOG_2 + 1


class _Dlaplace(Discrete):
    """Discrete Laplace distribution of the rate ``a``."""

    support_ = INFINITE

    def _logpmf(self, k, a):
        return log_complement(-a) - log1p(exp(-a)) - a * absolute(k)

    def _tail(self, k, lower, as_log, a):
        low = k < 0
        value = -a * where(low, -k, k + 1) - log1p(exp(-a))
        return tail_probability(low, value, lower, as_log)

    def _stats(self, a):
        e = expm1(a)
        var = 2 * exp(a) / (e * e)
        return 0 * a, var, 0 * a, (exp(a) + 10 + exp(-a)) / 2 - 3

    def _entropy(self, a):
        return 2 * a * exp(-a) / (-expm1(-2 * a)) - log_complement(-a) + log1p(exp(-a))


laplace = _Laplace("laplace")

dlaplace = _Dlaplace("dlaplace", "a")

__all__ = ["dlaplace", "laplace"]
