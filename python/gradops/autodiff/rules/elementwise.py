"""Derivatives of elementwise ops, including activations, special functions and casts.

The derivative of ``power`` with respect to the exponent is 0 where the base is 0, as in PyTorch, rather than NaN. Ties
of ``maximum`` and ``minimum`` share the gradient equally (as in JAX and TensorFlow Probability; the only choice that is
symmetric in the operands). ``abs`` has derivative 0 at 0, and so has ``hypot`` where the length is 0. The second
derivative there is NaN, or 0 for a real ``abs``; squares of lengths are in :mod:`..lengths`. The engine casts gradients
back to the argument's dtype.
"""

import math

from ... import dtypes
from ...backends._shared import combined
from ...ops import (
    add,
    cast,
    clip,
    conj,
    cos,
    cosh,
    divide,
    dtype,
    equal,
    exp,
    exp2,
    floor,
    greater,
    greater_equal,
    hypot,
    i0,
    i1,
    isinf,
    ldexp,
    less,
    log,
    logical_and,
    multiply,
    negative,
    polygamma,
    power,
    real,
    real_sign,
    reciprocal,
    sigmoid,
    sin,
    sinh,
    sqrt,
    square,
    subtract,
    sum,
    tanh,
    trunc,
    where,
    zeros_like,
)
from ...ops._dispatch import registry
from ...ops.activations import normal_cdf
from ...ops.reductions import kink_pulled, squared
from ...ops.special import i1_over_x
from ..record import derivative


def _half_at_ties(wins, x1, x2, g):
    chosen = where(wins(x1, x2), g, multiply(g, 0.0))
    return where(equal(x1, x2), multiply(g, 0.5), chosen)


def _power_base(g, x1, x2):
    if isinstance(x2, (int, float)):
        if not x2:
            return zeros_like(g)  # also where `g` is NaN
        return g * ((x1 if x2 == 2 else power(x1, x2 - 1)) * x2)
    one = logical_and(equal(x1, 0), equal(x2, 0))  # here 0 * inf would be NaN
    return multiply(g, multiply(x2, power(x1, where(one, 1.0, subtract(x2, 1)))))


def _power_exponent(g, y, x1, x2):
    exponent = real(x2) if _is_complex(x2) else x2
    safe = where(logical_and(equal(x1, 0), greater_equal(exponent, 0)), 1.0, x1)
    if _is_complex(x2) and not _is_complex(safe):
        safe = cast(safe, dtype(y))  # a negative base has a complex logarithm
    return multiply(g, multiply(y, log(safe)))


def _gap(x1, x2):
    """Return ``x1 - x2``, or 0 where both are the same infinity."""
    return where(logical_and(equal(x1, x2), isinf(x1)), 0.0, subtract(x1, x2))


def _single(x):
    """Return ``x`` with half precision cast to single, where squares keep their digits; the engine casts back."""
    return cast(x, "float32") if dtype(x) in ("float16", "bfloat16") else x


def _bell(x, scale: float):
    """Return ``exp(scale * x**2)``, whose value and derivatives are 0 at infinity and wherever it underflows."""
    return exp(multiply(square(clip(x, -40.0, 40.0)), scale))


def _slope(x, bound: float, formula):
    """Return ``formula(x)``, or 0 where ``abs(x)`` exceeds ``bound``: its derivatives would overflow there."""
    far = greater(abs(x), bound)
    return where(far, 0.0, formula(where(far, 1.0, x)))


def _arctan(x):
    if _is_complex(x):
        return reciprocal(add(1, square(x)))
    x = _single(x)
    bound = 1e154 if dtype(x) == "float64" else 1e19
    return _slope(x, bound, lambda x: reciprocal(add(1, square(x))))


def _arcsinh(x):
    if _is_complex(x):
        return reciprocal(sqrt(add(square(x), 1)))
    x = _single(x)
    size = abs(x)
    far = greater(size, 1e9)  # here the root equals the size; the square might overflow, and `hypot` is slow
    near = where(far, 0.0, x)
    return reciprocal(where(far, size, sqrt(add(square(near), 1))))


def _tanh(x, y):
    """Return ``1 - y**2``, computed from ``x`` so that it stays accurate where ``y`` rounds to -1 or 1."""
    if _is_complex(x):
        return 1 - y * y
    # `where` and not `abs`: the derivative of `abs` at 0 is 0, which would make higher derivatives wrong.
    e = exp(multiply(where(less(x, 0), x, negative(x)), 2.0))
    return divide(multiply(e, 4.0), square(add(e, 1)))


def _divide_by_squares(x, x1, x2):
    """Return ``x / (x1**2 + x2**2)`` without squares, which might overflow."""
    length = hypot(_single(x1), _single(x2))
    return divide(divide(x, length), length)


derivative("add", x1=lambda g: g, x2=lambda g: g)
derivative("subtract", x1=lambda g: g, x2=lambda g: -g)
derivative("multiply", x1=lambda g, x2: g * x2, x2=lambda g, x1: g * x1)
derivative("divide", x1=lambda g, x2: g / x2, x2=lambda g, y, x2: -(g * y) / x2)
derivative("power", x1=_power_base, x2=_power_exponent)
derivative("mod", x1=lambda g: g, x2=lambda g, x1, x2: negative(multiply(g, floor(divide(x1, x2)))))
derivative(
    "maximum",
    x1=lambda g, x1, x2: _half_at_ties(greater, x1, x2, g),
    x2=lambda g, x1, x2: _half_at_ties(less, x1, x2, g),
)
derivative(
    "minimum",
    x1=lambda g, x1, x2: _half_at_ties(less, x1, x2, g),
    x2=lambda g, x1, x2: _half_at_ties(greater, x1, x2, g),
)
derivative(
    "arctan2",
    x1=lambda g, x1, x2: multiply(g, _divide_by_squares(x2, x1, x2)),
    x2=lambda g, x1, x2: negative(multiply(g, _divide_by_squares(x1, x1, x2))),
)
derivative(
    "logaddexp",
    x1=lambda g, x1, x2: multiply(g, sigmoid(_gap(x1, x2))),
    x2=lambda g, x1, x2: multiply(g, sigmoid(_gap(x2, x1))),
)

derivative("negative", x=lambda g: -g)
derivative("reciprocal", x=lambda g, y: negative(g * square(y)))
derivative("square", x=lambda g, x: g * (x + x))
derivative("exp", x=lambda g, y: g * y)
derivative("exp2", x=lambda g, x: multiply(g, multiply(exp2(subtract(x, 1)), 2 * math.log(2))))  # exp2(1024) overflows
derivative("expm1", x=lambda g, x: g * exp(x))  # y + 1 would cancel for large negative x
derivative("log", x=lambda g, x: g / x)
derivative("log2", x=lambda g, x: divide(g, x * math.log(2)))
derivative("log10", x=lambda g, x: divide(g, x * math.log(10)))
derivative("log1p", x=lambda g, x: divide(g, add(x, 1)))
derivative("sqrt", x=lambda g, y: g / (y + y))
derivative("sin", x=lambda g, x: g * cos(x))
derivative("cos", x=lambda g, x: -g * sin(x))
derivative("tan", x=lambda g, y: g * (1 + square(y)))
derivative("arcsin", x=lambda g, x: divide(g, sqrt(subtract(1, square(x)))))
derivative("arccos", x=lambda g, x: negative(divide(g, sqrt(subtract(1, square(x))))))
derivative("arctan", x=lambda g, x: multiply(g, _arctan(x)))
derivative("sinh", x=lambda g, x: g * cosh(x))
derivative("cosh", x=lambda g, x: g * sinh(x))
derivative("tanh", x=lambda g, x, y: multiply(g, _tanh(x, y)))
derivative("arcsinh", x=lambda g, x: multiply(g, _arcsinh(x)))
derivative("arccosh", x=lambda g, x: divide(divide(g, sqrt(subtract(x, 1))), sqrt(add(x, 1))))
derivative("arctanh", x=lambda g, x: divide(g, subtract(1, square(x))))
derivative("erf", x=lambda g, x: multiply(g, multiply(_bell(x, -1.0), 2 / math.sqrt(math.pi))))

for _name in [name for name, entry in registry.items() if entry.facts.steps]:
    derivative(_name, **dict.fromkeys(registry[_name].tensors, lambda g: zeros_like(g)))

derivative(
    "abs",
    complex_aware=True,
    x=lambda g, x, y: _length_gradient(g, x, x, y) if _is_complex(x) else multiply(g, real_sign(x)),
)
derivative("conj", complex_aware=True, x=lambda g: conj(g))
derivative("real", complex_aware=True, x=lambda g: real(g))
derivative("imag", complex_aware=True, x=lambda g, x: multiply(g, 1j) if _is_complex(x) else multiply(g, 0.0))
derivative("angle", complex_aware=True, x=lambda g, x: _angle(g, x))


def _is_complex(x) -> bool:
    return dtype(x) in dtypes.COMPLEX


def _length_gradient(g, part, x, length):
    """Return ``g * part / length``; where the length is 0, return 0 with the derivative of a kink at ``x``."""
    zero = equal(length, 0)
    return add(multiply(g, where(zero, 0.0, divide(part, where(zero, 1.0, length)))), kink_pulled(g, x, zero))


def _angle(g, x):
    if not _is_complex(x):
        return multiply(g, 0.0)
    length = squared(x)
    zero = equal(length, 0)
    return where(zero, 0.0, multiply(divide(g, where(zero, 1.0, length)), multiply(x, 1j)))


# Activations.


def _silu(x):
    if not _is_complex(x):
        x = clip(x, -750.0, 750.0)  # the gate is 0 or 1 there, and infinity times 0 would be NaN
    gate = sigmoid(x)
    return add(gate, multiply(x, multiply(gate, sigmoid(negative(x)))))


def _softsign(g, x):
    size = abs(x)
    rest = reciprocal(add(size, 1))
    if not _is_complex(x):
        return multiply(g, square(rest))
    zero = equal(size, 0)
    direction = where(zero, 0.0, divide(x, where(zero, 1.0, size)))
    radial = multiply(real(multiply(conj(g), x)), square(rest))
    return subtract(multiply(g, rest), multiply(direction, radial))


def _gelu(x, approximate: bool):
    x = clip(x, -40.0, 40.0)
    if not approximate:
        return add(normal_cdf(x), multiply(x, multiply(_bell(x, -0.5), 1 / math.sqrt(2 * math.pi))))
    squares = multiply(square(x), 0.044715)
    scale = 2 * math.sqrt(2 / math.pi)
    inner, slope = (multiply(add(multiply(squares, factor), 1), scale) for factor in (1, 3))
    inner = multiply(x, inner)
    gate = sigmoid(inner)
    return add(gate, multiply(multiply(x, slope), multiply(gate, sigmoid(negative(inner)))))


def _squareplus(x, b: float):
    """Return ``(1 + x / root) / 2`` as a step plus a remainder, whose derivatives have no cancelling terms."""
    negated = less(x, 0)
    size = where(negated, negative(x), x)
    far = isinf(size)
    size = where(far, 1.0, size)
    root = hypot(size, math.sqrt(b))
    rest = where(far, 0.0, divide(divide(b, add(root, size)), root + root))
    return where(negated, rest, subtract(1, rest))


derivative("sigmoid", x=lambda g, x, y: g * (y * sigmoid(negative(x))))  # 1 - y would cancel for large x
derivative("relu", x=lambda g, x: multiply(g, cast(greater(x, 0), dtype(g))))
derivative("softplus", x=lambda g, x: multiply(g, sigmoid(x)))
derivative("normal_cdf", x=lambda g, x: multiply(g, multiply(_bell(x, -0.5), 1 / math.sqrt(2 * math.pi))))
derivative("silu", x=lambda g, x: multiply(g, _silu(x)))
derivative("gelu", x=lambda g, x, approximate: multiply(g, _gelu(_single(x), approximate)))
derivative("softsign", complex_aware=True, x=lambda g, x: _softsign(g, x))
derivative("squareplus", x=lambda g, x, b: multiply(g, _squareplus(_single(x), b)))
derivative("tanh_shrink", x=lambda g, x: multiply(g, square(tanh(x))))
derivative("softmax", x=lambda g, y, axis: y * (g - sum(g * y, axis, True)))


def _log_softmax(g, y, axis):
    """Return ``g - exp(y) * sum(g)``; for a large ``exp(y)``, ``1 - exp(y)`` is the sum of the others, for accuracy."""
    p = exp(y)
    large = greater(p, 0.5)
    rest = where(large, sum(where(large, 0.0, p), axis, True), subtract(1, p))
    return subtract(multiply(g, rest), multiply(p, subtract(sum(g, axis, True), g)))


derivative("log_softmax", x=_log_softmax)


def _sparsemax(g, y, axis):
    support = cast(greater(y, 0), dtype(g))
    mean = divide(sum(multiply(g, support), axis, True), sum(support, axis, True))
    return multiply(subtract(g, mean), support)


derivative("sparsemax", x=_sparsemax)


# Special functions.

_ROOT_PI = math.sqrt(math.pi)


def _i1(g, x):
    return multiply(g, subtract(i0(x), i1_over_x(x)))


derivative("cbrt", x=lambda g, y: divide(divide(g, y), y * 3))  # with square(y), second derivatives at infinity are NaN
derivative("rsqrt", x=lambda g, y: g * (y * square(y) * -0.5))
derivative("erfc", x=lambda g, x: multiply(g, multiply(_bell(x, -1.0), -2 / _ROOT_PI)))
derivative("erfinv", x=lambda g, y: g * (exp(square(y)) * (_ROOT_PI / 2)))
derivative("i0", x=lambda g, x: multiply(g, i1(x)))
derivative("i1", x=_i1)
derivative("lgamma", x=lambda g, x: multiply(g, polygamma(x)))
derivative("polygamma", x=lambda g, x, n: multiply(g, polygamma(x, n + 1)))
derivative(
    "hypot",
    x1=lambda g, x1, x2, y: _length_gradient(g, x1, combined(x1, x2), y),
    x2=lambda g, x1, x2, y: _length_gradient(g, x2, combined(x1, x2), y),
)
derivative("ldexp", x1=lambda g, x2: ldexp(g, cast(x2, "int64")))


# Bounds, and casts.

derivative("fmod", x1=lambda g: g, x2=lambda g, x1, x2: negative(multiply(g, trunc(divide(x1, x2)))))
derivative("nextafter", x1=lambda g: zeros_like(g), x2=lambda g: zeros_like(g))


derivative("cast", x=lambda g: g)
derivative("copy", x=lambda g: g)
