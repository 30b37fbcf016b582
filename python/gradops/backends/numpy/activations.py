"""NumPy kernels: activations."""

import numpy as np
from scipy import special

from .base import floating, floats

sigmoid = floating(special.expit)


def relu(x):
    return np.maximum(x, x.dtype.type(0))


def softmax(x, axis=-1):
    return special.softmax(floats(x), axis=axis)


def log_softmax(x, axis=-1):
    return special.log_softmax(floats(x), axis=axis)


def softplus(x):
    x = floats(x)
    return np.logaddexp(x, x.dtype.type(0))
