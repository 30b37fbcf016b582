"""JAX kernels: activations."""

import jax

from .base import floating, floats

sigmoid = floating(jax.nn.sigmoid)
relu = jax.nn.relu


def softplus(x):
    return jax.nn.softplus(floats(x))


def softmax(x, axis=-1):
    return jax.nn.softmax(floats(x), axis)


def log_softmax(x, axis=-1):
    return jax.nn.log_softmax(floats(x), axis)
