"""Cases: convolution, against explicit sums over output positions and kernel taps."""

import numpy as np
from parity import Case, arrays

from .normalization import fixed


def several(value, count):
    return tuple(value) if isinstance(value, (tuple, list)) else (value,) * count


def placed(places, window, strides, dilation, padding):
    """Yield each output position and kernel tap with the input position where they meet."""
    for place in np.ndindex(*places):
        for tap in np.ndindex(*window):
            yield (
                place,
                tap,
                tuple(p * s + t * d - b for p, s, t, d, (b, _) in zip(place, strides, tap, dilation, padding)),
            )


def last(x, channels_first):
    return np.moveaxis(x, 1, -1) if channels_first else x


def first(x, channels_first):
    return np.moveaxis(x, -1, 1) if channels_first else x


def is_inside(at, sizes):
    return all(0 <= i < n for i, n in zip(at, sizes))


def conv_to_output(inputs, kernel, strides, padding, dilation, groups, channels_first):
    x = last(inputs, channels_first)
    sizes, window, (depth, filters) = x.shape[1:-1], kernel.shape[:-2], kernel.shape[-2:]
    places = [
        (n + b + a - (k - 1) * d - 1) // s + 1 for n, k, s, d, (b, a) in zip(sizes, window, strides, dilation, padding)
    ]
    y = np.zeros((len(x), *places, filters))
    for place, tap, at in placed(places, window, strides, dilation, padding):
        if is_inside(at, sizes):
            for f in range(filters):
                start = f // (filters // groups) * depth
                y[(slice(None), *place, f)] += x[(slice(None), *at)][:, start : start + depth] @ kernel[tap][:, f]
    return first(y, channels_first)


def conv_to_inputs(outputs, kernel, sizes, strides, padding, dilation, groups, channels_first):
    y = last(outputs, channels_first)
    window, (depth, filters) = kernel.shape[:-2], kernel.shape[-2:]
    x = np.zeros((len(y), *sizes, depth * groups))
    for place, tap, at in placed(y.shape[1:-1], window, strides, dilation, padding):
        if is_inside(at, sizes):
            for f in range(filters):
                start = f // (filters // groups) * depth
                x[(slice(None), *at)][:, start : start + depth] += (
                    y[(slice(None), *place)][:, f : f + 1] * kernel[tap][:, f]
                )
    return first(x, channels_first)


def conv_to_kernel(inputs, outputs, sizes, strides, padding, dilation, groups, channels_first):
    x, y = last(inputs, channels_first), last(outputs, channels_first)
    depth, filters = x.shape[-1] // groups, y.shape[-1]
    kernel = np.zeros((*sizes, depth, filters))
    for place, tap, at in placed(y.shape[1:-1], sizes, strides, dilation, padding):
        if is_inside(at, x.shape[1:-1]):
            for f in range(filters):
                start = f // (filters // groups) * depth
                kernel[tap][:, f] += x[(slice(None), *at)][:, start : start + depth].T @ y[(slice(None), *place, f)]
    return kernel


def conv(inputs, kernel, strides=1, padding="valid", data_format=None, dilation_rate=1, groups=None):
    is_first = data_format == "channels_first"
    x = last(inputs, is_first)
    count, around = x.ndim - 2, []
    strides, dilation = several(strides, count), several(dilation_rate, count)
    for n, k, s, d in zip(x.shape[1:-1], kernel.shape, strides, dilation):
        total = max((int(np.ceil(n / s)) - 1) * s + (k - 1) * d + 1 - n, 0)
        around.append({"valid": (0, 0), "same": (total // 2, total - total // 2), "causal": ((k - 1) * d, 0)}[padding])
    groups = groups or x.shape[-1] // kernel.shape[-2]
    return first(conv_to_output(x, kernel, strides, around, dilation, groups, False), is_first)


def depthwise(inputs, kernel, **keywords):
    channels = kernel.shape[-2]
    return conv(inputs, kernel.reshape(*kernel.shape[:-2], 1, -1), groups=channels, **keywords)


def separable(inputs, depthwise_kernel, pointwise_kernel, data_format=None, **keywords):
    y = depthwise(inputs, depthwise_kernel, data_format=data_format, **keywords)
    return conv(y, pointwise_kernel, data_format=data_format)


def conv_transpose(inputs, kernel, strides=1, padding="valid", output_padding=None, data_format=None, dilation_rate=1):
    """Scatter all contributions of the inputs, then crop to the output size that the documentation promises."""
    is_first = data_format == "channels_first"
    y = last(inputs, is_first)
    count = y.ndim - 2
    strides, dilation = several(strides, count), several(dilation_rate, count)
    extra = several(output_padding, count)
    reach = [(k - 1) * d + 1 for k, d in zip(kernel.shape, dilation)]
    whole = [(m - 1) * s + r for m, s, r in zip(y.shape[1:-1], strides, reach)]
    if padding == "valid":
        totals = [w + (max(s - r, 0) if e is None else e) for w, s, r, e in zip(whole, strides, reach, extra)]
        starts = [0] * count
    else:
        totals = [
            m * s if e is None else (m - 1) * s + r % 2 + e for m, s, r, e in zip(y.shape[1:-1], strides, reach, extra)
        ]
        starts = [max((w - t) // 2, 0) for w, t in zip(whole, totals)]
    room = [max(w, s + t) for w, s, t in zip(whole, starts, totals)]
    x = conv_to_inputs(y, kernel, room, strides, [(0, 0)] * count, dilation, 1, False)
    x = x[(slice(None), *(slice(s, s + t) for s, t in zip(starts, totals)))]
    return first(x, is_first)


both = ["inputs", "kernel"]


def sides(label, x, k, y, **how):
    """Return cases for the three ops of one convolution, with groups, dilation, strides and asymmetric padding."""
    sizes = x[2:] if how["channels_first"] else x[1:-1]
    return [
        Case("conv_to_output", fixed(inputs=x, kernel=k, **how), conv_to_output, gradients=both, label=label),
        Case(
            "conv_to_inputs",
            fixed(outputs=y, kernel=k, sizes=list(sizes), **how),
            conv_to_inputs,
            gradients=["outputs", "kernel"],
            label=label,
        ),
        Case(
            "conv_to_kernel",
            fixed(inputs=x, outputs=y, sizes=list(k[:-2]), **how),
            conv_to_kernel,
            gradients=["inputs", "outputs"],
            label=label,
        ),
    ]


def case(op, reference, label="", gradients=both, **arguments):
    return Case(op, fixed(**arguments), reference, gradients=gradients, label=label)


plain = {"strides": [1], "padding": [[0, 0]], "dilation": [1], "groups": 1, "channels_first": False}
uneven = {"strides": [2, 1], "padding": [[1, 2], [0, -1]], "dilation": [1, 2], "groups": 2, "channels_first": False}
depth = {"strides": [2, 1], "padding": [[1, 0], [0, 1]], "dilation": [1, 2], "groups": 3, "channels_first": True}
square = {"strides": [2, 2], "padding": [[1, 0], [0, 1]], "dilation": [1, 1], "groups": 2, "channels_first": False}
solid = {
    "strides": [1, 2, 1],
    "padding": [[1, 1], [0, 1], [0, 0]],
    "dilation": [1, 1, 2],
    "groups": 1,
    "channels_first": False,
}

CASES = [
    *sides("1-D", (2, 5, 3), (2, 3, 2), (2, 4, 2), **plain),
    *sides("groups", (2, 4, 6, 4), (3, 2, 2, 4), (2, 3, 3, 4), **uneven),
    *sides("depthwise", (2, 3, 4, 3), (2, 2, 1, 6), (2, 6, 2, 2), **depth),
    *sides("depthwise square", (1, 4, 4, 2), (3, 2, 1, 2), (1, 2, 2, 2), **square),
    *sides("3-D", (1, 2, 3, 3, 2), (2, 2, 2, 2, 2), (1, 3, 2, 1, 2), **solid),
    case("conv", conv, inputs=(2, 5, 4, 2), kernel=(3, 2, 2, 3)),
    case("conv", conv, "1-D causal", inputs=(2, 6, 2), kernel=(3, 2, 2), padding="causal", dilation_rate=2),
    case("conv", conv, "same, strides", inputs=(1, 5, 4, 2), kernel=(3, 2, 2, 2), padding="same", strides=[2, 3]),
    case(
        "conv",
        conv,
        "same, strides and dilation",
        inputs=(1, 6, 7, 2),
        kernel=(2, 3, 2, 2),
        padding="same",
        strides=2,
        dilation_rate=2,
    ),
    case(
        "conv",
        conv,
        "channels first",
        inputs=(2, 2, 4, 5),
        kernel=(3, 2, 2, 3),
        padding="same",
        data_format="channels_first",
    ),
    case("conv", conv, "groups", inputs=(2, 4, 4, 4), kernel=(2, 2, 2, 6), padding="same"),
    case("conv", conv, "3-D", inputs=(1, 3, 4, 3, 2), kernel=(2, 2, 2, 2, 2), strides=[1, 2, 1], padding="same"),
    case("depthwise_conv", depthwise, inputs=(2, 4, 4, 3), kernel=(3, 2, 3, 2), strides=2, padding="same"),
    case(
        "depthwise_conv",
        depthwise,
        "1-D channels first",
        inputs=(2, 3, 5),
        kernel=(2, 3, 1),
        dilation_rate=2,
        data_format="channels_first",
    ),
    case(
        "separable_conv",
        separable,
        inputs=(1, 4, 4, 2),
        depthwise_kernel=(2, 2, 2, 2),
        pointwise_kernel=(1, 1, 4, 3),
        padding="same",
        strides=2,
        gradients=["inputs", "depthwise_kernel", "pointwise_kernel"],
    ),
    case("conv_transpose", conv_transpose, inputs=(2, 3, 2, 2), kernel=(3, 2, 3, 2), strides=2),
    case("conv_transpose", conv_transpose, "same", inputs=(1, 3, 2, 2), kernel=(3, 2, 3, 2), strides=2, padding="same"),
    case("conv_transpose", conv_transpose, "wide strides", inputs=(1, 3, 2), kernel=(2, 3, 2), strides=4),
    case(
        "conv_transpose",
        conv_transpose,
        "same, wide strides",
        inputs=(1, 3, 2),
        kernel=(1, 3, 2),
        strides=3,
        padding="same",
    ),
    case(
        "conv_transpose",
        conv_transpose,
        "output padding",
        inputs=(1, 3, 3, 2),
        kernel=(3, 4, 2, 2),
        strides=[2, 3],
        padding="same",
        output_padding=1,
        data_format="channels_last",
    ),
    case(
        "conv_transpose",
        conv_transpose,
        "dilated, channels first",
        inputs=(1, 2, 3, 3),
        kernel=(2, 3, 2, 2),
        dilation_rate=2,
        strides=2,
        output_padding=[1, 0],
        data_format="channels_first",
    ),
    case(
        "conv_transpose",
        conv_transpose,
        "3-D",
        inputs=(1, 2, 2, 2, 2),
        kernel=(2, 1, 2, 2, 2),
        strides=[1, 2, 1],
        padding="same",
    ),
    Case(
        "conv",
        fixed(inputs=arrays((1, 4, 2), -3, 3, dtype="int64"), kernel=arrays((2, 2, 2), -3, 3, dtype="int64")),
        conv,
        label="integers",
    ),
    Case(
        "conv",
        fixed(inputs=arrays((1, 4, 2), dtype="float32"), kernel=(2, 2, 2)),
        lambda inputs, kernel: conv(inputs.astype("float64"), kernel),
        label="mixed precision",
    ),
]
