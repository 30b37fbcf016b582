"""NumPy kernels: creation."""

import numpy as np

from ... import defaults
from .base import np_dtype


def _dtype(name):
    return np_dtype(name or defaults.floatx())


def zeros(shape, dtype=None):
    return np.zeros(shape, _dtype(dtype))


def ones(shape, dtype=None):
    return np.ones(shape, _dtype(dtype))


def full(shape, fill_value, dtype=None):
    return np.full(shape, fill_value, np_dtype(dtype) if dtype else None)


def zeros_like(x, dtype=None):
    return np.zeros(x.shape, np_dtype(dtype) if dtype else x.dtype)


def ones_like(x, dtype=None):
    return np.ones(x.shape, np_dtype(dtype) if dtype else x.dtype)


def arange(start, stop=None, step=None, dtype=None):
    if stop is None:
        start, stop = 0, start
    step = 1 if step is None else step
    if dtype is None and all(np.asarray(v).dtype.kind in "iub" for v in (start, stop, step)):
        dtype = "int64"
    return np.arange(start, stop, step).astype(_dtype(dtype), copy=False)


def eye(N, M=None, k=0, dtype=None):
    return np.eye(N, M, k, _dtype(dtype))
