"""PyTorch kernels: linear algebra, with torch.linalg."""

import math

import torch

from .. import _shared
from . import _private
from .base import cast, dtype_name, floats, promoted

_matrix = _shared.full_precision(floats, cast, dtype_name)
_system = _shared.system_in_full_precision(floats, promoted, cast, dtype_name)


def _holds(condition) -> bool:
    """True if a 0-d bool tensor is true and its value can be read."""
    if torch.compiler.is_compiling():
        return False
    try:
        return bool(condition)
    except RuntimeError:  # inside vmap
        return False


def _refuse(condition, message) -> None:
    if _holds(condition):
        raise ValueError(message)


def _symmetric(x):
    """Make ``x`` exactly symmetric by averaging small asymmetries; raises for large ones."""
    difference = x - x.mH
    if x.numel():
        with torch.no_grad():
            allowed = _shared.ASYMMETRY * x.abs().amax((-2, -1))
            _refuse((difference.abs().amax((-2, -1)) > allowed).any(), _shared.NOT_SYMMETRIC)
    return x - difference / 2


def _finite(x):
    _refuse(~torch.isfinite(x.detach()).all(), _shared.NOT_FINITE)
    return x


@_matrix
def cholesky(x, upper=False):
    x = _symmetric(x)
    try:
        return torch.linalg.cholesky(x, upper=upper)
    except torch.linalg.LinAlgError:
        raise ValueError(_shared.NOT_POSITIVE_DEFINITE) from None


def _is_tangent_differentiated(*xs) -> bool:
    """True if a tangent is itself differentiated; PyTorch's solves and determinants treat factors as constants."""
    if _private.forward_level() < 0:
        return False
    levels = [level for level in _private.interpreters() or () if level.key() != _private.vmap_type]
    return len(levels) > 1 or torch.is_grad_enabled() and any(x.requires_grad for x in xs)


def _pivots(x):
    """The diagonal of the upper LU factor, whose product is the determinant up to sign, and the row exchanges' sign."""
    y, order, _ = torch.linalg.lu_factor_ex(x)
    exchanged = order != torch.arange(1, x.shape[-1] + 1, dtype=order.dtype, device=x.device)
    return y.diagonal(dim1=-2, dim2=-1), 1 - 2 * (exchanged.sum(-1) % 2)


@_matrix
def det(x):
    if _is_tangent_differentiated(x):
        pivots, sign = _pivots(x)
        return pivots.prod(-1) * sign
    y = torch.linalg.det(x)
    if not (x.requires_grad and torch.is_grad_enabled() and x.numel()):
        return y
    data, size = x.detach(), y.detach().abs()
    small = torch.finfo(x.dtype).eps ** 0.25  # below it, inverses in the third derivative lose all digits
    in_graph = torch.compiler.is_compiling() or _private.is_traced(y)  # size unknown: the graph has both forms
    if not in_graph and _holds((size > small * torch.linalg.vector_norm(data, dim=-1).prod(-1)).all()):
        return y
    s = torch.linalg.svdvals(torch.nan_to_num(data, 0.0, 0.0, 0.0))
    singular = s[..., -1] <= small * s[..., 0]
    if not in_graph and not _holds(singular.any()):
        return y
    regular = torch.where(singular[..., None, None], torch.eye(x.shape[-1], dtype=x.dtype, device=x.device), x)
    return torch.where(singular, _expanded_det(x), torch.linalg.det(regular))


def _expanded_det(x):
    """The determinant as a polynomial (Bird 2011), because torch's own gradient is 0 at singular matrices.

    The matrix is diagonal in the basis of its singular vectors, which are taken as constants, so nothing cancels.
    """
    u, _, vh = torch.linalg.svd(torch.nan_to_num(x.detach(), 0.0, 0.0, 0.0))
    inner = u.mH @ x @ vh.mH
    y, n = inner, x.shape[-1]
    for _ in range(n - 1):
        diagonal = y.diagonal(dim1=-2, dim2=-1)
        after = torch.nn.functional.pad(diagonal[..., 1:], (0, 1)).flip(-1).cumsum(-1).flip(-1)
        y = (torch.triu(y, 1) - torch.diag_embed(after)) @ inner
    return torch.linalg.det(u) * torch.linalg.det(vh) * y[..., 0, 0] * (-1) ** (n - 1)


@_matrix
def slogdet(x):
    if not _is_tangent_differentiated(x):
        return tuple(torch.linalg.slogdet(x))
    pivots, sign = _pivots(x)
    sizes = pivots.abs()
    return (pivots / sizes).prod(-1) * sign, sizes.log().sum(-1)


@_matrix
def inv(x):
    try:
        return torch.linalg.inv(x)
    except torch.linalg.LinAlgError:
        raise ValueError(_shared.SINGULAR) from None


@_matrix
def expm(x):
    return torch.linalg.matrix_exp(x)


@_matrix
def pinv(x, rcond=None):
    return torch.linalg.pinv(_finite(x), rtol=rcond)


@_system
def solve(a, b):
    rank = max(a.ndim, b.ndim)  # torch.func.vmap aligns batches wrongly if the ranks differ
    a, b = (x if x.ndim == rank else x[(None,) * (rank - x.ndim)] for x in (a, b))
    try:
        y = torch.linalg.solve(a, b)
        # `y + inv(a) @ (b - a @ y)` is the solution for any `y`, so errors in the derivatives of `y` cancel.
        return y + torch.linalg.inv(a) @ (b - a @ y) if _is_tangent_differentiated(a, b) else y
    except torch.linalg.LinAlgError:
        raise ValueError(_shared.SINGULAR) from None


@_system
def solve_triangular(a, b, lower=False):
    _refuse((a.detach().diagonal(dim1=-2, dim2=-1) == 0).any(), _shared.SINGULAR)
    return torch.linalg.solve_triangular(a, b, upper=not lower)


@_matrix
def eig(x):
    return tuple(torch.linalg.eig(_finite(x)))


@_matrix
def eigh(x):
    return tuple(torch.linalg.eigh(_symmetric(_finite(x))))


def undefined(t, at, scale):
    """See :func:`gradops.ops.decompositions.undefined`."""
    rounding = 1e3 * torch.finfo(t.dtype).eps * scale.detach().abs().amax((-2, -1), keepdim=True)
    return _infinite(t, at & ~((t.abs() <= rounding) & (t != 0)))


def crease(t, x, at):
    """See :func:`gradops.ops.decompositions.crease`."""
    return _infinite(x - x.detach(), at)


def _infinite(t, at):
    """Infinity for nonzero elements: ``xlogy(0, inf)`` is 0, and so is its derivative in a direction of 0."""
    if t.is_complex():
        return torch.complex(_infinite(t.real, at), _infinite(t.imag, at))
    return torch.xlogy(torch.where(at, t, 0.0), math.inf)


@_matrix
def lu_factor(x):
    y, pivots, _ = torch.linalg.lu_factor_ex(x)
    return y, pivots.to(torch.int64) - 1


@_matrix
def svd(x, full_matrices=True, compute_uv=True):
    if compute_uv:
        return tuple(torch.linalg.svd(_finite(x), full_matrices=full_matrices))
    return torch.linalg.svdvals(_finite(x))
