"""The Cholesky factor of sparse symmetric positive definite matrices of one pattern.

A multifrontal method (Duff & Reid 1983; Liu 1992). Once for a pattern: SuperLU's minimum degree ordering, the
elimination tree, and fronts: columns that are eliminated together, in one dense matrix of theirs and the rows that they
reach; a front takes in a child where the zeros that come with it cost less than another call (Ashcraft & Grimes 1989).
For numbers, each front is LAPACK's and BLAS'. The inverse on the pattern goes the same way from the root to the leaves
(Takahashi, Fagan & Chen 1973; Erisman & Tinney 1975), of its directional derivatives, too.
"""

from __future__ import annotations

import functools
import operator
from typing import Any

import numpy as np

from ... import _scipy
from ._pattern import Pattern


class Front:
    """Columns that are eliminated together.

    Attributes:
        columns: their places, in the order of elimination; at last a slice of the matrix in that order.
        rows: those that they reach, below them.
        children: fronts whose rows lie in this one, each with their places in it.
        elements, places: of the matrix' elements in these columns, and where they go in the front, row by row.
    """

    __slots__ = ("children", "columns", "elements", "places", "rows")

    elements: np.ndarray
    places: np.ndarray

    def __init__(self, rows: set):
        self.columns: Any = []
        self.rows: Any = rows
        self.children: list = []

    @property
    def sizes(self) -> tuple[int, int]:
        return len(self.columns), len(self.rows)


def _cost(columns: int, rows: int) -> float:
    """Nanoseconds that a front takes: calls, arithmetic, the move to its parent."""
    products = columns * (columns * columns + 2 * columns * rows + 2 * rows * rows)
    return 20_000 + 0.1 * products + 2 * (columns + rows) ** 2


class Symbolic:
    """The fronts of a symmetric pattern, and the order in which rows are eliminated."""

    def __init__(self, pattern: Pattern):
        self.size, self.count = pattern.shape[0], pattern.count
        self.diagonal = pattern.places(np.arange(self.size), np.arange(self.size))
        first = _ordering(pattern, self.diagonal)
        self.fronts = _fronts(self.size, first[pattern.rows], first[pattern.columns])
        self.order = self._numbered(first)
        rows, columns = self.order[pattern.rows], self.order[pattern.columns]
        self.twins = np.where(rows >= columns, np.arange(pattern.count), pattern.by_rows)  # in the lower triangle
        self._place(rows, columns)

    def _numbered(self, first: np.ndarray) -> np.ndarray:
        """Each row's place, with the columns of a front side by side."""
        columns = [c for front in self.fronts for c in front.columns]
        place = np.empty(self.size, np.int64)
        place[columns] = np.arange(self.size)
        start = 0
        for front in self.fronts:
            count = len(front.columns)
            front.columns = np.arange(start, start + count)
            front.rows = np.sort(place[np.fromiter(front.rows, np.int64, len(front.rows))])
            start += count
        return place[first]

    def _place(self, rows: np.ndarray, columns: np.ndarray) -> None:
        lower = np.flatnonzero(rows >= columns)
        lower = lower[np.argsort(columns[lower], kind="stable")]
        rows, columns = rows[lower], columns[lower]
        cuts = np.searchsorted(columns, [*[front.columns[0] for front in self.fronts], self.size]).tolist()
        for front, start, end in zip(self.fronts, cuts, cuts[1:]):
            whole = np.concatenate([front.columns, front.rows])
            front.elements = lower[start:end]
            front.places = np.searchsorted(whole, rows[start:end]) * len(whole) + columns[start:end] - whole[0]
            front.children = [
                (child, np.searchsorted(whole, child.rows)[:, None]) for child in front.children if len(child.rows)
            ]


def _ordering(pattern: Pattern, diagonal: np.ndarray) -> np.ndarray:
    """SuperLU's minimum degree ordering, of an incomplete factor, which costs little."""
    values = np.full(pattern.count, -1.0)
    values[diagonal] = np.diff(pattern.starts) + 1.0
    incomplete = _scipy.sparse.linalg.spilu(
        pattern.scipys(values), 1.0, 1.0, None, "MMD_AT_PLUS_A", 0.0, options={"SymmetricMode": True}
    )
    return incomplete.perm_c.astype(np.int64)


def _fronts(size: int, rows: np.ndarray, columns: np.ndarray) -> list[Front]:
    lower = rows > columns
    rows, columns = rows[lower], columns[lower]
    below = rows[np.argsort(columns, kind="stable")].tolist()
    starts = np.concatenate([[0], np.cumsum(np.bincount(columns, minlength=size))]).tolist()
    waiting: list[list[Front]] = [
        [] for _ in range(size + 1)
    ]  # by the first row that they reach, their parent's column
    fronts: list[Front | None] = [None] * size
    for column in range(size):
        reached = set(below[starts[column] : starts[column + 1]])
        reached.update(*[child.rows for child in waiting[column]])
        reached.discard(column)
        front = Front(reached)
        count, rest = 1, len(reached)
        for child in waiting[column]:
            of_child = len(child.columns)
            if _cost(count + of_child, rest) <= _cost(count, rest) + _cost(*child.sizes):
                count += of_child
                front.columns += child.columns
                front.children += child.children
                fronts[child.columns[-1]] = None
            else:
                front.children.append(child)
        front.columns.append(column)
        waiting[column] = []
        waiting[min(reached) if reached else size].append(front)
        fronts[column] = front
    return [front for front in fronts if front is not None]


class Factor:
    """The factor of values on a symmetric pattern, of which the lower triangle is read.

    Attributes:
        logdet: the log determinant.

    Raises:
        LinAlgError: the matrix is not positive definite.
    """

    def __init__(self, symbolic: Symbolic, values: np.ndarray):
        self.symbolic, self.values, self.logdet = symbolic, values, 0.0
        self.parts: list[tuple[np.ndarray, np.ndarray]] = []
        waiting: dict[Front, np.ndarray] = {}
        for front in symbolic.fronts:
            count, rest = front.sizes
            whole = _assembled(front, values, waiting)
            root, failed = _scipy.linalg.lapack.dpotrf(whole[:count, :count], lower=1)
            if failed:
                raise np.linalg.LinAlgError("the matrix is not positive definite")
            self.logdet += 2.0 * float(np.log(root.diagonal()).sum())
            inverse, _ = _scipy.linalg.lapack.dtrtri(root, lower=1)
            below = whole[count:, :count] @ inverse.T
            if rest:
                waiting[front] = whole[count:, count:] - below @ below.T
            self.parts.append((inverse, below))
        if not np.isfinite(self.logdet):
            raise np.linalg.LinAlgError("the matrix has elements that are not finite")

    def solve(self, b: np.ndarray) -> np.ndarray:
        """The solution for right sides as columns."""
        x = np.empty(b.shape)
        x[self.symbolic.order] = b
        for front, (inverse, below) in zip(self.symbolic.fronts, self.parts):
            here = slice(front.columns[0], front.columns[-1] + 1)
            x[here] = y = inverse @ x[here]
            x[front.rows] -= below @ y
        return self._backward(x)

    def spread(self, z: np.ndarray) -> np.ndarray:
        """Columns of numbers with the inverse for their covariance, of independent ones of variance 1."""
        return self._backward(z.copy())

    def _backward(self, x: np.ndarray) -> np.ndarray:
        """The solution by the factor's transpose, in the rows' own order, of numbers in that of elimination."""
        for front, (inverse, below) in reversed(list(zip(self.symbolic.fronts, self.parts))):
            here = slice(front.columns[0], front.columns[-1] + 1)
            x[here] = inverse.T @ (x[here] - below.T @ x[front.rows])
        return x[self.symbolic.order]

    def inverse(self, directions: np.ndarray) -> np.ndarray:
        """The inverse on the pattern; with ``directions``, values on it as columns, the derivative in all of them.

        A jet is a list: the part by a set of directions at the number whose bits are the set.
        """
        result = np.empty(self.symbolic.count)
        waiting: dict[Front, list] = {}
        steps = zip(self.symbolic.fronts, self._blocks(directions))
        for front, (inner, weights) in reversed(list(steps)):
            if len(front.rows):
                outer = waiting.pop(front)
                side = [-x for x in _times(outer, weights)]
                turned = _times([w.T for w in weights], side)
                whole = [
                    np.concatenate([np.concatenate([p - t, s.T], 1), np.concatenate([s, o], 1)])
                    for p, t, s, o in zip(inner, turned, side, outer)
                ]
            else:
                whole = inner
            result[front.elements] = whole[-1].reshape(-1)[front.places]
            for child, at in front.children:
                waiting[child] = [z[at, at.T] for z in whole]
        return result[self.symbolic.twins]

    def _blocks(self, directions: np.ndarray) -> list[tuple[list, list]]:
        """For each front the jets of the inverse of its diagonal block, and of that from the right on what is below."""
        if not directions.shape[1]:
            return [([inverse.T @ inverse], [below @ inverse]) for inverse, below in self.parts]
        parts = 1 << directions.shape[1]
        given = {1 << k: directions[:, k] for k in range(directions.shape[1])} | {0: self.values}
        waiting: list[dict[Front, np.ndarray]] = [{} for _ in range(parts)]
        blocks = []
        for front, (root, _) in zip(self.symbolic.fronts, self.parts):
            count = len(front.columns)
            whole = [_assembled(front, given.get(s), waiting[s]) for s in range(parts)]
            diagonal, below = [x[:count, :count] for x in whole], [x[count:, :count] for x in whole]
            diagonal = [np.tril(x) + np.tril(x, -1).T for x in diagonal]
            inner = [root.T @ root]
            for s in range(1, parts):
                moved = [inner[s ^ t] @ diagonal[t] for t in _subsets(s) if t]
                inner.append(-functools.reduce(operator.add, moved) @ inner[0])
            weights = _times(below, inner)
            if len(front.rows):
                for s, y in enumerate(_times(weights, [x.T for x in below])):
                    waiting[s][front] = whole[s][count:, count:] - y
            blocks.append((inner, weights))
        return blocks


def _assembled(front: Front, values: np.ndarray | None, waiting: dict) -> np.ndarray:
    """The front's matrix: the elements given, and what the elimination of its children left."""
    size = sum(front.sizes)
    flat = np.zeros(size * size)
    if values is not None:
        flat[front.places] = values[front.elements]
    whole = flat.reshape(size, size)
    for child, at in front.children:
        whole[at, at.T] += waiting.pop(child)
    return whole


def _subsets(s: int) -> list[int]:
    return [t for t in range(s + 1) if t & s == t]


def _times(a: list, b: list) -> list:
    """The product of two jets of matrices."""
    if len(a) == 1:
        return [a[0] @ b[0]]
    return [functools.reduce(operator.add, [a[t] @ b[s ^ t] for t in _subsets(s)]) for s in range(len(a))]
