"""Helpers that several backends' kernels share: formulas where a library's own are wrong, and checks of matrices."""

from __future__ import annotations

import math
from functools import wraps

import numpy as np

I0 = [1.0, 1 / 4, 1 / 64, 1 / 2304, 1 / 147456]
I1_OVER_X = [1 / 2, 1 / 16, 1 / 384, 1 / 18432, 1 / 1474560]
"""Power series of the Bessel functions in ``x**2``, exact where ``abs(x)`` is below 0.1."""


def weight(k):
    """The weight of tensor ``k`` in a sum that is 0 only if every tensor is 0.

    Cosines of distinct positive integers are linearly independent over the algebraic numbers (Lindemann-Weierstrass).
    """
    return 2 + (math.cos(k) if isinstance(k, int) else np.cos(k))


def combined(*parts):
    """A weighted sum of real tensors whose derivative vanishes only where the derivatives of all of them do."""
    first, *rest = [part * weight(k) for k, part in enumerate(parts, 1)]
    return sum(rest, first)


def is_small_whole(x) -> bool:
    """True if an exponent is a Python number for which repeated multiplication is as exact as a power."""
    return isinstance(x, (int, float)) and x in range(1, 9)


def power_series(x, coefficients):
    """The sum of ``coefficients[k] * x**k``."""
    *rest, total = coefficients
    for c in reversed(rest):
        total = total * x + c
    return total


def inverses(xp, log):
    """``arctan``, ``arcsinh`` and ``arccosh`` with asymptotic forms far from 0.

    The derivatives of the library's own functions are 0 there, because squares overflow, and NaN at infinity.

    Args:
        xp: the library's namespace, with its own ``atan``, ``asinh`` and ``acosh``.
        log: its logarithm.
    """

    def kernel(near, far):
        def wrapped(x):
            beyond = xp.abs(x) > (200 if (getattr(x.dtype, "size", None) or x.dtype.itemsize) == 2 else 1e9)
            two = xp.ones_like(x) * 2
            return xp.where(beyond, far(xp.where(beyond, x, two)), near(xp.where(beyond, two, x)))

        return wrapped

    return (
        kernel(xp.atan, lambda x: xp.sign(x) * (math.pi / 2) - 1 / x),
        kernel(xp.asinh, lambda x: xp.sign(x) * (log(xp.abs(x)) + math.log(2))),
        kernel(xp.acosh, lambda x: log(x) + math.log(2)),
    )


EXPONENTS = {"float32": 300, "float64": 2100}
"""The power of 2 beyond which scaling makes every number infinite or 0; a multiple of 3 for :func:`thirds`."""


def thirds(n):
    """Split integers into three summands; 2 to the power of each is finite if ``n`` is within ``EXPONENTS``."""
    first = n // 3
    second = (n - first) // 2
    return first, second, n - first - second


def polygamma_far(x, n: int):
    """``polygamma(x, n)`` for ``n`` above 0 and ``x`` beyond 1e16, where the series' first term is exact."""
    y = -1 / x
    for k in range(1, n):
        y = y * (-k / x)
    return -y


def cotangents(n: int) -> list[float]:
    """Coefficients, constant first, of derivative ``n`` of the cotangent as a polynomial in the cotangent."""
    p = [0.0, 1.0]
    for _ in range(n):
        slope = [k * c for k, c in enumerate(p)][1:]
        p = [-a - b for a, b in zip([*slope, 0.0, 0.0], [0.0, 0.0, *slope])]
    return p


def polygamma_sign(n: int) -> float:
    """The sign of ``polygamma(x, n)`` for ``n`` above 0 and positive ``x``, which is also that of its poles."""
    return math.copysign(1.0, -1 if n % 2 == 0 else 1)


# Matrices: error messages, and kernels in float32 for half precision --------------------------------------------------


NOT_SYMMETRIC = "the matrix must be symmetric (Hermitian if complex)"
NOT_POSITIVE_DEFINITE = "the matrix must be positive definite"
SINGULAR = "the matrix is singular"
NOT_FINITE = "the matrix must have finite elements only"

ASYMMETRY = 1e-3
"""The largest asymmetry, relative to the largest element, that passes: room for rounding and finite differences."""


def is_vector(a, b) -> bool:
    """True if the right side of a linear system is a vector, or one vector for each matrix of a batch."""
    return len(b.shape) == 1 or len(b.shape) == len(a.shape) - 1 and tuple(b.shape) == tuple(a.shape[:-1])


def full_precision(floats, cast, dtype_name):
    """A decorator for kernels of one matrix: half precision is computed in float32, and integers become ``floatx``."""

    def decorate(function):
        @wraps(function)
        def kernel(x, *options):
            x = floats(x)
            name = dtype_name(x)
            if name not in ("float16", "bfloat16"):
                return function(x, *options)
            return _narrow(function(cast(x, "float32"), *options), name, cast, dtype_name)

        return kernel

    return decorate


def _narrow(result, name, cast, dtype_name):
    """Cast float32 results back to the half precision of the argument."""
    if isinstance(result, tuple):
        return tuple(_narrow(part, name, cast, dtype_name) for part in result)
    return cast(result, name) if dtype_name(result) == "float32" else result


def system_in_full_precision(floats, promoted, cast, dtype_name):
    """``full_precision`` for kernels of a matrix and a right side; a vector is passed to them as one column."""

    def decorate(function):
        @wraps(function)
        def kernel(a, b, *options):
            a, b = promoted(a, b)
            a, b = floats(a), floats(b)
            name = dtype_name(a)
            half = name in ("float16", "bfloat16")
            if half:
                a, b = cast(a, "float32"), cast(b, "float32")
            y = function(a, b[..., None], *options)[..., 0] if is_vector(a, b) else function(a, b, *options)
            return _narrow(y, name, cast, dtype_name) if half else y

        return kernel

    return decorate
