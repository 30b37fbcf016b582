"""Interpolating, least-squares and smoothing splines.

Their coefficients are the solutions of banded systems or of a least-squares problem.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import _scipy, ops
from ...annotations import Integer, Tensor
from ...errors import ArgumentError, ShapeError
from ...ops._checks import choice, integer, known
from .._define import composed
from .._tensors import constant_like, inexact, numbers, wrong
from ..linalg import solve_banded
from ._shared import add_last_dims, ascends, columns, cyclic, finite, leading, real_with, vector
from .splines import BSpline, weights

__all__ = ["make_interp_spline", "make_lsq_spline", "make_smoothing_spline"]


def knots_between(x, k: int):
    """Return the knots of an interpolating spline, with none at the sites next to the ends (not-a-knot)."""
    n = int(x.shape[0])
    inner = x[(k + 1) // 2 : n - (k + 1) // 2] if k % 2 else ((x[1:] + x[:-1]) / 2)[k // 2 : n - 1 - k // 2]
    return ops.concatenate([*[x[:1]] * (k + 1), inner, *[x[-1:]] * (k + 1)], 0)


def _knots_around(x, k: int):
    """Return the knots of a periodic spline."""
    n = int(x.shape[0])
    d = x[1:] - x[:-1]
    if k % 2 == 0:
        x = ops.concatenate([x[:1], x[1:-1] - d[:-1] / 2, x[-1:]], 0)
        d = x[1:] - x[:-1]
    turns = np.arange(k) % (n - 1)
    before, behind = (ops.cumsum(ops.take(d, at, 0), 0) for at in (n - 2 - turns, turns))
    return ops.concatenate([ops.flip(x[:1] - before, 0), x, x[-1:] + behind], 0)


def _interpolating_coefficients(name: str, t, k: int, x, rhs, left: list, right: list):
    """Return the coefficients from values at the sites and derivatives at the ends."""
    n = int(t.shape[0]) - k - 1
    parts = []
    for at, orders in ((x[:1], left), (x, [0]), (x[-1:], right)):
        parts += [weights(t, k, at, order) for order in orders]
    first, h = (ops.concatenate([part[i] for part in parts], 0) for i in (0, 1))
    # Element (r, j) of the banded storage is element (j + r - k, j) of the matrix.
    r, j = np.indices((2 * k + 1, n))
    row = j + r - k
    inside = (row >= 0) & (row < n)
    row = np.where(inside, row, 0)
    number = constant_like(j, first) - ops.take(first, row, 0)
    hits = ops.logical_and(
        ops.equal(ops.expand_dims(number, -1), constant_like(np.arange(k + 1), first)), inside[..., None]
    )
    ab = ops.sum(ops.where(hits, ops.take(h, row, 0), 0.0), -1)
    try:
        return columns(lambda b: solve_banded((k, k), ab, b), rhs)
    except ArgumentError as error:
        raise ArgumentError(
            f"`{name}`: `x` does not determine the spline with the knots `t`: its system is singular.", argument="x"
        ) from error


def _derivatives(name: str, given, shape: tuple) -> tuple[list, list]:
    """Return the orders and values of the derivatives at an end."""
    if given is None:
        return [], []
    if isinstance(given, str):
        choice(name, given, ("clamped", "natural"), "bc_type")
        return [1 if given == "clamped" else 2], [np.zeros(shape)]
    try:
        orders, values = zip(*given)
    except (TypeError, ValueError):
        raise ArgumentError(
            f"`{name}`: `bc_type` must be a pair of lists of pairs of an order and a value; got {given!r:.80}.",
            argument="bc_type",
        ) from None
    return [integer(name, order, "bc_type", 0) for order in orders], list(values)


@composed
def make_interp_spline(
    x: Tensor,
    y: Tensor,
    k: Any = 3,
    t: Tensor = None,
    bc_type: Any = None,
    axis: Integer = 0,
    check_finite: bool = True,
) -> BSpline:
    """Interpolating spline of degree ``k``.

    Args:
        x: the sites, ascending.
        t: the knots; by default the sites (for an even degree the midpoints), without those next to the ends.
        bc_type: the boundary conditions: ``"not-a-knot"`` (the default), ``"clamped"``, ``"natural"``, ``"periodic"``,
            or a pair for the two ends, each a name or a list of pairs of an order and the value of the derivative.

    Returns:
        A :class:`BSpline`.

    Raises:
        ShapeError: shapes that do not match.
        ArgumentError: sites that do not ascend; knots or conditions that do not determine the spline.

    Gradient:
        By evaluation points, ``x``, ``y``, ``t`` and derivatives in ``bc_type``, through a banded system.
    """
    name = "make_interp_spline"
    k = integer(name, k, "k", 0)
    around = isinstance(bc_type, str) and bc_type == "periodic"
    if bc_type is None or isinstance(bc_type, str):
        ends: tuple = (None, None) if bc_type is None or bc_type in ("not-a-knot", "periodic") else (bc_type, bc_type)
    elif isinstance(bc_type, (tuple, list)) and len(bc_type) == 2:
        ends = tuple(None if isinstance(e, str) and e == "not-a-knot" else e for e in bc_type)
    else:
        raise ArgumentError(f"`{name}`: `bc_type` must be a name or a pair; got {bc_type!r:.80}.", argument="bc_type")
    if t is not None and (k == 0 or around):
        raise wrong("t", "be None for degree 0 and for periodic splines, whose knots follow from `x`", of=name)
    if k < 2 and t is None and ends != (None, None):
        raise ArgumentError(f"`{name}`: `bc_type` must be None for degree {k}.", argument="bc_type")
    rest = tuple(y.shape) if ops.is_tensor(y) else np.shape(y)
    rest = tuple(n for i, n in enumerate(rest) if i != (axis + len(rest) if axis < 0 else axis))
    (left, starts), (right, stops) = (_derivatives(name, end, rest) for end in ends)
    given = {f"derivative_{i}": value for i, value in enumerate([*starts, *stops])}
    x, t, y, *values = real_with(name, 2, "t", x=x, t=t, y=y, **given)
    count = vector(name, x)
    y, place = leading(name, y, axis, count)
    ascends(name, x)
    if check_finite:
        finite(name, y, "y")
    if any(order > k for order in [*left, *right]):
        raise ArgumentError(f"`{name}`: `bc_type` must have derivatives up to the degree, {k}.", argument="bc_type")
    if t is None and k < 2:
        return BSpline.construct_fast(ops.concatenate([*[x[:1]] * k, x, x[-1:]], 0), y, k, axis=place)
    if around:
        return _periodic(name, x, y, k, place)
    if t is not None:
        vector(name, t, "t")
        ascends(name, t, "t", strictly=False)
    elif left or right:
        t = ops.concatenate([*[x[:1]] * k, x, *[x[-1:]] * k], 0)
    elif count <= k:
        raise wrong("x", f"have at least {k + 1} sites for degree {k}", count, of=name)
    else:
        t = knots_between(x, k)
    n = int(t.shape[0]) - k - 1
    if n - count != len(left) + len(right) or n < k + 1:
        raise ArgumentError(
            f"`{name}`: {n - count} derivatives must be given at the ends by `x`, `t` and `k`; got {len(left)} and "
            f"{len(right)}.",
            argument="bc_type",
        )
    _check_range(name, x, t, k)
    parts = [ops.expand_dims(value, 0) for value in values]
    rhs = ops.concatenate([*parts[: len(left)], y, *parts[len(left) :]], 0)
    c = rhs if 0 in rest else _interpolating_coefficients(name, t, k, x, rhs, left, right)
    return BSpline.construct_fast(t, c, k, axis=place)


def _check_range(name: str, x, t, k: int) -> None:
    sites, knots = known(x), known(t)
    if sites is not None and knots is not None and (sites[0] < knots[k] or sites[-1] > knots[len(knots) - k - 1]):
        raise ArgumentError(f"`{name}`: `x` must be between the ends, `t[k]` and `t[-k - 1]`.", argument="x")


def _periodic(name: str, x, y, k: int, axis: int) -> BSpline:
    ends = known(y)
    if ends is not None and not np.allclose(ends[0], ends[-1], atol=1e-15):
        raise ArgumentError(
            f'`{name}`: the first and last of `y` must be equal where `bc_type` is "periodic".', argument="y"
        )
    t = _knots_around(x, k)
    n = int(x.shape[0]) - 1
    _, h = weights(t, k, x[:-1])
    s = k // 2
    rows = h[:, : 2 * s + 1]  # for an odd degree the last B-spline is 0 at a site that is a knot
    c = columns(lambda b: cyclic(rows, b), y[:-1])
    return BSpline.construct_fast(t, ops.take(c, (np.arange(n + k) - s) % n, 0), k, "periodic", axis)


@composed
def make_lsq_spline(
    x: Tensor,
    y: Tensor,
    t: Tensor,
    k: Any = 3,
    w: Tensor = None,
    axis: Integer = 0,
    check_finite: bool = True,
    *,
    method: Any = "qr",
) -> BSpline:
    """Least-squares spline with given knots.

    Args:
        x: the sites, ascending.
        w: weights that multiply the residuals before they are squared.
        method: ``"qr"`` or ``"norm-eq"``; both use the same method here, which does not square the matrix.

    Returns:
        A :class:`BSpline`.

    Raises:
        ShapeError: shapes that do not match.
        ArgumentError: sites that decrease or are beyond the ends.

    Gradient:
        By evaluation points, ``x``, ``y``, ``t`` and ``w``.
    """
    name = "make_lsq_spline"
    choice(name, method, ("qr", "norm-eq"), "method")
    k = integer(name, k, "k", 0)
    x, t, w, y = real_with(name, 3, "w", x=x, t=t, w=w, y=y)
    count = vector(name, x, least=k + 1)
    vector(name, t, "t", 2 * k + 2)
    y, place = leading(name, y, axis, count)
    ascends(name, x, strictly=False)
    ascends(name, t, "t", strictly=False)
    if check_finite:
        finite(name, y, "y")
    _check_range(name, x, t, k)
    matrix = BSpline.design_matrix(x, t, k, True)
    if w is not None:
        if tuple(w.shape) != (count,):
            raise ShapeError(f"`{name}`: `w` must have an element for each site.", argument="w")
        matrix, y = add_last_dims(w, 1) * matrix, add_last_dims(w, len(y.shape) - 1) * y
    shape = tuple(y.shape[1:])
    c = ops.lstsq(matrix, ops.reshape(y, (count, -1)))
    return BSpline.construct_fast(t, ops.reshape(c, (int(matrix.shape[1]), *shape)), k, axis=place)


@composed
def make_smoothing_spline(x: Tensor, y: Tensor, w: Tensor = None, lam: Tensor = None, *, axis: Integer = 0) -> BSpline:
    """Smoothing spline: the natural cubic spline that minimises the squared residuals plus ``lam`` times its roughness.

    The roughness is the integral of the squared second derivative (Reinsch 1967).

    Args:
        x: the sites, ascending, at least 5.
        w: weights of the squared residuals.
        lam: the weight of the roughness. By default SciPy chooses it by generalised cross-validation, which needs known
            numbers.

    Returns:
        A :class:`BSpline`.

    Raises:
        ShapeError: shapes that do not match.
        ArgumentError: sites that do not ascend; weights that are not positive.
        ArgumentTypeError: variables without ``lam``: there is no derivative through its choice.

    Gradient:
        By evaluation points, ``x``, ``y``, ``w`` and ``lam``, through banded systems.
    """
    name = "make_smoothing_spline"
    if lam is None:
        known_ones = [numbers(name, key, value) for key, value in (("x", x), ("y", y)) if value is not None]
        weight = None if w is None else numbers(name, "w", w)
        found = _scipy.interpolate.make_smoothing_spline(*known_ones, weight, axis=axis)
        (t, c) = real_with(name, 1, t=found.t, c=found.c, like=inexact(y))[:2]
        return BSpline.construct_fast(t, c, 3, axis=found.axis)
    x, y, w, lam = real_with(name, 4, "w", x=x, y=y, w=w, lam=lam)
    w = ops.ones_like(x) if w is None else w
    count = vector(name, x, least=5)
    ascends(name, x)
    y, place = leading(name, y, axis, count)
    for key, value, least in (("w", w, np.nextafter(0, 1)), ("lam", lam, 0.0)):
        values = known(value)
        if values is not None and not (values >= least).all():
            raise ArgumentError(f"`{name}`: `{key}` must be {'positive' if least else 'at least 0'}.", argument=key)
    if tuple(w.shape) != (count,) or len(lam.shape):
        raise ShapeError(f"`{name}`: `w` must have an element for each site, and `lam` be a number.", argument="w")
    h = x[1:] - x[:-1]
    a, b = 1 / h[:-1], 1 / h[1:]
    q = [a, -(a + b), b]  # second differences, a tridiagonal band
    v = lam / w
    rows = [
        h[:-1] / 3 + h[1:] / 3 + sum(q[i] ** 2 * v[i : count - 2 + i] for i in range(3)),
        h[1:-1] / 6 + (q[1][:-1] * q[0][1:] * v[1:-2] + q[2][:-1] * q[1][1:] * v[2:-1]),
        q[2][:-2] * q[0][2:] * v[2:-2],
    ]
    none = ops.zeros_like(x[:2])
    upper = [ops.concatenate([none[:i], rows[i]], 0) for i in (2, 1)]
    lower = [ops.concatenate([rows[i], none[:i]], 0) for i in (1, 2)]
    ab = ops.stack([*upper, rows[0], *lower])
    rank = len(y.shape) - 1
    bend = sum(add_last_dims(q[i], rank) * y[i : count - 2 + i] for i in range(3))
    curve = columns(lambda right: solve_banded((2, 2), ab, right), bend)
    pads = [ops.zeros_like(curve[:1])] * 2
    back = sum(ops.concatenate([*pads[:i], add_last_dims(q[i], rank) * curve, *pads[i:]], 0) for i in range(3))
    smooth = y - add_last_dims(v, rank) * back
    found = make_interp_spline(x, smooth, 3, bc_type="natural")
    found.axis = place
    return found
