"""JAX kernels: shape."""

import jax.numpy as jnp

from .base import together

transpose = jnp.transpose
expand_dims = jnp.expand_dims
squeeze = jnp.squeeze
flip = jnp.flip
roll = jnp.roll
split = jnp.split


def reshape(x, newshape):
    return jnp.reshape(x, newshape)


def broadcast_to(x, shape):
    return jnp.broadcast_to(x, shape)


def concatenate(xs, axis=0):
    return jnp.concatenate(together(xs), axis)


def stack(xs, axis=0):
    return jnp.stack(together(xs), axis)
