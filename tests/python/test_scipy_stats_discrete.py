"""Discrete families of ``gradops.scipy.stats`` against SciPy and high-precision sums; derivatives."""

import itertools

import mpmath
import numpy as np
import pytest
import scipy.stats
from exact import PROBABILITY
from mpmath import mp
from parity import BACKENDS, tensors
from scipy_checks import agree, each_library

import gradops
from gradops import backends, jit, ops
from gradops.errors import GradientError
from gradops.jit.array import Traced
from gradops.scipy import _formulas, stats
from gradops.scipy.stats.distributions._discrete import Discrete

SHAPES = {
    "bernoulli": [0.3],
    "betabinom": [12.0, 1.7, 2.3],
    "betanbinom": [4.0, 6.5, 2.3],
    "binom": [12.0, 0.3],
    "boltzmann": [0.3, 15.0],
    "geom": [0.3],
    "hypergeom": [40.0, 17.0, 12.0],
    "logser": [0.7],
    "nbinom": [3.7, 0.3],
    "randint": [-3.0, 9.0],
    "skellam": [4.7, 2.3],
    "zipf": [5.5],
    "zipfian": [1.3, 60.0],
}
FAMILIES = [name for name in stats.__all__ if isinstance(getattr(stats, name), Discrete)]
METHODS = ("pmf", "logpmf", "cdf", "sf", "logcdf", "logsf")


def shapes(name: str) -> list[float]:
    return SHAPES.get(name, [1.7] * getattr(scipy.stats, name).numargs)


def real(name: str) -> list[int]:
    """Return the positions of the shapes that are not integers."""
    family = getattr(stats, name)
    return [i for i, shape in enumerate(family.shapes) if shape not in family.whole]


def places(name: str, count: int = 5) -> np.ndarray:
    ends = getattr(scipy.stats, name).ppf([0.02, 0.98], *shapes(name))
    return np.unique(np.round(np.linspace(*ends, count)))


def test_families_are_found():
    assert len(FAMILIES) > 15


@pytest.mark.parametrize("name", FAMILIES)
def test_values_match_scipy(name):
    own, theirs, given = getattr(stats, name), getattr(scipy.stats, name), shapes(name)
    k = np.concatenate([np.arange(-6.0, 12.0, 0.5), [np.inf, -np.inf, np.nan]])
    for method in METHODS[:4]:
        found = getattr(own, method)(k, *given, loc=2)
        want = getattr(theirs, method)(k if method in METHODS[:2] else np.floor(k), *given, loc=2)
        if method in ("pmf", "logpmf"):
            want[np.isinf(k)] = 0.0 if method == "pmf" else -np.inf
        np.testing.assert_allclose(found, want, 1e-10, 1e-13, err_msg=method)
        np.testing.assert_array_equal(getattr(own(*given, loc=2), method)(k), found)
    q = np.concatenate([[0.0], np.linspace(0.02, 0.98, 13), [1.0, 1.5, -0.1, np.nan]])
    for method in ("ppf", "isf"):
        np.testing.assert_array_equal(
            getattr(own, method)(q, *given, loc=2), getattr(theirs, method)(q, *given, loc=2), err_msg=method
        )
    for method in ("mean", "var", "std", "median", "entropy"):
        np.testing.assert_allclose(getattr(own, method)(*given), getattr(theirs, method)(*given), 1e-7, err_msg=method)
    np.testing.assert_allclose(own.stats(*given, moments="mvsk"), theirs.stats(*given, moments="mvsk"), 1e-10, 1e-13)
    np.testing.assert_array_equal(own.support(*given), theirs.support(*given))


@pytest.mark.parametrize("name", FAMILIES)
def test_quantile_inverts_the_distribution_function(name):
    own, given, k = getattr(stats, name), shapes(name), places(name, 9)
    np.testing.assert_array_equal(own.ppf(own.cdf(k, *given), *given), k)
    np.testing.assert_array_equal(own.ilogcdf(own.logcdf(k, *given), *given), k)
    inner = own.sf(k, *given) > 0
    np.testing.assert_array_equal(own.isf(own.sf(k, *given), *given)[inner], k[inner])
    single = own.cdf(k.astype("float32"), *given)
    assert single.dtype == "float32"
    np.testing.assert_array_equal(own.ppf(single, *given), k)
    many = own.cdf(np.tile(k, 20), *given)  # by a table
    np.testing.assert_array_equal(own.ppf(many, *given), np.tile(k, 20))


# Many digits ----------------------------------------------------------------------------------------------------------

HARD = {
    "bernoulli": [[1e-10]],
    "betabinom": [[200.0, 0.1, 0.2], [1000.0, 300.0, 700.0], [50.0, 1e7, 3e7], [200.0, 1e-3, 0.1]],
    "binom": [[1000.0, 0.01], [100.0, 1e-9], [1000.0, 0.999]],
    "boltzmann": [[1e-9, 30.0]],
    "dlaplace": [[30.0]],
    "geom": [[0.999], [0.3]],
    "hypergeom": [[1000.0, 500.0, 300.0], [10.0**6, 50.0, 10.0**6 - 100], [10.0**9, 20.0, 5e8]],
    "logser": [[0.7], [0.01]],
    "nbinom": [[0.01, 0.3], [1e7, 1 - 1e-6]],
    "planck": [[0.3]],
    "poisson": [[1e-5], [60.0]],
    "skellam": [[1e-2, 1e-6], [1e-3, 30.0], [60.0, 30.0]],
    "zipfian": [[0.0, 50.0], [1.0, 200.0], [0.5, 300.0]],
}


@pytest.mark.short_cases(8)
@pytest.mark.parametrize("name", FAMILIES)
def test_tails_are_accurate(name):
    own = getattr(stats, name)
    for given in [shapes(name), *HARD.get(name, [])]:
        a, b = [float(end) for end in own.support(*given)]
        mean, std = float(own.mean(*given)), float(own.std(*given))
        k = np.floor(mean + std * np.array([-20, -6, -2, -0.5, 0, 0.5, 2, 8, 30]))
        k = np.unique(np.concatenate([k, [max(a, -1e3), min(b, 1e3)]]))
        k = k[(k >= a) & (k <= b) & (np.abs(k) <= 1e3)]
        with mpmath.workdps(30):
            exact = [mp.mpf(shape) for shape in given]
            first, last = int(max(a, k.min() - 100)), int(min(b, k.max() + 300))
            each = [PROBABILITY[name](j, *exact) for j in range(first, last + 1)]
            heavy = name in ("zipf", "betanbinom")  # power-law tails, whose sums do not end
            below = list(itertools.accumulate(each))
            above = [1 - x for x in below] if heavy else list(itertools.accumulate(each[::-1]))[::-1][1:] + [0]
            place = [int(j) - first for j in k]
            want = {
                "logpmf": [mp.log(each[i]) for i in place],
                "cdf": [below[i] for i in place],
                "sf": [above[i] for i in place],
                "logcdf": [mp.log1p(-above[i]) if below[i] > 0.5 else mp.log(below[i]) for i in place],
                "logsf": [
                    mp.log1p(-below[i]) if above[i] > 0.5 else mp.log(above[i]) if above[i] else -mp.inf for i in place
                ],
            }
            want = {method: np.array([float(x) for x in values]) for method, values in want.items()}
        for method, values in want.items():
            found = getattr(own, method)(k, *given)
            atol = 1e-15 if method == "logpmf" else 1e-300
            np.testing.assert_allclose(found, values, 2e-12, atol, err_msg=f"{method} of {given}")


def test_quantiles_of_0_and_1_are_not_searched(monkeypatch):
    """They are infinite; a search would double its step a thousand times."""
    family, calls = stats.skellam, []
    tail = family._tail
    monkeypatch.setattr(family, "_tail", lambda *arguments: calls.append(1) or tail(*arguments), raising=False)
    np.testing.assert_array_equal(family.ppf([0.0, 1.0], 3.0, 5.0), [-np.inf, np.inf])
    assert len(calls) < 10


# Derivatives ----------------------------------------------------------------------------------------------------------


@pytest.mark.short_cases(8)
@pytest.mark.parametrize("name", FAMILIES)
def test_derivatives_with_respect_to_shapes(name):
    own, given, k = getattr(stats, name), list(map(np.asarray, shapes(name))), places(name)[:-1]
    weights, step = np.arange(1.0, len(k) + 1), 1e-5

    def functions():
        for method in METHODS:
            yield method, lambda *shapes, method=method: ops.sum(getattr(own, method)(k, *shapes) * weights)
        for method in ("mean", "std", "entropy"):
            yield method, lambda *shapes, method=method: getattr(own, method)(*shapes)

    by = tuple(real(name))

    def differences(f):
        """Yield differences by each parameter, of a function with one or several results."""
        for j in by:
            above, below = (f(*given[:j], given[j] + sign * step, *given[j + 1 :]) for sign in (1, -1))
            yield (np.asarray(above, float) - np.asarray(below, float)) / (2 * step)

    for method, f in functions() if by else ():
        first = gradops.grad(f, argnums=by)
        np.testing.assert_allclose(first(*given), list(differences(f)), 1e-6, 1e-7, err_msg=method)
        if method not in ("mean", "std"):
            want = np.stack(list(differences(first)), 1)
            for i in range(len(by)):
                second = gradops.grad(lambda *xs, i=i, first=first: first(*xs)[i], argnums=by)(*given)
                np.testing.assert_allclose(second, want[i], 1e-6, 1e-6, err_msg=f"{method}, second")


@pytest.mark.parametrize("name", FAMILIES)
def test_derivatives_with_respect_to_integers_are_0(name):
    own, given, k = getattr(stats, name), list(map(np.asarray, shapes(name))), places(name)
    whole = [i for i in range(len(given)) if i not in real(name)]
    for method in METHODS:
        found = gradops.grad(
            lambda k, loc, *shapes, method=method: ops.sum(getattr(own, method)(k, *shapes, loc)),
            argnums=(0, 1, *[2 + i for i in whole]),
        )(k[:-1], np.asarray(0.0), *given)
        assert all(not np.any(g) for g in found), method
    q = np.linspace(0.1, 0.9, 5)
    found = gradops.grad(lambda q, *shapes: ops.sum(own.ppf(q, *shapes)), argnums=tuple(range(len(given) + 1)))(
        q, *given
    )
    assert all(not np.any(g) for g in found)


@pytest.mark.short_cases(1)
@pytest.mark.parametrize("name, method", [("nbinom", "logpmf"), ("betabinom", "logcdf"), ("skellam", "sf")])
def test_libraries_and_programs(name, method):
    own, given = getattr(stats, name), list(map(np.asarray, shapes(name)))
    f, by = getattr(own, method), [1 + i for i in real(name)]
    over = BACKENDS if name != "betabinom" else ("numpy", "torch", "tensorflow")  # JAX compiles it for a minute
    agree(lambda *xs: f(*xs), f, places(name)[:-1], *given, by=by, second=False, over=over)
    agree(own.ppf, own.ppf, np.linspace(0.1, 0.9, 4), *given, by=[], compiled=False)


def test_random_numbers():
    for name in FAMILIES:
        own, given = getattr(stats, name), shapes(name)
        found = own.rvs(*given, loc=3, size=(2000,), random_state=4)
        np.testing.assert_array_equal(found, own.rvs(*given, loc=3, size=2000, random_state=4))
        np.testing.assert_array_equal(found, np.floor(found))
        mean, std = float(own.mean(*given)), float(own.std(*given))
        assert abs(found.mean() - 3 - mean) < 5 * std / np.sqrt(2000), name
    with pytest.raises(GradientError, match=r"stats\.poisson\.rvs.*`mu`"):
        gradops.grad(lambda mu: stats.poisson.rvs(mu, random_state=1))(3.0)
    assert gradops.grad(lambda loc: stats.poisson.rvs(3.0, loc, random_state=1))(2.0) == 1


def test_invalid_parameters_give_nan():
    assert np.isnan(stats.binom.pmf(1, 2.5, 0.3)) and np.isnan(stats.binom.cdf(1, 3, 1.3))
    assert np.isnan(stats.poisson.logpmf(1, -1.0)) and np.isnan(stats.hypergeom.ppf(0.3, 10, 12, 3))
    assert np.isnan(stats.zipf.mean(0.5)) and np.isnan(stats.zipfian.entropy(1.0, 2.5))
    found = stats.binom.logpmf(np.array([1.0, 2.0]), np.array([2.5, 3.0]), 0.3)
    np.testing.assert_allclose(found, [np.nan, scipy.stats.binom.logpmf(2, 3, 0.3)])
    with pytest.raises(gradops.errors.ArgumentTypeError, match="'p'"):
        stats.binom.pmf(1, 3)


def test_program_traced_with_small_counts_serves_large_ones():
    """Small and large counts use different formulas; a program must include the formulas for all counts it meets."""
    counts = [np.array([3.0, 7.0]), np.array([2e5, 4e5]), np.array([4.0, 3e5])]
    for function in (
        lambda k: stats.poisson.logpmf(k, k * 1.01),
        gradops.grad(lambda k: ops.sum(stats.gamma.logpdf(k, k * 1.01))),
    ):
        compiled = gradops.jit(function)
        for k in (*counts, *counts):
            np.testing.assert_allclose(compiled(k), function(k), 1e-12)


@each_library(FAMILIES, ("binom", "nbinom"))
def test_numpy_counts_with_parameters_of_another_library(name, backend):
    own, k = getattr(stats, name), np.array([1.0, 2.0, 5.0])
    parameters = [tensors(np.asarray(x), backend) for x in SHAPES.get(name, [1.7] * own.numargs)]
    for method in ("logpmf", "cdf"):
        found = getattr(own, method)(k, *parameters)
        assert backends.backend_of(found).name == backend
        expected = getattr(own, method)(k, *[ops.convert_to_numpy(x) for x in parameters])
        np.testing.assert_allclose(ops.convert_to_numpy(found), expected, 1e-10, 1e-12)


@pytest.mark.parametrize("method", ["pmf", "logpmf", "cdf", "logcdf", "sf", "logsf"])
@pytest.mark.parametrize(
    ("family", "shapes"), [("binom", (5.0,)), ("binom", (0.0,)), ("bernoulli", ()), ("nbinom", (2.0,)), ("geom", ())]
)
def test_certain_outcomes_have_zero_slope_outside_the_support(family, shapes, method):
    """At probability 0 or 1 the logarithms inside have infinite slopes."""
    function = getattr(getattr(stats, family), method)
    bounded = family in ("binom", "bernoulli")
    for k in (-2.0, -1.0, 7.0) if bounded else (-2.0, -1.0):
        for p in (0.0, 1.0) if bounded else (1.0,):
            slope = gradops.grad(lambda p, k=k: function(k, *shapes, p))
            assert (slope(p), gradops.grad(slope)(p)) == (0, 0), (k, p)


def test_terms_of_constant_counts_are_constants_of_a_program(monkeypatch):
    k, eta = np.array([0.0, 1.0, 30.0]), np.array([-0.3, 0.2, 1.5])
    traced = []
    monkeypatch.setattr(_formulas, "lgamma", lambda x: traced.append(isinstance(x, Traced)) or ops.special.lgamma(x))
    loss = jit(lambda eta: ops.sum(stats.binom.logpmf(k, 40, ops.sigmoid(eta))))
    expected = scipy.stats.binom.logpmf(k, 40, scipy.special.expit(eta)).sum()
    np.testing.assert_allclose(loss(eta), expected, rtol=1e-13)
    assert traced and not any(traced)
