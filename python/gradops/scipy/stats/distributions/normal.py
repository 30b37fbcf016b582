"""The normal distribution and relatives: log-normal, half, generalised, skewed, truncated, exponentially modified."""

from __future__ import annotations

import math

import numpy as np

from .... import ops
from ....annotations import Operand, Tensor
from ....flow import stop_gradient
from ... import special
from ..._define import ufunc
from ..._formulas import absolute, choose, exp, expm1, lgamma, log, log1p, log_complement, sqrt, tail_probability, where
from ..._tensors import constant_like
from ...special._tails import _Integral
from ...special.incomplete import GAMMA, GAMMA_INVERSE
from ._arguments import as_tensor, both
from ._family import INFINITE, POSITIVE, Continuous
from ._quadrature import quantile_of
from ._shared import LOG_2, LOG_ROOT, _column, log_tails, normal, normal_quantile, plain

ROOT_HALF_PI = math.sqrt(math.pi / 2)

_FEW, _FEW_WEIGHTS = [v / 2 for v in np.polynomial.legendre.leggauss(12)]
"""Nodes in [-1/2, 1/2] that integrate ``exp(-e)`` to rounding for a quadratic e up to 3."""


def log_normal_density(z):
    """Return the log density of the standard normal distribution."""
    return -z * z / 2 - LOG_ROOT


def mills(u):
    """Return Mills' ratio, the upper normal probability divided by the density."""
    return ROOT_HALF_PI * special.erfcx(u / math.sqrt(2))


def log_mills_fall(u, c):
    """Return ``log(mills(u) - mills(u + c))`` for ``u > -2`` and ``c > 0``, as an integral of positive terms."""
    u, c = u + 0 * c, c + 0 * u
    scale = stop_gradient(1 / (1 + ops.maximum(u, 0.0)))
    return _Integral(lambda s, u, c: s * s / 2 + u * s - log(-ops.expm1(-c * s)), scale, _column(u), _column(c)).log()


class _Norm(Continuous):
    """Normal distribution."""

    everywhere = True

    def _logpdf(self, z):
        return z * z * -0.5 - LOG_ROOT

    def _tail(self, z, lower, log):
        return normal(z, lower, log)

    def _quantile(self, p, lower, log):
        return normal_quantile(p, lower, log)

    def _stats(self):
        return 0.0, 1.0, 0.0, 0.0

    def _entropy(self):
        return LOG_ROOT + 0.5

    def _random(self, like, shape, seed, shapes):
        return ops.random.random_normal(like, shape, seed)


class _Lognorm(Continuous):
    """Log-normal distribution: the exponential of a normal variable with standard deviation ``s``."""

    support_, open = POSITIVE, True

    def _logpdf(self, z, s):
        u = log(z)
        return ops.square(u / s) * -0.5 - u - log(s) - LOG_ROOT

    def _tail(self, z, lower, log_, s):
        return normal(log(z) / s, lower, log_)

    def _quantile(self, p, lower, log, s):
        return exp(s * normal_quantile(p, lower, log))

    def _stats(self, s):
        p, d = exp(s * s), expm1(s * s)
        return exp(s * s / 2), p * d, d**0.5 * (2 + p), d * (p * p * p + 3 * p * p + 6 * p + 6)

    def _entropy(self, s):
        return LOG_ROOT + 0.5 + log(s)

    def _random(self, like, shape, seed, shapes):
        return exp(ops.random.random_normal(like, shape, seed) * shapes[0])


class _Halfnorm(Continuous):
    """Half-normal distribution: the absolute value of a normal variable."""

    support_ = POSITIVE

    def _logpdf(self, z):
        return z * z * -0.5 + (LOG_2 - LOG_ROOT)

    def _steep(self):
        return False, False

    def _tail(self, z, lower, as_log):
        if not lower and as_log:
            return choose(
                z < 0.5,
                lambda of: log1p(-special.erf(of(z, 0.2) / math.sqrt(2))),
                lambda of: special.log_ndtr(-of(z, 1.0)) + LOG_2,
            )
        if not as_log:
            return special.erf(z / math.sqrt(2)) if lower else 2 * special.ndtr(-z)
        return choose(
            z > 1,
            lambda of: log1p(-2 * special.ndtr(-of(z, 2.0))),
            lambda of: log(special.erf(of(z, 0.5) / math.sqrt(2))),
        )

    def _quantile(self, p, lower, as_log):
        if not lower:
            return -special.ndtri_exp(p - LOG_2) if as_log else -special.ndtri(p / 2)
        if not as_log:
            return math.sqrt(2) * special.erfinv(p)
        return choose(
            p > -LOG_2,
            lambda of: -special.ndtri_exp(log_complement(of(p, -0.5)) - LOG_2),
            lambda of: math.sqrt(2) * special.erfinv(exp(of(p, -1.0))),
        )

    def _stats(self):
        rest = math.pi - 2
        skew = math.sqrt(2) * (4 - math.pi) / rest**1.5
        return math.sqrt(2 / math.pi), rest / math.pi, skew, 8 * (math.pi - 3) / rest**2

    def _entropy(self):
        return LOG_ROOT - LOG_2 + 0.5


class _Gennorm(Continuous):
    """Generalised normal distribution with the power ``beta``."""

    def _logpdf(self, z, beta):
        return log(beta / 2) - lgamma(1 / beta) - ops.abs(z) ** beta

    def _tail(self, z, lower, as_log, beta):
        z = z if lower else -z
        middle = z == 0  # the slope of the power is 0 and the density of gamma infinite
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


class _Exponnorm(Continuous):
    """Exponentially modified normal distribution: a normal variable plus an exponential one with mean ``K``."""

    reach, ends = 1e6, INFINITE

    def _log_part(self, z, K):
        """Return the logarithm of ``K`` times the density."""
        rate = 1 / K
        w = z - rate
        return choose(
            w < 0,
            lambda of: log_normal_density(of(z, 0.0)) + log(mills(-of(w, -1.0))),
            lambda of: of(rate, 1.0) * (of(rate, 1.0) / 2 - of(z, 1.0)) + special.log_ndtr(of(w, 1.0)),
        )

    def _logpdf(self, z, K):
        return self._log_part(z, K) - log(K)

    def _tail(self, z, lower, as_log, K):
        low = z + 0 * K < 1
        smaller = choose(
            low,
            lambda of: log_normal_density(of(z, 0.0)) + log_mills_fall(-of(z, 0.0), 1 / of(K, 1.0)),
            lambda of: ops.logaddexp(special.log_ndtr(-of(z, 2.0)), self._log_part(of(z, 2.0), of(K, 1.0))),
        )
        return tail_probability(low, smaller, lower, as_log)

    def _quantile(self, p, lower, log, K):
        return _EXPONNORM(p, lower, log, K)

    def _stats(self, K):
        square = K * K
        var = 1 + square
        return K, var, 2 * K * square / (var * sqrt(var)), 6 * square * square / (var * var)


class _Skewnorm(Continuous):
    """Skew normal distribution with shape ``a``; normal for ``a = 0``."""

    reach, ends = 1e4, INFINITE

    def _valid(self, a):
        return (a == a) & (absolute(a) < math.inf)

    def _logpdf(self, z, a):
        return LOG_2 + log_normal_density(z) + special.log_ndtr(a * z)

    def _tail(self, z, lower, as_log, a):
        turned = a + 0 * z < 0
        z, a = where(turned, -z, z), where(turned, -a, a)
        low = z <= 0

        def density_integral(place, shape, sign):
            """Return the outer tail as an integral along which the density decreases."""
            away = absolute(place)
            inner = 1 + (shape * (1 + shape * away) if sign < 0 else 0.0)
            integral = _Integral(
                lambda s, z, a, start: s * s / 2 + sign * z * s - special.log_ndtr(a * (z + sign * s)) + start,
                stop_gradient(1 / (away + inner)),
                _column(place),
                _column(shape),
                _column(special.log_ndtr(shape * place)),
            )
            return self._logpdf(place, shape) + integral.log()

        def upper(of):
            return choose(
                of(z, 1.0) > 5,
                lambda inner: density_integral(inner(of(z, 1.0), 6.0), inner(of(a, 1.0), 1.0), 1),
                lambda inner: log(
                    special.ndtr(-inner(of(z, 1.0), 1.0))
                    + 2 * special.owens_t(inner(of(z, 1.0), 1.0), inner(of(a, 1.0), 1.0))
                ),
            )

        smaller = choose(low, lambda of: density_integral(of(z, -1.0), of(a, 1.0), -1), upper)
        return tail_probability(low ^ turned, smaller, lower, as_log)

    def _quantile(self, p, lower, log, a):
        return _SKEWNORM(p, lower, log, a)

    def _stats(self, a):
        delta = a / sqrt(1 + a * a)
        mean = delta * math.sqrt(2 / math.pi)
        square = mean * mean
        var = 1 - square
        skew = (4 - math.pi) / 2 * mean * square / (var * sqrt(var))
        return mean, var, skew, 2 * (math.pi - 3) * square * square / (var * var)


@ufunc("", a=lambda g, a, y: -g * _density_over(a, y), b=lambda g, b, y: g * _density_over(b, y))
def _log_normal_mass(a: Operand, b: Operand) -> Tensor:
    """Return the log of the normal probability between ``a`` and ``b``."""
    turned = (a > 0) & (b == b)
    a, b = where(turned, -b, a), where(turned, -a, b)
    width = b - a
    narrow = width * (absolute(a) + width) < 3

    def log_quadrature(of):
        start, size = of(a, 0.0), of(width, 1.0)
        t = _column(size) * constant_like(_FEW + 0.5, size)
        total = ops.sum(exp(-t * (_column(start) + t / 2)) * constant_like(_FEW_WEIGHTS, size), -1)
        return log_normal_density(start) + log(size) + log(total)

    def log_tail_difference(of):
        first, last = of(a, -3.0), of(b, 0.0)
        first = where(first > -1e15, first, -1e15)
        return choose(
            last > 0,
            lambda of: log1p(-special.ndtr(of(first, -1.0)) - special.ndtr(-of(last, 1.0))),
            lambda of: (
                special.log_ndtr(of(last, 0.0))
                + log_complement(special.log_ndtr(of(first, -3.0)) - special.log_ndtr(of(last, 0.0)))
            ),
        )

    return choose(narrow, log_quadrature, log_tail_difference)


def _density_over(z, log_mass):
    far = absolute(z) > 1e15
    return exp(log_normal_density(where(far, 1e15, z)) - where(far, 0.0, log_mass))


class _Truncnorm(Continuous):
    """Normal distribution truncated to the interval from ``a`` to ``b``."""

    by_density = True
    instead = (-1.0, 1.0)

    def _support(self, a, b):
        return a, b

    def _valid(self, a, b):
        return both(a < b)

    def _inner(self, a, b):
        """Return the point nearest to the mode that is 1, or half of the interval, away from the ends."""
        away = where(b - a < 2, b - a, 2.0) / 2
        return ops.minimum(ops.maximum(0.0, a + away), b - away)

    _log_mass = staticmethod(_log_normal_mass)

    def _logpdf(self, z, a, b):
        return log_normal_density(z) - self._log_mass(a, b)

    def _tail(self, z, lower, as_log, a, b):
        below, above = [self._log_mass(*ends) for ends in ((a, z), (z, b))]
        low = below < above
        return tail_probability(low, where(low, below, above) - self._log_mass(a, b), lower, as_log)

    def _quantile(self, p, lower, as_log, a, b):
        """Return the quantile from the normal one; two Newton steps make it accurate and carry derivatives."""
        own, other = log_tails(p, as_log)
        first, last = (own, other) if lower else (other, own)
        a, b = as_tensor(a, p), as_tensor(b, p)
        inside = (first > -math.inf) & (last > -math.inf)
        one, two = where(inside, first, -LOG_2), where(inside, last, -LOG_2)
        mass = self._log_mass(a, b)
        turned = a > 0
        tail = where(turned, -b, a)
        part = ops.logaddexp(special.log_ndtr(where(tail > -1e15, tail, -1e15)), mass + where(turned, two, one))
        z = special.ndtri_exp(part)
        start = stop_gradient(where(turned, -z, z))
        z = where((start > a) & (start < b), start, stop_gradient(self._inner(a, b)))
        low = one < two
        target = where(low, one, two)
        for _ in range(3):
            tails = self._log_mass(where(low, a, z), where(low, z, b)) - mass
            step = (tails - target) * exp(tails - self._logpdf(z, a, b))
            new = z - where(low, step, -step)
            z = where((new > a) & (new < b), new, z)
        own, other = plain(p, as_log)
        for sign, end, chance in ((1, a, own if lower else other), (-1, b, other if lower else own)):
            # near an end the distance to it has few digits: use the density there
            finite = absolute(end) < math.inf
            end = where(finite, end, 0.0)
            way = where(finite, chance, 1.0) * exp(mass - log_normal_density(end))
            near = finite & (way * (1 + absolute(end)) < 1e-6)
            way = where(near, way, 0.0)
            z = where(near, end + sign * way + end * way * way / 2, z)
        return where(first == -math.inf, a, where(last == -math.inf, b, z))


norm = _Norm("norm")

lognorm = _Lognorm("lognorm", "s")

halfnorm = _Halfnorm("halfnorm")

gennorm = _Gennorm("gennorm", "beta")


exponnorm = _Exponnorm("exponnorm", "K")

skewnorm = _Skewnorm("skewnorm", "a")

truncnorm = _Truncnorm("truncnorm", "a, b")

_EXPONNORM, _SKEWNORM = quantile_of(exponnorm), quantile_of(skewnorm)

__all__ = ["exponnorm", "gennorm", "halfnorm", "lognorm", "norm", "skewnorm", "truncnorm"]
