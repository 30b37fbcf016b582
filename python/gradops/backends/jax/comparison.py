"""JAX kernels: comparison of floating numbers."""

import jax.numpy as jnp


def signbit(x):
    return jnp.signbit(x) if x.dtype.kind not in "biu" else x < 0
