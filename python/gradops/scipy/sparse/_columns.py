"""Sparse Cholesky factors computed column by column in native code.

They serve patterns whose fronts (``_factor.py``) would be too small to pay for calls of BLAS.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from ... import config
from ..._scopes import uncollected
from ...jit.agreement import report
from ...jit.native.machine import machine
from ._factor import Factor, Symbolic, ordered, reached_rows
from ._pattern import Pattern

BACKWARD = 1e-13
"""The largest backward error per row for which a factor counts as correct."""
LONG, MOST = 100, 20_000_000
"""The mean column length above which fronts are faster, and the largest number of products of a factor."""


def symbolic_of(pattern: Pattern) -> Columns | Symbolic:
    """Return the columns of a symmetric pattern's factor, or its fronts without native code or if columns are long."""
    with uncollected():
        order, in_rounds, reached = ordered(pattern)
        native = machine()
        if native is not None:
            found = _filled(pattern, order) if reached is None else _numbered(reached, order)
            if found is not None:
                return Columns(pattern, order, in_rounds, *found, native)
        return Symbolic(pattern, order, in_rounds)


def _numbered(reached: Sequence[Collection[int]], order: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the columns and rows of a factor's elements below the diagonal, from the rows that each column reaches.

    Returns None if there are too many elements, or if columns are long.
    """
    sizes = np.fromiter(map(len, reached), np.int64, len(reached))
    products = int(sizes @ sizes)
    if products > MOST or products > LONG * sizes.sum():
        return None
    rows = np.fromiter(itertools.chain.from_iterable(reached), np.int64, int(sizes.sum()))
    return np.repeat(np.arange(len(reached)), sizes), order[rows]


def _filled(pattern: Pattern, order: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Return :func:`_numbered` for a pattern and the order of its rows, by symbolic elimination."""
    found: list[list[int]] = []
    products = 0
    for reached, _, _ in reached_rows(len(order), order[pattern.rows], order[pattern.columns]):
        found.append(list(reached))
        products += len(reached) ** 2
        if products > MOST:
            return None
    return _numbered(found, np.arange(len(order)))


class Columns:
    """The columns of a symmetric pattern's factor, and the order in which they are eliminated.

    Args:
        columns, rows: the factor's elements below the diagonal, in any order.

    Attributes:
        starts: where each column of the factor starts; it begins with its diagonal.
        rows: the rows of the factor's elements.
        places: the index in the factor of each element of the pattern.
    """

    def __init__(
        self, pattern: Pattern, order: np.ndarray, in_rounds: bool, columns: np.ndarray, rows: np.ndarray, native: Any
    ):
        self.order, self.size = order, pattern.shape[0]
        self._calls, self._is_wrong = 0, False
        self._of_fronts = pattern, order, in_rounds
        diagonal = np.arange(self.size) * (self.size + 1)
        all_codes = np.sort(np.concatenate([diagonal, columns * self.size + rows]))
        columns, self.rows = np.divmod(all_codes, max(self.size, 1))
        self.starts = np.searchsorted(all_codes, np.append(diagonal, self.size**2))
        below = np.delete(np.arange(len(columns)), self.starts[:-1])
        lefts = below[np.argsort(self.rows[below], kind="stable")]
        before = np.concatenate([[0], np.cumsum(np.bincount(self.rows[below], minlength=self.size))])
        into, out_of = order[pattern.rows], order[pattern.columns]
        codes = np.minimum(into, out_of) * self.size + np.maximum(into, out_of)
        self.places = np.searchsorted(all_codes, codes)
        lower = np.flatnonzero(into >= out_of)
        lower = lower[np.argsort(out_of[lower], kind="stable")]
        given = np.searchsorted(out_of[lower], np.arange(self.size + 1))
        of_factor = self.starts, self.rows, before, lefts, self.starts[columns[lefts] + 1], given, into[lower], lower
        self._kept = [np.ascontiguousarray(x, np.int64) for x in of_factor]
        self.at = [self.size, *[x.ctypes.data for x in self._kept]]
        self.factor, self.forward, self.backward, self.inverse = (
            native.function(f"sparse_{name}", count, ctypes.c_int64)
            for name, count in (("factor", 12), ("forward", 5), ("backward", 5), ("inverse", 7))
        )

    def factored(self, values: np.ndarray) -> Factor:
        """Return the factor; by fronts if a check has found the native code wrong."""
        if not self._is_wrong:
            made, mode = ColumnFactor(self, values), config.check()
            self._calls += 1
            is_power_of_2 = self._calls.bit_count() == 1
            is_due = mode in ("always", "error") or self._calls == 1 or (mode == "sample" and is_power_of_2)
            if mode == "off" or not is_due or self._is_right(made):
                return made
            self._is_wrong = True
            report("a sparse factor in native code", stacklevel=4)
        return Factor(self.fronts, values)

    def _is_right(self, factor: ColumnFactor) -> bool:
        """Return True if the factor solves a system and its inverse matches the solution for a unit vector."""
        pattern, _, _ = self._of_fronts
        x = 1.0 + np.arange(self.size) % 7

        def product(x):
            return np.bincount(pattern.rows, factor.values * x[pattern.columns], self.size)

        size = np.bincount(pattern.rows, np.abs(factor.values), self.size).max(initial=0)
        column = self.size // 2
        unit = (np.arange(self.size) == column).astype(float)
        b = product(x)
        found, one = factor.solve(np.stack([b, unit], 1)).T
        # The backward error of a solution is small whatever the matrix's condition number.
        for solution, given in ((found, b), (one, unit)):
            scale = size * np.abs(solution).max(initial=0) + np.abs(given).max(initial=0)
            if not np.abs(product(solution) - given).max(initial=0) <= BACKWARD * self.size * scale:
                return False
        inverse = factor.inverse(np.empty((0, 0)))[pattern.columns == column]
        others = one[pattern.rows[pattern.columns == column]]
        condition = size * np.abs(one).max(initial=0)
        return bool(np.abs(inverse - others).max(initial=0) <= BACKWARD * self.size * condition * np.abs(one).max())

    @functools.cached_property
    def fronts(self) -> Symbolic:
        return Symbolic(*self._of_fronts)


class ColumnFactor(Factor):
    """A :class:`.Factor` computed by native code."""

    def __init__(self, columns: Columns, values: np.ndarray):
        self.columns, self.values = columns, values
        self._elements, work = np.empty(len(columns.rows)), np.zeros(columns.size)
        self._at = *columns.at[:3], self._elements.ctypes.data
        if not columns.factor(*columns.at, values.ctypes.data, self._at[3], work.ctypes.data):
            raise np.linalg.LinAlgError("the matrix is not positive definite")
        self.logdet = 2.0 * float(np.log(self._elements[columns.starts[:-1]]).sum())
        if not np.isfinite(self.logdet):
            raise np.linalg.LinAlgError("the matrix has elements that are not finite")

    def solve(self, b: np.ndarray) -> np.ndarray:
        x = np.empty(b.shape[::-1])
        x[:, self.columns.order] = b.T
        for row in x:
            self.columns.forward(*self._at, row.ctypes.data)
        return self._backward(x)

    def spread(self, z: np.ndarray) -> np.ndarray:
        return self._backward(z.T.copy())

    def _backward(self, x: np.ndarray) -> np.ndarray:
        for row in x:
            self.columns.backward(*self._at, row.ctypes.data)
        return x[:, self.columns.order].T

    def inverse(self, directions: np.ndarray) -> np.ndarray:
        if directions.shape[1]:
            return Factor(self.columns.fronts, self.values).inverse(directions)
        found, work = np.empty(len(self._elements)), np.zeros((2, self.columns.size))
        self.columns.inverse(*self._at, found.ctypes.data, work.ctypes.data, work[1].ctypes.data)
        return found[self.columns.places]
