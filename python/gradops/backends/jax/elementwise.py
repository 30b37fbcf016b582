"""JAX kernels: elementwise ops."""

import jax
import jax.numpy as jnp
from jax.custom_derivatives import SymbolicZero

from .. import _shared
from .._shared import is_small_whole
from .base import (
    arithmetic,
    counting,
    floating,
    floating_arithmetic,
    floats,
    is_floating,
    is_real,
    known,
    promoted,
)  # fmt: skip
from .kinks import kink

add = arithmetic(jnp.add, numbers=True)
subtract = arithmetic(jnp.subtract, numbers=True)
multiply = arithmetic(jnp.multiply, numbers=True)
maximum = arithmetic(jnp.maximum, numbers=True)
minimum = arithmetic(jnp.minimum, numbers=True)
divide = floating_arithmetic(jnp.divide, numbers=True)
_arctan, _arcsinh, _arccosh = _shared.inverses(jnp, jnp.log)
arctan = floating(lambda x: jnp.arctan(x) if x.dtype.kind == "c" else _arctan(x))
arcsinh = floating(lambda x: jnp.arcsinh(x) if x.dtype.kind == "c" else _arcsinh(x))
arccosh = floating(lambda x: _complex_arccosh(x) if x.dtype.kind == "c" else _arccosh(x))
erf = floating(lambda x: jax.scipy.special.erf(jnp.clip(x, -40, 40)))  # avoids a second derivative of NaN at infinity

conj = jnp.conj
real = jnp.real
imag = jnp.imag
isnan = jnp.isnan
isfinite = jnp.isfinite
isinf = jnp.isinf


def _power_of_wholes(x1, x2):
    if (exponents := known(x2)) is not None and (exponents < 0).any():
        raise ValueError("a whole number to a negative power")
    return jnp.power(x1, x2)


_power = counting(lambda x1, x2: (jnp.power if x1.dtype.kind in "fcV" else _power_of_wholes)(x1, x2))


def power(x1, x2):
    if is_small_whole(x2) and is_real(x1):  # derivative n + 1 of jnp.power(x, n) is NaN at 0
        return jax.lax.integer_pow(x1, int(x2))
    if isinstance(x2, (int, float)) and x2 or isinstance(x1, (int, float)) and x1 > 0:
        return _power(x1, x2)
    number = isinstance(x2, (int, float))
    x1, x2 = promoted(x1, x2)
    if not is_real(x1):
        return _power(x1, x2)
    return jnp.ones_like(x1) if number else _power_of_tensors(x1, x2)


@jax.jit
@jax.custom_jvp
def _power_of_tensors(x1, x2):
    """Power with gradops' derivatives: JAX's second derivatives are NaN at base 0, and 0 for an exponent of 0."""
    return jnp.power(x1, x2)


def _tangent_of_power(primals, tangents):
    x1, x2 = primals
    dx1, dx2 = [None if isinstance(t, SymbolicZero) else t for t in tangents]
    y = _power_of_tensors(x1, x2)
    dy = jnp.zeros_like(y)
    if dx1 is not None:
        lower = jnp.where((x1 == 0) & (x2 == 0), 1, x2 - 1)  # avoids 0 * inf
        dy = dy + dx1 * (x2 * _power_of_tensors(x1, lower))
    if dx2 is not None:
        dy = dy + dx2 * (y * jnp.log(jnp.where((x1 == 0) & (x2 >= 0), 1, x1)))
    return y, dy


_power_of_tensors.__wrapped__.defjvp(_tangent_of_power, symbolic_zeros=True)


def abs(x):
    if is_real(x):
        return x * jax.lax.stop_gradient(jnp.sign(x))  # its derivative at 0 is 0; jnp.abs has 1
    if x.dtype.kind != "c":
        return jnp.abs(x)
    zero = x == 0  # JAX's second derivative is wrong there
    y = jnp.abs(jnp.where(zero, 1.0, x))
    return jnp.where(zero, kink(_shared.combined(x.real, x.imag), zero), y)


@floating
def angle(x):
    if x.dtype.kind == "c":
        zero = x == 0  # its derivatives are 0 / 0 there
        return jnp.where(zero, jnp.angle(jax.lax.stop_gradient(x)), jnp.angle(jnp.where(zero, 1.0, x)))
    return jnp.arctan2(jnp.zeros_like(x), jax.lax.stop_gradient(x))


def _complex_arccosh(x):
    """``arccosh`` by square roots: JAX's derivative takes the wrong branch left of the imaginary axis."""
    return jnp.log(x + jnp.sqrt(x - 1) * jnp.sqrt(x + 1))


def round(x, decimals=0):
    if not is_floating(x):
        wide = x if x.dtype == bool or decimals >= 0 else jnp.round(x.astype(float), decimals)
        return wide.astype(x.dtype)
    return jnp.round(x, decimals)


@arithmetic
def gcd(x1, x2):
    """The gcd of unsigned magnitudes: JAX's loop never ends for a dtype's lowest integer, whose ``abs`` overflows."""
    dtype, unsigned = x1.dtype, f"uint{8 * x1.dtype.itemsize}"
    return jnp.gcd(jnp.abs(x1).astype(unsigned), jnp.abs(x2).astype(unsigned)).astype(dtype)


@arithmetic
def lcm(x1, x2):
    divisor = gcd(x1, x2)
    return jnp.abs(x1) // jnp.where(divisor == 0, 1, divisor) * jnp.abs(x2)


@floating_arithmetic
def nextafter(x1, x2):
    return jnp.nextafter(jax.lax.stop_gradient(x1), jax.lax.stop_gradient(x2))


# Special functions.

cbrt = floating(jnp.cbrt)
erfc = floating(lambda x: jax.scipy.special.erfc(jnp.clip(x, -40, 40)))
erfinv = floating(jax.scipy.special.erfinv)
rsqrt = floating(jax.lax.rsqrt)


def _define_slope(function, slope):
    """A unary function with our own derivative in either mode; settings follow ``x``."""
    ours = jax.custom_jvp(function, nondiff_argnums=tuple(range(1, function.__code__.co_argcount)))

    def jvp(*arguments):
        *settings, (x,), (dx,) = arguments
        return ours(x, *settings), dx * slope(x, *settings)

    ours.defjvp(jvp)
    return ours


def _near_0(x, series, function):
    """``series(x**2)`` near 0, where JAX's derivatives of ``function`` are wrong."""
    near = jnp.abs(x) < 0.1
    below = _shared.power_series(jnp.square(jnp.where(near, x, 0.0)), series)
    return jnp.where(near, below, function(jnp.where(near, 1.0, x)))


def _i1_over_x(x):
    return _near_0(x, _shared.I1_OVER_X, lambda x: _i1(x) / x)


# Series, because JAX differentiates the code itself, without our derivatives, in second derivatives of loops.
_i0 = _define_slope(lambda x: _near_0(x, _shared.I0, jax.scipy.special.i0), lambda x: _i1(x))
_i1 = _define_slope(
    lambda x: x * _near_0(x, _shared.I1_OVER_X, lambda x: jax.scipy.special.i1(x) / x),
    lambda x: _i0(x) - _i1_over_x(x),
)
i0, i1 = floating(_i0), floating(_i1)


@floating_arithmetic
def hypot(x1, x2):
    scale = jax.lax.stop_gradient(jnp.maximum(jnp.abs(x1), jnp.abs(x2)))  # jnp.hypot's derivatives fail at ties
    scale = jnp.where((scale == 0) | jnp.isinf(scale), 1.0, scale)
    squares = jnp.square(x1 / scale) + jnp.square(x2 / scale)
    zero = squares == 0  # the derivative is 0 / 0 there
    y = scale * jnp.sqrt(jnp.where(zero, 1.0, squares))
    y = jnp.where(zero, kink(_shared.combined(x1, x2), zero), y)
    return jnp.where(jnp.isinf(x1) | jnp.isinf(x2), jnp.inf, y)  # infinite even if the other is NaN


def ldexp(x1, x2):
    x = floats(jnp.asarray(x1))
    if x.dtype.itemsize < 4:
        return ldexp(x.astype(jnp.float32), x2).astype(x.dtype)
    bound = _shared.EXPONENTS[x.dtype.name]
    for part in _shared.thirds(jnp.clip(x2.astype(int), -bound, bound)):
        x = x * jnp.ldexp(jnp.ones((), x.dtype), part)
    return x


def _any_polygamma(x, n):
    if n == 0:
        zero = x == 0  # JAX returns NaN
        return jnp.where(zero, -1 / x, jax.scipy.special.digamma(jnp.where(zero, 1.0, x)))
    below, far = x <= 0, x > 1e16
    positive = jnp.where(below, 1 - x, jnp.where(far, 1.0, x))
    y = jax.scipy.special.polygamma(n, positive)
    # JAX is wrong below 0: use the reflection formula, with derivatives of pi * cot(pi * x).
    cotangent = 1 / jnp.tan(jnp.pi * jnp.where(below, x - jnp.round(x), 0.5))
    reflected = (-1) ** n * y - jnp.pi ** (n + 1) * _shared.power_series(cotangent, _shared.cotangents(n))
    return jnp.where(below, reflected, jnp.where(far, _shared.polygamma_far(jnp.where(far, x, 1.0), n), y))


_polygamma = _define_slope(_any_polygamma, lambda x, n: _polygamma(x, n + 1))
lgamma = floating(_define_slope(lambda x: jax.scipy.special.gammaln(x), lambda x: _polygamma(x, 0)))


def polygamma(x, n):
    return _polygamma(floats(x), n)
