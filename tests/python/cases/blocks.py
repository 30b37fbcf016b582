"""Cases: blocks, against loops over windows and pixels."""

import numpy as np
from parity import Case, arrays

from .convolution import placed, several
from .normalization import fixed


def unfold(x, kernel_size, dilation=1, padding=0, stride=1):
    window, dilation, padding, strides = (several(v, 2) for v in (kernel_size, dilation, padding, stride))
    places = [
        (n + 2 * p - (k - 1) * d - 1) // s + 1 for n, k, s, p, d in zip(x.shape[2:], window, strides, padding, dilation)
    ]
    y = np.zeros((*x.shape[:2], *window, *places))
    for place, tap, (i, j) in placed(places, window, strides, dilation, [(p, p) for p in padding]):
        if 0 <= i < x.shape[2] and 0 <= j < x.shape[3]:
            y[(slice(None), slice(None), *tap, *place)] = x[:, :, i, j]
    return y.reshape(len(x), -1, places[0] * places[1])


def fold(x, output_size, kernel_size, dilation=1, padding=0, stride=1):
    sizes, window, dilation, padding, strides = (
        several(v, 2) for v in (output_size, kernel_size, dilation, padding, stride)
    )
    places = [
        (n + 2 * p - (k - 1) * d - 1) // s + 1 for n, k, s, p, d in zip(sizes, window, strides, padding, dilation)
    ]
    parts = x.reshape(len(x), -1, *window, *places)
    y = np.zeros((*parts.shape[:2], *sizes))
    for place, tap, (i, j) in placed(places, window, strides, dilation, [(p, p) for p in padding]):
        if 0 <= i < sizes[0] and 0 <= j < sizes[1]:
            y[:, :, i, j] += parts[(slice(None), slice(None), *tap, *place)]
    return y


def depth_to_space(x, block_size, data_format="channels_last"):
    x = np.moveaxis(x, 1, -1) if data_format == "channels_first" else x
    batch, height, width, channels = x.shape
    left = channels // block_size**2
    y = np.zeros((batch, height * block_size, width * block_size, left), x.dtype)
    for i in range(block_size):
        for j in range(block_size):
            start = (i * block_size + j) * left
            y[:, i::block_size, j::block_size] = x[..., start : start + left]
    return np.moveaxis(y, -1, 1) if data_format == "channels_first" else y


def space_to_depth(x, block_size, data_format="channels_last"):
    x = np.moveaxis(x, 1, -1) if data_format == "channels_first" else x
    parts = [x[:, i::block_size, j::block_size] for i in range(block_size) for j in range(block_size)]
    y = np.concatenate(parts, -1)
    return np.moveaxis(y, -1, 1) if data_format == "channels_first" else y


uneven = {"kernel_size": [2, 3], "dilation": [2, 1], "padding": [1, 0], "stride": [1, 2]}
general = {"window": [2, 3], "strides": [1, 2], "padding": [1, 0], "dilation": [2, 1]}


def columns(x, window, strides, padding, dilation):
    return unfold(x, window, dilation, padding, strides)


def sums(x, sizes, window, strides, padding, dilation):
    return fold(x, sizes, window, dilation, padding, strides)


def case(op, reference, label="", **arguments):
    return Case(op, fixed(**arguments), reference, gradients=["x"], label=label)


CASES = [
    case("unfold", unfold, x=(2, 2, 4, 3), kernel_size=2),
    case("unfold", unfold, "uneven", x=(1, 2, 4, 5), **uneven),
    case("fold", fold, x=(2, 8, 6), output_size=[4, 3], kernel_size=2),
    case("fold", fold, "uneven", x=(1, 12, 8), output_size=[4, 5], **uneven),
    case("window_columns", columns, x=(1, 2, 4, 5), **general),
    case("column_sums", sums, x=(1, 12, 8), sizes=[4, 5], **general),
    case("depth_to_space", depth_to_space, x=(2, 2, 3, 8), block_size=2),
    case(
        "depth_to_space", depth_to_space, "channels first", x=(1, 9, 1, 2), block_size=3, data_format="channels_first"
    ),
    case("space_to_depth", space_to_depth, x=(2, 4, 6, 2), block_size=2),
    case(
        "space_to_depth", space_to_depth, "channels first", x=(1, 2, 3, 6), block_size=3, data_format="channels_first"
    ),
    Case(
        "space_to_depth", fixed(x=arrays((1, 2, 2, 3), -5, 5, dtype="int64"), block_size=2), space_to_depth, label="int"
    ),
]
