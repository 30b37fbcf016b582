"""TensorFlow kernels: activations, attention, CTC."""

import math

import tensorflow as tf

from ..numpy import nn as _numpy
from .base import existing, floating, floats, in_single, of_order

# Activations.

sigmoid = floating(tf.math.sigmoid)
relu = of_order(tf.nn.relu)
normal_cdf = floating(in_single(lambda x: 0.5 * tf.math.erfc(-math.sqrt(0.5) * x)))
softplus = floating(in_single(tf.math.softplus))


def softmax(x, axis=-1):
    x = floats(x)
    if isinstance(axis, int) and x.shape.rank:
        return tf.nn.softmax(x, axis)
    return tf.exp(log_softmax(x, axis))


def log_softmax(x, axis=-1):
    x = floats(x)
    if isinstance(axis, int) and x.shape.rank:
        return tf.nn.log_softmax(x, axis)
    return x - tf.reduce_logsumexp(x, existing(x, axis), keepdims=True)


def relu6(x):
    return tf.nn.relu6(x if x.dtype != tf.bool else tf.cast(x, tf.int64))


@floating
def silu(x):
    return x * tf.math.sigmoid(x) if x.dtype.is_complex else tf.nn.silu(x)  # whose complex gradient lacks a conjugate


log_sigmoid = floating(in_single(tf.math.log_sigmoid))


def leaky_relu(x, negative_slope=0.2):
    x = floats(x)
    if x.dtype == tf.float64:  # TensorFlow's has the slope in single precision
        return tf.where(x > 0, x, x * negative_slope)
    return tf.nn.leaky_relu(x, negative_slope)


# Connectionist temporal classification.


def ctc_beams(inputs, sequence_lengths, beam_width, top_paths, mask_index):
    dtype = tf.float32 if inputs.dtype == tf.bfloat16 else inputs.dtype

    def search(inputs, sequence_lengths):
        return _numpy.ctc_beams(inputs, sequence_lengths, beam_width, top_paths, mask_index)

    labels, scores = tf.numpy_function(search, [tf.cast(inputs, dtype), sequence_lengths], (tf.int64, dtype))
    labels = tf.ensure_shape(labels, (top_paths, *inputs.shape[:2]))
    return labels, tf.cast(tf.ensure_shape(scores, (inputs.shape[0], top_paths)), inputs.dtype)
