"""Functions minimised or integrated over some of their arguments, against closed forms and differences."""

import numpy as np
import pytest
from parity import tensors

import gradops
from gradops import ops
from gradops.inference.inner import Inner

Y = 3 + 1.5 * np.sin(np.arange(70.0))


def generating(others, u):
    """Return the cumulant generating function of a normal sample, minus the observed terms."""
    return ops.sum(others[0] * u + 0.5 * u * u * others[1] ** 2) - ops.sum(u * Y)


def test_saddlepoint_approximation_of_a_normal_sample_is_exact():
    inner = Inner(generating, np.array([0.0, 1.0]), np.zeros(70))
    at, rest, n = np.array([2.5, 1.3]), Y - 2.5, 70
    squares = rest @ rest
    value, gradient = gradops.value_and_grad(lambda x: inner.laplace(x, True))(at)
    np.testing.assert_allclose(value, squares / 2 / 1.3**2 + n * np.log(1.3) + n * np.log(2 * np.pi) / 2)
    np.testing.assert_allclose(gradient, [-rest.sum() / 1.3**2, n / 1.3 - squares / 1.3**3])
    second = gradops.jit(gradops.hessian(lambda x: inner.laplace(x, True)))(at)
    mixed = 2 * rest.sum() / 1.3**3
    np.testing.assert_allclose(second, [[n / 1.3**2, mixed], [mixed, -n / 1.3**2 + 3 * squares / 1.3**4]])


@pytest.mark.parametrize("backend", ["numpy", "torch"])
def test_nonconvex_inner_function(backend):
    def f(others, u):
        return ops.exp(others[0]) * ops.sum((u[1:] - u[:-1]) ** 2) + ops.sum((u**2 - others[1]) ** 2) + ops.sum(u)

    others, start = tensors([np.array([0.1, 0.5]), np.full(5, 0.01)], backend)
    inner = Inner(f, others, start)
    assert inner._hessian.pattern.nnz == (13 if backend == "numpy" else 25)  # only NumPy detects sparsity
    u = inner.mode(others)
    np.testing.assert_allclose(gradops.grad(f, 1)(others, u), 0, atol=1e-9)
    got = gradops.grad(inner.laplace)(others)
    for k, step in enumerate(1e-5 * np.eye(2)):
        ends = [float(inner.laplace(tensors(np.array([0.1, 0.5]) + h, backend))) for h in (step, -step)]
        np.testing.assert_allclose(float(got[k]), (ends[0] - ends[1]) / 2e-5, rtol=1e-7)


def test_closed_over_zero_does_not_remove_elements_from_the_pattern():
    def marginal(p):
        inner = Inner(lambda others, u: ops.sum(u**2) + others[0] * u[0] + p * u[0] * u[1], np.ones(1), np.zeros(2))
        return inner.laplace(np.ones(1))

    for p in (0.0, 0.5):  # the value: log determinant of [[2, p], [p, 2]] and the minimum of the function, below 0
        want = p / (4 - p * p) * -1 - (2 * p / (4 - p * p) ** 2)
        np.testing.assert_allclose(gradops.grad(marginal)(p), want, atol=1e-12)
