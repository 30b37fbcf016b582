"""Noncentral chi-squared, beta, F and t distributions."""

from __future__ import annotations

import math

import numpy as np

from .... import _scipy
from ..._formulas import choose, exp, log, log1p, log_rising, sqrt, times_log1m, where
from ..._tensors import floating
from ...special import _noncentral
from ...special._tails import f_parts
from ._arguments import both
from ._family import INFINITE, POSITIVE, Continuous
from ._quadrature import quantile_of
from ._shared import finite, standardized_moments
from .beta import beta
from .f import f
from .gamma import chi2
from .normal import norm


class _Noncentral(Continuous):
    """A family computed from logarithms of sums, with derivatives to second order."""

    by_density = True
    gradient = """Derivatives by ``x`` and each parameter that is a tensor, to second order, term by term; 0 outside of
    the support. Quantiles use the implicit function theorem, ``-(dF/dp) / f``."""

    def _valid(self, *shapes):
        *others, nc = shapes
        return both(*(shape > 0 for shape in others), *(shape < math.inf for shape in shapes), nc >= 0)

    def _near(self, p, lower, *shapes):
        scipys = getattr(_scipy.stats, self.name)
        try:
            return (scipys.ppf if lower else scipys.isf)(np.exp(p), *shapes)
        except OverflowError:  # SciPy raises for the whole array if one value is too large
            return super()._near(p, lower, *shapes)

    def _quantile(self, p, lower, log, *shapes):
        return _QUANTILES[self.name](p, lower, log, *shapes)


class _Ncx2(_Noncentral):
    """Noncentral chi-squared distribution of ``df`` degrees of freedom and noncentrality ``nc``."""

    support_, reach, ends = POSITIVE, 700.0, POSITIVE

    def _logpdf(self, z, df, nc):
        z, df, nc = floating(z, df, nc)
        return choose(
            z > 0,
            lambda of: _noncentral.value(_noncentral.CHI2["density"], of(z, 1.0), of(df, 1.0), of(nc, 0.0)),
            lambda of: chi2._logpdf(of(z, 0.0), of(df, 1.0)) + self._excess(of(z, 0.0), of(df, 1.0), of(nc, 0.0)),
        )

    @staticmethod
    def _excess(z, df, nc):
        """The logarithm of the density over that of chi-squared, about 0."""
        b, t = df / 2, z * nc / 4
        return t / b - t * t / (2 * b * b * (b + 1)) - nc / 2

    inside = (1.0, 2.0, 0.0)

    def _bases(self, z, df, nc):
        return (z,)

    def _power_density(self, z, df, nc):
        return chi2._power_density(z, df) * exp(self._excess(z, df, nc))

    def _tail(self, z, lower, log, df, nc):
        return _noncentral.chi2_tail(z, df, nc, lower, log)

    def _stats(self, df, nc):
        var = 2 * (df + 2 * nc)
        return df + nc, var, 8 * (df + 3 * nc) / (var * sqrt(var)), 48 * (df + 4 * nc) / (var * var)


class _Ncbeta(_Noncentral):
    """Noncentral beta distribution of shapes ``a`` and ``b``: of ``x / (x + y)``, where 2 * x is noncentral chi-squared
    of ``2 * a`` degrees of freedom and noncentrality ``nc``, and 2 * y chi-squared of ``2 * b``."""

    support_ = (0.0, 1.0)

    def _logpdf(self, z, a, b, nc):
        z, a, b, nc = floating(z, a, b, nc)

        def edge(of):
            x, m, n, mean = of(z, 0.0), of(a, 1.0), of(b, 1.0), of(nc, 0.0) / 2
            return where(x > 0, log(m + mean) + times_log1m(n - 1, x), beta._logpdf(0 * x, m, n) - mean)

        def inside(of):
            x = of(z, 0.5)
            return _log_beta(x, 1 - x, of(a, 1.0), of(b, 1.0), of(nc, 0.0))

        return choose((z > 0) & (z < 1), inside, edge)

    def _tail(self, z, lower, log, a, b, nc):
        return _noncentral.beta_tail(z, 1 - z, a, b, nc, lower, log)

    def _quantile(self, p, lower, log, a, b, nc):
        odds = ncf._quantile(p, lower, log, 2 * a, 2 * b, nc) * (a / b)
        return where(odds < math.inf, odds / (1 + where(odds < math.inf, odds, 0.0)), 1.0)


def _log_beta(*arguments):
    return _noncentral.value(_noncentral.BETA_SUMS["density"], *arguments)


class _Ncf(_Noncentral):
    """Noncentral F distribution of ``dfn`` and ``dfd`` degrees of freedom and noncentrality ``nc``."""

    support_, reach, ends = POSITIVE, 700.0, POSITIVE

    def _logpdf(self, z, dfn, dfd, nc):
        z, dfn, dfd, nc = floating(z, dfn, dfd, nc)

        def inside(of):
            place, m, n = of(z, 1.0), of(dfn, 1.0), of(dfd, 1.0)
            part, rest = f_parts(m / 2, n / 2, place)
            return _log_beta(part, rest, m / 2, n / 2, of(nc, 0.0)) + log(part) + log(rest) - log(place)

        def edge(of):
            place, m, n = of(z, 0.0), of(dfn, 1.0), of(dfd, 1.0)
            return f._logpdf(place, m, n) + self._excess(place, m, n, of(nc, 0.0))

        return choose(z > 0, inside, edge)

    @staticmethod
    def _excess(z, dfn, dfd, nc):
        """The logarithm of the density over that of F, about 0."""
        a, b, t = (dfn + dfd) / 2, dfn / 2, f_parts(dfn / 2, dfd / 2, z)[0] * nc / 2
        return a / b * t * (1 + t / 2 * ((a + 1) / (b + 1) - a / b)) - nc / 2

    inside = (1.0, 2.0, 2.0, 0.0)

    def _bases(self, z, dfn, dfd, nc):
        return (z,)

    def _power_density(self, z, dfn, dfd, nc):
        return f._power_density(z, dfn, dfd) * exp(self._excess(z, dfn, dfd, nc))

    def _tail(self, z, lower, log, dfn, dfd, nc):
        part, rest = f_parts(dfn / 2, dfd / 2, z)
        return _noncentral.beta_tail(part, rest, dfn / 2, dfd / 2, nc, lower, log)

    def _stats(self, dfn, dfd, nc):
        """Return moments from those of the chi-squared numerator and of the inverse of the denominator."""
        one, two, three, four = [dfn + n * nc for n in (1, 2, 3, 4)]
        above = [
            one,
            one**2 + 2 * two,
            one**3 + 6 * one * two + 8 * three,
            one**4 + 12 * one**2 * two + 4 * (11 * dfn * dfn + 44 * dfn * nc + 36 * nc * nc) + 48 * four,
        ]

        def raw(m):
            inverse, found = 1.0, []
            for n, moment in enumerate(above, 1):
                inverse = inverse * (m / dfn) / where(m > 2 * n, m - 2 * n, 1.0)
                found.append(moment * inverse)
            return found

        return _known_moments(raw(dfd), [dfd > 2 * n for n in (1, 2, 3, 4)])


class _Nct(_Noncentral):
    """Noncentral t distribution of ``df`` degrees of freedom and noncentrality ``nc``: of a normal variable of the mean
    ``nc`` divided by the root of a chi-squared variable over its degrees of freedom."""

    scale, reach, ends = "sinh", 700.0, INFINITE

    def _valid(self, df, nc):
        return both(df > 0, nc < math.inf, nc > -math.inf)

    def _logpdf(self, z, df, nc):
        def student(*xs):
            return _noncentral.value(_noncentral.T["density"], *floating(*xs))

        return self._normal_or(norm._logpdf, student, z, df, nc)

    def _tail(self, z, lower, log, df, nc):
        def student(z, df, nc):
            return _noncentral.t_tail(z, df, nc, lower, log)

        return self._normal_or(lambda z: norm._tail(z, lower, log), student, z, df, nc)

    @staticmethod
    def _normal_or(normal, student, z, df, nc):
        """Return the normal limit of infinitely many degrees of freedom, or ``student(z, df, nc)``."""
        return choose(
            df == math.inf,
            lambda of: normal(of(z - nc, 0.0)),
            lambda of: student(of(z, 0.0), of(df, 1.0), of(nc, 0.0)),
        )

    def _quantile(self, p, lower, log, df, nc):
        return choose(
            df == math.inf,
            lambda of: norm._quantile(of(p, math.log(0.5) if log else 0.5), lower, log) + of(nc, 0.0),
            lambda of: super(_Nct, self)._quantile(
                of(p, math.log(0.5) if log else 0.5), lower, log, of(df, 1.0), of(nc, 0.0)
            ),
        )

    def _stats(self, df, nc):
        square = nc * nc
        normal = [nc, square + 1, nc * (square + 3), square * square + 6 * square + 3]

        def ratio(n):
            def of(df):
                return exp(-log_rising((df - n) / 2, n / 2) - n / 2 * log1p(-n / df))

            return finite(both(df > n, df < math.inf), of, df, 1.0)

        return _known_moments([m * ratio(n) for n, m in enumerate(normal, 1)], [df > n for n in (1, 2, 3, 4)])


def _known_moments(raw, known):
    """Return mean, variance, skewness and excess kurtosis from raw moments, where these are ``known``."""
    infinite = (math.inf, math.inf, math.nan, math.nan)
    return tuple(where(test, value, other) for test, value, other in zip(known, standardized_moments(*raw), infinite))


ncx2 = _Ncx2("ncx2", "df, nc")

ncf = _Ncf("ncf", "dfn, dfd, nc")

nct = _Nct("nct", "df, nc")

ncbeta = _Ncbeta("ncbeta", "a, b, nc")
"""R's: SciPy has none."""

_QUANTILES = {family.name: quantile_of(family) for family in (ncx2, ncf, nct)}

__all__ = ["ncf", "nct", "ncx2"]
