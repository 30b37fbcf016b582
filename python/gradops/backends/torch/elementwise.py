"""PyTorch kernels: elementwise ops."""

import math
import operator
from functools import partial

import torch

from . import transforms
from .base import arithmetic, counting, floating, floating_arithmetic, floats, has_values, predicate

add = arithmetic(operator.add, numbers=True)
subtract = arithmetic(operator.sub, numbers=True)
multiply = arithmetic(operator.mul, numbers=True)
divide = floating_arithmetic(operator.truediv)
floor_divide = arithmetic(counting(lambda x1, x2: torch.div(x1, x2, rounding_mode="floor")))  # has a gradient, of 0
mod = arithmetic(counting(torch.remainder))
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

isnan = torch.isnan
isfinite = torch.isfinite
isinf = torch.isinf
logical_not = torch.logical_not
logical_and = torch.logical_and
logical_or = torch.logical_or
logical_xor = torch.logical_xor


def square(x):
    return torch.square(x) if x.dtype is not torch.bool else x.to(torch.int64)


@partial(arithmetic, numbers=True)
@counting
def power(x1, x2):
    if not isinstance(x2, torch.Tensor):
        return x1**x2
    if not x2.is_floating_point():
        whole = not x2.is_complex() and (type(x1) is int or not x1.is_floating_point() and not x1.is_complex())
        if whole and has_values(x2) and bool((x2 < 0).any()):
            raise ValueError("a whole number to a negative power")
        return x1**x2
    if not isinstance(x1, torch.Tensor):
        if x1 > 0:
            return x1**x2
        x1 = torch.tensor(x1, dtype=x2.dtype, device=x2.device)
    if torch.compiler.is_compiling() or torch.jit.is_tracing() or transforms.active():
        return _power_of_steps(x1, x2)
    if (x1.requires_grad or x2.requires_grad) and torch.is_grad_enabled():
        return _Power.apply(x1, x2)
    return x1**x2


class _Power(torch.autograd.Function):
    """The library's derivatives of its derivatives are NaN at base 0, and 0 for the exponent where that is 0."""

    @staticmethod
    def forward(ctx, x1, x2):
        ctx.save_for_backward(x1, x2)
        return x1**x2

    @staticmethod
    def backward(ctx, g):
        x1, x2 = ctx.saved_tensors
        by_base = by_exponent = None
        if ctx.needs_input_grad[0]:
            lower = torch.where((x1 == 0) & (x2 == 0), 1.0, x2 - 1)  # where it would be 0 * inf
            by_base = (g * (x2 * power(x1, lower))).sum_to_size(x1.shape)
        if ctx.needs_input_grad[1]:
            safe = torch.where((x1 == 0) & (x2 >= 0), 1.0, x1)
            by_exponent = (g * (power(x1, x2) * torch.log(safe))).sum_to_size(x2.shape)
        return by_base, by_exponent


def _power_of_steps(x1, x2):
    """The same for transformations, which know no function of ours: whole powers of 0 by multiplying.

    ``x2`` is a constant but for a factor of 1 with the derivatives of ``exp(x2 * log(x1))``.
    """
    constant = torch.where(x1 < 0, x2, x2.detach())
    whole = (x1 == 0) & (constant >= 0) & (constant < 16) & (constant == torch.floor(constant))
    base, rest = torch.where(whole, x1, 0.0), torch.where(whole, constant, 0.0)
    at_zero = torch.ones_like(base)
    for bit in (8, 4, 2, 1):
        more = rest >= bit
        at_zero = at_zero * at_zero * torch.where(more, base, 1.0)
        rest = torch.where(more, rest - bit, rest)
    y = torch.where(whole, at_zero, torch.where(whole, 1.0, x1) ** constant)
    log = torch.log(torch.where((x1 > 0) & torch.isfinite(x1), x1, 1.0))
    return y * torch.exp((x2 - x2.detach()) * log)


def abs(x):
    return torch.abs(x) if x.dtype is not torch.bool else x


def negative(x):
    return torch.neg(x if x.dtype is not torch.bool else x.to(torch.int64))


@floating
def angle(x):
    if not x.is_complex():
        return torch.where((x == 0) & torch.signbit(x), math.pi, torch.angle(x))
    zero = x == 0  # where the quotients of its derivatives have none
    return torch.where(zero, torch.angle(x.detach()), torch.angle(torch.where(zero, 1.0, x)))


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
