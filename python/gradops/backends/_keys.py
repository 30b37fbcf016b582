"""NumPy-style indexing keys split into parts, so that each backend can index by NumPy's rules.

A key is an int, slice, None, ``...``, integer array or bool mask, or a tuple of these. :func:`parts_of` normalises the
parts (arrays may belong to any library, ``Variable``s are replaced by their data) and :func:`expanded` gives one part
for each dimension of the tensor.
"""

from __future__ import annotations

from typing import Any

import numpy as np

_SCALARS = (int, slice, type(None), type(Ellipsis))


def parts_of(key) -> list:
    """The parts of a key; lists become NumPy arrays, variables their data, and 0-d integer arrays ints."""
    return [_part(p) for p in (key if isinstance(key, tuple) else (key,))]


def _part(part) -> Any:
    if isinstance(part, _SCALARS) or part.__class__ is np.ndarray and part.ndim:
        return part
    if hasattr(part, "requires_grad") and hasattr(part, "_node"):
        part = part.data
    if isinstance(part, (list, range)):
        part = np.asarray(part)
        return part if part.size else part.astype(np.int64)
    if isinstance(part, (np.ndarray, np.generic)) and part.ndim == 0 and part.dtype.kind in "iu":
        return int(part)
    return part


_BASIC = frozenset(_SCALARS)


def is_basic(key) -> bool:
    """True if a key holds only ints, slices, ``None`` and ``...``; such a key selects no position twice."""
    kind = key.__class__
    return kind in _BASIC or kind is tuple and _BASIC.issuperset(map(type, key))


def plain(key):
    """A key with its variables and lists replaced by arrays."""
    if is_basic(key):
        return key
    parts = parts_of(key)
    return tuple(parts) if isinstance(key, tuple) else parts[0]


def is_array(part) -> bool:
    """True if a part is an array or a bool, which makes indexing "advanced" in NumPy's sense."""
    return isinstance(part, bool) or not isinstance(part, _SCALARS)


def is_mask(part) -> bool:
    if part.__class__ is np.ndarray:
        return part.dtype.kind == "b"  # building the dtype's name costs more than indexing
    return isinstance(part, bool) or str(getattr(part, "dtype", "")).rpartition(".")[2] in ("bool", "<dtype: 'bool'>")


def dimensions(part) -> int:
    """The number of dimensions of the tensor that a part indexes."""
    if part is None or isinstance(part, bool):
        return 0
    return len(part.shape) if is_mask(part) else 1


def expanded(parts: list, rank: int) -> list:
    """The parts with ``...`` and missing trailing parts written out as full slices.

    Raises:
        IndexError: more parts than dimensions.
    """
    used = sum(dimensions(p) for p in parts if p is not Ellipsis)
    if used > rank:
        raise IndexError(f"{used} positions for a tensor of {rank} dimensions")
    at = [i for i, p in enumerate(parts) if p is Ellipsis]
    if len(at) > 1:
        raise IndexError("more than one `...` in a key")
    rest = [slice(None)] * (rank - used)
    return parts[: at[0]] + rest + parts[at[0] + 1 :] if at else parts + rest


def inserted(axis, rank: int) -> list[int]:
    """The sorted positions at which dimensions of size 1 are inserted into a tensor of ``rank`` dimensions.

    Raises:
        IndexError: an axis out of range or named twice.
    """
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    rank += len(axes)
    found = sorted(a + rank if a < 0 else a for a in axes)
    if any(not 0 <= a < rank for a in found) or len(set(found)) != len(found):
        raise IndexError(f"axis {axis} is out of range for {rank} dimensions")
    return found


def separated(parts: list) -> bool:
    """True if a key's arrays and ints are not adjacent; NumPy then puts their dimensions first.

    Even an empty ``...`` separates them.
    """
    at = [i for i, p in enumerate(parts) if type(p) is int or is_array(p)]
    return bool(at) and at[-1] - at[0] >= len(at)


def distinct(key) -> bool:
    """True if a key cannot select a position twice because it has no integer arrays."""
    return is_basic(key) or all(not is_array(p) or is_mask(p) for p in parts_of(key))


def last_of_each(flat: np.ndarray) -> np.ndarray:
    """The sorted indices into a vector of positions at which each position occurs for the last time."""
    order = np.arange(flat.size)[::-1]
    return np.sort(order[np.unique(flat[::-1], return_index=True)[1]])


def cuts(positions, size: int) -> list[int]:
    """The sorted positions to split a dimension at, as non-negative numbers clipped to its size.

    Raises:
        ValueError: the positions are not in ascending order, so the pieces would overlap.
    """
    found = [min(max(int(i) + (size if i < 0 else 0), 0), size) for i in positions]
    if any(one > next_one for one, next_one in zip(found, found[1:])):
        raise ValueError(f"the positions to cut at must ascend; got {list(positions)}")
    return found


def turns(shift, axis) -> tuple:
    """``shift`` and ``axis`` of ``roll``, as two numbers or as two tuples of the same length.

    Raises:
        ValueError: lengths that do not broadcast.
    """
    shift = tuple(shift) if isinstance(shift, (tuple, list)) else shift
    if axis is None or not isinstance(shift, tuple) and not isinstance(axis, tuple):
        return (sum(shift) if isinstance(shift, tuple) else shift), axis
    shifts = shift if isinstance(shift, tuple) else (shift,)
    axes = axis if isinstance(axis, tuple) else (axis,)
    length = max(len(shifts), len(axes))
    if {len(shifts), len(axes)} - {1, length}:
        raise ValueError(f"{len(shifts)} shifts do not go with {len(axes)} axes")
    return shifts * (length // len(shifts)), axes * (length // len(axes))
