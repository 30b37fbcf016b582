"""JAX kernels: activations."""

import jax
import jax.numpy as jnp

from ..array.base import axes_of
from .base import floating, floats

sigmoid = floating(jax.nn.sigmoid)


def relu(x):
    return jax.nn.relu(x) if x.dtype != bool else x


@floating
def normal_cdf(x):
    if x.dtype.itemsize < 4:  # which JAX refuses
        return jax.scipy.special.ndtr(x.astype(jnp.float32)).astype(x.dtype)
    return jax.scipy.special.ndtr(x)


@floating
def softplus(x):
    """By formulas that have its derivatives: in second ones of loops JAX drops those of ``jax.nn.softplus``."""
    above = x >= 0
    y = jnp.log1p(jnp.exp(jnp.where(above, -x, x)))
    return jnp.where(above, x + y, y)


def softmax(x, axis=-1):
    return jax.nn.softmax(floats(x), axes_of(x, axis))


def log_softmax(x, axis=-1):
    return jax.nn.log_softmax(floats(x), axes_of(x, axis))


silu = floating(jax.nn.silu)


def log_sigmoid(x):
    return -softplus(-floats(x))


def gelu(x, approximate=True):
    x = floats(x)
    if x.dtype.itemsize < 4:  # in which the tail is lost
        return jax.nn.gelu(x.astype(jnp.float32), approximate).astype(x.dtype)
    return jax.nn.gelu(x, approximate)
