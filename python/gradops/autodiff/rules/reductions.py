"""Derivatives of reductions, sorting and sliding products. Other statistics are composed of ops that have theirs.

Ties of ``max`` and ``min`` share the gradient equally. The gradient of sorted elements goes to where they came from.
"""

import math

from ...ops import (
    add,
    argsort,
    broadcast_to,
    cast,
    concatenate,
    cumsum,
    dtype,
    equal,
    exp,
    flip,
    multiply,
    reshape,
    sliding_product,
    softmax,
    split,
    subtract,
    sum,
    swapaxes,
)
from ...ops.sorting import pick
from ..record import derivative


def keepdims_shape(shape, axis):
    """The shape of a reduction's result with ones for the reduced dimensions."""
    if axis is None:
        return (1,) * len(shape)
    axes = {a % len(shape) for a in (axis if isinstance(axis, (tuple, list)) else (axis,))} if len(shape) else set()
    return tuple(1 if i in axes else n for i, n in enumerate(shape))


def spread(g, shape, axis):
    """``g``, of a reduced shape, back over the dimensions that were reduced."""
    if axis is not None:
        ones = keepdims_shape(shape, axis)
        g = g if g.shape == ones else reshape(g, ones)
    return broadcast_to(g, shape)


def _mean(g, shape, axis):
    if axis is None:
        count = math.prod(shape)
    else:
        count = math.prod([full for full, one in zip(shape, keepdims_shape(shape, axis)) if one == 1])
    return spread(g * (1.0 / count if count else float("nan")), shape, axis)


def _extreme(g, x, y, shape, axis, initial):
    y = reshape(y, keepdims_shape(shape, axis))
    chosen = cast(equal(x, y), dtype(g))
    count = sum(chosen, axis, True)
    if initial is not None:
        count = add(count, equal(y, initial))
    return multiply(spread(g, shape, axis), chosen / count)  # NaN, which is equal to nothing, by none


def _cumsum(g, shape, axis):
    if axis is None:
        return reshape(flip(cumsum(flip(g, 0), 0), 0), shape)
    return flip(cumsum(flip(g, axis), axis), axis)


derivative("sum", x=lambda g, shape, axis: spread(g, shape, axis))
derivative("mean", x=_mean)
derivative("max", x=_extreme)
derivative("min", x=_extreme)


def _logsumexp(g, x, y, shape, axis):
    if dtype(x)[0] == "c":
        slope = exp(subtract(x, reshape(y, keepdims_shape(shape, axis))))
    else:
        # Not by `y`: a loop's derivative, which goes through its steps again, then needs no logarithm.
        slope = softmax(x, tuple(range(len(shape))) if axis is None else axis)
    return multiply(spread(g, shape, axis), slope)


derivative("logsumexp", x=_logsumexp)
derivative("cumsum", x=_cumsum)


# Sorting, and sliding products.


def _sort(g, x, shape, axis):
    if not shape:
        return reshape(g, ())
    if axis is None:
        return reshape(pick(g, argsort(argsort(x, None), -1)), shape)
    back = argsort(argsort(x, axis), axis)
    if axis % len(shape) == len(shape) - 1:
        return pick(g, back)
    return swapaxes(pick(swapaxes(g, axis, -1), swapaxes(back, axis, -1)), axis, -1)


derivative("sort", x=_sort)


def _under_window(g, window):
    """The gradient of the data that a window slides over: the padded ``g`` under the reversed window."""
    zero = broadcast_to(split(multiply(g, 0), [1], 0)[0], (window.shape[0] - 1,))
    padded = concatenate([zero, g, zero], 0) if window.shape[0] > 1 else g
    return sliding_product(padded, flip(window))


derivative("sliding_product", x=_under_window, window=lambda g, x: sliding_product(x, g))
