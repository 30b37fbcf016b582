"""Families of closed forms on a part of the line: by their cumulative hazard, and of powers and logarithms."""

from __future__ import annotations

import math

from ... import _scipy
from ...annotations import Operand, Tensor
from .. import special
from .._define import ufunc
from .._formulas import (
    _of_numbers,
    absolute,
    choose,
    digamma,
    exp,
    lgamma,
    log,
    log1p,
    log_complement,
    power,
    sqrt,
    times_log,
    where,
)
from ..special.logarithms import slope_by_power
from ._arguments import both
from ._family import POSITIVE, Continuous
from ._quadrature import expectation
from ._tails import by_hazard, hazard_at, log_tails, of_log, of_raw_moments, plain
from .normals import EULER, GUMBEL_SKEW

exprel = _of_numbers(special.exprel, lambda x: float(special.exprel(x)))


class ByHazard(Continuous):
    """A family by its cumulative hazard."""

    support_ = POSITIVE

    def _steep(self, *shapes):
        return False, True

    def _hazard(self, z, *shapes):
        raise NotImplementedError

    def _at_hazard(self, h, *shapes):
        """The inverse by ``z``."""
        raise NotImplementedError

    def _tail(self, z, lower, log, *shapes):
        return by_hazard(self._hazard(z, *shapes), lower, log)

    def _quantile(self, p, lower, log, *shapes):
        return self._at_hazard(hazard_at(p, lower, log), *shapes)


class _Expon(ByHazard):
    """Exponential distribution."""

    def _logpdf(self, z):
        return -z

    def _hazard(self, z):
        return z

    def _at_hazard(self, h):
        return h

    def _stats(self):
        return 1.0, 1.0, 2.0, 6.0

    def _entropy(self):
        return 1.0


class _Rayleigh(ByHazard):
    """Rayleigh distribution."""

    def _logpdf(self, z):
        return log(z) - z * z / 2

    inside = (1.0,)

    def _bases(self, z):
        return (z,)

    def _by_powers(self, z):
        return z * exp(-z * z / 2)

    def _hazard(self, z):
        return z * z / 2

    def _at_hazard(self, h):
        return sqrt(2 * h)

    def _stats(self):
        rest = 4 - math.pi
        skew = 2 * (math.pi - 3) * math.sqrt(math.pi) / rest**1.5
        return math.sqrt(math.pi / 2), rest / 2, skew, 6 * math.pi / rest - 16 / rest**2

    def _entropy(self):
        return EULER / 2 + 1 - math.log(2) / 2


class _Weibull(ByHazard):
    """Weibull distribution of minima, of shape ``c``."""

    def _logpdf(self, z, c):
        return log(c) + times_log(c - 1, z) - z**c

    inside = (1.0, 1.0)

    def _bases(self, z, c):
        return (z,)

    def _by_powers(self, z, c):
        return c * power(z, c - 1) * exp(-power(z, c))

    def _steep(self, c):
        return c < 1, True

    def _hazard(self, z, c):
        return z**c

    def _at_hazard(self, h, c):
        return h ** (1 / c)

    def _stats(self, c):
        return of_raw_moments(*[exp(lgamma(1 + n / c)) for n in (1, 2, 3, 4)])

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
        edge = where(inside, 0.0, z)  # where the hazard is 1 of `c` 1, else 0
        return where(
            inside, value, times_log(a * c - 1, where(inside, 1.0, z)) + log(a * c) - (a + 1) / 2 * power(edge, c)
        )

    inside = (1.0, 1.0, 1.0)

    def _bases(self, z, a, c):
        return (z,)

    def _by_powers(self, z, a, c):
        raised = power(z, c)
        return a * c * power(z, a * c - 1) * exp(-raised + (a - 1) * log(exprel(-raised)))

    def _tail(self, z, lower, log, a, c):
        return of_log(a * log_complement(-(z**c)), lower, log)

    def _quantile(self, p, lower, log, a, c):
        own, other = log_tails(p, log)
        return hazard_at((own if lower else other) / a, True, True) ** (1 / c)

    def _entropy(self, a, c):
        """The entropy by the mean of the logarithm of the hazard, whose maximum of ``a`` has the distribution."""

        def log_hazard(z, a):
            return choose(z < -30, lambda of: of(z, -31.0), lambda of: log(hazard_at(of(z, -1.0), True, True)))

        mean = expectation(lambda p, lower, a: (log(p) if lower else log1p(-p)) / a, log_hazard, (a,))
        return (a - 1) / a - log(a * c) + digamma(a + 1) + EULER - (c - 1) / c * mean


class _Pareto(ByHazard):
    """Pareto distribution of the power ``b``, above ``loc + scale``."""

    support_ = (1.0, math.inf)

    def _logpdf(self, z, b):
        return log(b) - (b + 1) * log(z)

    def _hazard(self, z, b):
        return b * log(z)

    def _at_hazard(self, h, b):
        return exp(h / b)

    def _stats(self, b):
        def skew(b):
            return 2 * (b + 1) / (b - 3) * sqrt((b - 2) / b)

        return (
            finite(b > 1, lambda b: b / (b - 1), b, math.inf),
            finite(b > 2, lambda b: b / (b - 2) / (b - 1) ** 2, b, math.inf),
            finite(b > 3, skew, b, math.nan),
            finite(b > 4, lambda b: 6 * (((b + 1) * b - 6) * b - 2) / (b * (b - 3) * (b - 4)), b, math.nan),
        )

    def _entropy(self, b):
        return 1 + 1 / b - log(b)


def finite(test, function, shape, instead: float, inner: float = 10.0):
    """``function(shape)`` where it is finite."""
    return where(test, function(where(test, shape, inner)), instead)


def log1p_over(u):
    """``log1p(u) / u``, 1 at 0."""

    def near(of):
        place = of(u, 0.0)
        r = place / (2 + place)
        w, total = r * r, 0.0
        for n in range(15, 0, -2):
            total = 1 / n + w * total
        return 2 / (2 + place) * total

    return choose(absolute(u) < 0.1, near, lambda of: log1p(of(u, 1.0)) / of(u, 1.0))


class _Genpareto(ByHazard):
    """Generalised Pareto distribution of shape ``c``, the exponential one at 0."""

    def _support(self, c):
        return 0.0, where(c < 0, -1 / where(c < 0, c, -1.0), math.inf)

    def _valid(self, c):
        return (c == c) & (absolute(c) < math.inf)

    def _inner(self, c):
        return 0.5 / (1 + absolute(c))

    def _logpdf(self, z, c):
        end = c * z == -1
        value = -(1 + c) * self._hazard(where(end, 0.0, z), c)
        return where(end, times_log(-1 / where(end, c, -1.0) - 1, where(end, 0.0, 1.0)), value)

    def _hazard(self, z, c):
        return z * log1p_over(c * z)

    def _at_hazard(self, h, c):
        return power_over(h, c)

    def _stats(self, c):
        def kurtosis(c):
            return 3 * (1 - 2 * c) * (2 * c * c + c + 3) / (1 - 3 * c) / (1 - 4 * c) - 3

        return (
            finite(c < 1, lambda c: 1 / (1 - c), c, math.inf, 0.0),
            finite(c < 0.5, lambda c: 1 / (1 - c) ** 2 / (1 - 2 * c), c, math.nan, 0.0),
            finite(c < 1 / 3, lambda c: 2 * (1 + c) * (1 - 2 * c) ** 0.5 / (1 - 3 * c), c, math.nan, 0.0),
            finite(c < 0.25, kurtosis, c, math.nan, 0.0),
        )

    def _entropy(self, c):
        return 1 + c


def power_over(h, c):
    """``(exp(c * h) - 1) / c``, ``h`` where ``c`` is 0; of an infinite ``h`` its end."""
    ever = absolute(h) == math.inf
    value = _power_over(where(ever, 1.0, h), c)
    end = where(c * h < 0, -1 / where(c == 0, 1.0, c), h)
    return where(ever, end, value)


@ufunc("", h=lambda g, h, c: g * exp(c * h), c=lambda g, h, c: g * slope_by_power(h, c))
def _power_over(h: Operand, c: Operand) -> Tensor:
    """Its derivative by ``h`` is by that, not by the value, which may be nearer to its end than numbers are."""
    return h * exprel(c * h)


class _Genextreme(Continuous):
    """Generalised extreme value distribution of shape ``c``, of the sign that SciPy gives it; Gumbel's at 0."""

    def _support(self, c):
        bound = 1 / where(c == 0, 1.0, c)
        return where(c < 0, bound, -math.inf), where(c > 0, bound, math.inf)

    def _valid(self, c):
        return (c == c) & (absolute(c) < math.inf)

    def _inner(self, c):
        return 0.0

    def _place(self, z, c):
        """Minus the logarithm of minus the logarithm of the distribution function."""
        return z * log1p_over(-c * z)

    def _logpdf(self, z, c):
        end = c * z == 1
        u = self._place(where(end, 0.0, z), c)
        at_end = where(c == 1, 0.0, where(c < 1, -math.inf, math.inf))
        return where(end, where(c < 0, -math.inf, at_end), -(1 - c) * u - exp(-u))

    def _tail(self, z, lower, log, c):
        return by_hazard(exp(-self._place(z, c)), not lower, log)

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


# by SciPy, not by ops: an import may come while a library traces
_ZETAS = [0.0, 0.0] + [float(_scipy.special.zeta(float(k))) for k in range(2, 40)]


def _series(c, weight):
    """The sum of zeta(k) * (-c)**(k - 2) * weight(k) / k over k from 2, of small ``c``."""
    total = 0.0
    for k in range(31, 1, -1):
        total = _ZETAS[k] * weight(k) / k - c * total
    return total


def lgamma1p(c):
    """``lgamma(1 + c)``, with its digits near 0."""
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


class _Loguniform(Continuous):
    """Log-uniform distribution, of the exponential of a uniform variable, between ``a`` and ``b``."""

    instead = (1.0, 2.0)

    def _support(self, a, b):
        return a, b

    def _valid(self, a, b):
        return both(a > 0, b > a, b < math.inf)

    def _inner(self, a, b):
        return a + (b - a) / 2

    def _logpdf(self, z, a, b):
        return -log(z) - log(log(b / a))

    def _steep(self, *shapes):
        return False, False

    def _tail(self, z, lower, as_log, a, b):
        part = (log(z / a) if lower else log(b / z)) / log(b / a)
        return log(part) if as_log else part

    def _quantile(self, p, lower, as_log, a, b):
        p, q = plain(p, as_log)
        p, q = (p, q) if lower else (q, p)
        whole = log(b / a)
        return choose(p < 0.5, lambda of: a * exp(of(p, 0.5) * whole), lambda of: b * exp(-of(q, 0.5) * whole))

    def _stats(self, a, b):
        whole = log(b / a)
        return of_raw_moments(*[(b**n - a**n) / (n * whole) for n in (1, 2, 3, 4)])

    def _entropy(self, a, b):
        return (log(a) + log(b)) / 2 + log(log(b / a))


expon = _Expon("expon")
rayleigh = _Rayleigh("rayleigh")
weibull_min = _Weibull("weibull_min", "c")
exponweib = _Exponweib("exponweib", "a, c")
pareto = _Pareto("pareto", "b")
genpareto = _Genpareto("genpareto", "c")
genextreme = _Genextreme("genextreme", "c")
loguniform = _Loguniform("loguniform", "a, b")
reciprocal = _Loguniform("reciprocal", "a, b")

__all__ = "expon exponweib genextreme genpareto loguniform pareto rayleigh reciprocal weibull_min".split()
