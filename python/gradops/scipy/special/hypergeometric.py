"""Hypergeometric functions and Wright's Bessel function, with derivatives by the argument."""

from __future__ import annotations

import numpy as np

from ... import _scipy, ops
from ...annotations import Operand, Tensor
from .._define import in_part, promoting, refused, ufunc

__all__ = ["hyp0f1", "hyp1f1", "hyp2f1", "hyperu", "log_wright_bessel", "wright_bessel"]

_WHY = "a series in it, whose derivative has no closed form"


def _of_real_parameters(name: str):
    def function(*xs):
        return getattr(_scipy.special, name)(*[x.real for x in xs[:-1]], xs[-1])

    return function


def _hyp0f1(v, z):
    """SciPy's; of numbers below -4 by the Bessel function that it is, of which SciPy's has 11 digits at -30."""
    value = _of_real_parameters("hyp0f1")(v, z)
    if np.iscomplexobj(z):
        return value

    def of_bessel(v, z):
        return _scipy.special.gamma(v) * (-z) ** ((1 - v) / 2) * _scipy.special.jv(v - 1, 2 * np.sqrt(-z))

    return in_part(value, (z < -4) & (v > 0) & (v < 10), of_bessel, v, z)


@ufunc(_hyp0f1, v=refused("hyp0f1", "v", _WHY), z=promoting(lambda g, v, z: g * hyp0f1(v + 1, z) / v))
def hyp0f1(v: Operand, z: Operand) -> Tensor:
    """Confluent hypergeometric limit function, also of complex arguments.

    Gradient:
        By ``z`` ``hyp0f1(v + 1, z) / v``; an error by ``v``.
    """


@ufunc(
    _of_real_parameters("hyp1f1"),
    a=refused("hyp1f1", "a", _WHY),
    b=refused("hyp1f1", "b", _WHY),
    x=promoting(lambda g, a, b, x: g * (a / b) * hyp1f1(a + 1, b + 1, x)),
)
def hyp1f1(a: Operand, b: Operand, x: Operand) -> Tensor:
    """Confluent hypergeometric function of Kummer, also of complex arguments.

    Gradient:
        By ``x`` ``a / b * hyp1f1(a + 1, b + 1, x)``; an error by ``a`` and ``b``.
    """


@ufunc(
    _of_real_parameters("hyp2f1"),
    a=refused("hyp2f1", "a", _WHY),
    b=refused("hyp2f1", "b", _WHY),
    c=refused("hyp2f1", "c", _WHY),
    z=promoting(lambda g, a, b, c, z: g * (a * b / c) * hyp2f1(a + 1, b + 1, c + 1, z)),
)
def hyp2f1(a: Operand, b: Operand, c: Operand, z: Operand) -> Tensor:
    """Hypergeometric function of Gauss, also of complex arguments.

    Gradient:
        By ``z`` ``a * b / c * hyp2f1(a + 1, b + 1, c + 1, z)``; an error by the parameters.
    """


_PLACES = np.arange(-4.2, 5.2, 0.0625)
_LOGS = _PLACES - np.exp(-_PLACES)
_NODES, _WEIGHTS = np.exp(_LOGS), 0.0625 * (1 + np.exp(-_PLACES))
"""Of the double exponential rule for integrals over ``exp(-u)`` (Takahasi and Mori 1974)."""


def _hyperu(a, b, x):
    """By its integral (DLMF 13.4.4), where that has all digits, of which SciPy's may have one; elsewhere SciPy's."""
    with np.errstate(all="ignore"):
        inside = (a >= 0.5) & (a <= 50) & (np.abs(b) <= 50) & (x >= 0.05) & (x <= 1e6)
        inside = inside & ((x >= 1) | (1 + a - b <= 15))
        value = in_part(a + b + x, inside, _hyperu_integral, a, b, x)
        return in_part(value, ~inside, _scipy.special.hyperu, a, b, x)


def _hyperu_integral(*parameters):
    flat = [np.reshape(v, -1) for v in parameters]
    found = np.empty(flat[0].shape)
    for start in range(0, found.size, 128):  # whose terms stay in the cache
        a, b, x = (v[start : start + 128, None] for v in flat)
        logs = a * _LOGS - _NODES + (b - a - 1) * np.log1p(_NODES / x) - _scipy.special.gammaln(a)
        found[start : start + 128] = (np.exp(logs) @ _WEIGHTS) * (x**-a)[:, 0]
    return found.reshape(np.shape(parameters[0]))


@ufunc(
    _hyperu,
    a=refused("hyperu", "a", _WHY),
    b=refused("hyperu", "b", _WHY),
    x=promoting(lambda g, a, b, x: -g * a * hyperu(a + 1, b + 1, x)),
)
def hyperu(a: Operand, b: Operand, x: Operand) -> Tensor:
    """Confluent hypergeometric function of Tricomi.

    Gradient:
        By ``x`` ``-a * hyperu(a + 1, b + 1, x)``; an error by ``a`` and ``b``.
    """


@ufunc(
    a=refused("wright_bessel", "a", _WHY),
    b=refused("wright_bessel", "b", _WHY),
    x=promoting(lambda g, a, b, x: g * wright_bessel(a, a + b, x)),
)
def wright_bessel(a: Operand, b: Operand, x: Operand) -> Tensor:
    """Wright's generalised Bessel function, the sum of ``x**k / (k! * gamma(a * k + b))``.

    Gradient:
        By ``x`` ``wright_bessel(a, a + b, x)``; an error by ``a`` and ``b``.
    """


@ufunc(
    a=refused("log_wright_bessel", "a", _WHY),
    b=refused("log_wright_bessel", "b", _WHY),
    x=promoting(lambda g, a, b, x, y: g * ops.exp(log_wright_bessel(a, a + b, x) - y)),
)
def log_wright_bessel(a: Operand, b: Operand, x: Operand) -> Tensor:
    """Logarithm of :func:`wright_bessel`.

    Gradient:
        By ``x`` ``exp(log_wright_bessel(a, a + b, x) - log_wright_bessel(a, b, x))``; an error by ``a`` and ``b``.
    """
