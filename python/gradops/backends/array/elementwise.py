"""Kernels over the array API: elementwise ops, reductions, products, and activations that reduce (softmax)."""

from __future__ import annotations

import math

import numpy as np

from .base import find, public

STANDARD = {
    "arcsin": "asin", "arccos": "acos", "arctan": "atan", "arcsinh": "asinh", "arccosh": "acosh", "arctanh": "atanh",
    "arctan2": "atan2", "power": "pow", "mod": "remainder", "real_sign": "sign",
    "left_shift": "bitwise_left_shift", "right_shift": "bitwise_right_shift",
}  # fmt: skip
"""The standard's names for ops that have another name here."""

TABLES = {
    "floating": "exp exp2 expm1 log log2 log10 log1p sqrt sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh "
    "arccosh arctanh reciprocal",
    "keep_integers": "floor ceil trunc",
    "promote_bools": "square negative real_sign",
    "arithmetic": "add subtract multiply maximum minimum bitwise_and bitwise_or bitwise_xor gcd lcm",
    "counting": "power left_shift right_shift",
    "floating_arithmetic": "divide arctan2 nextafter hypot",
    "predicate": "equal not_equal less less_equal greater greater_equal",
    "logical": "logical_not logical_and logical_or logical_xor",
}
"""Ops that are one function of the library, by the adaptor of ``base`` that makes a kernel of the function."""


def tables(xp, base) -> dict:
    """The kernels of :data:`TABLES` whose functions the library has."""
    found = {}
    for adaptor, ops in TABLES.items():
        for op in ops.split():
            if (function := find(xp, op, STANDARD.get(op, op))) is not None:
                found[op] = getattr(base, adaptor)(function)
    for op in ("floor_divide", "mod"):
        if (function := find(xp, op, STANDARD.get(op, op))) is not None:
            found[op] = base.dividing(function, op)
    return found


def special(xp, base, functions) -> dict:
    """The kernels that are special functions, looked up in ``functions`` by SciPy's names."""
    of = {"erf": "erf", "erfc": "erfc", "erfinv": "erfinv", "i0": "i0", "i1": "i1", "normal_cdf": "ndtr"}
    found = {op: base.floating(getattr(functions, name)) for op, name in of.items()}

    def lgamma(x):
        y = functions.gammaln(base.floats(x))
        return xp.where(y == -math.inf, -y, y)  # SciPy returns -inf at -inf

    def polygamma(x, n):
        x = base.floats(x)
        return base.cast(functions.polygamma(n, x) if n else functions.digamma(x), base.dtype_name(x))

    return {**found, "lgamma": lgamma, "polygamma": polygamma}


def elementwise(xp, base) -> dict:
    """The kernels of the tables, and kernels that the standard spells differently."""

    def abs(x):
        return x if base.is_bool(x) else xp.abs(x)

    def conj(x):
        return xp.conj(x) if base.is_complex(x) else x

    def real(x):
        return xp.real(x) if base.is_complex(x) else x

    def imag(x):
        return xp.imag(x) if base.is_complex(x) else xp.zeros_like(x)

    def angle(x):
        x = base.floats(x)
        return xp.atan2(imag(x), real(x))

    _inverted = find(xp, "bitwise_invert", "bitwise_not")

    def bitwise_not(x):
        return xp.logical_not(x) if base.is_bool(x) else _inverted(x)

    def exp2(x):
        x = base.floats(x)
        return xp.pow(xp.full_like(x, 2), x)

    def _remainder(x1, x2):
        y = xp.remainder(xp.abs(x1), xp.abs(x2))
        return xp.where(x1 < 0, -y, y)

    fmod = base.dividing(find(xp, "fmod") or _remainder, "fmod")

    def round(x, decimals=0):
        if not base.is_floating(x):
            return x if decimals >= 0 else base.cast(round(base.floats(x), decimals), base.dtype_name(x))
        if decimals == 0:
            return xp.round(x)
        scale = 10.0 ** max(decimals, -decimals)
        return xp.round(x * scale) / scale if decimals > 0 else xp.round(x / scale) * scale

    def _class(function, default):
        def kernel(x):
            if base.is_floating(x):
                return function(x)
            return xp.full(x.shape, default, dtype=base.native_dtype("bool"))

        return kernel

    isnan, isinf, isfinite = (_class(f, d) for f, d in ((xp.isnan, False), (xp.isinf, False), (xp.isfinite, True)))

    def signbit(x):
        return xp.signbit(x) if base.is_floating(x) else x != x if base.is_bool(x) else x < 0

    def relu(x):
        return x if base.is_bool(x) else xp.maximum(x, xp.zeros_like(x))

    def sigmoid(x):
        return 1 / (1 + xp.exp(-base.floats(x)))

    def softplus(x):
        x = base.floats(x)
        return xp.logaddexp(x, xp.zeros_like(x))

    return {**public(locals()), **tables(xp, base)}


# Kernels over the array API: reductions, products, and activations that are reductions --------------------------------


def reductions(xp, base) -> dict:
    def _wide(x):
        """Widen bools and small integers, whose sums are taken in 64 bits."""
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
        """The largest elements along an axis, and 0 where these are infinite."""
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
