"""R's ``[`` and ``[<-`` on tensors.

An index is None for an empty R index, or a number, a list or array of numbers or booleans, or a tensor of booleans or
positions. They mean what they mean in R: positions count from 1, negative positions are left out, 0 selects nothing,
booleans are recycled.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ... import backends, ops
from ...autodiff import Variable
from ...errors import ArgumentTypeError, AxisError, Given, JitError
from ...ops._checks import known
from .code_comparisons import decided


def _tensor(x):
    if x is None:
        raise ArgumentTypeError(
            "`x` must be a tensor or numbers; got {value}.", argument="x", value=Given("None", None)
        )
    return x if hasattr(x, "shape") else ops.convert_to_tensor(x)


def subset(x, indices: list, drop: bool = True, exact: bool = False):
    """Return ``x[i, j]``; with ``drop`` dimensions of size 1 are dropped, and a single element has no dimensions.

    Args:
        exact: True for ``x[[i]]``, where the element must exist; ``x[i]`` is NaN beyond the end of a floating vector.
    """
    x = _tensor(x)
    if not tuple(x.shape):
        x = ops.reshape(x, (1,))
    shape = tuple(x.shape)
    if not indices or (len(indices) == 1 and indices[0] is None):
        return x
    missing = not exact and "float" in str(ops.dtype(x))
    beyond = missing and len(indices) == 1
    if len(indices) == 1 and len(shape) > 1:
        return _elements(x, indices[0], shape, beyond)
    _check_count(indices, shape)
    key: list = []
    gathered = {}
    for axis, (index, size) in enumerate(zip(indices, shape)):
        positions = _positions(index, size, beyond, missing)
        if isinstance(positions, np.ndarray):
            x = _reached(x, positions, axis) if missing else x
            if len(positions) == 1 and drop:
                positions = int(positions[0])
            elif len(positions):
                positions = _slice_of(positions)
        elif isinstance(positions, int) and not drop:
            positions = slice(positions, positions + 1)
        elif isinstance(positions, slice) and drop and size == 1:
            positions = 0
        if isinstance(positions, (int, slice)):
            key.append(positions)
        else:
            gathered[axis] = positions
            key.append(slice(None))
    if any(part != slice(None) for part in key):
        x = ops.get_item(x, tuple(key))
    for axis, positions in reversed(gathered.items()):
        x = _gather(x, axis - sum(isinstance(part, int) for part in key[:axis]), positions, drop)
    return x


def _reached(x, positions: np.ndarray, axis: int = 0):
    """Pad an array with NaN after the end of an axis, if a position points there."""
    if not (positions == x.shape[axis]).any():
        return x
    return ops.pad(x, [(0, int(a == axis)) for a in range(len(x.shape))], constant_values=math.nan)


def _slice_of(positions: np.ndarray) -> slice | np.ndarray:
    """Return consecutive positions as a slice, others unchanged."""
    if np.all(np.diff(positions) == 1):
        return slice(int(positions[0]), int(positions[-1]) + 1)
    return positions


def _gather(x, axis: int, positions, drop: bool):
    """Gather positions along an axis. A single one becomes a vector: PyTorch would read its value, even in a trace."""
    lone = not positions.shape
    x = ops.get_item(x, (*[slice(None)] * axis, ops.reshape(positions, (1,)) if lone else positions))
    return ops.squeeze(x, axis) if lone and drop else x


def assign(x, indices: list, value):
    """Return a copy of ``x`` with ``value``, recycled, at the positions that :func:`subset` would return."""
    x = _tensor(x)
    shape = tuple(x.shape)
    places = np.arange(int(np.prod(shape))).reshape(shape)
    if len(indices) == 1 and isinstance(indices[0], (Variable, *_tensor_types(indices[0]))):
        first: Any = indices[0]
        test = _test_of(first, shape)
        if test is not None and math.prod(np.shape(value)) == 1:
            return ops.where(test, ops.reshape(value, ()), x)
        looks = test is not None and known(first) is None
        indices = [_looked_at(first, math.prod(shape)) if looks else ops.convert_to_numpy(first)]
        if indices[0].dtype.kind == "b" and indices[0].shape == shape:
            indices = [indices[0].ravel(order="F")]
    chosen = np.asarray(subset(places, indices, False)).ravel(order="F")
    if not chosen.size:
        return x
    if not ops.is_tensor(value):
        value = np.asarray(value)
        values = value.ravel(order="F")
    else:
        values = value if value.shape == () else column_major(value)
    count = math.prod(values.shape)
    if count == 0 or chosen.size % count:
        raise AxisError(
            f"`value` must have as many elements as are replaced, or a divisor; got {count} for {chosen.size}.",
            argument="value",
        )
    if count > 1 and len(shape) == 1 and ops.dtype(values) == ops.dtype(x):
        recycled = values if count == chosen.size else ops.take(values, np.arange(chosen.size) % count, 0)
        return ops.set_at(x, _slice_of(chosen), recycled)
    replaced = np.zeros(places.size, dtype=bool)
    replaced[chosen] = True
    if count == 1:
        placed = value if value.shape == () else ops.reshape(values, ())
    else:
        source = np.zeros(places.size, dtype=np.int64)
        source[chosen] = np.arange(chosen.size) % count
        placed = ops.reshape(ops.take(values, source, 0), shape)
    return ops.where(replaced.reshape(shape), placed, x)


def _test_of(index, shape: tuple):
    """Return a boolean index of one element each in the shape of ``x``; None for any other index."""
    if "bool" not in str(ops.dtype(index)) or math.prod(index.shape) != math.prod(shape):
        return None
    if tuple(index.shape) == shape:
        return index
    return ops.transpose(ops.reshape(column_major(index), shape[::-1])) if len(shape) > 1 else ops.reshape(index, shape)


def put(x, position: float, value):
    """Return a copy of ``x`` with ``value`` at one position, counted by column; a vector grows, with NaN in between."""
    place = int(position)
    if len(x.shape) < 2 and place > math.prod(x.shape):
        x = ops.concatenate([ops.reshape(x, (-1,)), np.full(place - math.prod(x.shape), np.nan)])
    shape = tuple(x.shape)
    if 0 < place <= math.prod(shape) and ops.size(value) == 1 and ops.dtype(x) == ops.dtype(value):
        key = tuple(map(int, np.unravel_index(place - 1, shape, order="F")))
        return ops.set_at(x, key, ops.reshape(value, ()))  # free in a compiled program
    return assign(x, [place], value)


def column_major(x):
    """Return the elements of ``x`` in R's order, as a vector."""
    if len(x.shape) == 1:
        return x
    return ops.reshape(ops.transpose(x) if len(x.shape) > 1 else x, (-1,))


def _tensor_types(value) -> tuple:
    return (type(value),) if backends.backend_of(value) is not None and not isinstance(value, np.ndarray) else ()


def _elements(x, index, shape: tuple, beyond: bool):
    """Return the elements chosen by one index on several dimensions: a matrix of positions, or positions by column."""
    array = index if isinstance(index, np.ndarray) else None
    if array is not None and array.ndim == 2 and array.shape[1] == len(shape) and array.dtype.kind in "if":
        if (array < 1).any() or (array > shape).any():
            raise _out_of_range(f"dimensions {shape}")
        steps = np.cumprod((1, *shape[:-1]))
        index = 1 + (np.trunc(array - 1) * steps).sum(axis=1)  # a row with NA gives NaN
    elif array is not None:
        index = array.ravel(order="F")
    elif ops.is_tensor(index):
        index = column_major(index)
    flat = column_major(x)
    positions = _positions(index, int(np.prod(shape)), beyond)
    if isinstance(positions, np.ndarray):
        flat = _reached(flat, positions) if beyond else flat
        positions = int(positions[0]) if len(positions) == 1 else positions
    return ops.get_item(flat, positions) if isinstance(positions, (int, slice)) else _gather(flat, 0, positions, True)


def _positions(index, size: int, beyond: bool = False, missing: bool = False) -> Any:
    """Convert an index to 0-based positions: an int, a slice, an array, or a tensor.

    Args:
        beyond: True to replace NA and positions beyond the end by ``size``; otherwise they raise an error.
        missing: True to do so for NA only.
    """
    missing = missing or beyond
    if index is None:
        return slice(None)
    if index.__class__ is float or index.__class__ is int:
        number = int(index) if index == index else 0
        if 0 < number <= size:
            return number - 1
    if not isinstance(index, (bool, int, float, list, np.ndarray)):
        if not ops.is_tensor(index):
            raise ArgumentTypeError("an index must be numeric or logical.", argument="i")
        values = known(index)
        if values is None and "bool" in str(ops.dtype(index)):
            values = _looked_at(index, size, missing)
        if values is None and "float" in str(ops.dtype(index)):
            found = decided(index, "whole")
            index = ops.cast(index, "int64") if found is None else index
            values = None if found is None else np.where(found[1], np.nan, found[0])
        if values is None:  # in a trace: map positions below 1 out of range
            return ops.where(ops.less(index, 1), np.iinfo(np.int32).min // 2, ops.subtract(index, 1))
        index = values
    array = np.atleast_1d(np.asarray(index)).ravel(order="F")
    if array.dtype.kind == "b":
        if array.size > size and not beyond:
            raise AxisError(f"a logical index of {array.size} elements for {size}.", argument="i")
        array = 1 + np.flatnonzero(np.resize(array, max(array.size, size)) if array.size else array)
    if array.dtype.kind not in "if" and array.size:
        raise ArgumentTypeError("an index must be numeric or logical.", argument="i")
    if np.isnan(array).any() and not missing:
        raise _out_of_range(f"{size} elements", "NA")
    is_there = array < size + 1
    if not (beyond or (is_there | np.isnan(array)).all()):
        raise _out_of_range(f"{size} elements", np.nanmax(array))
    array = np.where(is_there, array, size + 1).astype(np.int64)
    array = array[array != 0]
    if array.size and array.min() < 0:
        if array.max() > 0:
            raise AxisError("positive and negative positions cannot be mixed.", argument="i")
        return np.setdiff1d(np.arange(size), -array - 1)
    return array - 1


def _looked_at(index, size: int, allowed: bool = False) -> np.ndarray:
    """Return a traced array's booleans, to which the program is specialised; positions with NaN if some are NA."""
    found = decided(index, "[")
    if found is None:
        raise JitError(
            "`x[i]` by booleans looks at values, which are not known while a function is compiled: "
            "the shape of the result depends on them. `ops.where` has a fixed shape."
        )
    values, missing = found
    if not np.any(missing):
        return np.asarray(values)
    if not allowed:
        raise _out_of_range(f"{size} elements", "NA")
    chosen, missing = (np.resize(x, max(np.size(values), size)) for x in (np.logical_or(values, missing), missing))
    return np.where(missing, np.nan, 1.0 + np.arange(chosen.size))[chosen]


def _out_of_range(there: str, position=None) -> AxisError:
    came = "" if position is None else f"; got {position if isinstance(position, str) else format(position, 'g')}"
    return AxisError(f"an index is out of range: there are {there}{came}.", argument="i")


def _check_count(indices: list, shape: tuple) -> None:
    if len(indices) != len(shape):
        raise AxisError(f"there must be one index, or one for each of {len(shape)} dimensions; got {len(indices)}.")
