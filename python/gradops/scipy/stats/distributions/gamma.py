"""The gamma, Erlang, chi-squared and inverse gamma distributions."""

from __future__ import annotations

import math

from ..._formulas import choose, digamma, exp, lgamma, log, power, sqrt, stirling, times_log
from ...special._tails import log_gamma_density, psi_rest
from ...special.incomplete import GAMMA, GAMMA_INVERSE
from ._family import POSITIVE, Continuous
from ._shared import LOG_2, LOG_ROOT, finite


def gamma_entropy(a):
    """``a + lgamma(a) + (1 - a) * digamma(a)``."""

    def large(of):
        shape = of(a, 20.0)
        return log(shape) / 2 + LOG_ROOT + stirling(shape) + (1 - shape) * psi_rest(shape)

    def small(of):
        shape = of(a, 1.0)
        return shape + lgamma(shape) + (1 - shape) * digamma(shape)

    return choose(a >= 20, large, small)


class _Gamma(Continuous):
    """Gamma distribution of shape ``a``."""

    support_ = POSITIVE

    def _logpdf(self, z, a):
        return choose(
            z > 0,
            lambda of: log_gamma_density(of(a, 1.0), of(z, 1.0)),
            lambda of: times_log(of(a, 1.0) - 1, of(z, 0.0)) - of(z, 0.0) - lgamma(of(a, 1.0)),
        )

    inside = (1.0, 1.0)

    def _bases(self, z, a):
        return (z,)

    def _power_density(self, z, a):
        return power(z, a - 1) * exp(-z - lgamma(a))

    def _steep(self, a):
        return a < 1, True

    def _tail(self, z, lower, log, a):
        return GAMMA[lower, log](a, z)

    def _quantile(self, p, lower, log, a):
        return GAMMA_INVERSE[lower, log](a, p)

    def _stats(self, a):
        return a, a, 2 / sqrt(a), 6 / a

    def _entropy(self, a):
        return gamma_entropy(a)


class _Chi2(Continuous):
    """Chi-squared distribution of ``df`` degrees of freedom."""

    support_ = POSITIVE

    def _logpdf(self, z, df):
        return gamma._logpdf(z / 2, df / 2) - LOG_2

    inside = (1.0, 2.0)

    def _bases(self, z, df):
        return (z,)

    def _power_density(self, z, df):
        return gamma._power_density(z / 2, df / 2) / 2

    def _steep(self, df):
        return df < 2, True

    def _tail(self, z, lower, log, df):
        return GAMMA[lower, log](df / 2, z / 2)

    def _quantile(self, p, lower, log, df):
        return 2 * GAMMA_INVERSE[lower, log](df / 2, p)

    def _stats(self, df):
        return df, 2 * df, sqrt(8 / df), 12 / df

    def _entropy(self, df):
        return gamma_entropy(df / 2) + LOG_2


class _Invgamma(Continuous):
    """Inverse gamma distribution, of 1 over a gamma variable of shape ``a``."""

    support_, open = POSITIVE, True

    def _logpdf(self, z, a):
        return gamma._logpdf(1 / z, a) - 2 * log(z)

    def _tail(self, z, lower, log, a):
        return GAMMA[not lower, log](a, 1 / z)

    def _quantile(self, p, lower, log, a):
        return 1 / GAMMA_INVERSE[not lower, log](a, p)

    def _stats(self, a):
        return (
            finite(a > 1, lambda a: 1 / (a - 1), a, math.inf),
            finite(a > 2, lambda a: 1 / (a - 1) ** 2 / (a - 2), a, math.inf),
            finite(a > 3, lambda a: 4 * sqrt(a - 2) / (a - 3), a, math.nan),
            finite(a > 4, lambda a: 6 * (5 * a - 11) / (a - 3) / (a - 4), a, math.nan),
        )

    def _entropy(self, a):
        return gamma_entropy(a) - 2 * digamma(a)


gamma = _Gamma("gamma", "a")

erlang = _Gamma("erlang", "a")

chi2 = _Chi2("chi2", "df")

invgamma = _Invgamma("invgamma", "a")

__all__ = ["chi2", "erlang", "gamma", "invgamma"]
