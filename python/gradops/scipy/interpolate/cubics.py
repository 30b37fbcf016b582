"""Piecewise cubic polynomials, determined by their slopes at the sites: Hermite, cubic splines, PCHIP and Akima.

Each class computes slopes and then builds the same Hermite form.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from ... import ops
from ...annotations import Integer, Tensor
from ...errors import ArgumentError, ArgumentTypeError, ShapeError
from ...ops._checks import choice, known
from .._define import composed, family
from .._tensors import is_complex
from ..linalg import solve_banded
from ._shared import (
    BEYOND,
    add_last_dims,
    ascends,
    by_orders,
    columns,
    cyclic,
    finite,
    leading,
    mode_of,
    real_with,
    vector,
)
from .pieces import PPoly

__all__ = "Akima1DInterpolator CubicHermiteSpline CubicSpline PchipInterpolator pchip_interpolate".split()


def _data(name: str, x, y, axis, **others) -> tuple:
    """Return checked sites, values with ``axis`` moved first, that axis, and the other arguments."""
    x, y, *rest = real_with(name, 1, x=x, y=y, **others)
    count = vector(name, x, least=2)
    y, place = leading(name, y, axis, count)
    ascends(name, x)
    finite(name, y, "y")
    return x, y, place, rest


def _real(name: str, y) -> None:
    if is_complex(y):
        raise ArgumentTypeError(f"`{name}`: `y` must be real.", argument="y")


def _steps(x, y) -> tuple:
    """Return the distances between sites, shaped for products with values, and the slopes of the values."""
    h = add_last_dims(x[1:] - x[:-1], len(y.shape) - 1)
    return h, (y[1:] - y[:-1]) / h


through = family(
    {"x": "the sites, ascending.", "y": "the values, as many along ``axis`` as sites.", "extrapolate": BEYOND},
    returns="A :class:`PPoly`.",
    raises="ShapeError: shapes that do not match.\nArgumentError: sites that do not ascend; infs or NaNs.",
    within=lambda kind: kind,
)


@through
class CubicHermiteSpline(PPoly):
    """Piecewise cubic polynomial with given values and slopes.

    Args:
        dydx: the slopes, in ``y``'s shape.

    Gradient:
        By evaluation points, ``x``, ``y`` and ``dydx``.
    """

    @composed
    def __init__(self, x: Tensor, y: Tensor, dydx: Tensor, axis: Integer = 0, extrapolate=None):
        name = "CubicHermiteSpline"
        x, y, place, (slopes,) = _data(name, x, y, axis, dydx=dydx)
        slopes, _ = leading(name, slopes, axis, name="dydx")
        if tuple(slopes.shape) != tuple(y.shape):
            raise ShapeError(f"`{name}`: `dydx` must have the shape of `y`.", argument="dydx")
        finite(name, slopes, "dydx")
        self._set_slopes(x, y, slopes, place, extrapolate)

    def _set_slopes(self, x, y, slopes, axis: int, extrapolate, otherwise: Any = True) -> None:
        h, steep = _steps(x, y)
        bend = (slopes[:-1] + slopes[1:] - 2 * steep) / h
        self.c = ops.stack([bend / h, (steep - slopes[:-1]) / h - bend, slopes[:-1], y[:-1]])
        self.x, self.axis = x, axis
        self.extrapolate = otherwise if extrapolate is None else mode_of(type(self).__name__, extrapolate)


# Slopes of splines with two continuous derivatives --------------------------------------------------------------------


@through
class CubicSpline(CubicHermiteSpline):
    """Cubic spline: piecewise cubic polynomial with two continuous derivatives through given values (de Boor 1978).

    Args:
        bc_type: the boundary conditions: ``"not-a-knot"``, ``"natural"``, ``"clamped"``, ``"periodic"``, or a pair for
            the two ends, each a name or a pair of the order of a derivative (1 or 2) and its value.
        extrapolate: True to extrapolate by the outer pieces, False for NaN, or ``"periodic"``; by default True, or
            ``"periodic"`` if ``bc_type`` is.

    Raises:
        ArgumentError: unknown boundary conditions.

    Gradient:
        By evaluation points, ``x``, ``y`` and derivatives in ``bc_type``, through a banded system.
    """

    @composed
    def __init__(self, x: Tensor, y: Tensor, axis: Integer = 0, bc_type: Any = "not-a-knot", extrapolate=None):
        name = "CubicSpline"
        kinds, values = _conditions(name, bc_type)
        x, y, place, given = _data(name, x, y, axis, **values)
        rest = tuple(y.shape[1:])
        for i, value in enumerate(given):
            if tuple(value.shape) != rest:
                raise ShapeError(
                    f"`{name}`: a derivative in `bc_type` must have the shape {rest}; got {tuple(value.shape)}.",
                    argument="bc_type",
                )
            given[i] = ops.expand_dims(value, 0)
        by_end = dict(zip(values, given))
        around = kinds[0] == "periodic"
        if (
            around
            and (ends := known(y[[0, -1]] if isinstance(y, np.ndarray) else ops.stack([y[0], y[-1]]))) is not None
        ):
            if not np.allclose(ends[0], ends[1], rtol=1e-15, atol=1e-15):
                raise ArgumentError(
                    f'`{name}`: the first and last of `y` must be equal where `bc_type` is "periodic".', argument="y"
                )
        if 0 in rest:
            slopes = ops.zeros_like(y)
        elif around:
            slopes = slopes_around(x, y)
        else:
            slopes = slopes_between(x, y, [(kind, by_end.get(end)) for kind, end in zip(kinds, ("first", "last"))])
        self._set_slopes(x, y, slopes, place, extrapolate, "periodic" if around else True)


ENDS = {"not-a-knot": 0, "clamped": 1, "natural": 2}


def _conditions(name: str, bc_type) -> tuple[list, dict]:
    """Return the condition at each end (``"periodic"``, the order of a derivative, or 0) and the derivatives given."""
    if isinstance(bc_type, str):
        if bc_type == "periodic":
            return ["periodic"] * 2, {}
        bc_type = (bc_type, bc_type)
    if not isinstance(bc_type, (tuple, list)) or len(bc_type) != 2:
        raise ArgumentError(f"`{name}`: `bc_type` must be a name or a pair; got {bc_type!r:.80}.", argument="bc_type")
    kinds, values = [], {}
    for end, condition in zip(("first", "last"), bc_type):
        if isinstance(condition, str):
            choice(name, condition, tuple(ENDS), "bc_type")
            kinds.append(ENDS[condition])
        elif isinstance(condition, (tuple, list)) and len(condition) == 2 and condition[0] in (1, 2):
            kinds.append(int(condition[0]))
            values[end] = condition[1]
        else:
            raise ArgumentError(
                f"`{name}`: `bc_type` must have names or pairs of an order, 1 or 2, and a value; got "
                f"{condition!r:.80}.",
                argument="bc_type",
            )
    return kinds, values


def slopes_between(x, y, conditions: list):
    """Return a cubic spline's slopes, with a condition at each end: an order (0 for not-a-knot) and a derivative."""
    h, steep = _steps(x, y)
    d = x[1:] - x[:-1]
    n = int(x.shape[0])
    ends = []
    for (kind, value), at, sign in zip(conditions, ((0, 1), (n - 2, n - 3)), (-1, 1)):
        first, other = at[0], at[1] if n > 2 else at[0]
        h0, h1, s0, s1 = (z[i : i + 1] for z in (h, steep) for i in (first, other))
        d0, d1 = d[first : first + 1], d[other : other + 1]
        one, none = ops.ones_like(d0), ops.zeros_like(d0)
        if value is None:
            value = ops.zeros_like(s0)
        if kind == 0 and n == 2:
            ends.append((one, none, s0))
        elif kind == 0 and n == 3 and all(k == 0 for k, _ in conditions):
            ends.append((one, one, 2 * s0))
        elif kind == 0:
            both = h0 + h1
            ends.append((d1, d0 + d1, ((h0 + 2 * both) * h1 * s0 + h0**2 * s1) / both))
        elif kind == 1:
            ends.append((one, none, value))
        elif kind == 3:
            ends.append((one, one, 2 * s0 + value * h0**2 / 6))
        else:
            ends.append((2 * d0, d0, sign * 0.5 * value * h0**2 + 3 * h0 * s0))
    (first, above, b0), (last, below, b1) = ends
    zero = ops.zeros_like(first)
    ab = ops.stack(
        [
            ops.concatenate([zero, above, d[:-1]], 0),
            ops.concatenate([first, 2 * (d[:-1] + d[1:]), last], 0),
            ops.concatenate([d[1:], below, zero], 0),
        ]
    )
    b = ops.concatenate([b0, 3 * (h[1:] * steep[:-1] + h[:-1] * steep[1:]), b1], 0)
    return columns(lambda b: solve_banded((1, 1), ab, b), b)


def slopes_around(x, y):
    """Return the slopes at the sites of a periodic spline."""
    h, steep = _steps(x, y)
    d = x[1:] - x[:-1]
    before, last, slope = (ops.concatenate([z[-1:], z[:-1]], 0) for z in (d, h, steep))
    b = 3 * (h * slope + last * steep)
    rows = ops.stack([d, 2 * (before + d), before], -1)
    s = columns(lambda b: cyclic(rows, b), b)
    return ops.concatenate([s, s[:1]], 0)


# Slopes from neighbouring values --------------------------------------------------------------------------------------


@through
class PchipInterpolator(CubicHermiteSpline):
    """Piecewise cubic polynomial that is monotone where the values are (PCHIP; Fritsch and Butland 1984).

    Args:
        y: the values, real, as many along ``axis`` as sites.

    Gradient:
        By evaluation points, ``x`` and ``y``. At local extrema of the values the slope is 0 and counts as constant.
    """

    @composed
    def __init__(self, x: Tensor, y: Tensor, axis: Integer = 0, extrapolate=None):
        x, y, place, _ = _data("PchipInterpolator", x, y, axis)
        _real("PchipInterpolator", y)
        self._set_slopes(x, y, _monotone(x, y), place, extrapolate)


def _monotone(x, y):
    h, steep = _steps(x, y)
    if x.shape[0] == 2:
        return ops.concatenate([steep, steep], 0)
    before, behind = steep[:-1], steep[1:]
    turns = before * behind <= 0
    before, behind = (ops.where(turns, ops.ones_like(z), z) for z in (before, behind))
    w1, w2 = 2 * h[1:] + h[:-1], h[1:] + 2 * h[:-1]
    inner = ops.where(turns, ops.zeros_like(w1 * before), (w1 + w2) / (w1 / before + w2 / behind))

    def end(h0, h1, s0, s1):
        d = ((2 * h0 + h1) * s0 - h0 * s1) / (h0 + h1)
        steepest = ops.logical_and(ops.sign(s0) != ops.sign(s1), ops.abs(d) > 3.0 * ops.abs(s0))
        return ops.where(ops.sign(d) != ops.sign(s0), ops.zeros_like(d), ops.where(steepest, 3.0 * s0, d))

    first = end(h[:1], h[1:2], steep[:1], steep[1:2])
    last = end(h[-1:], h[-2:-1], steep[-1:], steep[-2:-1])
    return ops.concatenate([first, inner, last], 0)


@by_orders
def pchip_interpolate(xi: Tensor, yi: Tensor, x: Tensor, der: Any = 0, axis: Integer = 0):
    """Values or derivatives of :class:`PchipInterpolator` at points.

    Returns:
        A tensor, or a list of them.

    Raises:
        As for :class:`PchipInterpolator`.
    """
    found = PchipInterpolator(xi, yi, axis=axis)
    return [found(x, nu) for nu in der] if np.ndim(der) else found(x, der)


@through
class Akima1DInterpolator(CubicHermiteSpline):
    """Piecewise cubic polynomial whose slopes are local weighted means of the values' slopes (Akima 1970).

    Args:
        y: the values, real, as many along ``axis`` as sites.
        method: ``"akima"``, or ``"makima"`` for less overshoot.
        extrapolate: False (the default) for NaN beyond the ends, True to extrapolate by the outer pieces, or
            ``"periodic"``.

    Gradient:
        By evaluation points, ``x`` and ``y``; undefined where neighbouring slopes are equal.
    """

    @composed
    def __init__(
        self,
        x: Tensor,
        y: Tensor,
        axis: Integer = 0,
        *,
        method: Literal["akima", "makima"] = "akima",
        extrapolate=None,
    ):
        name = "Akima1DInterpolator"
        choice(name, method, ("akima", "makima"), "method")
        x, y, place, _ = _data(name, x, y, axis)
        _real(name, y)
        self._set_slopes(x, y, _local(x, y, method == "makima"), place, extrapolate, False)

    def extend(self, c, x) -> None:
        """Raise an error, as in SciPy."""
        raise ArgumentError("`Akima1DInterpolator` has no `extend`: its slopes depend on their neighbours.")


def _local(x, y, modified: bool):
    _, steep = _steps(x, y)
    if x.shape[0] == 2:
        return ops.concatenate([steep, steep], 0)
    first = 2.0 * steep[:1] - steep[1:2]
    last = 2.0 * steep[-1:] - steep[-2:-1]
    m = ops.concatenate([2.0 * first - steep[:1], first, steep, last, 2.0 * last - steep[-1:]], 0)
    change = ops.abs(m[1:] - m[:-1])
    if modified:
        change = change + 0.5 * ops.abs(m[1:] + m[:-1])
    behind, before = change[2:], change[:-2]
    both = behind + before
    clear = ops.stop_gradient(both > 1e-9 * ops.max(both))
    weighted = m[1:-2] + before / ops.where(clear, both, ops.ones_like(both)) * (m[2:-1] - m[1:-2])
    return ops.where(clear, weighted, 0.5 * (m[3:] + m[:-3]))
