"""PyTorch kernels: bounds and exceptions."""

import torch

from .base import arithmetic, floating_arithmetic

fmod = arithmetic(torch.fmod)
nextafter = floating_arithmetic(lambda x1, x2: torch.nextafter(x1.detach(), x2.detach()))
