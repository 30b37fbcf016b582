"""Linear systems, inverses and exponentials of matrices in the last two dimensions."""

from __future__ import annotations

from ..annotations import Integer, Tensor
from ._checks import integer
from ._compose import as_float, promoted
from ._dispatch import op
from ._matrices import (
    adjoint,
    check_matrix,
    check_square,
    check_square_system,
    check_system,
    columns,
    epsilon,
    identity_like,
    is_vector,
    power_of,
)
from .conversion import cast, shape
from .decompositions import svd
from .elementwise import divide, greater, multiply
from .indexing import where
from .products import matmul
from .properties import is_empty, is_tensor
from .reductions import max, sum
from .shaping import expand_dims, squeeze

__family__ = """Inverses and functions of matrices.

Matrices are the last two dimensions; those before are a batch.

See Also:
    :func:`solve`, which is more accurate than a product with an inverse; :func:`det`, :func:`cholesky`,
    :func:`exp`.
"""


@op(check=check_square, costly=True)
def inv(x: Tensor) -> Tensor:
    """Inverse of square matrices.

    Returns:
        A tensor of ``x``'s shape; integers give ``floatx``.

    Raises:
        ShapeError: matrices that are not square.
        ArgumentError: singular matrices (inside JAX's traces, where values are unknown, the result is infinite).

    Gradient:
        ``-y^H g y^H``.

    Examples:
        >>> x = np.array([[2.0, 1.0], [0.0, 1.0]])
        >>> print(ops.inv(x))
        [[ 0.5 -0.5]
         [ 0.   1. ]]
        >>> print(gradops.grad(lambda x: ops.trace(ops.inv(x)))(x))
        [[-0.25 -0.  ]
         [ 0.75 -1.  ]]
    """
    ...


@op(check=check_square, costly=True)
def expm(x: Tensor) -> Tensor:
    """Exponential of square matrices, ``I + x + x @ x / 2 + ...``.

    Returns:
        A tensor of ``x``'s shape; integers give ``floatx``.

    Raises:
        ShapeError: matrices that are not square.

    Gradient:
        The upper right block of the exponential of the matrix with ``x^H`` in both
        diagonal blocks and ``g`` in the upper right (Al-Mohy & Higham 2009).

    Examples:
        >>> x = np.array([[0.0, 1.0], [0.0, 0.0]])
        >>> print(ops.expm(x))
        [[1. 1.]
         [0. 1.]]
        >>> print(gradops.grad(lambda x: ops.trace(ops.expm(x)))(x))
        [[1. 0.]
         [1. 1.]]
    """
    ...


def _check_power(op, x, n):
    check_square(op, x)
    integer(op.name, n, "n")


@op(check=_check_power)
def matrix_power(x: Tensor, n: Integer) -> Tensor:
    """Power of square matrices, by repeated squaring; for a negative exponent, of the inverse.

    Args:
        n: the exponent; 0 gives identity matrices.

    Returns:
        A tensor of ``x``'s shape and dtype; integers with a negative exponent give ``floatx``.

    Raises:
        ShapeError: matrices that are not square.
        ArgumentTypeError: an exponent that is not an integer.
        ArgumentError: a negative power of singular matrices, as in :func:`inv`.

    Gradient:
        Through the products.

    Examples:
        >>> x = np.array([[2.0, 1.0], [0.0, 1.0]])
        >>> print(ops.matrix_power(x, 3))
        [[8. 7.]
         [0. 1.]]
        >>> print(gradops.grad(lambda x: ops.trace(ops.matrix_power(x, 3)))(x))
        [[12.  0.]
         [ 9.  3.]]
    """
    return power_of(inv(x), -n) if n < 0 else power_of(x, n)


@op(check=check_matrix)
def pinv(x: Tensor, rcond: float | None = None) -> Tensor:
    """Pseudo-inverse of matrices (Moore-Penrose).

    Args:
        rcond: singular values up to this fraction of the largest count as 0; by default the dtype's precision
            times the larger size.

    Returns:
        A tensor with the last two dimensions exchanged; integers give ``floatx``.

    Raises:
        ShapeError: fewer than two dimensions.
        ArgumentError: NaN or infinite elements.

    Gradient:
        At constant rank: ``-y^H g y^H + (1 - x y) g^H y y^H + y^H y g^H (1 - y x)`` (Golub & Pereyra 1973).

    Examples:
        >>> x = np.array([[2.0], [1.0]])
        >>> print(ops.pinv(x).round(4))
        [[0.4 0.2]]
        >>> print(gradops.grad(lambda x: ops.pinv(x)[0, 0])(x).round(4))
        [[-0.12]
         [-0.16]]
    """
    x = as_float(x)
    u, s, vh = svd(x, False)
    if is_empty(shape(s)):
        return matmul(adjoint(vh), adjoint(u))
    share = epsilon(x) * _larger(x) if rcond is None else rcond
    cut = multiply(max(s, -1, True), expand_dims(share, -1) if is_tensor(share) and len(shape(share)) else share)
    large = greater(s, cut)
    inverse = where(large, divide(1.0, where(large, s, 1.0)), 0.0)
    return matmul(multiply(adjoint(vh), expand_dims(inverse, -2)), adjoint(u))


def _larger(x) -> int:
    rows, columns_ = shape(x)[-2:]
    return rows if rows > columns_ else columns_


@op(differentiable=False, check=check_matrix)
def matrix_rank(x: Tensor, tol: float | None = None) -> Tensor:
    """Number of singular values that are not 0.

    Args:
        tol: singular values up to it count as 0; by default the dtype's precision times the larger size times
            the largest singular value.

    Returns:
        An int64 tensor of ``x``'s shape without the last two dimensions. It has no gradient.

    Raises:
        ShapeError: fewer than two dimensions.
    """
    x = as_float(x)
    s = svd(x, False, False)
    if is_empty(shape(s)):
        return sum(cast(greater(s, 0), "int64"), -1)
    cut = multiply(max(s, -1, True), epsilon(x) * _larger(x)) if tol is None else tol
    return sum(cast(greater(s, cut), "int64"), -1)


@op(check=check_square)
def cholesky_inverse(x: Tensor, upper: bool = False) -> Tensor:
    """Inverse of matrices given by their Cholesky factor ``x``: of ``x @ x^H``, or if ``upper``, of ``x^H @ x``.

    Args:
        upper: whether ``x`` is the upper factor.

    Returns:
        A symmetric (Hermitian) tensor of ``x``'s shape.

    Raises:
        ShapeError: matrices that are not square.
        ArgumentError: a 0 on the diagonal.

    Gradient:
        Through the triangular solve.

    Examples:
        >>> x = np.array([[2.0, 0.0], [1.0, 1.0]])
        >>> print(ops.cholesky_inverse(x))
        [[ 0.5 -0.5]
         [-0.5  1. ]]
        >>> print(gradops.grad(lambda x: ops.cholesky_inverse(x)[0, 0])(x))
        [[-0.5 -0. ]
         [ 0.5 -0.5]]
    """
    x = as_float(x)
    inverse = solve_triangular(x, identity_like(x), not upper)
    return matmul(inverse, adjoint(inverse)) if upper else matmul(adjoint(inverse), inverse)


__family__ = """Linear systems.

Matrices are the last two dimensions; those before are a batch.

See Also:
    :func:`inv`, :func:`cholesky`, :func:`qr`, :func:`matmul`.
"""


@op(check=check_square_system, linear=("b",), costly=True)
def solve(a: Tensor, b: Tensor) -> Tensor:
    """Solution ``x`` of ``a @ x = b``.

    Args:
        a: square matrices (..., n, n).
        b: a vector (n,), vectors (..., n) for as many matrices, or right sides as columns (..., n, k).

    Returns:
        A tensor of ``b``'s kind, other dimensions broadcast; integers give ``floatx``.

    Raises:
        ShapeError: matrices that are not square; rows that do not fit.
        ArgumentError: singular matrices (inside JAX's traces the result is infinite).

    Gradient:
        ``a^-H g`` to ``b``, and minus its product with ``x^H`` to ``a`` (Giles 2008).

    Examples:
        Derivatives of the solution of a linear system by its right side, and by its matrix:

        >>> import numpy as np
        >>> import gradops
        >>> from gradops import ops
        >>> a, b = np.array([[2.0, 0.0], [1.0, 4.0]]), np.array([2.0, 9.0])
        >>> print(ops.solve(a, b))
        [1. 2.]
        >>> for gradient in gradops.grad(lambda a, b: ops.sum(ops.solve(a, b)), (0, 1))(a, b):
        ...     print(gradient)
        [[-0.375 -0.75 ]
         [-0.25  -0.5  ]]
        [0.375 0.25 ]

    See Also:
        :func:`solve_triangular`, :func:`lstsq`, :func:`cholesky`.
    """
    ...


@op(check=check_square_system, linear=("b",), costly=True)
def solve_triangular(a: Tensor, b: Tensor, lower: bool = False) -> Tensor:
    """Solution ``x`` of ``a @ x = b`` for triangular ``a``; the other triangle is not read.

    Args:
        a: square matrices (..., n, n).
        b: a vector (n,), vectors (..., n) for as many matrices, or right sides as columns (..., n, k).
        lower: read ``a`` as lower triangular, else as upper.

    Returns:
        A tensor of ``b``'s kind, other dimensions broadcast; integers give ``floatx``.

    Raises:
        ShapeError: matrices that are not square; rows that do not fit.
        ArgumentError: a 0 on the diagonal (inside JAX's and TensorFlow's traces the result is infinite).

    Gradient:
        As in :func:`solve`, in ``a``'s triangle (Giles 2008).

    Examples:
        >>> b = np.array([3.0, 2.0])
        >>> print(ops.solve_triangular([[2.0, 1.0], [0.0, 1.0]], b))
        [0.5 2. ]
        >>> print(gradops.grad(lambda b: ops.solve_triangular([[2.0, 1.0], [0.0, 1.0]], b)[0])(b))
        [ 0.5 -0.5]
    """
    ...


@op(check=check_system)
def lstsq(a: Tensor, b: Tensor, rcond: float | None = None) -> Tensor:
    """Least-squares solution: the ``x`` that minimises the norm of ``a @ x - b``; of several, the one of least norm.

    Args:
        a: matrices (..., m, n) of any rank.
        b: a vector (m,), vectors (..., m) for as many matrices, or right sides as columns (..., m, k).
        rcond: as in :func:`pinv`.

    Returns:
        A tensor of ``b``'s kind, other dimensions broadcast; integers give ``floatx``.

    Raises:
        ShapeError: rows that do not fit.

    Gradient:
        Through :func:`pinv` (Golub & Pereyra 1973).

    Examples:
        >>> b = np.array([1.0, 2.0, 4.0])
        >>> print(ops.lstsq([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]], b).round(4))
        [0.8333 1.5   ]
        >>> print(gradops.grad(lambda b: ops.lstsq([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]], b)[1])(b).round(4))
        [-0.5 -0.   0.5]
    """
    a, b = promoted(a, b, floating=True)
    if is_vector(shape(a), shape(b)):
        return squeeze(matmul(pinv(a, rcond), columns(b)), -1)
    return matmul(pinv(a, rcond), b)
