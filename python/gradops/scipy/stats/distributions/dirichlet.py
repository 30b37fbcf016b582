"""The Dirichlet and Dirichlet-multinomial distributions."""

from __future__ import annotations

import inspect
import math

import numpy as np

from .... import ops
from ....errors import ShapeError
from ....ops import _checks
from ... import special
from .._samples import real
from ._multivariate import Multivariate, _fail, _gamma, _identity, _positive, _size


class _Dirichlet(Multivariate):
    """Dirichlet distribution of shares along the first dimension; the last share may be left out."""

    parameters = {"alpha": inspect.Parameter.empty}

    def _alpha(self, alpha):
        if len(alpha.shape) != 1:
            _fail(self.name, "alpha", f"must be a vector; got the shape {tuple(alpha.shape)}", ShapeError)
        _positive(self.name, "alpha", alpha)
        return alpha

    def _log_beta(self, alpha):
        return ops.sum(special.gammaln(alpha)) - special.gammaln(ops.sum(alpha))

    def logpdf(self, x, alpha):
        """Logarithm of the density."""
        x, alpha = real(f"scipy.stats.{self.name}", x=x, alpha=alpha)
        count = self._alpha(alpha).shape[0]
        if not len(x.shape) or x.shape[0] not in (count, count - 1):
            _fail(self.name, "x", f"must have the first size {count} or {count - 1}", ShapeError)
        if x.shape[0] == count - 1:
            x = ops.concatenate([x, 1 - ops.sum(x, 0, True)], 0)
        known = _checks.known(x)
        if known is not None and not (np.all(known >= 0) and np.all(np.abs(known.sum(0) - 1) <= 1e-5)):
            _fail(self.name, "x", "must be shares: from 0 on, and of the sum 1")
        powers = ops.reshape(alpha - 1, (count, *[1] * (len(x.shape) - 1)))
        return ops.sum(special.xlogy(powers, x), 0) - self._log_beta(alpha)

    def pdf(self, x, alpha):
        """Density."""
        return ops.exp(self.logpdf(x, alpha))

    def mean(self, alpha):
        """Mean."""
        (alpha,) = real(f"scipy.stats.{self.name}", alpha=alpha)
        return self._alpha(alpha) / ops.sum(alpha)

    def var(self, alpha):
        """Variances."""
        mean = _Dirichlet.mean(self, alpha)
        (alpha,) = real(f"scipy.stats.{self.name}", alpha=alpha)
        return mean * (1 - mean) / (ops.sum(alpha) + 1)

    def cov(self, alpha):
        """Covariances."""
        mean = _Dirichlet.mean(self, alpha)
        (alpha,) = real(f"scipy.stats.{self.name}", alpha=alpha)
        return (ops.diag(mean) - ops.outer(mean, mean)) / (ops.sum(alpha) + 1)

    def entropy(self, alpha):
        """Differential entropy."""
        (alpha,) = real(f"scipy.stats.{self.name}", alpha=alpha)
        total = ops.sum(self._alpha(alpha))
        rest = ops.sum((alpha - 1) * special.psi(alpha))
        return self._log_beta(alpha) + (total - alpha.shape[0]) * special.psi(total) - rest

    def rvs(self, alpha, size=1, random_state=None):
        """Random shares from a seed: gamma variables, drawn as quantiles, divided by their sum."""
        (alpha,) = real(f"scipy.stats.{self.name}", alpha=alpha)
        shape = (*_size(self.name, size), self._alpha(alpha).shape[0])
        parts = _gamma(self.name, alpha, shape, random_state)
        return parts / ops.sum(parts, -1, True)


class _DirichletMultinomial(Multivariate):
    """Dirichlet multinomial distribution, of counts along the last dimension."""

    parameters = {"alpha": inspect.Parameter.empty, "n": inspect.Parameter.empty}

    def _given(self, alpha, n, *others):
        alpha, n, *points = real(f"scipy.stats.{self.name}", alpha=alpha, n=n, **dict(zip(("x",), others)))
        _positive(self.name, "alpha", alpha)
        return (alpha, ops.sum(alpha, -1), n, *points)

    def logpmf(self, x, alpha, n):
        """Logarithm of the probability; -inf if counts do not sum to ``n``."""
        alpha, total, n, x = self._given(alpha, n, x)
        parts = special.gammaln(x + alpha) - special.gammaln(alpha) - special.gammaln(x + 1)
        value = special.gammaln(total) + special.gammaln(n + 1) - special.gammaln(n + total) + ops.sum(parts, -1)
        return ops.where(n == ops.sum(x, -1), value, -math.inf)

    def pmf(self, x, alpha, n):
        """Probability."""
        return ops.exp(self.logpmf(x, alpha, n))

    def mean(self, alpha, n):
        """Mean."""
        alpha, total, n = self._given(alpha, n)
        return alpha * ops.expand_dims(n / total, -1)

    def var(self, alpha, n):
        """Variances."""
        alpha, total, n = self._given(alpha, n)
        share = alpha / ops.expand_dims(total, -1)
        return share * (1 - share) * ops.expand_dims(n * (n + total) / (1 + total), -1)

    def cov(self, alpha, n):
        """Covariances."""
        alpha, total, n = self._given(alpha, n)
        share = alpha / ops.expand_dims(total, -1)
        row, column = ops.expand_dims(share, -1), ops.expand_dims(share, -2)
        own = row * _identity(alpha.shape[-1], row) - row * column
        return own * ops.expand_dims(ops.expand_dims(n * (n + total) / (1 + total), -1), -1)


dirichlet = _Dirichlet("dirichlet")

dirichlet_multinomial = _DirichletMultinomial("dirichlet_multinomial")

__all__ = ["dirichlet", "dirichlet_multinomial"]
