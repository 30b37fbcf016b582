"""JAX kernels: statistics."""

import jax.numpy as jnp


def sliding_product(x, window):
    return jnp.correlate(x, window.conj(), "valid").astype(x.dtype)
