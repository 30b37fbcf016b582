"""Families of the gamma and beta distributions."""

from __future__ import annotations

import math

from ... import ops
from .. import special
from .._formulas import (
    choose,
    digamma,
    exp,
    lgamma,
    log,
    log1p,
    log_beta,
    power,
    sqrt,
    stirling,
    times_log,
    times_log1m,
    usually,
    where,
)
from ..special._tails import log_beta_density, log_f_density, log_gamma_density, log_t_density, psi_rest, psi_rise
from ..special.incomplete import BETA, BETA_INVERSE, GAMMA, GAMMA_INVERSE
from ..special.probabilities import F_INVERSE, F, log_stdtrit
from ._family import POSITIVE, Continuous
from ._tails import LOG_2
from .hazards import finite
from .normals import LOG_ROOT


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

    def _by_powers(self, z, a):
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

    def _by_powers(self, z, df):
        return gamma._by_powers(z / 2, df / 2) / 2

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


class _Gennorm(Continuous):
    """Generalised normal distribution of the power ``beta``."""

    def _logpdf(self, z, beta):
        return log(beta / 2) - lgamma(1 / beta) - ops.abs(z) ** beta

    def _tail(self, z, lower, as_log, beta):
        z = z if lower else -z
        middle = z == 0  # where the slope of the power meets the infinite density of gamma
        upper = GAMMA[False, as_log](1 / beta, ops.abs(where(middle, 1.0, z)) ** beta)
        line = 0.5 + where(middle, z, 0.0) * exp(log(beta / 2) - lgamma(1 / beta))
        if as_log:
            tails = choose(z < 0, lambda of: of(upper, -1.0) - LOG_2, lambda of: log1p(exp(of(upper, -1.0)) * -0.5))
            return where(middle, log(line), tails)
        return where(middle, line, where(z < 0, upper / 2, 1 - upper / 2))

    def _quantile(self, p, lower, as_log, beta):
        middle = p == (-LOG_2 if as_log else 0.5)  # as above
        line = where(middle, exp(p) if as_log else p, 0.5) - 0.5
        line = line / exp(log(beta / 2) - lgamma(1 / beta))
        p = where(middle, -3.0 if as_log else 0.1, p)
        own = p + LOG_2 if as_log else 2 * p
        if as_log:
            z = choose(
                p < -LOG_2,
                lambda of: -GAMMA_INVERSE[False, True](1 / beta, of(own, -1.0)),
                lambda of: GAMMA_INVERSE[False, False](1 / beta, -2 * special.expm1(of(p, -0.5))),
            )
        else:
            z = choose(
                p < 0.5,
                lambda of: -GAMMA_INVERSE[False, False](1 / beta, of(own, 0.5)),
                lambda of: GAMMA_INVERSE[False, False](1 / beta, 2 - of(own, 1.5)),
            )
        size = ops.abs(z) ** (1 / beta)
        z = where(middle, line, where(z < 0, -size, size))
        return z if lower else -z

    def _stats(self, beta):
        c1, c3, c5 = [lgamma(n / beta) for n in (1, 3, 5)]
        return 0 * beta, exp(c3 - c1), 0 * beta, exp(c5 + c1 - 2 * c3) - 3

    def _entropy(self, beta):
        return 1 / beta - log(beta / 2) + lgamma(1 / beta)


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

    def _by_powers(self, z, a, b):
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


class _T(Continuous):
    """Student's t distribution of ``df`` degrees of freedom, the normal one where these are infinite."""

    def _logpdf(self, z, df):
        return log_t_density(df, z)

    def _tail(self, z, lower, as_log, df):
        q = z if lower else -z
        if not as_log:
            return special.stdtr(df, q)

        def other(of):
            return choose(
                of(q, 0.0) > 1,
                lambda inner: log1p(-special.stdtr(of(df, 1.0), -inner(of(q, 0.0), 2.0))),
                lambda inner: log(special.stdtr(of(df, 1.0), inner(of(q, 0.0), 0.0))),
            )

        return choose(q < -1, lambda of: F[False, True](1.0, of(df, 1.0), of(q, -2.0) ** 2) - LOG_2, other)

    def _quantile(self, p, lower, as_log, df):
        z = log_stdtrit(df, p) if as_log else special.stdtrit(df, p)
        return z if lower else -z

    def _stats(self, df):
        def on(least, value, below):
            return where(df > least, value, below)

        var = finite((df > 2) & (df < math.inf), lambda df: df / (df - 2), df, math.nan)
        kurtosis = finite((df > 4) & (df < math.inf), lambda df: 6 / (df - 4), df, math.nan)
        return (
            on(1, 0.0, math.inf),
            where(df == math.inf, 1.0, where((df > 1) & (df <= 2), math.inf, var)),
            on(3, 0.0, math.nan),
            where(df == math.inf, 0.0, where((df > 2) & (df <= 4), math.inf, kurtosis)),
        )

    def _entropy(self, df):
        known = where(df < math.inf, df, 1.0)
        half = known / 2
        value = (known + 1) / 2 * psi_rise(half, 0.5) + log(known) / 2 + log_beta(half, 0.5)
        return where(df < math.inf, value, LOG_ROOT + 0.5)


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

    def _by_powers(self, z, dfn, dfd):
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


gamma = _Gamma("gamma", "a")
erlang = _Gamma("erlang", "a")
chi2 = _Chi2("chi2", "df")
invgamma = _Invgamma("invgamma", "a")
gennorm = _Gennorm("gennorm", "beta")
beta = _Beta("beta", "a, b")
t = _T("t", "df")
f = _F("f", "dfn, dfd")

__all__ = ["beta", "chi2", "erlang", "f", "gamma", "gennorm", "invgamma", "t"]
