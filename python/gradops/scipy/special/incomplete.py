"""Incomplete gamma and beta functions, their logarithms and inverses.

Derivatives by the shapes come from an integral over the tail (see ``_tails.py``). Inverses use the implicit function
theorem. Both have derivatives of all orders.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ... import _scipy, ops
from ...annotations import Operand, Tensor
from ...extend import derivative
from ...ops._compose import NUMBERS
from .._define import grouped_op, ufunc
from .._formulas import choose, exp, usually, where
from .._tensors import floating
from . import _scipy_corrections as corrected
from . import _tails

__all__ = "betainc betaincc betainccinv betaincinv gammainc gammaincc gammainccinv gammaincinv".split()

# Gamma ----------------------------------------------------------------------------------------------------------------


def constant(valid, x):
    """Return a derivative of 0 in the dtype of ``x``; NaN where ``valid`` is false."""
    return _like(where(valid, 0.0, math.nan), x)


def _like(y, x):
    """Cast ``y`` to the dtype of ``x``, as TensorFlow does not multiply different dtypes."""
    return y if type(y) in NUMBERS or type(x) in NUMBERS else ops.cast(y, ops.dtype(x))


def gamma_density(a, x):
    """The derivative of :func:`gammainc` by ``x``."""
    a, x = floating(a, x)

    def edge(of):
        shape, place = of(a, 1.0), of(x, 0.0)
        first = _like(where(shape > 1, 0.0, math.inf), place)
        first = where(shape == 1, exp(-place), where(shape == 2, place, first))  # with their slopes
        return where(place == 0, first, constant((shape >= 0) & (place >= 0), place)) + 0 * of(a * 0 + x * 0, 0.0)

    return usually(_tails.is_inside_gamma(a, x), lambda of: exp(_tails.log_gamma_density(of(a, 1.0), of(x, 1.0))), edge)


def _gamma_group(a, x):
    kind = np.where(a < 0.1, x < 1, 2 + _tails.gamma_is_below(a, x))
    return np.where(_tails.is_inside_gamma(a, x), 1 + kind, 0)


def _gamma_slope(a: Operand, x: Operand):
    """The derivative of :func:`gammainc` by ``a``."""
    a, x = floating(a, x)

    def inside(of):
        shape, place = of(a, 1.0), of(x, 1.0)

        def small(of):
            v, z = of(shape, 0.05), of(place, 0.5)
            return _tails.gamma_slope_of_small(v, z, gammainc(v, z))

        def usual(of):
            v, z = of(shape, 1.0), of(place, 1.0)
            return where(_tails.gamma_is_below(v, z), gammainc(v, z), -gammaincc(v, z)) * _tails.gamma_rate(v, z)

        return choose(shape + 0 * place < 0.1, small, usual)

    return choose(_tails.is_inside_gamma(a, x), inside, lambda of: constant((of(a, 0.0) >= 0) & (of(x, 0.0) >= 0), x))


gamma_slope = grouped_op(_gamma_slope, _gamma_group)


@ufunc(corrected.gammainc, a=lambda g, a, x: g * gamma_slope(a, x), x=lambda g, a, x: g * gamma_density(a, x))
def gammainc(a: Operand, x: Operand) -> Tensor:
    """Regularised lower incomplete gamma function, the gamma distribution function of shape ``a``.

    Gradient:
        By ``x`` the density, ``exp((a - 1) * log(x) - x - lgamma(a))``; by ``a`` that of an integral over the tail
        without the mode (Temme 1994 for the value; Takahasi and Mori 1974 for the rule).
    """


@ufunc(corrected.gammaincc, a=lambda g, a, x: -g * gamma_slope(a, x), x=lambda g, a, x: -g * gamma_density(a, x))
def gammaincc(a: Operand, x: Operand) -> Tensor:
    """Regularised upper incomplete gamma function, ``1 - gammainc(a, x)`` with its digits.

    Gradient:
        That of :func:`gammainc` with the other sign.
    """


@ufunc(
    corrected.gammaincinv,
    a=lambda g, a, p, y: -g * _quotient(gamma_slope(a, y), gamma_density(a, y)),
    p=lambda g, a, p, y: g / gamma_density(a, y),
)
def gammaincinv(a: Operand, p: Operand) -> Tensor:
    """Inverse of :func:`gammainc`: the quantile of the gamma distribution of shape ``a``.

    Gradient:
        From the implicit function theorem: by ``p`` 1 over the density, by ``a`` the derivative of :func:`gammainc`
        divided by the density.
    """


@ufunc(
    corrected.gammainccinv,
    a=lambda g, a, p, y: -g * _quotient(gamma_slope(a, y), gamma_density(a, y)),
    p=lambda g, a, p, y: -g / gamma_density(a, y),
)
def gammainccinv(a: Operand, p: Operand) -> Tensor:
    """Inverse of :func:`gammaincc`: the quantile of an upper probability.

    Gradient:
        As of :func:`gammaincinv`, by ``p`` with the other sign.
    """


def _quotient(slope, x):
    """Return ``slope / x``, 0 where both are 0."""
    return slope / where((x == 0) & (slope == 0), 1.0, x)


def _log_of_tails(p, q, log_tail, *arguments):
    """Return ``log(p)``: as ``log1p(-q)`` above 1 / 2, and from ``log_tail`` where ``p`` has underflowed."""
    with np.errstate(all="ignore"):
        logs = np.where(p < 0.5, np.log(p), np.log1p(-q))
    lost = p < 1e-290
    for x in arguments:
        lost = lost & (x > 0) & (x < np.inf)
    if len(arguments) == 3:  # beta: the last argument is in [0, 1]
        lost = lost & (arguments[-1] < 1)
    with np.errstate(all="ignore"):
        return corrected.replace_where(logs, lost, log_tail, *arguments)


def _log_gammainc(a, x):
    return _log_of_tails(corrected.gammainc(a, x), corrected.gammaincc(a, x), _tails.log_gamma_tail, a, x)


def _log_gammaincc(a, x):
    return _log_of_tails(corrected.gammaincc(a, x), corrected.gammainc(a, x), _tails.log_gamma_tail, a, x)


@ufunc(
    _log_gammainc,
    a=lambda g, a, x, y: g * _log_slope(a, x, y, log_gammaincc(a, x), True),
    x=lambda g, a, x, y: g * _log_density_over(a, x, y),
)
def log_gammainc(a: Operand, x: Operand) -> Tensor:
    """``log(gammainc(a, x))``, accurate where that rounds to 0 or 1."""


@ufunc(
    _log_gammaincc,
    a=lambda g, a, x, y: g * _log_slope(a, x, log_gammainc(a, x), y, False),
    x=lambda g, a, x, y: -g * _log_density_over(a, x, y),
)
def log_gammaincc(a: Operand, x: Operand) -> Tensor:
    """``log(gammaincc(a, x))``, accurate where that rounds to 0 or 1."""


def _log_density_over(a, x, log_p):
    """Return the density divided by a probability that is given by its logarithm."""
    a, x = floating(a, x)

    def inside(of):
        return exp(_tails.log_gamma_density(of(a, 1.0), of(x, 1.0)) - of(log_p, 0.0))

    return choose(_tails.is_inside_gamma(a, x), inside, lambda of: of(gamma_density(a, x) / exp(log_p), 0.0))


def _log_slope(a, x, log_lower, log_upper, lower: bool):
    """Return the derivative of the log of a tail by ``a``."""
    a, x = floating(a, x)

    def inside(of):
        shape, place = of(a, 1.0), of(x, 1.0)
        below = _tails.gamma_is_below(shape, place)
        rate = _tails.gamma_rate(shape, place)
        difference = of(log_lower - log_upper, 0.0)
        if not lower:
            below, difference = ops.logical_not(below), -difference
        return rate * where(below, 1.0, -exp(-where(below, 0.0, difference)))

    return choose(_tails.is_inside_gamma(a, x), inside, lambda of: constant((of(a, 0.0) >= 0) & (of(x, 0.0) >= 0), x))


_MIN_EXACT_LOG = -690.0
"""Log probabilities above this are represented with all digits."""


def _inverse_of_log(lower, upper, far):
    """Return SciPy's inverse at ``exp(p)`` or ``-expm1(p)``, and ``far`` where ``exp(p)`` underflows."""

    def function(*arguments):
        *shapes, p = np.broadcast_arrays(*arguments)
        with np.errstate(all="ignore"):
            x = np.where(p > -0.5, upper(*shapes, -np.expm1(p)), lower(*shapes, np.exp(np.maximum(p, _MIN_EXACT_LOG))))
        lost = (p < _MIN_EXACT_LOG) & (p > -np.inf)
        for shape in shapes:
            lost = lost & (shape > 0) & (shape < np.inf)
        x = np.where(p > -np.inf, x, lower(*shapes, np.zeros_like(p)))
        if lost.any():
            x[lost] = far(*[v[lost].astype("float64") for v in (*shapes, p)])
        return np.asarray(x, arguments[0].dtype)

    return function


def _far_below(a, p):
    first_term = (p + _scipy.special.gammaln(a + 1)) / a
    return np.exp(corrected.newton_on_gamma(a, first_term, p, 1))


def _far_above(a, p):
    return np.exp(corrected.newton_on_gamma(a, np.log(a - p), p, -1))


@ufunc(
    _inverse_of_log(corrected.gammaincinv, corrected.gammainccinv, _far_below),
    a=lambda g, a, p, y: -g * _quotient(_log_slope(a, y, p, log_gammaincc(a, y), True), _log_density_over(a, y, p)),
    p=lambda g, a, p, y: g / _log_density_over(a, y, p),
)
def log_gammaincinv(a: Operand, p: Operand) -> Tensor:
    """The quantile of the logarithm ``p`` of a lower probability: the inverse of :func:`log_gammainc`."""


@ufunc(
    _inverse_of_log(corrected.gammainccinv, corrected.gammaincinv, _far_above),
    a=lambda g, a, p, y: g * _quotient(_log_slope(a, y, log_gammainc(a, y), p, False), _log_density_over(a, y, p)),
    p=lambda g, a, p, y: -g / _log_density_over(a, y, p),
)
def log_gammainccinv(a: Operand, p: Operand) -> Tensor:
    """The quantile of the logarithm ``p`` of an upper probability: the inverse of :func:`log_gammaincc`."""


# Beta -----------------------------------------------------------------------------------------------------------------


def _beta_function(inside, edge):
    """Return a function that is ``inside`` in the interior of the domain, and ``edge`` elsewhere."""

    def function(a, b, x):
        a, b, x = floating(a, b, x)
        return usually(
            _tails.is_inside_beta(a, b, x),
            lambda of: inside(of(a, 1.0), of(b, 1.0), of(x, 0.5)),
            lambda of: edge(of(a, 1.0), of(b, 1.0), of(x, 0.0)),
        )

    return function


def _end_density(a, b, x):
    """The density at 0 and 1."""
    power, other, far = [where(x == 0, first, last) for first, last in ((a, b), (b, a), (x, 1 - x))]
    at_end = _like(where(power > 1, 0.0, math.inf), x)
    at_end = where(power == 2, other * (other + 1) * far, at_end)  # with their slopes
    at_end = where(power == 1, other - other * (other - 1) * far, at_end)
    valid = (a >= 0) & (b >= 0) & (x >= 0) & (x <= 1)
    return where(((x == 0) | (x == 1)) & valid, at_end, constant(valid, x))


beta_density = _beta_function(lambda a, b, x: exp(_tails.log_beta_density(a, b, x, 1 - x)), _end_density)
"""The derivative of :func:`betainc` by ``x``."""


def _beta_constant(a, b, x):
    return constant((a >= 0) & (b >= 0) & (x >= 0) & (x <= 1), x)


def _beta_slope(which: int):
    def inside(a, b, x):
        y = 1 - x
        tail = where(_tails.beta_is_below(a, b, x, y), betainc(a, b, x), -betaincc(a, b, x))
        return tail * _tails.beta_rates(a, b, x, y)[which]

    return _beta_function(inside, _beta_constant)


def _beta_group(a, b, x):
    below = _tails.beta_is_below(a, b, x, 1 - x)
    return np.where(_tails.is_inside_beta(a, b, x), 1 + below + 2 * (np.where(below, a, b) < 0.1), 0)


def _slope_a(a: Operand, b: Operand, x: Operand):
    """The derivative of :func:`betainc` by ``a``."""
    return _beta_slope(0)(a, b, x)


def _slope_b(a: Operand, b: Operand, x: Operand):
    """The derivative of :func:`betainc` by ``b``."""
    return _beta_slope(1)(a, b, x)


beta_slope_a, beta_slope_b = grouped_op(_slope_a, _beta_group), grouped_op(_slope_b, _beta_group)


@ufunc(
    corrected.betainc,
    a=lambda g, a, b, x: g * beta_slope_a(a, b, x),
    b=lambda g, a, b, x: g * beta_slope_b(a, b, x),
    x=lambda g, a, b, x: g * beta_density(a, b, x),
)
def betainc(a: Operand, b: Operand, x: Operand) -> Tensor:
    """Regularised incomplete beta function, the beta distribution function of shapes ``a`` and ``b``.

    Gradient:
        By ``x`` the density; by ``a`` and ``b`` that of an integral over the tail without the mode (DiDonato and
        Morris 1992 for the value; Takahasi and Mori 1974 for the rule).
    """


@ufunc(
    corrected.betaincc,
    a=lambda g, a, b, x: -g * beta_slope_a(a, b, x),
    b=lambda g, a, b, x: -g * beta_slope_b(a, b, x),
    x=lambda g, a, b, x: -g * beta_density(a, b, x),
)
def betaincc(a: Operand, b: Operand, x: Operand) -> Tensor:
    """Complement of :func:`betainc`, with its digits.

    Gradient:
        That of :func:`betainc` with the other sign.
    """


@ufunc(corrected.betaincinv)
def betaincinv(a: Operand, b: Operand, p: Operand) -> Tensor:
    """Inverse of :func:`betainc`: the quantile of the beta distribution.

    Gradient:
        From the implicit function theorem: by ``p`` 1 over the density, by a shape the derivative of :func:`betainc`
        divided by the density.
    """


@ufunc(corrected.betainccinv)
def betainccinv(a: Operand, b: Operand, p: Operand) -> Tensor:
    """Inverse of :func:`betaincc`: the quantile of an upper probability.

    Gradient:
        As of :func:`betaincinv`, by ``p`` with the other sign.
    """


def _left(inverse: Callable, x, a, b, p):
    """Return ``1 - x`` for a quantile ``x``, where small from the ``inverse`` of the other tail."""
    return corrected.replace_where(1 - x, x > 0.5, lambda a, b, p: inverse(b, a, p), a, b, p)


@ufunc(lambda a, b, p, x: _left(corrected.betainccinv, x, a, b, p))
def _beyond_lower(a: Operand, b: Operand, p: Operand, x: Operand) -> Tensor: ...


@ufunc(lambda a, b, p, x: _left(corrected.betaincinv, x, a, b, p))
def _beyond_upper(a: Operand, b: Operand, p: Operand, x: Operand) -> Tensor: ...


def _quantile_rules(beyond: Callable, lower: bool) -> dict[str, Any]:
    """Return rules of an inverse in terms of ``1 - x``, which stays accurate when the quantile x rounds to 1."""

    def at_quantile(inside: Callable, edge: Callable):
        def function(a, b, p, x):
            a, b, p, x = floating(a, b, p, x)
            rest = beyond(a, b, p, ops.stop_gradient(x))
            return usually(
                (a > 0) & (a < math.inf) & (b > 0) & (b < math.inf) & (x > 0) & (rest > 0),
                lambda of: inside(of(a, 1.0), of(b, 1.0), of(p, 0.5), of(x, 0.5), of(rest, 0.5)),
                lambda of: edge(of(a, 1.0), of(b, 1.0), of(x, 0.0)),
            )

        return function

    def slope(which: int):
        def inside(a, b, p, x, rest):
            below = _tails.beta_is_below(a, b, x, rest)
            first, last = (p, p - 1) if lower else (1 - p, -p)
            return where(below, first, last) * _tails.beta_rates(a, b, x, rest)[which]

        return at_quantile(inside, _beta_constant)

    density = at_quantile(lambda a, b, p, x, rest: exp(_tails.log_beta_density(a, b, x, rest)), _end_density)
    by_a, by_b = slope(0), slope(1)
    return {
        "a": lambda g, a, b, p, y: -g * _quotient(by_a(a, b, p, y), density(a, b, p, y)),
        "b": lambda g, a, b, p, y: -g * _quotient(by_b(a, b, p, y), density(a, b, p, y)),
        "p": lambda g, a, b, p, y: (g if lower else -g) / density(a, b, p, y),
    }


def _turned(rule: Callable) -> Any:
    return lambda g, a, b, p, x: -rule(g, a, b, p, x)


for _inverse, _beyond, _lower in ((betaincinv, _beyond_lower, True), (betainccinv, _beyond_upper, False)):
    _rules = _quantile_rules(_beyond, _lower)
    derivative(_inverse, **_rules)
    derivative(_beyond, **{name: _turned(rule) for name, rule in _rules.items()})


def _log_betainc(a, b, x):
    return _log_of_tails(*corrected.beta_tails(a, b, x), corrected.log_beta_tail, a, b, x)


def _log_betaincc(a, b, x):
    return _log_of_tails(*corrected.beta_tails(a, b, x)[::-1], corrected.log_beta_tail, a, b, x)


@ufunc(_log_betainc)
def log_betainc(a: Operand, b: Operand, x: Operand) -> Tensor:
    """``log(betainc(a, b, x))``, accurate where that rounds to 0 or 1."""


@ufunc(_log_betaincc)
def log_betaincc(a: Operand, b: Operand, x: Operand) -> Tensor:
    """``log(betaincc(a, b, x))``, accurate where that rounds to 0 or 1."""


def _log_beta_slope(which: int, lower: bool):
    """Return the derivative of the log of a tail by a shape, as a function of the logs of both tails."""

    def function(a, b, x, log_own, log_other):
        def inside(a, b, x):
            y = 1 - x
            own = _tails.beta_is_below(a, b, x, y)
            own = own if lower else ops.logical_not(own)
            rate = _tails.beta_rates(a, b, x, y)[which]
            return rate * where(own, 1.0, -exp(where(own, 0.0, log_other - log_own)))

        return _beta_function(inside, _beta_constant)(a, b, x)

    return function


def _log_beta_density_over(a, b, x, log_p):
    """The density over a probability, of its logarithm."""
    return _beta_function(
        lambda a, b, x: exp(_tails.log_beta_density(a, b, x, 1 - x) - log_p),
        lambda a, b, x: where(log_p == -math.inf, math.inf, _end_density(a, b, x)),
    )(a, b, x)


def _log_tail_rules(other: Callable, lower: bool) -> dict[str, Any]:
    """Return the rules of the log of a tail, given the log of the ``other`` tail."""
    by_a, by_b = _SLOPES[lower]

    def by_place(g, a, b, x, y):
        slope = g * _log_beta_density_over(a, b, x, y)
        return slope if lower else -slope

    return {
        "a": lambda g, a, b, x, y: g * by_a(a, b, x, y, other(a, b, x)),
        "b": lambda g, a, b, x, y: g * by_b(a, b, x, y, other(a, b, x)),
        "x": by_place,
    }


def _log_inverse_rules(other: Callable, lower: bool) -> dict[str, Any]:
    """Return the rules of the inverse of a log tail."""
    tail = _log_tail_rules(other, lower)

    def over(g, a, b, p, y):
        return _quotient(g, tail["x"](1, a, b, y, p))

    return {
        "a": lambda g, a, b, p, y: over(-tail["a"](g, a, b, y, p), a, b, p, y),
        "b": lambda g, a, b, p, y: over(-tail["b"](g, a, b, y, p), a, b, p, y),
        "p": lambda g, a, b, p, y: g / tail["x"](1, a, b, y, p),
    }


_SLOPES = {lower: (_log_beta_slope(0, lower), _log_beta_slope(1, lower)) for lower in (True, False)}

for _tail, _other, _lower in ((log_betainc, log_betaincc, True), (log_betaincc, log_betainc, False)):
    derivative(_tail, **_log_tail_rules(_other, _lower))


@ufunc(
    _inverse_of_log(
        corrected.betaincinv, corrected.betainccinv, lambda a, b, p: np.exp(corrected.log_betaincinv_far_below(a, b, p))
    )
)
def log_betaincinv(a: Operand, b: Operand, p: Operand) -> Tensor:
    """The quantile of the logarithm ``p`` of a lower probability: the inverse of :func:`log_betainc`."""


@ufunc(
    _inverse_of_log(
        corrected.betainccinv,
        corrected.betaincinv,
        lambda a, b, p: -np.expm1(corrected.log_betaincinv_far_below(b, a, p)),
    )
)
def log_betainccinv(a: Operand, b: Operand, p: Operand) -> Tensor:
    """The quantile of the logarithm ``p`` of an upper probability: the inverse of :func:`log_betaincc`."""


for _inverse, _other, _lower in ((log_betaincinv, log_betaincc, True), (log_betainccinv, log_betainc, False)):
    derivative(_inverse, **_log_inverse_rules(_other, _lower))


# Functions by (lower tail, logarithm) ---------------------------------------------------------------------------------

KINDS = (True, False), (False, False), (True, True), (False, True)
GAMMA = dict(zip(KINDS, (gammainc, gammaincc, log_gammainc, log_gammaincc)))
GAMMA_INVERSE = dict(zip(KINDS, (gammaincinv, gammainccinv, log_gammaincinv, log_gammainccinv)))
BETA = dict(zip(KINDS, (betainc, betaincc, log_betainc, log_betaincc)))
BETA_INVERSE = dict(zip(KINDS, (betaincinv, betainccinv, log_betaincinv, log_betainccinv)))


def beta_tail(a, b, x, y, lower: bool, as_log: bool):
    """Return a tail of the beta distribution, computed from ``y = 1 - x`` where that is smaller."""
    return choose(
        x <= y,
        lambda of: BETA[lower, as_log](of(a, 1.0), of(b, 1.0), of(x, 0.25)),
        lambda of: BETA[not lower, as_log](of(b, 1.0), of(a, 1.0), of(y, 0.25)),
    )
