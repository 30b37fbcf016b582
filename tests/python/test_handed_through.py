"""Values returned unchanged: separate memory, connected copies, and results without a gradient."""

from __future__ import annotations

import copy
import importlib
import io
import pickle

import numpy as np
import pytest

import gradops
from gradops import Variable, config, custom_gradient, functional, ops, scaled_gradient
from gradops.autodiff import Function, grad, no_grad
from gradops.errors import ArgumentTypeError, GradientError

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
def test_writing_to_the_result_does_not_change_the_input(way, library):
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


def test_results_that_share_memory_are_separated():
    x = leaf("numpy")
    first, second = custom_gradient(lambda a: ((b := a * 2.0, b), lambda u, v: u + v))(x)
    first[0] = 100.0
    np.testing.assert_array_equal(second.data, [2, 4])


@pytest.mark.parametrize("library", ["numpy", "torch", "jax", "tensorflow"])
def test_unchanged_conversion_can_be_written(library):
    x = leaf(library) * 1.0
    y = ops.convert_to_tensor(x)
    y[0] = 5.0
    np.testing.assert_array_equal(values(y), [5, 2])


MAKERS = {"numpy": np.array, "jax": _jax, "tensorflow": _tensorflow}


@pytest.mark.parametrize("library", [*MAKERS, "torch"])
@pytest.mark.parametrize("how", [copy.copy, copy.deepcopy])
def test_copies_in_a_differentiated_function_stay_connected(how, library):
    x = torch.tensor([1.0, 2.0]) if library == "torch" else MAKERS[library]([1.0, 2.0])
    cubes = lambda z: ops.sum(how(z) ** 3.0)  # noqa: E731
    np.testing.assert_allclose(ops.convert_to_numpy(gradops.grad(cubes)(x)), [3, 12])
    np.testing.assert_allclose(ops.convert_to_numpy(gradops.functional.jacobian(cubes, x)), [3, 12])
    second = gradops.grad(lambda w: ops.sum(gradops.grad(cubes)(w)))(x)
    np.testing.assert_allclose(ops.convert_to_numpy(second), [6, 12])


@pytest.mark.parametrize("library", [*MAKERS, "torch"])
def test_copies_of_a_parameter_dict_stay_connected(library):
    p = {"w": torch.tensor([1.0, 2.0]) if library == "torch" else MAKERS[library]([1.0, 2.0])}

    def f(p):
        q = copy.deepcopy(p)
        q["w"] = q["w"] * p["w"]
        return ops.sum(copy.copy(q)["w"] * 3.0)

    np.testing.assert_allclose(ops.convert_to_numpy(gradops.grad(f)(p)["w"]), [6, 12], rtol=1e-6)


def test_torch_tensors_pickle_and_copy_as_usual():
    kept = []

    def f(z):
        kept.extend([z, pickle.loads(pickle.dumps(z))])
        torch.save(z, file := io.BytesIO())
        file.seek(0)
        kept.append(torch.load(file, weights_only=True))
        raise ZeroDivisionError

    for derivative in (gradops.grad(f), lambda x: gradops.functional.jacobian(f, x)):
        kept.clear()
        with pytest.raises(ZeroDivisionError):
            derivative(torch.tensor([1.0, 2.0]))
        for x in (*kept, copy.copy(kept[0]), copy.deepcopy(kept[0])):
            assert x.tolist() == [1, 2] and x.grad_fn is None and not vars(x)


@pytest.mark.parametrize("how", [copy.copy, copy.deepcopy])
def test_copies_of_a_user_leaf_are_leaves(how):
    x = Variable(np.array([1.0, 2.0]), requires_grad=True)
    assert how(x).is_leaf and how(x).requires_grad


@pytest.mark.short_cases(2)
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
def test_non_floating_result_is_an_error(f, library):
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


FUNCTIONAL = {
    "vjp": lambda x, y, v: functional.vjp(lambda a, b: a + b, (x, y), v)[1],
    "jvp": lambda x, y, v: (functional.jvp(lambda a: a + 1.0, x, v)[1],),
    "hvp": lambda x, y, v: (functional.hvp(lambda a: ops.sum(a * a) / 2, x, v)[1],),
    "vhp": lambda x, y, v: (functional.vhp(lambda a: ops.sum(a * a) / 2, x, v)[1],),
    "jacobian": lambda x, y, v: functional.jacobian(lambda a, b: a + b, (x, y)),
    "grad": lambda x, y, v: gradops.grad(lambda a, b: ops.sum((a + b) * v), (0, 1))(x, y),
    "grad of a sum": lambda x, y, v: gradops.grad(lambda a, b: ops.sum(a + b), (0, 1))(x, y),
    "grad of views": lambda x, y, v: gradops.grad(lambda a, b: ops.sum((a + ops.reshape(b, (3,))) * v), (0, 1))(x, y),
}
KINDS = {
    "arrays": np.array,
    "torch": lambda x: torch.tensor(x),
    "variables": Variable,
    "leaves": lambda x: Variable(np.array(x), requires_grad=True),
    "variables on JAX": lambda x: Variable(_jax(x)),
    "leaves on TensorFlow": lambda x: Variable(_tensorflow(x), requires_grad=True),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", FUNCTIONAL)
def test_writing_to_a_derivative_changes_no_other_array(name, kind):
    """User code writes ``for g in gradients: g *= scale``; some libraries return one array for two inputs."""
    make = KINDS[kind]
    given = [make(np.array(numbers)) for numbers in ([1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [1.0, -1.0, 0.5])]
    before = [values(x).copy() if not isinstance(x, np.ndarray) else x.copy() for x in given]
    found = FUNCTIONAL[name](*given)
    wanted = [np.array(_numbers(g)) for g in found]
    for i, g in enumerate(found):
        with no_grad(), torch.no_grad():
            g *= 7.0
        np.testing.assert_array_equal(_numbers(g), 7.0 * wanted[i])
        for x, w in zip(found[i + 1 :], wanted[i + 1 :]):
            np.testing.assert_array_equal(_numbers(x), w)
    for x, b in zip(given, before):
        np.testing.assert_array_equal(_numbers(x), b)


def _numbers(x):
    return x if isinstance(x, np.ndarray) else values(x)


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("library", ["numpy", "jax", "tensorflow"])
def test_writing_to_a_gradient_changes_no_other_gradient(library, create_graph):
    x, y = leaf(library), leaf(library)
    seed = Variable(leaf(library).data)
    first, second = grad(x + y, [x, y], [seed], create_graph=create_graph)
    first *= 7.0
    np.testing.assert_array_equal([values(v) for v in (first, second, seed)], [[7, 14], [1, 2], [1, 2]])
    (ones,) = grad(ops.sum(x), [x], create_graph=create_graph)
    ones += 1.0
    np.testing.assert_array_equal(values(ones), [2, 2])
    ops.sum(ops.square(x + y)).backward(create_graph=create_graph)
    with no_grad():
        x.grad *= 7.0
    np.testing.assert_array_equal([values(v) for v in (x.grad, y.grad)], [[28, 56], [4, 8]])


@pytest.mark.parametrize("library", ["torch", "jax", "tensorflow"])
def test_numpy_result_of_another_library_raises(library):
    """NumPy functions silently accept TensorFlow tensors."""
    x = torch.tensor([1.0, 2.0]) if library == "torch" else MAKERS[library]([1.0, 2.0])
    for derivative, argument in (
        (lambda: gradops.grad(lambda z: np.float32(2))(x), "`f`"),
        (lambda: functional.jacobian(lambda z: np.array([1.0, 2.0]), x), "`func`"),
        (lambda: functional.vjp(lambda z: np.array([1.0, 2.0], "float32"), x, x)[1], "`func`"),
    ):
        said = f"{argument} returned NumPy's .* for tensors of {library}: its gradient is 0"
        for _ in range(2):
            with pytest.raises(GradientError, match=said):
                derivative()
        with config.lost_gradients_scope("warn"), pytest.warns(UserWarning, match=said):
            assert not ops.convert_to_numpy(derivative()).any()
    if library == "tensorflow":
        with pytest.raises(GradientError, match="NumPy's float32"):
            gradops.grad(lambda z: ops.sum(np.sin(z)))(x)


@pytest.mark.parametrize("kept", [np.array([1.0, 2.0]), Variable(np.array([1.0, 2.0]))])
def test_closed_over_gradient_arrays_are_copied(kept):
    f = custom_gradient(lambda x: (x * 2.0, lambda upstream: kept))
    x = np.array([3.0, 4.0])

    class Kept(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2.0

        @staticmethod
        def backward(ctx, upstream):
            return kept

    def hooked(create_graph):
        y = leaf("numpy")
        y.register_hook(lambda upstream: kept)
        return grad(ops.sum(y * 2.0), [y], create_graph=create_graph)[0]

    for found in (
        hooked(False),
        hooked(True),
        grad(ops.sum(Kept.apply(y := leaf("numpy"))), [y])[0],
        grad(ops.sum(Kept.apply(y := leaf("numpy"))), [y], create_graph=True)[0],
        gradops.grad(lambda x: ops.sum(f(x)))(x),
        functional.vjp(f, x, x)[1],
        functional.vjp(f, x, x, create_graph=True)[1],
        grad(ops.sum(f(y := leaf("numpy"))), [y])[0],
        grad(ops.sum(f(y := leaf("numpy"))), [y], create_graph=True)[0],
    ):
        np.testing.assert_array_equal(_numbers(found), [1, 2])
        found[0] = 99.0
        np.testing.assert_array_equal(_numbers(kept), [1, 2])


def test_connected_gradients_can_be_written():
    x, y = leaf("numpy"), leaf("numpy")
    first, second = grad(ops.sum(ops.square(x) * ops.square(x) + x * y), [x, y], create_graph=True)
    first *= 2.0
    np.testing.assert_array_equal(grad(ops.sum(first), [x], retain_graph=True)[0].data, 24 * x.data**2)
    np.testing.assert_array_equal(grad(ops.sum(second), [x])[0].data, [1, 1])


OTHERS = {
    "jax": lambda: importlib.import_module("jax.numpy").sin,
    "torch": lambda: torch.sin,
    "torch's combinations": lambda: lambda x: torch.max(x, x),
    "torch's lists": lambda: lambda x: torch.stack([x]),
    "tensorflow": lambda: importlib.import_module("tensorflow").sin,
}
OF_NUMBERS = {
    "grad": lambda f: gradops.grad(f)(1.0),
    "grad of an array": lambda f: gradops.grad(lambda x: f(x).sum())(np.array([1.0])),
    "value_and_grad": lambda f: gradops.value_and_grad(f)(1.0),
    "gradient": lambda f: gradops.gradient(f, 1.0),
    "vjp": lambda f: gradops.vjp(f, 1.0),
    "jvp": lambda f: gradops.jvp(f, (1.0,), (1.0,)),
    "jacobian": lambda f: gradops.jacobian(f)(1.0),
    "hessian": lambda f: gradops.hessian(f)(1.0),
    "functional.hvp": lambda f: functional.hvp(f, 1.0, 1.0),
}


@pytest.mark.parametrize("name", OF_NUMBERS)
@pytest.mark.parametrize("library", OTHERS)
def test_library_function_of_a_number_says_what_to_pass(library, name):
    pytest.importorskip(library.partition("'")[0])
    with pytest.raises(
        ArgumentTypeError, match=r"differentiate the function at a tensor of its library, such as `\w+\."
    ):
        OF_NUMBERS[name](OTHERS[library]())


def test_type_errors_of_the_function_are_unchanged():
    def f(x):
        raise TypeError("Variable prices are not supported")

    with pytest.raises(TypeError, match="^Variable prices are not supported$"):
        gradops.grad(f)(1.0)
