"""JAX kernels: elementwise ops."""

import jax
import jax.numpy as jnp

from .._formulas import is_small_whole
from .base import arithmetic, floating, floating_arithmetic, is_floating, is_real, predicate, promoted

add = arithmetic(jnp.add)
subtract = arithmetic(jnp.subtract)
multiply = arithmetic(jnp.multiply)
floor_divide = arithmetic(jnp.floor_divide)
mod = arithmetic(jnp.mod)
maximum = arithmetic(jnp.maximum)
minimum = arithmetic(jnp.minimum)
divide = floating_arithmetic(jnp.divide)
arctan2 = floating_arithmetic(jnp.arctan2)

equal = predicate(jnp.equal)
not_equal = predicate(jnp.not_equal)
less = predicate(jnp.less)
less_equal = predicate(jnp.less_equal)
greater = predicate(jnp.greater)
greater_equal = predicate(jnp.greater_equal)

exp = floating(jnp.exp)
exp2 = floating(jnp.exp2)
expm1 = floating(jnp.expm1)
log = floating(jnp.log)
log2 = floating(jnp.log2)
log10 = floating(jnp.log10)
log1p = floating(jnp.log1p)
sqrt = floating(jnp.sqrt)
sin = floating(jnp.sin)
cos = floating(jnp.cos)
tan = floating(jnp.tan)
arcsin = floating(jnp.arcsin)
arccos = floating(jnp.arccos)
arctan = floating(jnp.arctan)
sinh = floating(jnp.sinh)
cosh = floating(jnp.cosh)
tanh = floating(jnp.tanh)
arcsinh = floating(jnp.arcsinh)
arccosh = floating(lambda x: jnp.arccosh(x) if x.dtype.kind != "c" else _complex_arccosh(x))
arctanh = floating(jnp.arctanh)
reciprocal = floating(jnp.reciprocal)
erf = floating(jax.scipy.special.erf)

square = jnp.square
conj = jnp.conj
real = jnp.real
imag = jnp.imag
isnan = jnp.isnan
isfinite = jnp.isfinite
isinf = jnp.isinf
logical_not = jnp.logical_not
logical_and = jnp.logical_and
logical_or = jnp.logical_or
logical_xor = jnp.logical_xor


_power = arithmetic(jnp.power)


def power(x1, x2):
    if is_small_whole(x2) and is_real(x1):  # jnp.power's derivative of its order + 1 is NaN at 0
        return jax.lax.integer_pow(x1, int(x2))
    if isinstance(x2, (int, float)) and x2 or isinstance(x1, (int, float)):
        return _power(x1, x2)
    number = isinstance(x2, (int, float))
    x1, x2 = promoted(x1, x2)
    if not is_real(x1):
        return jnp.power(x1, x2)
    if number:
        return jnp.ones_like(x1)
    zero = x2 == 0  # where the library's derivative at 0 is NaN
    base = jnp.where(zero & (x1 > 0) & jnp.isfinite(x1), x1, 1)
    near = jnp.exp(jnp.where(zero, x2, 0) * jnp.log(base))
    return jnp.where(zero, near, jnp.power(x1, jnp.where(zero, 1, x2)))


def abs(x):
    if not is_real(x):
        return jnp.abs(x)
    return x * jax.lax.stop_gradient(jnp.sign(x))  # whose derivative at 0 is 0, where jnp.abs has 1


@floating
def angle(x):
    if x.dtype.kind == "c":
        return jnp.angle(x)
    return jnp.arctan2(jnp.zeros_like(x), jax.lax.stop_gradient(x))


def negative(x):
    return jnp.negative(x if x.dtype != bool else x.astype("int64"))


def real_sign(x):
    return jnp.sign(x if x.dtype != bool else x.astype("int64"))


def _complex_arccosh(x):
    """By roots whose branches the derivative keeps, which the library's has wrong left of the imaginary axis."""
    return jnp.log(x + jnp.sqrt(x - 1) * jnp.sqrt(x + 1))


def _whole(function):
    def kernel(x):
        return function(x) if is_floating(x) else x

    return kernel


floor = _whole(jnp.floor)
ceil = _whole(jnp.ceil)
trunc = _whole(jnp.trunc)


def round(x, decimals=0):
    if not is_floating(x):
        wide = x if x.dtype == bool or decimals >= 0 else jnp.round(x.astype(float), decimals)
        return wide.astype(x.dtype)
    return jnp.round(x, decimals)
