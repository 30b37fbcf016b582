"""Spectra of signals: periodograms, cross spectra, coherence, spectrograms, and the STFT with its inverse.

All cut a signal into windows (:class:`_Frames`) and transform each.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from ... import ops
from ...annotations import Axis, Integer, Tensor
from ...backends import tracing
from ...errors import ArgumentError, ShapeError
from ...ops._checks import check_axis, choice
from ...ops.sequences import overlap_add
from .. import fft
from .._define import family
from .._neighbours import alike, back, conj, designed, extended, last, number, real_like, vector
from .._tensors import as_complex, constant_like, inexact, is_complex, wrong
from .smoothing import detrended

__all__ = "coherence csd istft periodogram spectrogram stft welch".split()

ARGUMENTS = {
    "fs": "the sampling rate.",
    "window": "a window's name, or its factors, by which there is also a gradient.",
    "nperseg": "the windows' length, by default 256, at most the length of the signal.",
    "noverlap": "the number of elements that two windows share, by default half of them.",
    "nfft": "the length to which windows are padded with zeros.",
    "detrend": '``"constant"``, ``"linear"``, False, or a function of the signal.',
    "scaling": '``"density"`` for power per unit of frequency, ``"spectrum"`` for power.',
}
ERRORS = (
    "ArgumentError: invalid settings.\nShapeError: an empty tensor, too few dimensions, shapes that do not broadcast."
)
power = family(
    ARGUMENTS,
    returns="The frequencies, and a real tensor with an element for each frequency along ``axis``.",
    raises=ERRORS,
    gradient="By the signals, through products of their Fourier transforms.",
)
short = family(
    ARGUMENTS,
    returns="The frequencies, the windows' times, and a tensor with the frequencies along ``axis`` and the times along "
    "a new last dimension.",
    raises=ERRORS,
    gradient="By ``{first}``, in which the transform is linear, and by the factors of a window.",
)

Scaling = Literal["density", "spectrum"]


class _Frames:
    """The windows into which a signal is cut."""

    def __init__(self, function: str, window, nperseg, noverlap, nfft, n: int, like, overlap: int = 2):
        self.function = function
        length = None if nperseg is None else int(nperseg)
        if length is not None and length < 1:
            raise wrong("nperseg", "be at least 1", length)
        if isinstance(window, (str, tuple)):
            length = min(256 if length is None else length, n)
            self.window = constant_like(designed("signal.get_window", window, length), real_like(like))
        else:
            self.window = vector(function, alike(real_like(like), window)[1], "window")
            size = int(self.window.shape[0])
            if size > n:
                raise wrong("window", f"not be longer than the {n} elements of `x`", size)
            length = size if length is None else length
            if length != size:
                raise wrong("nperseg", f"be the length of `window`, {size}", length)
        self.length = length
        self.nfft = length if nfft is None else int(nfft)
        if self.nfft < length:
            raise wrong("nfft", f"be at least `nperseg`, {length}", self.nfft)
        shared = length // overlap if noverlap is None else int(noverlap)
        if not 0 <= shared < length:
            raise wrong("noverlap", f"be from 0 to below `nperseg`, {length}", shared)
        self.step = length - shared

    def scale(self, fs, scaling: str):
        """Return the factor of squared values."""
        choice(self.function, scaling, ("density", "spectrum"), "scaling")
        if scaling == "density":
            return 1 / (fs * ops.sum(self.window * self.window))
        return 1 / ops.sum(self.window) ** 2

    def spectra(self, x, detrend, onesided: bool):
        """Return the windows' Fourier transforms; the last two dimensions are windows and frequencies."""
        n = int(x.shape[-1])
        count = (n - self.length) // self.step + 1
        parts = ops.take(x, np.arange(count)[:, None] * self.step + np.arange(self.length), len(x.shape) - 1)
        if callable(detrend):
            parts = detrend(parts)
        elif detrend is not False and detrend is not None:
            choice(self.function, detrend, ("constant", "linear", "c", "l"), "detrend")
            parts = detrended(parts, detrend)
        return (fft.rfft if onesided else fft.fft)(ops.multiply(parts, self.window), self.nfft)

    def frequencies(self, fs, onesided: bool, like):
        found = designed("fft.rfftfreq" if onesided else "fft.fftfreq", self.nfft)
        return constant_like(found, real_like(like)) * fs

    def twice(self, y, onesided: bool):
        """Double the squares of a one-sided spectrum, to include the negative frequencies."""
        if not onesided:
            return y
        return ops.multiply(y, constant_like(_doubled(self.nfft), real_like(y)))


@tracing.constant
def _doubled(n: int) -> np.ndarray:
    factors = np.full(n // 2 + 1, 2.0)
    factors[0] = 1
    if n % 2 == 0:
        factors[-1] = 1
    return factors


def _rate(function: str, fs):
    value = number(function, "fs", fs)
    if isinstance(value, complex) or not value > 0:
        raise wrong("fs", "be a positive number", repr(fs))
    return float(value)


def _not_empty(function: str, *xs) -> None:
    if any(0 in tuple(x.shape) for x in xs):
        raise ShapeError(f"`{function}`: there is nothing to transform in an empty tensor.", argument="x")


def _cross(function, x, y, fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling, axis, average):
    """Return frequencies and averaged products of the spectra of two signals, or of one if ``y`` is None."""
    choice(function, average, ("mean", "median"), "average")
    fs = _rate(function, fs)
    x, *others = alike(x) if y is None else alike(x, y)
    _not_empty(function, x, *others)
    x, place = last(function, x, axis)
    if others:
        others = [last(function, others[0], axis)[0]]
        n = max(int(x.shape[-1]), int(others[0].shape[-1]))
        x, others = (
            extended(x, 0, n - int(x.shape[-1]), "constant"),
            [extended(others[0], 0, n - int(others[0].shape[-1]), "constant")],
        )
    onesided = bool(return_onesided) and not is_complex(x)
    frames = _Frames(function, window, nperseg, noverlap, nfft, int(x.shape[-1]), x)
    first = frames.spectra(x, detrend, onesided)
    if others:
        products = conj(first) * frames.spectra(others[0], detrend, onesided)
    else:
        products = ops.real(first) ** 2 + ops.imag(first) ** 2
    products = frames.twice(products, onesided)
    found = ops.multiply(_averaged(products, average), frames.scale(fs, scaling))
    return frames.frequencies(fs, onesided, x), back(found, len(found.shape) - len(x.shape) + place)


def _averaged(products, average: str):
    if average == "mean":
        return ops.mean(products, -2)
    count = int(products.shape[-2])
    # The median of exponential variables, relative to their mean.
    bias = 1 + sum(1 / (2 * k + 1) - 1 / (2 * k) for k in range(1, (count - 1) // 2 + 1))
    if is_complex(products):
        return as_complex(ops.median(ops.real(products), -2), ops.median(ops.imag(products), -2)) / bias
    return ops.median(products, -2) / bias


@power
def periodogram(
    x: Tensor, fs=1.0, window="boxcar", nfft: Integer | None = None, detrend="constant", return_onesided: bool = True,
    scaling: Scaling = "density", axis: Axis = -1,
) -> tuple:  # fmt: skip
    """Periodogram: the power of a signal at each frequency, from its squared Fourier transform.

    Args:
        nfft: the length to which the signal is cut or padded with zeros.
    """
    x, axis = last("periodogram", inexact(x), axis)
    n = int(x.shape[-1])
    if nfft is not None and int(nfft) < n:
        x, n, nfft = x[..., : max(int(nfft), 0)], int(nfft), None
    window = "boxcar" if window is None else window
    if isinstance(window, (str, tuple)) and n > 0:
        window = constant_like(designed("signal.get_window", window, n), real_like(x))
    f, p = _cross("periodogram", x, None, fs, window, None, 0, nfft, detrend, return_onesided, scaling, -1, "mean")
    return f, back(p, axis)


@power
def welch(
    x: Tensor, fs=1.0, window="hann", nperseg: Integer | None = None, noverlap: Integer | None = None,
    nfft: Integer | None = None, detrend="constant", return_onesided: bool = True, scaling: Scaling = "density",
    axis: Axis = -1, average: Literal["mean", "median"] = "mean",
) -> tuple:  # fmt: skip
    """Power of a signal at each frequency, averaged over windows (Welch 1967)."""
    settings = (fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling, axis, average)
    return _cross("welch", x, None, *settings)


@power
def csd(
    x: Tensor, y: Tensor, fs=1.0, window="hann", nperseg: Integer | None = None, noverlap: Integer | None = None,
    nfft: Integer | None = None, detrend="constant", return_onesided: bool = True, scaling: Scaling = "density",
    axis: Axis = -1, average: Literal["mean", "median"] = "mean",
) -> tuple:  # fmt: skip
    """Cross spectrum of two signals: averages of ``conj(X) * Y``. The shorter signal is padded with zeros.

    Returns:
        The frequencies, and a complex tensor with an element for each frequency along ``axis``.
    """
    settings = (fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling, axis, average)
    return _cross("csd", x, None if y is x else y, *settings)


@power
def coherence(
    x: Tensor, y: Tensor, fs=1.0, window="hann", nperseg: Integer | None = None, noverlap: Integer | None = None,
    nfft: Integer | None = None, detrend="constant", axis: Axis = -1,
) -> tuple:  # fmt: skip
    """Squared correlation of two signals at each frequency; NaN where one of them has no power."""
    settings = (fs, window, nperseg, noverlap, nfft, detrend, True, "density", axis, "mean")
    x, y = alike(x, y)
    f, of_both = _cross("coherence", x, y, *settings)
    of_x, of_y = [_cross("coherence", z, None, *settings)[1] for z in (x, y)]
    lacking = ops.logical_or(of_x == 0, of_y == 0)
    of_x, of_y = [ops.where(lacking, 1.0, z) for z in (of_x, of_y)]
    return f, ops.where(lacking, math.nan, (ops.real(of_both) ** 2 + ops.imag(of_both) ** 2) / of_x / of_y)


BOUNDARIES = {"even": "reflect", "odd": "odd", "constant": "edge", "zeros": "constant"}


def _short(function, x, frames, fs, detrend, onesided, boundary, padded) -> tuple:
    """Return the windows' times, and their spectra with frequencies and windows as the last two dimensions."""
    half = frames.length // 2
    if boundary is not None:
        choice(function, boundary, tuple(BOUNDARIES), "boundary")
        x = extended(x, half, half, BOUNDARIES[boundary])
    if padded:
        x = extended(x, 0, (-(int(x.shape[-1]) - frames.length) % frames.step) % frames.length, "constant")
    n = int(x.shape[-1])
    count = (n - frames.length) // frames.step + 1
    first = 0.0 if boundary is not None else frames.length / 2
    times = (first + constant_like(np.arange(count), real_like(x)) * frames.step) / fs
    return times, ops.swapaxes(frames.spectra(x, detrend, onesided), -1, -2)


def _place(y, axis: int, rank: int):
    """Move frequencies, the last but one dimension, to the signal's axis; windows stay the last dimension."""
    return ops.moveaxis(y, -2, axis) if axis != rank - 1 else y


@short
def spectrogram(
    x: Tensor, fs=1.0, window=("tukey", 0.25), nperseg: Integer | None = None, noverlap: Integer | None = None,
    nfft: Integer | None = None, detrend="constant", return_onesided: bool = True, scaling: Scaling = "density",
    axis: Axis = -1, mode: Literal["psd", "complex", "magnitude", "angle", "phase"] = "psd",
) -> tuple:  # fmt: skip
    """Spectrogram: the power of a signal at each frequency in consecutive windows.

    Args:
        noverlap: the number of elements that two windows share, by default an eighth of them.
        mode: ``"psd"`` for power, ``"complex"`` for the Fourier transform, ``"magnitude"`` for its absolute value,
            ``"angle"`` for its angle, ``"phase"`` for the angle unwrapped along ``axis``.

    Gradient:
        By ``x``.
    """
    choice("spectrogram", mode, ("psd", "complex", "magnitude", "angle", "phase"), "mode")
    fs = _rate("spectrogram", fs)
    x = inexact(x)
    _not_empty("spectrogram", x)
    x, axis = last("spectrogram", x, axis)
    frames = _Frames("spectrogram", window, nperseg, noverlap, nfft, int(x.shape[-1]), x, 8)
    onesided = bool(return_onesided) and not is_complex(x)
    times, y = _short("spectrogram", x, frames, fs, detrend, onesided, None, False)
    scale = frames.scale(fs, scaling)
    if mode == "psd":
        power = ops.swapaxes(ops.real(y) ** 2 + ops.imag(y) ** 2, -1, -2)
        y = ops.swapaxes(frames.twice(power, onesided), -1, -2) * scale
    else:
        y = ops.multiply(y, ops.sqrt(scale))
        if mode == "magnitude":
            y = ops.abs(y)
        elif mode != "complex":
            y = ops.angle(y)
            if mode == "phase":
                y = _unwrapped(y)
    return frames.frequencies(fs, onesided, x), times, _place(y, axis, len(x.shape))


def _unwrapped(y):
    """Unwrap angles along the frequencies, like SciPy; the added turns are constants."""
    step = ops.stop_gradient(y[..., 1:, :] - y[..., :-1, :])
    within = ops.mod(step + math.pi, 2 * math.pi) - math.pi
    within = ops.where(ops.logical_and(within == -math.pi, step > 0), -within, within)
    turns = ops.where(ops.abs(step) < math.pi, ops.zeros_like(step), within - step)
    return ops.concatenate([y[..., :1, :], y[..., 1:, :] + ops.cumsum(turns, -2)], -2)


@short
def stft(
    x: Tensor, fs=1.0, window="hann", nperseg: Integer = 256, noverlap: Integer | None = None,
    nfft: Integer | None = None, detrend=False, return_onesided: bool = True,
    boundary: Literal["even", "odd", "constant", "zeros", None] = "zeros", padded: bool = True, axis: Axis = -1,
    scaling: Literal["spectrum", "psd"] = "spectrum",
) -> tuple:  # fmt: skip
    """Short-time Fourier transform: the Fourier transforms of consecutive windows of a signal.

    Args:
        boundary: the padding by half a window at both ends.
        padded: True to pad the end with zeros to a whole number of windows.
    """
    choice("stft", scaling, ("spectrum", "psd"), "scaling")
    fs = _rate("stft", fs)
    x = inexact(x)
    _not_empty("stft", x)
    x, axis = last("stft", x, axis)
    frames = _Frames("stft", window, nperseg, noverlap, nfft, int(x.shape[-1]), x)
    onesided = bool(return_onesided) and not is_complex(x)
    times, y = _short("stft", x, frames, fs, detrend, onesided, boundary, padded)
    scale = frames.scale(fs, "density" if scaling == "psd" else "spectrum")
    return frames.frequencies(fs, onesided, x), times, _place(ops.multiply(y, ops.sqrt(scale)), axis, len(x.shape))


@short
def istft(
    Zxx: Tensor, fs=1.0, window="hann", nperseg: Integer | None = None, noverlap: Integer | None = None,
    nfft: Integer | None = None, input_onesided: bool = True, boundary: bool = True, time_axis: Axis = -1,
    freq_axis: Axis = -2, scaling: Literal["spectrum", "psd"] = "spectrum",
) -> tuple:  # fmt: skip
    """Inverse of :func:`stft`: the signal whose short-time transform is nearest to ``Zxx`` (least squares).

    Args:
        nperseg: the windows' length, by default inferred from the number of frequencies.
        boundary: True to remove half a window at each end.

    Returns:
        The times, and the signal along ``time_axis`` without ``freq_axis``.
    """
    choice("istft", scaling, ("spectrum", "psd"), "scaling")
    fs = _rate("istft", fs)
    z = inexact(Zxx)
    rank = len(z.shape)
    if rank < 2:
        raise wrong("Zxx", "have at least 2 dimensions", tuple(z.shape), ShapeError)
    _not_empty("istft", z)
    time, freq = check_axis("istft", time_axis, rank, "time_axis"), check_axis("istft", freq_axis, rank, "freq_axis")
    if time == freq:
        raise ArgumentError("`istft`: `time_axis` and `freq_axis` must differ.", argument="freq_axis")
    z = ops.moveaxis(z, [time, freq], [-2, -1])
    size = int(z.shape[-1])
    whole = 2 * (size - 1) if input_onesided else size
    length = whole if nperseg is None else int(nperseg)
    nfft = (length if input_onesided and length == whole + 1 else whole) if nfft is None else int(nfft)
    frames = _Frames("istft", window, length, noverlap, nfft, max(length, 1), z)
    if is_complex(z):
        parts = (fft.irfft if input_onesided else fft.ifft)(z, frames.nfft)
    else:
        parts = (fft.irfft if input_onesided else fft.ifft)(as_complex(z, ops.zeros_like(z)), frames.nfft)
    weights = frames.window
    if scaling == "spectrum":
        parts = ops.multiply(parts, ops.sum(weights))
    else:
        parts = ops.multiply(parts, ops.sqrt(fs * ops.sum(weights * weights)))
    count = int(z.shape[-2])
    x = overlap_add(ops.multiply(parts[..., : frames.length], weights), frames.step)
    norm = overlap_add(ops.broadcast_to(weights * weights, (count, frames.length)), frames.step)
    half = frames.length // 2
    if boundary and half:
        n = int(x.shape[-1])
        x, norm = x[..., half : n - half], norm[..., half : n - half]
    x = ops.divide(x, ops.where(norm > 1e-10, norm, ops.ones_like(norm)))
    if input_onesided:
        x = real_like(x)
    times = constant_like(np.arange(int(x.shape[-1])), real_like(x)) / fs
    return times, back(x, time - (freq < time))
