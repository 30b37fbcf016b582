"""Derivatives: statistics. All but ``sliding_product`` are composed of ops that have theirs."""

from ...ops import broadcast_to, concatenate, flip, multiply, sliding_product, split
from ..record import derivative


def _under_window(g, window):
    """The gradient of what a window slides over: the padded ``g`` under the reversed window."""
    zero = broadcast_to(split(multiply(g, 0), [1], 0)[0], (window.shape[0] - 1,))
    padded = concatenate([zero, g, zero], 0) if window.shape[0] > 1 else g
    return sliding_product(padded, flip(window))


derivative("sliding_product", x=_under_window, window=lambda g, x: sliding_product(x, g))
