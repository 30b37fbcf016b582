"""The Pareto distribution and the generalised Pareto distribution."""

from __future__ import annotations

import math

from ..._formulas import absolute, exp, log, sqrt, times_log, where
from ._family import HazardFamily
from ._shared import finite, log1p_over, power_over


class _Pareto(HazardFamily):
    """Pareto distribution with power ``b``, above ``loc + scale``."""

    support_ = (1.0, math.inf)

    def _logpdf(self, z, b):
        return log(b) - (b + 1) * log(z)

    def _hazard(self, z, b):
        return b * log(z)

    def _hazard_quantile(self, h, b):
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


class _Genpareto(HazardFamily):
    """Generalised Pareto distribution with shape ``c``; exponential for ``c = 0``."""

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

    def _hazard_quantile(self, h, c):
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


pareto = _Pareto("pareto", "b")

genpareto = _Genpareto("genpareto", "c")

__all__ = ["genpareto", "pareto"]
