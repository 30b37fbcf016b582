"""NumPy kernels: joining and splitting."""

import numpy as np

from .._keys import cuts
from .base import together


def concatenate(xs, axis=0):
    if axis is None:
        raise TypeError("an axis is needed")
    return np.concatenate(together(xs), axis)


def stack(xs, axis=0):
    return np.stack(together(xs), axis)


def split(x, indices_or_sections, axis=0):
    if not isinstance(indices_or_sections, int):
        indices_or_sections = cuts(indices_or_sections, x.shape[axis])
    return np.split(x, indices_or_sections, axis)


def unstack(x, num=None, axis=0):
    rows = np.moveaxis(x, axis, 0)
    return [rows[i, ...] for i in range(len(rows))]
