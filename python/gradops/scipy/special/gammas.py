"""Gamma and beta functions, factorials and binomial coefficients."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import numpy as np

from ... import ops
from ...annotations import Integer, Operand, Tensor
from ...errors import ArgumentError
from ...ops._checks import choice, integer
from .. import _formulas
from .._define import composed, ufunc
from .._formulas import choose, refined, usually
from .._tensors import constant, floating
from . import _scipy_corrections as corrected
from . import _tails

__all__ = """
    bernoulli beta betaln binom comb digamma euler factorial factorial2 factorialk gamma gammaln gammasgn loggamma
    multigammaln perm poch polygamma psi rgamma stirling2
""".split()

bernoulli = constant("special.bernoulli")
euler = constant("special.euler")
stirling2 = constant("special.stirling2")


gammaln = ops.special.lgamma


def _digamma(x):
    return ops.special.polygamma(x, 0)


@ufunc(z=lambda g, z, y: g * y * _digamma(z))
def gamma(z: Tensor) -> Tensor:
    """Gamma function, of real arguments.

    Gradient:
        ``gamma(z) * digamma(z)``; NaN at the poles.
    """


@ufunc(z=lambda g, z: g * _digamma(z))
def loggamma(z: Tensor) -> Tensor:
    """Principal branch of the logarithm of the gamma function, of real arguments: NaN below 0.

    Gradient:
        ``digamma(z)``.
    """


@ufunc(x=lambda g, x: 0 * g)
def gammasgn(x: Tensor) -> Tensor:
    """Sign of the gamma function.

    Gradient:
        0.
    """


@ufunc(z=lambda g, z, y: g * _rgamma_slope(z, y))
def rgamma(z: Tensor) -> Tensor:
    """``1 / gamma(z)``, of real arguments; 0 at the poles of the gamma function.

    Gradient:
        ``-digamma(z) * rgamma(z)``; at the pole ``-n`` its limit, ``(-1)**n * n!``.
    """


def _rgamma_slope(z, y):
    """The derivative of 1 / gamma; at poles its limit, by the sign and the factorial, of z (z + 1) / gamma(z + 2)."""
    pole = (z <= 0) & (ops.floor(z) == z)
    other = choose(pole, lambda of: 0 * of(z, 0.0), lambda of: -_digamma(of(z, 1.0)) * of(y, 1.0))
    n = -ops.where(pole, z, 0.0)
    limit = (1 - 2 * ops.mod(n, 2)) * ops.exp(gammaln(n + 1))
    return ops.where(pole, limit, other)


@ufunc(
    torch="special.digamma",
    jax="scipy.special.digamma",
    tensorflow="math.digamma",
    z=lambda g, z: g * ops.special.polygamma(z, 1),
)
def digamma(z: Tensor) -> Tensor:
    """Derivative of :func:`gammaln`, of real arguments.

    Gradient:
        ``polygamma(1, z)``.
    """


psi = digamma


@composed
def polygamma(n: Integer, x: Operand) -> Tensor:
    """The ``n``-th derivative of :func:`digamma`.

    Args:
        n: a nonnegative integer.

    Returns:
        A tensor of ``x``'s shape, of a floating dtype.

    Gradient:
        ``polygamma(n + 1, x)``.
    """
    return ops.special.polygamma(floating(x)[0], n)


# Beta -----------------------------------------------------------------------------------------------------------------


def _positive(a, b, usual: Callable, other: Callable):
    """Return ``usual(a, b)`` for positive numbers, elsewhere ``other(a, b)``, which is less accurate."""
    return refined(
        (a > 0) & (b > 0), lambda of: usual(of(a, 1.0), of(b, 1.0)), lambda of: other(of(a, -0.5), of(b, -0.2))
    )  # avoid poles: SciPy reports an error for each, which takes a microsecond


def _rise(a, d):
    """Return ``digamma(a + d) - digamma(a)``, without cancellation if both are positive."""
    return _positive(a, d, _tails.psi_rise, lambda a, d: _digamma(a + d) - _digamma(a))


@ufunc("", a=lambda g, a, b: -g * _rise(a, b), b=lambda g, a, b: -g * _rise(b, a))
def betaln(a: Operand, b: Operand) -> Tensor:
    """Logarithm of the absolute value of the beta function, accurate if one argument is large.

    Gradient:
        By ``a`` ``digamma(a) - digamma(a + b)``, by ``b`` likewise, without cancellation.
    """
    a, b = floating(a, b)
    return _positive(a, b, _formulas.log_beta, _log_beta_below_0)


def _log_beta_below_0(a, b):
    """Return ``log(abs(beta(a, b)))`` for any numbers, accurate if one is negative and the other much larger."""
    low, high = ops.minimum(a, b), ops.maximum(a, b)

    def large(of):
        m, n = of(low, -0.5), of(high, 20.0)
        return gammaln(m) + gammaln(-m) - _formulas.log_beta(-m, m + n)

    return refined(
        (low < 0) & (high > 20) & (low + high > 1), large, lambda of: gammaln(a) + gammaln(b) - gammaln(a + b)
    )


@ufunc(
    corrected.correct_large_arguments(
        "beta",
        corrected.is_large_pair,
        _formulas.log_beta,
        (corrected.MIN_INACCURATE_ARGUMENT, corrected.MIN_INACCURATE_ARGUMENT),
    ),
    a=lambda g, a, b, y: -g * y * _rise(a, b),
    b=lambda g, a, b, y: -g * y * _rise(b, a),
)
def beta(a: Operand, b: Operand) -> Tensor:
    """Beta function.

    Gradient:
        By ``a`` ``beta(a, b) * (digamma(a) - digamma(a + b))``, by ``b`` likewise, without cancellation.
    """


@ufunc(
    corrected.correct_large_arguments(
        "binom",
        corrected.is_large_choice,
        lambda x, k: _formulas.log_choose(k, x - k),
        (corrected.MIN_INACCURATE_ARGUMENT, np.inf),
    ),
    x=lambda g, x, k, y: g * _slope_by_items(x, k, y),
    k=lambda g, x, k, y: g * _slope_by_choice(x, k, y),
)
def binom(x: Operand, k: Operand) -> Tensor:
    """Binomial coefficient, of real arguments.

    Gradient:
        By ``x`` ``binom * (digamma(x + 1) - digamma(x - k + 1))``, by ``k``
        ``binom * (digamma(x - k + 1) - digamma(k + 1))``, without cancellation, and their limits where ``binom`` is 0.
    """


def _slope_by_items(x, k, y):
    return usually(
        _is_natural(k - x),
        lambda of: of(y, 0.0) * _rise(of(k - x, 1.0), of(2 * x - k, 0.0) + 1) - _crossing(of(x, 0.0), of(k - x, 1.0)),
        lambda of: of(y, 0.0) * _rise(of(x - k, 0.0) + 1, of(k, 0.0)),
    )


def _slope_by_choice(x, k, y):
    above, below = _is_natural(k - x), _is_natural(-k)  # at both, `x` is a negative integer and the value NaN
    past, sign = ops.where(above, k - x, -k), ops.where(above, 1.0, -1.0)

    def limit(of):
        items, d = of(x + 0 * k, 0.0), of(past, 1.0)
        return of(sign, 1.0) * (_crossing(items, d) - of(y, 0.0) * _rise(d, items + 1))

    return usually(above | below, limit, lambda of: of(y, 0.0) * _rise(of(k, 0.0) + 1, of(x - 2 * k, 0.0)))


def _is_natural(d):
    return (d > 0) & (d == ops.floor(d))


def _crossing(x, d):
    """Return the slope of ``beta(x + 1, d) * sin(pi * d) / pi``, which is ``binom(x, x + d)``, at an integer ``d``."""
    return beta(x + 1, d) * ops.cos(math.pi * d)


@ufunc(a=lambda g, a, m, y: g * y * _rise(a, m), m=lambda g, a, m, y: g * y * _digamma(a + m))
def poch(a: Operand, m: Operand) -> Tensor:
    """Pochhammer's symbol ``gamma(a + m) / gamma(a)``.

    Gradient:
        By ``a`` ``poch * (digamma(a + m) - digamma(a))``, by ``m`` ``poch * digamma(a + m)``.
    """


@composed
def multigammaln(a: Operand, d: Integer) -> Tensor:
    """Logarithm of the multivariate gamma function of dimension ``d``.

    Args:
        a: greater than ``(d - 1) / 2``.
        d: the number of terms, 10,000 at most.

    Returns:
        A tensor of ``a``'s shape.

    Raises:
        ArgumentError: a dimension below 1 or above 10,000.

    Gradient:
        The sum of ``digamma(a - j / 2)`` for j from 0 to ``d - 1``.
    """
    d = integer("multigammaln", d, "d", 1)
    if d > 10_000:
        raise ArgumentError(f"`multigammaln`: `d` must be at most 10000; got {d}.", argument="d")
    (a,) = floating(a)
    terms = gammaln(a)
    for j in range(1, d):
        terms = terms + gammaln(a - j / 2)
    return ops.where(a > (d - 1) / 2, terms + d * (d - 1) / 4 * math.log(math.pi), math.nan)


# Counting -------------------------------------------------------------------------------------------------------------


_EXACT = {name: constant(f"special.{name}") for name in ("factorial", "comb", "perm")}
factorial2 = constant("special.factorial2")
factorialk = constant("special.factorialk")


@composed
def factorial(n: Operand, exact: bool = False, extend: Literal["zero", "complex"] = "zero") -> Tensor:
    """Factorial: ``gamma(n + 1)``.

    Args:
        exact: True for Python's whole numbers of any size, or an array of them: SciPy's function of known numbers.
        extend: ``"zero"`` for 0 below 0, ``"complex"`` for the gamma function there, NaN at its poles.

    Returns:
        A tensor of ``n``'s shape, of a floating dtype.

    Raises:
        ArgumentTypeError: ``exact=True`` with a variable, or with a tensor whose value is not known.

    Gradient:
        ``gamma(n + 1) * digamma(n + 1)``; none where ``exact=True``.
    """
    if exact:
        return _EXACT["factorial"](n, exact=True, extend=extend)
    (n,) = floating(n)
    beyond = n < 0
    if choice("scipy.special.factorial", extend, ("zero", "complex"), "extend") == "complex":
        beyond = beyond & (n == ops.floor(n))
    instead = 0.0 if extend == "zero" else math.nan
    return choose(beyond, lambda of: ops.zeros_like(n) + instead, lambda of: gamma(of(n, 0.0) + 1))


@composed
def comb(N: Operand, k: Operand, *, exact: bool = False, repetition: bool = False) -> Tensor:
    """Number of combinations of ``k`` of ``N`` things, with ``repetition`` of ``N + k - 1``; 0 for invalid arguments.

    Args:
        exact: True for a whole number of Python's, see :func:`factorial`.

    Returns:
        A tensor of the shape that ``N`` and ``k`` broadcast to.

    Raises:
        ArgumentTypeError: ``exact=True`` with a variable, or with a tensor whose value is not known.
        ArgumentError: ``exact=True`` with arguments that are not whole numbers.

    Gradient:
        That of :func:`binom`; 0 where there are none.
    """
    if exact:
        return _EXACT["comb"](N, k, exact=True, repetition=repetition)
    N, k = floating(N, k)
    possible = (k <= N) & (N >= 0) & (k >= 0)
    if repetition:
        N, possible = ops.maximum(N + k - 1, 0), (k == 0) & (N >= 0) | (N > 0) & (k > 0)
    return choose(possible, lambda of: binom(of(N, 1.0), of(k, 1.0)), lambda of: 0 * of(N + k, 0.0))


@composed
def perm(N: Operand, k: Operand, exact: bool = False) -> Tensor:
    """Number of ordered choices of ``k`` of ``N`` things; 0 for invalid arguments.

    Args:
        exact: True for a whole number of Python's, see :func:`factorial`.

    Returns:
        A tensor of the shape that ``N`` and ``k`` broadcast to.

    Raises:
        ArgumentTypeError: ``exact=True`` with a variable, or with a tensor whose value is not known.
        ArgumentError: ``exact=True`` with arguments that are not whole numbers.

    Gradient:
        That of :func:`poch`; 0 where there are none.
    """
    if exact:
        return _EXACT["perm"](N, k, exact=True)
    N, k = floating(N, k)
    possible = (k <= N) & (N >= 0) & (k >= 0)

    def count(of):
        many, few = of(N, 1.0), of(k, 1.0)
        return poch(many - few + 1, few)

    return choose(possible, count, lambda of: 0 * of(N + k, 0.0))
