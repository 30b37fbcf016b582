"""Tails of the gamma and beta distributions: their logarithms, and derivatives by the shapes.

The tail without the mode is ``x**a * exp(-x) / gamma(a)``, for the gamma distribution, times an integral of exp(-e(s))
over s > 0, where e(0) = 0 and e increases: t = x * exp(-s) below the mode and t = x + s above it. The integrand has no
peak, so the double exponential rule (Takahasi and Mori, 1974) with 76 nodes, on the scale where e is about 1, computes
it to rounding. The rule is arithmetic in the arguments, so automatic differentiation gives derivatives of all orders.
"""

from __future__ import annotations

import math

import numpy as np

from ... import ops
from ...annotations import Operand, Tensor
from ...flow import stop_gradient
from ...ops._compose import NUMBERS
from .._define import ufunc
from .._formulas import (
    all_so,
    binomial_size,
    choose,
    deviance_part,
    digamma,
    exp,
    expm1,
    lgamma,
    log,
    log1p,
    log1p_rest_near,
    log_beta,
    log_binomial_large,
    log_rising,
    minimum,
    negated,
    refined,
    scaled_log1p,
    stirling,
    times_log,
    where,
)
from .._quadrature_rules import half_line_double_exponential
from .._tensors import constant_like

_, _NODES, _WEIGHTS = half_line_double_exponential(np.arange(-36, 40) / 10, 0.1)
_STEPS = np.arange(10.0)


def _column(x):
    return x if type(x) in NUMBERS else ops.expand_dims(x, -1)


class _Integral:
    """The integral of exp(-e(s)) over s > 0, and means with this weight; the parameters of e are columns.

    ``exponent`` may also return terms of e; derivatives are means of these terms.
    """

    def __init__(self, exponent, scale, *parameters):
        self.exponent, self.scale = exponent, scale
        self.nodes = _column(scale) * constant_like(_NODES, scale)
        self.parameters = parameters
        found = exponent(self.nodes, *self.parameters)
        e, *self.terms = found if isinstance(found, tuple) else (found,)
        self.values = exp(-e) * constant_like(_WEIGHTS, scale)
        self.total = ops.sum(self.values, -1)

    def log(self):
        return log(self.total) + log(self.scale)

    def rescaled(self, scale):
        """Return the integral with nodes on another scale."""
        return _Integral(self.exponent, 0 * self.scale + scale, *self.parameters)

    def sum(self, function):
        return ops.sum(self.values * function(self.nodes, *self.parameters), -1)

    def mean(self, function):
        return self.mean_of(function(self.nodes, *self.parameters))

    def mean_of(self, values):
        return ops.sum(self.values * values, -1) / self.total


def _scale_from(start, e, slope):
    """Return the point where ``e`` is 1, by Newton's method from the right."""
    for _ in range(3):
        start = start - (e(start) - 1) / slope(start)
    return start


# Polygamma functions --------------------------------------------------------------------------------------------------


def psi_series(a):
    """``log(a) - 1 / (2 * a) - digamma(a)``, of ``a`` of 10 and more."""
    w = 1 / (a * a)
    return w * (1 / 12 - w * (1 / 120 - w * (1 / 252 - w * (1 / 240 - w / 132))))


def psi_rest(a):
    """``digamma(a) - log(a)``."""

    def large(of):
        high = of(a, 20.0)
        return -1 / (2 * high) - psi_series(high)

    def small(of):
        low = of(a, 1.0)
        return digamma(low) - log(low)

    return choose(a >= 20, large, small)


def psi_rise(a, d, start=0):
    """``digamma(a + d) - digamma(a)``, ``a`` and ``d`` positive: a sum of positive terms, then Stirling's series.

    Args:
        start: 1 leaves out the first term of the sum, ``1 / a - 1 / (a + d)``.
    """
    steps = constant_like(_STEPS[start:], a) + _column(a)
    high = a + 10
    rise = ops.sum(_column(d) / (steps * (steps + _column(d))), -1)
    return rise + log1p(d / high) + d / (2 * high * (high + d)) + psi_series(high) - psi_series(high + d)


# Gamma ----------------------------------------------------------------------------------------------------------------


@ufunc("", a=lambda g, a, x: g * (log(x / a) - psi_rest(a)), x=lambda g, a, x: g * ((a - 1 - x) / x))
def log_gamma_density(a: Operand, x: Operand) -> Tensor:
    """``(a - 1) * log(x) - x - lgamma(a)``, ``a`` and ``x`` positive."""

    def large(of):
        shape, place = of(a, 20.0), of(x, 20.0)
        return log(shape / (2 * math.pi)) / 2 - stirling(shape) - deviance_part(shape, place) - log(place)

    def small(of):
        shape, place = of(a, 1.0), of(x, 1.0)
        return times_log(shape - 1, place) - place - lgamma(shape)

    return refined(a + 0 * x >= 20, large, small)


@ufunc(
    "",
    k=lambda g, k, mean: g * (log(_known_mean(k, mean) / (k + 1)) - psi_rest(k + 1)),
    mean=lambda g, k, mean: g * (k / _known_mean(k, mean) - 1),
)
def log_poisson(k: Operand, mean: Operand) -> Tensor:
    """``log(mean**k * exp(-mean) / gamma(k + 1))``."""

    def large(of):
        count = of(k, 100.0)
        return -log(2 * math.pi * count) / 2 - stirling(count) - deviance_part(count, of(mean, 100.0))

    def small(of):
        count, about = of(k, 1.0), of(mean, 1.0)
        return times_log(count, about) - about - lgamma(count + 1)

    return refined(k + 0 * mean >= 100, large, small)


def _known_mean(k, mean):
    return where((mean == 0) & (k == 0), 1.0, mean)


def is_inside_gamma(a, x):
    """True where the gamma distribution of shape ``a`` has a density that is neither 0 nor infinite at ``x``."""
    return (a > 0) & (a < math.inf) & (x > 0) & (x < math.inf)


def gamma_is_below(a, x):
    """True where ``x`` is at most the mean, so that the lower tail is the one without the mode."""
    return x <= a


def _gamma_integral(a, x):
    """Return the integral for the tail without the mode."""
    below = gamma_is_below(a, x)
    x0, a0 = stop_gradient(x), stop_gradient(a)

    def lower(of):
        shape, place = of(a0, 1.0), of(x0, 0.5)
        return _scale_from(
            ops.minimum(2 / ops.sqrt(place) + 2 / shape, 1 / (shape - ops.minimum(place, shape * (1 - 1e-10)))),
            lambda s: shape * s + place * expm1(-s),
            lambda s: shape - place * exp(-s),
        )

    def upper(of):
        place, shape = of(x0, 1.0), ops.maximum(of(a0, 1.0), 1.0)
        return _scale_from(
            4 + 2 * place / ops.sqrt(shape),
            lambda s: s - (shape - 1) * log1p(s / place),
            lambda s: 1 - (shape - 1) / (place + s),
        )

    def exponent(s, shape, place, below):
        """And less its derivative by the shape."""
        rise = choose(below, lambda of: -s, lambda of: log1p(s / of(place, 1.0)))
        e = choose(
            below,
            lambda of: of(shape, 1.0) * s + of(place, 0.0) * expm1(-s),
            lambda of: s - (of(shape, 1.0) - 1) * of(rise, 1.0),
        )
        return e, rise

    scale = choose(below, lower, upper) + 0 * (a0 + x0)
    return _Integral(exponent, scale, _column(a), _column(x), _column(below))


def log_gamma_tail(a, x):
    """Return the log of the tail without the mode, for finite positive ``a`` and ``x``."""
    return log_gamma_density(a, x) + where(gamma_is_below(a, x), log(x), 0.0) + _gamma_integral(a, x).log()


def gamma_rate(a, x):
    """The derivative of :func:`log_gamma_tail` by ``a``."""
    below = gamma_is_below(a, x)

    def series(of):
        """Return the rate by a series for small arguments, where the mean of s, about 1 / a, would lose digits."""
        return _lower_rate_of_small(of(a, 0.05), of(x, 0.01))

    def integral(of):
        shape, place = of(a, 1.0), of(x, 1.0)
        integral = _gamma_integral(shape, place)
        return log(place / shape) - psi_rest(shape) + integral.mean_of(integral.terms[0])

    return choose(below & (a < 0.1), series, integral)


def _lower_rate_of_small(a, x):
    """The derivative of the logarithm of the lower tail by ``a``, of ``x`` up to 1, by the series."""
    total, slope, term = 1.0, 0.0, 1.0
    for n in range(1, 20):
        term = term * -x / n
        total = total + a * term / (a + n)
        slope = slope + n * term / ops.square(a + n)
    return log(x) - digamma(a + 1) + slope / total


def gamma_slope_of_small(a, x, lower):
    """The derivative of the lower tail, which is ``lower``, by a small ``a``.

    Beyond 1 that of the upper tail Q: ``Q / a * (1 + a * r)``, r the rate of ``Q / a``. That of Q is ``1 / a + r``, of
    whose square a second derivative would be the small difference to ``1 / a**2``.
    """
    return choose(
        x < 1,
        lambda of: of(lower, 1.0) * _lower_rate_of_small(of(a, 0.05), of(x, 0.5)),
        lambda of: -_upper_slope_of_small(of(a, 0.05), of(x, 1.0)),
    )


def _upper_slope_of_small(a, x):
    integral = _gamma_integral(a, x)
    tail_over_a = exp((a - 1) * log(x) - x - lgamma(a + 1)) * integral.total * integral.scale
    r = log(x) - digamma(a + 1) + integral.mean(lambda s, shape, place, below: log1p(s / place))
    return tail_over_a * (1 + a * r)


# Beta -----------------------------------------------------------------------------------------------------------------


@ufunc(
    "",
    a=lambda g, a, b, x, rest: g * (_log_of(x, rest) + psi_rise(a, b)),
    b=lambda g, a, b, x, rest: g * (_log_of(rest, x) + psi_rise(b, a)),
    x=lambda g, a, x: g * ((a - 1) / x),
    rest=lambda g, b, rest: g * ((b - 1) / rest),
)
def log_beta_density(a: Operand, b: Operand, x: Operand, rest: Operand) -> Tensor:
    """``(a - 1) * log(x) + (b - 1) * log(rest) - log(beta(a, b))``, rest = 1 - x, within (0, 1)."""

    def of_large(of):
        m, n, p, q = of(a, 20.0), of(b, 20.0), of(x, 0.5), of(rest, 0.5)
        size = m + n
        d = n * p - m * q  # Loader's m * q - n * p, accurate for small q and small p
        return (
            log(m / size * n / (2 * math.pi)) / 2
            + stirling(size)
            - stirling(m)
            - stirling(n)
            - deviance_part(m, size * p, d)
            - deviance_part(n, size * q, -d)
            - log(p)
            - log(q)
        )

    def of_small(of):
        m, n, p, q = of(a, 1.0), of(b, 1.0), of(x, 0.5), of(rest, 0.5)
        return (m - 1) * _log_of(p, q) + (n - 1) * _log_of(q, p) - log_beta(m, n)

    return refined(minimum(a, b) + 0 * (x + rest) >= 20, of_large, of_small)


def _log_of(x, y):
    """Return ``log(x)``, from ``y = 1 - x`` where that is small."""
    return choose(x > 0.5, lambda of: log1p(-of(y, 0.25)), lambda of: log(of(x, 0.25)))


def is_inside_beta(a, b, x):
    """True where the beta distribution of ``a`` and ``b`` has a density that is neither 0 nor infinite at ``x``."""
    return (a > 0) & (a < math.inf) & (b > 0) & (b < math.inf) & (x > 0) & (x < 1)


def beta_is_below(a, b, x, y):
    """True where ``x`` is at most the mean."""
    return x * b <= a * y


def _beta_integral(a, b, x, y):
    """The integral of the lower tail, with ``x`` at most the mean."""
    a0, b0, x0, y0 = map(stop_gradient, (a, b, x, y))

    def curved(of):
        p, q, shape = of(x0, 0.25), of(y0, 0.75), of(a0, 1.0)
        rest = of(b0, 2.0) - 1
        w = p / q
        start = ops.minimum(2 * q / ops.sqrt(rest * p) + 4 / shape, (1 + rest * log1p(w)) / shape)  # either is beyond
        return _scale_from(
            start,
            lambda s: shape * s - rest * log1p(-w * expm1(-s)),
            lambda s: shape - rest * p * exp(-s) / (q - p * expm1(-s)),
        )

    scale = choose((b0 > 1) & (x0 + y0 + a0 > 0), curved, lambda of: 1 / of(a0, 1.0)) + 0 * (a0 + b0 + x0)

    def exponent(s, first, power, odds):
        gone = expm1(-s)
        rise = log1p(-odds * gone)
        return first * s - power * rise, gone, rise

    return _Integral(exponent, scale, _column(a), _column(b - 1), _column(x / y))


def _turned(a, b, x, y):
    """Swap shapes and arguments so that the tail without the mode is the lower one."""
    below = beta_is_below(a, b, x, y)
    return where(below, a, b), where(below, b, a), where(below, x, y), where(below, y, x)


def log_beta_tail(a, b, x, y):
    """Return the log of the tail without the mode, for finite positive shapes and ``x`` in (0, 1); ``y = 1 - x``."""
    m, n, p, q = _turned(a, b, x, y)
    return log_beta_density(m, n, p, q) + _log_of(p, q) + _beta_integral(m, n, p, q).log()


def beta_rates(a, b, x, y):
    """The derivatives of :func:`log_beta_tail` by ``a`` and by ``b``."""
    below = beta_is_below(a, b, x, y)
    m, n, p, q = _turned(a, b, x, y)

    def usual(of):
        shapes = [of(m, 1.0), of(n, 1.0), of(p, 0.25), of(q, 0.75)]
        integral = _beta_integral(*shapes)
        first, second, place, rest = shapes
        _, rise = integral.terms
        own = _log_of(place, rest) + psi_rise(first, second) - integral.mean_of(integral.nodes)
        return own, _log_of(rest, place) + psi_rise(second, first) + integral.mean_of(rise)

    def small(of):
        shapes = of(m, 0.05), of(n, 1.0), of(p, 0.01), of(q, 0.99)
        return _rates_of_small(*shapes, _beta_integral(*shapes))

    own, other = _both(m + 0 * p < 0.1, small, usual)
    return where(below, own, other), where(below, other, own)


def _both(test, first, second):
    """Return :func:`choose` for functions with two results."""
    known = all_so(test)
    if known is not None:
        return (first if known else second)(lambda x, instead: x)
    one = first(lambda x, instead: where(test, x, instead))
    return [where(test, x, y) for x, y in zip(one, second(lambda x, instead: where(test, instead, x)))]


def _rates_of_small(first, second, place, rest, integral):
    """Return the rates by integration by parts, on nodes of scale 1: means of s, about 1 / first, would lose digits."""
    near = integral.rescaled(1.0)
    size = integral.total * integral.scale

    def part(s, first, power, odds):
        return s * power * odds * exp(-s) / (1 - odds * expm1(-s))

    own = psi_rise(first, second, 1) - 1 / (first + second) - near.sum(part) / (first * size)
    column = _column(place + 0 * first + 0 * second)
    rise = near.sum(lambda s, *_: log1p(-column * exp(-s))) / size
    return _log_of(place, rest) + own, psi_rise(second, first) + rise


# F --------------------------------------------------------------------------------------------------------------------


def f_parts(m, n, x):
    """``m * x / (n + m * x)`` and ``n / (n + m * x)``."""
    ratio = x * (m / n)
    rest = 1 / (1 + ratio)
    return where(ratio > 1, 1 - rest, ratio * rest), rest


@ufunc("")
def log_f_density(m: Operand, n: Operand, x: Operand) -> Tensor:
    """Return the log density of F with ``2 * m`` and ``2 * n`` degrees of freedom, by R's formula.

    At ``1 / x`` the degrees of freedom change places: the first is the smaller one.
    """

    def ordered(m, n, x):
        def large(of):
            k, last, place = of(m, 251.0) - 1, of(n, 250.0), of(x, 1.0)
            whole = last + place * (k + 1)
            p, q = place * (k + 1) / whole, last / whole
            size = log_binomial_large(k, last, p, q, last * (place * (k + 1) - k) / whole)
            return log(q) + log(k + 1) + size

        def small(of):
            k, last, place = of(m, 1.0), of(n, 1.0), of(x, 1.0)
            start = log_rising(last, k) - lgamma(k) + times_log(k, k)
            return start + times_log(k - 1, place) - scaled_log1p(last, k * place) - k * log1p(k * place / last)

        size = minimum(binomial_size(m - 1, n), 1e15 - n)
        return refined((size >= 20) & (x > 0), large, small)

    def turned(of):
        place = of(x, 1.0)
        return ordered(of(n, 1.0), of(m, 1.0), 1 / place) - 2 * log(place)

    return refined((m > n) & (x > 0), turned, lambda of: ordered(of(m, 1.0), of(n, 1.0), of(x, 1.0)))


def _gap(m, n, x):
    """How the relative density falls with ``n`` at the mean of ``x``: ``m * (1 - x) / (n + m * x)``, and 1 more."""
    part, rest = f_parts(m, n, x)
    return (1 - x) * (m / n) * rest, (1 + m / n) * rest


def log_f_density_slope(m, n, x):
    """The derivative of :func:`log_f_density` by ``n``, a sum of terms that all fall with its square."""

    def large(of):
        a, d = of(n, 20.0), of(m, 1.0)
        return d / (2 * a * (a + d)) + psi_series(a) - psi_series(a + d)

    def small(of):
        a, d = of(n, 1.0), of(m, 1.0)
        return psi_rise(a, d) - log1p(d / a)

    gap, whole = _gap(m, n, x)
    return choose(n + 0 * m >= 20, large, small) - deviance_part(1.0, whole, gap)


@ufunc(
    "",
    df=lambda g, df, t: g * log_f_density_slope(0.5, df / 2, t * t) / 2,
    t=lambda g, df, t: g * (-(df + 1) * t / (df + t * t)),
)
def log_t_density(df: Operand, t: Operand) -> Tensor:
    """Return the log density of Student's t distribution."""
    square = t * t
    start = log_rising(df / 2, 0.5) - math.log(2 * math.pi) / 2
    return start - scaled_log1p(df / 2, square / 2) - log1p(square / df) / 2


def f_slope(m, n, x, which: int):
    """The derivative of F's distribution function by ``m``, or ``n``, over that by ``log(x)``, of positive arguments.

    At fixed ``x``: where ``n`` is large it falls with ``1 / n**2``, where those of :func:`beta_rates` and of the
    place on the beta distribution's scale fall with ``1 / n``.
    """
    part, rest = f_parts(m, n, x)
    below = x <= 1
    m_, n_, p_, q_ = where(below, m, n), where(below, n, m), where(below, part, rest), where(below, rest, part)
    shapes = (m, n, x) if which else (n, m, 1 / x)
    start, (gap, _) = log_f_density_slope(*shapes), _gap(*shapes)
    own = below if which == 0 else negated(below)  # the shape is the first one of the tail without the mode

    def usual(of):
        first, second, place, other = of(m_, 1.0), of(n_, 1.0), of(p_, 0.25), of(q_, 0.75)
        integral = _beta_integral(first, second, place, other)
        s, odds, (gone, rise) = integral.nodes, place / other, integral.terms

        def of_first(_):
            """The mean of ``s + expm1(-s)``, by its series where that is small."""
            sums = choose(s < 0.1, lambda of: log1p_rest_near(of(gone, -0.05)), lambda of: of(s + gone, 1.0))
            return -integral.mean_of(sums)

        def of_second(_):
            return -integral.mean_of(_log1p_rest(-_column(odds) * gone, rise))

        rate = choose(own, of_first, of_second) - of(gap, 0.0) * where(own, 1.0, -odds) * integral.mean_of(gone)
        return of(start, 0.0) + rate, integral.total * integral.scale

    def small(of):
        """Over nodes on the scale 1, as in :func:`beta_rates`."""
        first, second, place, other = of(m_, 0.05), of(n_, 1.0), of(p_, 0.01), of(q_, 0.99)
        integral = _beta_integral(first, second, place, other)
        near, size, odds = integral.rescaled(1.0), integral.total * integral.scale, place / other
        by_first, _ = _rates_of_small(first, second, place, other, integral)
        left = near.sum(lambda s, *_: exp(-s)) / size
        column = _column(place + 0 * first + 0 * second)
        rise = near.sum(lambda s, *_: _log1p_rest(-column * exp(-s))) / size
        rise = _log1p_rest(odds) - odds * place * left + rise
        by_second = of(start, 0.0) - rise - of(gap, 0.0) * odds * (1 - left)
        return where(own, by_first + other / (first * size), by_second), size

    rate, size = _both(m_ + 0 * p_ < 0.1, small, usual)
    return where(below, rate, -rate) * size / q_


def _log1p_rest(d, logarithm=None):
    """``d - log1p(d)``, by the logarithm where it is known."""
    whole = d - (log1p(d) if logarithm is None else logarithm)
    return choose(ops.abs(d) < 0.1, lambda of: log1p_rest_near(of(d, 0.05)), lambda of: of(whole, 0.3))
