"""The standard's extension for Fourier transforms."""

import numpy as _np

from .._names import namespace
from ..errors import ArgumentError, ArgumentTypeError, TypeOf
from ..ops import _checks
from . import _creation
from ._functions import functions

_FUNCTIONS = functions(
    " ".join(
        f"fft.{name}" for name in "fft fftn fftshift hfft ifft ifftn ifftshift ihfft irfft irfftn rfft rfftn".split()
    )
)
globals().update(_FUNCTIONS)


def fftfreq(n: int, /, *, d: float = 1.0, dtype=None, device=None):
    """The frequencies of the transform of ``n`` samples, ``d`` apart.

    Raises:
        ArgumentTypeError, ArgumentError: ``n`` is not a positive integer, or ``d`` is not a number or is 0.
    """
    return _frequencies("fftfreq", n, d, dtype, device)


def rfftfreq(n: int, /, *, d: float = 1.0, dtype=None, device=None):
    """The frequencies of the transform of ``n`` real samples, ``d`` apart.

    Raises:
        ArgumentTypeError, ArgumentError: see :func:`fftfreq`.
    """
    return _frequencies("rfftfreq", n, d, dtype, device)


def _frequencies(name: str, n, d, dtype, device):
    n = _checks.integer(name, n, "n", 1)
    if not isinstance(d, (int, float)):
        raise ArgumentTypeError(f"`{name}`: `d` must be a number; got {{d}}.", argument="d", d=TypeOf(d))
    if not d:
        raise ArgumentError(f"`{name}`: `d` must not be 0.", argument="d")
    try:
        found = getattr(_np.fft, name)(n, float(d)).tolist()
    except (MemoryError, ValueError) as error:  # beyond NumPy's largest size
        raise ArgumentError(f"`{name}`: there is not enough memory for `n`, {n}.", argument="n") from error
    return _creation.asarray(found, dtype=dtype, device=device)


__all__ = sorted([*_FUNCTIONS, "fftfreq", "rfftfreq"])
__dir__, __getattr__ = namespace(__name__)
