"""Multifrontal Cholesky factors of sparse symmetric positive definite matrices with a fixed pattern.

The method is that of Duff & Reid 1983 and Liu 1992 (``_columns.py`` has a method for small fronts). The symbolic part
runs once per pattern. It finds an ordering (minimum degree, by SuperLU for many rows, or by rounds while fronts stay
small), the elimination tree, and the fronts. A front is a set of columns eliminated together, stored in one dense
matrix of these columns and the rows they reach. A front absorbs a child if the added zeros cost less than another call
(Ashcraft & Grimes 1989).

The numeric part factors large fronts by LAPACK and BLAS, and small fronts of one size and height in the tree together,
in a stack. The inverse on the pattern, and its directional derivatives, are computed from the root to the leaves
(Takahashi, Fagan & Chen 1973; Erisman & Tinney 1975).
"""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Iterator

import numpy as np

from ... import _scipy
from ._pattern import Pattern

MAX_STACKED_FRONT = 6
"""The largest number of columns and rows of a front in a stack."""
MIN_ROWS_FOR_SUPERLU_ORDER = 3_000
"""The number of rows above which SuperLU's ordering is faster, including the import of its module."""


class Front:
    """Columns that are eliminated together, the rows that they reach, and the child fronts that pass rows to it."""

    __slots__ = ("children", "columns", "height", "rows", "small")

    height: int
    small: bool

    def __init__(self, rows: set):
        self.columns: list[int] = []
        self.rows = rows
        self.children: list[Front] = []

    @property
    def sizes(self) -> tuple[int, int]:
        return len(self.columns), len(self.rows)


class Stack:
    """Fronts of one size that are computed together, stacked along the last dimension of their matrices.

    Attributes:
        sizes: the number of columns of a front and of the rows that these reach.
        count: the number of fronts.
        columns: a slice of the elimination order: the first columns of all fronts, then the second ones, ...
        rows: the positions of the rows in the elimination order, a column for each front.
        elements: the indices of the matrix elements in these columns.
        places: the positions of these elements in the fronts' matrices, row by row.
        edges: the edges from the stacks of the fronts' children.
        sums: additions to the rows.
    """

    __slots__ = ("columns", "count", "edges", "elements", "members", "places", "rows", "sizes", "sums")

    elements: np.ndarray
    places: np.ndarray
    columns: slice
    rows: np.ndarray
    sums: Sums

    def __init__(self, members: list[Front]):
        self.members, self.sizes, self.count = members, members[0].sizes, len(members)
        self.edges: list[Edge] = []

    def shape(self, size: int) -> tuple[int, ...]:
        """Return the shape of the fronts' matrices of this size; a single front has no last dimension."""
        return (size, size) if self.count == 1 else (size, size, self.count)

    def cost(self) -> float:
        """Return the estimated time in nanoseconds."""
        return _cost(*self.sizes) if self.count == 1 else 60_000 + self.count * _cost(*self.sizes, True)

    @property
    def whole(self) -> np.ndarray:
        """The positions of columns and rows in the elimination order, a column for each front."""
        columns = np.arange(self.columns.start, self.columns.stop).reshape(-1, self.count)
        return np.concatenate([columns, self.rows])

    def positions(self, which: np.ndarray, places: np.ndarray) -> np.ndarray:
        """Return the indices of positions among the columns and rows of the fronts ``which``."""
        whole = self.whole
        bound = 1 + max(int(whole.max()), int(places.max(initial=0)))
        keys = (whole + bound * np.arange(self.count)).T.reshape(-1)
        return np.searchsorted(keys, places + bound * which) - which * len(whole)


class Sums:
    """Additions to positions that may be repeated."""

    def __init__(self, places: np.ndarray):
        self.order = np.argsort(places, kind="stable")
        self.places, self.starts = np.unique(places[self.order], return_index=True)
        self.several = len(self.places) < len(places)
        if not self.several:
            self.places = places

    def add(self, into: np.ndarray, numbers: np.ndarray) -> None:
        into[self.places] += np.add.reduceat(numbers[self.order], self.starts) if self.several else numbers


class Edge:
    """The additions from child fronts in one stack to their parents in another.

    Attributes:
        child: the stack of the children.
        which: an index into the children's matrices.
        at: an index into the parents' matrices.
        last: True if no later stack has parents of fronts in ``child``.
    """

    __slots__ = ("at", "child", "last", "sums", "which")

    def __init__(self, child: Stack, which: np.ndarray, parent: Stack, members: np.ndarray):
        at = parent.positions(members, child.rows[:, which])
        single = len(which) == 1
        if single:
            at, which, members = at[:, 0], which[0], members[0]
        self.child, self.last = child, False
        self.which = (...,) if child.count == 1 else (..., which)
        self.at = (at[:, None], at[None]) if parent.count == 1 else (at[:, None], at[None], members)
        places = np.arange(np.prod(parent.shape(sum(parent.sizes)))).reshape(parent.shape(sum(parent.sizes)))
        self.sums = None if single else Sums(places[self.at].reshape(-1))

    def add(self, whole: np.ndarray, passed: np.ndarray) -> None:
        if self.sums is None:
            whole[self.at] += passed[self.which]
        else:
            self.sums.add(whole.reshape(-1), passed[self.which].reshape(-1))


def _cost(columns: int, rows: int, small: bool = False) -> float:
    """Return the estimated nanoseconds of a front, alone or in a stack: calls, arithmetic, update of its parent."""
    size = columns + rows
    if small and size <= MAX_STACKED_FRONT:
        return 20 * size**3
    return 20_000 + 0.1 * columns * (columns * columns + 2 * columns * rows + 2 * rows * rows) + 2 * size**2


class Symbolic:
    """The fronts of a symmetric pattern, in stacks, and the order in which rows are eliminated.

    Args:
        first, in_rounds: the results of :func:`ordered`.
    """

    def __init__(self, pattern: Pattern, first: np.ndarray, in_rounds: bool):
        self.size, self.count = pattern.shape[0], pattern.count
        places = self.size, first[pattern.rows], first[pattern.columns]
        ways = [_stacks(_fronts(*places, stacked)) for stacked in {in_rounds, False}]
        self.stacks = min(ways, key=lambda stacks: sum(map(Stack.cost, stacks)))
        self.order = self._numbered()[first]
        rows, columns = self.order[pattern.rows], self.order[pattern.columns]
        self.twins = np.where(rows >= columns, np.arange(pattern.count), pattern.row_order)  # in the lower triangle
        self._place(rows, columns)
        self._link()

    def factored(self, values: np.ndarray) -> Factor:
        return Factor(self, values)

    def _numbered(self) -> np.ndarray:
        """Return each row's position in the elimination order."""
        place, start = np.empty(self.size, np.int64), 0
        for stack in self.stacks:
            columns = np.array([front.columns for front in stack.members]).T
            stack.columns = slice(start, start + columns.size)
            place[columns] = np.arange(start, start + columns.size).reshape(columns.shape)
            start += columns.size
        for stack in self.stacks:
            rows = np.fromiter(itertools.chain(*[front.rows for front in stack.members]), np.int64)
            stack.rows = np.sort(place[rows].reshape(stack.count, -1), 1).T
            stack.sums = Sums(stack.rows.reshape(-1))
        return place

    def _place(self, rows: np.ndarray, columns: np.ndarray) -> None:
        lower = np.flatnonzero(rows >= columns)
        lower = lower[np.argsort(columns[lower], kind="stable")]
        rows, columns = rows[lower], columns[lower]
        cuts = np.searchsorted(columns, [*[stack.columns.start for stack in self.stacks], self.size]).tolist()
        for stack, start, end in zip(self.stacks, cuts, cuts[1:]):
            column, which = np.divmod(columns[start:end] - stack.columns.start, stack.count)
            row = stack.positions(which, rows[start:end])
            stack.elements = lower[start:end]
            stack.places = (row * sum(stack.sizes) + column) * stack.count + which

    def _link(self) -> None:
        """Set each stack's edges from its children's stacks."""
        home = {front: (k, i) for k, stack in enumerate(self.stacks) for i, front in enumerate(stack.members)}
        last: dict[Stack, Edge] = {}
        for stack in self.stacks:
            found: dict[int, list[tuple[int, int]]] = {}
            for i, front in enumerate(stack.members):
                for child in front.children:
                    if child.rows:
                        k, which = home[child]
                        found.setdefault(k, []).append((which, i))
            for k, pairs in found.items():
                which, members = np.array(pairs).T
                edge = Edge(self.stacks[k], which, stack, members)
                stack.edges.append(edge)
                last[edge.child] = edge
        for edge in last.values():
            edge.last = True
        for stack in self.stacks:
            stack.members = []


def _stacks(fronts: list[Front]) -> list[Stack]:
    """Group small fronts by height and size into stacks; the others follow in order, each in a stack of its own."""
    alike: dict[tuple, list[Front]] = {}
    alone: list[list[Front]] = []
    for front in fronts:
        front.height = 1 + max([child.height for child in front.children], default=0)
        if front.small:
            alike.setdefault((front.height, *front.sizes), []).append(front)
        else:
            alone.append([front])
    return [Stack(members) for members in [*[alike[key] for key in sorted(alike)], *alone]]


def ordered(pattern: Pattern) -> tuple[np.ndarray, bool, list[set[int]] | None]:
    """Return each row's position in an elimination order with little fill.

    Returns:
        The positions; True if the order is by rounds throughout, so that its tree is low; and, if known, the rows
        reached by each row when it is eliminated, in elimination order.
    """
    found = _eliminated(pattern)
    if found is None:
        return _minimum_degree_order(pattern), False, None
    order, reached, in_rounds = found
    return np.argsort(order), in_rounds, [reached[k] for k in order]


def _minimum_degree_order(pattern: Pattern) -> np.ndarray:
    """Return SuperLU's minimum degree ordering, from an incomplete factor, which is cheap."""
    values = np.where(pattern.rows == pattern.columns, np.diff(pattern.starts)[pattern.columns] + 1.0, -1.0)
    incomplete = _scipy.sparse.linalg.spilu(
        pattern.scipys(values), 1.0, 1.0, None, "MMD_AT_PLUS_A", 0.0, options={"SymmetricMode": True}
    )
    return incomplete.perm_c.astype(np.int64)


def _eliminated(pattern: Pattern) -> tuple[list[int], list[set[int]], bool] | None:
    """Return rows in elimination order, the rows that each reaches then, and True if all rounds were of short rows.

    While many rows are short, a round eliminates short rows that are not adjacent, which gives a low tree (odd-even
    reduction; minimum degree would take a chain from its ends, one row after another). Later rounds eliminate rows of
    about minimal length, each with its indistinguishable rows, which reach the same rows (multiple minimum degree: Liu
    1985). Returns None if later rounds are needed and there are more than ``MIN_ROWS_FOR_SUPERLU_ORDER`` rows.
    """
    starts, rows = pattern.starts.tolist(), pattern.rows.tolist()
    reached = [set(rows[start:end]) - {k} for k, (start, end) in enumerate(zip(starts, starts[1:]))]
    order: list[int] = []
    left = list(range(len(reached)))
    in_rounds = True
    while left:
        longest = MAX_STACKED_FRONT - 1 if in_rounds else 1 + min([len(reached[k]) for k in left])
        met: set[int] = set()
        chosen = []
        for k in left:
            if len(reached[k]) <= longest and k not in met:
                chosen.append(k)
                met |= reached[k]
        if in_rounds and 8 * len(chosen) < len(left):
            if len(reached) > MIN_ROWS_FOR_SUPERLU_ORDER:
                return None
            in_rounds = False
            continue
        for k in chosen:
            mine = reached[k]
            for other in mine:
                reached[other] |= mine
                reached[other] -= {k, other}
            order.append(k)
            if not in_rounds:
                twins = [other for other in mine if len(reached[other]) < len(mine)]
                others = mine.difference(twins)
                for other in others if twins else ():
                    reached[other].difference_update(twins)
                for i, twin in enumerate(twins):
                    reached[twin] = others.union(twins[i + 1 :])
                order += twins
        taken = set(order)
        left = [k for k in left if k not in taken]
    return order, reached, in_rounds


def reached_rows(size: int, rows: np.ndarray, columns: np.ndarray) -> Iterator[tuple[set[int], bool, list[int]]]:
    """Yield the rows that each column of a matrix reaches when it is eliminated, by symbolic elimination.

    Also yields True if the column joins its only child without fill, whose set of rows then becomes its own; and its
    children in the elimination tree, the columns whose first row is this column.
    """
    lower = rows > columns
    rows, columns = rows[lower], columns[lower]
    below = rows[np.argsort(columns, kind="stable")].tolist()
    starts = np.concatenate([[0], np.cumsum(np.bincount(columns, minlength=size))]).tolist()
    waiting: dict[int, list[int]] = {}  # children by their first rows
    reached: dict[int, set[int]] = {}
    for column in range(size):
        own, children = below[starts[column] : starts[column + 1]], waiting.pop(column, [])
        passed = [reached.pop(child) for child in children]
        joins = len(passed) == 1 and passed[0].issuperset(own)
        reached[column] = found = passed[0] if joins else set(own).union(*passed)
        found.discard(column)
        yield found, joins, children
        waiting.setdefault(min(found, default=size), []).append(column)


def _fronts(size: int, rows: np.ndarray, columns: np.ndarray, stacked: bool) -> list[Front]:
    """Return the fronts of a matrix with elements at these rows and columns; ``stacked`` if small ones go in stacks."""
    fronts: dict[int, Front] = {}  # by their last columns
    for column, (reached, joins, children) in enumerate(reached_rows(size, rows, columns)):
        if joins:
            front = fronts.pop(children[0])
        else:
            front = Front(reached)
            count, rest, small = 1, len(reached), stacked and all(fronts[child].small for child in children)
            for child in [fronts[child] for child in children]:
                of_child = len(child.columns)
                if _cost(count + of_child, rest, small) <= _cost(count, rest, small) + _cost(*child.sizes, child.small):
                    count += of_child
                    front.columns += child.columns
                    front.children += child.children
                    del fronts[child.columns[-1]]
                else:
                    front.children.append(child)
            front.small = small and count + rest <= MAX_STACKED_FRONT
        front.columns.append(column)
        fronts[column] = front
    return list(fronts.values())


class Factor:
    """The factor of values on a symmetric pattern; only the lower triangle is read.

    Attributes:
        logdet: the log determinant.

    Raises:
        LinAlgError: the matrix is not positive definite.
    """

    def __init__(self, symbolic: Symbolic, values: np.ndarray):
        self.symbolic, self.values, self.logdet = symbolic, values, 0.0
        self.parts: list[tuple[np.ndarray, np.ndarray]] = []
        waiting: dict[Stack, np.ndarray] = {}
        for stack in symbolic.stacks:
            count, rest = stack.sizes
            whole = _assembled(stack, values, waiting)
            inverse = _inverse_root(whole[:count, :count])
            self.logdet -= 2.0 * float(np.log(inverse.diagonal()).sum())
            below = _dot(whole[count:, :count], _turned(inverse))
            if rest:
                waiting[stack] = whole[count:, count:] - _dot(below, _turned(below))
            self.parts.append((inverse, below))
        if not np.isfinite(self.logdet):
            raise np.linalg.LinAlgError("the matrix has elements that are not finite")

    def solve(self, b: np.ndarray) -> np.ndarray:
        """Return the solution for right-hand sides as columns."""
        x = np.empty(b.shape)
        x[self.symbolic.order] = b
        for stack, (inverse, below) in zip(self.symbolic.stacks, self.parts):
            y = _applied(inverse, x[stack.columns])
            x[stack.columns] = y
            if stack.sizes[1]:
                stack.sums.add(x, -_applied(below, y))
        return self._backward(x)

    def spread(self, z: np.ndarray) -> np.ndarray:
        """Turn columns of independent numbers of variance 1 into numbers whose covariance is the inverse matrix."""
        return self._backward(z.copy())

    def _backward(self, x: np.ndarray) -> np.ndarray:
        """Solve by the factor's transpose; ``x`` is in elimination order, the result in the rows' own order."""
        for stack, (inverse, below) in reversed(list(zip(self.symbolic.stacks, self.parts))):
            y = x[stack.columns]
            if stack.sizes[1]:
                y = y - _applied(_turned(below), x[stack.rows.reshape(-1)])
            x[stack.columns] = _applied(_turned(inverse), y)
        return x[self.symbolic.order]

    def inverse(self, directions: np.ndarray) -> np.ndarray:
        """Return the inverse on the pattern, or its derivative along all ``directions``, columns of values on it.

        Jets are lists of partial derivatives; the bits of an index are the set of directions.
        """
        result = np.empty(self.symbolic.count)
        waiting: dict[Stack, list] = {}
        steps = zip(self.symbolic.stacks, self._blocks(directions))
        for stack, (inner, weights) in reversed(list(steps)):
            whole = inner
            if stack.sizes[1]:
                outer = waiting.pop(stack)
                side = [-x for x in _times(outer, weights)]
                turned = _times([_turned(w) for w in weights], side)
                whole = [
                    np.concatenate([np.concatenate([p - t, _turned(s)], 1), np.concatenate([s, o], 1)])
                    for p, t, s, o in zip(inner, turned, side, outer)
                ]
            result[stack.elements] = whole[-1].reshape(-1)[stack.places]
            for edge in stack.edges:
                size = edge.child.sizes[1]
                passed = waiting.setdefault(edge.child, [np.empty(edge.child.shape(size)) for _ in whole])
                for z, part in zip(whole, passed):
                    part[edge.which] = z[edge.at]
        return result[self.symbolic.twins]

    def _blocks(self, directions: np.ndarray) -> list[tuple[list, list]]:
        """Return for each stack the jets of the inverse of its diagonal block, and of the block below times that."""
        if not directions.shape[1]:
            return [([_dot(_turned(root), root)], [_dot(below, root)]) for root, below in self.parts]
        parts = 1 << directions.shape[1]
        given = {1 << k: directions[:, k] for k in range(directions.shape[1])} | {0: self.values}
        waiting: list[dict[Stack, np.ndarray]] = [{} for _ in range(parts)]
        blocks = []
        for stack, (root, _) in zip(self.symbolic.stacks, self.parts):
            count = stack.sizes[0]
            whole = [_assembled(stack, given.get(s), waiting[s]) for s in range(parts)]
            diagonal, below = [x[:count, :count] for x in whole], [x[count:, :count] for x in whole]
            diagonal = [
                np.where(np.tri(count, dtype=bool).reshape(count, count, *x.shape[2:] and [1]), x, _turned(x))
                for x in diagonal
            ]
            inner = [_dot(_turned(root), root)]
            for s in range(1, parts):
                moved = [_dot(inner[s ^ t], diagonal[t]) for t in _subsets(s) if t]
                inner.append(-_dot(functools.reduce(operator.add, moved), inner[0]))
            weights = _times(below, inner)
            if stack.sizes[1]:
                for s, y in enumerate(_times(weights, [_turned(x) for x in below])):
                    waiting[s][stack] = whole[s][count:, count:] - y
            blocks.append((inner, weights))
        return blocks


def _assembled(stack: Stack, values: np.ndarray | None, waiting: dict) -> np.ndarray:
    """Return the fronts' matrices: their elements plus the updates from their children."""
    size = sum(stack.sizes)
    whole = np.zeros(stack.shape(size))
    if values is not None:
        whole.reshape(-1)[stack.places] = values[stack.elements]
    for edge in stack.edges:
        edge.add(whole, waiting.pop(edge.child) if edge.last else waiting[edge.child])
    return whole


# Operations on a matrix, or on matrices stacked along the last dimension ----------------------------------------------


def _inverse_root(a: np.ndarray) -> np.ndarray:
    """Return the inverse of the Cholesky factor of a matrix, whose lower triangle is read.

    Raises:
        LinAlgError: the matrix is not positive definite.
    """
    if a.ndim == 2:
        root, failed = _scipy.linalg.lapack.dpotrf(a, lower=1)
        if failed:
            raise np.linalg.LinAlgError("the matrix is not positive definite")
        return _scipy.linalg.lapack.dtrtri(root, lower=1)[0]
    root, inverse = np.zeros(a.shape), np.zeros(a.shape)
    for k in range(len(a)):
        column = a[k:, k] - np.einsum("ijk,jk->ik", root[k:, :k], root[k, :k])
        if not (column[0] > 0).all():
            raise np.linalg.LinAlgError("the matrix is not positive definite")
        root[k:, k] = column / np.sqrt(column[0])
        inverse[k, k] = 1 / root[k, k]
        inverse[k, :k] = -np.einsum("jk,jlk->lk", root[k, :k], inverse[:k, :k]) * inverse[k, k]
    return inverse


def _turned(a: np.ndarray) -> np.ndarray:
    return a.swapaxes(0, 1)


def _dot(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a @ b if a.ndim == 2 else np.einsum("ijk,jlk->ilk", a, b)


def _applied(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return the products with columns; the rows of ``x`` and the result interleave the stacked matrices."""
    if a.ndim == 2:
        return a @ x
    count, size, stacked = a.shape
    y = np.einsum("ijk,jkm->ikm", a, x.reshape(size, stacked, x.shape[1]))
    return y.reshape(count * stacked, x.shape[1])


def _subsets(s: int) -> list[int]:
    return [t for t in range(s + 1) if t & s == t]


def _times(a: list, b: list) -> list:
    """Return the product of two jets of matrices."""
    if len(a) == 1:
        return [_dot(a[0], b[0])]
    return [functools.reduce(operator.add, [_dot(a[t], b[s ^ t]) for t in _subsets(s)]) for s in range(len(a))]
