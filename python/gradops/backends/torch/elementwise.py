"""PyTorch kernels: elementwise ops."""

import math
import operator
from functools import partial

import torch

from .base import arithmetic, floating, floating_arithmetic, floats, predicate

add = arithmetic(operator.add, numbers=True)
subtract = arithmetic(operator.sub, numbers=True)
multiply = arithmetic(operator.mul, numbers=True)
divide = floating_arithmetic(operator.truediv)
floor_divide = arithmetic(lambda x1, x2: torch.div(x1, x2, rounding_mode="floor"))  # has a gradient, of 0
mod = arithmetic(torch.remainder)
arctan2 = floating_arithmetic(torch.arctan2)
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
arccosh = floating(lambda x: torch.arccosh(x) if not x.is_complex() else _complex_arccosh(x))
arctanh = floating(torch.arctanh)
erf = floating(torch.erf)
reciprocal = floating(torch.reciprocal)

square = torch.square
isnan = torch.isnan
isfinite = torch.isfinite
isinf = torch.isinf
logical_not = torch.logical_not
logical_and = torch.logical_and
logical_or = torch.logical_or
logical_xor = torch.logical_xor


@partial(arithmetic, numbers=True)
def power(x1, x2):
    if not isinstance(x2, torch.Tensor) or not isinstance(x1, torch.Tensor) or not x2.is_floating_point():
        return x1**x2
    zero = x2 == 0  # where the library's mixed second derivative is 0
    base = torch.where(zero & (x1 > 0) & torch.isfinite(x1), x1, 1.0)
    near = torch.exp(torch.where(zero, x2, 0.0) * torch.log(base))
    return torch.where(zero, near, x1 ** torch.where(zero, 1.0, x2))


def abs(x):
    return torch.abs(x) if x.dtype is not torch.bool else x


def negative(x):
    return torch.neg(x if x.dtype is not torch.bool else x.to(torch.int64))


@floating
def angle(x):
    y = torch.angle(x)
    return y if x.is_complex() else torch.where((x == 0) & torch.signbit(x), math.pi, y)


def conj(x):
    return torch.conj(x).resolve_conj() if x.is_complex() else x


def real(x):
    return x.real


def imag(x):
    return x.imag if x.is_complex() else torch.zeros_like(x)


def real_sign(x):
    if x.is_floating_point():
        return torch.where(torch.isnan(x), x.detach(), torch.sign(x))
    return torch.sign(x if x.dtype is not torch.bool else x.to(torch.int64))


def _complex_arccosh(x):
    """By roots whose branches the derivative keeps, which the library's has wrong left of the imaginary axis."""
    return torch.log(x + torch.sqrt(x - 1) * torch.sqrt(x + 1))


def _whole(function):
    def kernel(x):
        return function(x) if x.is_floating_point() else x

    return kernel


floor = _whole(torch.floor)
ceil = _whole(torch.ceil)
trunc = _whole(torch.trunc)


def round(x, decimals=0):
    if x.is_complex():
        return torch.complex(round(x.real, decimals), round(x.imag, decimals))
    if x.is_floating_point():
        return torch.round(x, decimals=decimals)
    return x if decimals >= 0 else torch.round(floats(x), decimals=decimals).to(x.dtype)
