"""Numbers computed from sizes, also from those that a TensorFlow graph does not know."""

from __future__ import annotations

import functools

import numpy as np

from ._dispatch import registry
from .elementwise import add, greater_equal, multiply
from .properties import unknown
from .shaping import expand_dims, reshape


def counting(n):
    """The whole numbers from 0 below ``n``: NumPy's where it is known, else a tensor."""
    return registry["arange"].call(n) if unknown(n) else np.arange(n)


def multiples(count, size, shape):
    """``count`` multiples of ``size`` from 0, such as where lines start, in a shape: NumPy's where all is known.

    NumPy's by its own functions: a compiler that reads Python (``backends.tracing``) knows those, not an op's kernels.
    """
    if any(unknown(n) for n in (count, size, *shape)):
        return multiply(reshape(counting(count), shape), size)
    return (np.arange(count, dtype=np.int64) * size).reshape(tuple(shape))


def lower(rows, columns, k: int):
    """True where a matrix is on or below its ``k``-th diagonal: NumPy's where its sizes are known, else a tensor."""
    if unknown(rows) or unknown(columns):
        return greater_equal(add(expand_dims(counting(rows), 1), k), counting(columns))
    return _lower(rows, columns, k) if rows * columns <= _SMALL else np.tri(rows, columns, k, dtype=bool)


_SMALL = 1 << 14
"""Elements of a mask that is made once: a compiled program then knows the steps it has already done with it."""


@functools.lru_cache(maxsize=64)
def _lower(rows: int, columns: int, k: int) -> np.ndarray:
    mask = np.tri(rows, columns, k, dtype=bool)
    mask.flags.writeable = False
    return mask
