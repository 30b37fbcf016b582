"""Sorting and searching, and sets."""

from __future__ import annotations

import builtins
import math

import numpy as np

from .. import backends, config
from ..annotations import Axis, Index, Indices, Integer, Operand, Tensor
from ..dtypes import is_floating
from ..errors import ArgumentError, ShapeError
from ._checks import check_axis, check_kind, check_positions, check_rank, check_real, choice, describe, integer, known
from ._compose import constant_like, promoted
from ._dispatch import op
from ._sizes import multiples
from .conversion import cast, dtype, shape
from .creation import zeros_like
from .elementwise import (
    add,
    equal,
    isfinite,
    isnan,
    less,
    logical_and,
    logical_not,
    logical_or,
    minimum,
    multiply,
    subtract,
)
from .extending import pad
from .indexing import take, where
from .joining import concatenate, split
from .properties import fits, unknown
from .reductions import any, cumsum, lines, sum
from .shaping import expand_dims, flip, reshape

__family__ = """Sorting.

NaN counts as the largest number, and equal elements keep their order. The gradient is permuted like the elements.

See Also:
    :func:`searchsorted`, :func:`max`, :func:`median`, :func:`take_along_axis`, :func:`unique`.
"""


@op(check=check_real, exact=True, costly=True)
def sort(x: Tensor, axis: Axis | None = -1) -> Tensor:
    """``x`` in ascending order along an axis; flattened if ``axis`` is None.

    Returns:
        A tensor of ``x``'s shape and dtype, NaN last.

    Raises:
        ArgumentTypeError: a complex ``x``, which has no order.

    Gradient:
        The upstream gradient, back in the order of ``x``.

    Examples:
        >>> x = np.array([1.0, 3.0, 2.0])
        >>> print(ops.sort(x), gradops.grad(lambda x: ops.sort(x)[1])(x))
        [1. 2. 3.] [0. 0. 1.]
    """
    ...


@op(differentiable=False, check=check_real, exact=True, positions="all", costly=True)
def argsort(x: Tensor, axis: Axis | None = -1) -> Tensor:
    """The positions of the elements of ``x`` in ascending order along an axis; flattened if ``axis`` is None.

    Returns:
        An int64 tensor of 0-based positions, NaN last; equal elements are in the order of ``x``. It has no gradient.

    Raises:
        ArgumentTypeError: a complex ``x``, which has no order.
    """
    ...


@op(differentiable=False, check=check_real, positions="all")
def argpartition(x: Tensor, kth: Index, axis: Axis | None = -1) -> Tensor:
    """Positions that put the ``kth`` smallest element in its sorted position, smaller ones before it and larger after.

    Args:
        kth: a position along the axis; negative ones count from the end.

    Returns:
        An int64 tensor of 0-based positions, equal to :func:`argsort`'s and so the same on every backend. It has
        no gradient.

    Raises:
        AxisError: an axis or ``kth`` out of range.
        ArgumentTypeError: a complex ``x``.
    """
    count = size_along("argpartition", x, axis)
    check_positions("argpartition", integer("argpartition", kth, "kth"), count, "kth")
    return argsort(x, axis)


def size_along(op: str, x, axis) -> int:
    """Return the number of elements along an axis, or of all elements if it is None."""
    sizes = shape(x)
    if axis is None:
        return math.prod(sizes)
    return (sizes or (1,))[check_axis(op, axis, len(sizes))]


def pick(x, positions):
    """Return elements of ``x`` at positions along its last axis, line by line, by one gather from the flat tensor."""
    *rows, size = shape(x)
    count = math.prod(rows)
    starts = multiples(count, size, (*rows, 1))
    return take(reshape(x, (-1,)), add(positions, starts))


def _largest(op, x, k, sorted, is_stable):
    check_real(op, x)
    check_rank(op.name, x, 1)
    size = shape(x)[-1]
    if integer(op.name, k, "k") < 0 or not unknown(size) and k > size:
        raise ArgumentError(f"`{op.name}`: `k` must be between 0 and {size}; got {k}.", argument="k")


@op(check=_largest, positions="(1,)")
def top_k(x: Tensor, k: Integer, sorted: bool = True, is_stable: bool = True) -> tuple:
    """The ``k`` largest elements along the last axis, and their positions.

    Args:
        k: the number of elements.
        sorted, is_stable: accepted for compatibility; elements are always in descending order, and equal ones keep
            their order.

    Returns:
        A tuple of the elements, in ``x``'s dtype, and their 0-based positions, in int64. NaN counts as the
        largest number; of equal elements the first comes first.

    Raises:
        ArgumentError: ``k`` negative or above the number of elements.
        ShapeError: a tensor without dimensions.

    Gradient:
        The upstream gradient at the chosen positions, 0 elsewhere; none from the positions.

    Examples:
        >>> x = np.array([3.0, 9.0, 5.0])
        >>> values, positions = ops.top_k(x, 2)
        >>> print(values, positions)
        [9. 5.] [1 2]
        >>> print(gradops.grad(lambda x: ops.sum(ops.top_k(x, 2)[0]))(x))
        [0. 1. 1.]

    See Also:
        :func:`sort`, :func:`max`.
    """
    size = shape(x)[-1]
    backwards = split(flip(argsort(flip(x, -1), -1), -1), [k], -1)[0]
    positions = multiply(add(backwards, 1 - size), -1)
    return pick(x, positions), positions


@op(differentiable=False)
def in_top_k(targets: Indices, predictions: Tensor, k: Integer) -> Tensor:
    """True for each row whose target is among the ``k`` largest predictions.

    Args:
        targets: for each row the position of a class.
        predictions: a score for each class, of shape ``(..., classes)``.
        k: the number of predictions.

    Returns:
        A bool tensor of the shape of ``targets``. Classes tied at rank ``k`` all count as in; a target
        that is out of range or whose score is not finite does not. It has no gradient.

    Raises:
        ShapeError: ``predictions`` of another shape than ``targets`` and one dimension more.
        ArgumentTypeError: targets that are not whole numbers.
    """
    check_kind("in_top_k", targets, (1,), "whole numbers", "targets")
    check_rank("in_top_k", predictions, 1, "predictions")
    if not fits(shape(predictions)[:-1], shape(targets)):
        raise ShapeError(
            "`in_top_k`: `predictions` must have the shape of `targets` and one dimension more; "
            "got {predictions} for {targets}.",
            argument="predictions",
            predictions=describe(predictions),
            targets=describe(targets),
        )
    k = integer("in_top_k", k, "k")
    inside = logical_and(less(-1, targets), less(targets, shape(predictions)[-1]))
    score = pick(predictions, expand_dims(where(inside, cast(targets, "int64"), 0), -1))
    above = sum(less(score, predictions), -1)
    return logical_and(logical_and(less(above, k), inside), isfinite(reshape(score, shape(targets))))


__family__ = """Searching.

Positions in ascending vectors. They have no gradient.

See Also:
    :func:`sort`, :func:`histogram`, :func:`isin`, :func:`take`.
"""


def _searchable(op, sorted_sequence, values, side):
    check_real(op, sorted_sequence, values, side)
    check_rank(op.name, sorted_sequence, (1,), "sorted_sequence")
    choice(op.name, side, ("left", "right"), "side")


@op(differentiable=False, check=_searchable, exact=True, positions="all")
def searchsorted(sorted_sequence: Tensor, values: Tensor, side: str = "left") -> Tensor:
    """The positions at which ``values`` keep an ascending vector in order.

    Args:
        sorted_sequence: the vector, without NaN.
        side: ``"left"`` for the first such position, ``"right"`` for the last.

    Returns:
        An int64 tensor of the shape of ``values``, of positions from 0 to the vector's length. NaN goes last.
        It has no gradient.

    Raises:
        ShapeError: a ``sorted_sequence`` that is not a vector.
        ArgumentError: an unknown ``side``.
    """
    ...


@op(differentiable=False, check=check_real, positions="all")
def digitize(x: Tensor, bins: Tensor) -> Tensor:
    """The bin of each element: ``i`` where ``bins[i - 1] <= x < bins[i]``.

    Args:
        bins: a vector of ascending edges.

    Returns:
        An int64 tensor of ``x``'s shape: 0 below the first edge, the number of edges from the last one on
        and for NaN. It has no gradient.

    Raises:
        ShapeError: ``bins`` that are not a vector.
        ArgumentError: ``bins`` that do not ascend, as far as they are known.
        ArgumentTypeError: a complex ``x`` or ``bins``.
    """
    check_rank("digitize", bins, (1,), "bins")
    edges = known(bins)
    if edges is not None and (np.diff(edges) < 0).any():
        raise ArgumentError("`digitize`: `bins` must ascend.", argument="bins")
    return searchsorted(bins, x, "right")


__family__ = """Sets.

Distinct elements and membership.

See Also:
    :func:`sort`, :func:`searchsorted`, :func:`bincount`, :func:`segment_sum`.
"""


@op(differentiable=False)
def isin(x1: Tensor, x2: Tensor, assume_unique: bool = False, invert: bool = False) -> Tensor:
    """True for each element of ``x1`` that is equal to an element of ``x2``.

    Args:
        assume_unique: accepted, as it changes no result.
        invert: return True for elements that are not.

    Returns:
        A bool tensor of the shape of ``x1``; NaN equals nothing. It has no gradient.
    """
    x1, x2 = promoted(x1, x2)
    x2 = reshape(x2, (-1,))
    count = shape(x2)[0]
    if not unknown(count) and count <= 8 or dtype(x1) in ("bool", "complex64", "complex128"):
        found = any(equal(expand_dims(x1, -1), x2), -1)
    else:
        ordered = sort(x2)
        at = searchsorted(where(isnan(ordered), math.inf, ordered) if is_floating(dtype(x2)) else ordered, x1)
        inside = less(at, count)
        if unknown(count):  # it may be 0
            ordered = concatenate([ordered, zeros_like(reshape(x1, (-1,)))], 0)
        found = logical_and(inside, equal(take(ordered, where(inside, at, 0)), x1))
    return logical_not(found) if invert else found


@op(positions="range(1, 1 + bool(return_index) + bool(return_inverse))")
def unique(
    x: Tensor,
    sorted: bool = True,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: Axis | None = None,
    size: Integer | None = None,
    fill_value: Operand | None = None,
):
    """The distinct elements of ``x``, or its distinct slices along an axis.

    Args:
        sorted: whether results ascend; else they are in order of first occurrence.
        return_index: also return the position of the first occurrence of each.
        return_inverse: also return, for each element of ``x``, the position of its value in the result.
        return_counts: also return how often each occurs.
        axis: compare slices along it; None compares the elements of the flattened tensor.
        size: the number of results, which are padded or cut off to it. Inside a trace (``jax.jit``,
            ``tf.function``) it is required, and ``axis`` is not supported.
        fill_value: the value to pad with; the first result if None.

    Returns:
        A tensor, or a tuple of it and the positions and counts asked for, in the order of the arguments, in int64.
        All NaN count as equal.

    Raises:
        ArgumentError: inside a trace, no size, or an axis; a size for an empty ``x`` without a ``fill_value``.

    Gradient:
        The upstream gradient to the first occurrence of each; none from the positions and counts.

    Examples:
        >>> x = np.array([3.0, 1.0, 3.0])
        >>> print(ops.unique(x), gradops.grad(lambda x: ops.sum(ops.unique(x) ** 2))(x))
        [1. 3.] [6. 2. 0.]
    """
    if axis is not None:
        axis = check_axis("unique", axis, check_rank("unique", x, 1))
    size = None if size is None else integer("unique", size, "size")
    flat, along = lines("unique", x, axis)
    nothing = bool(size) and not unknown(shape(flat)[along]) and shape(flat)[along] == 0
    if nothing and fill_value is None:
        raise ArgumentError("`unique`: of no elements give a `fill_value` with `size`.", argument="fill_value")
    data = np.zeros(shape(x)) if nothing else known(x)
    if data is not None:
        index, inverse, counts, valid = _found(data, axis, sorted, size)
        index, inverse, counts = (_positions(v, x) for v in (index, inverse, counts))
    elif size is None or axis is not None:
        raise ArgumentError("`unique`: inside a trace give a `size`, and no `axis`.", argument="size")
    else:
        index, inverse, counts, valid = _traced(x, sorted, size)
    if nothing:  # the padding takes the place of an element
        flat = pad(flat, [(0, int(i == along)) for i in range(len(shape(flat)))])
    y = take(flat, index, along)
    if valid is not None and fill_value is not None:
        y = where(
            reshape(valid, [-1 if i == along else 1 for i in range(len(y.shape))]), y, constant_like(fill_value, x)
        )
    wanted = ((return_index, index), (return_inverse, inverse), (return_counts, counts))
    results = (y, *(value for asked, value in wanted if asked))
    return results if len(results) > 1 else y


def _found(data, axis, sorted, size):
    """Return the first position of each distinct value, each element's number among them, and counts, by NumPy."""
    _, index, inverse, counts = np.unique(data, return_index=True, return_inverse=True, return_counts=True, axis=axis)
    inverse = inverse.reshape(data.shape if axis is None else -1)
    if not sorted:
        order = np.argsort(index)
        index, counts, inverse = index[order], counts[order], np.argsort(order)[inverse]
    if size is None:
        return index, inverse, counts, None
    spare = builtins.max(size - len(index), 0)
    valid = np.arange(size) < len(index)
    index = np.concatenate([index[:size], np.full(spare, index[0] if len(index) else 0)])
    return index, inverse, np.concatenate([counts[:size], np.zeros(spare, counts.dtype)]), valid


def _traced(x, sorted, size):
    """Like ``_found``, for values that are unknown in a trace; all shapes are known."""
    flat = reshape(x, (-1,))
    count = flat.shape[0]
    order = argsort(flat)
    line = take(flat, order)
    before, after = split(line, [count - 1], 0)[0], split(line, [1], 0)[1]
    same = logical_or(equal(before, after), logical_and(isnan(before), isnan(after)))
    new = concatenate([logical_not(less(split(order, [1], 0)[0], 0)), logical_not(same)], 0)
    number = sum(new)
    rank = subtract(cumsum(cast(new, "int64")), 1)
    slots = np.arange(size, dtype="int64")
    valid = less(slots, number)
    index = take(take(order, argsort(logical_not(new))), np.minimum(slots, count - 1))
    index = where(valid, index, take(index, np.zeros(1, "int64")))
    counts = subtract(searchsorted(rank, slots, "right"), searchsorted(rank, slots, "left"))
    inverse = take(rank, argsort(order))
    if not sorted:
        turn = argsort(where(valid, index, count))
        index, counts = take(index, turn), take(counts, turn)
        inverse = take(argsort(turn), minimum(inverse, size - 1))
    return index, reshape(inverse, shape(x)), counts, valid


def _positions(values: np.ndarray, x):
    """Return positions as an int64 tensor of ``x``'s backend."""
    data = x.data if hasattr(x, "_node") else x
    owner = backends.backend_of(data) or config.default_backend()
    return owner.convert(values.astype("int64"), like=data)
