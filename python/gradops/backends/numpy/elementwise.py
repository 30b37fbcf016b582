"""NumPy kernels: elementwise ops."""

import numpy as np

from .base import arithmetic, floating_arithmetic, floats, scipy_special

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
