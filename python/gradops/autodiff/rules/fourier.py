"""Derivatives: Fourier transforms, each by the others. Half spectra stand for whole ones: inner frequencies twice."""

import numpy as np

from ...ops import (
    broadcast_to,
    cast,
    dtype,
    expand_dims,
    extract_sequences,
    fft_complex,
    irfft_complex,
    multiply,
    overlap_add,
    rfft_complex,
    sum,
    view_as_real,
)
from ...ops.sequences import filled
from ..record import derivative

derivative("view_as_complex", complex_aware=True, x=lambda g: view_as_real(g))
derivative("fft_complex", x=lambda g, dimensions, inverse: fft_complex(g, dimensions, inverse))


def _counts(fft_length: int):
    """How often each frequency of a half spectrum is in the whole: 1 for the first and a last even one, else 2."""
    counts = np.full(fft_length // 2 + 1, 2.0)
    counts[0] = 1.0
    if fft_length % 2 == 0:
        counts[-1] = 1.0
    return counts


def _fit(x, size: int):
    """``x`` cut or filled up with 0 to a last size."""
    have = x.shape[-1]
    return x[..., :size] if have >= size else filled(x, 0, size - have)


def _rfft(g, fft_length, shape):
    signal = irfft_complex(multiply(g, cast(1 / _counts(fft_length), dtype(g))), fft_length)
    return _fit(multiply(signal, fft_length), shape[-1])


def _irfft(g, fft_length, shape):
    spectrum = rfft_complex(g, fft_length)
    return _fit(multiply(spectrum, cast(_counts(fft_length) / fft_length, dtype(spectrum))), shape[-1])


derivative("rfft_complex", complex_aware=True, x=_rfft)
derivative("irfft_complex", complex_aware=True, x=_irfft)


def _extract_sequences(g, shape, sequence_stride):
    if 0 in tuple(g.shape):
        return broadcast_to(expand_dims(sum(g, (-2, -1)), -1), shape)
    return _fit(overlap_add(g, sequence_stride), shape[-1])


derivative("extract_sequences", x=_extract_sequences)
derivative("overlap_add", x=lambda g, shape, sequence_stride: extract_sequences(g, shape[-1], sequence_stride))
