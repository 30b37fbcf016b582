"""Exponential, trigonometric and Fresnel integrals, and integrals of Bessel and Struve functions."""

from __future__ import annotations

import math
from collections.abc import Callable

from ... import _scipy, ops
from ...annotations import Operand, Tensor
from ...extend import derivative
from .._define import composed, promoting, refused, ufunc
from .._formulas import choose
from .._tensors import as_complex, constant, inexact, is_complex
from . import _scipy_corrections as corrected
from .airys import parts
from .bessel import i0, j0, k0, y0

__all__ = """
    besselpoly erf_zeros exp1 expi expn fresnel fresnel_zeros fresnelc_zeros fresnels_zeros it2i0k0 it2j0y0
    it2struve0 iti0k0 itj0y0 itmodstruve0 itstruve0 modfresnelm modfresnelp modstruve shichi sici spence struve wofz
""".split()

erf_zeros, fresnel_zeros = constant("special.erf_zeros"), constant("special.fresnel_zeros")
fresnelc_zeros, fresnels_zeros = constant("special.fresnelc_zeros"), constant("special.fresnels_zeros")


def series(w, coefficients):
    """Evaluate a power series by Horner's rule."""
    total = coefficients[-1]
    for c in reversed(coefficients[:-1]):
        total = total * w + c
    return total


def near_0(x, width: float, near: Callable, far: Callable):
    """``near(x)`` within ``width`` of 0, else ``far(x)``."""
    return choose(ops.abs(x) < width, lambda of: near(of(x, 0.0)), lambda of: far(of(x, 1.0)))


# Exponential integrals -----------------------------------------------------------------------------------------------


@ufunc(z=lambda g, z: -g * (ops.exp(-z) / z))
def exp1(z: Tensor) -> Tensor:
    """Exponential integral, of ``exp(-t) / t`` from ``z`` to infinity, also of complex arguments.

    Gradient:
        ``-exp(-z) / z``.
    """


@ufunc(x=lambda g, x: g * (ops.exp(x) / x))
def expi(x: Tensor) -> Tensor:
    """Exponential integral: principal value of the integral of ``exp(t) / t`` from -infinity to ``x``, also complex.

    Gradient:
        ``exp(x) / x``.
    """


@ufunc(corrected.expn, n=refused("expn", "n", "of whole orders"), x=promoting(lambda g, n, x: g * _expn_slope(n, x)))
def expn(n: Operand, x: Operand) -> Tensor:
    """Generalised exponential integral of ``exp(-x * t) / t**n`` from 1 to infinity, for integer ``n``.

    Gradient:
        By ``x`` ``-expn(n - 1, x)``; an error by ``n``.
    """


def _expn_slope(n, x):
    below = ops.maximum(n - 1, 0 * n)
    return choose(
        n + 0 * x >= 1,
        lambda of: -expn(of(below, 1.0), of(x, 1.0)),
        lambda of: -ops.exp(-of(x, 1.0)) * (1 / of(x, 1.0) + 1 / (of(x, 1.0) * of(x, 1.0))),
    )


# Trigonometric and hyperbolic integrals ------------------------------------------------------------------------------

_TERMS = [1 / math.factorial(2 * k + 1) for k in range(9)]


def _sine(x):
    """``sin(x) / x``."""
    return near_0(x, 0.5, lambda x: series(-(x * x), _TERMS), lambda x: ops.sin(x) / x)


def _hyperbolic(x):
    """``sinh(x) / x``."""
    return near_0(x, 0.5, lambda x: series(x * x, _TERMS), lambda x: ops.sinh(x) / x)


_SICI = parts("sici", 2, lambda *_: (lambda g, x: g * _sine(x), lambda g, x: g * (ops.cos(x) / x)))
_SHICHI = parts("shichi", 2, lambda *_: (lambda g, x: g * _hyperbolic(x), lambda g, x: g * (ops.cosh(x) / x)))
_FRESNEL = parts(
    "fresnel",
    2,
    lambda *_: (
        lambda g, x: g * ops.sin(math.pi / 2 * (x * x)),
        lambda g, x: g * ops.cos(math.pi / 2 * (x * x)),
    ),
)


@composed
def sici(x: Tensor) -> tuple:
    """Sine and cosine integral, also of complex arguments.

    Returns:
        Two tensors of ``x``'s shape.

    Gradient:
        ``sin(x) / x`` and ``cos(x) / x``.
    """
    x = inexact(x)
    return _SICI[0](x), _SICI[1](x)


@composed
def shichi(x: Tensor) -> tuple:
    """Hyperbolic sine and cosine integral, also of complex arguments.

    Returns:
        Two tensors of ``x``'s shape.

    Gradient:
        ``sinh(x) / x`` and ``cosh(x) / x``.
    """
    x = inexact(x)
    return _SHICHI[0](x), _SHICHI[1](x)


@composed
def fresnel(z: Tensor) -> tuple:
    """Fresnel's integrals S and C, also of complex arguments.

    Returns:
        Two tensors of ``z``'s shape.

    Gradient:
        ``sin(pi / 2 * z**2)`` and ``cos(pi / 2 * z**2)``.
    """
    z = inexact(z)
    return _FRESNEL[0](z), _FRESNEL[1](z)


def _modified_fresnel(name: str, sign: int) -> Callable:
    """Return both integrals as complex numbers, made of ops for real and imaginary parts."""

    def part(i: int, which: str) -> Callable:
        def function(x: Tensor) -> Tensor:
            """A part of a modified Fresnel integral."""

        function.__name__ = function.__qualname__ = f"{name}_{i}_{which}"
        return ufunc(lambda x: getattr(getattr(_scipy.special, name)(x)[i], which))(function)

    re, im, k_re, k_im = (part(i, which) for i in (0, 1) for which in ("real", "imag"))
    size = 1 / math.sqrt(2 * math.pi)
    derivative(re, x=lambda g, x: -g * ops.cos(x * x))
    derivative(im, x=lambda g, x: -sign * g * ops.sin(x * x))
    derivative(k_re, x=lambda g, x: g * (sign * 2 * x * k_im(x) - size))
    derivative(k_im, x=lambda g, x: g * (-sign * 2 * x * k_re(x) + sign * size))

    def function(x: Tensor) -> tuple:
        x = inexact(x)
        return as_complex(re(x), im(x)), as_complex(k_re(x), k_im(x))

    function.__name__ = function.__qualname__ = name
    power = "1j * t**2" if sign > 0 else "-1j * t**2"
    function.__doc__ = f"""Modified Fresnel integral, of ``exp({power})`` from ``x`` to infinity, and K of it.

    Returns:
        Two complex tensors of ``x``'s shape.

    Gradient:
        That of the integral, ``-exp({power.replace("t", "x")})``, and of the factor that makes K of it.
    """
    return composed(function)


modfresnelp, modfresnelm = _modified_fresnel("modfresnelp", 1), _modified_fresnel("modfresnelm", -1)


@ufunc(z=lambda g, z: -g * near_0(z - 1, 0.1, lambda u: series(u, _ALTERNATING), lambda u: ops.log(u + 1) / u))
def spence(z: Tensor) -> Tensor:
    """Spence's function, the dilogarithm of ``1 - z``, also of complex arguments.

    Gradient:
        ``log(z) / (1 - z)``; -1 at 1.
    """


_ALTERNATING = [(-1) ** k / (k + 1) for k in range(20)]


@ufunc("special.wofz", z=lambda g, z, y: -2 * g * (z * y - 1j / math.sqrt(math.pi)))
def _wofz(z: Tensor) -> Tensor:
    """Faddeeva's function of complex numbers."""


@composed
def wofz(z: Tensor) -> Tensor:
    """Faddeeva's function ``exp(-z**2) * erfc(-1j * z)``.

    Returns:
        A complex tensor of ``z``'s shape.

    Gradient:
        ``2j / sqrt(pi) - 2 * z * wofz(z)``.
    """
    z = inexact(z)
    return _wofz(z if is_complex(z) else as_complex(z, ops.zeros_like(z)))


# Struve functions ----------------------------------------------------------------------------------------------------


@ufunc(v=refused("struve", "v"), x=promoting(lambda g, v, x: g * (struve(v - 1, x) - struve(v, x) * (v / x))))
def struve(v: Operand, x: Operand) -> Tensor:
    """Struve function of real order.

    Gradient:
        By ``x`` ``struve(v - 1, x) - v / x * struve(v, x)``; an error by ``v``.
    """


@ufunc(v=refused("modstruve", "v"), x=promoting(lambda g, v, x: g * (modstruve(v - 1, x) - modstruve(v, x) * (v / x))))
def modstruve(v: Operand, x: Operand) -> Tensor:
    """Modified Struve function of real order.

    Gradient:
        By ``x`` ``modstruve(v - 1, x) - v / x * modstruve(v, x)``; an error by ``v``.
    """


@ufunc(x=lambda g, x: g * struve(0.0, x))
def itstruve0(x: Tensor) -> Tensor:
    """Integral of the Struve function of order 0 from 0 to ``x``.

    Gradient:
        ``struve(0, x)``.
    """


@ufunc(x=lambda g, x: -g * (struve(0.0, x) / x))
def it2struve0(x: Tensor) -> Tensor:
    """Integral of the Struve function of order 0, divided by its argument, from ``x`` to infinity.

    Gradient:
        ``-struve(0, x) / x``.
    """


@ufunc(x=lambda g, x: g * modstruve(0.0, x))
def itmodstruve0(x: Tensor) -> Tensor:
    """Integral of the modified Struve function of order 0 from 0 to ``x``.

    Gradient:
        ``modstruve(0, x)``.
    """


# Integrals of Bessel functions ---------------------------------------------------------------------------------------

_LESS_1 = [1 / (math.factorial(k) ** 2 * 4**k) for k in range(1, 10)]
_ITJ0Y0 = parts("itj0y0", 2, lambda *_: (lambda g, x: g * j0(x), lambda g, x: g * y0(x)))
_ITI0K0 = parts("iti0k0", 2, lambda *_: (lambda g, x: g * i0(x), lambda g, x: g * k0(x)))
_IT2J0Y0 = parts(
    "it2j0y0",
    2,
    lambda *_: (
        lambda g, x: g * near_0(x, 0.5, lambda x: x * series(-(x * x), _LESS_1), lambda x: (1 - j0(x)) / x),
        lambda g, x: -g * (y0(x) / x),
    ),
)
_IT2I0K0 = parts(
    "it2i0k0",
    2,
    lambda *_: (
        lambda g, x: g * near_0(x, 0.5, lambda x: x * series(x * x, _LESS_1), lambda x: (i0(x) - 1) / x),
        lambda g, x: -g * (k0(x) / x),
    ),
)


def _pair(name: str, made: list[Callable], title: str, slopes: str) -> Callable:
    def function(x: Tensor) -> tuple:
        x = inexact(x)
        return made[0](x), made[1](x)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""{title}.

    Returns:
        Two tensors of ``x``'s shape.

    Gradient:
        {slopes}.
    """
    return composed(function)


itj0y0 = _pair("itj0y0", _ITJ0Y0, "Integrals of the Bessel functions of order 0 from 0 to ``x``", "``j0`` and ``y0``")
iti0k0 = _pair(
    "iti0k0", _ITI0K0, "Integrals of the modified Bessel functions of order 0 from 0 to ``x``", "``i0`` and ``k0``"
)
it2j0y0 = _pair(
    "it2j0y0",
    _IT2J0Y0,
    "Integrals of ``(1 - j0(t)) / t`` from 0 to ``x``, and of ``y0(t) / t`` from ``x`` to infinity",
    "``(1 - j0(x)) / x`` and ``-y0(x) / x``",
)
it2i0k0 = _pair(
    "it2i0k0",
    _IT2I0K0,
    "Integrals of ``(i0(t) - 1) / t`` from 0 to ``x``, and of ``k0(t) / t`` from ``x`` to infinity",
    "``(i0(x) - 1) / x`` and ``-k0(x) / x``",
)


@ufunc(
    a=promoting(lambda g, a, lmb, nu: g * (besselpoly(a, lmb, nu) * (nu / a) - 2 * besselpoly(a, lmb + 1, nu + 1))),
    lmb=refused("besselpoly", "lmb"),
    nu=refused("besselpoly", "nu"),
)
def besselpoly(a: Operand, lmb: Operand, nu: Operand) -> Tensor:
    """Integral of ``x**lmb * jv(nu, 2 * a * x)`` from 0 to 1.

    Gradient:
        By ``a`` ``nu / a * besselpoly(a, lmb, nu) - 2 * besselpoly(a, lmb + 1, nu + 1)``; an error by
        ``lmb`` and ``nu``.
    """
