"""Indexing: elements of tensors by position and by condition."""

from __future__ import annotations

import builtins
import math

import numpy as np

from ..annotations import Axis, Indices, Operand, Shape, Structure, Tensor
from ..backends._keys import dimensions, distinct, expanded, is_array, is_mask, last_of_each, parts_of
from ..errors import ArgumentError, AxisError, ShapeError
from . import _checks
from ._checks import check_axis, check_positions, check_rank
from ._compose import check_fits
from ._dispatch import op
from ._sizes import multiples
from .conversion import cast, convert_to_tensor, shape, size
from .conversion import dtype as dtype_of
from .elementwise import add, floor_divide, mod, multiply
from .properties import fits, unknown
from .shaping import reshape

__family__ = """Elements by position.

The gradient is added to each element as often as it is taken, and is 0 elsewhere.

See Also:
    :func:`slice`, :func:`scatter`, :func:`where`, :func:`argmax`.
"""


@op(moves=True, view="writable")
def get_item(x: Tensor, key) -> Tensor:
    """``x[key]`` with NumPy's meaning: ints, slices, ``None``, ``...``, bool masks and integer tensors.

    Returns:
        A tensor of ``x``'s dtype; ints drop their dimensions.

    Raises:
        AxisError: a position out of range, or more positions than dimensions.

    Gradient:
        The upstream gradient at the chosen positions, added up where one is chosen twice; 0 elsewhere.

    Examples:
        >>> x = np.array([1.0, 3.0, 2.0])
        >>> print(ops.get_item(x, slice(1, None)), gradops.grad(lambda x: ops.sum(ops.get_item(x, [0, 0]) ** 2))(x))
        [3. 2.] [4. 0. 0.]
    """
    ...


@op(moves=True)
def take(x: Tensor, indices: Indices, axis: Axis | None = None) -> Tensor:
    """Elements of ``x`` at positions along an axis; of the flattened tensor without one.

    Args:
        indices: whole numbers of any shape; negative ones count from the end.

    Returns:
        A tensor with ``axis`` replaced by the shape of ``indices``.

    Raises:
        AxisError: an axis or position out of range.

    Gradient:
        The upstream gradient at the chosen positions, added up where one is chosen twice; 0 elsewhere.

    Examples:
        Rows of an embedding: those that were taken get a gradient, as often as they were:

        >>> import numpy as np
        >>> import gradops
        >>> from gradops import ops
        >>> table = np.ones((3, 2))
        >>> print(gradops.grad(lambda table: ops.sum(ops.take(table, [0, 2, 2], axis=0)))(table))
        [[1. 1.]
         [0. 0.]
         [2. 2.]]

    See Also:
        :func:`take_along_axis`, :func:`get_item`.
    """
    ...


@op(moves=True)
def take_along_axis(x: Tensor, indices: Indices, axis: Axis | None = None) -> Tensor:
    """Elements of ``x`` at positions along an axis, with separate positions for each line along it.

    Args:
        indices: whole numbers, with as many dimensions as ``x``, broadcast with it elsewhere than along
            ``axis``; negative ones count from the end.
        axis: None takes from the flattened ``x`` at the flattened positions.

    Returns:
        A tensor of the shape of ``indices``, broadcast.

    Raises:
        AxisError: an axis or position out of range.
        ShapeError: other numbers of dimensions, or shapes that do not broadcast.

    Gradient:
        The upstream gradient at the chosen positions, added up where one is chosen twice; 0 elsewhere.

    Examples:
        >>> x = np.array([1.0, 3.0, 2.0])
        >>> print(ops.take_along_axis(x, [2, 2], 0))
        [2. 2.]
        >>> print(gradops.grad(lambda x: ops.sum(ops.take_along_axis(x, [2, 2], 0)))(x))
        [0. 0. 2.]
    """
    if axis is None:
        x, indices, axis = reshape(x, (-1,)), reshape(indices, (-1,)), 0
    indices = convert_to_tensor(indices)
    rank = len(x.shape)
    if len(indices.shape) != rank:
        raise ValueError("`x` and `indices` must have as many dimensions as each other")
    axis = check_axis("take_along_axis", axis, rank)
    check_positions("take_along_axis", indices, shape(x)[axis])
    _checks.broadcast_shapes(
        "take_along_axis",
        ("x", "indices"),
        *([n for i, n in enumerate(shape(v)) if i != axis] for v in (x, indices)),
    )
    sizes = shape(x)
    flat = multiply(where(indices < 0, add(indices, sizes[axis]), indices), math.prod(sizes[axis + 1 :]))
    for i, n in enumerate(sizes):
        if i != axis and (unknown(n) or n != 1):
            line = [-1 if j == i else 1 for j in builtins.range(rank)]
            flat = add(flat, multiples(n, math.prod(sizes[i + 1 :]), line))
    return take(reshape(x, (-1,)), flat, 0)


@op(differentiable=False, positions="all")
def unravel_index(indices: Indices, shape: Shape) -> tuple:
    """Positions along each dimension of ``shape``, for positions in the flattened tensor.

    Args:
        indices: whole numbers; negative ones count from the end.

    Returns:
        A tuple of int64 tensors of positions, one a dimension. They have no gradient.

    Raises:
        AxisError: a position out of range.
    """
    sizes = [int(n) for n in (shape if isinstance(shape, (tuple, list)) else (shape,))]
    count = math.prod(sizes)
    indices = convert_to_tensor(indices)
    check_positions("unravel_index", indices, count)
    rest = cast(indices, "int64")
    rest = where(rest < 0, rest + count, rest)
    found = []
    for length in reversed(sizes):
        found.append(mod(rest, builtins.max(length, 1)))
        rest = floor_divide(rest, builtins.max(length, 1))
    return tuple(reversed(found))


__family__ = """Choice by condition.

Both sides are computed, and the one that is not chosen gets the gradient 0. A NaN in the derivative of that side's
computation still comes through: change the argument of a function where it has no finite derivative.

See Also:
    :func:`cond`, which computes one side only; :func:`clip`, :func:`equal`.
"""


@op(linear=("x1", "x2"), exact=True, conditions=("condition",))
def where(condition: Tensor, x1: Operand | None = None, x2: Operand | None = None):
    """``x1`` where ``condition`` is true and ``x2`` elsewhere; without both, the positions of true elements.

    Returns:
        A tensor of the broadcast shape; without ``x1`` and ``x2`` a tuple of int64 tensors of positions, one
        a dimension.

    Raises:
        ArgumentError: only one of ``x1`` and ``x2``.
        ShapeError: shapes that do not broadcast.

    Gradient:
        The upstream gradient to the operand chosen, 0 to the other, also where the other is NaN or infinite.
        (A NaN in the derivative of the other operand's computation still comes through, as 0 * NaN; see
        ``docs/differences.md``.)

    Examples:
        A choice by element; each element's gradient goes to where it came from:

        >>> import numpy as np
        >>> import gradops
        >>> from gradops import ops
        >>> x = np.array([-2.0, 3.0])
        >>> print(gradops.grad(lambda x: ops.sum(ops.where(x > 0, x**2, -x)))(x))
        [-1.  6.]

        The side that is not taken is computed too: where it has no finite derivative, change its argument first:

        >>> def safe_log(x):
        ...     positive = x > 0
        ...     return ops.sum(ops.where(positive, ops.log(ops.where(positive, x, 1.0)), 0.0))
        >>> print(gradops.grad(safe_log)(np.array([0.0, 2.0])))
        [0.  0.5]

    See Also:
        :func:`cond`, which computes one side only; :func:`select`; :func:`clip`.
    """
    ...


@op(differentiable=False, check=lambda op, x: check_rank(op.name, x, 1), exact=True, positions="all", conditions=("x",))
def nonzero(x: Tensor):
    """The positions of the elements that are not 0 (or not False).

    Returns:
        A tuple of int64 tensors of positions, one a dimension, in row-major order. They have no gradient.

    Raises:
        ShapeError: a 0-d tensor.
    """
    ...


def _fits(op, x, key, updates):
    check_fits(op.name, updates, dtype_of(x), "updates")


@op(public=False, check=_fits, linear=("x", "updates"))
def add_at(x: Tensor, key, updates: Tensor) -> Tensor:
    """``x`` with ``updates`` added at ``key`` (as in :func:`get_item`); repeated positions add up.

    Raises:
        AxisError: a position out of range.

    Gradient:
        The upstream gradient to ``x``, and at ``key`` to ``updates``.
    """
    ...


@op(public=False, check=_fits, linear=("x", "updates"), exact=True)
def set_at(x: Tensor, key, updates: Tensor) -> Tensor:
    """``x`` with ``updates`` at ``key`` (as in :func:`get_item`), in ``x``'s dtype; for a repeated position, the last.

    Raises:
        AxisError: a position out of range.

    Gradient:
        The upstream gradient to ``x`` except at ``key``, and at ``key`` to the updates that were not overwritten.
    """
    ...


@op(conditions=("condlist",))
def select(condlist: Structure, choicelist: Structure, default: Structure = 0) -> Tensor:
    """For each element, the choice of the first condition that is true; ``default`` where none is true.

    Args:
        condlist: bool tensors.
        choicelist: as many tensors or numbers, broadcast with them.
        default: a tensor or number, broadcast with them.

    Returns:
        A tensor of the broadcast shape, in the promoted dtype of the choices and ``default``.

    Raises:
        ArgumentError: none, or lists of different lengths.
        ShapeError: shapes that do not broadcast.

    Gradient:
        The upstream gradient to the choice taken, 0 to the others.

    Examples:
        >>> x = np.array([-1.0, 3.0])
        >>> print(ops.select([x > 0], [x**2], 0.0))
        [0. 9.]
        >>> print(gradops.grad(lambda x: ops.sum(ops.select([x > 0], [x**2], 0.0)))(x))
        [-0.  6.]
    """
    conditions, choices = list(condlist), list(choicelist)
    if not conditions or len(conditions) != len(choices):
        raise ArgumentError(
            f"`select`: `condlist` and `choicelist` must be as long as each other, at least 1; got {len(conditions)} "
            f"and {len(choices)}.",
            argument="choicelist",
        )
    result = default
    for condition, choice in zip(reversed(conditions), reversed(choices)):
        result = where(condition, choice, result)
    return result


def effective_updates(g, shape: tuple, key):
    """Return ``g`` at the positions of ``key`` in a tensor of that shape, and 0 for updates that are overwritten.

    If a position occurs several times, only the last update stays.
    """
    chosen = get_item(g, key)
    if distinct(key):
        return chosen
    parts = tuple(_checks.known(p) if hasattr(p, "shape") else p for p in parts_of(key))
    if any(p is None and q is not None for p, q in zip(parts, parts_of(key))):
        return chosen
    flat = np.arange(int(np.prod(shape))).reshape(shape)[parts]
    stayed = np.zeros(flat.size, bool)
    stayed[last_of_each(flat.reshape(-1))] = True
    return where(stayed.reshape(flat.shape), chosen, 0.0)


def explain_key(op: str, x, key, **rest) -> None:
    """Raise for the part of a key that is out of range or too long for a tensor."""
    sizes = shape(x)
    parts = parts_of(key)
    if builtins.sum(dimensions(p) for p in parts if p is not Ellipsis) > len(sizes):
        raise AxisError(
            f"`{op}`: `key` must speak of at most {len(sizes)} dimensions; got {len(parts)}.", argument="key"
        )
    dim = 0
    for part in expanded(parts, len(sizes)):
        if is_mask(part) and not isinstance(part, bool):
            wanted = tuple(sizes[dim : dim + dimensions(part)])
            if not fits(shape(part), wanted):
                raise ShapeError(
                    f"`{op}`: a mask in `key` must have the shape {wanted} of what it chooses from; got {shape(part)}.",
                    argument="key",
                )
        elif isinstance(part, int) and not isinstance(part, bool) or is_array(part) and not is_mask(part):
            check_positions(op, part, sizes[dim], "key")
        dim += dimensions(part)


def _explain_axis(op: str, x, indices, axis) -> None:
    if axis is not None:
        check_rank(op, x, 1)
    check_positions(op, indices, size(x) if axis is None else shape(x)[axis])
    if op == "take_along_axis" and axis is not None and len(shape(x)) != len(shape(indices)):
        raise ShapeError(
            f"`{op}`: `x` and `indices` must have as many dimensions as each other; got {len(shape(x))} and "
            f"{len(shape(indices))}.",
            argument="indices",
        )


for _name in ("get_item", "add_at", "set_at"):
    _checks.reasons[_name] = explain_key
for _name in ("take", "take_along_axis"):
    _checks.reasons[_name] = _explain_axis
