"""Linear systems with banded, Toeplitz and circulant matrices.

Banded systems are solved by LAPACK on the host, circulant ones by Fourier transforms.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from ... import _scipy, ops
from ...annotations import Axis, Tensor
from ...errors import ArgumentError, ShapeError
from ...extend import derivative
from ...extend import op as make_op
from ...ops import _checks
from ...ops._matrices import epsilon
from .. import fft
from .._define import composed
from .._hosted import register_matrix_kernel
from .._tensors import is_complex, wrong
from ._shared import (
    from_band,
    hermitian_band,
    matrices,
    matrix,
    of_finite,
    of_systems,
    pair,
    right_side,
    squared,
    to_band,
    turned_band,
)
from .matrices import toeplitz_of

__all__ = """
cho_solve_banded cholesky_banded matmul_toeplitz solve_banded solve_circulant solve_toeplitz solveh_banded
""".split()

# Banded matrices ------------------------------------------------------------------------------------------------------


@make_op(name="scipy.linalg.banded")
def _banded(ab: Tensor, b: Tensor, lower: int, upper: int, definite: bool) -> Tensor:
    """Solution of systems with a matrix in banded storage and right-hand sides as columns."""


def _solve_on_host(ab, b, lower, upper, definite):
    if definite:
        return _scipy.linalg.solveh_banded(ab[..., : upper + 1, :], b, check_finite=False)
    return _scipy.linalg.solve_banded((lower, upper), ab, b, check_finite=False)


register_matrix_kernel(_banded, _solve_on_host, like=1)


def _banded_by_matrix(g, ab, y, lower, upper, definite):
    """Return minus the product of the gradient by ``b`` with the adjoint solution, in banded storage."""
    n = ab.shape[-1]
    row, j = np.indices((lower + upper + 1, n))
    i = row - upper + j
    inside = (i >= 0) & (i < n)
    by_b = ops.take(_banded_by_b(g, ab, lower, upper, definite), np.where(inside, i, 0), -2)
    other = ops.expand_dims(ops.conj(y) if is_complex(y) else y, -3)
    return ops.where(inside, -ops.sum(by_b * other, -1), 0.0)


def _banded_by_b(g, ab, lower, upper, definite):
    return _banded(turned_band(ab, lower, upper), g, upper, lower, definite)


derivative(_banded, complex_aware=True, ab=_banded_by_matrix, b=_banded_by_b)


def _widths(l_and_u) -> tuple[int, int]:
    lower, upper = (_checks.integer("linalg", x, "l_and_u") for x in pair(l_and_u, "l_and_u"))
    return int(lower), int(upper)


@of_systems
def solve_banded(l_and_u, ab: Tensor, b: Tensor, overwrite_ab=False, overwrite_b=False, check_finite=True) -> Tensor:
    """Solution of ``a @ x = b`` for a matrix given by its diagonals.

    Args:
        l_and_u: the numbers of diagonals below and above the main one.
        ab: the diagonals as rows: ``a[i, j]`` is ``ab[u + i - j, j]``.

    Raises:
        ArgumentError: a singular matrix.

    Gradient:
        As for :func:`solve`, in the diagonals; it solves another banded system.
    """
    lower, upper = _widths(l_and_u)
    ab, b = matrices(check_finite, 1, ab=ab, b=b)
    matrix(ab, "ab")
    b, vector = right_side(b, ab.shape[-1])
    if min(lower, upper) < 0 or ab.shape[-2] != lower + upper + 1:
        raise wrong("ab", f"have {lower + upper + 1} rows by `l_and_u`", tuple(ab.shape), ShapeError)
    x = _banded(ab, b, lower, upper, False)
    return x[..., 0] if vector else x


@of_systems
def solveh_banded(
    ab: Tensor, b: Tensor, overwrite_ab=False, overwrite_b=False, lower=False, check_finite=True
) -> Tensor:
    """Solution of ``a @ x = b`` for a positive definite matrix given by the diagonals of one triangle.

    Args:
        ab: the diagonals as rows: ``a[i, j]`` is ``ab[u + i - j, j]``, with ``lower`` ``ab[i - j, j]``.

    Raises:
        ArgumentError: a matrix that is not positive definite.

    Gradient:
        As for :func:`solve_banded`, in the diagonals that are read.
    """
    ab, b = matrices(check_finite, 1, ab=ab, b=b)
    matrix(ab, "ab")
    b, vector = right_side(b, ab.shape[-1])
    width = ab.shape[-2] - 1
    x = _banded(hermitian_band(ab, bool(lower)), b, width, width, True)
    return x[..., 0] if vector else x


@of_finite
def cholesky_banded(ab: Tensor, overwrite_ab=False, lower=False, check_finite=True) -> Tensor:
    """Cholesky factor of a positive definite matrix, both in banded storage.

    Args:
        ab: the diagonals of one triangle, see :func:`solveh_banded`.

    Returns:
        The factor's diagonals, of ``ab``'s shape; 0 outside the matrix.

    Raises:
        ArgumentError: a matrix that is not positive definite.

    Gradient:
        As for :func:`cholesky`, in the diagonals that are read.
    """
    ab = matrix(ab, "ab", check_finite)
    width = ab.shape[-2] - 1
    a = from_band(hermitian_band(ab, bool(lower)), width, width)
    return to_band(ops.cholesky(a, not lower), width if lower else 0, 0 if lower else width)


@of_systems
def cho_solve_banded(cb_and_lower, b: Tensor, overwrite_b=False, check_finite=True) -> Tensor:
    """Solution of a positive definite system by the factor from :func:`cholesky_banded`.

    Args:
        cb_and_lower: a pair: the factor's diagonals, and True if it is the lower factor.

    Gradient:
        Through both banded systems.
    """
    cb, lower = pair(cb_and_lower, "cb_and_lower")
    cb, b = matrices(check_finite, 1, cb_and_lower=cb, b=b)
    matrix(cb, "cb_and_lower")
    b, vector = right_side(b, cb.shape[-1])
    width = cb.shape[-2] - 1
    below, above = (width, 0) if lower else (0, width)
    other = turned_band(cb, below, above)
    first, then = (cb, other) if lower else (other, cb)
    x = _banded(then, _banded(first, b, width, 0, False), 0, width, False)
    return x[..., 0] if vector else x


# Toeplitz and circulant matrices --------------------------------------------------------------------------------------


def _column_and_row(c_or_cr):
    if isinstance(c_or_cr, tuple):
        c, r = pair(c_or_cr, "c_or_cr")
    else:
        c, r = c_or_cr, None
    if r is None:
        c = matrices(False, 1, c_or_cr=c)[0]
        return c, (ops.conj(c) if is_complex(c) else c)
    return matrices(False, 1, c_or_cr=c, r=r)


@of_systems
def solve_toeplitz(c_or_cr, b: Tensor, check_finite=True) -> Tensor:
    """Solution of ``a @ x = b`` for a Toeplitz matrix.

    Args:
        c_or_cr: the first column, or a tuple of it and the first row, by default its conjugate.

    Returns:
        A tensor of columns or a vector, like ``b``. It is found by elimination with pivoting, not by Levinson's
        recursion as in SciPy, so it exists for every nonsingular matrix.

    Raises:
        ArgumentError: a singular matrix.

    Gradient:
        As for :func:`solve`, summed over the diagonals.
    """
    c, r = _column_and_row(c_or_cr)
    c, r, b = matrices(check_finite, 1, c_or_cr=c, r=r, b=b)
    b, vector = right_side(b, c.shape[-1])
    x = ops.solve(squared(toeplitz_of(c, r), "c_or_cr"), b)
    return x[..., 0] if vector else x


@composed
def matmul_toeplitz(c_or_cr, x: Tensor, check_finite=False, workers=None) -> Tensor:
    """Product of a Toeplitz matrix with another matrix, by Fourier transforms.

    Args:
        c_or_cr: the first column, or a tuple of it and the first row, by default its conjugate.
        x: a matrix, or one vector.

    Returns:
        A matrix or vector, like ``x``, with as many rows as the first column has elements.

    Raises:
        ShapeError: numbers of rows that do not match.

    Gradient:
        Through the transforms, which are linear.
    """
    c, r = _column_and_row(c_or_cr)
    c, r, x = matrices(check_finite, 1, c_or_cr=c, r=r, x=x)
    x, vector = right_side(x, r.shape[-1], "x")
    rows = c.shape[-1]
    ring = ops.concatenate([c, ops.flip(r[..., 1:], -1)], -1)
    length = int(ring.shape[-1])
    ahead, back = (fft.fft, fft.ifft) if is_complex(x) else (fft.rfft, fft.irfft)
    product = back(ops.expand_dims(ahead(ring), -1) * ahead(x, length, axis=-2), length, axis=-2)
    product = product[..., :rows, :]
    return product[..., 0] if vector else product


@composed
def solve_circulant(
    c: Tensor, b: Tensor, singular: Literal["raise", "lstsq"] = "raise", tol=None, caxis: Axis = -1, baxis: Axis = 0,
    outaxis: Axis = 0,
) -> Tensor:  # fmt: skip
    """Solution of ``circulant(c) @ x = b``, by Fourier transforms.

    Args:
        singular: ``"raise"`` for an error if the matrix is singular (and values are known), or ``"lstsq"`` for the
            least-squares solution of minimal norm.
        tol: eigenvalues up to this size count as 0; by default the rounding error of the largest.
        caxis: the dimension of ``c`` that holds columns.
        baxis: the dimension of ``b`` that holds right-hand sides.
        outaxis: the dimension of the result that holds solutions.

    Returns:
        A tensor; the other dimensions broadcast.

    Raises:
        ShapeError: sizes that do not match.
        ArgumentError: a singular matrix.

    Gradient:
        Through the transforms; by ``c`` only along eigenvalues that are not 0.
    """
    _checks.choice("linalg", singular, ("raise", "lstsq"), "singular")
    c, b = matrices(False, 1, c=c, b=b)
    real = not is_complex(c)
    c, b = ops.moveaxis(c, caxis, -1), ops.moveaxis(b, baxis, -1)
    if c.shape[-1] != b.shape[-1]:
        raise wrong("b", f"have {c.shape[-1]} elements along `baxis`", b.shape[-1], ShapeError)
    transformed = fft.fft(c)
    size = ops.abs(transformed)
    limit = ops.max(size, -1, True) * (epsilon(size) * int(c.shape[-1])) if tol is None else tol
    near = size <= limit
    values = _checks.known(near)
    if singular == "raise" and values is not None and values.any():
        raise ArgumentError("`linalg`: the circulant matrix of `c` is singular.", argument="c", hint="singular='lstsq'")
    quotient = fft.fft(b) / ops.where(near, 1.0, transformed)
    x = fft.ifft(ops.where(near, 0.0, quotient) if singular == "lstsq" else quotient)
    x = ops.real(x) if real else x
    return ops.moveaxis(x, -1, outaxis)
