"""Python's operators and NumPy's methods for gradops' own array classes, each written as an op.

Variables, arrays traced by ``jit`` and batches share one table, so that code written for one works on all, and ``jit``
runs the same ops as the tape.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Number
from typing import Any

import numpy as np

from .. import ops
from ..errors import ArgumentTypeError
from . import _checks, _dispatch, _pandas, numpy_functions

BINARY: dict[str, Callable] = {
    "add": ops.add,
    "sub": ops.subtract,
    "mul": ops.multiply,
    "truediv": ops.divide,
    "floordiv": ops.floor_divide,
    "mod": ops.mod,
    "pow": ops.power,
    "matmul": ops.matmul,
    "and": ops.bitwise_and,
    "or": ops.bitwise_or,
    "xor": ops.bitwise_xor,
    "lshift": ops.left_shift,
    "rshift": ops.right_shift,
}
"""Operators whose array may be on either side."""

OPERATORS: dict[str, Callable] = {
    "eq": ops.equal,
    "ne": ops.not_equal,
    "lt": ops.less,
    "le": ops.less_equal,
    "gt": ops.greater,
    "ge": ops.greater_equal,
    "neg": ops.negative,
    "pos": lambda self: self,
    "abs": ops.abs,
    "invert": ops.bitwise_not,
    "round": lambda self, decimals=0: ops.round(self, decimals),
    "getitem": ops.get_item,
}


_reshape_to = numpy_functions.ROWS[np.reshape].method()


def _reshape(self, *shape, order="C", copy=None):
    """Return the elements in another shape, given as one tuple or several ints; ``order`` as in NumPy."""
    shape = shape[0] if len(shape) == 1 else shape
    return ops.reshape(self, shape) if order == "C" and copy is None else _reshape_to(self, shape, order, copy=copy)


def _transpose(self, *axes):
    """Return the array with its dimensions reversed, or in the order given as one tuple or several ints."""
    return ops.transpose(self, axes[0] if len(axes) == 1 else axes or None)


def _clip(self, min=None, max=None, out=None):
    """Return the elements limited to a range; either limit may be None."""
    return ops.clip(self, min, max) if out is None else np.clip(self, min, max, out=out)


def _compress(self, condition, axis=None, out=None):
    """Return the slices along ``axis`` where a condition holds."""
    return np.compress(condition, self, axis, out)


def _flatten(self, order="C"):
    """Return a copy of all elements as a vector; ``order`` as in NumPy."""
    return ops.copy(numpy_functions.ravel(self, order))


def _inplace_method(name: str, place: int) -> Callable:
    """Return a method that applies a function in place; ``axis`` is its argument at position ``place``."""
    row = numpy_functions.ROWS[getattr(np, name)]

    def method(self, *arguments, **keywords):
        if keywords.get("axis", [*arguments, 0, 0][place]) is None:
            raise ArgumentTypeError(f"`{name}` in place: `axis` must be a dimension; got {{None}}.", argument="axis")
        self._write(row(self, (self, *arguments), keywords))

    method.__doc__ = f"As :func:`numpy.{name}`, in place; the function of :mod:`gradops.ops` gives a copy."
    return method


def _astype(self, dtype, order="K", casting="unsafe", subok=True, copy=True):
    """Return the array cast to a dtype; ``order``, ``subok`` and ``copy`` change no value."""
    return ops.cast(self, dtype) if casting == "unsafe" else numpy_functions.typed(self, dtype, casting)


def _fill(self, value):
    """Set all elements to one value."""
    self[...] = value


METHODS: dict[str, Callable] = {
    **{
        name: getattr(ops, name)
        for name in """abs broadcast_to conj cos exp expand_dims flip log matmul sigmoid sin split sqrt square tanh
        where""".split()
    },
    **{
        name: numpy_functions.ROWS[getattr(np, name)].method()
        for name in """all any argmax argmin argpartition argsort choose copy cumprod cumsum diagonal dot
        max mean min nonzero prod put ravel repeat round searchsorted squeeze std sum swapaxes take trace var""".split()
    },
    "astype": _astype,
    "clip": _clip,
    "compress": _compress,
    "conjugate": ops.conj,
    "fill": _fill,
    "flatten": _flatten,
    "partition": _inplace_method("partition", 1),
    "reshape": _reshape,
    "sort": _inplace_method("sort", 0),
    "transpose": _transpose,
}

PROPERTIES: dict[str, Callable] = {
    "T": ops.transpose,
    "mT": lambda self: ops.swapaxes(self, -1, -2),
    "real": ops.real,
    "imag": ops.imag,
}


def _divmod(x1, x2) -> tuple:
    """Return the quotient, rounded down, and the remainder."""
    return ops.floor_divide(x1, x2), ops.mod(x1, x2)


BINARY["divmod"] = _divmod


_MIRRORED = {"eq": "eq", "ne": "ne", "lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
"""Comparisons, and the comparison with the operands exchanged."""


def _defer_to_others(name: str, op: Callable) -> Callable:
    """Return an operator that returns NotImplemented for other classes, so that their class decides."""
    if not hasattr(op, "op"):
        return op

    def explain(entry, error: Exception, arguments: tuple):
        other = arguments[1]
        combines = _checks.combines_arrays(type(other))
        if combines or not _checks.is_numeric(other) and not isinstance(other, np.ndarray):
            several = getattr(arguments[0], "dtype", None) is str and isinstance(other, (list, tuple))  # texts
            if name in ("eq", "ne") and not isinstance(other, Number) and not several:
                return (NotImplemented,)
            reflected = getattr(type(other), f"__{_MIRRORED.get(name, 'r' + name)}__", None)
            if reflected is not None and not isinstance(other, (str, bytes, list, tuple)):
                found = reflected(other, arguments[0])
                if found is not NotImplemented:
                    return (found,)
        return _checks.explain(entry, error, arguments)

    return _dispatch.failing(op, explain)


array_api: Callable = NotImplemented
"""Call a function of ``array_api/_devices.py`` by its name, which a floor above imports at the first call."""


def give_array_api(kind: Any) -> None:
    """Give a class the members of arrays that the array API standard defines besides operators."""
    kind.__array_namespace__ = lambda self, /, *, api_version=None: array_api("array_namespace", api_version)
    kind.device = property(lambda self: array_api("device_of", self))
    kind.to_device = lambda self, device, /, *, stream=None: array_api("to_device", self, device, stream=stream)


def give(kind: Any) -> None:
    """Give a class all operators and methods; its hash stays independent of ``==``."""
    for name, op in BINARY.items():
        setattr(kind, f"__{name}__", _defer_to_others(name, op))
        setattr(kind, f"__r{name}__", _reflected(op))
    for name, op in OPERATORS.items():
        setattr(kind, f"__{name}__", _defer_to_others(name, op) if name in _MIRRORED else op)
    for name, op in METHODS.items():
        setattr(kind, name, op)
    for name, op in PROPERTIES.items():
        setattr(kind, name, property(op))
    _pandas.go_before(kind)


def _reflected(op: Callable) -> Callable:
    return lambda self, other: op(other, self)
