"""Patterns of sparse matrices, and their elements from products with sums of unit vectors, one for each colour."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable

import numpy as np

from ... import _scipy
from ...jit import sparsity
from .colors import column_colors, positions, star


class Plan:
    """The unit vectors that share a product, and the positions in the products at which the elements are read.

    Args:
        colors: the colour of each unit vector.
        places: for each element of the pattern, its row in the products and its column there.
    """

    def __init__(self, pattern, colors: np.ndarray, places: tuple):
        self.pattern, self.colors, self.places = pattern, colors, places
        self.count = int(colors.max(initial=-1)) + 1

    def matrix(self, run: Callable, xs: list, vs: list):
        """Return the matrix from one product ``run([*xs, *vectors])`` per colour; ``vs`` have the vectors' shapes."""
        products = compressed(run, xs, vs, self.colors)
        pattern = self.pattern
        return csc((products[self.places], pattern.indices.copy(), pattern.indptr.copy()), pattern.shape)


class Found:
    """The result of tracing a product.

    Attributes:
        pattern: a CSC matrix of True where the matrix may be nonzero.
        outputs: arrays of the shapes and dtypes of the function's values.
        several: True if the function returns several values; ``structure``: their structure, unless it is a tuple.
        natural: True if all derivatives on the way are gradops' own.
    """

    def __init__(self, pattern, outputs: list, several: bool, structure, natural: bool):
        self.pattern, self.outputs, self.natural = pattern, outputs, natural
        self.several, self.structure = several, structure

    @functools.cached_property
    def column_plan(self) -> Plan:
        """The plan by columns: columns of one colour have no nonzero in the same row."""
        rows, columns = positions(self.pattern)
        colors = column_colors(self.pattern)
        return Plan(self.pattern, colors, (rows, colors[columns]))

    @functools.cached_property
    def row_plan(self) -> Plan:
        """The plan by rows, from products with the transpose: rows of one colour have no nonzero in the same column."""
        rows, columns = positions(self.pattern)
        colors = column_colors(self.pattern.T.tocsc())
        return Plan(self.pattern, colors, (columns, colors[rows]))

    @functools.cached_property
    def star_plan(self) -> Plan:
        """The plan for a symmetric matrix: an element or its mirror image is read where alone in row and colour."""
        pattern = (self.pattern + self.pattern.T).tocsc()
        pattern.sort_indices()
        rows, columns = positions(pattern)
        colors = star(pattern)
        low, high = np.minimum(rows, columns), np.maximum(rows, columns)
        if not colors.any():  # a diagonal, or nothing: every element is alone
            return Plan(pattern, colors, (rows, colors[columns]))
        count = len(colors)
        often = np.unique(rows * count + colors[columns], return_inverse=True, return_counts=True)
        alone = often[2][often[1]] == 1
        read_low = alone[np.searchsorted(columns * count + rows, high * count + low)]
        places = np.where(read_low, low, high), colors[np.where(read_low, high, low)]
        return Plan(pattern, colors, places)


def csc(parts, shape):
    """Return a SciPy CSC matrix."""
    return _scipy.sparse.csc_matrix(parts, shape)


def pattern(program, outputs: list, sources: list[int]):
    """Return a CSC matrix of True where an element of the concatenated ``outputs`` depends on one of ``sources``."""
    found = sparsity.dependence(program, outputs, sources)
    rows = [s for sets in found for s in sets.reshape(-1).tolist()]
    lengths = np.fromiter(map(len, rows), int, len(rows))
    columns = np.fromiter(itertools.chain.from_iterable(rows), int, lengths.sum())
    shape = len(rows), sum(math.prod(np.shape(program.value(p))) for p in sources)
    order = np.argsort(columns, kind="stable")
    starts = np.cumsum(np.bincount(columns + 1, minlength=shape[1] + 1))
    return csc((np.ones(len(columns), bool), np.repeat(np.arange(len(rows)), lengths)[order], starts), shape)


def compressed(run: Callable, xs: list, vs: list, colors: np.ndarray) -> np.ndarray:
    """Return the products with the sum of the unit vectors of each colour, as columns."""
    found = []
    cuts = np.cumsum([v.size for v in vs])[:-1]
    for color in range(int(colors.max(initial=-1)) + 1):
        parts = np.split(colors == color, cuts)
        seeds = [part.reshape(v.shape).astype(v.dtype) for part, v in zip(parts, vs)]
        found.append(np.concatenate([np.ravel(part) for part in run([*xs, *seeds])]))
    return np.stack(found, axis=1) if found else np.zeros((0, 0))


def seeds(colors: np.ndarray, shapes: list[tuple]) -> list[np.ndarray]:
    """Return the sum of the unit vectors of each colour, stacked and split into parts of these shapes."""
    one_hot = (colors == np.arange(int(colors.max(initial=-1)) + 1)[:, None]).astype(float)
    parts = np.split(one_hot, np.cumsum([math.prod(shape) for shape in shapes])[:-1], 1)
    return [part.reshape(len(part), *shape) for part, shape in zip(parts, shapes)]


def blocks(matrix, outputs: list, inputs: list) -> list[list]:
    """Return the matrix split into blocks by output and input."""
    rows = np.cumsum([0, *(y.size for y in outputs)])
    columns = np.cumsum([0, *(x.size for x in inputs)])
    if len(rows) == len(columns) == 2:
        return [[matrix]]
    return [
        [matrix[rows[i] : rows[i + 1], columns[j] : columns[j + 1]] for j in range(len(inputs))]
        for i in range(len(outputs))
    ]
