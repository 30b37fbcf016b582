"""Sylvester, Lyapunov and Riccati equations.

LAPACK solves them on the host; gradients solve an adjoint Sylvester or Lyapunov equation.
"""

from __future__ import annotations

from typing import Literal

from ... import _scipy, ops
from ...annotations import Tensor
from ...errors import ShapeError
from ...extend import derivative
from ...extend import op as make_op
from ...ops import _checks
from ...ops._matrices import identity_like
from .._define import family
from .._hosted import register_matrix_kernel
from .._tensors import wrong
from ._shared import adjoint, matrices, squared

__all__ = """
solve_continuous_are solve_continuous_lyapunov solve_discrete_are solve_discrete_lyapunov solve_lyapunov
solve_sylvester
""".split()

equation = family(
    returns="A tensor of ``q``'s shape; dimensions before the matrices broadcast.",
    raises="ShapeError: matrices that are not square, or sizes that do not match.",
    gradient="As for :func:`solve_sylvester`.",
)
riccati = family(
    {
        "q": "a Hermitian matrix.",
        "r": "a Hermitian matrix, nonsingular in continuous time.",
        "e": "a nonsingular matrix; by default the identity.",
        "s": "a matrix; by default 0.",
        "balanced": "accepted; it does not change the result.",
    },
    returns="A Hermitian tensor of ``a``'s shape.",
    raises="ShapeError: matrices that are not square, or sizes that do not match.\n"
    "ArgumentError: no finite solution; ``q`` or ``r`` is not Hermitian.",
)


@make_op(name="scipy.linalg.sylvester")
def sylvester(a: Tensor, b: Tensor, q: Tensor) -> Tensor:
    """Solution ``x`` of ``a @ x + x @ b = q``, without checks of the arguments."""


register_matrix_kernel(sylvester, lambda a, b, q: _scipy.linalg.solve_sylvester(a, b, q), like=2)


def _q_cotangent(g, a, b):
    return sylvester(adjoint(a), adjoint(b), g)


derivative(
    sylvester,
    complex_aware=True,
    a=lambda g, a, b, y: -ops.matmul(_q_cotangent(g, a, b), adjoint(y)),
    b=lambda g, a, b, y: -ops.matmul(adjoint(y), _q_cotangent(g, a, b)),
    q=_q_cotangent,
)


def _fitting(**given) -> list:
    """Return square coefficient matrices and, last, the right-hand side after checking that their sizes match."""
    found = matrices(**given)
    *coefficients, q = found
    for x, name in zip(coefficients, given):
        squared(x, name)
    sizes = (int(coefficients[0].shape[-1]), int(coefficients[-1].shape[-1]))
    if tuple(q.shape[-2:]) != sizes:
        raise wrong("q", f"be a {sizes[0]} by {sizes[1]} matrix", tuple(q.shape), ShapeError)
    return found


@equation
def solve_sylvester(a: Tensor, b: Tensor, q: Tensor) -> Tensor:
    """Solution ``x`` of Sylvester's equation ``a @ x + x @ b = q``.

    Raises:
        ArgumentError: a singular equation (``a`` and ``-b`` share an eigenvalue).

    Gradient:
        For ``q`` the solution ``z`` of the adjoint equation ``a^H z + z b^H = g``, for ``a`` ``-z x^H``, for ``b``
        ``-x^H z``. LAPACK solves both equations on the host.
    """
    return sylvester(*_fitting(a=a, b=b, q=q))


@equation
def solve_continuous_lyapunov(a: Tensor, q: Tensor) -> Tensor:
    """Solution ``x`` of Lyapunov's equation ``a @ x + x @ a^H = q``.

    Raises:
        ArgumentError: a singular equation.
    """
    a, q = _fitting(a=a, q=q)
    return sylvester(a, adjoint(a), q)


solve_lyapunov = solve_continuous_lyapunov


def _discrete(a, q, direct: bool):
    """Return the solution of ``a @ x @ a^H - x + q = 0``."""
    n, ah, one = int(a.shape[-1]), adjoint(a), identity_like(a)
    if direct:
        other = ops.swapaxes(ah, -1, -2)
        product = a[..., :, None, :, None] * other[..., None, :, None, :]
        product = ops.reshape(product, (*product.shape[:-4], n * n, n * n))
        flat = ops.reshape(q, (*q.shape[:-2], n * n, 1))
        x = ops.solve(identity_like(product) - product, flat)
        return ops.reshape(x, (*x.shape[:-2], n, n))
    inverse = ops.inv(ah + one)
    b = ops.matmul(ah - one, inverse)
    c = 2.0 * ops.matmul(ops.matmul(ops.inv(a + one), q), inverse)
    return sylvester(adjoint(b), b, -c)


@equation
def solve_discrete_lyapunov(a: Tensor, q: Tensor, method: Literal["direct", "bilinear"] | None = None) -> Tensor:
    """Solution ``x`` of Lyapunov's discrete equation ``a @ x @ a^H - x + q = 0``.

    Args:
        method: ``"direct"`` solves a linear system of all elements, the default for fewer than 10 rows; ``"bilinear"``
            transforms to the continuous equation, the default otherwise.

    Raises:
        ArgumentError: a singular equation; an unknown ``method``.

    Gradient:
        Through the linear system, or as for :func:`solve_sylvester`.
    """
    _checks.choice("linalg", method, (None, "direct", "bilinear"), "method")
    a, q = _fitting(a=a, q=q)
    return _discrete(a, q, a.shape[-1] < 10 if method is None else method == "direct")


# Riccati's equations: implicit differentiation by the Lyapunov equation of the closed loop ----------------------------


@make_op(name="scipy.linalg.continuous_riccati")
def _continuous(a: Tensor, b: Tensor, q: Tensor, r: Tensor, e: Tensor, s: Tensor) -> Tensor:
    """Solution of the continuous-time Riccati equation with all matrices given."""


@make_op(name="scipy.linalg.discrete_riccati")
def _discrete_riccati(a: Tensor, b: Tensor, q: Tensor, r: Tensor, e: Tensor, s: Tensor) -> Tensor:
    """Solution of the discrete-time Riccati equation with all matrices given."""


register_matrix_kernel(_continuous, lambda a, b, q, r, e, s: _scipy.linalg.solve_continuous_are(a, b, q, r, e, s))
register_matrix_kernel(_discrete_riccati, lambda a, b, q, r, e, s: _scipy.linalg.solve_discrete_are(a, b, q, r, e, s))


def _product(*xs):
    y = xs[0]
    for x in xs[1:]:
        y = ops.matmul(y, x)
    return y


def _loop(a, b, r, e, s, x, g, discrete: bool):
    """Return the feedback, the closed-loop matrix, and the adjoint solution of its Lyapunov equation."""
    bx = _product(adjoint(b), x)
    if discrete:
        k = ops.solve(r + _product(bx, b), _product(bx, a) + adjoint(s))
    else:
        k = ops.solve(r, _product(bx, e) + adjoint(s))
    closed = a - _product(b, k)
    f = ops.solve(e, closed)
    half = ops.solve(e, (g + adjoint(g)) * 0.5)
    inner = adjoint(ops.solve(e, adjoint(half)))
    n = int(a.shape[-1])
    z = _discrete(f, -inner, n < 10) if discrete else sylvester(f, adjoint(f), inner)
    return k, closed, (z + adjoint(z)) * 0.5


def _rules(discrete: bool) -> dict:
    def of(part):
        def rule(g, a, b, r, e, s, y):
            return part(*_loop(a, b, r, e, s, y, g, discrete), y, e)

        return rule

    return {
        "a": of(lambda k, closed, z, x, e: -2.0 * _product(x, closed if discrete else e, z)),
        "b": of(lambda k, closed, z, x, e: 2.0 * _product(x, closed if discrete else e, z, adjoint(k))),
        "q": of(lambda k, closed, z, x, e: -z),
        "r": of(lambda k, closed, z, x, e: -_product(k, z, adjoint(k))),
        "e": of(lambda k, closed, z, x, e: 2.0 * _product(x, e, z) if discrete else -2.0 * _product(x, closed, z)),
        "s": of(lambda k, closed, z, x, e: 2.0 * _product(z, adjoint(k))),
    }


derivative(_continuous, complex_aware=True, **_rules(False))
derivative(_discrete_riccati, complex_aware=True, **_rules(True))


def _riccati(op, a, b, q, r, e, s):
    given = {"a": a, "b": b, "q": q, "r": r, "e": e, "s": s}
    names = [name for name, x in given.items() if x is not None or name not in "es"]
    found = dict(zip(names, matrices(**{name: given[name] for name in names})))
    a, b = squared(found["a"]), found["b"]
    n, m = int(a.shape[-1]), int(b.shape[-1])
    for name, sizes in {"b": (n, m), "q": (n, n), "r": (m, m), "e": (n, n), "s": (n, m)}.items():
        if name in found and tuple(found[name].shape[-2:]) != sizes:
            raise wrong(name, f"be a {sizes[0]} by {sizes[1]} matrix", tuple(found[name].shape), ShapeError)
    e, s = found.get("e"), found.get("s")
    return op(
        a,
        b,
        found["q"],
        found["r"],
        identity_like(a) if e is None else e,
        ops.zeros_like(b) if s is None else s,
    )


@riccati
def solve_continuous_are(
    a: Tensor, b: Tensor, q: Tensor, r: Tensor, e: Tensor = None, s: Tensor = None, balanced=True
) -> Tensor:
    """Stabilising solution ``x`` of the continuous-time algebraic Riccati equation.

    ``a^H x e + e^H x a - (e^H x b + s) inv(r) (b^H x e + s^H) + q = 0``.

    Gradient:
        By the Lyapunov equation of the closed loop (implicit function theorem), for Hermitian changes of ``q`` and
        ``r``. LAPACK solves both equations on the host.
    """
    return _riccati(_continuous, a, b, q, r, e, s)


@riccati
def solve_discrete_are(
    a: Tensor, b: Tensor, q: Tensor, r: Tensor, e: Tensor = None, s: Tensor = None, balanced=True
) -> Tensor:
    """Stabilising solution ``x`` of the discrete-time algebraic Riccati equation.

    ``a^H x a - e^H x e - (a^H x b + s) inv(r + b^H x b) (b^H x a + s^H) + q = 0``.

    Gradient:
        As for :func:`solve_continuous_are`.
    """
    return _riccati(_discrete_riccati, a, b, q, r, e, s)
