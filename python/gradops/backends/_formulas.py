"""Formulas that hold where a library's special function, or its derivative, does not; written with operators."""

from __future__ import annotations

import math

I0 = [1.0, 1 / 4, 1 / 64, 1 / 2304, 1 / 147456]
I1_OVER_X = [1 / 2, 1 / 16, 1 / 384, 1 / 18432, 1 / 1474560]
"""Power series of the Bessel functions in ``x**2``, exact where ``abs(x)`` is below 0.1."""


def is_small_whole(x) -> bool:
    """True if an exponent is a Python number for which multiplying is as exact as a power."""
    return isinstance(x, (int, float)) and x in range(1, 9)


def power_series(x, coefficients):
    """The sum of ``coefficients[k] * x**k``."""
    *rest, total = coefficients
    for c in reversed(rest):
        total = total * x + c
    return total


EXPONENTS = {"float32": 300, "float64": 2100}
"""Powers of 2 beyond which every number but 0 is infinite or 0, a multiple of 3."""


def thirds(n):
    """Whole numbers in three parts: 2 to the power of each is finite where ``n`` is within ``EXPONENTS``."""
    first = n // 3
    second = (n - first) // 2
    return first, second, n - first - second


def polygamma_far(x, n: int):
    """``polygamma(x, n)`` for ``n`` above 0 and ``x`` beyond 1e16, where one term is all there is."""
    y = -1 / x
    for k in range(1, n):
        y = y * (-k / x)
    return -y


def cotangents(n: int) -> list[float]:
    """Derivative ``n`` of the cotangent as a polynomial of the cotangent: its coefficients, from the constant up."""
    p = [0.0, 1.0]
    for _ in range(n):
        slope = [k * c for k, c in enumerate(p)][1:]
        p = [-a - b for a, b in zip([*slope, 0.0, 0.0], [0.0, 0.0, *slope])]
    return p


def polygamma_sign(n: int) -> float:
    """The sign of ``polygamma(x, n)`` for ``n`` above 0 and positive ``x``, and its infinity at the poles."""
    return math.copysign(1.0, -1 if n % 2 == 0 else 1)
