"""Derivatives: blocks."""

from ...ops.blocks import column_sums, window_columns
from ..record import derivative


def _columns(g, shape, window, strides, padding, dilation):
    return column_sums(g, tuple(shape[2:]), window, strides, padding, dilation)


def _sums(g, window, strides, padding, dilation):
    return window_columns(g, window, strides, padding, dilation)


derivative("window_columns", x=_columns)
derivative("column_sums", x=_sums)
