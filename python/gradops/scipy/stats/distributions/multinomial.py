"""The multinomial distribution."""

from __future__ import annotations

import inspect
import math

import numpy as np

from .... import ops
from ... import special
from .._samples import real
from ._multivariate import Multivariate, _identity


class _Multinomial(Multivariate):
    """Multinomial distribution, of counts along the last dimension."""

    parameters = {"n": inspect.Parameter.empty, "p": inspect.Parameter.empty}

    def _given(self, n, p, *others):
        n, p, *points = real(f"scipy.stats.{self.name}", n=n, p=p, **dict(zip(("x",), others)))
        total = ops.sum(p, -1)
        rest = 1 - ops.sum(p[..., :-1], -1)
        own = ops.where(ops.abs(1 - total) > 10 * np.finfo("float32").eps, rest, p[..., -1])
        p = ops.concatenate([p[..., :-1], ops.expand_dims(own, -1)], -1)
        valid = ops.all((p >= 0) & (p <= 1), -1) & (n >= 0)
        return (n, p, valid, *points)

    def logpmf(self, x, n, p):
        """Logarithm of the probability; -inf if numbers are not counts or do not sum to ``n``."""
        n, p, valid, x = self._given(n, p, x)
        counts = ops.all((x >= 0) & (x == ops.floor(x)), -1) & (ops.sum(x, -1) == n)
        safe = ops.maximum(x, 0.0)
        value = special.gammaln(n + 1) + ops.sum(special.xlogy(safe, p) - special.gammaln(safe + 1), -1)
        return ops.where(valid, ops.where(counts, value, -math.inf), math.nan)

    def pmf(self, x, n, p):
        """Probability."""
        return ops.exp(self.logpmf(x, n, p))

    def mean(self, n, p):
        """Mean."""
        n, p, valid = self._given(n, p)
        return ops.where(ops.expand_dims(valid, -1), ops.expand_dims(n, -1) * p, math.nan)

    def cov(self, n, p):
        """Covariances."""
        n, p, valid = self._given(n, p)
        count = p.shape[-1]
        row, column = ops.expand_dims(p, -1), ops.expand_dims(p, -2)
        own = row * _identity(count, row) - row * column
        n, valid = (ops.expand_dims(ops.expand_dims(v, -1), -1) for v in (n, valid))
        return ops.where(valid, n * own, math.nan)


multinomial = _Multinomial("multinomial")

__all__ = ["multinomial"]
