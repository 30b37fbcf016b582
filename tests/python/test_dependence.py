"""Derivatives with respect to more than the inputs: a product's vector, an equation's closures, dicts of parameters."""

from __future__ import annotations

import numpy as np
import pytest

import gradops
from gradops import Variable, backends, ops
from gradops.errors import ArgumentError
from gradops.functional import fixed_point, hessian, hvp, jacobian, jvp, root, vhp, vjp

ALL = pytest.mark.parametrize("backend", backends.NAMES)
X, V, W = np.array([0.5, -1.5, 2.0]), np.array([1.0, 2.0, -0.5]), np.array([0.3, 0.7, -0.2])


def on(backend, *values):
    found = [backends.lookup(backend).convert(np.asarray(v, float)) for v in values]
    return found if len(found) > 1 else found[0]


def numbers(x):
    x = x.data if isinstance(x, Variable) else x
    return np.asarray(x.detach() if hasattr(x, "detach") else x)


# --- the vector of a product


def cube(x):
    return x**3


def total(x):
    return ops.sum(x**3)


PRODUCTS = {
    "jvp": (jvp, cube, np.diag(3 * X**2)),
    "vjp": (vjp, cube, np.diag(3 * X**2)),
    "hvp": (hvp, total, np.diag(6 * X)),
    "vhp": (vhp, total, np.diag(6 * X)),
}


@ALL
@pytest.mark.parametrize("name", PRODUCTS)
def test_derivative_with_respect_to_the_vector(backend, name):
    """A product is linear in its vector: the derivative with respect to it is the Jacobian or Hessian."""
    product, f, matrix = PRODUCTS[name]
    x, v = on(backend, X, V)
    np.testing.assert_allclose(numbers(jacobian(lambda v: product(f, x, v)[1], v)), matrix, rtol=1e-10)
    scalar = gradops.grad(lambda v: ops.sum(product(f, x, v)[1] ** 2))
    np.testing.assert_allclose(numbers(scalar(v)), 2 * matrix.T @ matrix @ V, rtol=1e-10)
    second = jacobian(lambda v: gradops.grad(lambda v: ops.sum(product(f, x, v)[1] ** 2))(v), v)
    np.testing.assert_allclose(numbers(second), 2 * matrix.T @ matrix, rtol=1e-10)


@pytest.mark.short_cases(2)
@ALL
@pytest.mark.parametrize("point", [X, 2.0], ids=["array", "number"])
@pytest.mark.parametrize("name", PRODUCTS)
def test_constant_point_is_converted_to_the_library_of_the_vector(backend, name, point):
    """Otherwise the derivative with respect to the vector would be 0 on TensorFlow and an error on other libraries."""
    product, f, matrix = PRODUCTS[name]
    matrix = matrix if np.ndim(point) else np.float64(12)
    v = on(backend, V if np.ndim(point) else 1.5)
    by_v = gradops.grad(lambda v: ops.sum(product(f, point, v)[1]))
    for call in (by_v, gradops.jit(by_v)):
        np.testing.assert_allclose(numbers(call(v)), matrix.sum(0), rtol=1e-10)
    for call in (lambda v: product(f, point, v)[1], gradops.jit(lambda v: product(f, point, v)[1])):
        found = call(v)
        assert backends.backend_of(found) is backends.lookup(backend)
        np.testing.assert_allclose(numbers(found), np.dot(matrix, numbers(v)), rtol=1e-10)


@pytest.mark.parametrize("name", PRODUCTS)
def test_backward_to_the_vector(name):
    import torch

    product, f, matrix = PRODUCTS[name]
    for x, v in (
        (X, Variable(V, requires_grad=True)),
        (Variable(X), Variable(V, requires_grad=True)),
        (torch.tensor(X), torch.tensor(V, requires_grad=True)),
    ):
        ops.sum(product(f, x, v)[1] ** 2).backward()
        np.testing.assert_allclose(numbers(v.grad), 2 * matrix.T @ matrix @ V, rtol=1e-10)


# --- closures of an equation


@pytest.mark.short_cases(1, "jax", "tensorflow")
@ALL
@pytest.mark.parametrize("solve", [fixed_point, root])
@pytest.mark.parametrize("with_theta", [False, True])
def test_closures_of_an_equation_get_gradients(backend, solve, with_theta):
    """The equation is ``x = cos(x) w``, or ``x - cos(x) w = 0``."""
    w, one = on(backend, 0.7, 1.0)

    def loss(w):
        def f(x, *theta):
            y = ops.cos(x) * w * (theta[0] if theta else 1.0)
            return y if solve is fixed_point else x - y

        return solve(f, one * 0.5, *([one] if with_theta else []))

    x = float(numbers(loss(w)))
    np.testing.assert_allclose(x, 0.7 * np.cos(x), rtol=1e-10)
    np.testing.assert_allclose(numbers(gradops.grad(loss)(w)), np.cos(x) / (1 + 0.7 * np.sin(x)), rtol=1e-8)


def test_parameter_and_module_in_an_equation():
    import torch

    torch.manual_seed(0)
    net = torch.nn.Linear(3, 3).double()
    with torch.no_grad():
        net.weight.mul_(0.3)
    start = torch.zeros(3, dtype=torch.float64)
    p = gradops.Parameter(np.array(0.7))
    y = fixed_point(lambda x: ops.cos(x) * p, 0.5)
    y.backward()
    np.testing.assert_allclose(p.grad.numpy(), np.cos(y.item()) / (1 + 0.7 * np.sin(y.item())), rtol=1e-8)

    (fixed_point(lambda x: torch.tanh(net(x)), start) ** 2).sum().backward()
    found = net.weight.grad.clone()
    net.weight.grad = None
    y = start
    for _ in range(60):
        y = torch.tanh(net(y))
    (y**2).sum().backward()
    np.testing.assert_allclose(found, net.weight.grad, rtol=1e-8)


# --- dicts of parameters


def quadratic(p):
    return ops.sum(p["w"] ** 2 * p["b"]["c"])


@ALL
def test_dicts_of_parameters(backend):
    w, c, v, u = on(backend, X, W, V, 2 * V)
    p, q = {"w": w, "b": {"c": c}}, {"w": v, "b": {"c": u}}
    for product in (hvp, vhp):
        value, found = product(quadratic, p, q)
        np.testing.assert_allclose(numbers(value), np.sum(X**2 * W))
        np.testing.assert_allclose(numbers(found["w"]), 2 * W * V + 2 * X * 2 * V)
        np.testing.assert_allclose(numbers(found["b"]["c"]), 2 * X * V)
    rows = jacobian(lambda p: p["w"] ** 2 * p["b"]["c"], p)
    np.testing.assert_allclose(numbers(rows["w"]), np.diag(2 * X * W))
    np.testing.assert_allclose(numbers(rows["b"]["c"]), np.diag(X**2))
    first, second = jacobian(lambda p, x: (p["w"] * x, x), (p, c))
    np.testing.assert_allclose(numbers(first[0]["w"]), np.diag(W))
    np.testing.assert_allclose(numbers(first[1]), np.diag(X))
    np.testing.assert_allclose(numbers(second[0]["b"]["c"]), np.zeros((3, 3)))
    block = hessian(quadratic, p)
    np.testing.assert_allclose(numbers(block["w"]["b"]["c"]), np.diag(2 * X))
    np.testing.assert_allclose(numbers(block["w"]["w"]), np.diag(2 * W))
    value, pulled = vjp(lambda p: p["w"] * p["b"]["c"], p, v)
    np.testing.assert_allclose(numbers(pulled["b"]["c"]), X * V)
    value, pushed = jvp(lambda p: p["w"] * p["b"]["c"], p, q)
    np.testing.assert_allclose(numbers(pushed), V * W + 2 * X * V)


@ALL
def test_vector_with_a_different_structure(backend):
    w, v = on(backend, X, V)
    with pytest.raises(ArgumentError, match="`v` must have the structure of `inputs`"):
        hvp(lambda p: ops.sum(p["w"] ** 2), {"w": w}, {"u": v})
    with pytest.raises(ArgumentError, match="hold no tensor"):
        jacobian(lambda p: w, {})
