"""Derivatives: reductions. Ties of ``max`` and ``min`` share the gradient equally."""

from ...ops import (
    add,
    broadcast_to,
    cast,
    cumsum,
    dtype,
    equal,
    exp,
    flip,
    multiply,
    reshape,
    subtract,
    sum,
)
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
    count = 1
    for full, one in zip(shape, keepdims_shape(shape, axis)):
        count *= full if one == 1 else 1
    return spread(g, shape, axis) * (1.0 / count if count else float("nan"))


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
derivative(
    "logsumexp",
    x=lambda g, x, y, shape, axis: multiply(
        spread(g, shape, axis), exp(subtract(x, reshape(y, keepdims_shape(shape, axis))))
    ),
)
derivative("cumsum", x=_cumsum)
