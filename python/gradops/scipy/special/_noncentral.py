"""Log densities and log tails of the noncentral chi-squared, beta and t distributions, as sums of positive terms.

The first two are mixtures of central distributions with Poisson weights of mean ``nc / 2``; their terms have a single
maximum. The third is a mixture of normal distributions over a chi variable exp(w): an integral over the real line,
which the trapezoidal rule computes to rounding (Trefethen and Weideman 2014). Terms are kept as logarithms. The sums,
and their derivatives term by term, are computed on the host.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ... import ops
from ...flow import stop_gradient
from ...functional import grad
from .._formulas import choose, deviance_part, exp, held, lgamma, log, stirling, tail_from_smaller, where
from .._hosted import MAX_CHUNK_TERMS, apply_in_chunks, orders
from .._tensors import floating
from ._tails import log_beta_density, log_gamma_density, log_poisson
from .incomplete import BETA, GAMMA
from .normal import log_ndtr

MAX_LOG_DROP = 42.0
"""Log terms that are smaller than the largest by more than this are left out."""
LOG_2 = math.log(2)
LOG_ROOT = math.log(2 * math.pi) / 2


def _sums(name: str, parameters: tuple[str, ...], term: Callable, window: Callable) -> Callable:
    """Return an op for derivatives of the log of a sum over evenly spaced nodes, given an order for each parameter.

    Args:
        term: returns, for nodes and parameters, the log of a term, and a factor of value 1 that carries derivatives.
        window: returns, for parameters, a node near the largest term, the step, a distance, and the smallest node.
    """

    def function(order, *given):
        found = np.full(given[0].shape, math.nan)
        good = np.all(np.isfinite(given), 0)
        if good.any():
            found[good] = of_finite(order, *[x[good] for x in given])
        return found

    def of_finite(order, *given):
        first, step, count = _nodes(lambda nodes: term(nodes, *[x[:, None] for x in given])[0], *window(*given))

        def chunk_sums(length, first, step, *given):
            nodes = first[:, None] + step[:, None] * np.arange(length)

            def total(*values):
                each, factor = term(nodes, *[ops.expand_dims(x, -1) for x in values])
                top = ops.max(stop_gradient(each), -1, keepdims=True)
                return log(ops.sum(exp(each - top) * factor, -1)) + top[:, 0] + np.log(step)

            for i, n in enumerate(order):
                for _ in range(n):
                    total = _slope(total, i)
            return total(*given)

        return apply_in_chunks(
            chunk_sums, count, first, step, *given, terms=MAX_CHUNK_TERMS // 64 if any(order) else MAX_CHUNK_TERMS
        )

    return orders(name, parameters, parameters, function, "The logarithm of a sum.", most=3)


def _slope(function: Callable, i: int) -> Callable:
    return lambda *values: grad(lambda *xs: ops.sum(function(*xs)), argnums=i)(*values)


def _nodes(each: Callable, centre, step, reach, least):
    """Return the first node, the step and the number of nodes that matter; log terms have a single maximum."""
    low, high = np.maximum(centre - reach, least), centre + reach
    for _ in range(60):
        ends = each(np.stack([low, centre, high], -1))
        top = ends.max(-1) - MAX_LOG_DROP
        left, right = (ends[:, 0] > top) & (low > least), ends[:, 2] > top
        if not (left | right).any():
            break
        low = np.where(left, np.maximum(3 * low - 2 * centre, least), low)
        high = np.where(right, 3 * high - 2 * centre, high)
    return low, step, np.ceil((high - low) / step) + 1


# Mixtures by Poisson's distribution -----------------------------------------------------------------------------------


def _mixed(central: Callable) -> Callable:
    """Return the terms of a Poisson mixture: ``central(j, *parameters)`` weighted by the probability of ``j``."""

    def term(j, *parameters):
        *rest, nc = parameters
        mean = nc / 2
        known = ops.maximum(stop_gradient(mean), 1e-100)
        # derivatives of a factor are polynomials in j, which do not cancel
        return log_poisson(j, known) + central(j, *rest), (mean / known) ** j * exp(known - mean)

    return term


def _poisson_window(odds: Callable, tail: str):
    """Return the window of terms: around the largest product, or around the Poisson mean if the central tail is near 1.

    Args:
        odds: of the parameters ``p`` and ``q``, where the product is largest at ``j * j + p * j == q``.
    """

    def window(*parameters):
        *rest, nc = parameters
        mean = nc / 2
        p, q = odds(*rest, mean)
        root = np.sqrt(p * p + 4 * q)
        centre = np.where(p > 0, 2 * q / (p + root), (root - p) / 2)
        if tail != "density":
            centre = np.minimum(centre, mean) if tail == "lower" else np.maximum(centre, mean)
        centre = np.floor(centre)
        return centre, np.ones_like(centre), np.ceil(10 * np.sqrt(centre + 1)) + 20, 0.0

    return window


def _chi2(tail: str) -> Callable:
    def central(j, x, df):
        place, shape = x / 2 + 0 * j, df / 2 + j
        if tail == "density":
            return log_gamma_density(shape, place) - LOG_2
        return _log_tail(GAMMA, tail == "lower", shape, place)

    window = _poisson_window(lambda x, df, mean: (df / 2, mean * x / 2), tail)
    return _sums(f"_ncx2_{tail}", ("x", "df", "nc"), _mixed(central), window)


def _beta(tail: str) -> Callable:
    """Return the beta tail from ``x`` and ``y = 1 - x``, using the smaller of the two."""

    def central(j, x, y, a, b):
        shape, other = a + j, b + 0 * j
        if tail == "density":
            return log_beta_density(shape, other, x + 0 * j, y + 0 * j)
        lower = tail == "lower"
        return choose(
            x <= y,
            lambda of: _log_tail(BETA, lower, shape, other, of(x, 0.25) + 0 * j),
            lambda of: _log_tail(BETA, not lower, other, shape, of(y, 0.25) + 0 * j),
        )

    def odds(x, y, a, b, mean):
        return a - mean * x, mean * x * (a + b)

    return _sums(f"_ncbeta_{tail}", ("x", "y", "a", "b", "nc"), _mixed(central), _poisson_window(odds, tail))


def _log_tail(tails: dict, lower: bool, *arguments):
    """Return the log of a tail, from the probability itself unless that underflows."""
    value = tails[lower, False](*arguments)
    if np.min(held(value)) > 1e-290:
        return log(value)
    return tails[lower, True](*arguments)


CHI2 = {tail: _chi2(tail) for tail in ("density", "lower", "upper")}
BETA_SUMS = {tail: _beta(tail) for tail in ("density", "lower", "upper")}


# Student's t ----------------------------------------------------------------------------------------------------------


def _chi(w, df):
    """Return the log density of ``w = log(chi / sqrt(df))`` for a chi variable with ``df`` degrees of freedom."""
    a = df / 2
    rise, near = np.expm1(2 * w), np.abs(w) < 0.04
    deviance = np.where(near, deviance_part(1.0, 1.0, np.where(near, rise, 0.0)), rise - 2 * w)
    peak = choose(
        a >= 20,
        lambda of: log(of(a, 20.0)) / 2 - LOG_ROOT - stirling(of(a, 20.0)),
        lambda of: of(a, 1.0) * log(of(a, 1.0)) - of(a, 1.0) - lgamma(of(a, 1.0)),
    )
    return LOG_2 + peak - a * deviance


def _mean_difference(w, t, nc):
    """Return ``t * exp(w) - nc``, accurate for large ``t`` and ``nc`` and ``w`` near 0."""
    near = np.abs(w) < 0.5  # the other form loses digits here
    return where(near, (t - nc) + t * np.expm1(np.where(near, w, 0.0)), t * np.exp(w) - nc)


def _t_density_term(w, t, df, nc):
    z = _mean_difference(w, t, nc)
    return _chi(w, df) + w - z * z / 2 - LOG_ROOT, 1.0


def _t_lower_term(w, t, df, nc):
    """Return the term; at the smallest node it includes the terms below, which fall geometrically."""
    first = w == held(_least(t))
    rest = log(-ops.expm1(-df * held(_step(df, nc))))
    return _chi(w, df) + log_ndtr(_mean_difference(w, t, nc)) - where(first, rest, 0.0), 1.0


def _step(df, nc):
    return 0.6 / ops.sqrt(25 + nc * nc + 2 * df)


def _least(t):
    """Return the smallest node, below which only the power in the chi density matters."""
    return -40 - ops.log1p(ops.abs(t))


def _t_window(tail: str):
    """Return the window around the largest product, or around the chi density if the normal tail is near 1."""

    def window(t, df, nc):
        p, q = t * nc, df + t * t
        root = np.sqrt(p * p + 4 * df * q)
        place = np.where(p > 0, (p + root) / (2 * q), 2 * df / (root - p))
        if tail == "lower":
            place = np.where(t > nc, 1.0, place)
        least = _least(t) if tail == "lower" else -math.inf
        return np.maximum(np.log(place), least), _step(df, nc), 6 / np.sqrt(df + 0.1), least

    return window


T = {
    tail: _sums(f"_nct_{tail}", ("t", "df", "nc"), term, _t_window(tail))
    for tail, term in (("density", _t_density_term), ("lower", _t_lower_term))
}


# Tails ----------------------------------------------------------------------------------------------------------------


def _chosen(low, ops_by_tail: dict, arguments, instead):
    return choose(
        low,
        lambda of: ops_by_tail["lower"](*[of(x, other) for x, other in zip(arguments, instead)]),
        lambda of: ops_by_tail["upper"](*[of(x, other) for x, other in zip(arguments, instead)]),
    )


def value(sums: Callable, *arguments):
    """Return the value of the log sum."""
    return sums((0,) * len(arguments))(*arguments)


def chi2_tail(x, df, nc, lower: bool, as_log: bool):
    """Return a tail of the noncentral chi-squared distribution, for positive ``x``."""
    given = floating(x, df, nc)
    tails = {tail: lambda *xs, tail=tail: value(CHI2[tail], *xs) for tail in CHI2}
    return tail_from_smaller(
        given[0] < given[1] + given[2], lambda low: _chosen(low, tails, given, (1.0, 1.0, 0.0)), lower, as_log
    )


def beta_tail(x, y, a, b, nc, lower: bool, as_log: bool):
    """Return a tail of the noncentral beta distribution at ``x``, with ``y = 1 - x``, both positive."""
    given = x, y, a, b, nc = floating(x, y, a, b, nc)
    tails = {tail: lambda *xs, tail=tail: value(BETA_SUMS[tail], *xs) for tail in BETA_SUMS}
    return tail_from_smaller(
        x * b < (a + nc / 2) * y, lambda low: _chosen(low, tails, given, (0.5, 0.5, 1.0, 1.0, 0.0)), lower, as_log
    )


def t_tail(t, df, nc, lower: bool, as_log: bool):
    """Return a tail of the noncentral t distribution; the upper tail is the lower one with both signs reversed."""
    t, df, nc = floating(t, df, nc)

    def smaller(low):
        sign = ops.where(low, 1.0, -1.0) * ops.ones_like(t)
        return value(T["lower"], sign * t, df, sign * nc)

    return tail_from_smaller(t < nc, smaller, lower, as_log)
