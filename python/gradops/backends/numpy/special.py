"""NumPy kernels: special functions."""

import numpy as np
from scipy import special

from .base import floating, floating_arithmetic, floats, scipy_floating

cbrt = floating(np.cbrt)
erfc = scipy_floating(special.erfc)
erfinv = scipy_floating(special.erfinv)
i0 = scipy_floating(special.i0)
i1 = scipy_floating(special.i1)
hypot = floating_arithmetic(np.hypot)


def ldexp(x1, x2):
    return np.ldexp(floats(np.asarray(x1)), np.clip(x2, -(2**20), 2**20).astype(np.int32))


@scipy_floating
def lgamma(x):
    return np.where(np.isneginf(x), np.inf, special.gammaln(x))  # SciPy has -inf there


def polygamma(x, n):
    x = floats(x)
    return (special.polygamma(n, x) if n else special.digamma(x)).astype(x.dtype)
