"""JAX kernels: whole numbers."""

import jax.numpy as jnp

from .base import arithmetic

bitwise_and = arithmetic(jnp.bitwise_and)
bitwise_or = arithmetic(jnp.bitwise_or)
bitwise_xor = arithmetic(jnp.bitwise_xor)
bitwise_not = jnp.bitwise_not
left_shift = arithmetic(jnp.left_shift)
right_shift = arithmetic(jnp.right_shift)


@arithmetic
def gcd(x1, x2):
    """Of magnitudes, as JAX's own goes on for ever where one is the lowest number, which has none in its dtype."""
    dtype, unsigned = x1.dtype, f"uint{8 * x1.dtype.itemsize}"
    return jnp.gcd(jnp.abs(x1).astype(unsigned), jnp.abs(x2).astype(unsigned)).astype(dtype)


@arithmetic
def lcm(x1, x2):
    divisor = gcd(x1, x2)
    return jnp.abs(x1) // jnp.where(divisor == 0, 1, divisor) * jnp.abs(x2)
