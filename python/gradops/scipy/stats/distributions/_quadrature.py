"""Expectations, moments and quantiles by numerical methods, for families without formulas."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .... import ops
from ....functional.implicit import stepped
from ....ops._compose import NUMBERS
from ..._formulas import choose, exp, sqrt, where
from ..._hosted import hosted
from ..._quadrature_rules import double_exponential
from ..._tensors import constant_like
from ._shared import LOG_2, log_tails

_, _P, _W = double_exponential(0.1 * (np.arange(56) + 0.5), 0.1)


def expectation(quantile, function, shapes):
    """Return the mean of ``function(z, *shapes)`` with z = ``quantile(p, lower, *shapes)``.

    The double exponential rule on (0, 1) is used, with tail probabilities in each half.
    """
    like = next((v for v in shapes if type(v) not in NUMBERS), np.zeros(()))
    columns = [v if type(v) in NUMBERS else ops.expand_dims(v, -1) for v in shapes]
    p, w = constant_like(_P, like), constant_like(_W, like)
    low, high = [function(quantile(p, lower, *columns), *columns) for lower in (True, False)]
    return ops.sum(w * (low + high), -1)


def moments(family, shapes):
    """Mean, variance, skewness and excess kurtosis."""

    def quantile(p, lower, *shapes):
        return family._quantile(p, lower, False, *shapes)

    mean = expectation(quantile, lambda z, *_: z, shapes)
    centre = ops.expand_dims(mean, -1)
    var, third, fourth = [expectation(quantile, lambda z, *_, n=n: (z - centre) ** n, shapes) for n in (2, 3, 4)]
    return mean, var, third / (var * sqrt(var)), fourth / (var * var) - 3


# Inverses -------------------------------------------------------------------------------------------------------------


def _solve(family, lower: bool):
    """Solve for the log tail probability ``p`` of ``family`` on the host, by Newton's method in a bracket."""
    sign = 1 if lower else -1
    place, scaled, slope_of_place = _SCALES[family.scale or ("log" if family.support_[0] == 0 else "plain")]

    def solve(p, *shapes):
        found = np.full(p.shape, np.nan)
        good = (p > -np.inf) & (p <= 0) & np.asarray(family._valid(*shapes))
        if good.any():
            found[good] = inside(p[good], *[shape[good] for shape in shapes])
        return found

    def inside(p, *shapes):
        def excess(u):
            return sign * (family._tail(place(u), lower, True, *shapes) - p)

        limit = family.reach
        start = scaled(family._near(p, lower, *shapes))
        near = np.abs(start) < limit
        u = np.where(near, start, 0.0)
        width = np.where(near, 1e-3 * (1 + np.abs(u)), 1.0)
        low, high = u - width, u + width
        for _ in range(40):
            above, below = (excess(low) > 0) & (low > -limit), (excess(high) < 0) & (high < limit)
            if not (above | below).any():
                break
            width = 2 * width
            low = np.where(above, np.maximum(u - width, -limit), low)
            high = np.where(below, np.minimum(u + width, limit), high)
        u = np.where((low < u) & (u < high), u, (low + high) / 2)
        for _ in range(200):
            z = place(u)
            log_tail = family._tail(z, lower, True, *shapes)
            above = sign * (log_tail - p) > 0
            low, high = np.where(above, low, u), np.where(above, u, high)
            slope = sign * np.exp(family._logpdf(z, *shapes) - log_tail) * slope_of_place(u)
            new = u - (log_tail - p) / slope
            new = np.where((new >= low) & (new <= high), new, (low + high) / 2)
            done = np.abs(new - u) <= 1e-11 * np.maximum(np.abs(u), 1e-3)
            u = new
            if done.all():
                break
        return place(u)

    return solve


_SCALES: dict[str, tuple[Any, ...]] = {
    "plain": (np.asarray, np.asarray, np.ones_like),
    "log": (np.exp, np.log, np.exp),
    "sinh": (np.sinh, np.arcsinh, np.cosh),
}


def quantile_of(family):
    """Return a ``_quantile`` for a family that defines only its tails.

    The solution is found as a constant. Recorded Newton steps make it accurate and carry its derivatives.
    """
    parameters = ("p", *family.shapes)
    solutions = {
        lower: hosted(
            f"_{family.name}_at_{side}", parameters, _solve(family, lower), "The place of a tail's logarithm."
        )
        for lower, side in ((True, "lower"), (False, "upper"))
    }

    def by_tail(p, lower, *shapes):
        def residual(z):
            return family._tail(z, lower, True, *shapes) - p

        def inverse(rest, z):
            step = rest * exp(rest + p - family._logpdf(z, *shapes))
            step = step if lower else -step
            return where(z > step, step, 0.0) if family.support_[0] == 0 else step

        return stepped(residual, inverse, solutions[lower](p, *shapes), moves=True)

    def quantile(p, lower, as_log, *shapes):
        own, other = log_tails(p, as_log)
        first, last = (own, other) if lower else (other, own)
        a, b = family.ends

        def by(tail, lower, instead, of):
            p = of(tail, instead)
            return by_tail(
                where(p == -math.inf, instead, p), lower, *[of(x, other) for x, other in zip(shapes, family.instead)]
            )

        value = choose(first < -LOG_2, lambda of: by(first, True, -1.0, of), lambda of: by(last, False, -0.7, of))
        return where(first == -math.inf, a, where(last == -math.inf, b, value))

    return quantile
