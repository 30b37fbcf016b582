"""JAX kernels: bounds and exceptions."""

import jax
import jax.numpy as jnp

from .base import arithmetic, dividing, floating_arithmetic

fmod = arithmetic(dividing(jnp.fmod, "fmod"))


@floating_arithmetic
def nextafter(x1, x2):
    return jnp.nextafter(jax.lax.stop_gradient(x1), jax.lax.stop_gradient(x2))
