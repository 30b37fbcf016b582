"""Derivatives: joining and splitting."""

from ...ops import concatenate, reshape, split, stack
from ..record import derivative


def _concatenate(g, shapes, axis):
    if not isinstance(shapes, list):
        return stack(_concatenate(g, _rows(shapes), axis))
    edges, total = [], 0
    for shape in shapes[:-1]:
        total += shape[axis]
        edges.append(total)
    return split(g, edges, axis) if edges else [g]


def _stack(g, shapes, axis):
    if not isinstance(shapes, list):
        return stack(_stack(g, _rows(shapes), axis))
    axis = axis % (len(shapes[0]) + 1)
    return [reshape(piece, shape) for piece, shape in zip(split(g, len(shapes), axis), shapes)]


def _rows(tensor) -> list:
    """The shapes of the rows of one tensor, given instead of several."""
    count, *rest = getattr(tensor, "shape", tensor)
    return [tuple(rest)] * count


derivative("concatenate", xs=_concatenate)
derivative("stack", x=_stack)
derivative("unstack", several=True, x=lambda g, axis: stack(g, axis))
derivative("split", several=True, x=lambda g, axis: concatenate(g, axis))
