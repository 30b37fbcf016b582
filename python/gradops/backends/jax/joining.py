"""JAX kernels: joining and splitting."""

import jax.numpy as jnp

from .._keys import cuts
from .base import together


def concatenate(xs, axis=0):
    if axis is None:
        raise TypeError("an axis is needed")
    return jnp.concatenate(together(xs), axis)


def stack(xs, axis=0):
    return jnp.stack(together(xs), axis)


def split(x, indices_or_sections, axis=0):
    if not isinstance(indices_or_sections, int):
        indices_or_sections = cuts(indices_or_sections, x.shape[axis])
    return jnp.split(x, indices_or_sections, axis)


def unstack(x, num=None, axis=0):
    return list(jnp.unstack(x, axis=axis))
