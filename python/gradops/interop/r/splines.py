"""R's interpolation: lines and steps, and of ``splinefun()`` the slopes at the knots by its methods, and cubics."""

from __future__ import annotations

import math

from ... import ops
from ...ops._compose import beside
from ...scipy.interpolate import CubicHermiteSpline
from ...scipy.interpolate._shared import interval, real_with
from ...scipy.interpolate.cubics import slopes_around, slopes_between
from .arrays import flat


def lines(x, y, v, steps: bool, f, left, right):
    """At places between ascending knots a straight line, or with ``steps`` a step, which is ``f`` of the way up."""
    x, y, v = _tensors(x=flat(x), y=flat(y), v=v)
    last = int(x.shape[0]) - 1
    piece = interval(x, v)
    behind = ops.minimum(piece + 1, last)
    start, low, high = (ops.take(z, i, 0) for z, i in ((x, piece), (y, piece), (y, behind)))
    if steps:
        inside = low if f == 0 else high if f == 1 else low * (1 - f) + high * f
        inside = ops.where(v == x[last], y[last], ops.where(v == start, low, inside))
    else:
        inside = low + (high - low) * ((v - start) / (ops.take(x, behind, 0) - start))
    inside = ops.where(v < x[0], beside(left, y), ops.where(v > x[last], beside(right, y), inside))
    return ops.where(ops.isnan(v), math.nan, inside)


def slopes(x, y, method: str):
    """The slopes at ascending knots.

    Args:
        method: ``"fmm"``, whose third derivatives at the ends are those of the cubics through the four points there
            (Forsythe, Malcolm and Moler 1977), ``"natural"``, ``"periodic"``, ``"monoH.FC"`` (Fritsch and Carlson
            1980) or ``"hyman"`` (Hyman 1983).
    """
    x, y = _tensors(x=x, y=y)
    n = int(x.shape[0])
    if n == 1:
        return ops.zeros_like(y)
    steep = (y[1:] - y[:-1]) / (x[1:] - x[:-1])
    if method == "periodic":
        return slopes_around(x, y) if n > 2 else ops.zeros_like(y)
    if n == 2:
        return ops.concatenate([steep, steep], 0)
    if method == "natural":
        return slopes_between(x, y, [(2, None)] * 2)
    if method == "monoH.FC":
        return _between_zones(ops.concatenate([steep[:1], (steep[1:] + steep[:-1]) / 2, steep[-1:]], 0), steep)
    third = [(0, None)] * 2 if n == 3 else [(3, 6 * _third(x[at], steep[at])) for at in (slice(4), slice(n - 4, n))]
    found = slopes_between(x, y, third)
    return _limited(found, steep) if method == "hyman" else found


def _third(x, steep):
    """The third divided difference of four points, by the first ones."""
    second = (steep[1:3] - steep[:2]) / (x[2:] - x[:2])
    return (second[1:] - second[:1]) / (x[3:] - x[:1])


def _between_zones(m, steep):
    """Slopes, piece by piece made so small that it is monotone."""

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
    """Slopes of the sign of the values', at most three times the smaller slope beside."""
    before, behind = ops.concatenate([steep[:1], steep], 0), ops.concatenate([steep, steep[-1:]], 0)
    most = 3 * ops.minimum(ops.abs(before), ops.abs(behind))
    up = ops.where(before * behind > 0, behind, m) >= 0
    return ops.where(up, ops.minimum(ops.maximum(m, 0.0), most), ops.maximum(ops.minimum(m, 0.0), -most))


def at(x, y, m, v, order: float, beyond: str):
    """The cubics, or derivatives of them, at places.

    Args:
        m: the slopes at the knots.
        order: of the derivative, from 0 to 3.
        beyond: on either side the cubics go on (``"cubic"``), or a straight line, from the knot on (``"linear"``) or,
            to its left, with it (``"natural"``), or all again (``"periodic"``).
    """
    x, y, m, v = _tensors(x=x, y=y, m=m, v=v)
    n, order = int(x.shape[0]), int(order)

    def line(k: int):
        return y[k] + m[k] * (v - x[k]) if order == 0 else (m[k] if order == 1 else 0 * m[k]) + 0 * v

    if n == 1:
        return line(0)
    inside = CubicHermiteSpline(x, y, m)(v, order, "periodic" if beyond == "periodic" else True)
    if beyond not in ("linear", "natural"):
        return inside
    left = v <= x[0] if beyond == "natural" else v < x[0]
    return ops.where(left, line(0), ops.where(v >= x[n - 1], line(n - 1), inside))


def _tensors(**given) -> list:
    return real_with("splinefun", len(given), **given)
