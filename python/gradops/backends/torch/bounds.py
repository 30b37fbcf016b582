"""PyTorch kernels: bounds and exceptions."""

import torch

from .base import arithmetic, floating_arithmetic

fmod = arithmetic(torch.fmod)


@floating_arithmetic
def nextafter(x1, x2):
    y = torch.nextafter(x1.detach(), x2.detach())
    return torch.where(torch.ones_like(y, dtype=torch.bool), y, x1 + x2)  # has a gradient, of 0
