"""The Gumbel distributions of maxima and minima, and the generalised extreme value distribution."""

from __future__ import annotations

import math

from .... import _scipy
from ..._formulas import absolute, choose, exp, lgamma, log, where
from ._family import Continuous
from ._shared import EULER, GUMBEL_SKEW, exprel, hazard_at, hazard_probability, log1p_over, power_over


class _GumbelRight(Continuous):
    """Right-skewed Gumbel distribution, of maxima."""

    def _logpdf(self, z):
        return -z - exp(-z)

    def _tail(self, z, lower, log):
        return hazard_probability(exp(-z), not lower, log)

    def _quantile(self, p, lower, as_log):
        return -log(hazard_at(p, not lower, as_log))

    def _stats(self):
        return EULER, math.pi**2 / 6, GUMBEL_SKEW, 2.4

    def _entropy(self):
        return EULER + 1


class _GumbelLeft(Continuous):
    """Left-skewed Gumbel distribution, of minima."""

    def _logpdf(self, z):
        return z - exp(z)

    def _tail(self, z, lower, log):
        return hazard_probability(exp(z), lower, log)

    def _quantile(self, p, lower, as_log):
        return log(hazard_at(p, lower, as_log))

    def _stats(self):
        return -EULER, math.pi**2 / 6, -GUMBEL_SKEW, 2.4

    def _entropy(self):
        return EULER + 1


class _Genextreme(Continuous):
    """Generalised extreme value distribution with shape ``c`` in SciPy's sign convention; Gumbel for ``c = 0``."""

    def _support(self, c):
        bound = 1 / where(c == 0, 1.0, c)
        return where(c < 0, bound, -math.inf), where(c > 0, bound, math.inf)

    def _valid(self, c):
        return (c == c) & (absolute(c) < math.inf)

    def _inner(self, c):
        return 0.0

    def _place(self, z, c):
        """Return ``-log(-log(cdf))``."""
        return z * log1p_over(-c * z)

    def _logpdf(self, z, c):
        end = c * z == 1
        u = self._place(where(end, 0.0, z), c)
        at_end = where(c == 1, 0.0, where(c < 1, -math.inf, math.inf))
        return where(end, where(c < 0, -math.inf, at_end), -(1 - c) * u - exp(-u))

    def _tail(self, z, lower, log, c):
        return hazard_probability(exp(-self._place(z, c)), not lower, log)

    def _quantile(self, p, lower, as_log, c):
        return power_over(-log(hazard_at(p, not lower, as_log)), -c)

    def _stats(self, c):
        mean = -lgamma1p_over(c) * exprel(lgamma1p(where(c > -1, c, 0.0)))
        d = where(c > -0.5, c, 0.0)
        spread = _second_difference(d)
        var = exp(2 * lgamma1p(d)) * spread * exprel(d * d * spread)
        return (
            where(c > -1, mean, math.nan),
            where(c > -0.5, var, math.nan),
            _extreme_moment(c, 3),
            _extreme_moment(c, 4),
        )

    def _entropy(self, c):
        return EULER * (1 - c) + 1


# SciPy's function, as this module may be imported while a library traces ops
_ZETAS = [0.0, 0.0] + [float(_scipy.special.zeta(float(k))) for k in range(2, 40)]


def _series(c, weight):
    """Return the sum of zeta(k) * (-c)**(k - 2) * weight(k) / k over k from 2, for small ``c``."""
    total = 0.0
    for k in range(31, 1, -1):
        total = _ZETAS[k] * weight(k) / k - c * total
    return total


def lgamma1p(c):
    """Return ``lgamma(1 + c)``, accurate near 0."""
    return choose(
        absolute(c) < 0.2, lambda of: of(c, 0.0) * lgamma1p_over(of(c, 0.0)), lambda of: lgamma(1 + of(c, 1.0))
    )


def lgamma1p_over(c):
    """``lgamma(1 + c) / c``, minus Euler's constant at 0."""
    return choose(
        absolute(c) < 0.2,
        lambda of: of(c, 0.0) * _series(of(c, 0.0), lambda k: 1) - EULER,
        lambda of: lgamma(where(of(c, 1.0) > -1, 1 + of(c, 1.0), 1.0)) / of(c, 1.0),
    )


def _second_difference(c):
    """``(lgamma(1 + 2 * c) - 2 * lgamma(1 + c)) / c**2``."""

    def far(of):
        place = of(c, 1.0)
        return (lgamma(1 + 2 * place) - 2 * lgamma(1 + place)) / (place * place)

    return choose(absolute(c) < 0.15, lambda of: _series(of(c, 0.0), lambda k: 2.0**k - 2), far)


def _extreme_moment(c, order: int):
    least = -1 / order
    near = absolute(c) < (1e-14**0.29 if order == 3 else 1e-14**0.23)
    d = where((c > least) & (absolute(c) > 1e-9), c, 1.0)
    g1, g2, g3, g4 = [exp(lgamma1p(where(n * d > -1, n * d, 0.0))) for n in (1, 2, 3, 4)]
    var = g2 - g1 * g1
    if order == 3:
        value, limit = where(d < 0, -1.0, 1.0) * (-g3 + (g2 + 2 * var) * g1) / var**1.5, GUMBEL_SKEW
    else:
        value, limit = (g4 + (-4 * g3 + 3 * (g2 + var) * g1) * g1) / (var * var) - 3, 2.4
    return where(c > least, where(near, limit, value), math.nan)


gumbel_r = _GumbelRight("gumbel_r")

gumbel_l = _GumbelLeft("gumbel_l")

genextreme = _Genextreme("genextreme", "c")

__all__ = ["genextreme", "gumbel_l", "gumbel_r"]
