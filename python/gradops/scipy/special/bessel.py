"""Bessel functions of real order.

Derivatives by the argument use recurrences (NIST's Digital Library of Mathematical Functions, 10.6 and 10.29).
Derivatives by the order are integrals along paths of steepest descent (see ``_orders.py``), for positive arguments.
Their error is about 1e-13 of the function's size; it is larger near zeros of the function, and for ``iv`` with an order
near 0 and a large argument, where the derivative is small.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from ... import _scipy, ops
from ...annotations import Integer, Operand, Tensor
from ...extend import derivative
from ...ops._checks import integer
from .._define import composed, promoting, refused, ufunc
from .._tensors import as_complex, constant, floating, inexact, is_complex
from . import _orders

__all__ = """
    ai_zeros bi_zeros h1vp h2vp hankel1 hankel1e hankel2 hankel2e i0 i0e i1 i1e iv ive ivp j0 j1 jn jn_zeros
    jnjnp_zeros jnp_zeros jnyn_zeros jv jve jvp k0 k0e k1 k1e kn kv kve kvp y0 y0_zeros y1 y1_zeros y1p_zeros yn
    yn_zeros ynp_zeros yv yve yvp
""".split()

ai_zeros, bi_zeros = constant("special.ai_zeros"), constant("special.bi_zeros")
jn_zeros, jnp_zeros = constant("special.jn_zeros"), constant("special.jnp_zeros")
yn_zeros, ynp_zeros = constant("special.yn_zeros"), constant("special.ynp_zeros")
jnjnp_zeros, jnyn_zeros = constant("special.jnjnp_zeros"), constant("special.jnyn_zeros")
y0_zeros, y1_zeros, y1p_zeros = (constant(f"special.{name}") for name in ("y0_zeros", "y1_zeros", "y1p_zeros"))


def real_order_function(name: str) -> Callable:
    """Return SciPy's function of a real order and a complex argument, for arrays of one dtype."""

    def function(v, z):
        return getattr(_scipy.special, name)(v.real, z)

    function.function = name  # type: ignore[attr-defined]  # of reals
    return function


# Derivatives by the order ---------------------------------------------------------------------------------------------

ORDERS = 3  # highest order of derivatives


def _order_derivatives(name: str, kind: str, scaled: bool) -> list[Callable]:
    """Return ops for the derivatives by the order, from the first on."""
    made: list[Callable] = []
    for n in range(1, ORDERS + 1):

        def function(v: Operand, z: Operand) -> Tensor:
            """A derivative by the order ``v``."""

        function.__name__ = function.__qualname__ = f"{name}_by_order_{n}"
        made.append(ufunc(_orders.derivative(kind, n, scaled))(function))
    for n, f in enumerate(made):
        higher = made[n + 1] if n + 1 < ORDERS else None
        by_order = refused(name, "v", f"beyond order {ORDERS}") if higher is None else _order_rule(higher)
        derivative(f, v=by_order, z=_recurrence_rule(f, kind, scaled))
    return made


def _order_rule(f: Callable) -> Callable:
    """Return the rule by the order; where there is no derivative, no gradient flows."""

    def rule(g, v, z):
        slope = f(v, z)
        lost = ops.isnan(slope)
        return ops.where(lost, ops.stop_gradient(g) * math.nan, g * ops.where(lost, 0 * slope, slope))

    return rule


def _recurrence_rule(f: Callable, kind: str, scaled: bool) -> Callable:
    """Return the rule by the argument: half the sum or difference of the neighbouring orders."""
    plus = {"J": -1, "Y": -1, "I": 1, "K": 1}[kind]

    def rule(g, v, z):
        slope = (f(v - 1, z) + plus * f(v + 1, z)) / 2
        if kind == "K":
            slope = -slope
        if scaled:
            slope = slope + (1 if kind == "K" else -ops.sign(ops.real(z))) * f(v, z)
        return g * slope

    return rule


def _value_rule(f: Callable) -> Callable:
    """Return the rule by the argument for K, from the value and the order nearer to 0: terms of one sign."""

    def rule(g, v, z, y):
        below, end = ops.real(v) < 0, z == 0
        order = ops.where(below, -v, v)
        far = order * ops.where(end, 0.0, y) / ops.where(end, 1.0, z)
        return -g * (f(ops.where(below, v + 1, v - 1), z) + far)

    return rule


def _rules(op: Callable, name: str, kind: str, scaled: bool = False) -> None:
    rule = promoting(_recurrence_rule(op, kind, scaled) if scaled or kind != "K" else _value_rule(op))
    derivative(op, v=promoting(_order_rule(_order_derivatives(name, kind, scaled)[0])), z=rule)


@ufunc(real_order_function("jv"))
def jv(v: Operand, z: Operand) -> Tensor:
    """Bessel function of the first kind of real order, also of complex arguments.

    Raises:
        ShapeError: shapes that do not broadcast.

    Gradient:
        By ``z`` ``(jv(v - 1, z) - jv(v + 1, z)) / 2``; by ``v`` an integral for real ``z`` above 0, NaN elsewhere.
    """


@ufunc(real_order_function("yv"))
def yv(v: Operand, z: Operand) -> Tensor:
    """Bessel function of the second kind of real order, also of complex arguments.

    Raises:
        ShapeError: shapes that do not broadcast.

    Gradient:
        As of :func:`jv`.
    """


@ufunc(real_order_function("iv"))
def iv(v: Operand, z: Operand) -> Tensor:
    """Modified Bessel function of the first kind of real order, also of complex arguments.

    Raises:
        ShapeError: shapes that do not broadcast.

    Gradient:
        By ``z`` ``(iv(v - 1, z) + iv(v + 1, z)) / 2``; by ``v`` an integral for real ``z`` above 0, NaN elsewhere.
    """


@ufunc(real_order_function("kv"))
def kv(v: Operand, z: Operand) -> Tensor:
    """Modified Bessel function of the second kind of real order, also of complex arguments.

    Raises:
        ShapeError: shapes that do not broadcast.

    Gradient:
        By ``z`` ``-kv(v - 1, z) - v / z * kv(v, z)``; by ``v`` an integral for real ``z`` above 0, NaN elsewhere.
    """


@ufunc()
def ive(v: Operand, z: Operand) -> Tensor:
    """:func:`iv` times ``exp(-abs(real(z)))``, for real arguments.

    Gradient:
        By ``z`` ``(ive(v - 1, z) + ive(v + 1, z)) / 2 - sign(z) * ive(v, z)``; by ``v`` as of :func:`iv`.
    """


@ufunc(real_order_function("kve"))
def kve(v: Operand, z: Operand) -> Tensor:
    """:func:`kv` times ``exp(z)``, also for complex arguments.

    Raises:
        ShapeError: shapes that do not broadcast.

    Gradient:
        By ``z`` ``kve(v, z) - (kve(v - 1, z) + kve(v + 1, z)) / 2``; by ``v`` as of :func:`kv`.
    """


_rules(jv, "jv", "J")
_rules(yv, "yv", "Y")
_rules(iv, "iv", "I")
_rules(kv, "kv", "K")
_rules(ive, "ive", "I", True)
_rules(kve, "kve", "K", True)
jn = jv


@composed
def jve(v: Operand, z: Operand) -> Tensor:
    """:func:`jv`, multiplied by ``exp(-abs(imag(z)))``.

    Returns:
        A tensor of the shape that ``v`` and ``z`` broadcast to.

    Gradient:
        From the gradients of :func:`jv` and of the factor.
    """
    return jv(v, z) * _damping(z)


@composed
def yve(v: Operand, z: Operand) -> Tensor:
    """:func:`yv`, multiplied by ``exp(-abs(imag(z)))``.

    Returns:
        A tensor of the shape that ``v`` and ``z`` broadcast to.

    Gradient:
        From the gradients of :func:`yv` and of the factor.
    """
    return yv(v, z) * _damping(z)


def _damping(z):
    z = inexact(z)
    return ops.cast(ops.exp(-ops.abs(ops.imag(z))), ops.dtype(z)) if is_complex(z) else 1.0


# Integer orders -------------------------------------------------------------------------------------------------------


def _whole(name: str) -> Callable:
    def function(n, x):
        with_double = n.dtype.itemsize < 8
        y = getattr(_scipy.special, name)(n.astype("float64") if with_double else n, x)
        return y.astype(x.dtype) if with_double else y

    return function


@ufunc(
    _whole("yn"),
    n=refused("yn", "n", "of whole orders; `yv` has one"),
    x=promoting(lambda g, n, x: g * (yn(ops.trunc(n) - 1, x) - yn(ops.trunc(n) + 1, x)) / 2),
)
def yn(n: Operand, x: Operand) -> Tensor:
    """Bessel function of the second kind of integer order; other orders are truncated.

    Gradient:
        By ``x`` ``(yn(n - 1, x) - yn(n + 1, x)) / 2``; an error by ``n``, see :func:`yv`.
    """


@ufunc(
    _whole("kn"),
    n=refused("kn", "n", "of whole orders; `kv` has one"),
    x=promoting(lambda g, n, x: -g * (kn(ops.abs(ops.trunc(n) - 1), x) + kn(ops.trunc(n) + 1, x)) / 2),
)
def kn(n: Operand, x: Operand) -> Tensor:
    """Modified Bessel function of the second kind of integer order; other orders are truncated.

    Gradient:
        By ``x`` ``-(kn(n - 1, x) + kn(n + 1, x)) / 2``; an error by ``n``, see :func:`kv`.
    """


@ufunc(x=lambda g, x: -g * j1(x))
def j0(x: Tensor) -> Tensor:
    """Bessel function of the first kind of order 0.

    Gradient:
        ``-j1(x)``.
    """


@ufunc(x=lambda g, x, y: g * _j1_slope(x, y))
def j1(x: Tensor) -> Tensor:
    """Bessel function of the first kind of order 1.

    Gradient:
        ``j0(x) - j1(x) / x``.
    """


@ufunc(x=lambda g, x: -g * y1(x))
def y0(x: Tensor) -> Tensor:
    """Bessel function of the second kind of order 0.

    Gradient:
        ``-y1(x)``.
    """


@ufunc(x=lambda g, x, y: g * _y1_slope(x, y))
def y1(x: Tensor) -> Tensor:
    """Bessel function of the second kind of order 1.

    Gradient:
        ``y0(x) - y1(x) / x``.
    """


@ufunc(torch="special.i0", jax="scipy.special.i0", x=lambda g, x: g * i1(x))
def i0(x: Tensor) -> Tensor:
    """Modified Bessel function of the first kind of order 0.

    Gradient:
        ``i1(x)``.
    """


@ufunc(torch="special.i1", jax="scipy.special.i1", x=lambda g, x, y: g * _i1_slope(x, y))
def i1(x: Tensor) -> Tensor:
    """Modified Bessel function of the first kind of order 1.

    Gradient:
        ``i0(x) - i1(x) / x``.
    """


@ufunc(torch="special.i0e", jax="scipy.special.i0e", x=lambda g, x, y: g * (i1e(x) - ops.sign(x) * y))
def i0e(x: Tensor) -> Tensor:
    """:func:`i0`, multiplied by ``exp(-abs(x))``.

    Gradient:
        ``i1e(x) - sign(x) * i0e(x)``.
    """


@ufunc(torch="special.i1e", jax="scipy.special.i1e", x=lambda g, x, y: g * (_i1e_slope(x, y) - ops.sign(x) * y))
def i1e(x: Tensor) -> Tensor:
    """:func:`i1`, multiplied by ``exp(-abs(x))``.

    Gradient:
        ``i0e(x) - i1e(x) / x - sign(x) * i1e(x)``.
    """


@ufunc(x=lambda g, x: -g * k1(x))
def k0(x: Tensor) -> Tensor:
    """Modified Bessel function of the second kind of order 0.

    Gradient:
        ``-k1(x)``.
    """


@ufunc(x=lambda g, x, y: g * _k1_slope(x, y))
def k1(x: Tensor) -> Tensor:
    """Modified Bessel function of the second kind of order 1.

    Gradient:
        ``-k0(x) - k1(x) / x``.
    """


@ufunc(x=lambda g, x, y: g * (y - k1e(x)))
def k0e(x: Tensor) -> Tensor:
    """:func:`k0`, multiplied by ``exp(x)``.

    Gradient:
        ``k0e(x) - k1e(x)``.
    """


@ufunc(x=lambda g, x, y: g * (_k1e_slope(x, y) + y))
def k1e(x: Tensor) -> Tensor:
    """:func:`k1`, multiplied by ``exp(x)``.

    Gradient:
        ``k1e(x) - k0e(x) - k1e(x) / x``.
    """


def _slope(zeroth: Callable, first: Callable, third: Callable, sign: int, turn: int, damping: float) -> Callable:
    """The derivative of a function of order 1 by the recurrence, ``turn * zeroth - first / x``, damped as these are.

    ``one`` is the function's value. The slope's own derivative is by the function of order 3, as a whole by ``x``: that
    of the quotient would lose its digits near 0.
    """

    def slope(x: Tensor, one: Tensor) -> Tensor:
        none = x == 0
        rest = turn * zeroth(x) - ops.where(ops.abs(one) < math.inf, one, 0.0) / ops.where(none, 1.0, x)
        return ops.where(none, 0.5, rest) if zeroth in (j0, i0, i0e) else rest

    slope.__name__ = slope.__qualname__ = f"_{first.__name__}_slope"
    made = ufunc("")(slope)

    def rule(g, x, y):
        bend = (third(3.0, x) + 3 * sign * first(x)) / 4
        if damping:
            bend = bend + damping * (ops.sign(x) * y if zeroth is i0e else y)
        return g * bend

    derivative(made, x=rule)
    return made


_j1_slope, _y1_slope = _slope(j0, j1, jv, -1, 1, 0), _slope(y0, y1, yv, -1, 1, 0)
_i1_slope, _k1_slope = _slope(i0, i1, iv, 1, 1, 0), _slope(k0, k1, kv, 1, -1, 0)
_i1e_slope, _k1e_slope = _slope(i0e, i1e, ive, 1, 1, -1), _slope(k0e, k1e, kve, 1, -1, 1)


# Hankel functions and derivatives ------------------------------------------------------------------------------------


def _hankels(kind: int, scaled: bool) -> Callable:
    """``jv + 1j * yv`` of positive arguments; of negative ones, on the branch cut, and complex ones SciPy's."""
    name = f"hankel{kind}{'e' * scaled}"
    sign = 1 if kind == 1 else -1

    def function(v: Operand, z: Operand) -> Tensor:
        """A Hankel function of complex arguments."""

    function.__name__ = function.__qualname__ = f"{name}_complex"
    made = ufunc(real_order_function(name))(function)

    def by_argument(g, v, z, y):
        slope = made(v - 1, z) - made(v, z) * (v / z)
        if not scaled:
            return g * slope
        turn = as_complex(ops.zeros_like(ops.real(z)), ops.full_like(ops.real(z), sign))
        below = made(v - 1, z)
        return g * (below - y * (v / z) - turn * y)

    derivative(made, v=lambda g: ops.stop_gradient(g) * math.nan, z=by_argument)

    def right(v, z):
        re, im = jv(v, z), yv(v, z)
        if not scaled:
            return as_complex(re, sign * im)
        cosine, sine = ops.cos(z), ops.sin(z)
        return as_complex(re * cosine + im * sine, sign * (im * cosine - re * sine))

    def hankel(v: Operand, z: Operand) -> Tensor:
        v, z = floating(v, z)
        if is_complex(z) or is_complex(v):
            return made(v, z)
        below = z < 0
        # Elsewhere numbers, as the branch that is not taken must have finite derivatives.
        order, place = (ops.where(below, x, number) for x, number in ((v, 1.0), (z, -1.0)))
        left = made(*[as_complex(x, ops.zeros_like(x)) for x in (order, place)])
        return ops.where(below, left, right(v, ops.where(below, 1.0, z)))

    hankel.__name__ = hankel.__qualname__ = name
    factor = f", multiplied by ``exp({'-' if kind == 1 else ''}1j * z)``" if scaled else ""
    hankel.__doc__ = f"""Hankel function of kind {kind} of real order{factor}.

    Returns:
        A complex tensor of the shape that ``v`` and ``z`` broadcast to.

    Gradient:
        That of :func:`jv` and :func:`yv`; by ``v`` for real ``z`` above 0, NaN elsewhere.
    """
    return composed(hankel)


hankel1, hankel1e = _hankels(1, False), _hankels(1, True)
hankel2, hankel2e = _hankels(2, False), _hankels(2, True)


def _derivatives(name: str, function: Callable, phase: int, sign: int) -> Callable:
    def derivatives(v: Operand, z: Operand, n: Integer = 1) -> Tensor:
        n = integer(name, n, "n", 0)
        v, z = floating(v, z)
        total = function(v - n, z)
        for k in range(1, n + 1):
            total = total + phase**k * math.comb(n, k) * function(v - n + 2 * k, z)
        return total * (sign**n / 2.0**n) if n else total

    derivatives.__name__ = derivatives.__qualname__ = name
    derivatives.__doc__ = f"""Derivative of order ``n`` of :func:`{function.__name__}` by its argument.

    Args:
        n: a whole number, not negative.

    Returns:
        A tensor of the shape that ``v`` and ``z`` broadcast to.

    Raises:
        ArgumentError: ``n`` below 0.

    Gradient:
        That of :func:`{function.__name__}`, of which it is a sum.
    """
    return composed(derivatives)


jvp, yvp = _derivatives("jvp", jv, -1, 1), _derivatives("yvp", yv, -1, 1)
ivp, kvp = _derivatives("ivp", iv, 1, 1), _derivatives("kvp", kv, 1, -1)
h1vp, h2vp = _derivatives("h1vp", hankel1, -1, 1), _derivatives("h2vp", hankel2, -1, 1)
