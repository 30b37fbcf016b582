"""Functions that move elements: reshape, join, split, take, insert, write."""

from __future__ import annotations

import numpy as np

from ... import ops
from ...errors import ArgumentError, ArgumentTypeError, Given
from ._reductions import typed
from ._table import constant, described, is_ours, moved, row, shape_of, unsupported, write

row("transpose permute_dims", ops.transpose, "a axes")
row("swapaxes", ops.swapaxes, "a axis1 axis2")
row("moveaxis", ops.moveaxis, "a source destination")
row("expand_dims", ops.expand_dims, "a axis")
row("squeeze", ops.squeeze, "a axis")
row("broadcast_to", ops.broadcast_to, "array shape", idle="subok")
row("flip", ops.flip, "m axis")
row("fliplr", ops.fliplr, "m")
row("flipud", ops.flipud, "m")
row("rot90", ops.rot90, "m k axes")
row("roll", ops.roll, "a shift axis")
row("tile", ops.tile, "A reps")
row("repeat", ops.repeat, "a repeats axis")
row("diag", ops.diag, "v k")
row("diagflat", ops.diagflat, "v k")
row("tril", ops.tril, "m k")
row("triu", ops.triu, "m k")
row("vander", ops.vander, "x N increasing")
row("append", ops.append, "arr values axis")
row("dstack", ops.dstack, "tup")
row("column_stack", ops.column_stack, "tup")
row("split", ops.split, "ary indices_or_sections axis")
row("array_split", ops.array_split, "ary indices_or_sections axis")
for _name in ("hsplit", "vsplit", "dsplit"):
    row(_name, getattr(ops, _name), "ary indices_or_sections")
row("unstack", lambda x, axis=0: tuple(ops.unstack(x, None, axis)))
row("take_along_axis", lambda arr, indices, axis=-1: ops.take_along_axis(arr, indices, axis))
row("delete", lambda arr, obj, axis=None: moved(lambda places: np.delete(places, obj, axis), arr))
row("resize", lambda a, new_shape: moved(lambda places: np.resize(places, new_shape), a))
row("compress", lambda condition, a, axis=None: moved(lambda places: np.compress(constant(condition), places, axis), a))
row("extract", lambda condition, arr: moved(lambda places: np.extract(constant(condition), places), arr))
row("copy", ops.copy, "a", idle="order subok")
row("zeros_like", lambda a, dtype=None, shape=None: _filled(a, 0, dtype, shape), idle="order subok device")
row("ones_like", lambda a, dtype=None, shape=None: _filled(a, 1, dtype, shape), idle="order subok device")
row(
    "empty_like",
    lambda prototype, dtype=None, shape=None: _filled(prototype, 0, dtype, shape),
    idle="order subok device",
)


@row("full_like", idle="order subok device")
def _filled(a, fill_value, dtype=None, shape=None):
    a = ops.array(a)
    if shape is not None:
        a = ops.broadcast_to(ops.reshape(ops.zeros_like(ops.reshape(a, (-1,))[:1]), ()), shape)
    return ops.full_like(a, fill_value, None if dtype is None else np.dtype(dtype).name)


@row("astype", idle="device")
def astype(x, dtype, copy=True):
    return ops.cast(x, np.dtype(dtype).name)


@row("concatenate concat")
def _concatenate(arrays, axis=0, dtype=None, casting="same_kind"):
    if axis is None:
        arrays, axis = [ops.reshape(x, (-1,)) for x in arrays], 0
    return typed(ops.concatenate(arrays, axis), dtype, casting)


@row("stack")
def _stack(arrays, axis=0, dtype=None, casting="same_kind"):
    return typed(ops.stack(arrays, axis), dtype, casting)


row("hstack", lambda tup, dtype=None, casting="same_kind": typed(ops.hstack(tup), dtype, casting))
row("vstack row_stack", lambda tup, dtype=None, casting="same_kind": typed(ops.vstack(tup), dtype, casting))


@row("rollaxis")
def _rollaxis(a, axis, start=0):
    rank = len(shape_of(a))
    axis, start = axis + rank * (axis < 0), start + rank * (start < 0)
    return ops.moveaxis(a, axis, start - (axis < start))


@row("reshape")
def reshape(a, shape, order="C", copy=None):
    if copy is False:
        raise unsupported(a if is_ours(a) else shape, "numpy.reshape", ["copy"])
    order = _memory_order(a, order, "numpy.reshape", "CFA")
    if order == "F":
        whole = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
        result = ops.transpose(ops.reshape(ops.transpose(a), whole[::-1]))
    else:
        result = ops.reshape(a, shape)
    return ops.copy(result) if copy else result


@row("ravel")
def ravel(a, order="C"):
    return reshape(a, (-1,), _memory_order(a, order, "numpy.ravel", "CFAK"))


def _memory_order(a, order, name: str, known: str) -> str:
    """Return ``"C"`` or ``"F"``, the order of elements that NumPy's argument ``order`` means."""
    order = "C" if order is None else order
    if not isinstance(order, str) or order.upper() not in tuple(known):
        raise ArgumentError(
            f"`{name}`: `order` must be one of {', '.join(map(repr, known))}; got {{given}}.",
            argument="order",
            given=Given(repr(order), order),
        )
    order = order.upper()
    if order in "CF" or len(np.shape(described(a))) < 2:
        return "C" if order in "AK" else order
    data = constant(a)
    if is_ours(data):
        raise unsupported(a, f"{name} by how a traced array lies in memory,", ["order"])
    flags = getattr(data, "flags", None)
    if flags is None or flags.c_contiguous:  # arrays of other libraries are in C order
        return "C"
    if flags.f_contiguous:
        return "F"
    if order == "A":
        return "C"
    raise unsupported(a, f"{name} of an array in neither of the two orders", ["order"])


def _pad_rank(rank: int):
    keys = {0: (None,) * rank, 1: (None, slice(None), None)[:rank] if rank > 1 else (), 2: (..., None)}

    def at_least(*arys):
        found = [ops.array(x) for x in arys]
        found = [x if len(x.shape) >= rank else x[keys[len(x.shape)]] for x in found]
        return found[0] if len(found) == 1 else type(np.atleast_1d(0, 0))(found)

    return at_least


for _rank in (1, 2, 3):
    row(f"atleast_{_rank}d", _pad_rank(_rank))


@row("broadcast_arrays", idle="subok")
def _broadcast_arrays(*args):
    shape = np.broadcast_shapes(*map(shape_of, args))
    return tuple(ops.broadcast_to(x, shape) for x in args)


@row("meshgrid", idle="copy")
def _meshgrid(*xi, sparse=False, indexing="xy"):
    if indexing not in ("xy", "ij"):
        raise ValueError("Valid values for `indexing` are 'xy' and 'ij'.")
    rank, swap = len(xi), indexing == "xy" and len(xi) > 1
    axes = [1 - i if swap and i < 2 else i for i in range(rank)]
    found = [ops.reshape(x, [-1 if j == axis else 1 for j in range(rank)]) for x, axis in zip(xi, axes)]
    return tuple(found) if sparse else _broadcast_arrays(*found)


@row("block")
def _block(arrays):
    """Join nested lists of arrays: the innermost along the last axis, the next along the axis before."""
    rank = max(_depth(arrays), *(len(shape_of(x)) for x in _leaves(arrays)))

    def joined(part, axis: int):
        if not isinstance(part, list):
            return ops.reshape(part, (*(1,) * (rank - len(shape_of(part))), *shape_of(part)))
        return ops.concatenate([joined(x, axis + 1) for x in part], axis)

    return joined(arrays, rank - _depth(arrays))


def _depth(part) -> int:
    return 1 + max(map(_depth, part)) if isinstance(part, list) else 0


def _leaves(part) -> list:
    return [x for p in part for x in _leaves(p)] if isinstance(part, list) else [part]


@row("insert")
def _insert(arr, obj, values, axis=None):
    values = ops.cast(values, ops.dtype(arr))
    return moved(lambda places, added: np.insert(places, constant(obj), added, axis), arr, values)


@row("trim_zeros")
def _trim_zeros(filt, trim="fb", axis=None):
    known = np.asarray(constant(filt))
    if known.ndim != 1 or axis not in (None, 0, -1):
        raise ArgumentTypeError("`trim_zeros` is recorded for vectors only.", argument="filt")
    first, last = 0, known.size
    for end, step in (("f", 1), ("b", -1)):
        while end in trim.lower() and first < last and known[first if step == 1 else last - 1] == 0:
            first, last = first + (step == 1), last - (step == -1)
    return filt[first:last]


@row("pad")
def _pad(array, pad_width, mode="constant", constant_values=None, reflect_type="even"):
    if callable(mode) or mode not in ("constant", "edge", "wrap", "reflect", "symmetric") or reflect_type != "even":
        raise unsupported(array, "numpy.pad", ["mode" if reflect_type == "even" else "reflect_type"])
    if mode != "constant":
        return moved(lambda places: np.pad(places, pad_width, mode), array)
    if constant_values is None:
        constant_values = 0
    widths = np.broadcast_to(np.asarray(pad_width), (len(shape_of(array)), 2)).tolist()
    if isinstance(constant_values, (int, float)) or len(shape_of(constant_values)) == 0:
        return ops.pad(array, widths, constant_values=constant_values)
    fills, rank = np.broadcast_to(np.asarray(constant(constant_values, "numpy.pad")), (len(widths), 2)), len(widths)
    for axis, ((before, after), (low, high)) in enumerate(zip(widths, fills.tolist())):
        array = ops.pad(array, [(before if i == axis else 0, 0) for i in range(rank)], constant_values=low)
        array = ops.pad(array, [(0, after if i == axis else 0) for i in range(rank)], constant_values=high)
    return array


@row("take")
def _take(a, indices, axis=None, mode="raise"):
    if mode != "raise":
        size = int(np.prod(shape_of(a))) if axis is None else shape_of(a)[axis]
        indices = np.asarray(constant(indices))
        indices = {"wrap": lambda: indices % size, "clip": lambda: np.clip(indices, 0, size - 1)}[mode]()
    return ops.take(a, indices, axis)


@row("choose")
def _choose(a, choices, mode="raise"):
    a = np.asarray(constant(a))
    shape = np.broadcast_shapes(a.shape, *map(shape_of, choices))
    kind = {"wrap": lambda i: i % len(choices), "clip": lambda i: np.clip(i, 0, len(choices) - 1)}
    a = kind[mode](a) if mode != "raise" else a
    if a.min(initial=0) < 0 or a.max(initial=0) >= len(choices):
        raise ValueError("invalid entry in choice array")
    whole = ops.stack([ops.broadcast_to(x, shape) for x in choices])
    return ops.take_along_axis(whole, np.broadcast_to(a, shape)[None].astype(np.int64), 0)[0]


@row("real_if_close")
def _real_if_close(a, tol=100):
    known = np.real_if_close(constant(a), tol)
    return ops.real(a) if "complex" in ops.dtype(a) and known.dtype.kind != "c" else a


# Functions that write -------------------------------------------------------------------------------------------------


def _written(target, mask, values, name: str) -> None:
    write(target, ops.where(mask, values, target) if is_ours(target) or is_ours(values) else values, name)


@row("copyto")
def _copyto(dst, src, casting="same_kind", where=True):
    if casting != "same_kind":
        raise unsupported(dst if is_ours(dst) else src, "numpy.copyto", ["casting"])
    if where is not True:
        return _written(dst, where, src, "numpy.copyto")
    if is_ours(dst):
        dst[...] = src
    else:
        dst[...] = constant(src, "numpy.copyto")


@row("putmask")
def _putmask(a, mask, values):
    values = ops.reshape(values, (-1,))
    places = np.arange(int(np.prod(shape_of(a)))).reshape(shape_of(a)) % shape_of(values)[0]
    _written(a, mask, ops.take(values, places, 0), "numpy.putmask")


@row("place")
def _place(arr, mask, vals):
    mask = np.asarray(constant(mask), bool)
    values = ops.reshape(vals, (-1,))
    places = np.zeros(shape_of(arr), np.int64)
    places[mask] = np.arange(mask.sum()) % shape_of(values)[0]
    _written(arr, mask, ops.take(values, places, 0), "numpy.place")


def _write_at(target, places, values, name: str) -> None:
    """Write at flat positions; of several values for one position the last is kept."""
    places = np.asarray(places).ravel()
    values = ops.reshape(values, (-1,))
    values = ops.take(values, np.arange(places.size) % shape_of(values)[0], 0)
    last = places.size - 1 - np.unique(places[::-1], return_index=True)[1]
    flat = ops.set_at(ops.reshape(target, (-1,)), places[last], ops.take(values, last, 0))
    write(target, ops.reshape(flat, shape_of(target)), name)


@row("put")
def _put(a, ind, v, mode="raise"):
    places = np.take(np.arange(int(np.prod(shape_of(a)))), np.asarray(constant(ind)), mode=mode)
    _write_at(a, places, v, "numpy.put")


@row("put_along_axis")
def _put_along_axis(arr, indices, values, axis):
    places = np.arange(int(np.prod(shape_of(arr)))).reshape(shape_of(arr))
    places, indices = (places.ravel(), np.ravel(indices)) if axis is None else (places, np.asarray(constant(indices)))
    places = np.take_along_axis(places, indices, 0 if axis is None else axis)
    _write_at(arr, places, ops.broadcast_to(values, np.shape(places)), "numpy.put_along_axis")


@row("fill_diagonal")
def _fill_diagonal(a, val, wrap=False):
    marks = np.zeros(shape_of(a), np.int8)
    np.fill_diagonal(marks, 1, wrap)
    _write_at(a, np.flatnonzero(marks), val, "numpy.fill_diagonal")
