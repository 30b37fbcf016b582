"""JAX kernels: activations, attention, CTC."""

import jax
import jax.numpy as jnp
import numpy as np

from ..array.base import axes_of
from ..numpy import nn as _numpy
from .base import floating, floats, native_dtype

# Activations.

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
    """The value by formulas: in second derivatives of loops JAX drops those of ``jax.nn.softplus``."""
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
