"""The array of a function being traced: a backend of its own, whose kernels run NumPy's and write down what ran.

A ``Traced`` holds the value it has for the arguments at hand, so shapes and dtypes are known, and the
place of that value in the program being written. Anything that would look at the value itself (a
branch, ``float()``, conversion to NumPy) is an error, as the program would be wrong for other arguments.
"""

from __future__ import annotations

import functools
from typing import Any

from .. import backends
from ..backends import numpy as _kernels
from ..errors import JitError
from .program import Program


class Traced:
    """A value of a function being traced."""

    __slots__ = ("value", "program", "place", "__weakref__")
    __array_priority__ = 500
    __array_ufunc__ = None

    def __init__(self, value, program: Program, place: int):
        self.value = value
        self.program = program
        self.place = place

    shape = property(lambda self: self.value.shape)
    dtype = property(lambda self: self.value.dtype)
    ndim = property(lambda self: self.value.ndim)
    size = property(lambda self: self.value.size)

    def __len__(self) -> int:
        return len(self.value)

    def __iter__(self):
        from ..ops.indexing import get_item

        return (get_item(self, i) for i in range(len(self)))

    def __repr__(self) -> str:
        return f"<traced array of shape {self.shape} and dtype {self.dtype}>"

    def _refuse(self, *_, **__):
        raise JitError(
            "a compiled function looked at a value: a branch, a Python number or a NumPy function on a traced array.",
            hint="use `ops.where()`, keep to gradops ops, or make the argument static; control flow that depends on "
            "values (`ops.cond()`, `ops.switch()`, `ops.while_loop()`) cannot be compiled on NumPy",
        )

    __bool__ = __float__ = __int__ = __complex__ = __index__ = __array__ = item = tolist = numpy = _refuse
    __setitem__ = __iadd__ = __isub__ = __imul__ = __itruediv__ = _refuse


def is_tensor_type(kind: type) -> bool:
    return issubclass(kind, Traced)


def prepare(floatx: str) -> None:
    """Nothing to set up."""


def dtype_name(x: Traced) -> str:
    return x.dtype.name


def to_numpy(x: Traced):
    x._refuse()


def convert(value, dtype=None, like=None):
    """A constant of the program being traced."""
    if isinstance(value, Traced):
        return value if dtype is None else _recorded("cast", _kernels.cast)(value, dtype)
    if isinstance(value, (list, tuple)):
        found = next((v for v in _flat(value) if isinstance(v, Traced)), None)
        if found is not None:
            from ..ops.joining import stack

            return stack([convert(v, dtype, found) for v in value])
    array = _kernels.convert(value, dtype)
    return array if like is None else like.program.constant(array)


def _flat(value):
    for item in value:
        if isinstance(item, (list, tuple)):
            yield from _flat(item)
        else:
            yield item


def __getattr__(name: str) -> Any:
    kernel = getattr(_kernels, name, None)
    if name.startswith("_") or not callable(kernel):
        raise AttributeError(name)
    return _recorded(name, kernel)


_CONSTANT = frozenset(("ones_like", "zeros_like", "empty_like"))
"""Kernels that need no more than the shape, which is known: what they give is a constant of the program."""


@functools.cache
def _recorded(name: str, kernel):
    """NumPy's kernel, whose calls on traced arrays are written down."""

    def record(*arguments):
        if name in _CONSTANT:
            return kernel(*_values(arguments))
        program = next((x.program for x in _flat(arguments) if isinstance(x, Traced)), None)
        if _has_unknown_shape(name, arguments):
            raise JitError(
                f"`{name}`: the shape of the result depends on values, which a compiled function cannot look at.",
                hint="use `ops.where()` with three arguments, or keep it outside the compiled function",
            )
        values = _values(arguments)
        result = kernel(*values)
        return result if program is None else program.add(name, kernel, arguments, values, result)

    return record


def _has_unknown_shape(name: str, arguments) -> bool:
    """Whether a result has as many elements as a traced array has true ones."""
    if name == "get_item":
        return any(isinstance(x, Traced) and x.dtype == bool for x in _flat(arguments[1:]))
    positions = name == "nonzero" or name == "where" and len([x for x in arguments if x is not None]) == 1
    return positions and isinstance(arguments[0], Traced)


def _values(value):
    if isinstance(value, Traced):
        return value.value
    if isinstance(value, (list, tuple)):
        return type(value)(_values(v) for v in value) if not hasattr(value, "_fields") else value
    return value


class derivatives:
    """Gradient flow of traced arrays: the tape's."""

    @staticmethod
    def stop(x):
        return x

    @staticmethod
    def custom(run, inputs):
        from ..flow import tape

        return tape.custom(run, inputs)

    @staticmethod
    def value_and_grad(run, leaves):
        from ..functional.reverse import _on_tape

        return _on_tape(run, leaves)


def give_operators(kind: Any) -> None:
    """Python's operators, as ops."""
    from .. import ops

    for name, op in {
        "add": ops.add, "sub": ops.subtract, "mul": ops.multiply, "truediv": ops.divide, "pow": ops.power,
        "matmul": ops.matmul, "floordiv": ops.floor_divide, "mod": ops.mod,
    }.items():  # fmt: skip
        setattr(kind, f"__{name}__", lambda self, other, op=op: _binary(op, self, other))
        setattr(kind, f"__r{name}__", lambda self, other, op=op: _binary(op, other, self))
    for name, op in {
        "eq": ops.equal, "ne": ops.not_equal, "lt": ops.less, "le": ops.less_equal, "gt": ops.greater,
        "ge": ops.greater_equal, "getitem": ops.get_item,
    }.items():  # fmt: skip
        setattr(kind, f"__{name}__", lambda self, other, op=op: _binary(op, self, other))
    for name, op in {"neg": ops.negative, "abs": ops.abs}.items():
        setattr(kind, f"__{name}__", lambda self, op=op: op(self))
    kind.__hash__ = object.__hash__


def _binary(op, first, second):
    from ..autodiff.variable import Variable

    return NotImplemented if isinstance(second, Variable) else op(first, second)


@functools.cache
def register() -> None:
    """Make traced arrays a backend and give them operators."""
    import sys

    backends.register("traced", sys.modules[__name__], root="gradops")
    give_operators(Traced)
