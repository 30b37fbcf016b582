"""Interpolation of scattered points: radial basis functions, linear on a triangulation, and nearest neighbour.

Triangulations and searches are SciPy's and need known points; radial basis functions also run in compiled functions.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from ... import _scipy, ops
from ...annotations import Tensor
from ...backends import tracing
from ...errors import ArgumentError, ShapeError
from ...ops._checks import choice, integer
from ...ops.reductions import kink
from .._define import composed
from .._solving import numbers
from .._tensors import wrong
from ._shared import add_last_dims, leading, real_with
from .grids import coordinates
from .lines import interp1d

__all__ = ["LinearNDInterpolator", "NearestNDInterpolator", "RBFInterpolator", "griddata"]

# Radial basis functions ----------------------------------------------------------------------------------------------


def _plate(s):
    zero = s == 0
    return ops.where(zero, ops.zeros_like(s), 0.5 * s * ops.log(ops.where(zero, ops.ones_like(s), s)))


def _root(s):
    """Return the square root with derivative 0 at 0."""
    zero = s == 0
    return ops.where(zero, ops.zeros_like(s), ops.sqrt(ops.where(zero, ops.ones_like(s), s)))


KERNELS = {
    "linear": (lambda s: -_root(s), 0),
    "thin_plate_spline": (_plate, 1),
    "cubic": (lambda s: s * _root(s), 1),
    "quintic": (lambda s: -(s * s) * _root(s), 2),
    "multiquadric": (lambda s: -ops.sqrt(s + 1), 0),
    "inverse_multiquadric": (lambda s: 1 / ops.sqrt(s + 1), -1),
    "inverse_quadratic": (lambda s: 1 / (s + 1), -1),
    "gaussian": (lambda s: ops.exp(-s), -1),
}
"""Kernels as functions of the squared distance, each with the lowest degree of polynomial for a unique interpolant."""
ROUGH = ("linear", "thin_plate_spline")
"""Kernels without a second derivative at distance 0."""
SCALED = ("linear", "thin_plate_spline", "cubic", "quintic")


class RBFInterpolator:
    """Interpolation or smoothing by radial basis functions plus a polynomial (Fasshauer 2007).

    Args:
        y: the points, rows of a matrix.
        d: the values, as many rows as points.
        neighbors: the number of nearest points used at each evaluation point; by default all.
        smoothing: the smoothing parameter, a number or one for each point; 0 interpolates.
        kernel: the radial function; one of SciPy's names.
        epsilon: the shape parameter, a factor of distances; needed for kernels that do not merely scale with it.
        degree: the degree of the polynomial, -1 for none; by default the lowest that makes the result unique.

    Returns:
        A callable that takes evaluation points.

    Raises:
        ShapeError: shapes that do not match.
        ArgumentError: an unknown kernel; no ``epsilon``; too few points.

    Gradient:
        By evaluation points, ``y``, ``d``, ``smoothing`` and ``epsilon``, through the linear system. At a data point
        derivatives exist up to the order of the kernel; the next order is NaN for ``"linear"`` and
        ``"thin_plate_spline"``, 0 for ``"cubic"`` and ``"quintic"``. The choice of ``neighbors`` counts as constant.
    """

    @composed
    def __init__(
        self,
        y: Tensor,
        d: Tensor,
        neighbors: Any = None,
        smoothing: Tensor = 0.0,
        kernel: Any = "thin_plate_spline",
        epsilon: Any = None,
        degree: Any = None,
    ):
        name = "RBFInterpolator"
        choice(name, kernel.lower() if isinstance(kernel, str) else kernel, tuple(KERNELS), "kernel")
        kernel = kernel.lower()
        if epsilon is None and kernel not in SCALED:
            raise ArgumentError(f"`{name}`: `epsilon` must be given for {kernel}.", argument="epsilon")
        y, smoothing, epsilon, d = real_with(
            name, 3, y=y, smoothing=smoothing, epsilon=1.0 if epsilon is None else epsilon, d=d
        )
        if len(y.shape) != 2:
            raise ShapeError(f"`{name}`: `y` must be a matrix; got the shape {tuple(y.shape)}.", argument="y")
        count, size = (int(n) for n in y.shape)
        if not len(d.shape) or d.shape[0] != count:
            raise ShapeError(f"`{name}`: `d` must have {count} rows, as many as `y`.", argument="d")
        if tuple(smoothing.shape) not in ((), (count,)):
            raise wrong("smoothing", "be a number or a vector for the points", kind=ShapeError, of=name)
        degree = max(KERNELS[kernel][1], 0) if degree is None else integer(name, degree, "degree", -1)
        self.neighbors = None if neighbors is None else min(integer(name, neighbors, "neighbors", 1), count)
        self.powers = _powers(size, degree)
        if len(self.powers) > (count if self.neighbors is None else self.neighbors):
            raise wrong("y", f"have at least {len(self.powers)} points for degree {degree}", of=name)
        self.y, self.d, self.kernel, self.epsilon = y, d, kernel, epsilon
        self.smoothing = smoothing if len(smoothing.shape) else ops.broadcast_to(smoothing, (count,))
        self._values = ops.reshape(d, (count, -1))
        if self.neighbors is None:
            self._solved = self._system(y, self._values, self.smoothing, self.epsilon)

    def _functions(self, x, y, frame, epsilon):
        """Return the radial functions around ``y`` and the polynomial's terms at ``x``."""
        away = (ops.expand_dims(x, -2) - ops.expand_dims(y, -3)) * epsilon
        squares = ops.sum(away * away, -1)
        near = KERNELS[self.kernel][0](squares)
        if self.kernel in ROUGH:
            near = near + kink(away, ops.expand_dims(squares == 0, -1))[..., 0]
        if not len(self.powers):
            return near
        shift, scale = frame
        z = (x - shift) / scale
        terms = []
        for row in self.powers:
            term = ops.ones_like(z[..., 0])
            for axis, power in enumerate(row):
                for _ in range(int(power)):
                    term = term * z[..., axis]
            terms.append(term)
        return ops.concatenate([near, ops.stack(terms, -1)], -1)

    def _system(self, y, d, smoothing, epsilon) -> tuple:
        # The centre and scale of the polynomial do not change the interpolant, so they are held constant.
        held = ops.stop_gradient(y)
        low, high = ops.min(held, -2, keepdims=True), ops.max(held, -2, keepdims=True)
        scale = (high - low) / 2
        frame = (low + high) / 2, ops.where(scale == 0, ops.ones_like(scale), scale)
        n, r = int(y.shape[-2]), len(self.powers)
        rows = self._functions(y, y, frame, epsilon)
        near = rows[..., :n] + ops.where(np.eye(n, dtype=bool), ops.expand_dims(smoothing, -1), 0.0)
        if r:
            terms = rows[..., n:]
            turned = ops.swapaxes(terms, -1, -2)
            under = ops.concatenate([turned, ops.zeros_like(turned[..., :r])], -1)
            near = ops.concatenate([ops.concatenate([near, terms], -1), under], -2)
            d = ops.concatenate([d, ops.zeros_like(d[..., :r, :])], -2)
        return frame, ops.solve(near, d)

    @composed
    def __call__(self, x: Tensor) -> Tensor:
        """Values at points, the rows of a matrix.

        Returns:
            A tensor with as many rows, then the other dimensions of the values.

        Raises:
            ShapeError: a different number of columns than the data's points.

        Gradient:
            By evaluation points, points, values, ``smoothing`` and ``epsilon``.
        """
        name = "RBFInterpolator"
        x, y, smoothing, epsilon, d = real_with(
            name, 4, x=x, y=self.y, smoothing=self.smoothing, epsilon=self.epsilon, d=self._values
        )
        if len(x.shape) != 2 or x.shape[1] != y.shape[1]:
            raise wrong("x", f"be a matrix of {y.shape[1]} columns", f"the shape {tuple(x.shape)}", ShapeError, of=name)
        shape = (int(x.shape[0]), *tuple(self.d.shape)[1:])
        if self.neighbors is None:
            frame, c = self._solved
            return ops.reshape(ops.matmul(self._functions(x, y, frame, epsilon), c), shape)
        tree = _scipy.spatial.KDTree(numbers(name, y, "y"))
        _, near = tree.query(numbers(name, x, "x"), [*range(1, self.neighbors + 1)])
        near = np.sort(near, 1)
        y, d, smoothing = (ops.take(z, near, 0) for z in (y, d, smoothing))
        frame, c = self._system(y, d, smoothing, epsilon)
        rows = self._functions(ops.expand_dims(x, -2), y, frame, epsilon)
        return ops.reshape(ops.matmul(rows, c), shape)


@tracing.constant
def _powers(size: int, degree: int) -> np.ndarray:
    """Return the powers of the coordinates in each term of a polynomial."""
    rows = [
        np.bincount(np.array(which, int), minlength=size)
        for total in range(degree + 1)
        for which in itertools.combinations_with_replacement(range(size), total)
    ]
    return np.array(rows, int).reshape(-1, size)


# Triangles and neighbours --------------------------------------------------------------------------------------------


class _Points:
    """Base class with points, values and a scale of the coordinates; SciPy gets the points as known numbers."""

    def _set(self, name: str, points, values, rescale: bool) -> None:
        points = coordinates(name, points)
        self.points, values = real_with(name, 1, points=points, values=values)
        if len(self.points.shape) != 2:
            raise ShapeError(f"`{name}`: points must be the rows of a matrix.", argument="points")
        self.values, _ = leading(name, values, 0, int(self.points.shape[0]), "values")
        at = numbers(name, self.points, "points").astype(float)
        self._shift, self._scale = np.zeros(at.shape[1]), np.ones(at.shape[1])
        if rescale:
            self._shift, size = at.mean(0), np.ptp(at, 0)
            self._scale = np.where(size > 0, size, 1.0)
        self._at = self._scaled(at)

    def _scaled(self, at: np.ndarray) -> np.ndarray:
        return (at - self._shift) / self._scale

    def _places(self, name: str, args) -> tuple:
        """Return evaluation points, points and values as tensors, and the evaluation points as scaled numbers."""
        xi = coordinates(name, args, int(self.points.shape[1]))
        if xi.shape[-1] != self.points.shape[1]:
            raise ShapeError(
                f"`{name}`: points must have {self.points.shape[1]} coordinates; got the shape {tuple(xi.shape)}.",
                argument="args",
            )
        xi, points, values = real_with(name, 2, xi=xi, points=self.points, values=self.values)
        return xi, points, values, self._scaled(numbers(name, xi, "args").astype(float))


class LinearNDInterpolator(_Points):
    """Linear interpolation on the Delaunay triangulation of points.

    Args:
        points: the rows of a matrix, a tuple of coordinates, or SciPy's ``Delaunay`` of the points.
        values: the values, as many rows as points.
        fill_value: the value outside the convex hull.
        rescale: True to scale coordinates to the same range before the triangulation.

    Returns:
        A callable that takes evaluation points.

    Raises:
        ShapeError: shapes that do not match.
        ArgumentError: points that have no triangulation.
        JitError: a call, or points, in a compiled function, where values are not known.

    Gradient:
        By evaluation points, points, values and ``fill_value``; the triangulation counts as constant.
    """

    @composed
    def __init__(self, points: Any, values: Tensor, fill_value: Any = math.nan, rescale: bool = False):
        name = "LinearNDInterpolator"
        made = points if isinstance(points, _scipy.spatial.Delaunay) else None
        self._set(name, points if made is None else made.points, values, rescale)
        try:
            self.tri = _scipy.spatial.Delaunay(self._at) if made is None else made
        except Exception as error:
            text = (str(error).strip().splitlines() or ["no triangulation"])[0]
            raise ArgumentError(f"`{name}`: `points` have no triangulation: {text}", argument="points") from error
        self.fill_value = fill_value

    @composed
    def __call__(self, *args) -> Tensor:
        """Values at points, given as a tensor whose last dimension holds the coordinates, or as one tensor for each.

        Returns:
            A tensor with the shape of a coordinate, then the other dimensions of the values.

        Gradient:
            By evaluation points, points and values.
        """
        xi, points, values, at = self._places("LinearNDInterpolator", args)
        found = self.tri.find_simplex(at)
        corners = self.tri.simplices[np.maximum(found, 0)]
        vertices, parts = ops.take(points, corners, 0), ops.take(values, corners, 0)
        last = vertices[..., -1, :]
        edges = ops.swapaxes(vertices[..., :-1, :] - ops.expand_dims(last, -2), -1, -2)
        shares = ops.solve(edges, ops.expand_dims(xi - last, -1))[..., 0]
        shares = ops.concatenate([shares, 1 - ops.sum(shares, -1, keepdims=True)], -1)
        rest, rank = len(values.shape) - 1, len(xi.shape) - 1
        y = ops.sum(add_last_dims(shares, rest) * parts, rank)
        inside = np.reshape(found >= 0, (*found.shape, *(1,) * rest))
        return ops.where(inside, y, self.fill_value)


class NearestNDInterpolator(_Points):
    """Nearest-neighbour interpolation.

    Args:
        x: the points, rows of a matrix, or a tuple of coordinates.
        y: the values, as many rows as points.
        rescale: True to scale coordinates to the same range before distances are compared.
        tree_options: settings of SciPy's ``cKDTree``.

    Returns:
        A callable that takes evaluation points.

    Raises:
        ShapeError: shapes that do not match.
        JitError: a call, or points, in a compiled function, where values are not known.

    Gradient:
        By values; by evaluation points and points it is 0.
    """

    @composed
    def __init__(self, x: Any, y: Tensor, rescale: bool = False, tree_options: Any = None):
        self._set("NearestNDInterpolator", x, y, rescale)
        self.tree = _scipy.spatial.cKDTree(self._at, **(tree_options or {}))

    @composed
    def __call__(self, *args, **query_options) -> Tensor:
        """Values at points, given as a tensor whose last dimension holds the coordinates, or as one tensor for each.

        Args:
            **query_options: settings of the tree's search.

        Returns:
            A tensor with the shape of a coordinate, then the other dimensions of the values.

        Gradient:
            By values.
        """
        _, _, values, at = self._places("NearestNDInterpolator", args)
        distance, found = self.tree.query(at, **query_options)
        there = np.isfinite(distance)
        y = ops.take(values, np.where(there, found, 0), 0)
        return ops.where(np.reshape(there, (*there.shape, *(1,) * (len(values.shape) - 1))), y, math.nan)


@composed
def griddata(
    points: Any,
    values: Tensor,
    xi: Any,
    method: Any = "linear",
    fill_value: Any = math.nan,
    rescale: bool = False,
) -> Tensor:
    """Interpolation of scattered points.

    Args:
        points: the rows of a matrix, or a tuple of coordinates; in one dimension a vector.
        xi: evaluation points, in the same forms.
        method: ``"linear"``, ``"nearest"``, or in one dimension ``"cubic"``.
        fill_value: the value outside the convex hull; unused by ``"nearest"``.
        rescale: True to scale coordinates to the same range.

    Returns:
        A tensor with the shape of a coordinate, then the other dimensions of ``values``.

    Raises:
        ShapeError: shapes that do not match.
        ArgumentError: ``"cubic"`` in several dimensions, whose slopes are found by iteration.

    Gradient:
        By evaluation points, points and values; for ``"nearest"`` by values.
    """
    name = "griddata"
    choice(name, method, ("linear", "nearest", "cubic"), "method")
    points = coordinates(name, points)
    if points.shape[-1] == 1:
        xi = xi[0] if isinstance(xi, tuple) else xi
        fill = "extrapolate" if method == "nearest" else fill_value
        flat = ops.reshape(points, (-1,))
        return interp1d(flat, values, method, 0, bounds_error=False, fill_value=fill)(xi)
    if method == "nearest":
        return NearestNDInterpolator(points, values, rescale)(xi)
    if method == "linear":
        return LinearNDInterpolator(points, values, fill_value, rescale)(xi)
    raise ArgumentError(
        f'`{name}`: `method` "cubic" is for one dimension here; `RBFInterpolator` has smooth surfaces.',
        argument="method",
    )
