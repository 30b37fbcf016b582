"""NumPy kernels: random numbers."""

import numpy as np


def random_uniform(like, shape, seed):
    return np.random.default_rng(seed).random(shape).astype(like.dtype)


def random_normal(like, shape, seed):
    return np.random.default_rng(seed).standard_normal(shape).astype(like.dtype)


def random_gamma(like, alpha, shape, seed):
    return np.random.default_rng(seed).standard_gamma(alpha, shape).astype(like.dtype)


def random_binomial(like, counts, probabilities, shape, seed):
    return np.random.default_rng(seed).binomial(counts.astype("int64"), probabilities, shape).astype(like.dtype)
