"""Flows on several processes and devices: ten steps give the parameters that one process gets on all the data."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import surrogates

HERE = Path(__file__).parent
pytestmark = pytest.mark.long


def run(*command: str, **environment: str) -> str:
    path = os.pathsep.join([str(HERE), str(HERE.parents[1] / "python")])
    environment = os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"} | environment
    done = subprocess.run([sys.executable, *command], env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.mark.parametrize(
    "how",
    [
        pytest.param("ddp", marks=pytest.mark.engine("PyTorch: DDP", flows=surrogates.FLOWS)),
        pytest.param("fsdp", marks=pytest.mark.engine("PyTorch: FSDP2", flows=surrogates.FLOWS)),
    ],
)
def test_torch(how, tmp_path):
    """DistributedDataParallel and FSDP2, on two gloo processes."""
    torch = pytest.importorskip("torch")
    if not torch.distributed.is_available():
        pytest.skip("PyTorch without distributed")
    import distributed_torch

    script, found = str(HERE / "distributed_torch.py"), str(tmp_path / "found.pt")
    run("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", script, how, found)
    found = torch.load(found)
    twins = surrogates.twins(torch, torch.Tensor.detach)
    for flow in surrogates.FLOWS:
        one = distributed_torch.Model(twins[flow])
        distributed_torch.train(one, one.parameters(), slice(None))
        for name, want in one.state_dict().items():
            torch.testing.assert_close(found[flow][name], want, rtol=1e-9, atol=1e-11, msg=f"{flow}: {name}")


MESH = """
import jax, jax.numpy as jnp, numpy as np, surrogates, sys
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

assert len(jax.devices()) == 8
mesh = jax.make_mesh((8,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
rng = np.random.default_rng(5)
X, Y = rng.normal(size=(16, 3)), rng.normal(size=(16, 2))
START = {"first": rng.normal(size=(3, 4)), "second": rng.normal(size=(4, 2))}
TWINS = surrogates.twins(jnp, jax.lax.stop_gradient)


def loss(f, weights, x, y):
    return jnp.mean((f(jnp.tanh(x @ weights["first"])) @ weights["second"] - y) ** 2)


def stepped(weights, gradients):
    return jax.tree.map(lambda w, g: w - 0.1 * g, weights, gradients)


def trained(step, x, y):
    weights = jax.tree.map(jnp.asarray, START)
    for _ in range(10):
        weights = step(weights, x, y)
    return weights


def one(f):
    return trained(jax.jit(lambda w, x, y: stepped(w, jax.grad(lambda w: loss(f, w, x, y))(w))), X, Y)


def by_shardings(f):
    rows, whole = NamedSharding(mesh, P("data")), NamedSharding(mesh, P())
    step = jax.jit(
        lambda w, x, y: stepped(w, jax.grad(lambda w: loss(f, w, x, y))(w)),
        in_shardings=(whole, rows, rows), out_shardings=whole,
    )
    return trained(step, jax.device_put(X, rows), jax.device_put(Y, rows))


def by_shard_map(f):
    def part(w, x, y):
        w = jax.tree.map(lambda a: jax.lax.pcast(a, "data", to="varying"), w)
        return jax.lax.pmean(jax.grad(lambda w: loss(f, w, x, y))(w), "data")

    gradient = jax.shard_map(part, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())
    return trained(jax.jit(lambda w, x, y: stepped(w, gradient(w, x, y))), X, Y)


for flow in sys.argv[1:]:
    want = one(TWINS[flow])
    for way in (by_shardings, by_shard_map):
        got = way(surrogates.FLOWS[flow])
        for name in want:
            np.testing.assert_allclose(got[name], want[name], rtol=1e-9, atol=1e-11, err_msg=f"{flow} {way.__name__}")
    print(flow)
"""


@pytest.mark.engine("JAX: meshes, by shardings and `shard_map`", flows=surrogates.FLOWS)
def test_jax_meshes():
    """Eight devices, with the shardings of `jit` and with `shard_map`."""
    pytest.importorskip("jax")
    out = run("-c", MESH, *surrogates.FLOWS, XLA_FLAGS="--xla_force_host_platform_device_count=8", JAX_PLATFORMS="cpu")
    assert out.split("\n")[:-1] == list(surrogates.FLOWS)


MIRRORED = """
import gradops, numpy as np, surrogates, sys
import tensorflow as tf

cpus = tf.config.list_physical_devices("CPU")
tf.config.set_logical_device_configuration(cpus[0], [tf.config.LogicalDeviceConfiguration()] * 2)
rng = np.random.default_rng(5)
X, Y = rng.normal(size=(16, 3)), rng.normal(size=(16, 2))
START = rng.normal(size=(3, 4)), rng.normal(size=(4, 2))
TWINS = surrogates.twins(tf, tf.stop_gradient)


def total(f, weights, x, y):
    return tf.reduce_sum((f(tf.tanh(x @ weights[0])) @ weights[1] - y) ** 2) / 32


def one(f):
    weights = [tf.Variable(w) for w in START]
    for _ in range(10):
        with tf.GradientTape() as tape:
            loss = total(f, weights, X, Y)
        for w, g in zip(weights, tape.gradient(loss, weights)):
            w.assign_sub(0.1 * g)
    return weights


def mirrored(f):
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    assert strategy.num_replicas_in_sync == 2
    with strategy.scope():
        weights = [tf.Variable(w, aggregation=tf.VariableAggregation.SUM) for w in START]
    data = strategy.experimental_distribute_dataset(tf.data.Dataset.from_tensors((X, Y)).unbatch().batch(16))

    def part(x, y):
        with tf.GradientTape() as tape:
            loss = total(f, weights, x, y)
        for w, g in zip(weights, tape.gradient(loss, weights)):
            w.assign_sub(0.1 * g)

    @tf.function(autograph=False)
    def step(batch):
        strategy.run(part, args=batch)

    for _ in range(10):
        for batch in data:
            step(batch)
    return weights


for flow in sys.argv[1:]:
    if flow == "checkpoint scope":
        try:
            mirrored(surrogates.FLOWS[flow])
        except gradops.errors.GradopsError as error:
            assert "checkpoint(f)" in str(error), error
            print(flow)
        continue
    for got, want in zip(mirrored(surrogates.FLOWS[flow]), one(TWINS[flow])):
        np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-9, atol=1e-11, err_msg=flow)
    print(flow)
"""


IN_GRAPHS = {"checkpoint scope": "TensorFlow's graphs hold no scope; `checkpoint(f)` works"}


@pytest.mark.engine("TensorFlow: `MirroredStrategy`", flows=surrogates.FLOWS, refused=IN_GRAPHS)
def test_mirrored_strategy():
    """Two TensorFlow devices. Checkpoint scopes cannot be part of its graphs: the error says so."""
    pytest.importorskip("tensorflow")
    assert run("-c", MIRRORED, *surrogates.FLOWS).split("\n")[:-1] == list(surrogates.FLOWS)


KERAS = """
import jax, keras, numpy as np, surrogates, sys

jax.config.update("jax_enable_x64", True)
keras.config.set_floatx("float64")
assert len(jax.devices()) == 8
rng = np.random.default_rng(5)
X, Y = rng.normal(size=(16, 3)), rng.normal(size=(16, 2))
TWINS = surrogates.twins(jax.numpy, jax.lax.stop_gradient)


class Through(keras.layers.Layer):
    def __init__(self, f):
        super().__init__()
        self.f = f

    def call(self, x):
        return self.f(x)


def trained(f, distribution):
    keras.distribution.set_distribution(distribution)
    keras.utils.set_random_seed(3)
    model = keras.Sequential([
        keras.Input((3,)), keras.layers.Dense(4, activation="tanh"), Through(f), keras.layers.Dense(2)
    ])
    model.compile(keras.optimizers.SGD(0.05, momentum=0.9), "mse")
    model.fit(X, Y, batch_size=16, epochs=10, shuffle=False, verbose=0)
    return [np.asarray(w.value) for w in model.weights]


devices = keras.distribution.list_devices()
by_data = keras.distribution.DataParallel(devices=devices)
layout = keras.distribution.LayoutMap(keras.distribution.DeviceMesh((2, 4), ["batch", "model"], devices))
layout[".*dense/kernel"] = (None, "model")
by_model = keras.distribution.ModelParallel(layout_map=layout, batch_dim_name="batch")
for flow in sys.argv[1:]:
    want = trained(TWINS[flow], None)
    for distribution in (by_data, by_model):
        for got, wanted in zip(trained(surrogates.FLOWS[flow], distribution), want, strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-11, err_msg=f"{flow} {distribution}")
    print(flow)
"""


@pytest.mark.engine("Keras' distribution API, on JAX", flows=surrogates.FLOWS)
def test_keras_distribution():
    """Eight devices: the batch sharded, then the batch and a layer's columns sharded."""
    pytest.importorskip("keras")
    pytest.importorskip("jax")
    eight = {"XLA_FLAGS": "--xla_force_host_platform_device_count=8", "JAX_PLATFORMS": "cpu", "KERAS_BACKEND": "jax"}
    assert run("-c", KERAS, *surrogates.FLOWS, **eight).split("\n")[:-1] == list(surrogates.FLOWS)


PLACED = """
import gradops, numpy as np, surrogates
import tensorflow as tf
from gradops import ops

cpus = tf.config.list_physical_devices("CPU")
tf.config.set_logical_device_configuration(cpus[0], [tf.config.LogicalDeviceConfiguration()] * 2)
X = np.random.default_rng(5).normal(size=(4, 4))
TWINS = surrogates.twins(tf, tf.stop_gradient)
ROWS = np.array([0, 2, 2, 1])
functions = {name: (f, TWINS[name]) for name, f in surrogates.FLOWS.items() if name != "checkpoint scope"}
functions |= {
    "solve": (lambda x: ops.solve(x, ops.exp(x)), lambda x: tf.linalg.solve(x, tf.exp(x))),
    "segment_sum": (lambda x: ops.segment_sum(x, ROWS, 4) * x, lambda x: tf.math.unsorted_segment_sum(x, ROWS, 4) * x),
    "top_k": (lambda x: ops.top_k(x * x, 2)[0], lambda x: tf.math.top_k(x * x, 2)[0]),
    "softmax": (lambda x: ops.softmax(x) * x, lambda x: tf.nn.softmax(x) * x),
}


def of(f):
    x = tf.Variable(X)
    with tf.GradientTape() as tape:
        y = f(x)
        total = tf.reduce_sum(y)
    return y, tf.convert_to_tensor(tape.gradient(total, x))


for name, (f, twin) in functions.items():
    with tf.device("CPU:1"):
        found = of(f)
    for got, want in zip(found, of(twin)):
        assert got.device.endswith("CPU:1"), (name, got.device)
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-12, err_msg=name)
"""


def test_tensorflow_devices():
    """On a second TensorFlow device, values and gradients stay there and equal the first device's."""
    pytest.importorskip("tensorflow")
    run("-c", PLACED)
