"""TensorFlow kernels: products."""

import tensorflow as tf

from .base import in_single, promoted, together


def _in_int64(product):
    """A product; of the integers and bools that TensorFlow does not multiply, by way of int64."""

    def kernel(*xs):
        dtype = xs[0].dtype
        if dtype.is_floating or dtype.is_complex or dtype in (tf.int32, tf.int64):
            return product(*xs)
        return tf.cast(product(*(tf.cast(x, tf.int64) for x in xs)), dtype)

    return kernel


def matmul(x1, x2):
    x1, x2 = promoted(x1, x2)
    if x1.shape.rank == 0 or x2.shape.rank == 0:
        raise ValueError("a 0-d tensor has no matrix product")
    first, second = x1.shape.rank == 1, x2.shape.rank == 1
    y = _in_int64(tf.linalg.matmul)(x1[None] if first else x1, x2[:, None] if second else x2)
    if second:
        y = tf.squeeze(y, -1)
    return tf.squeeze(y, -1 if second else -2) if first else y


def tensordot(x1, x2, axes=2):
    return _in_int64(lambda x1, x2: tf.tensordot(x1, x2, axes))(*promoted(x1, x2))


def einsum(subscripts, operands):
    return in_single(_in_int64(lambda *xs: tf.einsum(subscripts, *xs)))(*together(operands))
