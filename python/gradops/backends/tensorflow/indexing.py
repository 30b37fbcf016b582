"""TensorFlow kernels: indexing, by NumPy's rules."""

import numpy as np
import tensorflow as tf


def _has_arrays(key) -> bool:
    parts = key if isinstance(key, tuple) else (key,)
    return any(isinstance(p, (list, np.ndarray, tf.Tensor)) for p in parts)


def positions(x, key):
    """The flat positions that a key chooses from a tensor of known shape, in the shape it gives."""
    parts = key if isinstance(key, tuple) else (key,)
    parts = tuple(p.numpy() if isinstance(p, tf.Tensor) else p for p in parts)
    grid = np.arange(int(np.prod(x.shape)), dtype=np.int64).reshape(x.shape)
    return grid[parts if isinstance(key, tuple) else parts[0]]


def get_item(x, key):
    if not _has_arrays(key):
        _check(x, key)
        return x[key]
    if isinstance(key, tf.Tensor) and key.dtype == tf.bool:
        return tf.boolean_mask(x, key)
    if isinstance(key, tf.Tensor):
        return take(x, key, 0)
    return tf.gather(tf.reshape(x, [-1]), positions(x, key))


def _check(x, key) -> None:
    parts = [p for p in (key if isinstance(key, tuple) else (key,)) if p is not None]
    used = sum(p is not Ellipsis for p in parts)
    if used != len(parts):
        at = next(i for i, p in enumerate(parts) if p is Ellipsis)
        parts[at : at + 1] = [slice(None)] * (x.shape.rank - used)
    if len(parts) > x.shape.rank:
        raise IndexError(f"{len(parts)} indices for a tensor of {x.shape.rank} dimensions")
    for part, size in zip(parts, x.shape):
        if isinstance(part, (int, np.integer)) and size is not None and not -size <= part < size:
            raise IndexError(f"index {part} is out of range for a dimension of {size}")


def take(x, indices, axis=None):
    if axis is None:
        x, axis = tf.reshape(x, [-1]), 0
    indices = tf.cast(indices, tf.int64)
    size = tf.cast(tf.shape(x)[axis], tf.int64)
    return tf.gather(x, tf.where(indices < 0, indices + size, indices), axis=axis)


def add_at(x, key, updates):
    flat = positions(x, key)
    updates = tf.reshape(tf.broadcast_to(tf.cast(updates, x.dtype), flat.shape), [-1])
    return tf.reshape(tf.tensor_scatter_nd_add(tf.reshape(x, [-1]), flat.reshape(-1, 1), updates), tf.shape(x))
