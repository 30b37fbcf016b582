"""Loops rewritten as vectorized operations: equal values and derivatives, in far fewer steps."""

import numpy as np
import pytest

import gradops.scipy.special  # registers its ops
import gradops.scipy.stats  # noqa: F401
from gradops import backends, custom_gradient, extend, functional, ops, stop_gradient
from gradops.autodiff import gradients, no_grad
from gradops.autodiff.derivatives import fresh
from gradops.autodiff.modes import enable_grad
from gradops.autodiff.record import has_derivative
from gradops.autodiff.variable import data_of
from gradops.functional.columns import by_columns
from gradops.jit.compiled import Compiled
from gradops.ops._dispatch import registry

RNG = np.random.default_rng(5)
Y = RNG.normal(size=(40, 6))
GROUP = RNG.integers(0, 7, 40)


def observations(theta, u):
    total = 0.0
    for i, row in enumerate(Y):
        for j, y in enumerate(row):
            mean = theta[0] + theta[1] * j + u[int(GROUP[i])] * 0.5
            total = total - ((y - mean) ** 2 / ops.exp(theta[2]) + theta[2]) / 2
    return total - ops.sum(u**2)


def ragged(theta, u):
    """Build vectors of several lengths, with masked reads and writes."""
    total = 0.0
    for i, row in enumerate(Y):
        known = row > 0
        x = ops.zeros((6,)) + theta[0] * 0
        x = ops.set_at(x, known, row[known] * ops.exp(theta[1]) - u[int(GROUP[i])])
        x = ops.where(known, x, -u[int(GROUP[i])] * theta[2])
        total = total + ops.tanh(ops.set_at(x, 0, row[0])[0])  # all constants, which must be recognised
        total = total + ops.log(1 + ops.sum(x * x)) + ops.max(x[: 2 + i % 3])
    return total


def matrices(theta, u):
    """Apply non-elementwise steps to matrices of two sizes."""
    total = 0.0
    for i, row in enumerate(Y[:20]):
        n = 2 + i % 2
        x = ops.stack([u[k] * theta[0] + row[k] for k in range(n)])
        matrix = ops.eye(n) * ops.exp(theta[1]) + ops.reshape(x, (n, 1)) * x
        factor = ops.linalg.cholesky(matrix)
        z = ops.linalg.solve_triangular(factor, ops.reshape(x - theta[2], (n, 1)), lower=True)
        total = total + ops.sum(z * z) / 2 + ops.sum(ops.log(ops.diagonal(factor)))
        total = total + ops.sum(ops.transpose(matrix)[0]) * u[i % 5]
    return total


def one_matrix(theta, u):
    """Use one Cholesky factor for all observations."""
    distance = np.abs(np.arange(3.0)[:, None] - np.arange(3.0))
    factor = ops.linalg.cholesky(ops.exp(-distance * ops.exp(theta[1])) + np.eye(3))
    total = 0.0
    for i, row in enumerate(Y):
        x = row[:3] - theta[0] - ops.stack([u[int(GROUP[i])], u[i % 3], theta[2] * 0])
        z = ops.linalg.solve_triangular(factor, x, lower=True)
        total = total - ops.sum(z * z) / 2 - ops.sum(ops.log(ops.diagonal(factor))) - ops.sum(ops.matmul(factor, x))
    return total


def cubes(theta, u):
    """Sum powers with several exponents; each exponent's own rule keeps third derivatives at 0 finite."""
    total = 0.0
    for i in range(200):
        total = total + (u[i % 7] - u[i % 7]) ** (2 + i % 2) * theta[0] + u[i % 7] ** 2 * theta[1]
    return total


THETA, U = np.array([0.3, -0.2, 0.4]), RNG.normal(size=7)


def both(f):
    """Return values and derivatives up to the third, without and with vectorization, and the number of vectorized
    steps.
    """

    def function(theta, u):
        results = []
        with enable_grad():
            inputs = fresh(theta), fresh(u)
            first = f(*inputs)
            again = by_columns(inputs, first)
            for y in [first, again(*inputs)] if again else [first]:
                by_u, by_theta = gradients.grad(y, inputs[::-1], create_graph=True)
                outer = gradients.grad(ops.sum(by_u * by_u) + ops.sum(by_theta), inputs, create_graph=True)
                third = gradients.grad(ops.sum(outer[1] ** 2), inputs[1])
                results.append([data_of(x) for x in (y, by_u, by_theta, *outer, *third)])
        return results, len(again.groups) if again else 0

    return Compiled(function, ())(THETA, U)


@pytest.mark.parametrize("f", [observations, ragged, matrices, one_matrix, cubes])
def test_vectorization_preserves_derivatives(f):
    (first, again), groups = both(f)
    assert 0 < groups < 70
    np.testing.assert_allclose(again[0], f(THETA, U), rtol=1e-12)
    np.testing.assert_allclose(again[1], functional.grad(f, 1)(THETA, U), rtol=1e-10, atol=1e-12)
    for x, y in zip(first, again):
        assert np.isfinite(y).all()
        np.testing.assert_allclose(y, x, rtol=1e-9, atol=1e-9)


def test_vectorization_keeps_the_order_of_subtractions():
    """Subtracts nearly equal numbers next to smaller terms; summing everything first would cancel."""

    def f(theta, u):
        total = 0.0
        for i in range(200):
            first = 1e12 + u[i % 7]
            total = total + ((first - 1e12) + 1e-9 * theta[0] * i) ** 2
        return total

    (_, again), _ = both(f)
    np.testing.assert_allclose(again[0], f(THETA, U), rtol=1e-14)


def test_sequential_chains_are_not_vectorized():
    def chain(theta, u):
        x = u[0]
        for i in range(500):
            x = ops.sin(x * theta[0]) + u[i % 7]
        return x

    results, groups = both(chain)
    assert not groups and len(results) == 1


def test_custom_derivatives_are_not_vectorized():
    clamped = custom_gradient(lambda x: (ops.exp(x) * 2, lambda g: g))

    def own(theta, u):
        total = 0.0
        for i in range(200):
            total = total + clamped(u[i % 7] * theta[0]) ** 3
        return total

    _, groups = both(own)
    assert not groups


def composed_ops():
    """Return the elementwise ops that consist of several steps and have their own derivative."""
    return sorted(
        name
        for name, op in registry.items()
        if op.body is not None
        and backends.backend_of(THETA).kernel(name) is None
        and has_derivative(name)
        and op.facts.elementwise
    )


def has_same_gradient(f):
    """Check that the vectorized value and gradient equal the tape's."""

    def function(theta, u):
        inputs = fresh(theta), fresh(u)
        with enable_grad():
            columns = by_columns(inputs, f(*inputs))
            y = columns(*inputs)
            return len(columns.groups), [data_of(x) for x in (y, *gradients.grad(y, inputs))]

    groups, found = Compiled(function, ())(THETA, U)
    value, gradient = functional.value_and_grad(f, (0, 1))(THETA, U)
    assert groups < 70
    for x, y in zip(found, (value, *gradient)):
        assert np.isfinite(x).all()
        np.testing.assert_allclose(x, y, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("name", composed_ops())
def test_composed_op_becomes_one_step_with_its_own_derivative(name):
    def f(theta, u):
        total = 0.0
        for i in range(30):
            pair = u[i % 5 : i % 5 + 2]
            given = [
                0.4 + 0.1 * k + 0.05 * ops.sin(pair + theta[k % 3] * i) for k in range(len(registry[name].tensors))
            ]
            if name.split(".")[-1] in ("log_fdtri", "log_fdtrci"):  # takes the logarithm of a probability
                given[-1] = -given[-1]
            total = total + ops.sum(registry[name].call(*given) * pair)
        return total

    has_same_gradient(f)


@extend.op(elementwise=True)
def bump(x):
    """Return a function whose declared derivative is a sine."""
    return x * ops.exp(-x * x)


extend.derivative(bump, x=lambda g, x: g * ops.sin(x))


def test_composed_op_keeps_a_derivative_that_differs_from_its_steps():
    def f(theta, u):
        total = 0.0
        for i in range(60):
            total = total + ops.sum(bump(u[i % 5 : i % 5 + 2] + theta[0] * i) * theta[1])
        return total

    has_same_gradient(f)


def test_composed_op_on_scalars_is_not_vectorized():
    def f(theta, u):
        total = 0.0
        for i in range(60):
            total = total + registry["scipy.special.betaln"].call(u[i % 7] ** 2 + 1, ops.exp(theta[0]))
        return total

    results, groups = both(f)
    assert groups == 0 and len(results) == 1


@pytest.mark.parametrize("how", ["stop_gradient", "no_grad"])
def test_stop_gradient_survives_vectorization(how):
    """A Laplace approximation whose likelihood holds a factor constant equals the tape's."""
    from gradops.inference import laplace

    def joint(p):
        total = 0.0
        for i in range(150):
            if how == "stop_gradient":
                weight = stop_gradient(p["a"])
            else:
                with no_grad():
                    weight = p["a"] * 1.0
            total = total + (Y.ravel()[i] - p["u"][i % 5] - p["a"]) ** 2 * ops.exp(weight) / 2
        return total + ops.sum(p["u"] ** 2) / 2

    at = np.array([0.3])
    value, gradient = laplace(joint, {"a": 0.3, "u": np.zeros(5)}, random="u").value_and_grad(at)

    def short(p):
        i = np.arange(150)
        residual = (Y.ravel()[i] - p["u"][i % 5] - p["a"]) ** 2
        return ops.sum(residual) * ops.exp(stop_gradient(p["a"])) / 2 + ops.sum(p["u"] ** 2) / 2

    other = laplace(short, {"a": 0.3, "u": np.zeros(5)}, random="u").value_and_grad(at)
    np.testing.assert_allclose(value, other[0], rtol=1e-10)
    np.testing.assert_allclose(gradient, other[1], rtol=1e-8)
