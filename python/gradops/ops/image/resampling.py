"""Sizes of images.

Along each axis the pixels of the result are weighted sums of the image's pixels. A pixel covers a unit square; its
centre is at its index plus a half.

See Also:
    :func:`gradops.ops.image.affine_transform`, :func:`average_pool`, :func:`gradops.ops.image.crop_images`.
"""

from __future__ import annotations

import math

import numpy as np

from ...annotations import Axes, Shape, Tensor
from ...backends import tracing
from ...errors import ArgumentError, Position, ShapeError
from .. import _checks
from .._dispatch import op
from ..conversion import cast, dtype, shape
from ..elementwise import (
    abs,
    add,
    divide,
    greater,
    greater_equal,
    less,
    less_equal,
    logical_and,
    maximum,
    multiply,
    sin,
    square,
    subtract,
)
from ..indexing import get_item, take, where
from ..properties import fits
from ..reductions import sum
from ..shaping import broadcast_to, expand_dims
from ._layout import (
    FILL_MODES,
    axes_of,
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

__all__ = ["resize", "scale_and_translate"]

_INTERPOLATIONS = ("nearest", "bilinear", "bicubic", "lanczos3", "lanczos5", "area")
_MIN_WEIGHT_SUM = 1000 * 2.0**-23
"""The least sum of weights; if they sum to less, the position is too far outside the image."""


def _triangle(x):
    return maximum(subtract(1.0, x), 0.0)


def _cubic(x):
    """Return Keys' (1981) cubic convolution kernel, with a slope of -1/2 at 1."""
    inner = add(multiply(multiply(subtract(multiply(x, 1.5), 2.5), x), x), 1.0)
    outer = add(multiply(subtract(multiply(add(multiply(x, -0.5), 2.5), x), 4.0), x), 2.0)
    return where(less(x, 1.0), inner, where(less(x, 2.0), outer, 0.0))


def _sinc(x):
    """``sin(pi x) / (pi x)``, near 0 by its series, so that derivatives are right there."""
    x = multiply(x, math.pi)
    small = less(x, 1e-4)
    safe = where(small, 1.0, x)
    return where(small, subtract(1.0, divide(square(x), 6.0)), divide(sin(safe), safe))


def _lanczos(radius):
    def kernel(x):
        return where(less(x, radius), multiply(_sinc(x), _sinc(divide(x, radius))), 0.0)

    return kernel


_KERNELS = {
    **dict.fromkeys(("linear", "bilinear", "trilinear", "triangle"), _triangle),
    **dict.fromkeys(("cubic", "bicubic", "tricubic"), _cubic),
    "lanczos3": _lanczos(3.0),
    "lanczos5": _lanczos(5.0),
}


def _weights(size: int, count: int, inverse, shift, method: str, antialias: bool):
    """Return the matrix ``(size, count)`` that resamples ``size`` pixels to ``count``.

    The centre of result ``i`` lies at ``(i + 0.5) * inverse - shift`` among the pixels; ``inverse`` and
    ``shift`` are floating scalars. Results whose centre lies outside are 0.
    """
    name = dtype(inverse)
    at = constant(np.arange(count) + 0.5, inverse, name)
    centres = subtract(subtract(multiply(at, inverse), shift), 0.5)
    pixels = constant(np.arange(size)[:, None], inverse, name)
    distance = abs(subtract(expand_dims(centres, 0), pixels))
    if antialias:
        distance = divide(distance, maximum(inverse, 1.0))
    weights = _KERNELS[method](distance)
    total = sum(weights, 0, True)
    enough = greater(abs(total), _MIN_WEIGHT_SUM)
    weights = where(enough, divide(weights, where(enough, total, 1.0)), 0.0)
    inside = logical_and(greater_equal(centres, -0.5), less_equal(centres, size - 0.5))
    return where(expand_dims(inside, 0), weights, 0.0)


def _area(size: int, count: int) -> np.ndarray:
    """Return the matrix of means over the pixels that each result covers."""
    edges = np.arange(count + 1) * size / count
    pixels = np.arange(size)[:, None]
    covered = np.minimum(edges[1:], pixels + 1) - np.maximum(edges[:-1], pixels)
    return np.maximum(covered, 0.0) * count / size


@op(name="image.resize")
def resize(
    images: Tensor,
    size: Shape,
    interpolation: str = "bilinear",
    antialias: bool = False,
    crop_to_aspect_ratio: bool = False,
    pad_to_aspect_ratio: bool = False,
    fill_mode: str = "constant",
    fill_value: float = 0.0,
    data_format: str | None = None,
) -> Tensor:
    """Images in another height and width.

    Results are the same on every backend. Choices that Keras leaves to each library (the cubic's slope, the borders,
    rounding) are as in ``jax.image.resize``; ``"area"`` is as in TensorFlow.

    Args:
        images: one image or a batch.
        size: the new height and width.
        interpolation: ``"nearest"``, ``"bilinear"``, ``"bicubic"``, ``"lanczos3"``, ``"lanczos5"`` or ``"area"``
            (the mean over what a new pixel covers).
        antialias: widen the kernel when shrinking, so that every pixel contributes; without effect on ``"nearest"`` and
            ``"area"``.
        crop_to_aspect_ratio: cut the images to the new shape's proportions first, in the middle.
        pad_to_aspect_ratio: extend the images to the new shape's proportions first, evenly.
        fill_mode: the values of the extension: see :func:`map_coordinates`.
        fill_value: the value for ``"constant"``.

    Returns:
        A tensor of the dtype of ``images``; integers are rounded and cut to their dtype's range.

    Raises:
        ShapeError: other than 3 or 4 dimensions, or no pixels.
        ArgumentError: an unknown ``interpolation`` or ``fill_mode``, a ``size`` below 1, or cropping and padding both.

    Gradient:
        The upstream gradient, spread back by the same weights.

    Examples:
        >>> x = np.array([[[1.0], [3.0]]])
        >>> print(ops.image.resize(x, (1, 4)).ravel())
        [1.  1.5 2.5 3. ]
        >>> print(gradops.grad(lambda x: ops.sum(ops.image.resize(x, (1, 4)) ** 2))(x).ravel())
        [ 5.5 10.5]
    """
    name = "image.resize"
    axes, _ = axes_of(name, images, data_format)
    targets = several(name, size, 2, "size")
    _checks.choice(name, interpolation, _INTERPOLATIONS, "interpolation")
    _checks.choice(name, fill_mode, FILL_MODES, "fill_mode")
    check_pixels(name, images, axes)
    if crop_to_aspect_ratio and pad_to_aspect_ratio:
        raise ArgumentError(
            f"`{name}`: `crop_to_aspect_ratio` and `pad_to_aspect_ratio` must not both be {{True}}.",
            argument="pad_to_aspect_ratio",
        )
    x = images
    if crop_to_aspect_ratio or pad_to_aspect_ratio:
        sizes = [shape(images)[a] for a in axes]
        for axis, here, other, target, across in zip(axes, sizes, sizes[::-1], targets, targets[::-1]):
            fitting = other * target // across
            if crop_to_aspect_ratio:
                cropped = max(min(here, fitting), 1)
                x = part(x, axis, (here - cropped) // 2, (here - cropped) // 2 + cropped)
            else:
                border = (max(here, fitting) - here) // 2
                x = padded(x, axis, border, border, fill_mode, fill_value)
    if interpolation == "nearest":
        for axis, count in zip(axes, targets):
            x = take(x, [(2 * i + 1) * shape(x)[axis] // (2 * count) for i in range(count)], axis)
        return x
    x = working(x)
    for axis, count in sorted(zip(axes, targets), key=lambda pair: pair[1] / shape(x)[pair[0]]):
        matrix, used = _matrix(shape(x)[axis], count, interpolation, antialias)
        if len(used) < shape(x)[axis]:
            x = take(x, used, axis)
        x = multiply_along(x, constant(matrix, x, dtype(x)), axis)
    return restored(x, dtype(images))


@tracing.constant
def _matrix(length: int, count: int, interpolation: str, antialias: bool) -> tuple:
    """Return the weights of the pixels that are used, and their positions."""
    if interpolation == "area":
        matrix = _area(length, count)
    else:
        matrix = _weights(length, count, np.float64(length / count), np.float64(0.0), interpolation, antialias)
    used = np.flatnonzero(matrix.any(1))
    return matrix[used], used


@op(name="image.scale_and_translate")
def scale_and_translate(
    images: Tensor,
    output_shape: Shape,
    scale: Tensor,
    translation: Tensor,
    spatial_dims: Axes,
    method: str,
    antialias: bool = True,
) -> Tensor:
    """Images scaled and translated: the point ``x`` moves to ``x * scale + translation``.

    Positions are in pixels from the edge: the centre of the first pixel is at 0.5.

    Args:
        images: a tensor of any dimensions.
        output_shape: the shape of the result, all dimensions.
        scale: one number for each of ``spatial_dims``.
        translation: one number for each of ``spatial_dims``.
        spatial_dims: the dimensions to resample.
        method: ``"linear"``, ``"bilinear"``, ``"trilinear"`` or ``"triangle"``; ``"cubic"``, ``"bicubic"`` or
            ``"tricubic"``; ``"lanczos3"``; ``"lanczos5"``.
        antialias: widen the kernel where the scale is below 1.

    Returns:
        A tensor of ``output_shape`` and the dtype of ``images``, 0 outside of the moved image; integers are rounded
        and clipped to their dtype's range.

    Raises:
        AxisError: a dimension out of range or named twice.
        ShapeError: sizes, scales or translations that do not fit.
        ArgumentError: an unknown ``method``.

    Gradient:
        To ``images`` the upstream gradient, spread back by the same weights; to ``scale`` and ``translation``
        through the weights.

    Examples:
        >>> x, to = np.array([1.0, 3.0]), ((4,), [2.0], [0.0], (0,), "linear")
        >>> print(ops.image.scale_and_translate(x, *to))
        [1.  1.5 2.5 3. ]
        >>> print(gradops.grad(lambda x: ops.sum(ops.image.scale_and_translate(x, *to) ** 2))(x))
        [ 5.5 10.5]
    """
    name = "image.scale_and_translate"
    rank = len(images.shape)
    axes = _checks.check_axes(name, spatial_dims, rank, "spatial_dims")
    sizes = several(name, output_shape, rank, "output_shape", 0)
    _checks.choice(name, method, tuple(_KERNELS), "method")
    for argument, value in (("scale", scale), ("translation", translation)):
        if shape(value) not in ((len(axes),), (1,), ()):
            raise ShapeError(
                f"`{name}`: `{argument}` must have {len(axes)} numbers; got {{value}}.",
                argument=argument,
                value=_checks.describe(value),
            )
    for axis in range(rank):
        if axis not in axes and not fits((sizes[axis],), (shape(images)[axis],)):
            raise ShapeError(
                f"`{name}`: `output_shape` must keep axis {{axis}}, which is not in `spatial_dims`; "
                f"got {sizes} for `images`, {{images}}.",
                argument="output_shape",
                axis=Position(axis),
                images=_checks.describe(images),
            )
    check_pixels(name, images, axes)
    x = working(images)
    kind = working_dtype(scale, translation)
    scale = broadcast_to(cast(scale, kind), (len(axes),))
    translation = broadcast_to(cast(translation, kind), (len(axes),))
    for i, axis in enumerate(axes):
        inverse = divide(1.0, get_item(scale, i))
        shift = multiply(get_item(translation, i), inverse)
        matrix = _weights(shape(x)[axis], sizes[axis], inverse, shift, method, antialias)
        x = multiply_along(x, cast(matrix, dtype(x)), axis)
    return restored(x, dtype(images))
