"""TensorFlow kernels: linear algebra, with tf.linalg."""

import builtins
import math

import numpy as np
import tensorflow as tf

from .. import _shared
from .base import cast, dtype_name, floats, promoted

_matrix = _shared.in_full_precision(floats, cast, dtype_name)
_system = _shared.system_in_full_precision(floats, promoted, cast, dtype_name)


def _refuse(condition, message) -> None:
    """Raise if a 0-d bool tensor is true, where its value is known."""
    if tf.executing_eagerly() and bool(condition):
        raise ValueError(message)


def _symmetric(x):
    """``x`` with its small asymmetries averaged out."""
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
    singular = tf.equal(tf.linalg.det(tf.stop_gradient(x)), 0)
    if tf.executing_eagerly() and not tf.reduce_any(singular):
        return _det(x)
    return tf.where(singular, _expanded_det(x), _det(_regular_ones(x, singular)))  # a graph does not know, and has both


@tf.custom_gradient
def _det(x):
    """The determinant; TensorFlow's own gradient lacks a conjugate. NaN for singular matrices."""

    def gradient(g):
        y = _det(x)
        return (g * tf.math.conj(y))[..., None, None] * _inverse_adjoint(x, tf.equal(y, 0))

    return tf.linalg.det(x), gradient


def _regular_ones(x, singular):
    """``x`` with the identity for singular matrices."""
    return tf.where(singular[..., None, None], tf.eye(x.shape[-1], dtype=x.dtype), x)


def _inverse_adjoint(x, singular):
    inverse = tf.linalg.inv(_regular_ones(x, singular), adjoint=True)
    return tf.where(singular[..., None, None], tf.cast(float("nan"), x.dtype), inverse)


def _expanded_det(x):
    """The determinant up to second order around ``x``, in the basis of its singular vectors, which is a constant.

    There a matrix is diagonal, and its determinant the product of the diagonal, less the pairs of elements across from
    each other times the rest of the diagonal: its gradient is right where the matrix is singular.
    """
    s, u, v = tf.linalg.svd(tf.stop_gradient(x))
    turn = tf.linalg.det(u) * tf.math.conj(tf.linalg.det(v))
    inner = tf.linalg.matmul(tf.linalg.matmul(u, x, adjoint_a=True), v)
    diagonal = tf.unstack(tf.linalg.diag_part(inner), axis=-1)
    zero = tf.equal(s, 0)
    parts = tf.cast(zero, s.dtype), tf.math.log(tf.where(zero, tf.ones_like(s), s))
    zeros, logs = (tf.reduce_sum(v, -1)[..., None, None] - v[..., None, :] - v[..., :, None] for v in parts)
    others = tf.where(tf.equal(zeros, 0), tf.exp(logs), tf.zeros_like(logs))
    upper, lower = tf.linalg.band_part(inner, 0, -1), tf.linalg.band_part(inner, -1, 0)
    pairs = tf.linalg.set_diag(upper * tf.linalg.matrix_transpose(lower), tf.zeros_like(inner[..., 0]))
    return turn * (math.prod(diagonal) - tf.reduce_sum(pairs * tf.cast(others, x.dtype), (-2, -1)))


@_matrix
def slogdet(x):
    return tuple(_slogdet(x))


@tf.custom_gradient
def _slogdet(x):
    """Sign and logarithm; TensorFlow's own gradient is another one for complex matrices."""

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
    """The pseudo-inverse by singular values, with Golub & Pereyra's derivative: theirs is wrong at equal ones."""

    @tf.custom_gradient
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


# TensorFlow's own derivatives of vectors add 1e-20 to the squares of gaps between values: those of matrices with small
# elements, or with gaps below 1e-9, would be others. These are the rules of the tape.


@_matrix
def eig(x):
    return tuple(_eig(_finite(x)))


@tf.custom_gradient
def _eig(x):
    def gradient(g_w, g_v):
        w, v = _eig(x)
        vh = tf.linalg.adjoint(v)
        inner = vh @ g_v
        lengths = tf.cast(tf.math.real(tf.linalg.diag_part(inner)), v.dtype)
        inner -= vh @ (v * lengths[..., None, :])
        inner = inner * tf.math.conj(_inverse_gaps(w)) + tf.linalg.diag(g_w)
        y = tf.linalg.solve(vh, inner @ vh)
        return y if x.dtype.is_complex else tf.math.real(y)

    return tuple(tf.linalg.eig(x)), gradient


@_matrix
def eigh(x):
    w, v = _eigh(_symmetric(_finite(x)))
    return tf.math.real(w), v


@tf.custom_gradient
def _eigh(x):
    def gradient(g_w, g_v):
        w, v = _eigh(x)
        vh = tf.linalg.adjoint(v)
        y = v @ ((vh @ g_v) * _inverse_gaps(w) + tf.linalg.diag(g_w)) @ vh
        return (y + tf.linalg.adjoint(y)) / 2

    return tuple(tf.linalg.eigh(x)), gradient


def _inverse_gaps(w):
    """``1 / (w_j - w_i)`` at row i and column j, 0 where the two count as equal."""
    gaps = w[..., None, :] - w[..., None]
    largest = tf.reduce_max(tf.abs(w), -1, keepdims=True)[..., None]
    apart = tf.abs(gaps) > 10 * float(np.finfo(w.dtype.as_numpy_dtype).eps) * largest
    return tf.math.divide_no_nan(tf.cast(apart, w.dtype), gaps)


@_matrix
def lu_factor(x):
    if x.shape[-2] != x.shape[-1] or x.dtype.is_complex:
        return _eliminate(x)
    try:
        y, order = _lu(x)
    except tf.errors.InvalidArgumentError:  # singular
        return _eliminate(x)
    return y, _pivots(order)


@tf.custom_gradient
def _lu(x):
    """Real square factors and the order of the rows, with the derivative that TensorFlow lacks (de Hoog et al.)."""

    def gradient(g, _):
        if 0 in x.shape:
            return tf.zeros_like(x)
        y = _lu(x)[0]
        lower = tf.linalg.set_diag(tf.linalg.band_part(y, -1, 0), tf.ones_like(y[..., 0]))
        upper = tf.linalg.band_part(y, 0, -1)
        below = tf.linalg.matmul(lower, _below(g), transpose_a=True)
        above = tf.linalg.matmul(tf.linalg.band_part(g, 0, -1), upper, transpose_b=True)
        inner = _below(below) + tf.linalg.band_part(above, 0, -1)
        inner = tf.linalg.triangular_solve(lower, inner, adjoint=True)
        inner = tf.linalg.triangular_solve(upper, tf.linalg.matrix_transpose(inner), lower=False)
        inner = tf.linalg.matrix_transpose(inner)
        return tf.gather(inner, tf.argsort(order), axis=-2, batch_dims=x.shape.rank - 2)

    y, order = tf.linalg.lu(x, tf.int64)
    return (y, order), gradient


def _below(x):
    return x - tf.linalg.band_part(x, 0, -1)


def _pivots(order):
    """The exchanges that make a permutation of rows, one after the other."""
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
    """Elimination with partial pivoting, column by column, where ``tf.linalg.lu`` refuses or pivots otherwise.

    LAPACK, and so every other library, compares complex numbers by the sum of their parts' absolute values.
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
        return _singular_values(_finite(x))
    s, u, v = _svd(_finite(x), full_matrices)
    return u, s, tf.linalg.adjoint(v)


@tf.custom_gradient
def _singular_values(x):
    def gradient(g):
        _, u, v = _svd(x, False)
        return u @ (tf.cast(g, x.dtype)[..., None] * tf.linalg.adjoint(v))

    return tf.linalg.svd(x, compute_uv=False), gradient


def _svd(x, full_matrices):
    """``tf.linalg.svd`` by Wan & Zhang's derivative (2019): of complex matrices its own second one is wrong, too."""

    @tf.custom_gradient
    def factors(x):
        def gradient(g_s, g_u, g_v):
            s, u, v = _svd(x, full_matrices)
            rank = tf.shape(s)[-1] if s.shape[-1] is None else s.shape[-1]
            (u, g_u), (v, g_v) = _own_span(u, g_u, rank), _own_span(v, g_v, rank)
            vh = tf.linalg.adjoint(v)
            u_part, v_part = tf.linalg.adjoint(u) @ g_u, vh @ g_v
            row, column = s[..., None, :], s[..., None]
            rounding = 10 * float(np.finfo(s.dtype.as_numpy_dtype).eps) * tf.reduce_max(s, -1, keepdims=True)
            inverse = tf.math.divide_no_nan(tf.cast(s > rounding, s.dtype), s)
            gaps = tf.math.divide_no_nan(_inverse_gaps(s), row + column)
            inner = (u_part - tf.linalg.adjoint(u_part)) * tf.cast(gaps * row, x.dtype)
            inner += (v_part - tf.linalg.adjoint(v_part)) * tf.cast(gaps * column, x.dtype)
            if x.dtype.is_complex:
                phases = tf.math.imag(tf.linalg.diag_part(u_part)) - tf.math.imag(tf.linalg.diag_part(v_part))
                g_s = tf.complex(g_s, phases * inverse / 2)
            inner += tf.linalg.diag(g_s)
            y = u @ inner @ vh
            scale = tf.cast(inverse, x.dtype)[..., None, :]
            beside = g_u * scale
            y += (beside - u @ (tf.linalg.adjoint(u) @ beside)) @ vh
            beside = tf.linalg.adjoint(g_v * scale)
            return y + u @ (beside - (beside @ v) @ vh)

        return tuple(tf.linalg.svd(x, full_matrices=full_matrices)), gradient

    return factors(x)


def _own_span(q, g, rank):
    """The first ``rank`` columns, and their gradient with the part of the others' that concerns their span."""
    first, rest = q[..., :rank], q[..., rank:]
    return first, g[..., :rank] - rest @ (tf.linalg.adjoint(g[..., rank:]) @ first)
