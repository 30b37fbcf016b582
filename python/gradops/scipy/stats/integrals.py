"""Families whose tails are integrals: of normal, wrapped and circular distributions."""

from __future__ import annotations

import math

import numpy as np

from ... import ops
from ...annotations import Operand, Tensor
from ...flow import stop_gradient
from .. import special
from .._define import ufunc
from .._formulas import absolute, by_tails, choose, exp, log, log1p, log_complement, sqrt, where
from .._tensors import beside
from ..special._tails import _Integral
from ._arguments import as_tensor, both
from ._family import INFINITE, POSITIVE, Continuous
from ._quadrature import quantile_of
from ._tails import LOG_2, log_tails, plain
from .normals import LOG_ROOT

ROOT_HALF_PI = math.sqrt(math.pi / 2)
_NODES, _WEIGHTS = [v / 2 for v in np.polynomial.legendre.leggauss(64)]
_NODES = _NODES + 0.5
_FEW, _FEW_WEIGHTS = [v / 2 for v in np.polynomial.legendre.leggauss(12)]
"""Nodes between -1/2 and 1/2 that give an integral of ``exp(-e)`` to rounding, where e is up to 3 and quadratic."""


def _column(x):
    return ops.expand_dims(x, -1)


def log_normal_density(z):
    """The log density of the standard normal distribution."""
    return -z * z / 2 - LOG_ROOT


def mills(u):
    """The upper normal probability over the density."""
    return ROOT_HALF_PI * special.erfcx(u / math.sqrt(2))


def log_mills_fall(u, c):
    """``log(mills(u) - mills(u + c))`` of ``u`` above -2 and positive ``c``: of an integral of positive terms."""
    u, c = u + 0 * c, c + 0 * u
    scale = stop_gradient(1 / (1 + ops.maximum(u, 0.0)))
    return _Integral(lambda s, u, c: s * s / 2 + u * s - log(-ops.expm1(-c * s)), scale, _column(u), _column(c)).log()


class _Invgauss(Continuous):
    """Inverse Gaussian distribution of the mean ``mu``."""

    support_, open = POSITIVE, True
    reach, ends = 600.0, (0.0, math.inf)

    def _logpdf(self, z, mu):
        return -LOG_ROOT - 1.5 * log(z) - ops.square(z / mu - 1) / (2 * z)

    def _tail(self, z, lower, as_log, mu):
        """The tail by normal probabilities (Giner and Smyth 2016, statmod), by Mills' ratio."""
        root = sqrt(z)
        u, c = (z / mu - 1) / root, 2 / root
        low = u <= 0
        smaller = choose(
            low,
            lambda of: log(mills(-of(u, -1.0)) + mills(of(u, -1.0) + of(c, 1.0))),
            lambda of: log_mills_fall(of(u, 1.0), of(c, 1.0)),
        )
        return by_tails(low, log_normal_density(u) + smaller, lower, as_log)

    def _quantile(self, p, lower, log, mu):
        return _INVGAUSS(p, lower, log, mu)

    def _stats(self, mu):
        return mu, mu**3, 3 * sqrt(mu), 15 * mu


class _Exponnorm(Continuous):
    """Exponentially modified normal distribution: of a normal variable and an exponential one of the mean ``K``."""

    reach, ends = 1e6, INFINITE

    def _log_part(self, z, K):
        """The logarithm of ``K`` times the density."""
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
        return by_tails(low, smaller, lower, as_log)

    def _quantile(self, p, lower, log, K):
        return _EXPONNORM(p, lower, log, K)

    def _stats(self, K):
        square = K * K
        var = 1 + square
        return K, var, 2 * K * square / (var * sqrt(var)), 6 * square * square / (var * var)


class _Skewnorm(Continuous):
    """Skew normal distribution of the shape ``a``, the normal one at 0."""

    reach, ends = 1e4, INFINITE

    def _valid(self, a):
        return (a == a) & (absolute(a) < math.inf)

    def _logpdf(self, z, a):
        return LOG_2 + log_normal_density(z) + special.log_ndtr(a * z)

    def _tail(self, z, lower, as_log, a):
        turned = a + 0 * z < 0
        z, a = where(turned, -z, z), where(turned, -a, a)
        low = z <= 0

        def from_density(place, shape, sign):
            """The tail beyond by the integral, along which the density falls."""
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
                lambda inner: from_density(inner(of(z, 1.0), 6.0), inner(of(a, 1.0), 1.0), 1),
                lambda inner: log(
                    special.ndtr(-inner(of(z, 1.0), 1.0))
                    + 2 * special.owens_t(inner(of(z, 1.0), 1.0), inner(of(a, 1.0), 1.0))
                ),
            )

        smaller = choose(low, lambda of: from_density(of(z, -1.0), of(a, 1.0), -1), upper)
        return by_tails(low ^ turned, smaller, lower, as_log)

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
    """The logarithm of the normal probability between both."""
    turned = (a > 0) & (b == b)
    a, b = where(turned, -b, a), where(turned, -a, b)
    width = b - a
    narrow = width * (absolute(a) + width) < 3

    def of_nodes(of):
        start, size = of(a, 0.0), of(width, 1.0)
        t = _column(size) * beside(_FEW + 0.5, size)
        total = ops.sum(exp(-t * (_column(start) + t / 2)) * beside(_FEW_WEIGHTS, size), -1)
        return log_normal_density(start) + log(size) + log(total)

    def of_tails(of):
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

    return choose(narrow, of_nodes, of_tails)


def _density_over(z, log_mass):
    far = absolute(z) > 1e15
    return exp(log_normal_density(where(far, 1e15, z)) - where(far, 0.0, log_mass))


class _Truncnorm(Continuous):
    """Normal distribution between ``a`` and ``b``."""

    by_density = True
    instead = (-1.0, 1.0)

    def _support(self, a, b):
        return a, b

    def _valid(self, a, b):
        return both(a < b)

    def _inner(self, a, b):
        return where(a > -math.inf, a + where(b < math.inf, (b - a) / 2, 1.0), where(b < math.inf, b - 1, 0.0))

    _log_mass = staticmethod(_log_normal_mass)

    def _logpdf(self, z, a, b):
        return log_normal_density(z) - self._log_mass(a, b)

    def _tail(self, z, lower, as_log, a, b):
        below, above = [self._log_mass(*ends) for ends in ((a, z), (z, b))]
        low = below < above
        return by_tails(low, where(low, below, above) - self._log_mass(a, b), lower, as_log)

    def _quantile(self, p, lower, as_log, a, b):
        """The quantile by the normal one; two of Newton's steps give it all digits, and the derivatives."""
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
            # near an end, where the way to it has few digits, by the density there
            finite = absolute(end) < math.inf
            end = where(finite, end, 0.0)
            way = where(finite, chance, 1.0) * exp(mass - log_normal_density(end))
            near = finite & (way * (1 + absolute(end)) < 1e-6)
            way = where(near, way, 0.0)
            z = where(near, end + sign * way + end * way * way / 2, z)
        return where(first == -math.inf, a, where(last == -math.inf, b, z))


class _Circular(Continuous):
    """Von Mises distribution of the concentration ``kappa``, on the line between -pi and pi."""

    support_ = (-math.pi, math.pi)
    reach, ends = math.pi, (-math.pi, math.pi)

    def _valid(self, kappa):
        return (kappa >= 0) & (kappa < math.inf)

    def _inner(self, kappa):
        return 0.0

    def _logpdf(self, z, kappa):
        square = ops.square(ops.sin(z / 2))
        return self._rest(kappa) - 2 * kappa * square - math.log(2 * math.pi) - log(special.i0e(kappa))

    @staticmethod
    def _rest(kappa):
        """0, with the slope that ``i0e``, which is even, lacks at 0."""
        return kappa - absolute(kappa)

    @staticmethod
    def _nodes(y, kappa):
        reach = stop_gradient(ops.arccos(ops.maximum(ops.cos(y) - 40 / (kappa + 1e-30), -1.0)) - y)
        whole = math.pi - y
        length = ops.maximum(where(reach < whole * (1 - 1e-9), reach, whole), 1e-30)
        return _column(length) * beside(_NODES, length), length

    def _log_smaller(self, z, kappa):
        """The tail beyond the distance from 0, by Gauss' rule up to where the density is 1e-17 of its value there."""
        y, kappa = where(z < 0, -z, z) + 0 * kappa, kappa + 0 * z
        s, length = self._nodes(y, kappa)
        e = 2 * _column(kappa) * ops.sin(_column(y) + s / 2) * ops.sin(s / 2)
        return self._logpdf(y, kappa) + log(length) + log(ops.sum(exp(-e) * beside(_WEIGHTS, length), -1))

    def _tail(self, z, lower, as_log, kappa):
        return by_tails(z + 0 * kappa < 0, self._log_smaller(z, kappa), lower, as_log)

    def _quantile(self, p, lower, log, kappa):
        return _VONMISES(p, lower, log, kappa)

    def _stats(self, kappa):
        s, length = self._nodes(0 * kappa, kappa)
        weights = 2 * exp(self._logpdf(s, _column(kappa))) * beside(_WEIGHTS, length)
        var, fourth = [length * ops.sum(weights * s**n, -1) for n in (2, 4)]
        return 0 * kappa, var, 0 * kappa, fourth / (var * var) - 3

    def _entropy(self, kappa):
        ratio = special.i1e(kappa) / special.i0e(kappa)
        return math.log(2 * math.pi) + log(special.i0e(kappa)) + kappa * (1 - ratio) - self._rest(kappa)


class _Vonmises(_Circular):
    """Von Mises distribution of the concentration ``kappa``: on the circle, each turn of which adds 1 to the
    probability up to a number."""

    support_ = INFINITE

    def _tail(self, z, lower, as_log, kappa):
        turns = ops.floor(z / (2 * math.pi) + 0.5)
        part = vonmises_line._tail(z - 2 * math.pi * turns, lower, as_log, kappa)
        if not as_log:
            return part + (turns if lower else -turns)
        return where(turns == 0, part, log(exp(part) + (turns if lower else -turns)))


class _Wrapcauchy(Continuous):
    """Wrapped Cauchy distribution of the concentration ``c``, between 0 and 2 pi."""

    support_ = (0.0, 2 * math.pi)
    instead = (0.5,)

    def _valid(self, c):
        return both(c > 0, c < 1)

    def _logpdf(self, z, c):
        spread = ops.square(1 - c) + 4 * c * ops.square(ops.sin(z / 2))
        return log1p(-c) + log1p(c) - math.log(2 * math.pi) - log(spread)

    def _tail(self, z, lower, as_log, c):
        low = z + 0 * c <= math.pi
        part = ops.arctan(ops.tan(where(low, z, 2 * math.pi - z) / 2) * ((1 + c) / (1 - c))) / math.pi
        return by_tails(low, log(part), lower, as_log)

    def _quantile(self, p, lower, as_log, c):
        p, q = plain(p, as_log)
        p, q = (p, q) if lower else (q, p)
        half = 2 * ops.arctan(ops.tan(math.pi * where(p < 0.5, p, q)) * ((1 - c) / (1 + c)))
        return where(p < 0.5, half, 2 * math.pi - half)

    def _stats(self, c):
        """The moments by the Fourier series of the density, of which the last sum has 400 terms."""
        n = np.arange(1.0, 401)
        powers = exp(_column(log(c)) * beside(n, c))
        second, fourth = special.spence(1 - c), ops.sum(powers * beside(n**-4, c), -1)
        var = math.pi**2 / 3 + 4 * second
        kurtosis = (math.pi**4 / 5 + 8 * math.pi**2 * second - 48 * fourth) / (var * var) - 3
        return math.pi + 0 * c, var, 0 * c, kurtosis

    def _entropy(self, c):
        return math.log(2 * math.pi) + log1p(-c) + log1p(c)


exponnorm = _Exponnorm("exponnorm", "K")
invgauss = _Invgauss("invgauss", "mu")
skewnorm = _Skewnorm("skewnorm", "a")
truncnorm = _Truncnorm("truncnorm", "a, b")
vonmises_line = _Circular("vonmises_line", "kappa")
vonmises = _Vonmises("vonmises", "kappa")
wrapcauchy = _Wrapcauchy("wrapcauchy", "c")

_EXPONNORM, _INVGAUSS, _SKEWNORM = quantile_of(exponnorm), quantile_of(invgauss), quantile_of(skewnorm)
_VONMISES = quantile_of(vonmises_line)

__all__ = ["exponnorm", "invgauss", "skewnorm", "truncnorm", "vonmises", "vonmises_line", "wrapcauchy"]
