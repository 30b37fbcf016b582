"""Creation: tensors from nothing, on the default backend, or like another tensor."""

from __future__ import annotations

from ..types import DType, Integer, Operand, Shape, Tensor
from ._dispatch import op


@op
def zeros(shape: Shape, dtype: DType | None = None) -> Tensor:
    """A tensor of zeros, of ``floatx`` unless ``dtype`` is given."""
    ...


@op
def ones(shape: Shape, dtype: DType | None = None) -> Tensor:
    """A tensor of ones, of ``floatx`` unless ``dtype`` is given."""
    ...


@op
def full(shape: Shape, fill_value: Tensor, dtype: DType | None = None) -> Tensor:
    """A tensor of ``fill_value``, in its dtype unless ``dtype`` is given.

    Gradient:
        The sum of the upstream gradient, to ``fill_value``.
    """
    from .conversion import cast
    from .shaping import broadcast_to

    return broadcast_to(fill_value if dtype is None else cast(fill_value, dtype), shape)


@op(differentiable=False)
def zeros_like(x: Tensor, dtype: DType | None = None) -> Tensor:
    """Zeros of ``x``'s shape, backend and, unless given, dtype."""
    ...


@op(differentiable=False)
def ones_like(x: Tensor, dtype: DType | None = None) -> Tensor:
    """Ones of ``x``'s shape, backend and, unless given, dtype."""
    ...


@op
def full_like(x: Tensor, fill_value: Operand, dtype: DType | None = None) -> Tensor:
    """``fill_value`` in ``x``'s shape, on its backend and, unless given, in its dtype.

    Gradient:
        The sum of the upstream gradient, to ``fill_value``; none to ``x``.
    """
    from .conversion import cast
    from .conversion import dtype as dtype_of
    from .shaping import broadcast_to

    return broadcast_to(cast(fill_value, dtype or dtype_of(x)), x.shape)


@op
def arange(start: Operand, stop: Operand | None = None, step: Operand | None = None, dtype: DType | None = None) -> Tensor:
    """Numbers from ``start`` (0 if only one is given) up to but without ``stop``, ``step`` apart.

    Returns:
        A vector: int64 of integers, ``floatx`` otherwise, unless ``dtype`` is given.
    """
    ...


@op
def linspace(start: Operand, stop: Operand, num: Integer = 50, endpoint: bool = True, retstep: bool = False, dtype: DType | None = None, axis: Integer = 0):
    """``num`` evenly spaced numbers from ``start`` to ``stop``, with or without the end point.

    Returns:
        A tensor; with ``retstep`` a pair of it and the step.
    """
    ...


@op
def eye(N: Integer, M: Integer | None = None, k: Integer = 0, dtype: DType | None = None) -> Tensor:
    """An ``N`` by ``M`` matrix with ones on its ``k``-th diagonal, zeros elsewhere."""
    ...
