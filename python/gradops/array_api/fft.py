"""The standard's extension for Fourier transforms."""

import numpy as _np

from .._names import namespace
from . import _made
from ._rows import functions

_FUNCTIONS = functions(
    " ".join(
        f"fft.{name}" for name in "fft fftn fftshift hfft ifft ifftn ifftshift ihfft irfft irfftn rfft rfftn".split()
    )
)
globals().update(_FUNCTIONS)


def fftfreq(n: int, /, *, d: float = 1.0, dtype=None, device=None):
    """The frequencies of the transform of ``n`` samples, ``d`` apart."""
    return _made.asarray(_np.fft.fftfreq(n, d).tolist(), dtype=dtype, device=device)


def rfftfreq(n: int, /, *, d: float = 1.0, dtype=None, device=None):
    """The frequencies of the transform of ``n`` real samples, ``d`` apart."""
    return _made.asarray(_np.fft.rfftfreq(n, d).tolist(), dtype=dtype, device=device)


__all__ = sorted([*_FUNCTIONS, "fftfreq", "rfftfreq"])
__dir__, __getattr__ = namespace(__name__)
