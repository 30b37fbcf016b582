"""Special functions: roots, error functions, Bessel functions, lengths."""

from __future__ import annotations

import math
from math import inf

from ..annotations import Operand, Tensor
from ..backends._shared import I1_OVER_X, power_series
from . import scipy_functions
from ._checks import check_kind, check_real, integer
from ._compose import as_float, compute_in_single
from ._dispatch import op
from .elementwise import abs, divide, less, multiply, negative, power, reciprocal, sin, sqrt, square
from .indexing import where

__family__ = """Powers and roots."""


@op(check=check_real, elementwise=True)
def cbrt(x: Tensor) -> Tensor:
    """Cube root of each element, real for negative ones too.

    Gradient:
        ``1 / (3 * cbrt(x)**2)``; infinite at 0.

    Examples:
        >>> print(ops.cbrt(8.0), gradops.grad(ops.cbrt)(8.0).round(4))
        2.0 0.0833

    See Also:
        :func:`rsqrt`, :func:`hypot`, :func:`power`.
    """
    x = as_float(x)
    below = less(x, 0)
    root = power(where(below, negative(x), x), 1 / 3)
    return where(below, negative(root), root)


@op(elementwise=True, domain=(0, inf))
def rsqrt(x: Tensor) -> Tensor:
    """``1 / sqrt(x)`` of each element.

    Gradient:
        ``-rsqrt(x)**3 / 2``.

    Examples:
        >>> print(ops.rsqrt(4.0), gradops.grad(ops.rsqrt)(4.0))
        0.5 -0.0625

    See Also:
        :func:`cbrt`, :func:`hypot`, :func:`power`.
    """
    return reciprocal(sqrt(x))


@op(check=check_real, elementwise=True)
def hypot(x1: Operand, x2: Operand) -> Tensor:
    """``sqrt(x1**2 + x2**2)`` without overflow, elementwise.

    Returns:
        A tensor of the broadcast shape, in the operands' promoted dtype; integers give ``floatx``.

    Gradient:
        ``x1 / y`` and ``x2 / y``, summed over broadcast dimensions; 0 where both are 0.

    Examples:
        >>> print(ops.hypot(3.0, 4.0), *gradops.grad(ops.hypot, argnums=(0, 1))(3.0, 4.0))
        5.0 0.6 0.8

    See Also:
        :func:`rsqrt`, :func:`power`, :func:`cbrt`.
    """
    ...


__family__ = """Trigonometric functions."""


@op(elementwise=True, linear=("x",))
def deg2rad(x: Tensor) -> Tensor:
    """Degrees to radians: ``x * pi / 180``.

    Gradient:
        ``pi / 180``.

    Examples:
        >>> print(ops.deg2rad(180.0).round(4), gradops.grad(ops.deg2rad)(180.0).round(4))
        3.1416 0.0175

    See Also:
        :func:`rad2deg`, :func:`sinc`, :func:`sin`.
    """
    return multiply(x, math.pi / 180)


@op(elementwise=True, linear=("x",))
def rad2deg(x: Tensor) -> Tensor:
    """Radians to degrees: ``x * 180 / pi``.

    Gradient:
        ``180 / pi``.

    Examples:
        >>> print(ops.rad2deg(3.0).round(4), gradops.grad(ops.rad2deg)(3.0).round(4))
        171.8873 57.2958

    See Also:
        :func:`deg2rad`, :func:`sinc`, :func:`sin`.
    """
    return multiply(x, 180 / math.pi)


@op(elementwise=True)
@compute_in_single
def sinc(x: Tensor) -> Tensor:
    """``sin(pi * x) / (pi * x)`` of each element, 1 at 0.

    Gradient:
        ``(cos(pi * x) - sinc(x)) / x``; near 0 the power series' derivative, which is right to all orders.

    Examples:
        >>> print(ops.sinc(0.5).round(4), gradops.grad(ops.sinc)(0.5).round(4))
        0.6366 -1.2732

    See Also:
        :func:`rad2deg`, :func:`sin`, :func:`deg2rad`.
    """
    z = multiply(x, math.pi)
    near = less(abs(z), 0.1)
    series = power_series(square(where(near, z, 0.0)), [1.0, -1 / 6, 1 / 120, -1 / 5040, 1 / 362880])
    far = where(near, 1.0, z)
    return where(near, series, divide(sin(far), far))


__family__ = """Special functions."""


@op(check=check_real, elementwise=True)
def erfc(x: Tensor) -> Tensor:
    """``1 - erf(x)`` of each element, accurate where it is small.

    Gradient:
        ``-2 / sqrt(pi) * exp(-x**2)``.

    Examples:
        >>> print(ops.erfc(0.5).round(4), gradops.grad(ops.erfc)(0.5).round(4))
        0.4795 -0.8788

    See Also:
        :func:`erfinv`, :func:`i0`, :func:`gammainc`.
    """
    ...


@op(check=check_real, elementwise=True, domain=(-1, 1))
def erfinv(x: Tensor) -> Tensor:
    """The inverse of :func:`erf` at each element.

    Returns:
        A tensor of ``x``'s shape and dtype; infinite at -1 and 1, NaN beyond.

    Gradient:
        ``sqrt(pi) / 2 * exp(erfinv(x)**2)``.

    Examples:
        >>> print(ops.erfinv(0.5).round(4), gradops.grad(ops.erfinv)(0.5).round(4))
        0.4769 1.1126

    See Also:
        :func:`erfc`, :func:`i0`, :func:`gammainc`.
    """
    ...


@op(check=check_real, elementwise=True)
def i0(x: Tensor) -> Tensor:
    """Modified Bessel function of the first kind, of order 0, of each element.

    Gradient:
        ``i1(x)``.

    Examples:
        >>> print(ops.i0(0.5).round(4), gradops.grad(ops.i0)(0.5).round(4))
        1.0635 0.2579
    """
    ...


@op(public=False, check=check_real, elementwise=True)
def i1(x: Tensor) -> Tensor:
    """Modified Bessel function of the first kind, of order 1, of each element.

    Returns:
        A tensor of ``x``'s shape and dtype; integers and bools give ``floatx``.

    Gradient:
        ``i0(x) - i1(x) / x``; 1/2 at 0; near 0 right to all orders.
    """
    ...


def i1_over_x(x):
    """``i1(x) / x``; near 0 by the power series, which has all derivatives there."""
    near = less(abs(x), 0.1)
    far = where(near, 1.0, x)
    return where(near, power_series(square(where(near, x, 0.0)), I1_OVER_X), divide(i1(far), far))


@op(public=False, check=check_real, elementwise=True)
def lgamma(x: Tensor) -> Tensor:
    """Logarithm of the absolute value of the gamma function at each element.

    Returns:
        A tensor of ``x``'s shape and dtype; integers and bools give ``floatx``. Infinite at 0, -1, ...

    Gradient:
        ``polygamma(x)``, the digamma function.
    """
    ...


def _check_order(op, x, n=0):
    check_real(op, x)
    integer(op.name, n, "n", 0)


@op(public=False, check=_check_order, elementwise=True, domain=None)  # poles at 0, -1, -2, ...
def polygamma(x: Tensor, n: int = 0) -> Tensor:
    """Derivative ``n`` of the digamma function, itself the derivative of ``lgamma``, at each element.

    Returns:
        A tensor of ``x``'s shape and dtype; integers and bools give ``floatx``.

    Raises:
        ArgumentTypeError, ArgumentError: ``n`` is not an integer of at least 0.

    Gradient:
        ``polygamma(x, n + 1)``.
    """
    ...


@op(check=check_real, elementwise=True)
def gammainc(x1: Operand, x2: Operand) -> Tensor:
    """Regularised lower incomplete gamma function, elementwise: the gamma distribution function of shape ``x1``.

    Args:
        x1: the shape.
        x2: the upper end of the integral.

    Returns:
        A tensor of the broadcast shape, in the operands' promoted dtype; integers give ``floatx``. NaN for negative
        operands.

    Gradient:
        To ``x2`` the density, ``exp((x1 - 1) * log(x2) - x2 - lgamma(x1))``; to ``x1`` by an integral over the tail
        that does not contain the mode (Temme 1994 for the value; Takahasi and Mori 1974 for the quadrature rule).

    Examples:
        >>> print(ops.gammainc(2.0, 1.5).round(4))
        0.4422
        >>> print(*(g.round(4) for g in gradops.grad(ops.gammainc, argnums=(0, 1))(2.0, 1.5)))
        -0.3135 0.3347
    """
    return scipy_functions.find("special.gammainc")(x1, x2)


@op(check=check_real, elementwise=True)
def gammaincc(x1: Operand, x2: Operand) -> Tensor:
    """Regularised upper incomplete gamma function, elementwise: ``1 - gammainc(x1, x2)``, accurate where small.

    Args:
        x1: the shape.
        x2: the lower end of the integral.

    Returns:
        A tensor of the broadcast shape, in the operands' promoted dtype; integers give ``floatx``. NaN for negative
        operands.

    Gradient:
        Minus the gradient of :func:`gammainc`.

    Examples:
        >>> print(ops.gammaincc(2.0, 1.5).round(4))
        0.5578
        >>> print(*(g.round(4) for g in gradops.grad(ops.gammaincc, argnums=(0, 1))(2.0, 1.5)))
        0.3135 -0.3347

    See Also:
        :func:`gammainc`, :func:`erf`, :func:`i0`.
    """
    return scipy_functions.find("special.gammaincc")(x1, x2)


__family__ = """Rounding and representation."""


def _whole_exponent(op, x1, x2):
    check_kind(op.name, x1, (0, 1, 2), "real", "x1")
    check_kind(op.name, x2, (0, 1), "of whole numbers", "x2")


@op(check=_whole_exponent, elementwise=True, linear=("x1",), whole=("x2",))
def ldexp(x1: Operand, x2: Tensor) -> Tensor:
    """``x1 * 2**x2`` for whole ``x2``, elementwise.

    Returns:
        A tensor of the broadcast shape and of ``x1``'s dtype; integers give ``floatx``.

    Raises:
        ArgumentTypeError: an ``x2`` that is not of whole numbers.
        ShapeError: shapes that do not broadcast.

    Gradient:
        ``2**x2`` to ``x1``, summed over broadcast dimensions; none to ``x2``.

    Examples:
        >>> x = np.array([1.0, 3.0])
        >>> print(ops.ldexp(x, [2, 1]), gradops.grad(lambda x: ops.sum(ops.ldexp(x, [2, 1])))(x))
        [4. 6.] [4. 2.]

    See Also:
        :func:`nextafter`, :func:`floor`, :func:`ceil`.
    """
    ...
