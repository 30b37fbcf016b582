"""B-splines: the class :class:`BSpline` and the values of its basis functions.

Basis functions are computed by de Boor's recursion.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ... import ops
from ...annotations import Integer, Tensor
from ...errors import ArgumentError, ArgumentTypeError, ShapeError
from ...ops._checks import check_axis, integer, known
from .._define import composed
from .._solving import numbers
from .._tensors import constant_like
from ._shared import (
    add_last_dims,
    alike,
    ascends,
    interval,
    mode_of,
    outside,
    placed,
    real_with,
    shifted_ranges,
    vector,
    wrapped,
)

__all__ = ["BSpline"]


def weights(t, k: int, v, nu: int = 0) -> tuple:
    """Return the index of the first basis function that is nonzero at each point, and the ``k + 1`` values from there.

    Values come from de Boor's recursion, in which 0 / 0 is 0; beyond the ends the outer pieces extrapolate.

    Args:
        nu: the order of the derivatives to return.
    """
    n = int(t.shape[0]) - k - 1
    first = interval(t[k : n + 1], v)
    near: Any = ops.take(t, shifted_ranges(first, 1, 2 * k + 1), 0) if k else None
    v = ops.expand_dims(v, -1)
    h = ops.ones_like(v)
    none = ops.zeros_like(v)
    if nu > k:
        return first, ops.concatenate([none] * (k + 1), -1)
    for j in range(1, k + 1):
        low, high = near[..., k - j : k], near[..., k : k + j]
        w = ops.divide_no_nan(h, high - low)
        down, up = (w * (high - v), w * (v - low)) if j <= k - nu else (-j * w, j * w)
        h = ops.concatenate([down, none], -1) + ops.concatenate([none, up], -1)
    return first, h


class BSpline:
    """Spline of degree ``k`` with knots ``t``: ``sum(c[j] * B[j](x))``.

    Args:
        t: knots, in nondecreasing order.
        c: at least ``len(t) - k - 1`` coefficients along ``axis``.
        extrapolate: beyond ``t[k]`` and ``t[-k - 1]`` True (the default) for the outer pieces, False for NaN, or
            ``"periodic"``.

    Returns:
        An object; its attributes ``t`` and ``c`` are tensors.

    Raises:
        ShapeError: numbers of knots and coefficients that do not match.
        ArgumentError: knots that decrease.

    Gradient:
        By evaluation points, coefficients and knots; at a simple knot ``k - 1`` derivatives are continuous.
    """

    t: Any
    c: Any
    k: int
    axis: int
    extrapolate: Any

    @composed
    def __init__(self, t: Tensor, c: Tensor, k, extrapolate=True, axis: Integer = 0):
        name = "BSpline"
        self.k = integer(name, k, "k", 0)
        self.extrapolate = mode_of(name, extrapolate)
        t, c = real_with(name, 1, t=t, c=c)
        n = vector(name, t, "t", 2 * self.k + 2) - self.k - 1
        ascends(name, t, "t", strictly=False)
        if (values := known(t)) is not None and len(np.unique(values[self.k : n + 1])) < 2:
            raise ArgumentError(f"`{name}`: `t` needs at least two different inner knots.", argument="t")
        if not len(c.shape) or c.shape[self._place(c, axis)] < n:
            raise ShapeError(f"`{name}`: `c` must have {n} coefficients along `axis`, by `t` and `k`.", argument="c")
        self.t, self.c = t, (ops.moveaxis(c, self.axis, 0) if self.axis else c)

    def _place(self, c, axis) -> int:
        self.axis = check_axis("BSpline", axis, len(c.shape), "axis")
        return self.axis

    @classmethod
    def construct_fast(cls, t, c, k, extrapolate=True, axis=0):
        """Return a spline without checks of the arguments."""
        made = cls.__new__(cls)
        made.t, made.c, made.k, made.extrapolate, made.axis = t, c, k, extrapolate, axis
        return made

    @property
    def tck(self) -> tuple:
        """Knots, coefficients and degree."""
        return self.t, self.c, self.k

    @property
    def _ends(self) -> tuple:
        return self.t[self.k], self.t[int(self.t.shape[0]) - self.k - 1]

    @classmethod
    @composed
    def basis_element(cls, t: Tensor, extrapolate=True):
        """Return the single B-spline with given knots.

        Returns:
            A spline of degree ``len(t) - 2``.

        Gradient:
            By evaluation points and knots.
        """
        (t,) = real_with("BSpline.basis_element", 1, t=t)
        k = vector("BSpline.basis_element", t, "t", 2) - 2
        t = ops.concatenate([*[t[:1] - 1] * k, t, *[t[-1:] + 1] * k], 0)
        unit = np.zeros(int(t.shape[0]))
        unit[k] = 1.0
        return cls.construct_fast(t, constant_like(unit, t), k, mode_of("BSpline.basis_element", extrapolate))

    @classmethod
    @composed
    def design_matrix(cls, x: Tensor, t: Tensor, k, extrapolate=False) -> Tensor:
        """Return the values of all B-splines at points, a row for each point.

        Returns:
            A dense matrix of ``len(x)`` rows and ``len(t) - k - 1`` columns; SciPy's is sparse.

        Raises:
            ArgumentError: points beyond the ends without extrapolation.

        Gradient:
            By evaluation points and knots.
        """
        name = "BSpline.design_matrix"
        k = integer(name, k, "k", 0)
        x, t = real_with(name, 2, x=x, t=t)
        vector(name, x)
        n = vector(name, t, "t", 2 * k + 2) - k - 1
        ascends(name, t, "t", strictly=False)
        how = mode_of(name, extrapolate)
        values, ends = known(x), known(t)
        if not how and values is not None and ends is not None:
            if values.size and (values.min() < ends[k] or values.max() > ends[n]):
                raise ArgumentError(f"`{name}`: `x` must be between the ends.", argument="x")
        return cls.construct_fast(t, constant_like(np.eye(n), t), k, how)(x)

    @composed
    def __call__(self, x: Tensor, nu=0, extrapolate=None) -> Tensor:
        """Values or derivatives at points.

        Args:
            nu: the order of the derivative.
            extrapolate: see the class; by default as given there.

        Returns:
            A tensor with the dimensions of ``x`` in place of ``axis``.

        Gradient:
            By ``x``, coefficients and knots.
        """
        how = self.extrapolate if extrapolate is None else mode_of("BSpline", extrapolate)
        nu = integer("BSpline", nu, "nu", 0)
        v, t, c = real_with("BSpline", 2, x=x, t=self.t, c=self.c)
        k, rank = self.k, len(v.shape)
        low, high = t[k], t[int(t.shape[0]) - k - 1]
        if how == "periodic":
            v = wrapped(low, high, v)[0]
        first, h = weights(t, k, v, nu)
        parts = ops.take(c, shifted_ranges(first, 0, k + 1), 0)
        rest = len(c.shape) - 1
        y = ops.sum(add_last_dims(h, rest) * parts, rank)
        beyond = ops.isnan(v) if how is True else outside(low, high, v)
        y = ops.where(add_last_dims(beyond, rest), ops.full_like(y, math.nan), y)
        return placed(y, rank, self.axis)

    def _coefficients(self):
        return self.c[: int(self.t.shape[0]) - self.k - 1]

    def _rest(self) -> int:
        return len(self.c.shape) - 1

    def derivative(self, nu=1):
        """Return the derivative of order ``nu``, a spline of lower degree.

        Returns:
            A spline.

        Raises:
            ArgumentError: a degree lower than ``nu``; inner knots of too high multiplicity.

        Gradient:
            By coefficients and knots.
        """
        nu = integer("BSpline.derivative", nu, "nu")
        if nu < 0:
            return self.antiderivative(-nu)
        if nu > self.k:
            raise ArgumentError(f"`BSpline.derivative`: `nu` must be at most the degree, {self.k}.", argument="nu")
        t, c, k = self.t, self._coefficients(), self.k
        for _ in range(nu):
            d = t[k + 1 : -1] - t[1 : -k - 1]
            if (values := known(d)) is not None and (values == 0).any():
                raise ArgumentError("`BSpline.derivative`: inner knots are too often the same.", argument="nu")
            c = (c[1:] - c[:-1]) * k / add_last_dims(d, self._rest())
            t, k = t[1:-1], k - 1
        c = ops.concatenate([c, *[ops.zeros_like(c[:1])] * (k + 1)], 0)
        return self.construct_fast(t, c, k, self.extrapolate, self.axis)

    def antiderivative(self, nu=1):
        """Return the antiderivative of order ``nu``, a spline of higher degree that is 0 at ``t[k]``.

        Returns:
            A spline.

        Gradient:
            By coefficients and knots.
        """
        nu = integer("BSpline.antiderivative", nu, "nu")
        if nu < 0:
            return self.derivative(-nu)
        t, c, k = self.t, self._coefficients(), self.k
        for _ in range(nu):
            d = t[k + 1 :] - t[: -k - 1]
            c = ops.cumsum(c * add_last_dims(d, self._rest()), 0) / (k + 1)
            c = ops.concatenate([ops.zeros_like(c[:1]), c], 0)
            t, k = ops.concatenate([t[:1], t, t[-1:]], 0), k + 1
        c = ops.concatenate([c, *[c[-1:] if nu else ops.zeros_like(c[:1])] * (k + 1)], 0)
        how = False if self.extrapolate == "periodic" else self.extrapolate
        return self.construct_fast(t, c, k, how, self.axis)

    @composed
    def integrate(self, a: Tensor, b: Tensor, extrapolate=None) -> Tensor:
        """Return the integral from ``a`` to ``b``; without extrapolation the spline counts as 0 beyond the ends.

        Returns:
            A tensor of the data's other dimensions.

        Gradient:
            By limits, coefficients and knots.
        """
        how = self.extrapolate if extrapolate is None else mode_of("BSpline.integrate", extrapolate)
        found = self.antiderivative()
        found.axis = 0

        def until(v):
            v, t = real_with("BSpline.integrate", 2, limit=v, t=self.t)
            low, high = t[self.k], t[int(t.shape[0]) - self.k - 1]
            if how == "periodic":
                v, turns = wrapped(low, high, v)
                return add_last_dims(turns, self._rest()) * (found(high, 0, True) - found(low, 0, True)) + found(
                    v, 0, True
                )
            return found(v if how else ops.minimum(ops.maximum(v, low), high), 0, True)

        return until(b) - until(a)

    def insert_knot(self, x, m=1):
        """Return the same spline with a knot inserted ``m`` times at a known point (Boehm 1980).

        Returns:
            A spline.

        Raises:
            ArgumentError: a point beyond the ends; a periodic spline.

        Gradient:
            By the point, coefficients and knots.
        """
        name = "BSpline.insert_knot"
        m = integer(name, m, "m", 1)
        if self.extrapolate == "periodic":
            raise ArgumentError(f"`{name}`: knots cannot be inserted into a periodic spline.", argument="x")
        t, c, k = self.t, self._coefficients(), self.k
        given = numbers(name, x, "x")
        if given.size != 1:
            raise ArgumentError(f"`{name}`: `x` must be a number.", argument="x")
        place = float(given.reshape(()))
        x, t = alike(x, t)
        x, c = ops.reshape(x, (1,)), alike(t, c)[1]
        for _ in range(m):
            values = numbers(name, t, "t")
            n = len(values) - k - 1
            if not values[k] <= place <= values[n]:
                raise ArgumentError(f"`{name}`: `x` must be between the ends; got {place}.", argument="x")
            i = k + int(np.searchsorted(values[k + 1 : n], place, "right"))
            low, high = t[i - k + 1 : i + 1], t[i + 1 : i + k + 1]
            share = add_last_dims(ops.divide_no_nan(x - low, high - low), self._rest())
            new = share * c[i - k + 1 : i + 1] + (1 - share) * c[i - k : i]
            c = ops.concatenate([c[: i - k + 1], new, c[i:]], 0)
            t = ops.concatenate([t[: i + 1], x, t[i + 1 :]], 0)
        c = ops.concatenate([c, *[ops.zeros_like(c[:1])] * (k + 1)], 0)
        return self.construct_fast(t, c, k, self.extrapolate, self.axis)


def spline_of(name: str, tck) -> BSpline:
    """Return a spline given as an object or as knots, coefficients and degree."""
    if isinstance(tck, BSpline):
        return tck
    if not isinstance(tck, (tuple, list)) or len(tck) != 3:
        raise ArgumentTypeError(
            f"`{name}`: `tck` must be a BSpline or knots, coefficients and a degree; got {type(tck).__name__}.",
            argument="tck",
        )
    return BSpline(tck[0], tck[1], tck[2])
