"""Error functions and the normal distribution."""

from __future__ import annotations

import math

import numpy as np

from ... import _scipy, ops
from ...annotations import Operand, Tensor
from .._define import composed, ufunc
from .._formulas import choose, exp
from .._tensors import floating, is_complex

__all__ = "dawsn erf erfc erfcinv erfcx erfi erfinv log_ndtr ndtr ndtri ndtri_exp owens_t voigt_profile".split()

erfinv = ops.erfinv
ndtr = ops.activations.normal_cdf

_SLOPE = 2 / math.sqrt(math.pi)
_LOG_ROOT = math.log(2 * math.pi) / 2


@ufunc("special.erf", z=lambda g, z: g * _SLOPE * exp(-ops.square(z)))
def _erf(z: Tensor) -> Tensor:
    """The error function of complex numbers."""


@ufunc("special.erfc", z=lambda g, z: -g * _SLOPE * exp(-ops.square(z)))
def _erfc(z: Tensor) -> Tensor:
    """The complementary error function of complex numbers."""


@composed
def erf(z: Tensor) -> Tensor:
    """Error function, ``2 / sqrt(pi)`` times the integral of ``exp(-t**2)`` from 0 to ``z``; :func:`gradops.ops.erf`.

    Returns:
        A tensor of ``z``'s shape and dtype; integers and bools give ``floatx``.

    Gradient:
        ``2 / sqrt(pi) * exp(-z**2)``.
    """
    return _erf(z) if is_complex(z) else ops.erf(z)


@composed
def erfc(x: Tensor) -> Tensor:
    """Complementary error function, ``1 - erf(x)``, accurate where it is small; :func:`gradops.ops.erfc`.

    Returns:
        A tensor of ``x``'s shape and dtype; integers and bools give ``floatx``.

    Gradient:
        ``-2 / sqrt(pi) * exp(-x**2)``.
    """
    return _erfc(x) if is_complex(x) else ops.erfc(x)


@ufunc(torch="special.erfcx", jax="scipy.special.erfcx", x=lambda g, x, y: g * _erfcx_slope(x, y))
def erfcx(x: Tensor) -> Tensor:
    """Scaled complementary error function, ``exp(x**2) * erfc(x)``.

    Gradient:
        ``2 * x * erfcx(x) - 2 / sqrt(pi)``; of large ``x`` by its asymptotic series, as the terms cancel.
    """


@ufunc(z=lambda g, z: g * _SLOPE * exp(ops.square(z)))
def erfi(z: Tensor) -> Tensor:
    """Imaginary error function, ``-1j * erf(1j * z)``.

    Gradient:
        ``2 / sqrt(pi) * exp(z**2)``.
    """


@ufunc(x=lambda g, x, y: g * _dawsn_slope(x, y))
def dawsn(x: Tensor) -> Tensor:
    """Dawson's integral, ``sqrt(pi) / 2 * exp(-x**2) * erfi(x)``.

    Gradient:
        ``1 - 2 * x * dawsn(x)``; of large ``x`` by its asymptotic series, as the terms cancel.
    """


def _gaussian(z):
    return exp(-ops.square(z))


def _series(x, sign: float):
    """The sum of (2n + 1)!! (sign / (2 x**2))**(n + 1) for n >= 0, of large ``x``."""
    w = sign / (2 * ops.square(x))
    total = 0.0
    for n in range(16, 0, -1):
        total = (2 * n - 1) * w * (1 + total)
    return total


def _erfcx_slope(x, y):
    far = ops.real(x) > 12
    near = 2 * ops.where(far, 0.0, x) * ops.where(far, 0.0, y) - _SLOPE
    return ops.where(far, _SLOPE * _series(ops.where(far, x, 20.0), -1.0), near)


def _dawsn_slope(x, y):
    far = ops.abs(x) > 12
    near = 1 - 2 * ops.where(far, 0.0, x) * ops.where(far, 0.0, y)
    return ops.where(far, -_series(ops.where(far, x, 20.0), 1.0), near)


@ufunc(domain=(0.0, 2.0), p=lambda g, y: -g * (exp(ops.square(y)) / _SLOPE))
def erfcinv(p: Tensor) -> Tensor:
    """Inverse of :func:`erfc`.

    Gradient:
        ``-sqrt(pi) / 2 * exp(erfcinv(p)**2)``.
    """


@ufunc(torch="special.log_ndtr", x=lambda g, x, y: g * _mills(x, y))
def log_ndtr(x: Tensor) -> Tensor:
    """Logarithm of :func:`ndtr`, accurate in both tails.

    Gradient:
        The inverse Mills ratio, ``exp(-x**2 / 2 - log_ndtr(x)) / sqrt(2 * pi)``; below -1 by :func:`erfcx`.
    """


def _density(x):
    return exp(-ops.square(x) / 2 - _LOG_ROOT)


def _mills(x, y):
    low = x < -1
    below = math.sqrt(2 / math.pi) / erfcx(ops.where(low, x, -1.0) / -math.sqrt(2))
    high = ops.where(low, 0.0, x)
    return ops.where(low, below, exp(-ops.square(high) / 2 - _LOG_ROOT - ops.where(low, 0.0, y)))


@ufunc(
    domain=(0.0, 1.0),
    torch="special.ndtri",
    jax="scipy.special.ndtri",
    tensorflow="math.ndtri",
    p=lambda g, y: g * exp(ops.square(y) / 2 + _LOG_ROOT),
)
def ndtri(p: Tensor) -> Tensor:
    """Inverse of :func:`ndtr`: the quantile of the standard normal distribution.

    Gradient:
        ``sqrt(2 * pi) * exp(ndtri(p)**2 / 2)``.
    """


@ufunc(p=lambda g, p, y: g / _mills(y, p))
def ndtri_exp(p: Tensor) -> Tensor:
    """Inverse of :func:`log_ndtr`: the quantile of the logarithm ``p`` of a probability.

    Gradient:
        ``sqrt(2 * pi) * exp(p + ndtri_exp(p)**2 / 2)``, by the inverse Mills ratio.
    """


@ufunc(
    h=lambda g, h, a: -g * _density(h) * erf(a * h / math.sqrt(2)) / 2,
    a=lambda g, h, a: g * exp(-ops.square(h) * (1 + ops.square(a)) / 2) / (2 * math.pi * (1 + ops.square(a))),
)
def owens_t(h: Operand, a: Operand) -> Tensor:
    """Owen's T function, the probability that X > h and 0 < Y < a * X of independent standard normal X and Y.

    Gradient:
        By ``h`` ``-exp(-h**2 / 2) * erf(a * h / sqrt(2)) / (2 * sqrt(2 * pi))``, by ``a``
        ``exp(-h**2 * (1 + a**2) / 2) / (2 * pi * (1 + a**2))`` (Owen 1956).
    """


@ufunc(
    x=lambda g, x, sigma, gamma: g * _slope(0, x, sigma, gamma),
    sigma=lambda g, x, sigma, gamma: g * _slope(0, x, sigma, gamma, by_sigma=True),
    gamma=lambda g, x, sigma, gamma: -g * _slope(1, x, sigma, gamma),
)
def voigt_profile(x: Operand, sigma: Operand, gamma: Operand) -> Tensor:
    """Density at ``x`` of the sum of a normal variable of deviation ``sigma`` and a Cauchy one of scale ``gamma``.

    Gradient:
        By Faddeeva's function w, whose real part it is: ``w'(z) = 2j / sqrt(pi) - 2 * z * w(z)``; ``sigma`` above 0.
    """


def _imaginary_part(x, sigma, gamma):
    z = (x + 1j * gamma) / (sigma * math.sqrt(2))
    return _scipy.special.wofz(z).imag / (sigma * math.sqrt(2 * math.pi))


@ufunc(
    _imaginary_part,
    x=lambda g, x, sigma, gamma: g * _slope(1, x, sigma, gamma),
    sigma=lambda g, x, sigma, gamma: g * _slope(1, x, sigma, gamma, by_sigma=True),
    gamma=lambda g, x, sigma, gamma: g * _slope(0, x, sigma, gamma),
)
def _imaginary_voigt(x: Operand, sigma: Operand, gamma: Operand) -> Tensor: ...


_ODD = np.cumprod([1.0, *range(3, 26, 2)])
"""Double factorials of odd numbers."""


def _series_far(x, sigma, gamma, by_sigma: bool):
    """Return the derivatives of both parts by ``x``, or ``sigma``, from the asymptotic series of Faddeeva's function.

    The complex value is ``1j / pi`` times the sum of ``(2n - 1)!! * sigma**(2n) / (x + 1j * gamma)**(2n + 1)``.
    """
    size = ops.square(x) + ops.square(gamma)
    place = x / size, -gamma / size
    power = _product(place, place)
    w = [ops.square(sigma) * part for part in power]
    total = 0.0 * x, 0.0 * x
    for odd, even in zip(_ODD[::-1], range(2 * len(_ODD), 0, -2)):
        re, im = _product(total, w)
        total = re + float(odd * even if by_sigma else -odd), im
    front = [sigma * part for part in _product(power, place)] if by_sigma else power
    re, im = _product(front, total)
    return -im / math.pi, re / math.pi


def _product(one, two):
    return one[0] * two[0] - one[1] * two[1], one[0] * two[1] + one[1] * two[0]


def _near(x, sigma, gamma, by_sigma: bool):
    """Return these derivatives from that of Faddeeva's function, whose terms cancel far from 0."""
    real, imaginary, square = voigt_profile(x, sigma, gamma), _imaginary_voigt(x, sigma, gamma), ops.square(sigma)
    if by_sigma:
        first, second = _near(x, sigma, gamma, False)
        return -(real + x * first - gamma * second) / sigma, -(imaginary + x * second + gamma * first) / sigma
    return (gamma * imaginary - x * real) / square, (1 / math.pi - x * imaginary - gamma * real) / square


def _slope(part: int, x, sigma, gamma, by_sigma: bool = False):
    """Return a derivative of the real or imaginary part by ``x``; those by ``gamma`` are the same times ``1j``."""
    x, sigma, gamma = floating(x, sigma, gamma)
    far = ops.square(x) + ops.square(gamma) > 400 * ops.square(sigma)
    return choose(
        far & (gamma > 1e-50 * ops.abs(x)),  # for smaller gamma the real part is the normal density
        lambda of: _series_far(of(x, 30.0), of(sigma, 1.0), of(gamma, 1.0), by_sigma)[part],
        lambda of: _near(of(x, 0.0), of(sigma, 1.0), of(gamma, 1.0), by_sigma)[part],
    )
