"""Transforms of images.

Images read at positions between the pixels. Positions are in pixels; integers are the centres of pixels. Gradients
reach the positions, so that a transform can be fitted to images (Jaderberg, Simonyan, Zisserman and Kavukcuoglu
2015).

See Also:
    :func:`gradops.ops.image.resize`, :func:`rot90`, :func:`take`.
"""

from __future__ import annotations

import itertools
import operator

import numpy as np

from ... import _scipy
from ...annotations import Integer, Tensor
from ...errors import ArgumentError, Given, ShapeError
from .. import _checks
from .._dispatch import op
from .._sizes import multiples
from ..conversion import cast, dtype, shape
from ..elementwise import (
    add,
    divide,
    equal,
    floor,
    greater_equal,
    isfinite,
    less,
    logical_and,
    maximum,
    minimum,
    multiply,
    subtract,
)
from ..indexing import get_item, take, where
from ..joining import concatenate
from ..products import einsum, matmul
from ..properties import fits
from ..shaping import expand_dims, reshape, swapaxes, transpose
from ._layout import FILL_MODES, axes_of, check_pixels, constant, map_inside, restored, working, working_dtype

__all__ = ["affine_transform", "elastic_transform", "map_coordinates", "perspective_transform"]

_ORDERS = {"nearest": 0, "bilinear": 1}
_MAX_POSITION = 2.0**53
"""The bound that positions are clipped to; larger integers are neither exact nor safe to cast."""


def _pixels(place, size: int, order: int, mode: str):
    """Return the pixels around positions along one axis, each with whether it exists and its weight."""
    lower = floor(place) if order else floor(add(place, 0.5))
    index = cast(minimum(maximum(where(isfinite(lower), lower, 0.0), -_MAX_POSITION), _MAX_POSITION), "int64")
    upper_weight = subtract(place, lower) if order else None
    found = []
    for step, weight in ((0, None),) if not order else ((0, subtract(1.0, upper_weight)), (1, upper_weight)):
        at = add(index, step)
        exists = logical_and(greater_equal(at, 0), less(at, size)) if mode == "constant" else None
        found.append((map_inside(at, size, mode), exists, weight))
    return found


def _read(flat, sizes, places, order: int, mode: str, fill_value, start=None):
    """Return values of an image at positions, by the nearest pixel or by linear interpolation.

    Args:
        flat: the image with ``sizes`` flattened into the first dimension; another dimension may follow.
        places: a tensor of positions for each of ``sizes``.
        start: where in ``flat`` the image of each position starts.
    """
    channels = len(flat.shape) > 1
    name = dtype(flat)
    if order:
        flat = working(flat)
    fill = constant(np.asarray(fill_value), flat, dtype(flat))
    strides = list(itertools.accumulate(sizes[:0:-1], operator.mul, initial=1))[::-1]
    total = None
    for corner in itertools.product(*(_pixels(p, n, order, mode) for p, n in zip(places, sizes))):
        index, exists, weight = start, None, None
        for (at, there, share), stride in zip(corner, strides):
            index = multiply(at, stride) if index is None else add(index, multiply(at, stride))
            if there is not None:
                exists = there if exists is None else logical_and(exists, there)
            if share is not None:
                weight = share if weight is None else multiply(weight, share)
        value = take(flat, index, 0)
        if exists is not None:
            value = where(expand_dims(exists, -1) if channels else exists, value, fill)
        if weight is not None:
            weight = cast(weight, dtype(flat))
            value = multiply(value, expand_dims(weight, -1) if channels else weight)
        total = value if total is None else add(total, value)
    return restored(total, name)


def _warp(op: str, images, data_format, interpolation: str, mode: str, fill_value, places):
    """Return images read at ``places(height, width, count)``: rows and columns ``(1 or count, height, width)``."""
    (rows, columns), channels = axes_of(op, images, data_format)
    _checks.choice(op, interpolation, tuple(_ORDERS), "interpolation")
    _checks.choice(op, mode, FILL_MODES, "fill_mode")
    check_pixels(op, images, (rows, columns))
    rank = len(images.shape)
    count = shape(images)[0] if rank == 4 else 1
    height, width, depth = shape(images)[rows], shape(images)[columns], shape(images)[channels]
    order = [*range(rank - 3), rows, columns, channels]
    flat = reshape(transpose(images, order) if channels != rank - 1 else images, (count * height * width, depth))
    start = multiples(count, height * width, (-1, 1, 1))
    result = _read(flat, (height, width), places(height, width, count), _ORDERS[interpolation], mode, fill_value, start)
    result = reshape(result, [shape(images)[a] for a in order])
    return transpose(result, [order.index(a) for a in range(rank)]) if channels != rank - 1 else result


def _projected(matrix, height: int, width: int):
    """Return the rows and columns that projective maps ``(n, 3, 3)`` take pixels to; far outside at the horizon."""
    name = dtype(matrix)
    x = constant(np.arange(width), matrix, name)
    y = constant(np.arange(height)[:, None], matrix, name)

    def line(row):
        a, b, c = (reshape(get_item(matrix, (slice(None), row, i)), (-1, 1, 1)) for i in range(3))
        return add(add(multiply(x, a), multiply(y, b)), c)

    depth = line(2)
    horizon = equal(depth, 0.0)
    safe = where(horizon, 1.0, depth)
    return [where(horizon, -2.0, divide(line(row), safe)) for row in (1, 0)]


def _check_batch(op: str, images, value, rank: int, sizes: tuple, name: str) -> None:
    """Raise unless ``value`` is one of ``sizes``, or one for each image."""
    count = shape(images)[0] if len(images.shape) == 4 else 1
    got = shape(value)
    each = len(got) == rank + 1 and (fits(got[:1], (1,)) or fits(got[:1], (count,)))
    if not fits(got[-rank:], sizes) or not (each or len(got) == rank):
        raise ShapeError(
            f"`{op}`: `{name}` must be of shape {sizes}, or {(count, *sizes)} for each image; got {{value}}.",
            argument=name,
            value=_checks.describe(value),
        )


@op(name="image.affine_transform")
def affine_transform(
    images: Tensor,
    transform: Tensor,
    interpolation: str = "bilinear",
    fill_mode: str = "constant",
    fill_value: float = 0,
    data_format: str | None = None,
) -> Tensor:
    """Images whose pixel ``(x, y)`` is read at the position that a transform gives.

    Args:
        images: one image or a batch.
        transform: 8 numbers ``a0, a1, a2, b0, b1, b2, c0, c1``, or a row of 8 for each image: ``x`` is read
            at ``(a0 x + a1 y + a2) / k`` and ``y`` at ``(b0 x + b1 y + b2) / k``, where ``k = c0 x + c1 y + 1``.
        interpolation: ``"nearest"`` or ``"bilinear"``.
        fill_mode: the values beyond the border: see :func:`map_coordinates`.
        fill_value: the value for ``"constant"``.

    Returns:
        A tensor of the shape and dtype of ``images``; integers are rounded.

    Raises:
        ShapeError: other than 3 or 4 dimensions, no pixels, or a transform that is not of 8 numbers.
        ArgumentError: an unknown ``interpolation`` or ``fill_mode``.

    Gradient:
        To ``images`` by the weights with which pixels are read; to ``transform`` by the slope between pixels
        (none with ``"nearest"``).

    Examples:
        >>> x, t = np.array([1.0, 3.0, 2.0]).reshape(1, 3, 1), [1.0, 0, 0.5, 0, 1.0, 0, 0, 0]
        >>> print(ops.image.affine_transform(x, t).ravel())
        [2.  2.5 1. ]
        >>> print(gradops.grad(lambda x: ops.sum(ops.image.affine_transform(x, t)))(x).ravel())
        [0.5 1.  1. ]
    """
    name = "image.affine_transform"

    def places(height, width, count):
        _check_batch(name, images, transform, 1, (8,), "transform")
        numbers = reshape(working(transform), (-1, 8))
        ones = constant(np.ones((shape(numbers)[0], 1)), numbers, dtype(numbers))
        return _projected(reshape(concatenate([numbers, ones], 1), (-1, 3, 3)), height, width)

    return _warp(name, images, data_format, interpolation, fill_mode, fill_value, places)


_CROSS = np.zeros((3, 3, 3))
"""``a x b`` of vectors is the sum over ``_CROSS[:, i, j] a[i] b[j]``."""
for _i in range(3):
    _CROSS[_i, (_i + 1) % 3, (_i + 2) % 3], _CROSS[_i, (_i + 2) % 3, (_i + 1) % 3] = 1.0, -1.0


@op(name="image.perspective_transform")
def perspective_transform(
    images: Tensor,
    start_points: Tensor,
    end_points: Tensor,
    interpolation: str = "bilinear",
    fill_value: float = 0,
    data_format: str | None = None,
) -> Tensor:
    """Images in another perspective: a projective map takes four start points to four end points.

    The map is computed in closed form from cross products (Hartley and Zisserman 2004), so that it has gradients
    without a solver.

    Args:
        images: one image or a batch.
        start_points: four points ``(x, y)`` in the images, a tensor ``(4, 2)``, or ``(batch, 4, 2)``.
        end_points: the points that they are mapped to, of the same shape.
        interpolation: ``"nearest"`` or ``"bilinear"``.
        fill_value: the value outside of the image.

    Returns:
        A tensor of the shape and dtype of ``images``; integers are rounded. NaN (0 for integers) where three
        end points are on one line, as no map exists.

    Raises:
        ShapeError: other than 3 or 4 dimensions, no pixels, or points of other shapes.
        ArgumentError: an unknown ``interpolation``.

    Gradient:
        To ``images`` by the weights with which pixels are read; to the points by the slope between pixels
        (none with ``"nearest"``).

    Examples:
        >>> x, at = np.arange(4.0).reshape(2, 2, 1), np.array([[0.0, 0], [1, 0], [0, 1], [1, 1]])
        >>> print(ops.image.perspective_transform(x, at, at).ravel())
        [0. 1. 2. 3.]
        >>> print(gradops.grad(lambda x: ops.sum(ops.image.perspective_transform(x, at, at) ** 2))(x).ravel())
        [0. 2. 4. 6.]
    """
    name = "image.perspective_transform"

    def places(height, width, count):
        _check_batch(name, images, start_points, 2, (4, 2), "start_points")
        _check_batch(name, images, end_points, 2, (4, 2), "end_points")
        kind = working_dtype(start_points, end_points)
        start, end = (_homogeneous(cast(points, kind)) for points in (start_points, end_points))
        start_cross, end_cross = _crosses(start), _crosses(end)
        last = (slice(None), 3)
        # the fourth point as a combination of the others; the map preserves the ratios of the coefficients
        shares = divide(
            einsum("nic,nc->ni", start_cross, get_item(start, last)),
            einsum("nic,nc->ni", end_cross, get_item(end, last)),
        )
        first = get_item(start, (slice(None), slice(0, 3)))
        scaled = multiply(first, expand_dims(shares, -1))
        return _projected(matmul(swapaxes(scaled, 1, 2), end_cross), height, width)

    return _warp(name, images, data_format, interpolation, "constant", fill_value, places)


def _homogeneous(points):
    """Return points as homogeneous coordinates ``(n, 4, 3)``: ``(x, y, 1)``."""
    points = reshape(points, (-1, 4, 2))
    return concatenate([points, constant(np.ones((shape(points)[0], 4, 1)), points, dtype(points))], 2)


def _crosses(points):
    """Return cross products of the first three points: second and third, third and first, first and second."""
    second, third = take(points, np.array([1, 2, 0]), 1), take(points, np.array([2, 0, 1]), 1)
    return einsum("cij,npi,npj->npc", constant(_CROSS, points, dtype(points)), second, third)


@op(name="image.elastic_transform")
def elastic_transform(
    images: Tensor,
    alpha: float = 20.0,
    sigma: float = 5.0,
    interpolation: str = "bilinear",
    fill_mode: str = "reflect",
    fill_value: float = 0.0,
    seed: Integer | None = None,
    data_format: str | None = None,
) -> Tensor:
    """Images distorted at random, smoothly (Simard, Steinkraus and Platt 2003).

    Each pixel is read at a randomly displaced position. Displacements are normal numbers of standard deviation
    ``sigma``, smoothed by a normal density of the same deviation, times ``alpha``; they are independent for rows,
    columns and images. NumPy draws them, so a seed gives the same displacements on every backend.

    Args:
        images: one image or a batch.
        alpha: the factor of the smoothed displacements.
        sigma: the width of the smoothing, in pixels; positive.
        interpolation: ``"nearest"`` or ``"bilinear"``.
        fill_mode: the values beyond the border: see :func:`map_coordinates`.
        fill_value: the value for ``"constant"``.
        seed: an integer; None for another distortion at each call (in compiled functions, at each trace).

    Returns:
        A tensor of the shape and dtype of ``images``; integers are rounded.

    Raises:
        ShapeError: other than 3 or 4 dimensions, or no pixels.
        ArgumentError: an unknown ``interpolation`` or ``fill_mode``, or a ``sigma`` that is not positive.

    Gradient:
        To ``images`` by the weights with which pixels are read.

    Examples:
        >>> x = np.ones((4, 4, 1))
        >>> print(ops.image.elastic_transform(x, alpha=2.0, seed=1).shape)
        (4, 4, 1)
        >>> print(gradops.grad(lambda x: ops.sum(ops.image.elastic_transform(x, alpha=2.0, seed=1)))(x).sum())
        16.0
    """
    name = "image.elastic_transform"
    if not sigma > 0:
        raise ArgumentError(
            f"`{name}`: `sigma` must be positive; got {{given}}.", argument="sigma", given=Given(repr(sigma), sigma)
        )

    def places(height, width, count):
        field = np.random.default_rng(seed).standard_normal((2, count, height, width)) * sigma
        reach = int(6 * sigma) // 2
        bell = np.exp(-0.5 * (np.arange(-reach, reach + 1) / sigma) ** 2)
        for axis in (2, 3):
            field = _scipy.ndimage.correlate1d(field, bell / bell.sum(), axis, mode="constant")
        rows, columns = alpha * field + np.indices((height, width))[:, None]
        return constant(rows, images), constant(columns, images)

    return _warp(name, images, data_format, interpolation, fill_mode, fill_value, places)


@op(name="image.map_coordinates")
def map_coordinates(
    inputs: Tensor, coordinates: Tensor, order: Integer, fill_mode: str = "constant", fill_value: float = 0
) -> Tensor:
    """Values of a tensor at positions between its elements.

    Args:
        inputs: a tensor of any dimensions but none.
        coordinates: a tensor whose first dimension has an element for each dimension of ``inputs``: the
            positions, from 0 for the first element, in any further shape.
        order: 0 for the nearest element (at a tie, the later one), 1 for linear interpolation.
        fill_mode: the values beyond the border, of elements ``a b c d``: ``"constant"``
            (``k k | a b c d | k k``), ``"nearest"`` (``a a | a b c d | d d``), ``"wrap"`` (``c d | a b c d | a b``),
            ``"mirror"`` (``c b | a b c d | c b``) or ``"reflect"`` (``b a | a b c d | d c``).
        fill_value: the ``k`` of ``"constant"``.

    Returns:
        A tensor of the dtype of ``inputs`` in the further shape of ``coordinates``; integers are rounded.

    Raises:
        ShapeError: coordinates that do not fit ``inputs``, or an empty ``inputs``.
        ArgumentError: an unknown ``fill_mode``, or another ``order``.

    Gradient:
        To ``inputs`` by the weights with which elements are read; to ``coordinates`` by the slope between
        elements (none with order 0).

    Examples:
        >>> c = np.array([[0.5, 1.5]])
        >>> print(ops.image.map_coordinates([1.0, 3.0, 2.0], c, order=1))
        [2.  2.5]
        >>> print(gradops.grad(lambda c: ops.sum(ops.image.map_coordinates([1.0, 3.0, 2.0], c, order=1)))(c))
        [[ 2. -1.]]
    """
    name = "image.map_coordinates"
    rank = _checks.check_rank(name, inputs, 1, "inputs")
    if _checks.integer(name, order, "order") not in (0, 1):
        raise ArgumentError(f"`{name}`: `order` must be 0 or 1; got {order}.", argument="order")
    _checks.choice(name, fill_mode, FILL_MODES, "fill_mode")
    check_pixels(name, inputs, range(rank), "inputs")
    if _checks.check_rank(name, coordinates, 1, "coordinates") and shape(coordinates)[0] != rank:
        raise ShapeError(
            f"`{name}`: `coordinates` must have {rank} elements along its first dimension, one for each dimension of "
            "`inputs`; got {coordinates}.",
            argument="coordinates",
            coordinates=_checks.describe(coordinates),
        )
    places = working(coordinates)
    return _read(
        reshape(inputs, (-1,)),
        shape(inputs),
        [get_item(places, i) for i in range(rank)],
        int(order),
        fill_mode,
        fill_value,
    )
