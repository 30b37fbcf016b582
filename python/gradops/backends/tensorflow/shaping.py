"""TensorFlow kernels: shape."""

import tensorflow as tf

from .._keys import turns
from .base import axes_of, sizes, tf_dtype


def _sizes(shape):
    return [-1 if n is None else n for n in (shape if isinstance(shape, (tuple, list)) else (shape,))]


def reshape(x, newshape):
    return tf.reshape(x, newshape if isinstance(newshape, (tf.Tensor, tf.TensorShape)) else _sizes(newshape))


def transpose(x, axes=None):
    return tf.transpose(x, None if axes is None else [a % x.shape.rank for a in axes])


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
    if isinstance(shape, (tuple, list)) and None in [*shape]:
        raise TypeError(f"sizes must be whole numbers; got {tuple(shape)}")
    return tf.broadcast_to(x, shape if isinstance(shape, (tf.Tensor, tf.TensorShape)) else _sizes(shape))


def flip(x, axis=None):
    return tf.reverse(x, axes_of(x, axis))


def roll(x, shift, axis=None):
    shift, axis = turns(shift, axis if x.shape.rank else axes_of(x, axis) or None)
    if axis is None:
        return tf.reshape(tf.roll(tf.reshape(x, [-1]), shift, 0), tf.shape(x))
    return tf.roll(x, shift, axis)


def view(x, dtype=None):
    if dtype is None:
        return x
    target = tf_dtype(dtype)
    if x.dtype == target:
        return x
    x = tf.stop_gradient(x)  # bits have no slope, and TensorFlow no derivative for it
    if x.dtype == tf.bool:
        x = tf.cast(x, tf.uint8)
    read = tf.uint8 if target == tf.bool else target
    if x.dtype.size == read.size:
        y = tf.bitcast(x, read)
    elif x.dtype.size > read.size:
        y = tf.reshape(tf.bitcast(x, read), [*sizes(x)[:-1], x.shape[-1] * (x.dtype.size // read.size)])
    else:
        ratio = read.size // x.dtype.size
        y = tf.bitcast(tf.reshape(x, [*sizes(x)[:-1], x.shape[-1] // ratio, ratio]), read)
    return tf.cast(y, target)
