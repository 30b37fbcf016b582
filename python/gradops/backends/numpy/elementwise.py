"""NumPy kernels: elementwise ops."""

import numpy as np

from .base import (
    FLOATING,
    arithmetic,
    counting,
    dividing,
    floating,
    floating_arithmetic,
    floats,
    predicate,
    scipy_special,
)

add = arithmetic(np.add)
subtract = arithmetic(np.subtract)
multiply = arithmetic(np.multiply)
divide = floating_arithmetic(np.divide)
power = counting(np.power)
floor_divide = dividing(np.floor_divide, "floor_divide")
mod = dividing(np.mod, "mod")
maximum = arithmetic(np.maximum)
minimum = arithmetic(np.minimum)
arctan2 = floating_arithmetic(np.arctan2)
logaddexp = floating_arithmetic(np.logaddexp)

equal = predicate(np.equal)
not_equal = predicate(np.not_equal)
less = predicate(np.less)
less_equal = predicate(np.less_equal)
greater = predicate(np.greater)
greater_equal = predicate(np.greater_equal)

exp = floating(np.exp)
exp2 = floating(np.exp2)
expm1 = floating(np.expm1)
log = floating(np.log)
log2 = floating(np.log2)
log10 = floating(np.log10)
log1p = floating(np.log1p)
sqrt = floating(np.sqrt)
sin = floating(np.sin)
cos = floating(np.cos)
tan = floating(np.tan)
arcsin = floating(np.arcsin)
arccos = floating(np.arccos)
arctan = floating(np.arctan)
sinh = floating(np.sinh)
cosh = floating(np.cosh)
tanh = floating(np.tanh)
arcsinh = floating(np.arcsinh)
arccosh = floating(np.arccosh)
arctanh = floating(np.arctanh)
erf = scipy_special("erf")

abs = np.absolute


def square(x):
    return np.square(x) if x.dtype.kind != "b" else x.astype("int64")


def conj(x):
    return np.conjugate(x) if x.dtype.kind != "b" else x.copy()


def negative(x):
    return np.negative(x) if x.dtype.kind != "b" else np.negative(x.astype("int64"))


def reciprocal(x):
    return np.reciprocal(floats(x))


def real_sign(x):
    return np.sign(x) if x.dtype.kind != "b" else x.astype("int64")


def floor(x):
    return np.floor(x) if x.dtype in FLOATING else x


def ceil(x):
    return np.ceil(x) if x.dtype in FLOATING else x


def trunc(x):
    return np.trunc(x) if x.dtype in FLOATING else x


def round(x, decimals=0):
    return np.round(x, decimals) if x.dtype.kind != "b" else x


def real(x):
    return x.real


def imag(x):
    return np.asarray(x).imag if x.dtype.kind == "c" else np.zeros_like(x)


def angle(x):
    return np.angle(floats(x))


isnan = np.isnan
isfinite = np.isfinite
isinf = np.isinf


def logical_not(x):
    return np.logical_not(x)


logical_and = np.logical_and
logical_or = np.logical_or
logical_xor = np.logical_xor
