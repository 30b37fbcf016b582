"""``scipy.sparse.linalg``: sparse linear systems, log determinants and inverses on the pattern.

The gradient of a solution is one more solve with the same factor. Symmetric positive definite matrices use a Cholesky
factor whose ordering and fronts are found once per pattern (see ``logdet``), others use SuperLU.

Examples:
    The gradient of the log density of a Gaussian Markov random field with a sparse precision matrix:

    >>> import numpy as np
    >>> import gradops
    >>> from gradops.scipy import sparse
    >>> lattice = sparse.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(50, 50))
    >>> u = np.sin(np.arange(50.0))
    >>> def log_density(theta):
    ...     Q = gradops.ops.exp(theta) * (lattice + 0.1 * sparse.eye_array(50))
    ...     return 0.5 * sparse.linalg.logdet(Q) - 0.5 * u @ (Q @ u)
    >>> print(gradops.grad(log_density)(0.3).round(4))
    7.5984

See Also:
    :mod:`gradops.scipy.sparse`, :mod:`gradops.scipy.linalg`.
"""

from __future__ import annotations

import numpy as np

from ... import ops
from ...backends._shared import weight
from ...errors import ArgumentError, ShapeError
from ...ops import _checks
from ...ops.reductions import real_components, root, squared
from .._define import composed, family
from .._names import namespace
from .._tensors import is_complex, promoted
from . import _ops, eigenvalues, iterations
from ._reading import dense
from .construction import eye_array, tril, triu
from .eigenvalues import *  # noqa: F403
from .iterations import *  # noqa: F403
from .matrices import as_sparse, issparse, power_of, square, symmetric_mean

__all__ = [
    "SuperLU",
    "expm_multiply",
    "factorized",
    "is_sptriangular",
    "logdet",
    "matrix_power",
    "norm",
    "selected_inverse",
    "spbandwidth",
    "splu",
    "spsolve",
    "spsolve_triangular",
    *eigenvalues.__all__,
    *iterations.__all__,
]

SQUARE = "ShapeError: a matrix that is not square."
factor = family(raises=f"{SQUARE}\nArgumentError: an exactly singular matrix.")
symmetric = family(raises=f"{SQUARE}\nArgumentError: a matrix that is not symmetric, or is complex.")
of_pattern = family(
    raises="ArgumentTypeError: the argument is not a sparse matrix.", gradient="None: the pattern is constant."
)


def _solved(A, b, name: str = "b", transposed: bool = False):
    """Return the solution for a vector or columns."""
    if issparse(b):
        raise ArgumentError(
            f"`sparse.linalg`: `{name}` is sparse, the solution need not be.", argument=name, hint=f"`{name}.toarray()`"
        )
    b = dense(b, name)
    rank = len(getattr(b, "shape", ()))
    if rank not in (1, 2) or b.shape[0] != A.shape[0]:
        raise ShapeError(
            f"`sparse.linalg`: `{name}` must be a vector or matrix of {A.shape[0]} rows; got the shape "
            f"{tuple(getattr(b, 'shape', ()))}.",
            argument=name,
        )
    values, b = promoted(A.values, b, floating=True)
    x = _ops.solution(ops.expand_dims(values, 1), b if rank == 2 else ops.expand_dims(b, 1), A.pattern, transposed)
    return x if rank == 2 else x[:, 0]


@composed
def spsolve(A, b, permc_spec=None, use_umfpack=True):
    """Solution of ``A @ x = b`` for a sparse matrix.

    Args:
        b: a vector, or right-hand sides as columns.
        permc_spec, use_umfpack: accepted and ignored.

    Returns:
        A tensor of ``b``'s shape. If the matrix is exactly singular it is NaN, with SciPy's warning.

    Raises:
        ShapeError: a matrix that is not square; a ``b`` of the wrong size.
        ArgumentError: a sparse ``b``.

    Gradient:
        For ``b`` ``A^-H g``; for the values minus that times ``x^H``, on the pattern. It uses the same factor.
    """
    A = square(A)
    rank = len(getattr(b, "shape", ()))
    if rank == 2 and b.shape[1] == 1 and not issparse(b):
        b = dense(b)[:, 0]  # SciPy returns a vector
    return _solved(A, b)


@composed
def spsolve_triangular(A, b, lower=True, overwrite_A=False, overwrite_b=False, unit_diagonal=False):
    """Solution of ``A @ x = b`` for a sparse triangular matrix; the other triangle is not read.

    Args:
        b: a vector, or right-hand sides as columns.
        lower: True for the lower triangle, False for the upper one.
        unit_diagonal: True to assume ones on the diagonal, which is then not read.

    Returns:
        A tensor of ``b``'s shape.

    Raises:
        ShapeError: a matrix that is not square; a ``b`` of the wrong size.
        ArgumentError: a 0 on the diagonal.

    Gradient:
        As for :func:`spsolve`, in the triangle.
    """
    A = square(A)
    A = (tril if lower else triu)(A, (-1 if lower else 1) if unit_diagonal else 0)
    if unit_diagonal:
        A = A + eye_array(A.shape[0])
    diagonal = _checks.known(A.diagonal())
    if diagonal is not None and (diagonal == 0).any():
        raise ArgumentError("`sparse.linalg`: `A` is singular: its diagonal has a 0.", argument="A")
    return _solved(A, b)


class SuperLU:
    """Factor of a sparse matrix, made by :func:`splu`.

    Attributes:
        shape: the shape of the matrix.
        nnz: the number of its elements.

    Returns:
        The methods return tensors.

    Raises:
        ArgumentTypeError: ``A`` is not a matrix.
        ShapeError: a matrix that is not square.
        ArgumentError: an exactly singular matrix.

    Gradient:
        As for :func:`spsolve` and :func:`logdet`, by the values of the matrix. ``L``, ``U`` and the permutations have
        no derivatives and are not provided.
    """

    def __init__(self, A):
        self._matrix = square(A)
        values = _checks.known(self._matrix.values)
        if values is not None:
            wide = values.astype(np.result_type(values, "float32"), copy=False)
            if _ops.factored(self._matrix.pattern, np.ascontiguousarray(wide)) is _ops.Singular:
                raise ArgumentError("`sparse.linalg`: `A` is exactly singular.", argument="A")

    shape = property(lambda self: self._matrix.shape)
    nnz = property(lambda self: self._matrix.nnz)

    def solve(self, rhs, trans="N"):
        """Return the solution for a vector or columns; ``"T"`` or ``"H"`` solves with the (conjugate) transpose."""
        _checks.choice("sparse.linalg", trans, ("N", "T", "H"), "trans")
        A = self._matrix.conj() if trans == "H" and is_complex(self._matrix.values) else self._matrix
        return _solved(A, rhs, "rhs", trans != "N")

    def logdet(self):
        """Return the log determinant of a symmetric positive definite matrix."""
        return logdet(self._matrix)


@factor
def splu(A, permc_spec=None, diag_pivot_thresh=None, relax=None, panel_size=None, options=None):
    """Factor of a sparse matrix, for several solutions.

    Args:
        permc_spec, diag_pivot_thresh, relax, panel_size, options: accepted and ignored.

    Returns:
        A :class:`SuperLU` with ``solve(rhs, trans)`` and ``logdet()``.

    Gradient:
        Through its methods.
    """
    return SuperLU(A)


@factor
def factorized(A):
    """Function from ``b`` to the solution of ``A @ x = b``.

    Returns:
        ``splu(A).solve``.

    Gradient:
        As for :func:`spsolve`.
    """
    return SuperLU(A).solve


# The determinant and the inverse --------------------------------------------------------------------------------------


def _symmetric(A):
    """Return the mean of a square real matrix and its transpose, and the mean's values as a column."""
    S = symmetric_mean(A)
    return S, ops.expand_dims(promoted(S.values, floating=True)[0], 1)


@symmetric
def logdet(A):
    """Log determinant of a sparse symmetric positive definite matrix; SciPy has no such function.

    The ordering and the fronts of the factor are found once per pattern; each call factors the values by a multifrontal
    method with LAPACK's kernels (Duff & Reid 1983).

    Returns:
        A number; NaN if the matrix is not positive definite.

    Gradient:
        The inverse on the pattern times the upstream gradient, at about the cost of the factor (Takahashi, Fagan &
        Chen 1973; Erisman & Tinney 1975). Higher derivatives differentiate that recursion.
    """
    S, values = _symmetric(A)
    if not S.nnz:
        return ops.zeros((), ops.dtype(values)) if S.shape[0] == 0 else ops.zeros((), ops.dtype(values)) * np.nan
    return ops.reshape(_ops.log_determinant(values, ops.stop_gradient(values)[:1], S.pattern), ())


@symmetric
def selected_inverse(A):
    """Inverse of a sparse symmetric positive definite matrix on its pattern; SciPy has no such function.

    If ``A`` is a precision matrix, the diagonal holds the variances.

    Returns:
        A sparse matrix with the pattern of ``A + A.T``; NaN if ``A`` is not positive definite.

    Gradient:
        The directional derivative of the recursion (Takahashi, Fagan & Chen 1973), to every order.
    """
    S, values = _symmetric(A)
    return S.with_values(ops.reshape(_ops.inverse(values, _ops.none_of(values), S.pattern), (-1,)))


# Norms and functions --------------------------------------------------------------------------------------------------


def _length(x):
    """Return the square root of a sum of squares, with derivative 0 at 0."""
    return ops.norm(x, None, -1)


@composed
def norm(x, ord=None, axis=None):
    """Norm of a sparse matrix, or of its columns or rows.

    Args:
        ord: None or ``"fro"`` (for columns and rows also 2), 1, -1, ``inf`` or ``-inf``.
        axis: 0 for columns, 1 for rows; None, or both, for the matrix.

    Returns:
        A number, or a vector.

    Raises:
        ArgumentError: an unsupported ``ord``.
        AxisError: an axis out of range.

    Gradient:
        As for ``ops.norm``; 0 where the norm is 0, ties share equally.
    """
    x = as_sparse(x, "x")
    known = {None: 2, "fro": 2, "f": 2, 2: 2, 1: 1, -1: -1, np.inf: np.inf, -np.inf: -np.inf}
    if isinstance(ord, (list, dict, set, np.ndarray)) or ord not in known:
        _checks.choice("sparse.linalg.norm", ord, (None, "fro", 1, -1, "inf", "-inf"), "ord")
    axes = None if axis is None else _checks.check_axes("sparse.linalg.norm", axis, 2)
    matrix = axes is None or len(axes) == 2
    if matrix and ord == 2 and type(ord) is not str:
        raise ArgumentError("`sparse.linalg.norm`: the spectral norm of a sparse matrix is not here.", argument="ord")
    if known[ord] == 2 and matrix:
        return _length(x.values)
    size = abs(x)
    if matrix:
        sums = size.sum(0 if abs(known[ord]) == 1 else 1)
        return (ops.max if known[ord] > 0 else ops.min)(ops.reshape(sums, (-1,)))
    ids, count = x._segments(axes[0])  # type: ignore[index]
    if known[ord] == 2:
        squares = ops.segment_sum(squared(x.values), ids, count)
        parts = real_components(x.values)
        parts = parts * np.asarray(weight(np.arange(parts.shape[0])), ops.dtype(parts))
        return root(squares, ops.segment_sum(parts, ids, count))
    if known[ord] == 1:
        return ops.segment_sum(size.values, ids, count)
    if known[ord] == -1:
        raise ArgumentError("`sparse.linalg.norm`: `ord` -1 is of matrices.", argument="ord")
    full = np.bincount(ids, minlength=count) == x.shape[axes[0]]  # type: ignore[index]
    if known[ord] > 0:
        found = ops.segment_max(size.values, ids, count)
        return ops.where(np.bincount(ids, minlength=count) > 0, found, 0.0)
    return ops.where(full, ops.segment_min(size.values, ids, count), 0.0)


@composed
def matrix_power(A, power):
    """Power of a square sparse matrix, by repeated products.

    Args:
        power: a nonnegative integer.

    Returns:
        A sparse matrix.

    Raises:
        ShapeError: a matrix that is not square.
        ArgumentError: a negative power.

    Gradient:
        Through the products.
    """
    return power_of(square(A), _checks.integer("sparse", power, "power"))


@composed
def expm_multiply(A, B, start=None, stop=None, num=None, endpoint=None, traceA=None):
    """Exponential of a sparse matrix times a vector or columns, without forming the exponential.

    Args:
        A: a square matrix. Its values must be known, since they decide the number of products; it may have a gradient.
        start, stop, num, endpoint: not supported; scale ``A`` instead.
        traceA: accepted and ignored.

    Returns:
        A tensor of ``B``'s shape.

    Raises:
        ShapeError: a matrix that is not square; a ``B`` of the wrong size.
        ArgumentError: time steps.
        ArgumentTypeError: values that are not known, as in a compiled function.

    Gradient:
        Through the products of a Taylor series, whose remainder is below the rounding error (Al-Mohy & Higham 2011).
    """
    if start is not None or stop is not None or num is not None or endpoint is not None:
        raise ArgumentError(
            "`sparse.linalg.expm_multiply` takes no time steps.", argument="start", hint="`expm_multiply(t * A, B)`"
        )
    A, B = square(A), dense(B, "B")
    size = float(iterations.numbers_of(norm(A, 1), "A"))
    rounds = max(int(np.ceil(size / 2)), 1)
    terms, rest = 1, 1.0
    while rest > 1e-17 and size:
        rest *= size / rounds / terms
        terms += 1
    for _ in range(rounds):
        term = B
        for k in range(1, terms + 1):
            term = (A @ term) * (1.0 / (rounds * k))
            B = B + term
    return B


def _bandwidth(A) -> tuple[int, int]:
    A = as_sparse(A, "A")
    distance = A.pattern.columns - A.pattern.rows
    return max(int(-distance.min(initial=0)), 0), max(int(distance.max(initial=0)), 0)


@of_pattern
def spbandwidth(A):
    """Numbers of diagonals of a sparse matrix's pattern below and above the main one.

    Returns:
        Two integers.
    """
    return _bandwidth(A)


@of_pattern
def is_sptriangular(A):
    """True if a sparse matrix's pattern is lower triangular, and True if it is upper triangular.

    Returns:
        Two bools.
    """
    below, above = _bandwidth(A)
    return above == 0, below == 0


_PAIRS = "use `eigsh` for a symmetric matrix, or `gradops.scipy.linalg.eig` of `A.toarray()`"
_DENSE = "the result is dense: use `gradops.scipy.linalg.{}` of `A.toarray()`"
_OPERATOR = "a function has no pattern and no values to differentiate by: `cg` and similar solvers take a sparse matrix"

REFUSED = {
    **dict.fromkeys(("eigs", "lobpcg"), _PAIRS),
    "inv": _DENSE.format("inv") + "; `selected_inverse` gives the elements on the pattern",
    "expm": _DENSE.format("expm") + "; `expm_multiply` gives its product",
    **dict.fromkeys("LinearOperator aslinearoperator LaplacianNd".split(), _OPERATOR),
    "spilu": "an incomplete factor has no derivative: use `splu`",
    "onenormest": "an estimate has no derivative: use `norm(A, 1)`",
    "funm_multiply_krylov": "it takes a function of dense matrices, which is not differentiated: use `expm_multiply`",
    **dict.fromkeys("lsqr lsmr".split(), "use `spsolve(A.T @ A, A.T @ b)`, with derivatives"),
    "use_solver": "there is one solver",
    **dict.fromkeys("ArpackError ArpackNoConvergence".split(), "they are errors of SciPy's sparse eigenvalue solvers"),
    "MatrixRankWarning": "it is a warning of SciPy's, which is passed on unchanged",
}

__dir__, __getattr__ = namespace(__name__, __all__, REFUSED)
