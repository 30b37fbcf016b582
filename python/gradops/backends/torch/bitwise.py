"""PyTorch kernels: whole numbers."""

import torch

from .base import arithmetic

bitwise_and = arithmetic(torch.bitwise_and)
bitwise_or = arithmetic(torch.bitwise_or)
bitwise_xor = arithmetic(torch.bitwise_xor)
bitwise_not = torch.bitwise_not
left_shift = arithmetic(torch.bitwise_left_shift)
right_shift = arithmetic(torch.bitwise_right_shift)
gcd = arithmetic(lambda x1, x2: torch.abs(torch.gcd(x1, x2)))  # of the lowest number it is negative


@arithmetic
def lcm(x1, x2):
    """By the divisor: PyTorch's own ends the process where one is the lowest number."""
    divisor = gcd(x1, x2)
    divisor = torch.where(divisor == 0, 1, divisor)
    return torch.div(torch.abs(x1), divisor, rounding_mode="floor") * torch.abs(x2)
