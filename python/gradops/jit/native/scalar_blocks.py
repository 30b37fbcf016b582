"""The instructions of many operations on single numbers at a time: by columns, as they stand in a block."""

from __future__ import annotations

import bisect
import operator
from collections.abc import Iterable

import numpy as np

from ..scalar_blocks import Operation, among, operation
from .code import Code
from .instructions import SHORT
from .registry import instruction

_PRODUCT = operation("multiply", (None, None), np.multiply)


class Forms:
    """The instructions of some operations."""

    def __init__(self, code: Code, kinds: Iterable[Operation]):
        self._kinds = [*kinds, _PRODUCT]
        size = len(Operation.known)
        self._words = np.zeros((size, SHORT), np.intc)
        self._operands = np.zeros(size, np.intc)
        self._is_single = np.zeros(size, bool)
        for what in self._kinds:
            known = "where" if what.name == "where" else instruction(what.name)
            if what.is_plain and known:
                number, last = code.form(known)
                self._words[what.number] = [number, 0, *(0 for _ in range(what.operands)), *last]
                self._operands[what.number] = what.operands
                self._is_single[what.number] = True

    def squared(self, rows: np.ndarray, constants: dict) -> np.ndarray:
        """The rows of a block, of which powers by a constant 2 are products."""
        for what in self._kinds:
            if what.name == "power":
                is_power = rows[:, 0] == what.number
                twos = [p for p in np.unique(rows[is_power, 3]).tolist() if constants.get(p) == 2]
                if twos:
                    rows = rows.copy()
                    squares = is_power & np.isin(rows[:, 3], twos)
                    rows[squares, 0], rows[squares, 3] = _PRODUCT.number, rows[squares, 2]
        return rows

    def are_single(self, rows: np.ndarray) -> np.ndarray:
        """True for the rows that are one instruction each."""
        return self._is_single[rows[:, 0]]

    def words(self, rows: np.ndarray, results: np.ndarray, operands: np.ndarray) -> np.ndarray:
        """The instructions, for the cells of their results and operands."""
        found = self._words[rows[:, 0]]
        found[:, 1] = results
        taken = np.arange(operands.shape[1]) < self._operands[rows[:, 0], None]
        found[:, 2:][taken] = operands[taken]
        return found


class MadeIn:
    """The cells of a block's results.

    Args:
        places: of the results, in rising order.
    """

    def __init__(self, places: np.ndarray):
        self.places = places
        self.first = int(places[0])
        self.cells = np.zeros(len(places), np.intc)


class Made:
    """The cells of the results of several blocks, the later ones of which have higher places."""

    def __init__(self) -> None:
        self._blocks: list[MadeIn] = []

    def __bool__(self) -> bool:
        return bool(self._blocks)

    def append(self, block: MadeIn) -> None:
        self._blocks.append(block)

    def cells(self, places: np.ndarray) -> np.ndarray:
        """The cells of places, -1 of those that no block has."""
        found = np.full(len(places), -1, np.intc)
        firsts = np.array([block.first for block in self._blocks], np.intc)
        which = np.searchsorted(firsts, places, side="right") - 1
        for i in np.unique(which[which >= 0]).tolist():
            of_block = np.flatnonzero(which == i)
            at, is_here = among(places[of_block], self._blocks[i].places)
            found[of_block[is_here]] = self._blocks[i].cells[at[is_here]]
        return found

    def cell(self, place: int) -> int | None:
        """The cell of a place, if a block has it."""
        i = bisect.bisect_right(self._blocks, place, key=_first) - 1
        if i < 0:
            return None
        block = self._blocks[i]
        at = int(np.searchsorted(block.places, np.intc(place)))
        return int(block.cells[at]) if at < len(block.places) and block.places[at] == place else None


_first = operator.attrgetter("first")
