"""``gradops.numpy``: NumPy's names, with arrays that accept variables inside differentiated or compiled functions."""

from __future__ import annotations

import sys
import threading
from types import ModuleType

import numpy
import pytest
import scipy.integrate

import gradops.numpy as np
import gradops.scipy.integrate
import gradops.scipy.optimize
from gradops import Variable, functional, grad, jit, value_and_grad
from gradops.errors import ArgumentError, GradopsError, JitError
from gradops.ops import numpy_functions

X = numpy.array([0.5, 0.2, 0.3])


def garch(p):
    h = np.zeros(6)
    h[0] = p[0]
    for t in range(1, 6):
        h[t] = p[1] + p[2] * h[t - 1] ** 2
    return np.sum(np.log(h))


def fibonacci(p):
    a = np.empty((3, 2))
    a[:, 0] = p
    a[1:, 1] = a[:-1, 0] * p[1:]
    a[0, 1] = np.sum(p)
    return np.sum(a**2)


def euler(p):
    path = np.zeros((5, 3))
    path[0] = p
    total = 0.0
    for t in range(4):
        total = total + np.sum(path**2)  # everything computed so far
        path[t + 1] = path[t] + 0.1 * path[t] * np.sin(path[t - 1])
    return total


FUNCTIONS = {
    "rows of rows": euler,
    "a filled vector": garch,
    "a filled matrix": fibonacci,
    "a list": lambda p: np.sum(np.array([p[0], 1.0, p[2] ** 2]) * [1, 2, 3]),
    "lists in a list": lambda p: np.linalg.det(np.array([[p[0], 2.0], [p[1], p[2]]])),
    "an array in a list": lambda p: np.sum(np.array([p, numpy.ones(3), p * p])[2] ** 2),
    "asarray": lambda p: np.sum(np.asarray(p) ** 2) + np.sum(np.asarray([p[0], p[1]], dtype="float64")),
    "array copies": lambda p: np.sum(np.array(p) ** 3) + np.sum(np.array([p[0]], ndmin=3)),
    "a list that is filled": lambda p: filled(np.array([0.0, 1.0, 2.0]), p),
    "full of a variable": lambda p: np.sum(np.full((2, 2), p[1]) ** 2),
    "full that is filled": lambda p: filled(np.full(3, 7.0), p),
    "like": lambda p: filled(np.zeros_like(p), p) + filled(np.ones_like(X), p) + filled(np.full_like(X, 2.0), p),
    "eye": lambda p: filled(np.eye(3), p),
    "a copy": lambda p: filled(np.copy(X), p),
    "in place": lambda p: added(np.ones(3), p),
    "a list of numbers": lambda p: np.mean([p[0], 2.0, p[1]]) * np.linalg.norm([p[1], p[2]]) + np.max([p[0], p[1]]),
    "r_ and c_": lambda p: np.sum(np.r_[p, 1.0, p[0], 2:4] ** 2) + np.sum(np.c_[p, X][:, 0] ** 3),
    "vectorize": lambda p: np.sum(np.vectorize(lambda a, b: a * b if a > 0.25 else a - b)(p, 2.0)),
    "stacked": lambda p: np.sum(np.stack([np.sin(p * t) for t in range(3)]) ** 2),
}


def filled(e, p):
    e[1] = p[0] * p[1]
    return np.sum(e**2)


def added(e, p):
    e += p
    e[1] *= p[2]
    return np.sum(e)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_arrays_accept_variables_in_differentiated_and_compiled_functions(name):
    f = FUNCTIONS[name]
    value, gradient = value_and_grad(f)(X)
    assert type(f(X)) in (numpy.float64, float) and type(value) is type(f(X))
    numpy.testing.assert_allclose(value, f(X))
    slopes = [(f(X + d) - f(X - d)) / 2e-6 for d in numpy.eye(3) * 1e-6]
    numpy.testing.assert_allclose(gradient, slopes, rtol=1e-7, atol=1e-7)
    if name in ("rows of rows", "a filled matrix"):
        with pytest.raises(JitError, match="wrote in place to a view"):
            jit(grad(f))(X)
        return
    for x in (X, X + 0.03):
        numpy.testing.assert_allclose(jit(f)(x), f(x))
        numpy.testing.assert_allclose(jit(grad(f))(x), grad(f)(x))
        numpy.testing.assert_allclose(grad(jit(f))(x), grad(f)(x))


def test_second_derivatives_and_jacobians_of_filled_arrays():
    numpy.testing.assert_allclose(
        functional.hessian(garch, X), functional.jacobian(grad(garch), X), rtol=1e-10, atol=1e-12
    )
    numpy.testing.assert_allclose(functional.jvp(garch, X, X)[1], grad(garch)(X) @ X)


def test_views_and_their_array_share_changes():
    def f(p):
        e = np.zeros((2, 3))
        row, product = e[1], e[1] * p
        e[1] = p
        row[0] = p[1] ** 2
        row *= 2.0
        return np.sum(e**2) + np.sum(row) + np.sum(product)

    slopes = [(f(X + d) - f(X - d)) / 2e-6 for d in numpy.eye(3) * 1e-6]
    numpy.testing.assert_allclose(grad(f)(X), slopes, rtol=1e-7, atol=1e-7)


def test_random_programs_that_read_and_write_one_array():
    def program(rng, p):
        e, kept, total = np.zeros((3, 3)), [], 0.0
        for _ in range(12):
            i, j, act = rng.integers(3), rng.integers(3), rng.integers(7)
            if act == 0:
                e[i] = p * (1.0 + i)
            elif act == 1:
                e[i, j] = p[0] * e[j, i] + p[1]
            elif act == 2:
                kept.append(e[i] if rng.integers(2) else e[:, j])
            elif act == 3 and kept:
                kept[i % len(kept)][j] = p[2] + e[i, 0]
            elif act == 4 and kept:
                kept[i % len(kept)] *= p[1]
            elif act == 5:
                e[i] += np.sin(e[j]) * p
            else:
                total = total + np.sum(e**2) + sum(np.sum(np.cos(k) * p) for k in kept)
        return total + np.sum(e * e) + sum(np.sum(k**3) for k in kept)

    for seed in range(60):
        f = lambda p, seed=seed: program(numpy.random.default_rng(seed), p)  # noqa: E731
        value, gradient = value_and_grad(f)(X)
        numpy.testing.assert_allclose(value, f(X), err_msg=str(seed))
        slopes = [(f(X + d) - f(X - d)) / 2e-6 for d in numpy.eye(3) * 1e-6]
        numpy.testing.assert_allclose(gradient, slopes, rtol=1e-6, atol=1e-6, err_msg=str(seed))


def test_submodules_are_imported_as_in_numpy():
    """They must be the same functions, not a second, unrecorded copy of NumPy's files."""
    from gradops.numpy.fft import rfft
    from gradops.numpy.linalg import solve
    from gradops.numpy.random import RandomState

    assert rfft.__wrapped__ is numpy.fft.rfft and RandomState is numpy.random.RandomState
    a = numpy.array([[2.0, 1.0], [1.0, 3.0]])
    numpy.testing.assert_allclose(
        grad(lambda b: solve(a, b).sum())(numpy.ones(2)), numpy.linalg.solve(a.T, numpy.ones(2))
    )


ANOTHER = """
import numpy as np
from numpy import zeros
from scipy import linalg, stats
from scipy.linalg import cho_factor, cho_solve
from scipy.stats import norm, multivariate_normal

def smoothed(y, a):
    level = zeros(len(y))
    for t in range(1, len(y)):
        level[t] = a * y[t] + (1 - a) * level[t - 1]
    return np.atleast_2d([level, y]).sum()

def log_likelihood(y, s):
    covariance = np.array([[s, 0.5], [0.5, 2.0]])
    half = cho_solve(cho_factor(covariance), y) @ y + np.log(linalg.det(covariance))
    assert np.isclose(float(linalg.bandwidth(np.eye(2))[0]), 0)  # which gradops.scipy does not have
    return half + norm.logpdf(s) + stats.norm.logcdf(s) + multivariate_normal(y, covariance).logpdf(y + 1)
"""


@pytest.fixture
def another():
    module = sys.modules["another_package"] = ModuleType("another_package")
    exec(ANOTHER, vars(module))
    yield module
    del sys.modules["another_package"]


def test_package_unaware_of_gradops_is_differentiated(another):
    y, before = numpy.array([0.0, 1.0, 2.0]), dict(vars(another))
    with pytest.raises(GradopsError, match="made a Python float"):
        grad(another.smoothed, 1)(y, 0.5)
    with np.patched("another_package"):
        numpy.testing.assert_allclose(grad(another.smoothed, 1)(y, 0.5), 3.0)
        with np.patched("another_package"):
            slope = grad(another.log_likelihood, 1)(y[:2], 1.5)
        assert another.zeros is np.zeros
    step = 1e-6
    ends = [another.log_likelihood(y[:2], 1.5 + h) for h in (step, -step)]
    numpy.testing.assert_allclose(slope, (ends[0] - ends[1]) / (2 * step), rtol=1e-7)
    assert vars(another) == before


def test_patched_package_is_restored_after_an_error(another):
    before = dict(vars(another))
    for error in (ValueError, KeyboardInterrupt):
        with pytest.raises(error), np.patched("another_package"):
            raise error
        assert vars(another) == before
    for name, message in (("no_such_package", "is not imported"), ("numpy.linalg", "does not compute with NumPy")):
        with pytest.raises(ArgumentError, match=f"'{name}' {message}"), np.patched(name):
            pass


def test_scipy_solver_is_differentiated():
    def swing(k, module, **keywords):
        return module.solve_ivp(lambda t, y: [y[1], -k * np.sin(y[0])], (0.0, 2.0), [1.0, 0.0], rtol=1e-9, atol=1e-9).y[
            0, -1
        ]

    with np.patched("scipy"):  # SciPy functions called by gradops.scipy stay unpatched
        slope = grad(swing)(2.0, scipy.integrate)
        minimum = grad(lambda c: gradops.scipy.optimize.minimize(lambda x: np.sum((x - c) ** 2), [0.0]).x[0])(0.5)
    numpy.testing.assert_allclose(minimum, 1.0, rtol=1e-6)
    numpy.testing.assert_allclose(slope, grad(swing)(2.0, gradops.scipy.integrate), rtol=1e-6)


def test_names_are_numpy_outside_derivatives():
    assert type(np.zeros(3)) is type(np.array([1.0])) is numpy.ndarray and np.array([1, 2]).dtype == int
    assert np.pi is numpy.pi and np.exp is numpy.exp and np.float64 is numpy.float64 and np.random is numpy.random
    assert {*numpy.__all__} <= {*dir(np)}
    with pytest.raises(AttributeError):
        np.no_such_name  # noqa: B018
    with pytest.raises(AttributeError, match="did you mean `numpy.zeros`"):
        np.zeross  # noqa: B018
    seen = []
    grad(lambda p: (seen.append((np.zeros(2, int), np.array(["a"]))), p[0])[1])(X)
    assert [type(x) for x in seen[0]] == [numpy.ndarray] * 2
    with pytest.raises(ValueError):
        grad(lambda p: (np.zeros(2), p[0] / 0, int("a"))[1])(X)
    assert type(np.zeros(2)) is numpy.ndarray


def test_other_threads_are_unaffected():
    kinds = []

    def f(p):
        thread = threading.Thread(target=lambda: kinds.append(type(np.zeros(2))))
        thread.start()
        thread.join()
        kinds.append(type(np.zeros(2)))
        return p[0]

    grad(f)(X)
    assert kinds == [numpy.ndarray, Variable]


@pytest.mark.parametrize("way", [grad, jit])
def test_variables_in_plain_numpy_arrays_raise(way):
    """The error names alternatives; the gradient is never a silent 0."""

    def written(p):
        e = numpy.zeros(3)
        e[1] = p[0]
        return e.sum() + p[1]

    for f in (written, lambda p: numpy.sum(numpy.array([p[0], 1.0])) * 1.0, lambda p: numpy.exp([p[0], p[1]])[0]):
        with pytest.raises(GradopsError, match=r"gradops\.numpy"):
            way(f)(X)
    for f in (lambda p: np.r_["0,2", p][0, 0], lambda p: np.vectorize(lambda a: a, excluded=[0])(p)[0]):
        with pytest.raises(GradopsError):
            way(f)(X)


def test_numpy_names_of_builtins_have_no_side_effects():
    v = Variable(numpy.ones((2, 2)), requires_grad=True)
    for name in "any all sum max min round abs sorted map isinstance".split():
        getattr(np, name, None)
    assert np.concatenate([v, v]).shape == (4, 2)
    assert np.array([v[0, 0], 1.0]).shape == (2,)


def test_functions_of_the_table_are_found_by_name():
    assert np.sum is np.sum and np.sum.__doc__ == numpy.sum.__doc__
    assert (
        sum(callable(getattr(np, row.path, None)) for row in numpy_functions.ROWS.values() if "." not in row.path) > 200
    )


def test_grids_accept_variables():
    """A filter's frequency response, whose quotient is written in place: HIPS/autograd issue 77."""

    def filtered(x, divide):
        z = np.exp(1j * np.linspace(0, 3, 10))
        pole = np.exp(1j * x - 0.1)
        return np.mean(np.abs(divide(z + 1.0, (z - pole) * (z - np.conj(pole)))))

    def in_place(h, other):
        h /= other
        return h

    found = value_and_grad(lambda x: filtered(x, in_place))(0.1)
    np.testing.assert_allclose(found, (13.965532859262613, -107.22571311244289), rtol=1e-12)
    wanted = jit(value_and_grad(lambda x: filtered(x, lambda h, other: h / other)))(0.1)
    np.testing.assert_allclose(found, wanted, rtol=1e-12)


MAKERS = {
    "arange": lambda: np.arange(3.0),
    "linspace": lambda: np.linspace(0, 1, 3),
    "logspace": lambda: np.logspace(0, 1, 3),
    "geomspace": lambda: np.geomspace(1, 4, 3),
    "tri": lambda: np.tri(3)[2],
    "hanning": lambda: np.hanning(3),
    "fromiter": lambda: np.fromiter((1.0, 2.0, 3.0), float),
    "fromfunction": lambda: np.fromfunction(lambda i: i + 0.5, (3,)),
}


@pytest.mark.parametrize("name", MAKERS)
def test_array_constructors_accept_variables(name):
    make = MAKERS[name]

    def f(x):
        h = make()
        h[1] = x[0]
        h *= x[1]
        return np.sum(h)

    rest = make()[[0, 2]].sum()
    assert type(make()) is numpy.ndarray
    for derivative in (grad(f), jit(grad(f))):
        np.testing.assert_allclose(derivative(numpy.array([2.0, 3.0])), [3.0, rest + 2.0])


def test_plain_numpy_array_error_says_how_to_divide():
    def f(x):
        h = numpy.ones(2)
        h /= x
        return np.sum(h)

    with pytest.raises(GradopsError, match="write `h = h / v` for `h /= v`"):
        grad(f)(numpy.array([2.0, 3.0]))
