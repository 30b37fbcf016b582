"""``scipy.linalg``: systems, decompositions, matrix equations, matrix functions and structured matrices.

Matrices are the last two dimensions; the dimensions before them are a batch and broadcast. Half precision is computed
in float32. Derivatives are by the part of a matrix that SciPy reads, such as one triangle; the rest gets 0.
``overwrite_*`` are accepted and do not change the result. The sign or phase of eigenvectors and singular vectors is
arbitrary, so the derivative of a function that depends on it has no meaning.

Examples:
    The stationary variance of a linear system, and its derivative by the system:

    >>> import numpy as np
    >>> import gradops
    >>> from gradops import ops
    >>> from gradops.scipy import linalg
    >>> system, noise = np.array([[-1.0, 0.0], [1.0, -2.0]]), -np.eye(2)
    >>> print(linalg.solve_continuous_lyapunov(system, noise).round(4))
    [[0.5    0.1667]
     [0.1667 0.3333]]
    >>> total = lambda a: ops.trace(linalg.solve_continuous_lyapunov(a, noise))
    >>> print(gradops.grad(total)(system).round(4))
    [[0.6111 0.25  ]
     [0.1667 0.1944]]

See Also:
    ``scipy.linalg``; :func:`gradops.ops.solve`, :func:`gradops.ops.svd` and the other linear algebra ops.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._names import namespace, places

if TYPE_CHECKING:
    from .decompositions import *  # noqa: F403
    from .eigenvalues import *  # noqa: F403
    from .equations import *  # noqa: F403
    from .functions import *  # noqa: F403
    from .matrices import *  # noqa: F403
    from .structured import *  # noqa: F403
    from .systems import *  # noqa: F403

_PLACES = places("""
    decompositions: cho_factor cholesky det lu lu_factor orthogonal_procrustes polar qr qr_multiply rq
        subspace_angles svd svdvals
    eigenvalues: eig eig_banded eigh eigh_tridiagonal eigvals eigvals_banded eigvalsh eigvalsh_tridiagonal
    equations: solve_continuous_are solve_continuous_lyapunov solve_discrete_are solve_discrete_lyapunov
        solve_lyapunov solve_sylvester
    functions: coshm cosm expm expm_frechet fractional_matrix_power funm logm signm sinhm sinm sqrtm tanhm tanm
    matrices: bandwidth block_diag circulant companion convolution_matrix dft diagsvd fiedler fiedler_companion
        hadamard hankel helmert hessenberg hilbert invhilbert invpascal ishermitian issymmetric khatri_rao
        leslie pascal rsf2csf schur toeplitz
    structured: cho_solve_banded cholesky_banded matmul_toeplitz solve_banded solve_circulant solve_toeplitz
        solveh_banded
    systems: cho_solve inv lstsq lu_solve norm pinv pinvh solve solve_triangular
""")

__all__ = sorted(_PLACES)

_BASES = "its bases are not unique, so they have no derivative: use projections, for instance by `qr` or `svd`"
_LAPACK = "it is a handle of BLAS or LAPACK, which take NumPy arrays"
_UPDATE = "it updates an existing factor: use `qr` of the changed matrix"
_SCHUR = "its blocks and their order depend on where eigenvalues lie, so it has no derivative: use `eig`"
_ERROR = "errors are those of `gradops.errors`"

_REFUSED = {
    "LinAlgError": _ERROR,
    "LinAlgWarning": _ERROR,
    "cdf2rdf": _SCHUR,
    "clarkson_woodruff_transform": "it draws random numbers: multiply by SciPy's sketch of the identity matrix",
    "cossin": _BASES,
    "expm_cond": "it is an error bound, which has no derivative: use the norm of `expm_frechet`",
    "find_best_blas_type": _LAPACK,
    "get_blas_funcs": _LAPACK,
    "get_lapack_funcs": _LAPACK,
    "ldl": "its pivots of two rows depend on values: use `cholesky` or `lu`",
    "matrix_balance": "its powers of 2 are piecewise constant: scale the matrix by SciPy's, as constants",
    "null_space": _BASES,
    "ordqz": _SCHUR,
    "orth": _BASES,
    "qr_delete": _UPDATE,
    "qr_insert": _UPDATE,
    "qr_update": _UPDATE,
    "qz": _SCHUR,
}

__dir__, __getattr__ = namespace(__name__, __all__, _REFUSED, _PLACES)
