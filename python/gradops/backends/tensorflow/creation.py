"""TensorFlow kernels: creation."""

import numpy as np
import tensorflow as tf

from ... import defaults
from .base import tf_dtype


def _dtype(name):
    return tf_dtype(name or defaults.floatx())


def zeros(shape, dtype=None):
    return tf.zeros(shape, _dtype(dtype))


def ones(shape, dtype=None):
    return tf.ones(shape, _dtype(dtype))


def zeros_like(x, dtype=None):
    return tf.zeros_like(x, None if dtype is None else tf_dtype(dtype))


def ones_like(x, dtype=None):
    return tf.ones_like(x, None if dtype is None else tf_dtype(dtype))


def arange(start, stop=None, step=None, dtype=None):
    if stop is None:
        start, stop = 0, start
    step = 1 if step is None else step
    values = [v.numpy().item() if isinstance(v, tf.Tensor) else v for v in (start, stop, step)]
    if dtype is None:
        dtype = "int64" if all(isinstance(v, int) for v in values) else defaults.floatx()
    return tf.cast(tf.convert_to_tensor(np.arange(*values)), tf_dtype(dtype))


def eye(N, M=None, k=0, dtype=None):
    rows, columns = np.arange(N)[:, None], np.arange(N if M is None else M)[None]
    return tf.cast(columns - rows == k, _dtype(dtype))
