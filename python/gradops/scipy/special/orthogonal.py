"""Orthogonal polynomials, differentiable by their argument, not by degree and parameters.

SciPy's functions of integer degree, which use recurrences, are also called for integers of a floating dtype.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ... import _scipy, ops
from ...annotations import Operand, Tensor
from ...extend import derivative
from .._define import composed, refused, ufunc
from .._formulas import choose
from .._tensors import constant, floating

_FAMILIES = (
    "legendre chebyt chebyu chebyc chebys jacobi laguerre genlaguerre hermite hermitenorm gegenbauer"
    " sh_legendre sh_chebyt sh_chebyu sh_jacobi"
).split()

__all__ = """
    assoc_laguerre c_roots cg_roots eval_chebyc eval_chebys eval_chebyt eval_chebyu eval_gegenbauer eval_genlaguerre
    eval_hermite eval_hermitenorm eval_jacobi eval_laguerre eval_legendre eval_sh_chebyt eval_sh_chebyu
    eval_sh_jacobi eval_sh_legendre h_roots he_roots j_roots js_roots l_roots la_roots p_roots ps_roots roots_chebyc
    roots_chebys roots_chebyt roots_chebyu roots_gegenbauer roots_genlaguerre roots_hermite roots_hermitenorm
    roots_jacobi roots_laguerre roots_legendre roots_sh_chebyt roots_sh_chebyu roots_sh_jacobi roots_sh_legendre
    s_roots t_roots ts_roots u_roots us_roots
""".split()

(
    roots_legendre,
    roots_chebyt,
    roots_chebyu,
    roots_chebyc,
    roots_chebys,
    roots_jacobi,
    roots_laguerre,
    roots_genlaguerre,
    roots_hermite,
    roots_hermitenorm,
    roots_gegenbauer,
    roots_sh_legendre,
    roots_sh_chebyt,
    roots_sh_chebyu,
    roots_sh_jacobi,
) = (constant(f"special.roots_{name}") for name in _FAMILIES)
p_roots, t_roots, u_roots, c_roots, s_roots = roots_legendre, roots_chebyt, roots_chebyu, roots_chebyc, roots_chebys
j_roots, l_roots, la_roots, h_roots, he_roots = (
    roots_jacobi,
    roots_laguerre,
    roots_genlaguerre,
    roots_hermite,
    roots_hermitenorm,
)
cg_roots, ps_roots, ts_roots, us_roots, js_roots = (
    roots_gegenbauer,
    roots_sh_legendre,
    roots_sh_chebyt,
    roots_sh_chebyu,
    roots_sh_jacobi,
)


def _degree_function(name: str) -> Callable:
    """Return SciPy's function, using its recurrence for integer degrees."""

    def function(n, *xs):
        degree = n.real
        whole = np.floor(degree)
        is_real = xs[-1].dtype.kind != "c"
        if (whole == degree).all() and (np.abs(whole) < 2**31).all() and is_real:
            degree = whole.astype("int64")
        elif name.startswith("eval_hermite") and is_real:  # integer degrees only
            lost = (whole != degree) | (np.abs(whole) >= 2**31)
            y = function(np.where(lost, 0, whole).astype(n.dtype), *xs)
            return np.where(lost, np.nan, y).astype(y.dtype)
        y = getattr(_scipy.special, name)(degree, *[x.real for x in xs[:-1]], xs[-1])
        return np.asarray(y).astype(xs[-1].dtype)

    return function


# The polynomials -----------------------------------------------------------------------------------------------------


def _degree_0_or_rule(n, x, rule: Callable):
    """Return ``rule`` for degrees from 1 on, 0 for degree 0."""
    n, x = floating(n, x)
    n = n + 0 * ops.stop_gradient(x)
    return choose(n == 0, lambda of: 0 * of(x, 0.0), lambda of: rule(of(n, 1.0), of(x, 0.5)))


@ufunc(_degree_function("eval_jacobi"))
def eval_jacobi(n: Operand, alpha: Operand, beta: Operand, x: Operand) -> Tensor:
    """Jacobi polynomial of degree ``n``.

    Gradient:
        By ``x`` ``(n + alpha + beta + 1) / 2 * eval_jacobi(n - 1, alpha + 1, beta + 1, x)``; else an error.
    """


@ufunc(_degree_function("eval_gegenbauer"))
def eval_gegenbauer(n: Operand, alpha: Operand, x: Operand) -> Tensor:
    """Gegenbauer polynomial of degree ``n``.

    Gradient:
        By ``x`` ``2 * alpha * eval_gegenbauer(n - 1, alpha + 1, x)``; else an error.
    """


@ufunc(_degree_function("eval_genlaguerre"))
def eval_genlaguerre(n: Operand, alpha: Operand, x: Operand) -> Tensor:
    """Generalised Laguerre polynomial of degree ``n``.

    Gradient:
        By ``x`` ``-eval_genlaguerre(n - 1, alpha + 1, x)``; else an error.
    """


@ufunc(_degree_function("eval_sh_jacobi"))
def eval_sh_jacobi(n: Operand, p: Operand, q: Operand, x: Operand) -> Tensor:
    """Shifted Jacobi polynomial of degree ``n``, on [0, 1].

    Gradient:
        By ``x`` ``n * eval_sh_jacobi(n - 1, p + 2, q + 1, x)``; else an error.
    """


@ufunc(_degree_function("eval_legendre"))
def eval_legendre(n: Operand, x: Operand) -> Tensor:
    """Legendre polynomial of degree ``n``.

    Gradient:
        By ``x`` ``eval_gegenbauer(n - 1, 3 / 2, x)``; an error by ``n``.
    """


@ufunc(_degree_function("eval_chebyt"))
def eval_chebyt(n: Operand, x: Operand) -> Tensor:
    """Chebyshev polynomial of the first kind of degree ``n``.

    Gradient:
        By ``x`` ``n * eval_chebyu(n - 1, x)``; an error by ``n``.
    """


@ufunc(_degree_function("eval_chebyu"))
def eval_chebyu(n: Operand, x: Operand) -> Tensor:
    """Chebyshev polynomial of the second kind of degree ``n``.

    Gradient:
        By ``x`` ``2 * eval_gegenbauer(n - 1, 2, x)``; an error by ``n``.
    """


@ufunc(_degree_function("eval_laguerre"))
def eval_laguerre(n: Operand, x: Operand) -> Tensor:
    """Laguerre polynomial of degree ``n``.

    Gradient:
        By ``x`` ``-eval_genlaguerre(n - 1, 1, x)``; an error by ``n``.
    """


@ufunc(_degree_function("eval_hermite"))
def eval_hermite(n: Operand, x: Operand) -> Tensor:
    """Physicists' Hermite polynomial of integer degree ``n``.

    Gradient:
        By ``x`` ``2 * n * eval_hermite(n - 1, x)``; an error by ``n``.
    """


@ufunc(_degree_function("eval_hermitenorm"))
def eval_hermitenorm(n: Operand, x: Operand) -> Tensor:
    """Probabilists' Hermite polynomial of integer degree ``n``.

    Gradient:
        By ``x`` ``n * eval_hermitenorm(n - 1, x)``; an error by ``n``.
    """


def refusals(name: str, *arguments: str) -> dict:
    return {one: refused(name, one, "a degree or a parameter") for one in arguments}


derivative(
    eval_jacobi,
    **refusals("eval_jacobi", "n", "alpha", "beta"),
    x=lambda g, n, alpha, beta, x: (
        g
        * _degree_0_or_rule(
            n,
            x,
            lambda n, x: (n + alpha + beta + 1) / 2 * eval_jacobi(n - 1, alpha + 1, beta + 1, x),
        )
    ),
)
derivative(
    eval_gegenbauer,
    **refusals("eval_gegenbauer", "n", "alpha"),
    x=lambda g, n, alpha, x: g * _degree_0_or_rule(n, x, lambda n, x: 2 * alpha * eval_gegenbauer(n - 1, alpha + 1, x)),
)
derivative(
    eval_genlaguerre,
    **refusals("eval_genlaguerre", "n", "alpha"),
    x=lambda g, n, alpha, x: -g * _degree_0_or_rule(n, x, lambda n, x: eval_genlaguerre(n - 1, alpha + 1, x)),
)
derivative(
    eval_sh_jacobi,
    **refusals("eval_sh_jacobi", "n", "p", "q"),
    x=lambda g, n, p, q, x: g * _degree_0_or_rule(n, x, lambda n, x: n * eval_sh_jacobi(n - 1, p + 2, q + 1, x)),
)


def _rule(op: Callable, name: str, slope: Callable) -> None:
    derivative(op, **refusals(name, "n"), x=lambda g, n, x: g * _degree_0_or_rule(n, x, slope))


_rule(eval_legendre, "eval_legendre", lambda n, x: eval_gegenbauer(n - 1, 1.5, x))
_rule(eval_chebyt, "eval_chebyt", lambda n, x: n * eval_chebyu(n - 1, x))
_rule(eval_chebyu, "eval_chebyu", lambda n, x: 2 * eval_gegenbauer(n - 1, 2.0, x))
_rule(eval_laguerre, "eval_laguerre", lambda n, x: -eval_genlaguerre(n - 1, 1.0, x))
_rule(eval_hermite, "eval_hermite", lambda n, x: 2 * n * eval_hermite(n - 1, x))
_rule(eval_hermitenorm, "eval_hermitenorm", lambda n, x: n * eval_hermitenorm(n - 1, x))


def _shifted_polynomial(
    name: str, title: str, inner: Callable, place: Callable, formula: str, scale: float = 1.0
) -> Callable:
    def function(n: Operand, x: Operand) -> Tensor:
        n, x = floating(n, x)
        y = inner(n, place(x))
        return y if scale == 1 else scale * y

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""{title} of degree ``n``: ``{formula}``.

    Returns:
        A tensor of the shape that ``n`` and ``x`` broadcast to.

    Gradient:
        By ``x`` that of the formula; an error by ``n``.
    """
    return composed(function)


eval_chebyc = _shifted_polynomial(
    "eval_chebyc",
    "Chebyshev polynomial on [-2, 2] of the first kind",
    eval_chebyt,
    lambda x: x / 2,
    "2 * eval_chebyt(n, x / 2)",
    2.0,
)
eval_chebys = _shifted_polynomial(
    "eval_chebys",
    "Chebyshev polynomial on [-2, 2] of the second kind",
    eval_chebyu,
    lambda x: x / 2,
    "eval_chebyu(n, x / 2)",
)
eval_sh_legendre = _shifted_polynomial(
    "eval_sh_legendre",
    "Legendre polynomial on [0, 1]",
    eval_legendre,
    lambda x: 2 * x - 1,
    "eval_legendre(n, 2 * x - 1)",
)
eval_sh_chebyt = _shifted_polynomial(
    "eval_sh_chebyt",
    "Chebyshev polynomial on [0, 1] of the first kind",
    eval_chebyt,
    lambda x: 2 * x - 1,
    "eval_chebyt(n, 2 * x - 1)",
)
eval_sh_chebyu = _shifted_polynomial(
    "eval_sh_chebyu",
    "Chebyshev polynomial on [0, 1] of the second kind",
    eval_chebyu,
    lambda x: 2 * x - 1,
    "eval_chebyu(n, 2 * x - 1)",
)


@composed
def assoc_laguerre(x: Operand, n: Operand, k: Operand = 0.0) -> Tensor:
    """Generalised Laguerre polynomial: ``eval_genlaguerre(n, k, x)``.

    Returns:
        A tensor of the broadcast shape.

    Gradient:
        By ``x``; an error by ``n`` and ``k``.
    """
    return eval_genlaguerre(n, k, x)
