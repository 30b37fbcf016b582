"""Tail integrals of a density of one variable, from few values of the log density.

Each value may need a search for random effects. So the log density is interpolated by polynomials, on panels that are
halved until they agree with it; for a normal density one polynomial is exact. A finite end of the range is moved to
infinity by a logarithm, which makes densities smooth that grow as a power there. Panels double in width until the rest
is negligible.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from .. import _scipy

INTERPOLATION_TOLERANCE = 1e-6
"""Largest difference, relative to a tail, of interpolants of degrees n and 2 n; the latter is far more accurate."""
NEGLIGIBLE_PART = 1e-8
"""Part of a tail that may be left out."""
NEGLIGIBLE_DROP = 22.0
"""Fall of the log density from its maximum beyond which a normal density has less than ``NEGLIGIBLE_PART``."""
MAX_HALVINGS, MAX_DOUBLINGS = 60, 100
"""The most times that a panel is halved, and that the next panel is twice as wide."""
MAX_SUMMED_TERMS, MAX_INTERPOLATED_TERMS = 16, 2**16
"""Terms of a sum that are all evaluated; the most terms that one polynomial interpolates."""
MAX_EVALUATIONS = 4000
"""Evaluations after which panels are no longer halved: the density then has jumps or few digits."""

Values = Callable[[float], float]


def _chebyshev(count: int) -> np.ndarray:
    """Return nodes on [-1, 1]; every second node belongs to the grid with half as many intervals."""
    return -np.cos(np.pi * np.arange(count) / (count - 1))


def _interpolation(nodes: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Return the matrix that maps a polynomial's values at ``nodes`` to those at ``at`` (Berrut & Trefethen 2004)."""
    apart = (nodes[:, None] - nodes) * 4 / (nodes[-1] - nodes[0])
    np.fill_diagonal(apart, 1.0)
    gaps = at[:, None] - nodes
    same = gaps == 0
    parts = 1 / apart.prod(1) / np.where(same, 1.0, gaps)
    parts = np.where(same.any(1, keepdims=True), same, parts)
    return parts / parts.sum(1, keepdims=True)


_nodes, _weights = np.polynomial.legendre.leggauss(20)
_DENSE = np.add.outer((np.arange(8) - 3.5) / 4, _nodes / 8).reshape(-1)
_LOG_WEIGHTS = np.tile(np.log(_weights / 8), 8)
_LEVELS = 3, 5, 9, 17
_FINER = {n: _interpolation(_chebyshev(n), _chebyshev(2 * n - 1)[1::2]) for n in _LEVELS}
_TO_DENSE = {2 * n - 1: _interpolation(_chebyshev(2 * n - 1), _DENSE) for n in _LEVELS}


def log_sum(logs) -> float:
    """Return the logarithm of the sum of exponentials."""
    top = np.max(logs, initial=-np.inf)
    return float(top if np.isinf(top) else top + np.log(np.sum(np.exp(np.asarray(logs) - top))))


def tails(log_density: Values, normal: Callable, y: float, lower: float, upper: float) -> tuple[float, float]:
    """Return the logarithms of the integrals of a density below and above ``y``, which is within its range.

    Args:
        log_density: -inf or NaN outside of the support.
        normal: returns the standard deviation of a normal density with the same value and slope at a point, and the
            distance of the point above its mean in standard deviations. Its arguments are the point, the log slope of
            the coordinate there, and the derivative of the log slope.
    """
    place, log_slope, bend = _coordinate(y, lower, upper)

    def by_coordinate(t: float) -> float:
        at = place(t)
        return log_density(at) + log_slope(t) if lower < at < upper else -math.inf

    f = _Kept(by_coordinate)
    sd, above = normal(y, log_slope(0.0), bend)
    farther = math.sqrt(above**2 + 2 * NEGLIGIBLE_DROP) - abs(above)
    nearer = math.sqrt(2 * NEGLIGIBLE_DROP) + abs(above)
    return _tail(f, -sd * (nearer if above > 0 else farther)), _tail(f, sd * (farther if above > 0 else nearer))


def _coordinate(y: float, lower: float, upper: float) -> tuple[Values, Values, float]:
    """Return an unbounded coordinate that is 0 at ``y``.

    The results are the map from the coordinate to the range, the log of its slope, and the derivative of that log at 0.
    """
    if math.isinf(lower) and math.isinf(upper):
        return lambda t: y + t, lambda t: 0.0, 0.0
    if math.isinf(upper):
        return lambda t: lower + (y - lower) * math.exp(min(t, 700.0)), lambda t: t + math.log(y - lower), 1.0
    if math.isinf(lower):
        return lambda t: upper - (upper - y) * math.exp(min(-t, 700.0)), lambda t: math.log(upper - y) - t, -1.0
    width, start = upper - lower, math.log((y - lower) / (upper - y))
    expit, log_expit = _scipy.special.expit, _scipy.special.log_expit
    return (
        lambda t: float(lower + width * expit(start + t)),
        lambda t: float(math.log(width) + log_expit(start + t) + log_expit(-start - t)),
        float(1 - 2 * expit(start)),
    )


class _Kept:
    """A memoised function."""

    def __init__(self, f: Values):
        self.f = f
        self.known: dict[float, float] = {}

    def __call__(self, t: float) -> float:
        if t not in self.known:
            self.known[t] = self.f(t)
        return self.known[t]


def _tail(f: _Kept, width: float) -> float:
    """Return the logarithm of the integral from 0 to one side; ``width`` is that of the first panel, with its sign."""
    start, total = 0.0, -math.inf
    for _ in range(MAX_DOUBLINGS):
        end = start + width
        total = _panel(f, start, end, total, MAX_HALVINGS)
        if not f(end) + math.log(abs(width)) > total + math.log(NEGLIGIBLE_PART):
            break
        start, width = end, 2 * width
    return total


def _panel(f: _Kept, near: float, far: float, total: float, halvings: int) -> float:
    """Add a panel to an integral, both as logarithms; the end ``near`` is within the support."""
    middle, width = (near + far) / 2, abs(far - near)
    values = np.array([f(near), f(middle), f(far)])
    top = np.max(values[np.isfinite(values)], initial=-np.inf)
    if not halvings or not width or top + math.log(width) < total + math.log(NEGLIGIBLE_PART / 100):
        return total
    for n in _LEVELS if top - values[-1] < 3 * NEGLIGIBLE_DROP else ():
        more = np.array([f(middle + (far - near) / 2 * t) for t in _chebyshev(2 * n - 1)[1::2].tolist()])
        guess, values = _FINER[n] @ values, np.insert(values, np.arange(1, n), more)
        if not np.isfinite(values).all():
            break
        found = np.logaddexp(total, log_sum(_TO_DENSE[2 * n - 1] @ values + _LOG_WEIGHTS) + math.log(width / 2))
        apart = np.abs(np.exp(np.minimum(guess - found, 700)) - np.exp(more - found)).max()
        if apart * width < INTERPOLATION_TOLERANCE or n == _LEVELS[-1] and len(f.known) > MAX_EVALUATIONS:
            return float(found)
    total = _panel(f, near, middle, total, halvings - 1)
    return _panel(f, middle, far, total, halvings - 1) if np.isfinite(f(middle)) else total


def sums(log_density: Values, y: float) -> tuple[float, float]:
    """Return the logarithms of the sums of a probability mass function up to ``y``, and above it."""
    here = log_density(y)
    return _sum(_Kept(lambda k: log_density(y - k)), here, here), _sum(_Kept(lambda k: log_density(y + k)), here)


def _sum(f: _Kept, before: float, total: float = -math.inf) -> float:
    """Return the logarithm of ``total`` plus the terms from 1 on; ``before`` is the log of term 0."""
    for k in range(1, MAX_SUMMED_TERMS + 1):
        term = f(k)
        if not np.isfinite(term):
            return total
        total, ratio, before = float(np.logaddexp(total, term)), term - before, term
        if ratio < 0 and term + ratio - math.log(-math.expm1(ratio)) < total + math.log(NEGLIGIBLE_PART):
            return total
    start, count = MAX_SUMMED_TERMS, 2 * MAX_SUMMED_TERMS
    for _ in range(MAX_DOUBLINGS):
        total = _terms(f, start, count, total)
        start += count
        if not f(start) + math.log(count) > total + math.log(NEGLIGIBLE_PART):
            break
        count = min(2 * count, MAX_INTERPOLATED_TERMS)
    return total


def _terms(f: _Kept, start: int, count: int, total: float) -> float:
    """Add ``count`` terms after ``start`` to a sum, all as logarithms."""
    if count <= MAX_SUMMED_TERMS:
        terms = [f(k) for k in range(start + 1, start + count + 1)]
        return log_sum([total, *(term for term in terms if np.isfinite(term))])
    for n in (9,) if count < 64 else (9, 17):  # the rounded nodes must be distinct
        nodes = start + 1 + np.round((_chebyshev(n) + 1) / 2 * (count - 1))
        values = np.array([f(k) for k in nodes.tolist()])
        if not (np.isfinite(values).all() and values.max() - values[-1] < 3 * NEGLIGIBLE_DROP):
            break
        guess = _interpolation(nodes[::2], nodes[1::2]) @ values[::2]
        places = np.arange(start + 1.0, start + count + 1)
        found = log_sum([total, *(_interpolation(nodes, places) @ values)])
        if (
            np.abs(np.exp(np.minimum(guess - found, 700)) - np.exp(values[1::2] - found)).max() * count
            < INTERPOLATION_TOLERANCE
        ):
            return found
    total = _terms(f, start, count // 2, total)
    middle = start + count // 2
    return _terms(f, middle, count - count // 2, total) if np.isfinite(f(middle)) else total
