"""Derivatives of ops that move elements: shapes, joining and splitting, blocks, indexing, scattering.

The gradient of reading elements at positions is added at those positions.
"""

import math

from ...ops import (
    cast,
    concatenate,
    dtype,
    equal,
    flip,
    multiply,
    reshape,
    roll,
    split,
    stack,
    take,
    transpose,
    unstack,
    where,
)
from ...ops._checks import known
from ...ops.blocks import column_sums, window_columns
from ...ops.indexing import add_at, effective_updates, get_item, set_at
from ...ops.scattering import _zeros, segment_sum
from ..cotangents import Scattered, zeros_of
from ..record import derivative
from ..state import special


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


# Joining and splitting.


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
    if g.dtype in special:  # texts, whose feedback may be one for all
        axis = axis % (len(shapes[0]) + 1)
        return [reshape(piece, shape) for piece, shape in zip(split(g, len(shapes), axis), shapes)]
    return unstack(g, len(shapes), axis)


def _rows(tensor) -> list:
    """Return the shapes of the rows of one tensor that was passed in place of a list of tensors."""
    count, *rest = getattr(tensor, "shape", tensor)
    return [tuple(rest)] * count


derivative("concatenate", xs=_concatenate)
derivative("stack", x=_stack)
derivative("unstack", several=True, x=lambda g, axis: stack(g, axis))
derivative("split", several=True, x=lambda g, axis: concatenate(g, axis))


# Windows as columns (unfold and fold).


def _columns(g, shape, window, strides, padding, dilation):
    return column_sums(g, tuple(shape[2:]), window, strides, padding, dilation)


def _sums(g, window, strides, padding, dilation):
    return window_columns(g, window, strides, padding, dilation)


derivative("window_columns", x=_columns)
derivative("column_sums", x=_sums)


# Indexing.


def _take(g, indices, axis, shape):
    if axis is None:
        return reshape(add_at(zeros_of(g, (math.prod(shape),)), indices, g), shape)
    axis = axis % len(shape)
    return add_at(zeros_of(g, shape), (slice(None),) * axis + (indices,) if axis else indices, g)


def _get_item(g, key, shape):
    scattered = Scattered(shape, key, g)
    return scattered.total() if g.dtype in special else scattered


def _set_updates(g, x, key):
    return effective_updates(g, tuple(x.shape), key)


derivative("get_item", x=_get_item)
derivative("take", x=_take)
derivative("add_at", x=lambda g: g, updates=lambda g, key: get_item(g, key))
derivative("set_at", x=lambda g, key: set_at(g, key, 0.0), updates=_set_updates)
derivative(
    "where",
    x1=lambda g, condition: where(condition, g, 0.0),
    x2=lambda g, condition: where(condition, 0.0, g),
)


# Scattering. Ops without a rule here are composed of others.


def _extreme(g, data, segment_ids, y):
    """Return the gradient of a segment extremum: shared equally by tied rows, 0 for rows of no segment."""
    count, line = y.shape[0], (1, *y.shape[1:])
    ids = segment_ids if known(segment_ids) is None else known(segment_ids)
    row = where((ids >= 0) & (ids < count), ids, count)
    chosen = cast(equal(data, take(concatenate([y, _zeros(data, line)]), row, 0)), dtype(g))
    ties = segment_sum(chosen, row, count + 1)
    share = concatenate([g, _zeros(g, line)]) / where(equal(ties, 0), 1.0, ties)
    return multiply(chosen, take(share, row, 0))


derivative("segment_max", data=_extreme)
derivative("segment_min", data=_extreme)
