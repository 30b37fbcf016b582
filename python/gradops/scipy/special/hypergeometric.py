"""Hypergeometric functions and Wright's Bessel function, with derivatives by the argument."""

from __future__ import annotations

from ... import _scipy, ops
from ...annotations import Operand, Tensor
from .._define import promoting, refused, ufunc
from . import _scipy_corrections as corrected

__all__ = ["hyp0f1", "hyp1f1", "hyp2f1", "hyperu", "log_wright_bessel", "wright_bessel"]

_WHY = "a series in it, whose derivative has no closed form"


def _real_parameter_function(name: str):
    def function(*xs):
        return getattr(_scipy.special, name)(*[x.real for x in xs[:-1]], xs[-1])

    return function


@ufunc(corrected.hyp0f1, v=refused("hyp0f1", "v", _WHY), z=promoting(lambda g, v, z: g * hyp0f1(v + 1, z) / v))
def hyp0f1(v: Operand, z: Operand) -> Tensor:
    """Confluent hypergeometric limit function, also of complex arguments.

    Gradient:
        By ``z`` ``hyp0f1(v + 1, z) / v``; an error by ``v``.
    """


@ufunc(
    _real_parameter_function("hyp1f1"),
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
    _real_parameter_function("hyp2f1"),
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


@ufunc(
    corrected.hyperu,
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
