"""PyTorch kernels: bounds and exceptions."""

import torch

from . import transforms
from .base import arithmetic, counting, floating_arithmetic
from .elementwise import maximum, minimum

fmod = arithmetic(counting(torch.fmod))


@floating_arithmetic
def nextafter(x1, x2):
    y = torch.nextafter(x1.detach(), x2.detach())
    return torch.where(torch.ones_like(y, dtype=torch.bool), y, x1 + x2)  # has a gradient, of 0


def clip(x, x_min, x_max):
    """By one kernel where nothing is differentiated: on a bound ``torch.clamp``'s derivative is another."""
    if x.dtype in (torch.float32, torch.float64) and not transforms.records(x) and _small(x_min) and _small(x_max):
        return x if x_min is x_max is None else torch.clamp(x, x_min, x_max)
    x = x if x_min is None else maximum(x, x_min)
    return x if x_max is None else minimum(x, x_max)


def _small(bound) -> bool:
    """Whether a bound is none, or a number of single precision."""
    return bound is None or type(bound) in (int, float) and abs(bound) < 1e38
