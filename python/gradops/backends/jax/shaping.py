"""JAX kernels: shape."""

import jax.numpy as jnp

from .base import jax_dtype

transpose = jnp.transpose
expand_dims = jnp.expand_dims
squeeze = jnp.squeeze
flip = jnp.flip
roll = jnp.roll


def reshape(x, newshape):
    return jnp.reshape(x, newshape)


def broadcast_to(x, shape):
    return jnp.broadcast_to(x, shape)


def view(x, dtype=None):
    return x if dtype is None else x.view(jax_dtype(dtype))
