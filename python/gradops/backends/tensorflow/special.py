"""TensorFlow kernels: special functions."""

import tensorflow as tf

from .base import floating, floating_arithmetic, floats

erfc = floating(tf.math.erfc)
erfinv = floating(tf.math.erfinv)
rsqrt = floating(tf.math.rsqrt)
i0 = floating(tf.math.bessel_i0)
i1 = floating(tf.math.bessel_i1)


@floating_arithmetic
def hypot(x1, x2):
    scale = tf.stop_gradient(tf.maximum(tf.abs(x1), tf.abs(x2)))
    plain = (scale == 0) | tf.math.is_inf(scale)
    scale = tf.where(plain, tf.ones_like(scale), scale)
    squares = tf.square(x1 / scale) + tf.square(x2 / scale)
    zero = squares == 0  # where the derivative would be 0 / 0
    return tf.where(zero, tf.zeros_like(squares), scale * tf.sqrt(tf.where(zero, tf.ones_like(squares), squares)))


def ldexp(x1, x2):
    x1, half = floats(tf.convert_to_tensor(x1)), x2 // 2
    two = tf.constant(2, x1.dtype)
    return x1 * tf.pow(two, tf.cast(half, x1.dtype)) * tf.pow(two, tf.cast(x2 - half, x1.dtype))


lgamma = floating(tf.math.lgamma)


def polygamma(x, n):
    x = floats(x)
    return tf.math.polygamma(tf.constant(n, x.dtype), x) if n else tf.math.digamma(x)
