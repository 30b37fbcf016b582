"""Helpers of ops on matrices (the last two dimensions): checks, and triangles and diagonals by masks."""

from __future__ import annotations

import numpy as np

from .. import dtypes
from ..errors import ShapeError
from . import _checks
from ._sizes import lower
from .conversion import dtype, shape
from .creation import ones_like
from .elementwise import conj
from .indexing import where
from .products import matmul
from .properties import fits
from .reductions import sum
from .shaping import expand_dims, swapaxes

_EPSILON = {"float16": 9.8e-4, "bfloat16": 7.8e-3, "float32": 1.2e-7, "float64": 2.3e-16}


def epsilon(x) -> float:
    """Return the spacing at 1 of ``x``'s dtype, of its real dtype if complex, and of float64 for integers."""
    return _EPSILON.get(dtypes.real_of(dtype(x)), 2.3e-16)


# Checks, run before the kernel --------------------------------------------------------------------------------------


def check_matrix(op, x, *_) -> None:
    """Raise unless ``x`` has at least two dimensions."""
    _checks.check_rank(op.name, x, 2, op.parameters[0])


def check_square(op, x, *_) -> None:
    """Raise unless ``x`` is square in its last two dimensions."""
    sizes = getattr(x, "shape", None)
    if sizes.__class__ is tuple and len(sizes) == 2 and sizes[0] == sizes[1]:
        return  # one matrix, the most frequent case
    name = op.parameters[0]
    _checks.check_rank(op.name, x, 2, name)
    rows, columns = shape(x)[-2:]
    if not fits((rows,), (columns,)):
        raise ShapeError(
            f"`{op.name}`: `{name}` must be square in its last two dimensions; got {{x}}.",
            argument=name,
            x=_checks.describe(x),
        )


def is_vector(a: tuple, b: tuple) -> bool:
    """True if the right-hand side of a linear system is a vector (or one for each matrix), by the shapes of both."""
    return len(b) == 1 or len(b) == len(a) - 1 and tuple(b) == tuple(a[:-1])


def check_system(op, a, b, *_) -> None:
    """Raise unless matrix and right-hand side have the same number of rows and their batch dimensions broadcast."""
    _checks.check_rank(op.name, a, 2, "a")
    _checks.check_rank(op.name, b, 1, "b")
    first, second = shape(a), shape(b)
    vector = is_vector(first, second)
    rows = second[-1] if vector else second[-2]
    if not fits((rows,), (first[-2],)):
        raise ShapeError(
            f"`{op.name}`: `b` must have as many rows as `a`; got shapes {first} and {second}.", argument="b"
        )
    _checks.broadcast_shapes(op.name, ("a", "b"), first[:-2], second[: -1 if vector else -2])


def check_square_system(op, a, b, *_) -> None:
    first, second = shape(a), shape(b)
    if len(first) == 2 and len(second) in (1, 2) and first[0] == first[1] == second[0]:
        return  # one matrix, the most frequent case
    check_square(op, a)
    check_system(op, a, b)


# Parts --------------------------------------------------------------------------------------------------------------


def adjoint(x):
    """The conjugate transpose."""
    turned = swapaxes(x, -1, -2)
    return conj(turned) if dtype(x) in dtypes.COMPLEX else turned


def lower_part(x, k: int = 0):
    """The elements on and below the ``k``-th diagonal, 0 elsewhere."""
    return where(lower(*shape(x)[-2:], k), x, 0.0)


def upper_part(x, k: int = 0):
    """The elements on and above the ``k``-th diagonal, 0 elsewhere."""
    return where(lower(*shape(x)[-2:], k - 1), 0.0, x)


def diagonal_of(x):
    """The main diagonal of square matrices as vectors."""
    return sum(where(np.eye(shape(x)[-1], dtype=bool), x, 0.0), -1)


def from_diagonal(v):
    """Matrices with the vectors ``v`` on their diagonals."""
    return where(np.eye(shape(v)[-1], dtype=bool), expand_dims(v, -1), 0.0)


def identity_like(x):
    """Identity matrices of square ``x``'s shape and dtype."""
    return where(np.eye(shape(x)[-1], dtype=bool), ones_like(x), 0.0)


def power_of(x, n: int):
    """A power of square matrices, ``n`` not negative, by squaring."""
    y = None
    while n:
        if n & 1:
            y = x if y is None else matmul(y, x)
        n >>= 1
        x = matmul(x, x) if n else x
    return identity_like(x) if y is None else y


def columns(v):
    """Vectors as matrices of one column."""
    return expand_dims(v, -1)
