"""Scattering to positions, slices, and reductions by segment."""

from __future__ import annotations

import builtins
import math

import numpy as np

from .. import backends
from ..annotations import Index, Indices, Integer, Shape, Tensor
from ..errors import ArgumentError, AxisError, Position, ShapeError
from . import _checks, reductions
from ._checks import broadcast_shapes, check_kind, check_positions, check_rank, integer, known
from ._compose import check_fits, counted
from ._dispatch import op
from ._sizes import counting
from .conversion import cast, dtype
from .conversion import shape as shape_of
from .creation import zeros_like
from .elementwise import equal, maximum
from .indexing import add_at, get_item, set_at, take, where
from .joining import concatenate, unstack
from .properties import fits, unknown
from .shaping import broadcast_to, reshape
from .sorting import argsort, searchsorted

_REDUCTIONS = (None, "add", "max", "min", "mul")


def _zeros(x, shape):
    """Return zeros of ``shape``, of ``x``'s backend and dtype."""
    return broadcast_to(cast(reductions.sum(zeros_like(x)), dtype(x)), shape)


def _rows(op: str, indices, shape, name: str = "indices") -> tuple:
    """Return the checked columns of a tensor of positions, one for each dimension; NumPy arrays if values are known."""
    values = known(indices)
    sizes = tuple(shape_of(indices) if values is None else values.shape)
    depth = sizes[-1] if sizes else 0
    if not sizes or depth > len(shape):
        raise ShapeError(
            f"`{op}`: the last dimension of `{name}` must name at most {len(shape)} dimensions; got shape {sizes}.",
            argument=name,
        )
    if values is None:
        return tuple(unstack(indices, None, -1))
    for i in builtins.range(depth):
        check_positions(op, values[..., i], shape[i], name)
    return tuple(np.moveaxis(values.astype(np.int64), -1, 0))


def _shape_of_updates(positions, shape) -> tuple:
    each = map(shape_of, positions)
    return (*broadcast_shapes("scatter", ("indices",) * len(positions), *each), *shape[len(positions) :])


def _check_updates(op: str, updates, positions, shape, name: str) -> None:
    wanted = _shape_of_updates(positions, shape)
    got = shape_of(updates)
    if not fits(got, wanted):
        raise ShapeError(
            f"`{op}`: `{name}` must have the shape {wanted} (the positions', then the rest of the tensor's); "
            f"got {got}.",
            argument=name,
        )


__family__ = """Scattering.

Values written to positions of a tensor. The last dimension of ``indices`` holds a position.

See Also:
    :func:`take`, :func:`slice_update`, :func:`segment_sum`, :func:`where`.
"""


@op
def scatter(indices: Indices, values: Tensor, shape: Shape) -> Tensor:
    """A tensor of zeros with ``values`` added at positions.

    Args:
        indices: whole numbers of shape ``(..., k)``: positions along the first ``k`` dimensions.
        values: of shape ``(..., *shape[k:])``, or one number for all. Values at the same position are added.
        shape: the shape of the result.

    Returns:
        A tensor of ``shape`` and of ``values``' dtype.

    Raises:
        AxisError: a position out of range.
        ShapeError: values that do not fit the positions and the shape.

    Gradient:
        The upstream gradient at the positions.

    Examples:
        >>> x = np.array([1.0, 3.0])
        >>> print(ops.scatter([[0], [2]], x, (3,)))
        [1. 0. 3.]
        >>> print(gradops.grad(lambda x: ops.sum(ops.scatter([[0], [2]], x, (3,)) ** 2))(x))
        [2. 6.]
    """
    shape = tuple(int(n) for n in shape)
    positions = _rows("scatter", indices, shape)
    if not len(values.shape):
        values = broadcast_to(values, _shape_of_updates(positions, shape))
    _check_updates("scatter", values, positions, shape, "values")
    return add_at(_zeros(values, shape), positions, values)


def _fits(op, inputs, _, updates, *rest):
    check_fits(op.name, updates, dtype(inputs), "updates")


@op(check=_fits)
def scatter_update(inputs: Tensor, indices: Indices, updates: Tensor, reduction: str | None = None) -> Tensor:
    """``inputs`` with ``updates`` at positions.

    Args:
        indices: whole numbers of shape ``(..., k)``: positions along the first ``k`` dimensions.
        updates: of shape ``(..., *inputs.shape[k:])``.
        reduction: None replaces (of several updates at one position the last stays); ``"add"``, ``"max"``,
            ``"min"`` and ``"mul"`` combine the element with all updates.

    Returns:
        A tensor of ``inputs``' shape and dtype.

    Raises:
        AxisError: a position out of range.
        ShapeError: updates that do not fit the positions and ``inputs``.
        ArgumentError: another ``reduction``.

    Gradient:
        To ``inputs`` and ``updates``: the upstream gradient where they are kept; for ``"max"`` and ``"min"``
        shared equally at ties; for ``"mul"`` times the product of the others, also where some are 0.

    Examples:
        >>> x = np.array([1.0, 3.0])
        >>> print(ops.scatter_update(x, [[0]], [9.0]))
        [9. 3.]
        >>> print(gradops.grad(lambda x: ops.sum(ops.scatter_update(x, [[0]], [9.0]) ** 2))(x))
        [0. 6.]
    """
    _checks.choice("scatter_update", reduction, _REDUCTIONS, "reduction")
    shape = shape_of(inputs)
    positions = _rows("scatter_update", indices, shape)
    _check_updates("scatter_update", updates, positions, shape, "updates")
    if reduction is None:
        return set_at(inputs, positions, updates)
    if reduction == "add":
        return add_at(inputs, positions, updates)
    rows, width = math.prod(shape[: len(positions)]), math.prod(shape[len(positions) :])
    row = 0
    for position, size in zip(positions, shape):
        row = row * size + where(position < 0, position + size, position)
    old, new = reshape(inputs, (rows, width)), reshape(cast(updates, dtype(inputs)), (-1, width))
    row = np.ravel(row) if isinstance(row, np.ndarray) else reshape(row, (-1,))
    ids = concatenate([counting(rows), row], 0)
    combine = {"max": segment_max, "min": segment_min, "mul": segment_prod}[reduction]
    return reshape(combine(concatenate([old, new], 0), ids, rows), shape)


__family__ = """Slices.

Blocks of a tensor, whose starts may be known only at run time.

See Also:
    :func:`get_item`, :func:`scatter_update`, :func:`split`, :func:`pad`.
"""


def _starts(op: str, start_indices, rank: int) -> list:
    """Return the start of a block along each dimension: ints if known, else 0-d tensors."""
    values = known(start_indices)
    if values is not None and values.dtype.kind in "iuf":
        starts = [integer(op, v, "start_indices") for v in np.atleast_1d(values).tolist()]
    elif isinstance(start_indices, (list, tuple)):
        each = [(s, known(s)) for s in start_indices]
        starts = [s if value is None else integer(op, value.item(), "start_indices") for s, value in each]
    elif values is None:
        starts = list(unstack(start_indices))
    else:
        raise ArgumentError(f"`{op}`: `start_indices` must be whole numbers.", argument="start_indices")
    if len(starts) != rank:
        raise ArgumentError(
            f"`{op}`: `start_indices` must have a number for each of the {rank} dimensions; got {len(starts)}.",
            argument="start_indices",
        )
    return starts


def _block(op: str, whole, start_indices, sizes) -> tuple:
    """Return the start of a block, and its key: slices, or index tensors that broadcast if a start is unknown."""
    starts = _starts(op, start_indices, len(whole))
    key = []
    for start, size, full in zip(starts, sizes, whole):
        if not isinstance(start, int):
            continue
        if start == 0 and size is full:
            key.append(builtins.slice(None))
            continue
        if not 0 <= start <= full - size:
            raise AxisError(
                f"`{op}`: `start_indices` must leave room for {size} in a dimension of {full}; got {{position}}.",
                argument="start_indices",
                position=Position(start),
            )
        key.append(builtins.slice(start, start + size))
    if len(key) < len(starts):
        key = []
        for i, (start, size) in enumerate(zip(starts, sizes)):
            key.append(reshape(start + np.arange(size), [-1 if j == i else 1 for j in builtins.range(len(starts))]))
    return starts, tuple(key)


def _dynamic_backend(x, starts):
    """Return ``x``'s backend if it has kernels for blocks whose starts are known only at run time."""
    owner = backends.backend_of(x)
    if owner is None or all(isinstance(s, int) for s in starts):
        return None
    return owner if owner.kernel("block_at") is not None else None


@op(view="writable")
def slice(inputs: Tensor, start_indices: Index, shape: Shape) -> Tensor:
    """A block of ``inputs``: ``shape`` elements along each dimension, from ``start_indices`` on.

    Args:
        start_indices: a position for each dimension, numbers or a tensor, also one that is only known at run
            time inside a trace.
        shape: sizes; -1 takes all elements from the start on, which must be known.

    Returns:
        A tensor of ``shape`` and of ``inputs``' dtype.

    Raises:
        AxisError: a block that reaches beyond the tensor.
        ArgumentError: a number of starts or sizes that differs from the number of dimensions.

    Gradient:
        The upstream gradient in the block, 0 elsewhere.

    Examples:
        >>> x = np.array([1.0, 3.0, 2.0])
        >>> print(ops.slice(x, (1,), (2,)), gradops.grad(lambda x: ops.sum(ops.slice(x, (1,), (2,)) ** 2))(x))
        [3. 2.] [0. 6. 4.]
    """
    rank = len(inputs.shape)
    sizes = [integer("slice", n, "shape") for n in shape]
    if len(sizes) != rank:
        raise ArgumentError(
            f"`slice`: `shape` must have a number for each of the {rank} dimensions; got {len(sizes)}.",
            argument="shape",
        )
    whole = shape_of(inputs)
    if -1 in sizes:
        starts = _starts("slice", start_indices, rank)
        if not all(isinstance(s, int) for s, n in zip(starts, sizes) if n == -1):
            raise ArgumentError("`slice`: a size of -1 needs a start that is known.", argument="shape")
        sizes = [(full - s if s else full) if n == -1 else n for s, n, full in zip(starts, sizes, whole)]
    if any(not unknown(n) and n < 0 for n in sizes):
        raise ArgumentError(f"`slice`: `shape` must not be negative, but for -1; got {list(shape)}.", argument="shape")
    starts, key = _block("slice", whole, start_indices, sizes)
    native = _dynamic_backend(inputs, starts)
    return native.kernel("block_at")(inputs, starts, sizes) if native else get_item(inputs, key)


@op(check=_fits)
def slice_update(inputs: Tensor, start_indices: Index, updates: Tensor) -> Tensor:
    """``inputs`` with the block that starts at ``start_indices`` replaced by ``updates``.

    Args:
        start_indices: a position for each dimension, as in :func:`slice`.
        updates: a tensor with as many dimensions as ``inputs``.

    Returns:
        A tensor of ``inputs``' shape and dtype.

    Raises:
        AxisError: a block that reaches beyond the tensor.
        ShapeError: updates of another number of dimensions.

    Gradient:
        The upstream gradient outside the block to ``inputs``, inside to ``updates``.

    Examples:
        >>> x = np.array([1.0, 3.0, 2.0])
        >>> print(ops.slice_update(x, (1,), [9.0]))
        [1. 9. 2.]
        >>> print(gradops.grad(lambda x: ops.sum(ops.slice_update(x, (1,), [9.0]) ** 2))(x))
        [2. 0. 4.]
    """
    rank = len(inputs.shape)
    check_rank("slice_update", updates, (rank,), "updates")
    if not rank:
        return set_at(inputs, ..., updates)
    starts, key = _block("slice_update", shape_of(inputs), start_indices, shape_of(updates))
    native = _dynamic_backend(inputs, starts)
    return native.kernel("update_block_at")(inputs, starts, updates) if native else set_at(inputs, key, updates)


__family__ = """Segments.

Segments are groups of rows: row ``i`` of ``data`` belongs to the segment ``segment_ids[i]``. Rows with an id out of
range (negative, or ``num_segments`` and above) are ignored, and their gradient is 0.

See Also:
    :func:`sum`, :func:`scatter`, :func:`take`, :func:`bincount`.
"""


def _segments(op, data, segment_ids, num_segments, sorted) -> None:
    sizes, ids = shape_of(data), shape_of(segment_ids)
    if not sizes or len(ids) != 1 or not fits(ids, sizes[:1]):
        raise ShapeError(
            f"`{op.name}`: `segment_ids` must be a vector as long as the first dimension of `data`; got shapes {ids} "
            f"and {sizes}.",
            argument="segment_ids",
        )
    values = known(segment_ids)
    if values is not None and values.size and values.dtype.kind not in "iu":
        raise ArgumentError(f"`{op.name}`: `segment_ids` must be whole numbers.", argument="segment_ids")
    if num_segments is not None:
        integer(op.name, num_segments, "num_segments", 0)
    if num_segments is None and values is None:
        raise ArgumentError(
            f"`{op.name}`: `num_segments` is needed where the values of `segment_ids` are not known (inside a trace).",
            argument="num_segments",
        )


def _ordered_segments(op, data, segment_ids, num_segments, sorted) -> None:
    _segments(op, data, segment_ids, num_segments, sorted)
    check_kind(op.name, data, (0, 1, 2), "real", "data")


def _count(segment_ids, num_segments) -> int:
    if num_segments is not None:
        return int(num_segments)
    values = known(segment_ids)
    return int(values.max()) + 1 if values is not None and values.size else 0


def _kept(data, segment_ids, count: int) -> tuple:
    """Return ``data`` and ids without rows of no segment; if ids are unknown, these rows get the id ``count``."""
    values = known(segment_ids)
    if values is None:
        return data, where((segment_ids < 0) | (segment_ids >= count), count, segment_ids), count + 1
    inside = (values >= 0) & (values < count)
    if not inside.all():
        data, values = take(data, np.flatnonzero(inside), 0), values[inside]
    return data, values.astype(np.int64), count


@op(check=_segments, linear=("data",))
def segment_sum(
    data: Tensor, segment_ids: Indices, num_segments: Integer | None = None, sorted: bool = False
) -> Tensor:
    """Sum of the rows of each segment.

    Args:
        data: rows along the first dimension.
        segment_ids: each row's segment, a vector of whole numbers in any order; rows of no segment are left out.
        num_segments: the number of segments; by default one more than the largest id.
        sorted: whether the ids ascend; the result is the same either way.

    Returns:
        A tensor of shape ``(num_segments, *data.shape[1:])`` and ``data``'s dtype (int64 of bools, which are
        counted); 0 for empty segments.

    Raises:
        ShapeError: ids that are no vector as long as ``data``.
        ArgumentError: no ``num_segments`` inside a trace.

    Gradient:
        The upstream gradient of each row's segment.

    Examples:
        Sums by group; each element gets its group's gradient:

        >>> import numpy as np
        >>> import gradops
        >>> from gradops import ops
        >>> groups = np.array([0, 0, 1])
        >>> def loss(x):
        ...     return ops.sum(ops.segment_sum(x, groups) ** 2)
        >>> print(gradops.grad(loss)(np.array([1.0, 2.0, 5.0])))
        [ 6.  6. 10.]

    See Also:
        :func:`sum`, :func:`scatter`, :func:`take`.
    """
    count = _count(segment_ids, num_segments)
    data, ids, room = _kept(counted(data), segment_ids, count)
    total = add_at(_zeros(data, (room, *shape_of(data)[1:])), ids, data)
    return total if room == count else total[:count]


@op(check=_ordered_segments)
def segment_max(
    data: Tensor, segment_ids: Indices, num_segments: Integer | None = None, sorted: bool = False
) -> Tensor:
    """Largest of the rows of each segment, elementwise.

    Args:
        data, segment_ids, num_segments, sorted: as in :func:`segment_sum`.

    Returns:
        A tensor of shape ``(num_segments, *data.shape[1:])`` and ``data``'s dtype; -inf for empty segments (the
        smallest number of an integer dtype).

    Raises:
        ArgumentTypeError: a complex ``data``, which has no order.
        ShapeError: ids that are no vector as long as ``data``.
        ArgumentError: no ``num_segments`` inside a trace.

    Gradient:
        The upstream gradient of the segment to its largest row, shared equally among tied ones.

    Examples:
        >>> x = np.array([1.0, 3.0, 2.0])
        >>> print(ops.segment_max(x, [0, 0, 1]), gradops.grad(lambda x: ops.sum(ops.segment_max(x, [0, 0, 1])))(x))
        [3. 2.] [0. 1. 1.]
    """
    ...


@op(check=_ordered_segments)
def segment_min(
    data: Tensor, segment_ids: Indices, num_segments: Integer | None = None, sorted: bool = False
) -> Tensor:
    """Smallest of the rows of each segment, elementwise.

    Args:
        data, segment_ids, num_segments, sorted: as in :func:`segment_sum`.

    Returns:
        A tensor of shape ``(num_segments, *data.shape[1:])`` and ``data``'s dtype; inf for empty segments (the
        largest number of an integer dtype).

    Raises:
        ArgumentTypeError: a complex ``data``, which has no order.
        ShapeError: ids that are no vector as long as ``data``.
        ArgumentError: no ``num_segments`` inside a trace.

    Gradient:
        The upstream gradient of the segment to its smallest row, shared equally among tied ones.

    Examples:
        >>> x = np.array([1.0, 3.0, 2.0])
        >>> print(ops.segment_min(x, [0, 0, 1]), gradops.grad(lambda x: ops.sum(ops.segment_min(x, [0, 0, 1])))(x))
        [1. 2.] [1. 0. 1.]
    """
    ...


@op(check=_segments)
def segment_prod(
    data: Tensor, segment_ids: Indices, num_segments: Integer | None = None, sorted: bool = False
) -> Tensor:
    """Product of the rows of each segment, elementwise.

    Args:
        data, segment_ids, num_segments, sorted: as in :func:`segment_sum`.

    Returns:
        A tensor of shape ``(num_segments, *data.shape[1:])`` and ``data``'s dtype (int64 of bools); 1 for empty
        segments.

    Raises:
        ShapeError: ids that are no vector as long as ``data``.
        ArgumentError: no ``num_segments`` inside a trace.

    Gradient:
        The upstream gradient of the segment times the product of its other rows, also where rows are 0, and to
        any order: rows are multiplied in pairs, then the pairs.

    Examples:
        >>> x = np.array([1.0, 3.0, 2.0])
        >>> print(ops.segment_prod(x, [0, 0, 1]))
        [3. 2.]
        >>> print(gradops.grad(lambda x: ops.sum(ops.segment_prod(x, [0, 0, 1])))(x))
        [3. 1. 1.]
    """
    count = _count(segment_ids, num_segments)
    data, ids, room = _kept(counted(data), segment_ids, count)
    if known(ids) is None:
        return _running_products(data, ids, room)[:count]
    order = np.argsort(ids, kind="stable")
    ids, data = ids[order], take(data, order, 0)
    one = _zeros(data, (1, *data.shape[1:])) + 1
    while len(ids) and (ids[1:] == ids[:-1]).any():
        first = np.flatnonzero(np.r_[True, ids[1:] != ids[:-1]])
        rank = np.arange(len(ids)) - np.repeat(first, np.diff(np.r_[first, len(ids)]))
        left = np.flatnonzero(rank % 2 == 0)
        paired = np.r_[(ids[1:] == ids[:-1]), False][left]
        right = np.where(paired, left + 1, len(ids))
        data = take(data, left, 0) * take(concatenate([data, one], 0), right, 0)
        ids = ids[left]
    place = np.full(room, len(ids))
    place[ids] = np.arange(len(ids))
    return take(concatenate([data, one], 0), place, 0)


def _running_products(data, ids, room: int):
    """Return the products for unknown ids: running products of the sorted rows, taken at the end of each segment.

    Each round doubles the rows in a running product, so the number of rounds is logarithmic.
    """
    owner, rows = backends.backend_of(data), data.shape[0]
    if rows is None and owner is not None:
        return owner.kernel("product_by_segment")(data, ids, room)
    order = argsort(ids, 0)
    ids, data = take(ids, order, 0), take(data, order, 0)
    one = _zeros(data, (1, *data.shape[1:])) + 1
    column = (-1, *(1,) * (len(data.shape) - 1))
    step = 1
    while step < rows:
        same = reshape(ids[step:] == ids[:-step], column)
        before = where(same, data[:-step], 1)
        data = data * concatenate([broadcast_to(one, (step, *data.shape[1:])), before], 0)
        step *= 2
    segments = np.arange(room)
    last = searchsorted(ids, segments, "right") - 1
    there = (last >= 0) & equal(take(ids, maximum(last, 0), 0), segments) if rows else np.zeros(room, bool)
    return take(concatenate([data, one], 0), where(there, last, rows), 0)
