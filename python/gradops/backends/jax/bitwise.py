"""JAX kernels: whole numbers."""

import jax.numpy as jnp

from .base import arithmetic

bitwise_and = arithmetic(jnp.bitwise_and)
bitwise_or = arithmetic(jnp.bitwise_or)
bitwise_xor = arithmetic(jnp.bitwise_xor)
bitwise_not = jnp.bitwise_not
left_shift = arithmetic(jnp.left_shift)
right_shift = arithmetic(jnp.right_shift)
gcd = arithmetic(jnp.gcd)
lcm = arithmetic(jnp.lcm)
