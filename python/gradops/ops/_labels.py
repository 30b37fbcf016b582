"""The labels of pandas' series and data frames, by which pandas aligns what an operator combines.

Arrays have none, and are combined by position. So what came of a series element by element is not combined with one of
other labels: that would be another number than pandas'.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..errors import ArgumentError


def of(value) -> tuple | None:
    """The labels of each dimension of a series or data frame; None of all else."""
    if type(value).__module__.partition(".")[0] != "pandas":
        return None
    return tuple(value.axes) if hasattr(value, "axes") else None


def common(op: str, found: Iterable[tuple | None]) -> tuple | None:
    """The labels of a result whose operands have these.

    Raises:
        ArgumentError: labels of the same dimension that differ.
    """
    result: tuple = ()
    for labels in found:
        if labels is not None:
            if not all(one.equals(other) for one, other in zip(reversed(result), reversed(labels))):
                raise ArgumentError(
                    f"`{op}`: a series, or data frame, meets what came of one with other labels, by which pandas would "
                    "align them; arrays have none.",
                    hint="align them before (`a, b = a.align(b)`), or give the values alone, `x.to_numpy()`",
                )
            result = max(result, labels, key=len)
    return result or None
