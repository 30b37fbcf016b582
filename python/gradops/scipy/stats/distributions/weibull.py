"""The Weibull distribution, its special case Rayleigh, and the exponentiated Weibull distribution."""

from __future__ import annotations

import math

from ..._formulas import choose, digamma, exp, lgamma, log, log1p, log_complement, power, sqrt, times_log, where
from ._family import POSITIVE, Continuous, HazardFamily
from ._quadrature import expectation
from ._shared import EULER, exprel, hazard_at, log_tails, probability_from_log, standardized_moments


class _Rayleigh(HazardFamily):
    """Rayleigh distribution."""

    def _logpdf(self, z):
        return log(z) - z * z / 2

    inside = (1.0,)

    def _bases(self, z):
        return (z,)

    def _power_density(self, z):
        return z * exp(-z * z / 2)

    def _hazard(self, z):
        return z * z / 2

    def _hazard_quantile(self, h):
        return sqrt(2 * h)

    def _stats(self):
        rest = 4 - math.pi
        skew = 2 * (math.pi - 3) * math.sqrt(math.pi) / rest**1.5
        return math.sqrt(math.pi / 2), rest / 2, skew, 6 * math.pi / rest - 16 / rest**2

    def _entropy(self):
        return EULER / 2 + 1 - math.log(2) / 2


class _Weibull(HazardFamily):
    """Weibull distribution of minima with shape ``c``."""

    def _logpdf(self, z, c):
        return log(c) + times_log(c - 1, z) - z**c

    inside = (1.0, 1.0)

    def _bases(self, z, c):
        return (z,)

    def _power_density(self, z, c):
        return c * power(z, c - 1) * exp(-power(z, c))

    def _steep(self, c):
        return c < 1, True

    def _hazard(self, z, c):
        return z**c

    def _hazard_quantile(self, h, c):
        return h ** (1 / c)

    def _stats(self, c):
        return standardized_moments(*[exp(lgamma(1 + n / c)) for n in (1, 2, 3, 4)])

    def _entropy(self, c):
        return EULER * (1 - 1 / c) - log(c) + 1


class _Exponweib(Continuous):
    """Exponentiated Weibull distribution: a Weibull one of shape ``c``, to the power ``a``."""

    support_ = POSITIVE
    by_density = True

    def _logpdf(self, z, a, c):
        inside = z > 0
        place = where(inside, z, 1.0)
        raised = place**c
        value = log(a) + log(c) + (a - 1) * log_complement(-raised) + (c - 1) * log(place) - raised
        edge = where(inside, 0.0, z)  # the limit at 0 depends on `c`
        return where(
            inside, value, times_log(a * c - 1, where(inside, 1.0, z)) + log(a * c) - (a + 1) / 2 * power(edge, c)
        )

    inside = (1.0, 1.0, 1.0)

    def _bases(self, z, a, c):
        return (z,)

    def _power_density(self, z, a, c):
        raised = power(z, c)
        return a * c * power(z, a * c - 1) * exp(-raised + (a - 1) * log(exprel(-raised)))

    def _tail(self, z, lower, log, a, c):
        return probability_from_log(a * log_complement(-(z**c)), lower, log)

    def _quantile(self, p, lower, log, a, c):
        own, other = log_tails(p, log)
        return hazard_at((own if lower else other) / a, True, True) ** (1 / c)

    def _entropy(self, a, c):
        """Return the entropy, from the mean log hazard."""

        def log_hazard(z, a):
            return choose(z < -30, lambda of: of(z, -31.0), lambda of: log(hazard_at(of(z, -1.0), True, True)))

        mean = expectation(lambda p, lower, a: (log(p) if lower else log1p(-p)) / a, log_hazard, (a,))
        return (a - 1) / a - log(a * c) + digamma(a + 1) + EULER - (c - 1) / c * mean


rayleigh = _Rayleigh("rayleigh")

weibull_min = _Weibull("weibull_min", "c")

exponweib = _Exponweib("exponweib", "a, c")

__all__ = ["exponweib", "rayleigh", "weibull_min"]
