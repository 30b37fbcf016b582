"""TensorFlow kernels: bounds and exceptions."""

import tensorflow as tf

from .base import arithmetic, floating_arithmetic, stepped


@arithmetic
def fmod(x1, x2):
    if not x1.dtype.is_floating:
        return tf.truncatemod(x1, x2)
    x2 = tf.abs(x2)
    return tf.where(x1 < 0, -tf.math.floormod(-x1, x2), tf.math.floormod(x1, x2))


nextafter = floating_arithmetic(lambda x1, x2: stepped(tf.math.nextafter(x1, x2), x1, x2))
