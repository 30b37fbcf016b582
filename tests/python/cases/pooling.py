"""Cases: pooling, against a loop over every window."""

import numpy as np
from parity import Case, arrays

from .convolution import first, last, several
from .normalization import fixed


def reduced(function, x, window, strides, padding, channels_first):
    """Apply a function to the elements of each window that lie inside the input, per channel."""
    x = last(x, channels_first)
    sizes = x.shape[1:-1]
    places = [(n + b + a - k) // s + 1 for n, k, s, (b, a) in zip(sizes, window, strides, padding)]
    y = np.zeros((len(x), *places, x.shape[-1]))
    for place in np.ndindex(*places):
        key = tuple(
            slice(max(p * s - b, 0), max(p * s - b + k, 0)) for p, s, k, (b, _) in zip(place, strides, window, padding)
        )
        y[(slice(None), *place)] = function(x[(slice(None), *key)], axis=tuple(range(1, x.ndim - 1)))
    return first(y, channels_first)


def positions(x, y, window, strides, padding, channels_first):
    flat = np.arange(x.size).reshape(x.shape)
    values = last(x, channels_first)

    def where_largest(places, axis):
        rows = places.reshape(len(places), -1, places.shape[-1])
        found = x.ravel()[rows]
        return np.take_along_axis(rows, found.argmax(1)[:, None], 1)[:, 0]

    assert values.ndim == x.ndim
    return reduced(where_largest, flat, window, strides, padding, channels_first).astype("int64")


def spread(y, sizes, window, strides, padding, channels_first):
    y = last(y, channels_first)
    x = np.zeros((len(y), *(n + b + a for n, (b, a) in zip(sizes, padding)), y.shape[-1]))
    for place in np.ndindex(*y.shape[1:-1]):
        key = tuple(slice(p * s, p * s + k) for p, s, k in zip(place, strides, window))
        x[(slice(None), *key)] += y[(slice(None), *place)].reshape(len(y), *[1] * len(sizes), -1)
    inside = tuple(slice(b, b + n) for n, (b, _) in zip(sizes, padding))
    return first(x[(slice(None), *inside)], channels_first)


def pooling(function):
    def reference(inputs, pool_size, strides=None, padding="valid", data_format=None):
        is_first = data_format == "channels_first"
        sizes = inputs.shape[2:] if is_first else inputs.shape[1:-1]
        window = several(pool_size, len(sizes))
        strides = window if strides is None else several(strides, len(sizes))
        missing = [max((-(-n // s) - 1) * s + k - n, 0) for n, k, s in zip(sizes, window, strides)]
        around = [(m // 2, m - m // 2) if padding == "same" else (0, 0) for m in missing]
        return reduced(function, inputs.astype("float64"), window, strides, around, is_first)

    return reference


def adaptive(function):
    def reference(inputs, output_size, data_format=None):
        x = last(inputs, data_format == "channels_first")
        sizes = x.shape[1:-1]
        count = several(output_size, len(sizes))
        y = np.zeros((len(x), *count, x.shape[-1]))
        for place in np.ndindex(*count):
            key = tuple(slice(p * n // m, int(np.ceil((p + 1) * n / m))) for p, n, m in zip(place, sizes, count))
            y[(slice(None), *place)] = function(x[(slice(None), *key)], axis=tuple(range(1, x.ndim - 1)))
        return first(y, data_format == "channels_first")

    return reference


def adaptive_positions(x, output_size, channels_first):
    largest = adaptive(np.max)(x, output_size, "channels_first" if channels_first else None)
    return np.array([np.flatnonzero(x.ravel() == v)[0] for v in largest.ravel()]).reshape(largest.shape)


def apart(*shape):
    return arrays(shape, -2, 2, distinct=True)


uneven = {"window": [2, 3], "strides": [2, 1], "padding": [[1, 0], [0, 2]], "channels_first": False}
line = {"window": [3], "strides": [2], "padding": [[0, 1]], "channels_first": True}
solid = {"window": [2, 1, 2], "strides": [1, 2, 2], "padding": [[0, 1], [0, 0], [1, 1]], "channels_first": False}


def sums(x, **how):
    return reduced(np.sum, x, **how)


def largest(x, **how):
    return reduced(np.max, x, **how)


def chosen(x, **how):
    """Draw an input together with the positions of the maximum of each window."""
    return fixed(x=x, **how).map(lambda given: {**given, "y": largest(given["x"], **how)} | how)


KINDS = {"max_pool": np.max, "average_pool": np.mean}
ADAPTIVE = {"adaptive_max_pool": np.max, "adaptive_average_pool": np.mean}


def pool_cases(op):
    reference = pooling(KINDS[op])

    def case(label, x, **how):
        return Case(op, fixed(inputs=x, **how), reference, gradients=["inputs"], label=label)

    return [
        case("", apart(2, 4, 5, 2), pool_size=2),
        case("overlapping", apart(1, 5, 4, 2), pool_size=[3, 2], strides=1),
        case("same", apart(1, 5, 4, 2), pool_size=3, strides=2, padding="same"),
        case("1-D", apart(2, 6, 2), pool_size=3, padding="same"),
        case("3-D", apart(1, 3, 4, 4, 1), pool_size=2, strides=[1, 2, 2], padding="same"),
        case("channels first", apart(2, 2, 4, 4), pool_size=3, strides=2, data_format="channels_first"),
        Case(op, fixed(inputs=arrays((1, 4, 2), -5, 5, dtype="int64"), pool_size=2), reference, label="integers"),
    ]


def adaptive_cases(op):
    reference = adaptive(ADAPTIVE[op])

    def case(label, x, **how):
        return Case(op, fixed(inputs=x, **how), reference, gradients=["inputs"], label=label)

    return [
        case("", apart(2, 5, 7, 2), output_size=[3, 4]),
        case("divisible", apart(2, 4, 6, 2), output_size=[2, 3]),
        case("1-D, more", apart(2, 3, 2), output_size=5),
        case("3-D, channels first", apart(1, 2, 3, 4, 2), output_size=2, data_format="channels_first"),
    ]


CASES = [
    *(
        Case("window_max", fixed(x=x, **how), largest, gradients=["x"], label=str(i))
        for i, (x, how) in enumerate(
            [(apart(2, 3, 4, 2), uneven), (apart(2, 2, 6), line), (apart(1, 2, 3, 3, 2), solid)]
        )
    ),
    *(
        Case("window_sum", fixed(x=x, **how), sums, gradients=["x"], label=str(i))
        for i, (x, how) in enumerate(
            [(apart(2, 3, 4, 2), uneven), (apart(2, 2, 6), line), (apart(1, 2, 3, 3, 2), solid)]
        )
    ),
    Case("window_spread", fixed(y=(2, 2, 4, 2), sizes=[3, 4], **uneven), spread, gradients=["y"]),
    Case("window_spread", fixed(y=(2, 2, 3), sizes=[6], **line), spread, gradients=["y"], label="channels first"),
    Case("window_spread", fixed(y=(1, 2, 2, 2, 1), sizes=[2, 3, 3], **solid), spread, gradients=["y"], label="3-D"),
    Case("window_positions", chosen(apart(2, 3, 4, 2), **uneven), positions),
    Case("window_positions", chosen(apart(2, 2, 6), **line), positions, label="channels first"),
    Case("window_positions", chosen(apart(1, 2, 3, 3, 2), **solid), positions, label="3-D"),
    *pool_cases("max_pool"),
    *pool_cases("average_pool"),
    *adaptive_cases("adaptive_average_pool"),
    *adaptive_cases("adaptive_max_pool"),
    Case(
        "adaptive_positions", fixed(x=apart(2, 5, 4, 2), output_size=[3, 2], channels_first=False), adaptive_positions
    ),
]
