"""Functions of R's package stats on tensors: interpolation, summaries, regression, signals and series, solvers.

They follow R's definitions where those differ from SciPy's, such as quantile types and variances with n - 1.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ... import ops, scipy
from ...errors import ArgumentError, ShapeError
from ...ops._compose import constant_like
from ...scipy import _compiled
from ...scipy._solving import Problem
from ...scipy._tensors import floating, is_complex
from ...scipy.optimize import minima, roots
from .arrays import flat, promoted_operands


def lines(x, y, v, steps: bool, f, left, right):
    """Interpolate linearly between ascending knots, or with ``steps`` by steps at height ``low + f (high - low)``."""
    x, y, v = _tensors(x=flat(x), y=flat(y), v=v)
    last = int(x.shape[0]) - 1
    piece = scipy.interpolate.pieces.interval(x, v)
    behind = ops.minimum(piece + 1, last)
    start, low, high = (ops.take(z, i, 0) for z, i in ((x, piece), (y, piece), (y, behind)))
    if steps:
        inside = low if f == 0 else high if f == 1 else low * (1 - f) + high * f
        inside = ops.where(v == x[last], y[last], ops.where(v == start, low, inside))
    else:
        inside = low + (high - low) * ((v - start) / (ops.take(x, behind, 0) - start))
    inside = ops.where(v < x[0], constant_like(left, y), ops.where(v > x[last], constant_like(right, y), inside))
    return ops.where(ops.isnan(v), math.nan, inside)


def slopes(x, y, method: str):
    """Return the slopes of a cubic spline at ascending knots.

    Args:
        method: ``"fmm"`` (the third derivative at each end is that of the cubic through the four points there;
            Forsythe, Malcolm and Moler 1977), ``"natural"``, ``"periodic"``, ``"monoH.FC"`` (Fritsch and Carlson
            1980) or ``"hyman"`` (Hyman 1983).
    """
    x, y = _tensors(x=x, y=y)
    n = int(x.shape[0])
    if n == 1:
        return ops.zeros_like(y)
    steep = (y[1:] - y[:-1]) / (x[1:] - x[:-1])
    if method == "periodic":
        return scipy.interpolate.cubics.slopes_around(x, y) if n > 2 else ops.zeros_like(y)
    if n == 2:
        return ops.concatenate([steep, steep], 0)
    if method == "natural":
        return scipy.interpolate.cubics.slopes_between(x, y, [(2, None)] * 2)
    if method == "monoH.FC":
        return _limit_slopes(ops.concatenate([steep[:1], (steep[1:] + steep[:-1]) / 2, steep[-1:]], 0), steep)
    third = [(0, None)] * 2 if n == 3 else [(3, 6 * _third(x[at], steep[at])) for at in (slice(4), slice(n - 4, n))]
    found = scipy.interpolate.cubics.slopes_between(x, y, third)
    return _limited(found, steep) if method == "hyman" else found


def _third(x, steep):
    """Return the third divided difference of four points, from their first divided differences."""
    second = (steep[1:3] - steep[:2]) / (x[2:] - x[:2])
    return (second[1:] - second[:1]) / (x[3:] - x[:1])


def _limit_slopes(m, steep):
    """Shrink slopes, piece by piece, until each piece is monotone (Fritsch and Carlson 1980)."""

    def step(here, piece):
        s, following = piece
        flat = s == 0
        one = ops.where(flat, 1.0, s)
        a, b = here / one, following / one
        u, v = 2 * a + b - 3, a + 2 * b - 3
        beyond = (u > 0) & (v > 0) & (a * (u + v) < u * u)
        factor = ops.where(beyond, 3 / ops.sqrt(ops.where(beyond, a * a + b * b, 1.0)), 1.0)
        factor = ops.where(flat, 0.0, factor)
        return factor * following, factor * here

    last, others = ops.scan(step, m[0], (steep, m[1:]))
    return ops.concatenate([others, ops.expand_dims(last, 0)], 0)


def _limited(m, steep):
    """Limit slopes to the data's sign and to three times the smaller adjacent slope (Hyman 1983)."""
    before, behind = ops.concatenate([steep[:1], steep], 0), ops.concatenate([steep, steep[-1:]], 0)
    most = 3 * ops.minimum(ops.abs(before), ops.abs(behind))
    up = ops.where(before * behind > 0, behind, m) >= 0
    return ops.where(up, ops.minimum(ops.maximum(m, 0.0), most), ops.maximum(ops.minimum(m, 0.0), -most))


def piecewise_cubic(x, y, m, v, order: float, beyond: str):
    """Evaluate a piecewise cubic, or one of its derivatives, at ``v``.

    Args:
        m: the slopes at the knots.
        order: the order of the derivative, from 0 to 3.
        beyond: the extrapolation: ``"cubic"`` continues the outer cubics, ``"linear"`` and ``"natural"`` continue
            straight lines (``"natural"`` also uses the line at the first knot), ``"periodic"`` repeats the curve.
    """
    x, y, m, v = _tensors(x=x, y=y, m=m, v=v)
    n, order = int(x.shape[0]), int(order)

    def line(k: int):
        return y[k] + m[k] * (v - x[k]) if order == 0 else (m[k] if order == 1 else 0 * m[k]) + 0 * v

    if n == 1:
        return line(0)
    inside = scipy.interpolate.CubicHermiteSpline(x, y, m)(v, order, "periodic" if beyond == "periodic" else True)
    if beyond not in ("linear", "natural"):
        return inside
    left = v <= x[0] if beyond == "natural" else v < x[0]
    return ops.where(left, line(0), ops.where(v >= x[n - 1], line(n - 1), inside))


def _tensors(**given) -> list:
    return scipy.interpolate.pieces.real_with("splinefun", len(given), **given)


# Summaries: variances divide by n - 1, covariance matrices are between columns ---------------------------------------


QUANTILE_TOLERANCE = 4 * 2.0**-52
"""The distance below an integer at which a rank counts as the integer, as in R's `quantile()`."""
CONTINUOUS = {4: (0, 1), 5: (0.5, 0.5), 6: (0, 0), 7: (1, 1), 8: (1 / 3, 1 / 3), 9: (3 / 8, 3 / 8)}
"""For R's quantile types 4 to 9 the constants ``a`` and ``b`` of Hyndman and Fan (1996)."""


def weighted_mean(x, w, na_rm: bool):
    x, w = map(flat, promoted_operands(x, w))
    n, given = x.shape[0], w.shape[0]
    if given != n:
        raise ArgumentError(f"`w` must have as many elements as `x`; got {given} for {n}.", argument="w")
    if na_rm:
        missing = ops.isnan(x)
        x, w = (ops.where(missing, 0.0, v) for v in (x, w))
    return ops.sum(x * w) / ops.sum(w)


def quantile(x, probs, kind: float, na_rm: bool):
    """Return quantiles of one of R's nine types; each type is a weighted mean of two adjacent order statistics."""
    x = ops.sort(floating(flat(x))[0])
    missing = ops.isnan(x)
    n = ops.cast(ops.sum(ops.logical_not(missing)), "float64") if na_rm else float(x.shape[0])
    probs = ops.cast(probs, "float64")
    low, weight = _discrete(n, probs, kind) if kind <= 3 else _continuous(n, probs, *CONTINUOUS[int(kind)])

    def at(place):
        return ops.take(x, ops.cast(ops.clip(place, 1, n) - 1, "int64"), 0)

    weight, first = constant_like(weight, x), at(low)
    between = ops.where(weight == 0, first, first + weight * (at(low + 1) - first))  # avoids 0 * Inf
    return between if na_rm else ops.where(ops.any(missing), math.nan, between)


def _discrete(n, probs, kind: float):
    place = n * probs - (0.5 if kind == 3 else 0.0)
    low = ops.floor(place + QUANTILE_TOLERANCE)
    if kind == 3:
        return low, ops.where((place != low) | (low % 2 == 1), 1.0, 0.0)
    return low, ops.where(place > low, 1.0, 0.5 * (kind - 1))


def _continuous(n, probs, a: float, b: float):
    place = a + probs * (n + 1 - a - b)
    low = ops.floor(place + QUANTILE_TOLERANCE)
    return low, ops.where(ops.abs(place - low) < QUANTILE_TOLERANCE, 0.0, place - low)


def variance(x):
    """Return the variance of the elements that are not missing."""
    return ops.nanvar(x) * _correction(x)


def deviation(x, na_rm: bool):
    """Return the standard deviation; its gradient is 0, not NaN, where all elements are equal."""
    return (ops.nanstd if na_rm else ops.std)(x) * ops.sqrt(_correction(x, na_rm))


def _correction(x, na_rm: bool = True):
    n = ops.sum(ops.where(ops.isnan(x), 0.0, 1.0)) if na_rm else ops.sum(ops.ones_like(floating(x)[0]))
    return n / (n - 1)


def covariance(x, y=None, unit: bool = False):
    """Return the covariances of columns, a number for two vectors.

    Args:
        unit: True to scale columns to length 1, which gives correlations.
    """
    given = [_vector_or_matrix(v) for v in (x, y) if v is not None]
    vectors = all(len(v.shape) == 1 for v in given)
    first = last = _centred(given[0], unit)
    if len(given) > 1:
        last = _centred(given[1], unit)
    n = int(first.shape[0])
    if n != last.shape[0]:
        raise ShapeError(f"`x` and `y` must have equally many rows; got {n} and {last.shape[0]}.", argument="y")
    value = ops.matmul(ops.transpose(first), last)
    if not unit:
        value = value / constant_like(max(n - 1, 0), value)
    elif n == 0:
        value = value / constant_like(0.0, value)  # NaN, for R's NA
    return ops.reshape(value, ()) if vectors else value


def autocovariances(x, last: int, kind: str, demean: bool):
    """Return R's ``acf()`` for lags from 0 to ``last``, as an array (lag, series, series).

    ``kind`` is ``"covariance"``, ``"correlation"``, or ``"partial"`` for the last coefficient of the autoregression of
    each order (Durbin and Levinson), from lag 1.
    """
    if demean or kind == "partial":
        x = x - ops.mean(x, axis=0)
    n, last = int(x.shape[0]), int(last)
    if kind != "covariance":
        x = x / ops.sqrt(ops.mean(x * x, axis=0))
    found = ops.stack([ops.matmul(ops.transpose(x[k:]), x[: n - k]) / n for k in range(last + 1)], 0)
    if kind != "partial":
        return found
    rho, partial = ops.reshape(found, (-1,)), []
    slopes: Any = None
    for k in range(1, last + 1):
        past = None if slopes is None else ops.sum(slopes * ops.flip(rho[1:k], 0))
        here = rho[1] if past is None else (rho[k] - past) / (1 - ops.sum(slopes * rho[1:k]))
        one = ops.reshape(here, (1,))
        slopes = one if slopes is None else ops.concatenate([slopes - here * ops.flip(slopes, 0), one], 0)
        partial.append(one)
    return ops.reshape(ops.concatenate(partial, 0), (-1, 1, 1))


def binned(x, weights, low, high, n: float):
    """Split each weight between the two nearest of ``n`` grid points, and return the totals followed by ``n`` zeros."""
    count = int(n)
    place = (x - low) / (high - low) * (count - 1)
    cell = ops.floor(ops.stop_gradient(place))
    share = place - cell
    parts = ops.concatenate([ops.multiply(weights, 1 - share), ops.multiply(weights, share)], 0)
    at = ops.cast(ops.concatenate([cell, cell + 1], 0), "int64")
    return ops.segment_sum(parts, ops.where((at >= 0) & (at < count), at, -1), 2 * count)


def _vector_or_matrix(x):
    x = floating(x)[0]
    return x if len(x.shape) == 2 else flat(x)


def _centred(x, unit: bool):
    x = ops.reshape(x, (-1, 1)) if len(x.shape) == 1 else x
    x = x - ops.mean(x, 0, True)
    return x / ops.sqrt(ops.sum(ops.square(x), 0, True)) if unit else x


def cov2cor(V):
    V = floating(V)[0]
    unit = 1 / ops.sqrt(ops.diagonal(V))
    found = V * ops.expand_dims(unit, 1) * ops.expand_dims(unit, 0)
    return ops.where(np.eye(V.shape[0]) == 1, 1.0, found)


def scaled(x, center, scale):
    """Return R's ``scale()``: columns minus ``center`` (True: means) divided by ``scale`` (True: root mean squares)."""
    (x,) = floating(x)
    x = ops.reshape(x, (-1, 1)) if len(x.shape) < 2 else x
    if center is not False:
        x = x - (ops.mean(x, 0) if center is True else _column_values(center, x))
    if scale is not False:
        size = ops.sqrt(ops.sum(ops.square(x), 0) / max(1, int(x.shape[0]) - 1))
        x = x / (size if scale is True else _column_values(scale, x))
    return x


def _column_values(value, x):
    value = flat(floating(value)[0])
    if value.shape[0] != x.shape[1]:
        raise ArgumentError("`center` and `scale` must have one number for each column.", argument="center")
    return constant_like(value, x)


# Distances and sparse matrices ----------------------------------------------------------------------------------------


def distances(x, method: str, p: float):
    """Return R's ``dist()``: the distances between all pairs of rows."""
    if method == "minkowski":
        return scipy.spatial.distance.pdist(x, method, p=p)
    if method != "canberra":
        return scipy.spatial.distance.pdist(x, {"maximum": "chebyshev", "manhattan": "cityblock"}.get(method, method))
    (x,) = promoted_operands(x)
    size = ops.abs(ops.stop_gradient(x))
    total = sum(ops.take(size, rows, 0) for rows in np.triu_indices(x.shape[0], 1))
    count = ops.sum(ops.cast(total > 0, ops.dtype(x)), 1)  # R omits terms 0 / 0 and rescales the sum
    return scipy.spatial.distance.pdist(x, method) * (float(x.shape[1]) / count)


def mahalanobis(x, center, cov, inverted: bool):
    """Return the squared Mahalanobis distances of rows; ``center=False`` means 0."""
    if center is not False:
        x, center = promoted_operands(x, center)
        x = x - flat(center)
    x, cov = promoted_operands(x, cov)
    x = x if len(x.shape) > 1 else ops.reshape(x, (1, -1))
    cov = ops.reshape(cov, (1, 1)) if len(cov.shape) < 2 else cov
    weighed = (
        ops.matmul(x, cov) if inverted else ops.transpose(scipy.linalg.solve(cov, ops.transpose(x), check_finite=False))
    )
    return ops.sum(x * weighed, 1)


def coefficients(q, r, y, order):
    """Return least-squares coefficients from a QR decomposition; ``order`` is the order of its columns, if pivoted."""
    q, r, y = promoted_operands(q, r, y)
    found = ops.solve_triangular(r, ops.matmul(ops.transpose(q), _columns(y)), lower=False)
    return _restore_vector(y, found if order is None else ops.take(found, [int(i) - 1 for i in order], 0))


def fitted(q, y, k: float):
    """Return the projection of ``y`` on the first ``k`` columns of ``q``."""
    q, y = promoted_operands(q, y)
    q = q[:, : int(k)]
    return _restore_vector(y, ops.matmul(q, ops.matmul(ops.transpose(q), _columns(y))))


def _columns(y):
    return y if len(y.shape) > 1 else ops.reshape(y, (-1, 1))


def _restore_vector(y, found):
    return found if len(y.shape) > 1 else ops.reshape(found, (-1,))


def _sparse(values, rows, columns, size):
    places = (np.asarray(x, np.int64).reshape(-1) - 1 for x in (rows, columns))
    return scipy.sparse.csc_array((values, tuple(places)), shape=(int(size), int(size)))


def sparse_solve(values, rows, columns, size, b):
    """Solve a sparse square system; rows and columns of the matrix elements count from 1."""
    return scipy.sparse.linalg.spsolve(_sparse(values, rows, columns, size), b)


def sparse_log_determinant(values, rows, columns, size):
    """Return the log determinant of a sparse symmetric positive definite matrix."""
    return ops.reshape(scipy.sparse.linalg.logdet(_sparse(values, rows, columns, size)), ())


# Signals and series ---------------------------------------------------------------------------------------------------


def convolve(x, y, conj: bool, kind: str):
    """Return R's ``convolve()``: ``"circular"``, ``"open"``, or ``"filter"`` (complete overlaps only).

    With ``conj`` it is a correlation.
    """
    x, y = map(flat, promoted_operands(x, y))
    n, m = int(x.shape[0]), int(y.shape[0])
    if kind == "circular" and n != m:
        raise ArgumentError(f"`y` must be as long as `x`, {n}, in a circular convolution; got {m}.", argument="y")
    if kind != "circular":
        x, y = ops.pad(x, [(m - 1, 0)]), ops.pad(y, [(0, n - 1)])
    spectrum = scipy.fft.fft(y)
    z = scipy.fft.ifft(scipy.fft.fft(x) * (ops.conj(spectrum) if conj else spectrum))
    z = z if is_complex(x) or is_complex(y) else ops.real(z)
    return z[m - 1 : n] if kind == "filter" else z


def moving(x, weights, centred: bool, circular: bool):
    """Return R's ``filter(method = "convolution")``: the sum of ``weights[j]`` times the value at lag ``j``.

    With ``centred`` the lags are centred on 0. The result is NaN where a lag is outside the series, unless it is
    ``circular``.
    """

    def of_one(x):
        n, p = int(x.shape[0]), int(w.shape[0])
        if p > n:
            raise ArgumentError(f"`filter` is longer than the series: {p} and {n}.", argument="filter")
        k = p // 2 if centred else 0
        if circular:
            return ops.roll(scipy.signal.convolve(ops.concatenate([x[n - p + 1 :], x], 0), w, "valid", "direct"), -k)
        gaps = [constant_like(np.full(count, math.nan), x) for count in (p - 1 - k, k)]
        return ops.concatenate([gaps[0], scipy.signal.convolve(x, w, "valid", "direct"), gaps[1]], 0)

    x, w = promoted_operands(x, weights)
    w = flat(w)
    return _map_columns(of_one, x)


def recursive(x, weights, init=None):
    """Return ``y[i] = x[i] + weights[1] y[i - 1] + ...``; ``init`` holds the values before the first, latest first."""
    x, w = promoted_operands(x, weights)
    w = flat(w)
    one = constant_like(np.ones(1), w)
    a = ops.concatenate([one, -w], 0)
    state = None
    if init is not None:
        init, p = flat(promoted_operands(w, init)[1]), w.shape[0]
        if init.shape[0] != p:
            message = f"`init` must have as many elements as `filter`, {p}; got {init.shape[0]}."
            raise ArgumentError(message, argument="init")
        state = scipy.signal.lfiltic(one, a, init)
    return _map_columns(
        lambda x: scipy.signal.lfilter(one, a, x) if state is None else scipy.signal.lfilter(one, a, x, zi=state)[0], x
    )


def _map_columns(f, x):
    if len(x.shape) < 2:
        return f(flat(x))
    return ops.stack([f(x[:, j]) for j in range(x.shape[1])], 1)


def embed(x, dimension: float):
    """Return R's ``embed()``: a series, or the columns of a matrix, next to its lags."""
    x = x if len(x.shape) > 1 else ops.reshape(x, (-1, 1))
    n, d = int(x.shape[0]), int(dimension)
    if not 1 <= d <= n:
        raise ArgumentError(f"`dimension` must be from 1 to {n}; got {d}.", argument="dimension")
    return ops.concatenate([x[d - 1 - lag : n - lag] for lag in range(d)], 1)


def toeplitz(x, r=None):
    """Return the Toeplitz matrix with first column ``x`` and first row ``r``, by default ``x``."""
    x, r = map(flat, promoted_operands(x, x if r is None else r))
    return scipy.linalg.matrices.toeplitz_of(x, r)


# Solvers -------------------------------------------------------------------------------------------------------------

# R's own solver finds the solution on numbers; these functions return it as a tensor with derivatives. In traced
# programs, where no value is known (`x` is None), they find the solution themselves. `like` is a tensor that the
# function depends on.


def root(f, x, lower, upper, like):
    """Return the root found by R's ``uniroot()``, with derivatives."""
    problem = Problem("uniroot()", "f", f, 1.0, scalar=True, beside=(like,))
    if x is None:
        return _compiled.root_between(problem, lower, upper, like)
    return roots.moving(problem, np.asarray(x), lacking="the slope is 0 there")


def least_between(f, x, lower, upper, like, tol: float, maximum: bool):
    """Return the minimum or maximum found by R's ``optimize()``, with derivatives."""
    target = (lambda x: -f(x)) if maximum else f
    problem = Problem("optimize()", "f", target, 1.0, scalar=True, beside=(like,))
    if x is None:
        return _compiled.least_between(problem, lower, upper, like)
    return minima.scalar_minimum(problem, x, minima.Bounds("optimize()", [(lower, upper)], 1), tol)


def least(f, x, start, lower, upper, like, sign: float, name: str):
    """Return the minimum found by ``optim()``, ``nlm()`` or ``nlminb()``, with derivatives; bounds are recycled."""
    target = (lambda x: -f(x)) if sign < 0 else f
    problem = Problem(name, "fn", target, 1.0, scalar=True, beside=(like,))
    if x is None:
        return _compiled.least(problem, start, like)
    x = np.atleast_1d(np.asarray(x, float))
    pairs = [(_recycled(lower, i), _recycled(upper, i)) for i in range(x.size)]
    return minima.minimum(problem, x, minima.Bounds(name, pairs, x.size))


def _recycled(bound, i: int):
    count = math.prod(getattr(bound, "shape", ()))
    return bound[i % count] if getattr(bound, "shape", ()) else bound


def integral(f, value, lower, upper, like):
    """Return the value found by R's ``integrate()``, with derivatives; ``f`` takes a vector."""
    problem = Problem("integrate()", "f", f, np.zeros(1), beside=(like,), vectors=True)
    if value is None:
        return _compiled.integral(problem, lower, upper, like)
    return scipy.integrate.quadratures.recorded(problem, np.asarray(value), lower, upper)


def solution(f, y, times, args, method: str, options: dict):
    """Return the solution of an initial value problem, one row per time; ``y`` is the value at the first time.

    Args:
        f: a function of a time, the values at that time and ``args``; it returns the derivatives.
    """
    return ops.transpose(_solved(f, y, times, args, method, options).y)


def solution_to_root(f, root, count: int, y, times, args, method: str, options: dict):
    """Return :func:`solution` until ``root``, a function like ``f`` of ``count`` numbers, has a 0, with that row.

    The first column has the times. A 0 at the first time does not count.
    """

    def number(x) -> float:
        return float(ops.convert_to_numpy(ops.stop_gradient(x)))

    start = number(times[0])

    def crossing(k: int):
        def at(*arguments):
            return flat(ops.convert_to_tensor(root(*arguments)))[k]

        def value(t, y, *args):
            found = at(t, y, *args)
            if number(t) == start and abs(number(found)) < 1e-8:  # its sign after the first time counts
                by = 1e-6 * (number(times[-1]) - start)
                return at(t + by, y + by * ops.convert_to_tensor(f(t, y, *args)), *args)
            return found

        value.terminal = True  # type: ignore[attr-defined]
        return value

    found = _solved(f, y, times, args, method, options, [crossing(k) for k in range(count)])
    t, rows = found.t, found.y
    for ts, ys in zip(found.t_events, found.y_events):
        if len(ts):
            t = ops.concatenate([_alike(t, rows), ops.reshape(_alike(ts[-1], rows), (1,))])
            rows = ops.concatenate([rows, ops.expand_dims(_alike(ys[-1], rows), 1)], 1)
    return ops.transpose(ops.concatenate([ops.expand_dims(_alike(t, rows), 0), rows], 0))


def _alike(x, like):
    """Return a NumPy array as a tensor of the library of ``like``."""
    return constant_like(x, like) if isinstance(x, (np.ndarray, np.generic)) else x


def _solved(f, y, times, args, method: str, options: dict, events=None):
    found = scipy.integrate.solve_ivp(
        f, (times[0], times[-1]), y, method, times, events=events, args=tuple(args), **options
    )
    if not found.success:
        raise ArgumentError(f"`ode`: the solution ends before the last of `times`: {found.message}", argument="times")
    return found
