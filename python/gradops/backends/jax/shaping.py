"""JAX kernels: shape."""

import jax.numpy as jnp

from .._keys import turns
from ..numpy.base import axes_of
from .base import addressable, jax_dtype

transpose = jnp.transpose
expand_dims = jnp.expand_dims


def reshape(x, newshape):
    return jnp.reshape(x, newshape)


def squeeze(x, axis=None):
    return jnp.squeeze(x, axes_of(x, axis))


def flip(x, axis=None):
    return jnp.flip(x, axes_of(x, axis))


def roll(x, shift, axis=None):
    return jnp.roll(x, *turns(shift, axis if x.ndim else axes_of(x, axis) or None))


def broadcast_to(x, shape):
    return jnp.broadcast_to(x, addressable(shape))


def view(x, dtype=None):
    return x if dtype is None else x.view(jax_dtype(dtype))
