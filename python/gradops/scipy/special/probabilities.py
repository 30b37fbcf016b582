"""Distribution functions and their inverses, by Cephes' names, of incomplete gamma and beta functions."""

from __future__ import annotations

import functools
import math

import numpy as np

from ... import _scipy, ops
from ...annotations import Operand, Tensor
from ...extend import derivative
from .._define import composed, family, in_part, ufunc
from .._formulas import choose, exp, log, usually, where
from .._tensors import floating
from . import _tails, incomplete
from .gammas import betaln
from .incomplete import (
    beta_density,
    beta_slope_a,
    beta_slope_b,
    betainc,
    betaincc,
    betainccinv,
    betaincinv,
    gamma_density,
    gamma_slope,
    gammainc,
    gammaincc,
    gammainccinv,
    gammaincinv,
)
from .normal import ndtri

__all__ = [
    "bdtr",
    "bdtrc",
    "bdtri",
    "btdtria",
    "btdtrib",
    "chdtr",
    "chdtrc",
    "chdtri",
    "chdtriv",
    "fdtr",
    "fdtrc",
    "fdtri",
    "fdtridfd",
    "gdtr",
    "gdtrc",
    "gdtria",
    "gdtrib",
    "gdtrix",
    "nbdtr",
    "nbdtrc",
    "nbdtri",
    "nrdtrimn",
    "nrdtrisd",
    "pdtr",
    "pdtrc",
    "pdtri",
    "pdtrik",
    "stdtr",
    "stdtridf",
    "stdtrit",
]

_RESULT = """
    Returns:
        A tensor of the shape that the arguments broadcast to, of their promoted floating dtype. NaN outside the domain.

    Gradient:
        {gradient}
"""


def _probability(gradient: str):
    """A decorator: the docstring's usual sections, and errors with the function's name."""

    def decorate(function):
        function.__doc__ = f"{function.__doc__}\n{_RESULT.format(gradient=gradient)}"
        return composed(function)

    return decorate


_of_gamma = _probability("That of :func:`gammainc`, by each argument that is no count.")
_of_gamma_inverse = _probability("That of :func:`gammaincinv`, by each argument that is no count.")
_of_beta = _probability("That of :func:`betainc`, by each argument that is no count.")
_of_beta_inverse = _probability("That of :func:`betaincinv`, by each argument that is no count.")

# Gamma, chi-squared, Poisson ------------------------------------------------------------------------------------------


@_of_gamma
def gdtr(a: Operand, b: Operand, x: Operand) -> Tensor:
    """Gamma distribution function of rate ``a`` and shape ``b``."""
    a, b, x = floating(a, b, x)
    return gammainc(b, a * x)


@_of_gamma
def gdtrc(a: Operand, b: Operand, x: Operand) -> Tensor:
    """Upper probability of the gamma distribution of rate ``a`` and shape ``b``."""
    a, b, x = floating(a, b, x)
    return gammaincc(b, a * x)


@_of_gamma_inverse
def gdtrix(a: Operand, b: Operand, p: Operand) -> Tensor:
    """Quantile of the gamma distribution of rate ``a`` and shape ``b``."""
    a, b, p = floating(a, b, p)
    return gammaincinv(b, p) / a


@_of_gamma_inverse
def gdtria(p: Operand, b: Operand, x: Operand) -> Tensor:
    """Rate of the gamma distribution of shape ``b`` that has ``p`` up to ``x``."""
    p, b, x = floating(p, b, x)
    return gammaincinv(b, p) / x


@_of_gamma
def chdtr(v: Operand, x: Operand) -> Tensor:
    """Chi-squared distribution function of ``v`` degrees of freedom."""
    v, x = floating(v, x)
    return gammainc(v / 2, ops.where(x < 0, math.nan, x) / 2)


@_of_gamma
def chdtrc(v: Operand, x: Operand) -> Tensor:
    """Upper probability of the chi-squared distribution of ``v`` degrees of freedom; 1 below 0."""
    v, x = floating(v, x)
    before = (x < 0) & (v >= 0)
    return ops.where(before, 1.0, gammaincc(v / 2, ops.where(before, 1.0, x) / 2))


@_of_gamma_inverse
def chdtri(v: Operand, p: Operand) -> Tensor:
    """The number above which the chi-squared distribution of ``v`` degrees of freedom has ``p``."""
    v, p = floating(v, p)
    return 2 * gammainccinv(v / 2, p)


@_of_gamma
def pdtr(k: Operand, m: Operand) -> Tensor:
    """Poisson distribution function of mean ``m`` at the count ``k``, which is rounded down."""
    k, m = floating(k, m)
    return gammaincc(_count(k) + 1, m)


@_of_gamma
def pdtrc(k: Operand, m: Operand) -> Tensor:
    """Poisson probability of more than the count ``k``, which is rounded down."""
    k, m = floating(k, m)
    return gammainc(_count(k) + 1, m)


@_of_gamma_inverse
def pdtri(k: Operand, p: Operand) -> Tensor:
    """Mean of the Poisson distribution that has ``p`` up to the count ``k``, which is rounded down."""
    k, p = floating(k, p)
    return gammainccinv(_count(k) + 1, p)


def _count(k):
    """A count, rounded down; NaN below 0."""
    return ops.where(k < 0, math.nan, ops.floor(k))


implicit = family(gradient="Of the implicit function.", within=ufunc())


@implicit
def gdtrib(a: Operand, p: Operand, x: Operand) -> Tensor:
    """Shape of the gamma distribution of rate ``a`` that has ``p`` up to ``x``."""
    ...


@implicit
def pdtrik(p: Operand, m: Operand) -> Tensor:
    """The real count up to which the Poisson distribution of mean ``m`` has ``p``."""
    ...


derivative(
    gdtrib,
    a=lambda g, a, x, y: -g * x * gamma_density(y, a * x) / gamma_slope(y, a * x),
    p=lambda g, a, x, y: g / gamma_slope(y, a * x),
    x=lambda g, a, x, y: -g * a * gamma_density(y, a * x) / gamma_slope(y, a * x),
)
derivative(
    pdtrik,
    p=lambda g, m, y: -g / gamma_slope(y + 1, m),
    m=lambda g, m, y: -g * gamma_density(y + 1, m) / gamma_slope(y + 1, m),
)


@_of_gamma_inverse
def chdtriv(p: Operand, x: Operand) -> Tensor:
    """Degrees of freedom of the chi-squared distribution that has ``p`` up to ``x``."""
    p, x = floating(p, x)
    return 2 * gdtrib(1.0, p, x / 2)


# Beta, binomial -------------------------------------------------------------------------------------------------------


@_of_beta
def bdtr(k: Operand, n: Operand, p: Operand) -> Tensor:
    """Binomial distribution function of size ``n`` and probability ``p`` at the count ``k``, which is rounded down."""
    k, n, p = floating(k, n, p)
    k, possible, full = _counts(k, n)
    return ops.where(full, _where_nan(p, 1.0), betaincc(k + 1, ops.where(possible & ~full, n - k, 1.0), p))


@_of_beta
def bdtrc(k: Operand, n: Operand, p: Operand) -> Tensor:
    """Binomial probability of more than the count ``k``, which is rounded down."""
    k, n, p = floating(k, n, p)
    before = (k < 0) & (n >= 0)
    k, possible, full = _counts(ops.where(before, 0.0, k), n)
    return ops.where(
        before,
        _where_nan(p, 1.0),
        ops.where(full, _where_nan(p, 0.0), betainc(k + 1, ops.where(possible & ~full, n - k, 1.0), p)),
    )


@_of_beta_inverse
def bdtri(k: Operand, n: Operand, p: Operand) -> Tensor:
    """Probability of the binomial distribution of size ``n`` that has ``p`` up to the count ``k``, rounded down."""
    k, n, p = floating(k, n, p)
    k, possible, full = _counts(k, n)
    return betainccinv(k + 1, ops.where(possible & ~full, n - k, math.nan), p)


def _counts(k, n):
    """The count, rounded down and NaN where there is none; if there is one, if it is all."""
    k, n = ops.floor(k), ops.floor(n)
    possible = (k >= 0) & (k <= n)
    return ops.where(possible, k, math.nan), possible, k == n


def _where_nan(p, value: float):
    return ops.where((p >= 0) & (p <= 1), value, math.nan)


@_of_beta
def nbdtr(k: Operand, n: Operand, p: Operand) -> Tensor:
    """Negative binomial distribution function: at most ``k`` failures before ``n`` successes of probability ``p``."""
    k, n, p = floating(k, n, p)
    return betainc(n, _count(k) + 1, p)


@_of_beta
def nbdtrc(k: Operand, n: Operand, p: Operand) -> Tensor:
    """Negative binomial probability of more than ``k`` failures before ``n`` successes of probability ``p``."""
    k, n, p = floating(k, n, p)
    return betaincc(n, _count(k) + 1, p)


@_of_beta_inverse
def nbdtri(k: Operand, n: Operand, p: Operand) -> Tensor:
    """Probability of a success with which at most ``k`` failures before ``n`` successes have ``p``."""
    k, n, p = floating(k, n, p)
    return betaincinv(n, _count(k) + 1, p)


@implicit
def btdtria(p: Operand, b: Operand, x: Operand) -> Tensor:
    """First shape of the beta distribution of second shape ``b`` that has ``p`` up to ``x``."""
    ...


@implicit
def btdtrib(a: Operand, p: Operand, x: Operand) -> Tensor:
    """Second shape of the beta distribution of first shape ``a`` that has ``p`` up to ``x``."""
    ...


derivative(
    btdtria,
    p=lambda g, b, x, y: g / beta_slope_a(y, b, x),
    b=lambda g, b, x, y: -g * beta_slope_b(y, b, x) / beta_slope_a(y, b, x),
    x=lambda g, b, x, y: -g * beta_density(y, b, x) / beta_slope_a(y, b, x),
)
derivative(
    btdtrib,
    a=lambda g, a, x, y: -g * beta_slope_a(a, y, x) / beta_slope_b(a, y, x),
    p=lambda g, a, x, y: g / beta_slope_b(a, y, x),
    x=lambda g, a, x, y: -g * beta_density(a, y, x) / beta_slope_b(a, y, x),
)

# F --------------------------------------------------------------------------------------------------------------------


def _f_parts(dfn, dfd, x):
    """The arguments of the beta distribution function, and the complement of the last."""
    odds = dfn * x
    return dfn / 2, dfd / 2, odds / (dfd + odds), dfd / (dfd + odds)


def _of_smaller(parts, lower):
    """The beta probability up to ``part``, or beyond, by ``rest`` = 1 - part where that is the smaller one."""
    m, n, part, rest = parts
    small = part < 0.5
    turned = where(small, m, n), where(small, n, m), where(small, part, rest)
    same = small == lower
    return choose(same, lambda of: betainc(*_at(of, turned)), lambda of: betaincc(*_at(of, turned)))


def _at(of, arguments):
    return [of(x, 0.5) for x in arguments]


@_of_beta
def fdtr(dfn: Operand, dfd: Operand, x: Operand) -> Tensor:
    """F distribution function of ``dfn`` and ``dfd`` degrees of freedom."""
    dfn, dfd, x = floating(dfn, dfd, x)
    return _of_smaller(_f_parts(dfn, dfd, ops.where(x < 0, math.nan, x)), True)


@_of_beta
def fdtrc(dfn: Operand, dfd: Operand, x: Operand) -> Tensor:
    """Upper probability of the F distribution of ``dfn`` and ``dfd`` degrees of freedom."""
    dfn, dfd, x = floating(dfn, dfd, x)
    return _of_smaller(_f_parts(dfn, dfd, ops.where(x < 0, math.nan, x)), False)


@_of_beta_inverse
def fdtri(dfn: Operand, dfd: Operand, p: Operand) -> Tensor:
    """Quantile of the F distribution of ``dfn`` and ``dfd`` degrees of freedom."""
    dfn, dfd, p = floating(dfn, dfd, p)
    part, rest = betaincinv(dfn / 2, dfd / 2, p), betainccinv(dfd / 2, dfn / 2, p)
    return dfd / dfn * part / rest


def _fdtridfd(dfn, p, x):
    """SciPy's by a step of Newton's method, too."""
    dfd = _scipy.special.fdtridfd(dfn, p, x)

    def better(dfd, dfn, p, x):
        return dfd - (fdtr(dfn, dfd, x) - p) / _fdtr_slopes(dfn, dfd, x)[1]

    return in_part(dfd, (dfd > 1e-3) & (dfd < 1e6), better, dfd, dfn, p, x)


@family(gradient="Of the implicit function.", within=ufunc(_fdtridfd))
def fdtridfd(dfn: Operand, p: Operand, x: Operand) -> Tensor:
    """Second degrees of freedom of the F distribution of ``dfn`` first ones that has ``p`` up to ``x``."""
    ...


def _fdtr_slopes(dfn, dfd, x):
    """The derivatives of :func:`fdtr`."""
    m, n, part, rest = _f_parts(dfn, dfd, x)
    density = beta_density(m, n, part)
    by_part = density * part * rest
    return (
        beta_slope_a(m, n, part) / 2 + by_part / dfn,
        beta_slope_b(m, n, part) / 2 - by_part / dfd,
        by_part / x,
    )


def _fdtridfd_rule(g, dfn, x, y, which):
    slopes = _fdtr_slopes(dfn, y, x)
    return g / slopes[1] if which is None else -g * slopes[which] / slopes[1]


derivative(
    fdtridfd,
    dfn=lambda g, dfn, x, y: _fdtridfd_rule(g, dfn, x, y, 0),
    p=lambda g, dfn, x, y: _fdtridfd_rule(g, dfn, x, y, None),
    x=lambda g, dfn, x, y: _fdtridfd_rule(g, dfn, x, y, 2),
)

# Student's t ----------------------------------------------------------------------------------------------------------


def _stdtr(df, t):
    """SciPy's; where ``t`` is small beside ``df`` by ``t**2 / (df + t**2)``.

    SciPy's has the rounded ``df / (df + t**2)``: relative errors of ``epsilon * df / abs(t) / 5`` near 0, and of
    ``epsilon * df / 2`` in the tails.
    """
    near = np.abs(t) < df * (1 / 600)
    if not np.count_nonzero(near):
        return _scipy.special.stdtr(df, t)

    def by_part(df, t):
        half, part = np.full_like(df, 0.5), t * t / (df + t * t)
        middle = 0.5 + np.sign(t) * _scipy.special.betainc(half, df / 2, part) / 2
        return in_part(middle, t < -1, lambda *xs: _scipy.special.betaincc(*xs) / 2, half, df / 2, part)

    return in_part(_scipy.special.stdtr(df, t), near & (df < np.inf), by_part, df, t)


@ufunc(_stdtr)
def stdtr(df: Operand, t: Operand) -> Tensor:
    """Student's t distribution function of ``df`` degrees of freedom.

    Gradient:
        By ``t`` the density; by ``df`` that of the incomplete beta function.
    """
    ...


def _log_t_density(df, t):
    return -betaln(df / 2, 0.5) - ops.log(df) / 2 - (df + 1) / 2 * ops.log1p(ops.square(t) / df)


def t_density(df, t):
    """The derivative of :func:`stdtr` by ``t``."""
    return exp(_log_t_density(*floating(df, t)))


def t_slope(df, t, over_density: bool = False):
    """The derivative of :func:`stdtr` by ``df``; over that by ``t``, as far in the tails both are too small for
    numbers."""
    df, t = floating(df, t)
    square = ops.square(t)
    return usually(
        (df > 1e5) & (square * square < df / 1000) & (df < math.inf),
        lambda of: _slope_of_many(of(df, 1e6), of(t, 1.0), over_density),
        lambda of: _slope_of_some(of(df, 1.0), of(t, 1.0), over_density),
    )


def _slope_of_many(df, t, over_density: bool):
    """By Fisher's series (1925) about the normal distribution, whose terms fall with ``t**4 / df``."""
    w = ops.square(t)
    third = ((((w - 11) * w + 14) * w + 6) * w - 3) * w - 15
    total = (w + 1) / 4 + (((3 * w - 7) * w - 5) * w - 3) / (48 * df) + third / (128 * df * df)
    log_density = -w / 2 - math.log(2 * math.pi) / 2
    return t / df * total / df * exp(log_density - (_log_t_density(df, t) if over_density else 0.0))


def _slope_of_some(df, t, over_density: bool):
    positive, zero = (df > 0) & (df < math.inf), where(t == 0, t, 0.0)
    inside = positive & (t != 0) & (ops.abs(t) < math.inf)
    df, t = where(positive, df, 1.0), where(inside, t, 1.0)
    square = ops.square(t)
    half, part, rest = df / 2, square / (df + square), df / (df + square)
    far = square > 1
    # of the tail, and of the middle, which is an odd function: as each is small where the other is 1/2
    first, second = where(far, half, 0.5), where(far, 0.5, half)
    place, other = where(far, rest, part), where(far, part, rest)
    own, beside = _tails.beta_rates(first, second, place, other)
    below = _tails.beta_is_below(first, second, place, other)
    size = _of_smaller((first, second, place, other), below)
    unit = _log_t_density(df, t) if over_density else 0.0
    size = exp(log(size) - unit) if over_density else size
    by_shape = where(below, size, -size) * where(far, own, beside) / 2
    by_place = exp(_tails.log_beta_density(first, second, place, other) - unit) * part * rest / df
    slope = (by_shape + where(far, by_place, -by_place)) / 2
    at_0 = (
        zero * (1.0 if over_density else t_density(df, 0.0 * df)) * (_tails.psi_rise(half, 0.5) - 1 / df) / 2
    )  # 0, with a derivative
    return where(inside, where(far, -ops.sign(t), ops.sign(t)) * slope, where(positive, at_0, 0.0))


derivative(stdtr, df=lambda g, df, t: g * t_slope(df, t), t=lambda g, df, t: g * t_density(df, t))


def _from_parts(df, rest, part, log_both):
    """``sqrt(df * rest / part)``; of a part that is no number any more by the first term of its series."""
    with np.errstate(all="ignore"):
        log_part = (log_both + np.log(df / 2) + _scipy.special.betaln(df / 2, 0.5)) * 2 / df
        return np.sqrt(df) * np.where(part > 1e-290, np.sqrt(rest / part), np.exp(-log_part / 2))


@functools.cache
def _scipys_has_digits() -> bool:
    """SciPy's quantile is a search with fewer digits before 1.17."""
    return abs(_scipy.special.stdtrit(7.3, 0.01) + 2.963940447583897) < 1e-13


def _stdtrit(df, p):
    """SciPy's; near the median, of few degrees of freedom and far in the tails, where it loses digits, by parts."""
    with np.errstate(all="ignore"):
        t = _scipy.special.stdtrit(df, p)
        poor = ~((df >= 0.5) & (df < 1e10) & (np.abs(p - 0.5) > 0.005) & (np.abs(t) < np.inf))
        return in_part(t, poor | (not _scipys_has_digits()), _stdtrit_by_parts, df, p)


def _stdtrit_by_parts(df, p):
    """The quantile by the beta distribution of ``df / (df + t**2)``; in the middle of ``t**2 / (df + t**2)``."""
    half, small = np.full_like(df, 0.5), df / 2
    both = 2 * np.minimum(p, 1 - p)
    far = both < 0.5
    tail = np.where(far, both, 0.25)
    rest = np.where(
        far, incomplete.of_betainccinv(half, small, tail), incomplete.of_betaincinv(half, small, np.abs(2 * p - 1))
    )
    part = np.where(rest < 0.5, 1 - rest, incomplete.of_betaincinv(small, half, both))
    t = np.where(both == 0, np.inf, _from_parts(df, rest, part, np.log(both))) * np.sign(p - 0.5)
    t = np.where(df == np.inf, _scipy.special.ndtri(p), t)
    return np.where((df > 0) & (p >= 0) & (p <= 1), t, np.nan)


def _log_stdtrit(df, p):
    """The same of the logarithm of a lower probability."""
    df, p = np.broadcast_arrays(df, p)
    with np.errstate(all="ignore"):
        near = p > -1
        middle = _stdtrit(df, np.exp(np.where(near, p, -1.0)))
        upper = _stdtrit(df, -np.expm1(np.where(near, p, -1.0)))  # its digits where `p` is near 0
        middle = np.where(p > -0.5, -upper, middle)
        tail = np.where(near, -1.0, p) + math.log(2)
        half = np.full_like(df, 0.5)
        t = -_from_parts(
            df, incomplete.log_betainccinv(half, df / 2, tail), incomplete.log_betaincinv(df / 2, half, tail), tail
        )
        t = np.where(df == np.inf, _scipy.special.ndtri_exp(p), np.where(near, middle, t))
    return np.where((df > 0) & (p <= 0), t, np.nan).astype(np.result_type(df, p), copy=False)


@ufunc(_stdtrit)
def stdtrit(df: Operand, p: Operand) -> Tensor:
    """Quantile of Student's t distribution of ``df`` degrees of freedom.

    Gradient:
        Of the implicit function.
    """
    ...


def _stdtridf(p, t):
    """SciPy's, which ends its search early, by a step of Newton's method."""
    df = _scipy.special.stdtridf(p, t)
    inside = (df > 1e-3) & (df < 1e6) & (t != 0)
    return in_part(df, inside, lambda df, p, t: df - (_stdtr(df, t) - p) / t_slope(df, t), df, p, t)


@family(gradient="Of the implicit function.", within=ufunc(_stdtridf))
def stdtridf(p: Operand, t: Operand) -> Tensor:
    """Degrees of freedom of Student's t distribution that has ``p`` up to ``t``."""
    ...


def _over_t_density(y, df, t):
    """``y`` over the density: by its product with ``sqrt(df + t**2)``, as far in the tails that alone is a number."""
    df, t = floating(df, t)
    square = ops.square(t)
    return y / exp(-betaln(df / 2, 0.5) - df / 2 * ops.log1p(square / df)) * ops.sqrt(df + square)


derivative(
    stdtrit,
    df=lambda g, df, y: -g * t_slope(df, y, over_density=True),
    p=lambda g, df, y: _over_t_density(g, df, y),
)


@ufunc(_log_stdtrit)
def log_stdtrit(df: Operand, p: Operand) -> Tensor:
    """The quantile of the logarithm ``p`` of a lower probability of Student's t distribution."""
    ...


derivative(
    log_stdtrit,
    df=lambda g, df, y: -g * t_slope(df, y, over_density=True),
    p=lambda g, df, p, y: g * exp(p) / t_density(df, y),
)
derivative(
    stdtridf,
    p=lambda g, t, y: g / t_slope(y, t),
    t=lambda g, t, y: -g * t_density(y, t) / t_slope(y, t),
)

# Normal ---------------------------------------------------------------------------------------------------------------

_of_normal = _probability("That of :func:`ndtri`.")


@_of_normal
def nrdtrimn(p: Operand, std: Operand, x: Operand) -> Tensor:
    """Mean of the normal distribution of deviation ``std`` that has ``p`` up to ``x``."""
    p, std, x = floating(p, std, x)
    return ops.where(std > 0, x - std * ndtri(p), math.nan)


@_of_normal
def nrdtrisd(mn: Operand, p: Operand, x: Operand) -> Tensor:
    """Deviation of the normal distribution of mean ``mn`` that has ``p`` up to ``x``."""
    mn, p, x = floating(mn, p, x)
    return (x - mn) / ndtri(p)
