"""Frequency responses and group delays of filters given by coefficients, sections, or zeros, poles and gain.

Digital filters are evaluated on the unit circle, analogue ones on the imaginary axis.
"""

from __future__ import annotations

import math

import numpy as np

from ... import ops
from ...annotations import Tensor
from ...errors import ArgumentError
from ...ops._checks import known
from .._define import family
from .._neighbours import alike, conj, line, number, real_like, vector
from .._tensors import as_complex, constant, constant_like, is_complex, wrong
from .filters import _sections

__all__ = ["freqs", "freqs_zpk", "freqz", "freqz_sos", "freqz_zpk", "group_delay", "sosfreqz"]

response = family(
    {
        "worN": "the frequencies, or their number up to the Nyquist frequency (with ``whole`` up to ``fs``).",
        "plot": "a function that is called with the results.",
    },
    returns="The frequencies in units of ``fs``, and the complex response at each.",
    raises="ShapeError: coefficients of the wrong shape.\nArgumentError: a negative number of frequencies.",
    gradient="By the filter and the frequencies.",
)
analogue = family(
    {
        "worN": "the frequencies, or the number of frequencies that SciPy chooses for the filter's values.",
        "plot": "a function that is called with the results.",
    },
    returns="The angular frequencies, and the complex response at each.",
    raises="ShapeError: coefficients of the wrong shape.",
    gradient="By the filter, and by the frequencies if they are given.",
)


def _is_whole(x) -> bool:
    if isinstance(x, np.ndarray):
        return not x.ndim and x.dtype.kind in "iu"
    return isinstance(x, (int, np.integer)) and not isinstance(x, bool)


def _grid(function: str, places, whole: bool, fs, like, endpoint: bool = False, name: str = "worN") -> tuple:
    """Return the angular frequencies as a tensor, and the sampling rate."""
    rate = number(function, "fs", fs)
    if isinstance(rate, complex):
        raise wrong("fs", "be real", repr(fs))
    places = 512 if places is None else places
    if not _is_whole(places):
        at = vector(function, alike(real_like(like), places)[1], name)
        return 2 * math.pi * real_like(at) / float(rate), float(rate)
    if places < 0:
        raise wrong(name, "not be negative", places)
    step = (2 * math.pi if whole else math.pi) / max(int(places) - endpoint, 1)
    return constant_like(np.arange(int(places)), real_like(like)) * step, float(rate)


def _turned(w):
    """Return ``exp(-i w)``."""
    return as_complex(ops.cos(w), -ops.sin(w))


def _complex(x):
    return x if is_complex(x) else as_complex(x, ops.zeros_like(x))


def _series(coefficients, z):
    """Return ``c[0] + c[1] z + c[2] z ** 2 + ...`` by Horner's rule."""
    c = _complex(coefficients)
    y = c[-1] * ops.ones_like(z)
    for i in range(int(c.shape[0]) - 2, -1, -1):
        y = y * z + c[i]
    return y


def _product(roots, z):
    """``(z - roots[0]) (z - roots[1]) ...``"""
    y = ops.ones_like(z)
    for i in range(int(roots.shape[0])):
        y = y * (z - _complex(roots)[i])
    return y


def _shown(plot, w, h) -> tuple:
    if plot is not None:
        plot(w, h)
    return w, h


@response
def freqz(
    b: Tensor, a: Tensor = 1, worN=512, whole: bool = False, plot=None, fs=2 * math.pi, include_nyquist: bool = False
) -> tuple:
    """Frequency response of a digital filter given by its coefficients."""
    b, a = alike(b, a)
    b, a = vector("freqz", b, "b"), vector("freqz", a, "a")
    w, rate = _grid("freqz", worN, whole, fs, b, include_nyquist and not whole)
    z = _turned(w)
    return _shown(plot, w * (rate / (2 * math.pi)), _series(b, z) / _series(a, z))


@response
def freqz_sos(sos: Tensor, worN=512, whole: bool = False, fs=2 * math.pi) -> tuple:
    """Frequency response of a cascade of second-order sections."""
    (sos,) = alike(sos)
    sos = _sections(sos)
    if not int(sos.shape[0]):
        raise ArgumentError("`freqz_sos`: there must be at least one section.", argument="sos")
    w, rate = _grid("freqz_sos", worN, whole, fs, sos)
    z = _turned(w)
    h = ops.ones_like(z)
    for i in range(int(sos.shape[0])):
        h = h * (_series(sos[i, :3], z) / _series(sos[i, 3:], z))
    return w * (rate / (2 * math.pi)), h


@response
def sosfreqz(sos: Tensor, worN=512, whole: bool = False, fs=2 * math.pi) -> tuple:
    """Older name of :func:`freqz_sos`."""
    return freqz_sos(sos, worN, whole, fs)


@response
def freqz_zpk(z: Tensor, p: Tensor, k: Tensor, worN=512, whole: bool = False, fs=2 * math.pi) -> tuple:
    """Frequency response of a digital filter given by its zeros, poles and gain."""
    z, p, k = alike(z, p, k)
    w, rate = _grid("freqz_zpk", worN, whole, fs, k)
    at = conj(_turned(w))
    return w * (rate / (2 * math.pi)), ops.multiply(k, _product(_roots(z), at) / _product(_roots(p), at))


def _roots(x):
    return x if len(x.shape) == 1 else ops.reshape(x, (-1,))


def _analogue(function: str, worN, like, *filters, kind: str):
    if worN is None or _is_whole(worN):
        values = [known(x) for x in filters]
        if any(value is None for value in values):
            raise wrong("worN", "be the frequencies where the filter has no values yet")
        at = constant("signal.findfreqs")(*values, 200 if worN is None else int(worN), kind=kind)
        return constant_like(np.asarray(at), real_like(like))
    return real_like(vector(function, alike(real_like(like), worN)[1], "worN"))


@analogue
def freqs(b: Tensor, a: Tensor, worN=200, plot=None) -> tuple:
    """Frequency response of an analogue filter given by its coefficients, highest power first."""
    b, a = alike(b, a)
    b, a = vector("freqs", b, "b"), vector("freqs", a, "a")
    w = _analogue("freqs", worN, b, b, a, kind="ba")
    s = as_complex(ops.zeros_like(w), w)
    return _shown(plot, w, _series(ops.flip(b, 0), s) / _series(ops.flip(a, 0), s))


@analogue
def freqs_zpk(z: Tensor, p: Tensor, k: Tensor, worN=200) -> tuple:
    """Frequency response of an analogue filter given by its zeros, poles and gain."""
    z, p, k = alike(z, p, k)
    z, p = _roots(z), _roots(p)
    w = _analogue("freqs_zpk", worN, k, z, p, kind="zp")
    s = as_complex(ops.zeros_like(w), w)
    return w, ops.multiply(k, _product(z, s) / _product(p, s))


@response
def group_delay(system, w=512, whole: bool = False, fs=2 * math.pi) -> tuple:
    """Group delay of a digital filter: minus the derivative of its phase by frequency.

    Args:
        system: the coefficients ``(b, a)``.
        w: the number of frequencies, or the frequencies.

    Returns:
        The frequencies in units of ``fs``, and the delays in samples; 0 where the response is 0.
    """
    if not isinstance(system, (tuple, list)) or len(system) != 2:
        raise wrong("system", "be a pair of coefficients, `(b, a)`")
    b, a = alike(*system)
    b, a = vector("group_delay", b, "system"), vector("group_delay", a, "system")
    at, rate = _grid("group_delay", w, whole, fs, b, name="w")
    taps = int(a.shape[0])
    c = line(b, conj(ops.flip(a, 0)), taps - 1, taps - 1)
    z = _turned(at)
    below = _series(c, z)
    above = _series(ops.multiply(c, constant_like(np.arange(int(c.shape[0])), real_like(c))), z)
    size = ops.real(below) ** 2 + ops.imag(below) ** 2
    singular = size == 0
    ratio = ops.real(above * conj(below)) / ops.where(singular, ops.ones_like(size), size)
    delay = ops.where(singular, ops.zeros_like(size), ratio - (taps - 1))
    return at * (rate / (2 * math.pi)), delay
