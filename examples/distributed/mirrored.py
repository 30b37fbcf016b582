"""TensorFlow on several devices with MirroredStrategy: each has its share of the batch and a copy of the weights.

    python mirrored.py      # one device
    python mirrored.py 2    # two: the same parameters

The model is the same as in ddp.py, with a checkpointed function in place of the scope, which does not work in graphs.
"""

import sys

import numpy as np
import tensorflow as tf

import gradops
from gradops import ops

count = int(sys.argv[1]) if len(sys.argv) > 1 else 1
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * count)


@gradops.custom_gradient
def rounded(x):
    return ops.round(x * 4.0) / 4.0, lambda upstream: upstream


@gradops.checkpoint
def features(w, x):
    return rounded(tf.tanh(x @ w))


def total(w, x, label, domain):
    """Return the sum of the losses divided by the size of the whole batch, because the devices' results are added."""
    h = features(w[0], x)
    guess, origin = h @ w[1], gradops.scaled_gradient(h, -0.5) @ w[2]
    other = gradops.stop_gradient(guess)
    return tf.reduce_sum((guess - label) ** 2 + (origin - domain) ** 2 + 0.1 * (origin - other) ** 2) / 16


rng = np.random.default_rng(3)
start = [rng.normal(size=shape) for shape in ((3, 4), (4, 1), (4, 1))]
batch = tuple(rng.normal(size=(16, columns)) for columns in (3, 1, 1))

strategy = tf.distribute.MirroredStrategy([f"CPU:{i}" for i in range(count)])
with strategy.scope():
    weights = [tf.Variable(w, aggregation=tf.VariableAggregation.SUM) for w in start]
batches = strategy.experimental_distribute_dataset(tf.data.Dataset.from_tensors(batch).unbatch().batch(16))


def part(*data):
    with tf.GradientTape() as tape:
        found = total(weights, *data)
    for w, g in zip(weights, tape.gradient(found, weights)):
        w.assign_sub(0.1 * g)


@tf.function(autograph=False)
def step(data):
    strategy.run(part, args=data)


for _ in range(10):
    for data in batches:
        step(data)
print(*np.concatenate([w.numpy().ravel() for w in weights]).tolist())
