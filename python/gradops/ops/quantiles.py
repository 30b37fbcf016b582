"""Quantiles.

Quantiles by sorting, over one or several dimensions, or all if ``axis`` is None. A NaN makes the result NaN; ops whose
names begin with ``nan`` ignore it.

See Also:
    :func:`sort`, :func:`mean`, :func:`max`, :func:`nanmean`.
"""

from __future__ import annotations

import math

import numpy as np

from ..annotations import Axes, Operand, Tensor
from ..errors import ArgumentError
from ._checks import check_axes, check_kind, check_real, choice, known
from ._compose import NUMBERS, constant_like, rounded, wide
from ._dispatch import op
from .conversion import cast, ndim, shape
from .elementwise import (
    add,
    ceil,
    divide,
    equal,
    floor,
    isinf,
    isnan,
    logical_and,
    logical_not,
    maximum,
    minimum,
    mod,
    multiply,
    round,
    subtract,
)
from .indexing import take, where
from .joining import split
from .properties import is_empty, unknown
from .reductions import sum
from .shaping import moveaxis, reshape, transpose
from .sorting import pick, sort

_CONTINUOUS = {
    "linear": (1.0, 1.0),
    "interpolated_inverted_cdf": (0.0, 1.0),
    "hazen": (0.5, 0.5),
    "weibull": (0.0, 0.0),
    "median_unbiased": (1 / 3, 1 / 3),
    "normal_unbiased": (3 / 8, 3 / 8),
}
"""The ``alpha`` and ``beta`` of Hyndman and Fan (1996), who number them 7, 4, 5, 6, 8 and 9."""
METHODS = (
    *_CONTINUOUS,
    "lower",
    "higher",
    "midpoint",
    "nearest",
    "inverted_cdf",
    "averaged_inverted_cdf",
    "closest_observation",
)


def _fractions(limit):
    def check(op, x, q, axis, method, keepdims):
        check_kind(op.name, x, (0, 1, 2), "real")
        check_kind(op.name, q, (0, 1, 2), "real", "q")
        choice(op.name, method, METHODS, "method")
        values = known(q)
        if values is not None and not ((values >= 0) & (values <= limit)).all():
            raise ArgumentError(f"`{op.name}`: `q` must be between 0 and {limit}; got {q}.", argument="q")

    return check


@op(check=_fractions(1))
def quantile(x: Tensor, q: Operand, axis: Axes = None, method: str = "linear", keepdims: bool = False) -> Tensor:
    """Quantiles over axes.

    Args:
        q: fractions between 0 and 1: a number, or a tensor of any shape.
        method: the value between two elements: ``"linear"``, ``"lower"``, ``"higher"``, ``"midpoint"``,
            ``"nearest"``; or a definition of Hyndman and Fan (1996): ``"inverted_cdf"``,
            ``"averaged_inverted_cdf"``, ``"closest_observation"``, ``"interpolated_inverted_cdf"``, ``"hazen"``,
            ``"weibull"``, ``"median_unbiased"``, ``"normal_unbiased"``.

    Returns:
        A tensor of ``q``'s dimensions, then the remaining ones of ``x``, in ``x``'s dtype (integers give ``floatx``).
        NaN where ``x`` has NaN.

    Raises:
        ArgumentError: ``q`` out of range, an unknown method, nothing to reduce.

    Gradient:
        To the two elements around the quantile, with the weights of interpolation; to ``q``, the slope between them.

    Examples:
        >>> x = np.array([1.0, 3.0, 2.0])
        >>> print(ops.quantile(x, 0.25), gradops.grad(lambda x: ops.quantile(x, 0.25))(x))
        1.5 [0.5 0.  0.5]
    """
    return _quantile("quantile", x, q, axis, method, keepdims)


@op(check=_fractions(100))
def percentile(x: Tensor, q: Operand, axis: Axes = None, method: str = "linear", keepdims: bool = False) -> Tensor:
    """Percentiles over axes: :func:`quantile` of ``q / 100``.

    Args:
        q: percentages between 0 and 100: a number, or a tensor of any shape.
        method: as in :func:`quantile`.

    Returns:
        As :func:`quantile`.

    Raises:
        ArgumentError: ``q`` out of range, an unknown method, nothing to reduce.

    Gradient:
        As :func:`quantile`.

    Examples:
        >>> x = np.array([1.0, 3.0, 2.0])
        >>> print(ops.percentile(x, 25.0), gradops.grad(lambda x: ops.percentile(x, 25.0))(x))
        1.5 [0.5 0.  0.5]
    """
    return _quantile("percentile", x, divide(_fraction_tensors(q, x), 100), axis, method, keepdims)


@op(check=check_real)
def median(x: Tensor, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Median over axes; for an even number of elements, the mean of the middle two.

    Returns:
        A tensor without the reduced dimensions; integers give ``floatx``. NaN where there is NaN.

    Raises:
        ArgumentError: nothing to reduce.
        ArgumentTypeError: a complex ``x``.

    Gradient:
        To the element in the middle, or half to each of the two.

    Examples:
        >>> x = np.array([1.0, 3.0, 2.0])
        >>> print(ops.median(x), gradops.grad(lambda x: ops.median(x))(x))
        2.0 [0. 0. 1.]
    """
    return _quantile("median", x, 0.5, axis, "linear", keepdims)


@op(check=_fractions(1))
def nanquantile(x: Tensor, q: Operand, axis: Axes = None, method: str = "linear", keepdims: bool = False) -> Tensor:
    """Quantiles over axes of the elements that are not NaN.

    Args:
        q: fractions between 0 and 1: a number, or a tensor of any shape.
        method: as in :func:`quantile`.

    Returns:
        As :func:`quantile`; NaN only where all elements are.

    Raises:
        ArgumentError: ``q`` out of range, an unknown method, nothing to reduce.

    Gradient:
        As :func:`quantile`; 0 to NaN.

    Examples:
        >>> x = np.array([1.0, np.nan, 2.0])
        >>> print(ops.nanquantile(x, 0.25), gradops.grad(lambda x: ops.nanquantile(x, 0.25))(x))
        1.25 [0.75 0.   0.25]
    """
    return _quantile("nanquantile", x, q, axis, method, keepdims, skip=True)


@op(check=_fractions(100))
def nanpercentile(x: Tensor, q: Operand, axis: Axes = None, method: str = "linear", keepdims: bool = False) -> Tensor:
    """Percentiles over axes of the elements that are not NaN.

    Args:
        q: percentages between 0 and 100: a number, or a tensor of any shape.
        method: as in :func:`quantile`.

    Returns:
        As :func:`quantile`; NaN only where all elements are.

    Raises:
        ArgumentError: ``q`` out of range, an unknown method, nothing to reduce.

    Gradient:
        As :func:`quantile`; 0 to NaN.

    Examples:
        >>> x = np.array([1.0, np.nan, 2.0])
        >>> print(ops.nanpercentile(x, 25.0), gradops.grad(lambda x: ops.nanpercentile(x, 25.0))(x))
        1.25 [0.75 0.   0.25]
    """
    return _quantile("nanpercentile", x, divide(_fraction_tensors(q, x), 100), axis, method, keepdims, skip=True)


@op(check=check_real)
def nanmedian(x: Tensor, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Median over axes of the elements that are not NaN.

    Returns:
        A tensor without the reduced dimensions; NaN only where all elements are. Integers give ``floatx``.

    Raises:
        ArgumentError: nothing to reduce.
        ArgumentTypeError: a complex ``x``.

    Gradient:
        To the element in the middle, or half to each of the two; 0 to NaN.

    Examples:
        >>> x = np.array([1.0, np.nan, 2.0])
        >>> print(ops.nanmedian(x), gradops.grad(lambda x: ops.nanmedian(x))(x))
        1.5 [0.5 0.  0.5]
    """
    return _quantile("nanmedian", x, 0.5, axis, "linear", keepdims, skip=True)


def _quantile(op, x, q, axis, method, keepdims, skip=False):
    x, narrow = wide(x)
    rank = ndim(x)
    axes = check_axes(op, axis, rank)
    rest = [i for i in range(rank) if i not in axes]
    singles = [1 if i in axes else n for i, n in enumerate(shape(x))]
    outer = [shape(x)[i] for i in rest]
    count = math.prod([shape(x)[i] for i in axes])
    if is_empty((count,)):
        raise ArgumentError(f"`{op}`: there must be an element to reduce.", argument="x")
    asked = () if isinstance(q, (int, float)) else shape(q)
    line = sort(reshape(transpose(x, (*rest, *axes)) if rank else x, (*outer, count)), -1)
    fractions = reshape(_fraction_tensors(q, x), (-1,))
    size = cast(count, "float64") if unknown(count) else count
    if skip:
        size = cast(sum(logical_not(isnan(line)), -1, True), "float64")
    low, high, weight = _places(fractions, size, method)
    pair = [pick(line, p) if skip else take(line, p, -1) for p in (low, high)]
    weight = constant_like(weight, x)
    gap = where(logical_and(isinf(pair[0]), equal(*pair)), 0, subtract(pair[1], pair[0]))
    y = add(pair[0], multiply(gap, weight))
    if not skip:
        last = split(line, [count - 1], -1)[1]
        y = where(isnan(last), last, y)
    y = moveaxis(y, -1, 0)
    return rounded(reshape(y, (*asked, *(singles if keepdims else outer))), narrow)


def _fraction_tensors(q, x):
    """Return fractions as float64 tensors of ``x``'s library; plain numbers would go to the default backend."""
    return constant_like(np.asarray(q) if isinstance(q, (*NUMBERS, list, tuple)) else q, x, "float64")


def _places(q, size, method):
    """Return the positions of the two sorted elements around each quantile, and the weight of the second."""
    most = subtract(size, 1) if not isinstance(size, int) else size - 1
    if method in _CONTINUOUS:
        alpha, beta = _CONTINUOUS[method]
        at = add(multiply(q, size), subtract(add(multiply(q, 1 - alpha - beta), alpha), 1))
        if method == "linear":
            at = multiply(q, most)
    elif method in ("lower", "higher", "midpoint", "nearest"):
        at = multiply(q, most)
    else:
        at = subtract(multiply(q, size), {"closest_observation": 1.5}.get(method, 1))
    below = floor(at)
    weight = subtract(at, below)
    whole = equal(weight, 0)
    if method == "lower":
        at, weight = below, 0.0
    elif method == "higher":
        at, weight = ceil(at), 0.0
    elif method == "nearest":
        at, weight = round(at), 0.0
    elif method == "midpoint":
        weight = where(whole, 0.0, 0.5)
    elif method == "inverted_cdf":
        weight = where(whole, 0.0, 1.0)
    elif method == "averaged_inverted_cdf":
        weight = where(whole, 0.5, 1.0)
    elif method == "closest_observation":
        weight = where(logical_and(whole, equal(mod(below, 2), 1)), 0.0, 1.0)  # at ties the even one, as R
    bound = max(most, 0) if isinstance(most, int) else maximum(most, 0)
    first = floor(at)
    low, high = (cast(minimum(maximum(v, 0), bound), "int64") for v in (first, add(first, 1)))
    return low, high, weight
