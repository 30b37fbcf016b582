"""Resampling of signals, by Fourier series or by polyphase filters.

SciPy designs the filters from known numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from ... import ops
from ...annotations import Axis, Integer, Tensor
from ...backends import tracing
from ...errors import ArgumentError
from ...ops._checks import choice
from .. import fft
from .._define import composed
from .._neighbours import alike, back, designed, extended, last, real_like, vector
from .._tensors import as_complex, constant, constant_like, inexact, is_complex, wrong
from .convolution import upfirdn
from .filters import sosfilt, sosfiltfilt

__all__ = ["decimate", "resample", "resample_poly"]


@composed
def resample(
    x: Tensor, num: Integer, t: Tensor | None = None, axis: Axis = 0, window=None,
    domain: Literal["time", "freq"] = "time",
):  # fmt: skip
    """Resample a periodic signal by its Fourier series.

    Args:
        num: the number of elements of the result along ``axis``.
        t: the sampling times; the times of the result are then also returned.
        window: factors of the spectrum: a window's name, a tensor, or a function of the frequencies.
        domain: ``"freq"`` if ``x`` is the Fourier transform of the signal.

    Returns:
        A tensor with ``num`` elements along ``axis``; with ``t`` also their times.

    Raises:
        ArgumentError: ``num`` below 1, or a window of the wrong length.

    Gradient:
        The transposed transform of the upstream gradient; also by ``window`` if it is a tensor.
    """
    choice("resample", domain, ("time", "freq"), "domain")
    num = int(num)
    if num < 1:
        raise wrong("num", "be at least 1", num)
    x, axis = last("resample", inexact(x), axis)
    n = int(x.shape[-1])
    factors = _spectral_window(window, n, x)
    if domain == "time" and not is_complex(x):
        y = _resampled(x, num, factors)
    else:
        spectrum = fft.fft(x) if domain == "time" else x
        if not is_complex(spectrum):
            spectrum = as_complex(spectrum, ops.zeros_like(spectrum))
        y = _resampled_spectrum(spectrum if factors is None else ops.multiply(spectrum, factors), num)
    y = back(y, axis)
    if t is None:
        return y
    t = vector("resample", inexact(t), "t")
    return y, t[0] + (t[1] - t[0]) * (n / num) * constant_like(np.arange(num), t)


@tracing.constant
def _centred(window, n: int) -> np.ndarray:
    return np.fft.fftshift(constant("signal.get_window")(window, n))


@tracing.constant
def _nyquist_weights(m: int, num: int, n: int) -> np.ndarray:
    """Return factors of half a spectrum; they correct the Nyquist frequency of the shorter signal."""
    weights = np.full(m // 2 + 1, num / n)
    if m % 2 == 0 and num != n:
        weights[-1] *= 2 if num < n else 0.5
    return weights


def _spectral_window(window, n: int, x):
    if window is None:
        return None
    if callable(window) and not ops.is_tensor(window):
        window = window(designed("fft.fftfreq", n))
    elif isinstance(window, (str, tuple)):
        window = _centred(window, n)
    factors = alike(x, window)[1]
    if tuple(factors.shape) != (n,):
        raise wrong("window", f"be of shape {(n,)}", tuple(factors.shape))
    return factors


def _resampled(x, num: int, factors):
    n = int(x.shape[-1])
    m = min(num, n)
    spectrum = fft.rfft(x)
    count = int(spectrum.shape[-1])
    if factors is not None:
        folded = (factors[1:count] + ops.flip(factors[n - count + 1 :], 0)) / 2
        spectrum = ops.multiply(spectrum, ops.concatenate([factors[:1], folded], 0))
    weights = constant_like(_nyquist_weights(m, num, n), ops.real(spectrum))
    return fft.irfft(ops.multiply(spectrum[..., : m // 2 + 1], weights), num)


def _resampled_spectrum(spectrum, num: int):
    n = int(spectrum.shape[-1])
    m = min(num, n)
    half = m // 2
    parts = [spectrum[..., :half], spectrum[..., half : half + 1]]
    later = [spectrum[..., n - (m - half - 1) :]] if m - half - 1 > 0 else []
    zeros = num - m
    if m % 2 == 0 and num < n:
        parts[1] = parts[1] + spectrum[..., n - half : n - half + 1]
    elif m % 2 == 0 and n < num:
        parts[1] = parts[1] / 2
        later.insert(0, parts[1])
        zeros -= 1
    if zeros > 0:
        parts.append(ops.zeros_like(ops.take(spectrum, np.zeros(zeros, int), -1)))
    return fft.ifft(ops.concatenate([*parts, *later], -1) * (num / n))


MOMENTS = ("mean", "median", "maximum", "minimum")
Padding = Literal["constant", "symmetric", "edge", "wrap", "reflect", "mean", "median", "maximum", "minimum"]


@composed
def resample_poly(
    x: Tensor, up: Integer, down: Integer, axis: Axis = 0, window=("kaiser", 5.0),
    padtype: Padding = "constant", cval=None,
) -> Tensor:  # fmt: skip
    """Resample a signal to ``up / down`` times its rate by a low-pass filter.

    Args:
        window: the window from which the filter is designed, or the filter's coefficients as a tensor or list.
        padtype: the padding at the ends; or ``"mean"``, ``"median"``, ``"maximum"`` or ``"minimum"``, which is
            subtracted from the signal and added to the result.

    Returns:
        A tensor with ``ceil(n * up / down)`` elements along ``axis``.

    Raises:
        ArgumentError: factors below 1, an unknown ``padtype``.

    Gradient:
        By ``x``, linear except for the median, maximum and minimum; by the coefficients if they are given.
    """
    choice("resample_poly", padtype, ("constant", "symmetric", "edge", "wrap", "reflect", *MOMENTS), "padtype")
    up, down = int(up), int(down)
    for name, value in (("up", up), ("down", down)):
        if value < 1:
            raise wrong(name, "be at least 1", value)
    if cval is not None and padtype != "constant":
        raise ArgumentError("`resample_poly`: `cval` is for `padtype='constant'` alone.", argument="cval")
    x = inexact(x)
    common = math.gcd(up, down)
    up, down = up // common, down // common
    if up == down == 1:
        return x
    x, axis = last("resample_poly", x, axis)
    n = int(x.shape[-1])
    if isinstance(window, list) or ops.is_tensor(window):
        x, h = alike(x, window)
        h = vector("resample_poly", h, "window")
        half = (int(h.shape[0]) - 1) // 2
    else:
        rate = max(up, down)
        half = 10 * rate
        h = constant_like(designed("signal.firwin", 2 * half + 1, 1.0 / rate, (("window", window),)), real_like(x))
    wanted = -(-n * up // down)
    before = down - half % down
    removed = (half + before) // down
    h = extended(h * up, before, 0, "constant")
    lacking = (wanted + removed - 1) * down + 1 - ((n - 1) * up + int(h.shape[0]))
    h = extended(h, 0, max(lacking, 0), "constant")
    level = None
    if padtype in MOMENTS:
        moments: dict[str, Callable] = {"mean": ops.mean, "median": ops.median, "maximum": ops.max, "minimum": ops.min}
        level = moments[padtype](x, -1, keepdims=True)
        x = x - level
    how: Any = "constant" if padtype in MOMENTS else padtype
    y = upfirdn(h, x, up, down, mode=how, cval=0 if cval is None else cval)[..., removed : removed + wanted]
    return back(y if level is None else y + level, axis)


@composed
def decimate(
    x: Tensor, q: Integer, n: Integer | None = None, ftype: Literal["iir", "fir"] = "iir", axis: Axis = -1,
    zero_phase: bool = True,
) -> Tensor:  # fmt: skip
    """Downsample a signal by ``q`` after a low-pass filter.

    Args:
        n: the filter's order.
        ftype: ``"iir"`` for a Chebyshev filter, by default of order 8, or ``"fir"`` for a finite one, by default of
            order ``20 q``.
        zero_phase: True to apply the filter forwards and backwards (``"iir"``) or centred (``"fir"``).

    Returns:
        A tensor with ``ceil(len / q)`` elements along ``axis``.

    Raises:
        ArgumentError: ``q`` below 1, or an ``x`` that is too short.

    Gradient:
        The transposed filter of the upstream gradient; the result is linear in ``x``.
    """
    choice("decimate", ftype, ("iir", "fir"), "ftype")
    q = int(q)
    if q < 1:
        raise wrong("q", "be at least 1", q)
    x = inexact(x)
    if (half := ops.dtype(x)) in ("float16", "bfloat16"):  # which hold no coefficients of the filter
        return ops.cast(decimate(ops.cast(x, "float64"), q, n, ftype, axis, zero_phase), half)
    x, axis = last("decimate", x, axis)
    if ftype == "fir":
        taps = (20 * q if n is None else int(n)) + 1
        h = constant_like(designed("signal.firwin", taps, 1.0 / q, (("window", "hamming"),)), real_like(x))
        if zero_phase:
            return back(resample_poly(x, 1, q, -1, h), axis)
        return back(upfirdn(h, x, 1, q)[..., : -(-int(x.shape[-1]) // q)], axis)
    order = 8 if n is None else int(n)
    sos = constant_like(designed("signal.cheby1", order, 0.05, 0.8 / q, (("output", "sos"),)), real_like(x))
    padlen = 3 * (2 * ((order + 1) // 2) + 1 - order % 2)  # SciPy's default, which counts a first-order section as half
    y = sosfiltfilt(sos, x, padlen=padlen) if zero_phase else sosfilt(sos, x)
    return back(y[..., ::q], axis)
