"""Parts of images.

Crops, borders and patches. Images are ``(height, width, channels)``, or a batch of them; with
``data_format="channels_first"`` the channels stand before the height.

See Also:
    :func:`unfold`, :func:`pad`, :func:`slice`, :func:`gradops.ops.image.resize`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...annotations import Integer, Integers, Tensor
from ...errors import ArgumentError, Given, Position, ShapeError
from .. import _checks
from .._dispatch import op
from ..indexing import take
from ..properties import shape
from ..shaping import moveaxis, reshape, transpose
from ._layout import axes_of, padded, part, several

__all__ = ["crop_images", "extract_patches", "extract_patches_3d", "pad_images", "reconstruct_patches"]


@op(name="image.crop_images")
def crop_images(
    images: Tensor,
    top_cropping: Integer | None = None,
    left_cropping: Integer | None = None,
    bottom_cropping: Integer | None = None,
    right_cropping: Integer | None = None,
    target_height: Integer | None = None,
    target_width: Integer | None = None,
    data_format: str | None = None,
) -> Tensor:
    """Images without some rows and columns at their borders.

    Args:
        images: one image or a batch.
        top_cropping: rows to leave out above; two of this, ``bottom_cropping`` and ``target_height`` are needed.
        left_cropping: columns to leave out on the left; two of this, ``right_cropping`` and ``target_width``.
        bottom_cropping: rows to leave out below.
        right_cropping: columns to leave out on the right.
        target_height: the number of rows in the result.
        target_width: the number of columns in the result.

    Returns:
        A tensor of the dtype of ``images``.

    Raises:
        ShapeError: other than 3 or 4 dimensions.
        ArgumentError: not two of the three, or more than there is.

    Gradient:
        The upstream gradient, 0 in what was left out.

    Examples:
        >>> x = np.arange(4.0).reshape(2, 2, 1)
        >>> print(ops.image.crop_images(x, 1, 0, 0, 1).ravel())
        [2.]
        >>> print(gradops.grad(lambda x: ops.sum(ops.image.crop_images(x, 1, 0, 0, 1) ** 2))(x).ravel())
        [0. 0. 4. 0.]
    """
    (rows, columns), _ = axes_of("image.crop_images", images, data_format)
    for axis, first, last, stays in (
        (rows, ("top_cropping", top_cropping), ("bottom_cropping", bottom_cropping), ("target_height", target_height)),
        (columns, ("left_cropping", left_cropping), ("right_cropping", right_cropping), ("target_width", target_width)),
    ):
        before, _, cropped = _sizes("image.crop_images", first, last, stays, shape(images)[axis], -1)
        images = part(images, axis, before, before + cropped)
    return images


@op(name="image.pad_images")
def pad_images(
    images: Tensor,
    top_padding: Integer | None = None,
    left_padding: Integer | None = None,
    bottom_padding: Integer | None = None,
    right_padding: Integer | None = None,
    target_height: Integer | None = None,
    target_width: Integer | None = None,
    data_format: str | None = None,
) -> Tensor:
    """Images with rows and columns of zeros around them.

    Args:
        images: one image or a batch.
        top_padding: rows to put above; two of this, ``bottom_padding`` and ``target_height`` are needed.
        left_padding: columns to put on the left; two of this, ``right_padding`` and ``target_width``.
        bottom_padding: rows to put below.
        right_padding: columns to put on the right.
        target_height: the number of rows in the result.
        target_width: the number of columns in the result.

    Returns:
        A tensor of the dtype of ``images``.

    Raises:
        ShapeError: other than 3 or 4 dimensions.
        ArgumentError: not two of the three, or a target smaller than the image.

    Gradient:
        The upstream gradient without the borders.

    Examples:
        >>> x = np.array([[[1.0], [3.0]]])
        >>> print(ops.image.pad_images(x, 0, 1, 0, 1).ravel())
        [0. 1. 3. 0.]
        >>> print(gradops.grad(lambda x: ops.sum(ops.image.pad_images(x, 0, 1, 0, 1) ** 2))(x).ravel())
        [2. 6.]
    """
    (rows, columns), _ = axes_of("image.pad_images", images, data_format)
    for axis, first, last, total in (
        (rows, ("top_padding", top_padding), ("bottom_padding", bottom_padding), ("target_height", target_height)),
        (columns, ("left_padding", left_padding), ("right_padding", right_padding), ("target_width", target_width)),
    ):
        before, after, _ = _sizes("image.pad_images", first, last, total, shape(images)[axis], 1)
        images = padded(images, axis, before, after)
    return images


def _sizes(op: str, first, last, target, size: int, sign: int) -> tuple[int, int, int]:
    """Return both ends and the target, one computed from the other two: target = size + sign * (both ends)."""
    given = (first, last, target)
    names = [name for name, _ in given]
    numbers: list[Any] = [None if value is None else _checks.integer(op, value, name) for name, value in given]
    if numbers.count(None) != 1:
        got = ", ".join(f"{name}={value}" for name, value in given)
        raise ArgumentError(
            f"`{op}`: give two of `{names[0]}`, `{names[1]}` and `{names[2]}`; got {got}.", argument=names[0]
        )
    missing = numbers.index(None)
    if missing == 2:
        numbers[2] = size + sign * (numbers[0] + numbers[1])
    else:
        numbers[missing] = sign * (numbers[2] - size) - numbers[1 - missing]
    for name, number in zip(names, numbers):
        if number < 0:
            raise ArgumentError(
                f"`{op}`: `{name}` must not be negative; it is {number} for images of size {size}.", argument=name
            )
    return numbers[0], numbers[1], numbers[2]


@op(name="image.extract_patches")
def extract_patches(
    images: Tensor,
    size: Integers,
    strides: Integers | None = None,
    dilation_rate: Integers = 1,
    padding: str = "valid",
    data_format: str | None = None,
) -> Tensor:
    """Patches of images at regular positions, each flattened into the channels.

    Args:
        images: one image or a batch; volumes if ``size`` has three numbers.
        size: a patch's height and width, or one number for both.
        strides: rows and columns from one patch to the next; ``size`` if None.
        dilation_rate: rows and columns from one pixel of a patch to the next.
        padding: ``"valid"`` for the patches inside the image, ``"same"`` for zeros around it, so that
            there are ``ceil(size / stride)`` of them.

    Returns:
        A tensor ``(batch, rows, columns, height * width * channels)`` of the dtype of ``images``, the
        channels of a pixel beside each other; without the batch for one image.

    Raises:
        ShapeError: a wrong number of dimensions, or a patch larger than the image.
        ArgumentError: an unknown ``padding``, or sizes below 1.

    Gradient:
        The upstream gradient added up over the patches that a pixel is in.

    Examples:
        >>> x = np.arange(4.0).reshape(2, 2, 1)
        >>> print(ops.image.extract_patches(x, 2).ravel())
        [0. 1. 2. 3.]
        >>> print(gradops.grad(lambda x: ops.sum(ops.image.extract_patches(x, 2) ** 2))(x).ravel())
        [0. 2. 4. 6.]
    """
    op = "image.extract_patches"
    return _patches(op, images, size, strides, dilation_rate, padding, data_format, _spatial(op, size), "images")


@op(name="image.extract_patches_3d")
def extract_patches_3d(
    volumes: Tensor,
    size: Integers,
    strides: Integers | None = None,
    dilation_rate: Integers = 1,
    padding: str = "valid",
    data_format: str | None = None,
) -> Tensor:
    """Patches of volumes at regular positions, each flattened into the channels.

    Args:
        volumes: one volume ``(depth, height, width, channels)`` or a batch.
        size: a patch's depth, height and width, or one number for all.
        strides: the distance from one patch to the next; ``size`` if None.
        dilation_rate: the distance from one voxel of a patch to the next.
        padding: ``"valid"`` or ``"same"``, as in :func:`extract_patches`.

    Returns:
        A tensor ``(batch, ..., depth * height * width * channels)`` of the dtype of ``volumes``, without
        the batch for one volume.

    Raises:
        ShapeError: a wrong number of dimensions, or a patch larger than the volume.
        ArgumentError: an unknown ``padding``, or sizes below 1.

    Gradient:
        The upstream gradient added up over the patches that a voxel is in.

    Examples:
        >>> x = np.arange(8.0).reshape(2, 2, 2, 1)
        >>> print(ops.image.extract_patches_3d(x, 2).ravel())
        [0. 1. 2. 3. 4. 5. 6. 7.]
        >>> print(gradops.grad(lambda x: ops.sum(ops.image.extract_patches_3d(x, 2) ** 2))(x).ravel())
        [ 0.  2.  4.  6.  8. 10. 12. 14.]
    """
    return _patches(
        "image.extract_patches_3d", volumes, size, strides, dilation_rate, padding, data_format, 3, "volumes"
    )


def _patches(op, x, size, strides, dilation_rate, padding, data_format, spatial, name):
    axes, channels = axes_of(op, x, data_format, spatial, name)
    sizes = several(op, size, spatial, "size")
    steps = sizes if strides is None else several(op, strides, spatial, "strides")
    rates = several(op, dilation_rate, spatial, "dilation_rate")
    _checks.choice(op, padding, ("valid", "same"), "padding")
    for axis, length, step, rate in reversed(list(zip(axes, sizes, steps, rates))):
        reach = (length - 1) * rate + 1
        if padding == "same":
            short = (-(-shape(x)[axis] // step) - 1) * step + reach - shape(x)[axis]
            x = padded(x, axis, max(short, 0) // 2, max(short, 0) - max(short, 0) // 2)
        elif reach > shape(x)[axis]:
            raise ShapeError(
                f"`{op}`: a patch of {reach} does not fit into axis {{axis}} of `{name}`, {{x}}.",
                argument="size",
                axis=Position(axis),
                x=_checks.describe(x),
            )
        x = _windows(x, axis, length, step, rate, (shape(x)[axis] - reach) // step + 1)
    # each spatial axis is now two: the patch, and the position in it
    first = channels < axes[0]
    batch = len(x.shape) - 2 * spatial - 1
    chosen = [batch + first + 2 * i for i in range(spatial)]
    content = [a + 1 for a in chosen] + [batch if first else batch + 2 * spatial]
    order = [*range(batch), *content, *chosen] if first else [*range(batch), *chosen, *content]
    lead, counts, depth = shape(x)[:batch], [shape(x)[a] for a in chosen], [shape(x)[a] for a in content]
    patch = math.prod(depth)
    return reshape(transpose(x, order), [*lead, patch, *counts] if first else [*lead, *counts, patch])


@op(name="image.reconstruct_patches", moves=True)
def reconstruct_patches(
    patches: Tensor,
    size: Integers,
    output_size: Integers,
    strides: Integers | None = None,
    padding: str = "valid",
    data_format: str | None = None,
) -> Tensor:
    """Images, or volumes, made of adjacent patches: the inverse of :func:`extract_patches`.

    Args:
        patches: the result of :func:`extract_patches`, for one image or a batch.
        size: a patch's height and width, or one number for both; three numbers for volumes.
        output_size: the images' height and width, for volumes preceded by the depth.
        strides: must be ``size`` or None, as patches must not overlap.
        padding: ``"valid"``, or ``"same"`` to remove the borders that :func:`extract_patches` added.

    Returns:
        A tensor of the dtype of ``patches``, of one image or a batch.

    Raises:
        ShapeError: a wrong number of dimensions, or of elements in a patch.
        ArgumentError: ``strides`` other than ``size``; an ``output_size`` that does not fit the patches; an unknown
            ``padding``.

    Gradient:
        The patches of the upstream gradient; 0 in borders.

    Examples:
        >>> x = np.arange(4.0).reshape(1, 1, 4)
        >>> print(ops.image.reconstruct_patches(x, 2, (2, 2)).ravel())
        [0. 1. 2. 3.]
        >>> print(gradops.grad(lambda x: ops.sum(ops.image.reconstruct_patches(x, 2, (2, 2)) ** 2))(x).ravel())
        [0. 2. 4. 6.]
    """
    op = "image.reconstruct_patches"
    spatial = _spatial(op, size)
    axes, channels = axes_of(op, patches, data_format, spatial, "patches")
    sizes, wanted = several(op, size, spatial, "size"), several(op, output_size, spatial, "output_size")
    if strides is not None and several(op, strides, spatial, "strides") != sizes:
        raise ArgumentError(f"`{op}`: `strides` must be `size`, {sizes}; got {strides}.", argument="strides")
    _checks.choice(op, padding, ("valid", "same"), "padding")
    counts = [shape(patches)[a] for a in axes]
    whole = [count * length for count, length in zip(counts, sizes)]
    for full, length, n in zip(whole, sizes, wanted):
        if n > full or n <= full - (length if padding == "same" else 1):
            raise ArgumentError(
                f"`{op}`: `output_size` must be {whole}, the size that the patches make, or with padding='same' "
                f"smaller by less than a patch; got {wanted}.",
                argument="output_size",
            )
    depth, rest = divmod(shape(patches)[channels], math.prod(sizes))
    if rest:
        raise ShapeError(
            f"`{op}`: a patch must have a multiple of {math.prod(sizes)} elements; got {{patches}}.",
            argument="patches",
            patches=_checks.describe(patches),
        )
    x = moveaxis(patches, channels, -1)
    lead = shape(x)[: -spatial - 1]
    n = len(lead)
    pairs = [[n + i, n + i + spatial] for i in range(spatial)]  # the axes of patches, and of positions in them
    x = transpose(reshape(x, [*lead, *counts, *sizes, depth]), [*range(n), *sum(pairs, []), n + 2 * spatial])
    x = reshape(x, [*lead, *whole, depth])
    for i, (full, size_) in enumerate(zip(whole, wanted)):
        start = (full - size_) // 2
        x = part(x, n + i, start, start + size_)
    return moveaxis(x, -1, n) if channels < axes[0] else x


def _spatial(op: str, size) -> int:
    """Return the number of spatial dimensions of a patch."""
    spatial = len(size) if isinstance(size, (list, tuple, np.ndarray)) else 2
    if spatial not in (2, 3):
        raise ArgumentError(
            f"`{op}`: `size` must be one, 2 or 3 whole numbers; got {{given}}.",
            argument="size",
            given=Given(repr(size), size),
        )
    return spatial


def _windows(x, axis: int, length: int, step: int, rate: int, count: int):
    """Split an axis into two: ``count`` windows of ``length`` elements."""
    if step == length and rate == 1:
        return reshape(part(x, axis, 0, count * length), [*shape(x)[:axis], count, length, *shape(x)[axis + 1 :]])
    return take(x, np.arange(count)[:, None] * step + np.arange(length) * rate, axis)
