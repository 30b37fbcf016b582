"""TensorFlow kernels: sorting and searching."""

import tensorflow as tf

from .base import existing, promoted


def _key(x):
    """``x`` as what ``tf.argsort`` orders right: signed, and infinite for NaN."""
    if x.dtype.is_floating:
        return tf.where(tf.math.is_nan(x), tf.constant(float("inf"), x.dtype), x)
    if x.dtype == tf.uint64:
        return tf.bitcast(x, tf.int64) ^ tf.int64.min
    return tf.cast(x, tf.int64)


def _line(x, axis):
    """``x`` with the axis last, and how to undo that."""
    if existing(x, axis) is None or x.shape.rank == 0:
        return tf.reshape(x, [-1]), lambda y: y if axis is None else tf.reshape(y, [])
    rank = x.shape.rank
    if not -rank <= axis < rank:
        raise IndexError(f"axis {axis} is out of range for {rank} dimensions")
    axis %= rank
    if axis == rank - 1:
        return x, lambda y: y
    order = [i for i in range(rank) if i != axis] + [axis]
    back = [order.index(i) for i in range(rank)]
    return tf.transpose(x, order), lambda y: tf.transpose(y, back)


def _order(x):
    """Positions in ascending order along the last axis, NaN last; equal elements keep their order."""
    order = tf.argsort(_key(x), stable=True)
    if x.dtype.is_floating:
        missing = tf.math.is_nan(x)

        def behind_infinity():
            last = tf.cast(tf.gather(missing, order, batch_dims=x.shape.rank - 1), tf.int32)
            return tf.gather(order, tf.argsort(last, stable=True), batch_dims=x.shape.rank - 1)

        order = tf.cond(tf.reduce_any(missing), behind_infinity, lambda: order)
    return tf.cast(order, tf.int64)


def sort(x, axis=-1):
    line, back = _line(x, axis)
    return back(tf.gather(line, _order(line), batch_dims=line.shape.rank - 1))


def argsort(x, axis=-1):
    line, back = _line(x, axis)
    return back(_order(line))


def searchsorted(sorted_sequence, values, side="left"):
    sequence, values = promoted(sorted_sequence, values)
    if not sequence.dtype.is_floating:
        sequence, values = _key(sequence), _key(values)
    at = tf.searchsorted(sequence, tf.reshape(values, [-1]), side, tf.int64)
    at = tf.reshape(at, tf.shape(values))
    if values.dtype.is_floating:
        at = tf.where(tf.math.is_nan(values), tf.size(sequence, tf.int64), at)
    return at
