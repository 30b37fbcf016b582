"""The F distribution."""

from __future__ import annotations

import math

from ..._formulas import exp, log, log1p, log_beta, power, sqrt, times_log, where
from ...special._tails import log_f_density, psi_rise
from ...special.probabilities import F_INVERSE, F
from ._family import POSITIVE, Continuous


class _F(Continuous):
    """F distribution of ``dfn`` and ``dfd`` degrees of freedom."""

    support_ = POSITIVE

    def _inner(self, dfn, dfd):
        return 1.0

    def _logpdf(self, z, dfn, dfd):
        return log_f_density(dfn / 2, dfd / 2, z)

    inside = (1.0, 2.0, 2.0)

    def _bases(self, z, dfn, dfd):
        return (z,)

    def _power_density(self, z, dfn, dfd):
        a, b = dfn / 2, dfd / 2
        ratio = dfn / dfd
        return power(z, a - 1) * exp(times_log(a, ratio) - (a + b) * log1p(ratio * z) - log_beta(a, b))

    def _steep(self, dfn, dfd):
        return dfn < 2, True

    def _tail(self, z, lower, log, dfn, dfd):
        return F[lower, log](dfn, dfd, z)

    def _quantile(self, p, lower, log, dfn, dfd):
        return F_INVERSE[lower, log](dfn, dfd, p)

    def _stats(self, dfn, dfd):
        def var(m, n):
            return 2 * (n / (n - 2)) ** 2 * (m + n - 2) / (m * (n - 4))

        def skew(m, n):
            return 2 * (2 * m + n - 2) / (n - 6) * sqrt(2 * (n - 4) / (m * (m + n - 2)))

        def kurtosis(m, n):
            return 3 * (8 + skew(m, n) ** 2 * (n - 6)) / (2 * n - 16)

        def of(least, function, instead):
            return where(dfd > least, function(dfn, where(dfd > least, dfd, 10.0)), instead)

        return (
            of(2, lambda m, n: n / (n - 2) + 0 * m, math.inf),
            of(4, var, math.inf),
            of(6, skew, math.nan),
            of(8, kurtosis, math.nan),
        )

    def _entropy(self, dfn, dfd):
        a, b = dfn / 2, dfd / 2
        return log(dfd / dfn) + log_beta(a, b) + (a - 1) * psi_rise(a, b) + (b + 1) * psi_rise(b, a)


f = _F("f", "dfn, dfd")

__all__ = ["f"]
