"""PyTorch kernels: windows: pooling, and blocks as columns."""

import math

import torch
from torch.nn import functional as F

from .convolution import conv_to_inputs, first, last, padded

_MAX = {1: F.max_pool1d, 2: F.max_pool2d, 3: F.max_pool3d}
_AVERAGE = {1: F.avg_pool1d, 2: F.avg_pool2d, 3: F.avg_pool3d}


def window_max(x, window, strides, padding, channels_first):
    x = padded(first(x, channels_first), padding, -math.inf)
    return last(_MAX[len(window)](x, window, strides), channels_first)


def window_sum(x, window, strides, padding, channels_first):
    x = padded(first(x, channels_first), padding)
    short = len(window) == 3 and x.device.type == "cpu" and x.dtype.itemsize == 2  # which the library lacks
    sums = _AVERAGE[len(window)](x.float() if short else x, window, strides) * math.prod(window)
    return last(sums.to(x.dtype) if short else sums, channels_first)


def window_spread(y, sizes, window, strides, padding, channels_first):
    channels = y.shape[1 if channels_first else -1]
    ones = torch.ones((*window, 1, channels), dtype=y.dtype, device=y.device)
    return conv_to_inputs(y, ones, sizes, strides, padding, (1,) * len(window), channels, channels_first)


def window_columns(x, window, strides, padding, dilation):
    return F.unfold(x, window, dilation, padding, strides)


def column_sums(x, sizes, window, strides, padding, dilation):
    return F.fold(x, sizes, window, dilation, padding, strides)
