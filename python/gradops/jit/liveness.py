"""Liveness: the rows that results need, and the last use of each value."""

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
    """The rows that the wanted places need, in order.

    Args:
        instead: steps that replace the rows with their results, by place.
        among: the rows of the program, if they are not those of its table.
    """
    rows = program.table.rows() if among is None else among
    is_needed = bytearray(len(program.values))  # with a view, for all rows at a time
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
    """Mark the operands of the marked results of narrow rows, from the last to the first."""
    # Place 0, which stands for an operand that an operation does not have, is no value's.
    if len(words) < FEW:
        for _, result, x, y, z in reversed(words.tolist()):
            if is_needed[result]:
                is_needed[x] = is_needed[y] = is_needed[z] = 1
    else:
        mark_operands(words, np.full(len(words), 7, np.uint8), marks)


def last_uses(steps: Collection[Step | Rows]) -> dict[int, int]:
    """The number of the last step that uses each place."""
    return {place: i for i, step in enumerate(steps) for place in step.uses}
