"""Hessians of partially separable functions: ``f(x) = g(z(x))`` with affine ``z = A x + b`` (Griewank & Toint 1982).

A likelihood uses its random effects through affine maps, such as the sums of effects for each observation or the
differences of neighbours. Then ``H = A' G A``, where ``G``, the Hessian of ``g``, is often diagonal, although ``H`` may
need as many colours as it has columns. The rows of ``A`` have few nonzeros, so a few products yield ``A``.
:class:`AffineParts` finds ``z`` in a recorded function, and :class:`SeparableHessian` plans the sum of products.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ... import ops
from ...autodiff import engine, pushforward, state
from ...autodiff.graph import AccumulateGrad, GradientEdge, Node, key, nodes_of
from ...autodiff.variable import Variable, attach, data_of, wrap
from . import patterns, traces
from .colors import column_colors, positions

MAX_ENDS = 64
"""The largest number of intermediate results ("ends") at which an affine map may end; each is recorded separately."""

MAX_ROW_NONZEROS = 64
"""The largest number of nonzeros in a row of the maps; each pair of them contributes an element of the Hessian."""


class AffineParts:
    """The affine maps of a vector ``x`` that a scalar ``y`` of a function being compiled is computed from.

    Args:
        along: an array of ``x``'s shape, an argument of the function: a direction.

    Attributes:
        ends: the results, affine in ``x`` or ``x`` itself, that other operations use: nodes, or ``x``. None if
            this is ``x`` alone, or if there are so many that recording a product takes longer than it saves.
    """

    def __init__(self, y: Variable, x: Variable, along: Any):
        self._x, self._along = x, along
        self._program: Any = along.program
        self._tangents: dict[int, Any] = {key(x): wrap(along)}
        self._affine: list[Node] = []
        self._products: list = []
        self._y = y
        self.ends, self._others = self._sorted(nodes_of([y]))
        if [key(edge) for edge in self.ends] == [key(x)] or len(self.ends) > MAX_ENDS:
            self.ends = []

    @functools.cached_property
    def gradients(self) -> list:
        """The derivatives of ``y`` with respect to each end, as if no end were computed from another."""
        targets: Any = [GradientEdge(e if isinstance(e, Node) else AccumulateGrad(e), None) for e in self.ends]  # type: ignore[arg-type]
        found = engine.run([self._y], [engine.seed(self._y, None, True)], True, True, targets, self._others)
        return [found[key(edge)][1] if key(edge) in found else None for edge in self.ends]

    def gradient(self) -> Any:
        """Return the derivatives of ``y`` with respect to ``x``, from the derivatives with respect to the ends."""
        pairs = [(g, edge) for g, edge in zip(self.gradients, self.ends) if g is not None]
        roots = [attach(data_of(g), edge) if isinstance(edge, Node) else edge for g, edge in pairs]
        found = engine.run(roots, [g for g, _ in pairs], True, True, [self._x])
        return found[key(self._x)][1] if key(self._x) in found else wrap(ops.zeros_like(data_of(self._x)))

    def falls_along(self) -> list[tuple]:
        """Pairs of a variable and a constant; their summed products differentiate the gradient's decrease.

        The decrease is that along the direction. Each of its products appears twice, with minus one factor held
        constant.
        """
        found = []
        for g, edge in zip(self.gradients, self.ends):
            if g is not None:
                moved = _whole(self._tangents[key(edge)], edge)
                found += [(g, -data_of(moved)), (moved, -data_of(g))]
        return found

    def _sorted(self, nodes: list[Node]) -> tuple[list, set[int]]:
        """Return the results that are affine in ``x`` and used by other operations, and these operations' keys."""
        moving = {key(self._x)}  # nodes that depend on x
        ends: dict[int, Any] = {}
        others: set[int] = set()

        def moved(node: Node) -> dict:
            return {key(edge): edge for edge in node.edges if edge is not None and key(edge) in moving}

        def note(node: Node) -> None:
            if moved(node):
                moving.add(node.seq)

        with state.watching(note):
            for node in nodes:
                given = moved(node)
                if not given:
                    continue
                moving.add(node.seq)  # before its tangent is computed, which may use its result
                is_block = node.rule.partial and not node.rule.elementwise  # several operations on single numbers
                if given.keys() <= self._tangents.keys() and not is_block:
                    tangent = pushforward.result_tangent(node, self._tangents, True)
                    if tangent is None:
                        moving.remove(node.seq)
                        continue
                    # A map is affine if and only if its derivative does not depend on the point.
                    if not any(key(t._node or t) in moving for t in _variables(tangent)):
                        self._tangents[node.seq] = tangent
                        self._affine.append(node)
                        continue
                others.add(node.seq)
                ends.update((place, edge) for place, edge in given.items() if place in self._tangents)
        return [ends[place] for place in sorted(ends)], others

    def pattern(self):
        """Return a CSC matrix of True where the matrix of the maps may be nonzero."""
        return self._pattern([self._tangents[key(edge)] for edge in self.ends], [self._along])

    @property
    def are_taken(self) -> bool:
        """True if the derivatives with respect to the ends are recorded, and should be used."""
        return bool(self._products)

    def pattern_by_ends(self):
        """Return a CSC matrix of True where the Hessian with respect to the ends may be nonzero."""
        self._directions = [self._program.source(np.ones(edge.shape)) for edge in self.ends]
        self._products = self._second(list(map(wrap, self._directions)))
        return self._pattern(self._products, self._directions)

    def _pattern(self, parts: list, sources: list):
        places = [getattr(x, "place", x) for x in (data_of(_whole(*pair)) for pair in zip(parts, self.ends))]
        return patterns.pattern(self._program, places, [source.place for source in sources])

    def _second(self, directions: list) -> list:
        known = {key(e): v for e, v in zip(self.ends, directions)}
        found = iter(pushforward.pushed([g for g in self.gradients if g is not None], known, True))
        return [None if g is None else next(found) for g in self.gradients]

    def columns(self, colors: np.ndarray):
        """Return, for each colour, a row for all ends: the sum of the maps' columns of that colour."""

        def moved(seed):
            tangents: dict[int, Any] = {key(self._x): seed}
            for node in self._affine:
                tangents[node.seq] = pushforward.result_tangent(node, tangents, True)
            return self._flat([tangents.get(key(edge)) for edge in self.ends])

        return traces.together(moved, patterns.seeds(colors, [self._x.shape]))

    def products(self, colors: np.ndarray):
        """Return a row per colour: the sum of that colour's columns of the Hessian with respect to the ends."""
        if self._products and not colors.any():  # reuse the product that showed the pattern, with directions of ones
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
    """Return a tangent broadcast to its value's shape; zeros for None."""
    if part is None:
        return np.zeros(edge.shape)
    return part if tuple(part.shape) == tuple(edge.shape) else ops.broadcast_to(part, tuple(edge.shape))


MAX_TERMS_PER_ELEMENT = 8
"""The largest number of terms per element of a dense product with the Hessian; beyond it no plan is made."""


class SeparableHessian:
    """A plan for the elements of ``H = A' G A`` as sums of products of an element of ``G`` and two of ``A``.

    Args:
        maps, hessian: the patterns of ``A`` and ``G``, see :meth:`AffineParts.pattern`.

    Attributes:
        pattern: the pattern of ``H``, a symmetric CSC matrix of True.
        pays: True if there are fewer terms than elements in the products with ``H`` for its colours.
    """

    def __init__(self, maps, hessian):
        size, count = maps.shape
        plan = patterns.Found(hessian, [], False, None, True).star_plan
        row, column = positions(plan.pattern)
        maps = _drop_linear_rows(maps, row)
        once = row >= column
        row, column = row[once], column[once]
        colors = column_colors(maps)
        maps = maps.tocsr()
        starts, lengths = maps.indptr, np.diff(maps.indptr)
        pairs = lengths[row] * lengths[column]  # the number of terms for each element of G
        self.pays, self.pattern = False, None
        if pairs.sum() > MAX_TERMS_PER_ELEMENT * (size + count) * count:
            return
        element = np.repeat(np.arange(len(row)), pairs)  # the element of G in each term
        number = np.arange(len(element)) - np.repeat(np.cumsum(pairs) - pairs, pairs)
        width = lengths[column[element]]
        i = maps.indices[starts[row[element]] + number // width].astype(np.int64)
        j = maps.indices[starts[column[element]] + number % width]
        kept = (row[element] != column[element]) | (i >= j)
        element, i, j = element[kept], i[kept], j[kept]
        low, places = np.unique(np.minimum(i, j) * count + np.maximum(i, j), return_inverse=True)
        order = np.argsort(places, kind="stable")
        element, i, j, self._places = element[order], i[order], j[order], places[order]
        at, color = (part[once][element] for part in plan.places)
        self._colors, self._colors_of_ends = colors, plan.colors
        self._end_indices = color * size + at
        self._map_indices = colors[i] * size + row[element], colors[j] * size + column[element]
        self._times = np.where((i == j) & (row[element] != column[element]), 2.0, 1.0)  # both orders of the two ends
        self._count = len(low)
        columns, rows = np.divmod(low, count)
        every = np.sort(np.concatenate([low, (rows * count + columns)[rows != columns]]))
        columns, rows = np.divmod(every, count)
        self._all = np.searchsorted(low, np.minimum(rows, columns) * count + np.maximum(rows, columns))
        starts = np.searchsorted(columns, np.arange(count + 1))
        self.pattern = patterns.csc((np.ones(len(every), bool), rows, starts), (count, count))
        products = int(colors.max(initial=0) + plan.colors.max(initial=0)) + 2
        self.pays = len(element) < _saved(starts, products, size + count)

    def elements(self, parts: AffineParts):
        """Return the elements of ``H`` in the order of its pattern."""
        maps = ops.reshape(parts.columns(self._colors), (-1,))
        end_products = ops.reshape(parts.products(self._colors_of_ends), (-1,))
        first, second = (ops.take(maps, places, 0) for places in self._map_indices)
        terms = first * second * self._times * ops.take(end_products, self._end_indices, 0)
        return ops.take(ops.segment_sum(terms, self._places, self._count), self._all, 0)


def may_pay(maps) -> bool:
    """True if the plan may pay off for maps of this pattern, whatever the Hessian with respect to the ends.

    The estimate assumes a diagonal Hessian, which has the fewest terms; ``H`` then has the pattern of ``A' A``. Long
    rows are ignored: they are sums that are mostly only added to the rest.
    """
    maps = maps.tocsr().astype(np.int32)
    lengths = np.diff(maps.indptr).astype(np.int64)
    few = lengths <= MAX_ROW_NONZEROS
    maps, lengths = maps[few], lengths[few]
    starts = (maps.T @ maps).tocsc().indptr
    return lengths @ (lengths + 1) // 2 < _saved(starts, int(lengths.max(initial=0)) + 1, sum(maps.shape))


def _saved(starts: np.ndarray, products: int, size: int) -> int:
    """Return how many elements of products are saved, assuming as many colours as the fullest column has nonzeros."""
    return (int(np.diff(starts).max(initial=0)) - products) * size


def _drop_linear_rows(maps, rows: np.ndarray):
    """Return the maps without nonzeros in other rows, whose ends enter ``y`` linearly, such as sums of all effects."""
    bends = np.zeros(maps.shape[0], bool)
    bends[rows] = True
    remaining = patterns.csc((bends[maps.indices], maps.indices, maps.indptr), maps.shape)
    remaining.eliminate_zeros()
    return remaining
