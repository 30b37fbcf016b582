"""What gradcheck says where analytic and numeric derivatives differ."""

from __future__ import annotations

import numpy as np

from ...errors import Element, GradientError, Position
from ...ops import conversion


def compare(analytic, numeric, k: int, i: int, x, y, atol: float, rtol: float) -> None:
    wrong = ~(np.abs(analytic - numeric) <= atol + rtol * np.abs(numeric))
    if not wrong.any():
        return
    order = np.argsort(-np.nan_to_num(np.abs(analytic - numeric), nan=np.inf).ravel(), kind="stable")
    places: dict = {}
    lines = [f"{'input element':>20} {'output element':>20} {'analytic':>16} {'numeric':>16}"]
    for flat_place in order[: min(12, int(wrong.sum()))]:
        row, column = np.unravel_index(flat_place, wrong.shape)
        at = len(lines)
        places |= {f"of_x_{at}": _place(row, x), f"of_y_{at}": _place(column, y)}
        lines.append(
            f"{{of_x_{at}:>20}} {{of_y_{at}:>20}} {analytic[row, column]:>16.8g} {numeric[row, column]:>16.8g}"
        )
    count = int(wrong.sum())
    more = count - len(lines) + 1
    raise GradientError(
        f"gradcheck: the gradient of output {{k}} for input {{i}} is wrong at {count} of {wrong.size} places "
        f"(tolerance {atol:g} + {rtol:g} * |numeric|):\n"
        + "\n".join(lines)
        + (f"\n... and {more} more" if more > 0 else ""),
        hint=_hint(analytic, numeric),
        k=Position(k),
        i=Position(i),
        **places,
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


def _place(index: int, x) -> Element:
    """A real element's position: of a complex tensor with its part."""
    part = ""
    if "complex" in conversion.dtype(x):
        index, which = divmod(int(index), 2)
        part = (" Re", " Im")[which]
    where = np.unravel_index(int(index), tuple(x.shape)) if tuple(x.shape) else ()
    return Element(tuple(map(int, where)), part)
