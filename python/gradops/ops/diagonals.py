"""Diagonals and triangles.

Matrices are the last two dimensions. The elements left out get the gradient 0.

See Also:
    :func:`eye`, :func:`tri`, :func:`cholesky`, :func:`einsum`.
"""

from __future__ import annotations

import numpy as np

from ..annotations import Axis, Integer, Tensor
from . import _checks, reductions
from ._checks import check_axes, check_rank, integer
from ._dispatch import op
from ._sizes import counting, lower
from .conversion import ndim, shape
from .elementwise import equal
from .extending import pad
from .indexing import take, where
from .properties import unknown
from .shaping import expand_dims, moveaxis, ravel, reshape, roll


def _check_matrices(op, x, *rest) -> None:
    check_rank(op.name, x, 2)


@op(check=_check_matrices, moves=True, view="constant")
def diagonal(x: Tensor, offset: Integer = 0, axis1: Axis = 0, axis2: Axis = 1) -> Tensor:
    """The ``offset``-th diagonal over two dimensions, in a new last dimension.

    Args:
        offset: the diagonal: 0 is the main one, positive ones lie above it.

    Returns:
        A tensor of ``x``'s dtype, without the two dimensions and with a new last one.

    Raises:
        ShapeError: fewer than 2 dimensions.
        AxisError: an axis out of range, or the same twice.

    Gradient:
        The upstream gradient on the diagonal, 0 elsewhere.

    Examples:
        >>> print(gradops.grad(lambda x: ops.sum(ops.diagonal(x)))(np.zeros((2, 2))))
        [[1. 0.]
         [0. 1.]]

    See Also:
        :func:`diag`, :func:`trace`.
    """
    axes = check_axes("diagonal", (axis1, axis2), len(x.shape), "axis2")
    x = moveaxis(x, axes, (-2, -1))
    rows, columns = shape(x)[-2:]
    offset = integer("diagonal", offset, "offset")
    length = max(min(rows + min(offset, 0), columns - max(offset, 0)), 0)
    start = offset if offset >= 0 else -offset * columns
    flat = reshape(x, (*shape(x)[:-2], rows * columns))
    return take(flat, start + (columns + 1) * np.arange(length), -1)


@op(linear=("x",))
def diagflat(x: Tensor, k: Integer = 0) -> Tensor:
    """A square matrix with the elements of ``x``, flattened, on its ``k``-th diagonal and zeros elsewhere.

    Args:
        k: the diagonal: 0 is the main one, positive ones lie above it.

    Returns:
        A square matrix of ``x``'s dtype.

    Gradient:
        The upstream gradient on the diagonal.

    Examples:
        >>> x = np.array([1.0, 3.0])
        >>> print(ops.diagflat(x))
        [[1. 0.]
         [0. 3.]]
        >>> print(gradops.grad(lambda x: ops.sum(ops.diagflat(x) ** 2))(x))
        [2. 6.]
    """
    x, k = ravel(x), integer("diagflat", k, "k")
    count, width = shape(x)[0], shape(x)[0] + abs(k)
    if unknown(count):
        place = counting(count)
        square = where(equal(expand_dims(place, 1), place), expand_dims(x, 1), 0)
        return pad(square, [(max(-k, 0), max(k, 0)), (max(k, 0), max(-k, 0))])
    # with rows one column shorter, elements of a column lie on a diagonal
    square = reshape(ravel(pad(reshape(x, (-1, 1)), [(0, 0), (0, width)]))[: count * width], (count, width))
    if k > 0:
        square = roll(square, k, 1)
    return pad(square, [(max(-k, 0), max(k, 0)), (0, 0)])


@op(linear=("x",))
def diag(x: Tensor, k: Integer = 0) -> Tensor:
    """The matrix with a vector on its ``k``-th diagonal, or the ``k``-th diagonal of a matrix.

    Args:
        k: the diagonal: 0 is the main one, positive ones lie above it.

    Returns:
        A matrix for a vector, a vector for a matrix, of ``x``'s dtype.

    Raises:
        ShapeError: neither a vector nor a matrix.

    Gradient:
        The upstream gradient on the diagonal, or placed on it.

    Examples:
        >>> x = np.array([1.0, 3.0])
        >>> print(ops.diag(x))
        [[1. 0.]
         [0. 3.]]
        >>> print(gradops.grad(lambda x: ops.sum(ops.diag(x) ** 2))(x))
        [2. 6.]
    """
    return diagflat(x, k) if check_rank("diag", x, (1, 2)) == 1 else diagonal(x, k)


@op(linear=("x",))
def trace(x: Tensor, offset: Integer = 0, axis1: Axis = 0, axis2: Axis = 1) -> Tensor:
    """The sum of the ``offset``-th diagonal over two dimensions.

    Args:
        offset: the diagonal: 0 is the main one, positive ones lie above it.

    Returns:
        A tensor without the two dimensions; integers and bools add up in 64 bits.

    Raises:
        ShapeError: fewer than 2 dimensions.
        AxisError: an axis out of range, or the same twice.

    Gradient:
        The upstream gradient on the diagonal, 0 elsewhere.

    Examples:
        >>> x = np.array([[2.0, 1.0], [0.0, 1.0]])
        >>> print(ops.trace(x))
        3.0
        >>> print(gradops.grad(lambda x: ops.trace(x))(x))
        [[1. 0.]
         [0. 1.]]
    """
    check_rank("trace", x, 2)
    return reductions.sum(diagonal(x, offset, axis1, axis2), -1)


@op(check=_check_matrices, linear=("x",), exact=True)
def tril(x: Tensor, k: Integer = 0) -> Tensor:
    """Matrices with zeros above their ``k``-th diagonal.

    Args:
        k: the diagonal: 0 is the main one, positive ones lie above it.

    Returns:
        A tensor of ``x``'s shape and dtype.

    Raises:
        ShapeError: fewer than 2 dimensions.

    Gradient:
        The upstream gradient on and below the diagonal, 0 above.

    Examples:
        >>> x = np.array([[1.0, 3.0], [2.0, 4.0]])
        >>> print(ops.tril(x))
        [[1. 0.]
         [2. 4.]]
        >>> print(gradops.grad(lambda x: ops.sum(ops.tril(x) ** 2))(x))
        [[2. 0.]
         [4. 8.]]
    """
    return where(_lower_mask(x, integer("tril", k, "k")), x, False)


@op(check=_check_matrices, linear=("x",), exact=True)
def triu(x: Tensor, k: Integer = 0) -> Tensor:
    """Matrices with zeros below their ``k``-th diagonal.

    Args:
        k: the diagonal: 0 is the main one, positive ones lie above it.

    Returns:
        A tensor of ``x``'s shape and dtype.

    Raises:
        ShapeError: fewer than 2 dimensions.

    Gradient:
        The upstream gradient on and above the diagonal, 0 below.

    Examples:
        >>> x = np.array([[1.0, 3.0], [2.0, 4.0]])
        >>> print(ops.triu(x))
        [[1. 3.]
         [0. 4.]]
        >>> print(gradops.grad(lambda x: ops.sum(ops.triu(x) ** 2))(x))
        [[2. 6.]
         [0. 8.]]
    """
    return where(_lower_mask(x, integer("triu", k, "k") - 1), False, x)


def _lower_mask(x, k: int):
    """Return a mask that is True on and below the ``k``-th diagonal."""
    rows, columns = shape(x)[-2:]
    return lower(rows, columns, k)


def _explain_axes(op: str, x, offset, axis1, axis2) -> None:
    check_axes(op, (axis1, axis2), ndim(x), "axis2")


_checks.reasons["diagonal"] = _explain_axes
