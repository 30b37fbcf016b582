"""JAX kernels: reductions."""

import jax
import jax.numpy as jnp

from .base import floats, jax_dtype


def _wide(x):
    """Bools and small integers add up in 64 bits."""
    dtype = x.dtype
    if dtype not in _wide_of:
        narrow = dtype.kind in "bi" or dtype.kind == "u" and dtype.itemsize < 8
        _wide_of[dtype] = jax_dtype("int64") if narrow else None
    return _wide_of[dtype]


_wide_of: dict = {}


def sum(x, axis=None, keepdims=False):
    wide = _wide(x)
    if wide is None and not keepdims:
        return jnp.sum(x, axis)
    return jnp.sum(x, axis, dtype=wide, keepdims=keepdims)


def prod(x, axis=None, keepdims=False, dtype=None):
    return jnp.prod(x, axis, dtype=_wide(x) if dtype is None else jax_dtype(dtype), keepdims=keepdims)


def mean(x, axis=None, keepdims=False):
    return jnp.mean(floats(x), axis, keepdims=keepdims)


def max(x, axis=None, keepdims=False, initial=None):
    return jnp.max(x, axis, keepdims=keepdims, initial=initial)


def min(x, axis=None, keepdims=False, initial=None):
    return jnp.min(x, axis, keepdims=keepdims, initial=initial)


def all(x, axis=None, keepdims=False):
    return jnp.all(x, axis, keepdims=keepdims)


def any(x, axis=None, keepdims=False):
    return jnp.any(x, axis, keepdims=keepdims)


def argmax(x, axis=None, keepdims=False):
    return jnp.argmax(x, axis, keepdims=keepdims)


def argmin(x, axis=None, keepdims=False):
    return jnp.argmin(x, axis, keepdims=keepdims)


def logsumexp(x, axis=None, keepdims=False):
    return jax.scipy.special.logsumexp(floats(x), axis, keepdims=keepdims)


def cumsum(x, axis=None, dtype=None):
    return jnp.cumsum(x, axis, dtype=_wide(x) if dtype is None else jax_dtype(dtype))


def cumprod(x, axis=None, dtype=None):
    return jnp.cumprod(x, axis, dtype=_wide(x) if dtype is None else jax_dtype(dtype))
