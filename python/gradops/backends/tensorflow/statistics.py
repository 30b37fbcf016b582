"""TensorFlow kernels: statistics."""

import tensorflow as tf


def sliding_product(x, window):
    if x.dtype.is_complex:
        parts = [tf.math.real(v) for v in (x, window)] + [tf.math.imag(v) for v in (x, window)]
        a, b, c, d = parts
        return tf.complex(_slide(a, b) - _slide(c, d), _slide(a, d) + _slide(c, b))
    if x.dtype.is_integer:
        width = window.shape[0]
        places = tf.range(tf.size(x) - width + 1)[:, None] + tf.range(width)
        products = tf.cast(tf.gather(x, places), tf.int64) * tf.cast(window, tf.int64)
        return tf.cast(tf.reduce_sum(products, -1), x.dtype)
    return _slide(x, window)


def _slide(x, window):
    return tf.nn.conv1d(x[None, :, None], window[:, None, None], 1, "VALID")[0, :, 0]
