"""Formulas of ``special`` and ``stats`` against mpmath with 60 digits, for scalars and arrays."""

import itertools

import mpmath
import numpy as np
import pytest

import gradops
from gradops.scipy import _formulas
from gradops.scipy.special import _tails

SIZES = (1e-8, 1e-3, 1.0, 7.3, 19.0, 20.5, 1e3, 1e8)
STEPS = (1e-8, 0.3, 1.5, 30.0, 1e5, 1e8)

EXACT = {
    "scaled_log1p": lambda a, q: a * mpmath.log1p(q / a),
    "deviance_part": lambda a, x: x - a - a * mpmath.log(x / a),
    "log_beta": lambda a, b: mpmath.log(mpmath.beta(a, b)),
    "log_choose": lambda k, m: mpmath.log(mpmath.binomial(k + m, k)),
    "log_rising": lambda a, x: mpmath.loggamma(a + x) - mpmath.loggamma(a) - x * mpmath.log(a),
    "log_poisson": lambda k, mean: k * mpmath.log(mean) - mean - mpmath.loggamma(k + 1),
    "times_log": lambda a, x: a * mpmath.log(x),
}


@pytest.mark.parametrize("name", EXACT)
def test_accuracy_is_independent_of_size(name):
    formula, points = (
        getattr(_formulas, name, None) or getattr(_tails, name),
        np.array(list(itertools.product(SIZES, STEPS))),
    )
    with mpmath.workdps(60):
        exact = np.array([float(EXACT[name](mpmath.mpf(a), mpmath.mpf(x))) for a, x in points])
        slope = np.array([float(mpmath.diff(EXACT[name], (a, x), (1, 0))) for a, x in points[::3]])
    of_numbers = np.array([formula(float(a), float(x)) for a, x in points])
    of_arrays = formula(*points.T)
    compiled = gradops.jit(formula)(*points.T)
    for found in (of_numbers, of_arrays, compiled):
        np.testing.assert_allclose(found, exact, 1e-13, 1e-14)  # absolute error of logarithms, so relative to the value
    found = gradops.grad(lambda a, x: gradops.ops.sum(formula(a, x)))(*points[::3].T.copy())
    np.testing.assert_allclose(found, slope, 1e-9, 1e-15)


@pytest.mark.parametrize("name", EXACT)
def test_equal_arguments_have_second_derivatives(name):
    f = getattr(_formulas, name, None) or getattr(_tails, name)
    for at in (2.0, 30.0):
        found = gradops.hessian(lambda p: f(p[0], p[1]))(np.array([at, at]))
        orders = ((2, 0), (1, 1)), ((1, 1), (0, 2))
        exact = [[float(mpmath.diff(EXACT[name], (at, at), order)) for order in row] for row in orders]
        np.testing.assert_allclose(found, exact, 1e-6, 1e-7)


def test_hard_points():
    f = gradops.grad(lambda a, x: gradops.ops.sum(_formulas.times_log(a, x)), argnums=(0, 1))
    np.testing.assert_array_equal(f(np.array([0.0, 2.0]), np.array([0.0, 1.0])), [[0, 0], [0, 2]])
    assert _formulas.log_complement(-1e-300) == np.log(1e-300)
    assert _formulas.log(0.0) == -np.inf and np.isnan(_formulas.log(-1.0)) and _formulas.exp(1000.0) == np.inf
    first = gradops.grad(
        lambda x: gradops.ops.sum(_formulas.choose(x > 0, lambda of: _formulas.log(of(x, 1.0)), lambda of: of(x, 0.0)))
    )
    np.testing.assert_array_equal(first(np.array([2.0, 0.0])), [0.5, 1.0])
