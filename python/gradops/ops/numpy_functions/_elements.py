"""Functions of elements and sequences: choices, interpolation, sorting, signals, polynomials."""

from __future__ import annotations

import functools

import numpy as np

from ... import ops
from ._table import constant, described, row, shape_of

for _name in ("sinc", "i0"):
    row(_name, getattr(ops, _name), "x")
for _name in ("real", "imag"):
    row(_name, getattr(ops, _name), "val")
row("round around", ops.round, "a decimals")
row("fix", ops.trunc, "x")
row("isneginf", ops.isneginf, "x")
row("isposinf", ops.isposinf, "x")
row("isreal", ops.isreal, "x")
row("iscomplex", lambda x: ops.logical_not(ops.isreal(x)))
row("nan_to_num", ops.nan_to_num, "x nan posinf neginf", idle="copy")
row("select", ops.select, "condlist choicelist default")
row("where", ops.where, "condition x y")
row("angle", lambda z, deg=False: ops.rad2deg(ops.angle(z)) if deg else ops.angle(z))
row("linspace", ops.linspace, "start stop num endpoint retstep dtype axis", idle="device")
row("logspace", ops.logspace, "start stop num endpoint base dtype axis")
row("geomspace", ops.geomspace, "start stop num endpoint dtype axis")
row("isin in1d", ops.isin, "element test_elements assume_unique invert")
row("unravel_index", ops.unravel_index, "indices shape")
row("nonzero", ops.nonzero, "a")


@row("clip")
def _clip(a, a_min=np._NoValue, a_max=np._NoValue, min=np._NoValue, max=np._NoValue):
    if a_min is a_max is np._NoValue:
        a_min, a_max = (None if x is np._NoValue else x for x in (min, max))
    elif a_min is np._NoValue or a_max is np._NoValue or min is not max:
        raise ValueError("`clip` takes `a_min` and `a_max`, or `min` and `max`.")
    return ops.clip(a, a_min, a_max)


@row("trapezoid trapz")
def _trapezoid(y, x=None, dx=1.0, axis=-1):
    if not hasattr(y, "dtype") or _is_inexact(y):
        return ops.trapezoid(y, x, dx, axis)
    if x is not None:
        dx = ops.diff(x if len(shape_of(x)) == 1 else ops.moveaxis(x, axis, -1))
    y = ops.moveaxis(y, axis, -1)
    # Operators add integers and bools in their own dtype, as NumPy does; the sums may wrap.
    return ops.sum(dx * (y[..., 1:] + y[..., :-1]) / 2.0, -1)


def _is_inexact(x) -> bool:
    return ops.dtype(x).startswith(("float", "bfloat", "complex"))


# Sorting --------------------------------------------------------------------------------------------------------------

row("sort", ops.sort, "a axis", idle="kind stable")
row("sort_complex", lambda a: ops.cast(ops.sort(ops.reshape(a, shape_of(a))), _complex(ops.dtype(a))))


def _complex(dtype: str) -> str:
    return "complex64" if dtype in ("float32", "float16", "complex64") else "complex128"


row("argsort", ops.argsort, "a axis", idle="kind stable")


@row("partition")
def _partition(a, kth, axis=-1):
    flat = ops.reshape(a, (-1,)) if axis is None else a
    axis = 0 if axis is None else axis
    return ops.take_along_axis(flat, np.argpartition(constant(flat), kth, axis), axis)


@row("argpartition")
def _argpartition(a, kth, axis=-1):
    return ops.argpartition(a, kth, axis) if isinstance(kth, int) else np.argpartition(constant(a), kth, axis)


@row("searchsorted")
def _searchsorted(a, v, side="left", sorter=None):
    return ops.searchsorted(a if sorter is None else ops.take(a, sorter, 0), v, side)


@row("digitize")
def _digitize(x, bins, right=False):
    return np.digitize(constant(x), constant(bins), right) if right else ops.digitize(x, bins)


def _unique_places(ar, axis=None, equal_nan=True):
    return np.unique(np.asarray(constant(ar)), return_index=True, axis=axis, equal_nan=equal_nan)[1]


@row("unique", idle="sorted")
def _unique(ar, return_index=False, return_inverse=False, return_counts=False, axis=None, equal_nan=True):
    flags = (return_index, return_inverse, return_counts)
    more = np.unique(np.asarray(constant(ar)), *flags, axis, equal_nan=equal_nan) if any(flags) else (None,)
    places = _unique_places(ar, axis, equal_nan)
    kept = ops.take(ops.reshape(ar, (-1,)) if axis is None else ar, places, axis or 0)
    return (kept, *more[1:]) if any(flags) else kept


@row("unique_values")
def _unique_values(x):
    return _unique(x, equal_nan=False)


def _unique_result(name: str, fields: list):
    def unique(x):
        function = getattr(np, name)
        found = function(np.asarray(constant(x)))
        return type(found)(_unique_values(x), *(getattr(found, f) for f in fields))

    row(name, unique)


_unique_result("unique_all", ["indices", "inverse_indices", "counts"])
_unique_result("unique_counts", ["counts"])
_unique_result("unique_inverse", ["inverse_indices"])


def _set_of_two(name: str):
    """Return a set function of two arrays that takes its elements from the arrays, so that gradients flow."""

    def of_two(ar1, ar2, assume_unique=False):
        both = ops.concatenate([ops.reshape(ar1, (-1,)), ops.reshape(ar2, (-1,))])
        known = np.asarray(constant(both))
        plain = np.asarray(constant(ar1)), np.asarray(constant(ar2))
        found = getattr(np, name)(*plain, *(() if name == "union1d" else (assume_unique,)))
        order = np.argsort(known, kind="stable")
        return ops.take(both, order[np.searchsorted(known, found, sorter=order)], 0)

    row(name, (lambda ar1, ar2: of_two(ar1, ar2)) if name == "union1d" else of_two)


for _name in ("union1d", "intersect1d", "setdiff1d", "setxor1d"):
    _set_of_two(_name)


# Choices and interpolation --------------------------------------------------------------------------------------------


@row("piecewise")
def _piecewise(x, condlist, funclist, *args, **kw):
    shape = shape_of(x)
    if (
        isinstance(condlist, (bool, np.bool_))
        or not isinstance(condlist, (list, tuple))
        or (condlist and np.ndim(described(condlist[0])) == 0 and len(shape) > 0)
    ):
        condlist = [condlist]
    conditions = [ops.broadcast_to(c, shape) for c in condlist]
    if len(funclist) == len(conditions) + 1:
        conditions.append(ops.logical_not(functools.reduce(ops.logical_or, conditions)))
    if len(funclist) != len(conditions):
        raise ValueError(f"with {len(condlist)} condition(s), either {len(condlist)} or one more function is expected")
    y = ops.zeros_like(x)
    for condition, value in zip(conditions, funclist):
        if not callable(value):
            y = ops.where(condition, ops.cast(value, ops.dtype(x)), y)
            continue
        places = np.flatnonzero(np.asarray(constant(condition)))  # as in NumPy, the function gets only these elements
        if places.size:
            part = ops.cast(value(ops.take(ops.reshape(x, (-1,)), places, 0), *args, **kw), ops.dtype(x))
            part = ops.broadcast_to(part, places.shape)
            y = ops.reshape(ops.set_at(ops.reshape(y, (-1,)), places, part), shape)
    return y


@row("interp")
def _interp(x, xp, fp, left=None, right=None, period=None):
    xp, fp = ops.array(xp), ops.array(fp)
    if period is not None:
        if period == 0:
            raise ValueError("period must be a non-zero value")
        period = abs(period)
        order = np.argsort(np.asarray(constant(xp)) % period)
        x, xp, fp = x % period, ops.take(xp % period, order, 0), ops.take(fp, order, 0)
        xp = ops.concatenate([xp[-1:] - period, xp, xp[:1] + period])
        fp = ops.concatenate([fp[-1:], fp, fp[:1]])
        left = right = None
    n = shape_of(xp)[0]
    if n == 0:
        raise ValueError("array of sample points is empty")
    if n == 1:
        y = fp[0] + 0 * x
    else:
        at = ops.clip(ops.searchsorted(xp, x, "right"), 1, n - 1)
        x0, y0 = ops.take(xp, at - 1, 0), ops.take(fp, at - 1, 0)
        inner = ops.clip(x, xp[0], xp[-1])
        y = y0 + (inner - x0) * ((ops.take(fp, at, 0) - y0) / (ops.take(xp, at, 0) - x0))
        y = ops.where(ops.greater_equal(x, xp[-1]), fp[-1], y)
    y = y if left is None else ops.where(ops.less(x, xp[0]), left, y)
    return y if right is None else ops.where(ops.greater(x, xp[-1]), right, y)


@row("unwrap")
def _unwrap(p, discont=None, axis=-1, period=2 * np.pi):
    half = period / 2
    steps = ops.diff(p, 1, axis)
    small = ops.mod(steps + half, period) - half
    small = ops.where(ops.logical_and(ops.equal(small, -half), ops.greater(steps, 0)), half, small)
    turns = ops.where(ops.less(ops.abs(steps), half if discont is None else discont), 0.0, small - steps)
    edge = ops.zeros_like(ops.take(p, [0], axis))
    return p + ops.concatenate([edge, ops.cumsum(turns, axis)], axis)


@row("diff")
def _diff(a, n=1, axis=-1, prepend=None, append=None):
    shape = shape_of(a)
    if not shape:
        raise ValueError("diff requires input that is at least one dimensional")
    edge = [1 if i == axis % len(shape) else size for i, size in enumerate(shape)]
    ends = [x if x is None or len(shape_of(x)) else ops.broadcast_to(x, edge) for x in (prepend, append)]
    parts = [x for x in (ends[0], a, ends[1]) if x is not None]
    return ops.diff(a if len(parts) == 1 else ops.concatenate(parts, axis), n, axis)


@row("ediff1d")
def _ediff1d(ary, to_end=None, to_begin=None):
    parts = [None if x is None else ops.reshape(x, (-1,)) for x in (to_begin, ary, to_end)]
    parts[1] = ops.diff(parts[1])
    return ops.concatenate([x for x in parts if x is not None])


@row("gradient")
def _gradient(f, *varargs, axis=None, edge_order=1):
    rank = len(shape_of(f))
    axes = tuple(range(rank)) if axis is None else tuple(i % rank for i in np.atleast_1d(axis))
    spaces = [1.0] * len(axes) if not varargs else list(varargs) * len(axes) if len(varargs) == 1 else list(varargs)
    if len(spaces) != len(axes) or len(varargs) == 1 and len(shape_of(varargs[0])) and len(axes) > 1:
        raise TypeError("invalid number of arguments")
    if edge_order not in (1, 2):
        raise ValueError("'edge_order' greater than 2 not supported")
    found = [_slopes(f, h, i, edge_order) for i, h in zip(axes, spaces)]
    return found[0] if len(found) == 1 else tuple(found)


def _slopes(f, h, axis: int, edge_order: int):
    n = shape_of(f)[axis]
    if n < edge_order + 1:
        raise ValueError("Shape of array too small to calculate a numerical gradient")
    y = ops.moveaxis(f, axis, -1)
    y = y if "float" in ops.dtype(y) or "complex" in ops.dtype(y) else ops.cast(y, "float64")
    if len(shape_of(h)) == 0:
        first = last = before = after = h
        even = True
    else:
        steps = h[1:] - h[:-1]
        known = np.asarray(constant(steps))
        even = bool(np.all(known == known[0]))
        first, last, before, after = steps[0], steps[-1], steps[:-1], steps[1:]
        before, after = (first, first) if even else (before, after)
        h = first
    if even:
        inner = (y[..., 2:] - y[..., :-2]) / (2.0 * h)
    else:
        total = before + after
        inner = (
            -(after / (before * total)) * y[..., :-2]
            + ((after - before) / (before * after)) * y[..., 1:-1]
            + (before / (after * total)) * y[..., 2:]
        )
    if edge_order == 1:
        ends = (y[..., 1:2] - y[..., :1]) / first, (y[..., -1:] - y[..., -2:-1]) / last
    else:
        second, last_but_one = (h, h) if even else (after[0], before[-1])
        ends = (
            _edge(y[..., :3], first, second, 1.0),
            _edge(y[..., :-4:-1] if n > 3 else y[..., ::-1], last, last_but_one, -1.0),
        )
    return ops.moveaxis(ops.concatenate([ends[0], inner, ends[1]], -1), -1, axis)


def _edge(y, d1, d2, sign: float):
    """Return the slope at the first of three points."""
    a, b, c = -(2.0 * d1 + d2) / (d1 * (d1 + d2)), (d1 + d2) / (d1 * d2), -d1 / (d2 * (d1 + d2))
    return sign * (a * y[..., :1] + b * y[..., 1:2] + c * y[..., 2:3])


@row("correlate")
def _correlate(a, v, mode="valid"):
    return ops.correlate(a, v, _mode(mode))


@row("convolve")
def _convolve(a, v, mode="full"):
    a, v = ops.reshape(a, (-1,)), ops.reshape(v, (-1,))
    a, v = (v, a) if shape_of(v)[0] > shape_of(a)[0] else (a, v)
    return ops.correlate(a, ops.conj(ops.flip(v)), _mode(mode))


def _mode(mode) -> str:
    return (
        mode
        if isinstance(mode, str) and len(mode) > 1
        else {0: "valid", 1: "same", 2: "full"}.get(mode) or {"v": "valid", "s": "same", "f": "full"}[mode]
    )


@row("apply_along_axis")
def _apply_along_axis(func1d, axis, arr, *args, **kwargs):
    arr = ops.moveaxis(arr, axis, -1)
    shape = shape_of(arr)
    lines = ops.reshape(arr, (-1, shape[-1]))
    parts = [func1d(lines[i], *args, **kwargs) for i in range(shape_of(lines)[0])]
    found = ops.stack([ops.array(p) for p in parts])
    inner = shape_of(found)[1:]
    found = ops.reshape(found, (*shape[:-1], *inner))
    at = axis % len(shape)
    rank = len(shape) - 1
    return (
        ops.moveaxis(found, list(range(rank, rank + len(inner))), list(range(at, at + len(inner)))) if inner else found
    )


@row("apply_over_axes")
def _apply_over_axes(func, a, axes):
    for axis in np.atleast_1d(axes):
        found = func(a, int(axis))
        a = found if len(shape_of(found)) == len(shape_of(a)) else ops.expand_dims(found, int(axis))
    return a


# Polynomials ----------------------------------------------------------------------------------------------------------


@row("polyval")
def _polyval(p, x):
    y = 0 * ops.array(x)
    for i in range(shape_of(p)[0]):
        y = y * x + p[i]
    return y


def _longer(a, n: int):
    more = n - shape_of(a)[0]
    return ops.pad(a, [(more, 0)]) if more else a


def _extend_to_longer(a1, a2) -> tuple:
    a1, a2 = (ops.reshape(x, (-1,)) for x in (a1, a2))
    n = max(shape_of(a1)[0], shape_of(a2)[0])
    return _longer(a1, n), _longer(a2, n)


row("polyadd", lambda a1, a2: ops.add(*_extend_to_longer(a1, a2)))
row("polysub", lambda a1, a2: ops.subtract(*_extend_to_longer(a1, a2)))
row("polymul", lambda a1, a2: _convolve(a1, a2))


@row("polyder")
def _polyder(p, m=1):
    if len(shape_of(p)) != 1:
        raise ValueError("the coefficients of a polynomial are a vector")
    for _ in range(m):
        n = shape_of(p)[0]
        p = p[:-1] * np.arange(n - 1, 0, -1)
    return p


@row("polyint")
def _polyint(p, m=1, k=None):
    constants = np.zeros(m) if k is None else k
    constants = [constants] * m if len(shape_of(constants)) == 0 else constants
    for i in range(m):
        p = ops.concatenate([p / np.arange(shape_of(p)[0], 0, -1), ops.reshape(constants[i], (1,))])
    return p


@row("polydiv")
def _polydiv(u, v):
    u, v = ops.reshape(u, (-1,)) + 0.0, ops.reshape(v, (-1,)) + 0.0
    m, n = shape_of(u)[0] - 1, shape_of(v)[0] - 1
    quotient = []
    for k in range(m - n + 1):
        factor = u[k] / v[0]
        quotient.append(factor)
        u = ops.concatenate([u[:k], u[k : k + n + 1] - factor * v, u[k + n + 1 :]])
    known = np.asarray(constant(u))
    first = 0
    while first < known.size - 1 and np.allclose(known[first], 0, rtol=1e-14):
        first += 1
    return ops.stack(quotient) if quotient else u[:1] * 0, u[first:]


@row("poly")
def _poly(seq_of_zeros):
    if len(shape_of(seq_of_zeros)) == 2:
        seq_of_zeros = _eigenvalues(seq_of_zeros)
    elif not _is_inexact(seq_of_zeros):
        seq_of_zeros = ops.cast(seq_of_zeros, "float64")
    y = ops.ones_like(seq_of_zeros[:1])
    for i in range(shape_of(seq_of_zeros)[0]):
        zero = ops.zeros_like(y[:1])
        y = ops.concatenate([y, zero]) - ops.concatenate([zero, y]) * seq_of_zeros[i]
    return y


def _eigenvalues(a):
    return np.linalg.eigvals(a)


@row("roots")
def _roots(p):
    p = ops.reshape(p, (-1,))
    known = np.flatnonzero(np.asarray(constant(p)))
    if known.size == 0:
        return ops.zeros_like(p[:0])
    trailing = shape_of(p)[0] - known[-1] - 1
    p = p[int(known[0]) : int(known[-1]) + 1]
    n = shape_of(p)[0]
    if n == 1:
        return ops.zeros_like(ops.broadcast_to(p, (trailing,)))
    first = ops.reshape(-p[1:] / p[0], (1, n - 1))
    found = _eigenvalues(ops.concatenate([first, np.eye(n - 2, n - 1)]) if n > 2 else first)
    return ops.concatenate([found, np.zeros(trailing)]) if trailing else found


@row("polyfit")
def _polyfit(x, y, deg, rcond=None, w=None):
    x, y = x + 0.0, y + 0.0
    if rcond is None:
        rcond = shape_of(x)[0] * np.finfo(ops.dtype(x)).eps
    a = ops.vander(x, int(deg) + 1)
    if w is not None:
        a, y = a * ops.reshape(w, (-1, 1)), y * (w if len(shape_of(y)) == 1 else ops.reshape(w, (-1, 1)))
    scale = ops.sqrt(ops.sum(a * a, 0))
    return ops.transpose(ops.transpose(ops.lstsq(a / scale, y, rcond)) / scale)


# Questions about shapes and values ------------------------------------------------------------------------------------

SHAPES = """ndim size result_type can_cast common_type iscomplexobj isrealobj tril_indices_from triu_indices_from
diag_indices_from"""
"""Functions that need only shapes and dtypes."""
VALUES = """allclose array_equal array_equiv may_share_memory shares_memory min_scalar_type array_repr array_str
array2string isclose argwhere flatnonzero lexsort ravel_multi_index ix_ einsum_path"""
"""Functions of values without a derivative; they get the arrays themselves."""


row("shape", lambda a: tuple(shape_of(a)))


def _map_arguments(how, function):
    return lambda *arguments, **keywords: function(*map(how, arguments), **{k: how(v) for k, v in keywords.items()})


for _how, _names in ((described, SHAPES), (constant, VALUES)):
    for _name in _names.split():
        if hasattr(np, _name):
            row(_name, _map_arguments(_how, getattr(np, _name)))
