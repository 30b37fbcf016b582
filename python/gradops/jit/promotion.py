"""NumPy's dtypes for operators and ufuncs on traced arrays.

An op has the same dtype on all libraries: ``int32 * float32`` is float32. An operator on arrays is NumPy's own, and the
result is float64. A traced array stands for an array, so its operators must give NumPy's dtype: operands are cast to
the dtypes of the ufunc's loop, and so is the result. The results of NumPy's other functions and methods are cast to the
dtype and shape that NumPy gives for the values of the trace. :func:`give` installs this once, when the backend of
traced arrays is registered.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import ops
from .._tree import items, map_items
from ..backends.numpy.base import WEAK_NUMBERS
from ..ops.numpy_functions import CALLS
from .array import Traced

_UFUNCS = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "truediv": np.divide,
    "floordiv": np.floor_divide,
    "mod": np.remainder,
    "pow": np.power,
    "matmul": np.matmul,
    "divmod": np.divmod,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "lshift": np.left_shift,
    "rshift": np.right_shift,
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "neg": np.negative,
    "pos": np.positive,
    "abs": np.absolute,
    "invert": np.invert,
}
"""The ufunc of each operator."""

_METHODS = "all any argmax argmin argsort cumprod cumsum diagonal dot max mean min prod round std sum trace var".split()
"""NumPy's methods whose results may have another dtype or shape than the op's."""

_FLOAT64 = np.dtype("float64")
_PLAIN = (float, int)


def give() -> None:
    """Replace the operators, functions and methods of traced arrays by versions with NumPy's dtypes."""
    kind: Any = Traced
    kind.__pos__ = _positive
    for name, ufunc in _UFUNCS.items():
        method = f"__{name}__"
        setattr(kind, method, _promoted_operator(ufunc, getattr(kind, method)))
        method = f"__r{name}__"
        if hasattr(kind, method):
            setattr(kind, method, _promoted_operator(ufunc, getattr(kind, method), is_reflected=True))
    kind.__pow__ = _promoted_power(kind.__pow__)
    kind.__array_ufunc__ = _promoted_array_ufunc(kind.__array_ufunc__)
    kind.__array_function__ = _promoted_array_function(kind.__array_function__)
    for name in _METHODS:
        setattr(kind, name, _promoted_method(name, getattr(kind, name)))


def _positive(x: Traced):
    return _own_result(x, (x,))


def _promoted_power(power: Callable) -> Callable:
    """Return ``**`` for traced arrays. NumPy's ``x**2`` of truth values has another dtype than ``np.power``."""

    def operate(self, exponent, *modulus):
        if exponent.__class__ is int and exponent == 2 and self.dtype == bool:
            return _own_result(ops.cast(self, "int8"), ())
        return power(self, exponent, *modulus)

    return functools.wraps(power)(operate)


def _own_result(result, operands: tuple):
    """Return a result as a ufunc does: a new array, or a number."""
    if not isinstance(result, Traced):
        return result
    if not result.ndim:
        return ops.get_item(result, ()) if result.value.__class__ is np.ndarray else result
    return ops.copy(result) if any(result is x for x in operands) else result


def _promoted_array_ufunc(array_ufunc: Callable) -> Callable:
    """Return ``__array_ufunc__`` with NumPy's dtypes; calls with keywords are unchanged."""

    def call(self, ufunc, method: str, *inputs, **keywords):
        if keywords or method != "__call__" or ufunc not in CALLS:
            return array_ufunc(self, ufunc, method, *inputs, **keywords)
        if ufunc is np.positive:
            return +self
        return _apply_loop(ufunc, functools.partial(array_ufunc, self, ufunc, method), inputs)

    return call


def _promoted_array_function(array_function: Callable) -> Callable:
    """Return ``__array_function__`` with results like NumPy's."""

    def call(self, function, types, arguments, keywords):
        return _match_numpy(function, functools.partial(array_function, self, function, types), arguments, keywords)

    return call


def _promoted_method(name: str, method: Callable) -> Callable:
    """Return a method of traced arrays with NumPy's dtypes and shapes."""
    own = getattr(np.ndarray, name)

    def call(self, *arguments, **keywords):
        numpy_method = getattr(np.generic, name) if isinstance(self.value, np.generic) else own
        return _match_numpy(numpy_method, lambda given, named: method(*given, **named), (self, *arguments), keywords)

    return functools.wraps(method)(call)


def _match_numpy(function: Callable, call: Callable, arguments: tuple, keywords: dict):
    """Return the result of a call on traced arrays in NumPy's dtype and shape; unchanged if NumPy rejects the call.

    Args:
        function: NumPy's function of arrays.
        call: the function of traced arrays, called with the arguments and keywords.
    """
    result = call(arguments, keywords)
    parts = [x for x in items(result) if isinstance(x, Traced)]
    given = [x for x in items((arguments, list(keywords.values()))) if isinstance(x, Traced)]
    if not parts or keywords.get("out") is not None:
        return result
    if all(x.ndim for x in parts) and all(x.dtype == _FLOAT64 for x in given):  # the most frequent case
        return result
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            wanted = _mapped(lambda x: x.value, function, arguments, keywords)
    except Exception:  # NumPy's error, or one of a class among the arguments
        return result
    dtypes = [x.dtype for x in items(wanted) if isinstance(x, (np.ndarray, np.generic)) and x.dtype.kind in "fc"]
    if len(dtypes) == len(parts) and any(x.dtype != dtype for x, dtype in zip(parts, dtypes)):
        # NumPy computes in the precision of the result, so the arguments are cast to it.
        real = np.empty(0, np.result_type(*dtypes)).real.dtype
        result = _mapped(lambda x: _cast(x, np.result_type(x.dtype, real)), call, (arguments, keywords), {})
    return _match_kind(result, wanted)


def _mapped(change: Callable, function: Callable, arguments: tuple, keywords: dict):
    """Call a function with ``change`` applied to each traced array."""

    def changed(x):
        if isinstance(x, dict):
            return {name: changed(value) for name, value in x.items()}
        return map_items(lambda y: change(y) if isinstance(y, Traced) else changed(y) if isinstance(y, dict) else y, x)

    return function(*changed(arguments), **changed(keywords))


def _match_kind(x, wanted):
    if isinstance(x, (list, tuple)) and isinstance(wanted, (list, tuple)) and len(x) == len(wanted):
        parts = list(map(_match_kind, x, wanted))
        return type(x)(*parts) if hasattr(x, "_fields") else type(x)(parts)
    if (
        not isinstance(x, Traced)
        or not isinstance(wanted, (np.ndarray, np.generic))
        or wanted.dtype.kind not in "biufc"
    ):
        return x
    x = _cast(x, wanted.dtype)
    if x.shape != wanted.shape and x.size == wanted.size:
        x = ops.reshape(x, wanted.shape)
    if not x.ndim and isinstance(wanted, np.generic) != isinstance(x.value, np.generic):
        x = ops.get_item(x, ()) if isinstance(wanted, np.generic) else ops.copy(x)
    return x


def _promoted_operator(ufunc: np.ufunc, method: Callable, is_reflected: bool = False) -> Callable:
    """Return an operator's method with operands and result cast to the dtypes of a ufunc."""

    def operate(*operands):
        for x in operands:  # the most frequent case
            kind = x.__class__
            if not (kind is Traced and x.value.dtype is _FLOAT64 or kind in _PLAIN):
                return _apply_loop(ufunc, method, operands, is_reflected)
        return method(*operands)

    return functools.wraps(method)(operate)


def _apply_loop(ufunc: np.ufunc, call: Callable, operands: tuple, is_reflected: bool = False):
    """Call a function with its operands and result cast to the dtypes of the ufunc's loop."""
    kinds = [_kind_of(x) for x in operands]
    if any(kind is None for kind in kinds):  # a dtype is equal to None
        return call(*operands)
    if not WEAK_NUMBERS:
        kinds = _numpy1_kinds(kinds, operands)
    dtypes = _loop(ufunc, tuple(reversed(kinds) if is_reflected else kinds))
    taken, made = dtypes[: ufunc.nin], dtypes[ufunc.nin :]
    if is_reflected:
        taken = taken[::-1]
    result = call(*[x if kind == dtype else _cast(x, dtype) for x, kind, dtype in zip(operands, kinds, taken)])
    if result is NotImplemented:
        return result
    if isinstance(result, tuple):
        return tuple([_own_result(_cast(x, dtype), operands) for x, dtype in zip(result, made)])
    return _own_result(_cast(result, made[0]), operands)


@functools.lru_cache(maxsize=4096)
def _loop(ufunc: np.ufunc, kinds: tuple) -> tuple[np.dtype, ...]:
    """Return the dtypes of a ufunc's operands and results.

    Raises:
        TypeError: NumPy's error for a ufunc without a loop for these dtypes.
    """
    return ufunc.resolve_dtypes((*kinds, *[None] * ufunc.nout))


def _kind_of(x) -> Any:
    """Return the dtype of an operand, the type of a Python number (a weak dtype), or None for anything else."""
    if x.__class__ in (int, float, complex):
        return x.__class__
    if isinstance(x, (Traced, np.ndarray, np.generic)):
        return x.dtype if x.dtype.kind in "biufc" else None
    if isinstance(x, (bool, list, tuple)) and not any(isinstance(y, Traced) for y in items(x)):
        try:
            dtype = np.asarray(x).dtype
        except ValueError:  # rows of several lengths
            return None
        return dtype if dtype.kind in "biufc" else None
    return None


def _numpy1_kinds(kinds: list, operands: tuple) -> list:
    """Return the kinds as NumPy 1 promotes them: operands without dimensions take the dtype of the arrays."""
    if not any(np.ndim(x) for x in operands):
        return kinds
    weak = {"i": int, "u": int, "f": float, "c": complex}
    return [
        weak.get(kind.kind, kind) if isinstance(kind, np.dtype) and not np.ndim(x) else kind
        for kind, x in zip(kinds, operands)
    ]


def _cast(x, dtype: np.dtype):
    if isinstance(x, Traced):
        return x if x.dtype == dtype else ops.cast(x, dtype.name)
    if isinstance(x, (np.ndarray, np.generic)):
        return x.astype(dtype, copy=False)
    return np.asarray(x, dtype) if isinstance(x, (list, tuple)) else dtype.type(x) if x.__class__ is bool else x
