"""Pooling in 1, 2 and 3 dimensions.

``window_sum`` and ``window_spread`` are each other's derivative. The gradient of ``window_max`` goes to one position of
each window, which ``window_positions`` finds. They take settings that the public ops compute: the window and its
strides for each dimension, padding before and after it, and whether channels come first.
"""

from __future__ import annotations

import itertools as _itertools
import math

import numpy as np

from ..annotations import Integers, Tensor
from ..backends import tracing
from ._checks import check_real
from ._compose import compute_in_single, floats
from ._dispatch import op
from ._sizes import apply_to_parts, is_channels_first, multiples, pads, per_dimension, positions, spatial_sizes
from .elementwise import divide, equal, logical_and
from .indexing import take, where
from .properties import shape
from .reductions import argmax, sum
from .reductions import max as _largest
from .shaping import broadcast_to, expand_dims, reshape


@op(public=False)
def window_max(x: Tensor, window, strides, padding, channels_first) -> Tensor:
    """The largest element of each window.

    Gradient:
        To the first of the largest elements, in row-major order.
    """
    ...


@op(public=False, differentiable=False)
def window_positions(x: Tensor, y: Tensor, window, strides, padding, channels_first) -> Tensor:
    """Positions in the flattened ``x`` where each window first equals its element of ``y``; its first position for NaN.

    Returns:
        An int64 tensor of ``y``'s shape. It has no gradient.
    """
    flat = reshape(x, (-1,))
    found = broadcast_to(_flat_positions(x, y, window, strides, padding, channels_first), shape(y))
    for tap in reversed(list(_itertools.product(*map(range, window)))):
        here = _flat_positions(x, y, window, strides, padding, channels_first, tap)
        found = where(logical_and(equal(take(flat, np.maximum(here, 0)), y), here >= 0), here, found)
    return found


def _flat_positions(x, y, window, strides, padding, channels_first, tap=None):
    """Return positions in the flattened ``x`` of one tap of each window (None: the first inside); negative outside."""
    sizes, places = shape(x), shape(y)
    first = 2 if channels_first else 1
    flat, outside = np.zeros((), np.int64), np.zeros((), bool)
    for axis, (size, count) in enumerate(zip(sizes, places)):
        at, i = np.arange(count), axis - first
        if 0 <= i < len(window):
            at = at * strides[i] - padding[i][0]
            at = np.maximum(at, 0) if tap is None else at + tap[i]
        at = at.reshape([-1 if a == axis else 1 for a in range(len(sizes))])
        flat = flat * size + at
        outside = outside | (at < 0) | (at >= size)
    return np.where(outside, -1, flat)


@op(public=False, linear=("x",))
def window_sum(x: Tensor, window, strides, padding, channels_first) -> Tensor:
    """The sum of each window.

    Gradient:
        :func:`window_spread`.
    """
    ...


@op(public=False, linear=("y",))
def window_spread(y: Tensor, sizes, window, strides, padding, channels_first) -> Tensor:
    """Windows filled with the elements of ``y``, added in an image of spatial ``sizes``.

    Gradient:
        :func:`window_sum`.
    """
    ...


def _geometry(op: str, inputs, pool_size, strides, padding, data_format):
    first = is_channels_first(op, data_format)
    sizes = spatial_sizes(op, inputs, first)
    window = per_dimension(op, pool_size, len(sizes), "pool_size")
    strides = window if strides is None else per_dimension(op, strides, len(sizes), "strides")
    ones = (1,) * len(sizes)
    around = pads(op, padding, sizes, window, strides, ones)
    places = positions(op, inputs, sizes, window, strides, ones, around)
    return sizes, places, (window, strides, around, first)


__family__ = """Pooling.

In 1, 2 or 3 dimensions, each channel separately.

See Also:
    :func:`conv`, :func:`max`, :func:`mean`, :func:`gradops.ops.image.resize`.
"""


@op(check=check_real)
def max_pool(
    inputs: Tensor,
    pool_size: Integers,
    strides: Integers | None = None,
    padding: str = "valid",
    data_format: str | None = None,
) -> Tensor:
    """The largest element of each window, for each channel.

    Args:
        inputs: ``(batch, *sizes, channels)``, or ``(batch, channels, *sizes)`` with ``"channels_first"``.
        pool_size: the size of the window, one number or one for each dimension.
        strides: the steps of the window; ``pool_size`` if None.
        padding: ``"valid"``: windows within the inputs; ``"same"``: windows may extend beyond the edge, so
            that there are ``ceil(size / stride)`` results; odd padding goes after the end.

    Returns:
        ``(batch, *positions, channels)``, or with channels first; integers give ``floatx``.

    Raises:
        ShapeError: inputs smaller than the window.
        ArgumentError: an unknown ``padding`` or ``data_format``.
        ArgumentTypeError: a complex ``inputs``.

    Gradient:
        The upstream gradient to the largest element of each window; at a tie to the first in row-major order,
        as all three frameworks do (:func:`max` shares it instead).

    Examples:
        >>> x = np.arange(4.0).reshape(1, 4, 1)
        >>> print(ops.max_pool(x, 2).ravel(), gradops.grad(lambda x: ops.sum(ops.max_pool(x, 2) ** 2))(x).ravel())
        [1. 3.] [0. 2. 0. 6.]
    """
    _, _, how = _geometry("max_pool", inputs, pool_size, strides, padding, data_format)
    return window_max(floats(inputs), *how)


@op
@compute_in_single
def average_pool(
    inputs: Tensor,
    pool_size: Integers,
    strides: Integers | None = None,
    padding: str = "valid",
    data_format: str | None = None,
) -> Tensor:
    """The mean of each window, for each channel.

    Args:
        inputs, pool_size, strides, padding, data_format: as in :func:`max_pool`. Padding is not
            counted.

    Returns:
        ``(batch, *positions, channels)``, or with channels first; integers give ``floatx``.

    Raises:
        ShapeError: inputs smaller than the window.
        ArgumentError: an unknown ``padding`` or ``data_format``.

    Gradient:
        The upstream gradient, divided by the number of elements, to all of the window.

    Examples:
        >>> x = np.arange(4.0).reshape(1, 4, 1)
        >>> print(ops.average_pool(x, 2).ravel())
        [0.5 2.5]
        >>> print(gradops.grad(lambda x: ops.sum(ops.average_pool(x, 2) ** 2))(x).ravel())
        [0.5 0.5 2.5 2.5]
    """
    sizes, places, how = _geometry("average_pool", inputs, pool_size, strides, padding, data_format)
    window, strides, around, first = how
    total = apply_to_parts(lambda x: window_sum(x, *how), inputs)
    if not any(map(any, around)):
        return divide(total, float(math.prod(window)))
    return divide(total, _inside(sizes, places, window, strides, around, first))


@tracing.constant
def _inside(sizes, places, window, strides, around, first: bool) -> np.ndarray:
    """Return the number of elements of each window that are not padding."""
    count = np.ones((), np.int64)
    for n, m, k, s, (before, _) in zip(sizes, places, window, strides, around):
        start = np.arange(m) * s - before
        count = count[..., None] * (np.minimum(start + k, n) - np.maximum(start, 0))
    return count if first else count[..., None]


@tracing.constant
def _parts(n: int, m: int, after: int) -> tuple:
    """Return positions of ``m`` parts of ``n`` elements, which of them are real, and counts, before ``after`` axes."""
    starts, ends = np.arange(m) * n // m, -(-np.arange(1, m + 1) * n // m)
    index = starts[:, None] + np.arange((ends - starts).max())
    inside = index < ends[:, None]
    count = (ends - starts).reshape([-1] + [1] * after)
    return np.minimum(index, ends[:, None] - 1), inside.reshape([*inside.shape, *[1] * after]), count


def _adaptive(op: str, inputs, output_size, data_format):
    first = is_channels_first(op, data_format)
    sizes = spatial_sizes(op, inputs, first)
    if 0 in sizes:
        positions(op, inputs, sizes, (1,) * len(sizes), (1,) * len(sizes), (1,) * len(sizes), ((0, 0),) * len(sizes))
    return first, sizes, per_dimension(op, output_size, len(sizes), "output_size")


@op
@compute_in_single
def adaptive_average_pool(inputs: Tensor, output_size: Integers, data_format: str | None = None) -> Tensor:
    """The means of ``output_size`` parts of each dimension, for each channel.

    Args:
        inputs: ``(batch, *sizes, channels)``, or ``(batch, channels, *sizes)`` with ``"channels_first"``.
        output_size: the number of parts, one number or one for each dimension. If ``n`` elements have ``m`` parts,
            part ``i`` goes from ``floor(i * n / m)`` up to ``ceil((i + 1) * n / m)``, so parts may overlap.

    Returns:
        ``(batch, *output_size, channels)``, or with channels first; integers give ``floatx``.

    Raises:
        ShapeError: empty inputs.
        ArgumentError: an unknown ``data_format``.

    Gradient:
        The upstream gradient, divided by the number of elements, to all of the part.

    Examples:
        >>> x = np.arange(4.0).reshape(1, 4, 1)
        >>> print(ops.adaptive_average_pool(x, 2).ravel())
        [0.5 2.5]
        >>> print(gradops.grad(lambda x: ops.sum(ops.adaptive_average_pool(x, 2) ** 2))(x).ravel())
        [0.5 0.5 2.5 2.5]
    """
    first, sizes, output_size = _adaptive("adaptive_average_pool", inputs, output_size, data_format)
    x = inputs
    if not any(n % m for n, m in zip(sizes, output_size)):
        window = tuple(n // m for n, m in zip(sizes, output_size))
        total = apply_to_parts(lambda x: window_sum(x, window, window, ((0, 0),) * len(sizes), first), x)
        return divide(total, float(math.prod(window)))
    for axis, (n, m) in enumerate(zip(sizes, output_size), 2 if first else 1):
        index, inside, count = _parts(n, m, len(x.shape) - axis - 1)
        x = divide(sum(where(inside, take(x, index, axis), 0.0), axis + 1), count)
    return x


@op(check=check_real)
def adaptive_max_pool(inputs: Tensor, output_size: Integers, data_format: str | None = None) -> Tensor:
    """The largest elements of ``output_size`` parts of each dimension, for each channel.

    Args:
        inputs, output_size, data_format: as in :func:`adaptive_average_pool`.

    Returns:
        ``(batch, *output_size, channels)``, or with channels first; integers give ``floatx``.

    Raises:
        ShapeError: empty inputs.
        ArgumentError: an unknown ``data_format``.
        ArgumentTypeError: a complex ``inputs``.

    Gradient:
        The upstream gradient to the largest element of each part; at a tie to the first in row-major order.

    Examples:
        >>> x = np.arange(4.0).reshape(1, 4, 1)
        >>> print(ops.adaptive_max_pool(x, 2).ravel())
        [1. 3.]
        >>> print(gradops.grad(lambda x: ops.sum(ops.adaptive_max_pool(x, 2) ** 2))(x).ravel())
        [0. 2. 0. 6.]
    """
    first, _, output_size = _adaptive("adaptive_max_pool", inputs, output_size, data_format)
    x = floats(inputs)
    return take(reshape(x, (-1,)), adaptive_positions(x, output_size, first))


@op(public=False, differentiable=False)
def adaptive_positions(x: Tensor, output_size, channels_first) -> Tensor:
    """The positions in the flattened ``x`` of the largest elements of its parts.

    Returns:
        An int64 tensor of the pooled shape. It has no gradient.
    """
    first = 2 if channels_first else 1
    sizes = shape(x)[first : first + len(output_size)]
    places = multiples(math.prod(shape(x)), 1, shape(x))
    # The last dimension first, so that of equal elements the first in row-major order is chosen.
    for axis, (n, m) in reversed(list(enumerate(zip(sizes, output_size), first))):
        index, inside, _ = _parts(n, m, len(x.shape) - axis - 1)
        elements = where(inside, take(x, index, axis), -np.inf)
        best = expand_dims(argmax(elements, axis + 1), axis + 1)
        width = np.arange(shape(elements)[axis + 1]).reshape([-1] + [1] * (len(x.shape) - axis - 1))
        x = _largest(elements, axis + 1)
        places = sum(where(equal(best, width), take(places, index, axis), 0), axis + 1)
    return places
