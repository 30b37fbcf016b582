"""Norms and distances.

The gradient of a norm at 0 is 0, and the second derivative there is NaN. Variables record ``norm(x)**2`` as the sum of
squares, which has a second derivative. For other tensors, and for other smooth functions of a norm, the second
derivative at 0 is NaN, because the chain rule multiplies 0 by infinity; ``sum(square(x))`` has one.

See Also:
    :func:`abs`, :func:`hypot`, :func:`normalize`, :func:`svd`.
"""

from __future__ import annotations

import math

from ..annotations import Axes, Tensor
from ..errors import ArgumentError, Given, ShapeError
from . import _checks
from ._compose import compute_in_single, is_complex, promoted, rounded, wide
from ._dispatch import op
from ._matrices import epsilon
from .conversion import cast, dtype, shape
from .decompositions import svd
from .elementwise import (
    add,
    equal,
    less_equal,
    multiply,
    not_equal,
    power,
    real_sign,
    subtract,
)
from .indexing import where
from .properties import fits
from .reductions import all, any, kink, max, min, real_components, root, squared, sum, unkept
from .shaping import expand_dims, reshape, squeeze, transpose

_MATRIX_NORMS = ("fro", "nuc", math.inf, -math.inf, 1, -1, 2, -2)


def _check_norm(op, x, ord, axis, keepdims) -> None:
    rank = _checks.check_rank(op.name, x, 0)
    if axis is None:
        if ord is None:
            return
        if rank not in (1, 2):
            raise ShapeError(
                f"`{op.name}`: `x` must have 1 or 2 dimensions where `ord` is given without `axis`; got {{x}}.",
                argument="x",
                x=_checks.describe(x),
            )
        count = rank
    else:
        count = len(_checks.check_axes(op.name, axis, rank))
        if count not in (1, 2):
            raise ArgumentError(
                f"`{op.name}`: `axis` must be one dimension or two; got {{given}}.",
                argument="axis",
                given=Given(repr(axis), axis),
            )
    if ord is None:
        return
    if count == 2:
        _checks.choice(op.name, ord, _MATRIX_NORMS, "ord")
    elif isinstance(ord, str):
        raise ArgumentError(
            f"`{op.name}`: `ord` of vectors must be a number; got {{given}}.",
            argument="ord",
            given=Given(repr(ord), ord),
        )


@op(check=_check_norm)
@compute_in_single
def norm(x: Tensor, ord: float | None = None, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Norm of vectors or matrices, as ``numpy.linalg.norm``.

    Args:
        ord: for vectors, any number p for ``sum(abs(x) ** p) ** (1 / p)``, ``inf`` and ``-inf`` for the largest and
            smallest absolute value, 0 for the number of elements that are not 0. For matrices, ``"fro"``, ``"nuc"``
            (sum of singular values), 2 and -2 (largest and smallest singular value), 1 and -1 (largest and smallest
            column sum), ``inf`` and ``-inf`` (row sum). None: the root of the sum of squares.
        axis: one dimension that holds vectors, or two that hold matrices; None for all of ``x``.

    Returns:
        A real tensor without the dimensions of the vectors or matrices; integers give ``floatx``.

    Raises:
        AxisError: an axis out of range or named twice.
        ArgumentError: an ``ord`` that does not fit, or more than two axes.

    Gradient:
        ``g * x / y`` for the root of squares; 0 where the norm or an element is 0. Ties share the gradient equally.

    Examples:
        The gradient of a length is the direction, 0 at 0:

        >>> import numpy as np
        >>> import gradops
        >>> from gradops import ops
        >>> print(gradops.grad(ops.norm)(np.array([3.0, 4.0])), gradops.grad(ops.norm)(np.zeros(2)))
        [0.6 0.8] [0. 0.]

    See Also:
        :func:`normalize`, :func:`sum`.
    """
    rank = len(x.shape)
    axes = _checks.check_axes("norm", axis, rank)
    if ord is None or ord == "fro" or (ord == 2 and len(axes) == 1):
        return unkept(root(sum(squared(x), axes, True), x), axes, keepdims)
    return _vector_norm(x, ord, axes[0], keepdims) if len(axes) == 1 else _matrix_norm(x, ord, axes, keepdims)


def _vector_norm(x, ord, axis, keepdims):
    size = _size(x)
    if ord == math.inf:
        return max(size, axis, keepdims)
    if ord == -math.inf:
        return min(size, axis, keepdims)
    if ord == 0:
        return sum(cast(not_equal(size, 0), dtype(size)), axis, keepdims)
    if ord == 1:
        return sum(size, axis, keepdims)
    zero = equal(size, 0)
    power_at_0 = 0.0 if ord > 2 else kink(real_components(x), zero) if ord > 0 else math.inf
    total = sum(where(zero, power_at_0, power(where(zero, 1.0, size), float(ord))), axis, True)
    zero = equal(total, 0)
    y = where(zero, kink(real_components(x), zero) if ord > 0 else math.inf, power(where(zero, 1.0, total), 1.0 / ord))
    return unkept(y, axis, keepdims)


def _matrix_norm(x, ord, axes, keepdims):
    row, column = axes
    if ord in (1, -1, math.inf, -math.inf):
        summed, chosen = (row, column) if math.fabs(ord) == 1 else (column, row)
        y = (max if ord > 0 else min)(sum(_size(x), summed, True), chosen, True)
    else:
        rest = [i for i in range(len(x.shape)) if i not in axes]
        matrices = transpose(x, [*rest, row, column])
        s = svd(matrices, False, False)
        zero = less_equal(s, multiply(max(s, -1, True, 0.0), epsilon(s) * shape(s)[-1]))
        s = where(zero, 0.0, s)  # a singular value that is 0 up to rounding has no singular vectors
        y = sum(s, -1) if ord == "nuc" else (max if ord > 0 else min)(s, -1)
        zero = expand_dims((all if ord == 2 else any)(zero, -1), (-2, -1))
        y = add(y, reshape(kink(real_components(matrices), zero), shape(y)))
    singles = tuple(1 if i in axes else n for i, n in enumerate(shape(x)))
    return reshape(y, singles if keepdims else tuple(n for i, n in enumerate(shape(x)) if i not in axes))


def _size(x):
    """Return absolute values, with derivative 0 at 0."""
    return root(squared(x), x) if is_complex(x) else multiply(x, real_sign(x))


def _check_points(op, x, y) -> None:
    _checks.check_rank(op.name, x, 2, "x")
    _checks.check_rank(op.name, y, 2, "y")
    first, second = shape(x), shape(y)
    if not fits(first[-1:], second[-1:]):
        raise ShapeError(
            f"`{op.name}`: the points of `x` and `y` must have as many coordinates; got shapes {first} and {second}.",
            argument="y",
        )
    _checks.broadcast_shapes(op.name, ("x", "y"), first[:-2], second[:-2])


@op(check=_check_points)
def cdist(x: Tensor, y: Tensor) -> Tensor:
    """Euclidean distances between all pairs of points.

    Args:
        x: points as rows (..., m, d).
        y: points as rows (..., n, d).

    Returns:
        A real tensor (..., m, n), other dimensions broadcast; integers give ``floatx``.

    Raises:
        ShapeError: fewer than two dimensions, or points of different dimension.

    Gradient:
        ``(x_i - y_j) / distance``, summed with the upstream gradient; 0 where two points are equal.

    Examples:
        >>> x = np.array([[0.0, 3.0]])
        >>> print(ops.cdist(x, [[4.0, 0.0]]))
        [[5.]]
        >>> print(gradops.grad(lambda x: ops.sum(ops.cdist(x, [[4.0, 0.0]])))(x).round(4))
        [[-0.8  0.6]]
    """
    (x, final), (y, _) = map(wide, promoted(x, y, floating=True))
    difference = subtract(expand_dims(x, -2), expand_dims(y, -3))
    return rounded(squeeze(root(sum(squared(difference), -1, True), difference), -1), final)
