"""PyTorch kernels: elementwise ops."""

import math
import operator
from functools import partial

import torch

from .. import _shared
from . import transforms
from .base import arithmetic, counting, floating, floating_arithmetic, floats, has_values
from .kinks import kink

add = arithmetic(operator.add, numbers=True)
subtract = arithmetic(operator.sub, numbers=True)
multiply = arithmetic(operator.mul, numbers=True)
divide = floating_arithmetic(operator.truediv)
floor_divide = counting(lambda x1, x2: torch.div(x1, x2, rounding_mode="floor"))  # its gradient is 0
equal = arithmetic(torch.eq)
_arctan, _arcsinh, _arccosh = _shared.inverses(torch, torch.log)
arctan = floating(lambda x: torch.arctan(x) if x.is_complex() else _arctan(x))
arcsinh = floating(lambda x: torch.arcsinh(x) if x.is_complex() else _arcsinh(x))
arccosh = floating(lambda x: _complex_arccosh(x) if x.is_complex() else _arccosh(x))
erf = floating(lambda x: torch.erf(torch.clamp(x, -40, 40)))  # the second derivative at infinity would be NaN

isnan = torch.isnan
isfinite = torch.isfinite
isinf = torch.isinf


@partial(counting, numbers=True)
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
    """Power with gradops' derivatives: torch's second derivatives are NaN at base 0, and 0 for an exponent of 0."""

    @staticmethod
    def forward(ctx, x1, x2):
        ctx.save_for_backward(x1, x2)
        return x1**x2

    @staticmethod
    def backward(ctx, g):
        x1, x2 = ctx.saved_tensors
        by_base = by_exponent = None
        if ctx.needs_input_grad[0]:
            lower = torch.where((x1 == 0) & (x2 == 0), 1.0, x2 - 1)  # avoids 0 * inf
            by_base = (g * (x2 * power(x1, lower))).sum_to_size(x1.shape)
        if ctx.needs_input_grad[1]:
            safe = torch.where((x1 == 0) & (x2 >= 0), 1.0, x1)
            by_exponent = (g * (power(x1, x2) * torch.log(safe))).sum_to_size(x2.shape)
        return by_base, by_exponent


def _power_of_steps(x1, x2):
    """Power for transforms, which cannot use ``_Power``: integer powers of 0 are products.

    ``x2`` is replaced by a constant, and a factor of 1 carries the derivatives of ``exp(x2 * log(x1))``.
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
    if not x.is_complex():
        return x if x.dtype is torch.bool else torch.abs(x)
    zero = x == 0  # torch's second derivative is 0 there
    y = torch.abs(torch.where(zero, 1.0, x))
    return torch.where(zero, kink(_shared.combined(x.real, x.imag), zero), y)


@floating
def angle(x):
    if not x.is_complex():
        return torch.where((x == 0) & torch.signbit(x), math.pi, torch.angle(x))
    zero = x == 0  # its derivatives are 0 / 0 there
    return torch.where(zero, torch.angle(x.detach()), torch.angle(torch.where(zero, 1.0, x)))


def conj(x):
    return torch.conj(x).resolve_conj() if x.is_complex() else x


def real_sign(x):
    if x.is_floating_point():
        return torch.where(torch.isnan(x), x.detach(), torch.sign(x))
    return torch.sign(x if x.dtype is not torch.bool else x.to(torch.int64))


def _complex_arccosh(x):
    """``arccosh`` by square roots: torch's derivative takes the wrong branch left of the imaginary axis."""
    return torch.log(x + torch.sqrt(x - 1) * torch.sqrt(x + 1))


def round(x, decimals=0):
    if x.is_complex():
        return torch.complex(round(x.real, decimals), round(x.imag, decimals))
    if x.is_floating_point():
        return torch.round(x, decimals=decimals)
    return x if decimals >= 0 else torch.round(floats(x), decimals=decimals).to(x.dtype)


gcd = arithmetic(lambda x1, x2: torch.abs(torch.gcd(x1, x2)))  # torch's is negative for the lowest integer


@arithmetic
def lcm(x1, x2):
    """Divide by the gcd and multiply: ``torch.lcm`` aborts the process for the lowest integer of a dtype."""
    divisor = gcd(x1, x2)
    divisor = torch.where(divisor == 0, 1, divisor)
    return torch.div(torch.abs(x1), divisor, rounding_mode="floor") * torch.abs(x2)


@floating_arithmetic
def nextafter(x1, x2):
    y = torch.nextafter(x1.detach(), x2.detach())
    return torch.where(torch.ones_like(y, dtype=torch.bool), y, x1 + x2)  # its gradient is 0


def clip(x, x_min, x_max):
    """Use ``torch.clamp`` only if nothing is differentiated: its derivative at a bound differs from gradops'."""
    if x.dtype in (torch.float32, torch.float64) and not transforms.records(x) and _small(x_min) and _small(x_max):
        return x if x_min is x_max is None else torch.clamp(x, x_min, x_max)
    x = x if x_min is None else _maximum(x, x_min)
    return x if x_max is None else _minimum(x, x_max)


_maximum, _minimum = arithmetic(torch.maximum), arithmetic(torch.minimum)


def _small(bound) -> bool:
    """True if a bound is None, or a number in the range of single precision."""
    return bound is None or type(bound) in (int, float) and -1e38 < bound < 1e38


# Special functions.

erfc = floating(lambda x: torch.erfc(torch.clamp(x, -40, 40)))
erfinv = floating(torch.erfinv)
rsqrt = floating(torch.rsqrt)


def _bessel(function, near_0):
    """A Bessel function with its power series near 0, where torch's higher derivatives are 0."""

    @floating
    def kernel(x):
        wide = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x  # torch lacks half-precision derivatives
        near = torch.abs(wide) < 0.1
        y = torch.where(near, near_0(torch.where(near, wide, 0.0)), function(torch.where(near, 1.0, wide)))
        return y.to(x.dtype)

    return kernel


i0 = _bessel(torch.special.i0, lambda x: _shared.power_series(torch.square(x), _shared.I0))
i1 = _bessel(torch.special.i1, lambda x: x * _shared.power_series(torch.square(x), _shared.I1_OVER_X))


@floating_arithmetic
def hypot(x1, x2):
    zero = (x1 == 0) & (x2 == 0)  # the derivative is 0 / 0 there
    return torch.where(zero, kink(_shared.combined(x1, x2), zero), torch.hypot(torch.where(zero, 1.0, x1), x2))


def ldexp(x1, x2):
    x = floats(torch.as_tensor(x1, device=x2.device))
    if x.dtype.itemsize < 4:
        return ldexp(x.float(), x2).to(x.dtype)
    bound = _shared.EXPONENTS["float32" if x.dtype is torch.float32 else "float64"]
    for part in _shared.thirds(torch.clamp(x2.to(torch.int64), -bound, bound)):
        x = x * torch.exp2(part.to(x.dtype))
    return x


lgamma = floating(torch.lgamma)


def polygamma(x, n):
    x = floats(x)
    if n == 0:
        return torch.digamma(x)
    if x.dtype in (torch.float16, torch.bfloat16):  # PyTorch lacks a kernel
        return polygamma(x.float(), n).to(x.dtype)
    far = x > 1e16  # torch's is NaN at infinity
    inner = torch.where(far, 1.0, x)
    # torch.polygamma(1) is accurate to nine digits only
    y = torch.special.zeta(2.0, inner) if n == 1 else torch.polygamma(n, inner)
    return torch.where(far, _shared.polygamma_far(torch.where(far, x, 1.0), n), y)
