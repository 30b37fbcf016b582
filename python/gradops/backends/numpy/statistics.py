"""NumPy kernels: statistics."""

import numpy as np

from ...errors import ArgumentError


def sliding_product(x, window):
    return np.correlate(x, window.conj(), "valid")


def countable(x, length):
    """``x``, of which each must be counted: a program that NumPy runs can say where one is not."""
    if x.size and not 0 <= x.min() <= x.max() < length:
        wrong = x.min() if x.min() < 0 else x.max()
        raise ArgumentError(
            f"`bincount`: in a compiled function `x` must be between 0 and {length - 1}, as `minlength` is the length; "
            f"got {int(wrong)}.",
            argument="x",
        )
    return x
