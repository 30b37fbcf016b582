"""Noncentral distribution functions and their inverses, by cdflib's names, as sums of positive terms.

An inverse starts at SciPy's value and takes two Newton steps, which make it accurate and carry its derivatives.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ... import _scipy, ops
from ...annotations import Operand, Tensor
from .._formulas import choose, exp, where
from .._hosted import hosted
from .._tensors import floating
from . import _noncentral
from ._noncentral import BETA_SUMS, CHI2, T, value
from ._tails import f_parts
from .normal import ndtri
from .probabilities import _probability

__all__ = """
    chndtr chndtridf chndtrinc chndtrix ncfdtr ncfdtri ncfdtridfd ncfdtridfn ncfdtrinc nctdtr nctdtridf nctdtrinc
    nctdtrit
""".split()

_of_sums = _probability("By each argument, to second order.")


# Probabilities, and their slopes by each argument ---------------------------------------------------------------------


def _masked(inside, function: Callable, arguments, safe, ends):
    """Return ``function`` inside the domain, and ``ends`` outside."""
    known = function(*[where(inside, x, other) for x, other in zip(arguments, safe)])
    return where(inside, known, ends)


def _ends(x, low, high, valid):
    """Return probabilities outside of the support; NaN for invalid parameters."""
    return where(valid & (x == low), 0.0, where(valid & (x == high), 1.0, np.nan))


def _finite(*xs):
    return ops.isfinite(sum(xs))


@_of_sums
def chndtr(x: Operand, df: Operand, nc: Operand) -> Tensor:
    """Noncentral chi-squared distribution function of ``df`` degrees of freedom and noncentrality ``nc``."""
    x, df, nc = floating(x, df, nc)
    valid = (df > 0) & (nc >= 0) & _finite(df, nc)
    return _masked(
        valid & (x > 0) & _finite(x),
        lambda x, df, nc: _noncentral.chi2_tail(x, df, nc, True, False),
        (x, df, nc),
        (1.0, 1.0, 0.0),
        _ends(x, 0.0, np.inf, valid),
    )


@_of_sums
def ncfdtr(dfn: Operand, dfd: Operand, nc: Operand, f: Operand) -> Tensor:
    """Noncentral F distribution function of ``dfn`` and ``dfd`` degrees of freedom and noncentrality ``nc``."""
    dfn, dfd, nc, f = floating(dfn, dfd, nc, f)
    valid = (dfn > 0) & (dfd > 0) & (nc >= 0) & _finite(dfn, dfd, nc)

    def inside(dfn, dfd, nc, f):
        m, n = dfn / 2, dfd / 2
        part, rest = f_parts(m, n, f)
        return _noncentral.beta_tail(part, rest, m, n, nc, True, False)

    return _masked(
        valid & (f > 0) & _finite(f), inside, (dfn, dfd, nc, f), (1.0, 1.0, 0.0, 1.0), _ends(f, 0.0, np.inf, valid)
    )


@_of_sums
def nctdtr(df: Operand, nc: Operand, t: Operand) -> Tensor:
    """Noncentral t distribution function of ``df`` degrees of freedom and noncentrality ``nc``."""
    df, nc, t = floating(df, nc, t)
    valid = (df > 0) & _finite(nc)
    return _masked(
        valid & _finite(df, t),
        lambda df, nc, t: _noncentral.t_tail(t, df, nc, True, False),
        (df, nc, t),
        (1.0, 0.0, 0.0),
        where(valid & (df == np.inf), ops.activations.normal_cdf(t - nc), _ends(t, -np.inf, np.inf, valid)),
    )


def _tail_derivative(low, sums: dict, i: int, arguments):
    """Return the derivative by argument ``i``, from the smaller tail."""
    order = tuple(int(i == j) for j in range(len(arguments)))

    def slope(tail):
        return exp(value(sums[tail], *arguments)) * sums[tail](order)(*arguments)

    return where(low, slope("lower"), -slope("upper"))


def _chi2_slope(i: int, x, df, nc):
    if i == 0:
        return exp(value(CHI2["density"], x, df, nc))
    return _tail_derivative(x < df + nc, CHI2, i, (x, df, nc))


def _f_slope(i: int, dfn, dfd, nc, f):
    m, n = dfn / 2, dfd / 2
    part, rest = f_parts(m, n, f)
    density = exp(value(BETA_SUMS["density"], part, rest, m, n, nc)) * part * rest
    if i == 3:
        return density / f
    own = _tail_derivative(part * n < (m + nc / 2) * rest, BETA_SUMS, (2, 3, 4)[i], (part, rest, m, n, nc))
    return (own / 2 + density / dfn, own / 2 - density / dfd, own)[i]


def _t_slope(i: int, df, nc, t):
    if i == 2:
        return exp(value(T["density"], t, df, nc))
    low = t < nc
    sign = where(low, 1.0, -1.0) * ops.ones_like(t)
    given = sign * t, df, sign * nc
    slope = exp(value(T["lower"], *given)) * T["lower"]((0, int(i == 0), int(i == 1)))(*given)
    return sign * slope if i == 0 else slope


# Inverses -------------------------------------------------------------------------------------------------------------


def _start(name: str, parameters: str) -> Callable:
    """SciPy's value, as a constant."""
    return hosted(f"_{name}", parameters.split(), lambda *xs: getattr(_scipy.special, name)(*xs), "SciPy's value.")


_STARTS = {
    name: _start(name, parameters)
    for name, parameters in {
        "chndtrix": "p df nc",
        "chndtridf": "x p nc",
        "chndtrinc": "x df p",
        "ncfdtri": "dfn dfd nc p",
        "ncfdtridfn": "p dfd nc f",
        "ncfdtridfd": "dfn p nc f",
        "ncfdtrinc": "dfn dfd p f",
        "nctdtrit": "df nc p",
        "nctdtridf": "p nc t",
        "nctdtrinc": "df p t",
    }.items()
}


def _found(name: str, probability: Callable, slope: Callable, place: int, *given):
    """Return the argument ``place`` for which the function has a given probability."""
    arguments = floating(*given)
    start, p = _STARTS[name](*arguments), arguments[place]

    def inside(of):
        known = [of(x, 0.5 if i == place else 1.0) for i, x in enumerate(arguments)]
        root, target = of(start, 1.0), known[place]
        for _ in range(2):
            at = [*known[:place], root, *known[place + 1 :]]
            root = root - (probability(*at) - target) / slope(place, *at)
        first = of(start, 1.0)  # where no argument has the probability, it is a bound of SciPy's search
        return where(ops.abs(root - first) <= 1e-3 * (1e-3 + ops.abs(first)), root, first)

    return choose((p > 0) & (p < 1) & (ops.abs(start) > 1e-290) & _finite(start), inside, lambda of: of(start, 1.0))


@_of_sums
def chndtrix(p: Operand, df: Operand, nc: Operand) -> Tensor:
    """Quantile of the noncentral chi-squared distribution."""
    return _found("chndtrix", chndtr, _chi2_slope, 0, p, df, nc)


@_of_sums
def chndtridf(x: Operand, p: Operand, nc: Operand) -> Tensor:
    """Degrees of freedom of the noncentral chi-squared distribution that has ``p`` up to ``x``."""
    return _found("chndtridf", chndtr, _chi2_slope, 1, x, p, nc)


@_of_sums
def chndtrinc(x: Operand, df: Operand, p: Operand) -> Tensor:
    """Noncentrality of the noncentral chi-squared distribution that has ``p`` up to ``x``."""
    return _found("chndtrinc", chndtr, _chi2_slope, 2, x, df, p)


@_of_sums
def ncfdtri(dfn: Operand, dfd: Operand, nc: Operand, p: Operand) -> Tensor:
    """Quantile of the noncentral F distribution."""
    return _found("ncfdtri", ncfdtr, _f_slope, 3, dfn, dfd, nc, p)


@_of_sums
def ncfdtridfn(p: Operand, dfd: Operand, nc: Operand, f: Operand) -> Tensor:
    """First degrees of freedom of the noncentral F distribution that has ``p`` up to ``f``."""
    return _found("ncfdtridfn", ncfdtr, _f_slope, 0, p, dfd, nc, f)


@_of_sums
def ncfdtridfd(dfn: Operand, p: Operand, nc: Operand, f: Operand) -> Tensor:
    """Second degrees of freedom of the noncentral F distribution that has ``p`` up to ``f``."""
    return _found("ncfdtridfd", ncfdtr, _f_slope, 1, dfn, p, nc, f)


@_of_sums
def ncfdtrinc(dfn: Operand, dfd: Operand, p: Operand, f: Operand) -> Tensor:
    """Noncentrality of the noncentral F distribution that has ``p`` up to ``f``."""
    return _found("ncfdtrinc", ncfdtr, _f_slope, 2, dfn, dfd, p, f)


@_of_sums
def nctdtrit(df: Operand, nc: Operand, p: Operand) -> Tensor:
    """Quantile of the noncentral t distribution."""
    df, nc, p = floating(df, nc, p)
    return choose(
        df == np.inf,  # normal
        lambda of: of(nc, 0.0) + ndtri(of(p, 0.5)),
        lambda of: _found("nctdtrit", nctdtr, _t_slope, 2, of(df, 1.0), of(nc, 0.0), of(p, 0.5)),
    )


@_of_sums
def nctdtridf(p: Operand, nc: Operand, t: Operand) -> Tensor:
    """Degrees of freedom of the noncentral t distribution that has ``p`` up to ``t``."""
    return _found("nctdtridf", nctdtr, _t_slope, 0, p, nc, t)


@_of_sums
def nctdtrinc(df: Operand, p: Operand, t: Operand) -> Tensor:
    """Noncentrality of the noncentral t distribution that has ``p`` up to ``t``."""
    df, p, t = floating(df, p, t)
    return choose(
        df == np.inf,
        lambda of: of(t, 0.0) - ndtri(of(p, 0.5)),
        lambda of: _found("nctdtrinc", nctdtr, _t_slope, 1, of(df, 1.0), of(p, 0.5), of(t, 0.0)),
    )
