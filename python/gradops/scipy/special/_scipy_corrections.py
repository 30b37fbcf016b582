"""Corrections of values of SciPy's special functions, each with SciPy's issue and the error that it mends.

Functions have SciPy's names and arguments, and take and return arrays of NumPy. Each calls SciPy, and replaces the
elements that SciPy computes with too few digits. Errors are relative ones, measured with mpmath. A correction can be
deleted when the oldest SciPy that gradops supports computes these elements well.
"""

from __future__ import annotations

import cmath
import functools
import math
from collections.abc import Callable
from typing import TypeVar

import numpy as np

from ... import _scipy
from ...backends.numpy.base import greatest, least
from .._quadrature_rules import half_line_double_exponential
from . import _tails

F = TypeVar("F", bound=Callable)


def replace_where(value, mask, function: Callable, *arguments):
    """Return ``value`` with ``function(*arguments)`` in the elements where ``mask`` is true.

    All are arrays of NumPy that broadcast; ``function`` gets the masked elements alone, in double precision.
    """
    if not np.count_nonzero(mask):  # the fastest test in NumPy
        return value
    given = value, mask, *arguments
    # broadcasting costs more than this test
    if not all(x.__class__ is np.ndarray and x.shape == value.shape for x in given):
        given = np.broadcast_arrays(*given)
    value, mask, *whole = given
    value, places = np.array(value), mask.nonzero() if mask.ndim else mask
    value[places] = function(*[x[places].astype(np.float64) for x in whole])
    return value


def same_as_scipy_below(limits: tuple[float, ...], name: str, function: F) -> F:
    """Mark a kernel as SciPy's function ``name`` below the limits of its arguments, where native code calls SciPy's."""
    function.function, function.limits = name, limits  # type: ignore[attr-defined]
    return function


# Kelvin functions: ker, kei, kerp, keip -------------------------------------------------------------------------------


TURN = cmath.exp(0.25j * math.pi)


def kelvin_k(name: str, bessel: Callable) -> Callable:
    """Return SciPy's Kelvin function, replaced by a Bessel function of complex argument for ``x`` in (2, 25).

    SciPy switches between its power series and its asymptotic series at 10, where both have 9 to 10 digits: an error of
    6e-10 at 10 in SciPy 1.17.1 (scipy/xsf#232, open).
    """

    def function(x):
        value = getattr(_scipy.special, name)(x)
        return replace_where(value, (x > 2) & (x < 25), lambda x: bessel(TURN * x), x)

    return function


# Beta function and binomial coefficient -------------------------------------------------------------------------------


MIN_INACCURATE_ARGUMENT = 100.0
"""From this argument on SciPy's beta and binom lose digits."""


def correct_large_arguments(name: str, is_large: Callable, log: Callable, limits: tuple[float, float]) -> Callable:
    """Return SciPy's function, replaced by the exponential of its logarithm where arguments are large.

    SciPy divides gamma functions of large arguments: in SciPy 1.17.1 the error of ``beta(1e5, 5.3)`` is 9e-11, of
    ``binom(1e4, 30.5)`` 2e-12 (scipy#7158; of the logarithms scipy#19473, open).
    """

    def function(x1, x2):
        value = getattr(_scipy.special, name)(x1, x2)
        return replace_where(value, is_large(x1, x2), lambda *xs: np.exp(log(*xs)), x1, x2)

    return same_as_scipy_below(limits, name, function)


def is_large_pair(a, b):
    return (np.maximum(a, b) > MIN_INACCURATE_ARGUMENT) & (np.minimum(a, b) > 0)


def is_large_choice(x, k):
    """Exclude few things, whose number SciPy computes as an exact product."""
    least = np.minimum(k, x - k)
    return (x > MIN_INACCURATE_ARGUMENT) & (least > 0) & ((least >= 20) | (k != np.floor(k)))


# Incomplete gamma function and its inverse ----------------------------------------------------------------------------


MIN_INACCURATE_SHAPE = 5e4
"""From this shape on the 2,000 terms of SciPy's series are too few for the tails of the gamma distribution."""


def _gamma_function(name: str):
    """Return SciPy's function, replaced far in the tails of large shapes by the integral over the tail.

    Beyond the range of Temme's expansion SciPy cuts its series off: ``gammainc(1e6, 9.95e5)`` has an error of 4e-6 in
    SciPy 1.17.1 (no issue known).
    """

    def function(a, x):
        value = getattr(_scipy.special, name)(a, x)
        if greatest(a) <= MIN_INACCURATE_SHAPE:
            return value
        with np.errstate(all="ignore"):
            far = (a > MIN_INACCURATE_SHAPE) & (np.abs(x - a) > 4.4 * np.sqrt(a)) & _tails.is_inside_gamma(a, x)
        small = far & (value < 0.5)
        value = replace_where(value, small, lambda *v: np.exp(_tails.log_gamma_tail(*v)), a, x)
        return replace_where(value, far & ~small, lambda *v: -np.expm1(_tails.log_gamma_tail(*v)), a, x)

    return same_as_scipy_below((MIN_INACCURATE_SHAPE, np.inf), name, function)


gammainc, gammaincc = _gamma_function("gammainc"), _gamma_function("gammaincc")


def newton_on_log(tail, log_density, start, target, sign):
    """Solve ``tail(exp(u)) == target`` for ``u``; ``tail`` is a concave log tail, ``sign`` 1 for a lower one."""
    u = start
    with np.errstate(all="ignore"):
        for _ in range(40):
            x = np.exp(u)
            reached = tail(x)
            step = sign * (reached - target) * np.exp(reached - log_density(x) - u)
            u = np.where(np.isfinite(step), u - np.clip(step, -5, 5), u)
            if not (np.abs(step) > 1e-15 * np.maximum(1, np.abs(u))).any():
                break
    return u


def newton_on_gamma(a, start, target, sign):
    return newton_on_log(
        lambda x: _tails.log_gamma_tail(a, x), lambda x: _tails.log_gamma_density(a, x), start, target, sign
    )


def _inverse_gamma_function(name: str, sign: int):
    """Return SciPy's inverse, improved by Newton's method far in the tails of large shapes.

    SciPy inverts the series that it cuts off, see above.
    """

    def function(a, p):
        x = getattr(_scipy.special, name)(a, p)
        if greatest(a) <= MIN_INACCURATE_SHAPE:
            return x
        far = (a > MIN_INACCURATE_SHAPE) & (a < np.inf) & (p > 0) & (p < 1) & (np.minimum(p, 1 - p) < 1e-4)

        def corrected(a, p, x):
            small = p < 0.5
            target, side = np.where(small, np.log(p), np.log1p(-p)), np.where(small, sign, -sign)
            return np.exp(newton_on_gamma(a, np.log(x), target, side))

        return replace_where(x, far, corrected, a, p, x)

    return same_as_scipy_below((MIN_INACCURATE_SHAPE, np.inf), name, function)


gammaincinv, gammainccinv = _inverse_gamma_function("gammaincinv", 1), _inverse_gamma_function("gammainccinv", -1)


# Incomplete beta function and its inverse -----------------------------------------------------------------------------


def log_beta_tail(a, b, x):
    return _tails.log_beta_tail(a, b, x, 1 - x)


def _correct_tiny_values(value, a, b, x):
    """Replace values below 1e-280 by the integral over the tail.

    SciPy's values are 0 or have few digits there (scipy#24074; in SciPy 1.17.1 an error of 3e-12 at 2e-308).
    """
    if least(value) >= 1e-280:
        return value
    lost = (value < 1e-280) & _tails.is_inside_beta(a, b, x)
    return replace_where(value, lost, lambda *v: np.exp(log_beta_tail(*v)), a, b, x)


def betainc(a, b, x):
    """Return SciPy's ``betainc``, the complement of ``betaincc`` where that is small and both shapes are integers.

    For integer shapes of a large sum SciPy sums binomial probabilities of a rounded ``1 - x`` (no issue known; at 40
    random arguments of SciPy 1.17.1 no error was seen).
    """
    value = _correct_tiny_values(_scipy.special.betainc(a, b, x), a, b, x)
    if greatest(a) + greatest(b) <= 1000:
        return value
    rounded = (value > 0.5) & (a + b > 1000) & (a == np.floor(a)) & (b == np.floor(b))
    return replace_where(value, rounded, lambda *v: 1 - _scipy.special.betaincc(*v), a, b, x)


def beta_tails(a, b, x):
    """Return ``betainc`` and ``betaincc``.

    SciPy's ``betaincc`` takes the time of 25 calls of its ``betainc``, which serves where ``1 - x`` has all digits.
    """
    lower = betainc(a, b, x)
    small, near = lower > 0.5, x < 0.25
    upper = replace_where(1 - lower, small & ~near, lambda a, b, x: betainc(b, a, 1 - x), a, b, x)
    small = small & near
    if np.count_nonzero(small):
        upper = replace_where(upper, small, lambda *v: _correct_tiny_values(_scipy.special.betaincc(*v), *v), a, b, x)
    return lower, upper


def betaincc(a, b, x):
    return beta_tails(a, b, x)[1]


def log_betaincinv_far_below(a, b, p):
    """Return the logarithm of the quantile of a probability with logarithm ``p``, by Newton's method."""
    return newton_on_log(
        lambda x: log_beta_tail(a, b, x),
        lambda x: _tails.log_beta_density(a, b, x, 1 - x),
        np.minimum((p + np.log(a) + _scipy.special.betaln(a, b)) / a, -1e-3),
        p,
        1,
    )


def betaincinv(a, b, p):
    """Return SciPy's quantile; of tiny probabilities the one of Newton's method on logarithms.

    SciPy's search ends at the smallest normal number: ``betaincinv(0.5, 7.3, 1e-200)`` is 2e-308 in SciPy 1.17.1, where
    the quantile underflows to 0 (no issue known). Earlier versions gave fewer digits of tiny quantiles (scipy#4244).
    """
    x = _scipy.special.betaincinv(a, b, p)
    tiny = ((p < 1e-50) | (x < 1e-300)) & (p > 0) & (a > 0) & (b > 0)
    return replace_where(x, tiny, lambda a, b, p: np.exp(log_betaincinv_far_below(a, b, np.log(p))), a, b, p)


def betainccinv(a, b, p):
    """Return SciPy's quantile of an upper probability; of tiny ones the one of Newton's method on logarithms."""
    x = _scipy.special.betainccinv(a, b, p)
    tiny = (p < 1e-50) & (p > 0) & (a > 0) & (b > 0) & (x > 1e-3)
    return replace_where(x, tiny, lambda a, b, p: -np.expm1(log_betaincinv_far_below(b, a, np.log(p))), a, b, p)


# Hypergeometric functions ---------------------------------------------------------------------------------------------


def hyp0f1(v, z):
    """Return SciPy's ``hyp0f1``; for real ``z`` below -4 the Bessel function that it is.

    SciPy's loses digits there: a relative error of 2e-11 at -28 in SciPy 1.17.1 (no issue known).
    """
    value = _scipy.special.hyp0f1(v.real, z)
    if np.iscomplexobj(z):
        return value

    def bessel(v, z):
        return _scipy.special.gamma(v) * (-z) ** ((1 - v) / 2) * _scipy.special.jv(v - 1, 2 * np.sqrt(-z))

    return replace_where(value, (z < -4) & (v > 0) & (v < 10), bessel, v, z)


_HYPERU_LOGS, _HYPERU_NODES, _HYPERU_WEIGHTS = half_line_double_exponential(np.arange(-4.2, 5.2, 0.0625), 0.0625)


def hyperu(a, b, x):
    """Return the integral of DLMF 13.4.4 where it has all digits, else SciPy's ``hyperu``.

    SciPy accepts a result with 6 digits (scipy#2287, scipy#10784): errors up to 6e-9 at 300 random arguments in SciPy
    1.17.1.
    """
    with np.errstate(all="ignore"):
        inside = (a >= 0.5) & (a <= 50) & (np.abs(b) <= 50) & (x >= 0.05) & (x <= 1e6)
        inside = inside & ((x >= 1) | (1 + a - b <= 15))
        value = replace_where(a + b + x, inside, _hyperu_integral, a, b, x)
        return replace_where(value, ~inside, _scipy.special.hyperu, a, b, x)


def _hyperu_integral(*parameters):
    flat = [np.reshape(v, -1) for v in parameters]
    found = np.empty(flat[0].shape)
    for start in range(0, found.size, 128):  # whose terms stay in the cache
        a, b, x = (v[start : start + 128, None] for v in flat)
        logs = (
            (a - 1) * _HYPERU_LOGS
            - _HYPERU_NODES
            + (b - a - 1) * np.log1p(_HYPERU_NODES / x)
            - _scipy.special.gammaln(a)
        )
        found[start : start + 128] = (np.exp(logs) @ _HYPERU_WEIGHTS) * (x**-a)[:, 0]
    return found.reshape(np.shape(parameters[0]))


# Exponential integral -------------------------------------------------------------------------------------------------


def expn(n, x):
    """Return SciPy's ``expn``; of orders from 49 on 20 terms of a continued fraction.

    SciPy's expansion for large orders loses digits for large ``x``: in SciPy 1.17.1 an error of 1e-13 at
    ``expn(5000, 700)`` (no issue known).
    """

    def fraction(n, x):
        rest = 0.0
        for i in range(20, 0, -1):
            rest = i * (n - 1 + i) / (x + n + 2 * i - rest)
        return np.exp(-x) / (x + n - rest)

    n = n.astype("float64")  # SciPy takes integers in double precision alone
    value = _scipy.special.expn(n, x).astype(x.dtype)
    return replace_where(value, (n >= 49) & (x > 0) & (x < np.inf), fraction, n, x)


# Student's t and F distributions --------------------------------------------------------------------------------------


def stdtr(df, t):
    """Return SciPy's ``stdtr``; for ``t`` small beside ``df`` the incomplete beta function of ``t**2 / (df + t**2)``.

    Before SciPy 1.17 ``df / (df + t**2)`` is rounded: errors of ``epsilon * df / abs(t) / 5`` near 0 and of
    ``epsilon * df / 2`` in the tails. Since 1.17 ``stdtr(1, t)`` is 0.5 for ``abs(t)`` below 7e-9 (scipy#25667, open).
    """
    size = np.abs(t)
    if least(size) * 600 > greatest(df):
        return _scipy.special.stdtr(df, t)
    near = size < df * (1 / 600)

    def central_values(df, t):
        half, part = np.full_like(df, 0.5), t * t / (df + t * t)
        middle = 0.5 + np.sign(t) * _scipy.special.betainc(half, df / 2, part) / 2
        return replace_where(middle, t < -1, lambda *xs: _scipy.special.betaincc(*xs) / 2, half, df / 2, part)

    return replace_where(_scipy.special.stdtr(df, t), near & (df < np.inf), central_values, df, t)


def t_from_beta_parts(df, rest, part, log_both):
    """Return ``sqrt(df * rest / part)``; of a part that underflows by the first term of its series."""
    with np.errstate(all="ignore"):
        log_part = (log_both + np.log(df / 2) + _scipy.special.betaln(df / 2, 0.5)) * 2 / df
        return np.sqrt(df) * np.where(part > 1e-290, np.sqrt(rest / part), np.exp(-log_part / 2))


@functools.cache
def _scipy_stdtrit_is_accurate() -> bool:
    """Return whether SciPy's ``stdtrit`` has all digits: since 1.17 (scipy#22962) it is not a search any more.

    The search of SciPy 1.15 has them at the first point, not at the second.
    """
    t = _scipy.special.stdtrit([7.3, 1.0], [0.01, 0.1])
    return bool(np.all(np.abs(t + [2.963940447583897, 3.077683537175254]) < 1e-13))


def stdtrit(df, p):
    """Return SciPy's ``stdtrit``; near the median, of few degrees of freedom and far in the tails a beta quantile.

    SciPy 1.17.1 gives infinity of the wrong sign for tiny probabilities (scipy#25968, open).
    """
    with np.errstate(all="ignore"):
        t = _scipy.special.stdtrit(df, p)
        poor = ~((df >= 0.5) & (df < 1e10) & (np.abs(p - 0.5) > 0.005) & (np.abs(t) < np.inf))
        return replace_where(t, poor | (not _scipy_stdtrit_is_accurate()), stdtrit_by_beta, df, p)


def stdtrit_by_beta(df, p):
    """Return the quantile from that of the beta variable ``df / (df + t**2)``, in the middle ``t**2 / (df + t**2)``."""
    half, small = np.full_like(df, 0.5), df / 2
    both = 2 * np.minimum(p, 1 - p)
    far = both < 0.5
    tail = np.where(far, both, 0.25)
    rest = np.where(far, betainccinv(half, small, tail), betaincinv(half, small, np.abs(2 * p - 1)))
    part = np.where(rest < 0.5, 1 - rest, betaincinv(small, half, both))
    t = np.where(both == 0, np.inf, t_from_beta_parts(df, rest, part, np.log(both))) * np.sign(p - 0.5)
    t = np.where(df == np.inf, _scipy.special.ndtri(p), t)
    return np.where((df > 0) & (p >= 0) & (p <= 1), t, np.nan)


def stdtridf(p, t, slope: Callable):
    """Return SciPy's ``stdtridf`` after a step of Newton's method, as SciPy's search ends early (scipy#8398).

    In SciPy 1.17.1 errors of the probability are up to 1e-12.

    Args:
        slope: the derivative of the distribution function by ``df``, a function of ``df`` and ``t``.
    """
    df = _scipy.special.stdtridf(p, t)
    inside = (df > 1e-3) & (df < 1e6) & (t != 0)
    return replace_where(df, inside, lambda df, p, t: df - (stdtr(df, t) - p) / slope(df, t), df, p, t)


def fdtridfd(dfn, p, x, value: Callable, slope: Callable):
    """Return SciPy's ``fdtridfd`` after a step of Newton's method, as SciPy's search ends early (scipy#8398).

    In SciPy 1.17.1 errors of the probability are up to 1e-11.

    Args:
        value: the distribution function, a function of ``dfn``, ``dfd`` and ``x``.
        slope: its derivative by ``dfd``.
    """
    dfd = _scipy.special.fdtridfd(dfn, p, x)

    def step(dfd, dfn, p, x):
        return dfd - (value(dfn, dfd, x) - p) / slope(dfn, dfd, x)

    return replace_where(dfd, (dfd > 1e-3) & (dfd < 1e6), step, dfd, dfn, p, x)
