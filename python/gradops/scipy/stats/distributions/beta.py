"""The beta distribution."""

from __future__ import annotations

from ..._formulas import exp, log_beta, power, sqrt, times_log, times_log1m, usually
from ...special._tails import log_beta_density, psi_rise
from ...special.incomplete import BETA, BETA_INVERSE
from ._family import Continuous


class _Beta(Continuous):
    """Beta distribution of shapes ``a`` and ``b``."""

    support_ = (0.0, 1.0)

    def _logpdf(self, z, a, b):
        def edge(of):
            m, n, x = of(a, 1.0), of(b, 1.0), of(z, 0.0)
            return times_log(m - 1, x) + times_log1m(n - 1, x) - log_beta(m, n)

        def inside(of):
            x = of(z, 0.5)
            return log_beta_density(of(a, 1.0), of(b, 1.0), x, 1 - x)

        return usually((z > 0) & (z < 1), inside, edge)

    inside = (0.5, 1.0, 1.0)

    def _bases(self, z, a, b):
        return z, 1 - z

    def _power_density(self, z, a, b):
        return power(z, a - 1) * power(1 - z, b - 1) * exp(-log_beta(a, b))

    def _steep(self, a, b):
        return a < 1, b < 1

    def _tail(self, z, lower, log, a, b):
        return BETA[lower, log](a, b, z)

    def _quantile(self, p, lower, log, a, b):
        return BETA_INVERSE[lower, log](a, b, p)

    def _stats(self, a, b):
        whole = a + b
        mean = a / whole
        skew = 2 * (b - a) * sqrt(whole + 1) / ((whole + 2) * sqrt(a * b))
        square = (a - b) * (a - b)
        kurtosis = 6 * (square * (whole + 1) - a * b * (whole + 2)) / (a * b * (whole + 2) * (whole + 3))
        return mean, mean * (b / whole) / (whole + 1), skew, kurtosis

    def _entropy(self, a, b):
        return log_beta(a, b) + (a - 1) * psi_rise(a, b) + (b - 1) * psi_rise(b, a)


beta = _Beta("beta", "a, b")

__all__ = ["beta"]
