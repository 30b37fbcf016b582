"""Exponentials, logarithms and their sums, logistic functions, entropies, Box and Cox's transformation."""

from __future__ import annotations

import math

import numpy as np

from ... import ops
from ...annotations import Axes, Operand, Tensor
from .._define import composed, ufunc
from .._formulas import choose, exp, log
from .._tensors import floating, is_complex

__all__ = """
    boxcox boxcox1p cbrt cosdg cosm1 cotdg entr exp10 exp2 expit expm1 exprel inv_boxcox inv_boxcox1p kl_div log1p
    log_expit log_softmax logit logsumexp radian rel_entr round sindg softmax softplus tandg xlog1py xlogy
""".split()

cbrt = ops.cbrt
exp2 = ops.exp2
log1p = ops.log1p
log_expit = ops.log_sigmoid
softplus = ops.softplus

_DEGREE = math.pi / 180


@ufunc("", x=lambda g, x, y: g * y * expit(-x))
def expit(x: Tensor) -> Tensor:
    """Logistic function ``1 / (1 + exp(-x))``: :func:`gradops.ops.sigmoid` with another derivative.

    Gradient:
        ``expit(x) * expit(-x)``, accurate where the value is near 1.
    """
    return ops.sigmoid(x)


@ufunc("", x=lambda g, x: g * ops.exp(x))
def expm1(x: Tensor) -> Tensor:
    """``exp(x) - 1``, accurate near 0: :func:`gradops.ops.expm1` with another derivative.

    Gradient:
        ``exp(x)``, accurate where the value is near -1.
    """
    y = ops.expm1(x)
    return ops.where(ops.real(x) == math.inf, ops.exp(x), y) if is_complex(x) else y  # NumPy's is NaN at inf + 0j


@ufunc(x=lambda g, y: g * math.log(10) * y)
def exp10(x: Tensor) -> Tensor:
    """``10**x``.

    Gradient:
        ``log(10) * exp10(x)``.
    """


@ufunc(x=lambda g, x: -g * ops.sin(x))
def cosm1(x: Tensor) -> Tensor:
    """``cos(x) - 1``, accurate near 0.

    Gradient:
        ``-sin(x)``.
    """


@ufunc(x=lambda g, x, y: g * _exprel_slope(x, y))
def exprel(x: Tensor) -> Tensor:
    """``(exp(x) - 1) / x``, 1 at 0.

    Gradient:
        ``(exp(x) - exprel(x)) / x``, near 0 by its series.
    """


def _exprel_slope(x, y):
    """The sum of (n + 1) x**n / (n + 2)! near 0."""

    def near(of):
        place, total = of(x, 0.0), 0.0
        for n in range(18, -1, -1):
            total = (n + 1) / math.factorial(n + 2) + place * total
        return total

    def far(of):
        place = of(x, 1.0)
        return (exp(place) - of(y, 1.0)) / place

    return choose(ops.abs(x) < 1, near, far)


@ufunc(torch="round", jax="numpy.round", tensorflow="math.round", x=lambda g, x: 0 * g)
def round(x: Tensor) -> Tensor:
    """The nearest integer; halves round to even.

    Gradient:
        0.
    """


@ufunc(x=lambda g, x: g * _DEGREE * cosdg(x))
def sindg(x: Tensor) -> Tensor:
    """Sine of an angle in degrees.

    Gradient:
        ``pi / 180 * cosdg(x)``.
    """


@ufunc(x=lambda g, x: -g * _DEGREE * sindg(x))
def cosdg(x: Tensor) -> Tensor:
    """Cosine of an angle in degrees.

    Gradient:
        ``-pi / 180 * sindg(x)``.
    """


@ufunc(x=lambda g, y: g * _DEGREE * (1 + ops.square(y)))
def tandg(x: Tensor) -> Tensor:
    """Tangent of an angle in degrees.

    Gradient:
        ``pi / 180 * (1 + tandg(x)**2)``.
    """


@ufunc(x=lambda g, y: -g * _DEGREE * (1 + ops.square(y)))
def cotdg(x: Tensor) -> Tensor:
    """Cotangent of an angle in degrees.

    Gradient:
        ``-pi / 180 * (1 + cotdg(x)**2)``.
    """


@ufunc(d=lambda g, d: g * _DEGREE, m=lambda g, m: g * (_DEGREE / 60), s=lambda g, s: g * (_DEGREE / 3600))
def radian(d: Operand, m: Operand, s: Operand) -> Tensor:
    """Angle in radians of degrees, minutes and seconds.

    Gradient:
        ``pi / 180``, and a sixtieth and a 3600th of it.
    """


# Logistic -------------------------------------------------------------------------------------------------------------


@ufunc(torch="special.logit", jax="scipy.special.logit", x=lambda g, x: g / (x * (1 - x)))
def logit(x: Tensor) -> Tensor:
    """Logarithm of the odds ``x / (1 - x)``, the inverse of :func:`expit`.

    Gradient:
        ``1 / (x * (1 - x))``.
    """


# Sums of exponentials -------------------------------------------------------------------------------------------------


@composed
def logsumexp(a: Tensor, axis: Axes = None, b: Tensor | None = None, keepdims: bool = False, return_sign: bool = False):
    """``log(sum(b * exp(a)))``, without overflow.

    Args:
        axis: the axes to sum over; all by default.
        b: factors, which may be negative or 0.
        return_sign: also return the sign of the sum; the result is then the log of its absolute value.

    Returns:
        A tensor of ``a``'s shape without ``axis``, or a tuple of two. NaN for a negative sum without its sign.

    Gradient:
        By ``a`` ``b * exp(a - y)``, by ``b`` ``exp(a - y)``.
    """
    if b is None:
        (a,) = floating(a)
        y = ops.logsumexp(a, axis=axis, keepdims=keepdims)
        if return_sign and is_complex(y):
            return ops.real(y), ops.polar(ops.ones_like(ops.imag(y)), ops.imag(y))
        return (y, ops.ones_like(y)) if return_sign else y
    a, b = floating(a, b)
    top = ops.stop_gradient(ops.max(ops.where(b == 0, -math.inf, a), axis=axis, keepdims=True))
    top = ops.where(ops.abs(top) < math.inf, top, 0.0)
    exponent = a - top
    # A factor 0 has the slope `exp(exponent)`, which must be finite for the product to be 0, also if `a` is infinite.
    largest = math.log(float(np.finfo(ops.dtype(a)).max)) - 1.0  # minus a margin for rounding
    exponent = ops.where((b == 0) & ~(exponent <= largest), largest, exponent)
    total = ops.sum(b * exp(exponent), axis=axis, keepdims=keepdims)
    sign = ops.sign(total)
    top = ops.reshape(top, ops.shape(total)) if not keepdims else top
    y = log(ops.abs(total) if return_sign else total) + top
    return (y, sign) if return_sign else y


@composed
def softmax(x: Tensor, axis: Axes = None) -> Tensor:
    """``exp(x) / sum(exp(x))``, without overflow.

    Args:
        axis: all without.

    Returns:
        A tensor of ``x``'s shape.

    Gradient:
        ``y * (g - sum(g * y))``.
    """
    (x,) = floating(x)
    return exp(x - ops.logsumexp(x, axis=axis, keepdims=True))


@composed
def log_softmax(x: Tensor, axis: Axes = None) -> Tensor:
    """Logarithm of :func:`softmax`.

    Args:
        axis: all without.

    Returns:
        A tensor of ``x``'s shape.

    Gradient:
        ``g - softmax(x) * sum(g)``.
    """
    (x,) = floating(x)
    return x - ops.logsumexp(x, axis=axis, keepdims=True)


# Entropies ------------------------------------------------------------------------------------------------------------


@ufunc(
    torch="special.xlogy",
    jax="scipy.special.xlogy",
    tensorflow="math.xlogy",
    x=lambda g, x, v: g * _both_0(x, v, log, 0),
    v=lambda g, x, v: g * x * _both_0(x, v, lambda v: 1 / v, 0),
)
def xlogy(x: Operand, v: Operand) -> Tensor:
    """``x * log(v)``, 0 where ``x`` is 0.

    Gradient:
        By ``x`` ``log(v)``, by ``v`` ``x / v``; 0 where ``x`` and ``v`` are 0.
    """


@ufunc(
    torch="special.xlog1py",
    jax="scipy.special.xlog1py",
    tensorflow="math.xlog1py",
    x=lambda g, x, v: g * _both_0(x, v, ops.log1p, -1),
    v=lambda g, x, v: g * x * _both_0(x, v, lambda v: 1 / (1 + v), -1),
)
def xlog1py(x: Operand, v: Operand) -> Tensor:
    """``x * log1p(v)``, 0 where ``x`` is 0.

    Gradient:
        By ``x`` ``log1p(v)``, by ``v`` ``x / (1 + v)``; 0 where ``x`` is 0 and ``v`` -1.
    """


def _both_0(x, v, value, zero):
    """``value(v)``, 0 where ``x`` is 0 and ``v`` is ``zero``."""
    x, v = floating(x, v)
    none = (x == 0) & (v == zero)
    return ops.where(none, 0.0, value(ops.where(none, 1.0, v)))


@ufunc(torch="special.entr", jax="scipy.special.entr", x=lambda g, x: -g * (1 + log(ops.where(x < 0, math.nan, x))))
def entr(x: Tensor) -> Tensor:
    """``-x * log(x)``, 0 at 0 and -Inf below.

    Gradient:
        ``-1 - log(x)``.
    """


@ufunc(jax="scipy.special.rel_entr", x=lambda g, x, v: g * (1 + log(x / v)), v=lambda g, x, v: -g * x / v)
def rel_entr(x: Operand, v: Operand) -> Tensor:
    """``x * log(x / v)``, 0 where ``x`` is 0, Inf where one is negative.

    Gradient:
        By ``x`` ``1 + log(x / v)``, by ``v`` ``-x / v``.
    """


@ufunc(jax="scipy.special.kl_div", x=lambda g, x, v: g * log(x / v), v=lambda g, x, v: g * (1 - x / v))
def kl_div(x: Operand, v: Operand) -> Tensor:
    """``x * log(x / v) - x + v``, ``v`` where ``x`` is 0, Inf where one is negative.

    Gradient:
        By ``x`` ``log(x / v)``, by ``v`` ``1 - x / v``.
    """


# Box and Cox ----------------------------------------------------------------------------------------------------------


@ufunc(x=lambda g, x, lmbda: g * exp((lmbda - 1) * log(x)), lmbda=lambda g, x, lmbda: g * slope_by_power(log(x), lmbda))
def boxcox(x: Operand, lmbda: Operand) -> Tensor:
    """Box and Cox's transformation, ``(x**lmbda - 1) / lmbda``, ``log(x)`` where ``lmbda`` is 0.

    Gradient:
        By ``x`` ``x**(lmbda - 1)``, by ``lmbda`` ``log(x)**2`` times the slope of :func:`exprel` at
        ``lmbda * log(x)``.
    """


@ufunc(
    x=lambda g, x, lmbda: g * exp((lmbda - 1) * ops.log1p(x)),
    lmbda=lambda g, x, lmbda: g * slope_by_power(ops.log1p(x), lmbda),
)
def boxcox1p(x: Operand, lmbda: Operand) -> Tensor:
    """:func:`boxcox` of ``1 + x``, accurate near 0.

    Gradient:
        As of :func:`boxcox` at ``1 + x``.
    """


@ufunc(
    v=lambda g, y, lmbda: g * exp((1 - lmbda) * log(y)),
    lmbda=lambda g, v, y, lmbda: -g * exp((1 - lmbda) * log(y)) * slope_by_power(_log_inverse(v, lmbda), lmbda),
)
def inv_boxcox(v: Operand, lmbda: Operand) -> Tensor:
    """Inverse of :func:`boxcox`.

    Gradient:
        From the implicit function theorem.
    """


@ufunc(
    "",
    v=lambda g, y, lmbda: g * exp((1 - lmbda) * ops.log1p(y)),
    lmbda=lambda g, y, lmbda: -g * exp((1 - lmbda) * ops.log1p(y)) * slope_by_power(ops.log1p(y), lmbda),
)
def inv_boxcox1p(v: Operand, lmbda: Operand) -> Tensor:
    """Inverse of :func:`boxcox1p`.

    Gradient:
        From the implicit function theorem.
    """
    return ops.expm1(_log_inverse(*floating(v, lmbda)))


def _log_inverse(v, lmbda):
    """The logarithm of :func:`inv_boxcox`."""
    z = lmbda * v

    def series(of):
        near = of(z, 0.0)
        near = ops.where(ops.isfinite(near), near, 0.0)  # of an infinite `v`
        return of(v, 0.0) * (1 - near * (1 / 2 - near * (1 / 3 - near / 4)))  # with the derivatives at 0

    return choose(
        (ops.abs(z) < 1e-20) | (lmbda == 0),
        series,
        lambda of: ops.log1p(of(z, 1.0)) / of(lmbda, 1.0),
    )


def slope_by_power(logarithm, lmbda):
    """The derivative of ``logarithm * exprel(lmbda * logarithm)`` by ``lmbda``."""
    logarithm = ops.maximum(logarithm, -1e100)  # of 0: its square times the slope of `exprel` is `1 / lmbda**2`
    z = lmbda * logarithm
    return ops.square(logarithm) * _exprel_slope(z, exprel(z))
