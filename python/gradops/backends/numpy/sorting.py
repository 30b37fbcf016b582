"""NumPy kernels: sorting and searching."""

import numpy as np

from .base import promoted


def sort(x, axis=-1):
    return np.sort(np.atleast_1d(x), axis, kind="stable").reshape(x.shape if axis is not None else -1)


def argsort(x, axis=-1):
    return np.argsort(np.atleast_1d(x), axis, kind="stable").reshape(x.shape if axis is not None else -1)


def searchsorted(sorted_sequence, values, side="left"):
    return np.searchsorted(*promoted(sorted_sequence, values), side)
