"""PyTorch kernels: special functions."""

import torch

from .base import floating, floating_arithmetic, floats

erfc = floating(torch.erfc)
erfinv = floating(torch.erfinv)
rsqrt = floating(torch.rsqrt)
i0 = floating(torch.special.i0)
i1 = floating(torch.special.i1)


@floating_arithmetic
def hypot(x1, x2):
    zero = (x1 == 0) & (x2 == 0)  # where the derivative would be 0 / 0
    return torch.where(zero, 0.0, torch.hypot(torch.where(zero, 1.0, x1), x2))


def ldexp(x1, x2):
    x1, half = floats(torch.as_tensor(x1, device=x2.device)), torch.div(x2, 2, rounding_mode="floor")
    return x1 * torch.exp2(half.to(x1.dtype)) * torch.exp2((x2 - half).to(x1.dtype))


lgamma = floating(torch.lgamma)


def polygamma(x, n):
    x = floats(x)
    # torch.polygamma(1) is right to nine digits only
    return torch.special.zeta(2.0, x) if n == 1 else torch.polygamma(n, x) if n else torch.digamma(x)
