"""Some eigenpairs of symmetric sparse matrices, and singular vectors, by ARPACK.

If ``A v = v w`` and ``v^T v = 1``, a change ``dA`` changes ``w`` by ``v^T dA v``, and ``v`` by the solution of a system
with ``A - w``, bordered by ``v``: one sparse solve per eigenvector (Magnus 1985). The rules are composed of the same
ops, so derivatives of every order exist.
"""

from __future__ import annotations

import numpy as np

from ... import _scipy, ops
from ...annotations import Tensor
from ...errors import ArgumentError, GradientError, ShapeError
from ...extend import derivative
from ...extend import op as make_op
from ...ops import _checks
from .._define import composed
from .._hosted import register_matrix_kernel
from .._tensors import constant_like, is_complex, promoted
from ._ops import _each, _outer
from ._pattern import Pattern
from .construction import block_array
from .iterations import Method, method_of, numbered, numbers_of
from .matrices import as_sparse, symmetric_mean

__all__ = ["eigsh", "svds"]

WHICH = ("LM", "SM", "LA", "SA", "BE")


@make_op(name="scipy.sparse.eigenpairs")
def _eigenpairs(values: Tensor, start: Tensor, pattern: Pattern, method: Method) -> Tensor:
    """Eigenvalues, in the first row, above eigenvectors as columns; ``start`` has the same shape, and ``v0``."""


def _eigenpairs_on_host(values, start, pattern, method):
    v0, wide = start[1:, 0], np.result_type(values, "float32")
    A = pattern.scipys(values[:, 0].astype(wide))
    try:
        w, v = _scipy.sparse.linalg.eigsh(A, v0=v0.astype(wide), **numbered(method).settings)
    except _scipy.sparse.linalg.ArpackError as error:
        raise ArgumentError(
            f"`sparse.linalg`: {error}", argument="maxiter", hint="larger `maxiter` or `ncv`"
        ) from error
    return np.concatenate([w[None], v * np.where(v0 @ v < 0, -1, 1)])  # ARPACK's signs are arbitrary


register_matrix_kernel(_eigenpairs, _each(_eigenpairs_on_host), like=1)


@make_op(name="scipy.sparse.deflated")
def _deflated(values: Tensor, pairs: Tensor, b: Tensor, pattern: Pattern) -> Tensor:
    """Solutions orthogonal to ``v`` of ``(A - w) q = b - v (v^T b)``, a column for each eigenpair."""


def _deflated_on_host(values, pairs, b, pattern):
    w, v = pairs[0].astype(float), pairs[1:].astype(float)
    A = pattern.scipys(values[:, 0].astype(float))
    near = np.finfo(pairs.dtype).eps ** 0.7 * np.max(np.abs(A.data), initial=0.0)
    found, unit = np.zeros(b.shape), _scipy.sparse.eye_array(A.shape[0])
    for k in np.flatnonzero(np.any(b != 0, 0)):
        border = v[:, k : k + 1]
        bordered = _scipy.sparse.block_array([[A - w[k] * unit, border], [border.T, None]], format="csc")
        right = b[:, k] - v[:, k] * (v[:, k] @ b[:, k])
        repeated = np.sum(np.abs(w - w[k]) <= near) > 1
        if not repeated:
            try:
                found[:, k] = _scipy.sparse.linalg.splu(bordered).solve(np.append(right, 0.0))[:-1]
            except RuntimeError:  # exactly singular
                repeated = True
        if repeated or np.linalg.norm(right) < near * np.linalg.norm(found[:, k]):
            raise GradientError(
                f"`sparse.linalg`: the eigenvector of the repeated eigenvalue {w[k]:.6g} has no derivative.",
                hint="the eigenvalues have derivatives: use them alone, or add a term to `A` that separates them",
            )
    return found


register_matrix_kernel(_deflated, _each(_deflated_on_host), like=2)


def _dot(a, b):
    return ops.sum(a * b, -2, True)


def _pairs_by_values(g, values, y, pattern, method):
    vectors = y[..., 1:, :]
    return _outer(vectors * g[..., :1, :] - _deflated(values, y, g[..., 1:, :], pattern), vectors, pattern)


def _deflated_by_values(g, values, pairs, y, pattern):
    return -_outer(_deflated(values, pairs, g, pattern), y, pattern)


def _deflated_by_pairs(g, values, pairs, b, y, pattern):
    z, v = _deflated(values, pairs, g, pattern), pairs[..., 1:, :]
    return ops.concatenate([_dot(z, y), -(_dot(v, b) * z + _dot(v, g) * y)], -2)


def _deflated_by_b(g, values, pairs, pattern):
    return _deflated(values, pairs, g, pattern)


derivative(_eigenpairs, values=_pairs_by_values)
derivative(_deflated, values=_deflated_by_values, pairs=_deflated_by_pairs, b=_deflated_by_b)


def _pairs(name: str, S, k, v0, **settings):
    """Return eigenvalues and eigenvectors of a symmetric sparse matrix."""
    n = S.shape[0]
    k = _checks.integer(name, k, "k", 1)
    if k >= n:
        raise ArgumentError(f"`{name}`: `k` must be less than {n}; got {k}.", argument="k", hint="`linalg.eigh`")
    given = {"k": k, "tol": 0, **{key: value for key, value in settings.items() if value is not None}}
    for key, value in given.items():
        given[key] = value if isinstance(value, (int, float, str)) else numbers_of(value, key).item()
    first = np.random.default_rng(0).uniform(-1.0, 1.0, n) if v0 is None else numbers_of(v0, "v0")
    if first.shape != (n,):
        raise ShapeError(f"`{name}`: `v0` must have {n} elements; got shape {first.shape}.", argument="v0")
    values = promoted(S.values, floating=True)[0]
    start = constant_like(np.outer(np.append(0.0, first), np.ones(k)), values)
    pairs = _eigenpairs(ops.expand_dims(values, 1), start, S.pattern, method_of("eigsh", tuple(sorted(given.items()))))
    return pairs[0], pairs[1:]


@composed
def eigsh(
    A, k=6, M=None, sigma=None, which="LM", v0=None, ncv=None, maxiter=None, tol=0, return_eigenvectors=True,
    Minv=None, OPinv=None, mode="normal", rng=None,
):  # fmt: skip
    """Some eigenvalues and eigenvectors of a real symmetric sparse matrix, by ARPACK.

    Args:
        A: a sparse matrix (n, n), or a tensor.
        k: the number of eigenvalues, less than n.
        sigma: a number, to find the eigenvalues near it; ``which`` then refers to ``1 / (w - sigma)``.
        which: ``"LM"`` and ``"SM"`` for the largest and smallest absolute values, ``"LA"`` and ``"SA"`` for the largest
            and smallest, ``"BE"`` for both ends.
        v0: the starting vector; by default the same numbers in each call. Eigenvectors have a nonnegative product with
            it.
        ncv, maxiter, tol: numbers, as SciPy's.
        return_eigenvectors: False to return eigenvalues only.
        M, Minv, OPinv: not supported.
        mode: ``"normal"``.
        rng: accepted and ignored.

    Returns:
        The eigenvalues, a tensor (k,), mostly in ascending order, and unless ``return_eigenvectors`` is False the
        eigenvectors as columns, a tensor (n, k).

    Raises:
        ShapeError: a matrix that is not square; a ``v0`` of the wrong size.
        ArgumentError: a matrix that is not symmetric, or is complex; a ``k`` that is not less than n; ``M``, ``Minv``,
            ``OPinv`` or another ``mode``; no convergence.
        GradientError: in the backward pass, the gradient of an eigenvector whose eigenvalue is repeated; in JAX's
            forward mode.

    Gradient:
        By the values of ``A``, to every order. An eigenvalue's is ``v v^T`` on the pattern, without a solve, also if it
        is repeated. An eigenvector's takes one sparse solve with ``A - w``, bordered by ``v``. Which eigenvalues are
        found has no derivative.
    """
    name = "sparse.linalg.eigsh"
    _checks.choice(name, which, WHICH, "which")
    _checks.choice(name, mode, ("normal",), "mode")
    for key, value in {"M": M, "Minv": Minv, "OPinv": OPinv}.items():
        if value is not None:
            raise ArgumentError(f"`{name}` takes no `{key}`.", argument=key)
    settings = {"sigma": sigma, "which": which, "ncv": ncv, "maxiter": maxiter, "tol": tol}
    w, v = _pairs(name, symmetric_mean(A), k, v0, **settings)
    return (w, v) if return_eigenvectors else w


@composed
def svds(
    A, k=6, ncv=None, tol=0, which="LM", v0=None, maxiter=None, return_singular_vectors=True, solver="arpack",
    rng=None, options=None, *, random_state=None,
):  # fmt: skip
    """Largest singular values and vectors of a real sparse matrix, as eigenpairs of ``[[0, A], [A^T, 0]]``.

    Args:
        A: a sparse matrix (m, n), or a tensor.
        k: the number of singular values, at most the smaller of m and n.
        which: ``"LM"``. For the smallest singular values use ``eigsh(A.T @ A, k, sigma=0)``.
        v0: the starting vector, of m + n elements; by default the same numbers in each call.
        ncv, maxiter, tol: numbers, as those of :func:`eigsh`.
        return_singular_vectors: False to return singular values only; ``"u"`` or ``"vh"`` for one side only.
        solver: ``"arpack"``.
        rng, random_state: accepted and ignored.
        options: not supported.

    Returns:
        The left singular vectors, a tensor (m, k), the singular values in ascending order, (k,), and the right singular
        vectors, (k, n). A side that is not asked for is None.

    Raises:
        ArgumentError: a complex matrix; a ``k`` that is too large; another ``which`` or ``solver``; ``options``.
        GradientError: in the backward pass, the gradient of singular vectors whose singular value is repeated, or 0.

    Gradient:
        By the values of ``A``, as for :func:`eigsh`.
    """
    name = "sparse.linalg.svds"
    _checks.choice(name, which, ("LM",), "which")
    _checks.choice(name, solver, ("arpack",), "solver")
    _checks.choice(name, return_singular_vectors, (True, False, "u", "vh"), "return_singular_vectors")
    if options is not None:
        raise ArgumentError(f"`{name}` takes no `options`.", argument="options")
    A = as_sparse(A, "A", dense=True)
    if is_complex(A.values):
        raise ArgumentError(f"`{name}`: `A` must be real.", argument="A")
    rows, columns = A.shape
    k = _checks.integer(name, k, "k", 1)
    if k > min(rows, columns):
        raise ArgumentError(f"`{name}`: `k` must be at most {min(rows, columns)}; got {k}.", argument="k")
    whole = block_array([[None, A], [A.T, None]])
    s, both = _pairs(name, whole, k, v0, which="LA", ncv=ncv, maxiter=maxiter, tol=tol)
    if return_singular_vectors is False:
        return s
    u, v = both[:rows] * 2**0.5, ops.transpose(both[rows:]) * 2**0.5
    return u if return_singular_vectors != "vh" else None, s, v if return_singular_vectors != "u" else None
