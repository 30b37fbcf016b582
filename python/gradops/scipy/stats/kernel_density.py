"""Kernel density estimates."""

from __future__ import annotations

import math

import numpy as np

from ... import ops
from ...errors import ArgumentError, ShapeError
from ...ops import _checks
from .. import special
from ._samples import real
from .distributions._family import seed_of


class gaussian_kde:  # SciPy's name
    """Density estimate with normal kernels that have the observations' scaled covariance.

    Args:
        dataset: observations (n,), or vectors in the columns of (d, n).
        bw_method: the factor for the root of the covariance: ``"scott"``, ``"silverman"``, a number or a tensor, or a
            function of the object.
        weights: of the observations.

    Attributes:
        dataset, weights: the observations, (d, n), and their weights, of the sum 1.
        d, n, neff: the number of dimensions, of observations, and of equally weighted ones of the same value.
        factor, covariance, inv_cov: the bandwidth, the kernels' covariance, and its inverse.

    Returns:
        An object whose methods give tensors: densities (m,) of points (m,) or (d, m).

    Raises:
        ShapeError: fewer than two observations; points of other dimensions.
        ArgumentError: an unknown ``bw_method``; observations whose covariance is singular.

    Gradient:
        By the points, the observations, the weights and a bandwidth that is a tensor, also through the covariance.
    """

    def __init__(self, dataset, bw_method=None, weights=None):
        given = {"dataset": dataset} if weights is None else {"dataset": dataset, "weights": weights}
        data, *found = real("scipy.stats.gaussian_kde", **given)
        self.dataset = ops.reshape(data, (1, -1)) if len(data.shape) < 2 else data
        if len(self.dataset.shape) != 2 or self.dataset.shape[1] < 2:
            raise ShapeError("`scipy.stats.gaussian_kde`: `dataset` must have two observations.", argument="dataset")
        self.d, self.n = self.dataset.shape
        if found and tuple(found[0].shape) != (self.n,):
            raise ShapeError(
                f"`scipy.stats.gaussian_kde`: `weights` must be {self.n} numbers, one for each observation.",
                argument="weights",
            )
        self.weights = found[0] / ops.sum(found[0]) if found else ops.ones_like(self.dataset[0]) / self.n
        self.neff = 1 / ops.sum(self.weights**2)
        self.set_bandwidth(bw_method)

    def scotts_factor(self):
        """Scott's bandwidth, ``neff**(-1 / (d + 4))``."""
        return self.neff ** (-1 / (self.d + 4))

    def silverman_factor(self):
        """Silverman's bandwidth, ``(neff * (d + 2) / 4)**(-1 / (d + 4))``."""
        return (self.neff * (self.d + 2) / 4) ** (-1 / (self.d + 4))

    def set_bandwidth(self, bw_method=None) -> None:
        """Set the bandwidth; ``bw_method`` as for the class."""
        if bw_method is None or isinstance(bw_method, str):
            _checks.choice("scipy.stats.gaussian_kde", bw_method, (None, "scott", "silverman"), "bw_method")
            factor = self.silverman_factor() if bw_method == "silverman" else self.scotts_factor()
        else:
            factor = bw_method(self) if callable(bw_method) and not ops.is_tensor(bw_method) else bw_method
            _, factor = real("scipy.stats.gaussian_kde", dataset=self.dataset, bw_method=factor)
            if len(factor.shape):
                raise ShapeError("`scipy.stats.gaussian_kde`: `bw_method` must be one number.", argument="bw_method")
        self.factor = factor
        middle = self.dataset - ops.sum(self.dataset * self.weights, 1, True)
        shared = ops.matmul(middle * self.weights, ops.swapaxes(middle, 0, 1)) / (1 - ops.sum(self.weights**2))
        self.covariance = shared * factor * factor
        try:
            self._root = ops.cholesky(self.covariance)
        except ArgumentError as error:
            raise ArgumentError(
                "`scipy.stats.gaussian_kde`: the covariance of `dataset` must be positive definite.", argument="dataset"
            ) from error

    def covariance_factor(self):
        """The bandwidth."""
        return self.factor

    @property
    def inv_cov(self):
        return ops.cholesky_inverse(self._root)

    def _points(self, points):
        points = real("scipy.stats.gaussian_kde", points=points, dataset=self.dataset)[0]
        if len(points.shape) < 2:
            points = ops.reshape(points, (1, -1) if self.d == 1 else (-1, 1))
        if len(points.shape) != 2 or points.shape[0] != self.d:
            raise ShapeError(
                f"`scipy.stats.gaussian_kde`: `points` must be vectors of {self.d} in columns; got the shape "
                f"{tuple(points.shape)}.",
                argument="points",
            )
        return points

    def logpdf(self, x):
        """Logarithm of the density at points."""
        return self._log_density(self._points(x), self._root)

    def _log_density(self, points, root):
        places = ops.solve_triangular(root, points, lower=True)
        data = ops.solve_triangular(root, self.dataset, lower=True)
        apart = ops.expand_dims(places, -1) - ops.expand_dims(data, 1)
        logs = ops.log(self.weights) - ops.sum(apart * apart, 0) / 2
        logdet = ops.sum(ops.log(ops.diagonal(root)))
        return ops.logsumexp(logs, -1) - logdet - self.d / 2 * math.log(2 * math.pi)

    def evaluate(self, points):
        """Density at points."""
        return ops.exp(self.logpdf(points))

    __call__ = pdf = evaluate

    def integrate_gaussian(self, mean, cov):
        """Integral of the product with a normal density."""
        mean, cov, _ = real("scipy.stats.gaussian_kde", mean=mean, cov=cov, dataset=self.dataset)
        mean, cov = ops.reshape(mean, (self.d, 1)), ops.reshape(cov, (self.d, self.d))
        return ops.exp(self._log_density(mean, ops.cholesky(self.covariance + cov)))[0]

    def integrate_kde(self, other):
        """Integral of the product with another density of kernels."""
        root = ops.cholesky(self.covariance + other.covariance)
        return ops.sum(ops.exp(self._log_density(other.dataset, root)) * other.weights)

    def integrate_box_1d(self, low, high):
        """Probability between two numbers, of one dimension."""
        if self.d != 1:
            raise ShapeError(
                "`scipy.stats.gaussian_kde`: of more than one dimension SciPy integrates a box by random points.",
                argument="dataset",
            )
        low, high, _ = real("scipy.stats.gaussian_kde", low=low, high=high, dataset=self.dataset)
        below, above = (special.ndtr((x - self.dataset[0]) / self._root[0, 0]) for x in (low, high))
        return ops.sum((above - below) * self.weights)

    def integrate_box(self, low_bounds, high_bounds, maxpts=None):
        """Probability of a box, of one dimension."""
        low, high = real("scipy.stats.gaussian_kde", low_bounds=low_bounds, high_bounds=high_bounds)
        return self.integrate_box_1d(*(x if not len(x.shape) else ops.reshape(x, (-1,))[0] for x in (low, high)))

    def resample(self, size=None, seed=None):
        """Random vectors (d, size) from a seed, with derivatives by the observations and the bandwidth."""
        seed = seed_of("scipy.stats.gaussian_kde.resample", seed)
        weights = _checks.known(self.weights)
        if weights is None:
            raise ArgumentError("`scipy.stats.gaussian_kde`: `resample` takes known weights.", argument="weights")
        size = int(1 / np.sum(weights**2)) if size is None else size
        chosen = np.random.default_rng(seed).choice(self.n, size, p=weights / weights.sum())
        normal = ops.random.random_normal(self.dataset, (self.d, size), ops.random.next_seed(seed, 1))
        return ops.take(self.dataset, chosen, 1) + ops.matmul(self._root, normal)

    def marginal(self, dimensions):
        """The density of some of the dimensions, with the same bandwidth."""
        found = np.atleast_1d(np.asarray(dimensions))
        return gaussian_kde(ops.take(self.dataset, found, 0), self.factor, self.weights)


__all__ = ["gaussian_kde"]
