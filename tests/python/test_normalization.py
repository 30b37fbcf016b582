"""Normalisation of zero vectors, in half precision, and with bad input."""

import numpy as np
import pytest
from parity import BACKENDS, numpy, tensors

import gradops
from gradops import Variable, autodiff, ops
from gradops.errors import ArgumentError, ArgumentTypeError, AxisError, ShapeError


@pytest.mark.parametrize("order", [1, 2, 3])
def test_zero_vectors_have_a_finite_gradient(order):
    x = Variable(np.zeros((2, 3)), requires_grad=True)
    y = ops.normalize(x, order=order, epsilon=0.5)
    (g,) = autodiff.grad(ops.sum(y), [x])
    np.testing.assert_array_equal(numpy(y), np.zeros((2, 3)))
    np.testing.assert_allclose(numpy(g), np.full((2, 3), 2.0))


@pytest.mark.parametrize("backend", BACKENDS)
def test_half_precision_is_computed_in_single_precision(backend):
    """60000**2 overflows float16."""
    x = tensors(np.array([[60000.0, 0, 0, 0]], "float16"), backend)
    y = ops.rms_normalization(x)
    assert ops.dtype(y) == "float16"
    np.testing.assert_allclose(numpy(y), [[2, 0, 0, 0]], rtol=1e-3)
    mean, variance = ops.moments(tensors(np.array([200.0, 202.0], "float16"), backend), 0)
    assert (ops.dtype(mean), float(mean), float(variance)) == ("float16", 201.0, 1.0)


@pytest.mark.parametrize("backend", BACKENDS)
def test_bad_input(backend):
    x, v = tensors(np.ones((2, 3)), backend), tensors(np.ones(4), backend)
    with pytest.raises(ShapeError, match="`batch_normalization`: `variance`"):
        ops.batch_normalization(x, tensors(np.ones(3), backend), v, axis=1)
    with pytest.raises(ShapeError, match="`layer_normalization`: `beta`"):
        ops.layer_normalization(x, beta=v)
    with pytest.raises(ArgumentError, match="rms_scaling"):
        ops.layer_normalization(x, rms_scaling=True)
    with pytest.raises(ArgumentTypeError, match="`layer_normalization`: unknown"):
        ops.layer_normalization(x, other=1)
    with pytest.raises(AxisError, match="`rms_normalization`"):
        ops.rms_normalization(x, axis=2)
    with pytest.raises(AxisError, match="`moments`: `axes`"):
        ops.moments(x, [0, 2])
    with pytest.raises(ArgumentError, match="`moments`: `synchronized`"):
        ops.moments(x, 0, synchronized=True)
    with pytest.raises(ArgumentError, match="`normalize`: `order`"):
        ops.normalize(x, order=0)


@pytest.mark.parametrize("backend", BACKENDS)
def test_higher_derivatives_of_layer_normalization(backend):
    """The sum is ``-t / sqrt(1 + t**2)``; PyTorch's kernel treats mean and deviation as constants in higher
    derivatives.
    """

    def f(t):
        gamma, beta = (tensors(np.array(row), backend) for row in ([1.0, 2.0], [0.0, 0.0]))
        row = ops.stack([t, 0.0 * t])
        return ops.sum(ops.layer_normalization(row, gamma=gamma, beta=beta, epsilon=0.25))

    def tangent(f):
        return lambda t: gradops.jvp(f, (t,), (ops.ones_like(t),))[1]

    t = 0.7
    at, grad = tensors(np.array(t), backend), gradops.grad
    for first in (grad, tangent):
        np.testing.assert_allclose(numpy(first(f)(at)), -((1 + t * t) ** -1.5), rtol=1e-12)
        for second in (grad, tangent):
            np.testing.assert_allclose(numpy(second(first(f))(at)), 3 * t * (1 + t * t) ** -2.5, rtol=1e-11)
    third = 3 * (1 - 4 * t * t) * (1 + t * t) ** -3.5
    np.testing.assert_allclose(numpy(grad(grad(grad(f)))(at)), third, rtol=1e-10)
    np.testing.assert_allclose(numpy(tangent(tangent(tangent(f)))(at)), third, rtol=1e-10)


def test_layer_normalization_with_a_scale_computed_from_its_input():
    torch = pytest.importorskip("torch")
    x = torch.tensor([[0.3, -0.5, 1.2], [1.0, 0.2, 0.1]], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: ops.layer_normalization(x, gamma=x[0], beta=x[1] ** 2), x)
    assert torch.autograd.gradgradcheck(lambda x: ops.layer_normalization(x, gamma=x[0], beta=x[1] ** 2), x)
