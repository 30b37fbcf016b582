"""Python's operators and NumPy's methods on an array of gradops' own: each is an op.

One table for all of them: variables, arrays of a function being compiled, batches. Code written for one is
written for all, so that ``jit`` runs the same ops as the tape.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import ops
from ..errors import ArgumentTypeError
from . import _pandas, numpy_functions

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
"""Operators whose array may stand on either side."""

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


def _reshape(self, *shape, order="C", copy=None):
    """The same elements in another shape, given as one tuple or several ints; ``order`` as NumPy's."""
    shape = shape[0] if len(shape) == 1 else shape
    if order == "C" and copy is None:
        return ops.reshape(self, shape)
    return numpy_functions.reshape(self, shape, order, copy=copy)


def _ravel(self, order="C"):
    """All elements as a vector; ``order`` as NumPy's."""
    return numpy_functions.ravel(self, order)


def _flatten(self, order="C"):
    """A copy of all elements as a vector; ``order`` as NumPy's."""
    return ops.copy(numpy_functions.ravel(self, order))


def _sort(self, axis=-1, kind=None, order=None, *, stable=None):
    """Sort the elements in place, as NumPy's arrays do; :func:`gradops.ops.sort` gives a sorted copy."""
    if axis is None:
        raise ArgumentTypeError("`sort` in place: `axis` must be a dimension; got {None}.", argument="axis")
    self._write(np.sort(self, axis, kind, order, stable=stable))


def _transpose(self, *axes):
    """The dimensions in another order: reversed, or as given, in one tuple or several ints."""
    if not axes:
        return ops.transpose(self)
    return ops.transpose(self, axes[0] if len(axes) == 1 else axes)


METHODS: dict[str, Callable] = {
    **{
        name: getattr(ops, name)
        for name in """abs all any argmax argmin argsort broadcast_to clip conj copy cos cumprod cumsum diagonal dot
        exp expand_dims flip log matmul max mean min prod repeat round sigmoid sin split sqrt square squeeze
        std sum swapaxes take tanh trace var where""".split()
    },
    "astype": lambda self, dtype: ops.cast(self, dtype),
    "flatten": _flatten,
    "ravel": _ravel,
    "sort": _sort,
    "reshape": _reshape,
    "transpose": _transpose,
}

PROPERTIES: dict[str, Callable] = {
    "T": ops.transpose,
    "mT": lambda self: ops.swapaxes(self, -1, -2),
    "real": ops.real,
    "imag": ops.imag,
}


def _divmod(x1, x2) -> tuple:
    """Quotient, rounded down, and remainder."""
    return ops.floor_divide(x1, x2), ops.mod(x1, x2)


BINARY["divmod"] = _divmod


def give(kind: Any) -> None:
    """Give a class all of them; comparisons stay apart from its hash."""
    for name, op in BINARY.items():
        setattr(kind, f"__{name}__", op)
        setattr(kind, f"__r{name}__", _reflected(op))
    for name, op in OPERATORS.items():
        setattr(kind, f"__{name}__", op)
    for name, op in METHODS.items():
        setattr(kind, name, op)
    for name, op in PROPERTIES.items():
        setattr(kind, name, property(op))
    _pandas.go_before(kind)


def _reflected(op: Callable) -> Callable:
    return lambda self, other: op(other, self)
