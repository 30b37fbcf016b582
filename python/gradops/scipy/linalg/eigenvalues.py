"""Eigenvalues and eigenvectors of general, Hermitian, banded and tridiagonal matrices.

Generalised problems with a second matrix are reduced to ordinary ones.
"""

from __future__ import annotations

import numpy as np

from ... import ops
from ...annotations import Integer, Tensor
from ...errors import ArgumentError, ShapeError
from ...ops import _checks
from .._define import family
from .._tensors import is_complex, wrong
from ._shared import (
    FINITE,
    adjoint,
    from_band,
    hermitian,
    hermitian_band,
    matrices,
    matrix,
    of_squares,
    square,
    squared,
    stored,
    to_complex,
)

__all__ = "eig eig_banded eigh eigh_tridiagonal eigvals eigvals_banded eigvalsh eigvalsh_tridiagonal".split()

of_diagonals = family(
    {
        "a_band": "the diagonals, as of :func:`solveh_banded`.",
        "eigvals_only": "return the eigenvalues only.",
        "select": '``"a"`` for all, ``"i"`` by positions, ``"v"`` by values, which must then be known.',
        "select_range": "the first and last position, or the interval of values.",
    },
    returns="Real eigenvalues in ascending order; eigenvectors as for :func:`eigh`.",
    raises=f"ShapeError: diagonals whose sizes do not match.\nArgumentError: a ``select_range`` that is not a pair.\n"
    f"{FINITE}",
    gradient="As for :func:`eigh`, in the diagonals that are read.",
)


def _general(a, b, check_finite):
    """Return both matrices (``b`` may be None), the eigenvalues and eigenvectors of length 1."""
    if b is None:
        a = square(a, "a", check_finite)
        return a, None, *ops.eig(a)
    a, b = matrices(check_finite, a=a, b=b)
    squared(a), squared(b, "b")
    return a, b, *ops.eig(ops.solve(b, a))


def _homogeneous(w, wanted):
    return ops.stack([w, ops.ones_like(w)], -2) if wanted else w


@of_squares
def eig(
    a: Tensor, b: Tensor = None, left=False, right=True, overwrite_a=False, overwrite_b=False, check_finite=True,
    homogeneous_eigvals=False,
):  # fmt: skip
    """Eigenvalues and eigenvectors of general matrices: ``a @ v = b @ v * w``.

    Args:
        b: a nonsingular matrix; by default the identity.
        left: True to also return left eigenvectors, before the right ones: ``a^H @ v = b^H @ v * conj(w)``.
        right: True to return right eigenvectors.
        homogeneous_eigvals: True for eigenvalues as two rows, the second of which is ones.

    Returns:
        Complex eigenvalues in no particular order, and complex eigenvectors as columns of length 1 and arbitrary phase.

    Raises:
        ArgumentError: a singular ``b``.

    Gradient:
        As for ``ops.eig`` (Giles 2008; Boeddeker et al. 2017).
    """
    a, b, w, v = _general(a, b, check_finite)
    found = [_homogeneous(w, homogeneous_eigvals)]
    if left:
        other = adjoint(ops.inv(v))
        if b is not None:
            other = ops.solve(adjoint(to_complex(b)), other)
        found.append(other / ops.cast(ops.norm(other, axis=-2, keepdims=True), ops.dtype(other)))
    if right:
        found.append(v)
    return found[0] if len(found) == 1 else tuple(found)


@of_squares
def eigvals(a: Tensor, b: Tensor = None, overwrite_a=False, check_finite=True, homogeneous_eigvals=False) -> Tensor:
    """Eigenvalues of general matrices.

    Args:
        b: see :func:`eig`.
        homogeneous_eigvals: see :func:`eig`.

    Returns:
        A complex tensor, in no particular order.

    Raises:
        ArgumentError: a singular ``b``.

    Gradient:
        As for :func:`eig`.
    """
    return _homogeneous(_general(a, b, check_finite)[2], homogeneous_eigvals)


def _symmetric(a, b, lower, type, check_finite):
    """Return eigenvalues and eigenvectors of Hermitian matrices, with ``b`` by its Cholesky factor."""
    _checks.choice("linalg", type, (1, 2, 3), "type")
    if b is None:
        return ops.eigh(hermitian(square(a, "a", check_finite), bool(lower)))
    a, b = matrices(check_finite, a=a, b=b)
    a, b = hermitian(squared(a), bool(lower)), hermitian(squared(b, "b"), bool(lower))
    factor = ops.cholesky(b)
    if type == 1:
        half = ops.solve_triangular(factor, a, True)
        inner = adjoint(ops.solve_triangular(factor, adjoint(half), True))
    else:
        inner = ops.matmul(ops.matmul(adjoint(factor), a), factor)
    w, v = ops.eigh((inner + adjoint(inner)) * 0.5)
    return w, (ops.matmul(factor, v) if type == 3 else ops.solve_triangular(adjoint(factor), v, False))


def _chosen(w, by_index, by_value, name: str) -> slice:
    """Return the slice of the eigenvalues to return."""
    if by_index is not None and by_value is not None:
        raise ArgumentError("`linalg`: either `subset_by_index` or `subset_by_value`.", argument="subset_by_index")
    if by_index is not None:
        low, high = (int(_checks.integer("linalg", x, name)) for x in by_index)
        if not 0 <= low <= high < w.shape[-1]:
            raise wrong(name, "be positions of eigenvalues in order")
        return slice(low, high + 1)
    if by_value is None:
        return slice(None)
    first, last = map(float, by_value)
    values = _checks.known(w)
    if values is None or values.ndim != 1 or not first < last:
        raise wrong(name, "be an interval, of one matrix of known values")
    return slice(*(int(np.searchsorted(values, x, "right")) for x in (first, last)))


@of_squares
def eigh(
    a: Tensor, b: Tensor = None, *, lower=True, eigvals_only=False, overwrite_a=False, overwrite_b=False,
    type: Integer = 1, check_finite=True, subset_by_index=None, subset_by_value=None, driver=None,
):  # fmt: skip
    """Eigenvalues and eigenvectors of Hermitian matrices, from one triangle.

    Args:
        b: a positive definite matrix, for ``a @ v = b @ v * w``.
        lower: True to read the lower triangle of both matrices, else the upper one.
        type: 2 for ``a @ b @ v = v * w``, 3 for ``b @ a @ v = v * w``.

    Returns:
        Real eigenvalues in ascending order, and eigenvectors of arbitrary sign or phase as columns. They are
        orthonormal; with ``b``, ``v^H @ b @ v`` (for type 3 ``v^H @ inv(b) @ v``) is the identity.

    Raises:
        ArgumentError: ``b`` is not positive definite.

    Gradient:
        As for ``ops.eigh`` (Giles 2008), in the triangle that is read; see there for repeated eigenvalues.
    """
    w, v = _symmetric(a, b, lower, type, check_finite)
    name = "subset_by_index" if subset_by_index is not None else "subset_by_value"
    part = _chosen(w, subset_by_index, subset_by_value, name)
    return w[..., part] if eigvals_only else (w[..., part], v[..., part])


@of_squares
def eigvalsh(
    a: Tensor, b: Tensor = None, *, lower=True, overwrite_a=False, overwrite_b=False, type: Integer = 1,
    check_finite=True, subset_by_index=None, subset_by_value=None, driver=None,
) -> Tensor:  # fmt: skip
    """Eigenvalues of Hermitian matrices, from one triangle; arguments as for :func:`eigh`.

    Returns:
        A real tensor in ascending order.

    Raises:
        ArgumentError: ``b`` is not positive definite.

    Gradient:
        ``v diag(g) v^H``, in the triangle that is read.
    """
    w = _symmetric(a, b, lower, type, check_finite)[0]
    name = "subset_by_index" if subset_by_index is not None else "subset_by_value"
    return w[..., _chosen(w, subset_by_index, subset_by_value, name)]


def _selected(w, select, select_range) -> slice:
    _checks.choice("linalg", select, ("a", "v", "i", "all", "value", "index", 0, 1, 2), "select")
    if select in ("a", "all", 0):
        return slice(None)
    by_index = select in ("i", "index", 2)
    if not isinstance(select_range, (tuple, list, np.ndarray)) or len(select_range) != 2:
        raise wrong("select_range", "be a pair")
    return _chosen(w, select_range if by_index else None, None if by_index else select_range, "select_range")


def _band_eigh(a_band, lower, check_finite):
    a_band = matrix(a_band, "a_band", check_finite)
    width = a_band.shape[-2] - 1
    return ops.eigh(from_band(hermitian_band(a_band, bool(lower)), width, width))


@of_diagonals
def eig_banded(
    a_band: Tensor, lower=False, eigvals_only=False, overwrite_a_band=False, select="a", select_range=None, max_ev=0,
    check_finite=True,
):  # fmt: skip
    """Eigenvalues and eigenvectors of Hermitian matrices given by the diagonals of one triangle."""
    w, v = _band_eigh(a_band, lower, check_finite)
    part = _selected(w, select, select_range)
    return w[..., part] if eigvals_only else (w[..., part], v[..., part])


@of_diagonals
def eigvals_banded(
    a_band: Tensor, lower=False, overwrite_a_band=False, select="a", select_range=None, check_finite=True
) -> Tensor:
    """Eigenvalues of Hermitian matrices given by the diagonals of one triangle."""
    w = _band_eigh(a_band, lower, check_finite)[0]
    return w[..., _selected(w, select, select_range)]


def _tridiagonal(d, e, check_finite, driver):
    _checks.choice("linalg", driver, ("auto", "stemr", "sterf", "stebz", "stev"), "lapack_driver")
    d, e = matrices(check_finite, 1, d=d, e=e)
    if is_complex(d):
        raise ArgumentError("`linalg`: `d` and `e` must be real.", argument="d")
    n = int(d.shape[-1])
    if e.shape[-1] != n - 1:
        raise wrong("e", "have one element less than `d`", f"{e.shape[-1]} and {n}", ShapeError)
    i, j = np.indices((n, n))
    main = stored(ops.expand_dims(d, -2), 0, i, i == j)
    beside = stored(ops.expand_dims(e, -2), 0, np.minimum(i, j), abs(i - j) == 1) if n > 1 else 0.0
    return ops.eigh(main + beside)


@of_diagonals
def eigh_tridiagonal(
    d: Tensor, e: Tensor, eigvals_only=False, select="a", select_range=None, check_finite=True, tol=0.0,
    lapack_driver="auto",
):  # fmt: skip
    """Eigenvalues and eigenvectors of real symmetric tridiagonal matrices.

    Args:
        d: the main diagonal.
        e: the diagonal next to it.
    """
    w, v = _tridiagonal(d, e, check_finite, lapack_driver)
    part = _selected(w, select, select_range)
    return w[..., part] if eigvals_only else (w[..., part], v[..., part])


@of_diagonals
def eigvalsh_tridiagonal(
    d: Tensor, e: Tensor, select="a", select_range=None, check_finite=True, tol=0.0, lapack_driver="auto"
) -> Tensor:
    """Eigenvalues of real symmetric tridiagonal matrices."""
    w = _tridiagonal(d, e, check_finite, lapack_driver)[0]
    return w[..., _selected(w, select, select_range)]
