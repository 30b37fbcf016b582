"""TensorFlow kernels: special functions."""

import math

import tensorflow as tf

from .. import _formulas
from .base import floating, floating_arithmetic, floats, in_single

erfc = floating(tf.math.erfc)
rsqrt = floating(tf.math.rsqrt)


@tf.custom_gradient
def _erfinv(x):
    """The library's, and one step of Newton's, which makes tiny numbers right."""
    y = tf.math.erfinv(x)
    inside = tf.abs(x) < 0.5
    z = tf.where(inside, y, tf.zeros_like(y))
    y = tf.where(inside, z - (tf.math.erf(z) - x) * tf.exp(tf.square(z)) * _HALF_ROOT_PI, y)
    return y, lambda g: g * tf.exp(tf.square(_erfinv(x))) * _HALF_ROOT_PI


erfinv = floating(in_single(_erfinv))
_HALF_ROOT_PI = math.sqrt(math.pi) / 2


def _bessel(function, near_0):
    """A Bessel function by its power series near 0, where the library's own derivatives are wrong."""

    @floating
    @in_single
    def kernel(x):
        near = tf.abs(x) < 0.1
        zero, one = tf.zeros_like(x), tf.ones_like(x)
        return tf.where(near, near_0(tf.where(near, x, zero)), function(tf.where(near, one, x)))

    return kernel


i0 = _bessel(tf.math.bessel_i0, lambda x: _formulas.power_series(tf.square(x), _formulas.I0))
i1 = _bessel(tf.math.bessel_i1, lambda x: x * _formulas.power_series(tf.square(x), _formulas.I1_OVER_X))


@floating_arithmetic
def hypot(x1, x2):
    scale = tf.stop_gradient(tf.maximum(tf.abs(x1), tf.abs(x2)))
    plain = (scale == 0) | tf.math.is_inf(scale)
    scale = tf.where(plain, tf.ones_like(scale), scale)
    squares = tf.square(x1 / scale) + tf.square(x2 / scale)
    zero = squares == 0  # where the derivative would be 0 / 0
    y = tf.where(zero, tf.zeros_like(squares), scale * tf.sqrt(tf.where(zero, tf.ones_like(squares), squares)))
    infinite = tf.logical_or(tf.math.is_inf(x1), tf.math.is_inf(x2))  # also beside NaN
    return tf.where(infinite, tf.constant(math.inf, y.dtype), y)


def ldexp(x1, x2):
    return in_single(lambda x: _scaled(x, x2))(floats(tf.convert_to_tensor(x1)))


def _scaled(x, n):
    bound = _formulas.EXPONENTS[x.dtype.name]
    for part in _formulas.thirds(tf.clip_by_value(tf.cast(n, tf.int64), -bound, bound)):
        x = x * tf.pow(tf.constant(2, x.dtype), tf.cast(part, x.dtype))
    return x


lgamma = floating(in_single(tf.math.lgamma))


def polygamma(x, n):
    x = floats(x)
    if x.dtype.size == 2:
        return tf.cast(polygamma(tf.cast(x, tf.float32), n), x.dtype)
    if n == 0:
        zero = tf.equal(x, 0)  # where the library's is NaN
        one = tf.ones_like(x)
        return tf.where(zero, -1 / tf.where(zero, x, one), tf.math.digamma(tf.where(zero, one, x)))
    y = tf.math.polygamma(tf.constant(int(n), x.dtype), x)
    pole = tf.logical_and(x <= 0, tf.equal(x, tf.floor(x)))
    return tf.where(pole, tf.constant(_formulas.polygamma_sign(n) * math.inf, x.dtype), y)
