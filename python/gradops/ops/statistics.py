"""Statistics: weighted means, counts, correlation, integrals."""

from __future__ import annotations

import builtins
import math
from typing import Any

import numpy as np

from ..annotations import Axes, Axis, Integer, Operand, Tensor
from ..errors import ArgumentError, ShapeError
from ._checks import check_axes, check_axis, check_kind, check_rank, check_real, choice, describe, integer, known
from ._compose import as_float, constant_like, is_complex, promoted, rounded
from ._compose import wide as in_full
from ._dispatch import op
from ._sizes import multiples
from .bounds import clip, nextafter
from .conversion import cast, dtype, ndim, shape
from .creation import ones_like
from .elementwise import (
    add,
    conj,
    divide,
    equal,
    greater_equal,
    imag,
    isnan,
    less,
    logical_and,
    multiply,
    real,
    sqrt,
    subtract,
)
from .indexing import add_at, where
from .joining import concatenate, split
from .products import matmul
from .properties import fits, is_empty, unknown
from .reductions import diff, max, mean, min, squared, sum, wide
from .shaping import broadcast_to, expand_dims, reshape, transpose
from .sorting import searchsorted, sort

__family__ = """Means and variances."""


@op
def average(x: Tensor, axis: Axes = None, weights: Tensor | None = None) -> Tensor:
    """Weighted mean over axes: ``sum(weights * x) / sum(weights)``.

    Args:
        weights: of ``x``'s shape, or a vector along the one axis; all equal if None.

    Returns:
        A tensor without the reduced dimensions; integers give ``floatx``.

    Raises:
        ShapeError: weights of another shape.

    Gradient:
        ``weights / sum(weights)`` to ``x``, ``(x - average) / sum(weights)`` to the weights.

    Examples:
        >>> x = np.array([1.0, 3.0])
        >>> print(ops.average(x, weights=[3.0, 1.0]), gradops.grad(lambda x: ops.average(x, weights=[3.0, 1.0]))(x))
        1.5 [0.75 0.25]
    """
    if weights is None:
        return mean(x, axis)
    axes = check_axes("average", axis, ndim(x))
    if not fits(shape(weights), shape(x)):
        if len(axes) != 1 or not fits(shape(weights), (shape(x)[axes[0]],)):
            raise ShapeError(
                "`average`: `weights` must have the shape of `x` or be a vector along the one axis; "
                "got {weights} for {x}.",
                argument="weights",
                weights=describe(weights),
                x=describe(x),
            )
        weights = reshape(weights, [-1 if i in axes else 1 for i in range(ndim(x))])
        weights = broadcast_to(weights, shape(x))
    (x, final), (weights, _) = map(in_full, promoted(x, weights, floating=True))
    return rounded(divide(sum(multiply(x, weights), axes), sum(weights, axes)), final)


__family__ = """Truth and counts."""


def _counts(op, x, weights, minlength, sparse):
    check_kind(op.name, x, (0, 1), "of whole numbers")
    check_rank(op.name, x, (1, 2))
    if sparse is not False:
        raise ArgumentError("`bincount`: `sparse` must be {False}; gradops has dense tensors.", argument="sparse")
    integer(op.name, minlength, "minlength", 0)
    if weights is not None and not fits(shape(weights), shape(x)):
        raise ShapeError(
            "`bincount`: `weights` must have the shape of `x`; got {weights} for {x}.",
            argument="weights",
            weights=describe(weights),
            x=describe(x),
        )


@op(check=_counts, whole=("x",))
def bincount(x: Tensor, weights: Tensor | None = None, minlength: Integer = 0, sparse: bool = False) -> Tensor:
    """Counts of the integers 0, 1, ... in ``x``, or sums of their weights.

    Args:
        x: a vector of integers of at least 0; or a matrix, whose rows are counted separately.
        weights: the weight of each element, in the shape of ``x``; 1 if None.
        minlength: the least length of the result. Inside a trace (``jax.jit``, ``tf.function``) it is the
            length, and numbers out of range are not counted; a program of ``jit`` on NumPy raises an error for them.
        sparse: must be False.

    Returns:
        A tensor of length ``max(minlength, max(x) + 1)``, a row for each row of ``x``: int64, or with weights
        in their dtype (integers in int64).

    Raises:
        ArgumentTypeError: an ``x`` that is not of whole numbers.
        ArgumentError: negative numbers; no ``minlength`` inside a trace.
        ShapeError: weights of another shape.

    Gradient:
        To the weights: the upstream gradient at ``x``.

    Examples:
        >>> w = np.array([0.5, 1.0, 2.0])
        >>> print(ops.bincount([0, 2, 2], weights=w))
        [0.5 0.  3. ]
        >>> print(gradops.grad(lambda w: ops.sum(ops.bincount([0, 2, 2], weights=w) ** 2))(w))
        [1. 6. 6.]

    See Also:
        :func:`histogram`, :func:`all`, :func:`any`.
    """
    values = known(x)
    x = cast(x, "int64")
    weights = ones_like(x) if weights is None else wide(weights)
    if values is None:
        if not minlength:
            raise ArgumentError("`bincount`: inside a trace give `minlength`.", argument="minlength")
        length = minlength + 1  # numbers out of range are counted in an additional bin, which is cut off
        x = countable(x, minlength)
    else:
        if values.size and values.min() < 0:
            raise ArgumentError(f"`bincount`: `x` must not be negative; got {int(values.min())}.", argument="x")
        length = builtins.max(minlength, int(values.max()) + 1 if values.size else 0)
    zero = cast(multiply(sum(x), 0), dtype(weights))
    if len(x.shape) == 1:
        counts = add_at(broadcast_to(zero, (length,)), x, weights)
    else:
        rows = shape(x)[0]
        flat = reshape(add(x, multiples(rows, length, (-1, 1))), (-1,))
        counts = add_at(broadcast_to(zero, (rows * length,)), flat, reshape(weights, (-1,)))
        counts = reshape(counts, (rows, length))
    return counts if values is not None else split(counts, [minlength], -1)[0]


@op(public=False, differentiable=False, elementwise=True)
def countable(x: Tensor, length: Integer) -> Tensor:
    """Return ``x`` with numbers outside ``[0, length)`` replaced by ``length``."""
    return where(logical_and(greater_equal(x, 0), less(x, length)), x, length)


@op(differentiable=False, check=check_real)
def histogram(x: Tensor, bins: Operand = 10, range: Any = None) -> tuple:
    """Counts of the elements in each bin; the last bin includes its upper edge.

    Args:
        bins: the number of bins of equal width, or a vector of ascending edges.
        range: the lowest and the highest edge; the smallest and the largest element if None.

    Returns:
        A tuple of the int64 counts and of the edges, one more, in ``x``'s dtype (integers in ``floatx``).
        Elements beyond the edges and NaN are not counted. It has no gradient.

    Raises:
        ArgumentError: no bins, edges that do not ascend, a range that is not ascending and finite; without a range,
            elements that are not finite.
        ArgumentTypeError: a complex ``x`` or ``bins``.
    """
    x = reshape(as_float(x), (-1,))
    if ndim(bins):
        check_rank("histogram", bins, (1,), "bins")
        edges, values = constant_like(bins, x), known(bins)
        if values is not None and (np.diff(values) < 0).any():
            raise ArgumentError("`histogram`: `bins` must ascend.", argument="bins")
    else:
        number = known(bins)
        edges = _edges(x, integer("histogram", bins if number is None else number.item(), "bins", 1), range)
    ordered = sort(where(isnan(x), float("inf"), x))
    last = shape(edges)[0] - 1
    starts, end = split(edges, [last], 0)
    below = concatenate([searchsorted(ordered, starts, "left"), searchsorted(ordered, end, "right")], 0)
    return diff(below), edges


def _edges(x, bins: int, range):
    """Return ``bins + 1`` edges over a range, or over the elements of ``x``."""
    if range is not None:
        low, high = (float(v) for v in range)
        if not (low <= high and math.isfinite(low) and math.isfinite(high)):
            raise ArgumentError(f"`histogram`: `range` must ascend and be finite; got {range}.", argument="range")
        low, high = (constant_like(v, x) for v in (low, high))
    elif is_empty(shape(x)):
        low, high = (constant_like(v, x) for v in (0.0, 1.0))
    else:
        values = known(x)
        if values is not None and not np.isfinite(values).all():
            raise ArgumentError("`histogram`: `x` must be finite where there is no `range`.", argument="x")
        low, high = min(x), max(x)
        if unknown(count := shape(x)[0]):  # it may be 0
            low, high = where(equal(count, 0), 0.0, low), where(equal(count, 0), 1.0, high)
    flat = equal(low, high)
    low, high = where(flat, subtract(low, 0.5), low), where(flat, add(high, 0.5), high)
    steps = np.arange(bins, dtype="int64")
    inner = add(multiply(steps, divide(subtract(high, low), bins)), low)
    zero = reshape(sum(multiply(split(x, [0], 0)[0], 0)), (1,))  # on x's backend
    return add(concatenate([inner, reshape(high, (1,))], 0), zero)


__family__ = """Correlation.

Correlation of variables, and of signals at each lag.

See Also:
    :func:`var`, :func:`conv`, :func:`matmul`.
"""


@op
def corrcoef(x: Tensor) -> Tensor:
    """Correlation coefficients of the rows of a matrix: variables in rows, observations in columns.

    Returns:
        A matrix with a row and a column for each variable (0-d for a vector, which is one variable);
        NaN for a constant one. Integers give ``floatx``.

    Raises:
        ShapeError: not a vector or a matrix.

    Gradient:
        Through the covariances, each divided by two standard deviations.

    Examples:
        >>> x = np.array([[1.0, 3.0, 2.0], [2.0, 3.0, 4.0]])
        >>> print(ops.corrcoef(x)[0, 1].round(4))
        0.5
        >>> print(gradops.grad(lambda x: ops.corrcoef(x)[0, 1])(x).round(4))
        [[-0.25 -0.25  0.5 ]
         [-0.25  0.5  -0.25]]
    """
    rank = check_rank("corrcoef", x, (1, 2))
    x, final = in_full(x)
    if rank == 1:
        x = expand_dims(x, 0)
    x = subtract(x, mean(x, 1, True))
    length = sqrt(sum(squared(x), 1, True))
    x = divide(x, length)
    y = matmul(x, conj(_turned(x)))
    if is_complex(x):
        y = add(_clip_to_1(real(y)), multiply(_clip_to_1(imag(y)), 1j))
    else:
        y = _clip_to_1(y)
    return rounded(reshape(y, ()) if rank == 1 else y, final)


def _clip_to_1(y):
    """Return ``y`` clipped to 1 in magnitude, with the derivative of ``y``, as that of ``clip`` depends on rounding."""
    beyond = subtract(cast(y, "float64"), cast(clip(y, -1.0, 1.0), "float64"))
    return subtract(y, cast(nextafter(beyond, beyond), dtype(y)))


def _turned(x):
    return transpose(x, (1, 0))


@op(public=False, name="sliding_product", multilinear=("x", "window"))
def sliding_product(x: Tensor, window: Tensor) -> Tensor:
    """Sums of products of a window with each section of a vector: ``y[i] = sum(x[i:i + m] * window)``.

    Args:
        x: a vector.
        window: a vector of the same dtype that is not longer.

    Returns:
        A vector of ``len(x) - len(window) + 1`` sums.

    Gradient:
        The padded upstream gradient, sliding over the reversed window; and ``x``, sliding over the gradient.
    """
    ...


@op
def correlate(x1: Tensor, x2: Tensor, mode: str = "valid") -> Tensor:
    """Cross-correlation of two vectors: ``y[k] = sum(x1[n + k] * conj(x2[n]))``.

    Args:
        mode: the range of ``k``: ``"valid"`` where the vectors overlap fully, ``"same"`` as many values as the longer
            vector has, ``"full"`` where they overlap at all.

    Returns:
        A vector, in the operands' promoted dtype.

    Raises:
        ShapeError: not vectors, or empty ones.
        ArgumentError: an unknown ``mode``.

    Gradient:
        The upstream gradient convolved with ``x2``, and correlated with ``x1``.

    Examples:
        >>> x = np.array([1.0, 3.0, 2.0])
        >>> print(ops.correlate(x, [1.0, 2.0]), gradops.grad(lambda x: ops.sum(ops.correlate(x, [1.0, 2.0])))(x))
        [7. 7.] [1. 3. 2.]
    """
    choice("correlate", mode, ("valid", "same", "full"), "mode")
    for name, x in (("x1", x1), ("x2", x2)):
        check_rank("correlate", x, (1,), name)
        if is_empty(shape(x)):
            raise ShapeError(f"`correlate`: `{name}` must not be empty.", argument=name)
    x1, x2 = promoted(x1, x2)
    if dtype(x1) == "bool":
        x1, x2 = cast(x1, "int64"), cast(x2, "int64")
    n, m = shape(x1)[0], shape(x2)[0]
    if mode == "full":
        start, count = 0, n + m - 1
    elif mode == "valid":
        start, count = builtins.min(n, m) - 1, builtins.abs(n - m) + 1
    else:
        start, count = (m - 1 - m // 2, n) if n >= m else (n // 2, m)
    before = m - 1 - start
    after = count - 1 + m - n - before
    zero = split(multiply(x1, 0), [1], 0)[0]
    parts = [broadcast_to(zero, (before,)), x1, broadcast_to(zero, (after,))]
    padded = concatenate([p for p in parts if shape(p)[0]], 0)
    return sliding_product(padded, conj(x2) if is_complex(x2) else x2)


__family__ = """Running sums, differences and integrals."""


@op(linear=("y",))
def trapezoid(y: Tensor, x: Tensor | None = None, dx: Operand = 1.0, axis: Axis = -1) -> Tensor:
    """The integral along an axis by the trapezoidal rule.

    Args:
        y: values of the function.
        x: the points: a vector along the axis, or a tensor of ``y``'s shape; equally spaced if None.
        dx: the spacing if ``x`` is None.

    Returns:
        A tensor without the axis; integers give ``floatx``.

    Raises:
        AxisError: an axis out of range, or no dimensions.
        ShapeError: an ``x`` of another shape.

    Gradient:
        To ``y``, half the width of the adjacent intervals; to ``x``, half the difference of the adjacent values; to
        ``dx``, the integral for a spacing of 1.

    Examples:
        >>> y = np.array([1.0, 3.0, 2.0])
        >>> print(ops.trapezoid(y), gradops.grad(lambda y: ops.trapezoid(y))(y))
        4.5 [0.5 1.  0.5]
    """
    rank = check_rank("trapezoid", y, 1, "y")
    axis = check_axis("trapezoid", axis, rank)
    size = shape(y)[axis]
    if x is not None:
        if fits(shape(x), (size,)):
            dx = reshape(diff(x), [-1 if i == axis else 1 for i in builtins.range(rank)])
        elif fits(shape(x), shape(y)):
            dx = diff(x, 1, axis)
        else:
            raise ShapeError(
                "`trapezoid`: `x` must be a vector along the axis or have the shape of `y`; got {x} for {y}.",
                argument="x",
                x=describe(x),
                y=describe(y),
            )
    y = as_float(y)
    if is_empty((size,)):
        return sum(y, axis)
    pairs = add(split(y, [1], axis)[1], split(y, [size - 1], axis)[0])
    return multiply(sum(multiply(pairs, dx), axis), 0.5)
