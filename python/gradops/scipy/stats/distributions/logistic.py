"""The logistic distribution."""

from __future__ import annotations

import math

from .... import ops
from ... import special
from ..._formulas import choose
from ._family import Continuous
from ._shared import log_tails


class _Logistic(Continuous):
    """Logistic distribution."""

    def _logpdf(self, z):
        return -z - 2 * ops.softplus(-z)

    def _tail(self, z, lower, log):
        z = z if lower else -z
        if log:
            return ops.log_sigmoid(z)
        # a sigmoid's slope y * (1 - y) cancels far above 0
        return choose(z > 1, lambda of: 1 - ops.sigmoid(-of(z, 2.0)), lambda of: ops.sigmoid(of(z, 0.0)))

    def _quantile(self, p, lower, log):
        if log:
            own, other = log_tails(p, True)
            z = own - other
        else:
            z = special.logit(p)
        return z if lower else -z

    def _stats(self):
        return 0.0, math.pi**2 / 3, 0.0, 1.2

    def _entropy(self):
        return 2.0


logistic = _Logistic("logistic")

__all__ = ["logistic"]
