"""TensorFlow kernels: random numbers."""

import tensorflow as tf


def random_uniform(like, shape, seed):
    return tf.random.stateless_uniform(shape, (seed, 0), dtype=like.dtype)


def random_normal(like, shape, seed):
    return tf.random.stateless_normal(shape, (seed, 0), dtype=like.dtype)


def random_gamma(like, alpha, shape, seed):
    return tf.random.stateless_gamma(shape, (seed, 0), tf.cast(alpha, like.dtype), dtype=like.dtype)


def random_binomial(like, counts, probabilities, shape, seed):
    counts, probabilities = tf.cast(counts, tf.float64), tf.cast(probabilities, tf.float64)
    return tf.random.stateless_binomial(shape, (seed, 0), counts, probabilities, output_dtype=like.dtype)
