"""PyTorch kernels: elementwise ops."""

import operator

import torch

from .base import arithmetic, floating, floating_arithmetic, floats, predicate

add = arithmetic(operator.add, numbers=True)
subtract = arithmetic(operator.sub, numbers=True)
multiply = arithmetic(operator.mul, numbers=True)
divide = floating_arithmetic(operator.truediv)
power = arithmetic(operator.pow, numbers=True)
floor_divide = arithmetic(torch.floor_divide)
mod = arithmetic(torch.remainder)
arctan2 = floating_arithmetic(torch.arctan2)
logaddexp = floating_arithmetic(torch.logaddexp)
maximum = arithmetic(torch.maximum)
minimum = arithmetic(torch.minimum)

equal = predicate(torch.eq)
not_equal = predicate(torch.ne)
less = predicate(torch.lt)
less_equal = predicate(torch.le)
greater = predicate(torch.gt)
greater_equal = predicate(torch.ge)

exp = floating(torch.exp)
exp2 = floating(torch.exp2)
expm1 = floating(torch.expm1)
log = floating(torch.log)
log2 = floating(torch.log2)
log10 = floating(torch.log10)
log1p = floating(torch.log1p)
sqrt = floating(torch.sqrt)
sin = floating(torch.sin)
cos = floating(torch.cos)
tan = floating(torch.tan)
arcsin = floating(torch.arcsin)
arccos = floating(torch.arccos)
arctan = floating(torch.arctan)
sinh = floating(torch.sinh)
cosh = floating(torch.cosh)
tanh = floating(torch.tanh)
arcsinh = floating(torch.arcsinh)
arccosh = floating(torch.arccosh)
arctanh = floating(torch.arctanh)
erf = floating(torch.erf)
reciprocal = floating(torch.reciprocal)
angle = floating(torch.angle)

square = torch.square
isnan = torch.isnan
isfinite = torch.isfinite
isinf = torch.isinf
logical_not = torch.logical_not
logical_and = torch.logical_and
logical_or = torch.logical_or
logical_xor = torch.logical_xor


def abs(x):
    return torch.abs(x) if x.dtype is not torch.bool else x


def negative(x):
    return torch.neg(x if x.dtype is not torch.bool else x.to(torch.int64))


def conj(x):
    return torch.conj(x).resolve_conj() if x.is_complex() else x


def real(x):
    return x.real


def imag(x):
    return x.imag if x.is_complex() else torch.zeros_like(x)


def sign(x):
    if x.is_complex():
        return torch.sgn(x)
    if x.is_floating_point():
        return torch.where(torch.isnan(x), x, torch.sign(x))
    return torch.sign(x if x.dtype is not torch.bool else x.to(torch.int64))


def _whole(function):
    def kernel(x):
        return function(x) if x.is_floating_point() else x

    return kernel


floor = _whole(torch.floor)
ceil = _whole(torch.ceil)
trunc = _whole(torch.trunc)


def round(x, decimals=0):
    if x.is_floating_point():
        return torch.round(x, decimals=decimals)
    return x if decimals >= 0 else torch.round(floats(x), decimals=decimals).to(x.dtype)
