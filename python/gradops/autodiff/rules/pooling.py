"""Derivatives: pooling."""

from ...ops import reshape, zeros_like
from ...ops.indexing import add_at
from ...ops.pooling import window_positions, window_spread, window_sum
from ..record import derivative


def _max(g, x, y, shape, window, strides, padding, channels_first):
    chosen = window_positions(x, y, window, strides, padding, channels_first)
    flat = add_at(zeros_like(reshape(x, (-1,))), reshape(chosen, (-1,)), reshape(g, (-1,)))
    return reshape(flat, shape)


def _sum(g, shape, window, strides, padding, channels_first):
    sizes = tuple(shape[2:] if channels_first else shape[1:-1])
    return window_spread(g, sizes, window, strides, padding, channels_first)


def _spread(g, window, strides, padding, channels_first):
    return window_sum(g, window, strides, padding, channels_first)


derivative("window_max", x=_max)
derivative("window_sum", x=_sum)
derivative("window_spread", y=_spread)
