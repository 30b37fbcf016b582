"""Padding and repetition.

Ops that enlarge a tensor by a margin or by copies.

See Also:
    :func:`concatenate`, :func:`broadcast_to`, :func:`gradops.ops.image.pad_images`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..annotations import Axis, Integers, Tensor
from ..backends import tracing
from ..errors import ArgumentError, Position
from . import _checks, elementwise, reductions
from ._checks import check_axis, integer
from ._compose import check_fits
from ._dispatch import op
from .conversion import cast, dtype, shape
from .creation import zeros_like
from .indexing import take
from .joining import concatenate
from .properties import is_empty
from .shaping import broadcast_to, expand_dims, reshape


@op(moves=True)
def tile(x: Tensor, repeats: Integers) -> Tensor:
    """``x`` repeated as a whole, ``repeats`` times along each dimension.

    Args:
        repeats: one number for each dimension, aligned with the last dimensions; more numbers than dimensions add
            dimensions in front.

    Returns:
        A tensor of ``x``'s dtype, each size times its number of repeats.

    Raises:
        ArgumentError: a negative number.

    Gradient:
        The upstream gradient, summed over the copies.

    Examples:
        >>> x = np.array([1.0, 3.0])
        >>> print(ops.tile(x, 2), gradops.grad(lambda x: ops.sum(ops.tile(x, 2)))(x))
        [1. 3. 1. 3.] [2. 2.]
    """
    counts = _copies(repeats)
    if x.dtype is str and len(counts) == 1:
        return take(reshape(x, (-1,)), np.tile(np.arange(x.size), counts[0]), 0)
    rank = max(len(counts), len(x.shape))
    counts = [1] * (rank - len(counts)) + counts
    sizes = [1] * (rank - len(x.shape)) + list(shape(x))
    for axis in reversed(range(rank)):
        if counts[axis] != 1:  # dimension by dimension, as TensorFlow broadcasts few at a time
            before, after = math.prod(sizes[:axis]), math.prod(sizes[axis:])
            x = broadcast_to(reshape(x, (before, 1, after)), (before, counts[axis], after))
            sizes[axis] *= counts[axis]
    return reshape(x, sizes)


def _copies(repeats) -> list[int]:
    many = not isinstance(repeats, int) and (isinstance(repeats, (list, tuple)) or np.ndim(repeats))
    counts = [integer("tile", n, "repeats") for n in (repeats if many else (repeats,))]
    if any(n < 0 for n in counts):
        raise ArgumentError(f"`tile`: `repeats` must not be negative; got {repeats}.", argument="repeats")
    return counts


@op(moves=True)
def repeat(x: Tensor, repeats: Integers, axis: Axis | None = None) -> Tensor:
    """``x`` with each element along an axis repeated in place; of the flattened tensor without one.

    Args:
        repeats: numbers of copies, one for all or one for each element along the axis.

    Returns:
        A tensor of ``x``'s dtype, longer along ``axis``; a vector without one.

    Raises:
        ArgumentError: a negative number, or a number of repeats that differs from the number of elements.

    Gradient:
        The upstream gradient, summed over each element's copies.

    Examples:
        >>> x = np.array([1.0, 3.0])
        >>> print(ops.repeat(x, 2), gradops.grad(lambda x: ops.sum(ops.repeat(x, 2)))(x))
        [1. 1. 3. 3.] [2. 2.]
    """
    if axis is None:
        x, axis = reshape(x, (-1,)), 0
    axis = check_axis("repeat", axis, len(x.shape))
    size = shape(x)[axis]
    counts = repeats if type(repeats) is int and repeats >= 0 else _counts(repeats, size)
    if isinstance(counts, int) and x.dtype is str:  # several texts have no second dimension
        counts = np.repeat(np.arange(size), counts)
    if isinstance(counts, int):
        before, after = list(shape(x)[:axis]), list(shape(x)[axis + 1 :])
        spread = broadcast_to(expand_dims(x, axis + 1), [*before, size, counts, *after])
        return reshape(spread, [*before, size * counts, *after])
    return take(x, counts, axis)


@tracing.constant
def _counts(repeats, size: int) -> int | np.ndarray:
    """Return the number of copies of every element, or the position that each copy is taken from."""
    counts = np.asarray(_checks.known(repeats))
    if counts.dtype.kind == "f" and (counts == np.floor(counts)).all():
        counts = counts.astype(np.int64)
    if counts.dtype.kind not in "iub" or (counts < 0).any():
        raise ArgumentError(
            f"`repeat`: `repeats` must be whole numbers of at least 0; got {repeats}.", argument="repeats"
        )
    if counts.size == 1:
        return int(counts.reshape(()))
    if counts.shape != (size,):
        raise ArgumentError(
            f"`repeat`: `repeats` must be one number, or {size} for a dimension of {size}; got {counts.size}.",
            argument="repeats",
        )
    return np.repeat(np.arange(size), counts)


_PAD_MODES = ("constant", "edge", "reflect", "symmetric", "wrap", "maximum", "minimum", "mean")


def _fits(op, x, pad_width, mode, constant_values):
    if constant_values is not None:
        check_fits(op.name, constant_values, dtype(x), "constant_values")


@op(check=_fits)
def pad(x: Tensor, pad_width: Integers, mode: str = "constant", constant_values: Tensor = None) -> Tensor:
    """``x`` with elements added before and after it along each dimension.

    Args:
        pad_width: numbers of elements: one for all sides, a pair (before, after) for all dimensions, or a pair
            for each.
        mode: the elements to add: ``"constant"`` values; the ``"edge"`` value; the elements mirrored without the edge
            (``"reflect"``) or with it (``"symmetric"``); the elements of the other end (``"wrap"``); or the
            ``"maximum"``, ``"minimum"`` or ``"mean"`` along the dimension.
        constant_values: the constant, 0 by default; may be a 0-d tensor, which gets a gradient.

    Returns:
        A tensor of ``x``'s dtype.

    Raises:
        ArgumentError: an unknown mode, negative widths, widths that do not fit the dimensions,
            ``constant_values`` with a mode other than constant, or such a mode with an empty dimension.

    Gradient:
        The upstream gradient inside, plus the gradients of copies at the elements that were copied.

    Examples:
        >>> x = np.array([1.0, 3.0])
        >>> print(ops.pad(x, (1, 2)), gradops.grad(lambda x: ops.sum(ops.pad(x, (1, 1), mode="reflect")))(x))
        [0. 1. 3. 0. 0.] [2. 2.]
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


def _widths(pad_width, rank: int) -> list[tuple[int, int]]:
    """Return ``pad_width`` as a pair for each dimension."""
    given = pad_width if isinstance(pad_width, (int, list, tuple)) else np.asarray(pad_width).tolist()
    try:
        if not isinstance(given, (list, tuple)) or all(isinstance(row, (int, float, np.generic)) for row in given):
            return [_pair(given)] * rank
        pairs = [_pair(row) for row in given]
        if len(pairs) not in (1, rank):
            raise ValueError
        return pairs * (rank if len(pairs) == 1 else 1)
    except (ValueError, TypeError):
        raise ArgumentError(
            f"`pad`: `pad_width` must be a whole number of at least 0, a pair of them, or a pair for each of the "
            f"{rank} dimensions; got {pad_width}.",
            argument="pad_width",
        ) from None


def _pair(widths) -> tuple[int, int]:
    """Return a number, or a list of one or two numbers, as the pair of a dimension.

    Raises:
        ValueError, TypeError: an item that is not a whole number of at least 0; another length.
    """
    widths = widths.tolist() if isinstance(widths, np.ndarray) else widths
    each = [integer("pad", n, "pad_width") for n in (widths if isinstance(widths, (list, tuple)) else (widths,))]
    before, after = each if len(each) == 2 else each * 2
    if before < 0 or after < 0:
        raise ValueError
    return before, after


@tracing.constant
def _mirrored(size: int, before: int, after: int, mode: Any) -> np.ndarray:
    return np.pad(range(size), (before, after), mode)


def _pad_axis(x, axis: int, before: int, after: int, mode: str, constant):

    size = shape(x)[axis]
    if mode in ("edge", "reflect", "symmetric", "wrap"):
        if is_empty((size,)):
            raise ArgumentError(
                f"`pad`: the mode {mode!r} has nothing to copy in dimension {{axis}}, which is empty.",
                axis=Position(axis),
            )
        return take(x, _mirrored(size, before, after, mode), axis)
    if mode == "constant":
        line = cast(reductions.sum(zeros_like(x)), dtype(x))
        if constant is not None:
            line = cast(elementwise.add(line, constant), dtype(x))
            if len(line.shape):
                raise ArgumentError("`pad`: `constant_values` must be one number.", argument="constant_values")
    else:
        reduce = {"maximum": reductions.max, "minimum": reductions.min, "mean": reductions.mean}[mode]
        line = reduce(x, axis, True)
        if mode == "mean" and dtype(x) != dtype(line):
            line = cast(elementwise.round(line), dtype(x))

    def block(count):
        return broadcast_to(line, [*shape(x)[:axis], count, *shape(x)[axis + 1 :]])

    parts = [block(before)] if before > 0 else []
    return concatenate([*parts, x, *([block(after)] if after > 0 else [])], axis)
