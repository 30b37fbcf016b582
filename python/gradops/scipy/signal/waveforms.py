"""Waveforms: chirps, pulses, sawtooth and square waves, with derivatives by times and parameters.

Formulas that divide by a difference switch to a series near zero.
"""

from __future__ import annotations

import math
from typing import Literal

from ... import ops
from ...annotations import Tensor
from ...errors import ArgumentError
from ...ops._checks import choice, known
from .._define import composed
from .._neighbours import alike, vector
from .._tensors import as_complex, inexact

__all__ = ["chirp", "gauss_spline", "gausspulse", "sawtooth", "square", "sweep_poly"]

Method = Literal["linear", "lin", "li", "quadratic", "quad", "q", "logarithmic", "log", "lo", "hyperbolic", "hyp"]
METHODS = {
    **dict.fromkeys(("linear", "lin", "li"), "linear"),
    **dict.fromkeys(("quadratic", "quad", "q"), "quadratic"),
    **dict.fromkeys(("logarithmic", "log", "lo"), "logarithmic"),
    **dict.fromkeys(("hyperbolic", "hyp"), "hyperbolic"),
}


@composed
def chirp(
    t: Tensor, f0: Tensor, t1: Tensor, f1: Tensor, method: Method = "linear", phi: Tensor = 0,
    vertex_zero: bool = True, *, complex: bool = False,
) -> Tensor:  # fmt: skip
    """Chirp: a wave whose frequency is ``f0`` at time 0 and ``f1`` at ``t1``.

    Args:
        phi: the phase in degrees.
        vertex_zero: for a quadratic chirp True if the vertex of the parabola is at 0, else at ``t1``.
        complex: True for ``exp(i phase)`` in place of its cosine.

    Returns:
        A tensor of the arguments' broadcast shape.

    Raises:
        ArgumentError: an unknown method; frequencies of different signs for a logarithmic chirp, or 0 for a hyperbolic
            one.

    Gradient:
        By times, frequencies and phase.
    """
    choice("chirp", method, tuple(METHODS), "method")
    t, f0, t1, f1, phi = alike(t, f0, t1, f1, phi)
    phase = _phase(t, f0, t1, f1, METHODS[method], vertex_zero) + phi * (math.pi / 180)
    return as_complex(ops.cos(phase), ops.sin(phase)) if complex else ops.cos(phase)


def _phase(t, f0, t1, f1, method: str, vertex_zero: bool):
    if method == "linear":
        return 2 * math.pi * (f0 * t + 0.5 * ((f1 - f0) / t1) * t * t)
    if method == "quadratic":
        beta = (f1 - f0) / (t1 * t1)
        if vertex_zero:
            return 2 * math.pi * (f0 * t + beta * t**3 / 3)
        return 2 * math.pi * (f1 * t + beta * ((t1 - t) ** 3 - t1**3) / 3)
    first, second = known(f0), known(f1)
    if first is not None and second is not None:
        if method == "logarithmic" and (first * second <= 0).any():
            raise ArgumentError("`chirp`: a logarithmic chirp needs `f0` and `f1` of one sign.", argument="f1")
        if (first == 0).any() or (second == 0).any():
            raise ArgumentError("`chirp`: a hyperbolic chirp needs `f0` and `f1` other than 0.", argument="f1")
    same = f0 == f1
    if method == "logarithmic":
        # The phase is 2 pi f0 t1 (r ** s - 1) / log(r), with r = f1 / f0 and s = t / t1; near r = 1 a series in log(r).
        log = ops.log(f1 / f0)
        small = ops.abs(log) < 1e-5
        safe = ops.where(small, ops.ones_like(log), log)
        s = t / t1
        far = ops.expm1(safe * s) / safe
        near = s * (1 + log * s / 2 * (1 + log * s / 3 * (1 + log * s / 4)))
        return 2 * math.pi * f0 * t1 * ops.where(small, near, far)
    gap = (f1 - f0) / (f1 * t1)  # the frequency is singular at t = 1 / gap
    small = ops.abs(gap * t) < 1e-5
    safe = ops.where(small, ops.ones_like(gap * t), gap)
    u = gap * t
    # The phase is -2 pi f0 log|1 - gap t| / gap; near gap t = 0 a series.
    inner = ops.where(ops.logical_or(small, same), ops.full_like(u, 0.5), 1 - u)
    near = t * (1 + u * (1 / 2 + u * (1 / 3 + u / 4)))
    return 2 * math.pi * f0 * ops.where(small, near, -ops.log(ops.abs(inner)) / safe)


@composed
def gausspulse(
    t: Tensor, fc: Tensor = 1000, bw: Tensor = 0.5, bwr: Tensor = -6, tpr: Tensor = -60, retquad: bool = False,
    retenv: bool = False,
):  # fmt: skip
    """Gaussian pulse: a wave of frequency ``fc`` with a Gaussian envelope.

    Args:
        t: times, or ``"cutoff"`` for the time at which the envelope has fallen to ``tpr`` decibels.
        bw: the bandwidth as a share of ``fc``, at ``bwr`` decibels.
        retquad: True to also return the wave a quarter of a period later.
        retenv: True to also return the envelope.

    Returns:
        A tensor of ``t``'s shape, or two or three of them.

    Raises:
        ArgumentError: a negative ``fc``, a ``bw`` that is not positive, a ``bwr`` or ``tpr`` that is not negative.

    Gradient:
        By times, frequency, bandwidth and level.
    """
    cutoff = isinstance(t, str)
    if cutoff:
        choice("gausspulse", t, ("cutoff",), "t")
        fc, bw, bwr, tpr = alike(fc, bw, bwr, tpr)
    else:
        t, fc, bw, bwr, tpr = alike(t, fc, bw, bwr, tpr)
    for name, value, wrong in (
        ("fc", fc, lambda v: v < 0),
        ("bw", bw, lambda v: v <= 0),
        ("bwr", bwr, lambda v: v >= 0),
        ("tpr", tpr, lambda v: v >= 0 if cutoff else v != v),
    ):
        seen = known(value)
        if seen is not None and wrong(seen).any():
            raise ArgumentError(f"`gausspulse`: `{name}` is out of its range; got {seen}.", argument=name)
    log = bwr * (math.log(10) / 20)
    a = -((math.pi * fc * bw) ** 2) / (4 * log)
    if cutoff:
        return ops.sqrt(-tpr * (math.log(10) / 20) / a)
    envelope = ops.exp(-a * t * t)
    turns = 2 * math.pi * fc * t
    found = [envelope * ops.cos(turns)]
    if retquad:
        found.append(envelope * ops.sin(turns))
    if retenv:
        found.append(envelope)
    return found[0] if len(found) == 1 else tuple(found)


@composed
def sweep_poly(t: Tensor, poly: Tensor, phi: Tensor = 0) -> Tensor:
    """Wave whose frequency is a polynomial in time.

    Args:
        poly: coefficients, highest power first.
        phi: the phase in degrees.

    Returns:
        A tensor of ``t``'s shape.

    Raises:
        ShapeError: the coefficients are not a vector.

    Gradient:
        By times, coefficients and phase.
    """
    poly = getattr(poly, "coeffs", poly)  # np.poly1d
    t, poly, phi = alike(t, poly, phi)
    poly = vector("sweep_poly", poly, "poly")
    n = int(poly.shape[0])
    total = poly[0] / n * t
    for i in range(1, n):
        total = (total + poly[i] / (n - i)) * t
    return ops.cos(2 * math.pi * total + phi * (math.pi / 180))


def _folded(t):
    """Return times modulo one period, from 0."""
    return ops.mod(t, 2 * math.pi)


@composed
def sawtooth(t: Tensor, width: Tensor = 1) -> Tensor:
    """Sawtooth or triangle wave of period ``2 pi`` that rises from -1 to 1 and falls back.

    Args:
        width: the share of the period in which it rises, from 0 to 1.

    Returns:
        A tensor of the arguments' broadcast shape; NaN where ``width`` is out of its range.

    Gradient:
        By ``t`` the slope, ``1 / (pi width)`` or ``-1 / (pi (1 - width))``; also by ``width``.
    """
    t, width = alike(t, width)
    at = _folded(t)
    rises = at < width * (2 * math.pi)
    one = ops.ones_like(at * width)
    up = at / (math.pi * ops.where(rises, width * one, one)) - 1
    down = (math.pi * (width + 1) - at) / (math.pi * ops.where(rises, one, 1 - width * one))
    return _mask_invalid_width(width, ops.where(rises, up, down))


def _mask_invalid_width(width, y):
    bad = ops.logical_or(width > 1, width < 0)
    return ops.where(bad, ops.full_like(y, math.nan), y)


@composed
def square(t: Tensor, duty: Tensor = 0.5) -> Tensor:
    """Square wave of period ``2 pi`` that is 1 and then -1.

    Args:
        duty: the share of the period in which it is 1, from 0 to 1.

    Returns:
        A tensor of the arguments' broadcast shape; NaN where ``duty`` is out of its range.

    Gradient:
        0: the wave is piecewise constant.
    """
    t, duty = alike(t, duty)
    high = _folded(t) < duty * (2 * math.pi)
    zero = t * 0 + duty * 0
    return _mask_invalid_width(duty, ops.where(high, zero + 1, zero - 1))


@composed
def gauss_spline(x: Tensor, n: Tensor) -> Tensor:
    """Gaussian approximation of the B-spline of order ``n``: the normal density with variance ``(n + 1) / 12``.

    Returns:
        A tensor of ``x``'s shape.

    Gradient:
        ``-12 x y / (n + 1)`` by ``x``; also by ``n``.
    """
    x, n = alike(x, n) if ops.is_tensor(n) else (inexact(x), n)
    variance = (n + 1) / 12.0
    return ops.exp(-x * x / (2 * variance)) / (2 * math.pi * variance) ** 0.5
