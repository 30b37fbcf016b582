"""PyTorch kernels: whole numbers."""

import torch

from .base import arithmetic

bitwise_and = arithmetic(torch.bitwise_and)
bitwise_or = arithmetic(torch.bitwise_or)
bitwise_xor = arithmetic(torch.bitwise_xor)
bitwise_not = torch.bitwise_not
left_shift = arithmetic(torch.bitwise_left_shift)
right_shift = arithmetic(torch.bitwise_right_shift)
gcd = arithmetic(torch.gcd)
lcm = arithmetic(torch.lcm)
