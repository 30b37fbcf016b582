"""Colours for the columns of a sparse matrix: one product finds those of one colour (Curtis, Powell & Reid 1974).

A product of a matrix with the sum of several unit vectors is the sum of the columns; where no two of them have an
element in one row, each element can be read off it. A symmetric matrix needs fewer colours: it is enough that of each
pair of equal elements one can be read off, which is so where any path of four vertices of the matrix' graph has three
colours, a star colouring (Coleman & Moré 1984; Gebremedhin, Manne & Pothen 2005).
"""

from __future__ import annotations

import numpy as np


def of_columns(pattern) -> np.ndarray:
    """For each column of a SciPy CSC matrix a colour; those of one colour share no row. Greedily, in order."""
    rows, columns = pattern.shape
    if np.bincount(pattern.indices, minlength=rows).max(initial=0) == columns:
        return np.arange(columns)
    taken: list[set] = [set() for _ in range(rows)]  # the colours in each row
    colors = np.zeros(columns, int)
    indices, starts = pattern.indices.tolist(), pattern.indptr.tolist()
    for j in range(columns):
        found = [taken[i] for i in indices[starts[j] : starts[j + 1]]]
        colors[j] = color = _least(set().union(*found))
        for colors_of_row in found:
            colors_of_row.add(color)
    return colors


def star(pattern) -> np.ndarray:
    """For each column of a symmetric SciPy CSC matrix its colour in a star colouring. Greedily, by falling degree."""
    count = pattern.shape[0]
    indices, starts = pattern.indices.tolist(), pattern.indptr.tolist()
    colors = [-1] * count
    first: list[dict[int, int]] = [{} for _ in range(count)]  # by colour the first neighbour of it, or -1 for several
    barred: list[set] = [set() for _ in range(count)]  # the colours of hubs of stars that a vertex is a leaf of
    for v in np.argsort(-np.diff(pattern.indptr), kind="stable").tolist():
        neighbors = [w for w in indices[starts[v] : starts[v + 1]] if w != v and colors[w] >= 0]
        forbidden = {colors[w] for w in neighbors}
        often = _repeated([colors[w] for w in neighbors])
        for w in neighbors:
            forbidden |= first[w].keys() if colors[w] in often else barred[w]
        colors[v] = color = _least(forbidden)
        for w in neighbors:
            _neighbor(first, barred, w, v, color, colors[w])
            _neighbor(first, barred, v, w, colors[w], color)
    return np.array(colors, int)


def _repeated(values: list) -> set:
    seen: set = set()
    return {x for x in values if x in seen or seen.add(x)}  # type: ignore[func-returns-value]


def _neighbor(first: list, barred: list, hub: int, leaf: int, color: int, color_of_hub: int) -> None:
    """Note a neighbour of a vertex; from the second of one colour on the vertex is the hub of a star."""
    other = first[hub].get(color)
    if other is None:
        first[hub][color] = leaf
        return
    if other >= 0:
        barred[other].add(color_of_hub)
        first[hub][color] = -1
    barred[leaf].add(color_of_hub)


def _least(forbidden: set) -> int:
    """The smallest number that is not forbidden."""
    color = 0
    while color in forbidden:
        color += 1
    return color
