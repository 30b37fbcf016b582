"""The vocabulary of the ops' signatures.

An annotation says what an argument is to gradops: dispatch looks at ``Tensor``, ``Operand``,
``Tensors`` and ``Indices``; the R generator reads all of them to know what to convert.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

Tensor = Any
"""A tensor or variable, or what converts to one: a number, a nested list, an array."""
Operand = Any
"""As ``Tensor``, but a Python number stays weak: it takes the dtype of the other operands."""
Tensors = Sequence[Any]
"""A list or tuple of tensors, or one tensor to be taken apart along its first axis."""
Structure = Any
"""A tensor or a nested tuple, list or dict of tensors."""
Axis = int
"""A dimension: 0-based here, 1-based in R; negative counts from the end in both."""
Axes = Any
"""An ``Axis``, several, or None for all."""
Index = int
"""A position along an axis: 0-based here, 1-based in R."""
Indices = Any
"""As ``Tensor``, of positions: 0-based here, 1-based in R; negative ones count from the end in both."""
Integer = int
"""A whole number; R numerics that are whole pass."""
Integers = Any
"""A whole number or several."""
Shape = Sequence[int]
"""Sizes of dimensions."""
DType = Any
"""A dtype's name, or a library's dtype object."""
Function = Callable[..., Any]
