"""Keras' distribution API on JAX: `fit` on all devices, each with its share of the batch.

    export KERAS_BACKEND=jax
    python keras_distribution.py                                                      # one device
    XLA_FLAGS=--xla_force_host_platform_device_count=8 python keras_distribution.py   # eight: the same parameters

The model is the same as in ddp.py.
"""

import jax
import keras
import numpy as np

import gradops
from gradops import ops

jax.config.update("jax_enable_x64", True)
keras.config.set_floatx("float64")
keras.utils.set_random_seed(3)
if len(jax.devices()) > 1:
    keras.distribution.set_distribution(keras.distribution.DataParallel(devices=keras.distribution.list_devices()))


@gradops.custom_gradient
def rounded(x):
    return ops.round(x * 4) / 4, lambda upstream: upstream


class Rounded(keras.layers.Layer):
    def call(self, x):
        return gradops.checkpoint(rounded)(x)


class Reversed(keras.layers.Layer):
    def call(self, x):
        return gradops.scaled_gradient(x, -0.5)


class Stopped(keras.layers.Layer):
    def call(self, x):
        return gradops.stop_gradient(x)


x = keras.Input((3,))
h = Rounded()(keras.layers.Dense(4, activation="tanh")(x))
guess = keras.layers.Dense(1)(h)
origin = keras.layers.Dense(1)(Reversed()(h))
model = keras.Model(x, [guess, origin, origin - Stopped()(guess)])
model.compile(keras.optimizers.SGD(0.05), ["mse", "mse", "mse"], loss_weights=[1.0, 1.0, 0.1])
rng = np.random.default_rng(3)
columns = [rng.normal(size=(16, n)) for n in (3, 1, 1)]
model.fit(columns[0], [*columns[1:], np.zeros((16, 1))], batch_size=16, epochs=10, shuffle=False, verbose=0)
print(*np.concatenate([np.ravel(keras.ops.convert_to_numpy(w)) for w in model.weights]).tolist())
