"""Indexing: parts of tensors."""

from __future__ import annotations

from ..types import Axis, Indices, Operand, Tensor
from ._dispatch import op


@op
def get_item(x: Tensor, key) -> Tensor:
    """``x[key]`` with NumPy's meaning: ints, slices, ``None``, ``...``, bool masks and integer tensors.

    Raises:
        AxisError: a position out of range.

    Gradient:
        The upstream gradient at the chosen positions, added up where one is chosen twice; 0 elsewhere.
    """
    ...


@op
def take(x: Tensor, indices: Indices, axis: Axis | None = None) -> Tensor:
    """Elements of ``x`` at positions along an axis; of the flattened tensor without one.

    Args:
        indices: whole numbers of any shape; negative ones count from the end.

    Returns:
        A tensor with ``axis`` replaced by the shape of ``indices``.

    Raises:
        AxisError: an axis or position out of range.

    Gradient:
        The upstream gradient at the chosen positions, added up where one is chosen twice; 0 elsewhere.
    """
    ...


@op
def where(condition: Tensor, x1: Operand | None = None, x2: Operand | None = None):
    """``x1`` where ``condition`` is true and ``x2`` elsewhere; without both, the positions of true elements.

    Returns:
        A tensor of the broadcast shape; without ``x1`` and ``x2`` a tuple of int64 tensors, one a dimension.

    Raises:
        ArgumentError: only one of ``x1`` and ``x2``.
        ShapeError: shapes that do not broadcast.

    Gradient:
        The upstream gradient to the operand chosen, 0 to the other, also where the other is NaN or infinite.
        (A NaN in the derivative of what made the other operand still comes through: 0 * NaN; see
        ``docs/differences.md``.)
    """
    ...


@op
def add_at(x: Tensor, key, updates: Tensor) -> Tensor:
    """``x`` with ``updates`` added at ``key`` (as of :func:`get_item`); repeated positions add up.

    Gradient:
        The upstream gradient to ``x``, and at ``key`` to ``updates``.
    """
    ...
