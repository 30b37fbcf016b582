"""The Wishart and inverse Wishart distributions of covariance matrices."""

from __future__ import annotations

import math

from .... import ops
from ....errors import ShapeError
from ... import special
from .._samples import real
from ._family import seed_of
from ._multivariate import (
    LOG_2,
    Multivariate,
    _factor,
    _fail,
    _gamma,
    _half_logdet,
    _identity,
    _normal,
    _positive,
    _size,
    _solved,
    _square,
    _trace_of_square,
    _turned,
)


class _Wishart(Multivariate):
    """Wishart distribution, of matrices in the first two dimensions."""

    parameters = {"df": None, "scale": None}

    def _given(self, df, scale, *others):
        df, scale, *points = real(f"scipy.stats.{self.name}", df=df, scale=scale, **dict(zip(("x",), others)))
        size = scale.shape[-1] if len(scale.shape) else 1
        if len(df.shape):
            _fail(self.name, "df", "must be one number", ShapeError)
        _positive(self.name, "df", df, size - 1)
        scale = _square(self.name, "scale", scale, size)
        return (df, scale, size, *[self._matrices(x, size) for x in points])

    def _matrices(self, x, size: int):
        """Move matrices to the last two dimensions."""
        if len(x.shape) < 2:
            x = _square(self.name, "x", x, size) if size > 1 or not len(x.shape) else ops.reshape(x, (1, 1, -1))
        if tuple(x.shape[:2]) != (size, size):
            _fail(self.name, "x", f"must begin with the sizes {size} and {size}; got {tuple(x.shape)}", ShapeError)
        return ops.moveaxis(x, (0, 1), (-2, -1))

    def logpdf(self, x, df, scale):
        """Logarithm of the density."""
        df, scale, size, x = self._given(df, scale, x)
        factor, root = _factor(self.name, "scale", scale), _factor(self.name, "x", x)
        square = _trace_of_square(_solved(factor + 0 * root[..., :1, :1], root))
        value = (df - size - 1) * _half_logdet(root) - square / 2 - df * _half_logdet(factor)
        return ops.squeeze(value - df * size / 2 * LOG_2 - special.multigammaln(df / 2, size))

    def pdf(self, x, df, scale):
        """Density."""
        return ops.exp(self.logpdf(x, df, scale))

    def mean(self, df, scale):
        """Mean."""
        df, scale, _ = self._given(df, scale)
        return ops.squeeze(df * scale)

    def mode(self, df, scale):
        """Mode, NaN if it does not exist."""
        df, scale, size = self._given(df, scale)
        return ops.squeeze(ops.where(df >= size + 1, df - size - 1, math.nan) * scale)

    def var(self, df, scale):
        """Variances of the elements."""
        df, scale, _ = self._given(df, scale)
        return ops.squeeze(df * (scale * scale + _outer_diagonal(scale)))

    def entropy(self, df, scale):
        """Differential entropy."""
        df, scale, size = self._given(df, scale)
        logs = ops.sum(ops.stack([special.psi((df - j) / 2) for j in range(size)]), 0)
        value = (size + 1) * _half_logdet(_factor(self.name, "scale", scale)) + size * (size + 1) / 2 * LOG_2
        return value + special.multigammaln(df / 2, size) - (df - size - 1) / 2 * logs + df * size / 2

    def rvs(self, df, scale, size=1, random_state=None):
        """Random matrices from a seed, by the Bartlett decomposition with chi-square quantiles on the diagonal."""
        df, scale, count = self._given(df, scale)
        part = ops.matmul(_factor(self.name, "scale", scale), _bartlett(self, df, count, size, random_state))
        return ops.squeeze(ops.matmul(part, _turned(part)))


def _outer_diagonal(scale):
    diagonal = ops.diagonal(scale)
    return ops.expand_dims(diagonal, -1) * diagonal


def _bartlett(family, df, count: int, size, random_state):
    """Return lower factors of Wishart matrices for an identity scale."""
    seed = seed_of(f"scipy.stats.{family.name}", random_state)
    wanted = _size(family.name, size)
    below = ops.tril(_normal(family.name, df, (*wanted, count, count), seed), -1)
    free = ops.stack([(df - j) / 2 for j in range(count)])
    diagonal = ops.sqrt(2 * _gamma(family.name, free, (*wanted, count), seed))
    return below + ops.expand_dims(diagonal, -1) * _identity(count, diagonal)


class _InvWishart(_Wishart):
    """Inverse Wishart distribution, of matrices in the first two dimensions."""

    def logpdf(self, x, df, scale):
        """Logarithm of the density."""
        df, scale, size, x = self._given(df, scale, x)
        factor, root = _factor(self.name, "scale", scale), _factor(self.name, "x", x)
        square = _trace_of_square(_solved(root, factor + 0 * root[..., :1, :1]))
        value = df * _half_logdet(factor) - square / 2 - (df + size + 1) * _half_logdet(root)
        return ops.squeeze(value - df * size / 2 * LOG_2 - special.multigammaln(df / 2, size))

    def pdf(self, x, df, scale):
        """Density."""
        return ops.exp(self.logpdf(x, df, scale))

    def mean(self, df, scale):
        """Mean, NaN if it does not exist."""
        df, scale, size = self._given(df, scale)
        return ops.squeeze(scale / ops.where(df > size + 1, df - size - 1, math.nan))

    def mode(self, df, scale):
        """Mode."""
        df, scale, size = self._given(df, scale)
        return ops.squeeze(scale / (df + size + 1))

    def var(self, df, scale):
        """Variances of the elements, NaN if they do not exist."""
        df, scale, size = self._given(df, scale)
        free = ops.where(df > size + 3, df - size, math.nan)
        value = (free + 1) * scale * scale + (free - 1) * _outer_diagonal(scale)
        return ops.squeeze(value / (free * (free - 1) * (free - 1) * (free - 3)))

    def entropy(self, df, scale):
        """Differential entropy."""
        df, scale, size = self._given(df, scale)
        logs = ops.sum(ops.stack([special.psi((df - j) / 2) for j in range(size)]), 0)
        half = _half_logdet(_factor(self.name, "scale", scale)) - size / 2 * LOG_2
        value = (size + 1) * half + df * size / 2 - (df + size + 1) / 2 * logs
        return value + special.multigammaln(df / 2, size)

    def rvs(self, df, scale, size=1, random_state=None):
        """Random matrices from a seed, inverses of Wishart matrices."""
        df, scale, count = self._given(df, scale)
        turned = _turned(_factor(self.name, "scale", scale))
        factor = _bartlett(self, df, count, size, random_state)
        part = _solved(factor, turned + 0 * factor[..., :1, :1])
        return ops.squeeze(ops.matmul(_turned(part), part))


invwishart = _InvWishart("invwishart")

wishart = _Wishart("wishart")

__all__ = ["invwishart", "wishart"]
