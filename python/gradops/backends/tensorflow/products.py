"""TensorFlow kernels: products."""

import tensorflow as tf

from .base import promoted, together


def matmul(x1, x2):
    x1, x2 = promoted(x1, x2)
    if x1.shape.rank == 0 or x2.shape.rank == 0:
        raise ValueError("a 0-d tensor has no matrix product")
    first, second = x1.shape.rank == 1, x2.shape.rank == 1
    y = tf.linalg.matmul(x1[None] if first else x1, x2[:, None] if second else x2)
    if second:
        y = tf.squeeze(y, -1)
    return tf.squeeze(y, -1 if second else -2) if first else y


def tensordot(x1, x2, axes=2):
    return tf.tensordot(*promoted(x1, x2), axes)


def einsum(subscripts, operands):
    return tf.einsum(subscripts, *together(operands))
