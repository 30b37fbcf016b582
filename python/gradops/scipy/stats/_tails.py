"""Probabilities and their inverses by what is the same in several families: hazards and normal probabilities.

``lower`` asks for the probability up to a point, else beyond it; ``log`` for its logarithm.
"""

from __future__ import annotations

import math

from .. import special
from .._formulas import choose, complement, exp, log, log1p, log_complement, sqrt

LOG_2 = math.log(2)


def by_hazard(hazard, lower: bool, as_log: bool):
    """A probability by the cumulative hazard, minus the logarithm of the upper one."""
    if lower:
        return log_complement(-hazard) if as_log else complement(-hazard)
    return -hazard if as_log else exp(-hazard)


def hazard_at(p, lower: bool, as_log: bool):
    """The cumulative hazard of a probability."""
    if lower:
        return -log_complement(p) if as_log else -log1p(-p)
    return -p if as_log else -log(p)


def of_log(p, lower: bool, as_log: bool):
    """A lower or upper probability by the logarithm of the lower one."""
    if lower:
        return p if as_log else exp(p)
    return log_complement(p) if as_log else complement(p)


def log_tails(p, as_log: bool):
    """The logarithms of a probability and of what it leaves."""
    return (p, log_complement(p)) if as_log else (log(p), log1p(-p))


def plain(p, as_log: bool):
    """A probability and its complement, each with its digits."""
    return (exp(p), complement(p)) if as_log else (p, 1 - p)


def of_raw_moments(m1, m2, m3, m4) -> tuple:
    """Mean, variance, skewness and excess kurtosis by the moments about 0."""
    var = m2 - m1 * m1
    skew = (m3 - 3 * m1 * m2 + 2 * m1**3) / (var * sqrt(var))
    return m1, var, skew, (m4 - 4 * m1 * m3 + 6 * m1 * m1 * m2 - 3 * m1**4) / (var * var) - 3


def normal(z, lower: bool, as_log: bool):
    """The normal distribution."""
    z = z if lower else -z
    return special.log_ndtr(z) if as_log else special.ndtr(z)


def normal_quantile(p, lower: bool, as_log: bool):
    """The normal quantile; of a logarithm near 0 by the other tail."""
    if as_log:
        z = choose(
            p > -LOG_2,
            lambda of: -special.ndtri_exp(log_complement(of(p, -0.5))),
            lambda of: special.ndtri_exp(of(p, -1.0)),
        )
    else:
        z = special.ndtri(p)
    return z if lower else -z
