"""R's functions of matrices, sparse ones among them, and distances."""

from __future__ import annotations

import numpy as np

from ... import ops
from ...ops import _checks
from ...scipy.linalg import eigh, solve
from ...scipy.sparse import csc_array
from ...scipy.sparse import linalg as sparse_linalg
from ...scipy.spatial.distance import pdist
from .arrays import beside_each_other, flat


def eigen(x, symmetric: bool):
    """Values in decreasing order, of a matrix that is not symmetric by their size, and vectors as columns."""
    if symmetric:
        return [ops.flip(part, -1) for part in eigh(x, check_finite=False)]
    values, vectors = ops.eig(x)
    order = ops.argsort(-ops.abs(ops.stop_gradient(values)))
    parts = [ops.take(values, order, -1), ops.take(vectors, order, -1)]
    known = _checks.known(values)
    return parts if known is None or known.imag.any() else [ops.real(part) for part in parts]


def distances(x, method: str, p: float):
    """The distances of all pairs of rows: R's ``dist()``."""
    if method == "minkowski":
        return pdist(x, method, p=p)
    if method != "canberra":
        return pdist(x, {"maximum": "chebyshev", "manhattan": "cityblock"}.get(method, method))
    (x,) = beside_each_other(x)
    size = ops.abs(ops.stop_gradient(x))
    total = sum(ops.take(size, rows, 0) for rows in np.triu_indices(x.shape[0], 1))
    count = ops.sum(ops.cast(total > 0, ops.dtype(x)), 1)  # terms of 0 / 0 are left out, and the sum made up for them
    return pdist(x, method) * (float(x.shape[1]) / count)


def mahalanobis(x, center, cov, inverted: bool):
    """The squared distances of rows; a ``center`` of False is 0."""
    if center is not False:
        x, center = beside_each_other(x, center)
        x = x - flat(center)
    x, cov = beside_each_other(x, cov)
    cov = ops.reshape(cov, (1, 1)) if len(cov.shape) < 2 else cov
    weighed = ops.matmul(x, cov) if inverted else ops.transpose(solve(cov, ops.transpose(x), check_finite=False))
    return ops.sum(x * weighed, 1)


def coefficients(q, r, y, order):
    """The coefficients of least squares by a decomposition, whose columns are in an ``order``."""
    q, r, y = beside_each_other(q, r, y)
    found = ops.solve_triangular(r, ops.matmul(ops.transpose(q), _columns(y)), lower=False)
    return _as(y, found if order is None else ops.take(found, [int(i) - 1 for i in order], 0))


def fitted(q, y, k: float):
    """The projection of ``y`` on the first columns of ``q``."""
    q, y = beside_each_other(q, y)
    q = q[:, : int(k)]
    return _as(y, ops.matmul(q, ops.matmul(ops.transpose(q), _columns(y))))


def _columns(y):
    return y if len(y.shape) > 1 else ops.reshape(y, (-1, 1))


def _as(y, found):
    return found if len(y.shape) > 1 else ops.reshape(found, (-1,))


def _sparse(values, rows, columns, size):
    places = (np.asarray(x, np.int64).reshape(-1) - 1 for x in (rows, columns))
    return csc_array((values, tuple(places)), shape=(int(size), int(size)))


def sparse_solve(values, rows, columns, size, b):
    """The solution of a square matrix by its elements, at places from 1 on, and a vector or columns."""
    return sparse_linalg.spsolve(_sparse(values, rows, columns, size), b)


def sparse_log_determinant(values, rows, columns, size):
    """The log determinant of a symmetric positive definite matrix."""
    return ops.reshape(sparse_linalg.logdet(_sparse(values, rows, columns, size)), ())
