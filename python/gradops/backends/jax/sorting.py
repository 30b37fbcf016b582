"""JAX kernels: sorting and searching."""

import jax
import jax.numpy as jnp

from .base import jax_dtype, promoted


def sort(x, axis=-1):
    return jnp.sort(jnp.atleast_1d(x), axis, stable=True).reshape(x.shape if axis is not None else -1)


def argsort(x, axis=-1):
    order = jnp.argsort(jnp.atleast_1d(x), axis, stable=True)
    return order.astype(jax_dtype("int64")).reshape(x.shape if axis is not None else -1)


def searchsorted(sorted_sequence, values, side="left"):
    return jnp.searchsorted(*promoted(sorted_sequence, values), side).astype(jax_dtype("int64"))


def top_k(x, k, sorted=True):
    values, positions = jax.lax.top_k(x, int(k))
    return values, positions.astype(jax_dtype("int64"))
