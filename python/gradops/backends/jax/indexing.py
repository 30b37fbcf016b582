"""JAX kernels: indexing."""

import jax
import jax.numpy as jnp
import numpy as np


def native_key(key):
    """A key as JAX takes it: lists become arrays."""
    if isinstance(key, tuple):
        return tuple(np.asarray(k) if isinstance(k, list) else k for k in key)
    return np.asarray(key) if isinstance(key, list) else key


def check_key(x, key) -> None:
    """Raise for positions out of range, which JAX would clamp; inside a trace they are unknown."""
    parts = [k for k in (key if isinstance(key, tuple) else (key,)) if k is not None]
    used = sum(k is not Ellipsis for k in parts)
    if used != len(parts):
        at = next(i for i, k in enumerate(parts) if k is Ellipsis)
        parts[at : at + 1] = [slice(None)] * (x.ndim - used)
    dim = 0
    for part in parts:
        if isinstance(part, slice):
            dim += 1
            continue
        if isinstance(part, jax.core.Tracer):
            dim += 1
            continue
        values = np.asarray(part)
        if values.dtype == bool:
            dim += max(values.ndim, 1)
            continue
        if values.size and dim < x.ndim and not (-x.shape[dim] <= values.min() and values.max() < x.shape[dim]):
            raise IndexError(f"index {values.ravel()[:4]} is out of range for a dimension of {x.shape[dim]}")
        dim += 1


def get_item(x, key):
    key = native_key(key)
    check_key(x, key)
    return x[key]


def take(x, indices, axis=None):
    size = x.size if axis is None else x.shape[axis]
    if not isinstance(indices, jax.core.Tracer):
        values = np.asarray(indices)
        if values.size and not (-size <= values.min() and values.max() < size):
            raise IndexError(f"index {values.ravel()[:4]} is out of range for a dimension of {size}")
    return jnp.take(x, indices.astype(jnp.int32) if indices.dtype == bool else indices, axis, mode="wrap")


def add_at(x, key, updates):
    return x.at[native_key(key)].add(updates.astype(x.dtype))
