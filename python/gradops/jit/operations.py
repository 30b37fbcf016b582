"""Operations, which the rows of a program's table compute.

An operation is a kernel with its arguments, in which :data:`OPERAND` stands for each value that a row reads. Operations
on single numbers are shared by all programs, so R's log and native code know their numbers. Each program numbers its
other operations itself (:meth:`.Table.interned`).
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from .._tree import map_items
from ..backends import _shared
from ..errors import ArgumentError
from ..ops._dispatch import registry
from .steps import OPERAND, direct

NARROW = 3
"""The largest number of operands of an operation on single numbers, and of a row without a list."""


class Operation:
    """A kernel with its arguments, computed by rows of a table.

    Attributes:
        name: the name of the op.
        kernel: a function of the arguments, such as a NumPy ufunc.
        pattern: the arguments: :data:`OPERAND` for each value, also inside lists and tuples, and settings.
        operands: the number of values.
        is_plain: True if all arguments are values.
        number: the number of the operation in the rows of a table.
    """

    __slots__ = ("name", "kernel", "pattern", "operands", "is_plain", "number", "_is_flat")

    def __init__(self, name: str, kernel: Callable, pattern: tuple, operands: int, number: int):
        self.name, self.kernel, self.pattern, self.operands, self.number = name, kernel, pattern, operands, number
        own = sum(x is OPERAND for x in pattern)
        self._is_flat, self.is_plain = own == operands, own == len(pattern)

    def arguments(self, values: Iterable) -> tuple:
        """Return the kernel's arguments for given values."""
        if self.is_plain:
            return tuple(values)
        rest = iter(values)
        if self._is_flat:
            return tuple([next(rest) if x is OPERAND else x for x in self.pattern])
        return map_items(lambda x: next(rest) if x is OPERAND else x, self.pattern)

    def compute(self, *values) -> Any:
        """Return the kernel's result for given values."""
        return self.kernel(*self.arguments(values))


# Operations on single numbers -----------------------------------------------------------------------------------------


class NumberOperation(Operation):
    """An operation on single numbers whose result is a single number.

    Attributes:
        is_logical: True if operands and result are truth values.
        compute: the kernel as a function of the numbers alone. For arithmetic this is Python's operator, which gives
            the same bits faster.
    """

    __slots__ = ("is_logical", "compute")
    known: list[NumberOperation] = []

    def __init__(self, name: str, pattern: tuple, kernel: Callable):
        operands = sum(x is OPERAND for x in pattern)
        super().__init__(name, kernel, pattern, operands, len(self.known))
        self.is_logical = name.startswith("logical_")
        if operands > NARROW:
            raise TypeError(f"`{name}` takes {operands} numbers; a row has room for {NARROW}")
        numpy_function = kernel if isinstance(kernel, np.ufunc) else self._computed_by_numpy
        _, plain = OPERATORS.get(kernel, ("", numpy_function))
        self.compute = plain if self.is_plain else self._computed_by_numpy  # type: ignore[method-assign]
        self.known.append(self)

    def _computed_by_numpy(self, *numbers) -> Any:
        """Return the kernel's result for NumPy's numbers; some kernels read the dtype of their arguments."""
        return self.kernel(*self.arguments([np.float64(x) if x.__class__ is float else x for x in numbers]))


def _divide(x: float, y: float):
    return x / y if y or y.__class__ is not float else np.true_divide(x, y)  # Python raises on division by 0.0


OPERATORS: dict[Callable, tuple[str, Callable]] = {
    np.add: ("+", operator.add),
    np.subtract: ("-", operator.sub),
    np.multiply: ("*", operator.mul),
    np.true_divide: ("/", _divide),
    np.negative: ("-", operator.neg),
}
"""For each ufunc that a Python operator computes several times faster on single numbers: its sign and the operator."""


def determinant_quotient(x, y):
    """Return ``x / y``, where ``y`` is the determinant of a matrix; raises if it is 0."""
    if not np.all(y):
        raise ArgumentError(f"{_shared.SINGULAR}.")
    return np.true_divide(x, y)


@functools.cache
def operation(name: str, pattern: tuple, kernel: Callable) -> NumberOperation:
    """Return the operation on single numbers; equal arguments give the same object."""
    return NumberOperation(name, pattern, kernel)


def plain_operation(name: str, count: int, kernel: Callable) -> NumberOperation:
    """Return the operation that applies a kernel to ``count`` single numbers."""
    return operation(name, (OPERAND,) * count, kernel)


COPY = plain_operation("copy", 1, np.positive)
"""A copy of a value, to be a number whose gradient is separate."""


@functools.cache
def number_operation(name: str, kernel: Callable, count: int) -> NumberOperation | None:
    """Return an op as an operation on single numbers, or None if it takes or gives anything else."""
    entry = registry.get(name)
    if entry is None or not entry.facts.elementwise or entry.tensors != entry.parameters or count > NARROW:
        return None
    examples = [np.float64(0.5)] * count
    with np.errstate(all="ignore"):
        try:
            # Copies and views of an array without dimensions are arrays, so these ops are excluded.
            results = kernel(*examples), kernel(*map(np.asarray, examples))
        except (TypeError, ValueError):
            return None
    if not all(isinstance(x, np.generic) and is_number(x) for x in results):
        return None
    return plain_operation(name, count, direct(kernel, examples))


def is_number(value) -> bool:
    """True if a value is a single float64 number or truth value."""
    return isinstance(value, (np.generic, np.ndarray)) and not value.ndim and value.dtype in (np.float64, np.bool_)
