"""Structured matrices from vectors (Toeplitz, companion, ...), block matrices, and SciPy's constant matrices.

The entries of structured matrices are gathered from the vectors, so gradients sum over equal entries.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from ... import ops
from ...annotations import Integer, Tensor
from ...errors import ArgumentError, ShapeError
from ...ops import _checks
from .._define import composed, family
from .._tensors import constant, is_complex, wrong
from ._shared import matrices, matrix, stored

__all__ = """
bandwidth block_diag circulant companion convolution_matrix dft diagsvd fiedler fiedler_companion hadamard
hankel helmert hessenberg hilbert invhilbert invpascal ishermitian issymmetric khatri_rao leslie pascal rsf2csf
schur toeplitz
""".split()

pattern = family(
    returns="A tensor with a new last dimension.",
    raises="ShapeError: a number, or sizes that do not match.",
    gradient="The upstream gradient, summed over equal elements.",
)

# From vectors ---------------------------------------------------------------------------------------------------------


def toeplitz_of(c, r):
    """Return matrices with first columns ``c`` and first rows ``r``, whose first element is not read."""
    rows, columns = int(c.shape[-1]), int(r.shape[-1])
    line = ops.concatenate([ops.flip(r[..., 1:], -1), c], -1)
    i, j = np.indices((rows, columns))
    return ops.take(line, i - j + columns - 1, -1)


def _vectors(name: str, x):
    return matrix(x, name, rank=1)


@pattern
def toeplitz(c: Tensor, r: Tensor = None) -> Tensor:
    """Toeplitz matrix, whose diagonals are constant.

    Args:
        c: the first column.
        r: the first row, whose first element is not read; by default the conjugate of ``c``.
    """
    if r is None:
        c = _vectors("c", c)
        return toeplitz_of(c, ops.conj(c) if is_complex(c) else c)
    return toeplitz_of(*matrices(False, 1, c=c, r=r))


@pattern
def hankel(c: Tensor, r: Tensor = None) -> Tensor:
    """Hankel matrix, whose antidiagonals are constant.

    Args:
        c: the first column.
        r: the last row, whose first element is not read; by default zeros.
    """
    if r is None:
        c = _vectors("c", c)
        r = ops.zeros_like(c)
    else:
        c, r = matrices(False, 1, c=c, r=r)
    line = ops.concatenate([c, r[..., 1:]], -1)
    i, j = np.indices((int(c.shape[-1]), int(r.shape[-1])))
    return ops.take(line, i + j, -1)


@pattern
def circulant(c: Tensor) -> Tensor:
    """Circulant matrix: each column is the one before it, rotated by one position; ``c`` is the first."""
    c = _vectors("c", c)
    i, j = np.indices((int(c.shape[-1]),) * 2)
    return ops.take(c, (i - j) % max(int(c.shape[-1]), 1), -1)


@pattern
def companion(a: Tensor) -> Tensor:
    """Companion matrix of a polynomial, whose eigenvalues are its roots.

    Args:
        a: coefficients, highest power first; the first must not be 0.

    Returns:
        A square tensor with one row less than there are coefficients.

    Raises:
        ArgumentError: a first coefficient of 0 (if values are known).

    Gradient:
        Through the first row, ``-a[1:] / a[0]``.
    """
    a = _vectors("a", a)
    n = int(a.shape[-1])
    if n < 2:
        raise wrong("a", "have at least 2 coefficients", n, ShapeError)
    return _companion_matrix(-_monic(a)[..., 1:], 1.0)


def _monic(a):
    """Return the coefficients divided by the first one."""
    values = _checks.known(a)
    if values is not None and (values[..., 0] == 0).any():
        raise ArgumentError("`linalg`: the first coefficient of `a` must not be 0.", argument="a")
    return a / a[..., :1]


def _companion_matrix(row, below):
    """Return a matrix with the given first row and first subdiagonal, a number or a row of numbers."""
    i, j = np.indices((int(row.shape[-1]),) * 2)
    return ops.where(i == j + 1, below, ops.where(i == 0, ops.expand_dims(row, -2), 0.0))


@pattern
def leslie(f: Tensor, s: Tensor) -> Tensor:
    """Leslie matrix of an age-structured population.

    Args:
        f: fecundities, the first row.
        s: survival rates, the first subdiagonal; one element less than ``f``.

    Returns:
        A square tensor.

    Gradient:
        The upstream gradient at the positions of the elements.
    """
    f, s = matrices(False, 1, f=f, s=s)
    if f.shape[-1] != s.shape[-1] + 1:
        raise wrong("s", "have one element less than `f`", f"{s.shape[-1]} and {f.shape[-1]}", ShapeError)
    if f.shape[-1] < 2:
        raise wrong("s", "have at least one element", kind=ShapeError)
    return _companion_matrix(f, ops.expand_dims(ops.concatenate([s, ops.zeros_like(f[..., :1])], -1), -2))


@pattern
def fiedler(a: Tensor) -> Tensor:
    """Fiedler matrix: the distances ``abs(a_i - a_j)``.

    Returns:
        A symmetric tensor with a new last dimension.

    Gradient:
        The upstream gradient times ``sign(a_i - a_j)``, summed; 0 where two elements are equal.
    """
    a = _vectors("a", a)
    return ops.abs(ops.expand_dims(a, -1) - ops.expand_dims(a, -2))


@pattern
def fiedler_companion(a: Tensor) -> Tensor:
    """Fiedler companion matrix of a polynomial, which has five diagonals.

    Args:
        a: coefficients, highest power first; the first must not be 0.

    Returns:
        A square tensor with one row less than there are coefficients.

    Raises:
        ArgumentError: a first coefficient of 0 (if values are known).

    Gradient:
        Through ``a / a[0]``, at the positions of the elements.
    """
    a = _vectors("a", a)
    n = int(a.shape[-1]) - 1
    if n < 1:
        return ops.zeros_like(a[..., :0])
    a = _monic(a)
    if n == 1:
        return ops.expand_dims(-a[..., 1:], -1)
    ones = np.zeros((n, n), bool)
    ones[range(0, n - 2, 2), range(2, n, 2)] = True
    ones[range(3, n, 2), range(1, n - 2, 2)] = True
    ones[1, 0] = True
    place = np.zeros((n, n), int)  # the number of the coefficient in each entry; 0 for none
    place[0, 0] = 1
    place[range(0, n - 1, 2), range(1, n, 2)] = range(2, n + 1, 2)
    place[range(2, n, 2), range(1, n - 1, 2)] = range(3, n + 1, 2)
    coefficients = ops.where(place > 0, -ops.take(a, place, -1), 0.0)
    return ops.where(ones, 1.0, coefficients)


@pattern
def convolution_matrix(a: Tensor, n: Integer, mode: Literal["full", "valid", "same"] = "full") -> Tensor:
    """Matrix whose product with a vector of ``n`` elements is the convolution with ``a``.

    Args:
        mode: the part of the convolution: ``"full"``, ``"valid"`` or ``"same"``, as in ``numpy.convolve``.

    Returns:
        A tensor with ``n`` columns.

    Raises:
        ArgumentError: ``n`` is not positive; an unknown ``mode``.
    """
    a, n = _vectors("a", a), int(_checks.integer("linalg", n, "n"))
    _checks.choice("linalg", mode, ("full", "valid", "same"), "mode")
    m = int(a.shape[-1])
    if n < 1:
        raise wrong("n", "be positive", n)
    if m < 1:
        raise wrong("a", "have at least one element", kind=ShapeError)
    first, rows = 0, m + n - 1
    if mode == "same":
        first, rows = (min(m, n) - 1) // 2, max(m, n)
    elif mode == "valid":
        first, rows = min(m, n) - 1, max(m, n) - min(m, n) + 1
    i, j = np.indices((rows, n))
    at = i + first - j
    inside = (at >= 0) & (at < m)
    return ops.where(inside, ops.take(a, np.where(inside, at, 0), -1), 0.0)


# From matrices --------------------------------------------------------------------------------------------------------


@composed
def block_diag(*arrs) -> Tensor:
    """Block diagonal matrix.

    Args:
        *arrs: matrices; vectors and numbers count as rows.

    Returns:
        A tensor of their promoted dtype; dimensions before the matrices broadcast.

    Raises:
        ShapeError: dimensions before the matrices that do not broadcast.

    Gradient:
        The blocks of the upstream gradient.
    """
    if not arrs:
        return ops.zeros((1, 0))
    parts = matrices(False, 0, **{f"arrs[{i}]": x for i, x in enumerate(arrs)})
    parts = [ops.reshape(x, (1,) * (2 - len(x.shape)) + tuple(x.shape)) if len(x.shape) < 2 else x for x in parts]
    lead = np.broadcast_shapes(*[tuple(x.shape[:-2]) for x in parts])
    width, before, rows = sum(int(x.shape[-1]) for x in parts), 0, []
    for x in parts:
        x = ops.broadcast_to(x, (*lead, *x.shape[-2:])) if tuple(x.shape[:-2]) != tuple(lead) else x
        after = width - before - int(x.shape[-1])
        rows.append(ops.pad(x, [(0, 0)] * (len(lead) + 1) + [(before, after)]))
        before += int(x.shape[-1])
    return ops.concatenate(rows, -2)


@pattern
def khatri_rao(a: Tensor, b: Tensor) -> Tensor:
    """Khatri-Rao product: the Kronecker products of corresponding columns.

    Args:
        b: a matrix with as many columns as ``a``.

    Returns:
        A tensor whose number of rows is the product of both numbers of rows.

    Gradient:
        The upstream gradient times the other factor, summed over its rows.
    """
    a, b = matrices(a=a, b=b)
    if a.shape[-1] != b.shape[-1]:
        raise wrong("b", "have as many columns as `a`", f"{tuple(a.shape)} and {tuple(b.shape)}", ShapeError)
    y = ops.expand_dims(a, -2) * ops.expand_dims(b, -3)
    return ops.reshape(y, (*y.shape[:-3], int(a.shape[-2]) * int(b.shape[-2]), int(a.shape[-1])))


@pattern
def diagsvd(s: Tensor, M: Integer, N: Integer) -> Tensor:
    """Matrix with singular values on its diagonal.

    Args:
        M: the number of rows.
        N: the number of columns; the smaller of the two is the number of values.

    Returns:
        A tensor with M rows and N columns.

    Gradient:
        The diagonal of the upstream gradient.
    """
    s = _vectors("s", s)
    rows, columns = (int(_checks.integer("linalg", x, name)) for x, name in ((M, "M"), (N, "N")))
    count = int(s.shape[-1])
    if min(rows, columns) < count or count not in (rows, columns):
        raise ShapeError(f"`linalg`: `M` or `N` must be {count}, and none less.", argument="M")
    i, j = np.indices((rows, columns))
    return stored(ops.expand_dims(s, -2), 0, i, i == j)


# Constants ------------------------------------------------------------------------------------------------------------

bandwidth = constant("linalg.bandwidth")
dft = constant("linalg.dft")
hadamard = constant("linalg.hadamard")
helmert = constant("linalg.helmert")
hilbert = constant("linalg.hilbert")
invhilbert = constant("linalg.invhilbert")
invpascal = constant("linalg.invpascal")
ishermitian = constant("linalg.ishermitian")
issymmetric = constant("linalg.issymmetric")
pascal = constant("linalg.pascal")
hessenberg = constant("linalg.hessenberg")
rsf2csf = constant("linalg.rsf2csf")
schur = constant("linalg.schur")
