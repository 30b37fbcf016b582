"""Numerically accurate formulas shared by ``special`` and ``stats``, on tensors, with derivatives of all orders.

For large counts and shapes, probabilities are small differences of large terms. Loader's forms (2000, Fast and accurate
computation of binomial probabilities) cancel these analytically, with the deviance and the remainder of Stirling's
formula.

A Python number is a constant: a function of numbers alone returns a number, which takes the dtype of the tensors it is
combined with.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from .. import ops
from ..errors import JitError
from ..jit.array import Traced
from ..jit.scalar_rules import is_given


def _extend_to_numbers(op: Callable, function: Callable, at_error: float = math.nan) -> Callable:
    """Return ``op`` extended to Python numbers by ``function``, whose errors give ``at_error``."""

    def of(x):
        if x.__class__ is not float and x.__class__ is not int:
            return op(x)
        try:
            return function(x)
        except (ValueError, OverflowError):
            return at_error

    return of


log = _extend_to_numbers(ops.log, lambda x: math.log(x) if x else -math.inf)
log1p = _extend_to_numbers(ops.log1p, lambda x: math.log1p(x) if x != -1 else -math.inf)
exp = _extend_to_numbers(ops.exp, math.exp, math.inf)
expm1 = _extend_to_numbers(ops.expm1, math.expm1, math.inf)
sqrt = _extend_to_numbers(ops.sqrt, math.sqrt)
lgamma = _extend_to_numbers(ops.special.lgamma, math.lgamma, math.inf)
digamma = _extend_to_numbers(lambda x: ops.special.polygamma(x, 0), lambda x: float(ops.special.polygamma(x, 0)))
absolute = _extend_to_numbers(ops.abs, abs)


def where(test, first, second):
    """Return ``ops.where(test, first, second)``, or the chosen operand if ``test`` is a bool."""
    return (first if test else second) if test.__class__ is bool else ops.where(test, first, second)


def minimum(x, y):
    """Return the elementwise minimum; two numbers give a number."""
    return min(x, y) if _number(x) and _number(y) else ops.minimum(x, y)


def maximum(x, y):
    """Return the elementwise maximum; two numbers give a number."""
    return max(x, y) if _number(x) and _number(y) else ops.maximum(x, y)


def negated(test):
    """Return the logical negation of a tensor or a bool."""
    return not test if test.__class__ is bool else ops.logical_not(test)


def all_so(test) -> bool | None:
    """Return True if ``test`` holds for all elements, False if for none; None if it varies or is not known."""
    if test.__class__ is bool:
        return test
    values = held(test)
    if values.__class__ is not np.ndarray and values.__class__ is not np.bool_:
        return None
    count = np.count_nonzero(values)  # faster than `all()` and `any()`
    return True if count == values.size else None if count else False


def held(x):
    """Return the array of a variable; anything else unchanged."""
    return x.data if hasattr(x, "_node") else x


def _number(x) -> bool:
    return x.__class__ is float or x.__class__ is int


def _same(x, instead) -> bool:
    """Return True for a number equal to ``instead``: `where` would give it a dtype, which a number lacks."""
    return _number(x) and x == instead


def _unchanged(x, instead):
    return x


def choose(test, first: Callable, second: Callable):
    """Return ``first(of)`` where ``test``, else ``second(of)``, each evaluated only within its own domain.

    Args:
        test: a tensor of bools, or a bool. If it is known and equal for all elements, only one function is computed.
        first, second: functions of ``of``. ``of(x, instead)`` is ``x`` at the elements the function is chosen for, and
            ``instead``, a safe value, at the others.
    """
    known = all_so(test)
    if known is not None:
        return first(_unchanged) if known else second(_unchanged)
    return ops.where(
        test,
        first(lambda x, instead: x if _same(x, instead) else ops.where(test, x, instead)),
        second(lambda x, instead: x if _same(x, instead) else ops.where(test, instead, x)),
    )


def usually(test, first: Callable, second: Callable):
    """Return :func:`choose`; a program traced on NumPy is specialised to one function if that serves all elements."""
    known = _looked_at(test)
    return choose(test if known is None else known, first, second)


def is_single(x) -> bool:
    """Return True for a number in a scalar function that is traced to be repeated in loops."""
    values = held(x)
    return values.__class__ is Traced and values.program.of_single_numbers


def is_fixed(x) -> bool:
    """Return True for such a number that is the same at each call."""
    values = held(x)
    return values.__class__ is Traced and is_given(values)


def refined(test, fine: Callable, plain: Callable):
    """Return ``fine(of)`` where ``test``, else ``plain(of)``, which is valid everywhere but less accurate there.

    It chooses like :func:`usually`, but scalar programs in loops use only ``plain``.
    """
    return plain(_unchanged) if is_single(test) else usually(test, fine, plain)


def _looked_at(test) -> bool | None:
    """Return :func:`all_so` of a traced test and specialise the program to that answer; None if it is not traced."""
    values = held(test)
    if values.__class__ is not Traced:
        return None
    try:
        return True if ops.all(values) else None if ops.any(values) else False
    except JitError:  # values may not be read in a loop, or while a program is analysed
        return None


"""Products with logarithms."""


def times_log(a, x):
    """``a * log(x)``, 0 where both are 0."""
    none = a == 0
    if all_so(none) is False:
        return a * log(x)
    return a * log(where((x == 0) & none, 1.0, x))


def times_log1m(a, x):
    """``a * log(1 - x)``, 0 where both are 0 and 1."""
    none = a == 0
    if all_so(none) is False:
        return a * log1p(-x)
    return a * log1p(-where((x == 1) & none, 0.0, x))


def power(x, a):
    """Return ``x**a``, with first and second derivatives by ``x`` even if ``x`` is 0 and ``a`` is 0, 1 or 2."""
    none, one, two = a == 0, a == 1, a == 2
    general = where(none | one | two, 1.0, x) ** where(none | one | two, 3.0, a)
    return where(none, 1.0, where(one, x, where(two, x * x, general)))


def complement(x):
    """Return ``1 - exp(x)`` for ``x`` below 0.

    Below -1 it avoids expm1, whose derivative some libraries compute as ``expm1(x) + 1``, which cancels.
    """
    return choose(x < -1, lambda of: 1 - exp(of(x, -2.0)), lambda of: -expm1(of(x, -0.5)))


def log_complement(x):
    """Return ``log(1 - exp(x))`` for ``x`` below 0, by the more accurate of two forms."""
    return choose(x < -math.log(2), lambda of: log1p(-exp(of(x, -1.0))), lambda of: log(-expm1(of(x, -0.5))))


def tail_from_smaller(low, smaller_of: Callable, lower: bool, as_log: bool):
    """Return a tail probability, or its logarithm, computed from the smaller tail.

    Args:
        low: a test that is true where the lower tail is probably the smaller one.
        smaller_of: takes such a test and returns the logarithm of the lower tail where it is true, else of the upper.
    """
    smaller = smaller_of(low)
    large = smaller > -math.log(2)
    if all_so(large) is not False:
        low = low ^ large
        smaller = smaller_of(low)
    return tail_probability(low, smaller, lower, as_log)


def tail_probability(low, smaller, lower: bool, as_log: bool):
    """Return a tail probability from ``smaller``, the logarithm of the lower tail where ``low``, else of the upper."""
    own = low if lower else negated(low)
    if as_log:
        return ops.where(own, smaller, log_complement(ops.where(own, -1.0, smaller)))
    return ops.where(own, exp(smaller), complement(smaller))


def scaled_log1p(a, q):
    """Return ``a * log1p(q / a)``, which approaches ``q`` as ``a`` grows.

    For small u = q / a the remainder is a separate term, by the series of atanh in r = u / (2 + u), so that neither the
    value nor its derivative by ``a`` is a difference of large numbers.
    """

    def near(of):
        quotient = of(q, 0.0) / of(a, 1.0)
        r = quotient / (2 + quotient)
        w = r * r
        series = 1 / 3 + w * (1 / 5 + w * (1 / 7 + w * (1 / 9 + w / 11)))
        return of(q, 0.0) * (1 - r + 2 * w / (2 + quotient) * series)

    return refined(absolute(q / a) < 0.1, near, lambda of: of(a, 1.0) * log1p(of(q, 1.0) / of(a, 1.0)))


def deviance_part(a, x, d=None):
    """``a * (u - log1p(u))``, u = x / a - 1 = d / a: ``bd0(a, x)`` of Loader.

    Args:
        a, x: positive.
        d: ``x - a``, if the caller knows it more accurately.
    """
    d = x - a if d is None else d

    def near(of):
        size = of(a, 1.0)
        return size * log1p_rest_near(of(d, 0.0) / size)

    def far(of):
        return of(d, 1.0) - of(a, 1.0) * log(of(x, 2.0) / of(a, 1.0))

    return choose(absolute(d / a) < 0.1, near, far)


def log1p_rest_near(u):
    """Return ``u - log1p(u)`` for ``abs(u)`` below 0.1, by the series of atanh."""
    r = u / (2 + u)
    w = r * r
    return r * (u - w * (2 / 3 + w * (2 / 5 + w * (2 / 7 + w * (2 / 9 + w * (2 / 11))))))


"""Gamma functions of large arguments."""


def stirling(a):
    """``lgamma(a) - (a - 1 / 2) * log(a) + a - log(2 * pi) / 2``, for ``a`` of 20 and more."""
    w = 1 / (a * a)
    return (1 / 12 - w * (1 / 360 - w * (1 / 1260 - w * (1 / 1680 - w / 1188)))) / a


def log_rising(a, x, mu=0.0):
    """Return ``lgamma(a + x) - lgamma(a) - x * log(a + mu)``, by Stirling's series for large ``a``."""

    def large(of):
        high, step, mean = of(a, 20.0), of(x, 0.0), of(mu, 0.0)
        return (
            scaled_log1p(high, step)
            - step
            - log1p(step / high) / 2
            + step * log1p((step - mean) / (high + mean))
            + stirling(high + step)
            - stirling(high)
        )

    def small(of):
        low, step, mean = of(a, 1.0), of(x, 0.0), of(mu, 0.0)
        return lgamma(low + step) - lgamma(low) - step * log(low + mean)

    return refined(a + 0 * (x + mu) >= 20, large, small)


def log_beta(a, b):
    """Return ``log(beta(a, b))``, accurate also if one argument is large."""
    first = a <= b  # `minimum` and `maximum` have no second derivative at a tie
    small, other = where(first, a, b), where(first, b, a)
    return lgamma(small) - log_rising(other, small) - small * log(other)


def log_choose(k, m):
    """Return ``log(binom(k + m, k))`` for nonnegative ``k`` and ``m``."""
    return -log1p(k + m) - log_beta(k + 1, m + 1)


"""Loader's densities."""


def binomial_size(k, m):
    """Return a measure of the size of ``k`` and ``m``: from 20 on :func:`log_binomial_large` is fully accurate."""
    return minimum(minimum(k, m), (k + m) / 25)


def log_binomial_large(k, m, p, q, d):
    """Return ``log(binom(k + m, k) * p**k * q**m)``, q = 1 - p, d = m * p - k * q, for large ``k`` and ``m``."""
    n = k + m
    return (
        log(n / (2 * math.pi * k) / m) / 2
        + stirling(n)
        - stirling(k)
        - stirling(m)
        - deviance_part(k, n * p, d)
        - deviance_part(m, n * q, -d)
    )


def log_binomial(k, m, p, q=None):
    """``log(binom(k + m, k) * p**k * q**m)``, q = 1 - p."""
    q = 1 - p if q is None else q

    def large(of):
        k_, m_, p_, q_ = of(k, 250.0), of(m, 250.0), of(p, 0.5), of(q, 0.5)
        return log_binomial_large(k_, m_, p_, q_, m_ * p_ - k_ * q_)

    def small(of):
        k_, m_, p_ = of(k, 1.0), of(m, 1.0), of(p, 0.5)
        return log_choose(k_, m_) + times_log(k_, p_) + times_log1m(m_, p_)

    return refined(binomial_size(k, m) >= 20, large, small)
