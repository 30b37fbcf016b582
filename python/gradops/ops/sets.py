"""Sets.

Distinct elements and membership.

See Also:
    :func:`sort`, :func:`searchsorted`, :func:`bincount`, :func:`segment_sum`.
"""

from __future__ import annotations

import builtins
import math

import numpy as np

from .. import backends, config
from ..annotations import Axis, Integer, Operand, Tensor
from ..dtypes import is_floating
from ..errors import ArgumentError
from ._checks import check_axis, check_rank, integer, known
from ._compose import beside, promoted
from ._dispatch import op
from .conversion import cast, dtype, shape
from .creation import zeros_like
from .elementwise import equal, isnan, less, logical_and, logical_not, logical_or, minimum, subtract
from .extending import pad
from .indexing import take, where
from .joining import concatenate, split
from .properties import unknown
from .reductions import any, cumsum, lines, sum
from .shaping import expand_dims, reshape
from .sorting import argsort, searchsorted, sort

RETURNS_POSITIONS = ("unique",)
"""Ops whose results are positions: of ``unique`` the index and the inverse, not the counts."""


@op(differentiable=False)
def isin(x1: Tensor, x2: Tensor, assume_unique: bool = False, invert: bool = False) -> Tensor:
    """True for each element of ``x1`` that is among those of ``x2``.

    Args:
        assume_unique: accepted, as it changes no result.
        invert: True for those that are not.

    Returns:
        A bool tensor of the shape of ``x1``; NaN is not in anything. It has no gradient.
    """
    x1, x2 = promoted(x1, x2)
    x2 = reshape(x2, (-1,))
    count = shape(x2)[0]
    if not unknown(count) and count <= 8 or dtype(x1) in ("bool", "complex64", "complex128"):
        found = any(equal(expand_dims(x1, -1), x2), -1)
    else:
        ordered = sort(x2)
        at = searchsorted(where(isnan(ordered), math.inf, ordered) if is_floating(dtype(x2)) else ordered, x1)
        inside = less(at, count)
        if unknown(count):  # which may be 0
            ordered = concatenate([ordered, zeros_like(reshape(x1, (-1,)))], 0)
        found = logical_and(inside, equal(take(ordered, where(inside, at, 0)), x1))
    return logical_not(found) if invert else found


@op
def unique(
    x: Tensor,
    sorted: bool = True,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: Axis | None = None,
    size: Integer | None = None,
    fill_value: Operand | None = None,
):
    """The distinct elements of ``x``, or its distinct slices along an axis.

    Args:
        sorted: ascending; else in the order in which they first come.
        return_index: also give the position at which each first comes.
        return_inverse: also give for each element of ``x`` the position of its value in the result.
        return_counts: also give how often each comes.
        axis: compare slices along it; None for the elements of the flattened tensor.
        size: the number of results: fewer are filled up, more are cut off. Inside a trace (``jax.jit``,
            ``tf.function``) it is needed, and there is no ``axis``.
        fill_value: the value that fills up; the first result if None.

    Returns:
        A tensor, or a tuple of it and the positions and counts asked for, in the order of the arguments, in int64.
        All NaN are one.

    Raises:
        ArgumentError: inside a trace, without a size or with an axis; a size, and no elements and no ``fill_value``.

    Gradient:
        The upstream gradient to the element that comes first of each; none from the positions and counts.

    Examples:
        >>> import numpy as np
        >>> import gradops
        >>> from gradops import ops
        >>> x = np.array([3.0, 1.0, 3.0])
        >>> print(ops.unique(x), gradops.grad(lambda x: ops.sum(ops.unique(x) ** 2))(x))
        [1. 3.] [6. 2. 0.]

    See Also:
        :func:`isin`.
    """
    if axis is not None:
        axis = check_axis("unique", axis, check_rank("unique", x, 1))
    size = None if size is None else integer("unique", size, "size")
    flat, along = lines("unique", x, axis)
    nothing = bool(size) and not unknown(shape(flat)[along]) and shape(flat)[along] == 0
    if nothing and fill_value is None:
        raise ArgumentError("`unique`: of no elements give a `fill_value` with `size`.", argument="fill_value")
    data = np.zeros(shape(x)) if nothing else known(x)
    if data is not None:
        index, inverse, counts, valid = _found(data, axis, sorted, size)
        index, inverse, counts = (_positions(v, x) for v in (index, inverse, counts))
    elif size is None or axis is not None:
        raise ArgumentError("`unique`: inside a trace give a `size`, and no `axis`.", argument="size")
    else:
        index, inverse, counts, valid = _traced(x, sorted, size)
    if nothing:  # what fills up takes the place of an element
        flat = pad(flat, [(0, int(i == along)) for i in range(len(shape(flat)))])
    y = take(flat, index, along)
    if valid is not None and fill_value is not None:
        y = where(reshape(valid, [-1 if i == along else 1 for i in range(len(y.shape))]), y, beside(fill_value, x))
    wanted = ((return_index, index), (return_inverse, inverse), (return_counts, counts))
    results = (y, *(value for asked, value in wanted if asked))
    return results if len(results) > 1 else y


def _found(data, axis, sorted, size):
    """The first place of each distinct value, each element's value by number, and counts; by NumPy."""
    _, index, inverse, counts = np.unique(data, return_index=True, return_inverse=True, return_counts=True, axis=axis)
    inverse = inverse.reshape(data.shape if axis is None else -1)
    if not sorted:
        order = np.argsort(index)
        index, counts, inverse = index[order], counts[order], np.argsort(order)[inverse]
    if size is None:
        return index, inverse, counts, None
    spare = builtins.max(size - len(index), 0)
    valid = np.arange(size) < len(index)
    index = np.concatenate([index[:size], np.full(spare, index[0] if len(index) else 0)])
    return index, inverse, np.concatenate([counts[:size], np.zeros(spare, counts.dtype)]), valid


def _traced(x, sorted, size):
    """The same as ``_found``, of values that are not known yet: all shapes are."""
    flat = reshape(x, (-1,))
    count = flat.shape[0]
    order = argsort(flat)
    line = take(flat, order)
    before, after = split(line, [count - 1], 0)[0], split(line, [1], 0)[1]
    same = logical_or(equal(before, after), logical_and(isnan(before), isnan(after)))
    new = concatenate([logical_not(less(split(order, [1], 0)[0], 0)), logical_not(same)], 0)
    number = sum(new)
    rank = subtract(cumsum(cast(new, "int64")), 1)
    slots = np.arange(size, dtype="int64")
    valid = less(slots, number)
    index = take(take(order, argsort(logical_not(new))), np.minimum(slots, count - 1))
    index = where(valid, index, take(index, np.zeros(1, "int64")))
    counts = subtract(searchsorted(rank, slots, "right"), searchsorted(rank, slots, "left"))
    inverse = take(rank, argsort(order))
    if not sorted:
        turn = argsort(where(valid, index, count))
        index, counts = take(index, turn), take(counts, turn)
        inverse = take(argsort(turn), minimum(inverse, size - 1))
    return index, reshape(inverse, shape(x)), counts, valid


def _positions(values: np.ndarray, x):
    """Positions as an int64 tensor of the backend of ``x``."""
    data = x.data if hasattr(x, "_node") else x
    owner = backends.of(data) or config.default_backend()
    return owner.convert(values.astype("int64"), like=data)
