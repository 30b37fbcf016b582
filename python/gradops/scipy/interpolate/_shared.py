"""Parts shared by the interpolators: checks of sites and values, search of intervals, banded and cyclic systems.

Sites are the ``x`` of the data.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import ops
from ...errors import ArgumentError, ArgumentTypeError, ShapeError
from ...ops._checks import check_axis, known
from .._define import family
from .._neighbours import alike, real_like
from .._tensors import constant_like, is_complex, wrong
from ..linalg import solve_banded

BEYOND = 'True (the default) to extrapolate by the outer pieces, False for NaN, or ``"periodic"``.'
by_orders = family(
    {"der": "the order of the derivative, or a list of orders."},
    returns="A tensor; for a list of orders these are the first dimension.",
    gradient="By evaluation points, sites and values.",
)


def real_with(function: str, count: int, optional: str = "", **given) -> list:
    """Return tensors of one library and precision; the first ``count`` must be real and stay real next to complex ones.

    Args:
        optional: the name of an argument that may be None.

    Raises:
        ArgumentTypeError: an argument that is not a number or tensor; a complex tensor among the first.
    """
    for name, x in given.items():
        if x is None and name != optional or isinstance(x, (str, bytes)) or callable(x):
            raise ArgumentTypeError(f"`{function}`: `{name}` must be a tensor; got {x!r:.80}.", argument=name)
    names = [name for name, x in given.items() if x is not None]
    for name in names:
        if name in list(given)[:count] and is_complex(ops.convert_to_tensor(given[name])):
            raise ArgumentTypeError(f"`{function}`: `{name}` must be real.", argument=name)
    found = dict(zip(names, alike(*[given[name] for name in names])))
    return [real_like(found[x]) if i < count and x in found else found.get(x) for i, x in enumerate(given)]


def rows_of(x) -> list:
    """Return the elements of a list, or the rows of a tensor by its static shape (graphs cannot iterate)."""
    return list(x) if isinstance(x, (list, tuple)) else [x[i] for i in range(int(x.shape[0]))]


def vector(function: str, x, name: str = "x", least: int = 1) -> int:
    """Return the length of a tensor that must be a vector of at least ``least`` elements."""
    if len(x.shape) != 1 or x.shape[0] < least:
        raise ShapeError(
            f"`{function}`: `{name}` must be a vector of at least {least} elements; got the shape {tuple(x.shape)}.",
            argument=name,
        )
    return int(x.shape[0])


def ascends(function: str, x, name: str = "x", strictly: bool = True) -> None:
    """Raise an error if elements are not finite or do not ascend, provided that values are known."""
    values = known(x)
    if values is None:
        return
    if not np.isfinite(values).all():
        raise ArgumentError(f"`{function}`: `{name}` must contain only finite values.", argument=name)
    steps = np.diff(values)
    if (steps <= 0).any() if strictly else (steps < 0).any():
        how = "be strictly increasing" if strictly else "not decrease"
        raise ArgumentError(f"`{function}`: `{name}` must {how}.", argument=name)


def finite(function: str, x, name: str) -> None:
    """Raise an error for infs and NaNs, provided that values are known."""
    values = known(x)
    if values is not None and not np.isfinite(values).all():
        raise ArgumentError(f"`{function}`: `{name}` must contain only finite values.", argument=name)


def leading(function: str, y, axis, count: int | None = None, name: str = "y") -> tuple:
    """Return ``y`` with ``axis``, which must have ``count`` elements, moved first; and the axis counted from 0."""
    if not len(y.shape):
        raise ShapeError(f"`{function}`: `{name}` must have at least one dimension.", argument=name)
    axis = check_axis(function, axis, len(y.shape), "axis")
    if count is not None and y.shape[axis] != count:
        raise ShapeError(
            f"`{function}`: `{name}` must have {count} elements along `axis`, as many as there are sites; got the "
            f"shape {tuple(y.shape)}.",
            argument=name,
        )
    return (ops.moveaxis(y, axis, 0) if axis else y), axis


def add_last_dims(x, rank: int):
    """Return ``x`` with ``rank`` trailing dimensions of size 1, for products with tensors of more dimensions."""
    return ops.expand_dims(x, tuple(range(len(x.shape), len(x.shape) + rank))) if rank else x


def placed(y, rank: int, axis: int):
    """Move the dimensions of the evaluation points, the first ``rank``, to position ``axis``."""
    if not axis or not rank:
        return y
    count = len(y.shape)
    return ops.transpose(y, [*range(rank, rank + axis), *range(rank), *range(rank + axis, count)])


def interval(x, v):
    """Return the index of the interval between ascending sites that contains each point, or is nearest to it."""
    return ops.searchsorted(ops.stop_gradient(x[1:-1]), ops.stop_gradient(v), "right")


def shifted_ranges(first, start: int, stop: int):
    """Return the integers from ``first + start`` to before ``first + stop`` along a new last dimension."""
    return ops.expand_dims(first, -1) + constant_like(np.arange(start, stop), first)


def outside(low, high, v):
    """Return True for points beyond the ends, and for NaN."""
    return ops.logical_not(ops.logical_and(v >= low, v <= high))


def wrapped(low, high, v):
    """Return points moved into the first period, and the number of periods they were moved by."""
    period = high - low
    return low + ops.mod(v - low, period), ops.floor((v - low) / period)


def mode_of(function: str, extrapolate) -> Any:
    """Return ``extrapolate`` checked: True, False or ``"periodic"``."""
    if isinstance(extrapolate, str):
        if extrapolate != "periodic":
            raise wrong("extrapolate", 'be True, False or "periodic"', f"{extrapolate!r}", of=function)
        return extrapolate
    return bool(extrapolate)


def columns(solve, b):
    """Solve for a right-hand side of any rank; its first dimension counts the equations."""
    shape = tuple(b.shape)
    return ops.reshape(solve(ops.reshape(b, (shape[0], -1))), shape)


def cyclic(rows, b):
    """Return the solution of a cyclic banded system, whose band wraps around the corners.

    The corners are a low-rank update of a banded matrix (Woodbury 1950).

    Args:
        rows: a matrix with, for each equation, the coefficients of an odd number of unknowns around its own.
        b: right-hand sides as columns.
    """
    n, width = rows.shape
    s = width // 2
    if s == 0:
        return b / rows
    i, j = np.indices((n, n if n <= 2 * s else s))
    if n <= 2 * s:
        full = [ops.where((i + o - s) % n == j, add_last_dims(rows[:, o], 1), 0.0) for o in range(width)]
        return ops.solve(sum(full[1:], full[0]), b)
    # In banded storage row r holds the elements r - s rows below the diagonal, indexed by column.
    ab = ops.stack([ops.roll(rows[:, 2 * s - r], s - r) if r != s else rows[:, s] for r in range(width)])
    # The first s columns of the corners belong to the last s unknowns, in the first rows; the others to the first ones.
    before = [ops.where(i + o - s == j - s, add_last_dims(rows[:, o], 1), 0.0) for o in range(s)]
    behind = [ops.where(i + o - s == j + n, add_last_dims(rows[:, o], 1), 0.0) for o in range(s + 1, width)]
    corners = ops.concatenate([sum(before[1:], before[0]), sum(behind[1:], behind[0])], 1)
    found = solve_banded((s, s), ab, ops.concatenate([b, corners], 1))
    y, z = found[:, : b.shape[1]], found[:, b.shape[1] :]

    def ends(x):
        return ops.concatenate([x[n - s :], x[:s]], 0)

    small = ends(z)
    return y - ops.matmul(z, ops.solve(small + constant_like(np.eye(2 * s), small), ends(y)))
