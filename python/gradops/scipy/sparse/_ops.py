"""Ops on a sparse matrix's values: products, solutions, the log determinant and the inverse on the pattern.

Values come as a column, right-hand sides as columns. The derivatives are composed of the same ops, so derivatives of
every order exist.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from ... import _scipy, ops
from ...annotations import Tensor
from ...extend import derivative, kernel
from ...extend import op as make_op
from .._hosted import register_matrix_kernel
from .._tensors import is_complex
from . import _pattern
from ._columns import symbolic_of
from ._factor import Factor
from ._pattern import Pattern

# Products -------------------------------------------------------------------------------------------------------------


@make_op(name="scipy.sparse.product", multilinear=("values", "x"))
def product(values: Tensor, x: Tensor, pattern: Pattern, transposed: bool) -> Tensor:
    """Product of the matrix, or its transpose, with columns."""
    into, out_of = (pattern.columns, pattern.rows) if transposed else (pattern.rows, pattern.columns)
    return ops.segment_sum(values * ops.take(x, out_of, 0), into, pattern.shape[1 if transposed else 0])


@kernel(product, "numpy")
def _(values, x, pattern, transposed):
    half = values.dtype == "float16"
    matrix = pattern.scipys(values[:, 0].astype("float32") if half else values[:, 0])
    y = (matrix.T if transposed else matrix) @ (x.astype("float32") if half else x)
    return y.astype(values.dtype) if half else y


def _conj(x):
    return ops.conj(x) if is_complex(x) else x


def _outer(g, x, pattern: Pattern):
    """Return the elements of ``g @ x^H`` on the pattern, as a column."""
    left, right = ops.take(g, pattern.rows, -2), ops.take(_conj(x), pattern.columns, -2)
    return ops.sum(left * right, -1, True)


derivative(
    product,
    complex_aware=True,
    values=lambda g, x, pattern, transposed: _outer(x, g, pattern) if transposed else _outer(g, x, pattern),
    x=lambda g, values, pattern, transposed: product(_conj(values), g, pattern, not transposed),
)


# Factors --------------------------------------------------------------------------------------------------------------


def cholesky(pattern: Pattern, values: np.ndarray) -> Factor | None:
    """Return the factor of real values on a symmetric pattern; None if the matrix is not positive definite."""
    last = pattern.last
    if isinstance(last, Factor) and np.array_equal(last.values, values):
        return last
    symbolic = pattern.__dict__.get("symbolic")
    if symbolic is None:
        if not pattern.symmetric or (pattern.diagonal == pattern.count).any():
            return None
        symbolic = pattern.__dict__["symbolic"] = symbolic_of(pattern)
    if not (values[pattern.diagonal] > 0).all():
        return None
    try:
        pattern.last = found = symbolic.factored(values.astype(float))
    except np.linalg.LinAlgError:
        return None
    return found


class Singular:
    """Stands for the factor of a singular matrix; solutions are NaN, with SciPy's warning."""

    @staticmethod
    def solve(b, trans="N"):
        warnings.warn("Matrix is exactly singular", _scipy.sparse.linalg.MatrixRankWarning, stacklevel=2)
        return np.full(b.shape, np.nan, b.dtype)


def factored(pattern: Pattern, values: np.ndarray) -> Any:
    """Return a factor with ``solve``: our Cholesky factor if symmetric positive definite, else SuperLU's."""
    if values.dtype.kind == "f" and pattern.symmetric and np.array_equal(values, values[pattern.row_order]):
        found = cholesky(pattern, values)
        if found is not None:
            return found
    last = pattern.last
    if type(last) is tuple and np.array_equal(last[0], values):
        return last[1]
    try:
        factor = _scipy.sparse.linalg.splu(pattern.scipys(values))
    except RuntimeError:  # exactly singular
        factor = Singular
    pattern.last = values.copy(), factor
    return factor


def _each(function):
    """Wrap a function of matrices to map over leading batch dimensions."""

    def stacked(*arguments):
        arrays = [x for x in arguments if isinstance(x, np.ndarray)]
        settings = [x for x in arguments if not isinstance(x, np.ndarray)]
        pattern = _pattern.numbered(settings[0])
        lead = np.broadcast_shapes(*[x.shape[:-2] for x in arrays])
        if not lead:
            return function(*arrays, pattern, *settings[1:])
        spread = [np.broadcast_to(x, (*lead, *x.shape[-2:])) for x in arrays]
        results = [function(*[x[at] for x in spread], pattern, *settings[1:]) for at in np.ndindex(lead)]
        return np.stack(results).reshape(*lead, *results[0].shape)

    return stacked


# Solutions ------------------------------------------------------------------------------------------------------------


@make_op(name="scipy.sparse.solution")
def solution(values: Tensor, b: Tensor, pattern: Pattern, transposed: bool) -> Tensor:
    """Solution of the system with the matrix, or its transpose, for right-hand sides as columns."""


def _solve_on_host(values, b, pattern, transposed):
    factor = factored(pattern, np.ascontiguousarray(values[:, 0]))
    if isinstance(factor, Factor):
        return factor.solve(b)
    return factor.solve(np.asfortranarray(b), "T" if transposed else "N")


register_matrix_kernel(solution, _each(_solve_on_host), like=1)


def _solution_by_b(g, values, pattern, transposed):
    return solution(_conj(values), g, pattern, not transposed)


def _solution_by_values(g, values, y, pattern, transposed):
    by_b = _solution_by_b(g, values, pattern, transposed)
    return -(_outer(_conj(y), _conj(by_b), pattern) if transposed else _outer(by_b, y, pattern))


derivative(solution, complex_aware=True, values=_solution_by_values, b=_solution_by_b)


# The determinant and the inverse on the pattern -----------------------------------------------------------------------


@make_op(name="scipy.sparse.logdet")
def log_determinant(values: Tensor, first: Tensor, pattern: Pattern) -> Tensor:
    """Log determinant of a symmetric positive definite matrix, NaN for others; ``first`` has the result's shape."""


def _log_determinant_on_host(values, first, pattern):
    factor = cholesky(pattern, values[:, 0])
    return np.full((1, 1), np.nan if factor is None else factor.logdet)


register_matrix_kernel(log_determinant, _each(_log_determinant_on_host), like=1)


@make_op(name="scipy.sparse.inverse")
def inverse(values: Tensor, directions: Tensor, pattern: Pattern) -> Tensor:
    """Inverse of a symmetric positive definite matrix on its pattern, NaN for others.

    With ``directions``, values of symmetric matrices as columns, its derivative along all of them.
    """


def none_of(values):
    """Return an empty set of directions."""
    return ops.stop_gradient(values)[..., :0]


def _inverse_on_host(values, directions, pattern):
    factor = cholesky(pattern, values[:, 0])
    if factor is None:
        return np.full(values.shape, np.nan)
    symmetric = (directions + directions[pattern.row_order]) / 2
    return factor.inverse(symmetric.astype(float))[:, None]


register_matrix_kernel(inverse, _each(_inverse_on_host))


def _directions_cotangent(g, values, directions, pattern):
    count = int(directions.shape[-1])
    others = [[directions[..., j : j + 1] for j in range(count) if j != k] for k in range(count)]
    found = [inverse(values, ops.concatenate([*rest, g], -1), pattern) for rest in others]
    return ops.concatenate(found, -1) if found else ops.zeros_like(directions)


derivative(
    log_determinant,
    values=lambda g, values, pattern: g * inverse(values, none_of(values), pattern),
)
derivative(
    inverse,
    values=lambda g, values, directions, pattern: inverse(values, ops.concatenate([directions, g], -1), pattern),
    directions=_directions_cotangent,
)
