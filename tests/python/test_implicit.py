"""Solutions of equations and their derivatives, against closed forms and finite differences."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from parity import numpy, on

import gradops
from gradops import errors, functional, grad, ops
from gradops.autodiff.variable import data_of
from gradops.errors import ArgumentError, GradientError, ShapeError


def square_root(a):
    return functional.root(lambda x, a: x * x - a, 1.0, a)


def cosine(a):
    """Return the solution of x = a cos(x)."""
    return functional.fixed_point(lambda x, a: a * ops.cos(x), 0.5, a, tol=1e-14)


@pytest.mark.short_cases(0, "jax")
def test_root_to_second_order(backend):
    a = on(backend, 2.0)
    np.testing.assert_allclose(numpy(square_root(a)), np.sqrt(2))
    np.testing.assert_allclose(numpy(grad(square_root)(a)), 0.5 / np.sqrt(2))
    np.testing.assert_allclose(numpy(grad(grad(square_root))(a)), -0.25 * 2**-1.5)


@pytest.mark.short_cases(0, "jax")
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


@pytest.mark.short_cases(0, "jax")
def test_several_parameters_of_a_system(backend):
    """Solves A x = b by Newton's method; derivatives with respect to A and b match a linear solve's."""
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=(3, 3)) + 3 * np.eye(3), rng.normal(size=3)

    def total(a, b):
        return ops.sum(functional.root(lambda x, a, b: ops.matmul(a, x) - b, on(backend, np.zeros(3)), a, b))

    by_a, by_b = grad(total, argnums=(0, 1))(on(backend, a), on(backend, b))
    adjoint = np.linalg.solve(a.T, np.ones(3))
    np.testing.assert_allclose(numpy(by_b), adjoint)
    np.testing.assert_allclose(numpy(by_a), -np.outer(adjoint, np.linalg.solve(a, b)), rtol=1e-6)


def test_bad_input(backend):
    with pytest.raises(GradientError, match="no convergence within"):
        functional.fixed_point(lambda x, a: a * x + 1, 1.0, on(backend, 2.0), max_iterations=5)
    with pytest.raises(ShapeError, match="must keep the shape"):
        functional.fixed_point(lambda x, a: ops.stack([x, x]) * a, 1.0, on(backend, 2.0))


@pytest.mark.short_cases(0, "jax")
def test_single_precision_converges(backend):
    """A deep equilibrium layer, whose iterates alternate within rounding."""
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
    np.testing.assert_allclose(functional.fixed_point(ops.cos, np.ones(2), tol=0 * tol), 0.7390851332151607)


@pytest.mark.parametrize(
    "solver", [functional.fixed_point, functional.root, functional.argmin, functional.linear_solve]
)
def test_tolerance_that_is_nan_raises(solver):
    with pytest.raises(errors.ArgumentError, match="`tol` must not be NaN"):
        solver(ops.sum if solver is functional.argmin else ops.cos, np.ones(2), tol=np.nan)


@pytest.mark.short_cases(0, "jax")
def test_root_of_a_gradient(backend):
    """The minimum of ``x**3 - 3 a x`` is at the square root of ``a``."""

    def lowest(a):
        slope = grad(lambda x, a: ops.sum(x**3 - 3 * a * x))
        return functional.root(lambda x, a: slope(x, a), on(backend, 1.0), a)

    a = on(backend, 2.0)
    np.testing.assert_allclose(numpy(grad(lowest)(a)), 0.5 / np.sqrt(2))
    np.testing.assert_allclose(numpy(grad(grad(lowest))(a)), -0.25 * 2**-1.5)


SIZES = np.linspace(1.0, 2.0, 80)
"""More unknowns than are solved with a dense matrix."""


def cube_root(a, backend):
    return functional.root(lambda x: x**3 - a, on(backend, 1.0))


def by_heron(a, backend):
    """Return the square root by Heron's method, with a structure of unknowns."""
    start = {"x": on(backend, [1.0, 1.0]), "y": on(backend, 1.0)}
    found = functional.fixed_point(lambda t: {"x": 0.5 * (t["x"] + a / t["x"]), "y": t["y"] - t["y"] + a}, start)
    return found["x"][0] + 0 * found["y"]


def logarithm(a, backend):
    w = on(backend, [1.0, 2.0])
    start = on(backend, [0.5, 0.0])
    return functional.argmin(lambda x: ops.sum(ops.exp(x) - a * w * x), start)[0]


def of_a_matrix(a, backend):
    """Solve [[a, 1], [0, a**2]] x = 1."""
    found = functional.linear_solve(
        lambda t: (a * t[0] + t[1], a**2 * t[1]), (on(backend, 1.0), on(backend, 1.0)), tol=1e-14
    )
    return found[0]


def large_fixed_point(a, backend):
    x = functional.fixed_point(lambda x: 0.5 * (x + a / x), on(backend, SIZES))
    return ops.mean(x)


def large_argmin(a, backend):
    w = on(backend, SIZES)
    x = functional.argmin(lambda x: ops.sum(ops.exp(x) - a * w * x), on(backend, np.zeros(80)), tol=1e-10)
    return x[0]


def large_system(a, backend):
    """Solve a circulant system whose rows sum to ``a``."""
    ones = on(backend, np.ones(80))
    return functional.linear_solve(lambda x: a * x + 0.3 * (ops.roll(x, 1) - x), ones, tol=1e-13)[3]


CASES = {
    cube_root: lambda a: (a ** (1 / 3), a ** (-2 / 3) / 3, -2 / 9 * a ** (-5 / 3), 10 / 27 * a ** (-8 / 3)),
    by_heron: lambda a: (a**0.5, a**-0.5 / 2, -(a**-1.5) / 4, 3 / 8 * a**-2.5),
    logarithm: lambda a: (np.log(a), 1 / a, -1 / a**2, 2 / a**3),
    of_a_matrix: lambda a: (1 / a - a**-3, -(a**-2) + 3 * a**-4, 2 * a**-3 - 12 * a**-5, -6 * a**-4 + 60 * a**-6),
    large_fixed_point: lambda a: (a**0.5, a**-0.5 / 2, -(a**-1.5) / 4, 3 / 8 * a**-2.5),
    large_argmin: lambda a: (np.log(a), 1 / a, -1 / a**2, 2 / a**3),
    large_system: lambda a: (1 / a, -1 / a**2, 2 / a**3, -6 / a**4),
}
"""Solutions that close over ``a``, with their values and three derivatives."""


@pytest.mark.short_cases(1, "jax", "tensorflow")
@pytest.mark.parametrize("case", CASES, ids=lambda f: f.__name__)
def test_closures_are_differentiated_to_third_order(case, backend):
    at = 1.3

    def f(a):
        return case(a, backend)

    a, wanted = on(backend, at), CASES[case](at)
    np.testing.assert_allclose(numpy(f(a)), wanted[0], rtol=1e-8)
    if backend == "numpy" or "large" not in case.__name__:  # other libraries take ten seconds and more
        np.testing.assert_allclose(numpy(grad(grad(grad(f)))(a)), wanted[3], rtol=1e-6)
    np.testing.assert_allclose(numpy(gradops.jvp(f, (a,), (on(backend, 2.0),))[1]), 2 * wanted[1], rtol=1e-6)
    np.testing.assert_allclose(numpy(gradops.jvp(grad(f), (a,), (on(backend, 1.0),))[1]), wanted[2], rtol=1e-6)


@pytest.mark.short_cases(0, "jax", "tensorflow")
def test_fourth_derivative_is_an_error(backend):
    def f(a):
        return cube_root(a, backend)

    with pytest.raises(GradientError, match="order above 3|to order 3"):
        grad(grad(grad(grad(f))))(on(backend, 1.3))
    with pytest.raises(GradientError, match="order above 3|to order 3"):
        gradops.jvp(grad(grad(grad(f))), (on(backend, 1.3),), (on(backend, 1.0),))


@pytest.mark.short_cases(1, "torch")
@pytest.mark.parametrize(
    "case", [cube_root, logarithm, pytest.param(large_system, marks=pytest.mark.long)], ids=lambda f: f.__name__
)
def test_compiled(case, backend):
    value, slope = CASES[case](1.3)[:2]
    compiled = gradops.jit(gradops.value_and_grad(lambda a: case(a, backend)))
    found = compiled(on(backend, 1.3))
    np.testing.assert_allclose([numpy(x) for x in found], (value, slope), rtol=1e-6)


@pytest.mark.short_cases(0, "jax", "tensorflow")
def test_vmapped(backend):
    at, slope = on(backend, [1.3, 2.0]), [CASES[cube_root](a)[1] for a in (1.3, 2.0)]

    def f(a):
        return cube_root(a, backend)

    np.testing.assert_allclose(numpy(gradops.vmap(grad(f))(at)), slope, rtol=1e-8)
    np.testing.assert_allclose(numpy(grad(lambda a: ops.sum(gradops.vmap(f)(a)))(at)), slope, rtol=1e-8)


def test_scope_in_forward_mode_inside_reverse_mode(backend):
    """TensorFlow must resume its recorders in the order of their opening."""

    def f(a):
        gradops.stop_gradient_scope(lambda: a * 1.0)()
        return a**3

    a, one = on(backend, 1.3), on(backend, 1.0)
    np.testing.assert_allclose(numpy(grad(lambda a: gradops.jvp(f, (a,), (one,))[1])(a)), 6 * 1.3)


@pytest.mark.short_cases(0, "jax")
def test_saddle_points_and_nonsymmetric_systems(backend):
    """A start near a saddle must reach a minimum; conjugate gradients do not converge for a nonsymmetric system."""
    x = functional.argmin(lambda x: ops.sum(x**4 - 2 * x**2), on(backend, [0.1, -0.2]))
    np.testing.assert_allclose(numpy(x), [1.0, -1.0], rtol=1e-8)
    turned = np.array([[0.0, 1.0], [-1.0, 0.0]])
    x = functional.linear_solve(lambda x: ops.matmul(on(backend, turned), x), on(backend, [1.0, 2.0]))
    np.testing.assert_allclose(numpy(x), [-2.0, 1.0], atol=1e-8)
    with pytest.raises(GradientError, match="no convergence"):
        functional.linear_solve(lambda x: ops.matmul(on(backend, turned), x), on(backend, [1.0, 2.0]), method="cg")
    with pytest.raises(ArgumentError, match="structure of the unknowns"):
        functional.root(lambda x: (x, x), on(backend, 1.0))


@pytest.mark.short_cases(0, "jax")
def test_influence_functions(backend):
    """The derivative of a fit by an example's weight is ``-H^-1 g`` (Koh & Liang 2017), and agrees with refits."""
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=(12, 2)), rng.integers(0, 2, 12) * 1.0

    def loss(w, x, y):
        return ops.softplus(ops.dot(x, w)) - y * ops.dot(x, w) + 0.1 * ops.dot(w, w)

    def total(w, weights):
        z = ops.matmul(on(backend, x), w)
        return ops.sum(weights * (ops.softplus(z) - on(backend, y) * z + 0.1 * ops.dot(w, w)))

    def fitted(weights):
        return functional.argmin(lambda w: total(w, weights), np.zeros(2))

    ones = on(backend, np.ones(12))
    w, pullback = gradops.vjp(fitted, ones)
    scores = gradops.vmap(gradops.grad(loss), (None, 0, 0))(w, on(backend, x), on(backend, y))
    curvature = gradops.hessian(total)(w, ones)
    influence = np.stack([numpy(pullback(on(backend, unit))[0]) for unit in np.eye(2)])
    np.testing.assert_allclose(influence, -np.linalg.solve(numpy(curvature), numpy(scores).T), rtol=1e-6, atol=1e-9)
    for step in 1e-4 * np.eye(12)[:3] if backend == "numpy" else ():
        refitted = (fitted(1 + step) - fitted(1 - step)) / 2e-4
        np.testing.assert_allclose(influence @ step, refitted * 1e-4, rtol=1e-4, atol=1e-11)


def test_series_and_gradients_of_a_solution_add_their_orders():
    """The inverse of ``x**3 + x``, whose derivatives follow from a differential equation."""

    def solution(a):
        return functional.root(lambda x: x**3 + x - a, np.float64(0.5))

    def term(f, k):
        direction = (np.float64(1.0), *[np.float64(0.0)] * (k - 1))
        return lambda a: ops.reshape(functional.jet(f, (a,), (direction,))[1][-1], ())

    with mpmath.workdps(40):
        wanted = mpmath.taylor(lambda a: mpmath.findroot(lambda x: x**3 + x - a, 0.5), 0.7, 6)
    wanted = [float(c) * math.factorial(k) for k, c in enumerate(wanted)]
    at = np.float64(0.7)
    for order in range(1, 4):
        inside, outside = term(solution, order), solution
        for total in range(order, order + 4):
            np.testing.assert_allclose(float(data_of(inside(at))), wanted[total], rtol=1e-8)
            np.testing.assert_allclose(float(data_of(term(outside, order)(at))), wanted[total], rtol=1e-8)
            inside, outside = gradops.grad(inside), gradops.grad(outside)
        with pytest.raises(GradientError, match="order above 3"):
            inside(at)
    np.testing.assert_allclose(float(data_of(term(term(solution, 3), 3)(at))), wanted[6], rtol=1e-8)
