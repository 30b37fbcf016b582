"""Activations at their kinks and at extreme inputs, where formulas fail."""

import decimal

import numpy as np
import pytest
from parity import BACKENDS, Case, native_gradient, numpy, scalar_function, tape_gradient, tensors

import gradops
from gradops import ops
from gradops.errors import AxisError, GradopsError, ShapeError

POINTS = np.array([-1e30, -710.0, -88.0, -6.0, -3.0, -1.0, -0.5, 0.0, 0.5, 1.0, 3.0, 6.0, 88.0, 710.0, 1e30])
NAMES = (
    "sigmoid relu relu6 leaky_relu elu selu celu silu gelu softplus log_sigmoid softsign squareplus hard_sigmoid "
    "hard_silu hard_tanh tanh_shrink hard_shrink soft_shrink sparse_plus sparse_sigmoid"
).split()


@pytest.mark.parametrize("name", NAMES)
def test_kinks_and_extremes(name):
    """Values and derivatives are finite, and equal on the tape and every backend, at kinks as well."""
    case = Case(name, None, gradients=["x"])
    x = POINTS if name != "gelu" else POINTS[1:-1]
    with np.errstate(over="ignore"):
        value = getattr(ops, name)(x)
        (slope,) = tape_gradient(scalar_function(case, {"x": x}, "numpy"), [x])
    assert np.isfinite(value).all() and np.isfinite(slope).all()
    for backend in BACKENDS[1:]:
        np.testing.assert_allclose(numpy(getattr(ops, name)(tensors(x, backend))), value, rtol=1e-6, atol=1e-12)
        (native,) = native_gradient(scalar_function(case, {"x": x}, backend), [x], backend)
        np.testing.assert_allclose(slope, native, rtol=1e-6, atol=1e-12, err_msg=backend)


def test_aliases_of_activations():
    assert ops.swish is ops.silu and ops.hard_swish is ops.hard_silu and ops.nn.relu is ops.relu


@pytest.mark.short_cases(0, "jax")
@pytest.mark.parametrize("backend", BACKENDS)
def test_float32_is_preserved(backend):
    x = tensors(np.linspace(-2, 2, 6, dtype="float32").reshape(1, 6), backend)
    for name in (*NAMES, "glu", "softmax", "log_softmax", "sparsemax"):
        assert ops.dtype(getattr(ops, name)(x)) == "float32", name


@pytest.mark.parametrize("backend", BACKENDS)
def test_bad_input(backend):
    x = tensors(np.ones((2, 3)), backend)
    with pytest.raises(ShapeError, match="glu"):
        ops.glu(x)
    for name in ("glu", "softmax", "log_softmax", "sparsemax"):
        with pytest.raises(AxisError, match=name):
            getattr(ops, name)(x, axis=2)
    with pytest.raises(GradopsError, match="elu"):
        ops.elu("text")


@pytest.mark.parametrize("backend", BACKENDS)
def test_empty(backend):
    x = tensors(np.ones((0, 3)), backend)
    for name in ("relu6", "elu", "gelu", "softmax", "sparsemax"):
        assert tuple(getattr(ops, name)(x).shape) == (0, 3), name


@pytest.mark.parametrize("b", [4.0, 1.0, 0.01])
@pytest.mark.parametrize("backend", BACKENDS)
def test_squareplus_at_extremes(backend, b):
    """Against 60 digits: ``b / (4 abs(x))`` for very negative x, up to the end of the range and without overflow."""
    x = np.array([s * m * 10.0**e for s in (-1, 1) for m in (1.0, 1.7) for e in (-300, -3, 0, 5, 100, 155, 300, 308)])
    with decimal.localcontext(decimal.Context(prec=700)):
        exact = [(v + (v * v + decimal.Decimal(b)).sqrt()) / 2 for v in map(decimal.Decimal, x.tolist())]
    with np.errstate(over="raise", invalid="raise"):
        found = numpy(ops.squareplus(tensors(x, backend), b))
    tiny = np.finfo(float).tiny if backend in ("jax", "tensorflow") else 1e-322  # where a library flushes to 0
    np.testing.assert_allclose(found, np.array([float(v) for v in exact]), rtol=1e-14, atol=tiny)


@pytest.mark.parametrize("name", ["silu", "softsign", "tanh_shrink"])
def test_complex_gradients_match_finite_differences(name):
    """Compares with finite differences; ``softsign`` is not holomorphic."""
    z = np.array([[0.3, -0.4], [-1.2, 0.7], [0.0, 2.0]])
    f = lambda x: ops.sum(ops.real(getattr(ops, name)(ops.view_as_complex(x)) * (1 - 2j)))  # noqa: E731
    steps = np.eye(6).reshape(6, 3, 2) * 1e-6
    want = [(f(z + step) - f(z - step)) / 2e-6 for step in steps]
    np.testing.assert_allclose(gradops.grad(f)(z).reshape(-1), want, rtol=1e-7, atol=1e-9)
