"""NumPy kernels: reductions. ``axis`` is None, an int or a tuple."""

import numpy as np
from scipy import special

from .base import FLOATING, floats


def _wide(x):
    """Bools and small integers add up in 64 bits."""
    kind = x.dtype.kind
    if kind == "b" or kind == "i" and x.dtype.itemsize < 8:
        return "int64"
    if kind == "u" and x.dtype.itemsize < 8:
        return "int64"
    return None


def sum(x, axis=None, keepdims=False):
    return np.add.reduce(x, axis=axis, keepdims=keepdims, dtype=None if x.dtype in FLOATING else _wide(x))


def prod(x, axis=None, keepdims=False, dtype=None):
    return np.multiply.reduce(x, axis=axis, keepdims=keepdims, dtype=dtype or _wide(x))


def mean(x, axis=None, keepdims=False):
    return np.mean(floats(x), axis=axis, keepdims=keepdims)


def max(x, axis=None, keepdims=False, initial=None):
    if initial is None:
        return np.maximum.reduce(x, axis=axis, keepdims=keepdims)
    return np.maximum.reduce(x, axis=axis, keepdims=keepdims, initial=initial)


def min(x, axis=None, keepdims=False, initial=None):
    if initial is None:
        return np.minimum.reduce(x, axis=axis, keepdims=keepdims)
    return np.minimum.reduce(x, axis=axis, keepdims=keepdims, initial=initial)


def all(x, axis=None, keepdims=False):
    return np.all(x, axis=axis, keepdims=keepdims)


def any(x, axis=None, keepdims=False):
    return np.any(x, axis=axis, keepdims=keepdims)


def argmax(x, axis=None, keepdims=False):
    return np.argmax(x, axis=axis, keepdims=keepdims)


def argmin(x, axis=None, keepdims=False):
    return np.argmin(x, axis=axis, keepdims=keepdims)


def logsumexp(x, axis=None, keepdims=False):
    x = floats(x)
    if not x.size:  # SciPy takes no empty matrices
        return np.full_like(np.sum(x, axis=axis, keepdims=keepdims), -np.inf)
    return special.logsumexp(x, axis=axis, keepdims=keepdims)


def cumsum(x, axis=None, dtype=None):
    return np.cumsum(x, axis=axis, dtype=dtype or _wide(x))


def cumprod(x, axis=None, dtype=None):
    return np.cumprod(x, axis=axis, dtype=dtype or _wide(x))
