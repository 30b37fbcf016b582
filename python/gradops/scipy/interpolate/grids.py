"""Interpolation on rectilinear grids of any number of dimensions.

Methods are multilinear, nearest, PCHIP, and tensor products of splines.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from ... import ops
from ...annotations import Tensor
from ...errors import ArgumentError, ArgumentTypeError, ShapeError
from ...ops._checks import choice, known
from .._define import composed
from .._neighbours import alike
from .._tensors import constant_like, is_complex
from ._shared import add_last_dims, ascends, interval, outside, real_with, shifted_ranges, vector
from .cubics import PchipInterpolator
from .fitting import make_interp_spline
from .splines import weights

__all__ = ["RegularGridInterpolator", "interpn"]

DEGREES = {"slinear": 1, "cubic": 3, "quintic": 5}
DEGREES |= {f"{name}_legacy": degree for name, degree in DEGREES.items()}
METHODS = ("linear", "nearest", "pchip", *DEGREES)


def coordinates(name: str, xi, count: int | None = None):
    """Return points as a tensor whose last dimension holds the coordinates, from such a tensor or from a tuple."""
    if isinstance(xi, tuple) and len(xi) == 1:
        xi = xi[0]
    if isinstance(xi, tuple):
        parts = alike(*xi)
        shape = np.broadcast_shapes(*[tuple(part.shape) for part in parts])
        return ops.stack([ops.broadcast_to(part, shape) for part in parts], -1)
    (xi,) = real_with(name, 1, xi=xi)
    if len(xi.shape) == 1:
        return ops.expand_dims(xi, -1 if count is None or count == 1 else 0)
    return xi


class RegularGridInterpolator:
    """Interpolation on a rectilinear grid.

    Args:
        points: for each dimension of the grid a vector of positions, strictly ascending or descending.
        values: a tensor with the grid's dimensions first.
        method: ``"linear"``, ``"nearest"``, ``"pchip"``, or ``"slinear"``, ``"cubic"``, ``"quintic"`` for splines of
            degree 1, 3, 5 in each dimension, which are solved for directly, not by iteration.
        bounds_error: True to raise an error for points beyond the grid if values are known.
        fill_value: the value beyond the grid without ``bounds_error``; None to extrapolate by the outer pieces.
        solver, solver_args: ignored.

    Returns:
        A callable that takes evaluation points.

    Raises:
        ShapeError: shapes that do not match.
        ArgumentError: positions that are not strictly monotone; an unknown ``method``.

    Gradient:
        By evaluation points, ``points``, ``values`` and ``fill_value``; at a grid position it is that of the piece to
        its right.
    """

    @composed
    def __init__(
        self,
        points: Any,
        values: Tensor,
        method: Any = "linear",
        bounds_error: bool = True,
        fill_value: Any = math.nan,
        *,
        solver: Any = None,
        solver_args: Any = None,
    ):
        name = "RegularGridInterpolator"
        choice(name, method, METHODS, "method")
        try:
            points = list(points)
        except TypeError:
            raise ArgumentTypeError(f"`{name}`: `points` must be a tuple of vectors.", argument="points") from None
        given = {f"points[{i}]": p for i, p in enumerate(points)}
        *grid, values = real_with(name, len(points), **given, values=values)
        if len(grid) > len(values.shape) or not grid:
            raise ShapeError(
                f"`{name}`: `points` must have a vector for each of the first dimensions of `values`.",
                argument="points",
            )
        for i, p in enumerate(grid):
            vector(name, p, "points")
            if p.shape[0] != values.shape[i]:
                raise ShapeError(
                    f"`{name}`: `points` has {p.shape[0]} positions for dimension {i} of `values`, which has "
                    f"{values.shape[i]}.",
                    argument="points",
                )
            down = p[0] > p[-1]
            if (found := known(down)) is None:
                p = ops.where(down, ops.flip(p, 0), p)
                values = ops.where(down, ops.flip(values, i), values)
            elif found:
                p, values = ops.flip(p, 0), ops.flip(values, i)
            grid[i] = p
            ascends(name, grid[i], "points")
        if method == "pchip" and is_complex(values):
            raise ArgumentTypeError(f"`{name}`: `values` must be real for pchip.", argument="values")
        self.grid, self.values, self.method = tuple(grid), values, method
        self.bounds_error, self.fill_value = bounds_error, fill_value
        self._splines: dict = {}
        self._check(method)
        if method in DEGREES:
            self._solved(DEGREES[method])

    def _check(self, method: str) -> None:
        least = {"pchip": 4}.get(method, DEGREES.get(method, 0) + 1)
        for i, p in enumerate(self.grid):
            if p.shape[0] < least:
                raise ArgumentError(
                    f"`RegularGridInterpolator`: `points` must have at least {least} positions in each dimension for "
                    f"{method}; got {p.shape[0]} in dimension {i}.",
                    argument="points",
                )

    def _solved(self, degree: int) -> tuple:
        """Return the knots and coefficients of the tensor product of splines."""
        if degree not in self._splines:
            knots, c = [], self.values
            for i, p in enumerate(self.grid):
                spline = make_interp_spline(p, ops.moveaxis(c, i, 0), degree, check_finite=False)
                knots.append(spline.t)
                c = ops.moveaxis(spline.c, 0, i)
            self._splines[degree] = knots, c
        return self._splines[degree]

    @composed
    def __call__(self, xi: Any, method: Any = None, *, nu: Any = None) -> Tensor:
        """Values at points.

        Args:
            xi: a tensor whose last dimension holds the coordinates, or a tuple of coordinates, which broadcast.
            nu: for splines the order of the derivative in each dimension.

        Returns:
            A tensor with the shape of a coordinate, then the other dimensions of ``values``.

        Raises:
            ShapeError: the wrong number of coordinates.
            ArgumentError: points beyond the grid, with ``bounds_error``.

        Gradient:
            By evaluation points, ``points`` and ``values``.
        """
        name, count = "RegularGridInterpolator", len(self.grid)
        method = self.method if method is None else method
        choice(name, method, METHODS, "method")
        self._check(method)
        if nu is not None and method not in DEGREES:
            raise ArgumentError(f"`{name}`: `nu` is for splines, not for {method}.", argument="nu")
        xi = coordinates(name, xi, count)
        if not len(xi.shape) or xi.shape[-1] != count:
            raise ShapeError(
                f"`{name}`: `xi` must have {count} coordinates along its last dimension; got {tuple(xi.shape)}.",
                argument="xi",
            )
        given = {f"points[{i}]": p for i, p in enumerate(self.grid)}
        xi, *grid, values = real_with(name, 1 + count, xi=xi, **given, values=self.values)
        places = [xi[..., i] for i in range(count)]
        beyond = None
        for i, (p, v) in enumerate(zip(grid, places)):
            off = ops.logical_and(outside(p[0], p[-1], v), ops.logical_not(ops.isnan(v)))
            beyond = off if beyond is None else ops.logical_or(beyond, off)
            seen = known(off) if self.bounds_error else None
            if seen is not None and seen.any():
                raise ArgumentError(
                    f"`{name}`: `xi` has a point beyond the grid in dimension {i}.",
                    argument="xi",
                    hint="`bounds_error=False`, with a `fill_value`",
                )
        if method in DEGREES:
            knots, c = self._solved(DEGREES[method])
            orders = [0] * count if nu is None else list(nu)
            y = tensor_product(knots, c, [DEGREES[method]] * count, places, orders)
        else:
            y = {"linear": _linear, "nearest": _nearest, "pchip": _monotone}[method](grid, values, places)
        rest = len(values.shape) - count
        if not self.bounds_error and self.fill_value is not None:
            y = ops.where(add_last_dims(beyond, rest), self.fill_value, y)
        unknown = ops.any(ops.isnan(xi), -1)
        return ops.where(add_last_dims(unknown, rest), ops.full_like(y, math.nan), y)


def _cells(grid, places) -> tuple:
    """Return in each dimension the index of a point's cell and its relative position in the cell."""
    numbers, shares = [], []
    for p, v in zip(grid, places):
        i = interval(p, v)
        start = ops.take(p, i, 0)
        numbers.append(i)
        shares.append((v - start) / (ops.take(p, i + 1, 0) - start) if p.shape[0] > 1 else ops.zeros_like(v))
    return numbers, shares


def _gathered(values, numbers):
    """Gather elements by indices into a tensor's first dimensions."""
    flat, sizes = 0, [int(n) for n in values.shape]
    for i, n in zip(numbers, sizes):
        flat = flat * n + i
    count = len(numbers)
    return ops.take(ops.reshape(values, (math.prod(sizes[:count]), *sizes[count:])), flat, 0)


def _linear(grid, values, places):
    numbers, shares = _cells(grid, places)
    rest, total = len(values.shape) - len(grid), None
    for corner in itertools.product(*[(0, 1) if p.shape[0] > 1 else (0,) for p in grid]):
        weight = None
        for up, share in zip(corner, shares):
            part = share if up else 1 - share
            weight = part if weight is None else weight * part
        part = add_last_dims(weight, rest) * _gathered(values, [i + up for i, up in zip(numbers, corner)])
        total = part if total is None else total + part
    return total


def _nearest(grid, values, places):
    numbers, shares = _cells(grid, places)
    return _gathered(values, [ops.where(share <= 0.5, i, i + 1) for i, share in zip(numbers, shares)])


def _monotone(grid, values, places):
    """Interpolate by PCHIP along the last dimension of the grid, then its results along the one before, and so on."""
    shape, count = tuple(places[0].shape), len(grid)
    places = [ops.reshape(v, (-1,)) for v in places]
    y = PchipInterpolator(grid[-1], values, count - 1)(places[-1])
    y = ops.moveaxis(y, count - 1, 0)  # points first
    points = int(places[0].shape[0])
    for p, v in zip(grid[-2::-1], places[-2::-1]):
        y = ops.moveaxis(y, [-1 - (len(values.shape) - count), 0], [0, 1]) if len(y.shape) > 2 else ops.transpose(y)
        found = PchipInterpolator(p, y)
        i = interval(p, v)
        sizes = [int(n) for n in found.c.shape]
        c = ops.reshape(found.c, (4, sizes[1] * points, *sizes[3:]))
        u = add_last_dims(v - ops.take(p, i, 0), len(sizes) - 3)
        c = ops.take(c, i * points + constant_like(np.arange(points), i), 1)
        y = ((c[0] * u + c[1]) * u + c[2]) * u + c[3]
    return ops.reshape(y, (*shape, *tuple(y.shape)[1:]))


def tensor_product(knots, c, degrees, places, orders):
    """Return values or derivatives of a tensor product of splines; ``c`` has the coefficients' dimensions first."""
    count, rank = len(knots), len(places[0].shape)
    flat, weight = 0, None
    for i, (t, k, v, order) in enumerate(zip(knots, degrees, places, orders)):
        first, h = weights(t, k, v, int(order))
        lift = (1,) * i + (k + 1,) + (1,) * (count - 1 - i)
        at = shifted_ranges(first, 0, k + 1)
        at, h = (ops.reshape(z, (*v.shape, *lift)) for z in (at, h))
        flat = flat * int(c.shape[i]) + at
        weight = h if weight is None else weight * h
    sizes = [int(n) for n in c.shape]
    parts = ops.take(ops.reshape(c, (math.prod(sizes[:count]), *sizes[count:])), flat, 0)
    return ops.sum(add_last_dims(weight, len(sizes) - count) * parts, tuple(range(rank, rank + count)))


@composed
def interpn(
    points: Any,
    values: Tensor,
    xi: Any,
    method: Any = "linear",
    bounds_error: bool = True,
    fill_value: Any = math.nan,
) -> Tensor:
    """Interpolation on a rectilinear grid by :class:`RegularGridInterpolator`.

    Args:
        method: a method of that class, or ``"splinef2d"`` for cubic splines in two dimensions.

    Returns:
        A tensor with the shape of a coordinate, then the other dimensions of ``values``.

    Raises:
        As for :class:`RegularGridInterpolator`.
        ArgumentError: extrapolation with ``"splinef2d"``.

    Gradient:
        By evaluation points, ``points``, ``values`` and ``fill_value``.
    """
    choice("interpn", method, (*METHODS, "splinef2d"), "method")
    if method == "splinef2d":
        if not bounds_error and fill_value is None:
            raise ArgumentError('`interpn`: "splinef2d" does not extrapolate.', argument="fill_value")
        method = "cubic"
    return RegularGridInterpolator(points, values, method, bounds_error, fill_value)(xi)
