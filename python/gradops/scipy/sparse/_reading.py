"""Checked constructor arguments of sparse matrices: dense tensors, elements with positions, compressed formats.

Each reader returns a pattern and the values in its order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import ops
from ...errors import ArgumentTypeError, ShapeError
from ...ops import _checks
from .. import _tensors
from . import _pattern
from ._pattern import Pattern


def restore_bool(found, *given):
    """Return a result as bool if all operands are bool, as SciPy's sums and products are."""
    return ops.cast(found, "bool") if all(ops.dtype(x) == "bool" for x in given) else found


def read_dense(x, shape, name: str = "arg1") -> tuple[Pattern, Any]:
    if not _checks.is_numeric(x):
        raise _checks.not_a_tensor("sparse", name, x)
    x = ops.convert_to_tensor(x)
    if len(x.shape) != 2 or shape is not None and tuple(x.shape) != shape:
        wanted = "two dimensions" if shape is None else f"the shape {shape}"
        raise ShapeError(f"`sparse`: `{name}` must have {wanted}; got the shape {tuple(x.shape)}.", argument=name)
    rows, columns = np.nonzero(_tensors.numbers("sparse", name, ops.stop_gradient(x)))
    pattern, places = _pattern.coordinate_pattern(x.shape, rows, columns)
    flat = ops.take(ops.reshape(x, (-1,)), rows * int(x.shape[1]) + columns, 0)
    return pattern, placed(flat, pattern, places)


def read_coordinates(data, rows: np.ndarray, columns: np.ndarray, shape) -> tuple[Pattern, Any]:
    data = _vector(data)
    if not len(rows) == len(columns) == data.shape[0]:
        raise ShapeError(
            f"`sparse`: `arg1` must have as many rows and columns as elements; got {len(rows)}, {len(columns)} and "
            f"{data.shape[0]}.",
            argument="arg1",
        )
    if shape is None:
        shape = (rows.max(initial=-1) + 1, columns.max(initial=-1) + 1)
    if len(rows) and (min(rows.min(), columns.min()) < 0 or rows.max() >= shape[0] or columns.max() >= shape[1]):
        raise ShapeError(f"`sparse`: `arg1` has rows or columns beyond the shape {tuple(shape)}.", argument="arg1")
    pattern, places = _pattern.coordinate_pattern(shape, rows, columns)
    return pattern, placed(data, pattern, places)


def read_compressed(format: str, data, indices, indptr, shape) -> tuple[Pattern, Any]:
    inner, starts = whole_numbers(indices, "arg1"), whole_numbers(indptr, "arg1")
    counts = np.diff(starts)
    if not len(starts) or starts[0] or (counts < 0).any() or starts[-1] != len(inner):
        raise ShapeError("`sparse`: `indptr` must rise from 0 to the number of `indices`.", argument="arg1")
    outer = np.repeat(np.arange(len(counts)), counts)
    if shape is None:
        shape = (len(counts), inner.max(initial=-1) + 1)
        shape = shape if format == "csr" else shape[::-1]
    if shape[0 if format == "csr" else 1] != len(counts):
        raise ShapeError(f"`sparse`: `indptr` is of {len(counts)} rows or columns, not of {shape}.", argument="arg1")
    rows, columns = (outer, inner) if format == "csr" else (inner, outer)
    return read_coordinates(data, rows, columns, shape)


def placed(data, pattern: Pattern, places: np.ndarray):
    """Return the values in the pattern's order; values at the same position are summed."""
    if len(places) > pattern.count:
        return restore_bool(ops.segment_sum(data, places, pattern.count), data)
    if len(places) < 2 or (np.diff(places) > 0).all():
        return data
    return ops.take(data, np.argsort(places), 0)


def _vector(data):
    if not _checks.is_numeric(data):
        raise _checks.not_a_tensor("sparse", "data", data)
    data = ops.convert_to_tensor(data)
    if len(data.shape) != 1:
        raise ShapeError(
            f"`sparse`: the elements must be a vector; got the shape {tuple(data.shape)}.", argument="arg1"
        )
    return data


def whole_numbers(x, name: str) -> np.ndarray:
    found = _tensors.numbers("sparse", name, x)
    if found.ndim != 1 or found.dtype.kind not in "iu" and found.size:
        raise ArgumentTypeError(f"`sparse`: `{name}` must have rows and columns of whole numbers.", argument=name)
    return found.astype(np.int64)


def parts(x, count: int, name: str) -> tuple:
    if not isinstance(x, (tuple, list, np.ndarray)) or len(x) != count:
        raise ArgumentTypeError(f"`sparse`: `{name}` must be {count} numbers or arrays.", argument=name)
    return tuple(x)


def rank_of(x) -> int:
    shape = getattr(x, "shape", None)
    return np.ndim(x) if shape is None else len(shape)


def dense(x, name: str = "other"):
    if not _checks.is_numeric(x):
        raise _checks.not_a_tensor("sparse", name, x)
    return x if type(x) in (bool, int, float, complex) else ops.convert_to_tensor(x)
