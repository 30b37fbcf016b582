"""Derivatives: special functions. ``hypot`` has derivative 0 where its length is 0."""

import math

from ...ops import cast, divide, equal, exp, i0, i1, ldexp, multiply, negative, polygamma, square, subtract, where
from ...ops.special import i1_over_x
from ..record import derivative

_ROOT_PI = math.sqrt(math.pi)


def _i1(g, x):
    return multiply(g, subtract(i0(x), i1_over_x(x)))


def _part(g, x, y):
    zero = equal(y, 0)
    return multiply(g, where(zero, 0.0, divide(x, where(zero, 1.0, y))))


derivative("cbrt", x=lambda g, y: divide(g, square(y) * 3))
derivative("rsqrt", x=lambda g, y: g * (y * square(y) * -0.5))
derivative("erfc", x=lambda g, x: multiply(g, exp(negative(square(x))) * (-2 / _ROOT_PI)))
derivative("erfinv", x=lambda g, y: g * (exp(square(y)) * (_ROOT_PI / 2)))
derivative("i0", x=lambda g, x: multiply(g, i1(x)))
derivative("i1", x=_i1)
derivative("lgamma", x=lambda g, x: multiply(g, polygamma(x)))
derivative("polygamma", x=lambda g, x, n: multiply(g, polygamma(x, n + 1)))
derivative("hypot", x1=lambda g, x1, y: _part(g, x1, y), x2=lambda g, x2, y: _part(g, x2, y))
derivative("ldexp", x1=lambda g, x2: ldexp(g, cast(x2, "int64")))
