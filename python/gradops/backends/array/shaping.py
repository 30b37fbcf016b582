"""Kernels over the array API: shape, creation, joining, sorting."""

from __future__ import annotations

import itertools

import numpy as np

from ... import defaults
from .._keys import cuts, inserted, turns
from .base import NUMBERS, find, public


def constants(xp, base) -> dict:
    _sized, _dtype = base.sized, base.native_dtype

    def zeros(shape, dtype=None):
        return xp.zeros(_sized(shape), dtype=_dtype(dtype or defaults.floatx()))

    def ones(shape, dtype=None):
        return xp.ones(_sized(shape), dtype=_dtype(dtype or defaults.floatx()))

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
            dtype = "int64" if all(isinstance(v, int) for v in values) else defaults.floatx()
        return base.convert(np.arange(*values), dtype)

    def eye(N, M=None, k=0, dtype=None):
        _sized((N, N if M is None else M))
        return xp.eye(N, M, k=k, dtype=_dtype(dtype or defaults.floatx()))

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
            # a product of a list, as a number of pieces that memory does not hold is then an error at once
            steps = [size // indices_or_sections] * (indices_or_sections - 1)
            indices_or_sections = list(itertools.accumulate(steps))
        edges = [0, *cuts(indices_or_sections, size), size]
        before = (slice(None),) * (axis % x.ndim)
        return [x[(*before, slice(a, b), ...)] for a, b in zip(edges, edges[1:])]

    def unstack(x, num=None, axis=0):
        return list(xp.unstack(x, axis=axis))

    def _line(x, axis):
        """The array to order, and its axis: one row for no axis, and for 0-d, which the standard does not order."""
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
