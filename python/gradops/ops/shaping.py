"""Shape: the same elements, arranged otherwise."""

from __future__ import annotations

from ..types import Axes, Axis, Integers, Shape, Tensor, Tensors
from ._checks import check_axis
from ._dispatch import op


@op
def reshape(x: Tensor, newshape: Shape) -> Tensor:
    """``x``'s elements in row-major order, in another shape; one size may be -1.

    Raises:
        ShapeError: a shape with another number of elements.

    Gradient:
        The upstream gradient, reshaped back.
    """
    ...


@op
def transpose(x: Tensor, axes: Axes = None) -> Tensor:
    """``x`` with its dimensions in the order ``axes``; reversed without.

    Raises:
        AxisError: an axis out of range or named twice.

    Gradient:
        The upstream gradient, transposed back.
    """
    ...


@op
def swapaxes(x: Tensor, axis1: Axis, axis2: Axis) -> Tensor:
    """``x`` with two dimensions exchanged.

    Raises:
        AxisError: an axis out of range.

    Gradient:
        The upstream gradient, exchanged back.
    """
    rank = len(x.shape)
    first, second = check_axis("swapaxes", axis1, rank, "axis1"), check_axis("swapaxes", axis2, rank, "axis2")
    order = list(range(rank))
    order[first], order[second] = order[second], order[first]
    return transpose(x, order)


@op
def expand_dims(x: Tensor, axis: Axes) -> Tensor:
    """``x`` with dimensions of size 1 inserted at ``axis``.

    Raises:
        AxisError: an axis out of range.

    Gradient:
        The upstream gradient in ``x``'s shape.
    """
    ...


@op
def squeeze(x: Tensor, axis: Axes = None) -> Tensor:
    """``x`` without its dimensions of size 1, or without those in ``axis``.

    Raises:
        AxisError: an axis out of range.
        ArgumentError: a dimension of another size.

    Gradient:
        The upstream gradient in ``x``'s shape.
    """
    ...


@op
def broadcast_to(x: Tensor, shape: Shape) -> Tensor:
    """``x`` repeated along its missing and size-1 dimensions to ``shape``.

    Raises:
        ShapeError: a shape that ``x`` does not broadcast to.

    Gradient:
        The upstream gradient summed over the repeated dimensions.
    """
    ...


@op
def flip(x: Tensor, axis: Axes = None) -> Tensor:
    """``x`` with the order of elements reversed along ``axis``; along all without.

    Raises:
        AxisError: an axis out of range.

    Gradient:
        The upstream gradient, flipped back.
    """
    ...


@op
def roll(x: Tensor, shift: Integers, axis: Axes = None) -> Tensor:
    """``x`` with elements moved ``shift`` places along ``axis``, around the end; flattened without.

    Raises:
        AxisError: an axis out of range.

    Gradient:
        The upstream gradient, rolled back.
    """
    ...


@op
def concatenate(xs: Tensors, axis: Axis = 0) -> Tensor:
    """Tensors joined along an existing dimension, in the dtype in which they meet.

    Raises:
        ShapeError: shapes that differ elsewhere than along ``axis``.
        AxisError: an axis out of range.

    Gradient:
        The upstream gradient, split.
    """
    ...


@op
def stack(xs: Tensors, axis: Axis = 0) -> Tensor:
    """Tensors of one shape joined along a new dimension, in the dtype in which they meet.

    Raises:
        ShapeError: shapes that differ.
        AxisError: an axis out of range.

    Gradient:
        The upstream gradient, taken apart.
    """
    ...


@op
def split(x: Tensor, indices_or_sections: Integers, axis: Axis = 0) -> list:
    """``x`` cut along a dimension: into equal sections (an int) or before positions (a list).

    Returns:
        A list of tensors.

    Raises:
        ArgumentError: sections that do not divide the dimension.
        AxisError: an axis out of range.

    Gradient:
        The pieces' upstream gradients, joined; zeros for unused ones.
    """
    ...
