"""Posterior densities, the No-U-Turn sampler against known moments, transformed parameters in fits, ArviZ."""

from __future__ import annotations

import sys
import types

import numpy as np
import pytest
import scipy.stats
from parity import BACKENDS, numpy, tensors
from test_inference import START, X, Y, random_intercept, slopes

from gradops import ops
from gradops.errors import ArgumentError, ArgumentTypeError, InferenceError
from gradops.inference import fit, posterior, transforms
from gradops.scipy import stats

DATA = np.array([4.1, 5.3, 4.8, 6.0, 5.2])
POSITIVE = {"sd": transforms.positive}


def normal(p, y):
    return -ops.sum(stats.norm.logpdf(y, p["mean"], p["sd"]))


@pytest.mark.parametrize("backend", [b for b in BACKENDS if b in ("numpy", "torch")])  # compiling or not
def test_fit_of_transformed_parameters(backend):
    start = {name: tensors(np.array(x), backend) for name, x in {"mean": 4.0, "sd": 1.0}.items()}
    found = fit(normal, start, data=tensors(DATA, backend), transforms=POSITIVE)
    sd = DATA.std()
    assert found.names == ["mean", "sd (free)"]
    np.testing.assert_allclose(found.theta, [DATA.mean(), np.log(sd)], rtol=1e-7)
    np.testing.assert_allclose([found.params["mean"], found.params["sd"]], [DATA.mean(), sd], rtol=1e-7)
    np.testing.assert_allclose([found.bse["mean"], found.bse["sd"]], sd / np.sqrt([5, 10]), rtol=1e-6)


def test_transforms_with_maps_and_effects_and_their_errors():
    start = {**{k: x for k, x in START.items() if k != "log_tau"}, "tau": np.exp(0.1)}

    def joint(p):
        return random_intercept(Y, X)({**p, "log_tau": ops.log(p["tau"])})

    plain = fit(random_intercept(Y, X), START, random="u", map={"log_sd": None})
    found = fit(joint, start, random="u", map={"log_sd": None}, transforms={"tau": transforms.positive})
    np.testing.assert_allclose(found.theta, plain.theta, rtol=1e-6)
    np.testing.assert_allclose(found.bse["tau"], plain.bse["log_tau"] * found.params["tau"], rtol=1e-5)
    np.testing.assert_allclose(found.bse["u"], plain.bse["u"], rtol=1e-5)
    assert np.isnan(found.bse["log_sd"])
    for given, error, match in [
        ({"transforms": {"sdd": transforms.positive}}, ArgumentError, "no parameter `sdd`"),
        ({"transforms": {"sd": np.exp}}, ArgumentTypeError, "needs a transform"),
        ({"transforms": {"mean": transforms.interval(5, 6)}}, ArgumentError, "`mean` is not within interval"),
        ({"transforms": POSITIVE, "bounds": {"sd": (0, 1)}}, ArgumentError, "sd has a transform"),
    ]:
        with pytest.raises(error, match=match):
            fit(normal, {"mean": 4.0, "sd": 1.0}, data=DATA, **given)


@pytest.mark.parametrize("backend", BACKENDS)
def test_density_of_unconstrained_parameters_includes_the_jacobian(backend):
    start = {"mean": tensors(np.array(4.0), backend), "sd": tensors(np.array(1.5), backend)}
    target = posterior(normal, start, data=tensors(DATA, backend), transforms=POSITIVE)

    def want(x):
        return scipy.stats.norm.logpdf(DATA, x[0], np.exp(x[1])).sum() + x[1]

    x = np.array([4.5, 0.3])
    np.testing.assert_allclose(target.start, [4, np.log(1.5)])
    value, gradient = target.logp_and_grad(x)
    np.testing.assert_allclose([value, target.logp(x)], want(x), rtol=1e-12)
    np.testing.assert_allclose(gradient, slopes(want, x), rtol=1e-7)
    np.testing.assert_allclose(numpy(target.density(tensors(x, backend))), want(x), rtol=1e-12)
    np.testing.assert_allclose(target.parameters(x)["sd"], np.exp(0.3))
    assert target.logp(np.array([np.nan, 0.0])) == -np.inf


def test_jax_transforms_apply_to_the_density():
    jax = pytest.importorskip("jax")
    start = {"mean": jax.numpy.array(4.0), "sd": jax.numpy.array(1.5)}
    target = posterior(normal, start, data=jax.numpy.array(DATA), transforms=POSITIVE)
    value, gradient = jax.jit(jax.value_and_grad(target.density))(jax.numpy.array([4.5, 0.3]))
    np.testing.assert_allclose(gradient, target.logp_and_grad([4.5, 0.3])[1], rtol=1e-10)


def test_draws_have_known_moments():
    covariance = np.array([[1.0, 0.8, 0.0], [0.8, 1.0, 0.0], [0.0, 0.0, 25.0]])
    precision = np.linalg.inv(covariance)

    def nlp(p):
        return ops.sum(p["z"] * ops.sum(precision * p["z"], 1)) / 2 + 4 * p["rate"] - 9 * ops.log(p["rate"])

    target = posterior(nlp, {"z": np.ones(3), "rate": 1.0}, transforms={"rate": transforms.positive})
    draws = target.sample(500, tune=300, chains=2, seed=1)
    assert draws["z"].shape == (2, 500, 3) and draws["rate"].shape == (2, 500)
    np.testing.assert_allclose(draws["z"].mean((0, 1)) / [1, 1, 5], 0, atol=0.15)
    found = np.cov(draws["z"].reshape(-1, 3).T) / np.outer([1, 1, 5], [1, 1, 5])
    np.testing.assert_allclose(found, covariance / np.outer([1, 1, 5], [1, 1, 5]), atol=0.15)
    np.testing.assert_allclose([draws["rate"].mean(), draws["rate"].std()], [2.5, np.sqrt(10) / 4], rtol=0.1)
    stats = draws.sample_stats
    assert not stats["diverging"].any() and (stats["tree_depth"] > 1).mean() > 0.5
    summary = draws.summary()
    assert list(summary) == ["rate", "z[0]", "z[1]", "z[2]"]
    for numbers in summary.values():
        assert abs(numbers["r_hat"] - 1) < 0.03 and 100 < numbers["ess"] < 3000
    again = target.sample(20, tune=20, chains=1, seed=7)
    np.testing.assert_array_equal(again["z"], target.sample(20, tune=20, chains=1, seed=7)["z"])


@pytest.mark.long
def test_random_effects_are_integrated_out_then_sampled():
    def nlp(p):
        return (3.0 - p["a"] - p["u"]) ** 2 / 2 + p["u"] ** 2 / 2 + p["a"] ** 2 / 4

    target = posterior(nlp, {"a": 1.0, "u": 0.0}, random="u")
    draws = target.sample(1000, tune=200, chains=2, seed=2)
    joint = np.linalg.inv([[1.5, 1.0], [1.0, 2.0]])  # of a and u
    both = np.stack([draws["a"].ravel(), draws["u"].ravel()])
    np.testing.assert_allclose(both.mean(1), joint @ [3, 3], atol=0.15)
    np.testing.assert_allclose(np.cov(both), joint, atol=0.15)
    with pytest.raises(ArgumentError, match="integrated out"):
        target.density(np.ones(1))
    normal = fit(nlp, {"a": 1.0, "u": 0.0}, random="u").draws(20000, seed=1)
    both = np.stack([normal["a"].ravel(), normal["u"].ravel()])
    np.testing.assert_allclose(np.cov(both), joint, atol=0.05)
    assert normal["a"].shape == (1, 20000)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_invalid_targets_are_refused():
    with pytest.raises(InferenceError, match="no number at a = 0"):
        posterior(lambda p: ops.log(p["a"]), {"a": 0.0}).sample(10)
    with pytest.raises(ArgumentError, match="`tune` 20"):
        posterior(lambda p: p["a"] ** 2, {"a": 0.0}).sample(10, tune=3)
    with pytest.raises(ArgumentError, match="no parameter: all"):
        posterior(lambda p: p["a"] ** 2, {"a": 0.0}, map={"a": None})
    with pytest.raises(ArgumentError, match="not identified"):
        fit(lambda p: (p["a"] - p["b"]) ** 2, {"a": 0.0, "b": 1.0}).draws(3)
    draws = posterior(lambda p: p["a"] ** 2, {"a": 0.0}).sample(4, tune=20, chains=1)
    assert np.isnan(draws.summary()["a"]["r_hat"])
    with pytest.raises(ArgumentError, match="no draws of `aa`"):
        draws["aa"]


@pytest.mark.parametrize("name", ["arviz_base", "arviz"])
def test_arviz_accepts_the_groups(name, monkeypatch):
    """ArviZ's constructor of either version is replaced by a function that returns its argument."""
    own = {"arviz_base": lambda groups: groups, "arviz": lambda **groups: groups}[name]
    for module in ("arviz_base", "arviz"):
        monkeypatch.setitem(sys.modules, module, types.SimpleNamespace(from_dict=own) if module == name else None)
    draws = posterior(lambda p: p["a"] ** 2, {"a": 0.0}).sample(10, tune=20, chains=2, seed=1)
    groups = draws.to_arviz()
    np.testing.assert_array_equal(groups["posterior"]["a"], draws["a"])
    assert set(groups["sample_stats"]) == {"lp", "diverging", "tree_depth", "step_size"}
