"""Many instructions on single numbers made fewer, by columns: what a program costs is their number.

What :mod:`.tightening` does for the body of a loop, for long straight code, in which no cell is written twice.
"""

from __future__ import annotations

import numpy as np

from .instructions import CALLS, NUMBERS, OF_TWO, OPERATIONS, SHORT

_ADD, _SUBTRACT, _NEGATIVE = NUMBERS["add"], NUMBERS["subtract"], NUMBERS["negative"]


def _by_number(names) -> np.ndarray:
    """Of each number of an operation whether it is one of these."""
    found = np.zeros(max(NUMBERS.values()) + 1, bool)
    found[[NUMBERS[name] for name in names]] = True
    return found


_IS_SUM, _IS_PRODUCT = _by_number(("add", "subtract")), _by_number(("multiply", "divide"))
_IS_OF_TWO = _IS_SUM | _IS_PRODUCT
_READS = np.zeros(len(_IS_SUM), np.intc)
for _name in (*OPERATIONS, *CALLS):
    _READS[NUMBERS[_name]] = OPERATIONS[_name].operands if _name in OPERATIONS else int(_name[-1])
_FUSED = np.zeros((len(_IS_SUM), len(_IS_SUM), 2), np.intc)
for _first in OF_TWO:
    for _second in OF_TWO:
        _left = NUMBERS[f"{_first}_{_second}_left"]
        _right = NUMBERS.get(f"{_first}_{_second}_right", _left)  # of sums and products either order is the same
        _FUSED[NUMBERS[_first], NUMBERS[_second]] = _right, _left

_OPERANDS = SHORT - 2

_ROUNDS = 4
"""How often pairs are looked for: of a chain of operations each time those at its head are found."""


class Shortened:
    """Instructions made fewer.

    Args:
        words: a row of each, whose results are the cells from ``first`` on, one after the other.
        is_read_once: of each result whether the program reads it once, be it as a square.

    Attributes:
        words: those that are left, whose results lie side by side again.
        cells: of each result where it is now; that of one that is no more says nothing.
    """

    def __init__(self, words: np.ndarray, first: int, is_read_once: np.ndarray):
        self._first, self._count = first, len(words)
        self._columns = np.ascontiguousarray(words.T)
        self._gone = np.zeros(len(words), bool)
        self._reader = self._readers(is_read_once)
        for _ in range(2):  # of a sum of two changed signs each round takes one
            self._change_signs()
        for _ in range(_ROUNDS):
            self._fuse()
        left = ~self._gone
        self.cells = first - 1 + np.cumsum(left, dtype=np.intc)
        columns = self._columns[:, left]
        columns[1] = self.cells[left]
        for number in range(_OPERANDS):
            of_results, at = self._results_read(columns, number)
            columns[2 + number, of_results] = self.cells[at]
        self.words = columns.T

    def _results_read(self, columns: np.ndarray, number: int) -> tuple[np.ndarray, np.ndarray]:
        """The instructions whose operand of some number is a result of these here, and which it is."""
        at = columns[2 + number] - self._first
        found = np.flatnonzero((at >= 0) & (at < self._count) & (_READS[columns[0]] > number))
        return found, at[found]

    def _readers(self, is_read_once: np.ndarray) -> np.ndarray:
        """Who reads each result, of those that are read once, and here; -1 of the others."""
        found = np.full(self._count, -1, np.intc)
        for number in range(_OPERANDS):
            readers, at = self._results_read(self._columns, number)
            found[at] = readers
        found[~is_read_once] = -1
        name, _, x, y, _ = self._columns
        squared = x[(_READS[name] > 1) & (x == y)] - self._first  # as powers of 2 these were read once
        found[squared[squared >= 0]] = -1
        return found

    def _change_signs(self) -> None:
        """Where a sign is changed before a sum, or before a product that a sum takes, take the difference."""
        (name, out, x, y, _), reader = self._columns, self._reader
        i = np.flatnonzero((name == _NEGATIVE) & (reader >= 0))
        changed = reader[i]
        by_product = _IS_PRODUCT[name[changed]] & (reader[changed] >= 0)
        total = np.where(by_product, reader[changed], changed)
        cells = np.where(by_product, out[changed], out[i])
        fits = (name[total] == _ADD) | (name[total] == _SUBTRACT) & (y[total] == cells)
        at = np.flatnonzero(fits)
        at = at[np.unique(total[at], return_index=True)[1]]
        i, changed, total, cells, by_product = i[at], changed[at], total[at], cells[at], by_product[at]
        for operand in (x, y):
            here = by_product & (operand[changed] == out[i])
            operand[changed[here]] = x[i[here]]
        x[total] = np.where(x[total] == cells, y[total], x[total])
        y[total] = np.where(by_product, cells, x[i])
        name[total] = np.where(name[total] == _ADD, _SUBTRACT, _ADD)
        self._leave_out(i, changed)

    def _fuse(self) -> None:
        """Let operations be one instruction with what reads their results."""
        name, out, x, y, z = self._columns
        i = np.flatnonzero(_IS_OF_TWO[name] & (self._reader >= 0))
        second = self._reader[i]
        fits = _IS_OF_TWO[name[second]]
        i, second = i[fits], second[fits]
        heads = _IS_PRODUCT[name[i]] & _IS_SUM[name[second]]
        if not heads.any():
            of_pairs = np.zeros(self._count, bool)
            of_pairs[second] = True
            heads = ~of_pairs[i]
        i, second = i[heads], second[heads]
        _, at = np.unique(second, return_index=True)
        i, second = i[at], second[at]
        is_left = x[second] == out[i]
        z[second] = np.where(is_left, y[second], x[second])
        name[second] = _FUSED[name[i], name[second], is_left.astype(np.intc)]
        x[second], y[second] = x[i], y[i]
        self._leave_out(i, second)

    def _leave_out(self, i: np.ndarray, instead: np.ndarray) -> None:
        """Leave out instructions, whose operands others read instead."""
        columns = self._columns[:, i]
        for number in range(2):
            mine, at = self._results_read(columns, number)
            mine, at = mine[self._reader[at] == i[mine]], at[self._reader[at] == i[mine]]
            self._reader[at] = instead[mine]
        self._reader[i] = -1
        self._gone[i] = True
