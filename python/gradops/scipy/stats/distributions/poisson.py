"""The Poisson distribution, and the Skellam distribution of a difference of Poisson variables."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from .... import ops
from ... import special
from ..._formulas import absolute, choose, deviance_part, exp, lgamma, log, power, sqrt, tail_probability, where
from ..._hosted import apply_in_chunks, hosted, rule
from ...special._tails import log_poisson
from ...special.incomplete import GAMMA
from ._arguments import both
from ._discrete import Discrete, floor
from ._family import INFINITE


def _debye() -> list[list[float]]:
    """Return the coefficients in t**2 of Debye's polynomials u_k(t) / t**k (NIST's Digital Library, 10.41.9)."""
    one = [Fraction(1)]  # u_k by powers of t
    found: list[list[float]] = []
    for _ in range(11):
        slope = [n * c for n, c in enumerate(one)][1:]
        new = [Fraction(0)] * (len(one) + 3)
        for n, c in enumerate(slope):
            new[n + 2] += c / 2
            new[n + 4] -= c / 2
        for n, c in enumerate(one):
            new[n + 1] += c / (8 * (n + 1))
            new[n + 3] -= 5 * c / (8 * (n + 3))
        one = new
        found.append([float(c) for c in one[len(found) + 1 :: 2]])
    return found


_DEBYE = _debye()


def log_skellam(k, mu1, mu2):
    """Return the log probability of ``k`` under the Skellam distribution.

    The probability is ``exp(-mu1 - mu2) * (mu1 / mu2)**(k / 2) * I_k(2 * sqrt(mu1 * mu2))``. For large orders and
    arguments Debye's expansion of I is used; its exponent is in terms of the means x and x - k at the saddle point.
    """
    product = mu1 * mu2
    order, turned = absolute(k), k < 0
    more, less = where(turned, mu2, mu1), where(turned, mu1, mu2)
    size = sqrt(order * order + 4 * product)

    def large(of):
        s, v = of(size, 100.0), of(order, 0.0)
        one, other = of(more, 50.0), of(less, 50.0)
        first = (s + v) / 2
        w, r, total = ops.square(v / s), 1 / s, 0.0
        for row in reversed(_DEBYE):
            term = 0.0
            for c in reversed(row):
                term = c + w * term
            total = r * (term + total)
        exponent = -deviance_part(first, one) - deviance_part(one * other / first, other)
        return exponent - log(2 * math.pi * s) / 2 + ops.log1p(total)

    def small(of):
        v, square, one, other = of(order, 1.0), of(product, 1.0), of(more, 1.0), of(less, 1.0)
        start = -one - other

        def near(of):
            n, w = of(v, 1.0), of(square, 0.1)
            total = 1.0
            for j in range(14, 0, -1):
                total = 1 + w / (j * (n + j)) * total
            return n * log(of(one, 1.0)) - lgamma(n + 1) + log(total)

        def usual(of):
            n, z = of(v, 1.0), 2 * sqrt(of(square, 10.0))
            return n / 2 * log(of(one, 1.0) / of(other, 1.0)) + log(special.ive(n, z)) + z

        return start + choose(4 * square < v + 1, near, usual)

    return choose(size >= 50, large, small)


class _Poisson(Discrete):
    """Poisson distribution of the mean ``mu``."""

    def _valid(self, mu):
        return both(mu >= 0, mu < math.inf)

    def _logpmf(self, k, mu):
        return log_poisson(k, mu)

    inside = (1.0, 1.0)

    def _bases(self, k, mu):
        return (mu,)

    def _power_density(self, k, mu):
        return power(mu, k) * exp(-mu - lgamma(k + 1))

    def _tail(self, k, lower, log, mu):
        return GAMMA[not lower, log](k + 1, mu)

    def _stats(self, mu):
        return mu, mu, 1 / sqrt(mu), 1 / mu


# Skellam --------------------------------------------------------------------------------------------------------------


def _log_tail(k, mu1, mu2):
    """Return, on the host, the log probability of at least ``k``, for ``k`` from about the mean on."""

    def chunk_sums(length, k, mu1, mu2):
        x = k[:, None] + np.arange(length)
        each = log_skellam(x, mu1[:, None] + 0 * x, mu2[:, None] + 0 * x)
        return each[:, 0] + np.log(np.sum(np.exp(each - each[:, :1]), -1))

    return apply_in_chunks(chunk_sums, np.ceil(40 + 10 * np.sqrt(mu1 + mu2)), k, mu1, mu2)


_log_upper = hosted(
    "_skellam_log_upper",
    ("k", "mu1", "mu2"),
    _log_tail,
    "The logarithm of a probability from ``k`` on.",
    mu1=rule(("k", "mu1", "mu2", "y"), lambda g, k, mu1, mu2, y: g * exp(log_skellam(k - 1, mu1, mu2) - y)),
    mu2=rule(("k", "mu1", "mu2", "y"), lambda g, k, mu1, mu2, y: -g * exp(log_skellam(k, mu1, mu2) - y)),
)


class _Skellam(Discrete):
    """Skellam's distribution, of the difference of Poisson variables of means ``mu1`` and ``mu2``."""

    support_ = INFINITE

    def _valid(self, mu1, mu2):
        return both(mu1 > 0, mu2 > 0, mu1 < math.inf, mu2 < math.inf)

    def _logpmf(self, k, mu1, mu2):
        return log_skellam(k, mu1, mu2)

    def _tail(self, k, lower, as_log, mu1, mu2):
        mean = floor(mu1 - mu2)
        low = k < mean
        below = _log_upper(-where(low, k, mean), mu2, mu1)
        above = _log_upper(where(low, mean, k) + 1, mu1, mu2)
        return tail_probability(low, where(low, below, above), lower, as_log)

    def _stats(self, mu1, mu2):
        var = mu1 + mu2
        return mu1 - mu2, var, (mu1 - mu2) / (var * sqrt(var)), 1 / var


poisson = _Poisson("poisson", "mu")

skellam = _Skellam("skellam", "mu1, mu2")

__all__ = ["poisson", "skellam"]
