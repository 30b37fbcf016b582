"""Reductions: edge cases, and faults that all backends would share."""

import re

import numpy as np
import pytest
from parity import BACKENDS, native_gradient, numpy, tensors

import gradops
from gradops import Variable, autodiff, ops
from gradops.errors import ArgumentError, ArgumentTypeError, AxisError, ShapeError
from gradops.ops._dispatch import registry

frameworks = pytest.mark.parametrize("backend", BACKENDS[1:])
everywhere = pytest.mark.parametrize("backend", BACKENDS)


def gradient(function, x, backend):
    """Return the tape's gradient on NumPy, the framework's own elsewhere."""
    if backend == "numpy":
        v = Variable(x, requires_grad=True)
        return numpy(autodiff.grad(function(v), v)[0])
    return native_gradient(lambda v: function(v), [x], backend)[0]


@everywhere
def test_std_of_constants_has_gradient_zero(backend):
    got = gradient(lambda v: ops.sum(ops.std(v, axis=1)), np.ones((2, 3)), backend)
    np.testing.assert_array_equal(got, np.zeros((2, 3)))


@everywhere
def test_prod_and_cumprod_at_zeros(backend):
    x = np.array([2.0, 0.0, 3.0, 4.0])
    np.testing.assert_allclose(gradient(ops.prod, x, backend), [0, 24, 0, 0])
    np.testing.assert_allclose(gradient(lambda v: ops.sum(ops.cumprod(v)), x, backend), [1, 2 + 6 + 24, 0, 0])
    twice = np.array([2.0, 0.0, 0.0])
    np.testing.assert_allclose(gradient(lambda v: ops.sum(ops.cumprod(v)), twice, backend), [1, 2, 0])


@pytest.mark.short_cases(2, "jax")
@pytest.mark.parametrize("axis", [(0, 1), (0, 2), (2, 1), (2, 0), (-1, 0), (0, 1, 2)])
@pytest.mark.parametrize("backend", BACKENDS)
def test_products_over_several_axes(backend, axis):
    """With mixed-up dimensions this fails unless the sizes are equal."""
    x = np.random.default_rng(0).uniform(0.5, 1.5, (2, 3, 4))
    wanted = np.prod(x, axis, keepdims=True)
    for keepdims in (False, True):
        found = numpy(ops.prod(tensors(x, backend), axis, keepdims))
        np.testing.assert_allclose(found, np.prod(x, axis, keepdims=keepdims), rtol=1e-12)
        gradient = gradops.grad(lambda x, k=keepdims: ops.sum(ops.prod(x, axis, k)))(tensors(x, backend))
        np.testing.assert_allclose(numpy(gradient), wanted / x, rtol=1e-12)


@pytest.mark.parametrize("backend", ("jax", "tensorflow"))
def test_third_gradient_of_prod_at_zeros(backend):
    def third(over):
        x = Variable(tensors(np.array([0.0, 0.0, 0.0]), over), requires_grad=True)
        first = autodiff.grad(ops.prod(x), x, create_graph=True)[0]
        second = autodiff.grad(first[0], x, create_graph=True)[0]
        return numpy(autodiff.grad(second[1], x)[0])

    np.testing.assert_array_equal(third(backend), [0, 0, 1])
    np.testing.assert_array_equal(third("numpy"), [0, 0, 1])


@everywhere
def test_non_contiguous_input(backend):
    x = tensors(np.arange(12.0).reshape(3, 4), backend)
    turned = ops.transpose(x)
    np.testing.assert_allclose(numpy(ops.var(turned, axis=0)), np.arange(12.0).reshape(3, 4).var(axis=1))
    np.testing.assert_allclose(numpy(ops.cumprod(turned, axis=1)), np.arange(12.0).reshape(3, 4).T.cumprod(1))


@everywhere
@pytest.mark.parametrize(
    "name",
    [
        "sum",
        "mean",
        "prod",
        "max",
        "min",
        "amax",
        "all",
        "any",
        "argmax",
        "logsumexp",
        "cumsum",
        "cumprod",
        "ptp",
        "var",
        "std",
        "count_nonzero",
        "diff",
    ],
)
def test_axis_out_of_range_names_the_op(name, backend):
    x = tensors(np.ones((2, 3)), backend)
    with pytest.raises(AxisError, match=f"`{name}`: `axis` must be between -2 and 1"):
        getattr(ops, name)(x, axis=2)


@everywhere
@pytest.mark.parametrize("name", ["sum", "mean", "prod", "max", "std"])
def test_axis_named_twice(name, backend):
    with pytest.raises((AxisError, ArgumentError), match=f"`{name}`"):
        getattr(ops, name)(tensors(np.ones((2, 3)), backend), axis=(0, -2))


@everywhere
@pytest.mark.parametrize("name", ["max", "min", "amax", "ptp", "argmax", "argmin"])
def test_empty_reductions_are_an_error(name, backend):
    with pytest.raises(ArgumentError, match=f"`{name}`"):
        getattr(ops, name)(tensors(np.ones((2, 0)), backend), axis=1)


@everywhere
def test_bad_input(backend):
    with pytest.raises(ArgumentTypeError, match="`ptp`: `x` must be real"):
        ops.ptp(tensors(np.ones(2) * 1j, backend))
    with pytest.raises(ArgumentError, match="`diff`: `n` must be at least 0"):
        ops.diff(tensors(np.ones(2), backend), n=-1)
    with pytest.raises(ShapeError, match="`diff`: `a` must have at least 1 dimension"):
        ops.diff(tensors(np.ones(()), backend))
    with pytest.raises(ArgumentTypeError, match="`sum`"):
        ops.sum("text")


@pytest.mark.short_cases(2, "jax")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("values", [[1e8, 1e8], [-2e4, -2e4 - 1], [3e30, 1.0], [-np.inf, 0.0], [5e7, 5e7 - 8, 5e7 + 8]])
def test_gradient_of_logsumexp_is_the_softmax(backend, values, dtype):
    """Large results are rounded, so exp(x - result) would be inaccurate."""
    x = np.array(values, dtype)
    shares = np.exp(x.astype(float) - x.max())
    got = numpy(gradops.grad(lambda x: ops.sum(ops.logsumexp(x, 0)))(tensors(x, backend)))
    np.testing.assert_allclose(got, shares / shares.sum(), 1e-5 if dtype == "float32" else 1e-12, 1e-30)
    assert got.dtype == dtype


@pytest.mark.parametrize("axis", [None, 0, ()])
def test_logsumexp_of_a_complex_scalar_is_the_logarithm(backend, axis):
    z = np.array([1 + 7.5j, -2 - 4j]) if axis == () else np.array(1 + 7.5j)
    got = numpy(ops.logsumexp(tensors(z, backend), axis))
    np.testing.assert_allclose(got, np.log(np.exp(z)), 1e-12)


AXES = [name for name, op in registry.items() if re.match(r"\(x: 'Tensor', axis: 'Axes'", str(op.signature))]
"""Ops of a tensor and its axes."""


@pytest.mark.short_cases(2, "jax", "tensorflow")
@everywhere
@pytest.mark.parametrize("name", AXES)
def test_axes_of_a_scalar_may_be_a_tuple(name, backend):
    """``(0,)`` acts as 0 in values and gradients: eager, compiled, and on variables."""
    x = tensors(np.array(1.5), backend)
    op = registry[name].call

    def results(axis):
        y = op(x, axis=axis)
        if not ops.dtype(y).startswith("float"):
            return [y]
        loss = gradops.grad(lambda x: ops.sum(op(x, axis=axis)))
        variable = loss(Variable(np.array(1.5)))
        return [y, loss(x), gradops.jit(loss)(x), variable]

    for axis in (0, -1):
        for found, wanted in zip(results((axis,)), results(axis), strict=True):
            np.testing.assert_array_equal(numpy(found), numpy(wanted))
