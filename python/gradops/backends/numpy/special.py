"""NumPy kernels: special functions."""

import numpy as np

from ... import _scipy
from .base import floating, floats, scipy_special

cbrt = floating(np.cbrt)
erfc = scipy_special("erfc")
erfinv = scipy_special("erfinv")
i0 = scipy_special("i0")
i1 = scipy_special("i1")


def ldexp(x1, x2):
    return np.ldexp(floats(np.asarray(x1)), np.clip(x2, -(2**20), 2**20).astype(np.int32))


_gammaln = scipy_special("gammaln")


def lgamma(x):
    y = _gammaln(x)
    return np.where(np.isneginf(x), y.dtype.type(np.inf), y)  # SciPy has -inf there


def polygamma(x, n):
    x = floats(x)
    return (_scipy.special.polygamma(n, x) if n else _scipy.special.digamma(x)).astype(x.dtype)
