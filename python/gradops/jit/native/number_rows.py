"""Translate rows of a program, operations on single numbers, to instructions in bulk.

:class:`.lowering.Lowering` uses :class:`Forms` to look up the instruction of each operation, and :class:`Made` to
record the cells of the results by slot. A long program has thousands of such rows, so both work on whole tables with
NumPy.
"""

from __future__ import annotations

from array import array

import numpy as np

from ..operations import NumberOperation, determinant_quotient, plain_operation
from .code import Code
from .instructions import SHORT
from .registry import OF_KERNELS, instruction

_PRODUCT = plain_operation("multiply", 2, np.multiply)
_NONE = array("i", [-1])


class Forms:
    """A lookup table from operations on single numbers to instructions, filled on demand."""

    def __init__(self, code: Code):
        self._code = code
        self._known: dict[int, tuple[int, list[int]] | None] = {}

    def lookup(self, number: int) -> tuple[int, list[int]] | None:
        """Return an operation's opcode and the words after its operands; None if it takes several instructions."""
        if number not in self._known:
            what = NumberOperation.known[number]
            name = "where" if what.name == "where" else instruction(what.name)
            is_one = what.is_plain and (what.kernel not in OF_KERNELS or what.kernel is determinant_quotient)
            self._known[number] = self._code.form(name) if name and is_one else None
        return self._known[number]

    def lookup_plain(self, number: int) -> tuple[int, list[int]] | None:
        """Return an operation's instruction, like :meth:`lookup`; None for powers and for kernels with their own rule.

        Their lowering rules decide by the operands, for example to write ``x**2`` as a product.
        """
        what = NumberOperation.known[number]
        return None if what.name == "power" or what.kernel in OF_KERNELS else self.lookup(number)

    def rewrite_squares(self, rows: np.ndarray, constants: dict) -> np.ndarray:
        """Return a block's rows with ``x**2`` rewritten as ``x*x``, and prepare the other methods for these rows."""
        kinds = np.unique(rows[:, 0]).tolist()
        for number in kinds:
            if NumberOperation.known[number].name == "power":
                is_power = rows[:, 0] == number
                twos = [p for p in np.unique(rows[is_power, 3]).tolist() if constants.get(p) == 2]
                if twos:
                    rows = rows.copy()
                    squares = is_power & np.isin(rows[:, 3], twos)
                    rows[squares, 0], rows[squares, 3] = _PRODUCT.number, rows[squares, 2]
        size = len(NumberOperation.known)
        self._words = np.zeros((size, SHORT), np.intc)
        self._operands = np.zeros(size, np.intc)
        self._is_single, self._is_checked = np.zeros((2, size), bool)
        for number in (*kinds, _PRODUCT.number):
            what, form = NumberOperation.known[number], self.lookup(number)
            if form:
                self._words[number] = [form[0], 0, *(0 for _ in range(what.operands)), *form[1]]
            self._operands[number] = what.operands
            self._is_single[number], self._is_checked[number] = form is not None, what.kernel is determinant_quotient
        return rows

    def are_single(self, rows: np.ndarray) -> np.ndarray:
        """Return a mask of the rows that are one instruction each."""
        return self._is_single[rows[:, 0]]

    def are_checked(self, rows: np.ndarray) -> np.ndarray:
        """Return a mask of the rows that divide by a determinant, which must not be 0."""
        return self._is_checked[rows[:, 0]]

    def words(self, rows: np.ndarray, results: np.ndarray, operands: np.ndarray) -> np.ndarray:
        """Return the rows' instructions, given the cells of their results and operands."""
        found = self._words[rows[:, 0]]
        found[:, 1] = results
        taken = np.arange(operands.shape[1]) < self._operands[rows[:, 0], None]
        found[:, 2:][taken] = operands[taken]
        return found


class Made:
    """A growing table from slots to the cells of operations' results; -1 if a slot has none."""

    def __init__(self) -> None:
        self._first = 0
        self._cells = array("i")

    def cover(self, first: int, last: int) -> None:
        """Extend the table to the slots from ``first`` to ``last``."""
        if not self._cells:
            self._first = first
        if first < self._first:
            self._cells[:0] = _NONE * (self._first - first)
            self._first = first
        self._cells.extend(_NONE * (last + 1 - self._first - len(self._cells)))

    def __getitem__(self, place: int) -> int:
        at = place - self._first
        return self._cells[at] if 0 <= at < len(self._cells) else -1

    def __setitem__(self, place: int, cell: int) -> None:
        self._cells[place - self._first] = cell

    def take(self, places: np.ndarray, cells) -> None:
        """Set the cells of many slots."""
        # An `array` cannot grow while a NumPy view of it exists, so the view lives only for this statement; otherwise
        # the next `cover()` would raise BufferError.
        np.frombuffer(self._cells, np.intc)[places - self._first] = cells

    def cells(self, places: np.ndarray) -> np.ndarray:
        """Return the cells of many slots."""
        at = places - self._first
        outside = (at < 0) | (at >= len(self._cells))
        at[outside] = 0
        found = np.frombuffer(self._cells, np.intc)[at]
        found[outside] = -1
        return found
