"""NumPy kernels: comparison of floating numbers."""

import numpy as np


def signbit(x):
    return np.signbit(x) if x.dtype.kind == "f" else x < 0
