"""Distributions of vectors and matrices, by the Cholesky factors of their covariances."""

from __future__ import annotations

import inspect
import math
from typing import Any

import numpy as np

from ... import ops
from ...errors import ArgumentError, ArgumentTypeError, ShapeError
from ...ops import _checks
from .. import special
from .._tensors import beside
from . import gammas
from ._arguments import public
from ._family import seed_of
from ._samples import real

__all__ = "dirichlet dirichlet_multinomial matrix_normal multinomial multivariate_normal multivariate_t".split()

LOG_2_PI = math.log(2 * math.pi)
LOG_2 = math.log(2)

_DOC = """{text}

Methods: {methods}.

Returns:
    As a function, of its parameters {parameters}, the distribution with these fixed. Its methods give tensors of the
    promoted floating dtype of their arguments, in SciPy's shapes.

Raises:
    ArgumentTypeError: in a method, an argument that is not a number or tensor; a complex tensor.
    ArgumentError: in a method, a matrix that is not positive definite, also with ``allow_singular``, as a singular one
        has no derivative; parameters outside of their domain, as far as they are known.
    ShapeError: in a method, shapes that do not fit.

Gradient:
    By each argument that is a tensor, as of the formula; by symmetric matrices a symmetric one. Random numbers have
    derivatives by the parameters, those of counts none.
"""


class Multivariate:
    """A family of distributions of vectors or matrices; its methods are functions of all parameters."""

    parameters: dict[str, Any] = {}

    def __init__(self, name: str):
        self.name, self.__module__ = name, "gradops.scipy.stats"
        self.methods = [m for m, value in vars(type(self)).items() if inspect.isfunction(value) and m[0] != "_"]
        for method in self.methods:
            bound = getattr(self, method)
            defaults = {p.name: p.default for p in inspect.signature(bound).parameters.values()}
            text = inspect.getdoc(bound) or ""
            setattr(self, method, public(bound, self, method, defaults, text))
        self.__doc__ = _DOC.format(
            text=inspect.getdoc(type(self)),
            methods=", ".join(f"``{m}``" for m in self.methods),
            parameters=", ".join(f"``{p}``" for p in self.parameters),
        )

    def __reduce__(self):
        return self.name

    def __repr__(self):
        return f"<gradops.scipy.stats.{self.name}({', '.join(self.parameters)})>"

    def __call__(self, *args, **kwds) -> FrozenMultivariate:
        if len(args) > len(self.parameters) or not set(kwds) <= {*self.parameters, "seed"}:
            raise ArgumentTypeError(
                f"`scipy.stats.{self.name}` has the parameters {', '.join(self.parameters)}.", argument="arguments"
            )
        return FrozenMultivariate(self, {**self.parameters, **dict(zip(self.parameters, args)), **kwds})


class FrozenMultivariate:
    """A distribution of vectors or matrices with fixed parameters, which are attributes."""

    def __init__(self, dist: Multivariate, given: dict[str, Any]):
        self.dist, self.given = dist, given

    def __getattr__(self, name: str):
        if name.startswith("_"):
            raise AttributeError(name)
        if name not in self.dist.methods:
            if name in self.given:
                return self.given[name]
            raise AttributeError(f"a frozen `scipy.stats.{self.dist.name}` has no attribute {name!r}")
        method = getattr(self.dist, name)
        known = inspect.signature(method).parameters
        fixed = {key: value for key, value in self.given.items() if key in known}
        rest = [key for key in known if key not in fixed]

        def frozen(*args, **kwds):
            if len(args) > len(rest):
                raise ArgumentTypeError(
                    f"`{self.dist.name}.{name}` has the arguments {', '.join(rest)}.", argument="arguments"
                )
            return method(**fixed, **dict(zip(rest, args)), **kwds)

        return frozen


# Shared ---------------------------------------------------------------------------------------------------------------


def _fail(family: str, argument: str, why: str, kind: Any = ArgumentError):
    raise kind(f"`scipy.stats.{family}`: `{argument}` {why}.", argument=argument)


def _positive(family: str, argument: str, value, above=0.0) -> None:
    known = _checks.known(value)
    if known is not None and not np.all(known > above):
        _fail(family, argument, f"must be greater than {above:g}")


def _square(family: str, name: str, a, size: int):
    """A matrix of a number, which scales the identity, of a diagonal, or as it is."""
    if len(a.shape) == 0:
        return a * _identity(size, a)
    if len(a.shape) == 1:
        a = ops.diag(a)
    if tuple(a.shape[-2:]) != (size, size):
        _fail(family, name, f"must be {size} by {size}; got the shape {tuple(a.shape)}", ShapeError)
    return a


def _factor(family: str, name: str, a):
    """The lower Cholesky factor."""
    try:
        return ops.cholesky(a)
    except ArgumentError:
        pass
    return _fail(family, name, "must be symmetric and positive definite: a singular one has no derivative")


def _identity(size: int, like):
    return beside(np.eye(size), like)


def _half_logdet(factor):
    return ops.sum(ops.log(ops.diagonal(factor, 0, -2, -1)), -1)


def _solved(factor, columns):
    return ops.solve_triangular(factor, columns, lower=True)


def _turned(x):
    return ops.swapaxes(x, -1, -2)


def _trace_of_square(x):
    return ops.sum(x * x, (-2, -1))


def _size(family: str, size) -> tuple[int, ...]:
    wanted = tuple(size) if isinstance(size, (tuple, list)) else () if size is None else (size,)
    if not all(isinstance(n, (int, np.integer)) and n >= 0 for n in wanted):
        _fail(family, "size", "must be a whole number or several")
    return tuple(int(n) for n in wanted)


def _normal(family: str, like, shape, random_state):
    return ops.random.random_normal(
        like, shape, ops.random.next_seed(seed_of(f"scipy.stats.{family}", random_state), 0)
    )


def _gamma(family: str, a, shape, random_state):
    """Gamma variables by quantiles of uniform ones, through which they have derivatives by ``a``."""
    seed = ops.random.next_seed(seed_of(f"scipy.stats.{family}", random_state), 1)
    law: Any = gammas.gamma
    p = ops.maximum(ops.random.random_uniform(a, shape, seed), 2.0**-54)
    return law.ppf(p, a)


def _located(family: str, names: tuple[str, str], loc, scale, *others):
    """A location as a vector, a matrix, and other tensors, of one dtype."""
    given = {name: x for name, x in ((names[0], loc), (names[1], scale)) if x is not None}
    given.update({f"argument {i}": x for i, x in enumerate(others)})
    found = dict(zip(given, real(f"scipy.stats.{family}", **given)))
    rest = list(found.values())[len(found) - len(others) :] if others else []
    loc, scale = found.get(names[0]), found.get(names[1])
    size = 1 if scale is None or not len(scale.shape) else scale.shape[-1]
    if loc is not None:
        loc = ops.reshape(loc, (1,)) if not len(loc.shape) else loc
        size = loc.shape[-1]
    if scale is not None and len(scale.shape) == 1 and loc is None:
        size = scale.shape[0]
    like = loc if loc is not None else scale if scale is not None else rest[0] if rest else ops.convert_to_tensor(0.0)
    one = ops.reshape(like, (-1,))[0] * 0
    scale = one + 1 if scale is None else scale
    loc = ops.stack([one] * size) if loc is None else loc
    return (loc, _square(family, names[1], scale, size), size, *rest)


def _distance(family, name, x, loc, scale, size: int):
    """The factor, and Mahalanobis' square distance of points from a location."""
    if len(x.shape) == 0:
        x = ops.reshape(x, (1,))
    if len(x.shape) == 1 and size == 1:
        x = ops.expand_dims(x, -1)
    factor, d = _factor(family, name, scale), x - loc
    if d.shape[-1] != size:
        _fail(family, "x", f"must have the last size {size}; got the shape {tuple(x.shape)}", ShapeError)
    if len(factor.shape) == 2:
        z = _solved(factor, _turned(ops.reshape(d, (-1, size))))
        return factor, ops.reshape(ops.sum(z * z, 0), tuple(d.shape[:-1]))
    z = _solved(factor, ops.expand_dims(d, -1))[..., 0]
    return factor, ops.sum(z * z, -1)


class _MultivariateNormal(Multivariate):
    """Multivariate normal distribution, of points along the last dimension."""

    parameters = {"mean": None, "cov": 1, "allow_singular": False}

    def logpdf(self, x, mean=None, cov=1, allow_singular=False):
        """Logarithm of the density."""
        if hasattr(x, "log_density"):  # observations that a likelihood marks
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
        """Random vectors of a seed: a linear function of independent ones."""
        mean, cov, count = _located(self.name, ("mean", "cov"), mean, cov)
        z = _normal(self.name, cov, (*_size(self.name, size), count), random_state)
        return ops.squeeze(mean + ops.matmul(z, _turned(_factor(self.name, "cov", cov))))


class _MultivariateT(Multivariate):
    """Multivariate t-distribution, of points along the last dimension; of an infinite ``df`` the normal one."""

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
        """Random vectors of a seed: normal ones by roots of chi-square ones, which are quantiles."""
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
        """Random matrices of a seed: a linear function of independent ones; of a size of 1 one matrix."""
        m, n, mean, rows, columns = self._factors(mean, rowcov, colcov)
        wanted = () if size == 1 else _size(self.name, size)
        z = _normal(self.name, rows, (*wanted, m, n), random_state)
        return mean + ops.matmul(ops.matmul(rows, z), _turned(columns))


class _Dirichlet(Multivariate):
    """Dirichlet distribution, of shares along the first dimension, the last of which may be left out."""

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
        """Random shares of a seed: gamma variables, which are quantiles, by their sums."""
        (alpha,) = real(f"scipy.stats.{self.name}", alpha=alpha)
        shape = (*_size(self.name, size), self._alpha(alpha).shape[0])
        parts = _gamma(self.name, alpha, shape, random_state)
        return parts / ops.sum(parts, -1, True)


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
        """Logarithm of the probability; -inf of numbers that are not counts, and of a sum other than ``n``."""
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


class _DirichletMultinomial(Multivariate):
    """Dirichlet multinomial distribution, of counts along the last dimension."""

    parameters = {"alpha": inspect.Parameter.empty, "n": inspect.Parameter.empty}

    def _given(self, alpha, n, *others):
        alpha, n, *points = real(f"scipy.stats.{self.name}", alpha=alpha, n=n, **dict(zip(("x",), others)))
        _positive(self.name, "alpha", alpha)
        return (alpha, ops.sum(alpha, -1), n, *points)

    def logpmf(self, x, alpha, n):
        """Logarithm of the probability; -inf of counts of another sum than ``n``."""
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
matrix_normal = _MatrixNormal("matrix_normal")
multinomial = _Multinomial("multinomial")
multivariate_normal = _MultivariateNormal("multivariate_normal")
multivariate_t = _MultivariateT("multivariate_t")
