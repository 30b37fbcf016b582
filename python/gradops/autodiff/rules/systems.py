"""Derivatives: systems of equations and inverses (Giles 2008; Golub & Pereyra 1973), exponentials."""

from ...ops import (
    add,
    concatenate,
    expm,
    get_item,
    matmul,
    negative,
    solve,
    solve_triangular,
    squeeze,
    subtract,
    swapaxes,
    zeros_like,
)
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


def _expm(g, x):
    """Fréchet's derivative along ``g`` at the transpose (Al-Mohy & Higham 2009)."""
    turned, size = swapaxes(x, -1, -2), x.shape[-1]
    upper, lower = concatenate([turned, g], -1), concatenate([zeros_like(turned), turned], -1)
    return get_item(expm(concatenate([upper, lower], -2)), (..., slice(0, size), slice(size, None)))


derivative("inv", x=_inv)
derivative("expm", x=_expm)
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
