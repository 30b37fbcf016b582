"""Derivatives of complex functions, holomorphic or not, on every backend.

The gradient of a real loss is dL/dRe + i dL/dIm. With <a, b> = Re sum(conj(a) b), the product ``vjp(v)`` is then the
adjoint of the directional derivative: <vjp(v), t> = <v, jvp(t)> for all t.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from numpy.exceptions import ComplexWarning
from parity import BACKENDS, numpy, tensors

from gradops import Variable, custom_gradient, functional, grad, jit, ops
from gradops.autodiff import Function
from gradops.errors import ArgumentTypeError

Z = np.array([0.5 + 0.3j, -1.0 + 0.7j, 1.5 - 0.4j])
T = np.array([1.0 - 2.0j, 0.5j, -0.3 + 1.0j])
V = np.array([-1.0 + 0.5j, 2.0, 0.7 - 0.2j])
X = np.array([0.5, -1.0, 1.5])

FUNCTIONS = {
    "holomorphic": lambda z: ops.exp(z) * z,
    "mixing": lambda z: z * z * ops.sum(z),
    "conjugate": lambda z: ops.conj(z) * z * z,
    "parts": lambda z: ops.add(ops.multiply(ops.real(z), z), ops.imag(z)),
    "modulus": lambda z: ops.multiply(z, ops.abs(z)),
}
LOSSES = {
    "squares": lambda z: ops.sum(ops.square(ops.abs(z * z))),
    "real part": lambda z: ops.sum(ops.real(ops.exp(z) * z)),
    "mixed": lambda z: ops.sum(ops.real(z) ** 3 * ops.imag(z)) + ops.sum(ops.abs(z)),
}


def directional(f, z, t, h=1e-6):
    return (numpy(f(z + h * t)) - numpy(f(z - h * t))) / (2 * h)


def inner(a, b):
    return np.real(np.sum(np.conj(a) * b))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_products(backend, name):
    f = FUNCTIONS[name]
    value, forward = functional.jvp(f, tensors(Z, backend), tensors(T, backend))
    np.testing.assert_allclose(numpy(value), numpy(f(Z)))
    np.testing.assert_allclose(numpy(forward), directional(f, Z, T), rtol=1e-7, atol=1e-8)
    _, backward = functional.vjp(f, tensors(Z, backend), tensors(V, backend))
    np.testing.assert_allclose(inner(numpy(backward), T), inner(V, numpy(forward)), rtol=1e-10)


@pytest.mark.parametrize("strategy", [None, "reverse-mode", "forward-mode"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_jacobian_rows_are_gradients_of_real_parts(backend, name, strategy):
    f = FUNCTIONS[name]
    wanted = np.empty((3, 3), complex)
    for i, unit in enumerate(np.eye(3)):
        wanted[:, i] = directional(f, Z, unit).real + 1j * directional(f, Z, 1j * unit).real
    result = numpy(functional.jacobian(f, tensors(Z, backend), strategy=strategy))
    np.testing.assert_allclose(result, wanted, rtol=1e-7, atol=1e-8)


def test_jacobian_of_a_holomorphic_function_is_the_conjugate_derivative(backend):
    result = numpy(functional.jacobian(lambda z: ops.sin(z), tensors(Z, backend)))
    np.testing.assert_allclose(result, np.diag(np.conj(np.cos(Z))), atol=1e-15)


@pytest.mark.parametrize("strategy", ["reverse-mode", "forward-mode"])
def test_real_inputs_and_complex_outputs(backend, strategy):
    def f(x):
        return ops.exp(ops.multiply(x, 1j))

    result = numpy(functional.jacobian(f, tensors(X, backend), strategy=strategy))
    np.testing.assert_allclose(result, np.diag(-np.sin(X)), atol=1e-15)
    _, forward = functional.jvp(f, tensors(X, backend), tensors(X, backend))
    np.testing.assert_allclose(numpy(forward), 1j * np.exp(1j * X) * X)


def test_complex_inputs_and_real_outputs(backend):
    def f(z):
        return ops.square(ops.abs(z))

    result = numpy(functional.jacobian(f, tensors(Z, backend)))
    np.testing.assert_allclose(result, np.diag(2 * Z), atol=1e-15)
    np.testing.assert_allclose(numpy(grad(lambda z: ops.sum(f(z)))(tensors(Z, backend))), 2 * Z)


@pytest.mark.short_cases(1, "jax")
@pytest.mark.parametrize("name", LOSSES)
def test_second_derivatives(backend, name):
    f = LOSSES[name]
    gradient = grad(f)
    wanted = directional(lambda z: gradient(z), Z, T)
    for product in (functional.hvp, functional.vhp):
        value, result = product(f, tensors(Z, backend), tensors(T, backend))
        np.testing.assert_allclose(numpy(value), numpy(f(Z)))
        np.testing.assert_allclose(numpy(result), wanted, rtol=1e-6, atol=1e-7, err_msg=product.__name__)


@pytest.mark.parametrize("strategy", ["reverse-mode", "forward-mode"])
def test_hessian_rows_are_gradients_of_real_parts_of_the_gradient(backend, strategy):
    if strategy == "reverse-mode":
        result = functional.hessian(lambda z: ops.sum(ops.abs(z) ** 2), tensors(Z, backend))
        np.testing.assert_allclose(numpy(result), 2 * np.eye(3), atol=1e-12)

    def f(z):
        return ops.sum(ops.real(ops.exp(z)) * ops.imag(z))

    wanted, gradient = np.empty((3, 3), complex), grad(f)
    for i, unit in enumerate(np.eye(3)):
        wanted[:, i] = directional(gradient, Z, unit).real + 1j * directional(gradient, Z, 1j * unit).real
    result = functional.hessian(f, tensors(Z, backend), outer_jacobian_strategy=strategy)
    np.testing.assert_allclose(numpy(result), wanted, rtol=1e-6, atol=1e-7)


def test_compiled(backend):
    def f(z):
        return ops.sum(ops.real(ops.exp(z) * ops.conj(z)))

    compiled = jit(grad(f))
    for z in (Z, 2 * Z):
        np.testing.assert_allclose(numpy(compiled(tensors(z, backend))), numpy(grad(f)(z)))


class Turned(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2.0

    @staticmethod
    def backward(ctx, g):
        return ops.cast(g, "complex128") * (1 + 2j)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("way", ["custom_gradient", "Function"])
def test_complex_gradient_for_a_real_input_warns(way, backend):
    f = custom_gradient(lambda x: (x * 2.0, lambda u: ops.cast(u, "complex128") * (1 + 2j)))
    if way == "Function":
        if backend == "torch":
            pytest.skip("torch's own functions, which refuse it themselves")
        f = Turned.apply
    (x,) = tensors([X], backend)
    with pytest.warns(ComplexWarning, match="complex gradient for a real tensor: its imaginary part is lost"):
        np.testing.assert_allclose(numpy(grad(lambda z: ops.sum(f(z)))(x)), np.ones(3))
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("default")
        for _ in range(3):
            grad(lambda z: ops.sum(f(z)))(x)
    assert len([w for w in heard if w.category is ComplexWarning]) == 1


def test_complex_gradients_from_hooks_and_seeds_warn():
    x = Variable(X.copy(), requires_grad=True)
    x.register_hook(lambda g: g * (1 + 2j))
    with pytest.warns(ComplexWarning, match="a hook gave a complex gradient"):
        ops.sum(x * 2.0).backward()
    np.testing.assert_array_equal(x.grad.data, [2, 2, 2])
    with pytest.raises(ArgumentTypeError, match="must be real"):
        (x * 2.0).backward(np.ones(3) * 1j)


@pytest.mark.parametrize("backend", BACKENDS)
def test_intended_real_part_does_not_warn(backend):
    """A real input is cast to complex inside the function; its gradient is a real part by definition."""
    (x,) = tensors([X], backend)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ComplexWarning)
        found = grad(lambda z: ops.sum(ops.real(ops.cast(z, "complex128") * (1 + 2j) * (1 - 3j))))(x)
    np.testing.assert_allclose(numpy(found), np.full(3, 7.0))
