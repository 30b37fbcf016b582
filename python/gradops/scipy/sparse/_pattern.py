"""Sparsity patterns: the constant positions of a sparse matrix's elements.

Patterns are interned, so equal patterns are one object, which caches its factorization.
"""

from __future__ import annotations

import functools
import hashlib
import weakref
from typing import Any

import numpy as np

from ... import _scipy
from ...backends import tracing

_interned: weakref.WeakValueDictionary[tuple, Pattern] = weakref.WeakValueDictionary()
_numbered: dict[int, Pattern] = {}


class Pattern:
    """The rows and columns of the elements in column-major order; equal patterns are one object.

    Attributes:
        shape: the shape of the matrix.
        rows, columns: the row and column of each element.
        starts: where each column starts, and the end.
    """

    def __init__(self, shape: tuple[int, int], codes: np.ndarray):
        self.shape, self.codes = shape, codes
        self.columns, self.rows = np.divmod(codes, max(shape[0], 1))
        self.starts = np.searchsorted(self.columns, np.arange(shape[1] + 1))
        self.count = len(codes)
        self.last: Any = None  # the latest factor and its values

    def __int__(self) -> int:
        """Return a number for graphs, which cannot hold objects; the pattern is then kept alive forever."""
        _numbered[id(self)] = self
        return id(self)

    @functools.cached_property
    def row_order(self) -> np.ndarray:
        """The indices of the elements in row-major order."""
        return np.lexsort((self.columns, self.rows))

    @functools.cached_property
    def row_starts(self) -> np.ndarray:
        return np.concatenate([[0], np.cumsum(np.bincount(self.rows, minlength=self.shape[0]))])

    @functools.cached_property
    def transposed(self) -> Pattern:
        """The pattern of the transposed matrix; its elements are this pattern's in the order :attr:`by_rows`."""
        found = interned(self.shape[::-1], self.rows * max(self.shape[1], 1) + self.columns)
        if found is not self:
            found.__dict__["transposed"] = self
        return found

    @functools.cached_property
    def symmetric(self) -> bool:
        return self.transposed is self

    @functools.cached_property
    def diagonal(self) -> np.ndarray:
        """The indices of the diagonal's elements, :attr:`count` where there is no element."""
        return self.places(np.arange(self.shape[0]), np.arange(self.shape[0]))

    def places(self, rows, columns) -> np.ndarray:
        """Return the indices of the elements at rows and columns, :attr:`count` where there is no element."""
        codes = np.asarray(columns, np.int64) * max(self.shape[0], 1) + np.asarray(rows, np.int64)
        return self.places_of(codes)

    def places_of(self, codes: np.ndarray) -> np.ndarray:
        found = np.searchsorted(self.codes, codes)
        there = self.codes[np.minimum(found, self.count - 1)] == codes if self.count else np.zeros(codes.shape, bool)
        return np.where(there, found, self.count)

    def scipys(self, values, kind: str = "csc_array"):
        """Return SciPy's matrix with these values."""

        return getattr(_scipy.sparse, kind)((values, self.rows, self.starts), self.shape)


def numbered(pattern) -> Pattern:
    """Return the pattern with a number, or a pattern itself."""
    return pattern if isinstance(pattern, Pattern) else _numbered[int(pattern)]


def interned(shape: tuple[int, int], codes: np.ndarray) -> Pattern:
    """Return the pattern of unique codes ``column * rows + row`` in any order."""
    codes = np.sort(codes.astype(np.int64, copy=False))
    key = (shape, hashlib.blake2b(codes.tobytes()).digest())
    found = _interned.get(key)
    if found is None:
        found = _interned[key] = Pattern(shape, codes)
    return found


def coordinate_pattern(shape, rows, columns) -> tuple[Pattern, np.ndarray]:
    """Return the pattern of elements at rows and columns, in any order and possibly repeated; and each one's index."""
    shape = (int(shape[0]), int(shape[1]))
    return tracing.outside(_coordinate_pattern, shape, rows, columns)


def _coordinate_pattern(shape, rows, columns):
    return _cached_pattern(shape, np.asarray(rows, np.int64).tobytes(), np.asarray(columns, np.int64).tobytes())


@functools.lru_cache(32)
def _cached_pattern(shape: tuple[int, int], rows: bytes, columns: bytes) -> tuple[Pattern, np.ndarray]:
    first, second = [np.array(memoryview(x).cast("q"), np.int64) for x in (rows, columns)]  # owned: see `frombuffer`
    codes = second * max(shape[0], 1) + first
    unique, places = np.unique(codes, return_inverse=True)
    return interned(shape, unique), places.reshape(-1)


def union(first: Pattern, second: Pattern) -> tuple[Pattern, np.ndarray]:
    """Return the pattern of a sum, and the indices in it of the elements of the first and then of the second."""
    return tracing.outside(_union, first, second)


@functools.lru_cache(64)
def _union(first: Pattern, second: Pattern) -> tuple[Pattern, np.ndarray]:
    codes, places = np.unique(np.concatenate([first.codes, second.codes]), return_inverse=True)
    return interned(first.shape, codes), places.reshape(-1)


def product(first: Pattern, second: Pattern) -> tuple[Pattern, np.ndarray, np.ndarray, np.ndarray]:
    """Return the pattern of a product, and for each product of elements the indices of both and of the result."""
    return tracing.outside(_product, first, second)


@functools.lru_cache(64)
def _product(first: Pattern, second: Pattern) -> tuple[Pattern, np.ndarray, np.ndarray, np.ndarray]:
    counts = np.diff(first.starts)[second.rows]
    right = np.repeat(np.arange(second.count), counts)
    left = np.arange(len(right)) + np.repeat(first.starts[second.rows] - np.cumsum(counts) + counts, counts)
    shape = (first.shape[0], second.shape[1])
    codes, places = np.unique(second.columns[right] * max(shape[0], 1) + first.rows[left], return_inverse=True)
    return interned(shape, codes), left, right, places.reshape(-1)
