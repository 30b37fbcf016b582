"""Shapes: the same elements, arranged differently."""

from __future__ import annotations

from .. import dtypes
from ..annotations import Axes, Axis, DType, Integer, Integers, Shape, Tensor
from ..errors import ArgumentError, AxisError, ShapeError
from . import _checks
from ._checks import check_axes, check_axis, check_rank, integer
from ._dispatch import op
from .conversion import dtype as dtype_of
from .conversion import shape

__family__ = """Shapes.

The same elements in row-major order in another shape, without a copy if the library allows it.

See Also:
    :func:`transpose`, :func:`rearrange`, :func:`tile`, :func:`concatenate`, :func:`shape`.
"""


@op(moves=True, view="writable")
def reshape(x: Tensor, newshape: Shape) -> Tensor:
    """``x``'s elements in row-major order, in another shape; one size may be -1.

    Returns:
        A tensor of the new shape and of ``x``'s dtype.

    Raises:
        ShapeError: a shape with another number of elements.

    Gradient:
        The upstream gradient, reshaped back.

    Examples:
        >>> x = np.array([1.0, 3.0, 2.0, 4.0])
        >>> print(ops.reshape(x, (2, 2)))
        [[1. 3.]
         [2. 4.]]
        >>> print(gradops.grad(lambda x: ops.sum(ops.reshape(x, (2, 2))[1] ** 2))(x))
        [0. 0. 4. 8.]
    """
    ...


@op(moves=True, view="writable")
def ravel(x: Tensor) -> Tensor:
    """``x``'s elements in row-major order, as a vector.

    Returns:
        A vector of ``x``'s dtype.

    Gradient:
        The upstream gradient in ``x``'s shape.

    Examples:
        >>> x = np.array([[1.0, 3.0], [2.0, 4.0]])
        >>> print(ops.ravel(x))
        [1. 3. 2. 4.]
        >>> print(gradops.grad(lambda x: ops.ravel(x)[2])(x))
        [[0. 0.]
         [1. 0.]]
    """
    return reshape(x, (-1,))


@op
def view(x: Tensor, dtype: DType | None = None) -> Tensor:
    """``x``'s bits read as another dtype; ``x`` itself if ``dtype`` is None.

    Returns:
        A tensor whose last dimension grows by the factor by which the dtype shrinks.

    Raises:
        ArgumentError: an unknown dtype.
        ShapeError: a last dimension that is not a whole number of the new dtype's elements, or a 0-d tensor
            in a dtype of another size.

    Gradient:
        The upstream gradient if the dtype is the same; none if bits are reinterpreted.

    Examples:
        >>> x = np.array([1.0, 3.0])
        >>> print(ops.view(x), gradops.grad(lambda x: ops.sum(ops.view(x) ** 2))(x))
        [1. 3.] [2. 6.]
    """
    ...


@op(moves=True, view="writable")
def expand_dims(x: Tensor, axis: Axes) -> Tensor:
    """``x`` with dimensions of size 1 inserted at ``axis``.

    Returns:
        A tensor of ``x``'s dtype with more dimensions.

    Gradient:
        The upstream gradient in ``x``'s shape.

    Examples:
        >>> x = np.array([1.0, 3.0])
        >>> print(ops.expand_dims(x, 0))
        [[1. 3.]]
        >>> print(gradops.grad(lambda x: ops.sum(ops.expand_dims(x, 0) ** 2))(x))
        [2. 6.]
    """
    ...


@op(moves=True, view="writable")
def squeeze(x: Tensor, axis: Axes = None) -> Tensor:
    """``x`` without its dimensions of size 1, or without those in ``axis``.

    Returns:
        A tensor of ``x``'s dtype with fewer dimensions.

    Raises:
        ArgumentError: a dimension of another size.

    Gradient:
        The upstream gradient in ``x``'s shape.

    Examples:
        >>> x = np.array([[1.0, 3.0]])
        >>> print(ops.squeeze(x))
        [1. 3.]
        >>> print(gradops.grad(lambda x: ops.sum(ops.squeeze(x) ** 2))(x))
        [[2. 6.]]
    """
    ...


@op(moves=True, view="constant")
def broadcast_to(x: Tensor, shape: Shape) -> Tensor:
    """``x`` repeated along its missing and size-1 dimensions to ``shape``.

    Returns:
        A tensor of ``shape`` and of ``x``'s dtype.

    Raises:
        ShapeError: a shape that ``x`` does not broadcast to.

    Gradient:
        The upstream gradient summed over the repeated dimensions.

    Examples:
        >>> x = np.array([1.0, 3.0])
        >>> print(ops.broadcast_to(x, (2, 2)))
        [[1. 3.]
         [1. 3.]]
        >>> print(gradops.grad(lambda x: ops.sum(ops.broadcast_to(x, (2, 2)) ** 2))(x))
        [ 4. 12.]
    """
    ...


__family__ = """Order of dimensions.

The same elements with their dimensions in another order. The gradient is rearranged back.

See Also:
    :func:`reshape`, :func:`flip`, :func:`einsum`.
"""


@op(moves=True, view="writable")
def transpose(x: Tensor, axes: Axes = None) -> Tensor:
    """``x`` with its dimensions in the order ``axes``, or reversed.

    Args:
        axes: the dimensions in their new order; reversed if None.

    Returns:
        A tensor of ``x``'s dtype, its sizes in the new order.

    Raises:
        AxisError: an axis out of range or named twice.

    Gradient:
        The upstream gradient, transposed back.

    Examples:
        >>> x = np.array([[1.0, 3.0], [2.0, 4.0]])
        >>> print(ops.transpose(x))
        [[1. 2.]
         [3. 4.]]
        >>> print(gradops.grad(lambda x: ops.transpose(x)[0, 1])(x))
        [[0. 0.]
         [1. 0.]]
    """
    ...


@op(moves=True, view="writable")
def swapaxes(x: Tensor, axis1: Axis, axis2: Axis) -> Tensor:
    """``x`` with two dimensions exchanged.

    Returns:
        A tensor of ``x``'s dtype, its sizes in the new order.

    Gradient:
        The upstream gradient, exchanged back.

    Examples:
        >>> x = np.array([[1.0, 3.0], [2.0, 4.0]])
        >>> print(ops.swapaxes(x, 0, 1))
        [[1. 2.]
         [3. 4.]]
        >>> print(gradops.grad(lambda x: ops.swapaxes(x, 0, 1)[0, 1])(x))
        [[0. 0.]
         [1. 0.]]
    """
    rank = len(x.shape)
    first, second = check_axis("swapaxes", axis1, rank, "axis1"), check_axis("swapaxes", axis2, rank, "axis2")
    order = list(range(rank))
    order[first], order[second] = order[second], order[first]
    return transpose(x, order)


@op(moves=True, view="writable")
def moveaxis(x: Tensor, source: Axes, destination: Axes) -> Tensor:
    """``x`` with dimensions moved to other positions; the others keep their order.

    Args:
        source: the dimensions to move.
        destination: their positions in the result.

    Returns:
        A tensor of ``x``'s dtype, its sizes in the new order.

    Raises:
        AxisError: an axis out of range or named twice.
        ArgumentError: a number of destinations that differs from the number of sources.

    Gradient:
        The upstream gradient, moved back.

    Examples:
        >>> x = np.array([[1.0, 3.0], [2.0, 4.0]])
        >>> print(ops.moveaxis(x, 0, 1))
        [[1. 2.]
         [3. 4.]]
        >>> print(gradops.grad(lambda x: ops.moveaxis(x, 0, 1)[0, 1])(x))
        [[0. 0.]
         [1. 0.]]
    """
    rank = len(x.shape)
    start = check_axes("moveaxis", source, rank, "source")
    end = check_axes("moveaxis", destination, rank, "destination")
    if len(start) != len(end):
        raise ArgumentError(
            f"`moveaxis`: `source` and `destination` must name as many dimensions as each other; got {source} and "
            f"{destination}.",
            argument="destination",
        )
    order = [i for i in range(rank) if i not in start]
    for place, axis in sorted(zip(end, start)):
        order.insert(place, axis)
    return transpose(x, order)


__family__ = """Reversal and rotation.

Elements moved within their dimensions.

See Also:
    :func:`transpose`, :func:`sort`, :func:`gradops.ops.image.affine_transform`.
"""


@op(moves=True, view="writable")
def flip(x: Tensor, axis: Axes = None) -> Tensor:
    """``x`` with the order of elements reversed along ``axis``, or along all dimensions.

    Returns:
        A tensor of ``x``'s shape and dtype.

    Gradient:
        The upstream gradient, flipped back.

    Examples:
        >>> x = np.array([1.0, 3.0, 2.0])
        >>> print(ops.flip(x), gradops.grad(lambda x: ops.flip(x)[0])(x))
        [2. 3. 1.] [0. 0. 1.]
    """
    ...


@op(moves=True)
def roll(x: Tensor, shift: Integers, axis: Axes = None) -> Tensor:
    """``x`` with elements moved cyclically by ``shift`` positions along ``axis``, or in the flattened tensor.

    Args:
        shift: the number of positions, one for all axes or one for each.

    Returns:
        A tensor of ``x``'s shape and dtype.

    Gradient:
        The upstream gradient, rolled back.

    Examples:
        >>> x = np.array([1.0, 3.0, 2.0])
        >>> print(ops.roll(x, 1), gradops.grad(lambda x: ops.roll(x, 1)[0])(x))
        [2. 1. 3.] [0. 0. 1.]
    """
    ...


@op(moves=True, view="writable")
def fliplr(x: Tensor) -> Tensor:
    """``x`` with its second dimension reversed: a matrix mirrored left to right.

    Returns:
        A tensor of ``x``'s shape and dtype.

    Raises:
        ShapeError: fewer than 2 dimensions.

    Gradient:
        The upstream gradient, flipped back.

    Examples:
        >>> x = np.array([[1.0, 3.0], [2.0, 4.0]])
        >>> print(ops.fliplr(x))
        [[3. 1.]
         [4. 2.]]
        >>> print(gradops.grad(lambda x: ops.fliplr(x)[0, 0])(x))
        [[0. 1.]
         [0. 0.]]
    """
    check_rank("fliplr", x, 2)
    return flip(x, 1)


@op(moves=True, view="writable")
def flipud(x: Tensor) -> Tensor:
    """``x`` with its first dimension reversed: a matrix mirrored upside down.

    Returns:
        A tensor of ``x``'s shape and dtype.

    Raises:
        ShapeError: a 0-d tensor.

    Gradient:
        The upstream gradient, flipped back.

    Examples:
        >>> x = np.array([[1.0, 3.0], [2.0, 4.0]])
        >>> print(ops.flipud(x))
        [[2. 4.]
         [1. 3.]]
        >>> print(gradops.grad(lambda x: ops.flipud(x)[0, 0])(x))
        [[0. 0.]
         [1. 0.]]
    """
    check_rank("flipud", x, 1)
    return flip(x, 0)


@op(moves=True, view="writable")
def rot90(array: Tensor, k: Integer = 1, axes: Axes = (0, 1)) -> Tensor:
    """``array`` turned ``k`` times by 90 degrees, in the plane and direction from the first to the second axis.

    Args:
        k: the number of turns.
        axes: the two dimensions of the plane.

    Returns:
        A tensor of ``array``'s dtype, the two sizes exchanged where ``k`` is odd.

    Raises:
        AxisError: an axis out of range, the same axis twice, or not two.

    Gradient:
        The upstream gradient, turned back.

    Examples:
        >>> x = np.array([[1.0, 3.0], [2.0, 4.0]])
        >>> print(ops.rot90(x))
        [[3. 4.]
         [1. 2.]]
        >>> print(gradops.grad(lambda x: ops.rot90(x)[0, 0])(x))
        [[0. 1.]
         [0. 0.]]
    """
    rank = check_rank("rot90", array, 2, "array")
    plane = check_axes("rot90", list(axes), rank, "axes")
    if len(plane) != 2:
        raise AxisError(f"`rot90`: `axes` must name two dimensions; got {axes}.", argument="axes")
    first, second = plane
    turns = integer("rot90", k, "k") % 4
    if turns == 0:
        return array
    if turns == 2:
        return flip(array, [first, second])
    if turns == 1:
        return swapaxes(flip(array, second), first, second)
    return flip(swapaxes(array, first, second), second)


def _explain_view(op: str, x, dtype) -> None:
    have, want = (dtypes.bits(dtypes.canonical(d)) for d in (dtype_of(x), dtype))
    sizes = shape(x)
    if have != want and (not sizes or sizes[-1] * have % want):
        raise ShapeError(
            f"`{op}`: the last dimension of `x`, of shape {sizes}, must hold whole elements of {want} bits; its own "
            f"have {have}.",
            argument="x",
        )


_checks.reasons["view"] = _explain_view
