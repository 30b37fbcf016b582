"""Shape: the same elements, arranged otherwise."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..annotations import Axes, Axis, DType, Integer, Integers, Shape, Tensor
from ..errors import ArgumentError, AxisError, ShapeError
from . import _checks
from ._checks import check_axes, check_axis, check_rank, integer
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
def moveaxis(x: Tensor, source: Axes, destination: Axes) -> Tensor:
    """``x`` with dimensions moved to other places, the rest in their order.

    Raises:
        AxisError: an axis out of range or named twice.
        ArgumentError: not as many destinations as sources.

    Gradient:
        The upstream gradient, moved back.
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
def fliplr(x: Tensor) -> Tensor:
    """``x`` with its second dimension reversed: a matrix mirrored left to right.

    Raises:
        ShapeError: fewer than 2 dimensions.

    Gradient:
        The upstream gradient, flipped back.
    """
    check_rank("fliplr", x, 2)
    return flip(x, 1)


@op
def flipud(x: Tensor) -> Tensor:
    """``x`` with its first dimension reversed: a matrix mirrored upside down.

    Raises:
        ShapeError: a 0-d tensor.

    Gradient:
        The upstream gradient, flipped back.
    """
    check_rank("flipud", x, 1)
    return flip(x, 0)


@op
def rot90(array: Tensor, k: Integer = 1, axes: Axes = (0, 1)) -> Tensor:
    """``array`` turned ``k`` times by 90 degrees, in the plane and direction from the first to the second axis.

    Raises:
        AxisError: an axis out of range, the same axis twice, or not two.

    Gradient:
        The upstream gradient, turned back.
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


@op
def ravel(x: Tensor) -> Tensor:
    """``x``'s elements in row-major order, as a vector.

    Gradient:
        The upstream gradient in ``x``'s shape.
    """
    return reshape(x, (-1,))


@op
def tile(x: Tensor, repeats: Integers) -> Tensor:
    """``x`` laid side by side with itself, ``repeats`` times along each dimension.

    Args:
        repeats: one number for each dimension, the last dimensions first served; more numbers than
            dimensions add dimensions in front.

    Raises:
        ArgumentError: a negative number.

    Gradient:
        The upstream gradient, summed over the copies.
    """
    counts = [integer("tile", n, "repeats") for n in (repeats if np.ndim(repeats) else (repeats,))]
    if any(n < 0 for n in counts):
        raise ArgumentError(f"`tile`: `repeats` must not be negative; got {repeats}.", argument="repeats")
    rank = max(len(counts), len(x.shape))
    counts = [1] * (rank - len(counts)) + counts
    sizes = [1] * (rank - len(x.shape)) + list(x.shape)
    if all(n == 1 for n in counts):
        return reshape(x, sizes)
    apart = reshape(x, [n for size in sizes for n in (1, size)])
    spread = broadcast_to(apart, [n for pair in zip(counts, sizes) for n in pair])
    return reshape(spread, [count * size for count, size in zip(counts, sizes)])


@op
def repeat(x: Tensor, repeats: Integers, axis: Axis | None = None) -> Tensor:
    """``x`` with each element along an axis repeated in place; of the flattened tensor without one.

    Args:
        repeats: how often, for all or for each element along the axis.

    Raises:
        AxisError: an axis out of range.
        ArgumentError: a negative number, or not as many numbers as elements.

    Gradient:
        The upstream gradient, summed over each element's copies.
    """
    from .indexing import take

    if axis is None:
        x, axis = reshape(x, (-1,)), 0
    axis = check_axis("repeat", axis, len(x.shape))
    counts = np.asarray(_checks.known(repeats))
    if counts.dtype.kind == "f" and (counts == np.floor(counts)).all():
        counts = counts.astype(np.int64)
    if counts.dtype.kind not in "iub" or (counts < 0).any():
        raise ArgumentError(
            f"`repeat`: `repeats` must be whole numbers of at least 0; got {repeats}.", argument="repeats"
        )
    size = x.shape[axis]
    if counts.size == 1:
        count = int(counts.reshape(()))
        before, after = list(x.shape[:axis]), list(x.shape[axis + 1 :])
        spread = broadcast_to(expand_dims(x, axis + 1), [*before, size, count, *after])
        return reshape(spread, [*before, size * count, *after])
    if counts.shape != (size,):
        raise ArgumentError(
            f"`repeat`: `repeats` must be one number, or {size} for a dimension of {size}; got {counts.size}.",
            argument="repeats",
        )
    return take(x, np.repeat(np.arange(size), counts), axis)


_PAD_MODES = ("constant", "edge", "reflect", "symmetric", "wrap", "maximum", "minimum", "mean")


@op
def pad(x: Tensor, pad_width: Integers, mode: str = "constant", constant_values: Tensor = None) -> Tensor:
    """``x`` with elements added before and after it along each dimension.

    Args:
        pad_width: how many: one number for all sides, a pair (before, after) for all dimensions, or a pair
            for each.
        mode: what is added: ``"constant"`` values; the ``"edge"`` value; what lies inside, mirrored without
            the edge (``"reflect"``) or with it (``"symmetric"``); what lies at the other end (``"wrap"``); the
            ``"maximum"``, ``"minimum"`` or ``"mean"`` along the dimension.
        constant_values: the constant, 0 by default; a 0-d tensor is differentiated too.

    Returns:
        A tensor of ``x``'s dtype.

    Raises:
        ArgumentError: an unknown mode, negative widths, widths that do not fit the dimensions,
            ``constant_values`` with another mode than constant, or an empty dimension with one.

    Gradient:
        The upstream gradient inside, plus that of the copies at the elements they are copied from.
    """
    _checks.choice("pad", mode, _PAD_MODES, "mode")
    if constant_values is not None and mode != "constant":
        raise ArgumentError(
            f"`pad`: `constant_values` needs the mode 'constant'; got {mode!r}.", argument="constant_values"
        )
    rank = len(x.shape)
    for axis, (before, after) in enumerate(_widths(pad_width, rank)):
        if before or after:
            x = _pad_axis(x, axis, before, after, mode, constant_values)
    return x


def _widths(pad_width, rank: int) -> list[list[int]]:
    """``pad_width`` as a pair for each dimension."""
    try:
        given = np.asarray(pad_width)
        pairs = np.broadcast_to(given, (rank, 2)) if rank else np.zeros((0, 2), int)
        if pairs.dtype.kind == "f" and (pairs == np.floor(pairs)).all():
            pairs = pairs.astype(np.int64)
        if pairs.dtype.kind not in "iu" or (pairs < 0).any():
            raise ValueError
    except (ValueError, TypeError):
        raise ArgumentError(
            f"`pad`: `pad_width` must be a whole number of at least 0, a pair of them, or a pair for each of the "
            f"{rank} dimensions; got {pad_width}.",
            argument="pad_width",
        ) from None
    return pairs.tolist()


def _pad_axis(x, axis: int, before: int, after: int, mode: str, constant):
    from . import reductions
    from .conversion import cast, dtype
    from .creation import zeros_like
    from .elementwise import add, round
    from .indexing import take
    from .joining import concatenate

    size = x.shape[axis]
    if mode in ("edge", "reflect", "symmetric", "wrap"):
        if not size:
            raise ArgumentError(f"`pad`: the mode {mode!r} has nothing to copy in dimension {axis}, which is empty.")
        at: Any = np.pad
        return take(x, at(np.arange(size), (before, after), mode), axis)
    if mode == "constant":
        line = cast(reductions.sum(zeros_like(x)), dtype(x))
        if constant is not None:
            line = cast(add(line, constant), dtype(x))
            if len(line.shape):
                raise ArgumentError("`pad`: `constant_values` must be one number.", argument="constant_values")
    else:
        reduce = {"maximum": reductions.max, "minimum": reductions.min, "mean": reductions.mean}[mode]
        line = reduce(x, axis, True)
        if mode == "mean" and dtype(x) != dtype(line):
            line = cast(round(line), dtype(x))

    def block(count):
        return broadcast_to(line, [*x.shape[:axis], count, *x.shape[axis + 1 :]])

    parts = [block(before)] * (before > 0) + [x] + [block(after)] * (after > 0)
    return concatenate(parts, axis)


@op
def view(x: Tensor, dtype: DType | None = None) -> Tensor:
    """``x``'s bits read as another dtype; ``x`` itself without one.

    Returns:
        A tensor whose last dimension is as many times longer as the new dtype is smaller.

    Raises:
        ArgumentError: an unknown dtype.
        ShapeError: a last dimension that is not a whole number of the new dtype's elements, or a 0-d tensor
            in a dtype of another size.

    Gradient:
        The upstream gradient where the dtype stays; none where bits are read otherwise.
    """
    ...


def _explain_view(op: str, x, dtype) -> None:
    from .. import dtypes
    from .conversion import dtype as dtype_of
    from .conversion import shape

    have, want = (dtypes.bits(dtypes.canonical(d)) for d in (dtype_of(x), dtype))
    sizes = shape(x)
    if have != want and (not sizes or sizes[-1] * have % want):
        raise ShapeError(
            f"`{op}`: the last dimension of `x`, of shape {sizes}, must hold whole elements of {want} bits; its own "
            f"have {have}.",
            argument="x",
        )


_checks.reasons["view"] = _explain_view
