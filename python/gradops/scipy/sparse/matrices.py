"""Sparse matrices with a constant pattern, whose values are a tensor of any library or a variable."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ... import _scipy, dtypes, ops
from ...errors import ArgumentError, ArgumentTypeError, ShapeError
from ...ops import _checks, _dispatch
from .._tensors import promoted
from . import _pattern
from ._ops import product
from ._pattern import Pattern
from ._reading import as_truths, dense, of_dense, of_places, of_starts, parts, placed, rank_of, whole_numbers

FORMATS = ("csc", "csr", "coo")

_ELEMENTWISE = """abs sqrt sin tan arcsin arctan sinh tanh arcsinh arctanh expm1 log1p floor ceil trunc sign deg2rad
rad2deg conj real imag""".split()
"""Functions of elements that are 0 at 0."""


def taken(values, places: np.ndarray):
    """Elements of a vector, 0 at the place after its last."""
    if places.size and places.max() == values.shape[0]:
        values = ops.concatenate([values, ops.zeros((1,), ops.dtype(values))])
    return ops.take(values, places, 0)


class sparray:
    """A sparse matrix with a constant pattern: the base class of ``csc_array``, ``csr_array`` and ``coo_array``.

    Attributes:
        values: a vector, the elements by columns and in each by rows, whatever the format.
        pattern: their places, constants.

    Returns:
        Matrices are made by the classes of the formats; operations give matrices of these again, or tensors.

    Raises:
        ArgumentTypeError: made itself.

    Gradient:
        By the values, which may be a variable, a tensor of a library or a tensor in a program.
    """

    format = "csc"
    ndim = 2
    __array_ufunc__ = None  # NumPy's arrays leave operators to this class
    __array_priority__ = 2000
    __iter__ = None

    def __init__(self, arg1, shape=None, dtype=None, copy=False, *, maxprint=None):
        if type(self) in (sparray, spmatrix):
            raise ArgumentTypeError(f"`{type(self).__name__}` is a base class.", hint="`csr_array`, `csc_array`")
        self.pattern, self.values = _read(type(self), arg1, shape)
        if dtype is not None:
            self.values = ops.cast(self.values, np.dtype(dtype).name)

    # What it is -------------------------------------------------------------------------------------------------------

    shape = property(lambda self: self.pattern.shape)
    nnz = property(lambda self: self.pattern.count, doc="The number of places, as of elements that are 0 there.")
    size = nnz
    dtype = property(lambda self: self.values.dtype)

    @property
    def data(self):
        """The elements in the order of :attr:`indices`."""
        return ops.take(self.values, self.pattern.by_rows, 0) if self.format == "csr" else self.values

    @property
    def indices(self) -> np.ndarray:
        """The column (CSR) or row (CSC) of each element."""
        self._of("indices", "csr", "csc")
        pattern = self.pattern
        return pattern.columns[pattern.by_rows] if self.format == "csr" else pattern.rows

    @property
    def indptr(self) -> np.ndarray:
        """The start of each row (CSR) or column (CSC), and the end."""
        self._of("indptr", "csr", "csc")
        return self.pattern.row_starts if self.format == "csr" else self.pattern.starts

    @property
    def coords(self) -> tuple[np.ndarray, np.ndarray]:
        """The rows and columns of elements (COO)."""
        self._of("coords", "coo")
        return self.pattern.rows, self.pattern.columns

    row = property(lambda self: self.coords[0])
    col = property(lambda self: self.coords[1])

    def _of(self, name: str, *formats: str) -> None:
        if self.format not in formats:
            raise AttributeError(f"a matrix of format {self.format!r} has no `{name}`")

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__} of shape {self.shape} with {self.nnz} elements of dtype {ops.dtype(self.values)}>"
        )

    def __getattr__(self, name: str):
        why = ""
        if not name.startswith("_") and hasattr(_scipy.sparse.csr_array, name):
            why = ": its pattern is constant, and not all that SciPy's matrices do has a derivative"
        raise AttributeError(f"a sparse matrix of gradops has no {name!r}{why}")

    # Forms ------------------------------------------------------------------------------------------------------------

    def with_values(self, values):
        """The matrix with other values in the same places, in the order of ``values``."""
        return made(type(self), self.pattern, values)

    def tocsc(self, copy=False):
        """The matrix in the format CSC; the values are the same tensor."""
        return self._as("csc")

    def tocsr(self, copy=False):
        """The matrix in the format CSR; the values are the same tensor."""
        return self._as("csr")

    def tocoo(self, copy=True):
        """The matrix in the format COO; the values are the same tensor."""
        return self._as("coo")

    def asformat(self, format, copy=False):
        """The matrix in a format, ``"csc"``, ``"csr"`` or ``"coo"``; None for its own."""
        _checks.choice("sparse", format, (None, *FORMATS), "format")
        return self if format is None else self._as(format)

    def _as(self, format: str):
        return made(kind_of(format, isinstance(self, spmatrix)), self.pattern, self.values)

    def copy(self):
        """The matrix; values are never written to."""
        return self.with_values(self.values)

    def toarray(self, order=None, out=None):
        """A tensor with the elements and zeros.

        Raises:
            ArgumentError: ``out``.
        """
        if out is not None:
            raise ArgumentError("`toarray` writes into no `out`.", argument="out")
        rows, columns = self.shape
        places = self.pattern.rows * columns + self.pattern.columns
        whole = ops.segment_sum(self.values, places, rows * columns)
        return ops.reshape(as_truths(whole, self.values), self.shape)

    todense = toarray

    def astype(self, dtype, casting="unsafe", copy=True):
        """The matrix with its values in a dtype."""
        return self.with_values(ops.cast(self.values, dtype if isinstance(dtype, str) else np.dtype(dtype).name))

    def transpose(self, axes=None, copy=False):
        """The transposed matrix: CSR of CSC, and the other way round."""
        format = {"csr": "csc", "csc": "csr"}.get(self.format, self.format)
        values = ops.take(self.values, self.pattern.by_rows, 0)
        return made(kind_of(format, isinstance(self, spmatrix)), self.pattern.transposed, values)

    T = property(transpose)

    # Parts ------------------------------------------------------------------------------------------------------------

    def __getitem__(self, key):
        """An element, or a matrix of rows and columns by numbers, slices and lists."""
        from_numbers = stand_in(self, 0)[key]
        if np.ndim(from_numbers) == 0 and not issparse_of_scipy(from_numbers):
            place = int(from_numbers) - 1
            return taken(self.values, np.array([place if place >= 0 else self.nnz]))[0]
        if from_numbers.ndim != 2:
            raise ArgumentError(
                "`sparse`: sparse vectors are not here.",
                argument="key",
                hint="a list, `A[[i]]`, gives a row as a matrix",
            )
        return gathered(lambda whole: whole[key], self)

    def diagonal(self, k=0):
        """A diagonal, a vector: the main one, or one ``k`` columns to the right of it."""
        rows, columns = self.shape
        count = max(min(rows + min(k, 0), columns - max(k, 0)), 0)
        start = np.arange(count)
        return taken(self.values, self.pattern.places(start - min(k, 0), start + max(k, 0)))

    def trace(self, offset=0):
        """The sum of a diagonal."""
        return ops.sum(self.diagonal(offset))

    def sum(self, axis=None, dtype=None, out=None):
        """The sum of all elements, or along an axis: a vector, of a matrix (``csr_matrix``) with two dimensions."""
        axis = self._axis(axis)
        values = self.values if dtype is None else ops.cast(self.values, np.dtype(dtype).name)
        if axis is None:
            return ops.sum(values)
        if dtype is None and ops.dtype(values) in dtypes.BOOL + dtypes.INTEGERS:  # as NumPy's sums
            values = ops.cast(values, "int64")
        return self._along(ops.segment_sum(values, *self._segments(axis)), axis)

    def mean(self, axis=None, dtype=None, out=None):
        """The mean, as :meth:`sum`."""
        axis = self._axis(axis)
        count = self.shape[0] * self.shape[1] if axis is None else self.shape[axis]
        return self.sum(axis, dtype) / count

    def _axis(self, axis):
        return None if axis is None else _checks.check_axis("sparse", axis, 2)

    def _segments(self, axis: int) -> tuple[np.ndarray, int]:
        return (self.pattern.rows if axis else self.pattern.columns), self.shape[1 - axis]

    def _along(self, found, axis: int):
        return ops.expand_dims(found, axis) if isinstance(self, spmatrix) else found

    # Arithmetic -------------------------------------------------------------------------------------------------------

    def __neg__(self):
        return self.with_values(ops.negative(self.values))

    def __abs__(self):
        return self.with_values(as_truths(ops.abs(self.values), self.values))

    def __add__(self, other):
        return _sum(self, other, ops.add)

    def __radd__(self, other):
        return _sum(self, other, lambda a, b: ops.add(b, a))

    def __sub__(self, other):
        return _sum(self, other, ops.subtract)

    def __rsub__(self, other):
        return _sum(-self, other, ops.add)

    def __mul__(self, other):
        return self.multiply(other)

    __rmul__ = __mul__

    def __truediv__(self, other):
        if issparse(other):
            raise ArgumentTypeError("`sparse`: a quotient of sparse matrices is not sparse.", argument="other")
        return self.with_values(ops.divide(self.values, _at_places(self, other)))

    def __rtruediv__(self, other):
        raise ArgumentTypeError("`sparse`: what is divided by a sparse matrix is not sparse.", argument="other")

    def __pow__(self, power):
        return self.power(power)

    def __matmul__(self, other):
        return _product(self, other, False)

    def __rmatmul__(self, other):
        return _product(self, other, True)

    def dot(self, other):
        """The product ``self @ other``; a number scales."""
        return self.multiply(other) if rank_of(other) == 0 else self @ other

    def multiply(self, other):
        """The product element by element, with a number, a tensor that broadcasts, or a sparse matrix of the shape."""
        if not issparse(other):
            return self.with_values(ops.multiply(self.values, _at_places(self, other)))
        other = as_sparse(other)
        _same_shape(self, other)
        if other.pattern is self.pattern:
            return self.with_values(products(*_alike(self, other)))
        codes = np.intersect1d(self.pattern.codes, other.pattern.codes, True)
        left, right = (taken(v, m.pattern.places_of(codes)) for v, m in zip(_alike(self, other), (self, other)))
        return made(_computed(self), _pattern.interned(self.shape, codes), products(left, right))

    def power(self, n, dtype=None):
        """The elements to a positive power."""
        if _checks.known(n) is not None and not np.all(np.asarray(_checks.known(n)) > 0):
            raise ArgumentError("`sparse`: `n` must be positive: 0 to another power is not 0.", argument="n")
        return self.with_values(ops.power(self.values, n))


class spmatrix(sparray):
    """A sparse matrix as ``csc_matrix`` and its kin: ``*`` is the product of matrices, ``**`` its power.

    Returns:
        As of :class:`sparray`; sums along an axis keep two dimensions.

    Raises:
        ArgumentTypeError: made itself.

    Gradient:
        As of :class:`sparray`.
    """

    def __mul__(self, other):
        return self.dot(other)

    def __rmul__(self, other):
        return self.multiply(other) if rank_of(other) == 0 else _product(self, other, True)

    def __pow__(self, power):
        return power_of(self, _checks.integer("sparse", power, "power"))


def _unary(name: str) -> Callable:
    function = getattr(ops, name)

    def method(self):
        return self.with_values(function(self.values))

    method.__name__, method.__qualname__ = name, f"sparray.{name}"
    method.__doc__ = f"``{name}`` of each element."
    return method


for _name in _ELEMENTWISE:
    setattr(sparray, _name, property(_unary(_name)) if _name in ("real", "imag") else _unary(_name))
sparray.conjugate = sparray.conj  # type: ignore[attr-defined]
sparray.rint = lambda self: self.with_values(ops.round(self.values))  # type: ignore[attr-defined]


# Formats --------------------------------------------------------------------------------------------------------------

_FORMAT = """A sparse matrix in the format {upper}, with a constant pattern.

    Places come in order and elements of one place are added up. ``data``, and only that, may be a tensor of any library
    or a variable.

    Args:
        arg1: what SciPy's takes: a sparse matrix, also SciPy's; a tensor, whose elements that are not 0 make the
            pattern; ``(data, (rows, columns))``{compressed}; a shape, of a matrix without elements.
        shape: by default the smallest that holds the elements.
        dtype: that of the values; by default as they come.

    Returns:
        A matrix; see ``sparray``.

    Raises:
        ArgumentTypeError: what makes no matrix; rows or columns that are not known whole numbers.
        ShapeError: parts that do not fit one another or the shape.

    Gradient:
        By ``data``; of a tensor by its elements in the pattern.
    """


def _format(format: str, base: type) -> type:
    name = f"{format}_{'matrix' if base is spmatrix else 'array'}"
    compressed = "" if format == "coo" else "; ``(data, indices, indptr)``"
    doc = _FORMAT.format(upper=format.upper(), compressed=compressed)
    return type(name, (base,), {"format": format, "__doc__": doc, "__module__": __name__, "__qualname__": name})


csc_array, csr_array, coo_array = (_format(format, sparray) for format in FORMATS)
csc_matrix, csr_matrix, coo_matrix = (_format(format, spmatrix) for format in FORMATS)


def kind_of(format: str, matrix: bool) -> type:
    """The class of a format; CSR in place of those that are not here."""
    return globals()[f"{format if format in FORMATS else 'csr'}_{'matrix' if matrix else 'array'}"]


def made(kind: type, pattern: Pattern, values) -> Any:
    """A matrix of a class."""
    found: Any = object.__new__(kind)
    found.pattern, found.values = pattern, values
    return found


def issparse(x) -> bool:
    """True for a sparse matrix, of gradops' or SciPy's.

    Returns:
        A bool.

    Gradient:
        None.
    """
    return isinstance(x, sparray) or issparse_of_scipy(x)


def issparse_of_scipy(x) -> bool:
    return type(x).__module__.startswith("scipy.sparse") and _scipy.sparse.issparse(x)


def isspmatrix(x) -> bool:
    """True for a sparse matrix of the classes ``csc_matrix`` and its kin, of gradops' or SciPy's.

    Returns:
        A bool.

    Gradient:
        None.
    """
    return isinstance(x, spmatrix) or issparse_of_scipy(x) and _scipy.sparse.isspmatrix(x)


def as_sparse(x, name: str = "A", dense: bool = False) -> Any:
    """A sparse matrix, also SciPy's; with ``dense`` a tensor's.

    Raises:
        ArgumentTypeError: an argument that is not a sparse matrix.
    """
    if isinstance(x, sparray):
        return x
    if issparse_of_scipy(x):
        if x.ndim != 2:
            raise ShapeError(f"`sparse`: `{name}` must have two dimensions; got {x.ndim}.", argument=name)
        whole = x.tocoo()
        pattern, places = _pattern.at(whole.shape, whole.row, whole.col)
        return made(kind_of(x.format, _scipy.sparse.isspmatrix(x)), pattern, placed(whole.data, pattern, places))
    if dense and x is not None:
        return made(csr_matrix, *of_dense(x, None, name))
    raise ArgumentTypeError(
        f"`sparse`: `{name}` must be a sparse matrix; got {{value}}.",
        argument=name,
        hint=f"`csr_array({name})`",
        value=_checks.describe(x),
    )


# Reading --------------------------------------------------------------------------------------------------------------


def _read(kind: Any, arg1, shape) -> tuple[Pattern, Any]:
    if shape is not None:
        shape = tuple(_checks.integer("sparse", n, "shape") for n in parts(shape, 2, "shape"))
        if min(shape) < 0:
            raise ShapeError("`sparse`: `shape` must not be negative.", argument="shape")
    if issparse(arg1):
        found = as_sparse(arg1, "arg1")
        return found.pattern, found.values
    if isinstance(arg1, tuple):
        if len(arg1) == 2 and all(isinstance(n, (int, np.integer)) for n in arg1):
            return _pattern.at(arg1, [], [])[0], np.zeros(0)
        if len(arg1) == 2:
            rows, columns = (whole_numbers(x, "arg1") for x in parts(arg1[1], 2, "arg1"))
            return of_places(arg1[0], rows, columns, shape)
        if len(arg1) == 3 and kind.format != "coo":
            return of_starts(kind.format, *arg1, shape)
        raise ArgumentTypeError(f"`sparse`: `arg1` is no matrix: a tuple of {len(arg1)}.", argument="arg1")
    return of_dense(arg1, shape)


# Matrices made of parts of others -------------------------------------------------------------------------------------


def stand_in(x, start: int):
    """NumPy's array of a tensor's shape, or SciPy's matrix of a pattern, whose elements say which they are, from 1."""
    if not isinstance(x, sparray):
        return np.arange(start + 1, start + 1 + int(np.prod(x.shape))).reshape(tuple(x.shape))
    kind = "csc_matrix" if isinstance(x, spmatrix) else "csc_array"
    numbers = x.pattern.scipys(np.arange(start + 1, start + 1 + x.nnz), kind)
    return numbers.asformat(x.format)


def gathered(build: Callable, *parts) -> Any:
    """The matrix whose elements are those of others, where SciPy's ``build`` brings them.

    Args:
        build: a function of SciPy's matrices and arrays to one of SciPy's matrices.
        *parts: sparse matrices and tensors.
    """
    numbers, start = [], 0
    for part in parts:
        numbers.append(stand_in(part, start))
        start += part.nnz if isinstance(part, sparray) else int(np.prod(part.shape))
    whole = build(*numbers)
    found = whole.tocoo()
    pattern, places = _pattern.at(found.shape, found.row, found.col)
    from_parts = np.empty(pattern.count, np.int64)
    from_parts[places] = found.data - 1
    flat = [part.values if isinstance(part, sparray) else ops.reshape(part, (-1,)) for part in parts]
    flat = promoted(*flat)
    joined = flat[0] if len(flat) == 1 else ops.concatenate(flat)
    kind = kind_of(whole.format, _scipy.sparse.isspmatrix(whole))
    return made(kind, pattern, ops.take(joined, from_parts, 0))


# Arithmetic -----------------------------------------------------------------------------------------------------------


def _computed(left) -> type:
    """The class of a result: the left side's, CSR of COO."""
    return kind_of("csr" if left.format == "coo" else left.format, isinstance(left, spmatrix))


def _alike(*matrices) -> list:
    return promoted(*[m.values for m in matrices])


def _same_shape(a, b) -> None:
    if a.shape != b.shape:
        raise ShapeError(f"`sparse`: the shapes {a.shape} and {b.shape} differ.", argument="other")


def _sum(a, b, combine: Callable):
    """``combine(a, b)``, addition or subtraction; of a tensor a tensor."""
    if not issparse(b):
        if rank_of(b) == 0 and type(b) in (int, float) and b == 0:
            return a
        if rank_of(b) == 0:
            raise ArgumentTypeError(
                "`sparse`: a number added to each element leaves no zeros.", argument="other", hint="`A.toarray()`"
            )
        return combine(a.toarray(), dense(b))
    b = as_sparse(b)
    _same_shape(a, b)
    left, right = _alike(a, b)
    if a.pattern is b.pattern:
        return made(_computed(a), a.pattern, as_truths(combine(left, right), left, right))
    pattern, places = _pattern.union(a.pattern, b.pattern)
    both = ops.concatenate([left, combine(ops.zeros_like(right), right)])
    return made(_computed(a), pattern, as_truths(ops.segment_sum(both, places, pattern.count), left, right))


def products(a, b):
    """The products of elements of one dtype."""
    return as_truths(ops.multiply(a, b), a, b)


def _at_places(a, x):
    """A tensor's elements at the matrix' places; a number as it is."""
    x = dense(x)
    shape = () if rank_of(x) == 0 else (1,) * (2 - len(x.shape)) + tuple(x.shape)
    if shape == ():
        return x
    if len(shape) > 2 or any(n not in (1, whole) for n, whole in zip(shape, a.shape)):
        raise ShapeError(f"`sparse`: a tensor of the shape {tuple(x.shape)} is not of {a.shape}.", argument="other")
    rows = a.pattern.rows if shape[0] > 1 else 0
    columns = a.pattern.columns if shape[1] > 1 else 0
    places = np.broadcast_to(rows * shape[1] + columns, (a.nnz,))
    return ops.take(ops.reshape(x, (-1,)), places, 0)


def _product(a, b, reflected: bool):
    """``a @ b``, or ``b @ a``."""
    if issparse(b):
        b = as_sparse(b)
        return _of_sparse(b, a) if reflected else _of_sparse(a, b)
    b = dense(b)
    rank, size = rank_of(b), a.shape[0 if reflected else 1]
    if rank not in (1, 2):
        raise ShapeError(
            f"`sparse`: `other` must be a vector or a matrix; got {rank} dimensions.",
            argument="other",
            hint="`*` scales by a number",
        )
    if (b.shape[-1] if reflected else b.shape[0]) != size:
        raise ShapeError(
            f"`sparse`: shapes {a.shape} and {tuple(b.shape)} do not fit a product"
            f"{' from the left' * reflected}: {size} numbers are needed.",
            argument="other",
        )
    values, b = promoted(a.values, b)
    columns = ops.expand_dims(b, 1) if rank == 1 else ops.transpose(b) if reflected else b
    y = product(ops.expand_dims(values, 1), columns, a.pattern, reflected)
    return y[:, 0] if rank == 1 else ops.transpose(y) if reflected else y


def _of_sparse(a, b):
    if a.shape[1] != b.shape[0]:
        raise ShapeError(f"`sparse`: shapes {a.shape} and {b.shape} do not fit a product.", argument="other")
    pattern, left, right, places = _pattern.product(a.pattern, b.pattern)
    values = _alike(a, b)
    products = ops.multiply(ops.take(values[0], left, 0), ops.take(values[1], right, 0))
    return made(_computed(a), pattern, as_truths(ops.segment_sum(products, places, pattern.count), *values))


def power_of(A, power: int):
    """A power of a square matrix, by repeated products."""
    if power < 0:
        raise ArgumentError("`sparse`: `power` must not be negative.", argument="power")
    if power == 0:
        each = np.arange(A.shape[0])
        return made(type(A), _pattern.at(A.shape, each, each)[0], ops.ones((A.shape[0],), ops.dtype(A.values)))
    if power == 1:
        return A
    half = power_of(A, power // 2)
    return half @ half @ A if power % 2 else half @ half


# Operators of tensors and ops of sparse matrices ----------------------------------------------------------------------

_OPERATORS = {"add": "add", "subtract": "sub", "multiply": "mul", "divide": "truediv", "matmul": "matmul"}


def _of_op(op, kinds) -> Callable:
    """An op's implementation where an argument is a sparse matrix: the operator or method of the name."""
    operator = _OPERATORS.get(op.name)

    def implementation(x, *others):
        if operator is not None:
            if isinstance(x, sparray):
                return getattr(x, f"__{operator}__")(others[0])
            return getattr(others[0], f"__r{operator}__")(x)
        if op.name == "negative":
            return -x
        if op.name in _ELEMENTWISE:
            found = getattr(x, op.name)
            return found() if callable(found) else found
        raise ArgumentTypeError(
            f"`{op.name}` takes no sparse matrix.", argument=op.tensors[0], hint="a method of it, or `A.toarray()`"
        )

    return implementation


_dispatch.trace_with(sparray, _of_op)
