"""``interp1d``: interpolation along an axis by piecewise polynomials of low degree.

Steps and straight lines are evaluated here, higher degrees by splines.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ... import ops
from ...annotations import Integer, Tensor
from ...errors import ArgumentError
from ...ops._checks import choice, integer, known
from .._define import composed
from ._shared import add_last_dims, leading, placed, real_with, vector
from .fitting import make_interp_spline

__all__ = ["interp1d"]

DEGREES = {"zero": 0, "slinear": 1, "quadratic": 2, "cubic": 3}
KINDS = ("linear", "nearest", "nearest-up", "previous", "next", *DEGREES)


class interp1d:
    """One-dimensional interpolation.

    Args:
        x: the sites, in any order; with ``assume_sorted`` ascending.
        y: the values, as many along ``axis`` as sites.
        kind: ``"linear"``, ``"nearest"`` (rounds half down; ``"nearest-up"`` rounds half up), ``"previous"``,
            ``"next"``, or a spline's degree, which may be named ``"zero"``, ``"slinear"``, ``"quadratic"``,
            ``"cubic"``.
        copy: ignored, since tensors are not written to.
        bounds_error: True to raise an error for points beyond the ends if values are known; the default unless
            ``fill_value="extrapolate"``.
        fill_value: the value beyond the ends, a pair of values below and above, or ``"extrapolate"``.

    Returns:
        A callable that takes evaluation points.

    Raises:
        ShapeError: shapes that do not match.
        ArgumentError: an unknown ``kind``.

    Gradient:
        By evaluation points (at a site that of the piece to its left), ``x``, ``y`` and ``fill_value``.
    """

    x: Any
    y: Any

    @composed
    def __init__(
        self,
        x: Tensor,
        y: Tensor,
        kind: Any = "linear",
        axis: Integer = -1,
        copy=True,
        bounds_error=None,
        fill_value: Any = math.nan,
        assume_sorted: bool = False,
    ):
        name = "interp1d"
        if isinstance(kind, str):
            choice(name, kind, KINDS, "kind")
            degree = DEGREES.get(kind)
        else:
            degree = integer(name, kind, "kind", 0)
        x, y = real_with(name, 1, x=x, y=y)
        count = vector(name, x, least=1 if degree is None else degree + 1)
        first, self.axis = leading(name, y, axis, count)
        if not assume_sorted:
            values = known(x)
            if values is None or (np.diff(values) < 0).any():
                order = ops.argsort(ops.stop_gradient(x))
                x, first = ops.take(x, order, 0), ops.take(first, order, 0)
        self.x, self.y, self._y, self._kind = (
            x,
            (ops.moveaxis(first, 0, self.axis) if self.axis else first),
            first,
            kind,
        )
        self.bounds_error = bounds_error
        self._spline = None if degree is None else make_interp_spline(x, first, degree, check_finite=False)
        self.fill_value = fill_value

    @property
    def fill_value(self):
        """The value beyond the ends, a pair of values below and above, or ``"extrapolate"``."""
        return self._fill

    @fill_value.setter
    def fill_value(self, value) -> None:
        if isinstance(value, str):
            choice("interp1d", value, ("extrapolate",), "fill_value")
            if self.bounds_error:
                raise ArgumentError(
                    "`interp1d`: `fill_value` cannot extrapolate where `bounds_error` is True.", argument="fill_value"
                )
            self.bounds_error = False
        elif self.bounds_error is None:
            # The default is SciPy's: raise unless extrapolation was requested.
            self.bounds_error = True
        self._fill = value

    @composed
    def __call__(self, x: Tensor) -> Tensor:
        """Values at points.

        Returns:
            A tensor with the dimensions of ``x`` in place of ``axis``.

        Raises:
            ArgumentError: points beyond the ends, with ``bounds_error``.

        Gradient:
            By evaluation points, sites and values.
        """
        v, sites, y = real_with("interp1d", 2, x=x, sites=self.x, y=self._y)
        rank, rest = len(v.shape), len(y.shape) - 1
        found = self._spline(v, 0, True) if self._spline is not None else self._interpolate(sites, y, v)
        fill = self._fill
        if isinstance(fill, str):
            if self._kind == "previous":
                fill = (math.nan, y[-1])
            elif self._kind == "next":
                fill = (y[0], math.nan)
        below, above = v < sites[0], v > sites[-1]
        if not isinstance(fill, str):
            if self.bounds_error:
                self._check_range(below, "below", x)
                self._check_range(above, "above", x)
            low, high = fill if isinstance(fill, tuple) and len(fill) == 2 else (fill, fill)
            found = ops.where(add_last_dims(below, rest), low, ops.where(add_last_dims(above, rest), high, found))
        found = ops.where(add_last_dims(ops.isnan(v), rest), math.nan, found) if self._spline is None else found
        return placed(found, rank, self.axis)

    def _check_range(self, beyond, where: str, x) -> None:
        values = known(beyond)
        if values is not None and values.any():
            raise ArgumentError(
                f"`interp1d`: `x` has a point {where} the range of the sites.",
                argument="x",
                hint="`bounds_error=False`, or `fill_value`",
            )

    def _interpolate(self, sites, y, v):
        last = int(sites.shape[0]) - 1
        held, at = ops.stop_gradient(sites), ops.stop_gradient(v)
        if self._kind == "linear" and last:
            i = ops.clip(ops.searchsorted(held, at), 1, last)
            start, low = ops.take(sites, i - 1, 0), ops.take(y, i - 1, 0)
            rest = len(y.shape) - 1
            slope = (ops.take(y, i, 0) - low) / add_last_dims(ops.take(sites, i, 0) - start, rest)
            return slope * add_last_dims(v - start, rest) + low
        if self._kind == "previous":
            i = ops.searchsorted(held, at, "right") - 1
        elif self._kind == "next":
            i = ops.searchsorted(held, at)
        else:
            i = ops.searchsorted(held[1:] / 2 + held[:-1] / 2, at, "right" if self._kind == "nearest-up" else "left")
        return ops.take(y, ops.clip(i, 0, last), 0)
