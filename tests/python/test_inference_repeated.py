"""Fits of one likelihood with other data: programs of earlier fits give the results of a likelihood that has none."""

from __future__ import annotations

import functools
import pickle

import numpy as np
import pytest
import scipy.stats

from gradops import jit, ops
from gradops.errors import InferenceError
from gradops.inference import fit, repeated, transforms
from gradops.jit import compiled
from gradops.scipy import stats

RNG = np.random.default_rng(3)
DESIGN = np.column_stack([np.ones(30), RNG.normal(size=(30, 2))])


def counts() -> dict:
    return {"x": DESIGN, "y": RNG.poisson(np.exp(DESIGN @ [0.5, 0.3, -0.2])).astype(float)}


def classes() -> dict:
    x = RNG.normal(size=(30, 3))
    return {"x": x, "y": np.searchsorted([-1.0, 0.3, 1.5], x @ [0.8, -0.5, 0.3] + RNG.logistic(size=30))}


def walk() -> np.ndarray:
    return np.cumsum(RNG.normal(size=24)) + RNG.normal(size=24)


def normal(p, data):
    return -ops.sum(stats.norm.logpdf(data["y"], data["x"] @ p["beta"], ops.exp(p["log_sd"])))


def whitened(p, data):
    """Computations of the data alone, also of one number that a loop reads, and a factor of their product."""
    centred = data["x"] - ops.mean(data["x"], 0)
    factor = ops.linalg.cholesky(ops.transpose(data["x"]) @ data["x"])
    scale = ops.sqrt(ops.sum(data["y"] ** 2))
    eta = data["x"] @ p["beta"] + 0.1 * centred[:, 1]
    total = ops.sum((factor.T @ p["beta"]) ** 2) / 20
    for k in range(3):
        total = total + (p["beta"][k] - data["y"][k] / scale) ** 2
    return total + ops.sum(ops.exp(eta) - data["y"] * eta + ops.special.lgamma(data["y"] + 1))


def ordered(p, data):
    cuts = ops.cumsum(ops.concatenate([p["first"], ops.exp(p["steps"])]))
    cuts = ops.concatenate([np.array([-np.inf]), cuts, np.array([np.inf])])
    eta = data["x"] @ p["beta"]
    return -ops.sum(ops.log(ops.sigmoid(cuts[data["y"] + 1] - eta) - ops.sigmoid(cuts[data["y"]] - eta)))


def local_level(p, y):
    level, variance, total = 0.0, 10.0, 0.0
    for k in range(len(y)):
        variance = variance + ops.exp(p["log_q"])
        s = variance + ops.exp(p["log_r"])
        v = y[k] - level
        total = total + ops.log(s) + v**2 / s
        level, variance = level + variance / s * v, variance * (1 - variance / s)
    return total / 2


def masked(p, data):
    """A selection by the data, which differs for each data set."""
    some = data["y"][data["y"] > 1]
    rate = ops.exp(p["beta"][0])
    return ops.sum(rate - some * ops.log(rate)) + ops.sum(p["beta"] ** 2)


def untraceable(p, data):
    """A computation of the data that cannot be traced."""
    mean = np.asarray(data["y"]).tolist()[0] + float(np.mean(data["y"]))
    return ops.sum((p["beta"] - mean) ** 2)


STARTS = {
    normal: (counts, {"beta": np.zeros(3), "log_sd": 0.0}),
    whitened: (counts, {"beta": np.zeros(3)}),
    ordered: (classes, {"beta": np.zeros(3), "first": np.array([-1.0]), "steps": np.zeros(2)}),
    local_level: (walk, {"log_q": 0.0, "log_r": 0.0}),
    masked: (counts, {"beta": np.zeros(2)}),
    untraceable: (counts, {"beta": np.zeros(2)}),
}


def new(nll):
    """Return the likelihood as a function that has not been fitted."""
    return lambda p, data: nll(p, data)


def assert_same(found, want):
    np.testing.assert_allclose(found.theta, want.theta, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found.cov_params(), want.cov_params(), rtol=1e-6, atol=1e-10)
    np.testing.assert_allclose(found.llf, want.llf, rtol=1e-12)
    np.testing.assert_allclose(found.model.hessian(want.theta), want.model.hessian(want.theta), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("nll", STARTS, ids=lambda f: f.__name__)
def test_repeated_fits_equal_single_ones(nll, monkeypatch):
    monkeypatch.setattr(repeated, "MANY", 1)  # the last fit takes the exact Hessian
    data, start = STARTS[nll]
    own = new(nll)
    found = [(fit(own, start, here), here) for here in (data(), data(), data())]
    for one, here in found[1:]:  # also after fits of other data
        assert_same(one, fit(new(nll), start, here))


def test_later_fits_trace_nothing(monkeypatch):
    traces = []
    monkeypatch.setattr(
        compiled, "trace", lambda f, *a, trace=compiled.trace, **k: traces.append(f) or trace(f, *a, **k)
    )
    for own in (new(normal), jit(new(normal))):
        counted = []
        for size in (30, 30, 30, 20, 20, 20, 30):
            before, data = len(traces), counts()
            fit(own, {"beta": np.full(3, size / 30), "log_sd": 0.0}, {"x": DESIGN[:size], "y": data["y"][:size]})
            counted.append(len(traces) - before > 0)
        assert counted == [True, True, False, True, True, False, False]


def test_data_may_be_overwritten_between_fits():
    own, data, start = new(normal), counts(), {"beta": np.zeros(3), "log_sd": 0.0}
    fits, copies = [], []
    for _ in range(4):
        data["y"][:] = counts()["y"]
        copies.append(data["y"].copy())
        fits.append(fit(own, start, data))
    for found, y in zip(fits[1:], copies[1:]):
        np.testing.assert_allclose(found.params["beta"], np.linalg.lstsq(DESIGN, y)[0], rtol=1e-8)
        np.testing.assert_allclose(found.model.value(found.theta), -found.llf, rtol=1e-12)


def test_everything_else_that_a_likelihood_reads_may_change():
    weight = np.array([1.0, 1.0, 1.0])

    def nll(p, data):
        return ops.sum(weight * (p["beta"] - data["y"]) ** 2) * data["n"] + ops.sum(p["beta"] ** 2)

    for n, w in ((1, 1.0), (1, 1.0), (1, 3.0), (2.0, 3.0), (2.0, 3.0), (2.0, 1.0)):
        weight[:] = w
        y = RNG.normal(size=3)
        found = fit(nll, {"beta": np.zeros(3)}, {"y": y, "n": n})
        np.testing.assert_allclose(found.theta, w * n * y / (w * n + 1), rtol=1e-9)


def test_parameters_of_another_form_are_another_fit():
    own, start = new(normal), {"beta": np.zeros(3), "log_sd": 0.0}
    options: list[dict] = [
        {},
        {"map": {"beta": [0, 1, 1]}},
        {"transforms": {"beta": transforms.interval(-9, 9)}},
        {"bounds": {"log_sd": (0.0, 1.0)}},
    ]
    for data in (counts(), counts()):
        fits = [fit(own, start, data, **given) for given in options]
    for found, given in zip(fits, options):
        assert_same(found, fit(new(normal), start, data, **given))
    for sd in (0.0, 0.1, 0.2):
        data = counts()
        fixed = fit(own, {**start, "log_sd": sd}, data, map={"log_sd": None})
        llf = scipy.stats.norm.logpdf(data["y"], DESIGN @ fixed.params["beta"], np.exp(sd)).sum()
        np.testing.assert_allclose(fixed.llf, llf, rtol=1e-12)


def test_function_that_copies_attributes_has_programs_of_its_own():
    own, start = new(normal), {"beta": np.zeros(3), "log_sd": 0.0}

    @functools.wraps(own)
    def penalised(p, data):
        return own(p, data) + 10 * ops.sum(p["beta"] ** 2)

    for f in (own, own, penalised, penalised):
        vars(penalised).update(vars(own))
        found = fit(f, start, data := counts())
    value = 10 * np.sum(found.params["beta"] ** 2) + new(normal)(found.params, data)
    np.testing.assert_allclose(found.value, value, rtol=1e-12)


def test_errors_are_those_of_a_first_fit():
    own = new(lambda p, data: ops.sum(ops.log(p["beta"] * data["y"])))
    messages = []
    for y in (-1.0, -1.0, -1.0):
        with pytest.raises(InferenceError) as caught, np.errstate(invalid="ignore"):
            fit(own, {"beta": np.ones(2)}, {"y": np.array([y, 1.0])})
        messages.append(str(caught.value))
    assert len(set(messages)) == 1


def test_programs_are_not_pickled():
    for _ in range(2):
        found = fit(masked, {"beta": np.zeros(2)}, counts())
    fits = vars(masked)[repeated._NAME]
    assert len(fits) == 1 and not pickle.loads(pickle.dumps(fits))
    again = pickle.loads(pickle.dumps(found))
    assert_same(again, found)
