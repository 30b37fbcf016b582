"""PyTorch kernels: linear algebra, with torch.linalg."""

import torch

from .. import _matrices
from .base import cast, dtype_name, floats, promoted

_matrix = _matrices.in_full_precision(floats, cast, dtype_name)
_system = _matrices.system_in_full_precision(floats, promoted, cast, dtype_name)


def _refuse(condition, message) -> None:
    """Raise if a 0-d bool tensor is true, where its value is known."""
    if torch.compiler.is_compiling():
        return
    try:
        found = bool(condition)
    except RuntimeError:
        return
    if found:
        raise ValueError(message)


def _symmetric(x):
    """``x`` with its small asymmetries averaged out."""
    difference = x - x.mH
    if x.numel():
        with torch.no_grad():
            allowed = _matrices.ASYMMETRY * x.abs().amax((-2, -1))
            _refuse((difference.abs().amax((-2, -1)) > allowed).any(), _matrices.NOT_SYMMETRIC)
    return x - difference / 2


def _finite(x):
    _refuse(~torch.isfinite(x.detach()).all(), _matrices.NOT_FINITE)
    return x


@_matrix
def cholesky(x, upper=False):
    x = _symmetric(x)
    try:
        return torch.linalg.cholesky(x, upper=upper)
    except torch.linalg.LinAlgError:
        raise ValueError(_matrices.NOT_POSITIVE_DEFINITE) from None


@_matrix
def det(x):
    return torch.linalg.det(x)


@_matrix
def slogdet(x):
    return tuple(torch.linalg.slogdet(x))


@_matrix
def inv(x):
    try:
        return torch.linalg.inv(x)
    except torch.linalg.LinAlgError:
        raise ValueError(_matrices.SINGULAR) from None


@_matrix
def pinv(x, rcond=None):
    return torch.linalg.pinv(_finite(x), rtol=rcond)


@_system
def solve(a, b):
    try:
        return torch.linalg.solve(a, b)
    except torch.linalg.LinAlgError:
        raise ValueError(_matrices.SINGULAR) from None


@_system
def solve_triangular(a, b, lower=False):
    _refuse((a.detach().diagonal(dim1=-2, dim2=-1) == 0).any(), _matrices.SINGULAR)
    return torch.linalg.solve_triangular(a, b, upper=not lower)


@_matrix
def eig(x):
    return tuple(torch.linalg.eig(_finite(x)))


@_matrix
def eigh(x):
    return tuple(torch.linalg.eigh(_symmetric(_finite(x))))


@_matrix
def lu_factor(x):
    y, pivots, _ = torch.linalg.lu_factor_ex(x)
    return y, pivots.to(torch.int64) - 1


@_matrix
def qr(x, mode="reduced"):
    return tuple(torch.linalg.qr(x, mode=mode))


@_matrix
def svd(x, full_matrices=True, compute_uv=True):
    if compute_uv:
        return tuple(torch.linalg.svd(_finite(x), full_matrices=full_matrices))
    return torch.linalg.svdvals(_finite(x))
