"""Lines of a tensor along one axis."""

from __future__ import annotations

from typing import Any

from ._checks import check_axis
from .conversion import ndim
from .shaping import reshape


def lines(op: str, x, axis) -> tuple[Any, int]:
    """``x`` and a non-negative axis; flattened, and 0, where ``axis`` is None."""
    if axis is None:
        return reshape(x, (-1,)), 0
    rank = ndim(x)
    axis = check_axis(op, axis, rank)
    return (x, axis) if rank else (reshape(x, (1,)), 0)
