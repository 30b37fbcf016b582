"""Functions of NumPy's arrays on TensorFlow's tensors, elementwise or of matrices, in graphs, too."""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np
import tensorflow as tf


def on_host(name: str, function: Callable, xs: list, like: int | None = None) -> tf.Tensor:
    dtype = xs[0].dtype

    def call(*arrays) -> np.ndarray:
        return np.asarray(function(*arrays), dtype.as_numpy_dtype)

    if all(hasattr(x, "numpy") for x in xs):
        return tf.constant(call(*[x.numpy() for x in xs]))
    result = tf.numpy_function(call, xs, dtype, stateful=False)
    if like is None:
        result.set_shape(functools.reduce(tf.broadcast_static_shape, [x.shape for x in xs]))
    else:
        lead = functools.reduce(tf.broadcast_static_shape, [x.shape[:-2] for x in xs])
        result.set_shape(lead + xs[like].shape[-2:])
    return result
