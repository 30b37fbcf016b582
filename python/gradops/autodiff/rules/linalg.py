"""Derivatives of factorisations, determinants, linear solves, inverses and matrix exponentials.

The rules of Cholesky and of ops with several results handle conjugates themselves: ``g`` is dL/dRe + i dL/dIm.
Eigenvalues and singular values count as repeated if they differ by at most ten roundings of the largest.
Linear solves: Giles 2008; Golub & Pereyra 1973.
"""

import functools

import numpy as np

from ...ops import (
    abs,
    add,
    adjugate,
    all,
    broadcast_to,
    cast,
    concatenate,
    conj,
    cumsum,
    det,
    divide,
    dtype,
    equal,
    expand_dims,
    expm,
    get_item,
    greater,
    imag,
    inv,
    less,
    less_equal,
    logical_and,
    logical_not,
    matmul,
    max,
    multiply,
    negative,
    not_equal,
    prod,
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
from ...ops.decompositions import crease, parted, undefined
from ..record import derivative


def _half_sum(x):
    """Return the mean of a matrix and its conjugate transpose."""
    return multiply(add(x, adjoint(x)), 0.5)


def _rows(v):
    """Return vectors as matrices of one row."""
    return expand_dims(v, -2)


def _columns(v):
    return expand_dims(v, -1)


# Cholesky (Murray 2016) -----------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=8)
def _lower_half(n: int) -> np.ndarray:
    """Return a matrix with 1 below the diagonal and 0.5 on it."""
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
    inverse = inv(x) if _known(all(not_equal(y, 0))) else None
    if inverse is None or not _known(_is_regular(x, inverse)):
        cofactors = adjugate(x)
    else:
        cofactors = multiply(inverse, _matrix_of(y))
    return multiply(_matrix_of(g), swapaxes(cofactors, -1, -2))


def _is_regular(x, inverse):
    """True if the product of the determinant and three inverses, its third derivative, keeps enough digits."""
    if 0 in tuple(x.shape):
        return True
    sizes = [max(abs(m), (-2, -1)) for m in (x, inverse)]
    return all(less(multiply(*sizes), epsilon(x) ** -0.25))


def _known(condition) -> bool:
    """True if a condition is known to hold; False inside a trace, where it has no value."""
    try:
        return bool(condition)
    except Exception:
        return False


def _matrix_of(v):
    """Return scalars as matrices of one element."""
    return expand_dims(v, (-2, -1))


@functools.lru_cache(maxsize=8)
def _all_but_two(n: int) -> np.ndarray:
    """Return an array that is True at i, j, k if k is neither i nor j."""
    i, j, k = np.indices((n, n, n))
    chosen = (k != i) & (k != j)
    chosen.flags.writeable = False
    return chosen


def _adjugate(g, x):
    """Return the gradient of the adjugate: products of all singular values but two, in the basis of their vectors."""
    u, s, vh = svd(x)
    others = prod(where(_all_but_two(s.shape[-1]), expand_dims(s, (-2, -3)), 1.0), -1)
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

# The eigenvectors of a repeated value are an arbitrary basis of its eigenspace, and `1 / (w_j - w_i)` is infinite. If
# the derivative depends on the choice of basis, it is NaN rather than a part of the truth: `undefined()` where the
# cotangent of the vectors has an element between two of them, `parted()` where the cotangents of the values differ.
# Even `v f(w) v^H`, which does not depend on the choice, gives NaN: the rule is given `f(w)` times a block of the
# upstream gradient but needs `f'(w)` times that block, and cannot tell the two apart.


def _clusters(w):
    """Return labels of ordered values; neighbours within ten roundings of the largest value share a label."""
    size = max(abs(w), -1, True)
    apart = greater(abs(subtract(w[..., 1:], w[..., :-1])), multiply(size, 10 * epsilon(w)))
    return concatenate([zeros_like(cast(w[..., :1], "int64")), cumsum(cast(apart, "int64"), -1)], -1)


def _pairs(labels):
    """Return where row and column are two different values with the same label, and where labels are the same."""
    same = equal(_rows(labels), _columns(labels))
    return logical_and(same, _apart(labels.shape[-1])), same


@functools.lru_cache(maxsize=8)
def _apart(n: int) -> np.ndarray:
    """Return an array that is True off the diagonal."""
    apart = ~np.eye(n, dtype=bool)
    apart.flags.writeable = False
    return apart


def _inverse(x, zero):
    """Return ``1 / x``, or 0 where ``zero``."""
    return where(zero, 0.0, divide(1.0, where(zero, 1.0, x)))


def _inverse_gaps(w, same):
    """Return ``1 / (w_j - w_i)`` at row i and column j, or 0 where the two values count as the same."""
    return _inverse(subtract(_rows(w), _columns(w)), same)


def _floor(w):
    """Return the rounding error to expect in cotangents, whose own size may be rounding: ``(w - 1)**2`` at 1."""
    return multiply(add(max(abs(w), -1, True), 1.0), 100 * epsilon(w))


def _eigh(g, x, y):
    g_w, g_v = g
    w, v = y
    if 0 in tuple(w.shape):
        return g_v
    vh = adjoint(v)
    pairs, same = _pairs(_clusters(w))
    turn = matmul(vh, g_v)
    inner = add(multiply(turn, _inverse_gaps(w, same)), from_diagonal(cast(g_w, dtype(turn))))
    inner = add(inner, _unknown(turn, matmul(matmul(vh, x), v), pairs, g_v))
    inner = add(inner, cast(parted(_rows(g_w), _columns(g_w), pairs, _columns(_floor(w))), dtype(turn)))
    return _half_sum(matmul(matmul(v, inner), vh))


def _unknown(t, x, at, scale):
    """Return NaN where the first derivative is undefined, with NaN as its derivative with respect to ``x`` there."""
    return add(undefined(t, at, scale), crease(t, x, at))


def _eig(g, x, y):
    g_w, g_v = g
    w, v = y
    if 0 in tuple(w.shape):
        return zeros_like(x)
    vh = adjoint(v)
    inner = matmul(vh, g_v)
    lengths = real(diagonal_of(inner))
    inner = subtract(inner, matmul(vh, multiply(v, _rows(lengths))))
    pairs, same = _close(w)
    differ = parted(_rows(g_w), _columns(g_w), pairs, _columns(_floor(w)))
    rest = add(_unknown(inner, solve(v, matmul(cast(x, dtype(v)), v)), pairs, g_v), cast(differ, dtype(inner)))
    inner = add(multiply(inner, conj(_inverse_gaps(w, same))), rest)
    inner = add(inner, from_diagonal(g_w))
    gradient = solve(vh, matmul(inner, vh))
    return gradient if is_complex(x) else real(gradient)


def _close(w):
    """Return pairs of unordered eigenvalues that count as the same; an oblique basis makes rounding errors larger."""
    gaps = abs(subtract(_rows(w), _columns(w)))
    same = less_equal(gaps, multiply(_columns(max(abs(w), -1, True)), 1e3 * epsilon(w)))
    return logical_and(same, _apart(w.shape[-1])), same


def _svd(g, x, y, full_matrices, compute_uv):
    if 0 in tuple(x.shape[-2:]):
        return zeros_like(x)
    if not compute_uv:
        return _svdvals(g, x, *svd(x, False))
    u, s, vh = y
    rank, g_s = s.shape[-1], g[1]
    (u, g_u), (v, g_v) = _own_span(u, g[0], rank), _own_span(adjoint(vh), adjoint(g[2]), rank)
    vh = adjoint(v)
    pairs, same, zero, zeros = _spaces(s)
    # Both bases rotate together by the sum of the parts over `s_j - s_i`, and against each other by the difference over
    # `s_j + s_i`, which is defined for repeated values too.
    u_part, v_part = matmul(adjoint(u), g_u), matmul(vh, g_v)
    u_turn, v_turn = subtract(u_part, adjoint(u_part)), subtract(v_part, adjoint(v_part))
    sums = _inverse(add(_rows(s), _columns(s)), zeros)
    inner = multiply(add(u_turn, v_turn), multiply(_inverse_gaps(s, same), 0.5))
    inner = add(inner, multiply(subtract(u_turn, v_turn), multiply(sums, 0.5)))
    inner = add(inner, undefined(add(u_part, v_part), pairs, u_part))
    inner = add(inner, undefined(subtract(u_part, v_part), logical_and(zeros, _apart(rank)), u_part))
    floor, (rows, columns) = _columns(_floor(s)), x.shape[-2:]
    differ = parted(_rows(g_s), _columns(g_s), logical_and(pairs, logical_not(zeros)), floor)
    # A single zero singular value of a square matrix continues with the other sign. Several of them, or a null space
    # of a matrix that is not square, have an arbitrary basis.
    several = zeros if rows != columns else logical_and(zeros, _apart(rank))
    differ = add(differ, parted(_rows(g_s), zeros_like(_columns(g_s)), several, floor))
    inner = add(inner, cast(differ, dtype(inner)))
    gradient = add(_svdvals(g_s, x, u, s, vh), matmul(matmul(u, inner), vh))
    inverse = _rows(_inverse(s, zero))
    if rows > rank:
        gradient = add(gradient, matmul(_orthogonal_part(g_u, u, inverse, zero), vh))
    if columns > rank:
        gradient = add(gradient, matmul(u, adjoint(_orthogonal_part(g_v, v, inverse, zero))))
    return gradient


def _spaces(s):
    """Return pairs of equal singular values without and with the diagonal, which values are 0, and pairs of zeros."""
    zero = less_equal(s, multiply(max(s, -1, True), 10 * epsilon(s)))
    return *_pairs(_clusters(s)), zero, logical_and(_rows(zero), _columns(zero))


def _svdvals(g, x, u, s, vh):
    """Return the gradient of a function of the singular values."""
    v, g = adjoint(vh), cast(_rows(g), dtype(u))
    pairs, _, zero, _ = _spaces(s)
    inner = from_diagonal(g[..., 0, :])
    inner = add(inner, crease(inner, matmul(matmul(adjoint(u), x), v), pairs))
    gradient = matmul(matmul(u, inner), vh)
    (rows, columns), rank = x.shape[-2:], s.shape[-1]
    if rows > rank:
        gradient = add(gradient, matmul(_crease_beside(multiply(u, g), matmul(x, v), u, zero), vh))
    if columns > rank:
        gradient = add(gradient, matmul(u, adjoint(_crease_beside(multiply(v, g), matmul(adjoint(x), u), v, zero))))
    return gradient


def _rest(t, q):
    """Return the component of ``t`` orthogonal to the span of the orthonormal columns of ``q``."""
    return subtract(t, matmul(q, matmul(adjoint(q), t)))


def _crease_beside(t, x, q, zero):
    return crease(t, _rest(x, q), broadcast_to(_rows(zero), tuple(t.shape)))


def _orthogonal_part(g, q, inverse, zero):
    """Return the component of a cotangent orthogonal to the vectors' span, divided by the singular values."""
    rest = _rest(g, q)
    return add(multiply(rest, inverse), undefined(rest, broadcast_to(_rows(zero), tuple(rest.shape)), g))


def _own_span(q, g, rank):
    """Return the first ``rank`` columns and their gradient, with the other columns' contribution to their span."""
    if q.shape[-1] == rank:
        return q, g
    first, rest = q[..., :rank], q[..., rank:]
    return first, subtract(g[..., :rank], matmul(rest, matmul(adjoint(g[..., rank:]), first)))


derivative("undefined", complex_aware=True, t=lambda g, t, at: undefined(g, at, zeros_like(t)))
derivative(
    "crease",
    complex_aware=True,
    t=lambda g, x, at: crease(g, x, at),
    x=lambda g, x, at: undefined(g, at, zeros_like(x)),
)
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
    """Return the permutation matrices of the successive row exchanges in ``pivots``."""
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
    """Return the Fréchet derivative at the transpose in direction ``g`` (Al-Mohy & Higham 2009)."""
    turned, size = swapaxes(x, -1, -2), x.shape[-1]
    upper, lower = concatenate([turned, g], -1), concatenate([zeros_like(turned), turned], -1)
    return get_item(expm(concatenate([upper, lower], -2)), (..., slice(0, size), slice(size, None)))


derivative("inv", x=_inv)
derivative("expm", x=_expm)
derivative("pinv", complex_aware=True, x=_pinv)


# The gradient of the right-hand side solves the transposed system; the matrix's is its product with the solution.


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
