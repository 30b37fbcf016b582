"""TensorFlow kernels: joining and splitting."""

import tensorflow as tf

from .._keys import cuts
from .base import together


def concatenate(xs, axis=0):
    if xs[0].shape.rank == 0:
        raise ValueError("0-d tensors have no dimension to join along")
    return tf.concat(together(xs), axis)


def stack(xs, axis=0):
    return tf.stack(together(xs), axis)


def split(x, indices_or_sections, axis=0):
    if isinstance(indices_or_sections, int):
        return tf.split(x, indices_or_sections, axis)
    size = x.shape[axis]
    if size is None or any(isinstance(i, tf.Tensor) for i in indices_or_sections):
        edges = [0, *indices_or_sections, None]
        return [x[(slice(None),) * (axis % x.shape.rank) + (slice(a, b),)] for a, b in zip(edges, edges[1:])]
    edges = [0, *cuts(indices_or_sections, size), size]
    return tf.split(x, [b - a for a, b in zip(edges, edges[1:])], axis)


def unstack(x, num=None, axis=0):
    return tf.unstack(x, num=num, axis=axis)
