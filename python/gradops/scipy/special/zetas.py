"""Riemann's and Hurwitz' zeta functions, and the inverses of ``w * exp(w)``.

Derivatives of zeta functions by the exponent differentiate the Euler-Maclaurin sum term by term; for negative exponents
they use Riemann's functional equation (NIST's Digital Library of Mathematical Functions, 25.2 and 25.4).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ... import _scipy, ops
from ...annotations import Operand, Tensor
from ...extend import derivative
from .._define import composed, refused, ufunc
from .._tensors import as_complex, floating, inexact, is_complex
from .airys import real

__all__ = ["lambertw", "wrightomega", "zeta", "zetac"]

ORDERS = 3  # derivatives by the exponent
SERIES_TERMS = 24  # terms summed one by one before the Euler-Maclaurin formula takes the rest


# Power series in a step of the exponent: lists of coefficients --------------------


def _times(a: list, b: list) -> list:
    return [sum(a[k] * b[n - k] for k in range(n + 1)) for n in range(len(a))]


def _exponential(rate, order: int) -> list:
    """``exp(rate * step)``."""
    return [rate**k / math.factorial(k) for k in range(order + 1)]


def _exponential_series(a: list) -> list:
    """``exp`` of a series without constant term."""
    found = [1.0 + 0 * a[0]]
    for n in range(1, len(a)):
        found.append(sum(k * a[k] * found[n - k] for k in range(1, n + 1)) / n)
    return found


def _euler_maclaurin(s, q, order: int) -> list:
    """The series of ``zeta(s + step, q)``, q above 0."""
    total = [0.0 * s for _ in range(order + 1)]
    for k in range(SERIES_TERMS):
        place = q + k
        term = _exponential(-np.log(place), order)
        size = place**-s
        total = [t + size * x for t, x in zip(total, term)]
    a = q + SERIES_TERMS
    rest = [1.0 + 0 * s] + [0.0 * s] * order
    integral = [a * (-1.0) ** k / (s - 1) ** (k + 1) for k in range(order + 1)]
    rest = [x + y / 2 for x, y in zip(integral, rest)]
    rising = [s, 1.0 + 0 * s, *[0.0 * s] * order][: order + 1]
    bernoulli = _scipy.special.bernoulli(24)
    for j in range(1, 12):
        scale = bernoulli[2 * j] / math.factorial(2 * j) / a ** (2 * j - 1)
        rest = [x + scale * y for x, y in zip(rest, rising)]
        for step in (2 * j - 1, 2 * j):
            rising = _times(rising, [s + step, 1.0 + 0 * s, *[0.0 * s] * order][: order + 1])
    size = a**-s
    rest = [size * x for x in _times(rest, _exponential(-np.log(a), order))]
    return [x + y for x, y in zip(total, rest)]


def _reflected(s, order: int) -> list:
    """The series of ``zeta(s + step)``, s below 0.

    It is ``2 * (2 * pi)**(s - 1) * sin(pi * s / 2) * gamma(1 - s) * zeta(1 - s)``.
    """
    x = 1 - s
    other = _euler_maclaurin(x, np.ones_like(s), order)
    other = [(-1) ** k * y for k, y in enumerate(other)]
    polygamma = [(-1) ** (k + 1) * _scipy.special.polygamma(k, x) / math.factorial(k + 1) for k in range(order)]
    gamma = _exponential_series([0.0 * s, *polygamma])
    sine = [(math.pi / 2) ** k / math.factorial(k) * _sine(s, k) for k in range(order + 1)]
    power = _exponential(math.log(2 * math.pi), order)
    size = 2 * np.exp((s - 1) * math.log(2 * math.pi) + _scipy.special.gammaln(x))
    return [size * y for y in _times(_times(other, gamma), _times(sine, power))]


def _sine(s, k: int):
    """``sin(pi * (s + k) / 2)``, exactly 0 where it is."""
    turns = np.mod(s + k, 4)
    return np.where(turns == 2, 0.0, np.sin(math.pi / 2 * turns))


def _zeta_by_exponent(n: int) -> Callable:
    def function(x, q):
        dtype = np.result_type(x, q)
        s, q = (v.astype("float64") for v in np.broadcast_arrays(x, q))
        with np.errstate(all="ignore"):
            valid = (q > 0) & ((s > 1) | ((q == 1) & (s < 1))) & np.isfinite(s)
            low = valid & (s < -1)
            s1, q1 = np.where(valid & ~low, s, 2.0), np.where(valid & ~low, q, 1.0)
            y = np.where(valid, math.factorial(n) * _euler_maclaurin(s1, q1, n)[n], np.nan)
            if low.any():
                y = np.where(low, math.factorial(n) * _reflected(np.where(low, s, -2.0), n)[n], y)
            y = np.where(s == np.inf, 0.0, y)
        return y.astype(dtype)

    return function


@ufunc("special.zeta")
def _zeta(x: Operand, q: Operand) -> Tensor:
    """Hurwitz' zeta function."""


def _orders() -> list[Callable]:
    made: list[Callable] = [_zeta]
    for n in range(1, ORDERS + 1):

        def function(x: Operand, q: Operand) -> Tensor:
            """A derivative of Hurwitz' zeta function by the exponent."""

        function.__name__ = function.__qualname__ = f"zeta_by_exponent_{n}"
        made.append(ufunc(_zeta_by_exponent(n))(function))
    return made


_ZETA = _orders()


def _rules(n: int) -> None:
    def by_place(g, x, q):
        """The derivative of order n of ``-x * zeta(x + 1, q)`` by ``x``."""
        slope = x * _ZETA[n](x + 1, q)
        return -g * (slope + n * _ZETA[n - 1](x + 1, q) if n else slope)

    by_exponent = refused("zeta", "x", f"beyond order {ORDERS}")
    if n < ORDERS:
        higher = _ZETA[n + 1]
        by_exponent = lambda g, x, q: g * higher(x, q)  # noqa: E731
    derivative(_ZETA[n], x=by_exponent, q=by_place)


for _n in range(ORDERS + 1):
    _rules(_n)

zeta_slope = _ZETA[1]
"""The derivative of :func:`zeta` by the exponent."""


@composed
def zeta(x: Operand, q: Operand | None = None) -> Tensor:
    """Hurwitz' zeta function, the sum of ``(k + q)**-x`` over k from 0; Riemann's without ``q``, also below 1.

    Returns:
        A tensor of the shape that ``x`` and ``q`` broadcast to.

    Raises:
        ArgumentTypeError: a complex tensor.

    Gradient:
        By ``q`` ``-x * zeta(x + 1, q)``; by ``x`` the sum's of Euler and Maclaurin, to order 3.
    """
    given = [inexact(x)] if q is None else floating(x, q)
    for tensor in given:
        real("zeta", tensor, "x")
    return _riemann(*given) if q is None else _zeta(*given)


@ufunc(lambda x: _scipy.special.zeta(x), x=lambda g, x: g * _ZETA[1](x, 1.0))
def _riemann(x: Tensor) -> Tensor:
    """Riemann's zeta function."""


@ufunc(x=lambda g, x: g * _ZETA[1](x, 1.0))
def zetac(x: Tensor) -> Tensor:
    """Riemann's zeta function minus 1.

    Gradient:
        As of :func:`zeta`.
    """


# w * exp(w) ----------------------------------------------------------------------------------------------------------


def _branch(z, k):
    return _scipy.special.lambertw(z, np.round(k.real).astype("int64"))


@ufunc(_branch, z=lambda g, z, k, y: g * (ops.exp(-y) / (1 + y)), k=refused("lambertw", "k", "the number of a branch"))
def _lambertw(z: Operand, k: Operand) -> Tensor:
    """Lambert's W of complex arguments."""


@composed
def lambertw(z: Operand, k: Operand = 0, tol: float = 1e-8) -> Tensor:
    """Lambert's W, the solution of ``w * exp(w) = z`` on the branch ``k``.

    Args:
        tol: accepted for compatibility with SciPy, and not used: the solution has all digits.

    Returns:
        A complex tensor of the shape that ``z`` and ``k`` broadcast to; its real part is the solution of real ``z``.

    Gradient:
        ``exp(-w) / (1 + w)``; infinite at ``-exp(-1)``.
    """
    z = inexact(z)
    return _lambertw(z if is_complex(z) else as_complex(z, 0 * z), k)


@ufunc(z=lambda g, y: g * (y / (1 + y)))
def wrightomega(z: Tensor) -> Tensor:
    """Wright's omega, the solution of ``w + log(w) = z``, also of complex arguments.

    Gradient:
        ``w / (1 + w)``.
    """
