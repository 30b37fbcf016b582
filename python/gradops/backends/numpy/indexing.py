"""NumPy kernels: indexing."""

import numpy as np

from .._keys import distinct, plain


def get_item(x, key):
    try:
        return x[key]
    except Exception:
        simple = plain(key)  # variables among the positions
        if simple is key:
            raise
        return x[simple]


def take(x, indices, axis=None):
    if axis is not None and not x.ndim:
        raise IndexError("a 0-d array has no axis to take from")
    return np.take(x, indices, axis)


def take_along_axis(x, indices, axis=None):
    if axis is None:
        x, indices, axis = x.reshape(-1), indices.reshape(-1), 0
    return np.take_along_axis(x, indices, axis)


def add_at(x, key, updates):
    out, key = np.array(x), plain(key)
    if distinct(key):
        out[key] += updates
    elif out.dtype == np.float16:  # in which sums stop growing
        return add_at(out.astype(np.float32), key, updates).astype(np.float16)
    else:
        np.add.at(out, key, updates)
    return out


def set_at(x, key, updates):
    out = np.array(x)
    out[plain(key)] = updates
    return out
