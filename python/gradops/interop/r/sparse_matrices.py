"""R's sparse matrices with values that are tensors: what is more than their products."""

from __future__ import annotations

import numpy as np

from ... import ops
from ...scipy import sparse


def _matrix(values, rows, columns, size):
    places = (np.asarray(x, np.int64).reshape(-1) - 1 for x in (rows, columns))
    return sparse.csc_array((values, tuple(places)), shape=(int(size), int(size)))


def solve(values, rows, columns, size, b):
    """The solution of a square matrix by its elements, at places from 1 on, and a vector or columns."""
    return sparse.linalg.spsolve(_matrix(values, rows, columns, size), b)


def log_determinant(values, rows, columns, size):
    """The log determinant of a symmetric positive definite matrix."""
    return ops.reshape(sparse.linalg.logdet(_matrix(values, rows, columns, size)), ())
