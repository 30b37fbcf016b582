"""Convolution in 1, 2 and 3 dimensions.

A convolution and its gradients for the inputs and for the kernel are the three partial derivatives of one trilinear
form, ``sum(outputs * convolution(inputs, kernel))``. ``conv_to_output``, ``conv_to_inputs`` and ``conv_to_kernel``
compute them. The derivatives of each are the other two, so these three ops give derivatives of any order. They take
settings that the public ops compute: strides and dilation for each dimension, zeros before and after it (a negative
number crops), groups, and whether channels come first.
"""

from __future__ import annotations

from ..annotations import Integers, Tensor
from ..errors import ShapeError
from ._checks import check_rank, choice, describe
from ._dispatch import op
from ._sizes import is_channels_first, pads, per_dimension, positions, spatial_sizes
from .properties import shape
from .shaping import reshape


def _check_size(op: str, kernel, name: str = "kernel") -> None:
    """Raise for an empty kernel, for which libraries disagree and TensorFlow ends the process by dividing by 0."""
    if any(isinstance(size, int) and size == 0 for size in shape(kernel)):
        raise ShapeError(
            f"`{op}`: `{name}` must have elements; got {{kernel}}.", argument=name, kernel=describe(kernel)
        )


def _check_kernel(op, first, kernel, *_) -> None:
    _check_size(op.name, kernel)


@op(public=False, multilinear=("inputs", "kernel"), check=_check_kernel)
def conv_to_output(inputs: Tensor, kernel: Tensor, strides, padding, dilation, groups, channels_first) -> Tensor:
    """The convolution of inputs with a kernel of shape ``(*window, channels / groups, filters)``.

    Gradient:
        :func:`conv_to_inputs` and :func:`conv_to_kernel`.
    """
    ...


@op(public=False, multilinear=("outputs", "kernel"), check=_check_kernel)
def conv_to_inputs(
    outputs: Tensor, kernel: Tensor, sizes, strides, padding, dilation, groups, channels_first
) -> Tensor:
    """The gradient of a convolution for its inputs, of spatial ``sizes``, at ``outputs``.

    Gradient:
        :func:`conv_to_output` and :func:`conv_to_kernel`.
    """
    ...


@op(public=False, multilinear=("inputs", "outputs"))
def conv_to_kernel(
    inputs: Tensor, outputs: Tensor, sizes, strides, padding, dilation, groups, channels_first
) -> Tensor:
    """The gradient of a convolution for its kernel, with a window of ``sizes``, at ``outputs``.

    Gradient:
        :func:`conv_to_inputs` and :func:`conv_to_output`.
    """
    ...


__family__ = """Convolution.

In 1, 2 or 3 dimensions. Kernels are not flipped (cross-correlation). The result is linear in inputs and in kernel; the
gradient for either is a convolution of the upstream gradient with the other.

See Also:
    :func:`max_pool`, :func:`unfold`, :func:`correlate`, :func:`dot_product_attention`.
"""


def _channels(inputs, channels_first):
    return shape(inputs)[1 if channels_first else -1]


def _window(op: str, kernel, count: int, name: str = "kernel") -> tuple[int, ...]:
    check_rank(op, kernel, (count + 2,), name)
    _check_size(op, kernel, name)
    return tuple(shape(kernel)[:-2])


def _convolve(op: str, inputs, kernel, strides, padding, data_format, dilation_rate, depthwise=False):
    first = is_channels_first(op, data_format)
    sizes = spatial_sizes(op, inputs, first)
    count = len(sizes)
    window = _window(op, kernel, count)
    strides = per_dimension(op, strides, count, "strides")
    dilation = per_dimension(op, dilation_rate, count, "dilation_rate")
    options = ("valid", "same", "causal") if count == 1 else ("valid", "same")
    around = pads(op, padding, sizes, window, strides, dilation, options)
    channels, (depth, filters) = _channels(inputs, first), shape(kernel)[-2:]
    if depthwise:
        if depth != channels:
            raise ShapeError(
                f"`{op}`: the kernel must be for the {channels} channels of `inputs`; got {{kernel}}.",
                argument="kernel",
                kernel=describe(kernel),
            )
        kernel = reshape(kernel, (*window, 1, depth * filters))
        groups = channels
    else:
        groups = channels // depth if depth else 0
        if not groups or channels % depth or filters % groups:
            raise ShapeError(
                f"`{op}`: the {channels} channels of `inputs` must be a multiple of the kernel's last but one size, "
                "and its last size of their quotient; got {kernel}.",
                argument="kernel",
                kernel=describe(kernel),
            )
    positions(op, inputs, sizes, window, strides, dilation, around)
    return conv_to_output(inputs, kernel, strides, around, dilation, groups, first)


@op
def conv(
    inputs: Tensor,
    kernel: Tensor,
    strides: Integers = 1,
    padding: str = "valid",
    data_format: str | None = None,
    dilation_rate: Integers = 1,
) -> Tensor:
    """Convolution of 1, 2 or 3 dimensions (the kernel is not flipped: a cross-correlation).

    Args:
        inputs: ``(batch, *sizes, channels)``, or ``(batch, channels, *sizes)`` with ``"channels_first"``.
        kernel: ``(*window, channels, filters)``. With fewer channels than ``inputs`` has, the convolution is
            grouped: channels and filters are divided into groups, which are convolved separately.
        strides: the steps of the window, one number or one for each dimension.
        padding: ``"valid"``: windows within the inputs; ``"same"``: zeros around them, so that there are
            ``ceil(size / stride)`` results, an odd zero after the end; ``"causal"`` (1 dimension): zeros before
            the start only.
        dilation_rate: steps within the window. Strides and dilation can be combined on every backend.

    Returns:
        ``(batch, *positions, filters)``, or with channels first; integers give ``floatx``.

    Raises:
        ShapeError: channels that do not fit, or inputs smaller than the window.
        ArgumentError: an unknown ``padding`` or ``data_format``.

    Gradient:
        A transposed convolution to ``inputs``, a convolution of ``inputs`` with the upstream gradient to
        ``kernel``.

    Examples:
        A filter that smooths a signal, and the gradient by the filter:

        >>> import numpy as np
        >>> import gradops
        >>> from gradops import ops
        >>> signal = np.array([0.0, 1.0, 0.0, 2.0]).reshape(1, 4, 1)
        >>> kernel = np.array([0.5, 0.5]).reshape(2, 1, 1)
        >>> print(ops.conv(signal, kernel).ravel())
        [0.5 0.5 1. ]
        >>> print(gradops.grad(lambda kernel: ops.sum(ops.conv(signal, kernel)))(kernel).ravel())
        [1. 3.]

    See Also:
        :func:`depthwise_conv`, :func:`conv_transpose`, :func:`max_pool`.
    """
    return _convolve("conv", inputs, kernel, strides, padding, data_format, dilation_rate)


@op
def depthwise_conv(
    inputs: Tensor,
    kernel: Tensor,
    strides: Integers = 1,
    padding: str = "valid",
    data_format: str | None = None,
    dilation_rate: Integers = 1,
) -> Tensor:
    """Convolution of each channel separately.

    Args:
        inputs: as in :func:`conv`.
        kernel: ``(*window, channels, multiplier)``: ``multiplier`` filters for each channel.
        strides, padding, data_format, dilation_rate: as in :func:`conv`.

    Returns:
        ``(batch, *positions, channels * multiplier)``, or with channels first.

    Raises:
        ShapeError: channels that do not fit, or inputs smaller than the window.
        ArgumentError: an unknown ``padding`` or ``data_format``.

    Gradient:
        As in :func:`conv`.

    Examples:
        >>> x, k = np.array([[[1.0], [2.0], [4.0]]]), np.ones((2, 1, 1))
        >>> print(ops.depthwise_conv(x, k).ravel())
        [3. 6.]
        >>> print(gradops.grad(lambda x: ops.sum(ops.depthwise_conv(x, k) ** 2))(x).ravel())
        [ 6. 18. 12.]
    """
    return _convolve("depthwise_conv", inputs, kernel, strides, padding, data_format, dilation_rate, depthwise=True)


@op
def separable_conv(
    inputs: Tensor,
    depthwise_kernel: Tensor,
    pointwise_kernel: Tensor,
    strides: Integers = 1,
    padding: str = "valid",
    data_format: str | None = None,
    dilation_rate: Integers = 1,
) -> Tensor:
    """Convolution of each channel separately, then of all channels at each position (Chollet 2016).

    Args:
        inputs: as in :func:`conv`.
        depthwise_kernel: ``(*window, channels, multiplier)``.
        pointwise_kernel: ``(1, ..., 1, channels * multiplier, filters)``.
        strides, padding, data_format, dilation_rate: as in :func:`conv`, for the convolution of channels.

    Returns:
        ``(batch, *positions, filters)``, or with channels first.

    Raises:
        ShapeError: channels that do not fit, or inputs smaller than the window.
        ArgumentError: an unknown ``padding`` or ``data_format``.

    Gradient:
        As in :func:`conv`.

    Examples:
        >>> x, k, p = np.array([[[1.0], [2.0], [4.0]]]), np.ones((2, 1, 1)), np.ones((1, 1, 1))
        >>> print(ops.separable_conv(x, k, p).ravel())
        [3. 6.]
        >>> print(gradops.grad(lambda x: ops.sum(ops.separable_conv(x, k, p) ** 2))(x).ravel())
        [ 6. 18. 12.]
    """
    name = "separable_conv"
    y = _convolve(name, inputs, depthwise_kernel, strides, padding, data_format, dilation_rate, depthwise=True)
    if any(n != 1 for n in _window(name, pointwise_kernel, len(y.shape) - 2, "pointwise_kernel")):
        raise ShapeError(
            f"`{name}`: `pointwise_kernel` must have a window of size 1; got {{pointwise_kernel}}.",
            argument="pointwise_kernel",
            pointwise_kernel=describe(pointwise_kernel),
        )
    return _convolve(name, y, pointwise_kernel, 1, "valid", data_format, 1)


def _transposed(size, window, stride, dilation, padding, extra):
    """Return the size of a transposed convolution's result, and the zeros that the convolution would pad it with.

    ``extra`` (``output_padding``) counts from ``(size - 1) * stride + reach`` for ``"valid"`` and from
    ``(size - 1) * stride + reach % 2`` for ``"same"``, where ``reach`` is the window with its gaps.
    """
    reach = (window - 1) * dilation + 1
    if padding == "valid":
        total = (size - 1) * stride + reach + (max(stride - reach, 0) if extra is None else extra)
        return total, (0, (size - 1) * stride + reach - total)
    total = size * stride if extra is None else (size - 1) * stride + reach % 2 + extra
    missing = (size - 1) * stride + reach - total
    before = max(missing // 2, 0)
    return total, (before, missing - before)


@op
def conv_transpose(
    inputs: Tensor,
    kernel: Tensor,
    strides: Integers = 1,
    padding: str = "valid",
    output_padding: Integers | None = None,
    data_format: str | None = None,
    dilation_rate: Integers = 1,
) -> Tensor:
    """Transposed convolution: each input adds itself times the kernel to the result around its position.

    Args:
        inputs: as in :func:`conv`.
        kernel: ``(*window, filters, channels)``: the kernel of the convolution that this transposes.
        strides: distances in the result between neighbouring inputs.
        padding: ``"valid"``: the whole result; ``"same"``: its middle, ``size * stride`` long.
        output_padding: with ``reach = (window - 1) * dilation_rate + 1``, makes the result
            ``(size - 1) * stride + reach + output_padding`` long for ``"valid"`` and
            ``(size - 1) * stride + reach % 2 + output_padding`` for ``"same"``.
        dilation_rate: steps within the window.

    Returns:
        ``(batch, *sizes, filters)``, or with channels first; integers give ``floatx``.

    Raises:
        ShapeError: channels that do not fit, or an empty result.
        ArgumentError: an unknown ``padding`` or ``data_format``.

    Gradient:
        A convolution to ``inputs``, a convolution of the upstream gradient with ``inputs`` to ``kernel``.

    Examples:
        >>> x, k = np.array([[[1.0], [2.0]]]), np.ones((2, 1, 1))
        >>> print(ops.conv_transpose(x, k).ravel())
        [1. 3. 2.]
        >>> print(gradops.grad(lambda x: ops.sum(ops.conv_transpose(x, k) ** 2))(x).ravel())
        [ 8. 10.]
    """
    name = "conv_transpose"
    first = is_channels_first(name, data_format)
    sizes = spatial_sizes(name, inputs, first)
    count = len(sizes)
    window = _window(name, kernel, count)
    strides = per_dimension(name, strides, count, "strides")
    dilation = per_dimension(name, dilation_rate, count, "dilation_rate")
    padding = choice(name, padding.lower() if isinstance(padding, str) else padding, ("valid", "same"), "padding")
    extra = (
        (None,) * count if output_padding is None else per_dimension(name, output_padding, count, "output_padding", 0)
    )
    if _channels(inputs, first) != shape(kernel)[-1]:
        raise ShapeError(
            f"`{name}`: the kernel's last size must be the {_channels(inputs, first)} channels of `inputs`; got "
            "{kernel}.",
            argument="kernel",
            kernel=describe(kernel),
        )
    found = [_transposed(n, k, s, d, padding, e) for n, k, s, d, e in zip(sizes, window, strides, dilation, extra)]
    totals, around = zip(*found)
    if any(total < 1 for total in totals):
        raise ShapeError(f"`{name}`: the result must not be empty; got sizes {totals}.", argument="inputs")
    return conv_to_inputs(inputs, kernel, totals, strides, around, dilation, 1, first)
