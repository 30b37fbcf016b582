"""Native code run by NumPy, call by call: where something is warned of, and as what the code means.

The machine notices that NumPy would warn, as of a division by zero, but not where. The run is then done again here, so
that the warning says what NumPy's says, once for each place as the filters of ``warnings`` ask for it, or is an error
under ``np.errstate(all="raise")``.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence

import numpy as np

from .code import Checked
from .instructions import (
    CALLS,
    END,
    FIRST_FUNCTION,
    FUNCTIONS,
    LONG,
    NUMBERS,
    OPERATIONS,
    REDUCTIONS,
    ROWS,
    SHORT,
    VECTOR,
)

_NAMES = list(NUMBERS)
_FUNCTIONS = list(FUNCTIONS.values())
_OF_NUMBERS = {
    "add": operator.add, "subtract": operator.sub, "multiply": operator.mul, "divide": operator.truediv
}  # fmt: skip
"""As the program calls them on single numbers, of which warnings tell."""


def replay(words: np.ndarray, memory: np.ndarray, checks: Sequence[Checked]) -> None:
    """Run code on memory, with ``checks`` as of :class:`.Code`.

    Raises:
        IndexError: a position that is out of bounds.
    """
    code, whole = words.tolist(), memory.view(np.int64)
    at = 0
    while code[at] != END:
        operation, out, a, b, c = code[at : at + SHORT]
        name = _NAMES[operation % VECTOR]
        is_vector = operation >= VECTOR
        count, sa, sb, sc = code[at + SHORT : at + LONG - 1] if is_vector else (0, 0, 0, 0)
        at += LONG if is_vector else SHORT
        if name == "gather":
            memory[out : out + count] = memory[code[at : at + count]]
            at += count
            continue
        if name in ROWS:
            row, (kind, few) = int(whole[b]) * (sa if is_vector else c), ROWS[name]
            here, there = (out, a + row) if kind == "load" else (out + row, a)
            memory[here : here + (count or few)] = memory[there : there + (count or few)]
            continue
        if name == "index":
            position = int(whole[a])
            if not -b <= position < b:
                raise IndexError(f"index {position} is out of bounds for axis {c} with size {b}")
            whole[out] = position % b
            continue
        if name == "checked":
            checks[out].redo(memory)
            at = checks[out].end
            continue
        if name == "unless":
            if memory[out] == 0:
                at += a - SHORT
            continue
        if name == "again":
            if whole[out] != c:
                whole[out] += b
                at -= a + SHORT
            continue
        meaning, operands = _meaning(name, b, c)
        if not is_vector:
            meaning = _OF_NUMBERS.get(name, meaning)
        single = code[at] % VECTOR == NUMBERS["single"] and code[at + 1] == out  # rounded by what follows
        values = [_operand(memory, *o, count, single) for o in ((a, sa), (b, sb), (c, sc))[:operands]]
        if not is_vector or name in REDUCTIONS or name == "dot":
            memory[out] = meaning(*values)
        else:
            memory[out : out + count] = meaning(*values)


def _meaning(name: str, b: int, c: int):
    if name in OPERATIONS:
        return OPERATIONS[name].meaning, OPERATIONS[name].operands
    if name in CALLS:
        function = _FUNCTIONS[(b if name != "c2" else c) - FIRST_FUNCTION]
        return function.meaning, function.operands
    return (np.dot, 2) if name == "dot" else (REDUCTIONS[name], 1)


def _operand(memory: np.ndarray, start: int, stride: int, count: int, single: bool):
    if not count:
        value = memory[start]
    elif stride:
        end = start + stride * count
        value = memory[start : end if end >= 0 else None : stride]
    else:
        value = np.broadcast_to(memory[start], count)
    return value.astype(np.float32) if single else value
