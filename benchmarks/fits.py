"""Compares maximum likelihood in Python with statsmodels: one fit, and fits of a likelihood to many data sets.

python benchmarks/fits.py [FITS] [MODEL ...]: processor time in a warm process. It needs statsmodels.
"""

from __future__ import annotations

import sys
import time
import warnings

import numpy as np
import statsmodels.api as sm
from statsmodels.miscmodels.ordinal_model import OrderedModel
from timing import table

from gradops import ops
from gradops.inference import fit
from gradops.scipy import stats

rng = np.random.default_rng(1)


def counts(n: int = 1000, extra: float = 0.5, zeros: float = 0.0) -> dict:
    x = np.column_stack([np.ones(n), rng.normal(size=(n, 4))])
    rate = np.exp(x @ [0.5, 0.3, -0.3, 0.3, -0.3]) * rng.gamma(1 / extra, extra, n)
    return {"x": x, "y": rng.poisson(rate) * (rng.random(n) >= zeros) * 1.0}


def classes(n: int = 1000) -> dict:
    x = rng.normal(size=(n, 3))
    return {"x": x, "y": np.searchsorted([-1.0, 0.3, 1.5], x @ [0.8, -0.5, 0.3] + rng.logistic(size=n))}


def truths(n: int = 1000) -> dict:
    data = counts(n)
    return {**data, "y": (data["x"] @ [0.5, -0.3, 0.5, -0.3, 0.5] + rng.logistic(size=n) > 0) * 1.0}


def groups(n: int = 1000, count: int = 50) -> dict:
    x, group = np.column_stack([np.ones(n), rng.normal(size=(n, 2))]), rng.integers(0, count, n)
    return {"x": x, "group": group, "y": x @ [1.0, 0.5, -0.5] + rng.normal(size=count)[group] + rng.normal(size=n)}


def walk(n: int = 400) -> np.ndarray:
    return np.cumsum(0.5 * rng.normal(size=n)) + rng.normal(size=n)


def logistic(p, data):
    eta = data["x"] @ p["beta"]
    return ops.sum(ops.softplus(eta) - data["y"] * eta)


def poisson(p, data):
    return -ops.sum(stats.poisson.logpmf(data["y"], ops.exp(data["x"] @ p["beta"])))


def zero_inflated(p, data):
    zero, count = ops.sigmoid(p["inflate"]), stats.poisson.pmf(data["y"], ops.exp(data["x"] @ p["beta"]))
    return -ops.sum(ops.log(zero * (data["y"] == 0) + (1 - zero) * count))


def negative_binomial(p, data):
    y, eta, alpha = data["y"], data["x"] @ p["beta"], ops.exp(p["log_alpha"])
    size = 1 / alpha
    choose = ops.special.lgamma(y + size) - ops.special.lgamma(size) - ops.special.lgamma(y + 1)
    return -ops.sum(choose + y * (eta + p["log_alpha"]) - (y + size) * ops.log1p(alpha * ops.exp(eta)))


def negative_binomial_of_scipy(p, data):
    mean, size = ops.exp(data["x"] @ p["beta"]), ops.exp(-p["log_alpha"])
    return -ops.sum(stats.nbinom.logpmf(data["y"], size, size / (size + mean)))


def cut(p, data, cdf):
    cuts = ops.cumsum(ops.concatenate([p["first"], ops.exp(p["steps"])]))
    cuts = ops.concatenate([np.array([-np.inf]), cuts, np.array([np.inf])])
    eta = data["x"] @ p["beta"]
    return -ops.sum(ops.log(cdf(cuts[data["y"] + 1] - eta) - cdf(cuts[data["y"]] - eta)))


def ordered_logit(p, data):
    return cut(p, data, ops.sigmoid)


def ordered_probit(p, data):
    return cut(p, data, stats.norm.cdf)


def mixed(p, data):
    mean = data["x"] @ p["beta"] + p["u"][data["group"]]
    noise = stats.norm.logpdf(data["y"], mean, ops.exp(p["log_sd"]))
    return -ops.sum(noise) - ops.sum(stats.norm.logpdf(p["u"], 0.0, ops.exp(p["log_tau"])))


def local_level(p, y):
    q, r, level, total = ops.exp(p["log_q"]), ops.exp(p["log_r"]), y[0], 0.0
    variance = r
    for k in range(1, len(y)):
        variance = variance + q
        s, v = variance + r, y[k] - level
        total = total + ops.log(2 * np.pi * s) + v**2 / s
        level, variance = level + variance / s * v, variance * (1 - variance / s)
    return total / 2


BETA, ORDERED = {"beta": np.zeros(5)}, {"beta": np.zeros(3), "first": np.array([-1.0]), "steps": np.zeros(2)}
EFFECTS = {"beta": np.zeros(3), "log_sd": 0.0, "log_tau": 0.0, "u": np.zeros(50)}
MODELS = {
    logistic: (truths, BETA, {}, lambda d: sm.Logit(d["y"], d["x"]).fit(disp=0)),
    poisson: (lambda: counts(extra=1e-6), BETA, {}, lambda d: sm.Poisson(d["y"], d["x"]).fit(disp=0)),
    zero_inflated: (
        lambda: counts(extra=1e-6, zeros=0.3),
        {**BETA, "inflate": 0.0},
        {},
        lambda d: sm.ZeroInflatedPoisson(d["y"], d["x"]).fit(disp=0),
    ),
    negative_binomial: (
        counts,
        {**BETA, "log_alpha": 0.0},
        {},
        lambda d: sm.NegativeBinomial(d["y"], d["x"]).fit(disp=0),
    ),
    negative_binomial_of_scipy: (
        counts,
        {**BETA, "log_alpha": 0.0},
        {},
        lambda d: sm.NegativeBinomial(d["y"], d["x"]).fit(disp=0),
    ),
    ordered_logit: (
        classes,
        ORDERED,
        {},
        lambda d: OrderedModel(d["y"], d["x"], distr="logit").fit(method="bfgs", disp=0),
    ),
    ordered_probit: (
        classes,
        ORDERED,
        {},
        lambda d: OrderedModel(d["y"], d["x"], distr="probit").fit(method="bfgs", disp=0),
    ),
    mixed: (groups, EFFECTS, {"random": "u"}, lambda d: sm.MixedLM(d["y"], d["x"], d["group"]).fit(reml=False)),
    local_level: (
        walk,
        {"log_q": 0.0, "log_r": 0.0},
        {},
        lambda d: sm.tsa.UnobservedComponents(d, "llevel").fit(disp=0),
    ),
}


def seconds(call, *arguments) -> tuple[float, object]:
    start = time.process_time()
    found = call(*arguments)
    found.bse  # noqa: B018
    return time.process_time() - start, found


def measure(nll, fits: int, alone: int = 7) -> list[str]:
    """Return the row of a model; both packages fit each data set in turn."""
    make, start, options, theirs = MODELS[nll]

    def run(function, count: int) -> tuple[list, list, float]:
        own, other, apart = [], [], 0.0
        for _ in range(count):
            data = make()
            took, found = seconds(lambda d: fit(function() if count == alone else function, start, d, **options), data)
            own.append(took)
            took, want = seconds(theirs, data)
            other.append(took)
            apart = max(apart, abs(found.llf / want.llf - 1))
        return own, other, apart

    one, one_other, apart = run(lambda: lambda p, data: nll(p, data), alone)
    many, many_other, _ = run(nll, fits)
    ms = [1e3 * np.median(one), 1e3 * np.median(one_other), 1e3 * np.mean(many), 1e3 * np.mean(many_other)]
    ratios = f"{ms[0] / ms[1]:.2f}", f"{ms[2] / ms[3]:.2f}"
    name = nll.__name__.replace("_", " ")
    return [name, f"{ms[0]:.1f}", f"{ms[1]:.1f}", ratios[0], f"{ms[2]:.1f}", f"{ms[3]:.1f}", ratios[1], f"{apart:.0e}"]


def main(fits: str = "400", *names: str) -> None:
    warnings.simplefilter("ignore")
    chosen = [nll for nll in MODELS if not names or nll.__name__ in names]
    head = ["model", "alone, ms", "statsmodels", "ratio", f"mean of {fits}", "statsmodels", "ratio", "llf apart"]
    table(head, [measure(nll, int(fits)) for nll in chosen])


if __name__ == "__main__":
    main(*sys.argv[1:])
