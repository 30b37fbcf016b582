"""``numpy.fft``: the transforms of ``gradops.scipy.fft``, with NumPy's signatures."""

from __future__ import annotations

from collections.abc import Callable

from .. import scipy_functions
from ._table import row


def _one(name: str) -> Callable:
    def transform(a, n=None, axis=-1, norm=None):
        return scipy_functions.find(f"fft.{name}")(a, n, axis, norm)

    return transform


def _several(name: str, last) -> Callable:
    def transform(a, s=None, axes=last, norm=None):
        return scipy_functions.find(f"fft.{name}")(a, s, None if axes is None else tuple(axes), norm)

    return transform


def _shift(name: str) -> Callable:
    def shift(x, axes=None):
        return scipy_functions.find(f"fft.{name}")(x, axes)

    return shift


for _name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"):
    row(f"fft.{_name}", _one(_name))
for _name in ("fft", "ifft", "rfft", "irfft"):
    row(f"fft.{_name}2", _several(f"{_name}2", (-2, -1)))
    row(f"fft.{_name}n", _several(f"{_name}n", None))
for _name in ("fftshift", "ifftshift"):
    row(f"fft.{_name}", _shift(_name))
