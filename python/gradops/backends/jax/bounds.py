"""JAX kernels: bounds and exceptions."""

import jax.numpy as jnp

from .base import arithmetic, floating_arithmetic

fmod = arithmetic(jnp.fmod)
nextafter = floating_arithmetic(jnp.nextafter)
