"""NumPy kernels: indexing."""

import numpy as np

from .._keys import distinct, plain
from ..array.indexing import extreme
from .base import dtype_name


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


# `out` is `x` itself, where nothing else reads it: a program that a function was compiled to may write over it.


def add_at(x, key, updates, out=None):
    out, key = np.array(x) if out is None else out, plain(key)
    if distinct(key):
        out[key] += updates
    elif out.dtype == np.float16:  # in which sums stop growing
        return add_at(out.astype(np.float32), key, updates).astype(np.float16)
    elif out.ndim == 1:
        np.add.at(out, key, updates)
    else:  # of which NumPy's loop takes four times as long as of positions in one dimension
        places = np.arange(out.size).reshape(out.shape)[key]
        flat = np.array(out, order="C").reshape(-1)
        np.add.at(flat, places.reshape(-1), np.broadcast_to(updates, places.shape).reshape(-1))
        return flat.reshape(out.shape)
    return out


def set_at(x, key, updates, out=None):
    out = np.array(x) if out is None else out
    out[plain(key)] = updates
    return out


# Scattering.


def _segments(ufunc, smallest):
    def kernel(data, segment_ids, num_segments=None, sorted=False):
        if num_segments is None:
            num_segments = int(segment_ids.max()) + 1 if segment_ids.size else 0
        inside = (segment_ids >= 0) & (segment_ids < num_segments)
        out = np.full((num_segments, *data.shape[1:]), extreme(dtype_name(data), smallest), data.dtype)
        ufunc.at(out, segment_ids[inside], data[inside])
        return out

    return kernel


segment_max = _segments(np.maximum, True)
segment_min = _segments(np.minimum, False)
