"""NumPy kernels: random numbers."""

import numpy as np


def random_uniform(like, shape, seed):
    return np.random.default_rng(seed).random(shape).astype(like.dtype)


def random_normal(like, shape, seed):
    return np.random.default_rng(seed).standard_normal(shape).astype(like.dtype)
