"""PyTorch kernels: windows of an image as columns and back."""

from torch.nn import functional as F


def window_columns(x, window, strides, padding, dilation):
    return F.unfold(x, window, dilation, padding, strides)


def column_sums(x, sizes, window, strides, padding, dilation):
    return F.fold(x, sizes, window, dilation, padding, strides)
