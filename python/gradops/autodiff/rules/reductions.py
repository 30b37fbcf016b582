"""Derivatives: reductions. Ties of ``max`` and ``min`` share the gradient equally."""

from ...ops import (
    broadcast_to,
    cast,
    cumsum,
    dtype,
    equal,
    exp,
    flip,
    multiply,
    reshape,
    size,
    subtract,
    sum,
)
from ..record import derivative


def kept(shape, axis):
    """The shape of a reduction's result with the reduced dimensions kept."""
    if axis is None:
        return (1,) * len(shape)
    axes = {a % len(shape) for a in (axis if isinstance(axis, (tuple, list)) else (axis,))} if len(shape) else set()
    return tuple(1 if i in axes else n for i, n in enumerate(shape))


def spread(g, shape, axis):
    """``g``, of a reduced shape, back over the dimensions that were reduced."""
    return broadcast_to(reshape(g, kept(shape, axis)), shape)


def _mean(g, shape, axis):
    count = 1
    for full, one in zip(shape, kept(shape, axis)):
        count *= full if one == 1 else 1
    return spread(g, shape, axis) * (1.0 / count if count else float("nan"))


def _extreme(g, x, y, shape, axis):
    chosen = cast(equal(x, reshape(y, kept(shape, axis))), dtype(g))
    return multiply(spread(g, shape, axis), chosen / sum(chosen, axis, True))


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
        spread(g, shape, axis), exp(subtract(x, reshape(y, kept(shape, axis))))
    ),
)
derivative("cumsum", x=_cumsum)
