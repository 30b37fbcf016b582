"""Products of arrays, all of ``numpy.linalg``, and ``numpy.fft``."""

from __future__ import annotations

import functools
import operator
import string
from collections.abc import Callable

import numpy as np

from ... import ops
from ...errors import ShapeError
from .. import scipy_functions
from ..reductions import squared
from ._reductions import typed
from ._table import constant, row, shape_of

for _name in ("dot", "inner", "vdot", "kron", "outer"):
    row(_name, getattr(ops, _name), "a b")
row("linalg.outer", ops.outer, "x1 x2")
row("linalg.matmul", ops.matmul, "x1 x2")
row("tensordot", ops.tensordot, "a b axes")
row("linalg.tensordot", ops.tensordot, "x1 x2 axes")
row("cross", ops.cross, "a b axisa axisb axisc axis")
row("linalg.cross", lambda x1, x2, axis=-1: ops.cross(x1, x2, axis=axis))
row("linalg.det", ops.det, "a")
row("linalg.inv", ops.inv, "a")
row("linalg.solve", ops.solve, "a b")
row("linalg.matrix_power", ops.matrix_power, "a n")
row("linalg.norm", ops.norm, "x ord axis keepdims")
row("diagonal", ops.diagonal, "a offset axis1 axis2")
row("linalg.diagonal", lambda x, offset=0: ops.diagonal(x, offset, -2, -1))
row("matrix_transpose linalg.matrix_transpose", lambda x: ops.swapaxes(x, -1, -2))
row("linalg.eigvals", lambda a: _real_where_all_are(ops.eig(a)[:1])[0])
row("linalg.svdvals", lambda x: ops.svd(x, compute_uv=False))


@row("trace")
def _trace(a, offset=0, axis1=0, axis2=1, dtype=None):
    return typed(ops.trace(typed(a, dtype), offset, axis1, axis2), dtype)


@row("linalg.trace")
def _trace_of_last(x, offset=0, dtype=None):
    return typed(ops.trace(typed(x, dtype), offset, -2, -1), dtype)


@row("linalg.vecdot")
def vecdot(x1, x2, axis=-1):
    axis = operator.index(axis)
    if shape_of(x1)[axis] != shape_of(x2)[axis]:
        raise ValueError(f"vecdot of vectors of {shape_of(x1)[axis]} and {shape_of(x2)[axis]} elements")
    products = ops.conj(x1) * x2
    return ops.cast(ops.sum(products, axis), ops.dtype(products))


@row("linalg.vector_norm")
def _vector_norm(x, axis=None, keepdims=False, ord=2):
    if axis is None:
        y = ops.norm(ops.reshape(x, (-1,)), ord)
        return ops.reshape(y, (1,) * len(shape_of(x))) if keepdims else y
    if isinstance(axis, (tuple, list)) and len(axis) > 1:
        rest = [i for i in range(len(shape_of(x))) if i not in {j % len(shape_of(x)) for j in axis}]
        flat = ops.reshape(ops.transpose(x, [*rest, *axis]), (*(shape_of(x)[i] for i in rest), -1))
        y = ops.norm(flat, ord, -1)
        return ops.expand_dims(y, tuple(axis)) if keepdims else y
    return ops.norm(x, ord, axis, keepdims)


@row("linalg.matrix_norm")
def _matrix_norm(x, keepdims=False, ord="fro"):
    return ops.norm(x, ord, (-2, -1), keepdims)


@row("linalg.multi_dot")
def _multi_dot(arrays):
    return functools.reduce(ops.matmul, arrays)


@row("einsum", idle="optimize")
def _einsum(*operands):
    return ops.einsum(*(operands if isinstance(operands[0], str) else _lettered(operands)))


def _lettered(arguments: tuple) -> tuple:
    """Return ``einsum``'s arguments with lists of subscripts replaced by a string."""

    def word(places) -> str:
        return "".join("..." if i is Ellipsis else string.ascii_letters[i] for i in places)

    tensors, places = arguments[: len(arguments) // 2 * 2 : 2], arguments[1::2]
    result = "->" + word(arguments[-1]) if len(arguments) % 2 else ""
    return ",".join(map(word, places)) + result, *tensors


def _hermitian(a, lower: bool = True):
    """Return the Hermitian matrices given by one triangle of ``a``, the only part that NumPy reads."""
    shape = shape_of(a)
    if len(shape) < 2 or shape[-1] != shape[-2]:
        raise ShapeError(f"a Hermitian matrix is square; got shape {shape}.", argument="a")
    rest = ops.tril(a, -1) if lower else ops.triu(a, 1)
    if "complex" not in ops.dtype(a):
        return (ops.tril(a) if lower else ops.triu(a)) + ops.swapaxes(rest, -1, -2)
    return rest + ops.conj(ops.swapaxes(rest, -1, -2)) + ops.real(a) * np.eye(shape[-1])  # the diagonal is real


def _named(kind: str, parts: tuple):
    """Return several results as the named tuple that NumPy returns."""
    found = getattr(getattr(np.linalg, "_linalg", None), kind, None)
    return parts if found is None else found(*parts)


def _lower(UPLO) -> bool:
    if not isinstance(UPLO, str) or UPLO.upper() not in ("L", "U"):
        raise ValueError("UPLO argument must be 'L' or 'U'")
    return UPLO.upper() == "L"


row("linalg.cholesky", lambda a, upper=False: ops.cholesky(_hermitian(a, not upper), upper))


@row("linalg.eigh")
def _eigh(a, UPLO="L"):
    return _named("EighResult", tuple(ops.eigh(_hermitian(a, _lower(UPLO)))))


@row("linalg.eigvalsh")
def _eigvalsh(a, UPLO="L"):
    return ops.eigh(_hermitian(a, _lower(UPLO)))[0]


@row("linalg.eig")
def _eig(a):
    return _named("EigResult", _real_where_all_are(tuple(ops.eig(a))))


def _real_where_all_are(parts: tuple) -> tuple:
    """Return eigenvalues and vectors as NumPy does: real if all eigenvalues are real."""
    return parts if bool(ops.any(ops.not_equal(ops.imag(parts[0]), 0))) else tuple(map(ops.real, parts))


@row("linalg.svd")
def _svd(a, full_matrices=True, compute_uv=True, hermitian=False):
    found = ops.svd(_hermitian(a) if hermitian else a, full_matrices, compute_uv)
    return _named("SVDResult", tuple(found)) if compute_uv else found


@row("linalg.qr")
def _qr(a, mode="reduced"):
    if mode == "r":
        return ops.qr(a)[1]
    return _named("QRResult", tuple(ops.qr(a, mode)))


@row("linalg.slogdet")
def _slogdet(a):
    return _named("SlogdetResult", tuple(ops.slogdet(a)))


@row("linalg.pinv")
def _pinv(a, rcond=None, hermitian=False, rtol=None):
    return ops.pinv(_hermitian(a) if hermitian else a, rtol if rcond is None else rcond)


@row("linalg.matrix_rank")
def _matrix_rank(A, tol=None, hermitian=False, rtol=None):
    if hermitian or rtol is not None:
        named = {} if rtol is None else {"rtol": rtol}
        return np.linalg.matrix_rank(constant(A), tol, hermitian, **named)
    return ops.matrix_rank(A, tol)


@row("linalg.cond")
def _cond(x, p=None):
    if p in (None, 2, -2):
        s = ops.svd(x, compute_uv=False)
        return s[..., -1] / s[..., 0] if p == -2 else s[..., 0] / s[..., -1]
    return ops.norm(x, p, (-2, -1)) * ops.norm(ops.inv(x), p, (-2, -1))


@row("linalg.lstsq")
def _lstsq(a, b, rcond=None):
    x = ops.lstsq(a, b, rcond)
    (m, n), s = shape_of(a), ops.svd(a, compute_uv=False)
    cutoff = np.finfo(ops.dtype(s)).eps * max(m, n) if rcond is None or rcond == -1 else rcond
    rank = ops.cast(ops.sum(ops.cast(ops.greater(s, cutoff * ops.max(s)), "int64")), "int32")
    if m > n and bool(ops.equal(rank, n)):
        residuals = ops.reshape(ops.sum(squared(b - ops.matmul(a, x)), 0), (-1,))
    else:
        residuals = ops.zeros_like(ops.reshape(s, (-1,))[:0])
    return x, residuals, rank, s


@row("linalg.tensorsolve")
def _tensorsolve(a, b, axes=None):
    rank = len(shape_of(a))
    if axes is not None:
        a = ops.transpose(a, [*(i for i in range(rank) if i not in axes), *axes])
    result = shape_of(a)[len(shape_of(b)) - rank :] if rank > len(shape_of(b)) else ()
    size = int(np.prod(shape_of(b)))
    return ops.reshape(ops.solve(ops.reshape(a, (size, -1)), ops.reshape(b, (-1,))), result)


@row("linalg.tensorinv")
def _tensorinv(a, ind=2):
    if ind <= 0:
        raise ValueError("Invalid ind argument.")
    shape = shape_of(a)
    size = int(np.prod(shape[ind:]))
    return ops.reshape(ops.inv(ops.reshape(a, (size, -1))), (*shape[ind:], *shape[:ind]))


# ``numpy.fft``: the transforms of ``gradops.scipy.fft``, with NumPy's signatures --------------------------------------


def _one(name: str) -> Callable:
    def transform(a, n=None, axis=-1, norm=None):
        return scipy_functions.find(f"fft.{name}")(a, n, axis, norm)

    return transform


def _several(name: str, last) -> Callable:
    def transform(a, s=None, axes=last, norm=None):
        return scipy_functions.find(f"fft.{name}")(a, s, None if axes is None else tuple(axes), norm)

    return transform


def _shift(name: str) -> Callable:
    def shift(x, axes=None):
        return scipy_functions.find(f"fft.{name}")(x, axes)

    return shift


for _transform in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"):
    row(f"fft.{_transform}", _one(_transform))
for _transform in ("fft", "ifft", "rfft", "irfft"):
    row(f"fft.{_transform}2", _several(f"{_transform}2", (-2, -1)))
    row(f"fft.{_transform}n", _several(f"{_transform}n", None))
for _transform in ("fftshift", "ifftshift"):
    row(f"fft.{_transform}", _shift(_transform))
