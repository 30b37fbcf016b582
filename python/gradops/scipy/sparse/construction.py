"""Sparse matrices built from diagonals, blocks, Kronecker products and triangles of others.

SciPy builds them from matrices of element numbers, which tell where each value goes.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from ... import _scipy, dtypes, ops
from ...annotations import Tensor
from ...errors import ArgumentTypeError, ShapeError
from ...ops import _checks
from .. import _tensors
from .._define import composed, family
from .._tensors import option, promoted
from . import _pattern, matrices
from .matrices import as_sparse, gathered, kind_of, made, products, stand_in, taken

__all__ = """block_array block_diag bmat diags diags_array eye eye_array find hstack identity kron kronsum spdiags tril
triu vstack""".split()

_FORMATS = (None, *matrices.FORMATS)


# Constants ------------------------------------------------------------------------------------------------------------


def _constant(like: Callable) -> Callable:
    """Return a function that makes one of SciPy's constant matrices as a gradops matrix.

    Args:
        like: has the name and the signature; SciPy's function is looked up at the first call.
    """
    name = like.__name__
    scipys = functools.cache(lambda: _tensors.constant(f"sparse.{name}"))

    def function(*args, **kwargs):
        option(f"sparse.{name}", kwargs.get("format"), _FORMATS, "format")
        return as_sparse(scipys()(*args, **kwargs))

    for attribute in ("__name__", "__qualname__"):
        setattr(function, attribute, name)
    function.__signature__ = inspect.signature(like)  # type: ignore[attr-defined]
    function.__doc__ = f"""``sparse.{name}``: ones on a diagonal.

    Returns:
        A sparse matrix of NumPy numbers, which combines with matrices of every library; CSR by default.

    Raises:
        ArgumentTypeError: arguments that are not known numbers.
        ArgumentError: values that SciPy rejects; an unsupported format.

    Gradient:
        None: the matrix is constant.
    """
    return function


@_constant
def eye(m, n=None, k=0, dtype=float, format=None): ...


@_constant
def identity(n, dtype="d", format=None): ...


@_constant
def eye_array(m, n=None, *, k=0, dtype=float, format=None): ...


# Diagonals ------------------------------------------------------------------------------------------------------------


def _diagonals(name: str, diagonals, offsets, shape, format, dtype):
    option(f"sparse.{name}", format, _FORMATS, "format")
    offsets = _tensors.numbers(f"sparse.{name}", "offsets", offsets)
    whole = not isinstance(diagonals, (list, tuple))
    if whole:
        diagonals = ops.convert_to_tensor(diagonals)
    if offsets.ndim == 0 and (whole and len(diagonals.shape) < 2 or not whole and _all_numbers(diagonals)):
        diagonals = [diagonals if whole else ops.stack([ops.convert_to_tensor(x) for x in diagonals])]
    parts = [ops.reshape(ops.convert_to_tensor(d), (-1,)) for d in diagonals]
    if dtype is None and all(ops.dtype(part) in dtypes.INTEGERS for part in parts):
        dtype = "float64"  # like SciPy
    if dtype is not None:
        parts = [ops.cast(part, np.dtype(dtype).name) for part in parts]
    build, settings = getattr(_scipy.sparse, name), {"shape": shape, "format": format, "dtype": np.int64}
    return gathered(lambda *numbers: build(numbers, offsets=np.atleast_1d(offsets), **settings), *parts)


def _all_numbers(diagonals) -> bool:
    return bool(diagonals) and matrices.rank_of(diagonals[0]) == 0


_DIAGONALS = """Sparse matrix with given diagonals.

    Args:
        diagonals: vectors: tensors of any library or variables. With ``shape``, a single number fills its diagonal.
        offsets: for each diagonal the number of columns that it lies to the right of the main one.
        shape: by default the smallest square shape that holds the diagonals.
        format: ``"csc"``, ``"csr"`` (the default) or ``"coo"``.
        dtype: the dtype of the elements; by default the diagonals', float64 for integers as in SciPy.

    Returns:
        A sparse {kind}.

    Raises:
        ArgumentError: diagonals of the wrong length; an unsupported format.
        ArgumentTypeError: a diagonal that is not a tensor; offsets that are not known.

    Gradient:
        The upstream gradient along the diagonals.
    """


@composed
def diags(diagonals, offsets=0, shape=None, format=None, dtype=None):
    return _diagonals("diags", diagonals, offsets, shape, format, dtype)


@composed
def diags_array(diagonals, /, *, offsets=0, shape=None, format=None, dtype=None):
    return _diagonals("diags_array", diagonals, offsets, shape, format, dtype)


diags.__doc__ = _DIAGONALS.format(kind="matrix (``csr_matrix``)")
diags_array.__doc__ = _DIAGONALS.format(kind="array")


@composed
def spdiags(data: Tensor, diags, m=None, n=None, format=None):
    """Sparse matrix whose diagonals are the rows of a tensor.

    Args:
        data: row ``k`` holds the diagonal ``diags[k]``, indexed by column.
        diags: the number of columns that each diagonal lies to the right of the main one.
        m, n: the numbers of rows and columns; or ``m`` is the shape.

    Returns:
        A sparse matrix (``csr_matrix``).

    Raises:
        ShapeError: different numbers of diagonals and rows.
        ArgumentError: an unsupported format.

    Gradient:
        The upstream gradient along the diagonals.
    """
    option("sparse.spdiags", format, _FORMATS, "format")
    diags = _tensors.numbers("sparse.spdiags", "diags", diags)
    data = ops.convert_to_tensor(data)
    data = ops.reshape(data, (1, -1)) if len(data.shape) < 2 else data
    return gathered(lambda numbers: _scipy.sparse.spdiags(numbers, diags, m, n, format), data)


# Blocks ---------------------------------------------------------------------------------------------------------------

joined = family(
    {"blocks": "sparse matrices or tensors."}, returns="A sparse matrix.", gradient="By the values of each matrix."
)


def _block(x, name: str = "blocks") -> Any:
    """Return a block as a sparse matrix; it may be a tensor of at most two dimensions."""
    if not matrices.issparse(x) and _checks.is_numeric(x):
        x = ops.convert_to_tensor(x)
        x = ops.reshape(x, (1,) * (2 - len(x.shape)) + tuple(x.shape)) if len(x.shape) < 2 else x
    return as_sparse(x, name, dense=True)


def _block_matrix(name: str, blocks, format, dtype):
    option(f"sparse.{name}", format, _FORMATS, "format")
    try:
        grid = [list(row) for row in blocks]
    except TypeError:
        raise ArgumentTypeError(
            f"`sparse.{name}`: `blocks` must be a list of lists of matrices.", argument="blocks"
        ) from None
    parts = [_block(x) for row in grid for x in row if x is not None]

    def build(*numbers):
        rest = iter(numbers)
        filled = [[None if x is None else next(rest) for x in row] for row in grid]
        return getattr(_scipy.sparse, name)(filled, format=format)

    try:
        found = gathered(build, *parts)
    except ValueError as error:
        raise ShapeError(f"`sparse.{name}`: `blocks` do not fit: {error}", argument="blocks") from None
    return found if dtype is None else found.astype(dtype)


_BLOCKS = """Sparse {kind} of blocks.

    Args:
        blocks: a list of rows, lists of sparse matrices, tensors, or None for zeros.
        format: ``"csc"``, ``"csr"`` or ``"coo"``.
        dtype: the dtype of the values.

    Returns:
        A sparse {kind}{more}.

    Raises:
        ShapeError: blocks whose sizes do not match.
        ArgumentTypeError: a block that is not a matrix.

    Gradient:
        By the values of each block.
    """


@composed
def bmat(blocks, format=None, dtype=None):
    return _block_matrix("bmat", blocks, format, dtype)


@composed
def block_array(blocks, *, format=None, dtype=None):
    return _block_matrix("block_array", blocks, format, dtype)


bmat.__doc__ = _BLOCKS.format(kind="matrix", more=", or an array if a block is one")
block_array.__doc__ = _BLOCKS.format(kind="array", more="")


@joined
def hstack(blocks, format=None, dtype=None):
    """Stack sparse matrices horizontally.

    Raises:
        ShapeError: matrices with different numbers of rows.
    """
    return _block_matrix("bmat", [list(blocks)], format, dtype)


@joined
def vstack(blocks, format=None, dtype=None):
    """Stack sparse matrices vertically.

    Raises:
        ShapeError: matrices with different numbers of columns.
    """
    return _block_matrix("bmat", [[block] for block in blocks], format, dtype)


@joined
def block_diag(mats, format=None, dtype=None):
    """Block diagonal sparse matrix.

    Args:
        mats: sparse matrices or tensors of at most two dimensions.

    Raises:
        ArgumentTypeError: an argument that is not a matrix.
    """
    option("sparse.block_diag", format, _FORMATS, "format")
    parts = [_block(x, "mats") for x in mats]
    found = gathered(lambda *numbers: _scipy.sparse.block_diag(numbers, format=format), *parts)
    return found if dtype is None else found.astype(dtype)


@joined
def kron(A, B, format=None):
    """Kronecker product of two matrices, sparse or tensors.

    Raises:
        ArgumentTypeError: an argument that is not a matrix.

    Gradient:
        By the values of both.
    """
    option("sparse.kron", format, _FORMATS, "format")
    A, B = _block(A, "A"), _block(B, "B")
    ones = [m.pattern.scipys(np.ones(m.nnz, np.int64)).asformat(m.format) for m in (A, B)]
    left = _scipy.sparse.kron(stand_in(A, 0), ones[1], format or "csr").tocoo()
    right = _scipy.sparse.kron(ones[0], stand_in(B, 0), format or "csr").tocoo()
    pattern, places = _pattern.coordinate_pattern(left.shape, left.row, left.col)
    other, moved = _pattern.coordinate_pattern(right.shape, right.row, right.col)
    of_a, of_b = np.empty(pattern.count, np.int64), np.empty(other.count, np.int64)
    of_a[places], of_b[moved] = left.data - 1, right.data - 1
    a, b = promoted(A.values, B.values)
    matrix = isinstance(A, matrices.spmatrix) and isinstance(B, matrices.spmatrix)
    return made(kind_of(format or "csr", matrix), pattern, products(ops.take(a, of_a, 0), ops.take(b, of_b, 0)))


@joined
def kronsum(A, B, format=None):
    """Kronecker sum ``kron(I, A) + kron(B, I)`` of square matrices.

    Raises:
        ShapeError: matrices that are not square.

    Gradient:
        By the values of both.
    """
    option("sparse.kronsum", format, _FORMATS, "format")
    A, B = _block(A, "A"), _block(B, "B")
    for name, x in (("A", A), ("B", B)):
        if x.shape[0] != x.shape[1]:
            raise ShapeError(f"`sparse.kronsum`: `{name}` must be square; got {x.shape}.", argument=name)
    found = kron(_scipy.sparse.eye_array(B.shape[0]), A, "csr") + kron(B, _scipy.sparse.eye_array(A.shape[0]), "csr")
    matrix = isinstance(A, matrices.spmatrix) and isinstance(B, matrices.spmatrix)
    return made(kind_of(format or "csr", matrix), found.pattern, found.values)


# Parts ----------------------------------------------------------------------------------------------------------------

triangle = family(
    returns="A sparse matrix with the elements in the triangle.",
    raises="ArgumentTypeError: an argument that is not a matrix.",
    gradient="By the elements in the triangle.",
)


def _triangle(name: str, A, k, format):
    option(f"sparse.{name}", format, _FORMATS, "format")
    k = _checks.integer(f"sparse.{name}", k, "k")
    return gathered(lambda numbers: getattr(_scipy.sparse, name)(numbers, k, format), _block(A, "A"))


@triangle
def tril(A, k=0, format=None):
    """Lower triangle of a sparse matrix, up to the diagonal ``k`` columns to the right of the main one."""
    return _triangle("tril", A, k, format)


@triangle
def triu(A, k=0, format=None):
    """Upper triangle of a sparse matrix, from the diagonal ``k`` columns to the right of the main one."""
    return _triangle("triu", A, k, format)


@composed
def find(A):
    """Rows, columns and values of a sparse matrix's elements in row order, including explicit zeros.

    Returns:
        Two integer vectors of NumPy and a tensor.

    Raises:
        ArgumentTypeError: an argument that is not a matrix.

    Gradient:
        By the values of the matrix.
    """
    A = _block(A, "A")
    order = A.pattern.row_order
    return A.pattern.rows[order], A.pattern.columns[order], taken(A.values, order)
