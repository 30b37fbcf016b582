"""TensorFlow kernels: shape."""

import tensorflow as tf

from .base import axes_of, together


def _sizes(shape):
    return [-1 if n is None else n for n in (shape if isinstance(shape, (tuple, list)) else (shape,))]


def reshape(x, newshape):
    return tf.reshape(x, newshape if isinstance(newshape, (tf.Tensor, tf.TensorShape)) else _sizes(newshape))


def transpose(x, axes=None):
    return tf.transpose(x, axes)


def expand_dims(x, axis):
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    rank = x.shape.rank + len(axes)
    found = [a + rank if a < 0 else a for a in axes]
    if any(not 0 <= a < rank for a in found) or len(set(found)) != len(found):
        raise IndexError(f"axis {axes} is out of range for {rank} dimensions")
    for a in sorted(found):
        x = tf.expand_dims(x, a)
    return x


def squeeze(x, axis=None):
    return tf.squeeze(x, None if axis is None else axes_of(x, axis))


def broadcast_to(x, shape):
    return tf.broadcast_to(x, shape if isinstance(shape, (tf.Tensor, tf.TensorShape)) else _sizes(shape))


def flip(x, axis=None):
    return tf.reverse(x, axes_of(x, axis))


def roll(x, shift, axis=None):
    if axis is None:
        return tf.reshape(tf.roll(tf.reshape(x, [-1]), shift, 0), tf.shape(x))
    return tf.roll(x, shift, axis)


def concatenate(xs, axis=0):
    return tf.concat(together(xs), axis)


def stack(xs, axis=0):
    return tf.stack(together(xs), axis)


def split(x, indices_or_sections, axis=0):
    if isinstance(indices_or_sections, int):
        return tf.split(x, indices_or_sections, axis)
    size = x.shape[axis]
    edges = [0, *(min(max(int(i) + (size if i < 0 else 0), 0), size) for i in indices_or_sections), size]
    return tf.split(x, [max(b - a, 0) for a, b in zip(edges, edges[1:])], axis)
