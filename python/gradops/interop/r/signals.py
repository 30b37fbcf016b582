"""R's functions of signals and series."""

from __future__ import annotations

import math

from ... import ops
from ...scipy import fft, signal
from ...scipy._tensors import beside, is_complex
from ...scipy.linalg.matrices import toeplitz_of
from .arrays import beside_each_other, flat


def convolve(x, y, conj: bool, kind: str):
    """A convolution, or with ``conj`` a correlation: ``"circular"``, ``"open"``, or as ``"filter"`` what is whole."""
    x, y = map(flat, beside_each_other(x, y))
    n, m = int(x.shape[0]), int(y.shape[0])
    if kind != "circular":
        x, y = ops.pad(x, [(m - 1, 0)]), ops.pad(y, [(0, n - 1)])
    spectrum = fft.fft(y)
    z = fft.ifft(fft.fft(x) * (ops.conj(spectrum) if conj else spectrum))
    z = z if is_complex(x) or is_complex(y) else ops.real(z)
    return z[m - 1 : n] if kind == "filter" else z


def moving(x, weights, ahead: float, circular: bool):
    """Sums of ``weights[j]`` times the element ``j - ahead`` places back; NaN where one is out of the series."""

    def of_one(x):
        n, p, k = int(x.shape[0]), int(w.shape[0]), int(ahead)
        if circular:
            return ops.roll(signal.convolve(ops.concatenate([x[n - p + 1 :], x], 0), w, "valid", "direct"), -k)
        gaps = [beside([math.nan] * count, x) for count in (p - 1 - k, k)]
        return ops.concatenate([gaps[0], signal.convolve(x, w, "valid", "direct"), gaps[1]], 0)

    x, w = beside_each_other(x, weights)
    w = flat(w)
    return _by_column(of_one, x)


def recursive(x, weights, init=None):
    """``y[i] = x[i] + weights[1] y[i - 1] + ...``; ``init`` are those before, the last first."""
    x, w = beside_each_other(x, weights)
    w = flat(w)
    one = beside([1.0], w)
    a = ops.concatenate([one, -w], 0)
    state = None if init is None else signal.lfiltic(one, a, flat(beside_each_other(w, init)[1]))
    return _by_column(
        lambda x: signal.lfilter(one, a, x) if state is None else signal.lfilter(one, a, x, zi=state)[0], x
    )


def _by_column(f, x):
    if len(x.shape) < 2:
        return f(flat(x))
    return ops.stack([f(x[:, j]) for j in range(x.shape[1])], 1)


def embed(x, dimension: float):
    """A series, or the columns of a matrix, beside its lags."""
    x = x if len(x.shape) > 1 else ops.reshape(x, (-1, 1))
    n, d = int(x.shape[0]), int(dimension)
    return ops.concatenate([x[d - 1 - lag : n - lag] for lag in range(d)], 1)


def toeplitz(x, r=None):
    """The Toeplitz matrix of a first column and row, which are the same without ``r``."""
    x, r = map(flat, beside_each_other(x, x if r is None else r))
    return toeplitz_of(x, r)
