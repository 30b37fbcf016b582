"""The elements of the Hessian of a function of affine maps.

A likelihood takes its random effects through affine maps, as the sums of effects that an observation has, or the
differences of neighbours: ``f(x) = g(z(x))`` with ``z = A x + b``. Then ``H = A' G A`` with the Hessian ``G`` of ``g``
by ``z``, often diagonal, where ``H`` itself may need as many colours as it has columns. The rows of ``A`` have few
elements, so that a few products find them (partial separability: Griewank & Toint 1982).
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ... import ops
from ...autodiff import engine
from ...autodiff.graph import AccumulateGrad, GradientEdge, Node, key, nodes_of
from ...autodiff.variable import Variable, attach, data_of, wrap
from .. import forward
from . import patterns, traces
from .colors import of_columns, positions

LARGEST = 64
"""Ends, each of which has a record of its own."""

LONGEST = 64
"""Elements of a row of maps, of which each pair is an element of the Hessian."""


class AffineParts:
    """The affine maps of a vector ``x`` from which a scalar ``y`` of a function being compiled is computed.

    Args:
        along: an array of ``x``'s shape, an argument of the function: a direction.

    Attributes:
        ends: the results, affine in ``x`` or ``x`` itself, that other operations take: nodes, or ``x``. None where
            that is ``x`` alone, or so many that a product takes longer to record than it saves.
    """

    def __init__(self, y: Variable, x: Variable, along: Any):
        self._x, self._along = x, along
        self._program: Any = along.program
        self._tangents: dict[int, Any] = {key(x): wrap(along)}
        self._affine: list[Node] = []
        self._products: list = []
        self._y = y
        self.ends, self._others = self._sorted(nodes_of([y]))
        if [key(edge) for edge in self.ends] == [key(x)] or len(self.ends) > LARGEST:
            self.ends = []

    @functools.cached_property
    def gradients(self) -> list:
        """The derivatives of ``y`` by each of the ends, as if none were computed from another."""
        targets: Any = [GradientEdge(e if isinstance(e, Node) else AccumulateGrad(e), None) for e in self.ends]  # type: ignore[arg-type]
        found = engine.run([self._y], [engine.seed(self._y, None, True)], True, True, targets, self._others)
        return [found[key(edge)][1] if key(edge) in found else None for edge in self.ends]

    def gradient(self) -> Any:
        """The derivatives of ``y`` by ``x``, from those by the ends."""
        pairs = [(g, edge) for g, edge in zip(self.gradients, self.ends) if g is not None]
        roots = [attach(data_of(g), edge) if isinstance(edge, Node) else edge for g, edge in pairs]
        found = engine.run(roots, [g for g, _ in pairs], True, True, [self._x])
        return found[key(self._x)][1] if key(self._x) in found else wrap(ops.zeros_like(data_of(self._x)))

    def falls_along(self) -> list[tuple]:
        """Variables and constants, the sum of whose products has the derivatives of the gradient's fall along the
        direction: of each product in it each factor with minus the other."""
        found = []
        for g, edge in zip(self.gradients, self.ends):
            if g is not None:
                moved = _whole(self._tangents[key(edge)], edge)
                found += [(g, -data_of(moved)), (moved, -data_of(g))]
        return found

    def _sorted(self, nodes: list[Node]) -> tuple[list, set[int]]:
        """The results that are affine in ``x`` and taken by others, and the numbers of these others."""
        moving = {key(self._x)}  # what depends on x
        ends: dict[int, Any] = {}
        others: set[int] = set()

        def moved(node: Node) -> dict:
            return {key(edge): edge for edge in node.edges if edge is not None and key(edge) in moving}

        def note(node: Node) -> None:
            if moved(node):
                moving.add(node.seq)

        with traces.watching(note):
            for node in nodes:
                given = moved(node)
                if not given:
                    continue
                moving.add(node.seq)  # before its tangent, which may be computed from its result
                if given.keys() <= self._tangents.keys() and not node.rule.partial:  # no record of many operations
                    tangent = forward.through(node, self._tangents, True)
                    if tangent is None:
                        moving.remove(node.seq)
                        continue
                    # Of an affine map, and of no other, the derivative does not depend on where it is taken.
                    if not any(key(t._node or t) in moving for t in _variables(tangent)):
                        self._tangents[node.seq] = tangent
                        self._affine.append(node)
                        continue
                others.add(node.seq)
                ends.update((place, edge) for place, edge in given.items() if place in self._tangents)
        return [ends[place] for place in sorted(ends)], others

    def pattern(self):
        """Where the matrix of the maps can be other than 0: a CSC matrix of True."""
        return self._pattern([self._tangents[key(edge)] for edge in self.ends], [self._along])

    @property
    def are_taken(self) -> bool:
        """Whether the derivatives by the ends are recorded, and so best taken."""
        return bool(self._products)

    def pattern_by_ends(self):
        """The same of the Hessian by the ends."""
        self._directions = [self._program.source(np.ones(edge.shape)) for edge in self.ends]
        self._products = self._second(list(map(wrap, self._directions)))
        return self._pattern(self._products, self._directions)

    def _pattern(self, parts: list, sources: list):
        places = [getattr(x, "place", x) for x in (data_of(_whole(*pair)) for pair in zip(parts, self.ends))]
        return patterns.pattern(self._program.so_far(), places, [source.place for source in sources])

    def _second(self, directions: list) -> list:
        known = {key(e): v for e, v in zip(self.ends, directions)}
        found = iter(forward.pushed([g for g in self.gradients if g is not None], known, True))
        return [None if g is None else next(found) for g in self.gradients]

    def columns(self, colors: np.ndarray):
        """For each colour the sum of the maps' columns of that colour, a row of all ends."""

        def moved(seed):
            tangents: dict[int, Any] = {key(self._x): seed}
            for node in self._affine:
                tangents[node.seq] = forward.through(node, tangents, True)
            return self._flat([tangents.get(key(edge)) for edge in self.ends])

        return traces.together(moved, patterns.seeds(colors, [self._x.shape]))

    def products(self, colors: np.ndarray):
        """For each colour the sum of the columns of that colour of the Hessian by the ends, a row."""
        if self._products and not colors.any():  # the product that has shown the pattern, of directions of ones
            for direction in self._directions:
                self._program.settle(direction)
            return ops.expand_dims(self._flat(self._products), 0)
        seeds = patterns.seeds(colors, [edge.shape for edge in self.ends])
        return traces.together(lambda *directions: self._flat(self._second(list(directions))), seeds)

    def _flat(self, parts: list):
        return ops.concatenate([ops.reshape(_whole(part, edge), (-1,)) for part, edge in zip(parts, self.ends)])


def _variables(tangent) -> list:
    return [t for t in (tangent if isinstance(tangent, list) else [tangent]) if isinstance(t, Variable)]


def _whole(part, edge):
    """A tangent in its value's shape; None is 0."""
    if part is None:
        return np.zeros(edge.shape)
    return part if tuple(part.shape) == tuple(edge.shape) else ops.broadcast_to(part, tuple(edge.shape))


MOST = 8
"""Terms for each element of a dense product with the Hessian; with more no plan is made."""


class SeparableHessian:
    """The places of the elements of ``H = A' G A``, each a sum of products of an element of ``G`` and two of ``A``.

    Args:
        maps, hessian: the patterns of ``A`` and ``G``, see :meth:`AffineParts.patterns`.

    Attributes:
        pattern: of ``H``, a symmetric CSC matrix of True.
        pays: whether the terms are fewer than the elements of the products with ``H`` for its colours, at least.
    """

    def __init__(self, maps, hessian):
        size, count = maps.shape
        plan = patterns.Found(hessian, [], False, None, True).by_star
        row, column = positions(plan.pattern)
        maps = _without_others(maps, row)
        once = row >= column
        row, column = row[once], column[once]
        colors = of_columns(maps)
        maps = maps.tocsr()
        starts, lengths = maps.indptr, np.diff(maps.indptr)
        pairs = lengths[row] * lengths[column]  # of each element of G
        self.pays, self.pattern = False, None
        if pairs.sum() > MOST * (size + count) * count:
            return
        of = np.repeat(np.arange(len(row)), pairs)  # the element of G that a term is of
        number = np.arange(len(of)) - np.repeat(np.cumsum(pairs) - pairs, pairs)
        width = lengths[column[of]]
        i = maps.indices[starts[row[of]] + number // width].astype(np.int64)
        j = maps.indices[starts[column[of]] + number % width]
        kept = (row[of] != column[of]) | (i >= j)
        of, i, j = of[kept], i[kept], j[kept]
        low, places = np.unique(np.minimum(i, j) * count + np.maximum(i, j), return_inverse=True)
        order = np.argsort(places, kind="stable")
        of, i, j, self._places = of[order], i[order], j[order], places[order]
        at, color = (part[once][of] for part in plan.places)
        self._colors, self._colors_of_ends = colors, plan.colors
        self._of_ends = color * size + at
        self._of_maps = colors[i] * size + row[of], colors[j] * size + column[of]
        self._times = np.where((i == j) & (row[of] != column[of]), 2.0, 1.0)  # once for each order of the two ends
        self._count = len(low)
        columns, rows = np.divmod(low, count)
        every = np.sort(np.concatenate([low, (rows * count + columns)[rows != columns]]))
        columns, rows = np.divmod(every, count)
        self._all = np.searchsorted(low, np.minimum(rows, columns) * count + np.maximum(rows, columns))
        starts = np.searchsorted(columns, np.arange(count + 1))
        self.pattern = patterns.csc((np.ones(len(every), bool), rows, starts), (count, count))
        products = int(colors.max(initial=0) + plan.colors.max(initial=0)) + 2
        self.pays = len(of) < _saved(starts, products, size + count)

    def elements(self, parts: AffineParts):
        """Those of ``H``, in the order of its pattern."""
        maps = ops.reshape(parts.columns(self._colors), (-1,))
        by_ends = ops.reshape(parts.products(self._colors_of_ends), (-1,))
        first, second = (ops.take(maps, places, 0) for places in self._of_maps)
        terms = first * second * self._times * ops.take(by_ends, self._of_ends, 0)
        return ops.take(ops.segment_sum(terms, self._places, self._count), self._all, 0)


def may_pay(maps) -> bool:
    """True if the plan may pay with a matrix of maps of this pattern, whatever the Hessian by the ends.

    With a diagonal one the terms are fewest, and the Hessian has the elements of ``A' A``. Long rows, which are of sums
    and mostly only added to the rest, do not count.
    """
    maps = maps.tocsr().astype(np.int32)
    lengths = np.diff(maps.indptr).astype(np.int64)
    few = lengths <= LONGEST
    maps, lengths = maps[few], lengths[few]
    starts = (maps.T @ maps).tocsc().indptr
    return lengths @ (lengths + 1) // 2 < _saved(starts, int(lengths.max(initial=0)) + 1, sum(maps.shape))


def _saved(starts: np.ndarray, products: int, size: int) -> int:
    """The elements of products of a size that are saved, where at least the largest column's number were needed."""
    return (int(np.diff(starts).max(initial=0)) - products) * size


def _without_others(maps, rows: np.ndarray):
    """The matrix without its other rows: of ends that are only added to the rest, as sums of all are."""
    bends = np.zeros(maps.shape[0], bool)
    bends[rows] = True
    kept = patterns.csc((bends[maps.indices], maps.indices, maps.indptr), maps.shape)
    kept.eliminate_zeros()
    return kept
