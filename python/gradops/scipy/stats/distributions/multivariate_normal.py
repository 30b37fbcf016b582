"""The multivariate normal, multivariate t and matrix normal distributions."""

from __future__ import annotations

import math

from .... import ops
from ... import special
from .._samples import real
from ._family import seed_of
from ._multivariate import (
    LOG_2_PI,
    Multivariate,
    _distance,
    _factor,
    _fail,
    _gamma,
    _half_logdet,
    _located,
    _normal,
    _positive,
    _size,
    _solved,
    _square,
    _trace_of_square,
    _turned,
)


class _MultivariateNormal(Multivariate):
    """Multivariate normal distribution, of points along the last dimension."""

    parameters = {"mean": None, "cov": 1, "allow_singular": False}

    def logpdf(self, x, mean=None, cov=1, allow_singular=False):
        """Logarithm of the density."""
        if hasattr(x, "log_density"):  # marked observations of a likelihood
            return x.log_density(self, (mean, cov))
        mean, cov, size, x = _located(self.name, ("mean", "cov"), mean, cov, x)
        factor, square = _distance(self.name, "cov", x, mean, cov, size)
        return ops.squeeze(-0.5 * (size * LOG_2_PI + square) - _half_logdet(factor))

    def pdf(self, x, mean=None, cov=1, allow_singular=False):
        """Density."""
        return ops.exp(self.logpdf(x, mean, cov))

    def _univariate(self, method, x, mean, cov):
        mean, cov, size, x = _located(self.name, ("mean", "cov"), mean, cov, x)
        if size != 1:
            _fail(self.name, "cov", "must be of one variable: of more SciPy integrates by random points")
        z = (x - mean[0]) / ops.sqrt(cov[0, 0])
        return ops.squeeze(method(z))

    def cdf(self, x, mean=None, cov=1, allow_singular=False):
        """Probability up to ``x``, of one variable."""
        return self._univariate(special.ndtr, x, mean, cov)

    def logcdf(self, x, mean=None, cov=1, allow_singular=False):
        """Logarithm of the probability up to ``x``, of one variable."""
        return self._univariate(special.log_ndtr, x, mean, cov)

    def entropy(self, mean=None, cov=1):
        """Differential entropy."""
        _, cov, size = _located(self.name, ("mean", "cov"), mean, cov)
        return size / 2 * (LOG_2_PI + 1) + _half_logdet(_factor(self.name, "cov", cov))

    def rvs(self, mean=None, cov=1, size=1, random_state=None):
        """Random vectors from a seed: a linear function of independent normal variables."""
        mean, cov, count = _located(self.name, ("mean", "cov"), mean, cov)
        z = _normal(self.name, cov, (*_size(self.name, size), count), random_state)
        return ops.squeeze(mean + ops.matmul(z, _turned(_factor(self.name, "cov", cov))))


class _MultivariateT(Multivariate):
    """Multivariate t-distribution of points along the last dimension; normal for infinite ``df``."""

    parameters = {"loc": None, "shape": 1, "df": 1, "allow_singular": False}

    def logpdf(self, x, loc=None, shape=1, df=1, allow_singular=False):
        """Logarithm of the density."""
        loc, shape, size, x, df = _located(self.name, ("loc", "shape"), loc, shape, x, 1 if df is None else df)
        _positive(self.name, "df", df)
        factor, square = _distance(self.name, "shape", x, loc, shape, size)
        infinite = df == math.inf
        df = ops.where(infinite, 1.0, df)
        half = (df + size) / 2
        value = special.gammaln(half) - special.gammaln(df / 2) - size / 2 * ops.log(df * math.pi)
        value = value - half * ops.log1p(square / df)
        normal = -0.5 * (size * LOG_2_PI + square)
        return ops.squeeze(ops.where(infinite, normal, value) - _half_logdet(factor))

    def pdf(self, x, loc=None, shape=1, df=1, allow_singular=False):
        """Density."""
        return ops.exp(self.logpdf(x, loc, shape, df))

    def entropy(self, loc=None, shape=1, df=1):
        """Differential entropy."""
        _, shape, size, df = _located(self.name, ("loc", "shape"), loc, shape, 1 if df is None else df)
        _positive(self.name, "df", df)
        infinite = df == math.inf
        df = ops.where(infinite, 1.0, df)
        half, full = df / 2, (df + size) / 2
        value = special.gammaln(half) - special.gammaln(full) + size / 2 * ops.log(df * math.pi)
        value = value + full * (special.psi(full) - special.psi(half))
        value = ops.where(infinite, size / 2 * (LOG_2_PI + 1), value)
        return value + _half_logdet(_factor(self.name, "shape", shape))

    def rvs(self, loc=None, shape=1, df=1, size=1, random_state=None):
        """Random vectors from a seed: normal vectors divided by roots of chi-square variables, drawn as quantiles."""
        loc, shape, count, df = _located(self.name, ("loc", "shape"), loc, shape, 1 if df is None else df)
        random_state = seed_of(f"scipy.stats.{self.name}", random_state)
        wanted = _size(self.name, size)
        z = ops.matmul(
            _normal(self.name, shape, (*wanted, count), random_state), _turned(_factor(self.name, "shape", shape))
        )
        share = _gamma(self.name, df / 2, (*wanted, 1), random_state) / (df / 2)
        return ops.squeeze(loc + z / ops.sqrt(share))


class _MatrixNormal(Multivariate):
    """Matrix normal distribution, of matrices in the last two dimensions."""

    parameters = {"mean": None, "rowcov": 1, "colcov": 1}

    def _factors(self, mean, rowcov, colcov, *others):
        given = {"mean": mean, "rowcov": rowcov, "colcov": colcov, **{f"X{i}": x for i, x in enumerate(others)}}
        given = {name: x for name, x in given.items() if x is not None}
        found = dict(zip(given, real(f"scipy.stats.{self.name}", **given)))
        rows, columns = found["rowcov"], found["colcov"]
        if "mean" in found:
            m, n = found["mean"].shape
        else:
            m, n = (x.shape[-1] if len(x.shape) else 1 for x in (rows, columns))
        factors = (
            _factor(self.name, name, _square(self.name, name, found[name], size))
            for name, size in (("rowcov", m), ("colcov", n))
        )
        return (m, n, found.get("mean", 0.0), *factors, *list(found.values())[len(found) - len(others) :])

    def logpdf(self, X, mean=None, rowcov=1, colcov=1):
        """Logarithm of the density."""
        m, n, mean, rows, columns, X = self._factors(mean, rowcov, colcov, X)
        z = _solved(columns + 0 * X[..., :1, :1], _turned(_solved(rows + 0 * X[..., :1, :1], X - mean)))
        value = -0.5 * (m * n * LOG_2_PI + _trace_of_square(z))
        return ops.squeeze(value - n * _half_logdet(rows) - m * _half_logdet(columns))

    def pdf(self, X, mean=None, rowcov=1, colcov=1):
        """Density."""
        return ops.exp(self.logpdf(X, mean, rowcov, colcov))

    def entropy(self, rowcov=1, colcov=1):
        """Differential entropy."""
        m, n, _, rows, columns = self._factors(None, rowcov, colcov)
        return m * n / 2 * (LOG_2_PI + 1) + n * _half_logdet(rows) + m * _half_logdet(columns)

    def rvs(self, mean=None, rowcov=1, colcov=1, size=1, random_state=None):
        """Random matrices from a seed: a linear function of independent normal variables; one matrix for size 1."""
        m, n, mean, rows, columns = self._factors(mean, rowcov, colcov)
        wanted = () if size == 1 else _size(self.name, size)
        z = _normal(self.name, rows, (*wanted, m, n), random_state)
        return mean + ops.matmul(ops.matmul(rows, z), _turned(columns))


matrix_normal = _MatrixNormal("matrix_normal")

multivariate_normal = _MultivariateNormal("multivariate_normal")

multivariate_t = _MultivariateT("multivariate_t")

__all__ = ["matrix_normal", "multivariate_normal", "multivariate_t"]
