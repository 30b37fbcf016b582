"""What gradcheck says where analytic and numeric derivatives differ."""

from __future__ import annotations

import numpy as np

from ...errors import GradientError
from ...ops import conversion


def compare(analytic, numeric, k: int, i: int, x, y, atol: float, rtol: float) -> None:
    wrong = ~(np.abs(analytic - numeric) <= atol + rtol * np.abs(numeric))
    if not wrong.any():
        return
    order = np.argsort(-np.nan_to_num(np.abs(analytic - numeric), nan=np.inf).ravel(), kind="stable")
    lines = [f"{'input element':>20} {'output element':>20} {'analytic':>16} {'numeric':>16}"]
    for flat_place in order[: min(12, int(wrong.sum()))]:
        row, column = np.unravel_index(flat_place, wrong.shape)
        lines.append(
            f"{_place(row, x):>20} {_place(column, y):>20} {analytic[row, column]:>16.8g} {numeric[row, column]:>16.8g}"
        )
    more = int(wrong.sum()) - len(lines) + 1
    raise GradientError(
        f"gradcheck: the gradient of output {k} for input {i} is wrong at {int(wrong.sum())} of {wrong.size} places "
        f"(tolerance {atol:g} + {rtol:g} * |numeric|):\n"
        + "\n".join(lines)
        + (f"\n... and {more} more" if more > 0 else ""),
        hint=_hint(analytic, numeric),
    )


def _hint(analytic, numeric) -> str | None:
    """What may be the reason for a wrong gradient."""
    if np.isnan(analytic).any() or np.isnan(numeric).any():
        return "NaN is no gradient: take inputs from where the function is defined and smooth"
    if not analytic.any():
        return (
            "the output does not depend on the input for the tape: was it made a number or an array on the way "
            "(`float()`, `.item()`, `numpy()`, R's `as.numeric()`), or its gradient stopped?"
        )
    return None


def _place(index: int, x) -> str:
    """A real element's position: of a complex tensor with its part."""
    part = ""
    if "complex" in conversion.dtype(x):
        index, which = divmod(int(index), 2)
        part = (" Re", " Im")[which]
    where = np.unravel_index(int(index), tuple(x.shape)) if tuple(x.shape) else ()
    return "[" + ", ".join(map(str, where)) + "]" + part
