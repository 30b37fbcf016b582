"""NumPy kernels: diagonals and triangles."""

import numpy as np


def diagonal(x, offset=0, axis1=0, axis2=1):
    return np.diagonal(x, offset, axis1, axis2)


def tril(x, k=0):
    return np.tril(x, k)


def triu(x, k=0):
    return np.triu(x, k)
