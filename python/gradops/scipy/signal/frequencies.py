"""Fourier sums at other frequencies (chirp z-transform, zoom FFT) and at unequally spaced times (Lomb-Scargle).

The first two use Bluestein's algorithm.
"""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np

from ... import _scipy, ops
from ...annotations import Axis, Integer, Tensor
from ...backends import tracing
from ...errors import ShapeError
from ...ops._checks import choice
from .. import fft
from .._define import composed, family
from .._formulas import held
from .._neighbours import alike, back, last, number, real_like, vector
from .._tensors import as_complex, constant_like, inexact, numbers, wrong
from .spectra import _rate

__all__ = ["czt", "lombscargle", "vectorstrength", "zoom_fft"]

places = family(
    {"m": "the number of points, by default the number of elements.", "fs": "the sampling rate."},
    returns="A complex tensor with ``m`` elements along ``axis``.",
    raises="ArgumentError: ``m`` below 1, or an invalid setting.",
    gradient="The transposed transform of the upstream gradient; the result is linear in ``x``.",
)


@places
def czt(x: Tensor, m: Integer | None = None, w=None, a=1 + 0j, *, axis: Axis = -1) -> Tensor:
    """Chirp z-transform: ``sum(x * z ** -arange(n))`` at the points ``z = a * w ** -arange(m)`` of a spiral.

    Args:
        w: the ratio of successive points, by default that of the Fourier transform. ``w`` and ``a`` must be known
            numbers.
    """
    x, axis = last("czt", inexact(x), axis)
    n, m = _sizes(x, m)
    ratio = None if w is None else complex(number("czt", "w", w))
    return back(_bluestein(x, m, _spiral(n, m, ratio, complex(number("czt", "a", a)))), axis)


@places
def zoom_fft(x: Tensor, fn, m: Integer | None = None, *, fs=2, endpoint: bool = False, axis: Axis = -1) -> Tensor:
    """Fourier transform at ``m`` frequencies of an interval.

    Args:
        fn: the two ends of the interval, or the upper end of an interval that begins at 0.
        endpoint: True if the upper end is the last frequency.
    """
    x, axis = last("zoom_fft", inexact(x), axis)
    n, m = _sizes(x, m)
    given = [fn] if isinstance(fn, (int, float)) else fn if isinstance(fn, (list, tuple)) else None
    given = np.ravel(numbers("zoom_fft", "fn", fn)).tolist() if given is None else given
    ends = [float(number("zoom_fft", "fn", end)) for end in given]
    if len(ends) not in (1, 2):
        raise wrong("fn", "be one or two numbers", repr(fn))
    f1, f2 = ends if len(ends) == 2 else (0.0, ends[0])
    rate = _rate("zoom_fft", fs)
    scale = (f2 - f1) * m / (rate * (m - 1)) if endpoint else (f2 - f1) / rate
    return back(_bluestein(x, m, _arc(n, m, scale, f1 / rate)), axis)


def _sizes(x, m) -> tuple[int, int]:
    n = int(x.shape[-1])
    count = n if m is None else int(m)
    for name, value in (("x", n), ("m", count)):
        if value < 1:
            raise wrong(name, "have at least 1 element", value)
    return n, count


@tracing.constant
def _spiral(n: int, m: int, w: complex | None, a: complex) -> tuple:
    k = np.arange(max(m, n), dtype=float)
    wk2 = np.exp(-(1j * np.pi * ((k**2) % (2 * m))) / m) if w is None else w ** (k**2 / 2.0)
    return _factors(a ** -k[:n] * wk2[:n], wk2, n, m)


@tracing.constant
def _arc(n: int, m: int, scale: float, first: float) -> tuple:
    k = np.arange(max(m, n), dtype=float)
    wk2 = np.exp(-(1j * np.pi * scale * k**2) / m)
    return _factors(np.exp(-2j * np.pi * first * k[:n]) * wk2[:n], wk2, n, m)


def _factors(before, wk2, n: int, m: int) -> tuple:
    """Return the factors of the signal, of its spectrum and of the result, as real and imaginary parts."""
    length = _scipy.fft.next_fast_len(n + m - 1)
    kernel = np.fft.fft(1 / np.concatenate([wk2[n - 1 : 0 : -1], wk2[:m]]), length)
    return tuple((z.real, z.imag) for z in (before, kernel, wk2[:m]))


def _bluestein(x, m: int, factors: tuple):
    n, like = int(x.shape[-1]), real_like(x)
    before, kernel, after = [as_complex(constant_like(re, like), constant_like(im, like)) for re, im in factors]
    y = fft.ifft(fft.fft(ops.multiply(x, before), int(kernel.shape[0])) * kernel)
    return y[..., n - 1 : n + m - 1] * after


# Unequally spaced times ----------------------------------------------------------------------------------------------


@composed
def lombscargle(
    x: Tensor, y: Tensor, freqs: Tensor, *, precenter: bool = False,
    normalize: Literal[False, True, "power", "normalize", "amplitude"] = False, weights: Tensor | None = None,
    floating_mean: bool = False,
) -> Tensor:  # fmt: skip
    """Lomb-Scargle periodogram: the power of waves fitted to unequally spaced samples (Lomb 1976, Scargle 1982).

    Args:
        x, y: the times and the signal.
        freqs: angular frequencies.
        precenter: True to subtract the mean of ``y`` first.
        normalize: False or ``"power"`` for power, True or ``"normalize"`` for the share of the signal's power,
            ``"amplitude"`` for complex amplitudes.
        weights: weights of the samples, with a sum above 0.
        floating_mean: True to also fit a constant.

    Returns:
        A tensor of the shape of ``freqs``; as in SciPy without dimensions if ``freqs`` has one element.

    Raises:
        ShapeError: arguments that are not vectors of one length.
        ArgumentError: negative weights, or weights that are all 0.

    Gradient:
        By times, signal, frequencies and weights.
    """
    choice("lombscargle", normalize, (False, True, "power", "normalize", "amplitude"), "normalize")
    x, y, freqs, *others = alike(x, y, freqs) if weights is None else alike(x, y, freqs, weights)
    x, y, freqs = vector("lombscargle", x, "x"), vector("lombscargle", y, "y"), vector("lombscargle", freqs, "freqs")
    weight = vector("lombscargle", others[0], "weights") if others else ops.ones_like(y)
    for name, z in (("y", y), ("weights", weight)):
        if tuple(z.shape) != tuple(x.shape):
            raise wrong(name, "be of the shape of `x`", tuple(z.shape), ShapeError)
    known = held(weight)
    if isinstance(known, np.ndarray) and not (known.min() >= 0 and known.max() > 0):
        raise wrong("weights", "be at least 0, and not all of them 0", known)
    if int(freqs.shape[0]) == 1:
        freqs = ops.reshape(freqs, ())
    weight = weight / ops.sum(weight)
    if precenter:
        y = y - ops.mean(y)
    turns = ops.tensordot(x, freqs, 0)
    weight_y, mean = weight * y, ops.sum(weight * y)

    def moments(cos, sin):
        c, s = (ops.matmul(weight, cos), ops.matmul(weight, sin)) if floating_mean else (0.0, 0.0)
        cc = ops.matmul(weight, cos * cos)
        return c, s, cc - c * c, 1.0 - cc - s * s, ops.matmul(weight, cos * sin) - c * s

    _, _, cc, ss, cs = moments(ops.cos(turns), ops.sin(turns))
    tau = 0.5 * ops.arctan2(2 * cs, cc - ss)
    cos, sin = ops.cos(turns - tau), ops.sin(turns - tau)
    c, s, cc, ss, _ = moments(cos, sin)
    yc, ys = ops.matmul(weight_y, cos), ops.matmul(weight_y, sin)
    if floating_mean:
        yc, ys = yc - mean * c, ys - mean * s
    least = {"float64": 2.0**-53, "float32": 2.0**-24}.get(ops.dtype(y), 2.0**-9)
    a, b = yc / ops.maximum(cc, least), ys / ops.maximum(ss, least)
    if normalize == "amplitude":
        return as_complex(a * ops.cos(tau) - b * ops.sin(tau), a * ops.sin(tau) + b * ops.cos(tau))
    power: Any = 2 * (a * yc + b * ys)
    if normalize in (False, "power"):
        return power * (int(x.shape[0]) / 4.0)
    total = ops.sum(weight_y * y)
    return power * 0.5 / (total - mean * mean if floating_mean else total)


@composed
def vectorstrength(events: Tensor, period: Tensor) -> tuple:
    """Strength and phase of a period in events: modulus and angle of the mean of ``exp(2 pi i events / period)``.

    Args:
        events: the times of the events.
        period: a number, or a vector of periods.

    Returns:
        The strength and the phase, of ``period``'s shape.

    Raises:
        ShapeError: arguments of more than one dimension.

    Gradient:
        By both arguments.
    """
    events, period = alike(events, period)
    for name, z in (("events", events), ("period", period)):
        if len(z.shape) > 1:
            raise wrong(name, "be a vector", tuple(z.shape), ShapeError)
    turns = 2 * math.pi * ops.reshape(events, (-1,)) / ops.expand_dims(period, -1)
    re, im = ops.mean(ops.cos(turns), -1), ops.mean(ops.sin(turns), -1)
    return ops.hypot(re, im), ops.arctan2(im, re)
