"""NumPy kernels: linear algebra, with LAPACK through NumPy and SciPy."""

import builtins
import math
from functools import cache

import numpy as np

from ... import _scipy
from .. import _shared
from .base import cast, dtype_name, floats, promoted


def _matrix(function):
    """A kernel of one matrix; half precision is computed in float32."""
    of_any = _shared.full_precision(floats, cast, dtype_name)(function)

    def kernel(x, *options):
        is_usual = x.__class__ is np.ndarray and x.dtype is _FLOAT64  # the common case, tested cheaply
        return function(x, *options) if is_usual else of_any(x, *options)

    return kernel


def _system(function):
    """A kernel of a matrix and a right side; a vector is passed to it as one column."""
    of_any = _shared.system_in_full_precision(floats, promoted, cast, dtype_name)(function)

    def kernel(a, b, *options):
        if (
            a.__class__ is b.__class__ is np.ndarray and a.dtype is b.dtype is _FLOAT64
        ):  # the common case, tested cheaply
            if _shared.is_vector(a, b):
                return function(a, b[..., None], *options)[..., 0]
            return function(a, b, *options)
        return of_any(a, b, *options)

    return kernel


def _adjoint(x):
    turned = np.swapaxes(x, -1, -2)
    return np.conj(turned) if x.dtype.kind == "c" else turned


def _symmetric(x):
    """Make ``x`` exactly symmetric by averaging small asymmetries; raises for large ones."""
    difference = x - (x.T if x.ndim == 2 and x.dtype.kind == "f" else _adjoint(x))
    if not difference.any():
        return x
    if x.size:
        allowed = _shared.ASYMMETRY * np.abs(x).max((-2, -1))
        if (np.abs(difference).max((-2, -1)) > allowed).any():
            raise ValueError(_shared.NOT_SYMMETRIC)
    return x - difference / 2


def _finite(x):
    if not np.isfinite(x).all():
        raise ValueError(_shared.NOT_FINITE)
    return x


_FLOAT64 = np.dtype("float64")
_REAL = frozenset((np.dtype("float32"), np.dtype("float64")))
_MAX_SCIPY_ROWS = 64
"""The number of rows up to which SciPy's LAPACK call, which holds the GIL, is faster than NumPy's."""


@cache
def _lapack(name: str, dtype: np.dtype):
    return getattr(_scipy.linalg.lapack, {"f4": "s", "f8": "d", "c8": "c", "c16": "z"}[dtype.str[1:]] + name)


@_matrix
def cholesky(x, upper=False):
    x = _symmetric(x)
    if x.ndim == 2 and x.dtype in _REAL and x.size:
        y, failed = _lapack("potrf", x.dtype)(x.T, lower=0)  # a row-major matrix is its transpose to LAPACK
        d = y.diagonal()
        if failed or np.isnan(np.dot(d, d)):
            raise ValueError(_shared.NOT_POSITIVE_DEFINITE)
        return np.ascontiguousarray(y) if upper else y.T
    try:
        y = np.linalg.cholesky(x)
    except np.linalg.LinAlgError:
        raise ValueError(_shared.NOT_POSITIVE_DEFINITE) from None
    if np.isnan(np.diagonal(y, axis1=-2, axis2=-1)).any():
        raise ValueError(_shared.NOT_POSITIVE_DEFINITE)
    return np.ascontiguousarray(_adjoint(y)) if upper else y


@_matrix
def slogdet(x):
    return tuple(np.linalg.slogdet(x))


@_matrix
def inv(x):
    if x.ndim == 2 and 0 < len(x) == x.shape[1] <= _MAX_SCIPY_ROWS and x.dtype in _REAL:
        # The LU factor is the one that `det` uses, so that their product, the cofactors, is accurate near singular
        # matrices.
        lu, pivots, failed = _lapack("getrf", x.dtype)(x)
        if failed:
            raise ValueError(_shared.SINGULAR)
        return np.ascontiguousarray(_lapack("getri", x.dtype)(lu, pivots, overwrite_lu=True)[0])
    try:
        return np.linalg.inv(x)
    except np.linalg.LinAlgError:
        raise ValueError(_shared.SINGULAR) from None


@_matrix
def expm(x):
    return _scipy.linalg.expm(x)


@_system
def solve(a, b):
    if a.ndim == b.ndim == 2 and b.size and len(b) == a.shape[0] == a.shape[1] <= _MAX_SCIPY_ROWS and a.dtype in _REAL:
        *_, y, failed = _lapack("gesv", a.dtype)(a, b)
        if failed:
            raise ValueError(_shared.SINGULAR)
        return y
    if b.ndim < a.ndim:
        b = b.reshape((1,) * (a.ndim - b.ndim) + b.shape)  # NumPy 1 would take a matrix for vectors
    try:
        return np.linalg.solve(a, b)
    except np.linalg.LinAlgError:
        raise ValueError(_shared.SINGULAR) from None


@_system
def solve_triangular(a, b, lower=False):
    if a.ndim == b.ndim == 2 and b.size:
        return _triangular(a, b, lower)
    if (np.diagonal(a, axis1=-2, axis2=-1) == 0).any():
        raise ValueError(_shared.SINGULAR)
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    first = np.broadcast_to(a, batch + a.shape[-2:])
    second = np.broadcast_to(b, batch + b.shape[-2:])
    if a.shape[-1] ** 2 < math.prod(batch):
        return _substituted(first, second, lower)
    y = np.empty(second.shape, a.dtype)
    for i in np.ndindex(batch if y.size else (0,)):
        y[i] = _triangular(first[i], second[i], lower)
    return y


def _substituted(a, b, lower):
    """Solve many small triangular systems at once, row by row over the whole batch."""
    a, y = (np.array(np.moveaxis(x, (-2, -1), (0, 1)), order="C") for x in (a, b))
    size = len(y)
    for i in range(size) if lower else range(size - 1, -1, -1):
        for j in range(i) if lower else range(i + 1, size):
            y[i] -= a[i, j] * y[j]
        y[i] /= a[i, i]
    return np.ascontiguousarray(np.moveaxis(y, (0, 1), (-2, -1)))


def _triangular(a, b, lower):
    """Solve one system with LAPACK; a row-major matrix is passed as its transpose, which avoids a copy."""
    solve = _lapack("trtrs", a.dtype)
    y, failed = solve(a, b, lower=lower) if a.flags.f_contiguous else solve(a.T, b, lower=not lower, trans=1)
    if failed:
        raise ValueError(_shared.SINGULAR)
    return y


@_matrix
def eig(x):
    w, v = np.linalg.eig(_finite(x))
    kind = np.result_type(x.dtype, np.complex64)
    return w.astype(kind, copy=False), v.astype(kind, copy=False)


@_matrix
def eigh(x):
    return tuple(np.linalg.eigh(_symmetric(_finite(x))))


@_matrix
def lu_factor(x):
    if x.ndim == 2:
        return _lu(x)
    batch, (rows, columns) = x.shape[:-2], x.shape[-2:]
    y, pivots = np.empty_like(x, order="C"), np.empty((*batch, builtins.min(rows, columns)), np.int64)
    for i in np.ndindex(batch):
        y[i], pivots[i] = _lu(x[i])
    return y, pivots


def _lu(x):
    if not x.size:
        return x.copy(), np.empty(builtins.min(x.shape), np.int64)
    y, pivots, _ = _lapack("getrf", x.dtype)(x)
    return y, pivots.astype(np.int64)


@_matrix
def svd(x, full_matrices=True, compute_uv=True):
    y = np.linalg.svd(_finite(x), full_matrices, compute_uv)
    return tuple(y) if compute_uv else y
