"""Functions of square matrices."""

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
from .._hosted import of_matrices
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
        The exponential's derivative along the gradient at the transpose (Al-Mohy & Higham 2009).
    """
    return ops.expm(square(A, "A"))


def _beside(a, e):
    """``a`` in both diagonal blocks and ``e`` in the upper right one."""
    return ops.concatenate([ops.concatenate([a, e], -1), ops.concatenate([ops.zeros_like(a), a], -1)], -2)


@composed
def expm_frechet(A: Tensor, E: Tensor, method=None, compute_expm=True, check_finite=True):
    """Derivative of the exponential of square matrices along others.

    Args:
        E: the direction, of ``A``'s shape.
        compute_expm: also give the exponential, before it.

    Returns:
        Tensors of ``A``'s shape.

    Raises:
        ShapeError: matrices that are not square, or of different shapes.
        ArgumentError: infs or NaNs; an unknown ``method``.

    Gradient:
        As of :func:`expm`, of the block matrix that both make.
    """
    _checks.choice("linalg", method, (None, "SPS", "blockEnlarge"), "method")
    A, E = matrices(check_finite, A=A, E=E)
    n = int(squared(A, "A").shape[-1])
    if tuple(A.shape) != tuple(E.shape):
        raise wrong("E", "have `A`'s shape", f"{tuple(A.shape)} and {tuple(E.shape)}", ShapeError)
    y = ops.expm(_beside(A, E))
    along = y[..., :n, n:]
    return (y[..., :n, :n], along) if compute_expm else along


# Roots and logarithms: SciPy's on the host. Of real matrices the real ones, NaN where there is none ------------------


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
    """SciPy's, whose estimates of norms draw random numbers: those of the program are as they were after it."""
    state = np.random.get_state()
    try:
        return _scipy.linalg.logm(x)
    finally:
        np.random.set_state(state)


@make_op(name="scipy.linalg.square_root")
def _root(x: Tensor) -> Tensor:
    """The principal square root."""


@make_op(name="scipy.linalg.logarithm")
def _log(x: Tensor) -> Tensor:
    """The principal logarithm."""


of_matrices(_root, _real(lambda x: _scipy.linalg.sqrtm(x)))
of_matrices(_log, _real(_logarithm))


def _root_rule(g, y):
    turned = adjoint(y)
    return sylvester(turned, turned, g)


def _log_rule(g, x):
    n = int(x.shape[-1])
    return _log(_beside(adjoint(x), g))[..., :n, n:]


derivative(_root, complex_aware=True, x=_root_rule)
derivative(_log, complex_aware=True, x=_log_rule)


def _principal(function, x):
    """The real result of real matrices, and the complex one where there is no other: so far as values are known."""
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
        disp: changes nothing, as ``blocksize``; SciPy gives both up.

    Returns:
        A tensor of ``A``'s shape. Of a real matrix a complex one where there is no real root; where values are not
        known while a program is traced, NaN: pass complex matrices there.

    Gradient:
        The solution ``z`` of ``y^H z + z y^H = g``.
    """
    return _principal(_root, square(A, "A"))


@exponential
def logm(A: Tensor, disp=None) -> Tensor:
    """Principal logarithm of square matrices, of which ``A`` is the exponential.

    Args:
        disp: changes nothing; SciPy gives it up.

    Returns:
        A tensor of ``A``'s shape; complex as of :func:`sqrtm`.

    Gradient:
        The logarithm's derivative along ``g`` at ``A^H``: a block of that of the matrix with ``A^H`` in both diagonal
        blocks and ``g`` beside (Al-Mohy, Higham & Relton 2013).
    """
    return _principal(_log, square(A, "A"))


@exponential
def signm(A: Tensor, disp=None) -> Tensor:
    """Sign of square matrices: 1 or -1 in place of each eigenvalue, by the sign of its real part.

    Args:
        disp: changes nothing; SciPy gives it up.

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
    """Power of square matrices by any real number.

    Args:
        t: the exponent; by a tensor there is a derivative.

    Returns:
        A tensor of ``A``'s shape; complex as of :func:`sqrtm`.

    Raises:
        ArgumentError: a negative power of a singular matrix.

    Gradient:
        Of whole numbers through products, else through ``expm(t * logm(A))``.
    """
    A = square(A, "A")
    value = None if ops.is_tensor(t) and not isinstance(t, (np.ndarray, np.generic)) else float(t)
    if value is not None and value == int(value):
        return ops.matrix_power(A, int(value))
    exponent = _principal(_log, A)
    return ops.expm(exponent * (ops.cast(t, ops.dtype(exponent)) if value is None else value))


# Trigonometric and hyperbolic functions: of exponentials -----------------------------------------------------------


def _turning(a):
    """Cosine and sine."""
    if not is_complex(a):
        y = ops.expm(to_complex(a) * 1j)
        return ops.cast(ops.real(y), ops.dtype(a)), ops.cast(ops.imag(y), ops.dtype(a))
    y, z = ops.expm(a * 1j), ops.expm(a * -1j)
    return (y + z) * 0.5, (y - z) * -0.5j


def _growing(a):
    """Hyperbolic cosine and sine."""
    y, z = ops.expm(a), ops.expm(-a)
    return (y + z) * 0.5, (y - z) * 0.5


@exponential
def cosm(A: Tensor) -> Tensor:
    """Cosine of square matrices."""
    return _turning(square(A, "A"))[0]


@exponential
def sinm(A: Tensor) -> Tensor:
    """Sine of square matrices; else as :func:`cosm`."""
    return _turning(square(A, "A"))[1]


@exponential
def tanm(A: Tensor) -> Tensor:
    """Tangent of square matrices; else as :func:`cosm`."""
    return ops.solve(*_turning(square(A, "A")))


@exponential
def coshm(A: Tensor) -> Tensor:
    """Hyperbolic cosine of square matrices; else as :func:`cosm`."""
    return _growing(square(A, "A"))[0]


@exponential
def sinhm(A: Tensor) -> Tensor:
    """Hyperbolic sine of square matrices; else as :func:`cosm`."""
    return _growing(square(A, "A"))[1]


@exponential
def tanhm(A: Tensor) -> Tensor:
    """Hyperbolic tangent of square matrices; else as :func:`cosm`."""
    return ops.solve(*_growing(square(A, "A")))


@composed
def funm(A: Tensor, func: Function, disp=True):
    """Any function of square matrices that have a basis of eigenvectors.

    Args:
        func: of a complex vector of eigenvalues, made of gradops' ops; elementwise.
        disp: False to also give an estimate of the error, NaN here.

    Returns:
        A tensor of ``A``'s shape: real of a real matrix where the imaginary part is 0 up to rounding, complex where
        values are not known.

    Raises:
        ShapeError: matrices that are not square.
        ArgumentTypeError: a ``func`` that cannot be called.

    Gradient:
        Through the eigenvalues and eigenvectors, as of :func:`eig`, where SciPy has Parlett's recursion. NaN at
        repeated eigenvalues, where :func:`expm`, :func:`logm`, :func:`sqrtm`, :func:`fractional_matrix_power` and the
        other functions here by name have derivatives of every order.
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
