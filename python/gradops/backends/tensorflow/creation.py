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
    values = [tf.get_static_value(v) if isinstance(v, tf.Tensor) else v for v in (start, stop, step)]
    if any(v is None for v in values):  # a size that the graph does not know
        start, stop, step = map(tf.convert_to_tensor, (start, stop, step))
        whole = start.dtype.is_integer and stop.dtype.is_integer and step.dtype.is_integer
        promoted = tf.int64 if whole else tf_dtype(defaults.floatx())
        numbers = tf.range(*[tf.cast(v, promoted) for v in (start, stop, step)])
        return numbers if dtype is None else tf.cast(numbers, tf_dtype(dtype))
    values = [v.item() if isinstance(v, np.generic | np.ndarray) else v for v in values]
    if dtype is None:
        dtype = "int64" if all(isinstance(v, int) for v in values) else defaults.floatx()
    return tf.cast(tf.convert_to_tensor(np.arange(*values)), tf_dtype(dtype))


def eye(N, M=None, k=0, dtype=None):
    if min(N, N if M is None else M) < 0:
        raise ValueError("negative dimensions are not allowed")
    rows, columns = np.arange(N)[:, None], np.arange(N if M is None else M)[None]
    return tf.cast(columns - rows == k, _dtype(dtype))
