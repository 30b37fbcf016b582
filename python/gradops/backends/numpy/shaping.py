"""NumPy kernels: shape."""

import numpy as np

from ... import dtypes
from .._keys import turns
from .base import axes_of, np_dtype


def reshape(x, newshape):
    if newshape.__class__ is tuple and newshape and min(newshape) < -1:
        raise ValueError("NumPy takes any negative size for -1")
    return x.reshape(newshape)


def transpose(x, axes=None):
    return x.transpose(axes)


def swapaxes(x, axis1, axis2):
    return x.swapaxes(axis1, axis2)


def expand_dims(x, axis):
    return np.expand_dims(x, axis)


def squeeze(x, axis=None):
    return np.squeeze(x, axis)


def broadcast_to(x, shape):
    strides = _strides(x, shape) if shape.__class__ is tuple and x.dtype.kind != "O" else None
    if strides is None:
        return np.broadcast_to(x, shape)
    y = np.ndarray(shape, x.dtype, x, 0, strides)  # NumPy's own function takes ten times as long
    y.setflags(False)
    return y


def _strides(x, shape: tuple) -> tuple | None:
    """Those of ``x`` broadcast to a shape, in the usual cases."""
    if not x.ndim:
        return (0,) * len(shape)
    sizes = x.shape
    if x.ndim != len(shape) or not x.size or not x.flags.c_contiguous:
        return None
    strides = [0 if n == 1 else stride if n == size else -1 for n, size, stride in zip(sizes, shape, x.strides)]
    return None if -1 in strides else tuple(strides)


def flip(x, axis=None):
    return np.flip(x, axes_of(x, axis))


def roll(x, shift, axis=None):
    return np.roll(x, *turns(shift, axis if x.ndim else axes_of(x, axis) or None))


def view(x, dtype=None):
    if dtype is None:
        return x
    target = np_dtype(dtypes.canonical(dtype))
    x = np.asarray(x)
    return (x if x.flags.c_contiguous else x.copy()).view(target)
