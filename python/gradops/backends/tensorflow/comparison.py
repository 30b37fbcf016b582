"""TensorFlow kernels: comparison of floating numbers."""

import tensorflow as tf

_BITS = {2: tf.int16, 4: tf.int32, 8: tf.int64}


def signbit(x):
    if x.dtype.is_floating:
        return tf.bitcast(x, _BITS[x.dtype.size]) < 0
    return tf.less(x, 0) if x.dtype.is_integer and not x.dtype.is_unsigned else tf.zeros_like(x, tf.bool)
