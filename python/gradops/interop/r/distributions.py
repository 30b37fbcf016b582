"""R's distributions and special functions on tensors, with R's names and parameters.

The families are those of :mod:`gradops.scipy.stats`, plus R's negative binomial by its mean. ``lower`` selects the
lower or the upper tail of probabilities and quantiles; ``log`` selects their logarithms.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ... import ops
from ...functional.implicit import stepped
from ...jit.scalar_logs import function_number
from ...jit.scalar_rules import is_of_single_numbers
from ...scipy import special as functions
from ...scipy import stats
from ...scipy._formulas import (
    all_so,
    binomial_size,
    choose,
    exp,
    lgamma,
    log,
    log1p,
    log_beta,
    log_binomial_large,
    log_rising,
    maximum,
    minimum,
    power,
    refined,
    scaled_log1p,
    times_log,
    where,
)
from ...scipy.special._tails import log_poisson
from ...scipy.stats.distributions._arguments import alike, both
from ...scipy.stats.distributions._discrete import Discrete


class Family(NamedTuple):
    """The three functions of one of R's families.

    Attributes:
        density: ``density(x, log, *parameters)``.
        probability: ``probability(q, lower, log, *parameters)``.
        quantile: ``quantile(p, lower, log, *parameters)``.
    """

    density: Callable
    probability: Callable
    quantile: Callable


def density(name: str, log: bool, x, *parameters):
    """Return the density of R's family ``name`` at ``x``; NaN with a derivative of 0 where R's numbers are missing."""
    return _past_missing(lambda x: family(name).density(x, log, *_plain(parameters)), x, name)


def probability(name: str, lower: bool, log: bool, q, *parameters):
    """Return the probability of values up to ``q``, or above it."""
    return family(name).probability(q, lower, log, *_plain(parameters))


def quantile(name: str, lower: bool, log: bool, p, *parameters):
    """Return the quantile: the value whose lower or upper tail has probability ``p``."""
    return family(name).quantile(p, lower, log, *_plain(parameters))


def call_if_same_shape(kind: str, settings: list, name: str, *arguments):
    """Call the function named by ``kind`` if its arguments have one shape or are single numbers; else return None.

    R recycles arguments of different shapes itself and calls again.
    """
    forms = [tuple(-1 if n is None else int(n) for n in x.shape) if hasattr(x, "shape") else (1,) for x in arguments]
    if min(map(min, filter(None, forms)), default=1) >= 0:
        most = max(map(math.prod, forms))
        largest = {form for form in forms if math.prod(form) == most}
        if most == 0 or len(largest) > 1 or any(form not in (*largest, (), (1,)) for form in forms):
            return None
    return _KINDS[kind](name, *settings, *arguments)


def drawn(name: str, x, *parameters):
    """Return ``x``, numbers that R drew from the family ``name``, as a differentiable function of the parameters.

    Gradient:
        The random noise is held constant. If the family has a formula for draws from noise, its derivative; else
        ``-(dF/dp) / f``, from the implicit equation ``F(x, *parameters) = constant`` of the distribution function
        (Figurnov, Mohamed and Mnih 2018, Implicit reparameterization gradients).
    """
    x, *given = _together(x, *parameters)
    formula = _OF_NOISE.get(name)
    if formula is None:
        return _implicit(family(name), x, given)
    noise_of, value_of = formula
    noise = ops.stop_gradient(noise_of(x, *given))
    value = value_of(ops.where(ops.isfinite(noise), noise, 0.0), *given)
    return x + (value - ops.stop_gradient(value))


def _implicit(family: Family, x, parameters: list):
    constant = [ops.stop_gradient(v) for v in parameters]
    is_low = family.probability(x, True, False, *constant) < 0.5

    def probability(x, *parameters):
        """Return the lower probability, or minus the upper one where that is smaller and so has more digits."""
        lower, upper = (family.probability(x, side, False, *parameters) for side in (True, False))
        return ops.where(is_low, lower, -upper)

    density = family.density(x, False, *constant)
    before = probability(x, *constant)
    return stepped(lambda x: probability(x, *parameters) - before, lambda rest: rest / density, x)


_LOCATION_AND_SCALE = (lambda x, place, scale: (x - place) / scale, lambda z, place, scale: place + scale * z)

_OF_NOISE: dict[str, tuple[Callable, Callable]] = {
    "norm": _LOCATION_AND_SCALE,
    "logis": _LOCATION_AND_SCALE,
    "cauchy": _LOCATION_AND_SCALE,
    "lnorm": (lambda x, mean, sd: (log(x) - mean) / sd, lambda z, mean, sd: exp(mean + sd * z)),
    "exp": (lambda x, rate: x * rate, lambda z, rate: z / rate),
    "unif": (lambda x, least, most: (x - least) / (most - least), lambda z, least, most: least + (most - least) * z),
    "weibull": (lambda x, shape, scale: log(x / scale) * shape, lambda z, shape, scale: scale * exp(z / shape)),
}
"""For each family the standard noise of a draw, and the draw as a function of the noise and the parameters."""


def multinomial(x, prob, log: bool):
    """Return the multinomial density of counts; ``prob`` is proportional to the probabilities."""
    x, prob = _together(x, prob)
    total = ops.sum(x)
    value = ops.sum(log_poisson(x, total * prob / ops.sum(prob))) - log_poisson(total, total)
    return value if log else exp(value)


def special(name: str, *xs):
    """Return the value of R's special function ``name``."""
    return SPECIAL[name](*_together(*xs))


_KINDS = {function.__name__: function for function in (density, probability, quantile, special)}


def called_as(function: str, values: dict) -> str | None:
    """Return R's name for a function of this module, given the local variables of its frame."""
    kind = values["kind"] if function == "call_if_same_shape" else function
    name = values.get("name")
    return name if kind == "special" else f"{kind[0]}{name}" if kind in _KINDS else None


def _together(*xs) -> list:
    """Convert tensors to one library and dtype (R's arrays are NumPy's); numbers stay numbers."""
    return alike([f"argument {i + 1}" for i in range(len(xs))], xs)


def _past_missing(function: Callable, x, name: str):
    if not isinstance(x, (float, np.ndarray)) or not np.isnan(x).any():
        return function(x)
    missing = np.isnan(x)
    return ops.where(missing, math.nan, function(np.where(missing, 0.5 if name in CONTINUOUS else 0.0, x)))


def _plain(parameters: tuple) -> list:
    """Return the parameters with 0.0 and 1.0 as integers, which tell families to skip location and scale."""
    return [int(v) if v.__class__ is float and v in (0.0, 1.0) else v for v in parameters]


# In loops -------------------------------------------------------------------------------------------------------------


def number_in_logs(kind: str, name: str, settings: list, operands: float) -> int | None:
    """Return the number of a function in R's logs of scalar operations; None if it does not take single numbers.

    Args:
        kind: the name of a function of this module.
        name, settings: its first arguments.
        operands: the number of its remaining arguments.
    """
    return _number(kind, name, tuple(settings), int(operands))


@functools.cache
def _number(kind: str, name: str, settings: tuple, operands: int) -> int | None:
    function = functools.partial(globals()[kind], name, *settings)
    return function_number(function, operands) if is_of_single_numbers(function, operands) else None


# Continuous families --------------------------------------------------------------------------------------------------

_PROBABILITIES = {(True, False): "cdf", (False, False): "sf", (True, True): "logcdf", (False, True): "logsf"}
_QUANTILES = {(True, False): "ppf", (False, False): "isf", (True, True): "ilogcdf", (False, True): "ilogsf"}


def _continuous(family: Any, place: Callable = lambda *parameters: parameters) -> Family:
    """Return R's form of a continuous family of ``stats``.

    Args:
        place: maps R's parameters to SciPy's, in SciPy's order.
    """

    def by_methods(names: dict) -> Callable:
        return lambda x, lower, log, *given: getattr(family, names[lower, log])(x, *place(*given))

    return Family(
        lambda x, log, *given: (family.logpdf if log else family.pdf)(x, *place(*given)),
        by_methods(_PROBABILITIES),
        by_methods(_QUANTILES),
    )


def _few(df):
    """Return degrees of freedom with infinity replaced by 1e30, which gives the same values."""
    return minimum(df, 1e30)


def _log_normal() -> Family:
    """Return the log-normal family, computed from log(x), which keeps all digits for any ``meanlog``."""

    normal = family("norm")

    def log_density(x, *given):
        u = log(x)
        return normal.density(u, True, *given) - u

    def density(x, as_log, *parameters):
        x, *given = _together(x, *parameters)
        value = _inside((x > 0) & (x < math.inf), x, 1.0, lambda x: log_density(x, *given), -math.inf)
        return value if as_log else exp(value)

    def probability(q, lower, as_log, *parameters):
        q, *given = _together(q, *parameters)
        below = _ends(lower, as_log)[0]
        return _inside(q > 0, q, 1.0, lambda q: normal.probability(log(q), lower, as_log, *given), below)

    return Family(density, probability, lambda *given: exp(normal.quantile(*given)))


def _inside(test, x, instead: float, function: Callable, beyond: float):
    """Return ``function(x)`` where ``test``, else ``beyond``; there ``function`` gets ``instead`` in place of ``x``."""
    if all_so(test) is True:
        return function(x)
    return where(test, function(where(test, x, instead)), beyond)


def _ends(lower: bool, as_log: bool) -> tuple[float, float]:
    """Return the probabilities below and above the support."""
    ends = (-math.inf, 0.0) if as_log else (0.0, 1.0)
    return ends if lower else ends[::-1]


CONTINUOUS: dict[str, Callable[[], Family]] = {
    "norm": lambda: _continuous(stats.norm),
    "lnorm": _log_normal,
    "exp": lambda: _continuous(stats.expon, lambda rate: (0, 1 / rate)),
    "gamma": lambda: _continuous(stats.gamma, lambda shape, scale: (shape, 0, scale)),
    "beta": lambda: _continuous(stats.beta),
    "t": lambda: _continuous(stats.t),
    "unif": lambda: _continuous(stats.uniform, lambda least, most: (least, most - least)),
    "logis": lambda: _continuous(stats.logistic),
    "weibull": lambda: _continuous(stats.weibull_min, lambda shape, scale: (shape, 0, scale)),
    "cauchy": lambda: _continuous(stats.cauchy),
    "chisq": lambda: _continuous(stats.chi2),
    "f": lambda: _continuous(stats.f, lambda df1, df2: (_few(df1), _few(df2))),
    "nbeta": lambda: _continuous(stats.ncbeta),
    "nt": lambda: _continuous(stats.nct, lambda df, ncp: (_few(df), ncp)),
    "nchisq": lambda: _continuous(stats.ncx2),
    "nf": lambda: _continuous(stats.ncf, lambda df1, df2, ncp: (_few(df1), _few(df2), ncp)),
}


# Counts. Between integers their densities are interpolated, so that they have derivatives by the count ---------------


def _discrete(family: Any, place: Callable = lambda *parameters: parameters, start: int = 0) -> Family:
    """Return R's form of a discrete family of ``stats``.

    Args:
        place: maps R's parameters to SciPy's, in SciPy's order.
        start: SciPy's count where R counts 0.
    """

    def support(*given):
        return family._support(*place(*given))

    def density(x, as_log, *parameters):
        x, *given = _together(x, *parameters)
        x = x + start if start else x
        first, last = support(*given)
        known = (x >= first) & (x <= last) & (x < math.inf) & (x == ops.round(x)) | (x != x)
        if as_log:
            return _inside(known, x, first, lambda x: family._logpmf(x, *place(*given)), -math.inf)
        return _inside(known, x, first, lambda x: family._density_from_log(family._logpmf, x, place(*given)), 0.0)

    def probability(q, lower, as_log, *parameters):
        q, *given = _together(q, *parameters)
        k = ops.floor(q + 1e-7) + start
        first, last = support(*given)
        low, high = k < first, k >= last
        below, above = _ends(lower, as_log)
        value = family._tail(where(low | high, first, k), lower, as_log, *place(*given))
        return where(low, below, where(high, above, value))

    def quantile(p, lower, as_log, *parameters):
        """Return the quantile of a slightly smaller probability, as R does, so that q(p(x)) is x despite rounding."""
        p, *given = _together(p, *parameters)
        less = 1 - _SLACK if lower is not as_log else 1 + _SLACK
        p = p * less if as_log else where(p < (1 if lower else 1 - 32 * _SLACK), p * less, p)
        found = getattr(family, _QUANTILES[lower, as_log])(p, *place(*given))
        return maximum(found, support(*given)[0]) - start

    return Family(density, probability, quantile)


_SLACK = 64 * 2.0**-52


class _NegativeBinomialByMean(Discrete):
    """Negative binomial distribution parametrised by its mean ``mu``."""

    def _valid(self, size, mu):
        return both(size > 0, mu >= 0, mu < math.inf)

    def _logpmf(self, x, size, mean):
        def large(of):
            k, m, mu = of(size, 250.0), of(x, 250.0), of(mean, 250.0)
            p, q = k / (k + mu), mu / (k + mu)
            return log(k / (k + m)) + log_binomial_large(k, m, p, q, k * (m - mu) / (k + mu))

        def plain(of):
            k, m, mu = of(size, 1.0), of(x, 1.0), of(mean, 1.0)
            return log_rising(k, m, mu) + times_log(m, mu) - scaled_log1p(k, mu) - lgamma(m + 1)

        is_large = minimum(binomial_size(size, x), 1e15 - size) >= 20
        return refined(is_large & (mean == mean), large, plain)

    inside = (1.0, 1.0, 1.0)

    def _bases(self, x, size, mean):
        return (mean,)

    def _power_density(self, x, size, mean):
        return power(mean, x) * exp(log_rising(size, x, mean) - scaled_log1p(size, mean) - lgamma(x + 1))

    def _tail(self, k, lower, log, size, mean):
        return functions.probabilities.F[not lower, log](2 * (k + 1), 2 * size, mean / (k + 1))

    def _stats(self, size, mu):
        return mu, mu + mu * (mu / size), math.nan, math.nan


def _lot(m, n, k):
    """Return SciPy's parameters of the hypergeometric distribution from R's."""
    return m + n, m, k


def _hypergeometric() -> Family:
    """Return the hypergeometric family. Its probability is defined for integer parameters only: NaN for others."""

    def probability(q, lower, as_log, *parameters):
        q, *given = _together(q, *parameters)
        return getattr(stats.hypergeom, _PROBABILITIES[lower, as_log])(q + 1e-7, *_lot(*given))

    return _discrete(stats.hypergeom, _lot)._replace(probability=probability)


FAMILIES: dict[str, Callable[[], Family]] = CONTINUOUS | {
    "binom": lambda: _discrete(stats.binom),
    "pois": lambda: _discrete(stats.poisson),
    "geom": lambda: _discrete(stats.geom, start=1),
    "nbinom": lambda: _discrete(stats.nbinom),
    "nbinom_mu": lambda: _discrete(_NegativeBinomialByMean("nbinom_mu", "n, mu")),
    "hyper": _hypergeometric,
}


@functools.cache
def family(name: str) -> Family:
    """Return one of R's families; the modules of ``stats`` are imported for the families in use only."""
    return FAMILIES[name]()


# Special functions ----------------------------------------------------------------------------------------------------


def _log_beta(a, b):
    """Return R's ``lbeta()``: NaN for negative arguments."""
    return where(minimum(a, b) < 0, math.nan, log_beta(a, b))


def _log_choose_above(n, k):
    """Return the logarithm of ``choose(n, k)`` for ``n`` above -1."""
    return choose(
        minimum(k, n - k) > -1,
        lambda of: -log1p(of(n, 1.0)) - log_beta(of(n - k, 1.0) + 1, of(k, 1.0) + 1),
        lambda of: lgamma(of(n, 1.0) + 1) - lgamma(of(k, 1.0) + 1) - lgamma(of(n - k, 1.0) + 1),
    )


def _log_choose(n, k):
    """Return R's ``lchoose()``, the logarithm of the absolute value of ``choose()``."""
    return _log_choose_above(where(n < 0, k - 1 - n, n), k)


def _choose(n, k):
    return _gamma_sign(n + 1) * _gamma_sign(n - k + 1) * exp(_log_choose_above(n, k))


def _choose_few(k: float, n):
    """Return ``choose(n, k)`` for an integer ``k``, as a polynomial in ``n``."""
    value = n * 0.0 + (k >= 0)
    for j in range(1, int(k) + 1):
        value = value * ((n - k + j) / j)
    return value


def _gamma_sign(x):
    """Return the sign of the gamma function, which changes at 0, -1, -2, ..."""
    return where((x > 0) | (ops.floor(x) % 2 == 0), 1.0, -1.0)


def _pole(x):
    return (x <= 0) & (ops.floor(x) == x)


def _gamma(x):
    """Return R's ``gamma()``: NaN at the poles."""
    return where(_pole(x), math.nan, _gamma_sign(x)) * exp(lgamma(x))


def _polygamma(deriv: float, x):
    """Return R's ``psigamma()``: NaN at the poles for even orders."""
    value = ops.polygamma(x, int(deriv))
    return where(_pole(x), math.nan, value) if deriv % 2 == 0 else value


def _signif(x, digits):
    """Return R's ``signif()``: each element rounded to a number of significant digits."""
    size = ops.abs(ops.stop_gradient(x))
    plain = (size == 0) | ops.logical_not(ops.isfinite(size))
    place = ops.maximum(ops.round(digits), 1.0) - 1 - ops.floor(ops.log10(where(plain, 1.0, size)))
    up, down = 10.0 ** ops.maximum(place, 0.0), 10.0 ** ops.maximum(-place, 0.0)
    return where(plain, x, ops.round(x * up / down) / up * down)


def _bessel(name: str) -> Callable:
    """Return R's form of a Bessel function: argument first, then order; NaN for a negative argument."""
    return lambda x, nu: getattr(functions, name)(nu, ops.where(x < 0.0, math.nan, x))


SPECIAL: dict[str, Callable] = {
    "beta": lambda a, b: exp(_log_beta(a, b)),
    "lbeta": _log_beta,
    "choose": _choose,
    "few": _choose_few,
    "lchoose": _log_choose,
    "gamma": _gamma,
    "psigamma": _polygamma,
    "signif": _signif,
    **{
        name: _bessel(of_scipy)
        for name, of_scipy in {
            "besselI": "iv",
            "besselK": "kv",
            "besselJ": "jv",
            "besselY": "yv",
            "scaled besselI": "ive",
            "scaled besselK": "kve",
        }.items()
    },
}
