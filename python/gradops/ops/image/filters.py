"""Filters and colours of images."""

from __future__ import annotations

import math

import numpy as np

from ... import dtypes
from ...annotations import Integer, Integers, Tensor
from ...errors import ArgumentError, ShapeError
from .. import _checks
from .._dispatch import op
from ..conversion import cast, dtype, shape
from ..elementwise import add, divide, equal, exp, greater, maximum, minimum, mod, multiply, square, subtract
from ..indexing import get_item, where
from ..joining import concatenate, stack
from ..properties import fits
from ..reductions import max, mean, min, sum
from ..shaping import broadcast_to
from ._layout import (
    axes_of,
    check_channels,
    check_floating,
    check_pixels,
    constant,
    multiply_along,
    padded,
    part,
    restored,
    several,
    working,
    working_dtype,
)

__all__ = ["gaussian_blur", "hsv_to_rgb", "rgb_to_grayscale", "rgb_to_hsv", "sobel_edges", "ssim"]


def _correlated(x, factors, axis: int):
    """Return the sum of ``x`` shifted along an axis times factors, at positions where all shifts are inside."""
    count = shape(x)[axis] - len(factors) + 1
    total = None
    for i, factor in enumerate(factors):
        if isinstance(factor, float) and factor == 0.0:
            continue
        term = multiply(part(x, axis, i, i + count), factor)
        total = term if total is None else add(total, term)
    return total


def _gaussian(size: int, sigma, like):
    """Return the weights of a centred normal density, which sum to 1 and are differentiable in ``sigma``."""
    at = constant(np.arange(size) - (size - 1) / 2, like, dtype(like))
    bell = exp(multiply(square(divide(at, sigma)), -0.5))
    bell = divide(bell, sum(bell))
    return [get_item(bell, i) for i in range(size)]


__family__ = """Filters of images.

Weighted sums of neighbours, one axis after the other. Images are ``(height, width, channels)``, or a batch; with
``data_format="channels_first"`` the channels stand before the height.

See Also:
    :func:`conv`, :func:`psnr`, :func:`gradops.ops.image.resize`.
"""


@op(name="image.gaussian_blur")
def gaussian_blur(
    images: Tensor, kernel_size: Integers = (3, 3), sigma: Tensor = (1.0, 1.0), data_format: str | None = None
) -> Tensor:
    """Images averaged over neighbouring pixels, weighted by a normal density; zeros surround the image.

    Args:
        images: one image or a batch.
        kernel_size: the rows and columns of the window, or one number for both.
        sigma: the density's standard deviation in pixels, down and across, or one number for both; positive.

    Returns:
        A tensor of the shape and dtype of ``images``; integers are rounded.

    Raises:
        ShapeError: other than 3 or 4 dimensions, or a ``sigma`` of more than two numbers.
        ArgumentError: a ``kernel_size`` below 1, or a ``sigma`` of 0 or below.

    Gradient:
        To ``images`` the upstream gradient, blurred likewise; to ``sigma`` by the density's derivative.

    Examples:
        >>> x = np.array([0.0, 1.0, 0.0]).reshape(1, 3, 1)
        >>> print(ops.image.gaussian_blur(x).ravel().round(4))
        [0.1238 0.2042 0.1238]
        >>> print(gradops.grad(lambda x: ops.sum(ops.image.gaussian_blur(x) ** 2))(x).ravel().round(4))
        [0.1011 0.1447 0.1011]
    """
    name = "image.gaussian_blur"
    axes, _ = axes_of(name, images, data_format)
    sizes = several(name, kernel_size, 2, "kernel_size")
    if shape(sigma) not in ((), (1,), (2,)):
        raise ShapeError(
            f"`{name}`: `sigma` must be one number or two; got {{sigma}}.",
            argument="sigma",
            sigma=_checks.describe(sigma),
        )
    spread = _checks.known(sigma)
    if spread is not None and not (spread > 0).all():
        raise ArgumentError(f"`{name}`: `sigma` must be positive; got {spread.tolist()}.", argument="sigma")
    x = working(images)
    sigma = broadcast_to(cast(sigma, dtype(x)), (2,))
    for i, (axis, size) in enumerate(zip(axes, sizes)):
        x = padded(x, axis, (size - 1) // 2, size // 2)
        x = _correlated(x, _gaussian(size, get_item(sigma, i), x), axis)
    return restored(x, dtype(images))


@op(name="image.sobel_edges")
def sobel_edges(images: Tensor, data_format: str | None = None) -> Tensor:
    """The derivatives of images downwards and to the right, by Sobel's filters (Sobel and Feldman 1968).

    Images are mirrored at the border, so that a constant image has no edges.

    Args:
        images: one image or a batch.

    Returns:
        A floating tensor of the shape of ``images`` with another dimension of 2: down, right. Integers give ``floatx``.

    Raises:
        ShapeError: other than 3 or 4 dimensions, or no pixels.

    Gradient:
        The upstream gradient through the two filters, which are linear.

    Examples:
        >>> x = np.arange(9.0).reshape(1, 3, 3, 1)
        >>> print(ops.image.sobel_edges(x)[0, 1, 1].ravel())
        [24.  8.]
        >>> print(gradops.grad(lambda x: ops.sum(ops.image.sobel_edges(x)[0, 1, 1] ** 2))(x).ravel())
        [-64. -96. -32. -32.   0.  32.  32.  96.  64.]
    """
    axes, _ = axes_of("image.sobel_edges", images, data_format)
    check_pixels("image.sobel_edges", images, axes)
    x = working(images)
    for axis in axes:
        x = padded(x, axis, 1, 1, "mirror")
    edges = []
    for steep, smooth in (axes, axes[::-1]):
        edges.append(_correlated(_correlated(x, [-1.0, 0.0, 1.0], steep), [1.0, 2.0, 1.0], smooth))
    result = stack(edges, -1)
    return cast(result, dtype(images)) if dtypes.is_floating(dtype(images)) else result


def _bell(size: int, sigma: float) -> list[float]:
    """Return a normal density at ``size`` positions around its centre, scaled to sum 1."""
    heights = [math.exp(-0.5 * ((i - (size - 1) / 2) / sigma) ** 2) for i in range(size)]
    return [h / math.fsum(heights) for h in heights]


@op(name="image.ssim")
def ssim(
    image1: Tensor,
    image2: Tensor,
    max_val: float = 1.0,
    filter_size: Integer = 11,
    filter_sigma: float = 1.5,
    k1: float = 0.01,
    k2: float = 0.03,
    data_format: str | None = None,
) -> Tensor:
    """Structural similarity of images: 1 for equal images, at least -1 (Wang, Bovik, Sheikh and Simoncelli 2004).

    Args:
        image1: one image or a batch.
        image2: images of the same number and shape.
        max_val: the largest value a pixel can have.
        filter_size: rows and columns of the window in which images are compared.
        filter_sigma: the standard deviation of the window's normal density.
        k1: stabilises the comparison of dark parts.
        k2: stabilises the comparison of uniform parts.

    Returns:
        The mean over windows and channels: a tensor ``(batch,)``, a scalar for one image; in the
        images' promoted dtype, ``floatx`` for integers.

    Raises:
        ShapeError: other than 3 or 4 dimensions, shapes that differ, or a window larger than the images.
        ArgumentError: a ``filter_sigma`` that is not greater than 0.

    Gradient:
        The derivative of the formula, to both images.

    Examples:
        >>> x = np.linspace(0.1, 1, 9).reshape(1, 3, 3, 1)
        >>> print(ops.image.ssim(x, x**2, filter_size=3).round(4))
        [0.9039]
        >>> print(gradops.grad(lambda x: ops.sum(ops.image.ssim(x, x**2, filter_size=3)))(x).ravel().round(4))
        [ 0.0065 -0.0451 -0.0343 -0.0054  0.0581  0.0926  0.0899  0.0851 -0.0075]
    """
    name = "image.ssim"
    axes, channels = axes_of(name, image1, data_format, name="image1")
    if not fits(shape(image1), shape(image2)):
        raise ShapeError(
            f"`{name}`: `image1` and `image2` must have one shape; got {shape(image1)} and {shape(image2)}.",
            argument="image2",
        )
    (size,) = several(name, filter_size, 1, "filter_size")
    if any(shape(image1)[a] < size for a in axes):
        raise ShapeError(
            f"`{name}`: a window of {size} does not fit into `image1`, {{image1}}.",
            argument="filter_size",
            image1=_checks.describe(image1),
        )
    kind = working_dtype(image1, image2)
    a, b = cast(image1, kind), cast(image2, kind)
    if not filter_sigma > 0:
        raise ArgumentError(
            f"`{name}`: `filter_sigma` must be greater than 0; got {filter_sigma}.", argument="filter_sigma"
        )
    factors = _bell(size, filter_sigma)
    x = stack([a, b, square(a), square(b), multiply(a, b)], 0)
    for axis in axes:
        x = _correlated(x, factors, axis + 1)
    mean1, mean2, square1, square2, product = (get_item(x, i) for i in range(5))
    both, squares = multiply(mean1, mean2), add(square(mean1), square(mean2))
    c1, c2 = (k1 * max_val) ** 2, (k2 * max_val) ** 2
    brightness = divide(add(multiply(both, 2.0), c1), add(squares, c1))
    structure = divide(
        add(multiply(subtract(product, both), 2.0), c2), add(subtract(add(square1, square2), squares), c2)
    )
    result = mean(multiply(brightness, structure), (*axes, channels))
    promoted = dtypes.promote(dtype(image1), dtype(image2))
    return cast(result, promoted) if dtypes.is_floating(promoted) else result


_LUMA = np.array([[0.2989], [0.5870], [0.1140]])


__family__ = """Colours of images.

Colours are the channels: the last dimension, or with ``"channels_first"`` the third from the end.

See Also:
    :func:`gradops.ops.image.gaussian_blur`, :func:`tensordot`.
"""


@op(name="image.rgb_to_grayscale")
def rgb_to_grayscale(images: Tensor, data_format: str | None = None) -> Tensor:
    """Images of one channel: ``0.2989 r + 0.587 g + 0.114 b`` (the luma of ITU-R BT.601).

    Args:
        images: one image or a batch, of 3 channels; images of 1 channel are returned unchanged.

    Returns:
        A tensor with one channel, of the dtype of ``images``; integers are rounded.

    Raises:
        ShapeError: other than 3 or 4 dimensions, or than 1 or 3 channels.

    Gradient:
        The upstream gradient times the three weights.

    Examples:
        >>> x = np.array([[[0.1, 0.5, 0.8]]])
        >>> print(ops.image.rgb_to_grayscale(x).round(4))
        [[[0.4146]]]
        >>> print(gradops.grad(lambda x: ops.sum(ops.image.rgb_to_grayscale(x)))(x).ravel().round(4))
        [0.2989 0.587  0.114 ]
    """
    _, channels = axes_of("image.rgb_to_grayscale", images, data_format)
    if check_channels("image.rgb_to_grayscale", images, channels, (1, 3)) == 1:
        return images
    x = working(images)
    return restored(multiply_along(x, constant(_LUMA, x, dtype(x)), channels), dtype(images))


@op(name="image.rgb_to_hsv")
def rgb_to_hsv(images: Tensor, data_format: str | None = None) -> Tensor:
    """Hue, saturation and value of images of red, green and blue, all in [0, 1] (Smith 1978).

    Args:
        images: one image or a batch, floating, of 3 channels with values in [0, 1].

    Returns:
        A tensor of the same shape and dtype. Red has hue 0, green 1/3, blue 2/3, grey 0.

    Raises:
        ShapeError: other than 3 or 4 dimensions, or than 3 channels.
        ArgumentTypeError: a dtype that is not floating.

    Gradient:
        The derivative of each pixel's formula; none for hue and saturation of grey pixels.

    Examples:
        >>> x = np.array([[[0.1, 0.5, 0.8]]])
        >>> print(ops.image.rgb_to_hsv(x).round(4))
        [[[0.5714 0.875  0.8   ]]]
        >>> print(gradops.grad(lambda x: ops.image.rgb_to_hsv(x)[0, 0, 1])(x).ravel().round(4))
        [-1.25    0.      0.1562]
    """
    _, axis = axes_of("image.rgb_to_hsv", images, data_format)
    check_channels("image.rgb_to_hsv", images, axis, (3,))
    check_floating("image.rgb_to_hsv", images)
    x = working(images)
    planes = stack([part(x, axis, i, i + 1) for i in range(3)], 0)  # NumPy reduces fast over axis 0
    red, green, blue = (get_item(planes, i) for i in range(3))
    value = max(planes, 0)
    spread = subtract(value, min(planes, 0))
    colourful = greater(spread, 0.0)
    safe_spread = where(colourful, spread, 1.0)
    saturation = where(colourful, divide(spread, where(colourful, value, 1.0)), 0.0)
    sextant = where(
        equal(red, value),
        divide(subtract(green, blue), safe_spread),
        where(
            equal(green, value),
            add(divide(subtract(blue, red), safe_spread), 2.0),
            add(divide(subtract(red, green), safe_spread), 4.0),
        ),
    )
    hue = where(colourful, mod(divide(sextant, 6.0), 1.0), 0.0)
    return restored(concatenate([hue, saturation, value], axis), dtype(images))


@op(name="image.hsv_to_rgb")
def hsv_to_rgb(images: Tensor, data_format: str | None = None) -> Tensor:
    """Red, green and blue of images of hue, saturation and value, all in [0, 1] (Smith 1978).

    Args:
        images: one image or a batch, floating, of 3 channels with values in [0, 1]; a hue outside wraps around.

    Returns:
        A tensor of the same shape and dtype.

    Raises:
        ShapeError: other than 3 or 4 dimensions, or than 3 channels.
        ArgumentTypeError: a dtype that is not floating.

    Gradient:
        The derivative of the formula for each pixel's sixth of the colour circle.

    Examples:
        >>> x = np.array([[[0.1, 0.5, 0.8]]])
        >>> print(ops.image.hsv_to_rgb(x).round(4))
        [[[0.8  0.64 0.4 ]]]
        >>> print(gradops.grad(lambda x: ops.image.hsv_to_rgb(x)[0, 0, 1])(x).ravel().round(4))
        [ 2.4  -0.32  0.8 ]
    """
    _, axis = axes_of("image.hsv_to_rgb", images, data_format)
    check_channels("image.hsv_to_rgb", images, axis, (3,))
    check_floating("image.hsv_to_rgb", images)
    x = working(images)
    hue, saturation, value = (part(x, axis, i, i + 1) for i in range(3))
    start = np.reshape([5.0, 3.0, 1.0], [3 if a == axis else 1 for a in range(len(x.shape))])
    # for each colour, the distance of the hue from where that colour is full, 0 to 1
    angle = mod(add(multiply(hue, 6.0), constant(start, x, dtype(x))), 6.0)
    lack = maximum(minimum(minimum(angle, subtract(4.0, angle)), 1.0), 0.0)
    return restored(multiply(value, subtract(1.0, multiply(saturation, lack))), dtype(images))
