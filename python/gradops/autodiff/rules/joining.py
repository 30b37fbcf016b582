"""Derivatives: joining and splitting."""

from ...ops import concatenate, reshape, split, stack
from ..record import derivative


def _concatenate(g, shapes, axis):
    if _is_one_tensor(shapes):
        return stack(_concatenate(g, [shapes[1:]] * shapes[0], axis))
    edges, total = [], 0
    for shape in shapes[:-1]:
        total += shape[axis]
        edges.append(total)
    return split(g, edges, axis) if edges else [g]


def _stack(g, shapes, axis):
    if _is_one_tensor(shapes):
        return stack(_stack(g, [shapes[1:]] * shapes[0], axis))
    axis = axis % (len(shapes[0]) + 1)
    return [reshape(piece, shape) for piece, shape in zip(split(g, len(shapes), axis), shapes)]


def _is_one_tensor(shapes) -> bool:
    """Whether the tensors were one, to be taken apart: then there is one shape."""
    return isinstance(shapes, tuple)


derivative("concatenate", xs=_concatenate)
derivative("stack", x=_stack)
derivative("unstack", x=lambda g, axis: stack(g, axis))
derivative("split", x=lambda g, axis: concatenate(g, axis))
