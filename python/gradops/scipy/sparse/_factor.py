"""The Cholesky factor of sparse symmetric positive definite matrices of one pattern, by fronts; see ``_columns``, too.

A multifrontal method (Duff & Reid 1983; Liu 1992). Once for a pattern: an ordering (minimum degree, of many rows by
SuperLU, or by rounds where fronts stay small), the elimination tree, and fronts: columns that are eliminated together,
in one dense matrix of theirs and the rows that they reach; a front takes in a child where the zeros that come with it
cost less than another call (Ashcraft & Grimes 1989). For numbers, a large front is LAPACK's and BLAS'; small ones of
one size and height in the tree are computed at once, in a stack. The inverse on the pattern goes the same way from the
root to the leaves (Takahashi, Fagan & Chen 1973; Erisman & Tinney 1975), of its directional derivatives, too.
"""

from __future__ import annotations

import functools
import itertools
import operator

import numpy as np

from ... import _scipy
from ._pattern import Pattern

SMALL = 6  # columns and rows of a front that goes into a stack
MANY = 3_000  # rows that SuperLU puts in order faster, the import of SciPy's module counted


class Front:
    """Columns that are eliminated together, the rows that they reach, and the fronts whose rows lie in this one."""

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
    """Fronts that are computed at once, in the last dimension of their matrices.

    Attributes:
        sizes: the columns of a front and the rows that these reach.
        count: of fronts.
        columns: a slice of places in the order of elimination: the first columns of all fronts, the second ones, ...
        rows: the places of the rows, a column for each front.
        elements, places: of the matrix' elements in these columns, and where they go, row by row.
        edges: from the stacks of the fronts' children.
        sums: into the rows' places.
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
        """That of their matrices of this size; a front alone has no last dimension."""
        return (size, size) if self.count == 1 else (size, size, self.count)

    def cost(self) -> float:
        """Nanoseconds."""
        return _cost(*self.sizes) if self.count == 1 else 60_000 + self.count * _cost(*self.sizes, True)

    @property
    def whole(self) -> np.ndarray:
        """The places of columns and rows, a column for each front."""
        columns = np.arange(self.columns.start, self.columns.stop).reshape(-1, self.count)
        return np.concatenate([columns, self.rows])

    def positions(self, which: np.ndarray, places: np.ndarray) -> np.ndarray:
        """Where these places are among the columns and rows of the front ``which``."""
        whole = self.whole
        bound = 1 + max(int(whole.max()), int(places.max(initial=0)))
        keys = (whole + bound * np.arange(self.count)).T.reshape(-1)
        return np.searchsorted(keys, places + bound * which) - which * len(whole)


class Sums:
    """Additions to places, of which some are the same."""

    def __init__(self, places: np.ndarray):
        self.order = np.argsort(places, kind="stable")
        self.places, self.starts = np.unique(places[self.order], return_index=True)
        self.several = len(self.places) < len(places)
        if not self.several:
            self.places = places

    def add(self, into: np.ndarray, numbers: np.ndarray) -> None:
        into[self.places] += np.add.reduceat(numbers[self.order], self.starts) if self.several else numbers


class Edge:
    """The way from children in one stack into their parents in another.

    Attributes:
        child: the stack.
        which: an index of the children's matrices.
        at: an index of the parents' matrices.
        last: True where no later stack has parents of the child's.
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
    """Nanoseconds that a front takes, also a small one in a stack: calls, arithmetic, the move to its parent."""
    size = columns + rows
    if small and size <= SMALL:
        return 20 * size**3
    return 20_000 + 0.1 * columns * (columns * columns + 2 * columns * rows + 2 * rows * rows) + 2 * size**2


class Symbolic:
    """The fronts of a symmetric pattern, in stacks, and the order in which rows are eliminated.

    Args:
        first, in_rounds: as of :func:`ordered`.
    """

    def __init__(self, pattern: Pattern, first: np.ndarray, in_rounds: bool):
        self.size, self.count = pattern.shape[0], pattern.count
        places = self.size, first[pattern.rows], first[pattern.columns]
        ways = [_stacks(_fronts(*places, stacked)) for stacked in {in_rounds, False}]
        self.stacks = min(ways, key=lambda stacks: sum(map(Stack.cost, stacks)))
        self.order = self._numbered()[first]
        rows, columns = self.order[pattern.rows], self.order[pattern.columns]
        self.twins = np.where(rows >= columns, np.arange(pattern.count), pattern.by_rows)  # in the lower triangle
        self._place(rows, columns)
        self._link()

    def factored(self, values: np.ndarray) -> Factor:
        return Factor(self, values)

    def _numbered(self) -> np.ndarray:
        """Each row's place in the order of elimination."""
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
        """Each stack's edges from its children's stacks."""
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
    """Small fronts over small ones by height and size, then the others, each alone, in the order that they have."""
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
    """Each row's place in an order of elimination that fills little.

    Returns:
        The places; whether the order is by rounds throughout, so that its tree is low; and, where they are known, the
        rows that are reached when a row is eliminated, in that order.
    """
    found = _eliminated(pattern)
    if found is None:
        return _by_degree(pattern), False, None
    order, reached, in_rounds = found
    return np.argsort(order), in_rounds, [reached[k] for k in order]


def _by_degree(pattern: Pattern) -> np.ndarray:
    """SuperLU's minimum degree ordering, of an incomplete factor, which costs little."""
    values = np.where(pattern.rows == pattern.columns, np.diff(pattern.starts)[pattern.columns] + 1.0, -1.0)
    incomplete = _scipy.sparse.linalg.spilu(
        pattern.scipys(values), 1.0, 1.0, None, "MMD_AT_PLUS_A", 0.0, options={"SymmetricMode": True}
    )
    return incomplete.perm_c.astype(np.int64)


def _eliminated(pattern: Pattern) -> tuple[list[int], list[set[int]], bool] | None:
    """Rows as they are eliminated, those that each row reaches then, and whether it was by rounds of short ones.

    While many rows are short, a round is of those that do not meet, which gives a low tree (odd-even reduction; minimum
    degree takes a chain from its ends, one row after another). Then a round is of rows of about the least length, each
    with its twins, which reach the same (multiple minimum degree: Liu 1985); None where there are ``MANY`` rows.
    """
    starts, rows = pattern.starts.tolist(), pattern.rows.tolist()
    reached = [set(rows[start:end]) - {k} for k, (start, end) in enumerate(zip(starts, starts[1:]))]
    order: list[int] = []
    left = list(range(len(reached)))
    in_rounds = True
    while left:
        longest = SMALL - 1 if in_rounds else 1 + min([len(reached[k]) for k in left])
        met: set[int] = set()
        chosen = []
        for k in left:
            if len(reached[k]) <= longest and k not in met:
                chosen.append(k)
                met |= reached[k]
        if in_rounds and 8 * len(chosen) < len(left):
            if len(reached) > MANY:
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


def _fronts(size: int, rows: np.ndarray, columns: np.ndarray, stacked: bool) -> list[Front]:
    """The fronts of a matrix with elements at these places; ``stacked`` where small ones cost little."""
    lower = rows > columns
    rows, columns = rows[lower], columns[lower]
    below = rows[np.argsort(columns, kind="stable")].tolist()
    starts = np.concatenate([[0], np.cumsum(np.bincount(columns, minlength=size))]).tolist()
    # By the first row that they reach, their parent's column.
    waiting: list[list[Front]] = [[] for _ in range(size + 1)]
    fronts: list[Front | None] = [None] * size
    for column in range(size):
        own, children = below[starts[column] : starts[column + 1]], waiting[column]
        waiting[column] = []
        if len(children) == 1 and children[0].rows.issuperset(own):  # joins it without another element
            front = children[0]
            fronts[front.columns[-1]] = None
            reached = front.rows
            reached.discard(column)
        else:
            reached = set(own).union(*[child.rows for child in children])
            reached.discard(column)
            front = Front(reached)
            count, rest, small = 1, len(reached), stacked and all(child.small for child in children)
            for child in children:
                of_child = len(child.columns)
                if _cost(count + of_child, rest, small) <= _cost(count, rest, small) + _cost(*child.sizes, child.small):
                    count += of_child
                    front.columns += child.columns
                    front.children += child.children
                    fronts[child.columns[-1]] = None
                else:
                    front.children.append(child)
            front.small = small and count + rest <= SMALL
        front.columns.append(column)
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
        """The solution for right sides as columns."""
        x = np.empty(b.shape)
        x[self.symbolic.order] = b
        for stack, (inverse, below) in zip(self.symbolic.stacks, self.parts):
            y = _applied(inverse, x[stack.columns])
            x[stack.columns] = y
            if stack.sizes[1]:
                stack.sums.add(x, -_applied(below, y))
        return self._backward(x)

    def spread(self, z: np.ndarray) -> np.ndarray:
        """Columns of numbers with the inverse for their covariance, of independent ones of variance 1."""
        return self._backward(z.copy())

    def _backward(self, x: np.ndarray) -> np.ndarray:
        """The solution by the factor's transpose, in the rows' own order, of numbers in that of elimination."""
        for stack, (inverse, below) in reversed(list(zip(self.symbolic.stacks, self.parts))):
            y = x[stack.columns]
            if stack.sizes[1]:
                y = y - _applied(_turned(below), x[stack.rows.reshape(-1)])
            x[stack.columns] = _applied(_turned(inverse), y)
        return x[self.symbolic.order]

    def inverse(self, directions: np.ndarray) -> np.ndarray:
        """The inverse on the pattern; with ``directions``, values on it as columns, the derivative in all of them.

        A jet is a list: the part by a set of directions at the number whose bits are the set.
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
        """For each stack the jets of the inverse of its diagonal block, and of that from the right on what is below."""
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
    """The fronts' matrices: the elements given, and what the elimination of their children left."""
    size = sum(stack.sizes)
    whole = np.zeros(stack.shape(size))
    if values is not None:
        whole.reshape(-1)[stack.places] = values[stack.elements]
    for edge in stack.edges:
        edge.add(whole, waiting.pop(edge.child) if edge.last else waiting[edge.child])
    return whole


# Matrices, or of each place in a last dimension -----------------------------------------------------------------------


def _inverse_root(a: np.ndarray) -> np.ndarray:
    """The inverse of the Cholesky factor of a matrix whose lower triangle is given.

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
    """The products with numbers as columns, row by row the matrices' in turns."""
    if a.ndim == 2:
        return a @ x
    count, size, stacked = a.shape
    y = np.einsum("ijk,jkm->ikm", a, x.reshape(size, stacked, x.shape[1]))
    return y.reshape(count * stacked, x.shape[1])


def _subsets(s: int) -> list[int]:
    return [t for t in range(s + 1) if t & s == t]


def _times(a: list, b: list) -> list:
    """The product of two jets of matrices."""
    if len(a) == 1:
        return [_dot(a[0], b[0])]
    return [functools.reduce(operator.add, [_dot(a[t], b[s ^ t]) for t in _subsets(s)]) for s in range(len(a))]
