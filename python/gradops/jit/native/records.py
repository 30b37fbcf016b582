"""What many operations on single numbers ask for one by one: in native code, and in Python where there is none."""

from __future__ import annotations

import ctypes
from array import array

import numpy as np

from ..operations import COPY, NumberOperation
from ..program import Program
from ..table import FEW, WIDTH, Values
from . import machine, record_source
from .instructions import FUNCTIONS
from .registry import OF_KERNELS, instruction


def record(program: Program, rows: np.ndarray, places: array, active: array) -> None:
    """Write operations down to a program.

    Args:
        rows: of each its number and three operands, which are numbers that are there before or results of earlier
            rows; a result's number is the next one.
        places: of the numbers, to which those of the results are added. A copy has the place of what is copied.
        active: for each number 1 if it has a gradient, to which is added the same of the results.
    """
    found, table = machine.machine(), program.table
    # A few are as quick in Python; but once there is a table, it alone knows all operations.
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
    except BaseException:  # an operation without a value
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
"""Where the machine counts operations and places."""


def _kinds(of: machine.Machine) -> array:
    """By operation, its operands, 4 times the way to its value, and 64 times the number of a function."""
    for what in NumberOperation.known[len(_known) :]:
        name = None if what.kernel in OF_KERNELS or not what.is_plain else instruction(what.name)
        way = number = record_source.PYTHON
        if what is COPY:
            way = record_source.COPY
        elif what.name == "where" and what.is_plain:
            way = record_source.SELECT
        elif name in _WAYS:
            way = _WAYS[name]
        elif name in FUNCTIONS and what.operands == 1 and not FUNCTIONS[name].of_scipy:
            way, number = record_source.CALL, of.needs(name)
        _known.append(what.operands + 4 * way + 64 * number)
    return _known


_known = array("i")

_WAYS = {
    "add": record_source.ADD,
    "subtract": record_source.SUBTRACT,
    "multiply": record_source.MULTIPLY,
    "divide": record_source.DIVIDE,
    "negative": record_source.NEGATIVE,
}


def mark_operands(rows: np.ndarray, through: np.ndarray, marks: np.ndarray) -> None:
    """Mark what marked results are made of, from the last operation to the first.

    Args:
        rows: :data:`.WIDTH` words of each operation.
        through: for each the bits of the operands that are marked.
        marks: by place, or by number; changed.
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
    """Mark what is made of marked operands, from the first operation to the last; arguments as above."""
    found = machine.machine()
    if found is not None:
        rows = np.ascontiguousarray(rows, np.intc)
        found.function("mark_results", 4, None)(len(rows), rows.ctypes.data, through.ctypes.data, marks.ctypes.data)
        return
    for (_, result, x, y, z), bits in zip(rows.tolist(), through.tolist()):
        marks[result] |= bits & marks[x] | bits >> 1 & marks[y] | bits >> 2 & marks[z]
