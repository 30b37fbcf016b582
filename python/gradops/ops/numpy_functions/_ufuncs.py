"""NumPy's ufuncs: calls, and ``reduce``, ``accumulate``, ``outer``, ``reduceat`` and ``at`` built on calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ... import ops
from .. import scipy_functions
from ._products import vecdot
from ._table import ROWS, constant, is_ours, shape_of, unsupported, write, write_out

CALLS: dict[np.ufunc, Callable] = {
    getattr(np, name): getattr(ops, op or name)
    for name, _, op in (
        word.partition("=")
        for word in """
        absolute=abs add arccos arccosh arcsin arcsinh arctan arctan2 arctanh bitwise_and bitwise_or bitwise_xor cbrt
        ceil conjugate=conj cos cosh deg2rad degrees=rad2deg divide equal exp exp2 expm1 fabs=abs floor floor_divide
        fmax fmin fmod gcd greater greater_equal heaviside hypot invert=bitwise_not isfinite isinf isnan lcm ldexp
        left_shift less less_equal log log10 log1p log2 logaddexp logaddexp2 logical_and logical_not logical_or
        logical_xor matmul maximum minimum multiply negative nextafter not_equal positive=copy power rad2deg
        radians=deg2rad reciprocal remainder=mod right_shift rint=round sign signbit sin sinh sqrt square subtract tan
        tanh trunc
        """.split()
    )
}
"""The op for each ufunc, looked up when it is called; SciPy's ufuncs are added when first called."""

REDUCTIONS: dict[Any, tuple] = {
    np.add: (np.sum, np.cumsum),
    np.multiply: (np.prod, np.cumprod),
    np.maximum: (np.max, None),
    np.minimum: (np.min, None),
    np.logical_and: (np.all, None),
    np.logical_or: (np.any, None),
}
"""Functions that do what a ufunc's ``reduce`` and ``accumulate`` do."""
STEPPED = {np.subtract, np.divide, np.logaddexp, np.logaddexp2, np.hypot, np.maximum, np.minimum, np.fmax, np.fmin}
"""Ufuncs that are applied one element after the other; ``maximum`` and ``minimum`` only in ``accumulate``."""


def _call(name: str) -> Callable:
    def enter(call: Callable) -> Callable:
        if hasattr(np, name):
            CALLS[getattr(np, name)] = call
        return call

    return enter


@_call("float_power")
def _float_power(x1, x2):
    return ops.power(*(ops.cast(x, np.result_type(ops.dtype(x), np.float64).name) for x in (x1, x2)))


@_call("copysign")
def _copysign(x1, x2):
    size = ops.abs(x1)
    return ops.where(ops.signbit(x2), -size, size)


@_call("divmod")
def _divmod(x1, x2):
    return ops.floor_divide(x1, x2), ops.mod(x1, x2)


@_call("modf")
def _modf(x):
    whole = ops.trunc(x)
    return _copysign(ops.where(ops.isinf(x), 0.0, x - whole), x), whole


@_call("frexp")
def _frexp(x):
    power = np.frexp(constant(x))[1]
    return ops.ldexp(x, -power), power


@_call("spacing")
def _spacing(x):
    return np.spacing(constant(x))


@_call("bitwise_count")
def _bitwise_count(x):
    return np.bitwise_count(constant(x))


@_call("matvec")
def _matvec(x1, x2):
    return ops.matmul(x1, ops.expand_dims(x2, -1))[..., 0]


@_call("vecmat")
def _vecmat(x1, x2):
    return ops.matmul(ops.expand_dims(ops.conj(x1), -2), x2)[..., 0, :]


_call("vecdot")(vecdot)


def call_of(ufunc: np.ufunc) -> Callable | None:
    """Return the op for a ufunc of NumPy or SciPy; None without one."""
    call = CALLS.get(ufunc)
    if call is None:
        call = scipy_functions.special_function(ufunc)
        if call is not None:
            CALLS[ufunc] = call
    return call


def _typed(ours, ufunc, inputs, dtype, casting: str):
    """Return inputs cast as the ufunc's loop for ``dtype`` takes them."""
    if dtype is None:
        return inputs
    name = np.dtype(dtype).name
    loops = {types[-1] for types in ufunc.types}
    if np.dtype(dtype).char not in loops or not all(
        np.can_cast(np.dtype(ops.dtype(x)), np.dtype(name), casting) for x in inputs
    ):
        raise unsupported(ours, f"numpy.{ufunc.__name__}", ["dtype"])
    return [ops.cast(x, name) for x in inputs]


def _plainly(ours, ufunc, inputs, out=None, where=True, dtype=None, casting="same_kind", order="K", subok=True):
    call = CALLS[ufunc]
    result = call(*_typed(ours, ufunc, inputs, dtype, casting))
    if dtype is not None and (isinstance(result, tuple) or ops.dtype(result) != np.dtype(dtype).name):
        raise unsupported(ours, f"numpy.{ufunc.__name__}", ["dtype"])  # the loop returns another dtype
    if where is not True:
        if out is None or isinstance(result, tuple):
            raise unsupported(
                ours, f"numpy.{ufunc.__name__} without `out`" if out is None else ufunc.__name__, ["where"]
            )
        target = out[0] if isinstance(out, tuple) else out
        result = ops.where(where, result, target)
    return result if out is None else write_out(out, result)


def _reduce(ours, ufunc, inputs, axis=0, dtype=None, out=None, keepdims=False, initial=np._NoValue, where=True):
    (x,) = inputs
    if ufunc in REDUCTIONS:
        given = {"axis": axis, "dtype": dtype, "out": out, "keepdims": keepdims, "initial": initial, "where": where}
        row = ROWS[REDUCTIONS[ufunc][0]]
        return row(ours, (x,), {k: v for k, v in given.items() if v is not None or k == "axis"})
    if where is not True:
        raise unsupported(ours, f"numpy.{ufunc.__name__}.reduce", ["where"])
    (x,) = _typed(ours, ufunc, inputs, dtype, "same_kind")
    rank = len(shape_of(x))
    axes = tuple(range(rank)) if axis is None else tuple(i % rank for i in np.atleast_1d(axis))
    if len(axes) > 1:
        raise unsupported(ours, f"numpy.{ufunc.__name__}.reduce over several dimensions", [])
    if ufunc is np.logaddexp and initial is np._NoValue:
        y = ops.logsumexp(x, axes, keepdims)
    else:
        steps = _steps(ours, ufunc, x, axes[0], initial)
        y = ops.expand_dims(steps[-1], axes[0]) if keepdims else steps[-1]
    return y if out is None else write_out(out, y)


def _steps(ours, ufunc, x, axis: int, initial=np._NoValue) -> list:
    """Return the running results, one element after the other."""
    parts = list(ops.unstack(x, None, axis))
    found = parts[:1] if initial is np._NoValue else [CALLS[ufunc](initial, parts[0])] if parts else [initial]
    if not found:
        raise ValueError(f"zero-size array to reduction operation {ufunc.__name__} which has no identity")
    for part in parts[1:]:
        found.append(CALLS[ufunc](found[-1], part))
    return found


def _accumulate(ours, ufunc, inputs, axis=0, dtype=None, out=None):
    running = REDUCTIONS.get(ufunc, (None, None))[1]
    if running is not None:
        named = {} if out is None else {"out": out}
        return ROWS[running](ours, inputs, {"axis": axis, "dtype": dtype, **named})
    if ufunc not in STEPPED:
        raise unsupported(ours, f"numpy.{ufunc.__name__}.accumulate")
    (x,) = _typed(ours, ufunc, inputs, dtype, "same_kind")
    y = ops.stack(_steps(ours, ufunc, x, axis), axis)
    return y if out is None else write_out(out, y)


def _outer(ours, ufunc, inputs, **keywords):
    x, y = inputs
    return _plainly(ours, ufunc, (ops.reshape(x, (*shape_of(x), *(1,) * len(shape_of(y)))), y), **keywords)


def _reduceat(ours, ufunc, inputs, axis=0, dtype=None, out=None):
    x, places = inputs
    x = ops.moveaxis(x, axis, 0)
    starts = np.asarray(constant(places)).tolist()
    n = shape_of(x)[0]
    if any(not 0 <= i < n for i in starts):
        raise IndexError(f"index out-of-bounds in {ufunc.__name__}.reduceat [0, {n})")
    ends = [*starts[1:], n]
    parts = [
        _reduce(ours, ufunc, (x[i:j],), dtype=dtype) if i < j else _typed(ours, ufunc, (x[i],), dtype, "same_kind")[0]
        for i, j in zip(starts, ends)
    ]
    y = ops.moveaxis(ops.stack(parts), 0, axis)
    return y if out is None else write_out(out, y)


def _ufunc_at(ours, ufunc, inputs):
    target, key, *values = inputs
    key = constant(key)
    if not is_ours(target):
        return ufunc.at(target, key, *constant(values, f"numpy.{ufunc.__name__}.at"))
    if ufunc in (np.add, np.subtract):
        (value,) = values
        return target._write(ops.add_at(target, key, -value if ufunc is np.subtract else value))
    places = np.arange(int(np.prod(shape_of(target)))).reshape(shape_of(target))[key]
    if np.unique(places).size != np.size(places):
        raise unsupported(ours, f"numpy.{ufunc.__name__}.at with a place that occurs twice")
    write(target, ops.set_at(target, key, CALLS[ufunc](target[key], *values)), f"numpy.{ufunc.__name__}.at")
    return None


METHODS: dict[str, Callable] = {
    "__call__": _plainly,
    "reduce": _reduce,
    "accumulate": _accumulate,
    "outer": _outer,
    "reduceat": _reduceat,
    "at": _ufunc_at,
}


def any_ufunc(ours, ufunc, method: str, inputs: tuple, keywords: dict) -> Any:
    """Apply a ufunc with further arguments, by a method such as ``reduce``, or a SciPy ufunc for the first time."""
    name = scipy_functions.name_of(ufunc)
    name = (name if "." in name else f"numpy.{name}") + ("" if method == "__call__" else f".{method}")
    run = METHODS.get(method)
    if call_of(ufunc) is None or run is None:
        raise unsupported(ours, name, keywords)
    unknown = [k for k in keywords if k not in run.__code__.co_varnames[: run.__code__.co_argcount]]
    if method == "outer":
        unknown = [k for k in unknown if k not in ("out", "dtype", "casting")]
    if ufunc is getattr(np, "vecdot", None) and list(keywords) == ["axis"]:
        return CALLS[ufunc](*inputs, **keywords)
    if method in ("reduce", "accumulate", "reduceat") and ufunc not in {*REDUCTIONS, *STEPPED}:
        raise unsupported(ours, name, keywords)
    if unknown or keywords and name.startswith("scipy."):
        raise unsupported(ours, name, unknown or keywords)
    return run(ours, ufunc, inputs, **keywords)
