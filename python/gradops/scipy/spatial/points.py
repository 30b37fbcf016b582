"""Minkowski distances between points, spherical interpolation, and Procrustes analysis.

Metrics by name are in ``distance.py``.
"""

from __future__ import annotations

import numpy as np

from ... import ops
from ...annotations import Tensor
from ...errors import ShapeError
from ...ops._checks import known
from .._define import composed, family
from .._neighbours import alike, number
from .._tensors import wrong
from .distance import exponent, powers, root

__all__ = ["distance_matrix", "geometric_slerp", "minkowski_distance", "minkowski_distance_p", "procrustes"]

of_points = family(
    {"p": "a positive number, which may be infinite, or a tensor."},
    returns="A tensor of the broadcast shape without the last dimension.",
    raises="ShapeError: shapes that do not broadcast.\nArgumentError: a ``p`` that is not positive.",
    gradient="By both points, and by ``p`` if it is a tensor; 0 where points are equal.",
)


def _powers(d, p):
    """Return the sum of powers of absolute values; for an infinite power the largest absolute value."""
    if isinstance(p, (int, float)):
        if p == np.inf:
            return ops.max(ops.abs(d), -1)
        if p == 1:
            return ops.sum(ops.abs(d), -1)
    return powers(d, p)


def _lengths(d, p):
    p = exponent(p)
    found = _powers(d, p)
    return found if isinstance(p, (int, float)) and p in (1, np.inf) else root(found, d, p)


@of_points
def minkowski_distance_p(x: Tensor, y: Tensor, p=2.0) -> Tensor:
    """``p``-th power of the Minkowski distance along the last dimension; for an infinite ``p`` the distance."""
    x, y = alike(x, y)
    return _powers(y - x, exponent(p))


@of_points
def minkowski_distance(x: Tensor, y: Tensor, p=2.0) -> Tensor:
    """Minkowski distance along the last dimension."""
    x, y = alike(x, y)
    return _lengths(y - x, p)


@of_points
def distance_matrix(x: Tensor, y: Tensor, p=2.0, threshold=1000000) -> Tensor:
    """Minkowski distances between all rows of one matrix and all rows of another.

    Args:
        threshold: ignored.

    Returns:
        A matrix with a row for each row of ``x`` and a column for each row of ``y``.
    """
    x, y = alike(x, y)
    for name, z in (("x", x), ("y", y)):
        if len(z.shape) != 2 or int(z.shape[1]) != int(x.shape[-1]):
            raise wrong(name, "be a matrix, of as many columns as the other", tuple(z.shape), ShapeError)
    return _lengths(ops.expand_dims(y, 0) - ops.expand_dims(x, 1), p)


@composed
def geometric_slerp(start: Tensor, end: Tensor, t: Tensor, tol=1e-7) -> Tensor:
    """Spherical interpolation: points on the great circle between two points of the unit sphere.

    Args:
        t: fractions of the way, a vector or a number.
        tol: ignored; SciPy uses it for a warning about antipodes.

    Returns:
        A row for each element of ``t``.

    Raises:
        ShapeError: points that are not vectors of one length, of at least 2 elements.
        ArgumentError: points that are not on the unit sphere.

    Gradient:
        By both points and ``t``; undefined by the direction if the points are equal.
    """
    start, end, t = alike(start, end, t)
    number("geometric_slerp", "tol", tol)
    for name, x in (("start", start), ("end", end)):
        if len(x.shape) != 1 or int(x.shape[0]) < 2 or tuple(x.shape) != tuple(start.shape):
            must = "be a vector of at least 2 elements, of the length of the other"
            raise wrong(name, must, tuple(x.shape), ShapeError)
        values = known(x)
        if values is not None and not abs(np.linalg.norm(values) - 1) <= max(1e-9, 10 * np.finfo(values.dtype).eps):
            raise wrong(name, "be on the unit sphere")
    if len(t.shape) > 1:
        raise wrong("t", "be a vector", tuple(t.shape), ShapeError)
    cos = ops.sum(start * end)
    across = end - cos * start
    sin = root(ops.sum(across * across), across)
    there = across / ops.where(sin == 0, ops.ones_like(sin), sin)
    angle = ops.expand_dims(t * ops.arctan2(sin, cos), -1)
    return start * ops.cos(angle) + there * ops.sin(angle)


@composed
def procrustes(data1: Tensor, data2: Tensor) -> tuple:
    """Procrustes analysis: superimpose two sets of points by translation, scaling and rotation.

    Returns:
        The first set centred and scaled, the second set fitted to it, and the sum of squared distances.

    Raises:
        ShapeError: tensors that are not matrices of one shape.
        ArgumentError: points that are all equal.

    Gradient:
        By both sets, through a singular value decomposition, whose singular values must differ.
    """
    x, y = alike(data1, data2)
    if len(x.shape) != 2 or tuple(x.shape) != tuple(y.shape) or 0 in tuple(x.shape):
        got = f"{tuple(x.shape)} and {tuple(y.shape)}"
        raise wrong("data2", "be a matrix of the shape of `data1`, with elements", got, ShapeError)
    found = []
    for name, z in (("data1", x), ("data2", y)):
        z = z - ops.mean(z, 0, keepdims=True)
        size = ops.sqrt(ops.sum(z * z))
        if (value := known(size)) is not None and value == 0:
            raise wrong(name, "have points that differ")
        found.append(z / size)
    x, y = found
    u, s, v = ops.svd(ops.matmul(ops.transpose(x), y), full_matrices=False)
    y = ops.matmul(y, ops.transpose(ops.matmul(u, v))) * ops.sum(s)
    return x, y, ops.sum((x - y) ** 2)
