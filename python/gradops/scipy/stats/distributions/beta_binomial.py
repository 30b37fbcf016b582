"""The beta-binomial, beta-negative-binomial and hypergeometric distributions.

A hypergeometric distribution is beta-binomial with negative shapes, so they share the code for their sums.
"""

from __future__ import annotations

import math

import numpy as np

from .... import ops
from ....annotations import Operand, Tensor
from ..._define import ufunc
from ..._formulas import log, log1p, log_binomial, maximum, minimum, sqrt, tail_from_smaller, where
from ..._hosted import apply_in_chunks, hosted_op
from ...special._tails import psi_rise
from ._arguments import both
from ._discrete import Discrete, floor, is_count, is_whole
from ._shared import finite


def _log_binomial(k, m, p, q):
    """Return :func:`log_binomial` in terms of the smaller of both probabilities."""
    low = p <= q
    return log_binomial(where(low, k, m), where(low, m, k), where(low, p, q), where(low, q, p))


def _rise(order, k, n, a, b):
    """Return a derivative by ``a`` and ``b`` of the upper beta-binomial sum from ``k`` on, divided by its first term.

    Terms come from the ratios of successive probabilities, in blocks.
    """

    def chunk_sums(_, k, n, a, b):
        curved = ((a >= 1) & (b >= 1)) | (a < 0)  # ratios decrease
        x, term, total = k, np.ones_like(k), np.full_like(k, not any(order))
        rates = np.zeros((4, k.size))  # sums of 1 / (a + x) and of its square, likewise for b
        while True:
            at = x[:, None] + np.arange(float(TERMS_PER_BLOCK))
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
            x, term, ratio = x + TERMS_PER_BLOCK, terms[:, -1], ratios[:, -1]
            if np.all((term == 0) | (curved & (ratio < 1) & (term * ratio < 1e-25 * np.abs(total) * (1 - ratio)))):
                return total

    return apply_in_chunks(chunk_sums, np.full(k.shape, float(TERMS_PER_BLOCK)), k, n, a, b)


TERMS_PER_BLOCK = 256
"""The number of terms of a sum that are computed before its convergence is tested."""

_rises = hosted_op("_betabinom_rise", ("k", "n", "a", "b"), ("a", "b"), _rise, "A sum of probabilities.")


def _tail_from_sums(logpmf, ends, k, mean, n, a, b, lower: bool, as_log: bool):
    """Return a tail of the beta-binomial, or with negative shapes of the hypergeometric distribution."""

    def smaller(low):
        first, last = where(low, k, ends[0]), where(low, ends[1], k + 1)
        below = logpmf(first) + log(_rises(n - first, n, b, a))
        return where(low, below, logpmf(last) + log(_rises(last, n, a, b)))

    return tail_from_smaller(k < floor(mean), smaller, lower, as_log)


class _Hypergeom(Discrete):
    """Hypergeometric distribution: how many of ``n`` marked objects are among ``N`` drawn from ``M``."""

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
        return _tail_from_sums(lambda k: self._logpmf(k, M, n, N), ends, k, mean, N, -n, n - M, lower, as_log)

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
    """Return the log probability as a ratio of negative binomial ones, each near its mode."""
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
        return _tail_from_sums(lambda k: _log_betabinom(k, n, a, b), (0.0, n), k, mean, n, a, b, lower, as_log)

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


betabinom = _Betabinom("betabinom", "n, a, b")

betanbinom = _Betanbinom("betanbinom", "n, a, b")

hypergeom = _Hypergeom("hypergeom", "M, n, N")

__all__ = ["betabinom", "betanbinom", "hypergeom"]
