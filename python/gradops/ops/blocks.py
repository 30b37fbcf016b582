"""Blocks of images.

Windows of an image to columns and back, blocks of pixels to channels and back. All are linear; in each pair the
gradient of one op is the other op.

See Also:
    :func:`conv`, :func:`gradops.ops.image.extract_patches`, :func:`rearrange`.
"""

from __future__ import annotations

from ..annotations import Integer, Integers, Tensor
from ..errors import ShapeError
from ._checks import check_rank, describe, integer
from ._compose import floats
from ._dispatch import op
from ._sizes import apply_to_parts, is_channels_first, per_dimension, positions
from .properties import shape
from .shaping import reshape, transpose


@op(public=False, linear=("x",))
def window_columns(x: Tensor, window, strides, padding, dilation) -> Tensor:
    """The windows of an image with channels first, as columns.

    Gradient:
        :func:`column_sums`.
    """
    ...


@op(public=False, linear=("x",))
def column_sums(x: Tensor, sizes, window, strides, padding, dilation) -> Tensor:
    """An image of ``sizes``, the sum of columns placed where their windows are.

    Gradient:
        :func:`window_columns`.
    """
    ...


def _geometry(op: str, kernel_size, dilation, padding, stride):
    window = per_dimension(op, kernel_size, 2, "kernel_size")
    dilation = per_dimension(op, dilation, 2, "dilation")
    strides = per_dimension(op, stride, 2, "stride")
    return window, strides, per_dimension(op, padding, 2, "padding", 0), dilation


def _count(op: str, x, sizes, window, strides, padding, dilation, name):
    rows, columns = positions(op, x, sizes, window, strides, dilation, [(p, p) for p in padding], name)
    return rows * columns


@op(linear=("x",))
def unfold(
    x: Tensor, kernel_size: Integers, dilation: Integers = 1, padding: Integers = 0, stride: Integers = 1
) -> Tensor:
    """The windows of images, each as a column.

    Args:
        x: ``(batch, channels, height, width)``.
        kernel_size: the size of the window: one number, or one for each dimension, as for the following arguments.
        dilation: steps within the window.
        padding: zeros on both sides of the image.
        stride: steps of the window.

    Returns:
        ``(batch, channels * window, positions)``: in a column channels, then rows, then columns of the window.

    Raises:
        ShapeError: another number of dimensions, or an image smaller than the window.

    Gradient:
        :func:`fold` of the upstream gradient.

    Examples:
        >>> x = np.array([[[[1.0, 3.0, 2.0]]]])
        >>> print(ops.unfold(x, (1, 2))[0])
        [[1. 3.]
         [3. 2.]]
        >>> print(gradops.grad(lambda x: ops.sum(ops.unfold(x, (1, 2)) ** 2))(x).ravel())
        [ 2. 12.  4.]
    """
    check_rank("unfold", x, (4,))
    how = _geometry("unfold", kernel_size, dilation, padding, stride)
    _count("unfold", x, shape(x)[2:], *how, "x")
    return apply_to_parts(lambda x: window_columns(x, *how), floats(x))


@op(linear=("x",))
def fold(
    x: Tensor,
    output_size: Integers,
    kernel_size: Integers,
    dilation: Integers = 1,
    padding: Integers = 0,
    stride: Integers = 1,
) -> Tensor:
    """Images made of the columns of their windows, which are added where they overlap.

    Args:
        x: ``(batch, channels * window, positions)``, as from :func:`unfold`.
        output_size: the sizes of the images.
        kernel_size, dilation, padding, stride: as in :func:`unfold`.

    Returns:
        ``(batch, channels, *output_size)``.

    Raises:
        ShapeError: another number of dimensions, or sizes that do not fit each other.

    Gradient:
        :func:`unfold` of the upstream gradient.

    Examples:
        >>> x = np.ones((1, 2, 2))
        >>> print(ops.fold(x, (1, 3), (1, 2)).ravel())
        [1. 2. 1.]
        >>> print(gradops.grad(lambda x: ops.sum(ops.fold(x, (1, 3), (1, 2)) ** 2))(x).ravel())
        [2. 4. 4. 2.]
    """
    check_rank("fold", x, (3,))
    sizes = per_dimension("fold", output_size, 2, "output_size")
    how = _geometry("fold", kernel_size, dilation, padding, stride)
    taps, count = how[0][0] * how[0][1], _count("fold", x, sizes, *how, "output_size")
    if shape(x)[1] % taps or shape(x)[2] != count:
        raise ShapeError(
            f"`fold`: `x` must have a multiple of {taps} rows (the window) and {count} columns (its positions); "
            "got {x}.",
            argument="x",
            x=describe(x),
        )
    return apply_to_parts(lambda x: column_sums(x, sizes, *how), floats(x))


def _blocks(op: str, x, block_size, data_format):
    check_rank(op, x, (4,))
    size = integer(op, block_size, "block_size", 2)
    first = is_channels_first(op, data_format)
    return (transpose(x, (0, 2, 3, 1)) if first else x), size, first


@op(linear=("x",))
def depth_to_space(x: Tensor, block_size: Integer, data_format: str = "channels_last") -> Tensor:
    """Channels as blocks of pixels: ``block_size**2`` times fewer channels, an image as many times larger.

    Args:
        x: ``(batch, height, width, channels)``, or ``(batch, channels, height, width)`` with
            ``"channels_first"``. Channels count the rows of a block first, then its columns, then the new
            channels, whichever the layout (PyTorch's ``pixel_shuffle`` has the new channels first).
        block_size: rows and columns of a block.
        data_format: ``"channels_last"`` or ``"channels_first"``.

    Returns:
        A tensor of ``x``'s dtype: ``(batch, height * block_size, width * block_size, channels / block_size**2)``, or
        with channels first.

    Raises:
        ShapeError: channels that ``block_size**2`` does not divide.
        ArgumentError: a ``block_size`` below 2, or an unknown ``data_format``.

    Gradient:
        :func:`space_to_depth` of the upstream gradient.

    Examples:
        >>> x = np.array([[[[1.0, 3.0, 2.0, 4.0]]]])
        >>> print(ops.depth_to_space(x, 2).reshape(2, 2))
        [[1. 3.]
         [2. 4.]]
        >>> print(gradops.grad(lambda x: ops.depth_to_space(x, 2)[0, 0, 1, 0])(x).ravel())
        [0. 1. 0. 0.]
    """
    x, size, first = _blocks("depth_to_space", x, block_size, data_format)
    batch, height, width, channels = shape(x)
    if channels % size**2:
        raise ShapeError(
            f"`depth_to_space`: `x` must have a multiple of {size**2} channels; got {channels}.", argument="x"
        )
    left = channels // size**2
    y = transpose(reshape(x, (batch, height, width, size, size, left)), (0, 1, 3, 2, 4, 5))
    y = reshape(y, (batch, height * size, width * size, left))
    return transpose(y, (0, 3, 1, 2)) if first else y


@op(linear=("x",))
def space_to_depth(x: Tensor, block_size: Integer, data_format: str = "channels_last") -> Tensor:
    """Blocks of pixels as channels, the inverse of :func:`depth_to_space`.

    Args:
        x: ``(batch, height, width, channels)``, or ``(batch, channels, height, width)`` with
            ``"channels_first"``.
        block_size: rows and columns of a block.
        data_format: ``"channels_last"`` or ``"channels_first"``.

    Returns:
        A tensor of ``x``'s dtype: ``(batch, height / block_size, width / block_size, channels * block_size**2)``, or
        with channels first.

    Raises:
        ShapeError: an image that blocks do not fill.
        ArgumentError: a ``block_size`` below 2, or an unknown ``data_format``.

    Gradient:
        :func:`depth_to_space` of the upstream gradient.

    Examples:
        >>> x = np.array([1.0, 3.0, 2.0, 4.0]).reshape(1, 2, 2, 1)
        >>> print(ops.space_to_depth(x, 2).ravel())
        [1. 3. 2. 4.]
        >>> print(gradops.grad(lambda x: ops.sum(ops.space_to_depth(x, 2) ** 2))(x).ravel())
        [2. 6. 4. 8.]
    """
    x, size, first = _blocks("space_to_depth", x, block_size, data_format)
    batch, height, width, channels = shape(x)
    if height % size or width % size:
        raise ShapeError(
            f"`space_to_depth`: the image must be a multiple of {size} high and wide; got {height} by {width}.",
            argument="x",
        )
    y = reshape(x, (batch, height // size, size, width // size, size, channels))
    y = transpose(y, (0, 1, 3, 2, 4, 5))
    y = reshape(y, (batch, height // size, width // size, channels * size**2))
    return transpose(y, (0, 3, 1, 2)) if first else y
