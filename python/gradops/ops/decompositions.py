"""Decompositions of matrices in the last two dimensions, and determinants."""

from __future__ import annotations

import math

from ..annotations import Tensor
from . import _checks
from ._compose import is_complex
from ._dispatch import op
from ._matrices import adjoint, check_matrix, check_square, epsilon
from .conversion import cast
from .creation import zeros_like
from .elementwise import abs, add, equal, exp, greater, log, logical_and, multiply, subtract
from .indexing import where
from .products import matmul
from .reductions import max, sum
from .shaping import expand_dims

__family__ = """Decompositions of matrices.

Matrices are the last two dimensions; those before are a batch. Half precision is worked on in float32 and comes back in
its dtype.

See Also:
    :func:`solve`, :func:`det`, :func:`pinv`, :func:`norm`.
"""


@op(check=check_square, costly=True)
def cholesky(x: Tensor, upper: bool = False) -> Tensor:
    """Triangular factor of positive definite matrices: ``x = L @ L^H``, or with ``upper`` ``x = U^H @ U``.

    Args:
        x: symmetric (Hermitian) matrices; small asymmetries are averaged out.
        upper: give ``U`` instead of ``L``.

    Returns:
        A tensor of ``x``'s shape, 0 in the other triangle, with a positive diagonal.

    Raises:
        ShapeError: matrices that are not square.
        ArgumentError: matrices that are not symmetric or not positive definite (inside JAX's and
            TensorFlow's traces, where values are unknown, the result is NaN instead).

    Gradient:
        ``L^-H P(L^H g) L^-1``, symmetric; ``P`` takes the lower triangle and half the diagonal (Murray 2016).

    Examples:
        The log density of a normal distribution, and its derivative by the covariance:

        >>> import numpy as np
        >>> import gradops
        >>> from gradops import ops
        >>> x = np.array([1.0, -1.0])
        >>> def negative_log_density(covariance):
        ...     factor = ops.cholesky(covariance)
        ...     z = ops.solve_triangular(factor, x, lower=True)
        ...     return 0.5 * ops.sum(z * z) + ops.sum(ops.log(ops.diagonal(factor)))
        >>> print(gradops.grad(negative_log_density)(np.eye(2)))
        [[0.  0.5]
         [0.5 0. ]]

    See Also:
        :func:`solve_triangular`, :func:`slogdet`.
    """
    ...


@op(check=check_square, costly=True)
def eig(x: Tensor) -> tuple:
    """Eigenvalues and right eigenvectors of general matrices: ``x @ v = v * w``.

    Returns:
        A pair: complex eigenvalues ``w`` of shape (..., n), in no particular order, and eigenvectors ``v``, of
        length 1 and any phase, the columns of (..., n, n).

    Raises:
        ShapeError: matrices that are not square.
        ArgumentError: NaN or infinite elements.

    Gradient:
        ``v^-H (diag(g_w) + (v^H g_v - v^H v Re diag(v^H g_v)) / conj(w_j - w_i)) v^H`` (Giles 2008; Boeddeker
        et al. 2017). Repeated eigenvalues: see :func:`eigh`.

    Examples:
        >>> x = np.array([[2.0, 1.0], [0.0, 1.0]])
        >>> print(ops.sort(ops.real(ops.eig(x)[0])))
        [1. 2.]
        >>> print(gradops.grad(lambda x: ops.max(ops.real(ops.eig(x)[0])))(x))
        [[1. 0.]
         [1. 0.]]
    """
    ...


@op(check=check_square, costly=True)
def eigh(x: Tensor) -> tuple:
    """Eigenvalues and eigenvectors of symmetric (Hermitian) matrices: ``x = v @ diag(w) @ v^H``.

    Args:
        x: symmetric (Hermitian) matrices; small asymmetries are averaged out.

    Returns:
        A pair: real eigenvalues ``w`` of shape (..., n), ascending, and orthonormal eigenvectors ``v``, of any sign
        or phase, the columns of (..., n, n).

    Raises:
        ShapeError: matrices that are not square.
        ArgumentError: matrices that are not symmetric; NaN or infinite elements.

    Gradient:
        ``v (diag(g_w) + (v^H g_v) / (w_j - w_i)) v^H``, symmetric (Giles 2008). At repeated eigenvalues NaN, unless
        the vectors of those have no upstream gradient and the values have the same one, as in ``sum(exp(w))`` and
        in functions of other eigenvalues; the second derivative there is NaN. The limit for ``(v * f(w)) @ v^H`` takes
        ``f'(w)``, which a chain rule does not see. :func:`expm`, :func:`inv`, :func:`logdet` and ``sqrtm``, ``logm``,
        ``fractional_matrix_power``, ``cosm``, ``signm`` of ``gradops.scipy.linalg`` have all derivatives there.

    Examples:
        >>> x = np.array([[2.0, 1.0], [1.0, 2.0]])
        >>> print(ops.eigh(x)[0])
        [1. 3.]
        >>> print(gradops.grad(lambda x: ops.eigh(x)[0][1])(x).round(4))
        [[0.5 0.5]
         [0.5 0.5]]
    """
    ...


@op(check=check_matrix, costly=True)
def lu_factor(x: Tensor) -> tuple:
    """Triangular factors by elimination with partial pivoting: ``P @ x = L @ U``.

    Returns:
        A pair: ``L`` below the diagonal (its own is 1) and ``U`` on and above it in one tensor of ``x``'s shape;
        and int64 positions (..., min(m, n)): row i was exchanged with row ``pivots[i]``, in order.

    Raises:
        ShapeError: fewer than two dimensions.

    Gradient:
        ``P^T L^-H (tril(L^H g_L) + triu(g_U U^H)) U^-H`` (de Hoog et al. 2011); for non-square matrices by blocks.

    Examples:
        >>> x = np.array([[2.0, 1.0], [1.0, 1.0]])
        >>> print(ops.lu_factor(x)[0])
        [[2.  1. ]
         [0.5 0.5]]
        >>> print(gradops.grad(lambda x: ops.lu_factor(x)[0][1, 1])(x))
        [[ 0.25 -0.5 ]
         [-0.5   1.  ]]
    """
    ...


def _check_mode(op, x, mode) -> None:
    check_matrix(op, x)
    _checks.choice(op.name, mode, ("reduced", "complete"), "mode")


@op(check=_check_mode, costly=True)
def qr(x: Tensor, mode: str = "reduced") -> tuple:
    """Orthonormal and upper triangular factor: ``x = q @ r``.

    Args:
        mode: ``"reduced"``: ``q`` is (..., m, k) and ``r`` (..., k, n), with k the smaller of m and n;
            ``"complete"``: (..., m, m) and (..., m, n).

    Returns:
        The pair of ``q`` and ``r``. The signs of ``r``'s diagonal are LAPACK's.

    Raises:
        ShapeError: fewer than two dimensions.
        ArgumentError: an unknown ``mode``.

    Gradient:
        ``(g_q + q copyltu(r g_r^H - g_q^H q)) r^-H`` (Walter & Lehmann 2010); for wide matrices by blocks. In
        mode "complete" it is right for functions that depend on the extra columns of ``q`` only through their span.

    Examples:
        >>> x = np.array([[3.0, 1.0], [4.0, 1.0]])
        >>> print(ops.abs(ops.qr(x)[1]).round(4))
        [[5.  1.4]
         [0.  0.2]]
        >>> print(gradops.grad(lambda x: ops.abs(ops.qr(x)[1])[0, 0])(x).round(4))
        [[ 0.6 -0. ]
         [ 0.8 -0. ]]
    """
    ...


@op(check=check_matrix, costly=True)
def svd(x: Tensor, full_matrices: bool = True, compute_uv: bool = True):
    """Singular value decomposition: ``x = u @ diag(s) @ vh``.

    Args:
        full_matrices: make ``u`` (..., m, m) and ``vh`` (..., n, n); else (..., m, k) and (..., k, n), with k the
            smaller of m and n.
        compute_uv: False to give the singular values alone.

    Returns:
        A triple of ``u``, the real singular values ``s``, descending, of shape (..., k), and ``vh``; or ``s``.
        The singular vectors have any sign or phase.

    Raises:
        ShapeError: fewer than two dimensions.
        ArgumentError: NaN or infinite elements.

    Gradient:
        By Wan & Zhang 2019 and Townsend 2016. Repeated singular values, and several of 0: see :func:`eigh`;
        with ``compute_uv=False`` a repeated value has the gradient for one of its vectors. There
        ``sum(square(x))``, for the sum of squares of the values, and the trace of the second factor of
        ``gradops.scipy.linalg.polar``, for the sum of positive values, have all derivatives.

    Examples:
        >>> x = np.array([[3.0, 0.0], [0.0, 1.0]])
        >>> print(ops.svd(x)[1])
        [3. 1.]
        >>> print(gradops.grad(lambda x: ops.svd(x)[1][0])(x))
        [[1. 0.]
         [0. 0.]]
    """
    ...


@op(public=False)
def undefined(t: Tensor, at: Tensor, scale: Tensor) -> Tensor:
    """NaN where a derivative is undefined and ``t``, its cotangent or tangent, is not 0 up to rounding; else 0.

    Args:
        at: where the derivative is undefined; of ``t``'s shape.
        scale: a tensor of ``t``'s shape that ``t`` is a linear combination of; it gives the size of roundings.

    Gradient:
        The same function of the upstream gradient, as for an op linear in ``t``.
    """
    rounding = multiply(max(abs(scale), (-2, -1), True), 1e3 * epsilon(t))
    nan = complex(math.nan, math.nan) if is_complex(t) else math.nan
    return where(logical_and(at, greater(abs(t), rounding)), nan, zeros_like(t))


@op(public=False)
def crease(t: Tensor, x: Tensor, at: Tensor) -> Tensor:
    """0 of ``t``'s shape, with an undefined derivative with respect to ``x``: added to gradients without a derivative.

    Args:
        t: the upstream gradient, in which the rule is linear.
        x: a tensor of ``t``'s shape and dtype.
        at: where the derivative is undefined; of ``t``'s shape.

    Gradient:
        For ``x``, NaN where the upstream gradient is not 0 (see :func:`undefined`), for any ``t``.
    """
    return zeros_like(t)


@op(public=False, differentiable=False)
def parted(a: Tensor, b: Tensor, pairs: Tensor, floor: Tensor) -> Tensor:
    """NaN where ``a`` and ``b``, gradients for equal values, differ by more than rounding; else 0.

    Args:
        pairs: where ``a`` and ``b`` are gradients for equal values.
        floor: a difference that counts as rounding.
    """
    allowed = add(multiply(add(abs(a), abs(b)), 0.5 * epsilon(a) ** 0.5), floor)
    return where(logical_and(pairs, greater(abs(subtract(a, b)), allowed)), math.nan, zeros_like(allowed))


__family__ = """Determinants.

Matrices are the last two dimensions; those before are a batch. Half precision is worked on in float32 and comes back in
its dtype.

See Also:
    :func:`cholesky`, :func:`inv`, :func:`trace`.
"""


@op(check=check_square, costly=True)
def det(x: Tensor) -> Tensor:
    """Determinant of square matrices.

    Returns:
        A tensor of ``x``'s shape without the last two dimensions.

    Raises:
        ShapeError: matrices that are not square.

    Gradient:
        The cofactors, also of singular matrices: ``g * adjugate(x)^H`` (Jacobi's formula).

    Examples:
        >>> x = np.array([[2.0, 1.0], [0.0, 1.0]])
        >>> print(ops.det(x))
        2.0
        >>> print(gradops.grad(lambda x: ops.det(x))(x))
        [[ 1.  0.]
         [-1.  2.]]
    """
    ...


@op(public=False, check=check_square)
def adjugate(x: Tensor) -> Tensor:
    """Adjugate matrix: ``det(x) * inv(x)``, and its limit where ``x`` is singular.

    Returns:
        A tensor of ``x``'s shape.

    Raises:
        ShapeError: matrices that are not square.

    Gradient:
        By products of singular values in the basis of the singular vectors, without division.
    """
    u, s, vh = svd(x)
    zero = equal(s, 0)
    logs = log(where(zero, 1.0, s))
    zeros = cast(zero, "int64")
    other_zeros = subtract(sum(zeros, -1, True), zeros)
    others = where(equal(other_zeros, 0), exp(subtract(sum(logs, -1, True), logs)), 0.0)
    turn = multiply(det(u), det(vh))
    scaled = multiply(adjoint(vh), expand_dims(multiply(expand_dims(turn, -1), others), -2))
    return matmul(scaled, adjoint(u))


@op(check=check_square, costly=True)
def slogdet(x: Tensor) -> tuple:
    """Sign and logarithm of the absolute value of the determinant, where the determinant itself may overflow.

    Returns:
        A pair of tensors of ``x``'s shape without the last two dimensions: the sign (of modulus 1, complex for
        complex matrices; 0 for singular ones) and the real logarithm (``-inf`` for singular ones).

    Raises:
        ShapeError: matrices that are not square.

    Gradient:
        ``g * inv(x)^H`` of the logarithm; of the sign only for complex matrices. NaN for singular ones.

    Examples:
        >>> x = np.array([[2.0, 1.0], [0.0, 1.0]])
        >>> print(ops.slogdet(x)[1].round(4))
        0.6931
        >>> print(gradops.grad(lambda x: ops.slogdet(x)[1])(x))
        [[ 0.5  0. ]
         [-0.5  1. ]]
    """
    ...


@op(check=check_square)
def logdet(x: Tensor) -> Tensor:
    """Logarithm of the absolute value of the determinant; of positive definite matrices, of the determinant itself.

    Returns:
        A real tensor of ``x``'s shape without the last two dimensions; ``-inf`` for singular matrices.

    Raises:
        ShapeError: matrices that are not square.

    Gradient:
        ``g * inv(x)^H``.

    Examples:
        >>> x = np.array([[2.0, 1.0], [0.0, 1.0]])
        >>> print(ops.logdet(x).round(4))
        0.6931
        >>> print(gradops.grad(lambda x: ops.logdet(x))(x))
        [[ 0.5  0. ]
         [-0.5  1. ]]
    """
    return slogdet(x)[1]
