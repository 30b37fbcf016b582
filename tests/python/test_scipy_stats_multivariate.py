"""Multivariate distributions and kernel density estimates of ``gradops.scipy.stats`` against SciPy."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.stats
from parity import BACKENDS, numpy, tensors
from scipy_checks import agree, each_library

from gradops import functional, ops
from gradops.errors import ArgumentError, ShapeError
from gradops.scipy import stats
from gradops.scipy.stats.distributions._multivariate import Multivariate

RNG = np.random.default_rng(2)
ROOT = np.array([[1.2, 0.0], [0.4, 0.8]])
ROOT3 = np.array([[1.0, 0.0, 0.0], [0.3, 0.9, 0.0], [-0.2, 0.1, 1.1]])
POINTS = RNG.normal(size=(3, 2)).round(3)
MEAN = np.array([0.3, -0.2])
ALPHA = np.array([1.5, 2.0, 0.7])
SHARES = RNG.dirichlet(ALPHA + 1, 3).T
COUNTS = np.array([[1.0, 2.0, 2.0], [5.0, 0.0, 0.0], [1.0, 1.0, 1.0]])
P = np.array([0.2, 0.3, 0.5])


def square(root):
    """Return a symmetric matrix from a root, so that differences in the root keep it symmetric."""
    return root @ np.swapaxes(root, -1, -2) if isinstance(root, np.ndarray) else ops.matmul(root, ops.transpose(root))


MATRICES = np.stack([square(ROOT), 1.5 * square(ROOT) + 0.1 * np.eye(2)], -1)
FAMILIES = {
    "multivariate_normal": (POINTS, (MEAN, ROOT), (1,)),
    "multivariate_t": (POINTS, (MEAN, ROOT, np.asarray(3.5)), (1,)),
    "matrix_normal": (RNG.normal(size=(4, 2, 3)), (RNG.normal(size=(2, 3)), ROOT, ROOT3), (1, 2)),
    "dirichlet": (SHARES[:-1], (ALPHA,), ()),
    "dirichlet_multinomial": (COUNTS, (ALPHA, np.asarray(5.0)), ()),
    "multinomial": (COUNTS, (np.asarray(5.0), P), ()),
    "wishart": (MATRICES, (np.asarray(4.0), ROOT), (1,)),
    "invwishart": (MATRICES, (np.asarray(7.5), ROOT), (1,)),
}


def test_each_family_has_a_case():
    assert set(FAMILIES) == {name for name in stats.__all__ if isinstance(getattr(stats, name), Multivariate)}


CASES = [
    (name, method)
    for name in FAMILIES
    for method in getattr(stats, name).methods
    if method not in ("rvs", "cdf", "logcdf", "pdf", "pmf")
]


def case(name, method):
    """Return SciPy's or our function of points and parameters, and its arguments."""
    at, parameters, roots = FAMILIES[name]
    first = [at] if method.startswith("log") else []
    parameters = list(enumerate(parameters))[1 if (name, method) == ("matrix_normal", "entropy") else 0 :]

    def of(module):
        def function(*xs):
            given = [square(x) if i in roots else x for (i, _), x in zip(parameters, xs[len(first) :])]
            if "wishart" in name and module is scipy.stats:
                given[0] = float(given[0])
            return getattr(getattr(module, name), method)(*xs[: len(first)], *given)

        return function

    return of, [*first, *(x for _, x in parameters)]


@pytest.mark.parametrize(("name", "method"), CASES)
def test_values_and_derivatives(name, method):
    of, arrays = case(name, method)
    if (name, method) == ("invwishart", "entropy"):  # SciPy's entropy lacks a term in several dimensions
        arrays = [arrays[0], ROOT[:1, :1]]
    by = None
    if "multinomial" in name:
        by = [i for i, x in enumerate(arrays) if x is ALPHA]
        arrays = [x[:2] if x is COUNTS else x for x in arrays]  # the last row has another sum
    if name == "matrix_normal" and method == "logpdf":
        arrays[0] = arrays[0][:2]
    agree(of(stats), of(scipy.stats), *arrays, by=by, over=("numpy", "torch"), second=False, rtol=1e-9)


def test_derivatives_with_respect_to_probabilities():
    """Probabilities are parametrised by log ratios."""

    def of(module):
        def function(z):
            p = np.exp(z) / np.sum(np.exp(z)) if module is scipy.stats else ops.softmax(z)
            return module.multinomial.logpmf(COUNTS[0], 5, p) + module.multinomial.cov(5, p)[0, 1]

        return function

    agree(of(stats), of(scipy.stats), np.log(P), over=("numpy", "torch"), rtol=1e-10)


@pytest.mark.short_cases(1, "jax", "tensorflow")
@each_library(FAMILIES, ("dirichlet", "multivariate_normal"))
def test_multivariate_densities_on_libraries(name, backend):
    method = "logpmf" if "multinomial" in name else "logpdf"
    of, arrays = case(name, method)
    function = of(stats)

    def total(*xs):
        y = function(*xs)
        return ops.sum(ops.where(ops.isfinite(y), y, 0.0))

    given = [tensors(x, backend) for x in arrays]
    np.testing.assert_allclose(numpy(function(*given)), function(*arrays), 1e-11)
    if backend == "jax":
        import jax

        np.testing.assert_allclose(numpy(jax.jit(function)(*given)), function(*arrays), 1e-11)
    last = len(arrays) - 1
    found = functional.grad(total, argnums=last)(*given)
    np.testing.assert_allclose(numpy(found), functional.grad(total, argnums=last)(*arrays), 1e-9, 1e-12)


@pytest.mark.parametrize("name", FAMILIES)
def test_frozen_distributions(name):
    at, parameters, roots = FAMILIES[name]
    given = [square(x) if i in roots else x for i, x in enumerate(parameters)]
    own = getattr(stats, name)
    fixed = own(*given)
    for method in own.methods:
        if method.startswith(("log", "pdf", "pmf")) and method != "logcdf":
            np.testing.assert_array_equal(getattr(fixed, method)(at), getattr(own, method)(at, *given))
    assert pickle.loads(pickle.dumps(own)) is own
    assert "rvs" not in own.methods or np.shape(fixed.rvs(size=3, random_state=1))[0] == 3


@pytest.mark.parametrize("name", [name for name in FAMILIES if "rvs" in getattr(stats, name).methods])
def test_random_numbers_have_the_moments_of_the_family(name):
    """Sample means match the family's mean, and so do their derivatives by the parameters."""
    _, parameters, roots = FAMILIES[name]
    own = getattr(stats, name)

    def given(xs):
        return [square(x) if i in roots else x for i, x in enumerate(xs)]

    def drawn(*xs):
        return ops.mean(own.rvs(*given(xs), size=4000, random_state=3), 0)

    location = {"multivariate_normal": 0, "multivariate_t": 0, "matrix_normal": 0}.get(name)
    expected = parameters[location] if location is not None else own.mean(*given(parameters))
    np.testing.assert_allclose(drawn(*parameters), expected, 0.1, 0.1)
    if location is None:
        by = len(parameters) - 1
        weight = RNG.uniform(0.5, 1.5, np.shape(expected))
        found = functional.grad(lambda *xs: ops.sum(weight * drawn(*xs)), argnums=by)(*parameters)
        wanted = functional.grad(lambda *xs: ops.sum(weight * own.mean(*given(xs))), argnums=by)(*parameters)
        np.testing.assert_allclose(found, wanted, 0.15, 0.15)


def test_entropy_of_inverse_wishart_matrices():
    """The entropy is the mean of the negative log density."""
    scale = square(ROOT)
    drawn = np.moveaxis(np.asarray(stats.invwishart.rvs(9.0, scale, 20000, 1)), 0, -1)
    found = stats.invwishart.entropy(9.0, scale)
    np.testing.assert_allclose(found, -np.mean(stats.invwishart.logpdf(drawn, 9.0, scale)), atol=0.05)


def test_hard_points():
    assert stats.multivariate_normal.logpdf(0.5) == pytest.approx(scipy.stats.multivariate_normal.logpdf(0.5))
    assert stats.multivariate_normal.pdf([0.5, 1.0], cov=[1.0, 4.0]) == pytest.approx(
        scipy.stats.multivariate_normal.pdf([0.5, 1.0], cov=np.diag([1.0, 4.0]))
    )
    assert stats.multivariate_normal.cdf(0.5, 1.0, 4.0) == pytest.approx(scipy.stats.norm.cdf(0.5, 1.0, 2.0))
    infinite = stats.multivariate_t.logpdf(POINTS, MEAN, square(ROOT), np.inf)
    np.testing.assert_allclose(infinite, stats.multivariate_normal.logpdf(POINTS, MEAN, square(ROOT)))
    with pytest.raises(ArgumentError, match="positive definite"):
        stats.multivariate_normal.pdf(MEAN, cov=np.ones((2, 2)), allow_singular=True)
    with pytest.raises(ArgumentError, match="one variable"):
        stats.multivariate_normal.cdf(MEAN, cov=np.eye(2))
    with pytest.raises(ArgumentError, match="`alpha` must be greater than 0"):
        stats.dirichlet.mean([1.0, -1.0])
    with pytest.raises(ArgumentError, match="must be shares"):
        stats.dirichlet.pdf([0.5, 0.6], [1.0, 2.0])
    with pytest.raises(ArgumentError, match="`df` must be greater than 1"):
        stats.wishart.mean(0.5, np.eye(2))
    with pytest.raises(ShapeError):
        stats.wishart.logpdf(np.eye(3), 4.0, np.eye(2))


DATA, WEIGHTS = RNG.normal(size=(2, 8)).round(3), RNG.uniform(0.5, 1.0, 8).round(3)


@pytest.mark.parametrize("method", ["logpdf", "evaluate", "integrate_gaussian", "covariance"])
def test_kernel_density_estimates(method):
    def of(module):
        def function(data, weights, points):
            kde = module.gaussian_kde(data, "silverman", weights)
            if method == "covariance":
                return kde.covariance
            return kde.integrate_gaussian(points[:, 0], np.eye(2)) if "int" in method else getattr(kde, method)(points)

        return function

    over = ("numpy", "torch") if method != "logpdf" else BACKENDS
    agree(of(stats), of(scipy.stats), DATA, WEIGHTS, POINTS.T, over=over, second=False, rtol=1e-10)


def test_kernel_density_estimates_in_one_dimension():
    ours, theirs = (module.gaussian_kde(DATA[0], 0.4) for module in (stats, scipy.stats))
    np.testing.assert_allclose(ours(POINTS[:, 0]), theirs(POINTS[:, 0]))
    assert ours.integrate_box_1d(-1.0, 0.5) == pytest.approx(theirs.integrate_box_1d(-1.0, 0.5))
    assert ours.integrate_kde(ours) == pytest.approx(theirs.integrate_kde(theirs))
    slope = functional.grad(lambda h: stats.gaussian_kde(DATA[0], h).logpdf(0.3)[0])
    ends = [float(stats.gaussian_kde(DATA[0], 0.4 + d).logpdf(0.3)[0]) for d in (1e-6, -1e-6)]
    assert slope(0.4) == pytest.approx((ends[0] - ends[1]) / 2e-6, 1e-6)
    assert stats.gaussian_kde(DATA).resample(5, 1).shape == (2, 5)
    np.testing.assert_allclose(
        stats.gaussian_kde(DATA).marginal(0)(POINTS[:, 0]), scipy.stats.gaussian_kde(DATA).marginal(0)(POINTS[:, 0])
    )
    with pytest.raises(ArgumentError, match="positive definite"):
        stats.gaussian_kde(np.ones(4))
