"""Reports, observations, simulations and residuals of likelihoods: closed forms, the Kalman filter's innovations."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
from parity import BACKENDS, tensors

import gradops
from gradops import ops
from gradops.errors import ArgumentError
from gradops.inference import fit, laplace, observed, report, transforms, validation
from gradops.inference.tails import sums
from gradops.scipy import stats

RNG = np.random.default_rng(4)
Y = 1.5 + 0.8 * RNG.normal(size=40)
GROUP = np.repeat(np.arange(4), 5)
SERIES = np.cumsum(RNG.normal(size=30))
NORMAL = {"mean": 1.0, "log_sd": 0.0}


def normal(p, y):
    report(variance=ops.exp(2 * p["log_sd"]), both=ops.stack([p["mean"], -p["mean"]]))
    return -ops.sum(stats.norm.logpdf(observed(y), p["mean"], ops.exp(p["log_sd"])))


@pytest.mark.short_cases(0, "jax", "tensorflow")
@pytest.mark.parametrize("backend", BACKENDS)
def test_reports_and_residuals_of_a_normal_sample(backend):
    start = {name: tensors(np.array(x), backend) for name, x in NORMAL.items()}
    found = fit(normal, start, tensors(Y, backend))
    reported = found.report()
    variance, se = reported["variance"]
    np.testing.assert_allclose([variance, se], [Y.var(), Y.var() * np.sqrt(2 / 40)], rtol=1e-7)
    np.testing.assert_allclose(reported["both"][1], np.full(2, Y.std() / np.sqrt(40)), rtol=1e-7)
    expected = (Y - Y.mean()) / Y.std()
    np.testing.assert_allclose(found.residuals(), expected, rtol=1e-6)
    for method in ("gaussian", "slope", "integral", "mode"):
        np.testing.assert_allclose(found.residuals(method), expected, rtol=1e-6)
    drawn = found.simulate(seed=3)["y"]
    assert drawn.shape == (40,)
    np.testing.assert_array_equal(drawn, found.simulate(seed=3)["y"])
    assert not np.array_equal(drawn, found.simulate(seed=4)["y"])


def test_reports_and_observations_have_no_effect_outside_a_scope():
    np.testing.assert_allclose(
        gradops.grad(lambda m: normal({"mean": m, "log_sd": 0.0}, Y))(1.0), np.sum(1.0 - Y), rtol=1e-12
    )
    assert observed(Y) is Y


def test_residuals_of_counts_lie_between_the_quantiles_of_both_sides():
    y = RNG.poisson(3.0, size=25).astype(float)
    found = fit(lambda p: -ops.sum(stats.poisson.logpmf(observed(y), p["rate"])), {"rate": 2.0})
    residuals = found.residuals(seed=1)
    of = scipy.stats.poisson(y.mean())
    assert (scipy.stats.norm.ppf(of.cdf(y - 1)) <= residuals).all()
    assert (residuals <= scipy.stats.norm.ppf(of.cdf(y))).all()
    assert not np.array_equal(residuals, found.residuals(seed=2))
    np.testing.assert_allclose(found.residuals("integral", seed=1), residuals, atol=1e-7)
    for method in ("slope", "mode"):
        with pytest.raises(ArgumentError, match="`y` are counts"):
            found.residuals(method)


def test_sums_over_large_counts_use_few_terms():
    y = np.array([19_500.0, 20_100.0, 20_300.0])
    found = fit(lambda p: -ops.sum(stats.nbinom.logpmf(observed(y), 50.0, p["chance"])), {"chance": 0.002})
    np.testing.assert_allclose(found.residuals("integral", seed=1), found.residuals(seed=1), atol=1e-7)
    asked = []
    of = scipy.stats.nbinom(50, 0.0025)
    parts = sums(lambda k: asked.append(k) or of.logpmf(k), 17_000.0)
    np.testing.assert_allclose(parts, [of.logcdf(17_000), of.logsf(17_000)], rtol=1e-8)
    assert len(asked) < 1000


def walk(p):
    y, x = observed(SERIES), p["x"]
    steps = stats.norm.logpdf(x[1:], x[:-1], ops.exp(p["log_step"]))
    seen = stats.norm.logpdf(y, x, ops.exp(p["log_noise"]))
    return -ops.sum(seen) - ops.sum(steps) - stats.norm.logpdf(x[0], 0.0, 10.0)


def innovations(step, noise):
    """Return the Kalman filter's standardised innovations."""
    mean, variance, found = 0.0, 100.0, []
    for k, y in enumerate(SERIES):
        variance = variance + step**2 if k else variance
        total = variance + noise**2
        found.append((y - mean) / np.sqrt(total))
        gain = variance / total
        mean, variance = mean + gain * (y - mean), variance * (1 - gain)
    return np.array(found)


def test_residuals_of_a_state_space_model_are_the_innovations():
    model = laplace(walk, {"log_step": 0.0, "log_noise": -0.5, "x": np.zeros(30)}, random="x")
    theta = [0.1, -0.4]
    expected = innovations(np.exp(0.1), np.exp(-0.4))
    np.testing.assert_allclose(model.residuals(theta, "gaussian"), expected, rtol=1e-8, atol=1e-10)
    for method in ("slope", "integral", "mode"):
        np.testing.assert_allclose(model.residuals(theta, method), expected, rtol=1e-6, atol=1e-8)
    # a tail times a normal density is not normal, so its integral is approximate
    np.testing.assert_allclose(model.residuals(theta), expected, atol=0.15)


@pytest.mark.parametrize(
    ("family", "args", "mode"),
    [
        (stats.gamma, (3.0, 0.0, 1.5), (3.0, 3.0 / np.sqrt(2))),  # mode and standard deviation from the curvature
        (stats.gamma, (0.5,), None),  # has no mode
        (stats.t, (2.5, 1.0), (1.0, np.sqrt(2.5 / 3.5))),
        (stats.beta, (2.0, 0.7), None),
        (stats.uniform, (-1.0, 3.0), None),
        (stats.laplace, (0.5,), None),
        (stats.gumbel_r, (0.0, 2.0), (0.0, 2.0)),
        (stats.lognorm, (1.5,), (np.exp(-2.25), 1.5 * np.exp(-2.25))),
    ],
)
def test_integrals_of_densities_are_probabilities(family, args, mode):
    of = getattr(scipy.stats, family.name)(*args)
    probabilities = np.array([1e-7, 0.01, 0.3, 0.5, 0.9, 1 - 1e-4])
    y = of.ppf(probabilities)
    found = fit(lambda p: -ops.sum(family.logpdf(observed(y), *args)) + p["a"] ** 2, {"a": 0.0})
    np.testing.assert_allclose(found.residuals("integral"), scipy.stats.norm.ppf(probabilities), atol=1e-6)
    if mode:
        np.testing.assert_allclose(found.residuals("mode"), (y - mode[0]) / mode[1], rtol=1e-5)
    elif family is not stats.laplace:  # a corner
        assert np.isnan(found.residuals("mode")).any()


def test_integrated_residuals_are_uniform_with_random_effects():
    group = np.repeat(np.arange(10), 2)

    def of(numbers):
        def joint(p):
            y = observed(numbers)
            lengths = stats.gamma.logpdf(y[:, 0], 2.0, 0.0, ops.exp(p["u"][group]))
            counts = stats.poisson.logpmf(y[:, 1], ops.exp(1.0 + p["u"][group]))
            return -ops.sum(lengths) - ops.sum(counts) - ops.sum(stats.norm.logpdf(p["u"], 0.0, p["sd"]))

        return laplace(joint, {"sd": 0.7, "u": np.zeros(10)}, random="u")

    model = of(np.ones((20, 2)))
    found = of(model.simulate(model.start, 1)["y"]).residuals(model.start, "integral", 3)
    assert scipy.stats.kstest(found.reshape(-1), "norm").pvalue > 0.01
    assert abs(np.corrcoef(found[::2].reshape(-1), found[1::2].reshape(-1))[0, 1]) < 0.45  # within a group as well


def test_simulations_have_the_moments_of_the_model():
    def drawn_walk(p):
        y, x = observed(np.zeros(3)), p["x"]
        steps = stats.norm.logpdf(x[1:], x[:-1], ops.exp(p["log_step"]))
        return -ops.sum(stats.norm.logpdf(y, x, 0.5)) - ops.sum(steps) - stats.norm.logpdf(x[0], 0.0, 1.0)

    model = laplace(drawn_walk, {"log_step": 0.3, "x": np.zeros(3)}, random="x")
    drawn = np.array([model.simulate(model.start, seed)["y"] for seed in range(400)])
    walk = 1.0 + np.exp(0.6) * np.minimum.outer(np.arange(3), np.arange(3))
    covariance = walk + 0.25 * np.eye(3)
    chi = np.einsum("ij,jk,ik->i", drawn, np.linalg.inv(covariance), drawn)
    assert scipy.stats.kstest(chi, "chi2", (3,)).pvalue > 0.01
    kept = model.simulate(model.start, 1, effects=False)
    assert kept.keys() == {"y"} and abs(kept["y"]).max() < 2.5  # around the mode, 0


@pytest.mark.short_cases(0, "jax", "tensorflow")
@pytest.mark.parametrize("backend", BACKENDS)
def test_loop_over_time_is_drawn_in_two_runs(backend, monkeypatch):
    def walk(p):
        x, y = p["x"], observed(zeros)
        total = stats.norm.logpdf(x[0], 0.0, 1.0) + stats.norm.logpdf(y[0], x[0], 1e-4)
        for i in range(1, 12):
            total = total + stats.norm.logpdf(x[i], 0.9 * x[i - 1], ops.exp(p["log_step"]))
            total = total + stats.norm.logpdf(y[i], x[i], 1e-4)
        return -total

    zeros = tensors(np.zeros(12), backend)
    model = laplace(walk, {"log_step": tensors(np.array(-11.0), backend), "x": zeros}, random="x")
    runs, restart = [], validation._Drawing.restart
    monkeypatch.setattr(validation._Drawing, "restart", lambda self: runs.append(restart(self)))
    drawn = model.simulate(model.start, 1)
    assert len(runs) <= 4  # one before the first run, one for observations seen for the first time
    np.testing.assert_allclose(drawn["x"], drawn["x"][0] * 0.9 ** np.arange(12), atol=1e-3)
    np.testing.assert_allclose(drawn["y"], drawn["x"], atol=1e-3)
    assert abs(drawn["x"][0]) > 0.1


def test_values_read_after_being_drawn_are_drawn_first():
    def autoregression(p):
        y = observed(SERIES)
        return -ops.sum(stats.norm.logpdf(y[1:], p["phi"] * y[:-1], 1.0)) - stats.norm.logpdf(y[0], 0.0, 1.0)

    found = fit(autoregression, {"phi": 0.5})
    y = found.simulate(seed=2)["y"]
    independent = np.append(y[0], y[1:] - found.params["phi"] * y[:-1])
    again = -np.sum(scipy.stats.norm.logpdf(independent))
    assert scipy.stats.kstest(independent, "norm").pvalue > 0.01 and np.isfinite(again)
    np.testing.assert_allclose(
        found.residuals(), np.append(SERIES[0], SERIES[1:] - found.params["phi"] * SERIES[:-1]), rtol=1e-6
    )


def test_missing_observations_stay_missing():
    y = Y.copy()
    y[[3, 17]] = np.nan
    seen = np.flatnonzero(~np.isnan(y))

    def nll(p):
        return -ops.sum(stats.norm.logpdf(observed(y)[seen], p["mean"], 1.0))

    found = fit(nll, {"mean": 0.0})
    np.testing.assert_array_equal(np.isnan(found.residuals()), np.isnan(y))
    np.testing.assert_allclose(found.residuals()[seen], y[seen] - y[seen].mean(), rtol=1e-7)
    np.testing.assert_array_equal(np.isnan(found.simulate(seed=1)["y"]), np.isnan(y))


def test_multivariate_observations_are_drawn_together():
    cov = np.array([[1.0, 0.6], [0.6, 2.0]])
    points = RNG.normal(size=(300, 2))

    def nll(p):
        return -ops.sum(stats.multivariate_normal.logpdf(observed(points), p["mean"], cov))

    found = fit(nll, {"mean": np.zeros(2)})
    drawn = found.simulate(seed=5)["y"]
    assert drawn.shape == points.shape
    np.testing.assert_allclose(np.cov(drawn.T), cov, atol=0.35)
    with pytest.raises(ArgumentError, match="has no residuals of `multivariate_normal` one by one"):
        found.residuals()
    root = np.linalg.cholesky(cov)
    expected = np.linalg.solve(root, (points - points.mean(0)).T).T
    np.testing.assert_allclose(found.residuals("gaussian"), expected, rtol=1e-6, atol=1e-8)


def effects(p):
    y = observed(np.linspace(0.0, 2.0, 20))
    seen = stats.norm.logpdf(y, p["mean"] + p["u"][GROUP], 0.5)
    return -ops.sum(seen) - ops.sum(stats.norm.logpdf(p["u"], 0.0, p["sd"]))


def test_gradients_at_simulated_data_have_mean_0():
    found = fit(effects, {"mean": 0.0, "sd": 1.0, "u": np.zeros(4)}, random="u", transforms={"sd": transforms.positive})
    checked = found.model.consistency(found.theta, 200, seed=1)
    assert checked.gradients.shape == (200, 2) and checked.pvalue > 0.01
    np.testing.assert_allclose(  # the information about the mean in closed form
        checked.gradients[:, 0].var(), 4 / (found.params["sd"] ** 2 + 0.25 / 5), rtol=0.25
    )
    moved = found.model.consistency(found.theta, 200, seed=2)
    assert not np.array_equal(checked.gradients, moved.gradients)


def mass(y, mean):
    return -ops.sum(stats.norm.logpdf(y, mean, 1.0))


@pytest.mark.parametrize(
    ("nll", "call", "match"),
    [
        (lambda p: mass(Y, p["m"]), "residuals", "marks no observations"),
        (lambda p: mass(Y, p["m"]), "simulate", "marks no observations"),
        (lambda p: mass(Y, p["m"]) + 0 * ops.sum(observed(Y)), "simulate", "`y` is the first argument of no"),
        (lambda p: mass(Y, p["m"]) + 0 * ops.sum(observed(Y)), "residuals", "`y` is the first argument of no"),
        (lambda p: mass(observed(Y), p["m"]) + mass(observed(Y), 0.0), "simulate", "`y` is in two densities"),
        (lambda p: mass(observed(Y), p["m"]) + mass(observed(Y[1:]), 0.0), "residuals", "`y` marks several tensors"),
    ],
)
def test_invalid_observations_and_reports_are_named(nll, call, match):
    with pytest.raises(ArgumentError, match=match):
        getattr(fit(nll, {"m": 0.0}), call)()


def test_unknown_method_and_too_few_draws():
    found = fit(normal, NORMAL, Y)
    with pytest.raises(ArgumentError, match="integral or mode; got exact"):
        found.residuals("exact")
    with pytest.raises(ArgumentError, match="more than 2"):
        found.model.consistency(found.theta, 2)
