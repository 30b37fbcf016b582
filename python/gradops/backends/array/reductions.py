"""Kernels over the array API: reductions, products, and activations that are reductions."""

from __future__ import annotations

import math

import numpy as np

from .base import public


def kernels(xp, base) -> dict:
    def _wide(x):
        """Bools and small integers add up in 64 bits."""
        return x if base.is_floating(x) or base.dtype_name(x) == "uint64" else base.cast(x, "int64")

    def sum(x, axis=None, keepdims=False):
        return xp.sum(_wide(x), axis=base.axes_of(x, axis), keepdims=keepdims)

    def prod(x, axis=None, keepdims=False, dtype=None):
        x = _wide(x) if dtype is None else base.cast(x, dtype)
        return xp.prod(x, axis=base.axes_of(x, axis), keepdims=keepdims)

    def mean(x, axis=None, keepdims=False):
        return xp.mean(base.floats(x), axis=base.axes_of(x, axis), keepdims=keepdims)

    def all(x, axis=None, keepdims=False):
        return xp.all(x, axis=base.axes_of(x, axis), keepdims=keepdims)

    def any(x, axis=None, keepdims=False):
        return xp.any(x, axis=base.axes_of(x, axis), keepdims=keepdims)

    def _extreme(function, bound):
        def kernel(x, axis=None, keepdims=False, initial=None):
            if base.is_bool(x):
                return base.cast(kernel(base.cast(x, "int8"), axis, keepdims, initial), "bool")
            if initial is not None and 0 in x.shape:
                shape = xp.sum(x, axis=base.axes_of(x, axis), keepdims=keepdims).shape
                return xp.broadcast_to(base.convert(initial, base.dtype_name(x), like=x), shape)
            y = function(x, axis=base.axes_of(x, axis), keepdims=keepdims)
            return y if initial is None else bound(y, base.convert(initial, base.dtype_name(x), like=x))

        return kernel

    max, min = _extreme(xp.max, xp.maximum), _extreme(xp.min, xp.minimum)

    def _position(function):
        def kernel(x, axis=None, keepdims=False):
            x = base.cast(x, "int8") if base.is_bool(x) else x
            axis = axis if x.ndim else base.axes_of(x, axis) or None
            return base.cast(function(x, axis=axis, keepdims=keepdims), "int64")

        return kernel

    argmax, argmin = _position(xp.argmax), _position(xp.argmin)

    def _running(name):
        def kernel(x, axis=None, dtype=None):
            x = _wide(x) if dtype is None else base.cast(x, dtype)
            if axis is None or not x.ndim:
                base.axes_of(x, axis)
                y = getattr(xp, name)(xp.reshape(x, (-1,)), axis=0)
                return y if axis is None else xp.reshape(y, ())
            return getattr(xp, name)(x, axis=axis)

        return kernel

    cumsum, cumprod = _running("cumulative_sum"), _running("cumulative_prod")

    def _above(x, axis):
        """The largest elements along an axis, 0 where they are infinite."""
        top = xp.max(xp.real(x) if base.is_complex(x) else x, axis=base.axes_of(x, axis), keepdims=True)
        return xp.where(xp.isfinite(top), top, xp.zeros_like(top))

    def logsumexp(x, axis=None, keepdims=False):
        x = base.floats(x)
        if not math.prod(x.shape):
            return xp.log(sum(x, axis, keepdims))
        top = base.cast(_above(x, axis), base.dtype_name(x))
        y = xp.log(sum(xp.exp(x - top), axis, True)) + top
        return y if keepdims else xp.reshape(y, sum(x, axis).shape)

    def softmax(x, axis=-1):
        x = base.floats(x)
        if not math.prod(x.shape):
            return x
        y = xp.exp(x - _above(x, axis))
        return y / sum(y, axis, True)

    def log_softmax(x, axis=-1):
        x = base.floats(x)
        return x if not math.prod(x.shape) else x - logsumexp(x, axis, True)

    matmul = base.arithmetic(xp.matmul)

    def tensordot(x1, x2, axes=2):
        return xp.tensordot(*base.promoted(x1, x2), axes=axes)

    def sliding_product(x, window):
        width = window.shape[0]
        places = np.arange(x.shape[0] - width + 1)[:, None] + np.arange(width)
        taken = xp.reshape(xp.take(x, base.convert(places.reshape(-1), like=x), axis=0), places.shape)
        return xp.sum(taken * window, axis=-1, dtype=x.dtype)

    return public(locals())
