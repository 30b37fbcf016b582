"""The standard's extension for linear algebra."""

from .._names import namespace
from ._functions import functions

_FUNCTIONS = functions(
    " ".join(
        f"linalg.{name}"
        for name in """cholesky cross det diagonal eigh eigvalsh inv matmul matrix_norm matrix_power matrix_rank
        matrix_transpose outer pinv qr slogdet solve svd svdvals tensordot trace vecdot vector_norm""".split()
    )
)
globals().update(_FUNCTIONS)
__all__ = sorted(_FUNCTIONS)
__dir__, __getattr__ = namespace(__name__)
