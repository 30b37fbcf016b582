"""Sums of powers, and Bessel functions of large orders, by their expansions."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from ... import ops
from .. import special
from .._formulas import absolute, choose, deviance_part, exp, lgamma, log, sqrt, where
from .._tensors import beside
from .hazards import exprel

_FIRST = np.arange(20.0)
_BERNOULLI = [1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160, -691 / 1307674368000, 1 / 74724249600]


def power_sum(first, last, a):
    """The sum of ``j**-a`` over j from ``first`` to ``last``, both positive tensors of whole numbers.

    Twenty terms, and the rest by the formula of Euler and Maclaurin.
    """
    first, last, a = first + 0 * last + 0 * a, last + 0 * first + 0 * a, a + 0 * first + 0 * last
    j = ops.expand_dims(first, -1) + beside(_FIRST, first)
    inside = j <= ops.expand_dims(last, -1)
    total = ops.sum(where(inside, exp(-ops.expand_dims(a, -1) * log(where(inside, j, 1.0))), 0.0), -1)

    def rest(of):
        start, end, power = of(first, 1.0) + 20.0, of(last, 30.0), of(a, 1.0)
        rise = log(end / start)
        low, high = exp(-power * log(start)), exp(-power * log(end))
        value = start * low * rise * exprel((1 - power) * rise) + (low + high) / 2
        rising = power
        for k, weight in enumerate(_BERNOULLI):
            low, high = low / start, high / end
            value = value + weight * rising * (low - high)
            low, high, rising = low / start, high / end, rising * (power + 2 * k + 1) * (power + 2 * k + 2)
        return value

    return total + choose(last >= first + 20, rest, lambda of: 0 * of(a, 0.0))


def _debye() -> list[list[float]]:
    """The coefficients in t**2 of Debye's polynomials u_k(t) / t**k (NIST's Digital Library, 10.41.9)."""
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
    """The logarithm of Skellam's probability of ``k``.

    It is ``exp(-mu1 - mu2) * (mu1 / mu2)**(k / 2) * I_k(2 * sqrt(mu1 * mu2))``. Of large orders and arguments by
    Debye's expansion of I, in whose exponent the means x and x - k of the saddle point take the means' place.
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
