"""Ops of your own, with the facts that gradops knows about its own ops; and libraries of your own.

An op made here is like any op of gradops. It finds its kernel by the types of its arguments; ``jit``
records it; batching, forward mode, sparsity and labels follow from its facts; errors name its arguments. ::

    from gradops import extend, ops

    @extend.op(elementwise=True)
    def soft_tanh(x):
        \"\"\"A tanh with thicker tails.\"\"\"
        return x / (1 + ops.abs(x))

    extend.derivative(soft_tanh, x=lambda g, x: g / ops.square(1 + ops.abs(x)))

    @extend.kernel(soft_tanh, "numpy")
    def of_arrays(x):
        return x / (1 + np.abs(x))

After ``autograd.extend`` (``primitive``, ``defvjp``) and ``jax.extend.core.Primitive``.
"""

from typing import TYPE_CHECKING

from .._names import namespace
from ..annotations import Axes, Axis, DType, Index, Indices, Integer, Integers, Operand, Shape, Tensor, Tensors
from ..backends.namespace import backend
from ..ops._registry import Facts
from .definition import derivative, kernel, op

if TYPE_CHECKING:
    from .laws import check

__all__ = [
    "Axes",
    "Axis",
    "DType",
    "Facts",
    "Index",
    "Indices",
    "Integer",
    "Integers",
    "Operand",
    "Shape",
    "Tensor",
    "Tensors",
    "backend",
    "check",
    "derivative",
    "kernel",
    "op",
]

__dir__, __getattr__ = namespace(__name__, objects={"check": "laws"})
