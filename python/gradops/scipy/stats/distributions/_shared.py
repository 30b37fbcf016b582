"""Tail probabilities, moments and constants that several families share.

``lower`` selects the probability up to a point, else above it; ``log`` and ``as_log`` select its logarithm.
"""

from __future__ import annotations

import math

from .... import ops
from ....annotations import Operand, Tensor
from ... import special
from ..._define import ufunc
from ..._formulas import _extend_to_numbers, absolute, choose, complement, exp, log, log1p, log_complement, sqrt, where
from ...special.logarithms import slope_by_power

LOG_ROOT = math.log(2 * math.pi) / 2

EULER = 0.57721566490153286061

ZETA_3 = 1.2020569031595942854

GUMBEL_SKEW = 12 * math.sqrt(6) * ZETA_3 / math.pi**3

LOG_2 = math.log(2)


def hazard_probability(hazard, lower: bool, as_log: bool):
    """Return a probability from the cumulative hazard, minus the log of the upper probability."""
    if lower:
        return log_complement(-hazard) if as_log else complement(-hazard)
    return -hazard if as_log else exp(-hazard)


def hazard_at(p, lower: bool, as_log: bool):
    """Return the cumulative hazard for a probability."""
    if lower:
        return -log_complement(p) if as_log else -log1p(-p)
    return -p if as_log else -log(p)


def probability_from_log(p, lower: bool, as_log: bool):
    """Return a lower or upper probability from the log of the lower one."""
    if lower:
        return p if as_log else exp(p)
    return log_complement(p) if as_log else complement(p)


def log_tails(p, as_log: bool):
    """Return the logarithms of a probability and of its complement."""
    return (p, log_complement(p)) if as_log else (log(p), log1p(-p))


def plain(p, as_log: bool):
    """Return a probability and its complement, both accurate."""
    return (exp(p), complement(p)) if as_log else (p, 1 - p)


def standardized_moments(m1, m2, m3, m4) -> tuple:
    """Return mean, variance, skewness and excess kurtosis from raw moments."""
    var = m2 - m1 * m1
    skew = (m3 - 3 * m1 * m2 + 2 * m1**3) / (var * sqrt(var))
    return m1, var, skew, (m4 - 4 * m1 * m3 + 6 * m1 * m1 * m2 - 3 * m1**4) / (var * var) - 3


def normal(z, lower: bool, as_log: bool):
    """The normal distribution."""
    z = z if lower else -z
    return special.log_ndtr(z) if as_log else special.ndtr(z)


def normal_quantile(p, lower: bool, as_log: bool):
    """Return the normal quantile, for a log probability near 0 from the other tail."""
    if as_log:
        z = choose(
            p > -LOG_2,
            lambda of: -special.ndtri_exp(log_complement(of(p, -0.5))),
            lambda of: special.ndtri_exp(of(p, -1.0)),
        )
    else:
        z = special.ndtri(p)
    return z if lower else -z


exprel = _extend_to_numbers(special.exprel, lambda x: float(special.exprel(x)))


def finite(test, function, shape, instead: float, inner: float = 10.0):
    """Return ``function(shape)`` where ``test`` holds, else ``instead``."""
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


def power_over(h, c):
    """Return ``(exp(c * h) - 1) / c``, ``h`` for ``c = 0``, and the limit for infinite ``h``."""
    ever = absolute(h) == math.inf
    value = _power_over(where(ever, 1.0, h), c)
    end = where(c * h < 0, -1 / where(c == 0, 1.0, c), h)
    return where(ever, end, value)


@ufunc("", h=lambda g, h, c: g * exp(c * h), c=lambda g, h, c: g * slope_by_power(h, c))
def _power_over(h: Operand, c: Operand) -> Tensor:
    """Derivatives are in terms of ``h``, as the value may round to its limit."""
    return h * exprel(c * h)


def _column(x):
    return ops.expand_dims(x, -1)
