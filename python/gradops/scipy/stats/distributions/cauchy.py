"""The Cauchy, half-Cauchy and wrapped Cauchy distributions."""

from __future__ import annotations

import math

import numpy as np

from .... import ops
from ... import special
from ..._formulas import choose, exp, log, log1p, refined, tail_probability, where
from ..._tensors import constant_like
from ._arguments import both
from ._family import POSITIVE, Continuous
from ._shared import LOG_2, _column, plain


class _Cauchy(Continuous):
    """Cauchy distribution."""

    def _logpdf(self, z):
        return refined(
            ops.abs(z) >= 1e100,
            lambda of: -2 * log(ops.abs(of(z, 1e100))),
            lambda of: -log1p(ops.square(of(z, 1.0))),
        ) - math.log(math.pi)

    def _tail(self, z, lower, as_log):
        z = -z if lower else z
        if as_log:
            return choose(
                z < -1,
                lambda of: log1p(ops.arctan(1 / of(z, -2.0)) / math.pi),
                lambda of: log(self._upper(of(z, 0.0))),
            )
        return self._upper(z)

    @staticmethod
    def _upper(z):
        def far(of):
            place = of(z, 2.0)
            return ops.arctan(1 / place) / math.pi + where(place < 0, 1.0, 0.0)

        return choose(ops.abs(z) > 1, far, lambda of: 0.5 - ops.arctan(of(z, 0.0)) / math.pi)

    def _quantile(self, p, lower, log):
        p, q = plain(p, log)
        z = choose(
            ops.abs(p - 0.5) < 0.25,
            lambda of: ops.tan(math.pi * (of(p, 0.5) - 0.5)),
            lambda of: choose(
                of(p, 0.1) < 0.5,
                lambda inner: -1 / ops.tan(math.pi * inner(of(p, 0.1), 0.1)),
                lambda inner: 1 / ops.tan(math.pi * inner(of(q, 0.1), 0.1)),
            ),
        )
        return z if lower else -z

    def _stats(self):
        return (math.nan,) * 4

    def _entropy(self):
        return math.log(4 * math.pi)


class _Halfcauchy(Continuous):
    """Half-Cauchy distribution: the absolute value of a Cauchy variable."""

    support_ = POSITIVE

    def _logpdf(self, z):
        return cauchy._logpdf(z) + LOG_2

    def _steep(self):
        return False, False

    def _tail(self, z, lower, as_log):
        upper = choose(
            z > 1,
            lambda of: ops.arctan(1 / of(z, 1.0)) * (2 / math.pi),
            lambda of: 1 - ops.arctan(of(z, 1.0)) * (2 / math.pi),
        )
        if not as_log:
            return ops.arctan(z) * (2 / math.pi) if lower else upper
        if not lower:
            return choose(
                z < 0.5,
                lambda of: log1p(ops.arctan(of(z, 0.2)) * (-2 / math.pi)),
                lambda of: log(of(upper, 0.5)),
            )
        return choose(
            z > 1,
            lambda of: log1p(-of(upper, 0.5)),
            lambda of: log(ops.arctan(of(z, 1.0)) * (2 / math.pi)),
        )

    def _quantile(self, p, lower, as_log):
        p, q = plain(p, as_log)
        p, q = (p, q) if lower else (q, p)
        return choose(
            p < 0.5,
            lambda of: ops.tan(math.pi / 2 * of(p, 0.5)),
            lambda of: 1 / ops.tan(math.pi / 2 * of(q, 0.5)),
        )

    def _stats(self):
        return math.inf, math.inf, math.nan, math.nan

    def _entropy(self):
        return math.log(2 * math.pi)


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
        return tail_probability(low, log(part), lower, as_log)

    def _quantile(self, p, lower, as_log, c):
        p, q = plain(p, as_log)
        p, q = (p, q) if lower else (q, p)
        half = 2 * ops.arctan(ops.tan(math.pi * where(p < 0.5, p, q)) * ((1 - c) / (1 + c)))
        return where(p < 0.5, half, 2 * math.pi - half)

    def _stats(self, c):
        """Return moments from the Fourier series of the density; the fourth one sums 400 terms."""
        n = np.arange(1.0, 401)
        powers = exp(_column(log(c)) * constant_like(n, c))
        second, fourth = special.spence(1 - c), ops.sum(powers * constant_like(n**-4, c), -1)
        var = math.pi**2 / 3 + 4 * second
        kurtosis = (math.pi**4 / 5 + 8 * math.pi**2 * second - 48 * fourth) / (var * var) - 3
        return math.pi + 0 * c, var, 0 * c, kurtosis

    def _entropy(self, c):
        return math.log(2 * math.pi) + log1p(-c) + log1p(c)


cauchy = _Cauchy("cauchy")

halfcauchy = _Halfcauchy("halfcauchy")

wrapcauchy = _Wrapcauchy("wrapcauchy", "c")

__all__ = ["cauchy", "halfcauchy", "wrapcauchy"]
