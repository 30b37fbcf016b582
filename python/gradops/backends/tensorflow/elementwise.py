"""TensorFlow kernels: elementwise ops."""

import math

import tensorflow as tf

from .. import _shared
from .._shared import is_small_whole
from . import _private, tapes
from .base import (
    arithmetic,
    compute_in_int64,
    compute_in_single,
    counting,
    floating,
    floating_arithmetic,
    floats,
    keep_integers,
    promoted,
    stepped,
)  # fmt: skip
from .kinks import kink

subtract = arithmetic(tf.math.subtract, tf.math.subtract)  # bools raise an error
mod = counting(tf.math.floormod)
divide = floating_arithmetic(tf.math.truediv)
_arctan, _arcsinh, _arccosh = _shared.inverses(tf, tf.math.log)
arctan = floating(lambda x: tf.math.atan(x) if x.dtype.is_complex else _arctan(x))
arcsinh = floating(lambda x: tf.math.asinh(x) if x.dtype.is_complex else _arcsinh(x))
arccosh = floating(lambda x: _complex_arccosh(x) if x.dtype.is_complex else _arccosh(x))
log2 = floating(lambda x: tf.math.log(x) / _number(x, math.log(2)))
log10 = floating(lambda x: tf.math.log(x) / _number(x, math.log(10)))
exp2 = floating(lambda x: tf.math.pow(_number(x, 2), x))


def _sharing_ties(function):
    """Share the gradient of ties: TensorFlow gives all of it to the first operand.

    The mean of equal values splits it.
    """

    @arithmetic
    def kernel(x1, x2):
        y = function(x1, x2)
        return tf.where(tf.equal(x1, x2), x1 * 0.5 + x2 * 0.5, y) if y.dtype.is_floating else y

    return kernel


maximum = _sharing_ties(tf.math.maximum)
minimum = _sharing_ties(tf.math.minimum)


def _complex_arccosh(x):
    """``arccosh`` by square roots, so that the branches agree with the other backends."""
    return tf.math.log(x + tf.math.sqrt(x - 1) * tf.math.sqrt(x + 1))


def _number(x, value):
    return tf.constant(value, x.dtype)


def _whole_power(x, n: int):
    """Power by repeated squaring: derivative n + 1 of tf.math.pow is NaN at 0."""
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


_whole_or_complex_power = counting(compute_in_int64(tf.math.pow, tf.uint8, tf.uint16, tf.uint32, tf.uint64))


def _power_of_tensors(x1, x2):
    """Power with gradops' derivatives: TensorFlow's second derivatives are NaN at base 0."""
    if not tf.executing_eagerly() or tapes.forward_mode():
        return _power_of_steps(x1, x2)
    if not tapes.may_record():
        return tf.math.pow(x1, x2)
    if x1.shape != x2.shape:
        shape = tf.broadcast_static_shape(x1.shape, x2.shape)
        x1, x2 = tf.broadcast_to(x1, shape), tf.broadcast_to(x2, shape)
    return _power(x1, x2)


@_private.custom_gradient
def _power(x1, x2):
    y, one = tf.math.pow(x1, x2), tf.ones_like(x1)

    def rule(g):
        lower = tf.where((x1 == 0) & (x2 == 0), one, x2 - 1)  # avoids 0 * inf
        safe = tf.where((x1 == 0) & (x2 >= 0), one, x1)
        return g * (x2 * _power_of_tensors(x1, lower)), g * (_power_of_tensors(x1, x2) * tf.math.log(safe))

    return y, rule


def _power_of_steps(x1, x2):
    """Power for graphs, whose copies lose custom gradients: integer powers of 0 are products.

    ``x2`` is replaced by a constant; factors of 1 carry the derivatives of ``exp(x2 * log(x1))``, NaN for negative
    bases.
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
    return y * tf.exp(tf.where(x1 < 0, tf.math.atan2(below, below), step * log))  # atan2 has a NaN derivative at 0


@counting
def floor_divide(x1, x2):
    if not x1.dtype.is_floating:
        return tf.math.floordiv(x1, x2)
    return stepped(_floor_divide(tf.stop_gradient(x1), tf.stop_gradient(x2)), x1, x2)  # `TruncateMod` has no derivative


@compute_in_single
def _floor_divide(x1, x2):
    """The quotient computed from the exact remainder, as NumPy does."""
    rest = tf.truncatemod(x1, x2)
    y = (x1 - rest) / x2
    y = tf.where(tf.logical_and(rest != 0, (rest < 0) != (x2 < 0)), y - 1, y)
    whole = tf.floor(y)
    return tf.where(tf.equal(x2, 0), x1 / x2, tf.where(y - whole > 0.5, whole + 1, whole))


@floating
def erf(x):
    far = tf.abs(x) > 40  # TensorFlow returns NaN there
    return tf.where(far, tf.sign(x), tf.math.erf(tf.where(far, tf.zeros_like(x), x)))


def abs(x):
    if not x.dtype.is_complex:
        return x if x.dtype == tf.bool or x.dtype.is_unsigned else tf.math.abs(x)
    zero = tf.equal(x, 0)  # TensorFlow's derivatives are 0 there
    y = tf.math.abs(tf.where(zero, tf.ones_like(x), x))
    return tf.where(zero, kink(_shared.combined(tf.math.real(x), tf.math.imag(x)), zero), y)


def conj(x):
    return tf.math.conj(x) if x.dtype != tf.bool else x


def real(x):
    return tf.math.real(x) if x.dtype != tf.bool else x


def imag(x):
    return tf.math.imag(x) if x.dtype.is_complex else tf.zeros_like(x)


def angle(x):
    x = floats(x)
    if x.dtype.is_complex:
        zero = tf.equal(x, 0)  # its derivatives are 0 / 0 there
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


trunc = keep_integers(lambda x: tf.where(x < 0, tf.math.ceil(x), tf.math.floor(x)))


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


_BITS = {2: tf.int16, 4: tf.int32, 8: tf.int64}


def signbit(x):
    if x.dtype.is_floating:
        return tf.bitcast(x, _BITS[x.dtype.size]) < 0
    return tf.less(x, 0) if x.dtype.is_integer and not x.dtype.is_unsigned else tf.zeros_like(x, tf.bool)


def _bits(function, logical):
    @arithmetic
    def kernel(x1, x2):
        return logical(x1, x2) if x1.dtype == tf.bool else function(x1, x2)

    return kernel


bitwise_and = _bits(tf.bitwise.bitwise_and, tf.logical_and)
bitwise_or = _bits(tf.bitwise.bitwise_or, tf.logical_or)
bitwise_xor = _bits(tf.bitwise.bitwise_xor, tf.math.logical_xor)


def _shift(function, emptied):
    """A shift that leaves only the sign for distances beyond the dtype's width; TensorFlow clips the distance."""

    @counting
    def kernel(x, by):
        beyond = by >= 8 * x.dtype.size if x.dtype.is_unsigned else (by < 0) | (by >= 8 * x.dtype.size)
        return tf.where(beyond, emptied(x), function(x, by))

    return kernel


left_shift = _shift(tf.bitwise.left_shift, tf.zeros_like)
right_shift = _shift(tf.bitwise.right_shift, lambda x: -tf.cast(x < 0, x.dtype) if not x.dtype.is_unsigned else x * 0)


def bitwise_not(x):
    return tf.logical_not(x) if x.dtype == tf.bool else tf.bitwise.invert(x)


def _absolute(x):
    return x if x.dtype.is_unsigned else tf.abs(x)


@arithmetic
def gcd(x1, x2):
    """Euclid's algorithm on all elements at once."""
    x1, x2 = x1 + tf.zeros_like(x2), x2 + tf.zeros_like(x1)

    def step(a, b):
        done = tf.equal(b, 0)
        rest = tf.math.floormod(a, tf.where(done, tf.ones_like(b), b))
        return tf.where(done, a, b), tf.where(done, b, rest)

    return _absolute(tf.while_loop(lambda a, b: tf.reduce_any(tf.not_equal(b, 0)), step, (x1, x2))[0])


@arithmetic
def lcm(x1, x2):
    divisor = gcd(x1, x2)
    divisor = tf.where(tf.equal(divisor, 0), tf.ones_like(divisor), divisor)
    return _absolute(x1) // divisor * _absolute(x2)


@counting
def fmod(x1, x2):
    if not x1.dtype.is_floating:
        return _truncatemod(x1, x2)
    x2 = tf.abs(x2)
    return tf.where(x1 < 0, -tf.math.floormod(-x1, x2), tf.math.floormod(x1, x2))


_truncatemod = compute_in_int64(tf.truncatemod, tf.int8, tf.uint8, tf.int16, tf.uint16, tf.uint32, tf.uint64)


@floating_arithmetic
def nextafter(x1, x2):
    short = x1.dtype in (tf.float16, tf.bfloat16)  # TensorFlow has no kernel
    return stepped((_next_of_two_bytes if short else tf.math.nextafter)(x1, x2), x1, x2)


def _next_of_two_bytes(x, to):
    """The next float by its bits, which as integers are ordered like the floats of one sign."""
    bits = tf.bitcast(x, tf.int16)
    away = tf.where(tf.equal(to > x, x > 0), bits + 1, bits - 1)
    least = tf.bitcast(tf.where(to > 0, tf.constant(1, tf.int16), tf.constant(-(2**15) + 1, tf.int16)), x.dtype)
    moved = tf.where(tf.equal(x, 0), least, tf.bitcast(away, x.dtype))
    return tf.where(tf.equal(x, to), to, tf.where(tf.math.is_nan(x) | tf.math.is_nan(to), x + to, moved))


# Special functions.

erfc = floating(lambda x: tf.math.erfc(tf.clip_by_value(x, -40, 40)))  # at infinity its second derivative would be NaN
rsqrt = floating(tf.math.rsqrt)


@_private.custom_gradient
def _erfinv(x):
    """TensorFlow's value with a Newton step, accurate for tiny numbers.

    Near 1 it is computed from the tail, which is accurate to all digits.
    """
    size = tf.abs(x)
    inside = size < 0.5
    near = tf.where(inside, x, tf.zeros_like(x))
    z = tf.math.erfinv(near)
    z -= (tf.math.erf(z) - near) * tf.exp(tf.square(z)) * _HALF_ROOT_PI
    far = -tf.sign(x) * tf.math.ndtri((1 - size) / 2) * math.sqrt(0.5)
    return tf.where(inside, z, far), lambda g: g * tf.exp(tf.square(_erfinv(x))) * _HALF_ROOT_PI


erfinv = floating(compute_in_single(_erfinv))
_HALF_ROOT_PI = math.sqrt(math.pi) / 2


def _bessel(function, near_0):
    """A Bessel function with its power series near 0, where TensorFlow's derivatives are wrong."""

    @floating
    @compute_in_single
    def kernel(x):
        near = tf.abs(x) < 0.1
        zero, one = tf.zeros_like(x), tf.ones_like(x)
        return tf.where(near, near_0(tf.where(near, x, zero)), function(tf.where(near, one, x)))

    return kernel


i0 = _bessel(tf.math.bessel_i0, lambda x: _shared.power_series(tf.square(x), _shared.I0))
i1 = _bessel(tf.math.bessel_i1, lambda x: x * _shared.power_series(tf.square(x), _shared.I1_OVER_X))


@floating_arithmetic
def hypot(x1, x2):
    scale = tf.stop_gradient(tf.maximum(tf.abs(x1), tf.abs(x2)))
    plain = (scale == 0) | tf.math.is_inf(scale)
    scale = tf.where(plain, tf.ones_like(scale), scale)
    squares = tf.square(x1 / scale) + tf.square(x2 / scale)
    zero = squares == 0  # the derivative is 0 / 0 there
    y = scale * tf.sqrt(tf.where(zero, tf.ones_like(squares), squares))
    y = tf.where(zero, kink(_shared.combined(x1, x2), zero), y)
    infinite = tf.logical_or(tf.math.is_inf(x1), tf.math.is_inf(x2))  # infinite even if the other is NaN
    return tf.where(infinite, tf.constant(math.inf, y.dtype), y)


def ldexp(x1, x2):
    return compute_in_single(lambda x: _scaled(x, x2))(floats(tf.convert_to_tensor(x1)))


def _scaled(x, n):
    bound = _shared.EXPONENTS[x.dtype.name]
    for part in _shared.thirds(tf.clip_by_value(tf.cast(n, tf.int64), -bound, bound)):
        x = x * tf.pow(tf.constant(2, x.dtype), tf.cast(part, x.dtype))
    return x


lgamma = floating(compute_in_single(tf.math.lgamma))


def polygamma(x, n):
    x = floats(x)
    if x.dtype.size == 2:
        return tf.cast(polygamma(tf.cast(x, tf.float32), n), x.dtype)
    if n == 0:
        zero = tf.equal(x, 0)  # TensorFlow returns NaN there
        one = tf.ones_like(x)
        return tf.where(zero, -1 / tf.where(zero, x, one), tf.math.digamma(tf.where(zero, one, x)))
    y = tf.math.polygamma(tf.constant(int(n), x.dtype), x)
    pole = tf.logical_and(x <= 0, tf.equal(x, tf.floor(x)))
    return tf.where(pole, tf.constant(_shared.polygamma_sign(n) * math.inf, x.dtype), y)
