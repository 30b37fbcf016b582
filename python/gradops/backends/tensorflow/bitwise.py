"""TensorFlow kernels: whole numbers."""

import tensorflow as tf

from .base import arithmetic, counting


def _bits(function, logical):
    @arithmetic
    def kernel(x1, x2):
        return logical(x1, x2) if x1.dtype == tf.bool else function(x1, x2)

    return kernel


bitwise_and = _bits(tf.bitwise.bitwise_and, tf.logical_and)
bitwise_or = _bits(tf.bitwise.bitwise_or, tf.logical_or)
bitwise_xor = _bits(tf.bitwise.bitwise_xor, tf.math.logical_xor)


def _shift(function, emptied):
    """A shift; beyond the width of the dtype, to which TensorFlow cuts it, nothing is left but the sign."""

    @counting
    def kernel(x, by):
        beyond = by >= 8 * x.dtype.size if x.dtype.is_unsigned else (by < 0) | (by >= 8 * x.dtype.size)
        return tf.where(beyond, emptied(x), function(x, by))

    return kernel


left_shift = _shift(tf.bitwise.left_shift, tf.zeros_like)
right_shift = _shift(tf.bitwise.right_shift, lambda x: -tf.cast(x < 0, x.dtype) if not x.dtype.is_unsigned else x * 0)


def bitwise_not(x):
    return tf.logical_not(x) if x.dtype == tf.bool else tf.bitwise.invert(x)


def _absolute(x):
    return x if x.dtype.is_unsigned else tf.abs(x)


@arithmetic
def gcd(x1, x2):
    """Euclid's algorithm on all elements at once."""
    x1, x2 = x1 + tf.zeros_like(x2), x2 + tf.zeros_like(x1)

    def step(a, b):
        done = tf.equal(b, 0)
        rest = tf.math.floormod(a, tf.where(done, tf.ones_like(b), b))
        return tf.where(done, a, b), tf.where(done, b, rest)

    return _absolute(tf.while_loop(lambda a, b: tf.reduce_any(tf.not_equal(b, 0)), step, (x1, x2))[0])


@arithmetic
def lcm(x1, x2):
    divisor = gcd(x1, x2)
    divisor = tf.where(tf.equal(divisor, 0), tf.ones_like(divisor), divisor)
    return _absolute(x1) // divisor * _absolute(x2)
