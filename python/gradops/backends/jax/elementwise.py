"""JAX kernels: elementwise ops."""

import jax
import jax.numpy as jnp

from .base import arithmetic, floating, floating_arithmetic, is_floating, predicate

add = arithmetic(jnp.add)
subtract = arithmetic(jnp.subtract)
multiply = arithmetic(jnp.multiply)
power = arithmetic(jnp.power)
floor_divide = arithmetic(jnp.floor_divide)
mod = arithmetic(jnp.mod)
maximum = arithmetic(jnp.maximum)
minimum = arithmetic(jnp.minimum)
divide = floating_arithmetic(jnp.divide)
arctan2 = floating_arithmetic(jnp.arctan2)
logaddexp = floating_arithmetic(jnp.logaddexp)

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
arccosh = floating(jnp.arccosh)
arctanh = floating(jnp.arctanh)
reciprocal = floating(jnp.reciprocal)
angle = floating(jnp.angle)
erf = floating(jax.scipy.special.erf)

abs = jnp.abs
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


def negative(x):
    return jnp.negative(x if x.dtype != bool else x.astype("int64"))


def sign(x):
    return jnp.sign(x if x.dtype != bool else x.astype("int64"))


def _whole(function):
    def kernel(x):
        return function(x) if is_floating(x) else x

    return kernel


floor = _whole(jnp.floor)
ceil = _whole(jnp.ceil)
trunc = _whole(jnp.trunc)


def round(x, decimals=0):
    return jnp.round(x, decimals) if x.dtype != bool else x
