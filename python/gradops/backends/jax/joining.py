"""JAX kernels: joining and splitting."""

import jax.numpy as jnp

from .base import together

split = jnp.split


def concatenate(xs, axis=0):
    return jnp.concatenate(together(xs), axis)


def stack(xs, axis=0):
    return jnp.stack(together(xs), axis)


def unstack(x, num=None, axis=0):
    return list(jnp.unstack(x, axis=axis))
