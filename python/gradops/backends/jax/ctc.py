"""JAX kernels: connectionist temporal classification."""

import jax
import jax.numpy as jnp
import numpy as np

from ..numpy import ctc as _numpy
from .base import native_dtype


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
