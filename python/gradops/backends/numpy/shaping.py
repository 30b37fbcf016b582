"""NumPy kernels: shape."""

import numpy as np

from .base import together


def reshape(x, newshape):
    return np.reshape(x, newshape)


def transpose(x, axes=None):
    return np.transpose(x, axes)


def expand_dims(x, axis):
    return np.expand_dims(x, axis)


def squeeze(x, axis=None):
    return np.squeeze(x, axis)


def broadcast_to(x, shape):
    return np.broadcast_to(x, shape)


def flip(x, axis=None):
    return np.flip(x, axis)


def roll(x, shift, axis=None):
    return np.roll(x, shift, axis)


def concatenate(xs, axis=0):
    return np.concatenate(together(xs), axis)


def stack(xs, axis=0):
    return np.stack(together(xs), axis)


def split(x, indices_or_sections, axis=0):
    return np.split(x, indices_or_sections, axis)
