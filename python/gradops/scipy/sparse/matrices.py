"""Sparse matrix classes with a constant pattern, whose values are a tensor of any library or a variable.

All formats share one representation: a pattern and the values in column-major order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ... import _scipy, dtypes, ops
from ...errors import ArgumentError, ArgumentTypeError, ShapeError
from ...ops import _checks, _dispatch
from .._tensors import is_complex, promoted
from . import _pattern
from ._ops import product
from ._pattern import Pattern
from ._reading import (
    dense,
    parts,
    placed,
    rank_of,
    read_compressed,
    read_coordinates,
    read_dense,
    restore_bool,
    whole_numbers,
)

FORMATS = ("csc", "csr", "coo")

_ELEMENTWISE = """abs sqrt sin tan arcsin arctan sinh tanh arcsinh arctanh expm1 log1p floor ceil trunc sign deg2rad
rad2deg conj real imag""".split()
"""Elementwise functions that are 0 at 0, so that they keep the pattern."""


def taken(values, places: np.ndarray):
    """Gather elements of a vector; the position after its last gives 0."""
    if places.size and places.max() == values.shape[0]:
        values = ops.concatenate([values, ops.zeros((1,), ops.dtype(values))])
    return ops.take(values, places, 0)


class sparray:
    """Base class of ``csc_array``, ``csr_array`` and ``coo_array``: a sparse matrix with a constant pattern.

    Attributes:
        values: a vector of the elements in column-major order, whatever the format.
        pattern: the constant positions of the elements.

    Returns:
        Operations return sparse matrices of these classes, or tensors.

    Raises:
        ArgumentTypeError: the base class itself is called.

    Gradient:
        By the values, which may be a variable, a library's tensor or a traced tensor.
    """

    format = "csc"
    ndim = 2
    __array_ufunc__ = None  # NumPy arrays leave operators to this class
    __array_priority__ = 2000
    __iter__ = None

    def __init__(self, arg1, shape=None, dtype=None, copy=False, *, maxprint=None):
        if type(self) in (sparray, spmatrix):
            raise ArgumentTypeError(f"`{type(self).__name__}` is a base class.", hint="`csr_array`, `csc_array`")
        self.pattern, self.values = _read(type(self), arg1, shape)
        if dtype is not None:
            self.values = ops.cast(self.values, np.dtype(dtype).name)

    # Attributes -------------------------------------------------------------------------------------------------------

    shape = property(lambda self: self.pattern.shape)
    nnz = property(lambda self: self.pattern.count, doc="The number of elements in the pattern, including zeros.")
    size = nnz
    dtype = property(lambda self: self.values.dtype)

    @property
    def data(self):
        """The elements in the order of :attr:`indices`."""
        return ops.take(self.values, self.pattern.row_order, 0) if self.format == "csr" else self.values

    @property
    def indices(self) -> np.ndarray:
        """The column (CSR) or row (CSC) of each element."""
        self._check_format("indices", "csr", "csc")
        pattern = self.pattern
        return pattern.columns[pattern.row_order] if self.format == "csr" else pattern.rows

    @property
    def indptr(self) -> np.ndarray:
        """The start of each row (CSR) or column (CSC), and the end."""
        self._check_format("indptr", "csr", "csc")
        return self.pattern.row_starts if self.format == "csr" else self.pattern.starts

    @property
    def coords(self) -> tuple[np.ndarray, np.ndarray]:
        """The rows and columns of elements (COO)."""
        self._check_format("coords", "coo")
        return self.pattern.rows, self.pattern.columns

    row = property(lambda self: self.coords[0])
    col = property(lambda self: self.coords[1])

    def _check_format(self, name: str, *formats: str) -> None:
        if self.format not in formats:
            raise AttributeError(f"a matrix of format {self.format!r} has no `{name}`")

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__} of shape {self.shape} with {self.nnz} elements of dtype {ops.dtype(self.values)}>"
        )

    def __getattr__(self, name: str):
        why = ""
        if not name.startswith("_") and hasattr(_scipy.sparse.csr_array, name):
            why = ": its pattern is constant, and some operations of SciPy's matrices have no derivative"
        raise AttributeError(f"a sparse matrix of gradops has no {name!r}{why}")

    # Conversions ------------------------------------------------------------------------------------------------------

    def with_values(self, values):
        """Return the matrix with other values on the same pattern, in the order of :attr:`values`."""
        return made(type(self), self.pattern, values)

    def _gradops_components(self):
        return [self.values], lambda given: self.with_values(*given)

    def tocsc(self, copy=False):
        """Return the matrix in CSC format; the values are the same tensor."""
        return self._converted("csc")

    def tocsr(self, copy=False):
        """Return the matrix in CSR format; the values are the same tensor."""
        return self._converted("csr")

    def tocoo(self, copy=True):
        """Return the matrix in COO format; the values are the same tensor."""
        return self._converted("coo")

    def asformat(self, format, copy=False):
        """Return the matrix in a format, ``"csc"``, ``"csr"`` or ``"coo"``; None keeps its own."""
        _checks.choice("sparse", format, (None, *FORMATS), "format")
        return self if format is None else self._converted(format)

    def _converted(self, format: str):
        return made(kind_of(format, isinstance(self, spmatrix)), self.pattern, self.values)

    def copy(self):
        """Return the matrix with the same values tensor, since values are never written to."""
        return self.with_values(self.values)

    def toarray(self, order=None, out=None):
        """Return the matrix as a dense tensor.

        Raises:
            ArgumentError: ``out`` is given.
        """
        if out is not None:
            raise ArgumentError("`toarray` does not support `out`.", argument="out")
        rows, columns = self.shape
        places = self.pattern.rows * columns + self.pattern.columns
        whole = ops.segment_sum(self.values, places, rows * columns)
        return ops.reshape(restore_bool(whole, self.values), self.shape)

    todense = toarray

    def astype(self, dtype, casting="unsafe", copy=True):
        """Return the matrix with its values cast to a dtype."""
        return self.with_values(ops.cast(self.values, dtype if isinstance(dtype, str) else np.dtype(dtype).name))

    def transpose(self, axes=None, copy=False):
        """Return the transposed matrix; CSC becomes CSR and CSR becomes CSC."""
        format = {"csr": "csc", "csc": "csr"}.get(self.format, self.format)
        values = ops.take(self.values, self.pattern.row_order, 0)
        return made(kind_of(format, isinstance(self, spmatrix)), self.pattern.transposed, values)

    T = property(transpose)

    # Parts ------------------------------------------------------------------------------------------------------------

    def __getitem__(self, key):
        """Return an element, or the matrix of rows and columns chosen by numbers, slices and lists."""
        from_numbers = stand_in(self, 0)[key]
        if np.ndim(from_numbers) == 0 and not issparse_of_scipy(from_numbers):
            place = int(from_numbers) - 1
            return taken(self.values, np.array([place if place >= 0 else self.nnz]))[0]
        if from_numbers.ndim != 2:
            raise ArgumentError(
                "`sparse`: sparse vectors are not supported.",
                argument="key",
                hint="a list, `A[[i]]`, gives a row as a matrix",
            )
        return gathered(lambda whole: whole[key], self)

    def diagonal(self, k=0):
        """Return the diagonal ``k`` columns to the right of the main one, as a vector."""
        rows, columns = self.shape
        count = max(min(rows + min(k, 0), columns - max(k, 0)), 0)
        start = np.arange(count)
        return taken(self.values, self.pattern.places(start - min(k, 0), start + max(k, 0)))

    def trace(self, offset=0):
        """Return the sum of a diagonal."""
        return ops.sum(self.diagonal(offset))

    def sum(self, axis=None, dtype=None, out=None):
        """Return the sum of all elements, or along an axis: a vector, for ``csr_matrix`` and its kin a matrix."""
        axis = self._axis(axis)
        values = self.values if dtype is None else ops.cast(self.values, np.dtype(dtype).name)
        if axis is None:
            return ops.sum(values)
        if dtype is None and ops.dtype(values) in dtypes.BOOL + dtypes.INTEGERS:  # like NumPy's sums
            values = ops.cast(values, "int64")
        return self._axis_result(ops.segment_sum(values, *self._segments(axis)), axis)

    def mean(self, axis=None, dtype=None, out=None):
        """Return the mean of all elements, or along an axis like :meth:`sum`."""
        axis = self._axis(axis)
        count = self.shape[0] * self.shape[1] if axis is None else self.shape[axis]
        return self.sum(axis, dtype) / count

    def _axis(self, axis):
        return None if axis is None else _checks.check_axis("sparse", axis, 2)

    def _segments(self, axis: int) -> tuple[np.ndarray, int]:
        return (self.pattern.rows if axis else self.pattern.columns), self.shape[1 - axis]

    def _axis_result(self, found, axis: int):
        return ops.expand_dims(found, axis) if isinstance(self, spmatrix) else found

    # Arithmetic -------------------------------------------------------------------------------------------------------

    def __neg__(self):
        return self.with_values(ops.negative(self.values))

    def __abs__(self):
        return self.with_values(restore_bool(ops.abs(self.values), self.values))

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
        return self.with_values(ops.divide(self.values, _values_on_pattern(self, other)))

    def __rtruediv__(self, other):
        raise ArgumentTypeError("`sparse`: a quotient by a sparse matrix is not sparse.", argument="other")

    def __pow__(self, power):
        return self.power(power)

    def __matmul__(self, other):
        return _product(self, other, False)

    def __rmatmul__(self, other):
        return _product(self, other, True)

    def dot(self, other):
        """Return ``self @ other``, or for a number the scaled matrix."""
        return self.multiply(other) if rank_of(other) == 0 else self @ other

    def multiply(self, other):
        """Return the elementwise product with a number, a tensor that broadcasts, or a sparse matrix of equal shape."""
        if not issparse(other):
            return self.with_values(ops.multiply(self.values, _values_on_pattern(self, other)))
        other = as_sparse(other)
        _same_shape(self, other)
        if other.pattern is self.pattern:
            return self.with_values(products(*_alike(self, other)))
        codes = np.intersect1d(self.pattern.codes, other.pattern.codes, True)
        left, right = (taken(v, m.pattern.places_of(codes)) for v, m in zip(_alike(self, other), (self, other)))
        return made(_computed(self), _pattern.interned(self.shape, codes), products(left, right))

    def power(self, n, dtype=None):
        """Return the matrix with its elements raised to a positive power."""
        if _checks.known(n) is not None and not np.all(np.asarray(_checks.known(n)) > 0):
            raise ArgumentError("`sparse`: `n` must be positive: 0 to another power is not 0.", argument="n")
        return self.with_values(ops.power(self.values, n))


class spmatrix(sparray):
    """Base class of ``csc_matrix``, ``csr_matrix`` and ``coo_matrix``: ``*`` is the matrix product, ``**`` its power.

    Returns:
        As for :class:`sparray`, but sums along an axis keep two dimensions.

    Raises:
        ArgumentTypeError: the base class itself is called.

    Gradient:
        As for :class:`sparray`.
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

_FORMAT = """Sparse matrix in {upper} format with a constant pattern.

    Elements are sorted, and elements at the same position are summed. ``data`` may be a tensor of any library or a
    variable; positions must be known numbers.

    Args:
        arg1: a sparse matrix, also SciPy's; a tensor, whose nonzero elements make the pattern;
            ``(data, (rows, columns))``{compressed}; or a shape, for a matrix without elements.
        shape: by default the smallest shape that holds the elements.
        dtype: the dtype of the values, by default that of ``data``.

    Returns:
        A matrix; see ``sparray``.

    Raises:
        ArgumentTypeError: an ``arg1`` that does not describe a matrix; rows or columns that are not known integers.
        ShapeError: parts whose sizes do not match, or do not match the shape.

    Gradient:
        By ``data``; for a tensor by its elements in the pattern.
    """


def _format(format: str, base: type) -> type:
    name = f"{format}_{'matrix' if base is spmatrix else 'array'}"
    compressed = "" if format == "coo" else "; ``(data, indices, indptr)``"
    doc = _FORMAT.format(upper=format.upper(), compressed=compressed)
    return type(name, (base,), {"format": format, "__doc__": doc, "__module__": __name__, "__qualname__": name})


csc_array, csr_array, coo_array = (_format(format, sparray) for format in FORMATS)
csc_matrix, csr_matrix, coo_matrix = (_format(format, spmatrix) for format in FORMATS)


def kind_of(format: str, matrix: bool) -> type:
    """Return the class of a format; CSR for SciPy's other formats."""
    return globals()[f"{format if format in FORMATS else 'csr'}_{'matrix' if matrix else 'array'}"]


def made(kind: type, pattern: Pattern, values) -> Any:
    """Return a matrix of a class from its pattern and values."""
    found: Any = object.__new__(kind)
    found.pattern, found.values = pattern, values
    return found


def issparse(x) -> bool:
    """True for a sparse matrix of gradops or SciPy.

    Returns:
        A bool.

    Gradient:
        None.
    """
    return isinstance(x, sparray) or issparse_of_scipy(x)


def issparse_of_scipy(x) -> bool:
    return type(x).__module__.startswith("scipy.sparse") and _scipy.sparse.issparse(x)


def isspmatrix(x) -> bool:
    """True for a sparse matrix of ``csc_matrix`` or its kin (not ``csc_array``), of gradops or SciPy.

    Returns:
        A bool.

    Gradient:
        None.
    """
    return isinstance(x, spmatrix) or issparse_of_scipy(x) and _scipy.sparse.isspmatrix(x)


def as_sparse(x, name: str = "A", dense: bool = False) -> Any:
    """Return an argument as a sparse matrix; it may be SciPy's, or with ``dense`` a tensor.

    Raises:
        ArgumentTypeError: an argument that is not a sparse matrix.
    """
    if isinstance(x, sparray):
        return x
    if issparse_of_scipy(x):
        if x.ndim != 2:
            raise ShapeError(f"`sparse`: `{name}` must have two dimensions; got {x.ndim}.", argument=name)
        whole = x.tocoo()
        pattern, places = _pattern.coordinate_pattern(whole.shape, whole.row, whole.col)
        return made(kind_of(x.format, _scipy.sparse.isspmatrix(x)), pattern, placed(whole.data, pattern, places))
    if dense and x is not None:
        return made(csr_matrix, *read_dense(x, None, name))
    raise ArgumentTypeError(
        f"`sparse`: `{name}` must be a sparse matrix; got {{value}}.",
        argument=name,
        hint=f"`csr_array({name})`",
        value=_checks.describe(x),
    )


def square(A) -> Any:
    """Return a square sparse matrix from one, or from a tensor."""
    A = as_sparse(A, "A", dense=True)
    if A.shape[0] != A.shape[1]:
        raise ShapeError(f"`sparse.linalg`: `A` must be square; got {A.shape}.", argument="A")
    return A


def symmetric_mean(A) -> Any:
    """Return the mean of a square real matrix and its transpose, which must be equal."""
    A = square(A)
    if is_complex(A.values):
        raise ArgumentError("`sparse.linalg`: `A` must be real.", argument="A")
    other = A.T
    S = A if other.pattern is A.pattern and other.values is A.values else (A.tocsc() + other.tocsc()) * 0.5
    values, mean = _checks.known(A.values), _checks.known(S.values)
    if values is not None and mean is not None:
        beside = mean[S.pattern.places_of(A.pattern.codes)] - values
        if np.max(np.abs(beside), initial=0.0) > 1e-5 * np.max(np.abs(values), initial=0.0):
            raise ArgumentError("`sparse.linalg`: `A` must be symmetric.", argument="A", hint="`(A + A.T) / 2`")
    return S


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
            return _pattern.coordinate_pattern(arg1, [], [])[0], np.zeros(0)
        if len(arg1) == 2:
            rows, columns = (whole_numbers(x, "arg1") for x in parts(arg1[1], 2, "arg1"))
            return read_coordinates(arg1[0], rows, columns, shape)
        if len(arg1) == 3 and kind.format != "coo":
            return read_compressed(kind.format, *arg1, shape)
        raise ArgumentTypeError(f"`sparse`: `arg1` is no matrix: a tuple of {len(arg1)}.", argument="arg1")
    return read_dense(arg1, shape)


# Matrices built from elements of others -------------------------------------------------------------------------------


def stand_in(x, start: int):
    """Return a NumPy array, or SciPy matrix, whose elements are the numbers of the elements of ``x``, from 1."""
    if not isinstance(x, sparray):
        return np.arange(start + 1, start + 1 + int(np.prod(x.shape))).reshape(tuple(x.shape))
    kind = "csc_matrix" if isinstance(x, spmatrix) else "csc_array"
    numbers = x.pattern.scipys(np.arange(start + 1, start + 1 + x.nnz), kind)
    return numbers.asformat(x.format)


def gathered(build: Callable, *parts) -> Any:
    """Return the matrix that SciPy's ``build`` assembles from elements of others, with derivatives by these.

    Args:
        build: a function from SciPy's matrices and arrays to a SciPy matrix, which only moves elements.
        *parts: sparse matrices and tensors.
    """
    numbers, start = [], 0
    for part in parts:
        numbers.append(stand_in(part, start))
        start += part.nnz if isinstance(part, sparray) else int(np.prod(part.shape))
    whole = build(*numbers)
    found = whole.tocoo()
    pattern, places = _pattern.coordinate_pattern(found.shape, found.row, found.col)
    from_parts = np.empty(pattern.count, np.int64)
    from_parts[places] = found.data - 1
    flat = [part.values if isinstance(part, sparray) else ops.reshape(part, (-1,)) for part in parts]
    flat = promoted(*flat)
    joined = flat[0] if len(flat) == 1 else ops.concatenate(flat)
    kind = kind_of(whole.format, _scipy.sparse.isspmatrix(whole))
    return made(kind, pattern, ops.take(joined, from_parts, 0))


# Arithmetic -----------------------------------------------------------------------------------------------------------


def _computed(left) -> type:
    """Return the class of a result: that of the left operand, or CSR if it is COO."""
    return kind_of("csr" if left.format == "coo" else left.format, isinstance(left, spmatrix))


def _alike(*matrices) -> list:
    return promoted(*[m.values for m in matrices])


def _same_shape(a, b) -> None:
    if a.shape != b.shape:
        raise ShapeError(f"`sparse`: the shapes {a.shape} and {b.shape} differ.", argument="other")


def _sum(a, b, combine: Callable):
    """Return ``combine(a, b)``, an addition or subtraction; with a tensor the result is a tensor."""
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
        return made(_computed(a), a.pattern, restore_bool(combine(left, right), left, right))
    pattern, places = _pattern.union(a.pattern, b.pattern)
    both = ops.concatenate([left, combine(ops.zeros_like(right), right)])
    return made(_computed(a), pattern, restore_bool(ops.segment_sum(both, places, pattern.count), left, right))


def products(a, b):
    """Return the elementwise products of two vectors of values."""
    return restore_bool(ops.multiply(a, b), a, b)


def _values_on_pattern(a, x):
    """Return a tensor's elements at the positions of the matrix's elements; a number unchanged."""
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
    """Return ``a @ b``, or ``b @ a`` if ``reflected``."""
    if issparse(b):
        b = as_sparse(b)
        return _sparse_product(b, a) if reflected else _sparse_product(a, b)
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


def _sparse_product(a, b):
    if a.shape[1] != b.shape[0]:
        raise ShapeError(f"`sparse`: shapes {a.shape} and {b.shape} do not fit a product.", argument="other")
    pattern, left, right, places = _pattern.product(a.pattern, b.pattern)
    values = _alike(a, b)
    products = ops.multiply(ops.take(values[0], left, 0), ops.take(values[1], right, 0))
    return made(_computed(a), pattern, restore_bool(ops.segment_sum(products, places, pattern.count), *values))


def power_of(A, power: int):
    """Return a power of a square matrix, by repeated products."""
    if power < 0:
        raise ArgumentError("`sparse`: `power` must not be negative.", argument="power")
    if power == 0:
        each = np.arange(A.shape[0])
        return made(
            type(A), _pattern.coordinate_pattern(A.shape, each, each)[0], ops.ones((A.shape[0],), ops.dtype(A.values))
        )
    if power == 1:
        return A
    half = power_of(A, power // 2)
    return half @ half @ A if power % 2 else half @ half


# Ops and tensors' operators applied to sparse matrices ----------------------------------------------------------------

_OPERATORS = {"add": "add", "subtract": "sub", "multiply": "mul", "divide": "truediv", "matmul": "matmul"}


def _op_implementation(op, kinds) -> Callable:
    """Return the implementation of an op for sparse arguments: the operator or method of the same name."""
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
            f"`{op.name}` takes no sparse matrix.", argument=op.tensors[0], hint="use a method of it, or `A.toarray()`"
        )

    return implementation


_dispatch.trace_with(sparray, _op_implementation)
