"""Descriptive statistics of ``gradops.scipy.stats`` against SciPy: values, derivatives, missing values."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
from parity import BACKENDS, flat, loss, numpy, tensors, weights
from scipy_checks import agree, each_library

import gradops
from gradops import functional, ops
from gradops.errors import ArgumentError, ArgumentTypeError, AxisError, ShapeError
from gradops.scipy import stats
from gradops.scipy.stats import (
    correlation,
    descriptive,
    directional,
    distances,
    entropies,
    order_statistics,
    power_transforms,
    trimmed,
)

MODULES = (correlation, descriptive, directional, distances, entropies, order_statistics, power_transforms, trimmed)
NAMES = [name for module in MODULES for name in module.__all__]
RNG = np.random.default_rng(3)
A = RNG.gamma(3.0, 1.0, (7, 3)).round(6)
B = RNG.gamma(2.0, 1.5, (7, 3)).round(6)
V, W = A[:, 0], B[:6, 1]
WEIGHTS = RNG.uniform(0.2, 1.0, (7, 3)).round(3)
TIED = np.array([[2.0, 1.0], [1.0, 1.0], [2.0, 4.0], [3.0, 4.0], [3.0, 4.0]])
POINT = np.asarray(0.7)

CASES = [
    ("gmean", (A,), {}),
    ("gmean", (A, WEIGHTS), {"axis": 1}),
    ("hmean", (A,), {"axis": 1, "keepdims": True}),
    ("hmean", (A, WEIGHTS), {}),
    ("pmean", (A, 2.5), {}),
    ("pmean", (A, 0), {"axis": None}),
    ("moment", (A,), {"order": [0, 1, 2, 5]}),
    ("moment", (A,), {"order": 3, "center": 0.5, "axis": None}),
    ("skew", (A,), {}),
    ("skew", (A,), {"bias": False, "axis": 1}),
    ("skew", (A,), {"bias": False, "axis": (0, 1), "keepdims": True}),
    ("kurtosis", (A,), {}),
    ("kurtosis", (A,), {"bias": False, "fisher": False}),
    ("kurtosis", (A,), {"bias": False, "axis": 1}),
    ("describe", (A,), {}),
    ("describe", (A,), {"axis": None, "ddof": 0, "bias": False}),
    ("kstat", (A,), {"n": 1}),
    ("kstat", (A,), {"n": 2, "axis": 0}),
    ("kstat", (A,), {"n": 3}),
    ("kstat", (A,), {"n": 4}),
    ("kstatvar", (A,), {"n": 1, "axis": 0}),
    ("kstatvar", (A,), {}),
    ("sem", (A,), {}),
    ("sem", (A,), {"axis": None, "ddof": 0}),
    ("variation", (A,), {"ddof": 1}),
    ("variation", (A,), {"ddof": 7}),
    ("gstd", (A,), {}),
    ("zscore", (A,), {"ddof": 1}),
    ("zscore", (A,), {"axis": None}),
    ("gzscore", (A,), {"axis": 1}),
    ("zmap", (A[:2], B), {}),
    ("tmean", (A,), {"limits": (1.0, 4.0)}),
    ("tmean", (TIED,), {"limits": (0.9, 3.5), "axis": 0}),
    ("tvar", (A,), {"limits": (0.5, 4.0), "axis": None}),
    ("tstd", (A,), {"limits": (None, 4.5)}),
    ("tsem", (A,), {"limits": (0.5, None), "axis": 1, "ddof": 0}),
    ("tmin", (A,), {"lowerlimit": 1.7}),
    ("tmax", (A,), {"upperlimit": 3.0, "axis": None}),
    ("trim_mean", (A, 0.2), {}),
    ("trim_mean", (A, 0.1), {"axis": None}),
    ("iqr", (A,), {}),
    ("iqr", (A,), {"axis": 0, "rng": (10, 70), "scale": "normal", "keepdims": True}),
    ("iqr", (A,), {"axis": 0, "interpolation": "midpoint", "scale": 2.0}),
    ("median_abs_deviation", (A,), {}),
    ("median_abs_deviation", (A,), {"scale": "normal", "axis": 1}),
    ("mode", (TIED,), {}),
    ("mode", (TIED,), {"axis": None, "keepdims": True}),
    *(("rankdata", (TIED,), {"method": m, "axis": 0}) for m in ("average", "min", "max", "dense", "ordinal")),
    ("rankdata", (TIED,), {}),
    ("expectile", (V,), {}),
    ("expectile", (V,), {"alpha": 0.9}),
    ("expectile", (A.ravel(), WEIGHTS.ravel()), {"alpha": 0.2}),  # SciPy 1.18 reduces along axis 0
    ("wasserstein_distance", (V, W), {}),
    ("wasserstein_distance", (V, W, WEIGHTS[:, 0], WEIGHTS[:6, 1]), {}),
    ("energy_distance", (V, W), {}),
    ("energy_distance", (V, W, WEIGHTS[:, 0]), {}),
    ("boxcox", (V, POINT), {}),
    ("boxcox_llf", (POINT, A), {}),
    ("boxcox_llf", (POINT, A), {"axis": None}),
    ("yeojohnson", (V - 2.0, POINT), {}),
    ("yeojohnson_llf", (POINT, A - 2.0), {"axis": 1}),
    ("entropy", (A,), {"base": 2}),
    ("entropy", (A, B), {"axis": 1}),
    *(("differential_entropy", (A,), {"method": m}) for m in ("auto", "vasicek", "van es", "ebrahimi", "correa")),
    ("differential_entropy", (A,), {"axis": None, "window_length": 3, "base": 2}),
    ("circmean", (A,), {"axis": 0}),
    ("circmean", (A, np.asarray(5.0), np.asarray(0.5)), {}),
    ("circvar", (A,), {"axis": 1}),
    ("circstd", (A, np.asarray(7.0)), {}),
    ("circstd", (A,), {"normalize": True, "axis": 0}),
    ("directional_stats", (A,), {}),
    ("directional_stats", (A,), {"axis": 1, "normalize": False}),
    ("pearsonr", (A, B), {}),
    ("pearsonr", (A, B), {"axis": 1, "alternative": "less"}),
    ("pointbiserialr", (V, B[:, 1]), {}),
    ("linregress", (V[:6], W), {}),
    ("linregress", (V[:6], W), {"alternative": "greater"}),
]
CONSTANT = {"mode", "rankdata"}
NAMED = {"gmean": "weights", "hmean": "weights", "expectile": "weights"}


def called(module, name, settings):
    def function(*arrays):
        if len(arrays) == 2 and name in NAMED:
            return getattr(module, name)(arrays[0], **{NAMED[name]: arrays[1]}, **settings)
        found = getattr(module, name)(*arrays, **settings)
        if name in ("pearsonr", "pointbiserialr"):
            return [found.statistic, found.pvalue]
        if name == "directional_stats":
            return [found.mean_direction, found.mean_resultant_length]
        if name == "linregress":
            return [*found, found.intercept_stderr]
        return [*found.minmax, *found[2:]] if name == "describe" else found

    return function


def test_each_function_has_a_case():
    assert {name for name, *_ in CASES} == set(NAMES)


@pytest.mark.parametrize(("name", "arrays", "settings"), CASES)
def test_values_and_derivatives(name, arrays, settings):
    ours, theirs = called(stats, name, settings), called(scipy.stats, name, settings)
    known = [x if isinstance(x, np.ndarray) else None for x in arrays]
    fixed = [x for x in arrays if not isinstance(x, np.ndarray)]

    def whole(function):
        return lambda *xs: function(*xs, *fixed)

    if name == "rankdata":
        theirs = lambda *xs, f=theirs: f(*xs).astype(float)  # noqa: E731
    given = [x for x in known if x is not None]
    by = [] if name in CONSTANT or settings.get("ddof") == 7 else None
    agree(whole(ours), whole(theirs), *given, by=by, over=("numpy", "torch"), second=False, rtol=1e-9)


@pytest.mark.short_cases(1, "jax")
@each_library(NAMES, "describe expectile iqr linregress rankdata wasserstein_distance yeojohnson".split())
def test_descriptive_statistics_on_libraries(name, backend):
    """Values and gradients of each function's first case; on one library also in single precision."""
    _, arrays, settings = next(case for case in CASES if case[0] == name)
    ours = called(stats, name, settings)
    expected = flat(called(scipy.stats, name, settings)(*arrays))
    for dtype, rtol in (("float64", 1e-9), ("float32", 2e-4))[: 1 + (backend == "torch")]:
        given = [tensors(x.astype(dtype), backend) if isinstance(x, np.ndarray) else x for x in arrays]
        for y, want in zip(flat(ours(*given)), expected, strict=True):
            assert gradops.backends.backend_of(y).name == backend
            np.testing.assert_allclose(numpy(y), want, rtol, rtol / 100)
            assert numpy(y).dtype in (dtype, "int64")
    if name not in CONSTANT:

        def scalar(*xs):
            results = flat(ours(*xs, *arrays[len(xs) :]))
            return loss(results, weights(results))

        floats = [x for x in arrays if isinstance(x, np.ndarray)]
        by = tuple(range(len(floats)))
        want = functional.grad(scalar, argnums=by)(*floats)
        got = functional.grad(scalar, argnums=by)(*[tensors(x, backend) for x in floats])
        for one, two in zip(got, want):
            np.testing.assert_allclose(numpy(one), two, 1e-8, 1e-10)


HOLED = np.where(A > 4.0, np.nan, A)
NO_OMISSION = """boxcox differential_entropy directional_stats energy_distance expectile linregress pearsonr
    pointbiserialr trim_mean wasserstein_distance yeojohnson""".split()
LEAVES_OUT = [name for name in NAMES if name not in NO_OMISSION]


@pytest.mark.parametrize("name", LEAVES_OUT)
def test_nan_policies(name):
    """NaN are omitted, propagated or refused; derivatives by omitted ones are 0."""
    _, _, settings = next(case for case in CASES if case[0] == name)
    first = (POINT,) if name.endswith("_llf") else ()
    rest = (2.5,) if name == "pmean" else (A,) if name == "zmap" else ()
    settings = {key: value for key, value in settings.items() if key not in ("ddof", "axis")} | {"axis": 0}
    if name == "zmap":
        first, rest = (A,), ()
    for policy in ("omit", "propagate"):
        given = settings | {"nan_policy": policy}
        found = flat(called(stats, name, given)(*first, HOLED, *rest))
        with np.errstate(all="ignore"):
            expected = flat(called(scipy.stats, name, given)(*first, HOLED, *rest))
        for got, want in zip(found, expected, strict=True):
            np.testing.assert_allclose(got, np.ma.filled(want, np.nan), 1e-9, err_msg=policy)
    with pytest.raises(ArgumentError, match="NaN"):
        called(stats, name, settings | {"nan_policy": "raise"})(*first, HOLED, *rest)
    if name not in CONSTANT:

        def scalar(x):
            results = flat(called(stats, name, settings | {"nan_policy": "omit"})(*first, x, *rest))
            results = [ops.where(ops.isnan(y), 0.0, y) for y in results]
            return loss(results, weights(results))

        gradient = functional.grad(scalar)(HOLED)
        lost = np.isnan(HOLED)
        np.testing.assert_array_equal(gradient[lost], 0.0)
        assert np.isfinite(gradient).all() and (gradient != 0).any()


def test_trimmed_statistics_at_their_limits():
    for inclusive in ((True, True), (False, True), (True, False), (False, False)):
        for name in ("tmean", "tvar", "tstd", "tsem"):
            got = getattr(stats, name)(TIED[:, 0], (1.0, 3.0), inclusive)
            np.testing.assert_allclose(got, getattr(scipy.stats, name)(TIED[:, 0], (1.0, 3.0), inclusive))
    assert stats.tmin(TIED, 1.0, None, False) == 2.0 and stats.tmax(TIED, 4.0, None, False) == 3.0


def test_hard_points():
    constant = np.full(4, 2.0)
    assert (
        np.isnan(stats.skew(constant)) and np.isnan(stats.kurtosis(constant)) and np.isnan(stats.zscore(constant)).all()
    )
    assert functional.grad(lambda x: stats.sem(x))(constant).tolist() == [0.0] * 4
    assert functional.grad(lambda x: stats.energy_distance(x, x))(constant).tolist() == [0.0] * 4
    for alpha, want in ((0.0, V.min()), (1.0, V.max()), (0.5, V.mean())):
        np.testing.assert_allclose(stats.expectile(V, alpha), want)
        assert np.isfinite(functional.grad(lambda x, a=alpha: stats.expectile(x, a))(V)).all()
    slope = functional.grad(lambda a: stats.expectile(V, a))
    ends = [float(stats.expectile(V, 0.8 + d)) for d in (1e-6, -1e-6)]
    np.testing.assert_allclose(slope(0.8), (ends[0] - ends[1]) / 2e-6, 1e-6)
    near, at = (functional.grad(lambda k: stats.boxcox_llf(k, V))(k) for k in (1e-5, 0.0))
    np.testing.assert_allclose(near, at, 1e-3)
    np.testing.assert_allclose(stats.boxcox_llf(0.0, V), scipy.stats.boxcox_llf(0.0, V), 1e-10)
    power = functional.grad(lambda p: stats.pmean(V, p))
    ends = [float(stats.pmean(V, 1.5 + d)) for d in (1e-6, -1e-6)]
    np.testing.assert_allclose(power(1.5), (ends[0] - ends[1]) / 2e-6, 1e-6)
    line = stats.linregress(V, 2 * V + 1)
    np.testing.assert_allclose(line[:5], scipy.stats.linregress(V, 2 * V + 1)[:5], 1e-7, 1e-12)
    assert stats.pearsonr([1.0, 2.0], [5.0, 3.0]) == (-1.0, 1.0)
    assert np.isnan(stats.trim_mean(HOLED, 0.3)).any()
    assert stats.gmean(3.0) == pytest.approx(3.0) and stats.gmean([1, 4]) == 2.0
    assert np.isnan(stats.kstat(np.ones(2), 3))


def test_compiled_by_libraries():
    def both(x, y):
        return stats.pearsonr(x, y).statistic + stats.skew(x) * stats.iqr(y, axis=0) + stats.mode(y).mode

    want = both(A, B)
    if "jax" in BACKENDS:
        import jax

        np.testing.assert_allclose(jax.jit(both)(tensors(A, "jax"), tensors(B, "jax")), want)
    if "tensorflow" in BACKENDS:
        import tensorflow as tf

        np.testing.assert_allclose(tf.function(both)(tensors(A, "tensorflow"), tensors(B, "tensorflow")), want)
        unknown = tf.TensorSpec([None, 3], tf.float64)
        np.testing.assert_allclose(
            tf.function(lambda x: stats.sem(x) + stats.kurtosis(x, bias=False), [unknown])(tensors(A, "tensorflow")),
            stats.sem(A) + stats.kurtosis(A, bias=False),
        )


def test_errors():
    for call, kind, match in (
        (lambda: stats.skew(A, axis=3), AxisError, "axis"),
        (lambda: stats.skew("a"), ArgumentTypeError, "`a`"),
        (lambda: stats.skew(A + 1j), ArgumentTypeError, "must be real"),
        (lambda: stats.skew(A, nan_policy="none"), ArgumentError, "`nan_policy` must be one of"),
        (lambda: stats.trim_mean(A, 0.7), ArgumentError, "too large"),
        (lambda: stats.trim_mean(A, 0.1, nan_policy="omit"), ArgumentError, "does not leave out NaN"),
        (lambda: stats.gmean(A, weights=np.ones(4)), ShapeError, "weights"),
        (lambda: stats.moment(A, 1.5), ArgumentError, "`order`"),
        (lambda: stats.pmean(A, np.inf), ArgumentError, "finite"),
        (lambda: stats.tmean(A, (50.0, 60.0)), ArgumentError, "within the limits"),
        (lambda: stats.iqr(A, rng=(5, 200)), ArgumentError, "percentages"),
        (lambda: stats.boxcox(V), ArgumentError, "boxcox_llf"),
        (lambda: stats.yeojohnson(V), ArgumentError, "yeojohnson_llf"),
        (lambda: stats.entropy(V, base=-1), ArgumentError, "positive"),
        (lambda: stats.differential_entropy(V, window_length=4), ArgumentError, "below half"),
        (lambda: stats.linregress(np.ones(3), V[:3]), ArgumentError, "must not be equal"),
        (lambda: stats.pearsonr(V, V, method=1), ArgumentError, "resampling"),
        (lambda: stats.expectile(V, 1.2), ArgumentError, "from 0 to 1"),
        (lambda: stats.wasserstein_distance(V, W, -V), ArgumentError, "`u_weights` must not be negative"),
        (lambda: stats.wasserstein_distance([], W), ShapeError, "`u_values` must not be empty"),
    ):
        with pytest.raises(kind, match=match):
            call()


@pytest.mark.parametrize("name", ["gmean", "hmean"])
def test_weights_that_are_missing_are_omitted_with_their_elements(name):
    a, weights = np.array([np.nan, 0.3, 0.7, 0.8]), np.array([1.0, 2.0, np.nan, 1.0])
    found, want = (getattr(module, name)(a, weights=weights, nan_policy="omit") for module in (stats, scipy.stats))
    np.testing.assert_allclose(found, want)
    f = lambda a, weights: getattr(stats, name)(a, weights=weights, nan_policy="omit")  # noqa: E731
    for slope in gradops.grad(f, argnums=(0, 1))(a, weights):
        assert (slope != 0).tolist() == [False, True, False, True]
