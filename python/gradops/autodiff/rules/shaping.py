"""Derivatives: shape."""

from ...ops import concatenate, flip, reshape, roll, split, transpose
from ..record import derivative


def _inverse(axes):
    rank = len(axes)
    order = [a % rank for a in axes]
    return [order.index(i) for i in range(rank)]


def _concatenate(g, shapes, axis):
    edges, total = [], 0
    for shape in shapes[:-1]:
        total += shape[axis]
        edges.append(total)
    return split(g, edges, axis) if edges else [g]


def _stack(g, shapes, axis):
    axis = axis % (len(shapes[0]) + 1)
    return [reshape(piece, shape) for piece, shape in zip(split(g, len(shapes), axis), shapes)]


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
derivative("concatenate", xs=_concatenate)
derivative("stack", xs=_stack)
derivative("split", x=lambda g, axis: concatenate(g, axis))
