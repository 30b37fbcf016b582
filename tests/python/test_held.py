"""Objects that hold a tensor (Keras variables, ``nnx.Param``, ``__jax_array__``, ``value``) act as that tensor."""

import os
import subprocess
import sys

import numpy as np
import pytest

import gradops
from gradops import backends, functional, ops
from gradops.errors import ArgumentTypeError

X = np.array([[1.0, 2.0], [3.0, 4.0]])


class Box:
    """Holds a tensor like a Keras variable; conversion to an array would lose its gradient."""

    def __init__(self, value):
        self.value = value

    def __array__(self, dtype=None, copy=None):
        raise AssertionError("taken for an array")


class OfJax:
    def __init__(self, value):
        self.inner = value

    def __jax_array__(self):
        return self.inner


@pytest.fixture(params=backends.NAMES)
def backend(request):
    pytest.importorskip(request.param)
    with gradops.config.backend_scope(request.param):
        yield request.param


def boxes(backend):
    x = ops.convert_to_tensor(X)
    return [Box(x)] + ([OfJax(x)] if backend == "jax" else [])


def test_ops_use_the_held_tensor(backend):
    for box in boxes(backend):
        np.testing.assert_allclose(ops.convert_to_numpy(ops.exp(box)), np.exp(X))
        np.testing.assert_allclose(ops.convert_to_numpy(ops.multiply(2.0, box)), 2 * X)
        np.testing.assert_allclose(ops.convert_to_numpy(ops.add(box, ops.convert_to_tensor(X))), 2 * X)
        np.testing.assert_allclose(ops.convert_to_numpy(ops.stack([box, ops.convert_to_tensor(X)])), np.stack([X, X]))
        np.testing.assert_allclose(ops.convert_to_numpy(ops.sum(box, axis=0)), X.sum(0))
        assert ops.dtype(box) == "float64" and ops.is_tensor(box)
        assert type(ops.convert_to_tensor(box)) is type(ops.convert_to_tensor(X))


def test_derivatives_flow_through_holders(backend):
    reverse = gradops.custom_gradient(lambda x: (x * 1.0, lambda upstream: upstream * -3.0))
    for box in boxes(backend):
        for f, expected in [
            (lambda x: ops.sum(ops.exp(x)), np.exp(X)),
            (lambda x: ops.sum(gradops.scaled_gradient(x, -2.0)), np.full_like(X, -2)),
            (lambda x: ops.sum(reverse(x)), np.full_like(X, -3)),
            (lambda x: ops.sum(gradops.checkpoint(ops.square)(x)), 2 * X),
        ]:
            np.testing.assert_allclose(ops.convert_to_numpy(gradops.grad(f)(box)), expected)
        jacobian = functional.jacobian(lambda x: ops.sum(ops.square(x), axis=1), box)
        np.testing.assert_allclose(ops.convert_to_numpy(jacobian)[0, 0], 2 * X[0])


def test_variable_next_to_a_holder_is_recorded():
    x = gradops.Variable(X, requires_grad=True)
    y = ops.multiply(x, Box(np.array([1.0, 10.0])))
    ops.sum(y).backward()
    np.testing.assert_allclose(x.grad.data, np.broadcast_to([1.0, 10.0], X.shape))


def test_torch_holder_keeps_the_gradient():
    torch = pytest.importorskip("torch")
    leaf = torch.tensor(X, requires_grad=True)
    box = Box(leaf)
    stopped = gradops.stop_gradient(box)
    assert not stopped.requires_grad
    (gradops.scaled_gradient(box, -1.0).sum() + ops.sum(ops.exp(box)) + stopped.sum()).backward()
    np.testing.assert_allclose(leaf.grad, -1 + np.exp(X))
    (found,) = gradops.autodiff.grad(ops.sum(ops.square(box)), box)
    np.testing.assert_allclose(found, 2 * X)
    np.testing.assert_allclose(gradops.gradient(ops.sum(ops.square(box)), box).detach(), 2 * X)


def test_objects_without_an_array_are_refused():
    with pytest.raises(ArgumentTypeError):
        ops.exp(Box("text"))
    with pytest.raises(ArgumentTypeError):
        ops.exp(object())


KERAS = """
import numpy as np, keras, gradops
from gradops import ops
x = np.array([[1.0, 2.0], [3.0, 4.0]], "float32")
v = keras.Variable(x)
y = ops.exp(v)
assert ops.dtype(y) == "float32" and type(y) is type(keras.ops.exp(v)), type(y)
np.testing.assert_allclose(ops.convert_to_numpy(y), np.exp(x), rtol=1e-6)
assert type(gradops.scaled_gradient(v, -1)) is type(keras.ops.exp(v))
entry = keras.Input((2,))
reverse = gradops.custom_gradient(lambda x: (x * 1.0, lambda upstream: upstream * -1.0))
out = ops.multiply(gradops.scaled_gradient(ops.tanh(entry), -1.0), np.array([1.0, 2.0], "float32"))
assert isinstance(out, keras.KerasTensor) and out.shape == (None, 2) and out.dtype == "float32"
assert isinstance(gradops.stop_gradient(out), keras.KerasTensor)
first, second = ops.split(entry, 2, axis=1)
assert first.shape == (None, 1)
model = keras.Model(entry, [out, ops.concatenate([second, first], axis=1)])
model.save("m.keras")
loaded = keras.models.load_model("m.keras")
for m in (model, loaded):
    a, b = m(x)
    np.testing.assert_allclose(ops.convert_to_numpy(a), np.tanh(x) * [1, 2], rtol=1e-5)
    np.testing.assert_allclose(ops.convert_to_numpy(b), x[:, ::-1])
own = keras.Model(entry, reverse(entry))
np.testing.assert_allclose(ops.convert_to_numpy(own(x)), x)
try:
    own.save("own.keras")
except gradops.errors.GradopsError as error:
    assert "Layer" in str(error), error
else:
    raise AssertionError("saved")
"""


@pytest.mark.long
@pytest.mark.parametrize(
    "backend", ["jax", *[pytest.param(name, marks=pytest.mark.long) for name in ("torch", "tensorflow")]]
)
def test_keras(backend, tmp_path):
    pytest.importorskip("keras")
    environment = {
        **os.environ,
        "KERAS_BACKEND": backend,
        "PYTHONPATH": os.path.dirname(os.path.dirname(gradops.__file__)),
    }
    done = subprocess.run([sys.executable, "-c", KERAS], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
