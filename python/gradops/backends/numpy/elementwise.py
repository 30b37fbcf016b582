"""NumPy kernels: elementwise ops and special functions."""

import numpy as np

from ... import _scipy
from .base import arithmetic, floating, floating_arithmetic, floats, least, scipy_special

fmax = arithmetic(np.fmax)
fmin = arithmetic(np.fmin)
logaddexp = floating_arithmetic(np.logaddexp)
erf = scipy_special("erf")

abs = np.absolute
isnan = np.isnan
isfinite = np.isfinite
isinf = np.isinf


def conj(x):
    return np.conjugate(x) if x.dtype.kind != "b" else x.copy()


def round(x, decimals=0):
    return np.round(x, decimals) if x.dtype.kind != "b" else x


def real(x):
    return x.real


def imag(x):
    return np.asarray(x).imag if x.dtype.kind == "c" else np.zeros_like(x)


def angle(x):
    return np.angle(floats(x))


# Special functions.

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
    return y if least(y) > -np.inf else np.where(y == -np.inf, -y, y)[()]  # SciPy returns -inf at -inf


def polygamma(x, n):
    x = floats(x)
    return (_scipy.special.polygamma(n, x) if n else _scipy.special.digamma(x)).astype(x.dtype)
