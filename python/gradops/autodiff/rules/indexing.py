"""Derivatives: indexing. The gradient of reading positions is adding at them."""

from ...ops import equal, multiply, reshape, take, where, zeros_like
from ...ops.indexing import add_at
from ..record import derivative


def _take(g, x, indices, axis, shape):
    if axis is None:
        flat = add_at(zeros_like(reshape(x, (-1,)), None), indices, g)
        return reshape(flat, shape)
    axis = axis % len(shape)
    return add_at(zeros_like(x), (slice(None),) * axis + (indices,), g)


def _get_item(g, x, key):
    return add_at(zeros_like(x), key, g)


derivative("get_item", x=_get_item)
derivative("take", x=_take)
derivative("add_at", x=lambda g: g, updates=lambda g, key: g[key])
derivative(
    "where",
    x1=lambda g, condition: where(condition, g, 0.0),
    x2=lambda g, condition: where(condition, 0.0, g),
)
