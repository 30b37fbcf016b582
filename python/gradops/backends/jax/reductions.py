"""JAX kernels: reductions, products, normalisation."""

import jax
import jax.numpy as jnp
import numpy as np

from ..array.base import axes_of
from .base import floats, native_dtype, together


def _wide(x):
    """Bools and small integers add up in 64 bits."""
    dtype = x.dtype
    if dtype not in _wide_of:
        narrow = dtype.kind in "bi" or dtype.kind == "u" and dtype.itemsize < 8
        _wide_of[dtype] = native_dtype("int64") if narrow else None
    return _wide_of[dtype]


_wide_of: dict = {}


def sum(x, axis=None, keepdims=False):
    wide = _wide(x)
    if wide is None and not keepdims:
        return jnp.sum(x, axes_of(x, axis))
    return jnp.sum(x, axes_of(x, axis), dtype=wide, keepdims=keepdims)


def prod(x, axis=None, keepdims=False, dtype=None):
    return jnp.prod(x, axes_of(x, axis), dtype=_wide(x) if dtype is None else native_dtype(dtype), keepdims=keepdims)


def _held(number, x):
    """A bound; a whole number that the dtype does not hold is NumPy's error, which JAX leaves out without a word."""
    return np.asarray(number, x.dtype) if type(number) is int else number


def max(x, axis=None, keepdims=False, initial=None):
    return jnp.max(x, axes_of(x, axis), keepdims=keepdims, initial=_held(initial, x))


def min(x, axis=None, keepdims=False, initial=None):
    return jnp.min(x, axes_of(x, axis), keepdims=keepdims, initial=_held(initial, x))


def argmax(x, axis=None, keepdims=False):
    return jnp.argmax(x, axes_of(x, axis) if x.ndim else axes_of(x, axis) or None, keepdims=keepdims)


def argmin(x, axis=None, keepdims=False):
    return jnp.argmin(x, axes_of(x, axis) if x.ndim else axes_of(x, axis) or None, keepdims=keepdims)


def logsumexp(x, axis=None, keepdims=False):
    return jax.scipy.special.logsumexp(floats(x), axes_of(x, axis), keepdims=keepdims)


def _running(function):
    def kernel(x, axis=None, dtype=None):
        dtype = _wide(x) if dtype is None else native_dtype(dtype)
        if x.ndim or axis is None:
            return function(x, axis, dtype=dtype)
        axes_of(x, axis)
        return function(x, None, dtype=dtype).reshape(())

    return kernel


cumsum = _running(jnp.cumsum)
cumprod = _running(jnp.cumprod)


def einsum(subscripts, operands):
    return jnp.einsum(subscripts, *together(operands))


def sliding_product(x, window):
    if x.dtype.kind in "iu":  # of which JAX computes floats
        places = jnp.arange(x.size - window.size + 1)[:, None] + jnp.arange(window.size)
        return (x[places] * window).sum(-1, dtype=x.dtype)
    return jnp.correlate(x, window.conj(), "valid").astype(x.dtype)
