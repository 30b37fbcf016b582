"""Integrals of samples by the trapezoidal rule, Simpson's rule and Romberg's method.

All are composed of ops, so their gradients are those of the formulas.
"""

from __future__ import annotations

import numpy as np

from ... import ops
from ...annotations import Axis, Operand, Tensor
from ...errors import ArgumentError, ShapeError
from .._define import composed, family
from .._solving import library_tensor
from .._tensors import constant, constant_like, floating, inexact

__all__ = "cumulative_simpson cumulative_trapezoid lebedev_rule newton_cotes romb simpson trapezoid".split()

newton_cotes = constant("integrate.newton_cotes")
lebedev_rule = constant("integrate.lebedev_rule")


def _samples(name: str, y, x, dx, axis: int):
    """Return the samples and their spacing along the last axis, and the number of samples."""
    if x is None:
        y, d = floating(*_together(y, dx))
        spaces = None
    else:
        y, x = floating(*_together(y, x))
        d, spaces = x, x
    if not -len(y.shape) <= axis < len(y.shape):
        raise ShapeError(f"`{name}`: there is no axis {axis} in a tensor of shape {tuple(y.shape)}.", argument="axis")
    y = ops.moveaxis(y, axis, -1)
    count = y.shape[-1]
    if count == 0:
        raise ShapeError(f"`{name}`: at least one sample is needed along `axis`.", argument="y")
    if spaces is not None:
        if len(x.shape) == 1 or len(x.shape) == len(y.shape):
            x = x if len(x.shape) == 1 else ops.moveaxis(x, axis, -1)
        elif len(x.shape):
            raise ShapeError(f"`{name}`: `x` must be a vector or of the shape of `y`.", argument="x")
        if not len(x.shape) or x.shape[-1] != count:
            raise ShapeError(
                f"`{name}`: `x` must have the {count} elements of `y` along `axis`; got shape {tuple(x.shape)}.",
                argument="x",
            )
        d = x[..., 1:] - x[..., :-1]
    elif len(d.shape) and len(d.shape) == len(y.shape):
        d = ops.moveaxis(d, axis, -1)
    return y, d, count


def _together(*given):
    like = library_tensor(*given)
    if like is None:
        return given
    return [x if ops.is_tensor(x) and not isinstance(x, np.ndarray) else constant_like(x, inexact(like)) for x in given]


of_samples = family(
    returns="A tensor of ``y``'s shape without ``axis``.",
    raises="ShapeError: shapes of ``x`` and ``y`` that do not match.",
    gradient="That of the formula, by ``y``, ``x`` and ``dx``.",
)


@of_samples
def trapezoid(y: Tensor, x: Tensor = None, dx: Operand = 1.0, axis: Axis = -1) -> Tensor:
    """Integral of samples along an axis, by the trapezoidal rule.

    Args:
        x: the positions of the samples, a vector or of the shape of ``y``; by default they are ``dx`` apart.
    """
    y, d, _ = _samples("scipy.integrate.trapezoid", y, x, dx, axis)
    return ops.sum(d * (y[..., 1:] + y[..., :-1]) / 2, axis=-1)


@of_samples
def cumulative_trapezoid(y: Tensor, x: Tensor = None, dx: Operand = 1.0, axis: Axis = -1, initial=None) -> Tensor:
    """Cumulative integral of samples along an axis, by the trapezoidal rule.

    Args:
        x: the positions of the samples, a vector or of the shape of ``y``; by default they are ``dx`` apart.
        initial: 0 to start the result with 0, or None.

    Returns:
        A tensor of ``y``'s shape; without ``initial`` with one element less along ``axis``.

    Raises:
        ArgumentError: an ``initial`` that is not 0.
    """
    name = "scipy.integrate.cumulative_trapezoid"
    if initial is not None and not (np.isscalar(initial) and initial == 0):
        raise ArgumentError(f"`{name}`: `initial` must be None or 0; got {initial!r}.", argument="initial")
    y, d, _ = _samples(name, y, x, dx, axis)
    return _cumulated(d * (y[..., 1:] + y[..., :-1]) / 2, initial, axis)


def _cumulated(parts, initial, axis: int):
    found = ops.cumsum(parts, axis=-1)
    if initial is not None:
        first = ops.zeros_like(ops.sum(parts, -1, keepdims=True)) + initial
        found = ops.concatenate([first, found + initial], axis=-1)
    return ops.moveaxis(found, -1, axis)


def _ratio(a, b):
    """Return ``a / b``, or 0 where ``b`` is 0."""
    none = b == 0
    return ops.where(
        none, ops.zeros_like(a / ops.where(none, ops.ones_like(b), b)), a / ops.where(none, ops.ones_like(b), b)
    )


def _pairs(y, d, stop: int):
    """Return Simpson's rule on consecutive pairs of the first ``stop`` intervals."""
    y0, y1, y2 = y[..., 0:stop:2], y[..., 1 : stop + 1 : 2], y[..., 2 : stop + 2 : 2]
    if not len(d.shape) or d.shape[-1] == 1:
        return ops.sum((y0 + 4 * y1 + y2) * (d / 3), axis=-1)
    h0, h1 = d[..., 0:stop:2], d[..., 1 : stop + 1 : 2]
    both = h0 + h1
    middle = both * _ratio(both, h0 * h1)
    return ops.sum(both / 6 * (y0 * (2 - _ratio(h1, h0)) + y1 * middle + y2 * (2 - _ratio(h0, h1))), axis=-1)


@of_samples
def simpson(y: Tensor, x: Tensor = None, *, dx: Operand = 1.0, axis: Axis = -1) -> Tensor:
    """Integral of samples along an axis, by Simpson's rule.

    For an even number of samples the last interval uses the parabola through the last three samples (Cartwright 2017).

    Args:
        x: the positions of the samples, a vector or of the shape of ``y``; by default they are ``dx`` apart.
    """
    y, d, count = _samples("scipy.integrate.simpson", y, x, dx, axis)
    if count % 2:
        return _pairs(y, d, count - 2)
    steps = (d, d) if x is None else (d[..., -2 if count > 2 else -1], d[..., -1])
    if x is None and len(d.shape) == len(y.shape) and len(y.shape):
        steps = (d[..., 0], d[..., 0])
    h0, h1 = steps
    if count == 2:
        return 0.5 * h1 * (y[..., -1] + y[..., -2])
    last = _ratio(2 * h1**2 + 3 * h0 * h1, 6 * (h1 + h0)) * y[..., -1]
    last = last + _ratio(h1**2 + 3 * h0 * h1, 6 * h0) * y[..., -2]
    return _pairs(y, d, count - 3) + last - _ratio(h1**3, 6 * h0 * (h0 + h1)) * y[..., -3]


@of_samples
def cumulative_simpson(
    y: Tensor, *, x: Tensor = None, dx: Operand = 1.0, axis: Axis = -1, initial: Operand = None
) -> Tensor:
    """Cumulative integral of samples along an axis, by Simpson's rule.

    Args:
        x: the positions of the samples, increasing, a vector or of the shape of ``y``; by default they are ``dx``
            apart.
        initial: the first value of the result, which is added to all others.

    Returns:
        A tensor of ``y``'s shape; without ``initial`` with one element less along ``axis``.

    Gradient:
        That of the formula, by ``y``, ``x``, ``dx`` and ``initial``.
    """
    y, d, count = _samples("scipy.integrate.cumulative_simpson", y, x, dx, axis)
    if count < 3:
        return _cumulated(d * (y[..., 1:] + y[..., :-1]) / 2, initial, axis)
    if x is None:
        d = d + ops.zeros_like(y[..., 1:])
    parts = [ops.flip(_firsts(ops.flip(y, -1), ops.flip(d + ops.zeros_like(y[..., 1:]), -1)), -1)]
    parts.insert(0, _firsts(y, d + ops.zeros_like(y[..., 1:])))
    ahead, behind = parts
    intervals = count - 1
    pieces = [ahead[..., i : i + 1] if i % 2 == 0 else behind[..., i - 1 : i] for i in range(intervals - 1)]
    return _cumulated(ops.concatenate([*pieces, behind[..., -1:]], axis=-1), initial, axis)


def _firsts(y, d):
    """Return, for each three consecutive samples, the integral of their parabola over the first interval."""
    h0, h1 = d[..., :-1], d[..., 1:]
    share, ratio = h0 / (h0 + h1), h0 / h1
    product = share * ratio
    return h0 / 6 * ((3 - share) * y[..., :-2] + (3 + product + share) * y[..., 1:-1] - product * y[..., 2:])


@composed
def romb(y: Tensor, dx: Operand = 1.0, axis: Axis = -1, show=False) -> Tensor:
    """Integral of ``2**k + 1`` equally spaced samples, by Romberg's method.

    Args:
        show: ignored; no table is printed.

    Returns:
        A tensor of ``y``'s shape without ``axis``.

    Raises:
        ShapeError: a number of samples other than ``2**k + 1``.

    Gradient:
        That of the formula, by ``y`` and ``dx``.
    """
    name = "scipy.integrate.romb"
    y, d, count = _samples(name, y, None, dx, axis)
    order = (count - 1).bit_length() - 1
    if count < 2 or count - 1 != 2**order:
        raise ShapeError(f"`{name}`: `y` must have 2**k + 1 samples along `axis`; got {count}.", argument="y")
    if len(d.shape) and d.shape[-1] == 1 and len(d.shape) == len(y.shape):
        d = d[..., 0]
    step = count - 1
    row = [(y[..., 0] + y[..., -1]) / 2 * (d * step)]
    for i in range(1, order + 1):
        step //= 2
        new = [(row[0] + ops.sum(y[..., step :: 2 * step], axis=-1) * (d * 2 * step)) / 2]
        for j in range(i):
            new.append(new[j] + (new[j] - row[j]) / (4 ** (j + 1) - 1))
        row = new
    return row[-1]
