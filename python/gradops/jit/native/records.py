"""Record operations on single numbers in bulk, and propagate marks through a program's rows.

Passes over long programs of single numbers call these functions. They run natively (``runtime/record.c``), or in
Python without a machine.
"""

from __future__ import annotations

import ctypes
from array import array

import numpy as np

from ..operations import COPY, NumberOperation
from ..program import Program
from ..table import FEW, WIDTH, Values
from . import machine
from .instructions import FUNCTIONS
from .registry import OF_KERNELS, instruction

_PYTHON, _ADD, _SUBTRACT, _MULTIPLY, _DIVIDE, _NEGATIVE, _SELECT, _COPY, _CALL = range(9)
"""How the value of an operation is computed, as in ``runtime/record.c``."""


def record(program: Program, rows: np.ndarray, places: array, active: array) -> None:
    """Record operations in a program, and compute their values.

    An operation that the program already has is not recorded twice, and a copy is not recorded: the result shares a
    slot.

    Args:
        program: receives the operations.
        rows: for each operation its opcode and three operands. Operands are numbers that count the values: first the
            existing ones in ``places``, then the results of these rows.
        places: the slot of each number; the slots of the results are appended.
        active: for each number 1 if it has a gradient; the flags of the results are appended.
    """
    found, table = machine.machine(), program.table
    # A few rows are as fast in Python. But once there is a hash table, every operation must be entered in it.
    if found is None or len(rows) < FEW and not len(table.hashes):
        for number, *operands in rows.tolist():
            what = NumberOperation.known[number]
            operands = operands[: what.operands]
            given = [places[i] for i in operands]
            active.append(max(active[i] for i in operands))
            places.append(given[0] if what is COPY else program.operate(what, *given))
        return
    base, count = len(places), len(rows)
    rows = np.ascontiguousarray(rows, np.intc)
    places.frombytes(bytes(places.itemsize * count))
    active.frombytes(bytes(count))
    values = program.values
    words, numbers, used, made = table.words, values.numbers, len(table.words) // WIDTH, len(values)
    words.frombytes(bytes(WIDTH * words.itemsize * count))
    numbers.frombytes(bytes(numbers.itemsize * count))
    if 2 * (used + count) > len(table.hashes):
        table.hashes = np.full(1 << (4 * (used + count)).bit_length(), -1, np.intc)
        hashes = table.hashes.ctypes.data
        found.function("record_again", 5, None)(1, used, words.buffer_info()[0], hashes, len(table.hashes) - 1)
    kinds, ones, before = _kinds(found), array("i", program.ones), used
    # fmt: off
    at = array("q", [
        rows.ctypes.data, 0, count, places.buffer_info()[0], base, active.buffer_info()[0],
        table.hashes.ctypes.data, len(table.hashes) - 1, words.buffer_info()[0], used,
        numbers.buffer_info()[0], made, kinds.buffer_info()[0], ones.buffer_info()[0], len(ones), found.functions,
    ])
    # fmt: on
    address, resume = at.buffer_info()[0], found.function("record", 1, ctypes.c_int64)
    try:
        while not resume(address):
            number, place, *operands = words[WIDTH * (at[_USED] - 1) : WIDTH * at[_USED]]
            what = NumberOperation.known[number]
            values.put(place, what.compute(*[numbers[p] for p in operands[: what.operands]]))
    except BaseException:  # drop the operation whose value Python failed to compute
        at[_USED] -= 1
        at[_MADE] -= 1
        del places[base:], active[base:]
        raise
    finally:
        del words[WIDTH * at[_USED] :], numbers[at[_MADE] :]
    _note_truths(values, np.array(words[WIDTH * before :], np.intc).reshape(-1, WIDTH))


def _note_truths(values: Values, words: np.ndarray) -> None:
    """Make the results of choices between truth values such values."""
    is_choice = np.array([what.name == "where" for what in NumberOperation.known])[words[:, 0]]
    for _, place, _, x, y in words[is_choice].tolist():
        if not values.is_number(x) and not values.is_number(y):
            values.others[place] = np.bool_(values.numbers[place])


_USED, _MADE = 9, 11
"""The entries of the state in which ``record`` counts operations and slots."""


def _kinds(of: machine.Machine) -> array:
    """Return a word for each opcode: the number of operands, 4 times a way to compute, and 64 times a function."""
    for what in NumberOperation.known[len(_known) :]:
        name = None if what.kernel in OF_KERNELS or not what.is_plain else instruction(what.name)
        way = number = _PYTHON
        if what is COPY:
            way = _COPY
        elif what.name == "where" and what.is_plain:
            way = _SELECT
        elif name in _WAYS:
            way = _WAYS[name]
        elif name in FUNCTIONS and what.operands == 1 and not FUNCTIONS[name].of_scipy:
            way, number = _CALL, of.needs(name)
        _known.append(what.operands + 4 * way + 64 * number)
    return _known


_known = array("i")

_WAYS = {
    "add": _ADD,
    "subtract": _SUBTRACT,
    "multiply": _MULTIPLY,
    "divide": _DIVIDE,
    "negative": _NEGATIVE,
}


def mark_operands(rows: np.ndarray, through: np.ndarray, marks: np.ndarray) -> None:
    """Propagate marks from results to operands, from the last operation to the first.

    Args:
        rows: :data:`.WIDTH` words for each operation.
        through: for each operation a bit mask of the operands that receive the mark.
        marks: 1 for each marked slot or number; updated in place.
    """
    found = machine.machine()
    if found is not None:
        rows = np.ascontiguousarray(rows, np.intc)
        found.function("mark_operands", 4, None)(len(rows), rows.ctypes.data, through.ctypes.data, marks.ctypes.data)
        return
    for (_, result, x, y, z), bits in zip(rows[::-1].tolist(), through[::-1].tolist()):
        if marks[result]:
            marks[x] |= bits & 1
            marks[y] |= bits >> 1 & 1
            marks[z] |= bits >> 2 & 1


def mark_results(rows: np.ndarray, through: np.ndarray, marks: np.ndarray) -> None:
    """Propagate marks from operands to results, from the first operation to the last.

    Takes the same arguments as :func:`mark_operands`, but ``through`` selects the operands whose mark counts.
    """
    found = machine.machine()
    if found is not None:
        rows = np.ascontiguousarray(rows, np.intc)
        found.function("mark_results", 4, None)(len(rows), rows.ctypes.data, through.ctypes.data, marks.ctypes.data)
        return
    for (_, result, x, y, z), bits in zip(rows.tolist(), through.tolist()):
        marks[result] |= bits & marks[x] | bits >> 1 & marks[y] | bits >> 2 & marks[z]
