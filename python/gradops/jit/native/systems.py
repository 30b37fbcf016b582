"""Lowering rules of linear algebra on small matrices: Cholesky factors, linear solves, inverses, determinants.

Small matrices are factored by scalar instructions, fully unrolled; larger ones of float64 by calls of LAPACK. Execution
ends if the result is in doubt: a pivot is so small that another rounding order could make it zero, a matrix is not
symmetric, or an element is NaN. The reference executor then repeats the run with NumPy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from ...backends import _shared
from ..operations import determinant_quotient
from .code import FLOATS, Code, NotNative
from .lowering import Lowering
from .registry import OF_KERNELS, rule

LARGEST, LARGEST_FACTOR, LARGEST_TRIANGULAR = 8, 12, 24
"""The most rows of an unrolled matrix: with row exchanges, for Cholesky factors, and for triangular matrices."""

MOST = 4096
"""The largest work of an unrolled step: rows times elements of the right-hand sides, or of the matrices without."""

SMALLEST = {FLOATS[0]: 1e-13, FLOATS[1]: 1e-5}
"""Pivots below this times the largest element of the matrix are left to NumPy."""


class _Numbers:
    """Emits arithmetic on cells of single numbers; the name of a method is the name of an instruction."""

    def __init__(self, code: Code, dtype: np.dtype):
        self.code = code
        self.smallest = code.constant(SMALLEST[dtype])

    def __getattr__(self, name: str) -> Callable[..., int]:
        return lambda *operands: self.code.number(name, [int(x) for x in operands])

    def largest(self, x: np.ndarray) -> int:
        """Emit the largest absolute value of the elements."""
        return self.code.reduced("max", np.array([self.absolute(e) for e in x.flat]), FLOATS[0])

    def row(self, name: str, *operands) -> np.ndarray:
        """Emit an operation on rows of cells, or single cells for all elements; long rows are one instruction."""
        shape = np.broadcast_shapes(*map(np.shape, operands))
        if shape[0] > LARGEST:
            return self.code.written(name, list(operands), shape, FLOATS[0])
        each = zip(*[np.broadcast_to(x, shape).tolist() for x in operands])
        return np.array([self.code.number(name, list(cells)) for cells in each], np.int64)

    def subtract_multiple(self, x: np.ndarray, factor: int, y: np.ndarray) -> np.ndarray:
        """Emit the row ``x - factor * y``; both operations round."""
        if len(x) > LARGEST:  # there is no fused instruction on vectors
            return self.row("subtract", x, self.row("multiply", factor, y))
        return self.row("multiply_subtract_right", factor, y, x)

    def subtract_products(self, x: int, a, b) -> int:
        """Emit ``x`` minus the dot product of two rows."""
        for i, j in zip(a, b):
            x = self.multiply_subtract_right(i, j, x)
        return x


def _matrix_rule(name: str, largest: int = LARGEST, lapack: Callable | None = None) -> Callable:
    """Register the rule of an op on a matrix or a stack of matrices, with right-hand sides if it is a solver.

    Args:
        name: the op.
        largest: the most rows for the decorated function, which emits unrolled code.
        lapack: emits a call of LAPACK for larger matrices, or None.
    """

    def register(function: Callable) -> Callable:
        @rule(name)
        def lowered(lowering: Lowering, step, *arguments):
            values = lowering.program.value(step.places[0])
            dtype = np.asarray(values).dtype
            if dtype not in FLOATS:
                raise NotNative(f"dtype {dtype}")
            tensors = 2 if name.startswith("solve") else 1
            given = [lowering.array(x, dtype) for x in arguments[:tensors]]
            rows = given[0].shape[-1]
            write: Callable = function
            if not given[0].size or rows > largest or rows * given[-1].size > MOST:
                if lapack is None or not _is_for_lapack(lowering, given, dtype):
                    raise NotNative("matrices for LAPACK")
                write = lapack
            options = lowering.constants(arguments[tensors:])
            found = write(_Numbers(lowering.code, dtype), *given, *options)
            results = [x if np.ndim(x) else int(x) for x in (found if step.several else [found])]
            return results if step.several else results[0]

        return function

    return register


LARGEST_SYSTEM = 64
"""The most rows of a matrix for which native code calls LAPACK."""


def _is_for_lapack(lowering: Lowering, given: list[np.ndarray], dtype) -> bool:
    """Return True if native code can call LAPACK: for a single matrix of float64 that is not too large."""
    is_one = given[0].ndim == 2 and given[-1].ndim <= 2 and all(x.size for x in given)
    small = is_one and given[0].shape[0] <= LARGEST_SYSTEM and given[-1].size <= LARGEST_SYSTEM**2
    return small and dtype == FLOATS[0] and lowering.code.machine.has("dgetrf", "dgetrs", "dgetri")


def _solve_by_lapack(numbers: _Numbers, a, b):
    factor, out = numbers.code.solved(a, b.reshape(len(a), -1))
    numbers.code.require(factor.regular)
    return out.reshape(b.shape)


def _inv_by_lapack(numbers: _Numbers, x):
    factor, out = numbers.code.inverse(x)
    numbers.code.require(factor.regular)
    return out


def _slogdet_by_lapack(numbers: _Numbers, x):
    code, factor = numbers.code, numbers.code.factor(x)
    code.require(factor.regular)
    diagonal = factor.matrix.diagonal()
    signs = code.elementwise("sign", [diagonal], diagonal.shape, FLOATS[0])
    sizes = code.elementwise("absolute", [diagonal], diagonal.shape, FLOATS[0])
    logs = code.elementwise("log", [sizes], diagonal.shape, FLOATS[0])
    sign = numbers.multiply(factor.sign, code.reduced("prod", signs, FLOATS[0]))
    return sign, code.reduced("sum", logs, FLOATS[0])


def _det_by_lapack(numbers: _Numbers, x):
    factor = numbers.code.factor(x)
    numbers.code.require(factor.regular)
    return numbers.multiply(factor.sign, numbers.code.reduced("prod", factor.matrix.diagonal(), FLOATS[0]))


def _matrices(x: np.ndarray) -> Iterator[tuple[tuple[int, ...], np.ndarray]]:
    """Yield each matrix of a stack, with its index."""
    for place in np.ndindex(x.shape[:-2]):
        yield place, x[place]


@_matrix_rule("cholesky", LARGEST_FACTOR)
def _cholesky(numbers: _Numbers, x, upper=False):
    out = np.full(x.shape, numbers.code.constant(0.0))
    for place, a in _matrices(x):
        out[place] = _factor(numbers, a)
    return np.swapaxes(out, -1, -2) if upper else out


def _factor(numbers: _Numbers, a: np.ndarray) -> np.ndarray:
    """Emit the lower Cholesky factor of a matrix; asymmetries within rounding are averaged out."""
    n, code = len(a), numbers.code
    half, zero = code.constant(0.5), code.constant(0.0)
    allowed = numbers.multiply(numbers.largest(a), code.constant(_shared.ASYMMETRY))
    a, out = a.copy(), np.full((n, n), zero)
    for j in range(n):
        for i in range(j + 1, n):
            difference = numbers.subtract(a[i, j], a[j, i])
            code.require(numbers.less_equal(numbers.absolute(difference), allowed))
            a[i, j] = numbers.subtract(a[i, j], numbers.multiply(difference, half))
        pivot = numbers.subtract_products(a[j, j], out[j, :j], out[j, :j])
        code.require(numbers.greater(pivot, numbers.maximum(numbers.multiply(a[j, j], numbers.smallest), zero)))
        out[j, j] = numbers.sqrt(pivot)
        for i in range(j + 1, n):
            out[i, j] = numbers.divide(numbers.subtract_products(a[i, j], out[i, :j], out[j, :j]), out[j, j])
    return out


@_matrix_rule("solve_triangular", LARGEST_TRIANGULAR)
def _solve_triangular(numbers: _Numbers, a, b, lower=False):
    zero = numbers.code.constant(0.0)

    def solved(a, b):
        order = list(range(len(a)) if lower else range(len(a) - 1, -1, -1))
        for i in order:
            numbers.code.require(numbers.not_equal(a[i, i], zero))
        return _substituted(numbers, a, b, order)

    return _for_each_system(solved, a, b)


def _substituted(numbers: _Numbers, a: np.ndarray, b: np.ndarray, order: list[int]) -> np.ndarray:
    """Emit forward or backward substitution in a triangular system, in the given order of rows."""
    x = b.copy()
    for k, i in enumerate(order):
        for j in order[:k]:
            x[i] = numbers.subtract_multiple(x[i], int(a[i, j]), x[j])
        x[i] = numbers.row("divide", x[i], int(a[i, i]))
    return x


def _for_each_system(solved: Callable, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Emit the solution of each system of a stack by ``solved(a, b)``; return the cells of the solutions."""
    is_vector = _shared.is_vector(a, b)
    b = b[..., None] if is_vector else b
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a, b = (np.broadcast_to(x, batch + x.shape[-2:]) for x in (a, b))
    out = np.empty(b.shape, np.int64)
    for place, one in _matrices(a):
        out[place] = solved(one, b[place])
    return out[..., 0] if is_vector else out


def _eliminated(numbers: _Numbers, a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray, list[int]]:
    """Emit Gaussian elimination with partial pivoting; return the upper factor, right-hand sides and swap flags."""
    n, code = len(a), numbers.code
    rows, right, swaps = a.copy(), b.copy(), []
    # Near a singular matrix, LAPACK's order of operations decides whether a pivot is exactly 0, and so whether NumPy
    # raises an error. To give NumPy's answer, execution ends well before that. A NaN makes `least` NaN, and every
    # comparison with it false.
    least = numbers.multiply(numbers.largest(a), numbers.smallest)
    for k in range(n):
        for i in range(k + 1, n):
            # Each element is selected from both rows, which avoids a jump for each swap. Comparing every lower row with
            # the pivot so far leaves the largest, like a search.
            swap = numbers.greater(numbers.absolute(rows[i, k]), numbers.absolute(rows[k, k]))
            for x in (rows[:, k:], right):
                first, second = x[k].copy(), x[i].copy()
                x[k], x[i] = numbers.row("where", swap, second, first), numbers.row("where", swap, first, second)
            swaps.append(swap)
        code.require(numbers.greater(numbers.absolute(rows[k, k]), least))
        for i in range(k + 1, n):
            factor = numbers.divide(rows[i, k], rows[k, k])
            for x in (rows[:, k + 1 :], right):
                x[i] = numbers.subtract_multiple(x[i], factor, x[k])
    return rows, right, swaps


def _solved(numbers: _Numbers, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    upper, right, _ = _eliminated(numbers, a, b)
    return _substituted(numbers, upper, right, list(range(len(a) - 1, -1, -1)))


@_matrix_rule("solve", lapack=_solve_by_lapack)
def _solve(numbers: _Numbers, a, b):
    return _for_each_system(lambda a, b: _solved(numbers, a, b), a, b)


@_matrix_rule("inv", lapack=_inv_by_lapack)
def _inv(numbers: _Numbers, x):
    eye = np.where(np.eye(x.shape[-1], dtype=bool), numbers.code.constant(1.0), numbers.code.constant(0.0))
    out = np.empty(x.shape, np.int64)
    for place, a in _matrices(x):
        out[place] = _solved(numbers, a, eye)
    return out


def _sign_and_diagonal(numbers: _Numbers, a: np.ndarray) -> tuple[int, np.ndarray]:
    """Emit the pivots of a matrix, whose product is the determinant up to a sign; return the sign and the pivots."""
    upper, _, swaps = _eliminated(numbers, a, a[:, :0])
    sign = numbers.code.constant(1.0)
    for swap in swaps:
        sign = numbers.where(swap, numbers.negative(sign), sign)
    return sign, np.diagonal(upper)


@_matrix_rule("det", lapack=_det_by_lapack)
def _det(numbers: _Numbers, x):
    out = np.empty(x.shape[:-2], np.int64)
    for place, a in _matrices(x):
        product, diagonal = _sign_and_diagonal(numbers, a)
        for factor in diagonal:
            product = numbers.multiply(product, factor)
        out[place] = product
    return out


def _divide_by_determinant(lowering: Lowering, step, x, y):
    code, given = lowering.code, [lowering.array(number, FLOATS[0]) for number in (x, y)]
    code.require(code.number("not_equal", [int(given[1]), code.constant(0.0)]))
    return code.number("divide", list(map(int, given)))


OF_KERNELS[determinant_quotient] = _divide_by_determinant


@_matrix_rule("slogdet", lapack=_slogdet_by_lapack)
def _slogdet(numbers: _Numbers, x):
    signs, logs = np.empty(x.shape[:-2], np.int64), np.empty(x.shape[:-2], np.int64)
    for place, a in _matrices(x):
        sign, diagonal = _sign_and_diagonal(numbers, a)
        total = numbers.code.constant(0.0)
        for factor in diagonal:
            sign = numbers.multiply(sign, numbers.sign(factor))
            total = numbers.add(total, numbers.log(numbers.absolute(factor)))
        signs[place], logs[place] = sign, total
    return signs, logs
