"""TensorFlow kernels: windows of an image as columns and back."""

import tensorflow as tf

from .convolution import _transpose


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
