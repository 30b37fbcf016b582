"""NumPy kernels: activations."""

import math

import numpy as np

from .base import floats, scipy_special

normal_cdf = scipy_special("ndtr")
_expit = scipy_special("expit")


def sigmoid(x):
    return 1 / (1 + np.exp(-x)) if x.dtype.kind == "c" else _expit(x)


def relu(x):
    return np.maximum(x, x.dtype.type(0))


def softmax(x, axis=-1):
    x = floats(x)
    y = np.asarray(x - x.max(axis, keepdims=True, initial=-np.inf))
    np.exp(y, out=y)
    y /= y.sum(axis, keepdims=True)
    return y


def log_softmax(x, axis=-1):
    x = floats(x)
    y = np.asarray(x - x.max(axis, keepdims=True, initial=-np.inf))
    y -= np.log(np.exp(y).sum(axis, keepdims=True))
    return y


def softplus(x):
    x = floats(x)
    return np.logaddexp(x, x.dtype.type(0))


def gelu(x, approximate=True):
    x = floats(x)
    if x.dtype == np.float16:  # in which the tail is lost
        return gelu(x.astype(np.float32), approximate).astype(x.dtype)
    if not approximate:
        return x * normal_cdf(x)
    inner = x * x
    inner *= x.dtype.type(0.044715)
    inner += x.dtype.type(1)
    inner *= x
    inner *= x.dtype.type(math.sqrt(2 / math.pi))
    inner = np.tanh(inner)
    inner += x.dtype.type(1)
    inner *= x
    inner *= x.dtype.type(0.5)
    return inner
