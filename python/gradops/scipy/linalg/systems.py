"""Systems of linear equations, inverses, pseudo-inverses, least squares and norms.

Systems with special structure (banded, Toeplitz, circulant) are in ``structured.py``.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from ... import ops
from ...annotations import Axes, Tensor
from ...errors import ArgumentError
from ...extend import derivative
from ...extend import op as make_op
from ...ops import _checks
from ...ops._matrices import from_diagonal
from .._tensors import is_complex
from ._shared import (
    adjoint,
    hermitian,
    matrices,
    matrix,
    of_finite,
    of_matrices,
    of_squares,
    of_systems,
    pair,
    real_of,
    right_side,
    square,
    squared,
    turned,
)

__all__ = "cho_solve inv lstsq lu_solve norm pinv pinvh solve solve_triangular".split()

_ASSUMED = {
    None: "general",
    "gen": "general",
    "sym": "symmetric",
    "her": "hermitian",
    "pos": "positive definite",
}
_KINDS = (
    "general",
    "banded",
    "diagonal",
    "tridiagonal",
    "upper triangular",
    "lower triangular",
    "symmetric",
    "hermitian",
    "positive definite",
)


def _assumed(a, assume_a, lower):
    """Return the matrix completed as ``assume_a`` says, and its kind."""
    kind = _ASSUMED.get(assume_a, assume_a) if assume_a is None or isinstance(assume_a, str) else assume_a
    if not isinstance(kind, str) or kind not in _KINDS:
        _checks.choice("linalg", assume_a, (*_KINDS, *_ASSUMED), "assume_a")
    if kind == "diagonal":
        a = from_diagonal(ops.diagonal(a, 0, -2, -1))
    elif kind == "tridiagonal":
        a = ops.triu(ops.tril(a, 1), -1)
    elif kind == "upper triangular":
        a = ops.triu(a)
    elif kind == "lower triangular":
        a = ops.tril(a)
    elif kind == "symmetric":
        a = hermitian(a, bool(lower), symmetric=True)
    elif kind in ("hermitian", "positive definite"):
        a = hermitian(a, bool(lower))
    return a, kind


@of_squares
def inv(a: Tensor, overwrite_a=False, check_finite=True, *, assume_a=None, lower=False) -> Tensor:
    """Inverse of square matrices.

    Args:
        assume_a: the structure of the matrices, see :func:`solve`.
        lower: see :func:`solve`.

    Raises:
        ArgumentError: singular matrices.

    Gradient:
        ``-y^H g y^H``, in the part of ``a`` that is read.
    """
    return ops.inv(_assumed(square(a, "a", check_finite), assume_a, lower)[0])


@of_systems
def solve(
    a: Tensor, b: Tensor, lower=False, overwrite_a=False, overwrite_b=False, check_finite=True, assume_a=None,
    transposed=False,
) -> Tensor:  # fmt: skip
    """Solution ``x`` of ``a @ x = b``.

    Args:
        lower: True to read the lower triangle of symmetric, Hermitian and positive definite matrices, else the upper
            one; the other triangle is its reflection.
        assume_a: ``"general"``, ``"symmetric"``, ``"hermitian"``, ``"positive definite"``, ``"upper triangular"``,
            ``"lower triangular"``, ``"diagonal"``, ``"tridiagonal"``, ``"banded"``; or ``"gen"``, ``"sym"``,
            ``"her"``, ``"pos"``.
        transposed: True to solve ``a.T @ x = b``.

    Raises:
        ShapeError: matrices that are not square; numbers of rows that do not match.
        ArgumentError: singular matrices; matrices assumed but not found to be positive definite.

    Gradient:
        For ``b`` ``a^-H g``; for the part of ``a`` that is read minus that times ``x^H`` (Giles 2008).
    """
    a, b = _system(a, b, check_finite)
    b, vector = right_side(b, a.shape[-1])
    a, kind = _assumed(a, assume_a, lower)
    if kind == "positive definite":
        factor = ops.cholesky(a)
        x = _cholesky_solve(ops.conj(factor) if transposed and is_complex(a) else factor, b, True)
    else:
        x = ops.solve(turned(a) if transposed else a, b)
    return x[..., 0] if vector else x


def _system(a, b, check_finite: bool):
    a, b = matrices(check_finite, 1, a=a, b=b)
    return squared(matrix(a)), b


def _solved(a, b, lower: bool, trans=0, unit_diagonal=False):
    """Return the solution of a triangular system with right-hand sides as columns."""
    if unit_diagonal:
        a = ops.where(np.eye(a.shape[-1], dtype=bool), 1.0, a)
    if trans in (0, "N"):
        return ops.solve_triangular(a, b, lower)
    return ops.solve_triangular(adjoint(a) if trans in (2, "C") else turned(a), b, not lower)


def _cholesky_solve(factor, b, lower: bool):
    first, then = (factor, adjoint(factor)) if lower else (adjoint(factor), factor)
    return ops.solve_triangular(then, ops.solve_triangular(first, b, True), False)


@of_systems
def solve_triangular(
    a: Tensor, b: Tensor, trans=0, lower=False, unit_diagonal=False, overwrite_b=False, check_finite=True
) -> Tensor:
    """Solution ``x`` of ``a @ x = b`` for triangular ``a``; the other triangle is not read.

    Args:
        trans: 1 or ``"T"`` for ``a.T @ x = b``, 2 or ``"C"`` for the conjugate transpose.
        unit_diagonal: True to assume ones on the diagonal, which is then not read.

    Raises:
        ShapeError: matrices that are not square; numbers of rows that do not match.
        ArgumentError: a 0 on the diagonal; an unknown ``trans``.

    Gradient:
        As for :func:`solve`, in ``a``'s triangle.
    """
    _checks.choice("linalg", trans, (0, 1, 2, "N", "T", "C"), "trans")
    a, b = _system(a, b, check_finite)
    b, vector = right_side(b, a.shape[-1])
    x = _solved(a, b, bool(lower), trans, unit_diagonal)
    return x[..., 0] if vector else x


@of_systems
def cho_solve(c_and_lower, b: Tensor, overwrite_b=False, check_finite=True) -> Tensor:
    """Solution of a positive definite system by its Cholesky factor.

    Args:
        c_and_lower: the result of :func:`cho_factor`: the factor, and True if it is the lower one.

    Gradient:
        Through both triangular systems.
    """
    c, lower = pair(c_and_lower, "c_and_lower")
    c, b = _system(c, b, check_finite)
    b, vector = right_side(b, c.shape[-1])
    x = _cholesky_solve(c, b, bool(lower))
    return x[..., 0] if vector else x


def order_of(pivots, rows: int):
    """Return the order of rows after successive exchanges of rows i and ``pivots[i]``."""
    place = np.arange(rows)
    order = ops.add(ops.zeros_like(pivots[..., :1]), place)
    for k in range(pivots.shape[-1]):
        found, here = pivots[..., k : k + 1], order[..., k : k + 1]
        there = ops.sum(ops.where(ops.equal(place, found), order, 0), -1, True)
        order = ops.where(place == k, there, ops.where(ops.equal(place, found), here, order))
    return order


def exchanged(pivots, rows: int, like):
    """Return the permutation matrix of :func:`order_of`, of ``like``'s dtype."""
    return ops.cast(ops.equal(ops.expand_dims(order_of(pivots, rows), -1), np.arange(rows)), ops.dtype(like))


@of_systems
def lu_solve(lu_and_piv, b: Tensor, trans=0, overwrite_b=False, check_finite=True) -> Tensor:
    """Solution of ``a @ x = b`` by the result of :func:`lu_factor` for ``a``.

    Args:
        lu_and_piv: the factors and the row exchanges.
        trans: 1 for ``a.T @ x = b``, 2 for the conjugate transpose.

    Raises:
        ArgumentError: an unknown ``trans``.

    Gradient:
        Through both triangular systems.
    """
    lu, pivots = pair(lu_and_piv, "lu_and_piv")
    _checks.choice("linalg", trans, (0, 1, 2), "trans")
    lu, b = _system(lu, b, check_finite)
    b, vector = right_side(b, lu.shape[-1])
    pivots = pivots if ops.is_tensor(pivots) else ops.convert_to_tensor(pivots)
    order = exchanged(pivots, lu.shape[-1], lu)
    if trans == 0:
        x = _solved(lu, _solved(lu, ops.matmul(order, b), True, 0, True), False)
    else:
        x = ops.matmul(turned(order), _solved(lu, _solved(lu, b, False, trans), True, trans, True))
    return x[..., 0] if vector else x


# Pseudo-inverses ------------------------------------------------------------------------------------------------------


@make_op(name="scipy.linalg.pseudo_inverse")
def _pseudo_inverse(x: Tensor, atol: float, rtol: float) -> Tensor:
    """Pseudo-inverse; singular values up to ``atol + rtol * largest`` count as 0."""
    u, s, vh = ops.svd(x, False)
    if 0 in tuple(s.shape):
        return ops.matmul(adjoint(vh), adjoint(u))
    large = s > atol + rtol * ops.max(s, -1, True)
    inverse = ops.where(large, 1.0 / ops.where(large, s, 1.0), 0.0)
    return ops.matmul(adjoint(vh) * ops.cast(ops.expand_dims(inverse, -2), ops.dtype(x)), adjoint(u))


def _pseudo_inverse_rule(g, x, y):
    """Return the cotangent of the pseudo-inverse (Golub & Pereyra 1973)."""
    yh, gh = adjoint(y), adjoint(g)
    right, left = ops.matmul(ops.matmul(gh, y), yh), ops.matmul(ops.matmul(yh, y), gh)
    inner = right - ops.matmul(x, ops.matmul(y, right)) + left - ops.matmul(ops.matmul(left, y), x)
    return inner - ops.matmul(ops.matmul(yh, g), yh)


derivative(_pseudo_inverse, complex_aware=True, x=_pseudo_inverse_rule)

_EPSILON = {"float64": 2.0**-52}


def _tolerances(x, atol, rtol) -> tuple[float, float]:
    share = _EPSILON.get(real_of(x), 2.0**-23) * max(map(int, x.shape[-2:]))
    atol, rtol = (0.0 if atol is None else float(atol)), (share if rtol is None else float(rtol))
    if atol < 0 or rtol < 0:
        raise ArgumentError(
            "`linalg`: `atol` and `rtol` must not be negative.", argument="atol" if atol < 0 else "rtol"
        )
    return atol, rtol


def _rank(x, atol: float, rtol: float):
    s = ops.svd(x, False, False)
    if 0 in tuple(s.shape):
        return ops.sum(ops.cast(s > 0, "int64"), -1)
    return ops.sum(ops.cast(s > atol + rtol * ops.max(s, -1, True), "int64"), -1)


@of_matrices
def pinv(a: Tensor, *, atol=None, rtol=None, return_rank=False, check_finite=True):
    """Moore-Penrose pseudo-inverse of matrices.

    Args:
        atol: singular values up to ``atol + rtol * largest`` count as 0; 0 by default.
        rtol: the relative tolerance, by default the dtype's precision times the larger size.
        return_rank: True to also return the number of singular values that are not 0.

    Returns:
        A tensor of the transposed shape, or a pair of it and an int64 tensor.

    Raises:
        ArgumentError: a negative tolerance.

    Gradient:
        At constant rank (Golub & Pereyra 1973).
    """
    a = matrix(a, "a", check_finite)
    cut = _tolerances(a, atol, rtol)
    inverse = _pseudo_inverse(a, *cut)
    return (inverse, _rank(a, *cut)) if return_rank else inverse


@of_squares
def pinvh(a: Tensor, atol=None, rtol=None, lower=True, return_rank=False, check_finite=True):
    """Pseudo-inverse of Hermitian matrices, from one triangle.

    Args:
        atol: see :func:`pinv`.
        rtol: see :func:`pinv`.
        return_rank: True to also return the number of eigenvalues that are not 0.

    Returns:
        A tensor of ``a``'s shape, or a pair of it and an int64 tensor.

    Raises:
        ArgumentError: a negative tolerance.

    Gradient:
        At constant rank, in the triangle that is read.
    """
    a = hermitian(square(a, "a", check_finite), bool(lower))
    cut = _tolerances(a, atol, rtol)
    inverse = _pseudo_inverse(a, *cut)
    return (inverse, _rank(a, *cut)) if return_rank else inverse


@of_systems
def lstsq(
    a: Tensor, b: Tensor, cond=None, overwrite_a=False, overwrite_b=False, check_finite=True,
    lapack_driver: Literal["gelsd", "gelsy", "gelss"] | None = None,
) -> tuple:  # fmt: skip
    """Least-squares solution: the ``x`` of minimal norm that minimizes the norm of ``a @ x - b``.

    Args:
        cond: singular values up to this share of the largest count as 0; by default the dtype's precision.
        lapack_driver: with ``"gelsy"`` no singular values are returned.

    Returns:
        ``x``; the sum of squares of ``b - a @ x`` for each right-hand side, empty if ``a`` has at most as many rows as
        columns or (if values are known) dependent columns; the rank; the singular values.

    Gradient:
        Through the pseudo-inverse, at constant rank (Golub & Pereyra 1973).
    """
    _checks.choice("linalg", lapack_driver, (None, "gelsd", "gelsy", "gelss"), "lapack_driver")
    a, b = matrices(check_finite, 1, a=a, b=b)
    matrix(a)
    b, vector = right_side(b, a.shape[-2])
    rtol = _EPSILON.get(real_of(a), 2.0**-23) if cond is None else float(cond)
    x = ops.matmul(_pseudo_inverse(a, 0.0, rtol), b)
    rank = _rank(a, 0.0, rtol)
    found = _checks.known(rank)
    rows, columns = a.shape[-2:]
    rest = b - ops.matmul(a, x)
    rest = ops.real(rest) * ops.real(rest) + ops.imag(rest) * ops.imag(rest) if is_complex(rest) else rest * rest
    residues = ops.sum(rest, -2)
    if rows <= columns or found is not None and (found < columns).any():
        residues = residues[..., :0]
    elif vector:
        residues = residues[..., 0]
    s = None if lapack_driver == "gelsy" else ops.svd(a, False, False)
    return (x[..., 0] if vector else x), residues, rank, s


@of_finite
def norm(a: Tensor, ord=None, axis: Axes = None, keepdims=False, check_finite=True) -> Tensor:
    """Norm of vectors or matrices.

    Args:
        ord: for vectors any number, for matrices 1, -1, 2, -2, ``inf``, ``-inf``, ``"fro"`` or ``"nuc"``.
        axis: one dimension that holds vectors, or two that hold matrices.

    Returns:
        A real tensor without the dimensions of the vectors or matrices.

    Raises:
        AxisError: an axis out of range or named twice.
        ArgumentError: an ``ord`` that is not defined for vectors or for matrices.

    Gradient:
        As for ``ops.norm``: 0 where the norm is 0; ties share equally.
    """
    return ops.norm(matrix(a, "a", check_finite, 0), ord, axis, bool(keepdims))
