"""The von Mises distribution, on the circle and on the line."""

from __future__ import annotations

import math

import numpy as np

from .... import ops
from ....flow import stop_gradient
from ... import special
from ..._formulas import absolute, exp, log, tail_probability, where
from ..._tensors import constant_like
from ._family import INFINITE, Continuous
from ._quadrature import quantile_of
from ._shared import _column

_NODES, _WEIGHTS = [v / 2 for v in np.polynomial.legendre.leggauss(64)]

_NODES = _NODES + 0.5


class _Circular(Continuous):
    """Von Mises distribution of the concentration ``kappa``, on the line between -pi and pi."""

    support_ = (-math.pi, math.pi)
    reach, ends = math.pi, (-math.pi, math.pi)

    def _valid(self, kappa):
        return (kappa >= 0) & (kappa < math.inf)

    def _inner(self, kappa):
        return 0.0

    def _logpdf(self, z, kappa):
        square = ops.square(ops.sin(z / 2))
        return self._rest(kappa) - 2 * kappa * square - math.log(2 * math.pi) - log(special.i0e(kappa))

    @staticmethod
    def _rest(kappa):
        """Return 0 with the slope at 0 that the even function ``i0e`` lacks."""
        return kappa - absolute(kappa)

    @staticmethod
    def _nodes(y, kappa):
        reach = stop_gradient(ops.arccos(ops.maximum(ops.cos(y) - 40 / (kappa + 1e-30), -1.0)) - y)
        whole = math.pi - y
        length = ops.maximum(where(reach < whole * (1 - 1e-9), reach, whole), 1e-30)
        return _column(length) * constant_like(_NODES, length), length

    def _log_smaller(self, z, kappa):
        """Return the log of the outer tail, by Gauss' rule up to where the density has fallen by a factor of 1e-17."""
        y, kappa = where(z < 0, -z, z) + 0 * kappa, kappa + 0 * z
        s, length = self._nodes(y, kappa)
        e = 2 * _column(kappa) * ops.sin(_column(y) + s / 2) * ops.sin(s / 2)
        return self._logpdf(y, kappa) + log(length) + log(ops.sum(exp(-e) * constant_like(_WEIGHTS, length), -1))

    def _tail(self, z, lower, as_log, kappa):
        return tail_probability(z + 0 * kappa < 0, self._log_smaller(z, kappa), lower, as_log)

    def _quantile(self, p, lower, log, kappa):
        return _VONMISES(p, lower, log, kappa)

    def _stats(self, kappa):
        s, length = self._nodes(0 * kappa, kappa)
        weights = 2 * exp(self._logpdf(s, _column(kappa))) * constant_like(_WEIGHTS, length)
        var, fourth = [length * ops.sum(weights * s**n, -1) for n in (2, 4)]
        return 0 * kappa, var, 0 * kappa, fourth / (var * var) - 3

    def _entropy(self, kappa):
        ratio = special.i1e(kappa) / special.i0e(kappa)
        return math.log(2 * math.pi) + log(special.i0e(kappa)) + kappa * (1 - ratio) - self._rest(kappa)


class _Vonmises(_Circular):
    """Von Mises distribution with concentration ``kappa`` on the circle: each turn adds 1 to ``cdf``."""

    support_ = INFINITE

    def _tail(self, z, lower, as_log, kappa):
        turns = ops.floor(z / (2 * math.pi) + 0.5)
        part = vonmises_line._tail(z - 2 * math.pi * turns, lower, as_log, kappa)
        if not as_log:
            return part + (turns if lower else -turns)
        return where(turns == 0, part, log(exp(part) + (turns if lower else -turns)))


vonmises_line = _Circular("vonmises_line", "kappa")

vonmises = _Vonmises("vonmises", "kappa")

_VONMISES = quantile_of(vonmises_line)

__all__ = ["vonmises", "vonmises_line"]
