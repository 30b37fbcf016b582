"""Lowering rules of gather and scatter ops: indexing, ``take``, ``set_at``, ``add_at``.

Constant indices emit no instruction: NumPy indexes the cells. A computed index is an integer in memory; it is checked
against the axis and then selects the row that a ``load`` reads or a ``store`` writes.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from ...backends import _keys
from ..array import Place
from ..table import FEW
from .code import FLOATS, NotNative
from .instructions import WHOLES
from .lowering import Lowering
from .registry import rule

MOST = 4096
"""The most rows that an op may read or write, by one instruction each."""


@rule("get_item", moves=True)
def _get_item(lowering: Lowering, step, x, key):
    return _read(lowering, lowering.array(x), key)


@rule("take", moves=True)
def _take(lowering: Lowering, step, x, indices, axis=None):
    cells = lowering.array(x)
    if not _is_value(lowering, indices):
        return np.take(cells, lowering.constants(indices), axis)
    if axis is None:
        cells, axis = cells.reshape(-1), 0
    return _read(lowering, cells, (slice(None),) * (axis % cells.ndim) + (indices,))


@rule("take_along_axis", moves=True)
def _take_along_axis(lowering: Lowering, step, x, indices, axis=-1):
    cells = lowering.array(x)
    if axis is None:
        cells = cells.reshape(-1)
    if not _is_value(lowering, indices):
        known = lowering.constants(indices)
        return np.take_along_axis(cells, known.reshape(-1) if axis is None else known, axis or 0)
    if axis is None:
        return _read(lowering, cells, (indices,)).reshape(-1)
    axis %= cells.ndim
    grids = np.ogrid[tuple(slice(n) for n in cells.shape)]
    return _read(lowering, cells, tuple(indices if i == axis else grid for i, grid in enumerate(grids)))


def _read(lowering: Lowering, cells: np.ndarray, key):
    if not _has_values(lowering, key):
        return cells[_keys.plain(lowering.constants(key))]
    rows = _Rows(lowering, cells.shape, key)
    out = np.asarray(lowering.code.new(rows.shape))
    start = lowering.code.contiguous(cells)
    lowering.code.by_position.append(range(start, start + cells.size))
    for row in rows:
        lowering.code.load(out.ravel()[row.at], start + row.first, row.counter, row.stride)
    return out


@rule("set_at", moves=True)
def _set_at(lowering: Lowering, step, x, key, updates):
    updates = lowering.cast(updates, lowering.value(step).dtype)
    if _has_values(lowering, key):
        return _written(lowering, x, key, updates)
    cells = np.array(lowering.cells(x))
    cells[_keys.plain(lowering.constants(key))] = updates
    return cells


@rule("add_at", moves=True)
def _add_at(lowering: Lowering, step, x, key, updates):
    dtype, code = lowering.value(step).dtype, lowering.code
    updates = lowering.cast(updates, dtype)

    def added(to, update):
        return code.elementwise("add", [to, update], np.shape(to), dtype)

    if _has_values(lowering, key):
        return _written(lowering, x, key, updates, added)
    cells, key = np.array(lowering.cells(x)), _keys.plain(lowering.constants(key))
    if _keys.distinct(key):
        at = cells[key]
        cells[key] = added(at if np.shape(at) else int(at), updates)
        return cells
    positions = np.arange(cells.size).reshape(cells.shape)[key]
    found, updates = cells.ravel(), np.broadcast_to(updates, positions.shape).ravel()
    if dtype == FLOATS[0] and positions.size > FEW:
        return _add_in_order(code, found, positions.ravel(), updates).reshape(cells.shape)
    for i, update in zip(positions.ravel().tolist(), updates.tolist()):
        found[i] = added(int(found[i]), update)
    return found.reshape(cells.shape)


def _add_in_order(code, cells: np.ndarray, positions: np.ndarray, updates: np.ndarray) -> np.ndarray:
    """Emit the addition of updates to elements; return all cells. Several updates may have the same index.

    Args:
        cells: the cells of a flat array, changed in place to the cells of the sums.
        positions: the index of each update.
        updates: the cell of each update.
    """
    # All additions are emitted at once, in the order of the updates, each with its own result cell. If several updates
    # have the same index, each adds to the result of the previous one, which a stable sort by index finds next to it;
    # the last result is the element. So the sum is rounded in NumPy's order.
    by_position = np.argsort(positions, kind="stable")
    again = np.diff(positions[by_position]) == 0
    to = cells[positions]
    to[by_position[1:][again]] = code.size + by_position[:-1][again]
    last = by_position[np.append(~again, True)] if len(positions) else by_position
    cells[positions[last]] = code.numbers("add", to, updates)[last]
    return cells


def _written(lowering: Lowering, x, key, updates, of_both: Callable | None = None) -> np.ndarray:
    """Emit a copy of ``x`` with elements replaced at computed indices; return its cells.

    Args:
        updates: the cells of the new elements.
        of_both: combines the cells of the old elements and of the updates; None to replace.
    """
    code, cells = lowering.code, lowering.array(x)
    rows = _Rows(lowering, cells.shape, key)
    out = code.new(cells.shape)
    if not out.size:
        return out
    code.move(cells.ravel(), out.ravel())
    start = int(out.flat[0])
    # Which of these cells are written is known only at run time. So they are noted: `tightened` leaves all
    # instructions on them unchanged.
    code.by_position.append(range(start, start + out.size))
    given = np.asarray(updates)
    given = np.broadcast_to(given.reshape(given.shape[max(given.ndim - len(rows.shape), 0) :]), rows.shape).ravel()
    for row in rows:
        update = given[row.at]
        if of_both is not None:
            here = code.new((row.size,))
            code.load(here, start + row.first, row.counter, row.stride)
            update = of_both(here, update)
        code.store(update, start + row.first, row.counter, row.stride)
    return out


def _is_value(lowering: Lowering, part) -> bool:
    return isinstance(part, Place) and not lowering.is_constant(part)


def _has_values(lowering: Lowering, key) -> bool:
    return any(_is_value(lowering, part) for part in (key if isinstance(key, tuple) else (key,)))


class _Row(NamedTuple):
    """Contiguous elements of an array that a key with computed indices selects.

    Attributes:
        first, counter, stride: the elements start at ``first + i * stride``, where ``i`` is the integer in the cell
            ``counter``.
        at: the slice of the flattened selection that they form.
    """

    first: int
    counter: int
    stride: int
    at: slice

    @property
    def size(self) -> int:
        return self.at.stop - self.at.start


class _Rows:
    """The rows of an array that a key with computed indices selects; iterating emits the bounds checks.

    Args:
        shape: the shape of the array.
        key: a NumPy key, with slots for computed indices.

    Attributes:
        shape: the shape of the selection.

    Raises:
        NotNative: the key contains a mask, or selects too many rows.
    """

    def __init__(self, lowering: Lowering, shape: tuple[int, ...], key):
        self._lowering = lowering
        parts = [
            p if _is_value(lowering, p) else lowering.constants(p) for p in (key if type(key) is tuple else (key,))
        ]
        parts = _keys.expanded(_keys.parts_of(tuple(parts)), len(shape))
        self._values: list[tuple[np.ndarray, int, int, int]] = []
        known: list = []
        axis = 0
        for part in parts:
            if isinstance(part, Place):
                part = self._note(part, shape, axis)
            if _keys.is_mask(part):
                raise NotNative("a mask together with positions that depend on values")
            known.append(part)
            axis += _keys.dimensions(part)
        self._positions = np.arange(np.prod(shape, dtype=int)).reshape(shape)[tuple(known)]
        self.shape = self._positions.shape
        self._which = self._broadcast_numbers(shape, known)

    def _note(self, part: Place, shape: tuple[int, ...], axis: int):
        """Note a computed index; return zeros in its place, so that NumPy can evaluate the rest of the key."""
        value = np.asarray(self._lowering.example(part))
        if value.dtype not in WHOLES or value.size and not shape[axis]:
            raise NotNative(f"positions of dtype {value.dtype}")
        stride = int(np.prod(shape[axis + 1 :], dtype=int))
        self._values.append((self._lowering.array(part), shape[axis], axis, stride))
        return np.zeros(value.shape, int) if value.ndim else 0

    def _broadcast_numbers(self, shape: tuple[int, ...], known: list) -> np.ndarray:
        """Return, for each selected element, its position in the index arrays after broadcasting."""
        arrays = [i for i, part in enumerate(known) if isinstance(part, np.ndarray)]
        if not arrays:
            return np.zeros(self.shape, int).ravel()
        together = np.broadcast_shapes(*(known[i].shape for i in arrays))
        count = int(np.prod(together, dtype=int))
        self._values = [(np.broadcast_to(cells, together), n, a, stride) for cells, n, a, stride in self._values]
        first = arrays[0]
        axis = sum(map(_keys.dimensions, known[:first]))
        sizes = [count if i == axis else n for i, n in enumerate(shape)]
        numbers = np.broadcast_to(np.arange(count).reshape([-1 if i == axis else 1 for i in range(len(shape))]), sizes)
        chosen = [np.zeros(together, int) if i in arrays else part for i, part in enumerate(known)]
        chosen[first] = np.arange(count).reshape(together)
        return numbers[tuple(chosen)].ravel()

    def __iter__(self) -> Iterator[_Row]:
        flat = self._positions.ravel()
        # Computed indices count as 0 in `flat`; at run time each adds its value times a stride. Contiguous elements
        # with the same computed index become one load or store.
        breaks = (np.diff(flat) != 1) | (np.diff(self._which) != 0)
        ends = [*(np.flatnonzero(breaks) + 1).tolist(), flat.size] if flat.size else []
        if len(ends) > MOST:
            raise NotNative("many positions that depend on values")
        counters: dict[int, tuple[int, int]] = {}
        begin = 0
        for end in ends:
            which = int(self._which[begin])
            if which not in counters:
                counters[which] = self._counter(which)
            yield _Row(int(flat[begin]), *counters[which], slice(begin, end))
            begin = end

    def _counter(self, which: int) -> tuple[int, int]:
        """Emit the bounds checks of an element's indices; return the cell of the offset and its stride."""
        code = self._lowering.code
        checked = [
            (code.index(int(cells.flat[which]), size, axis), stride) for cells, size, axis, stride in self._values
        ]
        if len(checked) == 1:
            return checked[0]
        terms = [code.number("whole_multiply", [cell, code.whole(stride)]) for cell, stride in checked]
        return functools.reduce(lambda a, b: code.number("whole_add", [a, b]), terms), 1
