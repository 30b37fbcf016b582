"""JAX kernels: creation."""

import jax.numpy as jnp

from ... import defaults
from .base import addressable, jax_dtype


def _dtype(name):
    return jax_dtype(name or defaults.floatx())


def zeros(shape, dtype=None):
    return jnp.zeros(addressable(shape), _dtype(dtype))


def ones(shape, dtype=None):
    return jnp.ones(addressable(shape), _dtype(dtype))


def zeros_like(x, dtype=None):
    return jnp.zeros_like(x, dtype=x.dtype if dtype is None else jax_dtype(dtype))


def ones_like(x, dtype=None):
    return jnp.ones_like(x, dtype=x.dtype if dtype is None else jax_dtype(dtype))


def arange(start, stop=None, step=None, dtype=None):
    if stop is None:
        start, stop = 0, start
    step = 1 if step is None else step
    values = [v.item() if hasattr(v, "item") else v for v in (start, stop, step)]
    if dtype is None:
        dtype = "int64" if all(isinstance(v, int) for v in values) else defaults.floatx()
    made = jax_dtype(dtype)
    return jnp.arange(*values).astype(made) if made.kind in "bc" else jnp.arange(*values, dtype=made)


def eye(N, M=None, k=0, dtype=None):
    addressable((N, N if M is None else M))
    return jnp.eye(N, M, k, _dtype(dtype))
