"""Derivatives: sorting. The gradient goes back to where the elements came from."""

from ...ops import argsort, reshape, swapaxes
from ...ops.sorting import pick
from ..record import derivative


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
