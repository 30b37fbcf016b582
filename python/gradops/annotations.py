"""The vocabulary of signatures: argument roles for dispatch and R, and types for type checkers.

An annotation gives the role of an argument in gradops: dispatch reads ``Tensor``, ``Operand``,
``Tensors`` and ``Indices``; the R generator reads all of them to decide which arguments to convert.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any, ParamSpec, Protocol, TypeAlias, TypeVar

import numpy as np

Tensor = Annotated[Any, "Tensor"]
"""A tensor or variable, or a value that converts to one: a number, a nested list, an array."""
Operand = Annotated[Any, "Operand"]
"""Like ``Tensor``, but a Python number stays weak: it takes the dtype of the other operands."""
Tensors = Annotated[Sequence[Any], "Tensors"]
"""A list or tuple of tensors, or one tensor that is split along its first axis."""
Structure = Annotated[Any, "Structure"]
"""A tensor or a nested tuple, list or dict of tensors."""
Axis = Annotated[int, "Axis"]
"""A dimension: 0-based here, 1-based in R; negative counts from the end in both."""
Axes = Annotated[Any, "Axes"]
"""An ``Axis``, several, or None for all."""
Index = Annotated[int, "Index"]
"""A position along an axis: 0-based here, 1-based in R."""
Indices = Annotated[Any, "Indices"]
"""Like ``Tensor``, for positions: 0-based here, 1-based in R; negative ones count from the end in both."""
Integer = Annotated[int, "Integer"]
"""An integer; in R also a numeric with an integer value."""
Integers = Annotated[Any, "Integers"]
"""An integer or several."""
Shape = Annotated[Sequence[int], "Shape"]
"""Sizes of dimensions."""
DType = Annotated[Any, "DType"]
"""A dtype's name, or a library's dtype object."""
Function = Annotated[Callable[..., Any], "Function"]

P = ParamSpec("P")
"""The parameters of a function; those after its first argument where that has a type of its own."""
X = TypeVar("X", bound=Any)
"""The first argument of a function; ``bound=Any`` keeps checkers from checking the body of a lambda."""
R = TypeVar("R")
"""The result of a function."""


class Array(Protocol):
    """A tensor of any library, or a variable, as type checkers see it."""

    @property
    def shape(self) -> Any: ...
    @property
    def dtype(self) -> Any: ...


class Number:
    """The type of an op's result for numbers and lists: a tensor of the default backend, for type checkers.

    It has what the tensors of all libraries have. No object is one: a protocol would also take variables, and the
    product of a number and a variable would not be a variable.
    """

    shape: Any
    dtype: Any

    def __float__(self) -> float: ...  # type: ignore[empty-body]
    def __int__(self) -> int: ...  # type: ignore[empty-body]
    def __bool__(self) -> bool: ...  # type: ignore[empty-body]
    def __array__(self) -> np.ndarray[Any, Any]: ...  # type: ignore[empty-body]
    def __getitem__(self, key: Any, /) -> Number: ...  # type: ignore[empty-body]
    def __len__(self) -> int: ...  # type: ignore[empty-body]
    def __abs__(self) -> Number: ...  # type: ignore[empty-body]
    def __neg__(self) -> Number: ...  # type: ignore[empty-body]
    def __add__(self, other: complex | Number, /) -> Number: ...  # type: ignore[empty-body]
    def __radd__(self, other: complex | Number, /) -> Number: ...  # type: ignore[empty-body]
    def __sub__(self, other: complex | Number, /) -> Number: ...  # type: ignore[empty-body]
    def __rsub__(self, other: complex | Number, /) -> Number: ...  # type: ignore[empty-body]
    def __mul__(self, other: complex | Number, /) -> Number: ...  # type: ignore[empty-body]
    def __rmul__(self, other: complex | Number, /) -> Number: ...  # type: ignore[empty-body]
    def __truediv__(self, other: complex | Number, /) -> Number: ...  # type: ignore[empty-body]
    def __rtruediv__(self, other: complex | Number, /) -> Number: ...  # type: ignore[empty-body]
    def __pow__(self, other: complex | Number, /) -> Number: ...  # type: ignore[empty-body]
    def __rpow__(self, other: complex | Number, /) -> Number: ...  # type: ignore[empty-body]
    def __matmul__(self, other: complex | Number, /) -> Number: ...  # type: ignore[empty-body]
    def __lt__(self, other: complex | Number, /) -> Number: ...  # type: ignore[empty-body]
    def __le__(self, other: complex | Number, /) -> Number: ...  # type: ignore[empty-body]
    def __gt__(self, other: complex | Number, /) -> Number: ...  # type: ignore[empty-body]
    def __ge__(self, other: complex | Number, /) -> Number: ...  # type: ignore[empty-body]


A = TypeVar("A", bound=Array)
"""An array that an op returns in its own library."""
Numbers: TypeAlias = complex | list[Any] | tuple[Any, ...]
"""Numbers and nested lists of them."""
Constant: TypeAlias = complex | list[Any] | tuple[Any, ...] | np.ndarray[Any, Any] | np.generic
"""Like ``Numbers``, or a NumPy array: a constant in an expression with an array of another library."""
Input: TypeAlias = Constant | Array
"""Everything that a tensor argument accepts."""


def kind_of(annotation) -> str:
    """The role in a parameter's annotation, which may be a string (``"Tensor | None"``); otherwise the type's name."""
    marks = getattr(annotation, "__metadata__", ())
    if marks:
        return marks[0]
    return str(annotation).partition(" ")[0].partition("[")[0].rpartition(".")[2]
