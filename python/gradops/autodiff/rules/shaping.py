"""Derivatives: shape."""

from ...ops import dtype, flip, reshape, roll, transpose
from ..record import derivative


def _inverse(axes):
    rank = len(axes)
    order = [a % rank for a in axes]
    return [order.index(i) for i in range(rank)]


derivative("reshape", x=lambda g, shape: reshape(g, shape))
derivative("transpose", x=lambda g, axes: transpose(g, None if axes is None else _inverse(axes)))
derivative("expand_dims", x=lambda g, shape: reshape(g, shape))
derivative("squeeze", x=lambda g, shape: reshape(g, shape))
derivative("broadcast_to", x=lambda g: g)
derivative("flip", x=lambda g, axis: flip(g, axis))
derivative(
    "roll",
    x=lambda g, shift, axis: roll(g, [-s for s in shift] if isinstance(shift, (tuple, list)) else -shift, axis),
)
derivative("view", x=lambda g, x, y: g if dtype(x) == dtype(y) else None)
