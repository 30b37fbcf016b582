"""TensorFlow kernels: bounds and exceptions."""

import tensorflow as tf

from .base import counting, floating_arithmetic, in_int64, stepped


@counting
def fmod(x1, x2):
    if not x1.dtype.is_floating:
        return _truncatemod(x1, x2)
    x2 = tf.abs(x2)
    return tf.where(x1 < 0, -tf.math.floormod(-x1, x2), tf.math.floormod(x1, x2))


_truncatemod = in_int64(tf.truncatemod, tf.int8, tf.uint8, tf.int16, tf.uint16, tf.uint32, tf.uint64)


@floating_arithmetic
def nextafter(x1, x2):
    short = x1.dtype in (tf.float16, tf.bfloat16)  # for which TensorFlow has no kernel
    return stepped((_next_of_two_bytes if short else tf.math.nextafter)(x1, x2), x1, x2)


def _next_of_two_bytes(x, to):
    """By their bits, which as whole numbers are in the order of what they stand for, apart from the sign."""
    bits = tf.bitcast(x, tf.int16)
    away = tf.where(tf.equal(to > x, x > 0), bits + 1, bits - 1)
    least = tf.bitcast(tf.where(to > 0, tf.constant(1, tf.int16), tf.constant(-(2**15) + 1, tf.int16)), x.dtype)
    moved = tf.where(tf.equal(x, 0), least, tf.bitcast(away, x.dtype))
    return tf.where(tf.equal(x, to), to, tf.where(tf.math.is_nan(x) | tf.math.is_nan(to), x + to, moved))
