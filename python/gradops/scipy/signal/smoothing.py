"""Smoothing filters, detrending, analytic signals and envelopes.

They work along an axis, or in windows of neighbours.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from ... import ops
from ...annotations import Axis, Integer, Integers, Tensor
from ...backends import tracing
from ...errors import ArgumentError, ArgumentTypeError, ShapeError
from ...ops._checks import choice
from .. import fft
from .._define import composed, family
from .._neighbours import alike, back, bilinear, designed, extended, last, line, number, patches, real_like
from .._tensors import constant, constant_like, floating, inexact, is_complex, numbers, wrong
from .convolution import convolve
from .sampling import resample

__all__ = """
detrend envelope hilbert hilbert2 medfilt medfilt2d order_filter savgol_coeffs savgol_filter wiener
""".split()

ranked = family(
    {"kernel_size": "an odd number, or one for each dimension; 3 by default."},
    returns="A tensor of ``{first}``'s shape and dtype.",
    raises="ArgumentTypeError: a complex tensor.\nArgumentError: an invalid setting.",
    gradient="The upstream gradient, passed to the chosen element.",
)
smooth = family(
    {"mysize": "the windows' size, or one for each dimension; 3 by default.", "overwrite_data": "ignored."},
    returns="A tensor of ``{first}``'s shape and floating dtype.",
    raises="ArgumentError: an invalid setting.",
    gradient="The transposed filter of the upstream gradient; the result is linear in ``{first}``.",
)
analytic = family(
    {"N": "the length to which ``x`` is cut or padded with zeros, or one for each axis."},
    returns="A complex tensor of ``x``'s shape, with the length ``N`` if given.",
    raises="ArgumentTypeError: a complex tensor.\nArgumentError: an invalid setting.",
    gradient="The transposed transform of the upstream gradient; the result is linear in ``{first}``.",
)


# Savitzky and Golay --------------------------------------------------------------------------------------------------

savgol_coeffs = constant("signal.savgol_coeffs")
SAVGOL_MODES = {"mirror": "reflect", "constant": "constant", "nearest": "edge", "wrap": "wrap", "interp": "constant"}


@smooth
def savgol_filter(
    x: Tensor, window_length: Integer, polyorder: Integer, deriv: Integer = 0, delta=1.0, axis: Axis = -1,
    mode: Literal["mirror", "constant", "nearest", "wrap", "interp"] = "interp", cval=0.0,
) -> Tensor:  # fmt: skip
    """Smoothing by polynomials fitted in moving windows (Savitzky and Golay 1964).

    Args:
        deriv: the order of the derivative to return.
        delta: the spacing of the samples, for derivatives.
        mode: the padding at the ends; ``"interp"`` evaluates the polynomials of the first and last windows instead.

    Raises:
        ArgumentError: ``polyorder`` is not below ``window_length``; a window longer than ``x``.
    """
    choice("savgol_filter", mode, tuple(SAVGOL_MODES), "mode")
    x, axis = last("savgol_filter", inexact(x), axis)
    step = float(number("savgol_filter", "delta", delta))
    fill = number("savgol_filter", "cval", cval) if mode == "constant" else 0.0
    width, order, deriv = int(window_length), int(polyorder), int(deriv)
    weights = designed("signal.savgol_coeffs", width, order, deriv, step)
    before = width // 2 if width % 2 else width // 2 - 1
    n = int(x.shape[-1])
    if mode == "interp" and width > n:
        raise wrong("window_length", f"be at most the {n} elements of `x` with `mode='interp'`", width)
    wide = extended(x, before, width - 1 - before, SAVGOL_MODES[mode], -1, fill)
    y = line(wide, constant_like(weights, real_like(x)), 0, 0)
    if mode == "interp" and width > 1:
        first, final = _edges(width, order, deriv, step)
        half = width // 2
        start = matrix_product(x[..., :width], constant_like(first, real_like(x)))
        end = matrix_product(x[..., n - width :], constant_like(final, real_like(x)))
        y = ops.concatenate([start, y[..., half : n - half], end], -1)
    return back(y, axis)


@tracing.constant
def _edges(width: int, order: int, deriv: int, delta: float) -> tuple:
    """Return matrices from a window to the values of its polynomial in its first half and in its last half."""
    places = np.arange(width)
    fitted = np.polyfit(places, np.eye(width), order)
    for _ in range(deriv):
        fitted = fitted[:-1] * np.arange(len(fitted) - 1, 0, -1)[:, None] if len(fitted) > 1 else fitted * 0
    half = width // 2
    return tuple(
        (np.vander(at, len(fitted)) @ fitted).T / delta**deriv for at in (places[:half], places[width - half :])
    )


# Ranks and local moments ---------------------------------------------------------------------------------------------


def _windows(function: str, value, rank: int, name: str) -> tuple[int, ...]:
    """Return a window size for each dimension."""
    if value is None or type(value) is int:
        return (3 if value is None else value,) * rank
    sizes = numbers(function, name, value)
    if sizes.dtype.kind not in "iu" or sizes.ndim > 1 or sizes.size not in (1, rank) or (sizes < 1).any():
        raise wrong(name, f"be a positive whole number, or {rank} of them", repr(value))
    return tuple(int(n) for n in np.broadcast_to(sizes, (rank,)))


def _ranked(x, window: tuple, marks: tuple | None, rank: int):
    near = patches(x, window, marks, [n // 2 for n in window], ["constant"] * len(window))
    return ops.sort(near, -1)[..., rank]


@ranked
def medfilt(volume: Tensor, kernel_size: Integers | None = None) -> Tensor:
    """Medians of moving windows, with zeros beyond the edges."""
    return _medians("medfilt", volume, kernel_size, "volume")


@ranked
def medfilt2d(input: Tensor, kernel_size: Integers = 3) -> Tensor:
    """Medians of moving windows of a matrix, see :func:`medfilt`.

    Raises:
        ShapeError: the tensor is not a matrix.
    """
    x = input if ops.is_tensor(input) else ops.convert_to_tensor(input)
    if len(x.shape) != 2:
        raise wrong("input", "be a matrix", tuple(x.shape), ShapeError)
    return _medians("medfilt2d", x, kernel_size, "input")


def _medians(function: str, x, kernel_size, name: str):
    x = x if ops.is_tensor(x) else ops.convert_to_tensor(x)
    _no_complex(x, name)
    x = x if x.shape else ops.reshape(x, (1,))
    sizes = _windows(function, kernel_size, len(x.shape), "kernel_size")
    if any(n % 2 == 0 for n in sizes):
        raise wrong("kernel_size", "be odd", sizes)
    return _ranked(x, sizes, None, math.prod(sizes) // 2)


def _no_complex(x, name: str) -> None:
    if is_complex(x):
        raise wrong(name, "be real", ops.dtype(x), ArgumentTypeError)


@ranked
def order_filter(a: Tensor, domain, rank: Integer) -> Tensor:
    """Order statistics of the neighbours of each element, with zeros beyond the edges.

    Args:
        domain: an array of odd sizes with as many dimensions as ``a``; its nonzero elements mark the neighbours.
        rank: the rank to return; 0 is the smallest.
    """
    a = a if ops.is_tensor(a) else ops.convert_to_tensor(a)
    _no_complex(a, "a")
    footprint = numbers("order_filter", "domain", domain)
    if footprint.dtype.kind not in "fiub" or footprint.ndim != len(a.shape) or any(n % 2 == 0 for n in footprint.shape):
        raise wrong("domain", f"have odd sizes and {len(a.shape)} dimensions")
    footprint, rank = footprint != 0, int(rank)
    if not -footprint.sum() <= rank < footprint.sum():
        raise wrong("rank", f"be below the {footprint.sum()} neighbours", rank)
    return _ranked(a, footprint.shape, tuple(footprint.ravel().tolist()), rank)


@smooth
def wiener(im: Tensor, mysize: Integers | None = None, noise: Tensor | None = None) -> Tensor:
    """Wiener's adaptive filter, by the means and variances of moving windows.

    Args:
        noise: the power of the noise, by default the mean of the local variances.

    Gradient:
        By ``im`` and ``noise``. Where the local variance is below the noise, the result is the local mean.
    """
    im, noise = alike(im, noise) if noise is not None else (inexact(im), None)
    _no_complex(im, "im")
    if not im.shape:
        raise wrong("im", "have at least one dimension", kind=ShapeError)
    sizes = _windows("wiener", mysize, len(im.shape), "mysize")
    ones, count = ops.ones_like(constant_like(np.ones(sizes), im)), math.prod(sizes)
    mean = convolve(im, ones, "same") / count
    variance = convolve(im * im, ones, "same") / count - mean * mean
    noise = ops.mean(variance) if noise is None else noise
    below = variance < noise
    return ops.where(
        below, mean, mean + (im - mean) * (1 - noise / ops.where(below, ops.ones_like(variance), variance))
    )


# Trends --------------------------------------------------------------------------------------------------------------


@smooth
def detrend(
    data: Tensor, axis: Axis = -1, type: Literal["linear", "constant", "l", "c"] = "linear", bp: Integers = 0,
    overwrite_data: bool = False,
) -> Tensor:  # fmt: skip
    """Remove the mean, or least-squares lines, along an axis.

    Args:
        bp: for ``type="linear"`` the positions where new lines begin.

    Gradient:
        The same projection of the upstream gradient.
    """
    choice("detrend", type, ("linear", "constant", "l", "c"), "type")
    x, axis = last("detrend", inexact(data), axis)
    if not isinstance(bp, (int, list, tuple)):
        bp = np.ravel(numbers("detrend", "bp", bp)).tolist()
    return back(detrended(x, type, bp), axis)


def matrix_product(x, matrix):
    """Return the product with a real matrix; complex tensors are multiplied by parts."""
    return bilinear(ops.matmul, x, matrix)


def detrended(x, type: str, breaks=0):
    """Remove the mean or lines along the last dimension."""
    if type in ("constant", "c"):
        return x - ops.mean(x, -1, keepdims=True)
    n = int(x.shape[-1])
    where = sorted({0, n, *([breaks] if isinstance(breaks, int) else [int(b) if b == int(b) else -1 for b in breaks])})
    if where[0] < 0 or where[-1] > n:
        raise wrong("bp", f"be whole numbers from 0 to {n}", repr(breaks))
    parts = []
    for start, stop in zip(where[:-1], where[1:]):
        basis = constant_like(_lines(stop - start), real_like(x))
        part = x[..., start:stop]
        parts.append(part - matrix_product(matrix_product(part, basis), ops.transpose(basis)))
    return ops.concatenate(parts, -1) if len(parts) > 1 else parts[0] if parts else x


@tracing.constant
def _lines(n: int) -> np.ndarray:
    """Return an orthonormal basis of the straight lines through ``n`` points."""
    slope = np.arange(n) - (n - 1) / 2
    basis = [np.ones(n) / math.sqrt(n)] + ([slope / np.linalg.norm(slope)] if n > 1 else [])
    return np.stack(basis, 1)


# Analytic signals ----------------------------------------------------------------------------------------------------


@tracing.constant
def _upper(n: int) -> np.ndarray:
    """Return factors of a spectrum: 2 for positive frequencies, 0 for negative ones."""
    factors = np.zeros(n)
    factors[: n // 2 + 1] = 1
    factors[1 : (n + 1) // 2] = 2
    return factors


@analytic
def hilbert(x: Tensor, N: Integer | None = None, axis: Axis = -1) -> Tensor:
    """Analytic signal of a real signal; its imaginary part is the Hilbert transform."""
    x = inexact(x)
    _no_complex(x, "x")
    x, axis = last("hilbert", x, axis)
    spectrum = fft.fft(x, N)
    return back(
        fft.ifft(ops.multiply(spectrum, constant_like(_upper(int(spectrum.shape[-1])), ops.real(spectrum)))), axis
    )


@analytic
def hilbert2(x: Tensor, N=None, axes=(-2, -1)) -> Tensor:
    """Analytic signal of a real signal along two axes: the quadrant of positive frequencies."""
    x = inexact(x)
    _no_complex(x, "x")
    if len(axes) != 2:
        raise wrong("axes", "be two dimensions", repr(axes))
    spectrum = ops.moveaxis(fft.fft2(x, (N, N) if isinstance(N, int) else N, axes), list(axes), [-2, -1])
    rows, columns = [constant_like(_quadrant(int(n)), ops.real(spectrum)) for n in spectrum.shape[-2:]]
    spectrum = ops.multiply(spectrum, ops.expand_dims(rows, 1) * columns)
    return fft.ifft2(ops.moveaxis(spectrum, [-2, -1], list(axes)), None, axes)


@tracing.constant
def _quadrant(n: int) -> np.ndarray:
    factors = np.zeros(n)
    factors[: (n + 1) // 2] = 2
    factors[0] = 1
    return factors


@composed
def envelope(
    z: Tensor, bp_in=(1, None), *, n_out: Integer | None = None, squared: bool = False,
    residual: Literal["lowpass", "all", None] = "lowpass", axis: Axis = -1,
) -> Tensor:  # fmt: skip
    """Envelope of a signal in a frequency band, and the residual outside the band.

    Args:
        bp_in: the band, from the first to before the second frequency index of the Fourier transform; None for the
            ends.
        n_out: the number of elements of the results along ``axis``.
        squared: True for the square of the envelope.
        residual: ``"lowpass"`` for the residual below the band, ``"all"`` for the whole residual, None for no residual.

    Returns:
        The envelope and the residual, stacked along a new first dimension; with ``residual=None`` only the envelope.

    Raises:
        ArgumentError: an invalid band or length.

    Gradient:
        Through the absolute value of the band's analytic signal; 0 where that is 0.
    """
    if residual is not None:
        choice("envelope", residual, ("lowpass", "all"), "residual")
    z, axis = last("envelope", inexact(z), axis)
    n = int(z.shape[-1])
    count = n if n_out is None else int(n_out)
    if count < 1 or n < 1:
        raise ArgumentError(f"`envelope`: there must be at least 1 element; got {count} of {n}.", argument="n_out")
    if len(bp_in) != 2 or not all(b is None or isinstance(b, int) for b in bp_in):
        raise wrong("bp_in", "be two whole numbers or None", repr(bp_in))
    start = -(n // 2) if bp_in[0] is None else bp_in[0]
    stop = (n + 1) // 2 if bp_in[1] is None else bp_in[1]
    if not -n // 2 <= start < stop <= (n + 1) // 2:
        raise wrong("bp_in", f"be a band within {-n // 2} and {(n + 1) // 2}", repr(bp_in))
    real = not is_complex(z)
    band, rest, places = _band(n, count, start, stop, real, residual == "lowpass")
    spectrum = fft.fft(z)
    inner = ops.take(ops.multiply(spectrum, constant_like(band, ops.real(spectrum))), places, -1)
    found = fft.ifft(inner, count) * (count / n)
    found = ops.real(found) ** 2 + ops.imag(found) ** 2 if squared else ops.abs(found)
    if residual is None:
        return back(found, axis)
    left = ops.multiply(spectrum, constant_like(rest, ops.real(spectrum)))
    left = fft.irfft(left, count) * (count / n) if real else resample(left, count, axis=-1, domain="freq")
    found, left = floating(back(found, axis), back(left, axis))
    return ops.stack([found, left], 0)


@tracing.constant
def _band(n: int, count: int, start: int, stop: int, real: bool, low: bool) -> tuple:
    """Return factors of a spectrum for the band and for the residual, and the frequency indices of the band.

    The band of a real signal gives its analytic signal.
    """
    band = np.ones(n)
    if real:
        band[n // 2 + 1 :] = 0
        band[max(start, 1) : max(stop, 1)] *= 2
    rest = np.ones(n)
    if real:
        rest[n // 2 + 1 :] = 0
    if start <= 0 < stop:
        rest[:stop] = rest[start:] = 0
    else:
        rest[start:stop] = 0
    if low:
        if stop > 0:
            rest[stop : (n + 1) // 2] = 0
        else:
            rest[start:] = rest[: (n + 1) // 2] = 0
    if real and count != n and (m := min(n, count)) % 2 == 0:
        rest[m // 2] *= 2 if count < n else 0.5
    return band, rest, np.arange(start, stop) % n
