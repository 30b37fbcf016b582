"""Checked arguments, docstring parts and small matrix helpers shared by the modules of ``scipy.linalg``.

The helpers include Hermitian matrices from one triangle and banded storage.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import dtypes, ops
from ...errors import ArgumentTypeError, ShapeError
from ...ops import _checks
from ...ops._matrices import adjoint, diagonal_of, from_diagonal
from .._define import family
from .._tensors import floating, is_complex, wrong

__all__ = """
adjoint hermitian matrices matrix of_finite of_matrices of_squares of_systems pair right_side square stored
strict turned
""".split()


FINITE = "ArgumentError: infs or NaNs."
of_finite = family(raises=FINITE)
of_matrices = family(
    {"mode": "the sizes of the factors.", "pivoting": "see :func:`qr`."},
    raises=f"ShapeError: fewer than two dimensions.\n{FINITE}",
)
of_squares = family(
    {
        "lower": "True to read the lower triangle, else the upper one; the other is its conjugate transpose.",
        "subset_by_index": "the first and last position of the eigenvalues to return.",
        "subset_by_value": "the half-open interval ``(low, high]`` of eigenvalues to return; needs known values.",
        "eigvals_only": "return the eigenvalues only.",
    },
    returns="A tensor of ``{first}``'s shape.",
    raises=f"ShapeError: matrices that are not square.\n{FINITE}",
)
of_systems = family(
    {"b": "right-hand sides as columns, or one vector."},
    returns="A tensor of columns or a vector, like ``b``; dimensions before the matrices broadcast.",
    raises=f"ShapeError: sizes that do not match.\n{FINITE}",
)


def matrix(a, name: str = "a", check_finite: bool = False, rank: int = 2):
    """Return a floating tensor after checking for ``rank`` dimensions and finite elements; numbers get sizes of 1."""
    return matrices(check_finite, rank, **{name: a})[0]


def matrices(check_finite: bool = False, rank: int = 2, **given) -> list:
    """Return tensors of their promoted floating dtype, each checked like :func:`matrix`."""
    for name, x in given.items():
        if x is None or isinstance(x, str) or callable(x):
            raise wrong(name, "be a tensor", f"{x!r:.80}", ArgumentTypeError)
    found = floating(*given.values())
    if any(len(x.shape) == 0 for x in found):
        found = [ops.reshape(x, (1,) * rank) if len(x.shape) == 0 else x for x in found]
    for name, x in zip(given, found):
        if len(x.shape) < rank:
            raise wrong(name, f"have at least {rank} dimensions", f"the shape {tuple(x.shape)}", ShapeError)
        values = _checks.known(x) if check_finite else None
        if values is not None and not np.isfinite(values).all():
            raise wrong(name, "not contain infs or NaNs", hint="`check_finite=False`")
    return found


def square(a, name: str = "a", check_finite: bool = False):
    """Return a :func:`matrix` that must be square."""
    return squared(matrix(a, name, check_finite), name)


def squared(a, name: str = "a"):
    """Return ``a``, whose last two sizes must be equal."""
    if a.shape[-1] != a.shape[-2]:
        raise wrong(name, "be square in its last two dimensions", tuple(a.shape), ShapeError)
    return a


def right_side(b, rows: int, name: str = "b"):
    """Return ``b`` as columns, and True if it was a vector."""
    vector = len(b.shape) == 1
    found = b.shape[0] if vector else b.shape[-2]
    if found != rows:
        raise wrong(name, f"have {rows} rows, as many as the matrix", f"the shape {tuple(b.shape)}", ShapeError)
    return (ops.expand_dims(b, -1) if vector else b), vector


def pair(value, name: str) -> Any:
    """Return an argument that must be a pair, such as a factor and its triangle."""
    if not isinstance(value, (tuple, list)) or len(value) != 2:
        raise wrong(name, "be a pair", type(value).__name__, ArgumentTypeError)
    return value


def turned(x):
    """Return the transposed matrices."""
    return ops.swapaxes(x, -1, -2)


def strict(a, lower: bool):
    """Return one triangle of a matrix without the diagonal."""
    return ops.tril(a, -1) if lower else ops.triu(a, 1)


def hermitian(a, lower: bool, symmetric: bool = False):
    """Return Hermitian matrices from one triangle of ``a``, or symmetric ones if ``symmetric``."""
    beside, diagonal = strict(a, lower), diagonal_of(a)
    if is_complex(a) and not symmetric:
        diagonal = ops.cast(ops.real(diagonal), ops.dtype(a))
    other = turned(beside) if symmetric else adjoint(beside)
    return beside + other + from_diagonal(diagonal)


def real_of(x):
    """Return the name of the real dtype of ``x``'s precision."""
    return dtypes.real_of(ops.dtype(x))


def to_complex(x):
    """Return ``x`` in the complex dtype of its precision."""
    return x if is_complex(x) else ops.cast(x, "complex64" if dtypes.bits(ops.dtype(x)) <= 32 else "complex128")


def stored(x, row, column, inside):
    """Gather elements of matrices at constant rows and columns; 0 where not ``inside``."""
    inside = np.asarray(inside, bool)
    rows, columns = x.shape[-2:]
    place = np.where(inside, np.asarray(row) * columns + np.asarray(column), 0)
    flat = ops.reshape(x, (*x.shape[:-2], rows * columns))
    return ops.where(inside, ops.take(flat, place, -1), 0.0)


# Banded storage: the element in row i and column j is in row ``upper + i - j`` and column j ---------------------------


def from_band(ab, lower: int, upper: int):
    """Return square matrices from banded storage."""
    n = ab.shape[-1]
    i, j = np.indices((n, n))
    row = upper + i - j
    return stored(ab, row, j, (row >= 0) & (row <= lower + upper))


def to_band(a, lower: int, upper: int):
    """Return banded storage of square matrices."""
    n = a.shape[-1]
    row, j = np.indices((lower + upper + 1, n))
    i = row - upper + j
    return stored(a, i, j, (i >= 0) & (i < n))


def turned_band(ab, lower: int, upper: int):
    """Return banded storage of the adjoint matrices."""
    n = ab.shape[-1]
    row, j = np.indices((lower + upper + 1, n))
    i = row - lower + j
    y = stored(ab, lower + upper - row, i, (i >= 0) & (i < n))
    return ops.conj(y) if is_complex(y) else y


def hermitian_band(ab, lower: bool):
    """Return banded storage of Hermitian matrices from the diagonals of one triangle."""
    width = ab.shape[-2] - 1
    row = np.arange(width + 1)[:, None]
    main = ab[..., 0:1, :] if lower else ab[..., width:, :]
    if is_complex(ab):
        main = ops.cast(ops.real(main), ops.dtype(ab))
    beside = ops.where(row != (0 if lower else width), ab, 0.0)
    other = turned_band(beside, width if lower else 0, 0 if lower else width)
    first, last = (other, beside) if lower else (beside, other)
    return ops.concatenate([first[..., :width, :], main, last[..., 1:, :]], -2)
