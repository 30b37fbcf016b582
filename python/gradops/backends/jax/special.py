"""JAX kernels: special functions."""

import jax
import jax.numpy as jnp

from .. import _formulas
from .base import floating, floating_arithmetic, floats

cbrt = floating(jnp.cbrt)
erfc = floating(jax.scipy.special.erfc)
erfinv = floating(jax.scipy.special.erfinv)
rsqrt = floating(jax.lax.rsqrt)


def _with_slope(function, slope):
    """A unary function with a derivative of ours, in either mode; settings follow ``x``."""
    ours = jax.custom_jvp(function, nondiff_argnums=tuple(range(1, function.__code__.co_argcount)))

    def jvp(*arguments):
        *settings, (x,), (dx,) = arguments
        return ours(x, *settings), dx * slope(x, *settings)

    ours.defjvp(jvp)
    return ours


def _near_0(x, series, function):
    """``series(x**2)`` near 0, where derivatives of a ``function`` of the library's are wrong."""
    near = jnp.abs(x) < 0.1
    below = _formulas.power_series(jnp.square(jnp.where(near, x, 0.0)), series)
    return jnp.where(near, below, function(jnp.where(near, 1.0, x)))


def _i1_over_x(x):
    return _near_0(x, _formulas.I1_OVER_X, lambda x: _i1(x) / x)


# By series, as JAX drops our derivatives, and differentiates the functions themselves, in second derivatives of loops.
_i0 = _with_slope(lambda x: _near_0(x, _formulas.I0, jax.scipy.special.i0), lambda x: _i1(x))
_i1 = _with_slope(
    lambda x: x * _near_0(x, _formulas.I1_OVER_X, lambda x: jax.scipy.special.i1(x) / x),
    lambda x: _i0(x) - _i1_over_x(x),
)
i0, i1 = floating(_i0), floating(_i1)


@floating_arithmetic
def hypot(x1, x2):
    scale = jax.lax.stop_gradient(jnp.maximum(jnp.abs(x1), jnp.abs(x2)))  # jnp.hypot's own derivatives err at ties
    scale = jnp.where((scale == 0) | jnp.isinf(scale), 1.0, scale)
    squares = jnp.square(x1 / scale) + jnp.square(x2 / scale)
    zero = squares == 0  # where the derivative would be 0 / 0
    y = jnp.where(zero, 0.0, scale * jnp.sqrt(jnp.where(zero, 1.0, squares)))
    return jnp.where(jnp.isinf(x1) | jnp.isinf(x2), jnp.inf, y)  # also beside NaN


def ldexp(x1, x2):
    x = floats(jnp.asarray(x1))
    if x.dtype.itemsize < 4:
        return ldexp(x.astype(jnp.float32), x2).astype(x.dtype)
    bound = _formulas.EXPONENTS[x.dtype.name]
    for part in _formulas.thirds(jnp.clip(x2.astype(int), -bound, bound)):
        x = x * jnp.ldexp(jnp.ones((), x.dtype), part)
    return x


def _any_polygamma(x, n):
    if n == 0:
        zero = x == 0  # where the library's is NaN
        return jnp.where(zero, -1 / x, jax.scipy.special.digamma(jnp.where(zero, 1.0, x)))
    below, far = x <= 0, x > 1e16
    positive = jnp.where(below, 1 - x, jnp.where(far, 1.0, x))
    y = jax.scipy.special.polygamma(n, positive)
    # The library's is wrong below 0: reflected, by the derivatives of pi * cot(pi * x).
    cotangent = 1 / jnp.tan(jnp.pi * jnp.where(below, x - jnp.round(x), 0.5))
    reflected = (-1) ** n * y - jnp.pi ** (n + 1) * _formulas.power_series(cotangent, _formulas.cotangents(n))
    return jnp.where(below, reflected, jnp.where(far, _formulas.polygamma_far(jnp.where(far, x, 1.0), n), y))


_polygamma = _with_slope(_any_polygamma, lambda x, n: _polygamma(x, n + 1))
lgamma = floating(_with_slope(lambda x: jax.scipy.special.gammaln(x), lambda x: _polygamma(x, 0)))


def polygamma(x, n):
    return _polygamma(floats(x), n)
