"""Spline interpolation between the elements of a tensor: sampling, affine transforms, shifts, zoom and rotation.

All transforms compute coordinates and sample there.
"""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np

from ... import _scipy, dtypes, ops
from ...annotations import Axes, Axis, Integer, Shape, Tensor
from ...backends import tracing
from ...errors import ShapeError
from ...ops._checks import check_axes, choice, known
from .._define import family
from .._neighbours import alike, back, bilinear, extended, last, number, real_like
from .._tensors import constant_like, wrong
from .filters import MODES, closed, each, opened

__all__ = ["affine_transform", "map_coordinates", "rotate", "shift", "spline_filter", "spline_filter1d", "zoom"]

ModeName = Literal["reflect", "grid-mirror", "constant", "grid-constant", "nearest", "mirror", "wrap", "grid-wrap"]
ARGUMENTS = {
    "order": "the order of the splines, from 0 to 5; 0 takes the nearest element, 1 is linear.",
    "output": "the dtype of the result.",
    "mode": "the rule beyond the edges: ``cval``, the nearest element, reflections or repetitions.",
    "prefilter": "True if the splines interpolate the elements; False if the elements are the splines' coefficients.",
}
ERRORS = "ArgumentError: an unsupported order, an unknown mode."
spline = family(
    ARGUMENTS,
    returns="A tensor of ``input``'s shape, of a floating dtype.",
    raises=ERRORS,
    gradient="The transposed filter of the upstream gradient.",
)
sampled = family(ARGUMENTS, returns="A tensor of ``input``'s shape.", raises=ERRORS)


def _prepared(input, order, output, mode, least: int = 0) -> tuple:
    """Return the tensor, the degree of its splines, and the dtype of the result."""
    choice("ndimage", mode, tuple(MODES), "mode")
    degree = number("ndimage", "order", order)
    if isinstance(degree, complex) or degree not in range(least, 6):
        raise wrong("order", f"be from {least} to 5", repr(order))
    x, dtype = opened(input, output)
    if 0 in tuple(x.shape):
        raise wrong("input", "have elements", tuple(x.shape), ShapeError)
    return x, int(degree), dtype


@tracing.constant
def _prefilter(n: int, order: int, mode: str) -> np.ndarray:
    """Return the transposed matrix from values to a spline's coefficients."""
    return _scipy.ndimage.spline_filter1d(np.eye(n), order, axis=0, mode=mode).T


def _stored(y, dtype: str):
    """Cast sampled values to the result's dtype as SciPy does: integers are rounded, halves away from 0, and bounded;
    bools are truncated, where rounding errors of splines do not count.
    """
    if dtype in dtypes.INTEGERS:
        return ops.saturate_cast(ops.trunc(y + ops.where(y < 0, -0.5, 0.5)), dtype)
    return ops.abs(y) > 1 - 1e-9 if dtype == "bool" else closed(y, dtype)


def _coefficients(x, order: int, mode: str, axes):
    for axis in axes:
        n = int(x.shape[axis])
        if order > 1 and n > 1:
            y = ops.moveaxis(x, axis, -1) if axis != len(x.shape) - 1 else x
            x = back(bilinear(ops.matmul, y, constant_like(_prefilter(n, order, mode), real_like(x))), axis)
    return x


@spline
def spline_filter1d(
    input: Tensor, order: Integer = 3, axis: Axis = -1, output=None, mode: ModeName = "mirror"
) -> Tensor:
    """Coefficients of the spline that interpolates a tensor's elements along an axis."""
    x, order, dtype = _prepared(input, order, output, mode)
    y = _coefficients(x, order, mode, [last("ndimage", x, axis)[1]])
    return y if output is None else closed(y, dtype)


@spline
def spline_filter(input: Tensor, order: Integer = 3, output=None, mode: ModeName = "mirror") -> Tensor:
    """Coefficients of the spline that interpolates a tensor's elements along all axes.

    Args:
        order: the order of the splines, from 2 to 5.
    """
    x, order, dtype = _prepared(input, order, output, mode, 2)
    y = _coefficients(x, order, mode, range(len(x.shape)))
    return y if output is None else closed(y, dtype)


def _weights(t, order: int) -> list:
    """Return the B-splines at points from 0 to 1, by de Boor's recursion."""
    found = [ops.ones_like(t)]
    for p in range(1, order + 1):
        found = [
            ((t + (p - j)) * found[j - 1] if j else 0.0) / p + ((1 + j - t) * found[j] / p if j < p else 0.0)
            for j in range(p + 1)
        ]
    return found


def _taps(c, n: int, order: int, mode: str) -> tuple:
    """Return, along one dimension, the coefficients' positions and weights, and masks of valid points and coefficients.

    A mask is None if all are valid.
    """
    inside = None
    if mode in ("constant", "wrap"):
        within = ops.logical_and(c >= 0, c <= n - 1)
        c = ops.where(within, c, ops.mod(c, n - 1) if mode == "wrap" and n > 1 else ops.zeros_like(c))
        inside = within if mode == "constant" else None
    base = ops.floor(c if order % 2 else c + 0.5)
    t = c - base if order % 2 else c + 0.5 - base
    weights = ops.stack(_weights(t, order), -1)
    start = ops.cast(ops.stop_gradient(base), "int64") - order // 2
    at = ops.expand_dims(start, -1) + ops.cast(constant_like(np.arange(order + 1), real_like(c)), "int64")
    if mode == "grid-constant":
        within = ops.logical_and(at >= 0, at < n)
        return ops.clip(at, 0, n - 1), weights, inside, within
    return _folded(at, n, mode), weights, inside, None


def _folded(at, n: int, mode: str):
    """Map positions beyond the edges to those inside that ``mode`` assigns."""
    if mode == "nearest" or n == 1:
        return ops.clip(at, 0, n - 1)
    if mode == "grid-wrap":
        return ops.mod(at, n)
    if mode in ("reflect", "grid-mirror"):
        at = ops.mod(at, 2 * n)
        return ops.minimum(at, 2 * n - 1 - at)
    at = ops.mod(at, 2 * n - 2)
    return ops.minimum(at, 2 * n - 2 - at)


def _values(x, places: list, order: int, mode: str, cval, prefilter: bool):
    """Return a tensor's values at points: ``places`` has a tensor for each of the last dimensions; they broadcast."""
    count, rank = len(places), len(x.shape)
    wide = np.broadcast_shapes(*[tuple(c.shape) for c in places])
    places = [c if tuple(c.shape) == wide else ops.broadcast_to(c, wide) for c in places]
    fill = number("ndimage", "cval", cval)
    axes = range(rank - count, rank)
    if order > 1 and prefilter:
        if mode in ("nearest", "grid-constant"):
            for axis in axes:
                x = extended(x, 12, 12, "edge" if mode == "nearest" else "constant", axis, fill)
            places = [c + 12 for c in places]
        x = _coefficients(x, order, mode, axes)
    sizes = [int(x.shape[i]) for i in axes]
    flat: Any = None
    weight, inside, within = None, None, None
    for i, (c, n) in enumerate(zip(places, sizes)):
        at, w, ok, taps = _taps(c, n, order, mode)
        shape = (*wide, *[order + 1 if j == i else 1 for j in range(count)])
        at, w = ops.reshape(at, shape), ops.reshape(w, shape)
        flat = at if flat is None else flat * n + at
        weight = w if weight is None else weight * w
        if ok is not None:
            inside = ok if inside is None else ops.logical_and(inside, ok)
        if taps is not None:
            taps = ops.reshape(taps, shape)
            within = taps if within is None else ops.logical_and(within, taps)
    batch = tuple(x.shape[: rank - count])
    found = ops.take(ops.reshape(x, (*batch, math.prod(sizes))), flat, len(batch))
    if within is not None:
        found = ops.where(within, found, ops.full_like(found, fill))
    y = ops.sum(ops.multiply(found, weight), tuple(range(-count, 0)))
    return y if inside is None else ops.where(inside, y, ops.full_like(y, fill))


def _grid(sizes, like) -> list:
    """Return the coordinates of a tensor's elements, one tensor for each dimension."""
    return [
        ops.reshape(constant_like(np.arange(n), real_like(like)), [-1 if j == i else 1 for j in range(len(sizes))])
        for i, n in enumerate(sizes)
    ]


def axis_values(x, value, name: str) -> list:
    """Return a number, or one for each dimension of ``x``, as a list of tensors."""
    value, rank = alike(real_like(x), value)[1], len(x.shape)
    if tuple(value.shape) not in ((), (rank,)) or not rank:
        raise wrong(name, f"have {rank} elements", tuple(value.shape), ShapeError)
    return [value[i] if len(value.shape) else value for i in range(rank)]


@sampled
def map_coordinates(
    input: Tensor, coordinates: Tensor, output=None, order: Integer = 3, mode: ModeName = "constant", cval=0.0,
    prefilter: bool = True,
) -> Tensor:  # fmt: skip
    """Values of a tensor at arbitrary coordinates, by spline interpolation.

    Args:
        coordinates: the points; the first dimension holds a coordinate for each dimension of ``input``.

    Returns:
        A tensor of the shape of one coordinate.

    Raises:
        ShapeError: ``coordinates`` for the wrong number of dimensions.

    Gradient:
        By ``input``, in which the result is linear, and for orders above 0 by ``coordinates``.
    """
    x, order, dtype = _prepared(input, order, output, mode)
    at, rank = real_like(alike(real_like(x), coordinates)[1]), len(x.shape)
    if not rank or not len(at.shape) or int(at.shape[0]) != rank:
        raise wrong("coordinates", f"have {rank} elements along the first dimension", tuple(at.shape), ShapeError)
    return _stored(_values(x, [at[i] for i in range(rank)], order, mode, cval, prefilter), dtype)


@sampled
def affine_transform(
    input: Tensor, matrix: Tensor, offset: Tensor = 0.0, output_shape: Shape | None = None, output=None,
    order: Integer = 3, mode: ModeName = "constant", cval=0.0, prefilter: bool = True,
) -> Tensor:  # fmt: skip
    """Affine transform: the value at position ``o`` of the result is that of ``input`` at ``matrix @ o + offset``.

    Args:
        matrix: a square matrix with a row for each dimension, or its diagonal, or a matrix with the offset as its last
            column (and optionally a last row).

    Returns:
        A tensor of ``output_shape``, by default ``input``'s.

    Raises:
        ShapeError: a ``matrix`` or ``offset`` of the wrong shape.

    Gradient:
        By ``input``, ``matrix`` and ``offset``.
    """
    x, order, dtype = _prepared(input, order, output, mode)
    rank, sizes = len(x.shape), [int(n) for n in x.shape]
    _, matrix, offset = alike(real_like(x), matrix, offset)
    given = tuple(map(int, matrix.shape))
    if given in ((rank, rank + 1), (rank + 1, rank + 1)) and rank:
        matrix, offset = matrix[:rank, :rank], matrix[:rank, rank]
    elif given not in ((rank,), (rank, rank)) or not rank:
        must = f"be of shape {(rank, rank)}, {(rank,)}, or have one column more"
        raise wrong("matrix", must, given, ShapeError)
    if output_shape is not None:
        sizes = [int(number("ndimage", "output_shape", n)) for n in each(output_shape, rank, "output_shape")]
        if any(n < 1 for n in sizes):
            raise wrong("output_shape", "be positive", sizes)
    places, grid = axis_values(x, offset, "offset"), _grid(sizes, x)
    for i in range(rank):
        for j in range(rank) if len(given) > 1 else [i]:
            places[i] = places[i] + (matrix[i, j] if len(given) > 1 else matrix[i]) * grid[j]
    return _stored(_values(x, places, order, mode, cval, prefilter), dtype)


@sampled
def shift(
    input: Tensor, shift: Tensor, output=None, order: Integer = 3, mode: ModeName = "constant", cval=0.0,
    prefilter: bool = True,
) -> Tensor:  # fmt: skip
    """Shift a tensor by a number of elements, or by one number for each axis.

    Raises:
        ShapeError: a ``shift`` for the wrong number of axes.

    Gradient:
        By ``input`` and ``shift``.
    """
    x, order, dtype = _prepared(input, order, output, mode)
    places = [at - by for at, by in zip(_grid([int(n) for n in x.shape], x), axis_values(x, shift, "shift"))]
    return _stored(_values(x, places, order, mode, cval, prefilter), dtype)


@sampled
def zoom(
    input: Tensor, zoom, output=None, order: Integer = 3, mode: ModeName = "constant", cval=0.0,
    prefilter: bool = True, *, grid_mode: bool = False,
) -> Tensor:  # fmt: skip
    """Resize a tensor by interpolation.

    Args:
        zoom: the factor of the sizes, or one for each axis; known numbers.
        grid_mode: True if elements are cells, whose outer edges stay fixed; False if they are points.

    Returns:
        A tensor with sizes rounded to integers.

    Raises:
        ArgumentError: factors that leave no elements.

    Gradient:
        The transposed interpolation of the upstream gradient; the result is linear in ``input``.
    """
    x, order, dtype = _prepared(input, order, output, mode)
    if ops.is_tensor(zoom):
        values = known(zoom)
        zoom = zoom if values is None else values.tolist()
    sizes = [int(n) for n in x.shape]
    factors = [number("ndimage", "zoom", factor) for factor in each(zoom, len(sizes), "zoom")]
    wanted = [round(n * float(factor)) if abs(factor) < 2**40 else -1 for n, factor in zip(sizes, factors)]
    if not sizes or any(n < 1 for n in wanted):
        raise wrong("zoom", "leave elements", f"{zoom!r} for {sizes}")
    places = [
        (at + 0.5) * n / m - 0.5 if grid_mode else at * (n - 1) / max(m - 1, 1)
        for at, n, m in zip(_grid(wanted, x), sizes, wanted)
    ]
    return _stored(_values(x, places, order, mode, cval, prefilter), dtype)


@sampled
def rotate(
    input: Tensor, angle: Tensor, axes: Axes = (1, 0), reshape: bool = True, output=None, order: Integer = 3,
    mode: ModeName = "constant", cval=0.0, prefilter: bool = True,
) -> Tensor:  # fmt: skip
    """Rotate a tensor in the plane of two axes.

    Args:
        angle: the angle in degrees; must be known if ``reshape`` is True.
        reshape: True to enlarge the result so that it contains all of ``input``.

    Returns:
        A tensor of ``input``'s shape, or with larger sizes along the axes.

    Raises:
        ArgumentError: a number of axes other than two.

    Gradient:
        By ``input`` and ``angle``.
    """
    x, order, dtype = _prepared(input, order, output, mode)
    plane = sorted(check_axes("ndimage", axes, len(x.shape), "axes"))
    if len(plane) != 2:
        raise wrong("axes", "be two dimensions", repr(axes))
    value = angle if isinstance(angle, (int, float)) else known(angle)
    angle = alike(real_like(x), angle)[1]
    if len(angle.shape):
        raise wrong("angle", "be a number", tuple(angle.shape), ShapeError)
    turn = angle * (math.pi / 180)
    c, s = ops.cos(turn), ops.sin(turn)
    if value is not None:  # exact for multiples of 90 degrees
        exact = _turn(float(value))
        c, s = c + exact[0] - ops.stop_gradient(c), s + exact[1] - ops.stop_gradient(s)
    x = ops.moveaxis(x, plane, [-2, -1])
    sizes = wanted = [int(n) for n in x.shape[-2:]]
    if reshape:
        if value is None or not math.isfinite(value):
            raise wrong("angle", "be a finite known number where `reshape` is True")
        wanted = _bounds(tuple(sizes), float(value))
    rows, columns = [at - (n - 1) / 2 for at, n in zip(_grid(wanted, x), wanted)]
    places = [c * rows + s * columns + (sizes[0] - 1) / 2, c * columns - s * rows + (sizes[1] - 1) / 2]
    y = _values(x, places, order, mode, cval, prefilter)
    return _stored(ops.moveaxis(y, [-2, -1], plane), dtype)


@tracing.constant
def _turn(angle: float) -> tuple:
    return float(_scipy.special.cosdg(angle)), float(_scipy.special.sindg(angle))


@tracing.constant
def _bounds(sizes, angle: float) -> list[int]:
    c, s = _turn(angle)
    corners = np.array([[c, s], [-s, c]]) @ [[0, 0, sizes[0], sizes[0]], [0, sizes[1], 0, sizes[1]]]
    return [int(n) for n in np.ptp(corners, axis=1) + 0.5]
