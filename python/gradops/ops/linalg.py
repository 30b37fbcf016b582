"""Everything for linear algebra in one place: ``ops.linalg.solve`` is ``ops.solve``."""

from .decompositions import adjugate, cholesky, det, eig, eigh, logdet, lu_factor, qr, slogdet, svd
from .derivatives import jvp
from .norms import norm
from .products import cross, matmul, outer, tensordot, vdot
from .systems import cholesky_inverse, expm, inv, lstsq, matrix_power, matrix_rank, pinv, solve, solve_triangular

__all__ = [
    "adjugate",
    "cholesky",
    "cholesky_inverse",
    "cross",
    "det",
    "eig",
    "eigh",
    "expm",
    "inv",
    "jvp",
    "logdet",
    "lstsq",
    "lu_factor",
    "matmul",
    "matrix_power",
    "matrix_rank",
    "norm",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "solve_triangular",
    "svd",
    "tensordot",
    "vdot",
]
