"""Functions of square matrices: exponential, logarithm, roots, powers, trigonometric and hyperbolic functions.

Trigonometric and hyperbolic functions are composed of exponentials; SciPy computes roots and logarithms on the host.
"""

from __future__ import annotations

import warnings

import numpy as np

from ... import _scipy, ops
from ...annotations import Function, Tensor
from ...errors import ShapeError
from ...extend import derivative
from ...extend import op as make_op
from ...ops import _checks
from .._define import composed, family
from .._hosted import register_matrix_kernel
from .._tensors import is_complex, wrong
from ._shared import adjoint, matrices, real_of, square, squared, to_complex
from .equations import sylvester

__all__ = """
coshm cosm expm expm_frechet fractional_matrix_power funm logm signm sinhm sinm sqrtm tanhm tanm
""".split()

exponential = family(
    returns="A tensor of ``A``'s shape.",
    raises="ShapeError: matrices that are not square.",
    gradient="Through exponentials.",
)


@exponential
def expm(A: Tensor) -> Tensor:
    """Exponential of square matrices.

    Gradient:
        The derivative of the exponential at the transposed matrix along the upstream gradient (Al-Mohy & Higham 2009).
    """
    return ops.expm(square(A, "A"))


def _frechet_block(a, e):
    """Return the block matrix with ``a`` in both diagonal blocks and ``e`` in the upper right one."""
    return ops.concatenate([ops.concatenate([a, e], -1), ops.concatenate([ops.zeros_like(a), a], -1)], -2)


@composed
def expm_frechet(A: Tensor, E: Tensor, method=None, compute_expm=True, check_finite=True):
    """Fréchet derivative of the matrix exponential along a direction.

    Args:
        E: the direction, of ``A``'s shape.
        compute_expm: True to also return the exponential, before the derivative.

    Returns:
        Tensors of ``A``'s shape.

    Raises:
        ShapeError: matrices that are not square, or of different shapes.
        ArgumentError: infs or NaNs; an unknown ``method``.

    Gradient:
        As for :func:`expm`, of the block matrix made of ``A`` and ``E``.
    """
    _checks.choice("linalg", method, (None, "SPS", "blockEnlarge"), "method")
    A, E = matrices(check_finite, A=A, E=E)
    n = int(squared(A, "A").shape[-1])
    if tuple(A.shape) != tuple(E.shape):
        raise wrong("E", "have `A`'s shape", f"{tuple(A.shape)} and {tuple(E.shape)}", ShapeError)
    y = ops.expm(_frechet_block(A, E))
    along = y[..., :n, n:]
    return (y[..., :n, :n], along) if compute_expm else along


# Roots and logarithms, by SciPy on the host. A real matrix without a real root or logarithm gives NaN -----------------


def _real(function):
    def of_one(x):
        y = function(x)
        if x.dtype.kind == "c" or y.dtype.kind != "c":
            return y
        near = np.abs(y.imag).max() <= 1e3 * np.finfo(y.dtype).eps * np.abs(y).max()
        return y.real if near else np.full(y.shape, np.nan)

    def called(x):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            wide = x.astype(np.result_type(x.dtype, "float64"))
            ys = [of_one(m) for m in wide.reshape(-1, *x.shape[-2:])]
        return np.stack(ys).astype(x.dtype, copy=False).reshape(x.shape)

    return called


def _logarithm(x):
    """Return SciPy's logarithm and restore NumPy's random state: SciPy's norm estimates draw random numbers."""
    if not np.isfinite(x).all():  # SciPy takes square roots until the matrix is near the identity, so without end
        return np.full(x.shape, np.nan)
    state = np.random.get_state()
    try:
        return _scipy.linalg.logm(x)
    finally:
        np.random.set_state(state)


@make_op(name="scipy.linalg.square_root")
def _root(x: Tensor) -> Tensor:
    """Principal square root of matrices."""


@make_op(name="scipy.linalg.logarithm")
def _log(x: Tensor) -> Tensor:
    """Principal logarithm of matrices."""


register_matrix_kernel(_root, _real(lambda x: _scipy.linalg.sqrtm(x)))
register_matrix_kernel(_log, _real(_logarithm))


def _root_rule(g, y):
    turned = adjoint(y)
    return sylvester(turned, turned, g)


def _log_rule(g, x):
    n = int(x.shape[-1])
    return _log(_frechet_block(adjoint(x), g))[..., :n, n:]


derivative(_root, complex_aware=True, x=_root_rule)
derivative(_log, complex_aware=True, x=_log_rule)


def _principal(function, x):
    """Return the real result for real matrices or, if values are known and there is no real one, the complex result."""
    y = function(x)
    if is_complex(x):
        return y
    values, given = _checks.known(y), _checks.known(x)
    if values is not None and given is not None and np.isnan(values).any() and np.isfinite(given).all():
        return function(to_complex(x))
    return y


@exponential
def sqrtm(A: Tensor, disp=None, blocksize=None) -> Tensor:
    """Principal square root of square matrices: ``y @ y = A``.

    Args:
        disp: accepted and ignored, like ``blocksize``; both are deprecated in SciPy.

    Returns:
        A tensor of ``A``'s shape. A real matrix without a real root gives a complex tensor, or NaN in traced programs,
        where values are not known: pass a complex matrix there.

    Gradient:
        The solution ``z`` of ``y^H z + z y^H = g``.
    """
    return _principal(_root, square(A, "A"))


@exponential
def logm(A: Tensor, disp=None) -> Tensor:
    """Principal logarithm of square matrices: ``expm(y) = A``.

    Args:
        disp: accepted and ignored; deprecated in SciPy.

    Returns:
        A tensor of ``A``'s shape, complex under the same conditions as for :func:`sqrtm`.

    Gradient:
        The derivative of the logarithm at ``A^H`` along ``g``: the upper right block of the logarithm of the block
        matrix with ``A^H`` in both diagonal blocks and ``g`` in the upper right one (Al-Mohy, Higham & Relton 2013).
    """
    return _principal(_log, square(A, "A"))


@exponential
def signm(A: Tensor, disp=None) -> Tensor:
    """Sign of square matrices: each eigenvalue becomes 1 or -1 by the sign of its real part.

    Args:
        disp: accepted and ignored; deprecated in SciPy.

    Returns:
        A tensor of ``A``'s shape; its square is the identity.

    Raises:
        ArgumentError: an eigenvalue of 0.

    Gradient:
        Through ``inv(sqrtm(A @ A)) @ A``.
    """
    A = square(A, "A")
    return ops.solve(_root(ops.matmul(A, A)), A)


@exponential
def fractional_matrix_power(A: Tensor, t: Tensor) -> Tensor:
    """Real power of square matrices.

    Args:
        t: the exponent; a tensor has a derivative.

    Returns:
        A tensor of ``A``'s shape, complex under the same conditions as for :func:`sqrtm`.

    Raises:
        ArgumentError: a negative power of a singular matrix.

    Gradient:
        For integers through products, else through ``expm(t * logm(A))``.
    """
    A = square(A, "A")
    value = None if ops.is_tensor(t) and not isinstance(t, (np.ndarray, np.generic)) else float(t)
    if value is not None and value == int(value):
        return ops.matrix_power(A, int(value))
    exponent = _principal(_log, A)
    return ops.expm(exponent * (ops.cast(t, ops.dtype(exponent)) if value is None else value))


# Trigonometric and hyperbolic functions, by exponentials -----------------------------------------------------------


def _turning(a):
    """Return the cosine and the sine."""
    if not is_complex(a):
        y = ops.expm(to_complex(a) * 1j)
        return ops.cast(ops.real(y), ops.dtype(a)), ops.cast(ops.imag(y), ops.dtype(a))
    y, z = ops.expm(a * 1j), ops.expm(a * -1j)
    return (y + z) * 0.5, (y - z) * -0.5j


def _growing(a):
    """Return the hyperbolic cosine and sine."""
    y, z = ops.expm(a), ops.expm(-a)
    return (y + z) * 0.5, (y - z) * 0.5


@exponential
def cosm(A: Tensor) -> Tensor:
    """Cosine of square matrices."""
    return _turning(square(A, "A"))[0]


@exponential
def sinm(A: Tensor) -> Tensor:
    """Sine of square matrices."""
    return _turning(square(A, "A"))[1]


@exponential
def tanm(A: Tensor) -> Tensor:
    """Tangent of square matrices."""
    return ops.solve(*_turning(square(A, "A")))


@exponential
def coshm(A: Tensor) -> Tensor:
    """Hyperbolic cosine of square matrices."""
    return _growing(square(A, "A"))[0]


@exponential
def sinhm(A: Tensor) -> Tensor:
    """Hyperbolic sine of square matrices."""
    return _growing(square(A, "A"))[1]


@exponential
def tanhm(A: Tensor) -> Tensor:
    """Hyperbolic tangent of square matrices."""
    return ops.solve(*_growing(square(A, "A")))


@composed
def funm(A: Tensor, func: Function, disp=True):
    """Arbitrary function of square matrices that are diagonalisable.

    Args:
        func: an elementwise function of a complex vector of eigenvalues, composed of gradops' ops.
        disp: False to also return an estimate of the error, which is NaN here.

    Returns:
        A tensor of ``A``'s shape. For a real matrix it is real if the imaginary part is 0 up to rounding, and complex
        if values are not known.

    Raises:
        ShapeError: matrices that are not square.
        ArgumentTypeError: ``func`` is not callable.

    Gradient:
        Through the eigenvalues and eigenvectors, as for :func:`eig` (SciPy uses Parlett's recursion instead). NaN at
        repeated eigenvalues. There :func:`expm`, :func:`logm`, :func:`sqrtm`, :func:`fractional_matrix_power` and the
        other named functions have derivatives of every order.
    """
    A = square(A, "A")
    w, v = ops.eig(A)
    y = ops.matmul(v * ops.expand_dims(ops.cast(func(w), ops.dtype(v)), -2), ops.inv(v))
    values = None if is_complex(A) else _checks.known(y)
    if values is not None:
        small = 1e3 * np.finfo(real_of(y)).eps * max(1.0, np.abs(values).max(initial=0.0))
        if np.abs(values.imag).max(initial=0.0) <= small:
            y = ops.cast(ops.real(y), ops.dtype(A))
    return y if disp else (y, float("nan"))
