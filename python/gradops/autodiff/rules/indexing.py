"""Derivatives: indexing. The gradient of reading positions is adding at them."""

import math

from ...ops import reshape, where
from ...ops.indexing import add_at, effective_updates, get_item, set_at
from ..cotangents import Scattered, zeros_of
from ..record import derivative
from ..state import special


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
