"""Random effects and fits against closed forms, a Kalman filter, quadrature and finite differences; identifiability."""

from __future__ import annotations

import gc

import numpy as np
import pytest
import scipy.integrate
import scipy.special
from parity import BACKENDS, numpy, tensors

import gradops
from gradops import functional, ops
from gradops.autodiff.graph import Node
from gradops.errors import ArgumentError, ArgumentTypeError, InferenceError, JitError, ShapeError
from gradops.functional import SparseHessian
from gradops.functional.sparsity import laplace as laplace_programs
from gradops.functional.sparsity import strategy
from gradops.functional.sparsity.colors import positions
from gradops.functional.sparsity.laplace import Programs, Shared
from gradops.functional.sparsity.separable import SeparableHessian
from gradops.inference import laplace, likelihood
from gradops.inference.parameters import Layout
from gradops.jit.program import Program
from gradops.jit.scalars import Scalars
from gradops.jit.steps import Step
from gradops.scipy import special, stats

RNG = np.random.default_rng(5)
HALF_LOG_2PI = np.log(2 * np.pi) / 2
GROUP = np.repeat(np.arange(6), [3, 4, 5, 3, 4, 5])
X = RNG.normal(size=24)
Y = 1.0 + 0.5 * X + RNG.normal(size=6)[GROUP] + 0.4 * RNG.normal(size=24)


def normal(x, mean, sd):
    """Return the summed negative log density of a normal distribution."""
    return ops.sum(0.5 * ops.square((x - mean) / sd) + ops.log(sd) + HALF_LOG_2PI + ops.zeros_like(x - mean))


def slopes(f, theta, h=1e-5):
    return np.array([(f(theta + e) - f(theta - e)) / (2 * h) for e in np.eye(len(theta)) * h])


def random_intercept(y, x):
    def joint(p):
        mean = p["beta"][0] + p["beta"][1] * x + ops.take(p["u"], GROUP, 0)
        return normal(y, mean, ops.exp(p["log_sd"])) + normal(p["u"], 0.0, ops.exp(p["log_tau"]))

    return joint


START = {"beta": [0.3, 0.2], "log_sd": -0.3, "log_tau": 0.1, "u": np.zeros(6)}


def marginal(theta):
    """Return the random intercept model's marginal likelihood in closed form; theta is beta, log sd, log tau."""
    cov = np.exp(2 * theta[2]) * np.eye(24) + np.exp(2 * theta[3]) * (GROUP[:, None] == GROUP)
    r = Y - theta[0] - theta[1] * X
    return 0.5 * r @ np.linalg.solve(cov, r) + 0.5 * np.linalg.slogdet(cov)[1] + 24 * HALF_LOG_2PI


@pytest.mark.short_cases(0, "jax", "tensorflow")
@pytest.mark.parametrize("backend", BACKENDS)
def test_random_intercept_is_integrated_out_exactly(backend):
    joint = random_intercept(*tensors([Y, X], backend))
    start = {name: tensors(np.array(x, float), backend) for name, x in START.items()}
    model = laplace(joint, start, random="u")
    assert model.names == ["beta[0]", "beta[1]", "log_sd", "log_tau"] and model.random_names[5] == "u[5]"
    theta = model.start + 0.1
    value, gradient = model.value_and_grad(theta)
    np.testing.assert_allclose(value, marginal(theta), rtol=1e-12)
    np.testing.assert_allclose(gradient, slopes(marginal, theta), rtol=1e-7, atol=1e-7)
    # the mode is the best linear unbiased predictor
    noise, tau = np.exp(2 * theta[2:])
    cov = noise * np.eye(24) + tau * (GROUP[:, None] == GROUP)
    design = (np.arange(6)[:, None] == GROUP) * tau
    np.testing.assert_allclose(model.mode(theta), design @ np.linalg.solve(cov, Y - theta[0] - theta[1] * X), rtol=1e-9)
    np.testing.assert_allclose(model.importance(theta, 4), [model.value(theta), 0.0], rtol=1e-9, atol=1e-9)
    variance = tau - np.einsum("ij,ji->i", design, np.linalg.solve(cov, design.T))
    np.testing.assert_allclose(model.random_sd(theta) ** 2, variance, rtol=1e-9)
    assert numpy(model.parameters(theta)["beta"]).shape == (2,)


def test_gradients_of_quadratic_likelihoods_are_exact_with_a_reused_factor():
    """A search with the previous factor ends near the mode; the gradient must include the remaining Newton step."""
    model = laplace(random_intercept(Y, X), START, random="u")
    for k in range(6):
        theta = model.start + 0.3 * np.array([np.sin(k), np.cos(k), np.sin(2 * k), np.cos(3 * k)])
        gradient = model.value_and_grad(theta)[1]
        cov = np.exp(2 * theta[2]) * np.eye(24) + np.exp(2 * theta[3]) * (GROUP[:, None] == GROUP)
        solved = np.linalg.solve(cov, Y - theta[0] - theta[1] * X)
        np.testing.assert_allclose(gradient[:2], [-solved.sum(), -solved @ X], rtol=1e-11, atol=1e-11)
        np.testing.assert_allclose(gradient, slopes(marginal, theta), rtol=1e-6, atol=1e-7)
    assert model._programs.is_quadratic


@pytest.mark.short_cases(0, "jax", "tensorflow")
@pytest.mark.parametrize("backend", BACKENDS)
def test_profiled_parameters_are_optimal(backend):
    joint = random_intercept(*tensors([Y, X], backend))
    start = {name: tensors(np.array(x, float), backend) for name, x in START.items()}
    model = laplace(joint, start, random="u", profile="beta")
    assert model.names == ["log_sd", "log_tau"] and len(model.random_names) == 8
    theta = np.array([-0.4, 0.3])
    cov = np.exp(2 * theta[0]) * np.eye(24) + np.exp(2 * theta[1]) * (GROUP[:, None] == GROUP)
    design = np.stack([np.ones(24), X], 1)
    best = np.linalg.solve(design.T @ np.linalg.solve(cov, design), design.T @ np.linalg.solve(cov, Y))
    value, gradient = model.value_and_grad(theta)
    np.testing.assert_allclose(numpy(model.parameters(theta)["beta"]), best, rtol=1e-9)
    np.testing.assert_allclose(value, marginal([*best, *theta]), rtol=1e-12)
    np.testing.assert_allclose(gradient, slopes(marginal, np.array([*best, *theta]))[2:], rtol=1e-6)
    with pytest.raises(ArgumentError, match="profiled parameters are not integrated out"):
        model.importance(theta)
    with pytest.raises(ArgumentError, match="`profile`: there is no parameter `b`"):
        laplace(joint, start, random="u", profile="b")


def test_joint_precision_covers_all_parameters():
    """With fixed variances the model is jointly normal, so the joint precision equals the joint Hessian."""
    model = laplace(random_intercept(Y, X), START, random="u", map={"log_sd": None, "log_tau": None})
    theta = model.start
    assert model.names == ["beta[0]", "beta[1]"]
    design = np.column_stack([(GROUP[:, None] == np.arange(6)).astype(float), np.ones(24), X])
    want = design.T @ design * np.exp(0.6) + np.diag([np.exp(-0.2)] * 6 + [0, 0])
    np.testing.assert_allclose(model.precision(theta).toarray(), want, rtol=1e-7, atol=1e-7)
    covariance = np.linalg.inv(model.hessian(theta))
    inverse = np.linalg.inv(want)
    np.testing.assert_allclose(model.random_sd(theta, covariance), np.sqrt(np.diag(inverse)[:6]), rtol=1e-7)
    value, found = model.delta(lambda p: p["beta"][0] + p["u"], theta, covariance)
    picked = np.column_stack([np.eye(6), np.ones(6), np.zeros(6)])
    np.testing.assert_allclose(found, picked @ inverse @ picked.T, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(value, theta[0] + model.mode(theta), rtol=1e-9)


def test_state_space_model_matches_the_kalman_filter():
    y = np.cumsum(RNG.normal(size=200)) * 0.3 + RNG.normal(size=200) * 0.5

    def joint(p):
        phi, h, sd = ops.tanh(p["a"]), p["h"], ops.exp(p["log_q"])
        first = normal(h[0], 0.0, sd / ops.sqrt(1 - phi * phi))
        return first + normal(h[1:], phi * h[:-1], sd) + normal(y, h, ops.exp(p["log_r"]))

    def kalman(theta):
        phi, q, r = np.tanh(theta[0]), np.exp(2 * theta[1]), np.exp(2 * theta[2])
        mean, variance, total = 0.0, q / (1 - phi**2), 0.0
        for each in y:
            s = variance + r
            total += 0.5 * (each - mean) ** 2 / s + 0.5 * np.log(s) + HALF_LOG_2PI
            gain = variance / s
            mean, variance = phi * (mean + gain * (each - mean)), phi**2 * (1 - gain) * variance + q
        return total

    model = laplace(joint, {"a": 1.0, "log_q": -1.0, "log_r": -0.5, "h": np.zeros(200)}, random=("h",))
    theta = np.array([1.3, -1.1, -0.6])
    value, gradient = model.value_and_grad(theta)
    np.testing.assert_allclose(value, kalman(theta), rtol=1e-11)
    np.testing.assert_allclose(gradient, slopes(kalman, theta), rtol=1e-6, atol=1e-6)


def logistic(counts, sizes):
    def joint(p):
        eta = p["mean"] + ops.exp(p["log_tau"]) * p["u"]
        return ops.sum(sizes * ops.softplus(eta) - counts * eta) + normal(p["u"], 0.0, 1.0)

    return joint


def test_logistic_model_matches_quadrature_and_finite_differences():
    sizes = np.array([400.0, 300.0, 500.0, 350.0])
    counts = np.array([150.0, 180.0, 90.0, 300.0])
    model = laplace(logistic(counts, sizes), {"mean": 0.0, "log_tau": -0.5, "u": np.zeros(4)}, random="u")
    theta = np.array([0.2, 0.1])

    def integral(y, n):
        def log_density(u):
            eta = theta[0] + np.exp(theta[1]) * u
            return y * eta - n * np.logaddexp(0, eta) - 0.5 * u * u - HALF_LOG_2PI

        top = max(log_density(u) for u in np.linspace(-4, 4, 2001))
        area = scipy.integrate.quad(lambda u: np.exp(log_density(u) - top), -4, 4, limit=500, epsabs=1e-12)[0]
        return -top - np.log(area)

    exact = sum(map(integral, counts, sizes))
    np.testing.assert_allclose(model.value(theta), exact, rtol=1e-5)
    value, error = model.importance(theta, 2000, seed=1)
    assert abs(value - exact) < 4 * error < 4e-3
    assert abs(value - exact) < abs(model.value(theta) - exact)
    with pytest.raises(ArgumentError, match="even number"):
        model.importance(theta, 3)
    np.testing.assert_allclose(model.value_and_grad(theta)[1], slopes(model.value, theta), rtol=1e-6)
    hessian = np.array([slopes(lambda t, k=k: model.value_and_grad(t)[1][k], theta) for k in range(2)])
    np.testing.assert_allclose(model.hessian(theta), hessian, rtol=1e-6)


def test_newton_finds_a_mode_from_a_start_without_curvature():
    """Student's t far from its data has an indefinite Hessian at the start."""
    y = np.array([0.0, 0.5, 8.0])

    def joint(p):
        return ops.sum(2.5 * ops.log1p((y - p["u"]) ** 2 / 4)) + normal(p["u"], p["mean"], 3.0)

    model = laplace(joint, {"mean": 0.0, "u": np.full(3, 20.0)}, random="u")
    value, gradient = model.value_and_grad(np.array([0.3]))
    np.testing.assert_allclose(gradient, slopes(model.value, np.array([0.3])), rtol=1e-6)
    model.u = np.zeros(3)
    np.testing.assert_allclose(model.value(np.array([0.3])), value, rtol=1e-12)


def test_mode_is_found_despite_inaccurate_values():
    # For probabilities near 1 the quantile moves in steps of about 1e-6; through the complement it is smooth.
    noise = np.random.default_rng(3)
    u = np.append(noise.normal(size=200), [6.0, 6.3, 6.5])
    y = stats.gamma.isf(stats.norm.cdf(-u), 1.0) + noise.normal(size=u.size) / 2

    def value_and_grad(quantile):
        def joint(p):
            observed = stats.norm.logpdf(y, quantile(p["u"]) * p["scale"], 0.5)
            return -ops.sum(observed) - ops.sum(stats.norm.logpdf(p["u"]))

        return laplace(joint, {"scale": 1.0, "u": np.zeros(u.size)}, random="u").value_and_grad([1.0])

    value, gradient = value_and_grad(lambda u: stats.gamma.ppf(stats.norm.cdf(u), 1.0))
    wanted, slope = value_and_grad(lambda u: stats.gamma.isf(stats.norm.cdf(-u), 1.0))
    np.testing.assert_allclose([value, *gradient], [wanted, *slope], rtol=1e-6)


def test_finite_difference_hessians_account_for_parameter_scale():
    noise = np.random.default_rng(5)
    x, group = noise.uniform(0, 1, 400), np.repeat(np.arange(20), 20)
    y = noise.poisson(np.exp(0.3 + 2 * x + noise.normal(size=20)[group] / 2))

    def errors(scale):
        def joint(p):
            log_rate = p["a"] + p["b"] * (x * scale) + p["u"][group]
            return ops.sum(ops.exp(log_rate) - y * log_rate) + ops.sum(p["u"] ** 2) * 2

        model = laplace(joint, {"a": 0.3, "b": 2.0 / scale, "u": np.zeros(20)}, random="u")
        covariance = np.linalg.inv(model.hessian(model.start))
        of_effects = model.random_sd(model.start, covariance)
        return np.append(np.sqrt(np.diag(covariance)) * [1.0, scale], of_effects)

    np.testing.assert_allclose(errors(1e4), errors(1.0), rtol=1e-6)


def test_map_fixes_and_shares_parameters():
    start = {"a": [1.0, 2.0, 3.0], "b": {"c": 4.0, "d": 5.0}, "u": np.zeros(3)}

    def joint(p):
        fixed = ops.sum(p["a"] * np.array([1.0, 10.0, 100.0])) ** 2 + p["b"]["c"] ** 2 + p["b"]["d"]
        return fixed + ops.sum(p["u"] ** 2) / 2 + ops.sum(p["u"] * p["a"])

    model = laplace(joint, start, random="u", map={"a": ["x", None, "x"], "u": [0, 0, None]})
    assert model.names == ["a[0]", "b.c", "b.d"] and model.random_names == ["u[0]"]
    np.testing.assert_allclose(model.start, [1, 4, 5])
    value, gradient = model.value_and_grad(model.start)  # u = -(a0 + a1) / 2 twice
    want = (1 + 20 + 100) ** 2 + 16 + 5 - 9 / 4 + np.log(2) / 2 - HALF_LOG_2PI
    np.testing.assert_allclose(value, want, rtol=1e-12)
    np.testing.assert_allclose(gradient, [2 * 121 * 101 - 3 / 2, 8, 1], rtol=1e-10)
    np.testing.assert_allclose(numpy(model.parameters(model.start)["u"]), [-1.5, -1.5, 0.0], atol=1e-9)


@pytest.mark.parametrize(
    ("change", "error", "match"),
    [
        ({"random": "v"}, ArgumentError, "no parameter `v` among beta, log_sd, log_tau and u"),
        ({"random": ()}, ArgumentError, "no random effect"),
        ({"map": {"log_tow": None}}, ArgumentError, "`log_tau`"),
        ({"map": {"beta": [1]}}, ArgumentError, "`beta` has 2 elements; got 1 labels"),
        ({"parameters": {**START, "beta": "x"}}, ArgumentTypeError, "got str"),
        ({"f": lambda p: ops.log(p["log_sd"]) + ops.sum(p["u"] ** 2)}, InferenceError, "`log` is the first to give"),
        ({"f": lambda p: ops.sum(p["u"][1:] ** 2)}, InferenceError, r"no curvature by u\[0\], whatever"),
    ],
)
def test_invalid_models_raise_named_errors(change, error, match):
    given = {"f": random_intercept(Y, X), "parameters": START, "random": "u", **change}
    with pytest.raises(error, match=match), np.errstate(all="ignore"):
        laplace(given.pop("f"), given.pop("parameters"), **given)


def test_random_effects_without_a_mode_give_nan_and_a_warning():
    model = laplace(lambda p: ops.sum(p["a"] * p["u"] ** 2), {"a": 1.0, "u": np.ones(2)}, random="u")
    with pytest.warns(RuntimeWarning, match=r"curvature .* at a = -1; the least is by u\[0\] and u\[1\]"):
        value, gradient = model.value_and_grad([-1.0])
    assert np.isnan(value) and np.isnan(gradient).all()
    with pytest.raises(InferenceError, match="curvature"):
        model.mode([-1.0])
    flat = laplace(lambda p: ops.where(p["a"] > 0, 1.0, 0.0) * ops.sum(p["u"] ** 2), {"a": 1.0, "u": [0.0]}, random="u")
    flat.value([1.0])  # its factor is reused in the next search
    with pytest.warns(RuntimeWarning, match=r"no positive curvature .* the least is by u\[0\]"):
        assert np.isnan(flat.value([-1.0]))
    with pytest.raises(ShapeError, match="vector of 1 numbers"):
        model.value([1.0, 2.0])


@pytest.mark.parametrize("labels", [np.arange(7), [0, 1, -1, -1, 1, 0, 6], [-1] * 7])
@pytest.mark.parametrize("places", [[1, 2, 4], [], [0, 3, 5, 6]])
def test_random_parameters_form_a_separate_vector(places, labels):
    random = np.isin(np.arange(7), places)
    layout = Layout(np.arange(7.0), list("abcdefg"), random, labels)
    theta, u = -1 - np.arange(layout.theta.size), 9 + np.arange(layout.u.size)
    order = np.concatenate([np.flatnonzero(~random), np.flatnonzero(random)])
    np.testing.assert_array_equal(np.concatenate(layout.halves(theta, u)), layout.numbers(theta, u)[order])
    np.testing.assert_array_equal(layout.vector(theta, u), layout.numbers(theta, u))


def exact_logistic(theta, counts, sizes):
    """Return the logistic model's negative log-likelihood by adaptive quadrature."""
    total = 0.0
    for count, size in zip(counts, sizes):

        def density(u, count=count, size=size):
            eta = theta[0] + np.exp(theta[1]) * u
            return np.exp(count * eta - size * np.logaddexp(0, eta) - u * u / 2 - HALF_LOG_2PI)

        total -= np.log(scipy.integrate.quad(density, -np.inf, np.inf, epsabs=0, epsrel=1e-12)[0])
    return total


@pytest.mark.short_cases(1, "jax", "tensorflow")
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("integrate", "rtol"), [(True, 1e-10), ((-8, 8), 1e-7)])
def test_scalar_effects_are_integrated_by_quadrature(backend, integrate, rtol):
    counts, sizes = np.array([0.0, 1, 4, 5, 2]), np.array([5.0, 5, 5, 5, 3])
    joint = logistic(*tensors([counts, sizes], backend))
    start = {name: tensors(np.array(x), backend) for name, x in {"mean": 0.2, "log_tau": 0.5, "u": np.zeros(5)}.items()}
    model = laplace(joint, start, random="u", integrate=integrate)
    theta = np.array([0.4, 0.8])
    value, gradient = model.value_and_grad(theta)
    np.testing.assert_allclose(value, exact_logistic(theta, counts, sizes), rtol=rtol)
    expected = slopes(lambda theta: exact_logistic(theta, counts, sizes), theta)
    np.testing.assert_allclose(gradient, expected, rtol=1e-5, atol=1e-6)
    assert abs(laplace(joint, start, random="u").value(theta) - value) > 1e-3


def test_effects_unsuitable_for_quadrature_are_refused():
    def walk(p):
        return ops.sum((p["u"][1:] - p["u"][:-1]) ** 2) + ops.sum((p["u"] - p["a"]) ** 2)

    start = {"a": 0.0, "u": np.zeros(3)}
    with pytest.raises(ArgumentError, match=r"u\[0\] and u\[1\] depend on each other"):
        laplace(walk, start, random="u", integrate=True)
    with pytest.raises(ArgumentError, match="True, for the whole line, or a pair of finite numbers in order"):
        laplace(walk, start, random="u", integrate=(1, 0))
    with pytest.raises(ArgumentError, match="profiled parameters"):
        laplace(lambda p: ops.sum(p["u"] ** 2) + p["a"] ** 2, start, random="u", profile="a", integrate=True)


def counts_of_groups(softplus):
    """Return a logistic model of groups, given an implementation of ``log(1 + exp(x))``."""

    def joint(p):
        eta = p["a"] + ops.take(p["u"], GROUP, 0)
        return ops.sum(softplus(eta) - (Y > 1) * eta) + normal(p["u"], 0.0, ops.exp(p["s"]))

    return joint


@gradops.custom_gradient
def own_softplus(x):
    return ops.logaddexp(x, 0.0), lambda g: g * ops.sigmoid(x)


WAYS = {  # implementations of softplus, and the kind of programs each leads to
    "at once": (lambda x: ops.logaddexp(x, 0.0), Shared),
    "formulas that are chosen by values": (
        lambda x: ops.logaddexp(x, 0.0) + special.gammainc(2.0 + 0 * x, 1.0) - special.gammainc(2.0, 1.0),
        Shared,
    ),
    "a gradient of the user's own": (own_softplus, Programs),
}


def test_likelihood_that_branches_on_values_is_refused():
    def softplus(x):
        return ops.logaddexp(x, 0.0) if ops.all(x < 99) else x

    with pytest.raises(JitError, match="looked at a value"):
        laplace(counts_of_groups(softplus), {"a": 0.2, "s": -0.3, "u": np.zeros(6)}, random="u")


@pytest.mark.parametrize("way", WAYS)
def test_programs_of_one_trace_and_of_several_agree(way, monkeypatch):
    softplus, kind = WAYS[way]
    start = {"a": 0.2, "s": -0.3, "u": np.zeros(6)}
    model = laplace(counts_of_groups(softplus), start, random="u")
    assert type(model._programs) is kind
    theta = np.array([0.4, -0.1])
    value, gradient = model.value_and_grad(theta)
    np.testing.assert_allclose(gradient, slopes(model.value, theta), rtol=1e-6, atol=1e-8)
    reference = laplace(counts_of_groups(lambda x: ops.log(1 + ops.exp(x))), start, random="u")
    np.testing.assert_allclose(value, reference.value(theta), rtol=1e-12)
    np.testing.assert_allclose(gradient, reference.value_and_grad(theta)[1], rtol=1e-9, atol=1e-12)
    covariance = np.array([[0.4, 0.1], [0.1, 0.3]])
    np.testing.assert_allclose(model.random_sd(theta, covariance), reference.random_sd(theta, covariance), rtol=1e-9)
    exact = np.array([slopes(lambda t, k=k: model.value_and_grad(t)[1][k], theta) for k in range(2)])
    np.testing.assert_allclose(model.hessian(theta), exact, rtol=1e-6, atol=1e-7)
    monkeypatch.setattr(laplace_programs, "MIN_CALLS_OF_GRADIENT", 0)
    monkeypatch.setattr(laplace_programs, "MIN_CALLS_OF_DERIVATIVES", 0)
    model.value_and_grad(theta + 0.1)
    again = model.value_and_grad(theta)  # by compiled programs; earlier calls ran the steps one by one
    np.testing.assert_allclose(again[0], value, rtol=1e-10)
    np.testing.assert_allclose(again[1], gradient, rtol=1e-8, atol=1e-10)


def test_mode_is_recomputed_for_new_data():
    data = np.array([1.0, 2.0, 4.0])
    model = laplace(
        lambda p: normal(data, p["m"] + p["u"], 1.0) + normal(p["u"], 0.0, 1.0),
        {"m": 0.0, "u": np.zeros(3)},
        random="u",
    )
    np.testing.assert_allclose(model.mode([0.0]), data / 2, atol=1e-12)
    data = np.array([3.0, 0.0, 1.0])
    np.testing.assert_allclose(model.mode([0.0]), data / 2, atol=1e-12)


def test_factors_of_quadratic_likelihoods_follow_changed_data():
    weight = np.array([1.0])
    joint = lambda p: ops.sum(weight * (p["m"] - p["u"]) ** 2 + p["u"] ** 2) / 2  # noqa: E731
    model = laplace(joint, {"m": 0.5, "u": np.zeros(3)}, random="u")
    for weight in map(np.array, ([1.0], [3.0], [3.0])):
        expected = 3 / 8 * weight[0] / (weight[0] + 1) + 1.5 * np.log((weight[0] + 1) / (2 * np.pi))
        np.testing.assert_allclose(model.value([0.5]), expected, rtol=1e-12)
    assert model._programs.is_quadratic


def of_chain(p):
    step = p["u"][1:] - ops.tanh(p["a"]) * p["u"][:-1]
    return ops.sum(step**2) * ops.exp(p["s"]) + ops.sum((step[1:] + p["u"][:-2] - p["a"]) ** 4) + ops.sum(p["u"] ** 2)


PLACES = np.array([0, 1, 2, 3, 0, 1, 2, 3]), np.array([4, 4, 4, 4, 5, 5, 5, 6])
OF_AFFINE_MAPS = {
    "crossed effects": lambda p: ops.sum((p["a"] - p["u"][PLACES[0]] - p["u"][PLACES[1]]) ** 2) * ops.exp(p["s"])
    + ops.sum(p["u"] ** 2),
    "maps of maps, which depend on parameters": of_chain,
    "products of maps": lambda p: ops.sum(ops.exp(p["s"]) * p["u"][1:] * p["u"][:-1])
    + ops.sum((p["a"] - 3 * p["u"]) ** 2 - p["u"] / 7),
    "other functions between": lambda p: ops.sum(ops.cosh(ops.sinh(p["u"]) + p["a"]))
    + ops.sum((p["u"][:3] + p["u"][3:6]) ** 2) * ops.exp(p["s"])
    + p["u"][6] ** 2,
    "a sum of all": lambda p: (ops.sum(p["u"]) - p["a"]) ** 2 * ops.exp(p["s"]) + ops.sum(ops.split(p["u"] ** 2, 7)[0])
    + ops.sum(ops.cosh(p["u"])),
}  # fmt: skip


@pytest.mark.parametrize("kind", [SeparableHessian, SparseHessian])
@pytest.mark.parametrize("name", OF_AFFINE_MAPS)
def test_hessian_elements_of_functions_of_affine_maps(name, kind, monkeypatch):
    monkeypatch.setattr(strategy, "may_pay", lambda maps: kind is SeparableHessian)
    monkeypatch.setattr(SeparableHessian, "pays", property(lambda self: True, lambda self, value: None), raising=False)
    joint = OF_AFFINE_MAPS[name]
    model = laplace(joint, {"a": 0.3, "s": -0.2, "u": np.linspace(-0.3, 0.4, 7)}, random="u")
    assert type(model._programs.hessian) is kind
    assert model._programs.is_quadratic is (name in ("crossed effects", "products of maps"))
    theta, u = np.array([0.4, -0.1]), np.linspace(0.5, -0.4, 7)
    pattern = model._programs.hessian.pattern
    found = np.zeros(pattern.shape)
    found[positions(pattern)] = model._programs.elements(theta, u)
    np.testing.assert_allclose(found, functional.hessian(lambda x: model.f(theta, x), u), rtol=1e-12, atol=1e-12)
    gradient = model.value_and_grad(theta)[1]
    np.testing.assert_allclose(gradient, slopes(model.value, theta), rtol=1e-6, atol=1e-8)


def test_few_hessian_products_are_taken_if_they_suffice():
    """Crossed effects have dense Hessian columns, so affine maps are used; a chain needs three colours."""
    u = np.zeros(60)
    at = np.arange(900)
    crossed = laplace(
        lambda p: ops.sum((p["a"] - p["u"][at % 30] - p["u"][30 + at // 30]) ** 2) + ops.sum(p["u"] ** 2),
        {"a": 0.0, "u": u},
        random="u",
    )
    chain = laplace(
        lambda p: ops.sum((p["u"][1:] - p["u"][:-1] - p["a"]) ** 2) + ops.sum(p["u"] ** 2),
        {"a": 0.0, "u": u},
        random="u",
    )
    assert type(crossed._programs.hessian) is SeparableHessian
    assert type(chain._programs.hessian) is SparseHessian


def test_second_derivatives_of_long_programs_are_differences_of_the_gradient(monkeypatch):
    def nll(p):
        return normal(Y, p["a"] + p["b"] * X, ops.exp(p["s"]))

    start = {"a": 0.1, "b": 0.2, "s": -0.1}
    exact = gradops.inference.fit(nll, start)
    monkeypatch.setattr(likelihood, "MAX_COMPILED_STEPS", 0)
    found = gradops.inference.fit(nll, start)
    called = []
    monkeypatch.setattr(found.model, "_second", lambda theta: called.append(theta))
    by_differences = found.model.hessian(found.theta)
    assert not called
    np.testing.assert_allclose(by_differences, exact.model._second(exact.theta), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(*[list(one.bse.values()) for one in (found, exact)], rtol=1e-6)


def _once():
    slope = gradops.jit(gradops.grad(lambda x: ops.sin(x[0]) * x[1] + x[0] / x[1]))
    model = laplace(random_intercept(Y, X), START, random="u")
    return slope(np.array([0.5, 2.0])), model.value_and_grad(model.start)


def test_memory_of_a_trace_is_freed_without_garbage_collection():
    def alive():
        return sum(isinstance(x, (Node, Program, Scalars, Step)) for x in gc.get_objects())

    _once()  # fills the caches
    gc.collect()
    before = alive()
    gc.disable()
    try:
        _once()
        assert alive() == before
    finally:
        gc.enable()
