"""JAX kernels: random numbers."""

import jax


def random_uniform(like, shape, seed):
    return jax.random.uniform(jax.random.key(seed), tuple(shape), like.dtype)


def random_normal(like, shape, seed):
    return jax.random.normal(jax.random.key(seed), tuple(shape), like.dtype)


def random_gamma(like, alpha, shape, seed):
    return jax.random.gamma(jax.random.key(seed), alpha.astype(like.dtype), tuple(shape), like.dtype)


def random_binomial(like, counts, probabilities, shape, seed):
    counts, probabilities = counts.astype(like.dtype), probabilities.astype(like.dtype)
    return jax.random.binomial(jax.random.key(seed), counts, probabilities, tuple(shape), like.dtype)
