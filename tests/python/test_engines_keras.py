"""Flows in Keras layers, trained by ``fit`` on each Keras backend in a separate process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import surrogates

pytest.importorskip("keras")
HERE = Path(__file__).parent

PROGRAM = """
import sys
import importlib
import keras, numpy as np, pytest, surrogates
from keras import ops as k

backend = keras.backend.backend()
library = importlib.import_module({"torch": "torch", "jax": "jax.numpy", "tensorflow": "tensorflow"}[backend])
keras.config.set_floatx("float64")
TWINS = surrogates.twins(library, k.stop_gradient)  # Keras's sine is float32 on JAX
rng = np.random.default_rng(5)
X, Y = rng.normal(size=(16, 3)), rng.normal(size=(16, 2))


class Through(keras.layers.Layer):
    def __init__(self, f):
        super().__init__()
        self.f = f

    def build(self, shape):
        self.scale = self.add_weight(shape=(shape[-1],), initializer="ones")

    def call(self, x):
        return self.f(x * self.scale)


def train(f, **how):
    keras.utils.set_random_seed(3)
    first, last = keras.layers.Dense(4, activation="tanh"), keras.layers.Dense(2)
    model = keras.Sequential([keras.Input((3,)), first, Through(f), last])
    model.compile(keras.optimizers.SGD(0.05, momentum=0.9), "mse", **how)
    model.fit(X, Y, batch_size=8, epochs=5, shuffle=False, verbose=0)
    return [np.asarray(k.convert_to_numpy(w)) for w in model.weights]


def mixed_precision():
    # Layers compute in float16, with scaled losses; variables stay float32. What a flow gives is float16 too.
    keras.config.set_floatx("float32")
    for policy in ("mixed_float16", "mixed_bfloat16"):
        keras.mixed_precision.set_dtype_policy(policy)
        for flow in ("custom", "reversal", "checkpoint"):
            seen = []

            def noted(x):
                y = surrogates.FLOWS[flow](x)
                if getattr(x, "device", None) is None or str(x.device) != "meta":  # by which shapes are found out
                    seen.append((x, y))
                return y

            mine, other = train(noted), train(TWINS[flow])
            assert seen
            for given, result in seen:
                kinds = [keras.backend.standardize_dtype(x.dtype) for x in (given, result)]
                assert kinds == [policy.removeprefix("mixed_")] * 2, (flow, kinds, given)
            for a, b in zip(mine, other, strict=True):
                assert a.dtype == "float32"
                np.testing.assert_allclose(a, b, atol=1e-2 if policy == "mixed_float16" else 5e-2, err_msg=flow)


if not sys.argv[1:]:
    mixed_precision()
for flow in sys.argv[1:]:
    for how in ({"run_eagerly": True}, {"jit_compile": False}, {"jit_compile": True}):
        if backend == "torch" and how != {"jit_compile": False}:
            continue  # eager is what it does; its compiler is PyTorch's, see test_engines_torch
        if flow == "checkpoint scope" and backend == "tensorflow":  # a layer of Keras's is a graph
            with pytest.raises(Exception, match="gradient_checkpoint_scope does not work in a TensorFlow graph"):
                train(surrogates.FLOWS[flow], **how)
            continue
        for mine, other in zip(train(surrogates.FLOWS[flow], **how), train(TWINS[flow], **how), strict=True):
            np.testing.assert_allclose(mine, other, rtol=1e-8, atol=1e-10, err_msg=f"{flow} {how}")
    print(flow)
"""


IN_GRAPHS = {"checkpoint scope": "TensorFlow's graphs hold no scope; `checkpoint(f)` works"}
KERAS = [
    pytest.param("torch", marks=pytest.mark.engine("Keras on PyTorch", flows=surrogates.FLOWS)),
    pytest.param(
        "tensorflow", marks=pytest.mark.engine("Keras on TensorFlow", flows=surrogates.FLOWS, refused=IN_GRAPHS)
    ),
    pytest.param("jax", marks=pytest.mark.engine("Keras on JAX", flows=surrogates.FLOWS)),
]


SAVED = """
import sys
import keras, numpy as np
import gradops
from gradops import ops

register = keras.saving.register_keras_serializable("tests")

@register
@gradops.custom_gradient
def steep(x):
    return ops.relu(x), lambda upstream: upstream * 2.0

def smooth(x):
    return ops.tanh(x)

recomputed = register(gradops.checkpoint(smooth))
known_by_name = gradops.custom_gradient(lambda x: ops.sin(x), lambda x, upstream: upstream)
given = keras.Input((3,))
dense = keras.Sequential([keras.Input((3,)), keras.layers.Dense(4, activation=steep),
                          keras.layers.Dense(2, activation=recomputed)])
functional = keras.Model(given, steep(keras.layers.Dense(2)(given)))
other = keras.Sequential([keras.Input((3,)), keras.layers.Dense(4, activation=known_by_name)])
x = np.random.default_rng(0).normal(size=(5, 3)).astype("float32")
for model, custom in ((dense, {}), (functional, {}), (other, {"<lambda>": known_by_name})):
    model.save(sys.argv[1])
    loaded = keras.models.load_model(sys.argv[1], custom_objects=custom)
    np.testing.assert_array_equal(loaded.predict(x, verbose=0), model.predict(x, verbose=0))
    with keras.saving.custom_object_scope(custom):
        copy = keras.models.clone_model(model)
    copy.set_weights(model.get_weights())
    np.testing.assert_array_equal(copy.predict(x, verbose=0), model.predict(x, verbose=0))
assert loaded.layers[0].activation is known_by_name

@register
def changed(x, y):
    return keras.ops.sin(x) * y, {"x": x}

# Keras marks the product of a dense KerasTensor and a number as sparse
derivatives = keras.Model(given, ops.jvp(changed, (given, given * 2), (ops.cos(given * 3), given), has_aux=True))
derivatives.save(sys.argv[1])
expected = np.cos(x) * np.cos(3 * x) * 2 * x + np.sin(x) * x
for model in (derivatives, keras.models.load_model(sys.argv[1]), keras.models.clone_model(derivatives)):
    np.testing.assert_allclose(keras.ops.convert_to_numpy(model(x)[1]), expected, atol=1e-5)
arguments = changed, (keras.ops.sin(x), keras.ops.cos(x)), (keras.ops.exp(x), keras.ops.cos(x))
for mine, theirs in zip(ops.jvp(*arguments, has_aux=True)[:2], keras.ops.jvp(*arguments, has_aux=True)[:2]):
    np.testing.assert_allclose(keras.ops.convert_to_numpy(mine), keras.ops.convert_to_numpy(theirs), rtol=1e-5)

keras.Model(given, ops.sin(keras.layers.Dense(2)(given))).save(sys.argv[1].replace("model.keras", "ops.keras"))
unknown = keras.Model(given, known_by_name(keras.layers.Dense(2)(given)))
try:
    unknown.save(sys.argv[1])
except gradops.errors.ArgumentTypeError as error:
    assert "register_keras_serializable" in str(error), error
else:
    raise AssertionError("saved")
"""


LOADED = """
import sys
import keras, numpy as np
import gradops

model = keras.models.load_model(sys.argv[1])
x = np.random.default_rng(0).normal(size=(5, 3))
(matrix, bias) = model.get_weights()
np.testing.assert_allclose(model.predict(x, verbose=0), np.sin(x @ matrix + bias), rtol=1e-5)
"""


def run(backend: str, *flows: str) -> list[str]:
    return program(PROGRAM, backend, *flows)


@pytest.mark.parametrize(
    "backend", ["torch", *(pytest.param(b, marks=pytest.mark.long) for b in ("tensorflow", "jax"))]
)
def test_models_with_registered_functions_can_be_saved_and_cloned(backend, tmp_path):
    program(SAVED, backend, str(tmp_path / "model.keras"))
    program(LOADED, backend, str(tmp_path / "ops.keras"))


def program(source: str, backend: str, *arguments: str) -> list[str]:
    pytest.importorskip(backend)
    environment = os.environ | {
        "KERAS_BACKEND": backend,
        "PYTHONPATH": os.pathsep.join([str(HERE), str(HERE.parents[1] / "python")]),
    }
    command = [sys.executable, "-c", source, *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.split("\n")[:-1]


@pytest.mark.long
@pytest.mark.parametrize("backend", KERAS)
def test_training(backend):
    assert run(backend, *surrogates.FLOWS) == list(surrogates.FLOWS)


@pytest.mark.long
@pytest.mark.parametrize("backend", ["torch", "tensorflow", "jax"])
def test_mixed_precision(backend):
    run(backend)
