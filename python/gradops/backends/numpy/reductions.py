"""NumPy kernels: reductions, products, normalisation. ``axis`` is None, an int or a tuple."""

import numpy as np

from ...errors import ArgumentError
from .base import FLOATING, arithmetic, axes_of, check_held, floats, number, promoted, together

_FLOAT64 = np.dtype("float64")
_HALF = np.dtype("float16")
"""Adds up in float32: in half precision 1 adds nothing to 2048."""


def _wide(x):
    """Bools and small integers add up in 64 bits."""
    kind = x.dtype.kind
    if kind not in "biufc":
        raise TypeError(f"an array of dtype {x.dtype} is not numeric")
    if kind == "b" or kind == "i" and x.dtype.itemsize < 8:
        return "int64"
    if kind == "u" and x.dtype.itemsize < 8:
        return "int64"
    return None


def sum(x, axis=None, keepdims=False):
    if x.dtype is _FLOAT64 and (axis is None or axis.__class__ is int and x.ndim):  # known at a glance
        return np.add.reduce(x, axis, None, None, keepdims)
    if x.dtype is _HALF:
        return np.add.reduce(x, axis=axes_of(x, axis), keepdims=keepdims, dtype=np.float32).astype(_HALF)
    return np.add.reduce(x, axis=axes_of(x, axis), keepdims=keepdims, dtype=None if x.dtype in FLOATING else _wide(x))


def mean(x, axis=None, keepdims=False):
    axis = axes_of(x, axis)
    if x.dtype is _FLOAT64 and x.__class__ is np.ndarray and (axis is None or axis.__class__ is int) and x.size:
        total = np.add.reduce(x, axis, keepdims=keepdims)  # NumPy's own function takes three times as long
        return total / (x.size if axis is None else x.shape[axis])
    return np.mean(floats(x), axis, keepdims=keepdims)


def prod(x, axis=None, keepdims=False, dtype=None):
    return np.multiply.reduce(x, axis=axes_of(x, axis), keepdims=keepdims, dtype=dtype or _wide(x))


def max(x, axis=None, keepdims=False, initial=None):
    if initial is None:
        return np.maximum.reduce(x, axis=axes_of(x, axis), keepdims=keepdims)
    check_held(initial, x.dtype)
    return np.maximum.reduce(x, axis=axes_of(x, axis), keepdims=keepdims, initial=initial)


def min(x, axis=None, keepdims=False, initial=None):
    if initial is None:
        return np.minimum.reduce(x, axis=axes_of(x, axis), keepdims=keepdims)
    check_held(initial, x.dtype)
    return np.minimum.reduce(x, axis=axes_of(x, axis), keepdims=keepdims, initial=initial)


def all(x, axis=None, keepdims=False):
    return np.logical_and.reduce(x, axis=axes_of(x, axis), keepdims=keepdims)


def any(x, axis=None, keepdims=False):
    return np.logical_or.reduce(x, axis=axes_of(x, axis), keepdims=keepdims)


def argmax(x, axis=None, keepdims=False):
    return np.argmax(x, axis=axis, keepdims=keepdims)


def argmin(x, axis=None, keepdims=False):
    return np.argmin(x, axis=axis, keepdims=keepdims)


def logsumexp(x, axis=None, keepdims=False):
    x, axis = floats(x), axes_of(x, axis)
    top = np.max(x.real, axis=axis, keepdims=True, initial=-np.inf)
    top = np.where(np.isfinite(top), top, x.real.dtype.type(0))
    with np.errstate(divide="ignore", over="ignore"):
        y = np.log(np.sum(np.exp(x - top), axis=axis, keepdims=True)) + top
    return y if keepdims else number(np.squeeze(y, axis))


def cumsum(x, axis=None, dtype=None):
    if x.dtype is _HALF and dtype is None:
        return cumsum(x, axis, np.float32).astype(_HALF)
    y = np.cumsum(x, axis=axis, dtype=dtype or _wide(x))
    return y if x.ndim or axis is None else y.reshape(())


def cumprod(x, axis=None, dtype=None):
    y = np.cumprod(x, axis=axis, dtype=dtype or _wide(x))
    return y if x.ndim or axis is None else y.reshape(())


dot = arithmetic(np.dot)


def outer(x1, x2):
    return np.outer(*promoted(x1, x2))


def einsum(subscripts, operands):
    operands = together(operands)
    if operands[0].dtype == np.float16:  # in which sums stop growing
        return np.asarray(einsum(subscripts, [x.astype(np.float32) for x in operands])).astype(np.float16)
    return np.einsum(subscripts, *operands, optimize=len(operands) > 2)


def sliding_product(x, window):
    return np.correlate(x, window.conj(), "valid")


def countable(x, length):
    """``x``, of which each must be counted: a program that NumPy runs can say where one is not."""
    if x.size and not 0 <= x.min() <= x.max() < length:
        wrong = x.min() if x.min() < 0 else x.max()
        raise ArgumentError(
            f"`bincount`: in a compiled function `x` must be between 0 and {length - 1}, as `minlength` is the length; "
            f"got {int(wrong)}.",
            argument="x",
        )
    return x
