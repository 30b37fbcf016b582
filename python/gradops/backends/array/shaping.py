"""Kernels over the array API for shape, creation, joining, sorting, indexing and scattering.

The standard cannot write to positions given by an array, so updates are gathered instead: for each element of the
result, NumPy integers on the host say which updates it receives.
"""

from __future__ import annotations

import itertools
import math

import numpy as np

from ... import dtypes
from .._keys import cuts, expanded, inserted, is_array, last_of_each, parts_of, turns
from .base import NUMBERS, find, public


def constants(xp, base) -> dict:
    _sized, _dtype = base.sized, base.native_dtype

    def zeros(shape, dtype=None):
        return xp.zeros(_sized(shape), dtype=_dtype(dtype or dtypes.floatx()))

    def ones(shape, dtype=None):
        return xp.ones(_sized(shape), dtype=_dtype(dtype or dtypes.floatx()))

    def zeros_like(x, dtype=None):
        return xp.zeros_like(x, dtype=x.dtype if dtype is None else _dtype(dtype))

    def ones_like(x, dtype=None):
        return xp.ones_like(x, dtype=x.dtype if dtype is None else _dtype(dtype))

    return public(locals())


def kernels(xp, base) -> dict:
    _sized, _dtype = base.sized, base.native_dtype

    def reshape(x, newshape):
        return xp.reshape(x, _sized(newshape))

    _permuted, _concatenated = find(xp, "permute_dims", "permute"), find(xp, "concatenate", "concat")

    def transpose(x, axes=None):
        return _permuted(x, tuple(range(x.ndim))[::-1] if axes is None else tuple(axes))

    def expand_dims(x, axis):
        for a in inserted(axis, x.ndim):
            x = xp.expand_dims(x, axis=a)
        return x

    def squeeze(x, axis=None):
        ones = tuple(i for i, n in enumerate(x.shape) if n == 1)
        return xp.squeeze(x, axis=ones if axis is None else base.axes_of(x, axis))

    def broadcast_to(x, shape):
        return xp.broadcast_to(x, _sized(shape))

    def flip(x, axis=None):
        return xp.flip(x, axis=base.axes_of(x, axis))

    def roll(x, shift, axis=None):
        shift, axis = turns(shift, axis if x.ndim else base.axes_of(x, axis) or None)
        return xp.roll(x, shift, axis=axis)

    def arange(start, stop=None, step=None, dtype=None):
        if stop is None:
            start, stop = 0, start
        step = 1 if step is None else step
        values = [v if type(v) in NUMBERS else base.to_numpy(v).item() for v in (start, stop, step)]
        if dtype is None:
            dtype = "int64" if all(isinstance(v, int) for v in values) else dtypes.floatx()
        return base.convert(np.arange(*values), dtype)

    def eye(N, M=None, k=0, dtype=None):
        _sized((N, N if M is None else M))
        return xp.eye(N, M, k=k, dtype=_dtype(dtype or dtypes.floatx()))

    def tril(x, k=0):
        return xp.tril(x, k=k)

    def triu(x, k=0):
        return xp.triu(x, k=k)

    if hasattr(xp, "diagonal"):

        def diagonal(x, offset=0, axis1=0, axis2=1):
            return xp.diagonal(x, offset, axis1, axis2)

    def concatenate(xs, axis=0):
        if axis is None:
            raise TypeError("an axis is needed")
        return _concatenated(base.together(xs), axis=axis)

    def stack(xs, axis=0):
        return xp.stack(base.together(xs), axis=axis)

    def split(x, indices_or_sections, axis=0):
        size = x.shape[axis]
        if isinstance(indices_or_sections, int):
            if indices_or_sections < 1 or size % indices_or_sections:
                raise ValueError(f"{indices_or_sections} sections do not divide a dimension of {size}")
            # a list product, so that a number of sections too large for memory raises immediately
            steps = [size // indices_or_sections] * (indices_or_sections - 1)
            indices_or_sections = list(itertools.accumulate(steps))
        edges = [0, *cuts(indices_or_sections, size), size]
        before = (slice(None),) * (axis % x.ndim)
        return [x[(*before, slice(a, b), ...)] for a, b in zip(edges, edges[1:])]

    def unstack(x, num=None, axis=0):
        return list(xp.unstack(x, axis=axis))

    def _line(x, axis):
        """The array to sort and its axis; flat if ``axis`` is None or the array 0-d, which the standard cannot sort."""
        return (xp.reshape(x, (-1,)), -1) if axis is None or not x.ndim else (x, axis)

    def sort(x, axis=-1):
        if base.is_bool(x):
            return base.cast(sort(base.cast(x, "int8"), axis), "bool")
        line, along = _line(x, axis)
        y = xp.sort(line, axis=along, stable=True)
        return y if axis is None else xp.reshape(y, x.shape)

    def argsort(x, axis=-1):
        line, along = _line(base.cast(x, "int8") if base.is_bool(x) else x, axis)
        y = base.cast(xp.argsort(line, axis=along, stable=True), "int64")
        return y if axis is None else xp.reshape(y, x.shape)

    def searchsorted(sorted_sequence, values, side="left"):
        return base.cast(xp.searchsorted(*base.promoted(sorted_sequence, values), side=side), "int64")

    return {**constants(xp, base), **public(locals())}


# Indexing, by NumPy's rules, and scattering ---------------------------------------------------------------------------


def rounds(positions: np.ndarray, size: int) -> np.ndarray:
    """For each of ``size`` positions, the indices of ``positions`` that name it, padded with their number."""
    order = np.argsort(positions, kind="stable")
    found = positions[order]
    turn = np.arange(len(found)) - np.searchsorted(found, found)
    rows = np.full((size, turn.max(initial=-1) + 1), len(found))
    rows[found, turn] = order
    return rows


def extreme(name: str, smallest: bool):
    """The smallest (or largest) value of a dtype: the result for an empty segment."""
    if dtypes.is_floating(name):
        return -math.inf if smallest else math.inf
    if name == "bool":
        return not smallest
    bits = dtypes.bits(name) - (name[0] != "u")
    return 2**bits - 1 if not smallest else 0 if name[0] == "u" else -(2**bits)


def taps(x, window, strides, dilation) -> list:
    """Strided slices of images (the last two dimensions): for each tap, its element in every window."""
    sizes = [(n - (k - 1) * d - 1) // s + 1 for n, k, s, d in zip(x.shape[2:], window, strides, dilation)]
    found = []
    for place in np.ndindex(*window):
        key = [slice(i * d, i * d + (m - 1) * s + 1, s) for i, d, s, m in zip(place, dilation, strides, sizes)]
        found.append(x[(slice(None), slice(None), *key)])
    return found


def selection(xp, base) -> dict:
    _truths, _promoted, _chosen = base.truths, base.promoted, base.chosen

    def where(condition, x1=None, x2=None):
        if x1 is None or x2 is None:
            if x1 is not x2:
                raise ValueError("only one of `x1` and `x2` is given")
            return base.nonzero(condition)
        if type(x1) in NUMBERS and type(x2) in NUMBERS:
            x1 = base.convert(x1, like=condition)
        return _chosen(_truths(condition), *_promoted(x1, x2))

    return public(locals())


def indexing(xp, base) -> dict:
    _joined = find(xp, "concat", "concatenate")

    def _at(x, positions):
        """The elements of the flattened ``x`` at an array of positions."""
        flat = xp.reshape(x, (-1,))
        return xp.reshape(xp.take(flat, base.convert(positions.reshape(-1), like=x), axis=0), positions.shape)

    def _flat_positions(x, key):
        """The positions of the elements of ``x[key]`` in the flattened ``x``."""
        parts = [base.to_numpy(p) if base.is_tensor_type(type(p)) else p for p in parts_of(key)]
        return np.arange(math.prod(x.shape)).reshape(x.shape)[tuple(parts)]

    def get_item(x, key):
        parts = parts_of(key)
        if any(map(is_array, parts)):
            return _at(x, _flat_positions(x, key))
        sizes = iter(x.shape)
        return x[tuple(None if p is None else _within(p, next(sizes)) for p in expanded(parts, x.ndim))]

    def _within(part, size):
        """A slice clipped to the dimension, because the standard leaves slices beyond it undefined."""
        if not isinstance(part, slice):
            return part
        start, stop, step = part.indices(size)
        return slice(start, None if stop < 0 else stop, step) if range(start, stop, step) else slice(0, 0)

    def take(x, indices, axis=None):
        if axis is None:
            x, axis = xp.reshape(x, (-1,)), 0
        size, axis = x.shape[axis], axis % x.ndim
        flat = xp.reshape(base.cast(indices, "int64"), (-1,))
        if xp.any((flat < -size) | (flat >= size)):
            raise IndexError(f"a position is out of range for a dimension of {size}")
        y = xp.take(x, xp.where(flat < 0, flat + size, flat), axis=axis)
        return xp.reshape(y, (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]))

    def take_along_axis(x, indices, axis=None):
        if axis is None:
            x, indices, axis = xp.reshape(x, (-1,)), xp.reshape(indices, (-1,)), 0
        places = np.arange(math.prod(x.shape)).reshape(x.shape)
        return _at(x, np.take_along_axis(places, base.to_numpy(indices), axis))

    def _written(x, key, updates):
        """The positions that a key selects and the update for each, both as vectors."""
        positions = np.asarray(_flat_positions(x, key))
        updates = base.cast(base.convert(updates, like=x), base.dtype_name(x))
        return positions.reshape(-1), xp.reshape(xp.broadcast_to(updates, positions.shape), (-1,))

    def add_at(x, key, updates):
        if base.is_bool(x):  # for bools `add` means "or"
            return base.cast(add_at(base.cast(x, "int64"), key, base.cast(updates, "int64")), "bool")
        positions, updates = _written(x, key, updates)
        if not len(positions):
            return base.copy(x)
        several = _at(_joined([updates, xp.zeros_like(updates[:1])], axis=0), rounds(positions, math.prod(x.shape)))
        return x + xp.reshape(xp.sum(several, axis=1), x.shape)

    def set_at(x, key, updates):
        positions, updates = _written(x, key, updates)
        if not len(positions):
            return base.copy(x)
        source = np.full(math.prod(x.shape), -1)
        last = last_of_each(positions)
        source[positions[last]] = last
        source = source.reshape(x.shape)
        return xp.where(base.convert(source >= 0, like=x), _at(updates, np.maximum(source, 0)), x)

    def _segments(name, smallest):
        def kernel(data, segment_ids, num_segments=None, sorted=False):
            if base.is_bool(data):
                return base.cast(kernel(base.cast(data, "int8"), segment_ids, num_segments), "bool")
            ids = base.to_numpy(segment_ids)
            count = int(ids.max(initial=-1)) + 1 if num_segments is None else num_segments
            rows = rounds(np.where((ids >= 0) & (ids < count), ids, count), count + 1)[:count]
            none = xp.full((1, *data.shape[1:]), extreme(base.dtype_name(data), smallest), dtype=data.dtype)
            rows = np.pad(rows, [(0, 0), (0, 1)], constant_values=len(ids))
            taken = xp.take(_joined([data, none], axis=0), base.convert(rows.reshape(-1)), axis=0)
            return getattr(xp, name)(xp.reshape(taken, (*rows.shape, *data.shape[1:])), axis=1)

        return kernel

    segment_max, segment_min = _segments("max", True), _segments("min", False)

    return {**selection(xp, base), **public(locals())}
