"""Continuous families of ``gradops.scipy.stats`` against SciPy: values, derivatives, tails."""

import mpmath
import numpy as np
import pytest
import scipy.stats
from parity import BACKENDS, numpy, tensors
from scipy_checks import each_library

import gradops
from gradops import backends, ops
from gradops.errors import GradientError
from gradops.functional import jet
from gradops.scipy import stats
from gradops.scipy.stats.distributions import noncentral
from gradops.scipy.stats.distributions._family import Continuous

SHAPES = {
    "beta": [1.7, 0.9],
    "f": [3.5, 7.0],
    "loguniform": [0.7, 4.0],
    "ncf": [3.5, 9.0, 1.7],
    "nct": [5.5, 1.7],
    "reciprocal": [0.7, 4.0],
    "exponweib": [1.9, 1.3],
    "truncnorm": [-0.9, 1.7],
    "wrapcauchy": [0.4],
}
FAMILIES = [name for name in stats.__all__ if isinstance(getattr(stats, name), Continuous)]
POINTS = np.linspace(0.02, 0.98, 7)


def shapes(name: str) -> list[float]:
    return SHAPES.get(name, [1.7] * getattr(scipy.stats, name).numargs)


def places(name: str, method: str) -> np.ndarray:
    """Return probabilities, or points of the support."""
    inner = getattr(scipy.stats, name).ppf(POINTS, *shapes(name))
    return POINTS if method in ("ppf", "isf") else 0.5 + 1.7 * inner


METHODS = ("pdf", "logpdf", "cdf", "logcdf", "sf", "logsf", "ppf", "isf")


def test_families_are_found():
    assert len(FAMILIES) > 20


@pytest.mark.parametrize("name", FAMILIES)
def test_values_match_scipy(name):
    own, theirs = getattr(stats, name), getattr(scipy.stats, name)
    for method in METHODS:
        at = places(name, method)
        found = getattr(own, method)(at, *shapes(name), loc=0.5, scale=1.7)
        want = getattr(theirs, method)(at, *shapes(name), loc=0.5, scale=1.7)
        np.testing.assert_allclose(found, want, 1e-10, 1e-13, err_msg=method)
        fixed = getattr(own(*shapes(name), loc=0.5, scale=1.7), method)(at)
        np.testing.assert_array_equal(fixed, found)
    for method in ("mean", "var", "std", "entropy"):
        np.testing.assert_allclose(
            getattr(own, method)(*shapes(name)), getattr(theirs, method)(*shapes(name)), 1e-9, 1e-12, err_msg=method
        )


@pytest.mark.parametrize("name", FAMILIES)
def test_derivatives_with_respect_to_all_arguments(name):
    own, given = getattr(stats, name), [*shapes(name), 0.5, 1.7]
    for method in ("logpdf", "cdf", "logsf", "ppf"):
        at = places(name, method)[1:-1]

        def f(*xs, method=method):
            return ops.sum(getattr(own, method)(*xs) * np.arange(1.0, 6.0))

        xs = [at, *map(np.asarray, given)]
        found = gradops.grad(f, argnums=tuple(range(len(xs))))(*xs)
        for i, x in enumerate(xs):
            if name in ("loguniform", "reciprocal", "uniform") and i in (1, 2) and method == "logpdf":
                continue  # the support depends on the parameter
            step = 1e-6
            for j in np.ndindex(x.shape):
                ends = []
                for sign in (1, -1):
                    moved = np.array(x, float)
                    moved[j] += sign * step
                    ends.append(float(f(*xs[:i], moved, *xs[i + 1 :])))
                want = (ends[0] - ends[1]) / (2 * step)
                np.testing.assert_allclose(np.asarray(found[i])[j], want, 1e-5, 1e-7, err_msg=f"{method} by {i}")


@pytest.mark.short_cases(1, "jax")
@pytest.mark.parametrize("backend", ["torch", "tensorflow", "jax"])
@pytest.mark.parametrize("name", ["norm", "gamma", "t", "weibull_min"])
def test_distributions_on_other_libraries(name, backend):
    pytest.importorskip(backend)
    own, at = getattr(stats, name), places(name, "cdf")
    given = [at, *shapes(name), 0.5, 1.7]
    xs = [tensors(np.asarray(x), backend) for x in given]
    for method in ("logpdf", "cdf", "logsf"):
        found = getattr(own, method)(*xs)
        assert backends.backend_of(found).name == backend
        np.testing.assert_allclose(ops.convert_to_numpy(found), getattr(own, method)(*given), 1e-11)

    def f(*xs):
        return ops.sum(own.logpdf(*xs) + 2.7 * own.cdf(*xs) + 0.6 * own.logsf(*xs))

    by = tuple(range(len(xs)))
    for one, two in zip(gradops.grad(f, argnums=by)(*xs), gradops.grad(f, argnums=by)(*map(np.asarray, given))):
        np.testing.assert_allclose(ops.convert_to_numpy(one), two, 1e-9, 1e-12)


@pytest.mark.short_cases(1, "tensorflow", "jax")
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", FAMILIES)
def test_densities_have_zero_slope_outside_the_support(name, backend):
    """Location and scale affect the log density only where it is finite."""
    own, theirs, given = getattr(stats, name), getattr(scipy.stats, name), [*shapes(name), 0.5, 1.7]
    middle = theirs.ppf(0.4, *given)
    at = np.array([end + np.copysign(1.3, end - middle) for end in theirs.support(*given) if np.isfinite(end)])
    if not at.size:
        pytest.skip("the support is the line")
    xs = [tensors(x, backend) for x in (at, *(np.full(at.shape, v) for v in given))]
    for method in ("pdf", "logpdf"):
        f = getattr(own, method)
        np.testing.assert_array_equal(numpy(f(*xs)), 0.0 if method == "pdf" else -np.inf)
        for slope in gradops.grad(lambda *xs, f=f: ops.sum(f(*xs)), argnums=tuple(range(len(xs))))(*xs):
            np.testing.assert_array_equal(numpy(slope), 0.0, err_msg=method)


def test_accuracy_in_far_tails():
    x = np.array([40.0, 1000.0])
    np.testing.assert_allclose(stats.norm.logsf(x), scipy.stats.norm.logsf(x), 1e-13)
    with mpmath.workdps(30):
        exact = float(mpmath.log(mpmath.gammainc(2.5, 1e4, mpmath.inf, regularized=True)))
    np.testing.assert_allclose(stats.gamma.logsf(1e4, 2.5), exact, 1e-13)
    found = gradops.grad(lambda a: stats.gamma.logsf(1e4, a))(2.5)
    ends = [float(stats.gamma.logsf(1e4, 2.5 + d)) for d in (1e-5, -1e-5)]
    np.testing.assert_allclose(found, (ends[0] - ends[1]) / 2e-5, 1e-6)


def _normal(t):
    return mpmath.exp(-t * t / 2) / mpmath.sqrt(2 * mpmath.pi)


def _concentrated(t, k):
    return mpmath.exp(k * (mpmath.cos(t) - 1)) / (2 * mpmath.pi * mpmath.besseli(0, k) * mpmath.exp(-k))


INTEGRALS = {
    "invgauss": (
        lambda t, mu: mpmath.exp(-((t / mu - 1) ** 2) / (2 * t)) / mpmath.sqrt(2 * mpmath.pi * t**3),
        (0, mpmath.inf),
        {(0.3,): [0.01, 0.2, 30.0], (1.0,): [0.01, 1.0, 1.1, 300.0], (50.0,): [0.01, 60.0, 1000.0]},
    ),
    "skewnorm": (
        lambda t, a: 2 * _normal(t) * mpmath.ncdf(a * t),
        (-mpmath.inf, mpmath.inf),
        {(0.0,): [-20.0, 0.0, 20.0], (1.5,): [-8.0, -0.5, 4.0, 20.0], (-3.0,): [-7.0, 0.5, 7.0], (100.0,): [-0.5, 7.0]},
    ),
    "exponnorm": (
        lambda t, k: mpmath.exp(1 / (2 * k * k) - t / k) * mpmath.ncdf(t - 1 / k) / k,
        (-mpmath.inf, mpmath.inf),
        {(0.01,): [-20.0, 0.9, 20.0], (1.5,): [-20.0, -2.0, 1.1, 50.0], (40.0,): [-20.0, 0.9, 3.0]},
    ),
    "vonmises_line": (
        _concentrated,
        (-mpmath.pi, mpmath.pi),
        {(0.0,): [-3.0, 1.0], (0.5,): [-3.0, 0.0, 1.0], (20.0,): [-3.0, -0.01, 1.0], (1e4,): [-3.0, -0.5, 0.01]},
    ),
    "truncnorm": (
        lambda t, a, b: _normal(t) / (mpmath.ncdf(b) - mpmath.ncdf(a)),
        None,
        {
            (-40.0, -30.0): [-39.0, -31.0],
            (-1.0, 2.0): [-0.9, 1.0],
            (-10.0, 0.0): [-9.0, -1.0],
            (-2e-8, -1e-8): [-1.9e-8],
        },
    ),
}


@pytest.mark.short_cases(1)
@pytest.mark.parametrize("name", INTEGRALS)
def test_integrals_are_accurate(name):
    """The density is integrated over intervals; it falls by a constant factor within each."""
    density, ends, cases = INTEGRALS[name]
    own = getattr(stats, name)
    for given, points in cases.items():
        with mpmath.workdps(40):
            exact = [mpmath.mpf(x) for x in given]
            low, high = ends or exact
            for z in points:

                def log_density(t, exact=exact):
                    return mpmath.log(density(t, *exact))

                start = mpmath.mpf(z)
                slope = mpmath.diff(log_density, start, h=start * 1e-6 or 1e-6)
                step = 1 / (abs(slope) + 1) if abs(slope) < 1e9 else 1 / abs(slope)
                side, end = (-1, low) if slope > 0 else (1, high)
                cuts = [
                    start + side * step * n
                    for n in (0, 0.5, 1, 2, 4, 8, 12, 18, 25, 40, 60, 90, 160, 400, 1e3, 4e3, 2e4, 1e5, 2e5, 5e5)
                ]
                cuts = [t for t in cuts if side * t < side * end] + [end] * bool(abs(end) < mpmath.inf)
                size = density(start, *exact)  # `quad` stops at an absolute error

                def part(t, exact=exact, size=size):
                    return density(t, *exact) / size if t != 0 else mpmath.mpf(0)

                tail = size * abs(mpmath.quad(part, cuts))
                logs = {side: mpmath.log(tail), -side: mpmath.log1p(-tail)}
                want = {"logcdf": logs[-1], "logsf": logs[1]}
            for method, value in want.items():
                np.testing.assert_allclose(
                    getattr(own, method)(z, *given), float(value), 1e-12, 1e-300, err_msg=f"{method}({z}, {given})"
                )


@pytest.mark.short_cases(1, "jax")
@each_library(FAMILIES, ("beta", "norm", "vonmises"))
def test_numpy_data_with_parameters_of_another_library(name, backend):
    own, given = getattr(stats, name), [*shapes(name), 0.5, 1.7]
    parameters = [tensors(np.asarray(x), backend) for x in given]
    for method in ("logpdf", "cdf", "ppf"):
        at = places(name, method)
        found = getattr(own, method)(at, *parameters)
        assert backends.backend_of(found).name == backend
        np.testing.assert_allclose(ops.convert_to_numpy(found), getattr(own, method)(at, *given), 1e-10, 1e-12)


# Noncentral families against high-precision sums --------------------------------------------------------------------


def _mixed(term, nc):
    """Return the mean of ``term(j)`` with j Poisson distributed."""
    mean = nc / 2
    weights = [mean**j / mpmath.factorial(j) for j in range(130)]
    # later terms, which are about equal at most, do not change the sum
    count = max(j for j, weight in enumerate(weights) if weight > mpmath.eps * 1e-30) + 1
    return mpmath.fsum(weight * term(j) for j, weight in enumerate(weights[:count])) * mpmath.exp(-mean)


def _ncx2(x, df, nc, tail):
    z = x / 2
    if tail == "pdf":
        return _mixed(lambda j: z ** (df / 2 + j - 1) * mpmath.exp(-z) / mpmath.gamma(df / 2 + j) / 2, nc)
    ends = (0, z) if tail == "cdf" else (z, mpmath.inf)
    return _mixed(lambda j: mpmath.gammainc(df / 2 + j, *ends, regularized=True), nc)


def _ncbeta(x, a, b, nc, tail):
    if tail == "pdf":
        return _mixed(lambda j: x ** (a + j - 1) * (1 - x) ** (b - 1) / mpmath.beta(a + j, b), nc)
    ends = (0, x) if tail == "cdf" else (x, 1)
    return _mixed(lambda j: mpmath.betainc(a + j, b, *ends, regularized=True), nc)


def _nct(t, df, nc, tail):
    """Return the tail by NIST's series above 0, whose terms alternate if ``t * nc`` is negative."""
    if tail == "pdf":
        return mpmath.diff(lambda t: _nct(t, df, nc, "cdf"), t)
    if tail == "cdf":
        return _nct(-t, df, -nc, "sf")
    if t < 0:
        return 1 - _nct(-t, df, -nc, "sf")
    part = df / (df + t * t)
    weights = [(nc / mpmath.sqrt(2)) ** k / mpmath.gamma(mpmath.mpf(k) / 2 + 1) for k in range(240)]
    each = [
        weight * mpmath.betainc(df / 2, mpmath.mpf(k + 1) / 2, 0, part, regularized=True)
        for k, weight in enumerate(weights)
        if abs(weight) > mpmath.eps * 1e-20
    ]
    return mpmath.fsum(each) * mpmath.exp(-nc * nc / 2) / 2


NONCENTRAL = {
    "ncx2": (_ncx2, [(1e-6, 0.3, 5.0), (3.0, 2.0, 1e-9), (2.0, 40.0, 30.0), (400.0, 7.0, 30.0), (90.0, 0.05, 40.0)]),
    "ncbeta": (
        _ncbeta,
        [(1e-4, 0.3, 2.0, 5.0), (0.3, 2.0, 30.0, 1e-9), (0.9, 3.0, 0.4, 40.0), (0.98, 1.5, 9.0, 20.0)],
    ),
    "nct": (_nct, [(-3.0, 2.5, 4.0), (0.3, 0.2, -1.7), (25.0, 60.0, 3.0), (2.0, 300.0, 2.0), (5.0, 3.0, -5.0)]),
}


@pytest.mark.short_cases(1)
@pytest.mark.parametrize("name", NONCENTRAL)
def test_accuracy_of_noncentral_families(name):
    """Densities and tails are accurate to 1e-12, their derivatives by each argument to 1e-9."""
    of, points = NONCENTRAL[name]
    family = getattr(noncentral, name)
    with mpmath.workdps({"ncbeta": 40, "nct": 60, "ncx2": 100}[name]):
        for point in points:
            exact = [mpmath.mpf(v) for v in point]
            step = mpmath.mpf(10) ** -15
            near = [[x * (1 + step) if i == j else x for j, x in enumerate(exact)] for i in range(len(point))]
            lower = [of(*xs, "cdf") for xs in (exact, *near)]
            if lower[0] < 0.5:
                upper = [1 - p for p in lower]
            else:
                upper = [of(*xs, "sf") for xs in (exact, *near)]
                lower = [1 - p for p in upper]
            density = [of(*xs, "pdf") for xs in ((exact,) if name == "nct" else (exact, *near))]
            for method, values in (("logpdf", density), ("logcdf", lower), ("logsf", upper)):
                own = getattr(family, method)
                want, *moved = map(mpmath.log, values)
                np.testing.assert_allclose(float(own(*point)), float(want), 1e-12, 1e-12, err_msg=f"{method}{point}")
                for i, value in enumerate(moved):
                    slope = (value - want) / (near[i][i] - exact[i])
                    found = gradops.grad(own, argnums=i)(*map(np.asarray, point))
                    np.testing.assert_allclose(float(found), float(slope), 1e-9, err_msg=f"{method}{point} by {i}")


@pytest.mark.long
def test_second_derivatives_and_quantiles_of_noncentral_families():
    for name, (_, points) in NONCENTRAL.items():
        family = getattr(noncentral, name)
        at, *given = map(np.asarray, zip(*[point for point in points if point[-1] > 1e-3]))
        for method in ("logpdf", "cdf"):
            of, xs = getattr(family, method), [at, *given]
            places = tuple(range(len(xs)))
            slopes = gradops.grad(lambda *xs, of=of: ops.sum(of(*xs)), argnums=places)
            found = [
                gradops.grad(lambda *xs, i=i, slopes=slopes: ops.sum(slopes(*xs)[i]), argnums=places)(*xs)
                for i in places
            ]
            for k in places:
                step = 1e-5 * np.abs(xs[k])
                above, below = (slopes(*xs[:k], xs[k] + sign * step, *xs[k + 1 :]) for sign in (1, -1))
                for i in places:
                    want = (above[i] - below[i]) / (2 * step)
                    np.testing.assert_allclose(found[i][k], want, 1e-5, 1e-8, err_msg=f"{name} by {i} and {k}")
        for back, there in (("ilogcdf", "logcdf"), ("ilogsf", "logsf")):
            p = getattr(family, there)(at, *given)
            np.testing.assert_allclose(getattr(family, back)(p, *given), at, 1e-9, err_msg=f"{name} {back}")
    # at noncentrality 0 the derivative is that of the mixture
    slope = gradops.grad(lambda nc: stats.ncx2.cdf(3.0, 2.0, nc))
    np.testing.assert_allclose(slope(0.0), -stats.chi2.pdf(3.0, 4.0), 1e-12)
    np.testing.assert_allclose(
        gradops.grad(slope)(0.0), (stats.chi2.pdf(3.0, 4.0) - stats.chi2.pdf(3.0, 6.0)) / 2, 1e-11
    )
    np.testing.assert_allclose(stats.nct.cdf([0.3, 2.0], 3.0, 0.0), stats.t.cdf([0.3, 2.0], 3.0), 1e-13)
    # beyond the mixture's range: many degrees of freedom, or nearly none
    with mpmath.workdps(60):
        few = float(_nct(*map(mpmath.mpf, (3.0, 1e-8, 2.0)), "cdf"))
    np.testing.assert_allclose(stats.nct.cdf([2.0, 3.0], [1e18, 1e-8], 2.0), [0.5, few], 1e-12)


ENDS = [  # slopes at the end of a parameter's domain or of the support, from inside
    ("poisson.pmf", (1.0, 0.0), 1, 1.0, -2.0),
    ("poisson.pmf", (2.0, 0.0), 1, 0.0, 1.0),
    ("poisson.pmf", (150.0, 0.0), 1, 0.0, 0.0),
    ("binom.pmf", (1.0, 4.0, 0.0), 2, 4.0, -24.0),
    ("binom.pmf", (3.0, 4.0, 1.0), 2, -4.0, -24.0),
    ("binom.pmf", (0.0, 0.0, 1.0), 2, 0.0, 0.0),
    ("bernoulli.pmf", (1.0, 0.0), 1, 1.0, 0.0),
    ("geom.pmf", (2.0, 1.0), 1, -1.0, -2.0),
    ("geom.cdf", (1.0, 1.0), 1, 1.0, 0.0),
    ("geom.sf", (2.0, 1.0), 1, 0.0, 2.0),
    ("nbinom.pmf", (1.0, 2.5, 1.0), 2, -2.5, -12.5),
    ("expon.cdf", (0.0,), 0, 1.0, -1.0),
    ("expon.logsf", (0.0,), 0, -1.0, 0.0),
    ("gamma.pdf", (0.0, 1.0), 0, -1.0, 1.0),
    ("gamma.pdf", (0.0, 2.0), 0, 1.0, -2.0),
    ("gamma.logpdf", (0.0, 1.0), 0, -1.0, 0.0),
    ("gamma.cdf", (0.0, 1.0), 0, 1.0, -1.0),
    ("chi2.pdf", (0.0, 4.0), 0, 0.25, -0.25),
    ("beta.pdf", (0.0, 2.0, 2.5), 0, 8.75, -26.25),
    ("beta.pdf", (1.0, 2.5, 2.0), 0, -8.75, -26.25),
    ("beta.cdf", (0.0, 1.0, 2.5), 0, 2.5, -3.75),
    ("weibull_min.pdf", (0.0, 2.0), 0, 2.0, 0.0),
    ("weibull_min.cdf", (0.0, 1.0), 0, 1.0, None),
    ("exponweib.pdf", (0.0, 2.0, 1.0), 0, 2.0, -6.0),
    ("exponweib.logpdf", (0.0, 1.0, 1.0), 0, -1.0, 0.0),
    ("rayleigh.pdf", (0.0,), 0, 1.0, 0.0),
    ("halfnorm.cdf", (0.0,), 0, np.sqrt(2 / np.pi), 0.0),
    ("halfcauchy.sf", (0.0,), 0, -2 / np.pi, 0.0),
    ("pareto.cdf", (1.0, 2.0), 0, 2.0, -6.0),
    ("uniform.cdf", (1.0,), 0, 1.0, 0.0),
    ("loguniform.sf", (1.0, 1.0, 2.0), 0, -1 / np.log(2), 1 / np.log(2)),
    ("f.pdf", (0.0, 4.0, 3.0), 0, 20 / 3, -560 / 9),
    ("f.cdf", (0.0, 2.0, 3.0), 0, 1.0, -5 / 3),
    ("ncx2.pdf", (0.0, 2.0, 1.0), 0, -np.exp(-0.5) / 8, np.exp(-0.5) / 32 * 0.5),
    ("vonmises.logpdf", (0.5, 0.0), 1, np.cos(0.5), -0.5),
    ("vonmises.cdf", (0.5, 0.0), 1, np.sin(0.5) / (2 * np.pi), None),
]


@pytest.mark.short_cases(0, "jax")
@pytest.mark.parametrize(
    "backend, path, given, place, slope, curve",
    [(backend, *end) for backend in BACKENDS for end in (ENDS if backend in ("numpy", "torch") else ENDS[::6])],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_slopes_at_end_points_are_one_sided(backend, path, given, place, slope, curve):
    family, method = path.split(".")

    def function(x):
        return getattr(getattr(stats, family), method)(*given[:place], x, *given[place + 1 :])

    at = tensors(np.array(given[place]), backend)
    scipys = getattr(getattr(scipy.stats, family), method)(*given)
    if family != "ncx2":  # SciPy's is 0
        np.testing.assert_allclose(float(function(at)), scipys, 1e-12, 1e-300)
    np.testing.assert_allclose(float(gradops.grad(function)(at)), slope, 1e-10, 1e-12)
    if curve is not None:
        np.testing.assert_allclose(float(gradops.grad(gradops.grad(function))(at)), curve, 1e-8, 1e-12)


@pytest.mark.parametrize(
    "name, at, shapes",
    [
        ("truncnorm", -1.0, (-1.0, 2.0)),
        ("truncnorm", 2.0, (-1.0, 2.0)),
        ("exponweib", 0.0, (2.0, 0.5)),
        ("exponweib", 0.0, (2.0, 2.0)),
        ("ncx2", 0.0, (2.0, 1.0)),
        ("ncx2", 0.0, (3.0, 1.0)),
        ("ncf", 0.0, (2.0, 3.0, 1.0)),
    ],
)
def test_tails_have_the_density_as_slope_at_end_points(name, at, shapes):
    family = getattr(stats, name)
    density = family.pdf(at, *shapes) / 2
    given = (at * 2 + 3, *shapes, 3.0, 2.0)
    for method, slope in (("cdf", density), ("sf", -density), ("logsf" if at < 1 else "logcdf", None)):
        found = gradops.grad(getattr(family, method))(*given)
        np.testing.assert_allclose(found, (-density if at < 1 else density) if slope is None else slope, 1e-14)
    x = np.array([given[0], given[0] + (0.1 if at < 1 else -0.1)])
    by_loc = gradops.grad(lambda loc: ops.sum(family.cdf(x, *shapes, loc, 2.0)))(3.0)
    np.testing.assert_allclose(by_loc, -np.sum(family.pdf(x, *given[1:])), 1e-12)
    for backend in BACKENDS if name == "exponweib" else BACKENDS[:2]:
        xs = tensors(x, backend)
        np.testing.assert_allclose(
            numpy(gradops.grad(lambda x: ops.sum(family.cdf(x, *given[1:])))(xs)), family.pdf(x, *given[1:]), 1e-11
        )
    (second,) = [gradops.grad(gradops.grad(lambda x: family.cdf(x, *given[1:])))(given[0])]
    assert np.isfinite(second)


@pytest.mark.parametrize("name", ["invgauss", "skewnorm"])
def test_quantiles_found_by_search_have_no_wrong_derivative(name):
    """Series of every order follow the inverse function's ``x' = 1 / f(x)``; a fourth derivative is an error."""
    family = getattr(stats, name)

    def quantile(p):
        return family.ppf(p, 1.7)

    def slope(x):
        return 1 / family.pdf(x, 1.7)

    def derivative(order):
        if order == 1:
            return slope
        lower = gradops.grad(derivative(order - 1))
        return lambda x: lower(x) * slope(x)

    wanted = [derivative(order)(quantile(0.37)) for order in range(1, 6)]
    np.testing.assert_allclose(jet(quantile, (0.37,), ([1.0, 0.0, 0.0, 0.0, 0.0],))[1], wanted, 1e-10)
    third = gradops.grad(gradops.grad(gradops.grad(quantile)))
    np.testing.assert_allclose(third(0.37), wanted[2], 1e-10)
    with pytest.raises(GradientError, match="order above 3"):
        gradops.grad(third)(0.37)


def test_log_tails_of_the_geometric_distribution_at_probability_1():
    for k in (1.0, 3.0):
        slopes = [gradops.grad(tail, 1)(k, 1.0) for tail in (stats.geom.logsf, stats.geom.logcdf, stats.geom.sf)]
        assert slopes == [-np.inf, float(k == 1), -float(k == 1)]


@pytest.mark.parametrize("ends", [(-1.0, 1e3), (-1.0, 1e10), (-1e-100, 1e100), (-1e10, 1.0), (2.0, 1e8)])
def test_moments_of_a_normal_distribution_with_a_far_end(ends):
    for name in ("mean", "var", "entropy"):
        found, want = (getattr(module.truncnorm, name)(*ends) for module in (stats, scipy.stats))
        np.testing.assert_allclose(found, want, rtol=1e-10, err_msg=name)


def test_density_of_infinite_degrees_of_freedom_has_the_normal_slope():
    x, df = np.array([-0.7, 0.6]), np.array([np.inf, np.inf])
    for name in ("pdf", "logpdf", "cdf"):
        found = gradops.grad(lambda x: ops.sum(getattr(stats.t, name)(x, df)))(x)  # noqa: B023
        want = gradops.grad(lambda x: ops.sum(getattr(stats.norm, name)(x)))(x)  # noqa: B023
        np.testing.assert_allclose(found, want, rtol=1e-13)


def test_noncentral_t_of_infinite_degrees_of_freedom_is_normal():
    p, df = np.array([0.3, 0.6]), np.array([np.inf, 4.0])
    for name in ("pdf", "logcdf", "sf", "ppf", "isf", "mean", "var"):
        of = () if name in ("mean", "var") else (p,)
        found = getattr(stats.nct, name)(*of, df, 0.5)
        np.testing.assert_allclose(found, getattr(scipy.stats.nct, name)(*of, df, 0.5), rtol=1e-11, err_msg=name)
        slope = gradops.grad(lambda nc: ops.sum(getattr(stats.nct, name)(*of, np.inf, nc)))(0.5)  # noqa: B023
        want = gradops.grad(lambda mean: ops.sum(getattr(stats.norm, name)(*of, mean, 1)))(0.5)  # noqa: B023
        np.testing.assert_allclose(slope, want, rtol=1e-12, atol=1e-15, err_msg=name)
