"""JAX kernels: elementwise ops."""

import jax
import jax.numpy as jnp
from jax.custom_derivatives import SymbolicZero

from .._formulas import is_small_whole
from .base import (
    arithmetic,
    counting,
    floating,
    floating_arithmetic,
    is_floating,
    is_real,
    known,
    promoted,
)  # fmt: skip

add = arithmetic(jnp.add, numbers=True)
subtract = arithmetic(jnp.subtract, numbers=True)
multiply = arithmetic(jnp.multiply, numbers=True)
maximum = arithmetic(jnp.maximum, numbers=True)
minimum = arithmetic(jnp.minimum, numbers=True)
divide = floating_arithmetic(jnp.divide, numbers=True)
arccosh = floating(lambda x: jnp.arccosh(x) if x.dtype.kind != "c" else _complex_arccosh(x))
erf = floating(jax.scipy.special.erf)

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
    if is_small_whole(x2) and is_real(x1):  # jnp.power's derivative of its order + 1 is NaN at 0
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
    """The library's derivatives of its derivatives are NaN at base 0, and 0 for the exponent where that is 0."""
    return jnp.power(x1, x2)


def _tangent_of_power(primals, tangents):
    x1, x2 = primals
    dx1, dx2 = [None if isinstance(t, SymbolicZero) else t for t in tangents]
    y = _power_of_tensors(x1, x2)
    dy = jnp.zeros_like(y)
    if dx1 is not None:
        lower = jnp.where((x1 == 0) & (x2 == 0), 1, x2 - 1)  # where it would be 0 * inf
        dy = dy + dx1 * (x2 * _power_of_tensors(x1, lower))
    if dx2 is not None:
        dy = dy + dx2 * (y * jnp.log(jnp.where((x1 == 0) & (x2 >= 0), 1, x1)))
    return y, dy


_power_of_tensors.__wrapped__.defjvp(_tangent_of_power, symbolic_zeros=True)


def abs(x):
    if is_real(x):
        return x * jax.lax.stop_gradient(jnp.sign(x))  # whose derivative at 0 is 0, where jnp.abs has 1
    if x.dtype.kind != "c":
        return jnp.abs(x)
    zero = x == 0  # where the library's second derivative is not 0
    return jnp.where(zero, 0.0, jnp.abs(jnp.where(zero, 1.0, x)))


@floating
def angle(x):
    if x.dtype.kind == "c":
        zero = x == 0  # where the quotients of its derivatives have none
        return jnp.where(zero, jnp.angle(jax.lax.stop_gradient(x)), jnp.angle(jnp.where(zero, 1.0, x)))
    return jnp.arctan2(jnp.zeros_like(x), jax.lax.stop_gradient(x))


def _complex_arccosh(x):
    """By roots whose branches the derivative keeps, which the library's has wrong left of the imaginary axis."""
    return jnp.log(x + jnp.sqrt(x - 1) * jnp.sqrt(x + 1))


def round(x, decimals=0):
    if not is_floating(x):
        wide = x if x.dtype == bool or decimals >= 0 else jnp.round(x.astype(float), decimals)
        return wide.astype(x.dtype)
    return jnp.round(x, decimals)


@arithmetic
def gcd(x1, x2):
    """Of magnitudes, as JAX's own goes on for ever where one is the lowest number, which has none in its dtype."""
    dtype, unsigned = x1.dtype, f"uint{8 * x1.dtype.itemsize}"
    return jnp.gcd(jnp.abs(x1).astype(unsigned), jnp.abs(x2).astype(unsigned)).astype(dtype)


@arithmetic
def lcm(x1, x2):
    divisor = gcd(x1, x2)
    return jnp.abs(x1) // jnp.where(divisor == 0, 1, divisor) * jnp.abs(x2)


@floating_arithmetic
def nextafter(x1, x2):
    return jnp.nextafter(jax.lax.stop_gradient(x1), jax.lax.stop_gradient(x2))
