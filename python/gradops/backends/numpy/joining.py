"""NumPy kernels: joining and splitting."""

import numpy as np

from .base import together


def concatenate(xs, axis=0):
    return np.concatenate(together(xs), axis)


def stack(xs, axis=0):
    return np.stack(together(xs), axis)


def split(x, indices_or_sections, axis=0):
    return np.split(x, indices_or_sections, axis)


def unstack(x, num=None, axis=0):
    rows = np.moveaxis(x, axis, 0)
    return [rows[i, ...] for i in range(len(rows))]
