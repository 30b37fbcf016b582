"""Sums, moments, extrema and quantiles, with NumPy's ``dtype``, ``initial``, ``where``, ``ddof`` and the like."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ... import ops
from ...errors import ArgumentTypeError
from ..reductions import squared
from ._table import constant, row, shape_of


def typed(a, dtype, casting: Any = "unsafe"):
    """Return an array cast to ``dtype`` if it is given."""
    if dtype is None:
        return a
    if not np.can_cast(np.dtype(ops.dtype(a)), np.dtype(dtype), casting):
        raise ArgumentTypeError(f"`dtype`: {ops.dtype(a)} is not cast to {np.dtype(dtype)}.", argument="dtype")
    return ops.cast(a, np.dtype(dtype).name)


def _kept(a, where, fill):
    """Return an array with ``fill`` in place of the elements that ``where`` excludes."""
    return (
        a if where is True else ops.where(np.broadcast_to(where, shape_of(a)) if _is_plain(where) else where, a, fill)
    )


def _is_plain(where) -> bool:
    return isinstance(where, (bool, np.bool_, np.ndarray, list))


def _sum(a, axis=None, dtype=None, keepdims=False, initial=0, where=True):
    y = typed(ops.sum(_kept(typed(a, dtype), where, 0), axis, keepdims), dtype)
    return y if type(initial) is int and initial == 0 else y + initial


def _prod(a, axis=None, dtype=None, keepdims=False, initial=1, where=True):
    y = typed(ops.prod(_kept(typed(a, dtype), where, 1), axis, keepdims), dtype)
    return y if type(initial) is int and initial == 1 else y * initial


def _count(a, axis, where):
    """Return the number of elements in each result, with reduced axes kept."""
    whole = np.ones(shape_of(a))
    if where is not True and not _is_plain(where):
        return ops.sum(ops.cast(ops.broadcast_to(where, shape_of(a)), "float64"), axis, True)
    return np.sum(whole, _axes(axis), keepdims=True, where=where)


def _axes(axis):
    return tuple(axis) if isinstance(axis, list) else axis


def _inexact(a, dtype):
    if dtype is not None and np.dtype(dtype).kind != ("c" if "complex" in ops.dtype(a) else "f"):
        raise ArgumentTypeError(
            f"`dtype` of a mean or variance must be a floating one here; got {np.dtype(dtype)}.", argument="dtype"
        )
    return typed(a, dtype)


def _mean(a, axis=None, dtype=None, keepdims=False, where=True):
    a = _inexact(a, dtype)
    if where is True:
        return ops.mean(a, axis, keepdims)
    y = ops.divide(ops.sum(_kept(a, where, 0), axis, True), _like(_count(a, axis, where), a))
    return y if keepdims else _dropped(y, axis)


def _like(count, a):
    """Return numbers in the precision of ``a``."""
    return ops.cast(count, _real(ops.dtype(a))) if "float" in ops.dtype(a) or "complex" in ops.dtype(a) else count


def _real(dtype: str) -> str:
    return {"complex64": "float32", "complex128": "float64"}.get(dtype, dtype)


def _dropped(y, axis):
    return ops.reshape(y, ()) if axis is None else ops.squeeze(y, axis)


def _var(a, axis=None, dtype=None, ddof=0, keepdims=False, where=True, mean=None, correction=None):
    a, ddof = _inexact(a, dtype), ddof if correction is None else correction
    if where is True and mean is None and not ddof:
        return ops.var(a, axis, keepdims)
    centre = _mean(a, axis, None, True, where) if mean is None else mean
    squares = squared(a - centre)
    count = _count(a, axis, where) - ddof
    with np.errstate(all="ignore"):
        y = ops.divide(ops.sum(_kept(squares, where, 0), axis, True), _like(ops.maximum(count, 0), squares))
    return y if keepdims else _dropped(y, axis)


def _std(a, axis=None, dtype=None, ddof=0, keepdims=False, where=True, mean=None, correction=None):
    if where is True and mean is None and not ddof and not correction:
        return ops.std(_inexact(a, dtype), axis, keepdims)
    return ops.sqrt(_var(a, axis, dtype, ddof, keepdims, where, mean, correction))


def _extreme(op: Callable, pick: Callable) -> Callable:
    def extreme(a, axis=None, keepdims=False, initial=None, where=True):
        if where is not True:
            if initial is None:
                raise ArgumentTypeError("`where` of an extreme needs `initial`, the value where nothing counts.")
            a = _kept(a, where, initial)
        if initial is None:
            return op(a, axis, keepdims)
        return (
            pick(op(a, axis, keepdims), initial)
            if shape_of(a) and 0 not in shape_of(a)
            else op(ops.concatenate([ops.reshape(a, (-1,)), ops.reshape(initial, (1,))]))
        )

    return extreme


def _truth(op: Callable, neutral: bool) -> Callable:
    def truth(a, axis=None, keepdims=False, where=True):
        return op(a if where is True else ops.where(where, ops.cast(a, "bool"), neutral), axis, keepdims)

    return truth


def _ignore_nan(reduction: Callable, fill=None) -> Callable:
    """Ignore NaN elements: replace them with ``fill``, or exclude them through ``where``."""

    def sums(a, axis=None, dtype=None, keepdims=False, initial=None, where=True):
        a = ops.where(ops.isnan(a), fill, a)
        return reduction(a, axis, dtype, keepdims, fill if initial is None else initial, where)

    def mean(a, axis=None, dtype=None, keepdims=False, where=True):
        return reduction(ops.where(ops.isnan(a), 0, a), axis, dtype, keepdims, where=_no_nan(a, where))

    def spread(a, axis=None, dtype=None, ddof=0, keepdims=False, where=True, mean=None, correction=None):
        keep = _no_nan(a, where)
        return reduction(ops.where(ops.isnan(a), 0, a), axis, dtype, ddof, keepdims, keep, mean, correction)

    return sums if fill is not None else mean if reduction is _mean else spread


def _no_nan(a, where):
    keep = ops.logical_not(ops.isnan(a))
    keep = keep if where is True else ops.logical_and(keep, where)
    return keep.data if hasattr(keep, "_node") and isinstance(keep.data, np.ndarray) else keep


row("sum", _sum, op=ops.sum)
row("prod", _prod, op=ops.prod)
row("mean", _mean, op=ops.mean)
row("var", _var, op=ops.var)
row("std", _std, op=ops.std)


def _ordered(op: Callable, last: float) -> Callable:
    """Return an extremum, of complex numbers too: NumPy orders them by real part, then by imaginary part."""

    def extreme(a, axis=None, keepdims=False):
        if "complex" not in ops.dtype(a):
            return op(a, axis, keepdims)
        first = op(ops.real(a), axis, True)
        second = op(ops.where(ops.equal(ops.real(a), first), ops.imag(a), last), axis, True)
        y = first + 1j * second
        return y if keepdims else _dropped(y, axis)

    return extreme


_max, _min = _ordered(ops.max, -np.inf), _ordered(ops.min, np.inf)
row("max amax", _extreme(_max, ops.maximum), op=_max)
row("min amin", _extreme(_min, ops.minimum), op=_min)
row("nanmax", _extreme(ops.nanmax, ops.fmax))
row("nanmin", _extreme(ops.nanmin, ops.fmin))
row("all", _truth(ops.all, True), op=ops.all)
row("any", _truth(ops.any, False), op=ops.any)
row("nansum", _ignore_nan(_sum, 0))
row("nanprod", _ignore_nan(_prod, 1))
row("nanmean", _ignore_nan(_mean))
row("nanvar", _ignore_nan(_var))
row("nanstd", _ignore_nan(_std))
row("ptp", ops.ptp, "a axis keepdims")
for _name in ("argmax", "argmin", "nanargmax", "nanargmin"):
    row(_name, getattr(ops, _name), "a axis keepdims")
for _name in ("cumsum", "cumprod", "nancumsum", "nancumprod"):
    row(_name, getattr(ops, _name), "a axis dtype")
for _name in ("median", "nanmedian"):
    row(_name, getattr(ops, _name), "a axis keepdims", idle="overwrite_input")
for _name in ("quantile", "percentile", "nanquantile", "nanpercentile"):
    row(_name, getattr(ops, _name), "a q axis method keepdims", idle="overwrite_input")


@row("count_nonzero")
def _count_nonzero(a, axis=None, keepdims=False):
    y = ops.count_nonzero(a, axis)
    return ops.cast(ops.sum(ops.cast(ops.not_equal(a, 0), "int64"), axis, True), "int64") if keepdims else y


def _running(op: Callable, first: int) -> Callable:
    def running(x, axis=None, dtype=None, include_initial=False):
        if axis is None:
            if len(shape_of(x)) != 1:
                raise ArgumentTypeError("`axis` must be given for an array of several dimensions.", argument="axis")
            axis = 0
        y = op(x, axis, dtype)
        if not include_initial:
            return y
        start = [1 if i == axis % len(shape_of(y)) else n for i, n in enumerate(shape_of(y))]
        return ops.concatenate([ops.full(start, first, ops.dtype(y)), y], axis)

    return running


row("cumulative_sum", _running(ops.cumsum, 0))
row("cumulative_prod", _running(ops.cumprod, 1))


@row("average")
def _average(a, axis=None, weights=None, returned=False, keepdims=False):
    y = ops.average(a, axis, weights)
    rank = len(shape_of(a))
    gone = range(rank) if axis is None else {i % rank for i in np.atleast_1d(axis)}
    reduced_shape = tuple(1 if i in gone else n for i, n in enumerate(shape_of(a)))
    y = ops.reshape(y, reduced_shape) if keepdims else y
    if not returned:
        return y
    if weights is None:
        total = ops.full_like(y, int(np.prod(shape_of(a))) / max(int(np.prod(reduced_shape)), 1))
    else:
        if shape_of(weights) != shape_of(a):
            weights = ops.reshape(weights, [n if i in gone else 1 for i, n in enumerate(shape_of(a))])
        total = ops.sum(ops.broadcast_to(weights, shape_of(a)), axis, keepdims)
    return y, ops.cast(total, ops.dtype(y))


@row("cov")
def _cov(m, y=None, rowvar=True, bias=False, ddof=None, fweights=None, aweights=None, dtype=None):
    x = _observations(m, y, rowvar, dtype)
    ddof = (0 if bias else 1) if ddof is None else ddof
    f, a = (None if w is None else np.asarray(constant(w, "numpy.cov")) for w in (fweights, aweights))
    weights = f if a is None else a if f is None else f * a
    if weights is None:
        centred, scale = x - ops.mean(x, 1, True), shape_of(x)[1] - ddof
        turned = centred
    else:
        total = weights.sum()
        centred = x - ops.reshape(ops.matmul(x, weights / total), (-1, 1))
        scale = total - (ddof if a is None else ddof * (weights * a).sum() / total)
        turned = centred * weights
    with np.errstate(all="ignore"):
        factor = 1 / np.float64(max(scale, 0))
    return ops.squeeze(ops.matmul(turned, ops.transpose(ops.conj(centred))) * float(factor))


def _observations(m, y, rowvar, dtype):
    def rows(x):
        x = ops.reshape(x, (1, -1)) if len(shape_of(x)) < 2 else x if rowvar else ops.transpose(x)
        return typed(x, dtype, "same_kind")

    return rows(m) if y is None else ops.concatenate([rows(m), rows(y)])


@row("corrcoef")
def _corrcoef(x, y=None, rowvar=True, dtype=None):
    x = _observations(x, y, rowvar, dtype)
    return ops.corrcoef(x if shape_of(x)[0] > 1 else ops.reshape(x, (-1,)))


@row("histogram")
def _histogram(a, bins=10, range=None, density=None, weights=None):
    found, edges = ops.histogram(a, bins, range)
    if weights is not None:
        x, n = ops.reshape(a, (-1,)), shape_of(found)[0]
        if shape_of(weights) != shape_of(a):
            raise ValueError("weights should have the same shape as a.")
        place = ops.where(ops.equal(x, edges[-1]), n, ops.searchsorted(edges, x, "right"))  # 0 and n + 1 are outside
        found = ops.bincount(ops.minimum(place, n + 1), ops.reshape(weights, (-1,)), n + 2)[1:-1]
    return (found / ops.diff(edges) / ops.sum(found) if density else found), edges


row("histogram_bin_edges", lambda a, bins=10, range=None: ops.histogram(a, bins, range)[1])
row("bincount", ops.bincount, "x weights minlength")
