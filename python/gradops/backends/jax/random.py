"""JAX kernels: random numbers."""

import jax


def random_uniform(like, shape, seed):
    return jax.random.uniform(jax.random.key(seed), tuple(shape), like.dtype)


def random_normal(like, shape, seed):
    return jax.random.normal(jax.random.key(seed), tuple(shape), like.dtype)
