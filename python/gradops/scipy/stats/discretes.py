"""Families of whole numbers."""

from __future__ import annotations

import math

import numpy as np

from ... import ops
from ...annotations import Operand, Tensor
from .. import special
from .._define import ufunc
from .._formulas import (
    absolute,
    by_smaller,
    by_tails,
    choose,
    exp,
    expm1,
    lgamma,
    log,
    log1p,
    log_binomial,
    log_choose,
    log_complement,
    maximum,
    minimum,
    power,
    refined,
    sqrt,
    times_log,
    times_log1m,
    where,
)
from .._hosted import hosted, in_chunks, rule, with_derivatives
from ..special._tails import log_poisson, psi_rise
from ..special.incomplete import BETA, GAMMA
from ._arguments import both
from ._discrete import Discrete, floor, is_count, is_whole
from ._family import INFINITE
from ._sums import log_skellam
from ._tails import by_hazard
from .hazards import finite


def is_part(p):
    """True where a number is a probability."""
    return (p >= 0) & (p <= 1)


# Binomial and its like ------------------------------------------------------------------------------------------------


class _Binom(Discrete):
    """Binomial distribution: successes of probability ``p`` in ``n`` trials."""

    whole = counts = ("n",)

    def _support(self, n, p):
        return 0.0, n

    def _valid(self, n, p):
        return both(is_count(n), is_part(p))

    def _logpmf(self, k, n, p):
        return log_binomial(k, n - k, p)

    inside = (1.0, 2.0, 0.5)

    def _bases(self, k, n, p):
        return p, 1 - p

    def _by_powers(self, k, n, p):
        return power(p, k) * power(1 - p, n - k) * exp(log_choose(k, n - k))

    def _tail(self, k, lower, log, n, p):
        return BETA[not lower, log](k + 1, n - k, p)

    def _stats(self, n, p):
        q = 1 - p
        return n * p, n * p * q, (q - p) / sqrt(n * p * q), (1 - 6 * p * q) / (n * p * q)


class _Bernoulli(Discrete):
    """Bernoulli distribution: 1 with the probability ``p``, else 0."""

    support_ = (0.0, 1.0)

    def _valid(self, p):
        return is_part(p)

    def _inner(self, p):
        return 1.0  # whose tail has the power 0: it has a slope also where its base is 0

    inside = (1.0, 0.5)

    def _logpmf(self, k, p):
        return times_log(k, p) + times_log1m(1 - k, p)

    def _of_log(self, log_of, k, shapes):
        (p,) = shapes
        return k * p + (1 - k) * (1 - p)

    def _tail(self, k, lower, as_log, p):
        if as_log:
            return times_log1m(1 - k, p) if lower else times_log(1 - k, p)
        return (1 - p if lower else p) + 0 * k

    def _quantile(self, q, lower, log, *shapes):
        if log:
            return super()._quantile(q, lower, log, *shapes)
        (p,) = shapes
        none = (q <= 1 - p) & (q < 1) if lower else (q >= p) & (q > 0)
        return where(q == (0.0 if lower else 1.0), -1.0, where(none, 0.0, 1.0)) + 0 * (q + p)

    def _stats(self, p):
        return binom._stats(1, p)

    def _entropy(self, p):
        return -times_log(p, p) - times_log1m(1 - p, p)


class _Poisson(Discrete):
    """Poisson distribution of the mean ``mu``."""

    def _valid(self, mu):
        return both(mu >= 0, mu < math.inf)

    def _logpmf(self, k, mu):
        return log_poisson(k, mu)

    inside = (1.0, 1.0)

    def _bases(self, k, mu):
        return (mu,)

    def _by_powers(self, k, mu):
        return power(mu, k) * exp(-mu - lgamma(k + 1))

    def _tail(self, k, lower, log, mu):
        return GAMMA[not lower, log](k + 1, mu)

    def _stats(self, mu):
        return mu, mu, 1 / sqrt(mu), 1 / mu


class _Nbinom(Discrete):
    """Negative binomial distribution: failures before ``n`` successes of probability ``p``; ``n`` may be any positive
    number."""

    instead = (1.0, 0.5)

    def _valid(self, n, p):
        return both(n > 0, p > 0, p <= 1)

    def _logpmf(self, k, n, p):
        return log_binomial(n, k, p) - log1p(k / n)

    inside = (1.0, 1.0, 0.5)

    def _bases(self, k, n, p):
        return (1 - p,)

    def _by_powers(self, k, n, p):
        return p**n * power(1 - p, k) * exp(log_choose(n, k) - log1p(k / n))

    def _tail(self, k, lower, log, n, p):
        return BETA[lower, log](n, k + 1, p)

    def _stats(self, n, p):
        q = 1 - p
        return n * q / p, n * q / (p * p), (2 - p) / sqrt(n * q), 6 / n + p * p / (n * q)


class _Geom(Discrete):
    """Geometric distribution: trials up to the first success, of probability ``p``."""

    support_ = (1.0, math.inf)
    instead = (0.5,)

    def _valid(self, p):
        return both(p > 0, p <= 1)

    def _logpmf(self, k, p):
        return times_log1m(k - 1, p) + log(p)

    inside = (1.0, 0.5)

    def _bases(self, k, p):
        return (1 - p,)

    def _by_powers(self, k, p):
        return p * power(1 - p, k - 1)

    def _tail(self, k, lower, as_log, p):
        if as_log and not lower:
            return times_log1m(k, p)

        def at_one(of):
            upper = power(1 - of(p, 0.5), of(k, 1.0))
            value = 1 - upper if lower else upper
            return log(value) if as_log else value

        return refined(
            p + 0 * k == 1, at_one, lambda of: by_hazard(-times_log1m(of(k, 1.0), of(p, 0.5)), lower, as_log)
        )

    def _stats(self, p):
        q = 1 - p
        return 1 / p, q / (p * p), (2 - p) / sqrt(q), 6 + p * p / q

    def _entropy(self, p):
        return -log(p) - times_log1m(1 - p, p) / p


# Draws from a finite lot ----------------------------------------------------------------------------------------------


def _log_binomial(k, m, p, q):
    """:func:`log_binomial` by the smaller one of both probabilities."""
    low = p <= q
    return log_binomial(where(low, k, m), where(low, m, k), where(low, p, q), where(low, q, p))


def _rise(order, k, n, a, b):
    """A derivative, by ``a`` and ``b``, of the sum of beta-binomial probabilities from ``k`` on over the first of them.

    By the quotients of each and the one before, in blocks.
    """

    def of_part(_, k, n, a, b):
        curved = ((a >= 1) & (b >= 1)) | (a < 0)  # quotients fall
        x, term, total = k, np.ones_like(k), np.full_like(k, not any(order))
        rates = np.zeros((4, k.size))  # sums of 1 / (a + x) and its square, and of the like of b
        while True:
            at = x[:, None] + np.arange(float(BLOCK))
            inside = np.logical_and.accumulate((at < n[:, None]) & (at != -a[:, None]), -1)
            up = np.where(inside, a[:, None] + at, 1.0)
            down = np.where(inside, (b + n)[:, None] - at - 1, 1.0)
            ratios = np.where(inside, (n[:, None] - at) / (at + 1) * up / down, 0.0)
            terms = term[:, None] * np.cumprod(ratios, -1)
            if any(order):
                one, two, other, square = rates[:, :, None] + np.cumsum([1 / up, 1 / up**2, 1 / down, 1 / down**2], -1)
                terms_by = (1.0, one, one**2 - two)[order[0]] * (1.0, -other, other**2 + square)[order[1]]
                rates = np.stack([one[:, -1], two[:, -1], other[:, -1], square[:, -1]])
                total = total + np.sum(terms * terms_by, -1)
            else:
                total = total + np.sum(terms, -1)
            x, term, ratio = x + BLOCK, terms[:, -1], ratios[:, -1]
            if np.all((term == 0) | (curved & (ratio < 1) & (term * ratio < 1e-25 * np.abs(total) * (1 - ratio)))):
                return total

    return in_chunks(of_part, np.full(k.shape, float(BLOCK)), k, n, a, b)


BLOCK = 256
_rises = with_derivatives("_betabinom_rise", ("k", "n", "a", "b"), ("a", "b"), _rise, "A sum of probabilities.")


def _of_sums(logpmf, ends, k, mean, n, a, b, lower: bool, as_log: bool):
    """A tail of the beta-binomial distribution; or of the hypergeometric one, whose shapes are below 0."""

    def smaller(low):
        first, last = where(low, k, ends[0]), where(low, ends[1], k + 1)
        below = logpmf(first) + log(_rises(n - first, n, b, a))
        return where(low, below, logpmf(last) + log(_rises(last, n, a, b)))

    return by_smaller(k < floor(mean), smaller, lower, as_log)


class _Hypergeom(Discrete):
    """Hypergeometric distribution: those of ``n`` marked ones that are among ``N`` drawn of ``M``."""

    whole = ("M", "n", "N")
    instead = (2.0, 1.0, 1.0)

    def _support(self, M, n, N):
        return maximum(N - (M - n), 0), minimum(n, N)

    def _valid(self, M, n, N):
        return both(M > 0, n >= 0, N >= 0, n <= M, N <= M, is_whole(M), is_whole(n), is_whole(N))

    def _logpmf(self, k, M, n, N):
        p, q = N / M, (M - N) / M
        marked, rest = _log_binomial(k, n - k, p, q), _log_binomial(N - k, M - n - (N - k), p, q)
        return marked + rest - _log_binomial(N, M - N, p, q)

    def _tail(self, k, lower, as_log, M, n, N):
        ends, mean = self._support(M, n, N), n * (N / M)
        return _of_sums(lambda k: self._logpmf(k, M, n, N), ends, k, mean, N, -n, n - M, lower, as_log)

    def _stats(self, M, n, N):
        m, rest = M - n, M - N
        skew = (M - 2 * n) * (M - 2 * N) / (M - 2) * sqrt((M - 1) / (n * N * m * rest))
        size = M * M * (M - 1) * (M * (M + 1) - 6 * N * rest - 6 * n * m) + 6 * n * N * rest * m * (5 * M - 6)
        return (
            n * (N / M),
            n * (N / M) * (m / M) * (rest / (M - 1)),
            skew,
            size / (n * N * rest * m * (M - 2) * (M - 3)),
        )


@ufunc(
    "",
    k=lambda g: ops.zeros_like(g),
    n=lambda g: ops.zeros_like(g),
    a=lambda g, k, n, a, b: g * (psi_rise(a, k) - psi_rise(a + b, n)),
    b=lambda g, k, n, a, b: g * (psi_rise(b, n - k) - psi_rise(a + b, n)),
)
def _log_betabinom(k: Operand, n: Operand, a: Operand, b: Operand) -> Tensor:
    """The logarithm by a quotient of negative binomial probabilities, near the modes of all three."""
    m, both_ = n - k, a + b
    p, q = n / (both_ + n), both_ / (both_ + n)
    counts = _log_binomial(k, a, p, q) + _log_binomial(m, b, p, q) - _log_binomial(n, both_, p, q)
    return counts - log1p(k / a) - log1p(m / b) + log1p(n / both_)


class _Betabinom(Discrete):
    """Beta-binomial distribution: successes in ``n`` trials, whose probability has the beta distribution of ``a`` and
    ``b``."""

    whole = counts = ("n",)

    def _support(self, n, a, b):
        return 0.0, n

    def _valid(self, n, a, b):
        return both(is_count(n), a > 0, b > 0)

    def _logpmf(self, k, n, a, b):
        return _log_betabinom(k, n, a, b)

    def _tail(self, k, lower, as_log, n, a, b):
        mean = n * (a / (a + b))
        return _of_sums(lambda k: _log_betabinom(k, n, a, b), (0.0, n), k, mean, n, a, b, lower, as_log)

    def _stats(self, n, a, b):
        whole = a + b
        p, q = a / whole, b / whole
        var = n * (whole + n) * p * q / (whole + 1)
        skew = (whole + 2 * n) * (b - a) / ((whole + 2) * whole) / sqrt(var)
        size = whole * (whole - 1 + 6 * n) + 3 * a * b * (n - 2) + 6 * n * n
        size = size - 3 * p * b * n * (6 - n) - 18 * p * q * n * n
        size = size * whole * whole * (1 + whole)
        return n * p, var, skew, size / (n * a * b * (whole + 2) * (whole + 3) * (whole + n)) - 3


class _Betanbinom(Discrete):
    """Beta-negative-binomial distribution: failures before ``n`` successes, whose probability has the beta distribution
    of ``a`` and ``b``."""

    whole = ("n",)

    def _valid(self, n, a, b):
        return both(n > 0, is_whole(n), a > 0, b > 0)

    def _logpmf(self, k, n, a, b):
        return _log_betabinom(n, n + k, a, b) - log1p(k / n)

    def _tail(self, k, lower, log, n, a, b):
        """More than ``k`` failures: less than ``n`` successes in ``n + k`` trials."""
        return betabinom._tail(n - 1, not lower, log, n + k, a, b)

    def _stats(self, n, a, b):
        def skew(a):
            root = sqrt(n * b * (n + a - 1) * (b + a - 1) / (a - 2))
            return (2 * n + a - 1) * (2 * b + a - 1) / (a - 3) / root

        def kurtosis(a):
            part = (a + 5) * b * b + (a + 5) * (a - 1) * b + 2 * (a - 1) ** 2
            size = (a - 1) ** 2 * (a * a + a * (6 * b - 1) + 6 * (b - 1) * b) + 3 * n * (n + a - 1) * part
            return (a - 2) * size / ((a - 4) * (a - 3) * b * n * (a + b - 1) * (a + n - 1)) - 3

        def var(a):
            return n * b * (n + a - 1) * (a + b - 1) / ((a - 2) * (a - 1) ** 2)

        return (
            finite(a > 1, lambda a: n * b / (a - 1), a, math.inf),
            finite(a > 2, var, a, math.inf),
            finite(a > 3, skew, a, math.inf),
            finite(a > 4, kurtosis, a, math.inf),
        )


# Exponentials ---------------------------------------------------------------------------------------------------------


class _Planck(Discrete):
    """Planck's discrete exponential distribution of the rate ``lambda_``."""

    def _logpmf(self, k, lambda_):
        return log_complement(-lambda_) - lambda_ * k

    def _tail(self, k, lower, log, lambda_):
        return by_hazard(lambda_ * (k + 1), lower, log)

    def _stats(self, lambda_):
        cosh = (exp(lambda_ / 2) + exp(-lambda_ / 2)) / 2
        var = exp(-lambda_) / ops.square(expm1(-lambda_))
        return 1 / expm1(lambda_), var, 2 * cosh, 4 + 2 * (2 * cosh * cosh - 1)

    def _entropy(self, lambda_):
        return lambda_ / expm1(lambda_) - log_complement(-lambda_)


class _Boltzmann(Discrete):
    """Boltzmann's truncated exponential distribution of the rate ``lambda_``, below ``N``."""

    whole = ("N",)

    def _support(self, lambda_, N):
        return 0.0, N - 1

    def _valid(self, lambda_, N):
        return both(lambda_ > 0, N > 0, is_whole(N))

    def _logpmf(self, k, lambda_, N):
        return self._log_part(1, lambda_, N) - lambda_ * k

    @staticmethod
    def _log_part(count, lambda_, N):
        """The logarithm of ``expm1(-lambda_ * count) / expm1(-lambda_ * N)``; of a small rate not by that of each."""
        count = count + 0 * N
        return choose(
            lambda_ * N < 1,
            lambda of: (
                log(of(count, 1.0) / of(N, 1.0))
                + log(special.exprel(-of(lambda_, 0.5) * of(count, 1.0)))
                - log(special.exprel(-of(lambda_, 0.5) * of(N, 1.0)))
            ),
            lambda of: (
                log_complement(-of(lambda_, 1.0) * of(count, 1.0)) - log_complement(-of(lambda_, 1.0) * of(N, 1.0))
            ),
        )

    def _tail(self, k, lower, as_log, lambda_, N):
        count = k + 1
        if lower:
            value = self._log_part(count, lambda_, N)
        else:
            value = self._log_part(N - count, lambda_, N) - lambda_ * count
        return value if as_log else exp(value)

    def _stats(self, lambda_, N):
        z, end = exp(-lambda_), exp(-lambda_ * N)
        ratio = expm1(-lambda_ * N) / expm1(-lambda_)
        one, square = -expm1(-lambda_), N * N * end
        spread = z * ratio * ratio - square
        skew = z * (1 + z) * ratio**3 - N * square * (1 + end)
        kurtosis = z * (1 + 4 * z + z * z) * ratio**4 - square * N * N * (1 + 4 * end + end * end)
        rest = -expm1(-lambda_ * N)
        return (
            z / one - N * end / rest,
            z / (one * one) - square / (rest * rest),
            skew / (spread * sqrt(spread)),
            kurtosis / (spread * spread),
        )

    def _entropy(self, lambda_, N):
        return log_complement(-lambda_ * N) - log_complement(-lambda_) + lambda_ * self._stats(lambda_, N)[0]


class _Dlaplace(Discrete):
    """Discrete Laplace distribution of the rate ``a``."""

    support_ = INFINITE

    def _logpmf(self, k, a):
        return log_complement(-a) - log1p(exp(-a)) - a * absolute(k)

    def _tail(self, k, lower, as_log, a):
        low = k < 0
        value = -a * where(low, -k, k + 1) - log1p(exp(-a))
        return by_tails(low, value, lower, as_log)

    def _stats(self, a):
        e = expm1(a)
        var = 2 * exp(a) / (e * e)
        return 0 * a, var, 0 * a, (exp(a) + 10 + exp(-a)) / 2 - 3

    def _entropy(self, a):
        return 2 * a * exp(-a) / (-expm1(-2 * a)) - log_complement(-a) + log1p(exp(-a))


class _Randint(Discrete):
    """Uniform distribution of the whole numbers from ``low`` up to but without ``high``."""

    whole = ("low", "high")
    instead = (0.0, 1.0)

    def _support(self, low, high):
        return low, high - 1

    def _valid(self, low, high):
        return both(high > low, is_whole(low), is_whole(high))

    def _logpmf(self, k, low, high):
        return 0 * k - log(high - low)

    def _tail(self, k, lower, as_log, low, high):
        value = (k - low + 1 if lower else high - 1 - k) / (high - low)
        return log(value) if as_log else value

    def _stats(self, low, high):
        d = high - low
        square = d * d
        return (low + high - 1) / 2, (square - 1) / 12, 0 * d, -1.2 * (square + 1) / (square - 1)

    def _entropy(self, low, high):
        return log(high - low)


# Skellam --------------------------------------------------------------------------------------------------------------


def _from_k_on(k, mu1, mu2):
    """The logarithm, on the host, of Skellam's probability of ``k`` and more, ``k`` at least about the mean."""

    def of_part(length, k, mu1, mu2):
        x = k[:, None] + np.arange(length)
        each = log_skellam(x, mu1[:, None] + 0 * x, mu2[:, None] + 0 * x)
        return each[:, 0] + np.log(np.sum(np.exp(each - each[:, :1]), -1))

    return in_chunks(of_part, np.ceil(40 + 10 * np.sqrt(mu1 + mu2)), k, mu1, mu2)


_log_upper = hosted(
    "_skellam_log_upper",
    ("k", "mu1", "mu2"),
    _from_k_on,
    "The logarithm of a probability from ``k`` on.",
    mu1=rule(("k", "mu1", "mu2", "y"), lambda g, k, mu1, mu2, y: g * exp(log_skellam(k - 1, mu1, mu2) - y)),
    mu2=rule(("k", "mu1", "mu2", "y"), lambda g, k, mu1, mu2, y: -g * exp(log_skellam(k, mu1, mu2) - y)),
)


class _Skellam(Discrete):
    """Skellam's distribution, of the difference of Poisson variables of means ``mu1`` and ``mu2``."""

    support_ = INFINITE

    def _valid(self, mu1, mu2):
        return both(mu1 > 0, mu2 > 0, mu1 < math.inf, mu2 < math.inf)

    def _logpmf(self, k, mu1, mu2):
        return log_skellam(k, mu1, mu2)

    def _tail(self, k, lower, as_log, mu1, mu2):
        mean = floor(mu1 - mu2)
        low = k < mean
        below = _log_upper(-where(low, k, mean), mu2, mu1)
        above = _log_upper(where(low, mean, k) + 1, mu1, mu2)
        return by_tails(low, where(low, below, above), lower, as_log)

    def _stats(self, mu1, mu2):
        var = mu1 + mu2
        return mu1 - mu2, var, (mu1 - mu2) / (var * sqrt(var)), 1 / var


bernoulli = _Bernoulli("bernoulli", "p")
betabinom = _Betabinom("betabinom", "n, a, b")
betanbinom = _Betanbinom("betanbinom", "n, a, b")
binom = _Binom("binom", "n, p")
boltzmann = _Boltzmann("boltzmann", "lambda_, N")
dlaplace = _Dlaplace("dlaplace", "a")
geom = _Geom("geom", "p")
hypergeom = _Hypergeom("hypergeom", "M, n, N")
nbinom = _Nbinom("nbinom", "n, p")
planck = _Planck("planck", "lambda_")
poisson = _Poisson("poisson", "mu")
randint = _Randint("randint", "low, high")
skellam = _Skellam("skellam", "mu1, mu2")

__all__ = """
    bernoulli betabinom betanbinom binom boltzmann dlaplace geom hypergeom nbinom planck poisson randint skellam
""".split()
