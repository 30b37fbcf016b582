"""PyTorch kernels: bounds and exceptions."""

import torch

from .base import arithmetic, floating_arithmetic

fmod = arithmetic(torch.fmod)
nextafter = floating_arithmetic(torch.nextafter)
