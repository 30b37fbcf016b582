"""Colourings of the columns of a sparse matrix: columns of one colour share a product."""

from __future__ import annotations

import numpy as np


def positions(pattern) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows and columns of a CSC matrix' elements, in storage order."""
    return pattern.indices.astype(np.int64), np.repeat(np.arange(pattern.shape[1]), np.diff(pattern.indptr))


def column_colors(pattern) -> np.ndarray:
    """Return a colour for each column of a SciPy CSC matrix, assigned greedily; columns of one colour share no row."""
    rows, columns = pattern.shape
    if np.bincount(pattern.indices, minlength=rows).max(initial=0) == columns:
        return np.arange(columns)
    taken = [0] * rows  # the colours in each row, by their bits
    colors = np.zeros(columns, int)
    indices, starts = pattern.indices.tolist(), pattern.indptr.tolist()
    for j in range(columns):
        own, found = indices[starts[j] : starts[j + 1]], 0
        for i in own:
            found |= taken[i]
        color = ~found & found + 1  # the lowest bit that is not set in `found`
        for i in own:
            taken[i] |= color
        colors[j] = color.bit_length() - 1
    return colors


def star(pattern) -> np.ndarray:
    """Return a star colouring of a symmetric SciPy CSC matrix' columns, assigned greedily by falling degree."""
    count = pattern.shape[0]
    rows, columns = positions(pattern)
    if np.array_equal(rows, columns):
        return np.zeros(count, int)
    indices, starts = pattern.indices.tolist(), pattern.indptr.tolist()
    colors = [-1] * count
    first: list[dict[int, int]] = [{} for _ in range(count)]  # the first neighbour of each colour, -1 for several
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
    """Record a coloured neighbour of a vertex; the second one of a colour makes the vertex the hub of a star."""
    other = first[hub].get(color)
    if other is None:
        first[hub][color] = leaf
        return
    if other >= 0:
        barred[other].add(color_of_hub)
        first[hub][color] = -1
    barred[leaf].add(color_of_hub)


def _least(forbidden: set) -> int:
    """Return the smallest non-negative integer that is not forbidden."""
    color = 0
    while color in forbidden:
        color += 1
    return color
