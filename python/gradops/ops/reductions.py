"""Reductions, and running sums and products."""

from __future__ import annotations

import math
from typing import Any

from .. import dtypes
from ..annotations import Axes, Axis, DType, Integer, Tensor
from ..backends._shared import combined
from ._checks import check_axes, check_axis, check_rank, check_real, integer
from ._compose import compute_in_single, is_complex
from ._dispatch import op
from ._docstrings import family
from .conversion import cast, ndim, shape
from .conversion import dtype as dtype_of
from .creation import zeros_like
from .elementwise import add, equal, imag, logical_and, multiply, not_equal, real, sqrt, square, subtract
from .indexing import where
from .joining import concatenate, split
from .properties import unknown
from .shaping import reshape, transpose

__family__ = """Sums and products.

Over one or several dimensions, or all if ``axis`` is None. ``keepdims`` keeps reduced dimensions with size 1.

See Also:
    :func:`mean`, :func:`cumsum`, :func:`segment_sum`, :func:`nansum`, :func:`einsum`.
"""


@op(reduces=True, linear=("x",), folds="add")
def sum(x: Tensor, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Sum over axes.

    Returns:
        A tensor without the reduced dimensions; integers and bools add up in 64 bits.

    Gradient:
        1, broadcast to ``x``.

    Examples:
        >>> x = np.array([[1.0, 2.0], [3.0, 4.0]])
        >>> print(ops.sum(x, axis=0))
        [4. 6.]
        >>> print(gradops.grad(lambda x: ops.sum(x * x))(x))
        [[2. 4.]
         [6. 8.]]

    See Also:
        :func:`mean`, :func:`segment_sum`, :func:`cumsum`.
    """
    ...


@op(reduces=True, folds="multiply")
def prod(x: Tensor, axis: Axes = None, keepdims: bool = False, dtype: DType | None = None) -> Tensor:
    """Product over axes.

    Returns:
        A tensor without the reduced dimensions; integers multiply in 64 bits.

    Gradient:
        The product of the other elements, also where elements are 0, and so to second order.

    Examples:
        >>> x = np.array([1.0, 3.0, 2.0])
        >>> print(ops.prod(x), gradops.grad(lambda x: ops.prod(x))(x))
        6.0 [6. 2. 3.]
    """
    x = wide(x) if dtype is None else cast(x, dtype)
    rank = ndim(x)
    axes = check_axes("prod", axis, rank)
    singles = tuple(1 if i in axes else n for i, n in enumerate(shape(x)))
    rest = tuple(n for i, n in enumerate(shape(x)) if i not in axes)
    if len(axes) != 1:
        count = _count([shape(x)[a] for a in axes])
        x = transpose(x, (*(i for i in range(rank) if i not in axes), *axes)) if rank else x
        x = reshape(x, (*rest, count))
        along = len(rest)
    else:
        along = axes[0]
    return reshape(_tree_product(x, along), singles if keepdims else rest)


def _count(sizes) -> int:
    """Return the number of elements of a shape."""
    total = 1
    for n in sizes:
        total *= n
    return total


def _tree_product(x, axis):
    """Return the product along an axis by multiplying halves: no division, so derivatives at 0 are all right."""
    spare = None
    if shape(x)[axis] == 0:
        return add(sum(x, axis, True), 1)
    while shape(x)[axis] > 1:
        half = shape(x)[axis] // 2
        first, second, *odd = split(x, [half, 2 * half], axis)
        x = multiply(first, second)
        if odd and odd[0].shape[axis]:
            spare = odd[0] if spare is None else multiply(spare, odd[0])
    return x if spare is None else multiply(x, spare)


@op(reduces=True, costly=True)
def logsumexp(x: Tensor, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """``log(sum(exp(x)))`` over axes, without overflow.

    Returns:
        A tensor without the reduced dimensions; integers give ``floatx``.

    Gradient:
        ``softmax(x)`` over the axes.

    Examples:
        The log likelihood of a mixture of two components; the gradient by their logs are the responsibilities:

        >>> import numpy as np
        >>> import gradops
        >>> from gradops import ops
        >>> log_likelihoods = np.array([-1000.0, -1001.0])
        >>> print(ops.logsumexp(log_likelihoods).round(4))
        -999.6867
        >>> print(gradops.grad(ops.logsumexp)(log_likelihoods).round(4))
        [0.7311 0.2689]

    See Also:
        :func:`logaddexp` of two tensors, :func:`softmax`.
    """
    ...


__family__ = """Means and variances.

Over one or several dimensions, or all if ``axis`` is None. Variances are divided by ``n``, not ``n - 1``.

See Also:
    :func:`sum`, :func:`nanmean`, :func:`median`, :func:`layer_normalization`, :func:`corrcoef`.
"""


@op(reduces=True, linear=("x",))
def mean(x: Tensor, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Mean over axes.

    Returns:
        A tensor without the reduced dimensions; integers give ``floatx``.

    Gradient:
        ``1 / n``, broadcast to ``x``.

    Examples:
        >>> print(gradops.grad(ops.mean)(np.array([1.0, 2.0, 3.0, 6.0])))
        [0.25 0.25 0.25 0.25]

    See Also:
        :func:`sum`, :func:`var`, :func:`moments`.
    """
    ...


@op(reduces=True)
@compute_in_single
def var(x: Tensor, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Variance over axes: the mean squared distance from the mean (divided by ``n``, not ``n - 1``).

    Returns:
        A real tensor without the reduced dimensions; integers give ``floatx``.

    Gradient:
        ``2 * (x - mean(x)) / n``.

    Examples:
        >>> x = np.array([1.0, 3.0, 2.0])
        >>> print(ops.var(x).round(4), gradops.grad(lambda x: ops.var(x))(x).round(4))
        0.6667 [-0.6667  0.6667  0.    ]
    """
    return mean(squared(subtract(x, mean(x, axis, True))), axis, keepdims)


@op(reduces=True)
@compute_in_single
def std(x: Tensor, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Standard deviation over axes, the square root of :func:`var`.

    Returns:
        A real tensor without the reduced dimensions; integers give ``floatx``.

    Gradient:
        ``(x - mean(x)) / (n * std(x))``; 0 where the deviation is 0, and its derivative NaN there.

    Examples:
        >>> x = np.array([1.0, 3.0, 2.0])
        >>> print(ops.std(x).round(4), gradops.grad(lambda x: ops.std(x))(x).round(4))
        0.8165 [-0.4082  0.4082  0.    ]
    """
    distance = subtract(x, mean(x, axis, True))
    return unkept(root(mean(squared(distance), axis, True), distance), axis, keepdims)


def squared(x):
    """Return squared absolute values, which are smooth at 0, unlike the absolute values of complex numbers."""
    return add(square(real(x)), square(imag(x))) if is_complex(x) else square(x)


def root(squares, x):
    """Return the square root of ``squares``, which is smooth in ``x`` and is 0 only at its minimum.

    Args:
        squares: a tensor of ``x``'s rank, with size 1 for the dimensions of ``x`` that it combines.

    The derivative at 0 is 0, the shortest subgradient. :func:`kink` makes the second derivative there NaN.
    """
    zero = equal(squares, 0)
    return where(zero, kink(real_components(x), zero), sqrt(where(zero, 1, squares)))


def real_components(x):
    """Return real and imaginary parts of a complex tensor as one real tensor; a real tensor unchanged."""
    return combined(real(x), imag(x)) if is_complex(x) else x


def unkept(y, axis, keepdims: bool):
    """Return a reduction made with ``keepdims``, without the dimensions of size 1 unless they are wanted."""
    return y if keepdims else sum(y, axis)


@op(public=False)
def kink(x: Tensor, zero: Tensor) -> Tensor:
    """0 of the shape of ``zero``, for functions with a kink in ``x`` there, such as a norm at 0.

    Args:
        zero: where the kinks are; of ``x``'s rank, with size 1 for the dimensions whose elements form a vector.

    Gradient:
        0, whose own derivatives are NaN in each direction that moves a vector away from its kink, for any upstream
        gradient. A rule linear in the upstream gradient would make the second derivative of ``norm(x)**2`` 0 instead
        of 2, as the chain rule multiplies 0 by infinity there.
    """
    return zeros_like(cast(zero, dtype_of(x)))


# The gradient of a kink and its tangent in the direction `t` are 0; `kink_curve` is the derivative of both by `x`.


@op(public=False)
def kink_pulled(t: Tensor, x: Tensor, zero: Tensor) -> Tensor:
    """The gradient of :func:`kink` for an upstream gradient ``t``: 0 of the shape of ``x``."""
    return zeros_like(x)


@op(public=False)
def kink_pushed(t: Tensor, x: Tensor, zero: Tensor) -> Tensor:
    """The tangent of :func:`kink` in direction ``t``: 0 of the shape of ``zero``."""
    return zeros_like(cast(zero, dtype_of(real(x))))


@op(public=False)
def kink_curve(t: Tensor, x: Tensor, zero: Tensor) -> Tensor:
    """NaN where direction ``t`` moves a vector away from its kink, else 0, as are its derivatives.

    It is treated as linear in ``t``.
    """
    return where(moved(t, zero), complex(math.nan, math.nan) if is_complex(t) else math.nan, zeros_like(t))


@op(public=False)
def kink_curved(u: Tensor, t: Tensor, x: Tensor, zero: Tensor) -> Tensor:
    """The gradient of :func:`kink_pushed` for ``x``, for any upstream gradient ``u``."""
    return kink_curve(t, x, zero)


def moved(t, zero):
    """True where ``zero`` holds and the vector of ``t`` is not 0."""
    return logical_and(zero, any(not_equal(t, 0), vector_axes(zero), True))


def vector_axes(zero) -> tuple:
    """Return the dimensions over which vectors extend, from the shape of :func:`kink`'s ``zero``."""
    return tuple([i for i, n in enumerate(zero.shape) if n == 1])


__family__ = """Extremes along axes.

Over one or several dimensions, or all if ``axis`` is None. NaN takes precedence; tied elements share the gradient.

See Also:
    :func:`maximum` of two tensors, :func:`nanmax`, :func:`top_k`, :func:`sort`, :func:`logsumexp`, which is smooth.
"""


of_largest = family(
    returns="A tensor without the reduced dimensions, of ``x``'s dtype. NaN wins.",
    gradient="The upstream gradient, shared equally among tied elements.",
)


@op(check=check_real, reduces=True, folds="maximum", exact=True)
@of_largest
def max(x: Tensor, axis: Axes = None, keepdims: bool = False, initial=None) -> Tensor:
    """Largest element over axes.

    Args:
        initial: the result where there is nothing to reduce, and a bound elsewhere.

    Raises:
        ArgumentError: nothing to reduce and no ``initial``, or one that the dtype does not hold.
        ArgumentTypeError: a complex ``x``.

    Examples:
        Several largest elements share the gradient:

        >>> import numpy as np
        >>> import gradops
        >>> from gradops import ops
        >>> print(gradops.grad(ops.max)(np.array([1.0, 3.0, 3.0])))
        [0.  0.5 0.5]

    See Also:
        :func:`argmax`, :func:`logsumexp`, which is smooth; :func:`top_k`.
    """
    ...


@op(reduces=True)
@of_largest
def amax(x: Tensor, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Largest element over axes, as :func:`max`.

    Raises:
        ArgumentError: nothing to reduce.

    Examples:
        >>> x = np.array([1.0, 3.0, 2.0])
        >>> print(ops.amax(x), gradops.grad(lambda x: ops.amax(x))(x))
        3.0 [0. 1. 0.]
    """
    return max(x, axis, keepdims)


@op(check=check_real, reduces=True, folds="minimum", exact=True)
@of_largest
def min(x: Tensor, axis: Axes = None, keepdims: bool = False, initial=None) -> Tensor:
    """Smallest element over axes.

    Args:
        initial: the result where there is nothing to reduce, and a bound elsewhere.

    Raises:
        ArgumentError: nothing to reduce and no ``initial``, or one that the dtype does not hold.
        ArgumentTypeError: a complex ``x``.

    Examples:
        >>> x = np.array([1.0, 3.0, 2.0])
        >>> print(ops.min(x), gradops.grad(lambda x: ops.min(x))(x))
        1.0 [1. 0. 0.]
    """
    ...


@op(reduces=True)
@of_largest
def amin(x: Tensor, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Smallest element over axes, as :func:`min`.

    Raises:
        ArgumentError: nothing to reduce.

    Examples:
        >>> x = np.array([1.0, 3.0, 2.0])
        >>> print(ops.amin(x), gradops.grad(lambda x: ops.amin(x))(x))
        1.0 [1. 0. 0.]
    """
    return min(x, axis, keepdims)


@op(check=check_real, reduces=True)
def ptp(x: Tensor, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The range, largest minus smallest element, over axes.

    Returns:
        A tensor without the reduced dimensions, of ``x``'s dtype.

    Raises:
        ArgumentError: nothing to reduce.
        ArgumentTypeError: a complex ``x``.

    Gradient:
        1 to the largest and -1 to the smallest element, shared equally among tied ones.

    Examples:
        >>> x = np.array([1.0, 3.0, 2.0])
        >>> print(ops.ptp(x), gradops.grad(lambda x: ops.ptp(x))(x))
        2.0 [-1.  1.  0.]
    """
    return subtract(max(x, axis, keepdims), min(x, axis, keepdims))


@op(differentiable=False, check=check_real, reduces=True, exact=True, positions="all")
def argmax(x: Tensor, axis: Axis | None = None, keepdims: bool = False) -> Tensor:
    """Position of the largest element along an axis, the first at a tie; of the flattened tensor without one.

    Returns:
        An int64 tensor of 0-based positions. It has no gradient.

    Raises:
        ArgumentError: nothing to reduce.
        ArgumentTypeError: a complex ``x``.
    """
    ...


@op(differentiable=False, check=check_real, reduces=True, exact=True, positions="all")
def argmin(x: Tensor, axis: Axis | None = None, keepdims: bool = False) -> Tensor:
    """Position of the smallest element along an axis, the first at a tie; of the flattened tensor without one.

    Returns:
        An int64 tensor of 0-based positions. It has no gradient.

    Raises:
        ArgumentError: nothing to reduce.
        ArgumentTypeError: a complex ``x``.
    """
    ...


__family__ = """Truth and counts.

Counts and truth values, which have no gradient, except for weights.

See Also:
    :func:`sum`, :func:`logical_and`, :func:`digitize`, :func:`segment_sum`, :func:`unique`.
"""


@op(differentiable=False, reduces=True, folds="logical_and", exact=True, conditions=("x",))
def all(x: Tensor, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """True where all elements over axes are true (not 0).

    Returns:
        A bool tensor without the reduced dimensions. It has no gradient.
    """
    ...


@op(differentiable=False, reduces=True, folds="logical_or", exact=True, conditions=("x",))
def any(x: Tensor, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """True where any element over axes is true (not 0).

    Returns:
        A bool tensor without the reduced dimensions. It has no gradient.
    """
    ...


@op(differentiable=False, reduces=True, conditions=("x",))
def count_nonzero(x: Tensor, axis: Axes = None) -> Tensor:
    """The number of elements over axes that are not 0.

    Returns:
        An int64 tensor without the reduced dimensions. It has no gradient.
    """
    return sum(not_equal(x, 0), axis)


__family__ = """Running sums, differences and integrals.

Along one dimension.

See Also:
    :func:`sum`, :func:`nancumsum`, :func:`associative_scan`, :func:`scan`.
"""


@op(linear=("x",))
def cumsum(x: Tensor, axis: Axis | None = None, dtype: DType | None = None) -> Tensor:
    """Running sum along an axis; of the flattened tensor without one.

    Returns:
        A tensor of ``x``'s shape (flat without an axis); integers and bools add up in 64 bits.

    Gradient:
        The running sum of the upstream gradient from the end.

    Examples:
        >>> x = np.array([1.0, 3.0, 2.0])
        >>> print(ops.cumsum(x), gradops.grad(lambda x: ops.sum(ops.cumsum(x) ** 2))(x))
        [1. 4. 6.] [22. 20. 12.]
    """
    ...


@op
def cumprod(x: Tensor, axis: Axis | None = None, dtype: DType | None = None) -> Tensor:
    """Running product along an axis; of the flattened tensor without one.

    Returns:
        A tensor of ``x``'s shape (flat without an axis); integers and bools multiply in 64 bits.

    Gradient:
        The products of the other elements, also where elements are 0 and to any order: the scan of Hillis
        and Steele (1986) has no division.

    Examples:
        >>> x = np.array([1.0, 3.0, 2.0])
        >>> print(ops.cumprod(x), gradops.grad(lambda x: ops.sum(ops.cumprod(x)))(x))
        [1. 3. 6.] [10.  3.  3.]
    """
    x = wide(x) if dtype is None else cast(x, dtype)
    whole = shape(x) if axis is not None else None
    x, axis = lines("cumprod", x, axis)
    size, step = shape(x)[axis], 1
    while step < size:
        before = split(x, [size - step], axis)[0]
        first, rest = split(x, [step], axis)
        x = concatenate([first, multiply(rest, before)], axis)
        step *= 2
    return x if whole is None else reshape(x, whole)


def wide(x):
    """Return bools and small integers as int64, in which they are added."""
    name = dtype_of(x)
    return x if dtypes.is_floating(name) or dtypes.bits(name) == 64 else cast(x, "int64")


@op(linear=("a",))
def diff(a: Tensor, n: Integer = 1, axis: Axis = -1) -> Tensor:
    """Differences of neighbours along an axis, taken ``n`` times.

    Args:
        n: the number of times.

    Returns:
        A tensor ``n`` shorter along the axis (or empty); for bools, whether neighbours differ.

    Raises:
        ArgumentError: a negative ``n``.
        AxisError: an axis out of range, or a tensor without dimensions.

    Gradient:
        The upstream gradient of the difference before, minus that of the one after.

    Examples:
        >>> x = np.array([1.0, 3.0, 2.0])
        >>> print(ops.diff(x), gradops.grad(lambda x: ops.sum(ops.diff(x) ** 2))(x))
        [ 2. -1.] [-4.  6. -2.]
    """
    n = integer("diff", n, "n", 0)
    rank = check_rank("diff", a, 1, "a")
    axis = check_axis("diff", axis, rank)
    differ = not_equal if dtype_of(a) == "bool" else subtract
    for _ in range(n):
        size = shape(a)[axis]
        if not unknown(size) and size < 2:
            return split(a, [0], axis)[0]
        a = differ(split(a, [1], axis)[1], split(a, [size - 1], axis)[0])
    return a


def lines(op: str, x, axis) -> tuple[Any, int]:
    """Return ``x`` and a non-negative axis; if ``axis`` is None, the flattened ``x`` and 0."""
    if axis is None:
        return reshape(x, (-1,)), 0
    rank = ndim(x)
    axis = check_axis(op, axis, rank)
    return (x, axis) if rank else (reshape(x, (1,)), 0)
