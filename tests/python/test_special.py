"""Special functions, bounds and comparison: kinks, ties and points where libraries disagree."""

import numpy as np
import pytest
from parity import BACKENDS, native_gradient, numpy, tape_second, tensors

import gradops
from gradops import Variable, autodiff, ops
from gradops.jit import jit

everywhere = pytest.mark.parametrize("backend", BACKENDS)


def gradients(function, xs, backend):
    """Return the tape's gradients on NumPy, the framework's own elsewhere."""
    if backend == "numpy":
        variables = [Variable(x, requires_grad=True) for x in xs]
        return [numpy(g) for g in autodiff.grad(function(*variables), variables, materialize_grads=True)]
    return native_gradient(function, xs, backend)


@everywhere
def test_hypot_at_zero(backend):
    zero = np.zeros(2), np.zeros(2)
    for g in gradients(lambda a, b: ops.sum(ops.hypot(a, b)), zero, backend):
        np.testing.assert_array_equal(g, [0, 0])


@pytest.mark.parametrize("backend", ("numpy", "torch", "jax"))
def test_second_gradient_of_hypot_at_a_tie(backend):
    x = [np.array(3.0), np.array(3.0)]

    def f(a, b):
        return ops.hypot(a, b)

    got = tape_second(f, x) if backend == "numpy" else native_gradient(f, x, backend, second=True)
    want = tape_second(lambda a, b: ops.sqrt(a * a + b * b), x)
    np.testing.assert_allclose(got, want, rtol=1e-12)


@everywhere
def test_ties_share_the_gradient(backend):
    x = np.array([1.0, 2.0]), np.array([1.0, 0.0])
    for op in (ops.maximum, ops.minimum, ops.fmax, ops.fmin):
        first, second = gradients(lambda a, b: ops.sum(op(a, b)), x, backend)  # noqa: B023
        assert first[0] == second[0] == 0.5
    (inside,) = gradients(lambda a: ops.sum(ops.clip(a, 0.0, 2.0)), [np.array([-1.0, 0.0, 1.0, 2.0, 3.0])], backend)
    np.testing.assert_array_equal(inside, [0, 0.5, 1, 0.5, 0])


@everywhere
def test_substituted_values_have_no_gradient(backend):
    a, b = gradients(lambda a, b: ops.sum(ops.divide_no_nan(a, b)), [np.ones(2), np.array([0.0, 2.0])], backend)
    np.testing.assert_allclose((a, b), ([0, 0.5], [0, -0.25]))
    (g,) = gradients(lambda a: ops.sum(ops.nan_to_num(a)), [np.array([np.nan, np.inf, 1.0])], backend)
    np.testing.assert_array_equal(g, [0, 0, 1])
    g, h = gradients(lambda a, b: ops.sum(ops.fmax(a, b)), [np.array([np.nan, 1.0]), np.array([1.0, np.nan])], backend)
    np.testing.assert_array_equal((g, h), ([0, 1], [1, 0]))


@everywhere
def test_sinc_at_zero_to_second_order(backend):
    x = [np.array(0.0)]
    second = tape_second(ops.sinc, x) if backend == "numpy" else native_gradient(ops.sinc, x, backend, second=True)
    weight = tape_second(ops.square, x)[0] / 2
    np.testing.assert_allclose(second[0], -(np.pi**2) / 3 * weight)


@pytest.mark.parametrize(
    "f, at, numbers",  # the backends whose gradient is 0; it is NaN on others
    [
        (lambda v: ops.where(v > 0, ops.sqrt(v), 0.0), 0.0, {"tensorflow"}),
        (lambda v: ops.arctan2(v, v), 0.0, {"torch"}),
    ],
    ids=["where", "arctan2"],
)
def test_gradients_differing_between_backends(f, at, numbers):
    with np.errstate(all="ignore"):
        x = np.array([at])
        found = [numpy(gradops.grad(lambda v: ops.sum(f(v)))(tensors(x, b))).item() for b in BACKENDS]
    np.testing.assert_array_equal(found, [0 if b in numbers else np.nan for b in BACKENDS])


def test_second_derivatives_of_powers_of_zero():
    def f(base, exponent):
        return ops.power(base, exponent)

    x = [np.array(0.0), np.array(2.5)]
    np.testing.assert_array_equal(tape_second(f, x), [0, 0])
    for backend in ("torch", "jax", "tensorflow"):
        np.testing.assert_array_equal(native_gradient(f, x, backend, second=True), [0, 0])


@pytest.mark.short_cases(0, "jax")
@everywhere
def test_python_scalars_stay_weak_in_composed_ops(backend):
    x = tensors(np.array([0.5, 1.5], "float32"), backend)
    for y in (
        ops.fmax(x, 1.0),
        ops.fmin(1, x),
        ops.clip(x, 0, 1.0),
        ops.divide_no_nan(1, x),
        ops.heaviside(x, 0.5),
        ops.logaddexp2(x, 1),
        ops.hypot(3.0, x),
        ops.nan_to_num(x, 1),
        ops.sinc(x),
        ops.deg2rad(x),
        ops.ldexp(x, 2),
        ops.subtract(ops.min(x), 0.5),
        ops.power(2.0, ops.divide(1, ops.max(x))),
        jit(lambda x: ops.subtract(ops.min(x), 0.5) * 2)(x),
        gradops.grad(lambda x: ops.exp(ops.min(x) * 2.0 - 0.5) / 3.0)(x),
    ):
        assert ops.dtype(y) == "float32"
