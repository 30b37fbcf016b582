"""Python's operators and NumPy's functions on variables."""

from __future__ import annotations

from typing import Any

from .. import ops
from ..errors import ArgumentTypeError
from ..ops import _dispatch
from .variable import Variable


def _reflected(op):
    return lambda self, other: op(other, self)


_BINARY = {
    "add": ops.add,
    "sub": ops.subtract,
    "mul": ops.multiply,
    "truediv": ops.divide,
    "floordiv": ops.floor_divide,
    "mod": ops.mod,
    "pow": ops.power,
    "matmul": ops.matmul,
}
for _name, _op in _BINARY.items():
    setattr(Variable, f"__{_name}__", _op)
    setattr(Variable, f"__r{_name}__", _reflected(_op))

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
}.items():
    setattr(Variable, f"__{_name}__", _op)

Variable.__hash__ = lambda self: id(self)  # type: ignore[method-assign]
Variable.__pos__ = lambda self: self  # type: ignore[attr-defined]

_METHODS = ("sum", "mean", "prod", "max", "min", "reshape", "transpose", "exp", "log", "sqrt", "argmax", "argmin", "all", "any")
for _name in _METHODS:
    if hasattr(ops, _name):
        setattr(Variable, _name, getattr(ops, _name))


def _array_ufunc(self, ufunc, method: str, *inputs, **keywords) -> Any:
    """NumPy's ufuncs on a variable are the ops of the same name, recorded."""
    name = _UFUNC_NAMES.get(ufunc.__name__, ufunc.__name__)
    if method != "__call__" or name not in _dispatch.registry or set(keywords) - {"out"}:
        raise ArgumentTypeError(
            f"numpy.{ufunc.__name__} ({method}) is not recorded on variables.",
            hint="use the ops of `gradops.ops`, or `variable.detach().numpy()` for values without gradient",
        )
    out = keywords.get("out")
    result = _dispatch.registry[name].call(*inputs)
    if out is not None:
        (target,) = out
        target[...] = result
        return target
    return result


_UFUNC_NAMES = {
    "true_divide": "divide",
    "remainder": "mod",
    "conjugate": "conj",
    "absolute": "abs",
    "pow": "power",
    "acos": "arccos",
    "asin": "arcsin",
    "atan": "arctan",
}
_FUNCTION_NAMES = {"round_": "round", "amax": "max", "amin": "min"}


def _array_function(self, function, types, arguments, keywords) -> Any:
    """NumPy's other functions on a variable are the ops of the same name, recorded."""
    name = _FUNCTION_NAMES.get(function.__name__, function.__name__)
    if name not in _dispatch.registry and not hasattr(ops, name):
        raise ArgumentTypeError(
            f"numpy.{function.__name__} is not recorded on variables.",
            hint="use the ops of `gradops.ops`, or `variable.detach().numpy()` for values without gradient",
        )
    return getattr(ops, name)(*arguments, **keywords)


def _to_array(self, dtype=None, copy=None):
    raise ArgumentTypeError(
        "a variable does not turn into a NumPy array by itself, as its gradient would be lost.",
        hint="use `variable.detach().numpy()`",
    )


Variable.__array_ufunc__ = _array_ufunc  # type: ignore[attr-defined]
Variable.__array_function__ = _array_function  # type: ignore[attr-defined]
Variable.__array__ = _to_array  # type: ignore[attr-defined]
Variable.__array_priority__ = 1000  # type: ignore[attr-defined]
