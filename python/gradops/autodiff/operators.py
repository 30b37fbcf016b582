"""Python's operators and NumPy's functions on variables."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from .. import ops
from ..errors import ArgumentError, ArgumentTypeError, GradientError
from ..ops import _dispatch
from . import inplace, state
from .modes import recording
from .record import unwrap
from .variable import Variable, wrap


def _reflected(op):
    return lambda self, other: op(other, self)


def _in_place(op, ufunc):
    return lambda self, other: inplace.operate(self, op, ufunc, other)


_BINARY = {
    "add": (ops.add, np.add),
    "sub": (ops.subtract, np.subtract),
    "mul": (ops.multiply, np.multiply),
    "truediv": (ops.divide, np.divide),
    "floordiv": (ops.floor_divide, np.floor_divide),
    "mod": (ops.mod, np.mod),
    "pow": (ops.power, np.power),
    "matmul": (ops.matmul, None),
}
for _name, (_op, _ufunc) in _BINARY.items():
    setattr(Variable, f"__{_name}__", _op)
    setattr(Variable, f"__r{_name}__", _reflected(_op))
    setattr(Variable, f"__i{_name}__", _in_place(_op, _ufunc))

for _name, _op in {
    "eq": ops.equal,
    "ne": ops.not_equal,
    "lt": ops.less,
    "le": ops.less_equal,
    "gt": ops.greater,
    "ge": ops.greater_equal,
    "neg": ops.negative,
    "abs": ops.abs,
    "getitem": ops.get_item,
    "round": lambda self, decimals=0: ops.round(self, decimals),
    "and": lambda self, other: wrap(self.data & unwrap(other)),
    "rand": lambda self, other: wrap(unwrap(other) & self.data),
    "or": lambda self, other: wrap(self.data | unwrap(other)),
    "ror": lambda self, other: wrap(unwrap(other) | self.data),
    "xor": lambda self, other: wrap(self.data ^ unwrap(other)),
    "rxor": lambda self, other: wrap(unwrap(other) ^ self.data),
    "invert": lambda self: wrap(~self.data),
}.items():
    setattr(Variable, f"__{_name}__", _op)


def _get_item(self, key):
    """``variable[key]``; variables in the key count by their values."""
    return ops.get_item(self, inplace._raw_key(key))


setattr(Variable, "__getitem__", _get_item)  # noqa: B010
setattr(Variable, "__setitem__", inplace.assign)  # noqa: B010
Variable.__hash__ = lambda self: id(self)  # type: ignore[method-assign]
setattr(Variable, "__pos__", lambda self: self)  # noqa: B010

_METHODS = """sum mean prod max min exp log sqrt argmax argmin all any std var cumsum cumprod clip squeeze swapaxes
    take repeat dot argsort sort ravel trace conj matmul expand_dims broadcast_to square tanh sigmoid diagonal round
    flip where abs sin cos split""".split()
for _name in _METHODS:
    if hasattr(ops, _name):
        setattr(Variable, _name, getattr(ops, _name))


def _reshape(self, *shape):
    """The same elements in another shape, given as one tuple or several ints."""
    return ops.reshape(self, shape[0] if len(shape) == 1 else shape)


def _transpose(self, *axes):
    """The dimensions in another order: reversed, or as given, in one tuple or several ints."""
    if not axes:
        return ops.transpose(self)
    return ops.transpose(self, axes[0] if len(axes) == 1 else axes)


Variable.reshape = _reshape  # type: ignore[attr-defined]
Variable.transpose = _transpose  # type: ignore[attr-defined]
Variable.flatten = lambda self: ops.copy(ops.reshape(self, (-1,)))  # type: ignore[attr-defined]
Variable.astype = lambda self, dtype: ops.cast(self, dtype)  # type: ignore[attr-defined]
Variable.mT = property(lambda self: ops.swapaxes(self, -1, -2))  # type: ignore[attr-defined]
Variable.real = property(ops.real)  # type: ignore[attr-defined]
Variable.imag = property(ops.imag)  # type: ignore[attr-defined]


# NumPy's functions: each is the op of its name, its arguments renamed to the op's.


def _array_ufunc(self, ufunc, method: str, *inputs, **keywords) -> Any:
    """NumPy's ufuncs on a variable are the ops of the same name, recorded."""
    if not keywords and method == "__call__":
        call = _ufunc_calls.get(ufunc)
        if call is not None:
            return call(*inputs)
    return _any_ufunc(ufunc, method, inputs, keywords)


_ufunc_calls: dict = {}
"""Ufuncs that were met to what they are."""


def _any_ufunc(ufunc, method: str, inputs: tuple, keywords: dict) -> Any:
    out = keywords.pop("out", None)
    if method == "at":
        return _ufunc_at(ufunc, *inputs)
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
    known = _dispatch.registry.get(name)
    if known is None or set(keywords) - set(known.parameters):
        raise _unsupported(f"numpy.{ufunc.__name__}" + ("" if method == "__call__" else f".{method}"), keywords)
    if method == "__call__":
        _ufunc_calls[ufunc] = known.call
    result = known.call(*inputs, **keywords)
    return result if out is None else _into(out if isinstance(out, tuple) else (out,), result)


def _ufunc_at(ufunc, target, key, *values):
    if not isinstance(target, Variable):
        if any(isinstance(v, Variable) and v.requires_grad for v in values):
            raise _lost(f"numpy.{ufunc.__name__}.at")
        return ufunc.at(target, inplace._raw_key(key), *map(unwrap, values))
    if ufunc.__name__ not in ("add", "subtract"):
        raise _unsupported(f"numpy.{ufunc.__name__}.at")
    inplace.refuse_leaf(target)
    (value,) = values
    inplace.replace(target, ops.add_at(target, inplace._raw_key(key), -value if ufunc is np.subtract else value))


def _into(targets: tuple, result):
    """Write a result to what ``out=`` names, recorded; never into an array that would lose its gradient."""
    target: Any = targets[0]
    if isinstance(target, Variable):
        if tuple(result.shape) != target.shape:
            result = ops.broadcast_to(result, target.shape)
        if isinstance(target.data, np.ndarray) and result._node is not None:
            _protect(result._node, target.data)
        inplace.replace(target, result)
        return target
    if result.requires_grad and recording.get():
        raise _lost("out=")
    target[...] = result.data
    return target


def _protect(node, data) -> None:
    """Copy what a new operation saved of the memory that its own result will be written to."""
    owner = state.buffer(data)
    node.saved = type(node.saved)(
        v.copy() if isinstance(v, np.ndarray) and state.buffer(v) is owner else v for v in node.saved
    )


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
    "expit": "sigmoid",
    "log_expit": "log_sigmoid",
    "ndtr": "normal_cdf",
    "psi": "digamma",
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
    "matrix_transpose": "matrix_transpose",
    "array_split": "array_split",
    "iscomplexobj": "",
    "rollaxis": "",
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
_VALUES = frozenset(
    """allclose array_equal array_equiv may_share_memory shares_memory result_type can_cast common_type min_scalar_type
    iscomplexobj isrealobj array_repr array_str array2string shape ndim size isclose""".split()
)
"""Functions that say something of the values and have no derivative: they get the arrays."""


def _array_function(self, function, types, arguments, keywords) -> Any:
    """NumPy's other functions on a variable are the ops of the same name, recorded."""
    plan = _plans.get(function)
    if plan is not None and len(arguments) <= plan[1]:
        call, _, names = plan
        try:
            return call(*arguments, **{names[k]: v for k, v in keywords.items()}) if keywords else call(*arguments)
        except KeyError:
            pass
    return _any_function(function, arguments, keywords)


_plans: dict = {}
"""Functions that were met to the op, how many leading parameters the two share, and other parameters' names."""


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
    if required <= 1:
        _plans[function] = op.call, shared, renamed


def _any_function(function, arguments: tuple, keywords) -> Any:
    name = function.__name__
    if name in _VALUES:
        return function(*map(unwrap, arguments), **{k: unwrap(v) for k, v in keywords.items()})
    if name == "copyto":
        target, value = arguments[:2]
        if isinstance(target, Variable) and len(arguments) == 2 and not keywords:
            target[...] = value  # type: ignore[index]
            return None
        raise _lost("numpy.copyto")
    name = _FUNCTION_NAMES.get(name, name)
    place = function.__module__.partition(".")[2]
    known = _dispatch.registry.get(name) if place in ("", "linalg", "lib") or place.startswith("lib") else None
    if known is None:
        raise _unsupported(_full_name(function))
    keywords = dict(keywords)
    out = keywords.pop("out", None)
    if name == "einsum":
        keywords.pop("optimize", None)
        if keywords or not isinstance(arguments[0], str):
            raise _unsupported("numpy.einsum", keywords or ("lists of subscripts",))
        result = ops.einsum(*arguments)
        return result if out is None else _into((out,), result)
    result = known.call(*_renamed(function, known, arguments, keywords))
    _plan(function, known)
    if name in ("svd", "eigh", "qr", "slogdet", "eig") and isinstance(result, tuple):
        result = _named(function, result)
    return result if out is None else _into((out,), result)


def _named(function, parts: tuple):
    """Several results as the named tuple that NumPy gives."""
    kind = {"svd": "SVDResult", "eigh": "EighResult", "qr": "QRResult", "slogdet": "SlogdetResult", "eig": "EigResult"}
    found = getattr(np.linalg._linalg, kind[function.__name__], None) if hasattr(np.linalg, "_linalg") else None
    return parts if found is None or len(parts) != len(found._fields) else found(*parts)


def _renamed(function, op, arguments: tuple, keywords: dict) -> list:
    """The arguments of a call of a NumPy function, in the order of the op's parameters."""
    names = _parameters(function)
    given = dict(zip(names, arguments)) if names is not None and len(arguments) <= len(names) else None
    if given is None or op.name == "where":
        if keywords:
            raise _unsupported(_full_name(function), keywords)
        return list(arguments)
    given.update(keywords)
    found: dict[str, Any] = {}
    for name, value in given.items():
        if value is np._NoValue:
            continue
        options = (*_SYNONYMS.get(name, ()), name)
        target = next((o for o in options if o in op.parameters and o not in found), None)
        if target is None and names and name == names[0]:
            target = op.parameters[0]
        if target is None:
            if value is None or name in ("subok", "order", "hermitian"):
                continue
            raise _unsupported(_full_name(function), {name: value})
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


def _unsupported(name: str, keywords=()) -> ArgumentTypeError:
    given = f" with {', '.join(f'`{k}`' for k in keywords)}" if keywords else ""
    return ArgumentTypeError(
        f"{name}{given} is not recorded on variables.",
        hint="use the ops of `gradops.ops`, or `variable.detach().numpy()` for values without gradient",
    )


def _lost(name: str) -> GradientError:
    return GradientError(
        f"{name}: a result that requires a gradient cannot be written to a NumPy array, which would lose it.",
        hint="write to a Variable, or `detach()` first",
    )


def _to_array(self, dtype=None, copy=None):
    if self.requires_grad or self.dtype is str:
        raise ArgumentTypeError(
            "a variable that requires a gradient, or a text, does not turn into a NumPy array by itself.",
            hint="use `variable.detach().numpy()`",
        )
    array = np.asarray(self.numpy(), dtype)
    return array.copy() if copy else array


Variable.__array_ufunc__ = _array_ufunc  # type: ignore[attr-defined]
Variable.__array_function__ = _array_function  # type: ignore[attr-defined]
Variable.__array__ = _to_array  # type: ignore[attr-defined]
Variable.__array_priority__ = 1000  # type: ignore[attr-defined]
