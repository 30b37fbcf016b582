"""JAX kernels: special functions."""

import jax
import jax.numpy as jnp

from .base import floating, floating_arithmetic, floats

cbrt = floating(jnp.cbrt)
erfc = floating(jax.scipy.special.erfc)
erfinv = floating(jax.scipy.special.erfinv)
rsqrt = floating(jax.lax.rsqrt)
i0 = floating(jax.scipy.special.i0)
i1 = floating(jax.scipy.special.i1)


@floating_arithmetic
def hypot(x1, x2):
    scale = jax.lax.stop_gradient(jnp.maximum(jnp.abs(x1), jnp.abs(x2)))  # jnp.hypot's own derivatives err at ties
    scale = jnp.where((scale == 0) | jnp.isinf(scale), 1.0, scale)
    squares = jnp.square(x1 / scale) + jnp.square(x2 / scale)
    zero = squares == 0  # where the derivative would be 0 / 0
    return jnp.where(zero, 0.0, scale * jnp.sqrt(jnp.where(zero, 1.0, squares)))


def ldexp(x1, x2):
    x1, half = floats(jnp.asarray(x1)), x2 // 2
    return x1 * jnp.ldexp(jnp.ones((), x1.dtype), half) * jnp.ldexp(jnp.ones((), x1.dtype), x2 - half)


lgamma = floating(jax.scipy.special.gammaln)


def polygamma(x, n):
    x = floats(x)
    return jax.scipy.special.polygamma(n, x) if n else jax.scipy.special.digamma(x)
