"""Reductions: ``axis`` is an int, several, or None for all; ``keepdims`` leaves sizes of 1."""

from __future__ import annotations

from ..types import Axes, Axis, DType, Tensor
from ._dispatch import op


@op
def sum(x: Tensor, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Sum over axes.

    Returns:
        A tensor without the reduced dimensions; integers and bools add up in 64 bits.

    Raises:
        AxisError: an axis out of range.

    Gradient:
        1, broadcast to ``x``.
    """
    ...


@op
def mean(x: Tensor, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Mean over axes.

    Returns:
        A tensor without the reduced dimensions; integers give ``floatx``.

    Raises:
        AxisError: an axis out of range.

    Gradient:
        ``1 / n``, broadcast to ``x``.
    """
    ...


@op
def prod(x: Tensor, axis: Axes = None, keepdims: bool = False, dtype: DType | None = None) -> Tensor:
    """Product over axes.

    Returns:
        A tensor without the reduced dimensions; integers multiply in 64 bits.

    Raises:
        AxisError: an axis out of range.

    Gradient:
        The product of the other elements, right where elements are 0, to second order.
    """
    ...


@op
def max(x: Tensor, axis: Axes = None, keepdims: bool = False, initial=None) -> Tensor:
    """Largest element over axes.

    Args:
        initial: the result where there is nothing to reduce, and a bound elsewhere.

    Returns:
        A tensor without the reduced dimensions, of ``x``'s dtype. NaN wins.

    Raises:
        AxisError: an axis out of range.
        ArgumentError: nothing to reduce and no ``initial``.

    Gradient:
        The upstream gradient, shared equally among tied elements.
    """
    ...


@op
def min(x: Tensor, axis: Axes = None, keepdims: bool = False, initial=None) -> Tensor:
    """Smallest element over axes.

    Args:
        initial: the result where there is nothing to reduce, and a bound elsewhere.

    Returns:
        A tensor without the reduced dimensions, of ``x``'s dtype. NaN wins.

    Raises:
        AxisError: an axis out of range.
        ArgumentError: nothing to reduce and no ``initial``.

    Gradient:
        The upstream gradient, shared equally among tied elements.
    """
    ...


@op(differentiable=False)
def all(x: Tensor, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Whether all elements over axes are true (not 0).

    Returns:
        A bool tensor without the reduced dimensions. It has no gradient.

    Raises:
        AxisError: an axis out of range.
    """
    ...


@op(differentiable=False)
def any(x: Tensor, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Whether any element over axes is true (not 0).

    Returns:
        A bool tensor without the reduced dimensions. It has no gradient.

    Raises:
        AxisError: an axis out of range.
    """
    ...


@op(differentiable=False)
def argmax(x: Tensor, axis: Axis | None = None, keepdims: bool = False) -> Tensor:
    """Position of the largest element along an axis, the first at a tie; of the flattened tensor without one.

    Returns:
        An int64 tensor of 0-based positions. It has no gradient.

    Raises:
        AxisError: an axis out of range.
        ArgumentError: nothing to reduce.
    """
    ...


@op(differentiable=False)
def argmin(x: Tensor, axis: Axis | None = None, keepdims: bool = False) -> Tensor:
    """Position of the smallest element along an axis, the first at a tie; of the flattened tensor without one.

    Returns:
        An int64 tensor of 0-based positions. It has no gradient.

    Raises:
        AxisError: an axis out of range.
        ArgumentError: nothing to reduce.
    """
    ...


@op
def logsumexp(x: Tensor, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """``log(sum(exp(x)))`` over axes, without overflow.

    Returns:
        A tensor without the reduced dimensions; integers give ``floatx``.

    Raises:
        AxisError: an axis out of range.

    Gradient:
        ``softmax(x)`` over the axes.
    """
    ...


@op
def cumsum(x: Tensor, axis: Axis | None = None, dtype: DType | None = None) -> Tensor:
    """Running sum along an axis; of the flattened tensor without one.

    Returns:
        A tensor of ``x``'s shape (flat without an axis); integers and bools add up in 64 bits.

    Raises:
        AxisError: an axis out of range.

    Gradient:
        The running sum of the upstream gradient from the end.
    """
    ...
