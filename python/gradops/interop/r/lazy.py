"""The tensors that R's lazy handles stand for (R's ``lazy-*.R``), made of R's logs when R reads them.

A log of assignments is a tensor and the values put into it; one of operations on numbers is written down to the program
that is being traced (:mod:`gradops.jit.scalar_logs`).
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

scalars, takes_scalars, floats_of_scalars = logs.log, logs.Log.takes, logs.Log.has_floats
scalar_names = [*logs.NAMES, "more"]
"""The operations by number, from 1; 0 reads an element of an array."""


def write_scalars(log: logs.Log, words: list[float], inputs: list, numbers: float | list[float] | None, shape: list):
    """Write operations down; the tensor of a result, or of several with a shape, by number."""
    try:
        if words or inputs:  # inputs come once, also where there is no operation on them
            log.record(words, inputs)
        if numbers is None:
            return None
        found = [int(number) for number in (numbers if isinstance(numbers, list) else [numbers])]
        return log.tensor(found, tuple(map(int, shape))) if shape else log.element(found[0])
    except Exception as error:
        return Failure(error)


def part(value, whole, count: int):
    """``value`` as it is read back from ``count`` positions of a tensor like ``whole``.

    None where it would be another, or has to be placed at once: under ``no_grad``, and in a program of ``jit`` on
    NumPy, which places a value without a step.
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
    """``x``, a vector grown with NaN, with the parts' elements at ``cells``, of several the last.

    ``cells`` count by column, from 1; ``sizes`` are those of the result.
    """
    shape = tuple(map(int, sizes))
    size = math.prod(shape)
    if size > math.prod(x.shape):
        x = ops.concatenate([x, _constant(np.full(size - math.prod(x.shape), np.nan), x, ops.dtype(x))])
    # One gather for all assignments, whatever their number: `source` says for each element which of the parts'
    # elements was put there last, and -1 where none was. NumPy's assignment keeps the last of equal positions, as R's
    # loop did.
    source = np.full(size, -1)
    source[np.array(cells, np.int64) - 1] = np.arange(len(cells))
    source = source.reshape(shape, order="F").ravel()
    if all(not piece.shape for piece in parts):
        values = ops.stack(parts)
    else:
        values = ops.concatenate([ops.reshape(piece, (-1,)) for piece in parts])
    if not np.array_equal(source, np.arange(len(cells))):
        values = ops.take(values, np.maximum(source, 0), 0)
    values = ops.reshape(values, shape)
    return values if source.min() >= 0 else ops.where((source >= 0).reshape(shape), values, x)


def lasts(x, same: bool) -> bool:
    """True if a tensor is as good anywhere: recorded, and made where it is used or with values."""
    return recording.get() and (same or known(x) is not None)


def _constant(value, whole, dtype: str):
    """R's numbers as a tensor like ``whole``."""
    array = np.asarray(value)
    if array.dtype.kind not in "bif" or "float" not in dtype:
        return None
    like = data_of(whole)
    data = backends.of(like).convert(array.ravel(order="F"), dtype, like=like)
    return autodiff.Variable(data) if isinstance(whole, autodiff.Variable) else data


def _device(x):
    return getattr(getattr(x, "data", x), "device", None)
