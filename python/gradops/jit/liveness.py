"""Liveness: which rows the results need, and the last use of each value.

:func:`needed_rows` is the first pass over a finished program; the other passes and executors take its rows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType

import numpy as np

from .native.records import mark_operands
from .program import Program
from .steps import Step
from .table import FEW, Rows


def needed_rows(
    program: Program,
    wanted: Iterable[int],
    instead: Mapping[int, Step] = MappingProxyType({}),
    among: Rows | None = None,
) -> Rows:
    """Return the rows that the wanted places need, in order.

    Args:
        instead: steps that replace the rows with their results, by place.
        among: the rows of the program, if a pass has changed them; by default all rows of its table.
    """
    rows = program.table.rows() if among is None else among
    is_needed = bytearray(len(program.values))  # one byte per place; `marks` is a NumPy view of it
    marks = np.frombuffer(is_needed, np.uint8)
    for place in wanted:
        is_needed[place] = 1
    words = rows.words
    single = np.flatnonzero((words[:, 4] < 0) | np.isin(words[:, 1], list(instead))) if instead else rows.wide
    stop = len(words)
    for i in (*single[::-1].tolist(), -1):
        _mark(words[i + 1 : stop], is_needed, marks)
        if i >= 0:
            row = words[i].tolist()
            if any(map(is_needed.__getitem__, rows.table.results(row))):
                is_needed[row[1]] = 1
                for place in instead[row[1]].uses if row[1] in instead else rows.table.operands(row):
                    is_needed[place] = 1
        stop = i
    needed = marks[words[:, 1]] != 0
    return rows if needed.all() else rows[needed]


def _mark(words: np.ndarray, is_needed: bytearray, marks: np.ndarray) -> None:
    """Mark the operands of narrow rows whose results are marked, from the last row to the first."""
    # Place 0 stands for a missing operand and belongs to no value, so marking it has no effect.
    if len(words) < FEW:
        for _, result, x, y, z in reversed(words.tolist()):
            if is_needed[result]:
                is_needed[x] = is_needed[y] = is_needed[z] = 1
    else:
        mark_operands(words, np.full(len(words), 7, np.uint8), marks)


def last_uses(steps: Collection[Step | Rows]) -> dict[int, int]:
    """Return the index of the last step that uses each place."""
    return {place: i for i, step in enumerate(steps) for place in step.uses}
