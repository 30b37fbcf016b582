"""Common models: estimates and standard errors against closed-form likelihoods, differentiated numerically.

Standard errors use the observed information, the exact Hessian's; statsmodels and R use the expected information for
Gamma and negative binomial models.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.special
import scipy.stats
from parity import tensors

from gradops import ops
from gradops.inference import fit, transforms
from gradops.scipy import sparse, stats

RNG = np.random.default_rng(11)
N = 60
X = RNG.normal(size=N)
G, H = np.repeat(np.arange(10), 6), np.tile(np.arange(6), 10)
NORMAL = 1 + 0.5 * X + RNG.normal(size=10)[G] + 0.7 * RNG.normal(size=6)[H] + 0.6 * RNG.normal(size=N)
BINARY = (RNG.random(N) < scipy.special.expit(0.3 + X)).astype(float)
CLUSTERED = (np.random.default_rng(3).random(N) < scipy.special.expit(X + np.linspace(-2, 2, 10)[G])).astype(float)
COUNT = RNG.poisson(np.exp(1 + 0.4 * X) * RNG.gamma(2, 0.5, N)).astype(float)
POSITIVE = RNG.gamma(3, np.exp(0.5 + 0.3 * X) / 3)
WEIBULL = np.exp(1 + 0.5 * X) * RNG.weibull(1.5, N)
TIME, DEAD = np.minimum(WEIBULL, 4.0), WEIBULL < 4
MIXED = np.where(RNG.random(N) < 0.4, RNG.normal(-2, 0.5, N), RNG.normal(1.5, 1, N))
SHOCKS = np.zeros(150)
_v = 1.0
for _i in range(150):
    _v = 0.2 + 0.25 * SHOCKS[_i - 1] ** 2 + 0.6 * _v if _i else 1.0
    SHOCKS[_i] = np.sqrt(_v) * RNG.normal()
STATES = np.cumsum(RNG.random(60) < 0.15) % 2
EMITTED = RNG.poisson(np.where(STATES == 1, 7.0, 2.0)).astype(float)
GRID = np.stack(np.meshgrid(np.arange(5), np.arange(5)), -1).reshape(-1, 2)
NEAR = (np.abs(GRID[:, None] - GRID).sum(-1) == 1).astype(float)
LAPLACIAN = np.diag(NEAR.sum(0)) - NEAR
FIELD = np.sin(GRID[:, 0]) + 0.5 * RNG.normal(size=25)
SERIES = np.zeros(200)
_h = 0.0
for _i in range(200):
    _h = 0.8 * _h + 0.5 * RNG.normal()
    SERIES[_i] = _h + 0.3 * RNG.normal()
KNOTS = np.linspace(-2, 2, 8)
BASIS = np.maximum(X[:, None] - KNOTS, 0) ** 3 / 10


def line(p, x):
    return p["a"] + p["b"] * x


def normal_prior(u, log_sd):
    return ops.sum(stats.norm.logpdf(u, 0.0, ops.exp(log_sd)))


def marginal(mean, covariance, y):
    r = y - mean
    return (r @ np.linalg.solve(covariance, r) + np.linalg.slogdet(covariance)[1] + len(y) * np.log(2 * np.pi)) / 2


def linear(p, x, y):
    return -ops.sum(stats.norm.logpdf(y, line(p, x), ops.exp(p["s"])))


def logistic(p, x, y):
    return -ops.sum(stats.bernoulli.logpmf(y, ops.sigmoid(line(p, x))))


def poisson(p, x, y):
    return -ops.sum(stats.poisson.logpmf(y, ops.exp(line(p, x))))


def negative_binomial(p, x, y):
    size = ops.exp(p["s"])
    return -ops.sum(stats.nbinom.logpmf(y, size, size / (size + ops.exp(line(p, x)))))


def of_nbinom(t):
    size, mu = np.exp(t[2]), np.exp(t[0] + t[1] * X)
    return -scipy.stats.nbinom.logpmf(COUNT, size, size / (size + mu)).sum()


def gamma(p, x, y):
    shape = ops.exp(p["s"])
    return -ops.sum(stats.gamma.logpdf(y, shape, 0.0, ops.exp(line(p, x)) / shape))


def survival(p, x, y):
    shape, scale = ops.exp(-p["s"]), ops.exp(line(p, x))
    dead, alive = np.flatnonzero(DEAD), np.flatnonzero(~DEAD)
    ended = stats.weibull_min.logpdf(ops.take(y, dead, 0), shape, 0.0, ops.take(scale, dead, 0))
    lasting = stats.weibull_min.logsf(ops.take(y, alive, 0), shape, 0.0, ops.take(scale, alive, 0))
    return -ops.sum(ended) - ops.sum(lasting)


def of_survival(t):
    shape, scale = np.exp(-t[2]), np.exp(t[0] + t[1] * X)
    z = (TIME / scale) ** shape
    return -np.sum(DEAD * (np.log(shape / scale) + (shape - 1) * np.log(TIME / scale)) - z)


def mixture(p, x, y):
    parts = [
        ops.log(w) + stats.norm.logpdf(y, p["m"][k], ops.exp(p["d"][k]))
        for k, w in enumerate((ops.sigmoid(p["w"]), ops.sigmoid(-p["w"])))
    ]
    return -ops.sum(ops.logaddexp(*parts))


def of_mixture(t):
    w = scipy.special.expit(t[0])
    first, second = (scipy.stats.norm.pdf(MIXED, t[1 + k], np.exp(t[3 + k])) for k in (0, 1))
    return -np.log(w * first + (1 - w) * second).sum()


def garch(p, x, y):
    v, total = 1.0, 0.0
    for k in range(1, 150):
        v = ops.exp(p["omega"]) + ops.sigmoid(p["alpha"]) * SHOCKS[k - 1] ** 2 + ops.sigmoid(p["beta"]) * v
        total = total + ops.log(v) / 2 + SHOCKS[k] ** 2 / (2 * v)
    return total


def of_garch(t):
    v, total = 1.0, 0.0
    for k in range(1, 150):
        v = np.exp(t[0]) + scipy.special.expit(t[1]) * SHOCKS[k - 1] ** 2 + scipy.special.expit(t[2]) * v
        total += np.log(v) / 2 + SHOCKS[k] ** 2 / (2 * v)
    return total


def hidden(p, x, y):
    stay, rate = ops.sigmoid(p["stay"]), ops.exp(p["rate"])
    move = ops.stack([ops.stack([stay[0], 1 - stay[0]]), ops.stack([1 - stay[1], stay[1]])])
    alpha = ops.log(stay * 0 + 0.5)
    for k in range(60):
        alpha = ops.logsumexp(ops.expand_dims(alpha, 1) + ops.log(move), 0)
        alpha = alpha + y[k] * ops.log(rate) - rate
    return -ops.logsumexp(alpha) + ops.sum(ops.special.lgamma(y + 1))


def of_hidden(t):
    """Return the hidden Markov model's likelihood as a scaled product of matrices, the sum over all paths."""
    stay, rate = scipy.special.expit(t[:2]), np.exp(t[2:])
    move = np.array([[stay[0], 1 - stay[0]], [1 - stay[1], stay[1]]])
    alpha, total = np.array([0.5, 0.5]), 0.0
    for y in EMITTED:
        alpha = (alpha @ move) * scipy.stats.poisson.pmf(y, rate)
        total += np.log(alpha.sum())
        alpha = alpha / alpha.sum()
    return -total


def intercepts(p, x, y):
    mean = line(p, x) + ops.take(p["u"], G, 0)
    return -ops.sum(stats.norm.logpdf(y, mean, ops.exp(p["s"]))) - normal_prior(p["u"], p["t"])


def same(groups):
    return (groups[:, None] == groups).astype(float)


def of_intercepts(t):
    return marginal(t[0] + t[1] * X, np.exp(2 * t[2]) * np.eye(N) + np.exp(2 * t[3]) * same(G), NORMAL)


def crossed(p, x, y):
    mean = line(p, x) + ops.take(p["u"], G, 0) + ops.take(p["v"], H, 0)
    seen = -ops.sum(stats.norm.logpdf(y, mean, ops.exp(p["s"])))
    return seen - normal_prior(p["u"], p["t"]) - normal_prior(p["v"], p["r"])


def of_crossed(t):
    covariance = np.exp(2 * t[2]) * np.eye(N) + np.exp(2 * t[3]) * same(G) + np.exp(2 * t[4]) * same(H)
    return marginal(t[0] + t[1] * X, covariance, NORMAL)


def logistic_intercepts(p, x, y):
    return logistic({**p, "a": p["a"] + ops.take(p["u"], G, 0)}, x, y) - normal_prior(p["u"], p["t"])


def of_logistic_intercepts(t):
    """Return the Laplace approximation for independent effects."""
    u, precision = np.zeros(10), np.exp(-2 * t[2])
    for _ in range(30):
        p = scipy.special.expit(eta(t) + u[G])
        curvature = np.bincount(G, p * (1 - p)) + precision
        u = u + (np.bincount(G, CLUSTERED - p) - u * precision) / curvature
    seen = np.sum(np.logaddexp(0, eta(t) + u[G]) - CLUSTERED * (eta(t) + u[G]))
    return seen + np.sum(u * u * precision + np.log(curvature) + 2 * t[2]) / 2


def autoregression(p, x, y):
    phi, h, sd = ops.tanh(p["phi"]), p["h"], ops.exp(p["q"])
    prior = stats.norm.logpdf(h[0], 0.0, sd / ops.sqrt(1 - phi * phi))
    return (
        -prior - ops.sum(stats.norm.logpdf(h[1:], phi * h[:-1], sd)) - ops.sum(stats.norm.logpdf(y, h, ops.exp(p["r"])))
    )


def kalman(t):
    phi, q, r = np.tanh(t[0]), np.exp(2 * t[1]), np.exp(2 * t[2])
    mean, variance, total = 0.0, q / (1 - phi**2), 0.0
    for y in SERIES:
        s = variance + r
        total += ((y - mean) ** 2 / s + np.log(2 * np.pi * s)) / 2
        gain = variance / s
        mean, variance = phi * (mean + gain * (y - mean)), phi**2 * (1 - gain) * variance + q
    return total


def field(p, x, y):
    precision = ops.exp(p["k"]) * sparse.csc_array(LAPLACIAN) + sparse.eye_array(25)
    prior = (p["u"] @ (precision @ p["u"]) - sparse.linalg.logdet(precision) + 25 * np.log(2 * np.pi)) / 2
    return prior - ops.sum(stats.norm.logpdf(y, p["m"] + p["u"], ops.exp(p["s"])))


def of_field(t):
    covariance = np.linalg.inv(np.exp(t[1]) * LAPLACIAN + np.eye(25)) + np.exp(2 * t[2]) * np.eye(25)
    return marginal(t[0], covariance, FIELD)


def spline(p, x, y):
    mean = line(p, x) + ops.sum(ops.multiply(p["u"], BASIS), 1)
    return -ops.sum(stats.norm.logpdf(y, mean, ops.exp(p["s"]))) - normal_prior(p["u"], p["t"])


def of_spline(t):
    covariance = np.exp(2 * t[2]) * np.eye(N) + np.exp(2 * t[3]) * BASIS @ BASIS.T
    return marginal(t[0] + t[1] * X, covariance, np.sin(2 * X) + NORMAL / 4)


def eta(t):
    return t[0] + t[1] * X


LINE = {"a": 0.1, "b": 0.1}
MODELS = {
    "linear": (linear, {**LINE, "s": 0.0}, NORMAL, lambda t: marginal(eta(t), np.exp(2 * t[2]) * np.eye(N), NORMAL)),
    "logistic": (logistic, LINE, BINARY, lambda t: np.sum(np.logaddexp(0, eta(t)) - BINARY * eta(t))),
    "poisson": (poisson, LINE, COUNT, lambda t: -scipy.stats.poisson.logpmf(COUNT, np.exp(eta(t))).sum()),
    "negative binomial": (negative_binomial, {**LINE, "s": 0.0}, COUNT, of_nbinom),
    "gamma": (
        gamma,
        {**LINE, "s": 0.0},
        POSITIVE,
        lambda t: -scipy.stats.gamma.logpdf(POSITIVE, np.exp(t[2]), scale=np.exp(eta(t) - t[2])).sum(),
    ),
    "survival": (survival, {**LINE, "s": 0.0}, TIME, of_survival),
    "mixture": (mixture, {"w": 0.0, "m": [-1.0, 1.0], "d": [0.0, 0.0]}, MIXED, of_mixture),
    "GARCH": (garch, {"omega": -1.0, "alpha": -1.0, "beta": 0.0}, SHOCKS, of_garch),
    "hidden Markov": (hidden, {"stay": [1.0, 1.0], "rate": [0.5, 2.0]}, EMITTED, of_hidden),
    "intercepts": (intercepts, {**LINE, "s": 0.0, "t": 0.0, "u": np.zeros(10)}, NORMAL, of_intercepts),
    "crossed": (
        crossed,
        {**LINE, "s": 0.0, "t": 0.0, "r": 0.0, "u": np.zeros(10), "v": np.zeros(6)},
        NORMAL,
        of_crossed,
    ),
    "logistic intercepts": (
        logistic_intercepts,
        {**LINE, "t": 0.0, "u": np.zeros(10)},
        CLUSTERED,
        of_logistic_intercepts,
    ),
    "AR(1)": (autoregression, {"phi": 1.0, "q": -0.5, "r": -0.5, "h": np.zeros(200)}, SERIES, kalman),
    "field": (field, {"m": 0.0, "k": 0.0, "s": 0.0, "u": np.zeros(25)}, FIELD, of_field),
    "spline": (
        spline,
        {**LINE, "s": 0.0, "t": 0.0, "u": np.zeros(8)},
        np.sin(2 * X) + NORMAL / 4,
        of_spline,
    ),
}


def second_differences(f, size, h=0.03):
    """Return the Hessian at 0 by differences of sixth order."""
    weights = {1: 1.5, 2: -0.15, 3: 1 / 90}
    unit = np.eye(size)

    def along(d):
        return sum(w * (f(k * h * d) + f(-k * h * d) - 2 * f(0 * d)) for k, w in weights.items()) / h**2

    found = np.diag([along(e) for e in unit])
    for i, j in itertools.combinations(range(size), 2):
        both = along(unit[i] + unit[j]) - found[i, i] - found[j, j]
        found[i, j] = found[j, i] = both / 2
    return found


def slopes(f, size, h=0.03):
    weights = {1: 0.75, 2: -0.15, 3: 1 / 60}
    return np.array([sum(w * (f(k * h * e) - f(-k * h * e)) for k, w in weights.items()) / h for e in np.eye(size)])


@pytest.mark.short_cases(2, "torch")
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("backend", ["numpy", "torch"])
def test_estimates_and_standard_errors(backend, name):
    nll, start, y, reference = MODELS[name]
    x, y = tensors([X, y], backend)
    start = {key: tensors(np.array(value), backend) for key, value in start.items()}
    random = [key for key in ("u", "v", "h") if key in start]
    found = fit(lambda p: nll(p, x, y), start, random=random)
    assert found.converged
    np.testing.assert_allclose(found.value, reference(found.theta), rtol=1e-9)
    errors, size = np.sqrt(np.diag(found.cov_params())), found.theta.size

    def scaled(z):  # parameters in units of their standard errors
        return reference(found.theta + z * errors)

    correlation = found.cov_params() / np.outer(errors, errors)
    np.testing.assert_allclose(correlation @ slopes(scaled, size), 0, atol=1e-5)  # errors of the estimates
    by_differences = np.linalg.inv(second_differences(scaled, size))
    np.testing.assert_allclose(np.sqrt(np.diag(by_differences)), 1, rtol=1e-5)
    np.testing.assert_allclose(by_differences, correlation, atol=2e-5)


def test_linear_model_standard_errors_with_a_positive_parameter():
    def nll(p):
        return -ops.sum(stats.norm.logpdf(NORMAL, p["a"] + p["b"] * X, p["sd"]))

    found = fit(nll, {**LINE, "sd": 1.0}, transforms={"sd": transforms.positive})
    design = np.column_stack([np.ones(N), X])
    beta, rest, *_ = np.linalg.lstsq(design, NORMAL, rcond=None)
    sd = np.sqrt(rest[0] / N)
    np.testing.assert_allclose([found.params["a"], found.params["b"], found.params["sd"]], [*beta, sd], rtol=1e-6)
    expected = [*np.sqrt(np.diag(np.linalg.inv(design.T @ design))) * sd, sd / np.sqrt(2 * N)]
    np.testing.assert_allclose([found.bse["a"], found.bse["b"], found.bse["sd"]], expected, rtol=1e-6)
