"""JAX kernels: reductions, products, normalisation, activations, attention, CTC."""

import jax
import jax.numpy as jnp
import numpy as np

from ..array.base import axes_of
from ..numpy import reductions as _numpy
from .base import floating, floats, native_dtype, together


def _wide(x):
    """The accumulator dtype for bools and small integers; None for other dtypes."""
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
    """A bound for ``max`` or ``min``.

    NumPy raises for an integer that the dtype cannot hold, which JAX would ignore.
    """
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
    if x.dtype.kind in "iu":  # JAX's `correlate` returns floats
        places = jnp.arange(x.size - window.size + 1)[:, None] + jnp.arange(window.size)
        return (x[places] * window).sum(-1, dtype=x.dtype)
    return jnp.correlate(x, window.conj(), "valid").astype(x.dtype)


# Activations, attention, CTC ------------------------------------------------------------------------------------------


# Activations.

sigmoid = floating(jax.nn.sigmoid)


def relu(x):
    return jax.nn.relu(x) if x.dtype != bool else x


@floating
def normal_cdf(x):
    if x.dtype.itemsize < 4:  # JAX rejects half precision
        return normal_cdf(x.astype(jnp.float32)).astype(x.dtype)
    return jax.scipy.special.ndtr(jnp.clip(x, -40, 40))  # avoids a second derivative of NaN at infinity


@floating
def softplus(x):
    """Softplus from elementary functions: second derivatives of loops ignore the rule of ``jax.nn.softplus``."""
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
    if x.dtype.itemsize < 4:  # half precision loses the tail
        return jax.nn.gelu(x.astype(jnp.float32), approximate).astype(x.dtype)
    return jax.nn.gelu(x, approximate)


# Connectionist temporal classification.


def ctc_beams(inputs, sequence_lengths, beam_width, top_paths, mask_index):
    batch, steps, _ = inputs.shape
    positions = native_dtype("int64")
    dtype = np.dtype("float32") if inputs.dtype == jnp.bfloat16 else inputs.dtype

    def search(inputs, sequence_lengths):
        inputs, sequence_lengths = np.asarray(inputs), np.asarray(sequence_lengths)
        labels, scores = _numpy.ctc_beams(inputs, sequence_lengths, beam_width, top_paths, mask_index)
        return labels.astype(positions), scores

    shapes = jax.ShapeDtypeStruct((top_paths, batch, steps), positions), jax.ShapeDtypeStruct((batch, top_paths), dtype)
    labels, scores = jax.pure_callback(search, shapes, inputs.astype(dtype), sequence_lengths)
    return labels, scores.astype(inputs.dtype)
