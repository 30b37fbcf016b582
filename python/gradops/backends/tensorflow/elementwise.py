"""TensorFlow kernels: elementwise ops."""

import math

import tensorflow as tf

from .._formulas import is_small_whole
from . import closures, tapes
from .base import (
    arithmetic,
    counting,
    floating,
    floating_arithmetic,
    floats,
    in_int64,
    in_single,
    predicate,
    promoted,
    stepped,
)  # fmt: skip

add = arithmetic(tf.math.add)
subtract = arithmetic(tf.math.subtract, tf.math.subtract)  # of bools an error
multiply = arithmetic(tf.math.multiply)
mod = counting(tf.math.floormod)
divide = floating_arithmetic(tf.math.truediv)
arctan2 = floating_arithmetic(tf.math.atan2)

equal = predicate(tf.math.equal)
not_equal = predicate(tf.math.not_equal)
less = predicate(tf.math.less)
less_equal = predicate(tf.math.less_equal)
greater = predicate(tf.math.greater)
greater_equal = predicate(tf.math.greater_equal)

exp = floating(tf.math.exp)
expm1 = floating(tf.math.expm1)
log = floating(tf.math.log)
log1p = floating(tf.math.log1p)
sqrt = floating(tf.math.sqrt)
sin = floating(tf.math.sin)
cos = floating(tf.math.cos)
tan = floating(tf.math.tan)
arcsin = floating(tf.math.asin)
arccos = floating(tf.math.acos)
arctan = floating(tf.math.atan)
sinh = floating(tf.math.sinh)
cosh = floating(tf.math.cosh)
tanh = floating(tf.math.tanh)
arcsinh = floating(tf.math.asinh)
arccosh = floating(lambda x: _complex_arccosh(x) if x.dtype.is_complex else tf.math.acosh(x))
arctanh = floating(tf.math.atanh)
reciprocal = floating(tf.math.reciprocal)
log2 = floating(lambda x: tf.math.log(x) / _number(x, math.log(2)))
log10 = floating(lambda x: tf.math.log(x) / _number(x, math.log(10)))
exp2 = floating(lambda x: tf.math.pow(_number(x, 2), x))


def _sharing_ties(function):
    """TensorFlow gives the whole gradient of a tie to the first operand: the mean of equal ones shares it."""

    @arithmetic
    def kernel(x1, x2):
        y = function(x1, x2)
        return tf.where(tf.equal(x1, x2), x1 * 0.5 + x2 * 0.5, y) if y.dtype.is_floating else y

    return kernel


maximum = _sharing_ties(tf.math.maximum)
minimum = _sharing_ties(tf.math.minimum)


def _complex_arccosh(x):
    """By roots, as on the other backends, so that the branches are the same."""
    return tf.math.log(x + tf.math.sqrt(x - 1) * tf.math.sqrt(x + 1))


def _number(x, value):
    return tf.constant(value, x.dtype)


def _whole_power(x, n: int):
    """By squares, as the derivative of tf.math.pow of order n + 1 is NaN at 0."""
    if n == 1:
        return tf.identity(x)
    half = tf.square(_whole_power(x, n // 2))
    return half * x if n % 2 else half


def power(x1, x2):
    number = isinstance(x2, (int, float))
    plain = number and x2 != 0 or isinstance(x1, (int, float)) and x1 > 0
    whole = int(x2) if is_small_whole(x2) else 0
    x1, x2 = promoted(x1, x2)
    if whole and x1.dtype.is_floating:
        return _whole_power(x1, whole)
    if plain or not x1.dtype.is_floating:
        return _whole_or_complex_power(x1, x2)
    if number:
        return tf.where(tf.equal(x2, 0), tf.ones_like(x1), x1)
    return _power_of_tensors(x1, x2)


_whole_or_complex_power = counting(in_int64(tf.math.pow, tf.uint8, tf.uint16, tf.uint32, tf.uint64))


def _power_of_tensors(x1, x2):
    """The library's derivatives of its derivatives are NaN at base 0."""
    if not tf.executing_eagerly() or tapes.forward_mode():
        return _power_of_steps(x1, x2)
    if not closures.may_record():
        return tf.math.pow(x1, x2)
    if x1.shape != x2.shape:
        shape = tf.broadcast_static_shape(x1.shape, x2.shape)
        x1, x2 = tf.broadcast_to(x1, shape), tf.broadcast_to(x2, shape)
    return _power(x1, x2)


@tf.custom_gradient
def _power(x1, x2):
    y, one = tf.math.pow(x1, x2), tf.ones_like(x1)

    def rule(g):
        lower = tf.where((x1 == 0) & (x2 == 0), one, x2 - 1)  # where it would be 0 * inf
        safe = tf.where((x1 == 0) & (x2 >= 0), one, x1)
        return g * (x2 * _power_of_tensors(x1, lower)), g * (_power_of_tensors(x1, x2) * tf.math.log(safe))

    return y, rule


def _power_of_steps(x1, x2):
    """The same for graphs, whose copies know no function of ours: whole powers of 0 by multiplying.

    ``x2`` is a constant but for a factor of 1 with the derivatives of ``exp(x2 * log(x1))``, and for NaN below 0.
    """
    constant, one, zero = tf.stop_gradient(x2), tf.ones_like(x1), tf.zeros_like(x1)
    whole = (x1 == 0) & (constant >= 0) & (constant < 16) & (constant == tf.floor(constant))
    base, rest = tf.where(whole, x1, zero), tf.where(whole, constant, zero)
    at_zero = tf.ones_like(base)
    for bit in (8, 4, 2, 1):
        more = rest >= bit
        at_zero = at_zero * at_zero * tf.where(more, base, one)
        rest = tf.where(more, rest - bit, rest)
    y = tf.where(whole, at_zero, tf.math.pow(tf.where(whole, one, x1), constant))
    step = x2 - constant
    log = tf.math.log(tf.where((x1 > 0) & tf.math.is_finite(x1), x1, one))
    below = tf.where(x1 < 0, step, tf.ones_like(step))
    return y * tf.exp(tf.where(x1 < 0, tf.math.atan2(below, below), step * log))  # atan2 has no derivative at 0


@counting
def floor_divide(x1, x2):
    if not x1.dtype.is_floating:
        return tf.math.floordiv(x1, x2)
    return stepped(_floor_divide(x1, x2), x1, x2)


@in_single
def _floor_divide(x1, x2):
    """As NumPy: by the remainder, which is exact."""
    rest = tf.truncatemod(x1, x2)
    y = (x1 - rest) / x2
    y = tf.where(tf.logical_and(rest != 0, (rest < 0) != (x2 < 0)), y - 1, y)
    whole = tf.floor(y)
    return tf.where(tf.equal(x2, 0), x1 / x2, tf.where(y - whole > 0.5, whole + 1, whole))


@floating
def erf(x):
    far = tf.abs(x) > 40  # where the library's is NaN
    return tf.where(far, tf.sign(x), tf.math.erf(tf.where(far, tf.zeros_like(x), x)))


def abs(x):
    return x if x.dtype == tf.bool or x.dtype.is_unsigned else tf.math.abs(x)


def square(x):
    return tf.math.square(x) if x.dtype != tf.bool else tf.cast(x, tf.int64)


def conj(x):
    return tf.math.conj(x) if x.dtype != tf.bool else x


def real(x):
    return tf.math.real(x) if x.dtype != tf.bool else x


def imag(x):
    return tf.math.imag(x) if x.dtype.is_complex else tf.zeros_like(x)


def angle(x):
    x = floats(x)
    if x.dtype.is_complex:
        zero = tf.equal(x, 0)  # where the quotients of its derivatives have none
        return tf.where(zero, tf.math.angle(tf.stop_gradient(x)), tf.math.angle(tf.where(zero, tf.ones_like(x), x)))
    return tf.math.atan2(tf.zeros_like(x), tf.stop_gradient(x))


def negative(x):
    if x.dtype.is_unsigned:
        return tf.zeros_like(x) - x
    return tf.math.negative(x if x.dtype != tf.bool else tf.cast(x, tf.int64))


def real_sign(x):
    if x.dtype.is_unsigned:
        return tf.cast(tf.not_equal(x, 0), x.dtype)
    return tf.math.sign(x if x.dtype != tf.bool else tf.cast(x, tf.int64))


def _whole(function):
    def kernel(x):
        return stepped(function(x), x) if x.dtype.is_floating else x

    return kernel


floor = _whole(tf.math.floor)
ceil = _whole(tf.math.ceil)
trunc = _whole(lambda x: tf.where(x < 0, tf.math.ceil(x), tf.math.floor(x)))


def round(x, decimals=0):
    if x.dtype.is_complex:
        return tf.complex(round(tf.math.real(x), decimals), round(tf.math.imag(x), decimals))
    if x.dtype == tf.bool:
        return x
    if decimals == 0:
        return stepped(tf.math.round(x), x) if x.dtype.is_floating else x
    if not x.dtype.is_floating:
        return x if decimals > 0 else tf.cast(round(tf.cast(x, tf.float64), decimals), x.dtype)
    scale = tf.constant(10.0**decimals, x.dtype)
    return stepped(tf.math.round(x * scale) / scale, x)


def _classify(function, default):
    def kernel(x):
        if x.dtype.is_complex:
            parts = function(tf.math.real(x)), function(tf.math.imag(x))
            return tf.logical_and(*parts) if default else tf.logical_or(*parts)
        return function(x) if x.dtype.is_floating else tf.fill(tf.shape(x), default)

    return kernel


isnan = _classify(tf.math.is_nan, False)
isinf = _classify(tf.math.is_inf, False)
isfinite = _classify(tf.math.is_finite, True)


def _logical(function):
    def kernel(*xs):
        return function(*(tf.cast(x, tf.bool) for x in xs))

    return kernel


logical_not = _logical(tf.math.logical_not)
logical_and = _logical(tf.math.logical_and)
logical_or = _logical(tf.math.logical_or)
logical_xor = _logical(tf.math.logical_xor)
