"""Comparison of floating numbers: closeness, signs, infinities."""

from __future__ import annotations

from ..annotations import Operand, Tensor
from ._checks import check_real
from ._compose import is_complex, promoted
from ._dispatch import op
from .elementwise import (
    abs,
    add,
    divide,
    equal,
    imag,
    isfinite,
    isinf,
    isnan,
    less,
    less_equal,
    logical_and,
    logical_or,
    multiply,
    real_sign,
    subtract,
)
from .indexing import where
from .reductions import all

"""Comparison."""


@op(differentiable=False, elementwise=True)
def isclose(x1: Operand, x2: Operand, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Tensor:
    """``abs(x1 - x2) <= atol + rtol * abs(x2)``, elementwise.

    Args:
        rtol, atol: relative and absolute tolerance.
        equal_nan: count NaN as close to NaN.

    Returns:
        A bool tensor of the broadcast shape; equal infinities are close. It has no gradient.
    """
    x1, x2 = promoted(x1, x2, floating=True)
    near = less_equal(abs(subtract(x1, x2)), add(multiply(abs(x2), rtol), atol))
    close = logical_or(equal(x1, x2), logical_and(near, isfinite(x2)))
    return logical_or(close, logical_and(isnan(x1), isnan(x2))) if equal_nan else close


@op(differentiable=False)
def allclose(x1: Operand, x2: Operand, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Tensor:
    """True where all elements are close, by :func:`isclose`.

    Args:
        rtol, atol, equal_nan: as of :func:`isclose`.

    Returns:
        A bool tensor without dimensions. It has no gradient.

    Raises:
        ShapeError: shapes that do not broadcast.
    """
    return all(isclose(x1, x2, rtol, atol, equal_nan))


"""Tests of numbers."""


@op(differentiable=False, check=check_real, elementwise=True)
def isneginf(x: Tensor) -> Tensor:
    """True for negative infinity, for each element."""
    return logical_and(isinf(x), less(x, 0))


@op(differentiable=False, check=check_real, elementwise=True)
def isposinf(x: Tensor) -> Tensor:
    """True for positive infinity, for each element."""
    return logical_and(isinf(x), less(0, x))


@op(differentiable=False, elementwise=True)
def isreal(x: Tensor) -> Tensor:
    """True where the imaginary part is 0, for each element; always so where ``x`` is real."""
    return equal(imag(x), 0)


"""Absolute values and signs."""


@op(elementwise=True)
def sign(x: Tensor) -> Tensor:
    """-1, 0 or 1 (for complex numbers ``x / abs(x)``) of each element.

    Returns:
        A tensor of ``x``'s shape and dtype.

    Gradient:
        0, as in PyTorch; of complex numbers that of ``x / abs(x)``, 0 where ``x`` is 0.

    Examples:
        >>> import gradops
        >>> from gradops import ops
        >>> print(ops.sign(-0.5), gradops.grad(ops.sign)(-0.5))
        -1.0 0.0

    See Also:
        :func:`heaviside`, :func:`signbit`, :func:`fabs`.
    """
    if not is_complex(x):
        return real_sign(x)
    zero = equal(x, 0)
    return where(zero, 0.0, divide(x, abs(where(zero, 1.0, x))))


@op(differentiable=False, check=check_real, elementwise=True)
def signbit(x: Tensor) -> Tensor:
    """The sign bit of each element: true for negative numbers and for -0.0."""
    ...
