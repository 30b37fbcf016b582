"""The logarithmic series distribution."""

from __future__ import annotations

import math

from ..._formulas import complement, exp, log, log1p, log_complement
from ...special import incomplete
from ._arguments import both
from ._discrete import Discrete
from ._shared import standardized_moments


class _Logser(Discrete):
    """Logarithmic series distribution: probabilities proportional to ``p**k / k``."""

    support_ = (1.0, math.inf)
    instead = (0.5,)

    def _valid(self, p):
        return both(p > 0, p < 1)

    def _logpmf(self, k, p):
        return k * log(p) - log(k) - log(-log1p(-p))

    def _tail(self, k, lower, as_log, p):
        """Return the tail as an incomplete beta function with a tiny second shape."""
        tiny = 1e-30
        upper = incomplete.log_betainc(k + 1, tiny, p) - math.log(tiny) - log(-log1p(-p))
        if as_log:
            return log_complement(upper) if lower else upper
        return complement(upper) if lower else exp(upper)

    def _stats(self, p):
        q, size = 1 - p, -1 / log1p(-p)
        one, two, three = size * p / q, size * p / (q * q), size * p * (1 + p) / q**3
        return standardized_moments(one, two, three, size * p * (1 + 4 * p + p * p) / q**4)


logser = _Logser("logser", "p")

__all__ = ["logser"]
