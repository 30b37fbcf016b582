"""Derivatives: systems of equations and inverses (Giles 2008; Golub & Pereyra 1973)."""

from ...ops import add, matmul, negative, solve, solve_triangular, squeeze, subtract, swapaxes
from ...ops._matrices import adjoint, columns, is_vector, lower_part, upper_part
from ..record import derivative


def _inv(g, y):
    turned = swapaxes(y, -1, -2)
    return negative(matmul(matmul(turned, g), turned))


def _pinv(g, x, y, rcond):
    yh, gh = adjoint(y), adjoint(g)
    gradient = negative(matmul(matmul(yh, g), yh))
    right = matmul(matmul(gh, y), yh)
    left = matmul(matmul(yh, y), gh)
    gradient = add(gradient, subtract(right, matmul(x, matmul(y, right))))
    return add(gradient, subtract(left, matmul(matmul(left, y), x)))


derivative("inv", x=_inv)
derivative("pinv", complex_aware=True, x=_pinv)


# The right side's gradient solves the transposed system; the matrix' is its product with the solution.


def _as_columns(a, b, *vectors):
    return [columns(v) for v in vectors] if is_vector(tuple(a.shape), tuple(b.shape)) else vectors


def _solve(g, a, b, y):
    by_b = _solve_b(g, a, b)
    x, y = _as_columns(a, b, by_b, y)
    return matmul(negative(x), swapaxes(y, -1, -2)), by_b


def _solve_b(g, a, b):
    (right,) = _as_columns(a, b, g)
    x = solve(swapaxes(a, -1, -2), right)
    return squeeze(x, -1) if is_vector(tuple(a.shape), tuple(b.shape)) else x


def _triangular_a(g, a, b, y, lower):
    g, y = _as_columns(a, b, g, y)
    whole = matmul(solve_triangular(swapaxes(a, -1, -2), g, not lower), swapaxes(y, -1, -2))
    return negative((lower_part if lower else upper_part)(whole))


def _triangular_b(g, a, b, lower):
    (right,) = _as_columns(a, b, g)
    x = solve_triangular(swapaxes(a, -1, -2), right, not lower)
    return squeeze(x, -1) if is_vector(tuple(a.shape), tuple(b.shape)) else x


derivative("solve", a=lambda g, a, b, y: _solve(g, a, b, y)[0], b=_solve_b, joint=_solve)
derivative("solve_triangular", a=_triangular_a, b=_triangular_b)
