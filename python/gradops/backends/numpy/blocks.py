"""NumPy kernels: windows of an image as columns and back."""

import numpy as np

from .convolution import padded, windows


def window_columns(x, window, strides, padding, dilation):
    image = padded(x.reshape(-1, *x.shape[2:], 1), [(p, p) for p in padding])
    view = windows(image, window, strides, dilation)[..., 0]
    columns = np.ascontiguousarray(np.transpose(view, (0, 3, 4, 1, 2)))
    return columns.reshape(len(x), x.shape[1] * window[0] * window[1], view.shape[1] * view.shape[2])


def column_sums(x, sizes, window, strides, padding, dilation):
    channels = x.shape[1] // (window[0] * window[1])
    image = np.zeros((len(x) * channels, *(n + 2 * p for n, p in zip(sizes, padding)), 1), x.dtype)
    view = windows(image, window, strides, dilation)[..., 0]
    parts = x.reshape(len(image), *window, *view.shape[1:3])
    for i, j in np.ndindex(*window):
        view[..., i, j] += parts[:, i, j]
    (height, width), (above, left) = sizes, padding
    image = image[:, above : above + height, left : left + width]
    return np.ascontiguousarray(image).reshape(len(x), channels, height, width)
