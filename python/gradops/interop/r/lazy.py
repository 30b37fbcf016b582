"""The tensors behind R's lazy handles (``lazy-*.R``), built from R's logs when R reads them.

A log of assignments holds a tensor and the values assigned to its elements. A log of scalar operations is appended to
the program that is being traced (:mod:`gradops.jit.scalar_logs`).
"""

from __future__ import annotations

import math

import numpy as np

from ... import autodiff, backends, ops
from ...autodiff.modes import recording
from ...autodiff.variable import data_of
from ...jit import scalar_logs as logs
from ...jit.array import Traced
from ...ops._checks import known
from .errors import Failure

scalars, takes_scalars = logs.log, logs.Log.takes
scalar_names = [*logs.NAMES, "more"]
"""Names of the operations, whose numbers count from 1; number 0 reads an element of an array."""


def floats_of_scalars(log: logs.Log, x) -> bool:
    """Return True if a log's numbers may be assigned to elements of ``x``."""
    return log.has_floats(x) or isinstance(x, np.ndarray) and x.dtype == np.float64


def write_scalars(log: logs.Log, words: list[float], inputs: list, numbers: float | list[float] | None, shape: list):
    """Record scalar operations and return the tensor of one result, or of several results in a shape, by number."""
    try:
        if words or inputs:  # R sends each input once, possibly before any operation on it
            log.record(words, inputs)
        if numbers is None:
            return None
        found = [int(number) for number in (numbers if isinstance(numbers, list) else [numbers])]
        return log.tensor(found, tuple(map(int, shape))) if shape else log.element(found[0])
    except Exception as error:
        return Failure(error)


def part(value, whole, count: int):
    """Return ``value`` as it would be read back from ``count`` positions of ``whole``, so that assigning it can wait.

    Returns None if reading back would change it (another dtype, device or size), or if it has to be assigned now: under
    ``no_grad``, and in a program of ``jit`` on NumPy, where assigning is free.
    """
    if not recording.get() or isinstance(getattr(whole, "data", None), Traced):
        return None
    dtype = ops.dtype(whole)
    if not ops.is_tensor(value) and not isinstance(value, autodiff.Variable):
        value = _constant(value, whole, dtype)
    if value is None or ops.dtype(value) != dtype or _device(value) != _device(whole):
        return None
    shape = tuple(value.shape)
    if None in shape or math.prod(shape) not in (1, count):
        return None
    if count == 1:
        return ops.reshape(value, ()) if shape else value
    if math.prod(shape) == 1:
        return ops.broadcast_to(ops.reshape(value, ()), (count,))
    return value if len(shape) == 1 else ops.reshape(ops.transpose(value), (-1,))


def assembled(x, sizes: list, cells: list, parts: list):
    """Return ``x``, a vector grown with NaN as needed, with the elements of the parts assigned to ``cells``.

    ``cells`` count by column, from 1; the last of several assignments to a cell counts. ``sizes`` is the shape of the
    result.
    """
    shape = tuple(map(int, sizes))
    size = math.prod(shape)
    if size > math.prod(x.shape):
        x = ops.concatenate([x, _constant(np.full(size - math.prod(x.shape), np.nan), x, ops.dtype(x))])
    # One gather serves all assignments: `source` holds for each element the number of the part element assigned last,
    # and -1 where nothing was assigned. NumPy's assignment keeps the last of equal positions, as R's loop did.
    source = np.full(size, -1)
    source[np.array(cells, np.int64) - 1] = np.arange(len(cells))
    source = source.reshape(shape, order="F").ravel()
    if len(parts) == 1:
        values = ops.reshape(parts[0], (-1,))
    elif all(not piece.shape for piece in parts):
        values = ops.stack(parts)
    else:
        values = ops.concatenate([ops.reshape(piece, (-1,)) for piece in parts])
    if not np.array_equal(source, np.arange(len(cells))):
        values = ops.take(values, np.maximum(source, 0), 0)
    values = ops.reshape(values, shape)
    return values if source.min() >= 0 else ops.where((source >= 0).reshape(shape), values, x)


def lasts(x, same: bool) -> bool:
    """Return True if a tensor may be used later: recording is on, and it has values or is used where it was made."""
    return recording.get() and (same or known(x) is not None)


def _constant(value, whole, dtype: str):
    """Return R's numbers as a tensor like ``whole``; None if its dtype cannot hold them."""
    array = np.asarray(value)
    if array.dtype.kind not in "bif" or "float" not in dtype:
        return None
    like = data_of(whole)
    data = backends.backend_of(like).convert(array.ravel(order="F"), dtype, like=like)
    return autodiff.Variable(data) if isinstance(whole, autodiff.Variable) else data


def _device(x):
    return getattr(getattr(x, "data", x), "device", None)
