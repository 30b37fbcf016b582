"""Decompositions, singular values and determinants.

Eigenvalues are in ``eigenvalues.py``, solutions by factors in ``systems.py``.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from ... import _scipy, ops
from ...annotations import Tensor
from ...errors import ArgumentError, ShapeError
from ...extend import derivative
from ...extend import op as make_op
from ...ops import _checks
from .._define import composed
from .._tensors import is_complex, wrong
from ._shared import (
    adjoint,
    hermitian,
    matrices,
    matrix,
    of_finite,
    of_matrices,
    of_squares,
    right_side,
    square,
    turned,
)
from .equations import sylvester
from .systems import exchanged, order_of

__all__ = """
cho_factor cholesky det lu lu_factor orthogonal_procrustes polar qr qr_multiply rq subspace_angles svd svdvals
""".split()


@of_squares
def det(a: Tensor, overwrite_a=False, check_finite=True) -> Tensor:
    """Determinant of square matrices.

    Returns:
        A tensor of ``a``'s shape without the last two dimensions.

    Gradient:
        The cofactors (Jacobi's formula), also for singular matrices.
    """
    return ops.det(square(a, "a", check_finite))


# Triangular factors ---------------------------------------------------------------------------------------------------


@of_squares
def cholesky(a: Tensor, lower=False, overwrite_a=False, check_finite=True) -> Tensor:
    """Cholesky factor of positive definite matrices: ``a = U^H @ U``, or with ``lower`` ``a = L @ L^H``.

    Args:
        lower: True to return ``L`` from ``a``'s lower triangle, else ``U`` from the upper one. The other is not read.

    Returns:
        A tensor of ``a``'s shape, 0 in the other triangle.

    Raises:
        ArgumentError: matrices that are not positive definite (where values are known).

    Gradient:
        As for ``ops.cholesky`` (Murray 2016), in the triangle that is read.
    """
    return ops.cholesky(hermitian(square(a, "a", check_finite), bool(lower)), not lower)


@of_squares
def cho_factor(a: Tensor, lower=False, overwrite_a=False, check_finite=True) -> tuple:
    """Cholesky factor in the form that :func:`cho_solve` takes.

    Returns:
        A pair: the factor, which is 0 in the other triangle, and ``lower``.

    Raises:
        ArgumentError: matrices that are not positive definite.

    Gradient:
        As for :func:`cholesky`.
    """
    return ops.cholesky(hermitian(square(a, "a", check_finite), bool(lower)), not lower), lower


@of_matrices
def lu_factor(a: Tensor, overwrite_a=False, check_finite=True) -> tuple:
    """LU decomposition with partial pivoting, in the form that :func:`lu_solve` takes.

    Returns:
        A pair: one tensor of ``a``'s shape with ``L`` below the diagonal (its own diagonal is 1) and ``U`` on and above
        it; and int64 positions of the row that was exchanged with row i.

    Gradient:
        De Hoog et al. 2011.
    """
    return ops.lu_factor(matrix(a, "a", check_finite))


@of_matrices
def lu(a: Tensor, permute_l=False, overwrite_a=False, check_finite=True, p_indices=False) -> tuple:
    """LU decomposition with partial pivoting: ``a = P @ L @ U``.

    Args:
        permute_l: True to return ``P @ L`` and ``U``.
        p_indices: True to return, in place of ``P``, int64 positions ``p`` with ``a = (L @ U)[p]``.

    Returns:
        ``P``, ``L`` with ones on its diagonal, and ``U``; with ``permute_l`` a pair.

    Gradient:
        As for :func:`lu_factor`; ``P`` is constant.
    """
    a = matrix(a, "a", check_finite)
    rows, columns = map(int, a.shape[-2:])
    rank = min(rows, columns)
    factors, pivots = ops.lu_factor(a)
    lower = ops.where(np.eye(rows, rank, dtype=bool), 1.0, ops.tril(factors[..., :rank], -1))
    upper = ops.triu(factors[..., :rank, :])
    if p_indices and not permute_l:
        return ops.argsort(order_of(pivots, rows), -1), lower, upper
    p = turned(exchanged(pivots, rows, a))
    return (ops.matmul(p, lower), upper) if permute_l else (p, lower, upper)


def _orthogonal(a, mode: str, place=None):
    """Return the QR factors for SciPy's mode, with columns in the order ``place``."""
    if place is not None:
        a = ops.take(a, place, -1)
    return ops.qr(a, "reduced" if mode == "economic" else "complete")


def _pivots(a) -> np.ndarray:
    """Return the column order of QR with pivoting: each column has the largest remainder after projection."""
    values = _checks.known(a)
    if values is None or values.ndim != 2:
        raise ArgumentError("`linalg`: `pivoting` needs one matrix whose values are known.", argument="pivoting")
    return _scipy.linalg.qr(values, mode="r", pivoting=True, check_finite=False)[1]


@of_matrices
def qr(
    a: Tensor, overwrite_a=False, lwork=None, mode: Literal["full", "r", "economic"] = "full", pivoting=False,
    check_finite=True,
) -> tuple:  # fmt: skip
    """QR decomposition: ``a = q @ r``, or with ``pivoting`` ``a[:, p] = q @ r``.

    Args:
        mode: ``"full"`` for factors of shapes (m, m) and (m, n), ``"economic"`` for (m, k) and (k, n) with
            k = min(m, n), ``"r"`` for ``r`` only.
        pivoting: True to order the columns so that ``r``'s diagonal decreases; needs known values.

    Returns:
        The factors, then with ``pivoting`` the order ``p``.

    Raises:
        ArgumentError: an unknown ``mode``; ``"raw"`` is not supported.

    Gradient:
        Walter & Lehmann 2010. It is valid for functions that depend on ``q``'s extra columns only through their span.
    """
    _checks.choice("linalg", mode, ("full", "r", "economic"), "mode")
    a = matrix(a, "a", check_finite)
    place = _pivots(a) if pivoting else None
    q, r = _orthogonal(a, mode, place)
    factors = (r,) if mode == "r" else (q, r)
    return factors if place is None else (*factors, place)


@composed
def qr_multiply(
    a: Tensor, c: Tensor, mode: Literal["left", "right"] = "right", pivoting=False, conjugate=False, overwrite_a=False,
    overwrite_c=False,
) -> tuple:  # fmt: skip
    """Product of a matrix with the orthonormal factor ``q`` of another, and the triangular factor ``r``.

    Args:
        c: a matrix or vector.
        mode: ``"right"`` for ``c @ q``, ``"left"`` for ``q @ c``.
        pivoting: see :func:`qr`.
        conjugate: True to use ``q``'s complex conjugate.

    Returns:
        The product, ``r``, and with ``pivoting`` the order of columns.

    Raises:
        ShapeError: sizes that do not match.
        ArgumentError: an unknown ``mode``.

    Gradient:
        As for :func:`qr`.
    """
    _checks.choice("linalg", mode, ("left", "right"), "mode")
    a, c = matrices(False, 1, a=a, c=c)
    matrix(a)
    place = _pivots(a) if pivoting else None
    q, r = _orthogonal(a, "economic", place)
    q = ops.conj(q) if conjugate and is_complex(q) else q
    if mode == "left":
        if len(c.shape) > 1 and c.shape[-2] == a.shape[-2] != q.shape[-1]:
            q = _orthogonal(a, "full", place)[0]
        c, vector = right_side(c, q.shape[-1], "c")
        product = ops.matmul(q, c)
        product = product[..., 0] if vector else product
    else:
        product = ops.matmul(c, q)
    return (product, r) if place is None else (product, r, place)


@of_matrices
def rq(
    a: Tensor, overwrite_a=False, lwork=None, mode: Literal["full", "r", "economic"] = "full", check_finite=True
) -> tuple:
    """RQ decomposition: ``a = r @ q`` with an upper triangular ``r`` and an orthonormal ``q``.

    Args:
        mode: see :func:`qr`.

    Returns:
        The pair of ``r`` and ``q``, or ``r`` only; the signs are those of :func:`qr`.

    Raises:
        ArgumentError: an unknown ``mode``.

    Gradient:
        As for :func:`qr`.
    """
    _checks.choice("linalg", mode, ("full", "r", "economic"), "mode")
    a = matrix(a, "a", check_finite)
    q, r = _orthogonal(adjoint(ops.flip(a, -2)), mode)
    r = ops.flip(ops.flip(adjoint(r), -1), -2)
    return r if mode == "r" else (r, ops.flip(adjoint(q), -2))


# Singular values ------------------------------------------------------------------------------------------------------


@of_matrices
def svd(
    a: Tensor, full_matrices=True, compute_uv=True, overwrite_a=False, check_finite=True,
    lapack_driver: Literal["gesdd", "gesvd"] = "gesdd",
):  # fmt: skip
    """Singular value decomposition: ``a = u @ diag(s) @ vh``.

    Args:
        full_matrices: True for square ``u`` and ``vh``.
        compute_uv: False for the singular values only.

    Returns:
        ``u``, the singular values ``s`` in descending order, and ``vh``; or ``s``. The sign or phase of vectors is
        arbitrary.

    Gradient:
        As for ``ops.svd`` (Wan & Zhang 2019; Townsend 2016).
    """
    _checks.choice("linalg", lapack_driver, ("gesdd", "gesvd"), "lapack_driver")
    a = matrix(a, "a", check_finite)
    return ops.svd(a, bool(full_matrices), bool(compute_uv))


@of_matrices
def svdvals(a: Tensor, overwrite_a=False, check_finite=True) -> Tensor:
    """Singular values in descending order.

    Returns:
        A real tensor.

    Gradient:
        ``u diag(g) vh``.
    """
    return ops.svd(matrix(a, "a", check_finite), False, False)


@make_op(name="scipy.linalg.unitary_factor")
def unitary_factor(x: Tensor) -> Tensor:
    """Nearest matrix with orthonormal columns, for matrices with at most as many columns as rows."""
    u, _, vh = ops.svd(x, False)
    return ops.matmul(u, vh)


def _unitary_factor(g, x, y):
    """Return the cotangent by a Sylvester equation for the skew part, solvable also if singular values are equal."""
    yh = adjoint(y)
    p = ops.matmul(yh, x)
    p = (p + adjoint(p)) * 0.5
    inner = ops.matmul(yh, g)
    gradient = ops.matmul(y, sylvester(p, p, inner - adjoint(inner)))
    if x.shape[-1] == x.shape[-2]:
        return gradient
    return gradient + adjoint(ops.solve(p, adjoint(g - ops.matmul(y, inner))))


derivative(unitary_factor, complex_aware=True, x=_unitary_factor)


@composed
def polar(a: Tensor, side: Literal["left", "right"] = "right") -> tuple:
    """Polar decomposition: ``a = u @ p``, or with ``"left"`` ``a = p @ u``.

    Returns:
        ``u``, of ``a``'s shape with orthonormal columns or rows, and ``p``, Hermitian and positive semidefinite.

    Raises:
        ShapeError: fewer than two dimensions.
        ArgumentError: an unknown ``side``.

    Gradient:
        By a Sylvester equation with ``p``. It exists if singular values are equal, but not if one is 0.
    """
    _checks.choice("linalg", side, ("left", "right"), "side")
    a = matrix(a)
    wide = a.shape[-1] > a.shape[-2]
    u = adjoint(unitary_factor(adjoint(a))) if wide else unitary_factor(a)
    p = ops.matmul(adjoint(u), a) if side == "right" else ops.matmul(a, adjoint(u))
    return u, (p + adjoint(p)) * 0.5


@of_finite
def orthogonal_procrustes(A: Tensor, B: Tensor, check_finite=True) -> tuple:
    """Orthogonal matrix ``R`` that minimizes the norm of ``A @ R - B``.

    Returns:
        ``R``, and the sum of the singular values of ``A^H @ B``.

    Raises:
        ShapeError: matrices of different shapes.

    Gradient:
        As for :func:`polar`.
    """
    A, B = matrices(check_finite, A=A, B=B)
    if tuple(A.shape) != tuple(B.shape):
        raise wrong("B", "have `A`'s shape", f"{tuple(A.shape)} and {tuple(B.shape)}", ShapeError)
    m = ops.matmul(adjoint(A), B)
    r = unitary_factor(m)
    scale = ops.sum(ops.conj(r) * m if is_complex(m) else r * m, (-2, -1))
    return r, (ops.real(scale) if is_complex(m) else scale)


def _basis(a):
    """Return an orthonormal basis of the columns' span; its dimension is the rank if values are known."""
    u, s, _ = ops.svd(a, False)
    values = _checks.known(s)
    if values is not None and values.ndim == 1 and values.size:
        count = int((values > values.max() * np.finfo(values.dtype).eps * max(map(int, a.shape))).sum())
        return u[..., :count]
    return u


@of_finite
def subspace_angles(A: Tensor, B: Tensor) -> Tensor:
    """Angles between two subspaces in descending order.

    Args:
        A: columns that span one subspace.
        B: columns that span the other.

    Returns:
        A real tensor.

    Raises:
        ShapeError: columns of different lengths.

    Gradient:
        Through singular values of the bases' products; undefined at angles of 0.
    """
    A, B = matrices(True, A=A, B=B)
    if A.shape[-2] != B.shape[-2]:
        raise wrong("B", "have as many rows as `A`", f"{tuple(A.shape)} and {tuple(B.shape)}", ShapeError)
    first, second = _basis(A), _basis(B)
    inner = ops.matmul(adjoint(first), second)
    cosines = ops.svd(inner, False, False)
    if first.shape[-1] >= second.shape[-1]:
        rest = second - ops.matmul(first, inner)
    else:
        rest = first - ops.matmul(second, adjoint(inner))
    sines = ops.svd(rest, False, False)
    cosines = ops.flip(cosines, -1)
    small = cosines * cosines >= 0.5
    by_sine = ops.arcsin(ops.where(small, ops.clip(sines, -1.0, 1.0), 0.5))
    return ops.where(small, by_sine, ops.arccos(ops.where(small, 0.5, ops.clip(cosines, -1.0, 1.0))))
