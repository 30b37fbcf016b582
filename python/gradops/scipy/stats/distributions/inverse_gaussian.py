"""The inverse Gaussian distribution."""

from __future__ import annotations

import math

from .... import ops
from ..._formulas import choose, log, sqrt, tail_probability
from ._family import POSITIVE, Continuous
from ._quadrature import quantile_of
from ._shared import LOG_ROOT
from .normal import log_mills_fall, log_normal_density, mills


class _Invgauss(Continuous):
    """Inverse Gaussian distribution of the mean ``mu``."""

    support_, open = POSITIVE, True
    reach, ends = 600.0, (0.0, math.inf)

    def _logpdf(self, z, mu):
        return -LOG_ROOT - 1.5 * log(z) - ops.square(z / mu - 1) / (2 * z)

    def _tail(self, z, lower, as_log, mu):
        """Return the tail from normal probabilities (Giner and Smyth 2016, statmod) in terms of Mills' ratio."""
        root = sqrt(z)
        u, c = (z / mu - 1) / root, 2 / root
        low = u <= 0
        smaller = choose(
            low,
            lambda of: log(mills(-of(u, -1.0)) + mills(of(u, -1.0) + of(c, 1.0))),
            lambda of: log_mills_fall(of(u, 1.0), of(c, 1.0)),
        )
        return tail_probability(low, log_normal_density(u) + smaller, lower, as_log)

    def _quantile(self, p, lower, log, mu):
        return _INVGAUSS(p, lower, log, mu)

    def _stats(self, mu):
        return mu, mu**3, 3 * sqrt(mu), 15 * mu


invgauss = _Invgauss("invgauss", "mu")

_INVGAUSS = quantile_of(invgauss)

__all__ = ["invgauss"]
