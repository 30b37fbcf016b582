"""Sorting and searching. NaN counts as the largest number; equal elements keep their order."""

from __future__ import annotations

import math

import numpy as np

from ..annotations import Axis, Index, Indices, Integer, Tensor
from ..errors import ArgumentError, ShapeError
from ._checks import check_axis, check_kind, check_positions, check_rank, check_real, choice, describe, integer, known
from ._dispatch import op
from ._sizes import multiples
from .conversion import cast, shape
from .elementwise import add, isfinite, less, logical_and, multiply
from .indexing import take, where
from .joining import split
from .properties import fits, unknown
from .reductions import sum
from .shaping import expand_dims, flip, reshape

RETURNS_POSITIONS = ("argsort", "argpartition", "top_k", "searchsorted", "digitize")
"""Ops whose results are positions; of ``top_k`` the second."""


"""Sorting.

NaN counts as the largest number; equal elements keep their order. The gradient follows each element to its place.

See Also:
    :func:`searchsorted`, :func:`max`, :func:`median`, :func:`take_along_axis`, :func:`unique`.
"""


@op(check=check_real)
def sort(x: Tensor, axis: Axis | None = -1) -> Tensor:
    """``x`` in ascending order along an axis; flattened where ``axis`` is None.

    Returns:
        A tensor of ``x``'s shape and dtype, NaN last.

    Raises:
        ArgumentTypeError: a complex ``x``, which has no order.

    Gradient:
        The upstream gradient, back in the order of ``x``.

    Examples:
        >>> import numpy as np
        >>> import gradops
        >>> from gradops import ops
        >>> x = np.array([1.0, 3.0, 2.0])
        >>> print(ops.sort(x), gradops.grad(lambda x: ops.sort(x)[1])(x))
        [1. 2. 3.] [0. 0. 1.]

    See Also:
        :func:`argsort`, :func:`argpartition`, :func:`top_k`.
    """
    ...


@op(differentiable=False, check=check_real)
def argsort(x: Tensor, axis: Axis | None = -1) -> Tensor:
    """The positions of the elements of ``x`` in ascending order along an axis; flattened where ``axis`` is None.

    Returns:
        An int64 tensor of 0-based positions, NaN last; equal elements in the order of ``x``. It has no gradient.

    Raises:
        ArgumentTypeError: a complex ``x``, which has no order.
    """
    ...


@op(differentiable=False, check=check_real)
def argpartition(x: Tensor, kth: Index, axis: Axis | None = -1) -> Tensor:
    """Positions that put the ``kth`` smallest element in its place, smaller ones before and larger ones after.

    Args:
        kth: a position along the axis; negative ones count from the end.

    Returns:
        An int64 tensor of 0-based positions: those of :func:`argsort`, so the same on every backend. It has
        no gradient.

    Raises:
        AxisError: an axis or ``kth`` out of range.
        ArgumentTypeError: a complex ``x``.
    """
    count = size_along("argpartition", x, axis)
    check_positions("argpartition", integer("argpartition", kth, "kth"), count, "kth")
    return argsort(x, axis)


def size_along(op: str, x, axis) -> int:
    """The number of elements along an axis; of all where it is None."""
    sizes = shape(x)
    if axis is None:
        return math.prod(sizes)
    return (sizes or (1,))[check_axis(op, axis, len(sizes))]


def pick(x, positions):
    """Elements of ``x`` at positions along its last axis, line by line; one gather from the flat tensor."""
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


@op(check=_largest)
def top_k(x: Tensor, k: Integer, sorted: bool = True, is_stable: bool = True) -> tuple:
    """The ``k`` largest elements along the last axis, and their positions.

    Args:
        k: the number of elements.
        sorted, is_stable: they come in descending order, equal ones in theirs, either way; the arguments are there for
            other libraries' sake.

    Returns:
        A tuple of the elements, in ``x``'s dtype, and their 0-based positions, in int64. NaN counts as the
        largest number; of equal elements the first comes first.

    Raises:
        ArgumentError: ``k`` negative or above the number of elements.
        ShapeError: a tensor without dimensions.

    Gradient:
        The upstream gradient at the chosen positions, 0 elsewhere; none from the positions.

    Examples:
        >>> import numpy as np
        >>> import gradops
        >>> from gradops import ops
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
        A bool tensor of the shape of ``targets``. Classes tied at the ``k``-th place are all in; a target
        that is out of range or whose score is not finite is not. It has no gradient.

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


"""Searching.

Positions in ascending vectors. They have no gradient.

See Also:
    :func:`sort`, :func:`histogram`, :func:`isin`, :func:`take`.
"""


def _searchable(op, sorted_sequence, values, side):
    check_real(op, sorted_sequence, values, side)
    check_rank(op.name, sorted_sequence, (1,), "sorted_sequence")
    choice(op.name, side, ("left", "right"), "side")


@op(differentiable=False, check=_searchable)
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


@op(differentiable=False, check=check_real)
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
