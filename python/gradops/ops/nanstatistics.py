"""Statistics without NaN.

Over the elements that are not NaN; NaN gets the gradient 0.

See Also:
    :func:`sum`, :func:`mean`, :func:`max`, :func:`cumsum`, :func:`nanquantile`, :func:`nan_to_num`.
"""

from __future__ import annotations

import math

from .. import dtypes
from ..annotations import Axes, Axis, DType, Tensor
from ._checks import check_real
from ._compose import rounded, wide
from ._dispatch import op
from .conversion import dtype
from .elementwise import divide, equal, isnan, logical_not, logical_or, subtract
from .indexing import where
from .reductions import all, any, argmax, argmin, cumprod, cumsum, max, min, prod, root, squared, sum, unkept


def _replace_nan(x, value):
    """``x`` with a number in place of NaN."""
    return where(isnan(x), value, x) if dtypes.is_floating(dtype(x)) else x


@op(reduces=True)
def nansum(x: Tensor, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Sum over axes of the elements that are not NaN; 0 where all are.

    Returns:
        A tensor without the reduced dimensions; integers and bools add up in 64 bits.

    Gradient:
        1 to the elements that are not NaN, 0 to NaN.

    Examples:
        >>> x = np.array([2.0, np.nan, 3.0])
        >>> print(ops.nansum(x), gradops.grad(lambda x: ops.nansum(x))(x))
        5.0 [1. 0. 1.]
    """
    return sum(_replace_nan(x, 0), axis, keepdims)


@op(reduces=True)
def nanprod(x: Tensor, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Product over axes of the elements that are not NaN; 1 where all are.

    Returns:
        A tensor without the reduced dimensions; integers multiply in 64 bits.

    Gradient:
        As in :func:`prod`; 0 to NaN.

    Examples:
        >>> x = np.array([2.0, np.nan, 3.0])
        >>> print(ops.nanprod(x), gradops.grad(lambda x: ops.nanprod(x))(x))
        6.0 [3. 0. 2.]
    """
    return prod(_replace_nan(x, 1), axis, keepdims)


@op
def nancumsum(x: Tensor, axis: Axis | None = None, dtype: DType | None = None) -> Tensor:
    """Running sum along an axis with NaN as 0; of the flattened tensor without one.

    Returns:
        A tensor of ``x``'s shape (flat without an axis); integers and bools add up in 64 bits.

    Gradient:
        As in :func:`cumsum`; 0 to NaN.

    Examples:
        >>> x = np.array([2.0, np.nan, 3.0])
        >>> print(ops.nancumsum(x), gradops.grad(lambda x: ops.nancumsum(x)[2])(x))
        [2. 2. 5.] [1. 0. 1.]
    """
    return cumsum(_replace_nan(x, 0), axis, dtype)


@op
def nancumprod(x: Tensor, axis: Axis | None = None, dtype: DType | None = None) -> Tensor:
    """Running product along an axis with NaN as 1; of the flattened tensor without one.

    Returns:
        A tensor of ``x``'s shape (flat without an axis); integers and bools multiply in 64 bits.

    Gradient:
        As in :func:`cumprod`; 0 to NaN.

    Examples:
        >>> x = np.array([2.0, np.nan, 3.0])
        >>> print(ops.nancumprod(x), gradops.grad(lambda x: ops.nancumprod(x)[2])(x))
        [2. 2. 6.] [3. 0. 2.]
    """
    return cumprod(_replace_nan(x, 1), axis, dtype)


def _count(x, axis, keepdims):
    return sum(logical_not(isnan(x)), axis, keepdims)


@op(reduces=True)
def nanmean(x: Tensor, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Mean over axes of the elements that are not NaN; NaN where all are.

    Returns:
        A tensor without the reduced dimensions; integers give ``floatx``.

    Gradient:
        ``1 / n`` to the ``n`` elements that are not NaN, 0 to NaN.

    Examples:
        >>> x = np.array([2.0, np.nan, 3.0])
        >>> print(ops.nanmean(x), gradops.grad(lambda x: ops.nanmean(x))(x))
        2.5 [0.5 0.  0.5]
    """
    x, narrow = wide(x)
    return rounded(divide(nansum(x, axis, keepdims), _count(x, axis, keepdims)), narrow)


@op(reduces=True)
def nanvar(x: Tensor, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Variance over axes of the elements that are not NaN (divided by their number); NaN where all are.

    Returns:
        A real tensor without the reduced dimensions; integers give ``floatx``.

    Gradient:
        As in :func:`var`; 0 to NaN.

    Examples:
        >>> x = np.array([2.0, np.nan, 3.0])
        >>> print(ops.nanvar(x), gradops.grad(lambda x: ops.nanvar(x))(x))
        0.25 [-0.5  0.   0.5]
    """
    x, narrow = wide(x)
    return rounded(divide(sum(squared(_distances(x, axis)), axis, keepdims), _count(x, axis, keepdims)), narrow)


def _distances(x, axis):
    """The distances from the mean, 0 for NaN."""
    return where(isnan(x), 0, subtract(x, nanmean(x, axis, True)))


@op(reduces=True)
def nanstd(x: Tensor, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Standard deviation over axes of the elements that are not NaN; NaN where all are.

    Returns:
        A real tensor without the reduced dimensions; integers give ``floatx``.

    Gradient:
        As in :func:`std`, 0 where the deviation is 0, and its derivative NaN there; 0 to NaN.

    Examples:
        >>> x = np.array([2.0, np.nan, 3.0])
        >>> print(ops.nanstd(x), gradops.grad(lambda x: ops.nanstd(x))(x))
        0.5 [-0.5  0.   0.5]
    """
    x, narrow = wide(x)
    distances = _distances(x, axis)
    deviation = root(divide(sum(squared(distances), axis, True), _count(x, axis, True)), distances)
    return rounded(unkept(deviation, axis, keepdims), narrow)


def _extreme(reduce, x, axis, keepdims, worst):
    if not dtypes.is_floating(dtype(x)):
        return reduce(x, axis, keepdims)
    missing = isnan(x)
    return where(all(missing, axis, keepdims), math.nan, reduce(where(missing, worst, x), axis, keepdims))


@op(check=check_real, reduces=True)
def nanmax(x: Tensor, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Largest element over axes that is not NaN; NaN where all are.

    Returns:
        A tensor without the reduced dimensions, of ``x``'s dtype.

    Raises:
        ArgumentError: nothing to reduce.
        ArgumentTypeError: a complex ``x``.

    Gradient:
        The upstream gradient, shared equally among tied elements; 0 to NaN.

    Examples:
        >>> x = np.array([2.0, np.nan, 3.0])
        >>> print(ops.nanmax(x), gradops.grad(lambda x: ops.nanmax(x))(x))
        3.0 [0. 0. 1.]
    """
    return _extreme(max, x, axis, keepdims, -math.inf)


@op(check=check_real, reduces=True)
def nanmin(x: Tensor, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Smallest element over axes that is not NaN; NaN where all are.

    Returns:
        A tensor without the reduced dimensions, of ``x``'s dtype.

    Raises:
        ArgumentError: nothing to reduce.
        ArgumentTypeError: a complex ``x``.

    Gradient:
        The upstream gradient, shared equally among tied elements; 0 to NaN.

    Examples:
        >>> x = np.array([2.0, np.nan, 3.0])
        >>> print(ops.nanmin(x), gradops.grad(lambda x: ops.nanmin(x))(x))
        2.0 [1. 0. 0.]
    """
    return _extreme(min, x, axis, keepdims, math.inf)


def _position(find, x, axis, keepdims, worst):
    if not dtypes.is_floating(dtype(x)):
        return find(x, axis, keepdims)
    missing = isnan(x)
    present = logical_not(missing)
    plain = all(logical_or(missing, equal(x, worst)), axis, keepdims)  # where NaN and ``worst`` look alike
    best = where(plain, argmax(present, axis, keepdims), find(where(missing, worst, x), axis, keepdims))
    return where(any(present, axis, keepdims), best, -1)


@op(differentiable=False, check=check_real, positions="all")
def nanargmax(x: Tensor, axis: Axis | None = None, keepdims: bool = False) -> Tensor:
    """Position of the largest element along an axis that is not NaN, the first at a tie.

    Returns:
        An int64 tensor of 0-based positions, of the flattened tensor without an axis; -1 where all elements
        are NaN. It has no gradient.

    Raises:
        ArgumentError: nothing to reduce.
        ArgumentTypeError: a complex ``x``.
    """
    return _position(argmax, x, axis, keepdims, -math.inf)


@op(differentiable=False, check=check_real, positions="all")
def nanargmin(x: Tensor, axis: Axis | None = None, keepdims: bool = False) -> Tensor:
    """Position of the smallest element along an axis that is not NaN, the first at a tie.

    Returns:
        An int64 tensor of 0-based positions, of the flattened tensor without an axis; -1 where all elements
        are NaN. It has no gradient.

    Raises:
        ArgumentError: nothing to reduce.
        ArgumentTypeError: a complex ``x``.
    """
    return _position(argmin, x, axis, keepdims, math.inf)
