"""TensorFlow kernels: linear algebra, with tf.linalg."""

import builtins
import math

import numpy as np
import tensorflow as tf

from .. import _shared
from . import _private
from .base import cast, dtype_name, floats, promoted

_matrix = _shared.full_precision(floats, cast, dtype_name)
_system = _shared.system_in_full_precision(floats, promoted, cast, dtype_name)


def _refuse(condition, message) -> None:
    """Raise if a 0-d bool tensor is true and its value is known."""
    if tf.executing_eagerly() and bool(condition):
        raise ValueError(message)


def _symmetric(x):
    """Make ``x`` exactly symmetric by averaging small asymmetries; raises for large ones."""
    difference = x - tf.linalg.adjoint(x)
    if tf.executing_eagerly() and tf.size(x) > 0:
        allowed = _shared.ASYMMETRY * tf.reduce_max(tf.abs(x), [-2, -1])
        far = tf.reduce_max(tf.abs(difference), [-2, -1]) > allowed
        _refuse(tf.reduce_any(far), _shared.NOT_SYMMETRIC)
    return x - difference / 2


def _is_finite(x):
    parts = (tf.math.real(x), tf.math.imag(x)) if x.dtype.is_complex else (x,)
    return tf.reduce_all([tf.reduce_all(tf.math.is_finite(part)) for part in parts])


def _finite(x):
    _refuse(tf.logical_not(_is_finite(x)), _shared.NOT_FINITE)
    return x


def _regular(function, *arguments):
    try:
        y = function(*arguments)
    except tf.errors.InvalidArgumentError:
        if all(_is_finite(x) for x in arguments):
            raise ValueError(_shared.SINGULAR) from None
        return tf.zeros_like(arguments[-1]) * float("nan")
    if tf.executing_eagerly() and not _is_finite(y):
        _refuse(tf.reduce_all([_is_finite(x) for x in arguments]), _shared.SINGULAR)
    return y


@_matrix
def cholesky(x, upper=False):
    x = _symmetric(x)
    try:
        y = tf.linalg.cholesky(x)
    except tf.errors.InvalidArgumentError:
        raise ValueError(_shared.NOT_POSITIVE_DEFINITE) from None
    _refuse(tf.logical_not(_is_finite(y)), _shared.NOT_POSITIVE_DEFINITE)
    return tf.linalg.adjoint(y) if upper else y


@_matrix
def det(x):
    if 0 in x.shape:
        return _det(x)
    data = tf.stop_gradient(x)
    small = float(np.finfo(x.dtype.as_numpy_dtype).eps) ** 0.25  # below it, third derivatives lose all digits
    size, bound = tf.abs(tf.linalg.det(data)), tf.reduce_prod(tf.norm(tf.abs(data), axis=-1), -1)
    if tf.executing_eagerly() and tf.reduce_all(size > small * bound):
        return _det(x)
    s = tf.linalg.svd(tf.where(tf.math.is_finite(tf.abs(data)), data, tf.zeros_like(data)), compute_uv=False)
    singular = s[..., -1] <= small * s[..., 0]
    if tf.executing_eagerly() and not tf.reduce_any(singular):
        return _det(x)
    return tf.where(singular, _expanded_det(x), _det(_regular_ones(x, singular)))  # graphs compute both


@_private.custom_gradient
def _det(x):
    """The determinant, with a NaN gradient for singular matrices; TensorFlow's own gradient lacks a conjugate."""

    def gradient(g):
        y = _det(x)
        return (g * tf.math.conj(y))[..., None, None] * _inverse_adjoint(x, tf.equal(y, 0))

    return tf.linalg.det(x), gradient


def _regular_ones(x, singular):
    """``x`` with singular matrices replaced by the identity."""
    return tf.where(singular[..., None, None], tf.eye(x.shape[-1], dtype=x.dtype), x)


def _inverse_adjoint(x, singular):
    inverse = tf.linalg.inv(_regular_ones(x, singular), adjoint=True)
    return tf.where(singular[..., None, None], tf.cast(float("nan"), x.dtype), inverse)


def _expanded_det(x):
    """The determinant as a polynomial (Bird 2011), whose gradient is correct for singular matrices.

    The matrix is diagonal in the basis of its singular vectors, which are taken as constants, so nothing cancels.
    """
    _, u, v = tf.linalg.svd(tf.stop_gradient(x))
    inner = tf.linalg.matmul(tf.linalg.matmul(u, x, adjoint_a=True), v)
    y, n = inner, x.shape[-1]
    for _ in range(n - 1):
        after = tf.cumsum(tf.linalg.diag_part(y), -1, exclusive=True, reverse=True)
        y = tf.linalg.set_diag(tf.linalg.band_part(y, 0, -1), -after) @ inner
    return tf.linalg.det(u) * tf.math.conj(tf.linalg.det(v)) * y[..., 0, 0] * (-1) ** (n - 1)


@_matrix
def slogdet(x):
    return tuple(_slogdet(x))


@_private.custom_gradient
def _slogdet(x):
    """Sign and logarithm of the determinant; TensorFlow's own gradient is wrong for complex matrices."""

    def gradient(g_sign, g_log):
        factor = tf.cast(g_log, x.dtype)
        if x.dtype.is_complex:
            turn = tf.math.imag(tf.math.conj(g_sign) * _slogdet(x)[0])
            factor -= tf.complex(tf.zeros_like(turn), turn)
        return factor[..., None, None] * _inverse_adjoint(x, tf.equal(sign, 0))

    sign, log = tf.linalg.slogdet(x)
    return (sign, tf.math.real(log)), gradient


@_matrix
def inv(x):
    return _regular(tf.linalg.inv, x)


@_matrix
def expm(x):
    return tf.linalg.expm(x)


@_matrix
def pinv(x, rcond=None):
    if rcond is None:
        rcond = builtins.max(x.shape[-2:]) * float(np.finfo(x.dtype.as_numpy_dtype).eps)
    return _pinv(_finite(x), rcond)


def _pinv(x, rcond):
    """The pseudo-inverse by SVD with Golub and Pereyra's derivative.

    TensorFlow's is wrong for equal singular values.
    """

    @_private.custom_gradient
    def inverse(x):
        def gradient(g):
            y = _pinv(x, rcond)
            yh, gh = tf.linalg.adjoint(y), tf.linalg.adjoint(g)
            right, left = gh @ y @ yh, yh @ y @ gh
            return -(yh @ g @ yh) + right - x @ (y @ right) + left - (left @ y) @ x

        s, u, v = tf.linalg.svd(x)
        large = s > rcond * s[..., :1]
        s = tf.where(large, 1 / tf.where(large, s, tf.ones_like(s)), tf.zeros_like(s))
        return (v * tf.cast(s, x.dtype)[..., None, :]) @ tf.linalg.adjoint(u), gradient

    return inverse(x)


@_system
def solve(a, b):
    return _regular(tf.linalg.solve, *_same_batch(a, b))


def _same_batch(a, b):
    batch = tf.broadcast_dynamic_shape(tf.shape(a)[:-2], tf.shape(b)[:-2])
    if a.shape[:-2] == b.shape[:-2]:
        return a, b
    return tuple(tf.broadcast_to(x, tf.concat([batch, tf.shape(x)[-2:]], 0)) for x in (a, b))


@_system
def solve_triangular(a, b, lower=False):
    _refuse(tf.reduce_any(tf.linalg.diag_part(a) == 0), _shared.SINGULAR)
    return tf.linalg.triangular_solve(*_same_batch(a, b), lower=lower)


@_matrix
def eig(x):
    return tuple(tf.linalg.eig(_finite(x)))


@_matrix
def eigh(x):
    w, v = tf.linalg.eigh(_symmetric(_finite(x)))
    return tf.math.real(w), v


def undefined(t, at, scale):
    """See :func:`gradops.ops.decompositions.undefined`."""
    rounding = 1e3 * float(np.finfo(t.dtype.as_numpy_dtype).eps) * tf.reduce_max(tf.abs(scale), [-2, -1], keepdims=True)
    return _nan(t, at & ~((tf.abs(t) <= rounding) & (t != 0)))


def crease(t, x, at):
    """See :func:`gradops.ops.decompositions.crease`."""
    return _nan(x - tf.stop_gradient(x), at)


def _nan(t, at):
    """NaN for nonzero elements; ``mul_no_nan(nan, 0)`` is 0, and so is its derivative in a direction of 0."""
    return tf.raw_ops.MulNoNan(x=tf.constant(math.nan, t.dtype), y=tf.where(at, t, tf.zeros_like(t)))


@_matrix
def lu_factor(x):
    if x.shape[-2] != x.shape[-1] or x.dtype.is_complex:
        return _eliminate(x)
    try:
        y, order = _lu(x)
    except tf.errors.InvalidArgumentError:  # singular
        return _eliminate(x)
    return y, _pivots(order)


@_private.custom_gradient
def _lu(x):
    """LU factors and row order of real square matrices, with the derivative that TensorFlow lacks (de Hoog et al.)."""

    def gradient(g, _):
        if 0 in x.shape:
            return tf.zeros_like(x)
        y = _lu(x)[0]
        lower = tf.linalg.set_diag(tf.linalg.band_part(y, -1, 0), tf.ones_like(y[..., 0]))
        upper = tf.linalg.band_part(y, 0, -1)
        below = tf.linalg.matmul(lower, _strict_lower(g), transpose_a=True)
        above = tf.linalg.matmul(tf.linalg.band_part(g, 0, -1), upper, transpose_b=True)
        inner = _strict_lower(below) + tf.linalg.band_part(above, 0, -1)
        inner = tf.linalg.triangular_solve(lower, inner, adjoint=True)
        inner = tf.linalg.triangular_solve(upper, tf.linalg.matrix_transpose(inner), lower=False)
        inner = tf.linalg.matrix_transpose(inner)
        return tf.gather(inner, tf.argsort(order), axis=-2, batch_dims=x.shape.rank - 2)

    y, order = tf.linalg.lu(x, tf.int64)
    return (y, order), gradient


def _strict_lower(x):
    return x - tf.linalg.band_part(x, 0, -1)


def _pivots(order):
    """The row exchanges, in sequence, that produce a permutation of rows."""
    count = order.shape[-1]
    place = tf.range(count, dtype=tf.int64)
    rows, pivots = tf.broadcast_to(place, tf.shape(order)), []
    for k in range(count):
        found = tf.argmax(tf.cast(rows == order[..., k : k + 1], tf.int8), -1)[..., None]
        pivots.append(found)
        rows = tf.where(place == found, rows[..., k : k + 1], rows)
        rows = tf.where(place == k, order[..., k : k + 1], rows)
    return tf.concat(pivots, -1) if pivots else tf.zeros(order.shape, tf.int64)


def _eliminate(x):
    """Elimination with partial pivoting, column by column, where ``tf.linalg.lu`` fails or pivots differently.

    LAPACK, and so every other library, compares complex numbers by ``abs(real) + abs(imag)``.
    """
    batch = x.shape.rank - 2
    rows, columns = x.shape[-2:]
    row, column = tf.range(rows, dtype=tf.int64), tf.range(columns, dtype=tf.int64)
    pivots = []
    for k in range(builtins.min(rows, columns)):
        size = tf.abs(tf.math.real(x[..., k])) + tf.abs(tf.math.imag(x[..., k]))
        size = tf.where(row >= k, size, -1)
        found = tf.argmax(size, -1)[..., None]
        pivots.append(found)
        exchanged = tf.where(row == k, found, tf.where(row == found, tf.constant(k, tf.int64), row))
        x = tf.gather(x, exchanged, axis=-2, batch_dims=batch)
        pivot = x[..., k : k + 1, k]
        safe = tf.where(pivot == 0, tf.ones_like(pivot), pivot)
        factors = tf.where((row > k) & (pivot != 0), x[..., k] / safe, tf.zeros_like(x[..., k]))[..., None]
        below = (row > k)[:, None]
        taken = tf.where(below & (column > k), factors * x[..., k : k + 1, :], 0)
        x = tf.where(below & (column == k), factors, x - taken)
    if not pivots:
        return x, tf.zeros((*x.shape[:-2], 0), tf.int64)
    return x, tf.concat(pivots, -1)


@_matrix
def qr(x, mode="reduced"):
    return tuple(tf.linalg.qr(x, full_matrices=mode == "complete"))


@_matrix
def svd(x, full_matrices=True, compute_uv=True):
    if not compute_uv:
        return tf.linalg.svd(_finite(x), compute_uv=False)
    s, u, v = tf.linalg.svd(_finite(x), full_matrices=full_matrices)
    return u, s, tf.linalg.adjoint(v)
