"""TensorFlow kernels: windows: pooling, and blocks as columns."""

import math

import tensorflow as tf

from .convolution import _transpose, first, last, padded


def _pooled(pool, x, window, strides):
    """TensorFlow's pooling of 2 dimensions, for 1 to 3."""
    if len(window) == 1:
        return tf.squeeze(pool(tf.expand_dims(x, 1), (1, *window), (1, *strides), "VALID"), 1)
    if len(window) == 2:
        return pool(x, window, strides, "VALID")
    planes = pool(tf.reshape(x, [-1, *x.shape[2:]]), window[1:], strides[1:], "VALID")
    depth, height, width, channels = x.shape[1], *planes.shape[1:]
    columns = tf.reshape(planes, [-1, depth, height * width, channels])
    columns = pool(columns, (window[0], 1), (strides[0], 1), "VALID")
    return tf.reshape(columns, [-1, columns.shape[1], height, width, channels])


def window_max(x, window, strides, padding, channels_first):
    x = padded(last(x, channels_first), padding, -math.inf)
    y = _pooled(tf.nn.max_pool2d, x, window, strides)
    # TensorFlow starts from the least finite number, not from -inf.
    y = tf.where(tf.equal(y, x.dtype.min), tf.constant(-math.inf, x.dtype), y)
    return first(y, channels_first)


def window_sum(x, window, strides, padding, channels_first):
    x = padded(last(x, channels_first), padding)
    return first(_pooled(tf.nn.avg_pool2d, x, window, strides) * math.prod(window), channels_first)


def window_spread(y, sizes, window, strides, padding, channels_first):
    channels = y.shape[1 if channels_first else -1]
    shape = [tf.shape(y)[0], channels, *sizes] if channels_first else [tf.shape(y)[0], *sizes, channels]
    return _transpose(lambda x: window_sum(x, window, strides, padding, channels_first), tf.zeros(shape, y.dtype), y)


def window_columns(x, window, strides, padding, dilation):
    channels, *sizes = x.shape[1:]
    x = tf.pad(x, [[0, 0], [0, 0], *([p, p] for p in padding)])
    places = [
        (n + 2 * p - (k - 1) * d - 1) // s + 1 for n, k, s, p, d in zip(sizes, window, strides, padding, dilation)
    ]
    taps = []
    for i in range(window[0]):
        for j in range(window[1]):
            start = (i * dilation[0], j * dilation[1])
            key = [slice(t, t + (m - 1) * s + 1, s) for t, s, m in zip(start, strides, places)]
            taps.append(x[(slice(None), slice(None), *key)])
    return tf.reshape(tf.stack(taps, 2), [tf.shape(x)[0], channels * len(taps), places[0] * places[1]])


def column_sums(x, sizes, window, strides, padding, dilation):
    shape = [tf.shape(x)[0], x.shape[1] // (window[0] * window[1]), *sizes]

    def columns(image):
        return window_columns(tf.ensure_shape(image, [None, *shape[1:]]), window, strides, padding, dilation)

    return _transpose(columns, tf.zeros(shape, x.dtype), x)
