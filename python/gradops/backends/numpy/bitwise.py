"""NumPy kernels: whole numbers."""

import numpy as np

from .base import arithmetic

bitwise_and = arithmetic(np.bitwise_and)
bitwise_or = arithmetic(np.bitwise_or)
bitwise_xor = arithmetic(np.bitwise_xor)
bitwise_not = np.bitwise_not
left_shift = arithmetic(np.left_shift)
right_shift = arithmetic(np.right_shift)
gcd = arithmetic(np.gcd)
lcm = arithmetic(np.lcm)
