"""NumPy kernels: shape, creation, joining, sorting, random numbers, indexing."""

import numpy as np

from ... import dtypes
from .._keys import distinct, plain, turns
from ..array.shaping import extreme
from .base import axes_of, dtype_name, native_dtype

# Shape, creation, joining, sorting.


def reshape(x, newshape):
    if newshape.__class__ is tuple and newshape and min(newshape) < -1:
        raise ValueError("only -1 stands for an unknown size")
    return x.reshape(newshape)


def transpose(x, axes=None):
    return x.transpose(axes)


def swapaxes(x, axis1, axis2):
    return x.swapaxes(axis1, axis2)


_NEW = {0: (None,), -1: (..., None), (-2, -1): (..., None, None)}


def expand_dims(x, axis):
    key = _NEW.get(axis)
    return np.expand_dims(x, axis) if key is None else x[key]  # `np.expand_dims` takes ten times as long


def squeeze(x, axis=None):
    return np.squeeze(x, axes_of(x, axis))


def broadcast_to(x, shape):
    strides = _strides(x, shape) if shape.__class__ is tuple and x.dtype.kind != "O" else None
    if strides is None:
        return np.broadcast_to(x, shape)
    y = np.ndarray(shape, x.dtype, x, 0, strides)  # `np.broadcast_to` takes ten times as long
    y.setflags(False)
    return y


def _strides(x, shape: tuple) -> tuple | None:
    """The strides of ``x`` broadcast to a shape in the common cases; None in the others."""
    if not x.ndim:
        return (0,) * len(shape)
    sizes = x.shape
    if x.ndim != len(shape) or not x.size or not x.flags.c_contiguous:
        return None
    strides = [0 if n == 1 else stride if n == size else -1 for n, size, stride in zip(sizes, shape, x.strides)]
    return None if -1 in strides else tuple(strides)


def roll(x, shift, axis=None):
    if not (type(shift) is type(axis) is int and -x.ndim <= axis < x.ndim and x.size):
        return np.roll(x, *turns(shift, axis if x.ndim else axes_of(x, axis) or None))
    before = (slice(None),) * (axis % x.ndim)  # `np.roll` takes five times as long
    cut = -shift % x.shape[axis]
    return np.concatenate((x[(*before, slice(cut, None))], x[(*before, slice(cut))]), axis)


def view(x, dtype=None):
    if dtype is None:
        return x
    target = native_dtype(dtypes.canonical(dtype))
    x = np.asarray(x)
    return (x if x.flags.c_contiguous else x.copy()).view(target)


def _dtype(name):
    return native_dtype(name or dtypes.floatx())


def full(shape, fill_value, dtype=None):
    return np.full(shape, fill_value, native_dtype(dtype) if dtype else None)


def zeros_like(x, dtype=None):
    return np.zeros(x.shape, native_dtype(dtype) if dtype else x.dtype)


def ones_like(x, dtype=None):
    return np.ones(x.shape, native_dtype(dtype) if dtype else x.dtype)


def arange(start, stop=None, step=None, dtype=None):
    if stop is None:
        start, stop = 0, start
    step = 1 if step is None else step
    if dtype is None and all(np.asarray(v).dtype.kind in "iub" for v in (start, stop, step)):
        dtype = "int64"
    return np.arange(start, stop, step).astype(_dtype(dtype), copy=False)


def unstack(x, num=None, axis=0):
    return list(x if axis == 0 else np.moveaxis(x, axis, 0))


def sort(x, axis=-1):
    return np.sort(np.atleast_1d(x), axis, kind="stable").reshape(x.shape if axis is not None else -1)


def argsort(x, axis=-1):
    return np.argsort(np.atleast_1d(x), axis, kind="stable").reshape(x.shape if axis is not None else -1)


# Random numbers.


def random_uniform(like, shape, seed):
    return np.random.default_rng(seed).random(shape).astype(like.dtype)


def random_normal(like, shape, seed):
    return np.random.default_rng(seed).standard_normal(shape).astype(like.dtype)


def random_gamma(like, alpha, shape, seed):
    return np.random.default_rng(seed).standard_gamma(alpha, shape).astype(like.dtype)


def random_binomial(like, counts, probabilities, shape, seed):
    return np.random.default_rng(seed).binomial(counts.astype("int64"), probabilities, shape).astype(like.dtype)


# Indexing -------------------------------------------------------------------------------------------------------------


def get_item(x, key):
    try:
        return x[key]
    except Exception:
        simple = plain(key)  # replace variables and lists by arrays
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


# `out` is `x` itself if nothing else reads it: a compiled program may then write to it in place.


def add_at(x, key, updates, out=None):
    out, key = np.array(x) if out is None else out, plain(key)
    if distinct(key):
        out[key] += updates
    elif out.dtype == np.float16:  # half-precision sums stop growing
        return add_at(out.astype(np.float32), key, updates).astype(np.float16)
    elif out.ndim == 1:
        np.add.at(out, key, updates)
    elif _are_columns(key, out.ndim) and max(out.shape[-1], key[-1].size) > _MAX_FLAT_ROW:
        updates = np.broadcast_to(updates, (*out.shape[:-1], key[-1].size))
        for row in np.ndindex(out.shape[:-1]):
            np.add.at(out[row], key[-1], updates[row])
    else:  # flat positions: `np.add.at` is four times as fast with one index array
        places = np.arange(out.size).reshape(out.shape)[key]
        flat = np.array(out, order="C").reshape(-1)
        np.add.at(flat, places.reshape(-1), np.broadcast_to(updates, places.shape).reshape(-1))
        return flat.reshape(out.shape)
    return out


_MAX_FLAT_ROW = 512
"""The largest length of a row, and of its updates, for which flat positions add to all rows at once.

Flat positions cost 4 ns for each number, a row 2 us.
"""


def _are_columns(key, ndim: int) -> bool:
    """True if a key selects everything in all dimensions but the last and an array of positions in the last."""
    if not (isinstance(key, tuple) and len(key) == ndim and isinstance(key[-1], np.ndarray) and key[-1].ndim == 1):
        return False
    return key[-1].dtype.kind in "iu" and all(isinstance(x, slice) and x == slice(None) for x in key[:-1])


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
