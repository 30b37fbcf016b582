"""NumPy kernels: bounds and exceptions."""

import numpy as np

from .base import arithmetic, floating_arithmetic

fmod = arithmetic(np.fmod)
fmax = arithmetic(np.fmax)
fmin = arithmetic(np.fmin)
nextafter = floating_arithmetic(np.nextafter)
