"""Planck's distribution of integers, and Boltzmann's, which truncates it."""

from __future__ import annotations

from .... import ops
from ... import special
from ..._formulas import choose, exp, expm1, log, log_complement, sqrt
from ._arguments import both
from ._discrete import Discrete, is_whole
from ._shared import hazard_probability


class _Planck(Discrete):
    """Planck's discrete exponential distribution of the rate ``lambda_``."""

    def _logpmf(self, k, lambda_):
        return log_complement(-lambda_) - lambda_ * k

    def _tail(self, k, lower, log, lambda_):
        return hazard_probability(lambda_ * (k + 1), lower, log)

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
        """Return ``log(expm1(-lambda_ * count) / expm1(-lambda_ * N))``, accurate for small rates."""
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


boltzmann = _Boltzmann("boltzmann", "lambda_, N")

planck = _Planck("planck", "lambda_")

__all__ = ["boltzmann", "planck"]
