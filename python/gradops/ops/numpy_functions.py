"""NumPy's functions on an array of gradops' own: each is the op of its name, its arguments renamed to the op's.

A class that is given them says of its instances:

- ``_described()``: an array of the same shape and dtype, for functions that ask no more;
- ``_constant(losing=None)``: the array itself, for what is not recorded; an error where there is none to look at, or
  where ``losing`` would lose a gradient;
- ``_write(result)``: become ``result`` in place, for ``out=`` and the like; an error where that is not possible.
"""

from __future__ import annotations

import inspect
import string
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from .. import ops
from .._tree import map_items
from ..errors import ArgumentError, ArgumentTypeError, Given, ShapeError
from . import _dispatch, scipy_functions


def give(kind: Any, error: type[Exception] = ArgumentTypeError) -> None:
    """Let NumPy's functions on instances of a class be ops; ``error`` is raised for those that are none."""
    kind._unrecorded = error
    kind.__array_ufunc__ = _array_ufunc
    kind.__array_function__ = _array_function


def _is_ours(value) -> bool:
    return hasattr(type(value), "_constant")


def _constant(value, losing: str | None = None):
    """A value, or a list or tuple of them, with the arrays themselves in the place of ours."""
    return map_items(lambda x: x._constant(losing) if _is_ours(x) else x, value)


def _described(value):
    return value._described() if _is_ours(value) else value


def _array_ufunc(self, ufunc, method: str, *inputs, **keywords) -> Any:
    """NumPy's ufuncs on ours are the ops of the same name, recorded."""
    if not keywords and method == "__call__":
        call = _ufunc_calls.get(ufunc)
        if call is not None:
            return call(*inputs)
    return _any_ufunc(self, ufunc, method, inputs, keywords)


_ufunc_calls: dict = {}
"""The calls that ufuncs stand for, by ufunc, as found so far."""


def _any_ufunc(self, ufunc, method: str, inputs: tuple, keywords: dict) -> Any:
    out = keywords.pop("out", None)
    if method == "at":
        return _ufunc_at(self, ufunc, *inputs)
    name = _UFUNC_NAMES.get(ufunc.__name__, ufunc.__name__)
    if method == "reduce":
        name = _REDUCTIONS.get(name, "")
        if len(inputs) == 1 and "axis" not in keywords:
            keywords["axis"] = 0
        keywords = {k: v for k, v in keywords.items() if not (k in ("dtype", "initial") and v in (None, np._NoValue))}
    elif method == "accumulate":
        name = _ACCUMULATIONS.get(name, "")
        keywords.setdefault("axis", 0)
    elif method == "outer":
        inputs = (ops.reshape(inputs[0], (*np.shape(inputs[0]), *(1,) * len(np.shape(inputs[1])))), inputs[1])
    elif method != "__call__":
        name = ""
    if getattr(np, ufunc.__name__, None) is not ufunc:
        return _ufunc_of_scipy(self, ufunc, inputs, {**keywords, **({"out": out} if out is not None else {})}, method)
    known = _dispatch.registry.get(name)
    if known is None or set(keywords) - set(known.parameters):
        raise _unsupported(self, f"numpy.{ufunc.__name__}" + ("" if method == "__call__" else f".{method}"), keywords)
    if method == "__call__":
        _ufunc_calls[ufunc] = known.call
    result = known.call(*inputs, **keywords)
    return result if out is None else _into(out if isinstance(out, tuple) else (out,), result)


def _ufunc_of_scipy(self, ufunc, inputs: tuple, keywords: dict, method: str):
    call = scipy_functions.of_ufunc(ufunc)
    if call is None or keywords or method != "__call__":
        raise _unsupported(
            self, f"{scipy_functions.name_of(ufunc)}" + ("" if method == "__call__" else f".{method}"), keywords
        )
    _ufunc_calls[ufunc] = call
    return call(*inputs)


def _ufunc_at(self, ufunc, target, key, *values):
    name = f"numpy.{ufunc.__name__}.at"
    if not _is_ours(target):
        return ufunc.at(target, _constant(key), *_constant(values, name))
    if ufunc not in (np.add, np.subtract):
        raise _unsupported(self, name)
    (value,) = values
    target._write(ops.add_at(target, _constant(key), -value if ufunc is np.subtract else value))


def _into(targets: tuple, result):
    """Write a result to the array that ``out=`` names, recorded; never into an array that would lose its gradient."""
    (target,) = targets
    if _is_ours(target):
        target._write(result)
    else:
        target[...] = _constant(result, "out=")
    return target


_UFUNC_NAMES = {
    "true_divide": "divide",
    "remainder": "mod",
    "conjugate": "conj",
    "absolute": "abs",
    "fabs": "abs",
    "pow": "power",
    "float_power": "power",
    "positive": "array",
    "rint": "round",
    "acos": "arccos",
    "asin": "arcsin",
    "atan": "arctan",
    "atan2": "arctan2",
    "acosh": "arccosh",
    "asinh": "arcsinh",
    "atanh": "arctanh",
    "invert": "bitwise_not",
    "radians": "deg2rad",
    "degrees": "rad2deg",
}
_REDUCTIONS = {
    "add": "sum",
    "multiply": "prod",
    "maximum": "max",
    "minimum": "min",
    "logical_and": "all",
    "logical_or": "any",
}
_ACCUMULATIONS = {"add": "cumsum", "multiply": "cumprod"}

_FUNCTION_NAMES = {
    "round_": "round",
    "around": "round",
    "amax": "max",
    "amin": "min",
    "concat": "concatenate",
    "permute_dims": "transpose",
}
_SYNONYMS = {
    "a": ("x", "x1", "a", "array"),
    "b": ("x2", "b"),
    "x": ("x", "x1"),
    "y": ("x2", "y"),
    "arr": ("x", "array"),
    "ary": ("x",),
    "array": ("x", "array"),
    "m": ("x", "array"),
    "v": ("x",),
    "val": ("x",),
    "arrays": ("xs",),
    "tup": ("xs",),
    "seq": ("xs",),
    "x1": ("x1", "x"),
    "x2": ("x2",),
    "values": ("x2",),
    "shape": ("newshape", "shape"),
    "newshape": ("newshape",),
    "a_min": ("x_min",),
    "a_max": ("x_max",),
    "min": ("x_min",),
    "max": ("x_max",),
    "reps": ("repeats",),
    "n": ("n", "fft_length"),
    "axis1": ("axis1",),
    "axis2": ("axis2",),
    "fweights": (),
}
_SHAPES = frozenset("shape ndim size result_type can_cast common_type iscomplexobj isrealobj".split())
"""Functions that ask for shapes and dtypes alone."""
_VALUES = frozenset(
    """allclose array_equal array_equiv may_share_memory shares_memory min_scalar_type array_repr array_str
    array2string isclose iscomplex isreal""".split()
)
"""Functions that say something of the values and have no derivative: they get the arrays."""


def _array_function(self, function, types, arguments, keywords) -> Any:
    """NumPy's other functions on ours are the ops of the same name, recorded."""
    plan = _plans.get(function)
    if plan is not None and plan[0] <= len(arguments) <= plan[1]:
        _, _, call, names = plan
        try:
            return call(*arguments, **{names[k]: v for k, v in keywords.items()}) if keywords else call(*arguments)
        except KeyError:
            pass
    return _any_function(self, function, arguments, keywords)


_plans: dict = {}
"""Functions that were called to how many leading arguments their calls have here, the op, and other parameters' names.

At least those that the op requires where there are several, at most those whose order the two share.
"""


_plans[np.reshape] = (2, 2, ops.reshape, {})
_plans[np.ravel] = (1, 1, ops.ravel, {})


def _plan(function, op) -> None:
    """Note how a function's parameters go to the op's, for the calls where that is all there is to know."""
    names = _parameters(function)
    if names is None or op.name in ("where", "einsum", "svd", "eigh", "qr", "slogdet", "eig"):
        return
    renamed: dict[str, str] = {}
    for i, name in enumerate(names):
        options = (*_SYNONYMS.get(name, ()), name)
        target = next((o for o in options if o in op.parameters and o not in renamed.values()), None)
        if target is None and i == 0:
            target = op.parameters[0]
        if target is not None:
            renamed[name] = target
    shared = 0
    for name, parameter in zip(names, op.parameters):
        if renamed.get(name) != parameter:
            break
        shared += 1
    required = sum(p.default is p.empty for p in op.signature.parameters.values())
    if required <= 1 or required <= shared:
        _plans[function] = (required if required > 1 else 0), shared, _WIDER.get(op.name, op.call), renamed


def _any_function(self, function, arguments: tuple, keywords) -> Any:
    name = function.__name__
    if name in _SHAPES:
        return function(*map(_described, arguments), **keywords)
    if name in _VALUES:
        return function(*map(_constant, arguments), **{k: _constant(v) for k, v in keywords.items()})
    if name == "copyto":
        return _copy_to(self, *arguments, **keywords)
    if name in _COMPOSED and function is getattr(np, name, None):
        return _COMPOSED[name](*arguments, **keywords)
    if function is np.linalg.lstsq:
        return _lstsq(*arguments, **keywords)
    name = _FUNCTION_NAMES.get(name, name)
    place = function.__module__.partition(".")[2]
    known = _dispatch.registry.get(name) if place in ("", "linalg", "lib") or place.startswith("lib") else None
    if known is None:
        raise _unsupported(self, _full_name(function))
    keywords = dict(keywords)
    out = keywords.pop("out", None)
    if name == "einsum":
        keywords.pop("optimize", None)
        if keywords:
            raise _unsupported(self, "numpy.einsum", keywords)
        result = ops.einsum(*(arguments if isinstance(arguments[0], str) else _lettered(arguments)))
        return result if out is None else _into((out,), result)
    correction = keywords.pop("ddof", 0) or keywords.pop("correction", 0) if name in ("var", "std") else 0
    result = _WIDER.get(known.name, known.call)(*_renamed(self, function, known, arguments, keywords))
    _plan(function, known)
    if correction:
        result = _corrected(name, result, arguments[0] if arguments else keywords["a"], correction)
    if name == "eig":
        result = _real_where_all_are(result)
    if name in ("svd", "eigh", "qr", "slogdet", "eig") and isinstance(result, tuple):
        result = _named(function, result)
    return result if out is None else _into((out,), result)


def _corrected(name: str, result, x, ddof):
    """A variance or standard deviation over ``n``, as one over ``n - ddof``."""
    count = _size(x) // max(_size(result), 1)
    with np.errstate(all="ignore"):
        factor = np.float64(count) / max(count - ddof, 0)
    return result * float(factor if name == "var" else np.sqrt(factor))


def _size(x) -> int:
    return int(np.prod(np.shape(x)))


def _lettered(arguments: tuple) -> tuple:
    """The arguments of ``einsum`` with lists of subscripts, by a string."""

    def word(places) -> str:
        return "".join("..." if i is Ellipsis else string.ascii_letters[i] for i in places)

    tensors, places = arguments[: len(arguments) // 2 * 2 : 2], arguments[1::2]
    result = "->" + word(arguments[-1]) if len(arguments) % 2 else ""
    return ",".join(map(word, places)) + result, *tensors


def _concatenate(xs, axis=0):
    if axis is None:
        xs, axis = [ops.reshape(x, (-1,)) for x in xs], 0
    return ops.concatenate(xs, axis)


def _rollaxis(a, axis, start=0):
    rank = len(a.shape)
    axis, start = axis + rank * (axis < 0), start + rank * (start < 0)
    return ops.moveaxis(a, axis, start - (axis < start))


def reshape(a, shape, order="C", *, copy=None):
    if copy is False:
        raise _unsupported(a if _is_ours(a) else shape, "numpy.reshape", ["copy"])
    order = _memory_order(a, order, "numpy.reshape", "CFA")
    if order == "F":
        whole = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
        result = ops.transpose(ops.reshape(ops.transpose(a), whole[::-1]))
    else:
        result = ops.reshape(a, shape)
    return ops.copy(result) if copy else result


def ravel(a, order="C"):
    return reshape(a, (-1,), _memory_order(a, order, "numpy.ravel", "CFAK"))


def _memory_order(a, order, name: str, known: str) -> str:
    """``"C"`` or ``"F"``: the order of elements that an argument ``order`` of NumPy's means."""
    order = "C" if order is None else order
    if not isinstance(order, str) or order.upper() not in tuple(known):
        raise ArgumentError(
            f"`{name}`: `order` must be one of {', '.join(map(repr, known))}; got {{given}}.",
            argument="order",
            given=Given(repr(order), order),
        )
    order = order.upper()
    if order in "CF" or len(np.shape(_described(a))) < 2:
        return "C" if order in "AK" else order
    data = _constant(a)
    if _is_ours(data):
        raise _unsupported(a, f"{name} by how a traced array lies in memory,", ["order"])
    flags = getattr(data, "flags", None)
    if flags is None or flags.c_contiguous:  # other libraries' arrays have no other order
        return "C"
    if flags.f_contiguous:
        return "F"
    if order == "A":
        return "C"
    raise _unsupported(a, f"{name} of an array in neither of the two orders", ["order"])


def _mirrored(a):
    """The Hermitian matrices whose lower triangles are those of ``a``, which is all that NumPy reads of it."""
    shape = np.shape(_described(a))
    if len(shape) < 2 or shape[-1] != shape[-2]:
        raise ShapeError(f"a Hermitian matrix is square; got shape {shape}.", argument="a")
    return ops.tril(a) + ops.conj(ops.swapaxes(ops.tril(a, -1), -1, -2))


def _lstsq(a, b, rcond=None):
    x = ops.lstsq(a, b, rcond)
    (m, n), s = np.shape(_described(a)), ops.svd(a, compute_uv=False)
    cutoff = np.finfo(ops.dtype(s)).eps * max(m, n) if rcond is None or rcond == -1 else rcond
    rank = ops.cast(ops.sum(ops.cast(ops.greater(s, cutoff * ops.max(s)), "int64")), "int32")
    if m > n and bool(ops.equal(rank, n)):
        residuals = ops.reshape(ops.sum(ops.square(ops.abs(b - ops.matmul(a, x))), 0), (-1,))
    else:
        residuals = ops.zeros_like(ops.reshape(s, (-1,))[:0])
    return x, residuals, rank, s


def _real_where_all_are(result):
    """Eigenvalues and vectors as NumPy gives them: real ones where all eigenvalues are."""
    parts = result if isinstance(result, tuple) else (result,)
    if bool(ops.any(ops.not_equal(ops.imag(parts[0]), 0))):
        return result
    parts = tuple(map(ops.real, parts))
    return parts if isinstance(result, tuple) else parts[0]


def _at_least(rank: int) -> Callable:
    """``numpy.atleast_1d`` and its like."""
    keys = {0: (None,) * rank, 1: (None, slice(None), None)[:rank] if rank > 1 else (), 2: (..., None)}

    def at_least(*arys):
        found = [ops.array(x) for x in arys]
        found = [x if len(x.shape) >= rank else x[keys[len(x.shape)]] for x in found]
        return found[0] if len(found) == 1 else type(np.atleast_1d(0, 0))(found)

    return at_least


_COMPOSED: dict[str, Callable] = {
    "reshape": reshape,
    "ravel": ravel,
    "rollaxis": _rollaxis,
    "atleast_1d": _at_least(1),
    "atleast_2d": _at_least(2),
    "atleast_3d": _at_least(3),
}
"""Functions of NumPy that are no ops, in terms of these, with NumPy's own parameters."""
_WIDER: dict[str, Callable] = {"concatenate": _concatenate}
"""Functions of NumPy that take more than the op of that name, with the op's parameters."""


def _copy_to(self, dst, src, casting="same_kind", where=True):
    if casting != "same_kind" or where is not True:
        raise _unsupported(self, "numpy.copyto", ["where" if casting == "same_kind" else "casting"])
    if _is_ours(dst):
        dst[...] = src
    else:
        dst[...] = _constant(src, "numpy.copyto")


def _named(function, parts: tuple):
    """Several results as the named tuple that NumPy gives."""
    kind = {"svd": "SVDResult", "eigh": "EighResult", "qr": "QRResult", "slogdet": "SlogdetResult", "eig": "EigResult"}
    found = getattr(np.linalg._linalg, kind[function.__name__], None) if hasattr(np.linalg, "_linalg") else None
    return parts if found is None or len(parts) != len(found._fields) else found(*parts)


def _renamed(self, function, op, arguments: tuple, keywords: dict) -> list:
    """The arguments of a call of a NumPy function, in the order of the op's parameters."""
    names = _parameters(function)
    given = dict(zip(names, arguments)) if names is not None and len(arguments) <= len(names) else None
    if given is None or op.name == "where":
        if keywords:
            raise _unsupported(self, _full_name(function), keywords)
        return list(arguments)
    given.update(keywords)
    if given.pop("hermitian", False) and names is not None:
        given[names[0]] = _mirrored(given[names[0]])
    found: dict[str, Any] = {}
    for name, value in given.items():
        if value is np._NoValue:
            continue
        options = (*_SYNONYMS.get(name, ()), name)
        target = next((o for o in options if o in op.parameters and o not in found), None)
        if target is None and names and name == names[0]:
            target = op.parameters[0]
        if target is None:
            if value is None or name == "subok" or _is_default(function, name, value):
                continue
            if name == "order" and op.name not in ("sort", "argsort", "partition", "argpartition"):
                continue  # how the result lies in memory; to those it is a field of the elements
            raise _unsupported(self, _full_name(function), {name: value})
        found[target] = value
    values = []
    for parameter in op.signature.parameters.values():
        if parameter.name in found:
            values.append(found[parameter.name])
        elif parameter.default is not parameter.empty:
            values.append(parameter.default)
        elif parameter.name in ("x_min", "x_max", "axis"):
            values.append(None)
        else:
            raise ArgumentError(f"{_full_name(function)} needs an argument for `{parameter.name}`.")
    return values


def _is_default(function: Callable, name: str, value) -> bool:
    """True for an argument that asks for the function's default."""
    return isinstance(value, (str, bool, int, float)) and _defaults(function).get(name) == value


@cache
def _defaults(function: Callable) -> dict:
    """The defaults of arguments by name; None for those that must be given."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return {}
    return {p.name: None if p.default is p.empty else p.default for p in parameters}


@cache
def _parameters(function: Callable) -> tuple | None:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return _POSITIONAL.get(function.__name__)
    if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters):
        named = tuple(p.name for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD))
        return _POSITIONAL.get(function.__name__, named or None)
    return tuple(p.name for p in parameters)


_POSITIONAL = {
    "concatenate": ("arrays", "axis"),
    "dot": ("a", "b"),
    "vdot": ("a", "b"),
    "inner": ("a", "b"),
    "where": ("condition", "x", "y"),
    "pad": ("array", "pad_width", "mode", "constant_values"),
}


def _full_name(function) -> str:
    module = function.__module__
    module = "numpy" if module.startswith("numpy.lib") or "._" in module else module
    return f"{module}.{function.__name__}"


def _unsupported(ours, name: str, keywords=()) -> Exception:
    given = f" with {', '.join(f'`{k}`' for k in keywords)}" if keywords else ""
    return ours._unrecorded(
        f"{name}{given} is not recorded.",
        hint="use the ops of `gradops.ops`, or `variable.detach().numpy()` for values without gradient",
    )
