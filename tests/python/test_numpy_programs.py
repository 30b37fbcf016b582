"""Programs from SciPy's tutorial, the cookbook and textbooks, rewritten: only the import line changes.

With ``np`` as ``numpy`` a program is plain NumPy, which gives the values and the finite differences.
"""

import numpy
import pytest
from scipy.optimize import approx_fprime, least_squares, minimize

import gradops.numpy
from gradops import grad, hessian, jacobian, jit
from gradops.scipy.stats import nbinom, norm

rng = numpy.random.default_rng(0)
NOISE = rng.normal(size=60)


def rosenbrock(np, x):
    """Return the Rosenbrock function of SciPy's tutorial on minimisation."""
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2.0) ** 2.0 + (1 - x[:-1]) ** 2.0)


def integral_equation(np, p):
    """Return SciPy's tutorial on large systems: a differential equation on a grid, by second differences."""
    P, h = np.outer(np.sin(np.linspace(0, 3, 8)), p), 1.0 / 7
    d2x, d2y = np.zeros_like(P), np.zeros_like(P)
    d2x[1:-1] = (P[2:] - 2 * P[1:-1] + P[:-2]) / h / h
    d2x[0] = (P[1] - 2 * P[0]) / h / h
    d2x[-1] = (1 - 2 * P[-1] + P[-2]) / h / h
    d2y[:, 1:-1] = (P[:, 2:] - 2 * P[:, 1:-1] + P[:, :-2]) / h / h
    return np.sum((d2x + d2y + 5 * np.cosh(P).mean() ** 2) ** 2)


def seasons(np, p):
    """Return the cookbook's fit of a sine with a trend."""
    t = np.linspace(0, 3, 60)
    model = p[0] * np.cos(2 * np.pi / p[1] * t + p[2]) + p[3] * t
    return np.sum((model - np.cos(2 * np.pi * t + 0.3) - NOISE / 5) ** 2)


def rabbits(np, p):
    """Return the cookbook's predator-prey model, by a Runge-Kutta method."""

    def slope(x):
        return np.array([p[0] * x[0] - p[1] * x[0] * x[1], -p[2] * x[1] + 0.75 * p[1] * x[0] * x[1]])

    h, populations = 0.1, np.zeros((30, 2))
    populations[0] = [10.0, 5.0]
    for i in range(29):
        k1 = slope(populations[i])
        k2 = slope(populations[i] + h / 2 * k1)
        k3 = slope(populations[i] + h / 2 * k2)
        populations[i + 1] = populations[i] + h * (2 * k1 + 3 * k2 + 4 * k3) / 9
    return np.log(populations[-1]).sum() + populations.mean()


def springs(np, p):
    """Return the cookbook's two masses on two springs, step by step."""
    m1, m2, k1, k2, b = p
    x1, v1, x2, v2 = 0.5, 0.0, 2.25, 0.0
    path = []
    for _ in range(40):
        a1 = (-b * v1 - k1 * (x1 - 1.0) + k2 * (x2 - x1 - 1.0)) / m1
        a2 = (-b * v2 - k2 * (x2 - x1 - 1.0)) / m2
        x1, v1, x2, v2 = x1 + 0.05 * v1, v1 + 0.05 * a1, x2 + 0.05 * v2, v2 + 0.05 * a2
        path.append(x1 * x2)
    return np.mean(np.array(path) ** 2)


def smoothed(np, p):
    """Return the cookbook's signal smoothing by a window, with reflected ends."""
    x = p[0] * np.sin(np.linspace(-4, 4, 40)) + p[1] * NOISE[:40]
    s = np.r_[x[10:0:-1], x, x[-2:-12:-1]]
    w = np.hanning(11)
    return np.var(np.convolve(w / w.sum(), s, mode="valid")) + np.ptp(x)


def kalman(np, p):
    """Return the cookbook's Kalman filter of a constant, with preallocated arrays."""
    n, z = 50, NOISE[:50] * 0.1 - 0.37727
    xhat, P, xhatminus, Pminus, K = np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n)
    P[0] = 1.0
    for k in range(1, n):
        xhatminus[k] = xhat[k - 1]
        Pminus[k] = P[k - 1] + p[0] ** 2
        K[k] = Pminus[k] / (Pminus[k] + p[1] ** 2)
        xhat[k] = xhatminus[k] + K[k] * (z[k] - xhatminus[k])
        P[k] = (1 - K[k]) * Pminus[k]
    return np.sum((xhat[1:] - z[1:]) ** 2 / Pminus[1:]) + np.log(P[-1])


def regression(np, p):
    """Return the cookbook's linear regression by a design matrix, with the quality of its fit."""
    t = np.linspace(-5, 5, 60)
    y = np.polyval([p[0], p[1]], t) + p[2] * NOISE**3
    A = np.vstack([t, np.ones(len(t))]).T
    slope, shift = np.linalg.lstsq(A, y, rcond=None)[0]
    return np.sqrt(np.mean((slope * t + shift - y) ** 2)) + slope


def options(np, p):
    """Return a textbook's Black-Scholes price of a call, summed over strikes."""
    S, sigma, r, T = p
    K = np.linspace(0.8, 1.2, 5)
    d1 = (np.log(S / K) + (r + sigma**2 / 2) * T) / (sigma * np.sqrt(T))
    return np.sum(S * norm.cdf(d1) - K * np.exp(-r * T) * norm.cdf(d1 - sigma * np.sqrt(T)))


def ranks(np, p):
    """Return a textbook's page ranks by power iteration."""
    links = np.exp(np.outer(p, np.arange(4.0)))
    links = links / links.sum(axis=0)
    rank = np.full(len(p), 1 / len(p))
    links = links[:, :4] @ np.eye(4, len(p)) * 0.85 + 0.15 / len(p)
    for _ in range(20):
        rank = links @ rank
        rank /= np.linalg.norm(rank, 1)
    return np.max(rank) - rank @ np.log(rank)


def heat(np, p):
    """Return a textbook's implicit heat equation, with a banded matrix."""
    n = len(p)
    A = np.diag(1 + 2 * p) + np.diag(-p[1:], -1) + np.diag(-p[:-1], 1)
    u = np.exp(-(np.linspace(-2, 2, n) ** 2))
    for _ in range(5):
        u = np.linalg.solve(A, u)
    return np.trapezoid(u**2) if hasattr(np, "trapezoid") else np.trapz(u**2)


def spectrum(np, p):
    """Return a textbook's spectral estimate by averaging over segments."""
    x = np.cumsum(NOISE) * p[0] + p[1] * np.cos(np.arange(60) * p[2])
    segments = np.stack([x[i : i + 20] * np.hanning(20) for i in range(0, 41, 10)])
    power = np.mean(np.abs(np.fft.rfft(segments, axis=1)) ** 2, axis=0)
    return -np.sum(power / power.sum() * np.log(power / power.sum()))


PROGRAMS = {
    rosenbrock: numpy.array([1.3, 0.7, 0.8, 1.9, 1.2]),
    integral_equation: numpy.linspace(0.1, 0.5, 6),
    seasons: numpy.array([0.9, 1.1, 0.2, 0.1]),
    rabbits: numpy.array([1.0, 0.1, 1.5]),
    springs: numpy.array([1.0, 1.5, 8.0, 40.0, 0.8]),
    smoothed: numpy.array([1.0, 0.4]),
    kalman: numpy.array([0.05, 0.2]),
    regression: numpy.array([0.8, -4.0, 0.3]),
    options: numpy.array([1.0, 0.2, 0.03, 0.5]),
    ranks: numpy.array([0.1, 0.4, -0.3, 0.2]),
    heat: numpy.linspace(0.3, 0.9, 9),
    spectrum: numpy.array([0.5, 1.0, 0.8]),
}


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_derivative_of_the_unchanged_program_and_compiled(program):
    at = PROGRAMS[program]
    wanted = approx_fprime(at, lambda p: program(numpy, p), 1e-7)
    slope = grad(lambda p: program(gradops.numpy, p))
    scale = max(1.0, abs(wanted).max())
    numpy.testing.assert_allclose(slope(at), wanted, rtol=1e-4, atol=1e-4 * scale)
    numpy.testing.assert_allclose(jit(slope)(at), slope(at), rtol=1e-9, atol=1e-11 * scale)


class GenericLikelihoodModel:
    """A statsmodels model defined by its likelihood, as far as a fit needs it, with finite-difference derivatives."""

    def __init__(self, endog, exog):
        self.endog, self.exog = endog, exog

    def loglike(self, params):
        return -self.nloglikeobs(params).sum(0)

    def score(self, params):
        return approx_fprime(params, self.loglike, 1e-7)

    def hessian(self, params):
        return approx_fprime(params, self.score, 1e-5)

    def fit(self, start_params):
        f, slope = (lambda p: -self.loglike(p)), (lambda p: -self.score(p))
        found = minimize(f, start_params, jac=slope, hess=lambda p: -self.hessian(p), method="trust-exact", tol=1e-9)
        return found.x, numpy.sqrt(numpy.diag(numpy.linalg.inv(-self.hessian(found.x))))


class NegativeBinomial(GenericLikelihoodModel):
    """The model of statsmodels' page on generic models; its size is the integer 2 at the start of the fit."""

    def nloglikeobs(self, params):
        mu, size = gradops.numpy.exp(gradops.numpy.dot(self.exog, params[:-1])), 1 / params[-1]
        return -nbinom.logpmf(self.endog, size, size / (size + mu))


def test_statsmodels_model_uses_the_derivatives():
    rng = numpy.random.default_rng(1)
    exog = numpy.column_stack([numpy.ones(200), rng.normal(size=200)])
    mu, start = numpy.exp(exog @ [0.5, 0.3]), numpy.array([0.0, 0.0, 0.5])
    endog = rng.negative_binomial(1 / 0.7, 1 / (1 + 0.7 * mu))
    plain, model = NegativeBinomial(endog, exog), NegativeBinomial(endog, exog)
    model.score, model.hessian = grad(model.loglike), jit(hessian(model.loglike))
    numpy.testing.assert_allclose(model.score(start), plain.score(start), rtol=1e-5)
    numpy.testing.assert_allclose(model.hessian(start), approx_fprime(start, model.score, 1e-7), rtol=1e-5)
    for found, wanted in zip(model.fit(start), plain.fit(start)):
        numpy.testing.assert_allclose(found, wanted, rtol=1e-3)
    numpy.testing.assert_allclose(model.score(model.fit(start)[0]), 0, atol=1e-6)


def test_scipy_solvers_use_the_derivatives():
    np = gradops.numpy
    found = minimize(
        lambda x: rosenbrock(numpy, x), numpy.zeros(4), jac=grad(lambda x: rosenbrock(np, x)), method="BFGS"
    )
    numpy.testing.assert_allclose(found.x, numpy.ones(4), atol=1e-4)
    t = numpy.linspace(0, 2, 60)

    def residuals(p):
        return p[0] * np.exp(-p[1] * t) - (2 * np.exp(-1.5 * t) + NOISE / 50)

    fitted = least_squares(residuals, [1.0, 1.0], jac=jacobian(residuals), loss="soft_l1", f_scale=0.1)
    numpy.testing.assert_allclose(fitted.x, [2.0, 1.5], atol=0.1)
