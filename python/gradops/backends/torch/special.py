"""PyTorch kernels: special functions."""

import torch

from .. import _formulas
from .base import floating, floating_arithmetic, floats

erfc = floating(torch.erfc)
erfinv = floating(torch.erfinv)
rsqrt = floating(torch.rsqrt)


def _bessel(function, near_0):
    """A Bessel function by its power series near 0, where the library's own higher derivatives are 0."""

    @floating
    def kernel(x):
        wide = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x  # in which derivatives are lacking
        near = torch.abs(wide) < 0.1
        y = torch.where(near, near_0(torch.where(near, wide, 0.0)), function(torch.where(near, 1.0, wide)))
        return y.to(x.dtype)

    return kernel


i0 = _bessel(torch.special.i0, lambda x: _formulas.power_series(torch.square(x), _formulas.I0))
i1 = _bessel(torch.special.i1, lambda x: x * _formulas.power_series(torch.square(x), _formulas.I1_OVER_X))


@floating_arithmetic
def hypot(x1, x2):
    zero = (x1 == 0) & (x2 == 0)  # where the derivative would be 0 / 0
    return torch.where(zero, 0.0, torch.hypot(torch.where(zero, 1.0, x1), x2))


def ldexp(x1, x2):
    x = floats(torch.as_tensor(x1, device=x2.device))
    if x.dtype.itemsize < 4:
        return ldexp(x.float(), x2).to(x.dtype)
    bound = _formulas.EXPONENTS["float32" if x.dtype is torch.float32 else "float64"]
    for part in _formulas.thirds(torch.clamp(x2.to(torch.int64), -bound, bound)):
        x = x * torch.exp2(part.to(x.dtype))
    return x


lgamma = floating(torch.lgamma)


def polygamma(x, n):
    x = floats(x)
    if n == 0:
        return torch.digamma(x)
    if x.dtype in (torch.float16, torch.bfloat16):  # for which PyTorch lacks a kernel
        return polygamma(x.float(), n).to(x.dtype)
    far = x > 1e16  # where the library's is NaN at infinity
    inner = torch.where(far, 1.0, x)
    # torch.polygamma(1) is right to nine digits only
    y = torch.special.zeta(2.0, inner) if n == 1 else torch.polygamma(n, inner)
    return torch.where(far, _formulas.polygamma_far(torch.where(far, x, 1.0), n), y)
