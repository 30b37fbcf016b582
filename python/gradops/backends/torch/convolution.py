"""PyTorch kernels: convolution, with channels first inside."""

import torch
from torch.nn import functional as F
from torch.nn import grad

from .base import floats, promoted

_FORWARD = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
_TRANSPOSED = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}
_KERNEL = {1: grad.conv1d_weight, 2: grad.conv2d_weight, 3: grad.conv3d_weight}


def first(x, channels_first):
    return x if channels_first else torch.movedim(x, -1, 1)


def last(x, channels_first):
    return x if channels_first else torch.movedim(x, 1, -1)


def padded(x, padding, value=0.0):
    """``x`` with constants around it; negative padding crops."""
    if not any(map(any, padding)):
        return x
    return F.pad(x, [n for pair in reversed(padding) for n in pair], value=value)


def _filters_first(kernel):
    return kernel.permute(kernel.ndim - 1, kernel.ndim - 2, *range(kernel.ndim - 2))


def conv_to_output(inputs, kernel, strides, padding, dilation, groups, channels_first):
    x, kernel = (floats(t) for t in promoted(inputs, kernel))
    x, kernel = first(x, channels_first), _filters_first(kernel)
    if all(before == after >= 0 for before, after in padding):
        around = tuple(before for before, _ in padding)
    else:
        x, around = padded(x, padding), 0
    y = _FORWARD[len(strides)](x, kernel, None, strides, around, dilation, groups)
    return last(y, channels_first)


def conv_to_inputs(outputs, kernel, sizes, strides, padding, dilation, groups, channels_first):
    y, kernel = (floats(t) for t in promoted(outputs, kernel))
    y, kernel = first(y, channels_first), _filters_first(kernel)
    x = _TRANSPOSED[len(strides)](y, kernel, None, strides, 0, 0, groups, dilation)
    crops = [(-before, n + before - have) for n, have, (before, _) in zip(sizes, x.shape[2:], padding)]
    return last(padded(x, crops), channels_first)


def conv_to_kernel(inputs, outputs, sizes, strides, padding, dilation, groups, channels_first):
    x, y = (floats(t) for t in promoted(inputs, outputs))
    x, y = padded(first(x, channels_first), padding), first(y, channels_first)
    shape = (y.shape[1], x.shape[1] // groups, *sizes)
    kernel = _KERNEL[len(strides)](x, shape, y, strides, 0, dilation, groups)
    return kernel.permute(*range(2, kernel.ndim), 1, 0)
