"""TensorFlow kernels: activations."""

import tensorflow as tf

from .base import floating, floats

sigmoid = floating(tf.math.sigmoid)
relu = tf.nn.relu
softplus = floating(tf.math.softplus)


def softmax(x, axis=-1):
    x = floats(x)
    if isinstance(axis, int):
        return tf.nn.softmax(x, axis)
    return tf.exp(log_softmax(x, axis))


def log_softmax(x, axis=-1):
    x = floats(x)
    if isinstance(axis, int):
        return tf.nn.log_softmax(x, axis)
    return x - tf.reduce_logsumexp(x, axis, keepdims=True)
