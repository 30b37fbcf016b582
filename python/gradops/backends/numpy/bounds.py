"""NumPy kernels: bounds and exceptions."""

import numpy as np

from .base import arithmetic, dividing, floating_arithmetic

fmod = dividing(np.fmod, "fmod")
fmax = arithmetic(np.fmax)
fmin = arithmetic(np.fmin)
nextafter = floating_arithmetic(np.nextafter)
