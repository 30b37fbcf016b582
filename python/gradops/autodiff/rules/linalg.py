"""Derivatives of factorisations, determinants, systems of equations and inverses, exponentials.

Rules of ops of several results, and of Cholesky's, mind conjugates themselves: ``g`` is dL/dRe + i dL/dIm.
Undefined terms, between repeated eigenvalues or singular values and for singular values of 0, count as 0;
"repeated" is: equal up to ten roundings of the largest. Systems: Giles 2008; Golub & Pereyra 1973.
"""

import functools

import numpy as np

from ...ops import (
    abs,
    add,
    adjugate,
    all,
    cast,
    concatenate,
    conj,
    det,
    divide,
    dtype,
    equal,
    exp,
    expand_dims,
    expm,
    get_item,
    imag,
    inv,
    less_equal,
    log,
    matmul,
    max,
    multiply,
    negative,
    not_equal,
    real,
    solve,
    solve_triangular,
    squeeze,
    subtract,
    sum,
    svd,
    swapaxes,
    where,
    zeros_like,
)
from ...ops._compose import is_complex
from ...ops._matrices import (
    adjoint,
    columns,
    diagonal_of,
    epsilon,
    from_diagonal,
    identity_like,
    is_vector,
    lower_part,
    upper_part,
)
from ..record import derivative


def _half_sum(x):
    """The mean of a matrix and its conjugate transpose."""
    return multiply(add(x, adjoint(x)), 0.5)


def _rows(v):
    """Vectors as matrices of one row."""
    return expand_dims(v, -2)


def _columns(v):
    return expand_dims(v, -1)


# Cholesky (Murray 2016) -----------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=8)
def _lower_half(n: int) -> np.ndarray:
    """1 below the diagonal and 0.5 on it."""
    half = np.tri(n) - 0.5 * np.eye(n)
    half.flags.writeable = False
    return half


def _cholesky(g, y, upper):
    turned, g = (y, adjoint(g)) if upper else (adjoint(y), g)
    inner = multiply(matmul(turned, g), _lower_half(y.shape[-1]))
    left = solve_triangular(turned, inner, False)
    return _half_sum(adjoint(solve_triangular(turned, adjoint(left), False)))


derivative("cholesky", complex_aware=True, x=_cholesky)


# Determinants ---------------------------------------------------------------------------------------------------------


def _det(g, x, y):
    cofactors = multiply(inv(x), _matrix_of(y)) if _known(all(not_equal(y, 0))) else adjugate(x)
    return multiply(_matrix_of(g), swapaxes(cofactors, -1, -2))


def _known(condition) -> bool:
    """True if a condition is known to hold: inside a trace it is not known."""
    try:
        return bool(condition)
    except Exception:
        return False


def _matrix_of(v):
    """Scalars as matrices of one element."""
    return expand_dims(v, (-2, -1))


def _adjugate(g, x):
    """The derivative of the adjugate, in the basis of singular vectors: products of all but two singular values."""
    u, s, vh = svd(x)
    zero = equal(s, 0)
    logs = log(where(zero, 1.0, s))
    zeros = cast(zero, "int64")
    count, total = _columns(sum(zeros, -1, True)), _columns(sum(logs, -1, True))
    others = where(
        equal(subtract(subtract(count, _rows(zeros)), _columns(zeros)), 0),
        exp(subtract(subtract(total, _rows(logs)), _columns(logs))),
        0.0,
    )
    others = subtract(others, from_diagonal(diagonal_of(others)))
    h = matmul(matmul(adjoint(u), swapaxes(g, -1, -2)), adjoint(vh))
    diagonal = matmul(cast(others, dtype(h)), _columns(diagonal_of(h)))
    inner = subtract(from_diagonal(diagonal[..., 0]), multiply(swapaxes(h, -1, -2), others))
    turn = _matrix_of(multiply(det(u), det(vh)))
    return multiply(turn, matmul(matmul(conj(u), inner), conj(vh)))


def _slogdet(g, x, y):
    g_sign, g_log = g
    sign = y[0]
    regular = _known(all(sign != 0))
    singular = None if regular else _matrix_of(equal(sign, 0))
    inverse = adjoint(inv(x if regular else where(singular, identity_like(x), x)))
    factor = g_log
    if is_complex(x):
        factor = subtract(cast(factor, dtype(inverse)), multiply(imag(multiply(conj(g_sign), sign)), 1j))
    slope = factor[..., None, None] * inverse
    return slope if regular else where(singular, float("nan"), slope)


derivative("det", x=_det)
derivative("adjugate", x=_adjugate)
derivative("slogdet", several=True, x=_slogdet)


# Eigenvalues and singular values (Giles 2008; Boeddeker et al. 2017; Wan & Zhang 2019; Townsend 2016) -----------------


def _inverse_gaps(v):
    """``1 / (v_j - v_i)`` at row i and column j, 0 where the two count as equal."""
    gaps = subtract(_rows(v), _columns(v))
    size = abs(v)
    same = less_equal(abs(gaps), multiply(_columns(max(size, -1, True)), 10 * epsilon(v)))
    return where(same, 0.0, divide(1.0, where(same, 1.0, gaps)))


def _eigh(g, y):
    g_w, g_v = g
    w, v = y
    if 0 in tuple(w.shape):
        return g_v
    inner = multiply(matmul(adjoint(v), g_v), _inverse_gaps(w))
    inner = add(inner, from_diagonal(cast(g_w, dtype(inner))))
    return _half_sum(matmul(matmul(v, inner), adjoint(v)))


def _eig(g, y):
    g_w, g_v = g
    w, v = y
    if 0 in tuple(w.shape):
        return g_v
    vh = adjoint(v)
    inner = matmul(vh, g_v)
    lengths = real(diagonal_of(inner))
    inner = subtract(inner, matmul(vh, multiply(v, _rows(lengths))))
    inner = add(multiply(inner, conj(_inverse_gaps(w))), from_diagonal(g_w))
    return solve(vh, matmul(inner, vh))


def _svd(g, x, y, full_matrices, compute_uv):
    if not compute_uv:
        u, s, vh = svd(x, False)
        return matmul(multiply(u, _rows(g)), vh)
    u, s, vh = y
    v, g_u, g_s, g_v = adjoint(vh), g[0], g[1], adjoint(g[2])
    rank = s.shape[-1]
    if rank == 0:
        return zeros_like(x)
    u, g_u = _own_span(u, g_u, rank)
    v, g_v = _own_span(v, g_v, rank)
    vh = adjoint(v)
    u_part, v_part = matmul(adjoint(u), g_u), matmul(vh, g_v)
    largest = max(s, -1, True)
    zero = less_equal(s, multiply(largest, 10 * epsilon(s)))
    inverse = where(zero, 0.0, divide(1.0, where(zero, 1.0, s)))
    sums = add(_rows(s), _columns(s))
    gaps = multiply(_inverse_gaps(s), where(equal(sums, 0), 0.0, divide(1.0, where(equal(sums, 0), 1.0, sums))))
    inner = multiply(multiply(subtract(u_part, adjoint(u_part)), gaps), _rows(s))
    inner = add(inner, multiply(_columns(s), multiply(subtract(v_part, adjoint(v_part)), gaps)))
    diagonal = cast(g_s, dtype(inner))
    if is_complex(x):
        phases = subtract(imag(diagonal_of(u_part)), imag(diagonal_of(v_part)))
        diagonal = add(diagonal, multiply(multiply(phases, multiply(inverse, 0.5)), 1j))
    gradient = matmul(matmul(u, add(inner, from_diagonal(diagonal))), vh)
    rows, columns = x.shape[-2:]
    if rows > rank:
        scaled = multiply(g_u, _rows(inverse))
        gradient = add(gradient, matmul(subtract(scaled, matmul(u, matmul(adjoint(u), scaled))), vh))
    if columns > rank:
        scaled = adjoint(multiply(g_v, _rows(inverse)))
        gradient = add(gradient, matmul(u, subtract(scaled, matmul(matmul(scaled, v), vh))))
    return gradient


def _own_span(q, g, rank):
    """The first ``rank`` columns, with the contribution of the others' gradient to their span."""
    if q.shape[-1] == rank:
        return q, g
    first, rest = q[..., :rank], q[..., rank:]
    return first, subtract(g[..., :rank], matmul(rest, matmul(adjoint(g[..., rank:]), first)))


derivative("eigh", several=True, x=_eigh)
derivative("eig", several=True, x=_eig)
derivative("svd", several=True, x=_svd)


# QR (Walter & Lehmann 2010) and LU (de Hoog et al. 2011) --------------------------------------------------------------


def _qr(g, x, y):
    (g_q, g_r), (q, r) = g, y
    rows, columns = x.shape[-2:]
    rank = rows if rows < columns else columns
    if rank == 0:
        return zeros_like(x)
    q, g_q = _own_span(q, g_q, rank)
    r, g_r = r[..., :rank, :], g_r[..., :rank, :]
    g_rest = None
    if columns > rank:
        g_rest = matmul(q, g_r[..., rank:])
        g_q = add(g_q, matmul(x[..., rank:], adjoint(g_r[..., rank:])))
        r, g_r = r[..., :rank], g_r[..., :rank]
    m = subtract(matmul(r, adjoint(g_r)), matmul(adjoint(g_q), q))
    m = add(lower_part(m, -1), add(adjoint(lower_part(m, -1)), from_diagonal(cast(real(diagonal_of(m)), dtype(m)))))
    left = adjoint(solve_triangular(r, adjoint(add(g_q, matmul(q, m))), False))
    return left if g_rest is None else concatenate([left, g_rest], -1)


def _lu_factor(g, y):
    g, (lu, pivots) = g[0], y
    rows, columns = lu.shape[-2:]
    rank = rows if rows < columns else columns
    if rank == 0:
        return zeros_like(lu)
    square, g_square = lu[..., :rank, :rank], g[..., :rank, :rank]
    lower = add(lower_part(square, -1), identity_like(square))
    upper = upper_part(square)
    below = matmul(adjoint(lower), lower_part(g_square, -1))
    above = matmul(upper_part(g_square), adjoint(upper))
    if rows > rank:
        above = subtract(above, matmul(adjoint(lu[..., rank:, :]), g[..., rank:, :]))
    if columns > rank:
        below = subtract(below, matmul(g[..., rank:], adjoint(lu[..., rank:])))
    inner = add(lower_part(below, -1), upper_part(above))
    inner = solve_triangular(adjoint(lower), inner, False)
    gradient = adjoint(solve_triangular(upper, adjoint(inner), False))
    if rows > rank:
        rest = adjoint(solve_triangular(upper, adjoint(g[..., rank:, :]), False))
        gradient = concatenate([gradient, rest], -2)
    if columns > rank:
        rest = solve_triangular(adjoint(lower), g[..., rank:], False)
        gradient = concatenate([gradient, rest], -1)
    return matmul(swapaxes(cast(_exchanges(pivots, rows), dtype(lu)), -1, -2), gradient)


def _exchanges(pivots, rows):
    """The matrices that exchange rows as ``pivots`` say, one exchange after the other."""
    place = np.arange(rows)
    order = add(zeros_like(pivots[..., :1]), place)
    for k in range(pivots.shape[-1]):
        found, here = pivots[..., k : k + 1], order[..., k : k + 1]
        there = sum(where(equal(place, found), order, 0), -1, True)
        order = where(equal(place, found), here, order)
        order = where(equal(place, k), there, order)
    return equal(_columns(order), place)


derivative("qr", several=True, x=_qr)
derivative("lu_factor", several=True, x=_lu_factor)


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
    x = _solve_b(g, a)
    if is_vector(tuple(a.shape), tuple(b.shape)):
        return (-x)[..., None] * y[..., None, :], x
    return matmul(negative(x), swapaxes(y, -1, -2)), x


def _solve_b(g, a):
    return solve(swapaxes(a, -1, -2), g)


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
