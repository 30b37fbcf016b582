"""Products of tensors.

Sums of products over dimensions, and products of all pairs of elements. They are linear in each operand, whose gradient
is the upstream gradient times the other operand, summed likewise.

See Also:
    :func:`multiply`, :func:`sum`, :func:`solve`, :func:`norm`.
"""

from __future__ import annotations

from ..annotations import Axis, Integers, Tensor, Tensors
from ..errors import ArgumentError, ShapeError
from . import _checks
from ._dispatch import op
from .conversion import shape, size
from .elementwise import conj, multiply, negative, subtract
from .joining import stack
from .properties import fits
from .shaping import reshape, transpose


@op(multilinear=("x1", "x2"))
def matmul(x1: Tensor, x2: Tensor) -> Tensor:
    """Matrix product over the last two dimensions, broadcasting the others; vectors count as row or column.

    Returns:
        A tensor ``(..., rows of x1, columns of x2)`` in the operands' promoted dtype; a vector's dimension drops out.

    Raises:
        ShapeError: inner sizes that differ, or a 0-d operand.

    Gradient:
        ``g @ x2.T`` and ``x1.T @ g``.

    Examples:
        >>> x, w = np.array([[1.0, 2.0]]), np.array([[0.5], [-1.0]])
        >>> print(ops.matmul(x, w))
        [[-1.5]]
        >>> print(gradops.grad(lambda w: ops.sum(ops.matmul(x, w)))(w))
        [[1.]
         [2.]]

    See Also:
        :func:`dot`, :func:`einsum`, :func:`solve`.
    """
    ...


@op(multilinear=("x1", "x2"))
def dot(x1: Tensor, x2: Tensor) -> Tensor:
    """Product over the last dimension of ``x1`` and the last but one of ``x2``, as ``numpy.dot``.

    Returns:
        A tensor of the shape of ``x1`` without its last dimension, then that of ``x2`` without its last but one, in the
        operands' promoted dtype.

    Raises:
        ShapeError: inner sizes that differ.

    Gradient:
        As in :func:`tensordot`.

    Examples:
        >>> x = np.array([1.0, 3.0])
        >>> print(ops.dot(x, [2.0, 4.0]), gradops.grad(lambda x: ops.dot(x, [2.0, 4.0]))(x))
        14.0 [2. 4.]
    """
    if len(x1.shape) == 0 or len(x2.shape) == 0:
        return multiply(x1, x2)
    if len(x2.shape) <= 2:
        return matmul(x1, x2)
    return tensordot(x1, x2, ([len(x1.shape) - 1], [max(len(x2.shape) - 2, 0)]))


def _paired(op, x1, x2, axes) -> None:
    """Raise for axes that some libraries accept: size 1 paired with another size, and a negative number of axes."""
    if isinstance(axes, int) and axes < 0:
        raise ArgumentError(f"`{op.name}`: `axes` must not be negative; got {axes}.", argument="axes")
    first, second = shape(x1), shape(x2)
    if isinstance(axes, int):
        left, right = first[max(len(first) - axes, 0) :], second[:axes]
    else:
        a, b = ((axis,) if isinstance(axis, int) else axis for axis in axes)
        left = tuple(first[i] for i in _checks.check_axes(op.name, a, len(first), "axes"))
        right = tuple(second[i] for i in _checks.check_axes(op.name, b, len(second), "axes"))
    if not fits(left, right):
        raise ShapeError(
            f"`{op.name}`: the sizes that are summed over must be equal; got `x1` {first}, `x2` {second}.",
            argument="x2",
        )


@op(check=_paired, multilinear=("x1", "x2"))
def tensordot(x1: Tensor, x2: Tensor, axes: Integers = 2) -> Tensor:
    """Sum of products over several dimensions: the last ``axes`` of ``x1`` with the first of ``x2``, or two lists.

    Args:
        axes: the number of dimensions to sum over, or two lists of them.

    Returns:
        A tensor of the other dimensions, those of ``x1`` first, in the operands' promoted dtype.

    Raises:
        ShapeError: paired sizes that differ.
        ArgumentError: a negative number of ``axes``.

    Gradient:
        The upstream gradient contracted with the other operand.

    Examples:
        >>> x = np.array([[1.0, 3.0], [2.0, 4.0]])
        >>> print(ops.tensordot(x, x, 2))
        30.0
        >>> print(gradops.grad(lambda x: ops.tensordot(x, x, 2))(x))
        [[2. 6.]
         [4. 8.]]
    """
    ...


@op(multilinear=("x1", "x2"))
def outer(x1: Tensor, x2: Tensor) -> Tensor:
    """Matrix of all products of the elements of two tensors, flattened.

    Returns:
        A matrix with a row for each element of ``x1`` and a column for each of ``x2``, in the operands' promoted dtype.

    Gradient:
        The upstream gradient times the other tensor, summed over its elements.

    Examples:
        >>> x = np.array([1.0, 3.0])
        >>> print(ops.outer(x, [1.0, 2.0]))
        [[1. 2.]
         [3. 6.]]
        >>> print(gradops.grad(lambda x: ops.sum(ops.outer(x, [1.0, 2.0])))(x))
        [3. 3.]
    """
    return multiply(reshape(x1, (-1, 1)), reshape(x2, (1, -1)))


@op(name="einsum", multilinear=("operands",))
def _einsum(subscripts: str, operands: Tensors) -> Tensor: ...


def einsum(subscripts: str, *operands: Tensor, **kwargs) -> Tensor:
    """Sum of products over named dimensions: ``einsum("ij,jk->ik", a, b)`` (Einstein 1916; NumPy's notation).

    Args:
        subscripts: a letter for each dimension, with commas between operands, then ``->`` and the result's letters.
        operands: as many tensors as the subscripts name.
        kwargs: ``optimize`` and similar arguments are accepted; the backend decides.

    Returns:
        A tensor of the dimensions after ``->``, in the operands' promoted dtype.

    Raises:
        ArgumentError: subscripts that do not fit the operands.

    Gradient:
        The upstream gradient contracted with the other operands, by the same notation.

    Examples:
        A bilinear form for each row, and its derivative by the matrix:

        >>> import numpy as np
        >>> import gradops
        >>> from gradops import ops
        >>> x, a, y = np.array([[1.0, 2.0], [0.0, 1.0]]), np.eye(2), np.array([[3.0, 4.0], [5.0, 6.0]])
        >>> print(ops.einsum("ni,ij,nj->n", x, a, y))
        [11.  6.]
        >>> print(gradops.grad(lambda a: ops.sum(ops.einsum("ni,ij,nj->n", x, a, y)))(a))
        [[ 3.  4.]
         [11. 14.]]

    See Also:
        :func:`matmul`, :func:`tensordot`, :func:`rearrange`.
    """
    return _einsum(subscripts, operands)


def _same_last(op, x1, x2) -> None:
    _checks.check_rank(op.name, x1, 0, "x1")
    _checks.check_rank(op.name, x2, 0, "x2")
    first, second = shape(x1), shape(x2)
    if first and second and not fits(first[-1:], second[-1:]):
        raise ShapeError(
            f"`{op.name}`: the last sizes of `x1` and `x2` must be equal; got {first} and {second}.", argument="x2"
        )


@op(check=_same_last, multilinear=("x1", "x2"))
def inner(x1: Tensor, x2: Tensor) -> Tensor:
    """Sums of products over the last dimensions of two tensors, for all pairs of other positions; 0-d tensors multiply.

    Returns:
        A tensor of the shape of ``x1`` without its last dimension, then that of ``x2`` without its last.

    Raises:
        ShapeError: last sizes that differ.

    Gradient:
        As in :func:`tensordot`.

    Examples:
        >>> x = np.array([1.0, 3.0])
        >>> print(ops.inner(x, [2.0, 4.0]), gradops.grad(lambda x: ops.inner(x, [2.0, 4.0]))(x))
        14.0 [2. 4.]
    """
    if len(x1.shape) == 0 or len(x2.shape) == 0:
        return multiply(x1, x2)
    return tensordot(x1, x2, ([len(x1.shape) - 1], [len(x2.shape) - 1]))


def _same_size(op, x1, x2) -> None:
    _checks.check_rank(op.name, x1, 0, "x1")
    _checks.check_rank(op.name, x2, 0, "x2")
    first, second = size(x1), size(x2)
    if not fits((first,), (second,)):
        raise ShapeError(
            f"`{op.name}`: `x1` and `x2` must have as many elements as each other; got {first} and {second}.",
            argument="x2",
        )


@op(check=_same_size, multilinear=("x1", "x2"))
def vdot(x1: Tensor, x2: Tensor) -> Tensor:
    """Sum of products of all elements of two tensors, with ``x1`` conjugated.

    Returns:
        A 0-d tensor.

    Raises:
        ShapeError: numbers of elements that differ.

    Gradient:
        The other tensor times the upstream gradient, conjugated by the chain rule.

    Examples:
        >>> x = np.array([1.0, 3.0])
        >>> print(ops.vdot(x, [2.0, 4.0]), gradops.grad(lambda x: ops.vdot(x, [2.0, 4.0]))(x))
        14.0 [2. 4.]
    """
    return matmul(conj(reshape(x1, (-1,))), reshape(x2, (-1,)))


@op(multilinear=("x1", "x2"))
def kron(x1: Tensor, x2: Tensor) -> Tensor:
    """Kronecker product: each element of ``x1`` replaced by itself times ``x2``.

    Returns:
        A tensor whose sizes are the products of the operands' (the shorter shape is padded with 1 in front).

    Gradient:
        The upstream gradient times the other tensor, summed over its elements.

    Examples:
        >>> x = np.array([1.0, 3.0])
        >>> print(ops.kron(x, [1.0, 2.0]), gradops.grad(lambda x: ops.sum(ops.kron(x, [1.0, 2.0])))(x))
        [1. 2. 3. 6.] [3. 3.]
    """
    rank = max(len(x1.shape), len(x2.shape))
    first = (1,) * (rank - len(x1.shape)) + shape(x1)
    second = (1,) * (rank - len(x2.shape)) + shape(x2)
    x1 = reshape(x1, [n for length in first for n in (length, 1)])
    x2 = reshape(x2, [n for length in second for n in (1, length)])
    return reshape(multiply(x1, x2), [m * n for m, n in zip(first, second)])


def _check_cross(op, x1, x2, axisa, axisb, axisc, axis) -> None:
    for x, name, at, said in ((x1, "x1", axisa, "axisa"), (x2, "x2", axisb, "axisb")):
        _checks.check_rank(op.name, x, 1, name)
        at, sizes = at if axis is None else axis, shape(x)
        length = sizes[_checks.check_axis(op.name, at, len(sizes), said if axis is None else "axis")]
        if length not in (2, 3):
            raise ShapeError(f"`{op.name}`: vectors have 2 or 3 elements; `{name}` has {length}.", argument=name)


@op(check=_check_cross, multilinear=("x1", "x2"))
def cross(
    x1: Tensor, x2: Tensor, axisa: Axis = -1, axisb: Axis = -1, axisc: Axis = -1, axis: Axis | None = None
) -> Tensor:
    """Cross product of vectors of 3 elements, or of 2, whose third is 0; two vectors of 2 give the third element only.

    Args:
        axisa: the dimension of ``x1`` that holds the vectors.
        axisb: the dimension of ``x2`` that holds the vectors.
        axisc: the dimension of the result that holds the vectors; not used for two vectors of 2.
        axis: sets all three.

    Returns:
        A tensor of the broadcast shape, with vectors of 3 along ``axisc``, or without them (two vectors of 2).

    Raises:
        ShapeError: vectors of another length; shapes that do not broadcast.

    Gradient:
        ``cross(x2, g)`` and ``cross(g, x1)``.

    Examples:
        >>> x = np.array([1.0, 0.0, 0.0])
        >>> print(ops.cross(x, [0.0, 1.0, 0.0]), gradops.grad(lambda x: ops.cross(x, [0.0, 1.0, 0.0])[2])(x))
        [0. 0. 1.] [1. 0. 0.]
    """
    if axis is not None:
        axisa = axisb = axisc = axis
    first, second = _vectors_last(x1, axisa), _vectors_last(x2, axisb)
    a = [first[..., i] for i in range(shape(first)[-1])]
    b = [second[..., i] for i in range(shape(second)[-1])]
    third = subtract(multiply(a[0], b[1]), multiply(a[1], b[0]))
    if len(a) == len(b) == 2:
        return third
    if len(a) == 2:
        parts = [multiply(a[1], b[2]), negative(multiply(a[0], b[2])), third]
    elif len(b) == 2:
        parts = [negative(multiply(a[2], b[1])), multiply(a[2], b[0]), third]
    else:
        parts = [
            subtract(multiply(a[1], b[2]), multiply(a[2], b[1])),
            subtract(multiply(a[2], b[0]), multiply(a[0], b[2])),
            third,
        ]
    return stack(parts, _checks.check_axis("cross", axisc, len(third.shape) + 1, "axisc"))


def _vectors_last(x, axis):
    rank = len(x.shape)
    axis = axis % rank
    return x if axis == rank - 1 else transpose(x, [i for i in range(rank) if i != axis] + [axis])
