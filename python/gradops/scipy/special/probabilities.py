"""Distribution functions and their inverses, by Cephes' names, from incomplete gamma and beta functions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ... import _scipy, ops
from ...annotations import Operand, Tensor
from ...extend import derivative
from .._define import composed, family, grouped_op, ufunc
from .._formulas import exp, usually, where
from .._tensors import floating
from . import _scipy_corrections as corrected
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

__all__ = """
    bdtr bdtrc bdtri btdtria btdtrib chdtr chdtrc chdtri chdtriv fdtr fdtrc fdtri fdtridfd gdtr gdtrc gdtria gdtrib
    gdtrix nbdtr nbdtrc nbdtri nrdtrimn nrdtrisd pdtr pdtrc pdtri pdtrik stdtr stdtridf stdtrit
""".split()

_RESULT = """
    Returns:
        A tensor of the shape that the arguments broadcast to, of their promoted floating dtype. NaN outside the domain.

    Gradient:
        {gradient}
"""


def _probability(gradient: str):
    """Decorator that adds the common docstring sections, and the function's name to errors."""

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
    """Upper probability of the chi-squared distribution of ``v`` degrees of freedom; NaN below 0."""
    v, x = floating(v, x)
    return gammaincc(v / 2, x / 2)


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
    """Return a count rounded down, NaN below 0."""
    return ops.where(k < 0, math.nan, ops.floor(k))


implicit = family(gradient="From the implicit function theorem.", within=ufunc())


@implicit
def gdtrib(a: Operand, p: Operand, x: Operand) -> Tensor:
    """Shape of the gamma distribution of rate ``a`` that has ``p`` up to ``x``."""


@implicit
def pdtrik(p: Operand, m: Operand) -> Tensor:
    """Real count ``k`` for which the Poisson distribution of mean ``m`` has the probability ``p`` up to ``k``."""


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
    """Return the count rounded down (NaN if invalid), whether it is valid, and whether it equals ``n``."""
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
    """Success probability for which at most ``k`` failures before ``n`` successes have the probability ``p``."""
    k, n, p = floating(k, n, p)
    return betaincinv(n, _count(k) + 1, p)


@implicit
def btdtria(p: Operand, b: Operand, x: Operand) -> Tensor:
    """First shape of the beta distribution of second shape ``b`` that has ``p`` up to ``x``."""


@implicit
def btdtrib(a: Operand, p: Operand, x: Operand) -> Tensor:
    """Second shape of the beta distribution of first shape ``a`` that has ``p`` up to ``x``."""


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


def _f_function(inside: Callable, edge: Callable):
    """Return a function that is ``inside`` in the interior of F's domain, and ``edge`` elsewhere."""

    def function(dfn, dfd, x, log_p=0.0):
        dfn, dfd, x, log_p = floating(dfn, dfd, x, log_p)
        return usually(
            (dfn > 0) & (dfn < math.inf) & (dfd > 0) & (dfd < math.inf) & (x > 0) & (x < math.inf),
            lambda of: inside(of(dfn, 1.0) / 2, of(dfd, 1.0) / 2, of(x, 1.0), of(log_p, 0.0)),
            lambda of: edge(of(dfn, 1.0) / 2, of(dfd, 1.0) / 2, of(x, 0.0), of(log_p, -math.inf)),
        )

    return function


def _f_at_0(m, n, x, log_p):
    """Return the density at 0, and 0 at infinity."""
    part, rest = _tails.f_parts(m, n, where(x < math.inf, x, 0.0))
    density = beta_density(m, n, part) * (m / n) * rest * rest
    return where(x < math.inf, density, 0.0 * m)


def _f_constant(m, n, x, _):
    return incomplete.constant((m >= 0) & (n >= 0) & (x >= 0), x)


_f_density_over = _f_function(lambda m, n, x, log_p: exp(_tails.log_f_density(m, n, x) - log_p), _f_at_0)
"""The density divided by a probability that is given by its logarithm."""


def _f_group(dfn, dfd, x):
    below = x <= 1
    inside = np.isfinite(dfn + dfd + x) & (dfn > 0) & (dfd > 0) & (x > 0)
    return np.where(inside, 1 + below + 2 * (np.where(below, dfn, dfd) < 0.2), 0)


def _f_slope_n(dfn: Operand, dfd: Operand, x: Operand):
    """The derivative of :func:`fdtr` by ``dfn`` over that by ``log(x)``."""
    return _f_function(lambda m, n, x, _: _tails.f_slope(m, n, x, 0) / 2, _f_constant)(dfn, dfd, x)


def _f_slope_d(dfn: Operand, dfd: Operand, x: Operand):
    """The derivative of :func:`fdtr` by ``dfd`` over that by ``log(x)``."""
    return _f_function(lambda m, n, x, _: _tails.f_slope(m, n, x, 1) / 2, _f_constant)(dfn, dfd, x)


f_slope_n, f_slope_d = grouped_op(_f_slope_n, _f_group), grouped_op(_f_slope_d, _f_group)


def _f_tail(lower: bool, as_log: bool, dfn, dfd, x):
    dfn, dfd, x = floating(dfn, dfd, x)
    m, n = dfn / 2, dfd / 2
    x = where((x >= 0) & (m > 0) & (n > 0) & (m < math.inf) & (n < math.inf), x, math.nan)
    part, rest = _tails.f_parts(m, n, x)
    return incomplete.beta_tail(m, n, part, rest, lower, as_log)


def _f_quantile(lower: bool, as_log: bool, dfn, dfd, p):
    dfn, dfd, p = floating(dfn, dfd, p)
    part, rest = incomplete.BETA_INVERSE[lower, as_log], incomplete.BETA_INVERSE[not lower, as_log]
    return dfd / dfn * part(dfn / 2, dfd / 2, p) / rest(dfd / 2, dfn / 2, p)


_that_of_betainc = family(gradient="That of :func:`betainc`, without cancellation.", within=ufunc(""))
_that_of_betaincinv = family(gradient="From the implicit function theorem.", within=ufunc(""))


@_that_of_betainc
def fdtr(dfn: Operand, dfd: Operand, x: Operand) -> Tensor:
    """F distribution function of ``dfn`` and ``dfd`` degrees of freedom."""
    return _f_tail(True, False, dfn, dfd, x)


@_that_of_betainc
def fdtrc(dfn: Operand, dfd: Operand, x: Operand) -> Tensor:
    """Upper probability of the F distribution of ``dfn`` and ``dfd`` degrees of freedom."""
    return _f_tail(False, False, dfn, dfd, x)


@_that_of_betainc
def log_fdtr(dfn: Operand, dfd: Operand, x: Operand) -> Tensor:
    """``log(fdtr(dfn, dfd, x))``, accurate where that rounds to 0 or 1."""
    return _f_tail(True, True, dfn, dfd, x)


@_that_of_betainc
def log_fdtrc(dfn: Operand, dfd: Operand, x: Operand) -> Tensor:
    """``log(fdtrc(dfn, dfd, x))``, accurate where that rounds to 0 or 1."""
    return _f_tail(False, True, dfn, dfd, x)


@_that_of_betaincinv
def fdtri(dfn: Operand, dfd: Operand, p: Operand) -> Tensor:
    """Quantile of the F distribution of ``dfn`` and ``dfd`` degrees of freedom."""
    return _f_quantile(True, False, dfn, dfd, p)


@_that_of_betaincinv
def fdtrci(dfn: Operand, dfd: Operand, p: Operand) -> Tensor:
    """Quantile of an upper probability of the F distribution."""
    return _f_quantile(False, False, dfn, dfd, p)


@_that_of_betaincinv
def log_fdtri(dfn: Operand, dfd: Operand, p: Operand) -> Tensor:
    """The quantile of the logarithm ``p`` of a lower probability of the F distribution."""
    return _f_quantile(True, True, dfn, dfd, p)


@_that_of_betaincinv
def log_fdtrci(dfn: Operand, dfd: Operand, p: Operand) -> Tensor:
    """The quantile of the logarithm ``p`` of an upper probability of the F distribution."""
    return _f_quantile(False, True, dfn, dfd, p)


def _f_rules(lower: bool, as_log: bool) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the rules of a tail and of its inverse; those by the degrees of freedom use the one by ``log(x)``."""

    def density(dfn, dfd, x, y):
        found = _f_density_over(dfn, dfd, x, y if as_log else 0.0)
        return found if lower else -found

    return {
        "dfn": lambda g, dfn, dfd, x, y: g * density(dfn, dfd, x, y) * x * f_slope_n(dfn, dfd, x),
        "dfd": lambda g, dfn, dfd, x, y: g * density(dfn, dfd, x, y) * x * f_slope_d(dfn, dfd, x),
        "x": lambda g, dfn, dfd, x, y: g * density(dfn, dfd, x, y),
    }, {
        "dfn": lambda g, dfn, dfd, y: -g * y * f_slope_n(dfn, dfd, y),
        "dfd": lambda g, dfn, dfd, y: -g * y * f_slope_d(dfn, dfd, y),
        "p": lambda g, dfn, dfd, p, y: g / density(dfn, dfd, y, p),
    }


F = dict(zip(incomplete.KINDS, (fdtr, fdtrc, log_fdtr, log_fdtrc)))
F_INVERSE = dict(zip(incomplete.KINDS, (fdtri, fdtrci, log_fdtri, log_fdtrci)))
for _kind in incomplete.KINDS:
    _rules, _of_inverse = _f_rules(*_kind)
    derivative(F[_kind], **_rules)
    derivative(F_INVERSE[_kind], **_of_inverse)


def _fdtr_slope(dfn, dfd, x):
    return _f_density_over(dfn, dfd, x) * x * f_slope_d(dfn, dfd, x)


@family(
    gradient="From the implicit function theorem.",
    within=ufunc(lambda dfn, p, x: corrected.fdtridfd(dfn, p, x, fdtr, _fdtr_slope)),
)
def fdtridfd(dfn: Operand, p: Operand, x: Operand) -> Tensor:
    """Second degrees of freedom of the F distribution of ``dfn`` first ones that has ``p`` up to ``x``."""


derivative(
    fdtridfd,
    dfn=lambda g, dfn, x, y: -g * f_slope_n(dfn, y, x) / f_slope_d(dfn, y, x),
    p=lambda g, dfn, x, y: g / (_f_density_over(dfn, y, x) * x * f_slope_d(dfn, y, x)),
    x=lambda g, dfn, x, y: -g / (x * f_slope_d(dfn, y, x)),
)

# Student's t ----------------------------------------------------------------------------------------------------------


@ufunc(corrected.stdtr, df=lambda g, df, t: g * t_slope(df, t), t=lambda g, df, t: g * t_density(df, t))
def stdtr(df: Operand, t: Operand) -> Tensor:
    """Student's t distribution function of ``df`` degrees of freedom.

    Gradient:
        By ``t`` the density; by ``df`` that of the incomplete beta function.
    """


def t_density(df, t):
    """The derivative of :func:`stdtr` by ``t``."""
    return exp(_tails.log_t_density(*floating(df, t)))


def t_slope_over(df, t):
    """Return the derivative of :func:`stdtr` by ``df`` divided by that by ``t``, from F at ``t**2``."""
    df, t = floating(df, t)
    square = t * t
    inside = (df > 0) & (df < math.inf) & (square > 0) & (square < math.inf)

    def at_0(of):
        """0, with a derivative."""
        half, place = of(df, 1.0) / 2, of(t, 0.0)
        known = (half > 0) & (half < math.inf)
        rate = _tails.log_f_density_slope(0.5, where(known, half, 1.0), 0.0 * half) / 2
        return where(known, where(place * place == 0, place, 0.0) * rate, 0.0)

    return usually(inside, lambda of: f_slope_d(1.0, of(df, 1.0), of(square, 1.0)) * of(t, 1.0) / 2, at_0)


def t_slope(df, t):
    """The derivative of :func:`stdtr` by ``df``."""
    return t_density(df, t) * t_slope_over(df, t)


def _log_stdtrit(df, p):
    """Return the quantile of the log ``p`` of a lower probability."""
    df, p = np.broadcast_arrays(df, p)
    with np.errstate(all="ignore"):
        near = p > -1
        middle = corrected.stdtrit(df, np.exp(np.where(near, p, -1.0)))
        upper = corrected.stdtrit(df, -np.expm1(np.where(near, p, -1.0)))  # accurate for `p` near 0
        middle = np.where(p > -0.5, -upper, middle)
        tail = np.where(near, -1.0, p) + math.log(2)
        half = np.full_like(df, 0.5)
        t = -corrected.t_from_beta_parts(
            df, incomplete.log_betainccinv(half, df / 2, tail), incomplete.log_betaincinv(df / 2, half, tail), tail
        )
        t = np.where(df == np.inf, _scipy.special.ndtri_exp(p), np.where(near, middle, t))
    return np.where((df > 0) & (p <= 0), t, np.nan).astype(np.result_type(df, p), copy=False)


@ufunc(
    corrected.stdtrit, df=lambda g, df, y: -g * t_slope_over(df, y), p=lambda g, df, y: _divide_by_t_density(g, df, y)
)
def stdtrit(df: Operand, p: Operand) -> Tensor:
    """Quantile of Student's t distribution of ``df`` degrees of freedom.

    Gradient:
        From the implicit function theorem.
    """


@family(gradient="From the implicit function theorem.", within=ufunc(lambda p, t: corrected.stdtridf(p, t, t_slope)))
def stdtridf(p: Operand, t: Operand) -> Tensor:
    """Degrees of freedom of Student's t distribution that has the probability ``p`` up to ``t``."""


def _divide_by_t_density(y, df, t):
    """Return ``y`` divided by the density; far in the tails only its product with ``sqrt(df + t**2)`` is a number."""
    df, t = floating(df, t)
    square = ops.square(t)

    def student(of):
        n, above = of(df, 1.0), of(square, 0.0)
        return y / exp(-betaln(n / 2, 0.5) - n / 2 * ops.log1p(above / n)) * ops.sqrt(n + above)

    return usually(df < math.inf, student, lambda of: y * math.sqrt(2 * math.pi) * exp(of(square, 0.0) / 2))


@ufunc(_log_stdtrit, df=lambda g, df, y: -g * t_slope_over(df, y), p=lambda g, df, p, y: g * exp(p) / t_density(df, y))
def log_stdtrit(df: Operand, p: Operand) -> Tensor:
    """The quantile of the logarithm ``p`` of a lower probability of Student's t distribution."""


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
