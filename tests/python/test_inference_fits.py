"""Fits against closed forms and SciPy; intervals against their definition; named errors; transforms."""

from __future__ import annotations

import copy
import importlib.util
import pickle
import warnings

import numpy as np
import pytest
import scipy.optimize
import scipy.stats
from parity import BACKENDS, numpy, tensors
from test_inference import GROUP, START, X, Y, marginal, random_intercept, slopes

import gradops
from gradops import functional, inference, ops
from gradops.errors import ArgumentError, ArgumentTypeError, InferenceError
from gradops.inference import fit, transforms
from gradops.scipy import stats

RNG = np.random.default_rng(8)
DESIGN = np.column_stack([np.ones(30), RNG.normal(size=(30, 2))])
RESPONSE = DESIGN @ [1.0, -0.5, 2.0] + 0.7 * RNG.normal(size=30)
COUNTS = RNG.poisson(np.exp(DESIGN @ [0.5, 0.3, -0.2])).astype(float)
TRIALS = (RNG.random(30) < scipy.special.expit(DESIGN @ [0.2, 1.0, -0.6])).astype(float)


def eta(p, data):
    return ops.squeeze(data["X"] @ ops.reshape(p["beta"], (-1, 1)), -1)


def gaussian(p, data):
    return -ops.sum(stats.norm.logpdf(data["y"], eta(p, data), ops.exp(p["log_sd"])))


def poisson(p, data):
    return -ops.sum(stats.poisson.logpmf(data["y"], ops.exp(eta(p, data))))


def logit(p, data):
    return ops.sum(ops.softplus(eta(p, data)) - data["y"] * eta(p, data))


def reweighted(y, mean):
    """Return estimates and covariance of a generalised linear model with canonical link, by Fisher scoring."""
    beta = np.zeros(3)
    for _ in range(50):
        mu, weight = mean(DESIGN @ beta)
        covariance = np.linalg.inv(DESIGN.T @ (weight[:, None] * DESIGN))
        beta = beta + covariance @ DESIGN.T @ (y - mu)
    return beta, covariance


def expit_(eta):
    p = scipy.special.expit(eta)
    return p, p * (1 - p)


@pytest.mark.short_cases(0, "jax")
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("nll", "y", "mean"), [(poisson, COUNTS, lambda eta: (np.exp(eta),) * 2), (logit, TRIALS, expit_)]
)
def test_generalised_linear_models(backend, nll, y, mean):
    beta, covariance = reweighted(y, mean)
    data = {"X": tensors(DESIGN, backend), "y": tensors(y, backend)}
    found = fit(nll, {"beta": tensors(np.zeros(3), backend)}, data=data)
    assert found.nobs == 30 and found.converged
    np.testing.assert_allclose(numpy(found.params["beta"]), beta, rtol=1e-8)
    np.testing.assert_allclose(found.cov_params(), covariance, rtol=1e-6, atol=1e-10)
    np.testing.assert_allclose(numpy(found.bse["beta"]), np.sqrt(np.diag(covariance)), rtol=1e-6)


def test_linear_model_with_all_results_of_a_fit():
    found = fit(gaussian, {"beta": np.zeros(3), "log_sd": 0.0}, data={"X": DESIGN, "y": RESPONSE})
    beta, rss = np.linalg.lstsq(DESIGN, RESPONSE, rcond=None)[:2]
    sigma = np.sqrt(rss[0] / 30)
    np.testing.assert_allclose(found.theta, [*beta, np.log(sigma)], rtol=1e-9)
    want = np.zeros((4, 4))
    want[:3, :3], want[3, 3] = sigma**2 * np.linalg.inv(DESIGN.T @ DESIGN), 1 / 60
    np.testing.assert_allclose(found.cov_params(), want, rtol=1e-8, atol=1e-12)
    llf = scipy.stats.norm.logpdf(RESPONSE, DESIGN @ beta, sigma).sum()
    np.testing.assert_allclose([found.llf, found.aic, found.bic], [llf, 8 - 2 * llf, 4 * np.log(30) - 2 * llf])
    value, error = found.delta(lambda p: ops.exp(p["log_sd"]))
    np.testing.assert_allclose([value, error], [[sigma], [sigma / np.sqrt(60)]], rtol=1e-8)
    np.testing.assert_allclose(found.conf_int(0.1)[3], np.log(sigma) + np.array([-1, 1]) * 1.644853627 / np.sqrt(60))
    # profile interval of a mean: the residual sum of squares grows by the factor exp(z^2 / n)
    half = np.sqrt(rss[0] * np.expm1(1.959963985**2 / 30) * np.linalg.inv(DESIGN.T @ DESIGN)[1, 1])
    np.testing.assert_allclose(found.conf_int(method="profile")[1], beta[1] + np.array([-half, half]), rtol=1e-6)
    values, roots = found.profile("beta[1]", alpha=0.05, points=2)
    want = np.sqrt(30 * np.log1p((values - beta[1]) ** 2 / (rss[0] * np.linalg.inv(DESIGN.T @ DESIGN)[1, 1])))
    np.testing.assert_allclose(roots, want * np.sign(values - beta[1]), atol=1e-6)
    np.testing.assert_allclose(values[[0, -1]], found.conf_int(method="profile")[1], rtol=1e-9)
    for wrong, match in [(("beta",), "no parameter `beta`"), ((0, 2), "between 0 and 1"), ((0, 0.1, 0), "positive")]:
        with pytest.raises(ArgumentError, match=match):
            found.profile(*wrong)
    lines = found.summary().splitlines()
    assert "30 observations" in lines[0] and lines[5].startswith("log_sd") and len(lines) == 6
    with pytest.raises(ArgumentError, match="must be wald or profile"):
        found.conf_int(method="boot")
    with pytest.raises(ArgumentError, match="between 0 and 1"):
        found.conf_int(95)


def test_model_with_random_effects():
    found = fit(random_intercept(Y, X), START, random="u")
    best = scipy.optimize.minimize(marginal, found.theta + 0.1, method="Nelder-Mead", options={"xatol": 1e-9})
    assert found.value <= best.fun + 1e-9
    np.testing.assert_allclose(slopes(marginal, found.theta), 0, atol=1e-6)
    step = np.eye(4) * 1e-4
    hessian = np.array([(slopes(marginal, found.theta + e) - slopes(marginal, found.theta - e)) / 2e-4 for e in step])
    np.testing.assert_allclose(found.cov_params(), np.linalg.inv(hessian), rtol=1e-4, atol=1e-7)
    assert "6 random effects" in found.summary() and found.params["u"].shape == found.bse["u"].shape == (6,)
    # the standard deviation of an effect plus the mean, from the joint precision
    inverse = np.linalg.inv(found.model.precision(found.theta, found.hessian).toarray())
    np.testing.assert_allclose(found.bse["u"], np.sqrt(np.diag(inverse)[:6]), rtol=1e-7)
    sums = found.delta(lambda p: p["beta"][0] + p["u"])[1]
    want = [inverse[k, k] + inverse[6, 6] + 2 * inverse[k, 6] for k in range(6)]
    np.testing.assert_allclose(sums**2, want, rtol=1e-7)
    assert GROUP[-1] == 5


@pytest.mark.parametrize("overflow", ["nan", "inf", "none"])
def test_profile_interval_of_the_logarithm_of_a_variance_of_0(overflow):
    # The standard error is some thousands, so the first steps leave the range of exp().
    y = np.array([1.0, 1.1, 0.9, 1.2])
    squares = np.sum((y - y.mean()) ** 2)

    def nll(p):
        v = 1 + (ops.softplus(p["s"]) if overflow == "none" else ops.exp(p["s"]))
        one = ops.exp(p["s"]) / ops.exp(p["s"]) if overflow == "nan" else 1.0
        return one * (2 * ops.log(v) + ops.sum((y - p["a"]) ** 2) / (2 * v))

    def root(v):
        return 2 * np.log(v) + squares / (2 * v) - squares / 2 - scipy.stats.chi2.ppf(0.95, 1) / 2

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = fit(nll, {"a": 1.0, "s": -3.0}).conf_int(method="profile")
    excess = scipy.optimize.brentq(root, 1, 10) - 1
    upper = np.log(np.expm1(excess)) if overflow == "none" else np.log(excess)
    np.testing.assert_allclose(found[1], [-np.inf, upper], rtol=1e-4)  # the fit stops at a positive variance
    assert np.isfinite(found[0]).all()


def test_parameters_at_bounds_have_no_standard_error():
    y = np.array([1.0, 2.0, 4.0])

    def nll(p):
        return ops.sum((y - p["a"]) ** 2) / 2 + (p["b"] - p["a"]) ** 2 / 2

    found = fit(nll, {"a": 0.0, "b": 3.0}, bounds={"a": (None, 2.0), "b": (-1, np.inf)})
    np.testing.assert_allclose(found.theta, [2, 2], atol=1e-7)
    assert np.isnan(found.bse["a"]) and abs(found.bse["b"] - 1) < 1e-9 and not found.problems
    free = fit(nll, {"a": 0.0, "b": 3.0}, bounds={"a": (None, 5.0)})
    np.testing.assert_allclose(free.conf_int(method="profile"), free.conf_int(), atol=1e-5)
    tight = fit(nll, {"a": 0.0, "b": 3.0}, bounds={"a": (None, 2.5)})
    assert tight.conf_int(method="profile")[0, 1] == 2.5
    for bounds, match in [
        ({"c": (0, 1)}, "no parameter `c`"),
        ({"a": 1.0}, "`a` needs a pair"),
        ({"a": (1, 0)}, "the largest of a"),
    ]:
        with pytest.raises(ArgumentError, match=match):
            fit(nll, {"a": 0.0, "b": 3.0}, bounds=bounds)


def test_unidentified_parameters_are_named():
    y = np.array([1.0, 2.0, 4.0])

    def nll(p):
        return ops.sum((y - p["a"] - 2 * p["b"]) ** 2) / 2 + p["c"] ** 2

    with pytest.warns(RuntimeWarning, match="does not change along a - 0.5 b$"):
        found = fit(nll, {"a": 0.0, "b": 0.0, "c": 1.0})
    assert np.isnan(found.cov_params()).all() and not found.converged
    assert "not identified" in found.summary()
    with pytest.warns(RuntimeWarning, match=r"does not change along x\[2\]"):
        fit(lambda x: ops.sum(x[:2] ** 2), np.ones(3))
    with pytest.warns(RuntimeWarning, match="did not end at a minimum: the steepest is a"):
        fit(lambda p: ops.abs(p["a"] - 1) + p["a"] ** 2 / 4, {"a": 3.0})


def test_nan_likelihood_error_names_the_operation():
    with pytest.raises(InferenceError, match="nan at a = -1 and b = 2: `sqrt` is the first"), np.errstate(all="ignore"):
        fit(lambda p: ops.exp(ops.sqrt(p["a"]) * p["b"]), {"a": -1.0, "b": 2.0})
    y = np.array([0.0, 1.0, 2.0])

    def guarded(p):  # `where` discards the logarithm of 0
        return ops.sum(ops.where(y > 0, ops.log(y * p["a"]), 0.0)) - ops.sum(
            stats.gamma.logpdf(y + 1, p["a"], 0.0, p["b"])
        )

    with pytest.raises(InferenceError, match="nan at a = 1 and b = -1: `gamma.logpdf` is the first"):
        with np.errstate(all="ignore"):
            fit(guarded, {"a": 1.0, "b": -1.0})
    with pytest.raises(ArgumentError, match="no parameter to estimate"):
        fit(lambda p: p["a"] ** 2, {"a": 1.0}, map={"a": None})
    with pytest.raises(ArgumentError, match="number of observations"):
        fit(lambda p: p["a"] ** 2, {"a": 1.0}).bic  # noqa: B018


TRANSFORMS = [
    (transforms.positive, 3, lambda y: (y > 0).all(), None),
    (transforms.interval(-1.0, np.array([1.0, 2.0, 3.0])), 3, lambda y: (y > -1).all() and y[0] < 1, None),
    (transforms.simplex, 3, lambda y: abs(y.sum() - 1) < 1e-12 and (y > 0).all(), lambda y: y[:-1]),
    (transforms.ordered, 4, lambda y: (np.diff(y) > 0).all(), None),
    (
        transforms.correlation_cholesky,
        6,
        lambda y: np.allclose(np.diag(y @ y.T), 1),
        lambda y: y[np.tril_indices(4, -1)],
    ),
    (transforms.covariance_cholesky, 6, lambda y: (np.diag(y) > 0).all(), lambda y: y[np.tril_indices(3)]),
]


@pytest.mark.short_cases(1, "jax")
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("transform", "size", "holds", "chart"), TRANSFORMS, ids=lambda x: getattr(x, "name", ""))
def test_transforms(backend, transform, size, holds, chart):
    numbers = RNG.normal(size=size)
    x = tensors(numbers, backend)
    y = transform(x)
    assert holds(numpy(y))
    np.testing.assert_allclose(numpy(transform.inverse(y)), numbers, rtol=1e-9)
    chart = chart or (lambda y: y)
    jacobian = functional.jacobian(lambda x: chart(transform(x)), numbers)
    np.testing.assert_allclose(numpy(transform.log_jacobian(x)), np.linalg.slogdet(jacobian)[1], rtol=1e-9)
    gradient = numpy(gradops.grad(transform.log_jacobian)(x))
    np.testing.assert_allclose(gradient, slopes(lambda x: float(transform.log_jacobian(x)), numbers), atol=1e-8)


@pytest.mark.parametrize("backend", BACKENDS)
def test_log_jacobian_of_correlations_near_1(backend):
    """``1 - tanh(20)**2`` rounds to 0; the logarithm of ``sech(20)**2`` is finite."""
    x = np.array([20.0, -20.0, 0.3])
    left = np.log(2) - np.abs(x) - np.log1p(np.exp(-2 * np.abs(x)))  # log(sech(x))
    want = 2 * left.sum() + left[1]  # the third row has two elements
    log_jacobian = transforms.correlation_cholesky.log_jacobian
    np.testing.assert_allclose(numpy(log_jacobian(tensors(x, backend))), want, 1e-12)
    gradient = numpy(gradops.grad(log_jacobian)(tensors(x, backend)))
    np.testing.assert_allclose(gradient, -np.tanh(x) * [2, 3, 2], 1e-12)


def test_transforms_of_zeros_and_of_wrong_sizes():
    np.testing.assert_allclose(transforms.simplex(np.zeros(4)), np.full(5, 0.2))
    with pytest.raises(ArgumentError, match="not of 4 numbers"):
        transforms.correlation_cholesky(np.zeros(4))
    with pytest.raises(ArgumentError, match="must be less"):
        transforms.interval(1, 1)
    assert repr(transforms.interval(0, 1)) == "<gradops transform interval(0.0, 1.0)>"


# Files, tables and predictions of a fit -------------------------------------------------------------------------------


def reported(p, data):
    mean = ops.exp(eta(p, data))
    inference.report(mean=mean, first=mean[0])
    return -ops.sum(stats.poisson.logpmf(data["y"], mean))


def intercepts(p):
    seen = stats.norm.logpdf(RESPONSE, p["mean"] + p["u"][np.repeat(np.arange(6), 5)], p["sd"])
    return -ops.sum(seen) - ops.sum(stats.norm.logpdf(p["u"], 0, 1.0))


def flat(p):
    return (p["a"] + p["b"]) ** 2


COUNTED = {"X": DESIGN, "y": COUNTS}
NEW = np.array([[1.0, 0.5, -1.0], [1.0, 0.0, 2.0]])


def same(found, wanted):
    for a, b in ((found.theta, wanted.theta), (found.cov_params(), wanted.cov_params())):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_allclose([found.llf, found.aic], [wanted.llf, wanted.aic], rtol=1e-12)
    assert found.nobs == wanted.nobs and found.names == wanted.names and found.problems == wanted.problems


@pytest.mark.short_cases(0, "jax", "tensorflow", "torch")
@pytest.mark.parametrize("backend", BACKENDS)
def test_fits_are_pickled_with_their_likelihood(backend):
    data = {name: tensors(x, backend) for name, x in COUNTED.items()}
    found = fit(poisson, {"beta": tensors(np.zeros(3), backend)}, data)
    again = pickle.loads(pickle.dumps(found))
    same(again, found)
    assert type(again.params["beta"]) is type(found.params["beta"])
    np.testing.assert_allclose(again.conf_int(method="profile"), found.conf_int(method="profile"), rtol=1e-6)


def test_pickles_keep_random_effects_transforms_bounds_and_problems():
    start, moved = {"mean": 0.0, "sd": 1.0, "u": np.zeros(6)}, {"sd": transforms.positive}
    found = fit(intercepts, start, random="u", transforms=moved)
    again = pickle.loads(pickle.dumps(found))
    same(again, found)
    np.testing.assert_allclose(again.params["u"], found.params["u"], rtol=1e-8)
    np.testing.assert_allclose(again.bse["sd"], found.bse["sd"], rtol=1e-8)
    bounded = fit(intercepts, start, random="u", bounds={"mean": (1.5, None), "sd": (0.1, None)})
    same(pickle.loads(pickle.dumps(bounded)), bounded)
    with pytest.warns(RuntimeWarning, match="not identified"):
        unidentified = fit(flat, {"a": 1.0, "b": 0.0})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        same(copy.deepcopy(unidentified), unidentified)


def test_a_likelihood_that_changed_after_the_fit_is_warned_of(monkeypatch):
    stored = pickle.dumps(fit(poisson, {"beta": np.zeros(3)}, COUNTED))
    monkeypatch.setitem(globals(), "eta", lambda p, data: 0.9 * ops.squeeze(data["X"] @ p["beta"][:, None], -1))
    with pytest.warns(RuntimeWarning, match="not that of the saved fit: its value was"):
        pickle.loads(stored)


@pytest.mark.parametrize("name", [name for name in transforms.__all__ if name not in ("Transform", "interval")])
def test_transforms_are_pickled_by_name(name):
    made = getattr(transforms, name)
    assert pickle.loads(pickle.dumps(made)) is made is copy.deepcopy(made)


def test_intervals_are_pickled_by_their_ends():
    again = pickle.loads(pickle.dumps(transforms.interval(-1, 3)))
    np.testing.assert_allclose(again(np.array([0.0, 1.0])), -1 + 4 * scipy.special.expit([0.0, 1.0]))
    own = transforms.Transform("exp", ops.exp, ops.log, ops.sum)
    assert pickle.loads(pickle.dumps(own))(np.array(1.0)) == np.exp(1.0)


def test_fits_are_saved_and_loaded(tmp_path, monkeypatch):
    file = tmp_path / "fit.pickle"
    found = fit(poisson, {"beta": np.zeros(3)}, COUNTED)
    found.save(file)
    same(inference.Fit.load(file), found)
    local = fit(lambda p: ops.sum((p["m"] - COUNTS) ** 2), {"m": 0.0})
    if importlib.util.find_spec("cloudpickle"):
        local.save(file)
        same(inference.Fit.load(file), local)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises((pickle.PicklingError, AttributeError)):
        local.save(file)
    file.write_bytes(pickle.dumps(3))
    with pytest.raises(ArgumentTypeError, match="does not hold a fit"):
        inference.Fit.load(file)


def test_predictions_of_a_generalised_linear_model():
    """With X, the errors of the means exp(X beta) are exp(X beta) sqrt(diag(X V X')), by the delta method."""
    found = fit(reported, {"beta": np.zeros(3)}, COUNTED)
    for design, g in ((NEW, lambda p: ops.exp(NEW @ p["beta"])), (DESIGN, "mean")):
        mean = np.exp(design @ found.theta)
        want = mean * np.sqrt(np.einsum("ij,jk,ik->i", design, found.cov_params(), design))
        value, se = found.predict(g, se=True)
        np.testing.assert_allclose(value, mean, rtol=1e-10)
        np.testing.assert_allclose(se, want, rtol=1e-8)
        np.testing.assert_array_equal(found.predict(g), value)
    assert found.predict().keys() == found.predict(se=True).keys() == {"mean", "first"}
    square = found.predict(lambda p: ops.exp(NEW @ p["beta"])[:, None], se=True)
    assert [np.shape(x) for x in square] == [(2, 1)] * 2
    assert [np.shape(x) for x in found.predict(lambda p: p["beta"][0], se=True)] == [()] * 2
    with pytest.raises(ArgumentError, match="reports mean and first; got 'maen'"):
        found.predict("maen")
    with pytest.raises(ArgumentError, match="reports nothing"):
        fit(poisson, {"beta": np.zeros(3)}, COUNTED).predict("mean")


def test_data_frame_of_a_fit():
    pytest.importorskip("pandas")
    found = fit(poisson, {"beta": np.zeros(3)}, COUNTED)
    frame = found.to_frame(alpha=0.1)
    beta, covariance = reweighted(COUNTS, lambda eta: (np.exp(eta),) * 2)
    se, q = np.sqrt(np.diag(covariance)), scipy.stats.norm.ppf(0.95)
    assert list(frame.index) == found.names and frame.index.name == "parameter"
    want = [beta, se, beta / se, 2 * scipy.stats.norm.sf(np.abs(beta / se)), beta - q * se, beta + q * se]
    np.testing.assert_allclose(frame.to_numpy(), np.transpose(want), rtol=1e-5)
    with pytest.raises(ArgumentError, match="alpha"):
        found.to_frame(alpha=5)


def test_results_agree_with_statsmodels():
    statsmodels = pytest.importorskip("statsmodels.api")
    found = fit(reported, {"beta": np.zeros(3)}, COUNTED)
    theirs = statsmodels.GLM(COUNTS, DESIGN, family=statsmodels.families.Poisson()).fit(tol=1e-12)
    frame, predicted = found.to_frame(), theirs.get_prediction(NEW)
    np.testing.assert_allclose(frame["estimate"], theirs.params, rtol=1e-6)
    np.testing.assert_allclose(frame["std. error"], theirs.bse, rtol=1e-5)
    np.testing.assert_allclose(frame[["lower", "upper"]], theirs.conf_int(), rtol=1e-5)
    np.testing.assert_allclose([found.llf, found.aic], [theirs.llf, theirs.aic], rtol=1e-8)
    value, se = found.predict(lambda p: ops.exp(NEW @ p["beta"]), se=True)
    np.testing.assert_allclose(value, predicted.predicted_mean, rtol=1e-6)
    np.testing.assert_allclose(se, predicted.se_mean, rtol=1e-5)


def test_summaries_are_text_html_and_latex():
    with pytest.warns(RuntimeWarning, match="not identified"):
        found = fit(lambda p: (p["a_1"] + p["b%"]) ** 2, {"a_1": 1.0, "b%": 0.0})
    table = found.summary()
    assert repr(table) == str(table) == pickle.loads(pickle.dumps(table))
    assert table._repr_html_() == found._repr_html_() and "not identified" in table._repr_html_()
    latex = table.as_latex()
    assert latex.startswith(r"\begin{tabular}{lrrrr}") and latex.endswith(r"\end{tabular}")
    plain = latex.replace("$", "").replace("\\", "")
    for row in found._rows()[1:]:
        assert " & ".join(row) in plain
    assert r"a\_1 & " in latex and r"b\% & " in latex and r"P$>$$|$z$|$" in latex
    assert found.problems[0] in plain and latex == pickle.loads(pickle.dumps(table))._repr_latex_()


def test_a_search_without_a_minimum_says_where_it_arrived():
    y = np.log(np.arange(1, 40.0))

    def falls(p):
        return -ops.sum(p["s"] + 0.5 * ((y - p["m"]) / ops.exp(p["s"])) ** 2)

    with pytest.raises(InferenceError, match="not finite at m = .* and s = "):
        inference.fit(falls, {"m": 0.0, "s": 0.0})


def test_slope_along_a_direction_that_looks_flat_is_a_problem():
    year = np.arange(1947, 1963) / 1962
    design = np.column_stack([np.ones(16), year, year**2])  # as in Longley's data
    data = {"X": design, "y": 1000 + 3e5 * (year - 1) + 10 * np.random.default_rng(0).normal(size=16)}
    with pytest.warns(RuntimeWarning, match="not identified|did not end"):
        found = fit(gaussian, {"beta": np.zeros(3), "log_sd": 5.0}, data)
    assert any("did not end at a minimum" in problem for problem in found.problems), found.problems
