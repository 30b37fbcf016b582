"""Values that are handed through: memory of their own, copies that stay connected, results without a slope."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import gradops
from gradops import Variable, custom_gradient, ops, scaled_gradient
from gradops.autodiff import Function, no_grad
from gradops.errors import GradientError

torch = pytest.importorskip("torch")


class Identity(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 1.0

    @staticmethod
    def backward(ctx, g):
        return g * 3.0


WAYS = {
    "scaled": lambda x: scaled_gradient(x, 3.0),
    "custom": custom_gradient(lambda x: (x, lambda upstream: 3.0 * upstream)),
    "several": lambda x: custom_gradient(lambda a: ((a, a), lambda u, v: 3.0 * u + 3.0 * v))(x)[0],
    "function": Identity.apply,
}


def leaf(library: str):
    if library == "torch":
        return torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
    make = {"numpy": np.array, "jax": _jax, "tensorflow": _tensorflow}[library]
    return Variable(make([1.0, 2.0]), requires_grad=True)


def _jax(values):
    return pytest.importorskip("jax.numpy").asarray(values)


def _tensorflow(values):
    return pytest.importorskip("tensorflow").constant(values)


def values(x):
    return ops.convert_to_numpy(x.detach())


@pytest.mark.parametrize("library", ["numpy", "torch", "jax", "tensorflow"])
@pytest.mark.parametrize("way", WAYS)
def test_writing_to_the_result_leaves_the_input_alone(way, library):
    x = leaf(library)
    y = WAYS[way](x)
    y[0] = 100.0
    np.testing.assert_array_equal(values(y), [100, 2])
    np.testing.assert_array_equal(values(x), [1, 2])
    ops.sum(y).backward()
    np.testing.assert_array_equal(ops.convert_to_numpy(x.grad), [0, 3])
    with no_grad():
        z = WAYS[way](x)
        z[0] = 100.0
    np.testing.assert_array_equal(values(x), [1, 2])


def test_results_that_share_memory_with_each_other():
    x = leaf("numpy")
    first, second = custom_gradient(lambda a: ((b := a * 2.0, b), lambda u, v: u + v))(x)
    first[0] = 100.0
    np.testing.assert_array_equal(second.data, [2, 4])


@pytest.mark.parametrize("library", ["numpy", "torch", "jax", "tensorflow"])
def test_a_conversion_that_changes_nothing_is_no_view_of_itself(library):
    x = leaf(library) * 1.0
    y = ops.convert_to_tensor(x)
    y[0] = 5.0
    np.testing.assert_array_equal(values(y), [5, 2])


MAKERS = {"numpy": np.array, "jax": _jax, "tensorflow": _tensorflow}


@pytest.mark.parametrize("library", MAKERS)
@pytest.mark.parametrize("how", [copy.copy, copy.deepcopy])
def test_copies_in_a_differentiated_function_stay_connected(how, library):
    x = MAKERS[library]([1.0, 2.0])
    cubes = lambda z: ops.sum(how(z) ** 3.0)  # noqa: E731
    np.testing.assert_allclose(ops.convert_to_numpy(gradops.grad(cubes)(x)), [3, 12])
    np.testing.assert_allclose(ops.convert_to_numpy(gradops.functional.jacobian(cubes, x)), [3, 12])
    second = gradops.grad(lambda w: ops.sum(gradops.grad(cubes)(w)))(x)
    np.testing.assert_allclose(ops.convert_to_numpy(second), [6, 12])


@pytest.mark.parametrize("how", [copy.copy, copy.deepcopy])
def test_copies_of_a_users_own_leaf_are_leaves(how):
    x = Variable(np.array([1.0, 2.0]), requires_grad=True)
    assert how(x).is_leaf and how(x).requires_grad


@pytest.mark.parametrize("library", ["numpy", "torch", "jax", "tensorflow"])
@pytest.mark.parametrize(
    "f",
    [
        lambda x: ops.all(ops.greater(x, 0.0)),
        lambda x: ops.sum(ops.cast(x, "int64")),
        lambda x: ops.argmax(x),
        lambda x: True,
        lambda x: 3,
    ],
)
def test_a_result_without_a_slope_is_an_error(f, library):
    x = torch.tensor([1.0, 2.0]) if library == "torch" else MAKERS[library]([1.0, 2.0])
    for derivative in (gradops.grad(f), gradops.value_and_grad(f)):
        with pytest.raises(GradientError, match="must return a floating scalar"):
            derivative(x)
    for transform in ("jacobian", "hessian", "vjp", "jvp", "hvp", "vhp"):
        with pytest.raises(GradientError, match="must return .* of dtype (int|bool)"):
            getattr(gradops.functional, transform)(f, x, *([x] if transform in ("jvp", "hvp", "vhp") else []))
    with pytest.raises(GradientError, match="got output 1 of dtype int64"):
        gradops.functional.jacobian(lambda x: (x * 2.0, ops.argmax(x)), x)
    np.testing.assert_array_equal(ops.convert_to_numpy(gradops.grad(lambda x: 3.0)(x)), [0, 0])
    np.testing.assert_array_equal(ops.convert_to_numpy(gradops.functional.jacobian(lambda x: 3.0, x)), [0, 0])
