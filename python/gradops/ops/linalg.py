"""Linear algebra."""

from __future__ import annotations

from ..types import Integers, Tensor, Tensors
from ._dispatch import op


@op
def matmul(x1: Tensor, x2: Tensor) -> Tensor:
    """Matrix product over the last two dimensions, broadcasting the others; vectors count as row or column.

    Raises:
        ShapeError: inner sizes that differ, or a 0-d operand.

    Gradient:
        ``g @ x2.T`` and ``x1.T @ g``.
    """
    ...


@op
def dot(x1: Tensor, x2: Tensor) -> Tensor:
    """Product over the last dimension of ``x1`` and the last but one of ``x2``, as ``numpy.dot``.

    Raises:
        ShapeError: inner sizes that differ.

    Gradient:
        As of :func:`tensordot`.
    """
    from .elementwise import multiply

    if len(x1.shape) == 0 or len(x2.shape) == 0:
        return multiply(x1, x2)
    return tensordot(x1, x2, ([len(x1.shape) - 1], [max(len(x2.shape) - 2, 0)]))


@op
def tensordot(x1: Tensor, x2: Tensor, axes: Integers = 2) -> Tensor:
    """Sum of products over several dimensions: the last ``axes`` of ``x1`` with the first of ``x2``, or two lists.

    Raises:
        ShapeError: paired sizes that differ.

    Gradient:
        The upstream gradient contracted with the other operand.
    """
    ...


@op
def outer(x1: Tensor, x2: Tensor) -> Tensor:
    """Matrix of all products of the elements of two tensors, flattened.

    Gradient:
        As of a product.
    """
    from .elementwise import multiply
    from .shaping import reshape

    return multiply(reshape(x1, (-1, 1)), reshape(x2, (1, -1)))


@op(name="einsum")
def _einsum(subscripts: str, operands: Tensors) -> Tensor: ...


def einsum(subscripts: str, *operands: Tensor, **kwargs) -> Tensor:
    """Sum of products over named dimensions: ``einsum("ij,jk->ik", a, b)`` (Einstein 1916; NumPy's notation).

    Args:
        subscripts: a letter for each dimension, operands parted by commas, then ``->`` and the result's.
        operands: as many tensors as the subscripts name.
        kwargs: ``optimize`` and the like are accepted and left to the backend.

    Raises:
        ArgumentError: subscripts that do not fit the operands.

    Gradient:
        The upstream gradient contracted with the other operands, by the same notation.
    """
    return _einsum(subscripts, operands)
