"""Piecewise polynomials in the power basis (:class:`PPoly`) and in the Bernstein basis (:class:`BPoly`).

They convert into each other, differentiate and integrate exactly.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ... import _scipy, ops
from ...annotations import Integer, Tensor
from ...errors import ArgumentError, ArgumentTypeError, ShapeError
from ...functional.implicit import stepped
from ...ops._checks import check_axis, integer, known
from .._define import composed, family
from .._solving import numbers
from .._tensors import constant_like, is_complex, wrong
from ._shared import BEYOND, add_last_dims, alike, interval, mode_of, outside, placed, real_with, rows_of, wrapped
from .splines import BSpline, spline_of

__all__ = ["BPoly", "PPoly"]


def _rising(n: int, nu: int) -> list[float]:
    """Return the denominators of the ``nu``-th integral of the powers, highest of ``n`` first."""
    return [float(math.prod(range(p, p + nu))) for p in range(n, 0, -1)]


class Pieces:
    """Base class of piecewise polynomials; ``c`` and ``x`` are tensors, ``axis`` is that of the data."""

    c: Any
    x: Any
    axis: int
    extrapolate: Any

    @composed
    def __init__(self, c: Tensor, x: Tensor, extrapolate=None, axis: Integer = 0):
        name = type(self).__name__
        x, c = real_with(name, 1, x=x, c=c)
        if len(c.shape) < 2 or c.shape[0] == 0:
            raise ShapeError(
                f"`{name}`: `c` must have a dimension for powers, with elements, and one for pieces; got the shape "
                f"{tuple(c.shape)}.",
                argument="c",
            )
        self.axis = check_axis(name, axis, len(c.shape) - 1, "axis")
        if self.axis:
            c = ops.moveaxis(c, [self.axis, self.axis + 1], [0, 1])
        if len(x.shape) != 1 or x.shape[0] < 2 or c.shape[1] != x.shape[0] - 1:
            raise ShapeError(
                f"`{name}`: `x` must be a vector of at least 2 elements, one more than `c` has pieces; got the shapes "
                f"{tuple(x.shape)} and {tuple(c.shape)}.",
                argument="x",
            )
        values = known(x)
        if values is not None and not ((np.diff(values) >= 0).all() or (np.diff(values) <= 0).all()):
            raise ArgumentError(f"`{name}`: `x` must be sorted.", argument="x")
        self.c, self.x = c, x
        self.extrapolate = True if extrapolate is None else mode_of(name, extrapolate)

    @classmethod
    def construct_fast(cls, c, x, extrapolate=None, axis=0):
        """Return a piecewise polynomial without checks of the arguments."""
        made = cls.__new__(cls)
        made.c, made.x, made.axis = c, x, axis
        made.extrapolate = True if extrapolate is None else extrapolate
        return made

    def _like(self, c, extrapolate=None, kind=None):
        extrapolate = self.extrapolate if extrapolate is None else extrapolate
        return (kind or self).construct_fast(c, self.x, extrapolate, self.axis)

    @composed
    def __call__(self, x: Tensor, nu: Integer = 0, extrapolate=None) -> Tensor:
        """Values or derivatives at points.

        Args:
            nu: the order of the derivative.
            extrapolate: True to extrapolate by the outer pieces, False for NaN, or ``"periodic"``.

        Returns:
            A tensor with the dimensions of ``x`` in place of ``axis``.

        Gradient:
            By ``x``, coefficients and sites; at a site it is that of the piece to its right.
        """
        name = type(self).__name__
        how = self.extrapolate if extrapolate is None else mode_of(name, extrapolate)
        nu = integer(name, nu, "nu", 0)
        if nu:
            return self.derivative(nu)(x, 0, how)
        v, sites, c = real_with(name, 2, x=x, sites=self.x, c=self.c)
        rank = len(v.shape)
        first, last = sites[0], sites[-1]
        if how == "periodic":
            v = wrapped(first, last, v)[0]
        way = ops.stop_gradient(ops.where(last < first, -ops.ones_like(last), ops.ones_like(last)))
        i = interval(way * sites, way * v)
        start = ops.take(sites, i, 0)
        y = self._piece(ops.take(c, i, 1), v - start, ops.take(sites, i + 1, 0) - start)
        beyond = ops.isnan(v) if how is True else outside(way * first, way * last, way * v)
        y = ops.where(add_last_dims(beyond, len(c.shape) - 2), ops.full_like(y, math.nan), y)
        return placed(y, rank, self.axis)

    def derivative(self, nu: Integer = 1):
        """Return the derivative of order ``nu``; for a negative order the antiderivative.

        Returns:
            An object of the same class.

        Gradient:
            Through its coefficients.
        """
        nu = integer(type(self).__name__, nu, "nu")
        return self.antiderivative(-nu) if nu < 0 else self._like(self._differentiated(nu))

    def antiderivative(self, nu: Integer = 1):
        """Return the antiderivative of order ``nu``, which is 0 at the first site; for a negative order the derivative.

        Returns:
            An object of the same class.

        Gradient:
            Through its coefficients.
        """
        nu = integer(type(self).__name__, nu, "nu")
        if nu <= 0:
            return self.derivative(-nu)
        found = self
        for _ in range(nu):
            found = found._like(found._integrated(), False if self.extrapolate == "periodic" else None)
        return found

    @composed
    def integrate(self, a: Tensor, b: Tensor, extrapolate=None) -> Tensor:
        """Return the integral from ``a`` to ``b``.

        Returns:
            A tensor of the data's other dimensions; NaN for limits beyond the ends without extrapolation.

        Gradient:
            By limits, coefficients and sites.
        """
        name = type(self).__name__
        how = self.extrapolate if extrapolate is None else mode_of(name, extrapolate)
        whole_ = self._like(self._integrated())
        whole_.axis = 0

        def until(v):
            if how != "periodic":
                return whole_(v, 0, how)
            v, sites = real_with(name, 2, limit=v, sites=self.x)
            v, turns = wrapped(sites[0], sites[-1], v)
            rest = len(whole_.c.shape) - 2
            return add_last_dims(turns, rest) * whole_(sites[-1], 0, True) + whole_(v, 0, True)

        return until(b) - until(a)

    def extend(self, c: Tensor, x: Tensor) -> None:
        """Add pieces before the first or after the last one; ``x`` are their sites without the shared end.

        Raises:
            ShapeError: shapes that do not match.
            ArgumentError: sites that do not continue one of the ends.

        Gradient:
            Through the coefficients.
        """
        name = type(self).__name__
        sites, more, mine, c = real_with(name, 2, sites=self.x, x=x, mine=self.c, c=c)
        if len(more.shape) != 1 or len(c.shape) != len(mine.shape) or tuple(c.shape[2:]) != tuple(mine.shape[2:]):
            raise wrong("c", "have the shape of the other coefficients", tuple(c.shape), ShapeError, of=name)
        if more.shape[0] != c.shape[1]:
            raise ShapeError(f"`{name}`: `x` must have an element for each piece of `c`.", argument="x")
        if c.shape[1] == 0:
            return
        old, new = (numbers(name, values, "x") for values in (sites, more))
        sign = 1 if old[-1] >= old[0] else -1
        order = max(int(c.shape[0]), int(mine.shape[0]))
        mine, c = self._raised(mine, order), self._raised(c, order)
        if (sign * np.diff(new) >= 0).all() and sign * new[0] >= sign * old[-1]:
            self.c, self.x = ops.concatenate([mine, c], 1), ops.concatenate([sites, more], 0)
        elif (sign * np.diff(new) >= 0).all() and sign * new[-1] <= sign * old[0]:
            self.c, self.x = ops.concatenate([c, mine], 1), ops.concatenate([more, sites], 0)
        else:
            raise wrong("x", "continue the sites at one of their ends, in their order", of=name)

    def _piece(self, c, u, h):
        raise NotImplementedError

    def _differentiated(self, nu: int):
        raise NotImplementedError

    def _integrated(self):
        raise NotImplementedError

    @staticmethod
    def _raised(c, order: int):
        raise NotImplementedError

    def _steps(self):
        """Return the lengths of the pieces, shaped for products with coefficients of one power."""
        return add_last_dims(self.x[1:] - self.x[:-1], len(self.c.shape) - 2)


def _exclusive_sums(parts):
    """Return for each piece the sum of ``parts`` over the pieces before it."""
    return ops.concatenate([ops.zeros_like(parts[:1]), ops.cumsum(parts, 0)[:-1]], 0)


in_pieces = family(
    {
        "x": "the sites, sorted, one more than pieces.",
        "extrapolate": BEYOND,
        "axis": "the dimension of the data that evaluation points replace.",
    },
    returns="An object; its attributes ``c`` and ``x`` are tensors.",
    raises="ShapeError: shapes that do not match.\nArgumentError: sites that are not in order.",
    gradient="By evaluation points, ``c`` and ``x``.",
    within=lambda kind: kind,
)


@in_pieces
class PPoly(Pieces):
    """Piecewise polynomial in the power basis: on piece ``i`` ``sum(c[m, i] * (v - x[i])**(k - m - 1))``.

    Args:
        c: coefficients; the first dimension holds the ``k`` powers, highest first, the second the pieces, further
            dimensions those of the data.
    """

    def _piece(self, c, u, h):
        u = add_last_dims(u, len(c.shape) - 1 - len(u.shape))
        y = c[0]
        for m in range(1, c.shape[0]):
            y = y * u + c[m]
        return y

    def _differentiated(self, nu: int):
        k = int(self.c.shape[0])
        if nu == 0:
            return self.c
        if nu >= k:
            return ops.zeros_like(self.c[:1])
        return self.c[: k - nu] * add_last_dims(constant_like(_rising(k - nu, nu), self.c), len(self.c.shape) - 1)

    def _integrated(self):
        k = int(self.c.shape[0])
        c = self.c / add_last_dims(constant_like(_rising(k, 1), self.c), len(self.c.shape) - 1)
        none = ops.zeros_like(c[:1])
        ends = self._piece(ops.concatenate([c, none], 0), self.x[1:] - self.x[:-1], None)
        return ops.concatenate([c, ops.expand_dims(_exclusive_sums(ends), 0)], 0)

    @staticmethod
    def _raised(c, order: int):
        return ops.concatenate([ops.zeros_like(c[:1])] * (order - int(c.shape[0])) + [c], 0)

    def solve(self, y=0.0, discontinuity: bool = True, extrapolate=None):
        """Return the points where the polynomial equals ``y``, a known number; SciPy finds them.

        Returns:
            A vector, in ascending order.

        Raises:
            ShapeError: data of more dimensions, whose solutions would be vectors of different lengths.
            JitError: in a compiled function, where values are not known.

        Gradient:
            By coefficients, sites and ``y``, by the implicit function theorem; 0 for a point where the polynomial
            jumps.
        """
        if len(self.c.shape) != 2 or is_complex(self.c):
            raise ShapeError("`PPoly.solve`: `c` must be a real matrix: there is one vector of places.", argument="c")
        how = self.extrapolate if extrapolate is None else mode_of("PPoly.solve", extrapolate)
        level = float(numbers("PPoly.solve", y, "y"))
        c, x = (numbers("PPoly.solve", part, name).astype(float) for part, name in ((self.c, "c"), (self.x, "x")))
        fixed = _scipy.interpolate.PPoly(c, x).solve(level, bool(discontinuity), bool(how))
        y, of_library = alike(y, self.c)
        if type(of_library) is not type(self.c):
            sites = alike(y, self.x)[1]
            return self.construct_fast(of_library, sites, self.extrapolate, self.axis).solve(
                y, discontinuity, extrapolate
            )
        v, curve = constant_like(fixed, self.c), self._like(self.c)
        size = np.abs(c).max(initial=0.0)
        meets = np.abs(numbers("PPoly.solve", curve(v, 0, True), "c") - level) <= 1e-6 * (1 + size)
        slope = self.derivative()

        def inverse(rest, v):
            return ops.where(meets, ops.divide_no_nan(rest, slope(v, 0, True)), 0.0)

        return stepped(lambda v: curve(v, 0, True) - y, inverse, v, moves=True)

    def roots(self, discontinuity: bool = True, extrapolate=None):
        """Return the roots of the polynomial, see :meth:`solve`.

        Returns:
            A vector, in ascending order.

        Gradient:
            As for :meth:`solve`.
        """
        return self.solve(0.0, discontinuity, extrapolate)

    @classmethod
    def from_spline(cls, tck, extrapolate=None):
        """Convert a spline, a :class:`BSpline` or its knots, coefficients and degree.

        Returns:
            An object.

        Gradient:
            By the spline's coefficients and knots.
        """
        spline = spline_of("PPoly.from_spline", tck)
        if extrapolate is None and isinstance(tck, BSpline):
            extrapolate = tck.extrapolate
        k, start = spline.k, spline.t[:-1]
        parts = [spline(start, m, True) / math.factorial(m) for m in range(k, -1, -1)]
        return cls.construct_fast(ops.stack(parts), spline.t, extrapolate)

    @classmethod
    def from_bernstein_basis(cls, bp, extrapolate=None):
        """Convert a piecewise polynomial in the Bernstein basis.

        Returns:
            An object.

        Gradient:
            By its coefficients and sites.
        """
        if not isinstance(bp, BPoly):
            raise ArgumentTypeError("`PPoly.from_bernstein_basis`: `bp` must be a BPoly.", argument="bp")
        k = int(bp.c.shape[0]) - 1
        matrix = np.zeros((k + 1, k + 1))
        for a in range(k + 1):
            for s in range(a, k + 1):
                matrix[k - s, a] = (-1) ** (a + s) * math.comb(k, a) * math.comb(k - a, s - a)
        h = bp._steps()
        c = ops.stack([part / h ** (k - m) for m, part in enumerate(_mixed(matrix, bp.c))])
        return bp._like(c, extrapolate, cls)


def _mixed(matrix: np.ndarray, c) -> list:
    """Return the product of a constant matrix with the coefficients, as a list of rows."""
    return [sum((float(w) * c[a] for a, w in enumerate(row) if w), ops.zeros_like(c[0])) for row in matrix]


@in_pieces
class BPoly(Pieces):
    """Piecewise polynomial in the Bernstein basis: on piece ``i`` ``sum(c[a, i] * comb(k, a) * s**a * (1-s)**(k-a))``.

    Here ``s`` is the relative position in the piece, ``(v - x[i]) / (x[i + 1] - x[i])``, and ``k`` the degree.

    Args:
        c: coefficients; the first dimension holds the ``k + 1`` basis functions, the second the pieces, further
            dimensions those of the data.
    """

    def _piece(self, c, u, h):
        s = add_last_dims(u / h, len(c.shape) - 1 - len(u.shape))
        while c.shape[0] > 1:  # de Casteljau's algorithm
            c = c[:-1] * (1 - s) + c[1:] * s
        return c[0]

    def _differentiated(self, nu: int):
        c = self.c
        for _ in range(nu):
            k = int(c.shape[0]) - 1
            c = k * (c[1:] - c[:-1]) / self._steps() if k else ops.zeros_like(c)
        return c

    def _integrated(self):
        k, h = int(self.c.shape[0]), self._steps()
        sums = ops.cumsum(self.c, 0) / k * h
        return ops.concatenate([ops.zeros_like(sums[:1]), sums], 0) + _exclusive_sums(sums[-1])

    @staticmethod
    def _raised(c, order: int):
        k, d = int(c.shape[0]) - 1, order - int(c.shape[0])
        matrix = np.zeros((k + d + 1, k + 1))
        for a in range(k + 1):
            for j in range(d + 1):
                matrix[a + j, a] = math.comb(k, a) * math.comb(d, j) / math.comb(k + d, a + j)
        return ops.stack(_mixed(matrix, c))

    @classmethod
    def from_power_basis(cls, pp, extrapolate=None):
        """Convert a piecewise polynomial in the power basis.

        Returns:
            An object.

        Gradient:
            By its coefficients and sites.
        """
        if not isinstance(pp, PPoly):
            raise ArgumentTypeError("`BPoly.from_power_basis`: `pp` must be a PPoly.", argument="pp")
        k = int(pp.c.shape[0]) - 1
        matrix = np.zeros((k + 1, k + 1))
        for a in range(k + 1):
            for j in range(k - a, k + 1):
                matrix[j, a] = math.comb(j, k - a) / math.comb(k, k - a)
        h = pp._steps()
        scaled = ops.stack([pp.c[a] * h ** (k - a) for a in range(k + 1)])
        c = ops.stack(_mixed(matrix, scaled))
        return pp._like(c, extrapolate, cls)

    @classmethod
    def from_derivatives(cls, xi: Tensor, yi, orders=None, extrapolate=None):
        """Return the piecewise polynomial with given values and derivatives at the sites.

        Args:
            xi: the sites, ascending.
            yi: for each site a list or tensor of the value and the derivatives.
            orders: the degree of the pieces, or a degree for each; by default as high as the derivatives determine.

        Returns:
            An object.

        Raises:
            ArgumentError: degrees for which too few derivatives are given.

        Gradient:
            By ``xi`` and ``yi``.
        """
        name = "BPoly.from_derivatives"
        given, count = rows_of(yi), len(rows_of(xi))
        if len(given) != count:
            raise ShapeError(f"`{name}`: `yi` must have as many elements as `xi`, {count}.", argument="yi")
        rows = [rows_of(y) for y in given]
        sizes = [len(row) for row in rows]
        flat = alike(xi, *[y for row in rows for y in row])
        x, flat = flat[0], flat[1:]
        starts = np.cumsum([0, *sizes])
        rows = [flat[starts[i] : starts[i + 1]] for i in range(count)]
        m = count - 1
        wanted = list(orders) if isinstance(orders, (list, tuple)) else [orders] * m
        if any(o is not None and o <= 0 for o in wanted):
            raise ArgumentError(f"`{name}`: `orders` must be positive.", argument="orders")
        size = max(max(sizes[i] + sizes[i + 1] for i in range(m)), *[o or 0 for o in wanted])
        parts = []
        for i, order in enumerate(wanted):
            left, right = rows[i], rows[i + 1]
            if order is not None:
                n = order + 1
                first = min(n // 2, len(left))
                second = min(n - first, len(right))
                first = min(n - second, len(left))
                if first + second != n:
                    raise ArgumentError(
                        f"`{name}`: `orders` asks for degree {order} between sites that have {len(left)} and "
                        f"{len(right)} values and derivatives.",
                        argument="orders",
                    )
                left, right = left[:first], right[:second]
            c = ops.stack(_hermite_coefficients(x[i + 1] - x[i], left, right))
            parts.append(cls._raised(c, size))
        return cls(ops.stack(parts, 1), x, extrapolate)


def _hermite_coefficients(h, left: list, right: list) -> list:
    """Return the coefficients of a piece of length ``h`` with given values and derivatives at its ends."""
    n = len(left) + len(right)
    first: list = []
    for q, y in enumerate(left):
        total = y * (h**q / math.prod(range(n - q, n)))
        first.append(total - sum((-1) ** (j + q) * math.comb(q, j) * c for j, c in enumerate(first)))
    last: list = []
    for q, y in enumerate(right):
        total = y * ((-h) ** q / math.prod(range(n - q, n)))
        last.append(total - sum((-1) ** (j + q) * math.comb(q, j) * c for j, c in enumerate(last)))
    return [*first, *reversed(last)]
