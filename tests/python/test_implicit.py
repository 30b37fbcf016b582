"""Solutions of equations and their derivatives, against closed forms and finite differences."""

from __future__ import annotations

import numpy as np
import pytest
from parity import BACKENDS, numpy, tensors

from gradops import config, functional, grad, ops
from gradops.errors import GradientError, ShapeError


@pytest.fixture(params=BACKENDS)
def backend(request):
    with config.use_backend(request.param):
        yield request.param


def on(backend, value):
    return tensors(np.asarray(value, float), backend)


def square_root(a):
    return functional.root(lambda x, a: x * x - a, 1.0, a)


def cosine(a):
    """The solution of x = a cos(x)."""
    return functional.fixed_point(lambda x, a: a * ops.cos(x), 0.5, a, tol=1e-14)


def test_root_to_second_order(backend):
    a = on(backend, 2.0)
    np.testing.assert_allclose(numpy(square_root(a)), np.sqrt(2))
    np.testing.assert_allclose(numpy(grad(square_root)(a)), 0.5 / np.sqrt(2))
    np.testing.assert_allclose(numpy(grad(grad(square_root))(a)), -0.25 * 2**-1.5)


def test_fixed_point_to_second_order(backend):
    a = 0.7
    x = float(numpy(cosine(on(backend, a))))
    np.testing.assert_allclose(x, a * np.cos(x), atol=1e-12)
    first = np.cos(x) / (1 + a * np.sin(x))
    np.testing.assert_allclose(numpy(grad(cosine)(on(backend, a))), first)
    step = 1e-5
    second = (
        (float(numpy(grad(cosine)(on(backend, a + step)))) - float(numpy(grad(cosine)(on(backend, a - step)))))
        / 2
        / step
    )
    np.testing.assert_allclose(numpy(grad(grad(cosine))(on(backend, a))), second, rtol=1e-6)


def test_several_parameters_of_a_system(backend):
    """A x = b by Newton: derivatives by A and b of a linear solve."""
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=(3, 3)) + 3 * np.eye(3), rng.normal(size=3)

    def total(a, b):
        return ops.sum(functional.root(lambda x, a, b: ops.matmul(a, x) - b, on(backend, np.zeros(3)), a, b))

    by_a, by_b = grad(total, argnums=(0, 1))(on(backend, a), on(backend, b))
    adjoint = np.linalg.solve(a.T, np.ones(3))
    np.testing.assert_allclose(numpy(by_b), adjoint)
    np.testing.assert_allclose(numpy(by_a), -np.outer(adjoint, np.linalg.solve(a, b)), rtol=1e-6)


def test_bad_input(backend):
    with pytest.raises(GradientError, match="no convergence within 5"):
        functional.fixed_point(lambda x, a: a * x + 1, 1.0, on(backend, 2.0), max_iterations=5)
    with pytest.raises(ShapeError, match="must keep the shape"):
        functional.fixed_point(lambda x, a: ops.stack([x, x]) * a, 1.0, on(backend, 2.0))


def test_single_precision_converges(backend):
    """A deep equilibrium layer, whose iterates go to and fro within rounding."""
    generator = np.random.default_rng(0)
    w, b = 0.3 * generator.normal(size=(4, 4)), generator.normal(size=(16, 4))

    def gradient(dtype):
        w_, b_, zeros = (ops.cast(on(backend, x), dtype) for x in (w, b, np.zeros((16, 4))))

        def loss(w):
            z = functional.fixed_point(lambda z, w, b: ops.tanh(ops.matmul(z, w) + b), zeros, w, b_)
            return ops.sum(ops.square(z))

        return numpy(grad(loss)(w_))

    np.testing.assert_allclose(gradient("float32"), gradient("float64"), rtol=1e-4, atol=1e-4)
    one, two = (ops.cast(on(backend, x), "float32") for x in (1.0, 2.0))
    np.testing.assert_allclose(numpy(functional.root(lambda x, a: x * x - a, one, two)), np.sqrt(2), rtol=1e-6)


def test_tolerances_may_be_arrays():
    tol = np.array([1e-3, 1e-12])
    np.testing.assert_allclose(functional.fixed_point(ops.cos, np.ones(2), tol=tol)[1], 0.7390851332151607, rtol=1e-11)


def test_root_of_a_gradient(backend):
    """Where ``x**3 - 3 a x`` is least: at the root of ``a``."""

    def lowest(a):
        slope = grad(lambda x, a: ops.sum(x**3 - 3 * a * x))
        return functional.root(lambda x, a: slope(x, a), on(backend, 1.0), a)

    a = on(backend, 2.0)
    np.testing.assert_allclose(numpy(grad(lowest)(a)), 0.5 / np.sqrt(2))
    np.testing.assert_allclose(numpy(grad(grad(lowest))(a)), -0.25 * 2**-1.5)


def test_closures_over_a_gradient_are_still_refused(backend):
    a = on(backend, 2.0)

    def lowest(a):
        return functional.root(lambda x: grad(lambda x: ops.sum(x**3 - 3 * a * x))(x), on(backend, 1.0))

    with pytest.raises(GradientError, match="is not an argument"):
        grad(lowest)(a)
