"""Interpolating polynomials of full degree, in Newton's form (Krogh) and in barycentric form.

Both evaluate derivatives of any order.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from ... import ops
from ...annotations import Integer, Tensor
from ...backends import tracing
from ...errors import ArgumentError
from ...ops._checks import integer, known
from .._define import composed
from .._tensors import wrong
from ._shared import add_last_dims, by_orders, leading, placed, real_with, vector

__all__ = ["BarycentricInterpolator", "KroghInterpolator", "barycentric_interpolate", "krogh_interpolate"]


class _Polynomial:
    """Base class of interpolating polynomials."""

    xi: Any
    yi: Any
    axis: int

    @composed
    def __call__(self, x: Tensor) -> Tensor:
        """Values at points.

        Returns:
            A tensor with the dimensions of ``x`` in place of ``axis``.

        Gradient:
            By evaluation points, sites and values.
        """
        return self.derivative(x, 0)

    @composed
    def derivative(self, x: Tensor, der: Any = 1) -> Tensor:
        """Derivative of order ``der`` at points.

        Returns:
            As for a call.

        Gradient:
            By evaluation points, sites and values.
        """
        der = integer(type(self).__name__, der, "der", 0)
        return self._all(x, der + 1)[der]

    @composed
    def derivatives(self, x: Tensor, der: Any = None) -> Tensor:
        """Value and derivatives at points.

        Args:
            der: the number of orders, from 0; by default the number of sites.

        Returns:
            A tensor whose first dimension holds the orders.

        Gradient:
            By evaluation points, sites and values.
        """
        name = type(self).__name__
        return ops.stack(self._all(x, int(self.xi.shape[0]) if der is None else integer(name, der, "der", 1)))

    def _all(self, x, count: int) -> list:
        name = type(self).__name__
        if self.yi is None:
            raise ArgumentError(f"`{name}`: `yi` must be set before a call.", argument="yi")
        v, xi, yi = real_with(name, 2, x=x, xi=self.xi, yi=self.yi)
        return [placed(y, len(v.shape), self.axis) for y in self._values(v, xi, yi, count)]

    def _values(self, v, xi, yi, count: int) -> list:
        raise NotImplementedError


class KroghInterpolator(_Polynomial):
    """Polynomial through values and derivatives at sites, in Newton's form (Krogh 1970).

    Args:
        xi: the sites. If a site is repeated, the next elements of ``yi`` are its derivatives; equal sites must be
            adjacent. In a compiled function, where values are not known, all sites count as different.
        yi: the values, as many along ``axis`` as sites.

    Returns:
        A callable that takes evaluation points.

    Raises:
        ShapeError: shapes that do not match.
        ArgumentError: equal sites that are not adjacent.

    Gradient:
        By evaluation points, sites and values.
    """

    @composed
    def __init__(self, xi: Tensor, yi: Tensor, axis: Integer = 0):
        name = "KroghInterpolator"
        values = known(xi)
        xi, yi = real_with(name, 1, xi=xi, yi=yi)
        n = vector(name, xi, "xi")
        yi, self.axis = leading(name, yi, axis, n, "yi")
        if n > 30:
            warnings.warn(f"the degree {n - 1} of a polynomial is too high for all digits", stacklevel=4)
        self.xi, self.yi = xi, yi
        start = _groups(tuple(range(n)) if values is None else tuple(values.tolist()))
        rest = len(yi.shape) - 1
        column = yi if start == list(range(n)) else ops.take(yi, start, 0)
        c = [column[0]]
        for j in range(1, n):
            same = [a == b for a, b in zip(start[j:], start)]
            gap = xi[j:] - xi[: n - j]
            if any(same):
                gap = ops.where(np.array(same), 1.0, gap)
            column = (column[1:] - column[:-1]) / add_last_dims(gap, rest)
            if any(same):
                given = ops.take(yi, [a + j if hit else 0 for a, hit in zip(start, same)], 0) / math.factorial(j)
                column = ops.where(np.reshape(same, (-1,) + (1,) * rest), given, column)
            c.append(column[0])
        self.c = ops.stack(c)

    def _values(self, v, xi, yi, count: int) -> list:
        v, xi, c = real_with("KroghInterpolator", 2, x=v, xi=xi, c=self.c)
        n, rest = int(xi.shape[0]), len(c.shape) - 1
        none = ops.zeros_like(add_last_dims(v, rest) * c[0])
        found = [none + c[n - 1]] + [none] * (count - 1)
        for i in range(n - 2, -1, -1):
            w = add_last_dims(v - xi[i], rest)
            found = [found[0] * w + c[i]] + [found[m] * w + found[m - 1] for m in range(1, count)]
        return [y * float(math.factorial(m)) if m < n else none for m, y in enumerate(found)]


@tracing.constant
def _groups(sites: tuple) -> list[int]:
    """Return for each site the index of the first site equal to it."""
    values = np.array(sites)
    new = np.concatenate([[True], values[1:] != values[:-1]])
    if len(np.unique(values)) != new.sum():
        raise ArgumentError("`KroghInterpolator`: equal elements of `xi` must be next to each other.", argument="xi")
    return np.maximum.accumulate(np.where(new, np.arange(len(values)), 0)).tolist()


class BarycentricInterpolator(_Polynomial):
    """Polynomial through values at sites, in barycentric form (Berrut and Trefethen 2004).

    Args:
        xi: the sites, which must be distinct.
        yi: the values, as many along ``axis`` as sites; None to set them later.
        wi: the sites' weights, by default computed.
        rng: ignored; products are always taken in the same order.

    Returns:
        A callable that takes evaluation points.

    Raises:
        ShapeError: shapes that do not match.
        ArgumentError: equal sites.

    Gradient:
        By evaluation points, sites and values; at a site only up to second order.
    """

    @composed
    def __init__(self, xi: Tensor, yi: Tensor = None, axis: Integer = 0, *, wi: Tensor = None, rng=None):
        name = "BarycentricInterpolator"
        (self.xi,) = real_with(name, 1, xi=xi)
        vector(name, self.xi, "xi")
        self._first, self.axis, self.yi = axis, 0, None
        self.set_yi(yi)
        self.wi = _weights(name, self.xi) if wi is None else real_with(name, 1, wi=wi)[0]

    def set_yi(self, yi, axis=None) -> None:
        """Set other values at the sites; None removes them."""
        if yi is None:
            self.yi = None
            return
        name = "BarycentricInterpolator"
        xi, yi = real_with(name, 1, xi=self.xi, yi=yi)
        axis = self._first if axis is None else axis
        self.yi, self.axis = leading(name, yi, axis, int(xi.shape[0]), "yi")

    def add_xi(self, xi, yi=None) -> None:
        """Add sites, with values if the object has values.

        Raises:
            ArgumentError: only the old or only the new sites have values.
        """
        name = "BarycentricInterpolator"
        if (yi is None) != (self.yi is None):
            raise wrong("yi", "be given where the object has values, and only there", of=name)
        old, xi = real_with(name, 2, old=self.xi, xi=xi)
        if yi is not None:
            mine, yi = real_with(name, 0, mine=self.yi, yi=yi)
            yi, _ = leading(name, yi, self.axis, vector(name, xi, "xi"), "yi")
            self.yi = ops.concatenate([mine, yi], 0)
        self.xi = ops.concatenate([old, xi], 0)
        self.wi = _weights(name, self.xi)

    def _values(self, v, xi, yi, count: int) -> list:
        v, xi, wi, yi = real_with("BarycentricInterpolator", 3, x=v, xi=xi, wi=self.wi, yi=yi)
        n, shape = int(xi.shape[0]), tuple(yi.shape)
        same = np.eye(n, dtype=bool)
        gap = ops.where(same, 1.0, add_last_dims(xi, 1) - xi)
        d = ops.where(same, 0.0, wi / (gap * add_last_dims(wi, 1)))
        d = d - ops.where(same, add_last_dims(ops.sum(d, 1), 1), 0.0)
        slopes = [ops.reshape(yi, (n, -1))]
        for _ in range(count + 1):  # two orders more than asked for: the result's own derivatives at a site need them
            slopes.append(ops.matmul(d, slopes[-1]) if len(slopes) < n else ops.zeros_like(slopes[-1]))
        away = ops.expand_dims(v, -1) - xi
        hit = ops.stop_gradient(away) == 0
        c = wi / ops.where(hit, 1.0, away)
        total = ops.sum(c, -1, keepdims=True)
        at = ops.any(hit, -1)
        nearest = ops.argmax(ops.cast(hit, "int64"), -1)
        u = ops.expand_dims(v - ops.take(xi, nearest, 0), -1)
        at = ops.expand_dims(at, -1)
        found = []
        for m in range(count):
            here, first, second = (ops.take(slopes[m + i], nearest, 0) for i in range(3))
            between = ops.tensordot(c, slopes[m], 1) / ops.where(at, 1.0, total)
            y = ops.where(at, here + u * (first + u * second / 2), between)
            found.append(ops.reshape(y, (*v.shape, *shape[1:])))
        return found


def _weights(name: str, xi):
    n = int(xi.shape[0])
    values = known(xi)
    if values is not None and len(np.unique(values)) < n:
        raise ArgumentError(f"`{name}`: elements of `xi` must differ.", argument="xi")
    order = _mixed_up(n)
    scale = 4.0 / ops.stop_gradient(ops.max(xi) - ops.min(xi)) if n > 1 else 1.0
    gap = ops.where(np.eye(n, dtype=bool), 1.0, (add_last_dims(xi, 1) - xi) * scale)
    return 1.0 / ops.prod(ops.take(gap, order, 1), 1)


@tracing.constant
def _mixed_up(n: int) -> np.ndarray:
    """Return an order in which products of distances neither overflow nor underflow."""
    return np.random.default_rng(0).permutation(n)


def _derivatives_at(found, x, der):
    if np.ndim(der):
        orders = [integer(type(found).__name__, m, "der", 0) for m in der]
        return ops.take(found.derivatives(x, max(orders) + 1), orders, 0)
    return found.derivative(x, der)


@by_orders
def krogh_interpolate(xi: Tensor, yi: Tensor, x: Tensor, der: Any = 0, axis: Integer = 0) -> Tensor:
    """Values or derivatives of :class:`KroghInterpolator` at points.

    Raises:
        As for :class:`KroghInterpolator`.
    """
    return _derivatives_at(KroghInterpolator(xi, yi, axis), x, der)


@by_orders
def barycentric_interpolate(xi: Tensor, yi: Tensor, x: Tensor, axis: Integer = 0, *, der: Any = 0, rng=None) -> Tensor:
    """Values or derivatives of :class:`BarycentricInterpolator` at points.

    Args:
        rng: ignored.

    Raises:
        As for :class:`BarycentricInterpolator`.
    """
    return _derivatives_at(BarycentricInterpolator(xi, yi, axis), x, der)
