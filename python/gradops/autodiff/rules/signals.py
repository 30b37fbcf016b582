"""Derivatives of convolutions, pooling and Fourier transforms.

The derivatives of a convolution, of any order, are the convolution and its two transposes. A half spectrum stands for
a full one, in which the inner frequencies occur twice.
"""

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
    reshape,
    rfft_complex,
    sum,
    view_as_real,
    zeros_like,
)
from ...ops.convolution import conv_to_inputs, conv_to_kernel, conv_to_output
from ...ops.indexing import add_at
from ...ops.pooling import window_positions, window_spread, window_sum
from ...ops.sequences import filled
from ..record import derivative


def _sizes(shape, channels_first):
    return tuple(shape[2:] if channels_first else shape[1:-1])


def _output_inputs(g, kernel, shape, strides, padding, dilation, groups, channels_first):
    sizes = _sizes(shape, channels_first)
    return conv_to_inputs(g, kernel, sizes, strides, padding, dilation, groups, channels_first)


def _output_kernel(g, inputs, shape, strides, padding, dilation, groups, channels_first):
    return conv_to_kernel(inputs, g, tuple(shape[:-2]), strides, padding, dilation, groups, channels_first)


def _inputs_outputs(g, kernel, strides, padding, dilation, groups, channels_first):
    return conv_to_output(g, kernel, strides, padding, dilation, groups, channels_first)


def _inputs_kernel(g, outputs, shape, strides, padding, dilation, groups, channels_first):
    return conv_to_kernel(g, outputs, tuple(shape[:-2]), strides, padding, dilation, groups, channels_first)


def _kernel_inputs(g, outputs, shape, strides, padding, dilation, groups, channels_first):
    sizes = _sizes(shape, channels_first)
    return conv_to_inputs(outputs, g, sizes, strides, padding, dilation, groups, channels_first)


def _kernel_outputs(g, inputs, strides, padding, dilation, groups, channels_first):
    return conv_to_output(inputs, g, strides, padding, dilation, groups, channels_first)


derivative("conv_to_output", inputs=_output_inputs, kernel=_output_kernel)
derivative("conv_to_inputs", outputs=_inputs_outputs, kernel=_inputs_kernel)
derivative("conv_to_kernel", inputs=_kernel_inputs, outputs=_kernel_outputs)


# Pooling.


def _max(g, x, y, shape, window, strides, padding, channels_first):
    chosen = window_positions(x, y, window, strides, padding, channels_first)
    flat = add_at(zeros_like(reshape(x, (-1,))), reshape(chosen, (-1,)), reshape(g, (-1,)))
    return reshape(flat, shape)


def _sum(g, shape, window, strides, padding, channels_first):
    sizes = tuple(shape[2:] if channels_first else shape[1:-1])
    return window_spread(g, sizes, window, strides, padding, channels_first)


def _spread(g, window, strides, padding, channels_first):
    return window_sum(g, window, strides, padding, channels_first)


derivative("window_max", x=_max)
derivative("window_sum", x=_sum)
derivative("window_spread", y=_spread)


derivative("view_as_complex", complex_aware=True, x=lambda g: view_as_real(g))
derivative("fft_complex", x=lambda g, dimensions, inverse: fft_complex(g, dimensions, inverse))


def _counts(fft_length: int):
    """Return how often the full spectrum has each frequency: 1 for the first and a last even one, else 2."""
    counts = np.full(fft_length // 2 + 1, 2.0)
    counts[0] = 1.0
    if fft_length % 2 == 0:
        counts[-1] = 1.0
    return counts


def _fit(x, size: int):
    """Return ``x`` cut or padded with 0 to a size of its last dimension."""
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
