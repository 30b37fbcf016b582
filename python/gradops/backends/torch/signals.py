"""PyTorch kernels: convolutions, pooling, Fourier transforms; channels come first internally."""

import math

import torch
from torch.nn import functional as F
from torch.nn import grad

from .base import floats, promoted

# Convolution.

_FORWARD = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
_TRANSPOSED = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}
_KERNEL = {1: grad.conv1d_weight, 2: grad.conv2d_weight, 3: grad.conv3d_weight}


def first(x, channels_first):
    return x if channels_first else torch.movedim(x, -1, 1)


def last(x, channels_first):
    return x if channels_first else torch.movedim(x, 1, -1)


def padded(x, padding, value=0.0):
    """``x`` padded with a constant; negative padding crops."""
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


# Pooling, and blocks as columns.

_MAX = {1: F.max_pool1d, 2: F.max_pool2d, 3: F.max_pool3d}
_AVERAGE = {1: F.avg_pool1d, 2: F.avg_pool2d, 3: F.avg_pool3d}


def window_max(x, window, strides, padding, channels_first):
    x = padded(first(x, channels_first), padding, -math.inf)
    return last(_MAX[len(window)](x, window, strides), channels_first)


def window_sum(x, window, strides, padding, channels_first):
    x = padded(first(x, channels_first), padding)
    short = len(window) == 3 and x.device.type == "cpu" and x.dtype.itemsize == 2  # torch lacks this case
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


# Fourier transforms and complex numbers.


def _full(x):
    x = floats(x)
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


def view_as_complex(x):
    x = _full(x)
    return torch.complex(x[..., 0], x[..., 1])


def _pad_empty(function, x, dimensions=1):
    """A transform that accepts empty batches, which MKL rejects: a row of zeros is added and removed again."""
    x = _full(x)
    none = [i for i, n in enumerate(x.shape[:-dimensions]) if not n]
    for i in none:
        x = torch.cat([x, x.new_zeros([1 if j == i else n for j, n in enumerate(x.shape)])], i)
    y = function(x)
    for i in none:
        y = y.narrow(i, 0, 0)
    return y


def fft_complex(x, dimensions=1, inverse=False):
    function = torch.fft.ifftn if inverse else torch.fft.fftn
    return _pad_empty(lambda x: function(x, dim=tuple(range(-dimensions, 0))), x, dimensions)


def rfft_complex(x, fft_length):
    return _pad_empty(lambda x: torch.fft.rfft(x, fft_length), x)


def irfft_complex(x, fft_length):
    return _pad_empty(lambda x: torch.fft.irfft(x, fft_length), x)
