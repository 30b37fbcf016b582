"""Families of the normal distribution, and those with closed forms on the whole line."""

from __future__ import annotations

import math

from ... import ops
from .. import special
from .._formulas import choose, exp, expm1, log, log1p, log_complement, refined, where
from ._family import POSITIVE, Continuous
from ._tails import LOG_2, by_hazard, hazard_at, log_tails, normal, normal_quantile, plain

LOG_ROOT = math.log(2 * math.pi) / 2
EULER = 0.57721566490153286061
ZETA_3 = 1.2020569031595942854
GUMBEL_SKEW = 12 * math.sqrt(6) * ZETA_3 / math.pi**3


class _Norm(Continuous):
    """Normal distribution."""

    everywhere = True

    def _logpdf(self, z):
        return z * z * -0.5 - LOG_ROOT

    def _tail(self, z, lower, log):
        return normal(z, lower, log)

    def _quantile(self, p, lower, log):
        return normal_quantile(p, lower, log)

    def _stats(self):
        return 0.0, 1.0, 0.0, 0.0

    def _entropy(self):
        return LOG_ROOT + 0.5

    def _random(self, like, shape, seed, shapes):
        return ops.random.random_normal(like, shape, seed)


class _Lognorm(Continuous):
    """Log-normal distribution, of the exponential of a normal variable of deviation ``s``."""

    support_, open = POSITIVE, True

    def _logpdf(self, z, s):
        u = log(z)
        return ops.square(u / s) * -0.5 - u - log(s) - LOG_ROOT

    def _tail(self, z, lower, log_, s):
        return normal(log(z) / s, lower, log_)

    def _quantile(self, p, lower, log, s):
        return exp(s * normal_quantile(p, lower, log))

    def _stats(self, s):
        p, d = exp(s * s), expm1(s * s)
        return exp(s * s / 2), p * d, d**0.5 * (2 + p), d * (p * p * p + 3 * p * p + 6 * p + 6)

    def _entropy(self, s):
        return LOG_ROOT + 0.5 + log(s)

    def _random(self, like, shape, seed, shapes):
        return exp(ops.random.random_normal(like, shape, seed) * shapes[0])


class _Halfnorm(Continuous):
    """Half-normal distribution, of the absolute value of a normal variable."""

    support_ = POSITIVE

    def _logpdf(self, z):
        return z * z * -0.5 + (LOG_2 - LOG_ROOT)

    def _steep(self):
        return False, False

    def _tail(self, z, lower, as_log):
        if not lower and as_log:
            return choose(
                z < 0.5,
                lambda of: log1p(-special.erf(of(z, 0.2) / math.sqrt(2))),
                lambda of: special.log_ndtr(-of(z, 1.0)) + LOG_2,
            )
        if not as_log:
            return special.erf(z / math.sqrt(2)) if lower else 2 * special.ndtr(-z)
        return choose(
            z > 1,
            lambda of: log1p(-2 * special.ndtr(-of(z, 2.0))),
            lambda of: log(special.erf(of(z, 0.5) / math.sqrt(2))),
        )

    def _quantile(self, p, lower, as_log):
        if not lower:
            return -special.ndtri_exp(p - LOG_2) if as_log else -special.ndtri(p / 2)
        if not as_log:
            return math.sqrt(2) * special.erfinv(p)
        return choose(
            p > -LOG_2,
            lambda of: -special.ndtri_exp(log_complement(of(p, -0.5)) - LOG_2),
            lambda of: math.sqrt(2) * special.erfinv(exp(of(p, -1.0))),
        )

    def _stats(self):
        rest = math.pi - 2
        skew = math.sqrt(2) * (4 - math.pi) / rest**1.5
        return math.sqrt(2 / math.pi), rest / math.pi, skew, 8 * (math.pi - 3) / rest**2

    def _entropy(self):
        return LOG_ROOT - LOG_2 + 0.5


class _Cauchy(Continuous):
    """Cauchy distribution."""

    def _logpdf(self, z):
        return refined(
            ops.abs(z) >= 1e100,
            lambda of: -2 * log(ops.abs(of(z, 1e100))),
            lambda of: -log1p(ops.square(of(z, 1.0))),
        ) - math.log(math.pi)

    def _tail(self, z, lower, as_log):
        z = -z if lower else z
        if as_log:
            return choose(
                z < -1,
                lambda of: log1p(ops.arctan(1 / of(z, -2.0)) / math.pi),
                lambda of: log(self._upper(of(z, 0.0))),
            )
        return self._upper(z)

    @staticmethod
    def _upper(z):
        def far(of):
            place = of(z, 2.0)
            return ops.arctan(1 / place) / math.pi + where(place < 0, 1.0, 0.0)

        return choose(ops.abs(z) > 1, far, lambda of: 0.5 - ops.arctan(of(z, 0.0)) / math.pi)

    def _quantile(self, p, lower, log):
        p, q = plain(p, log)
        z = choose(
            ops.abs(p - 0.5) < 0.25,
            lambda of: ops.tan(math.pi * (of(p, 0.5) - 0.5)),
            lambda of: choose(
                of(p, 0.1) < 0.5,
                lambda inner: -1 / ops.tan(math.pi * inner(of(p, 0.1), 0.1)),
                lambda inner: 1 / ops.tan(math.pi * inner(of(q, 0.1), 0.1)),
            ),
        )
        return z if lower else -z

    def _stats(self):
        return (math.nan,) * 4

    def _entropy(self):
        return math.log(4 * math.pi)


class _Halfcauchy(Continuous):
    """Half-Cauchy distribution, of the absolute value of a Cauchy variable."""

    support_ = POSITIVE

    def _logpdf(self, z):
        return cauchy._logpdf(z) + LOG_2

    def _steep(self):
        return False, False

    def _tail(self, z, lower, as_log):
        upper = choose(
            z > 1,
            lambda of: ops.arctan(1 / of(z, 1.0)) * (2 / math.pi),
            lambda of: 1 - ops.arctan(of(z, 1.0)) * (2 / math.pi),
        )
        if not as_log:
            return ops.arctan(z) * (2 / math.pi) if lower else upper
        if not lower:
            return choose(
                z < 0.5,
                lambda of: log1p(ops.arctan(of(z, 0.2)) * (-2 / math.pi)),
                lambda of: log(of(upper, 0.5)),
            )
        return choose(
            z > 1,
            lambda of: log1p(-of(upper, 0.5)),
            lambda of: log(ops.arctan(of(z, 1.0)) * (2 / math.pi)),
        )

    def _quantile(self, p, lower, as_log):
        p, q = plain(p, as_log)
        p, q = (p, q) if lower else (q, p)
        return choose(
            p < 0.5,
            lambda of: ops.tan(math.pi / 2 * of(p, 0.5)),
            lambda of: 1 / ops.tan(math.pi / 2 * of(q, 0.5)),
        )

    def _stats(self):
        return math.inf, math.inf, math.nan, math.nan

    def _entropy(self):
        return math.log(2 * math.pi)


class _Logistic(Continuous):
    """Logistic distribution."""

    def _logpdf(self, z):
        return -z - 2 * ops.softplus(-z)

    def _tail(self, z, lower, log):
        z = z if lower else -z
        if log:
            return ops.log_sigmoid(z)
        # a sigmoid's slope y * (1 - y) cancels far above 0
        return choose(z > 1, lambda of: 1 - ops.sigmoid(-of(z, 2.0)), lambda of: ops.sigmoid(of(z, 0.0)))

    def _quantile(self, p, lower, log):
        if log:
            own, other = log_tails(p, True)
            z = own - other
        else:
            z = special.logit(p)
        return z if lower else -z

    def _stats(self):
        return 0.0, math.pi**2 / 3, 0.0, 1.2

    def _entropy(self):
        return 2.0


class _Laplace(Continuous):
    """Laplace distribution."""

    def _logpdf(self, z):
        return -ops.abs(z) - LOG_2

    def _tail(self, z, lower, as_log):
        z = z if lower else -z
        if as_log:
            return choose(z < 0, lambda of: of(z, -1.0) - LOG_2, lambda of: log1p(exp(-of(z, 1.0)) * -0.5))
        return choose(z < 0, lambda of: exp(of(z, -1.0)) / 2, lambda of: 1 - exp(-of(z, 1.0)) / 2)

    def _quantile(self, p, lower, as_log):
        own, other = log_tails(p, as_log)
        z = choose(own < -LOG_2, lambda of: of(own, -1.0) + LOG_2, lambda of: -LOG_2 - of(other, -1.0))
        return z if lower else -z

    def _stats(self):
        return 0.0, 2.0, 0.0, 3.0

    def _entropy(self):
        return LOG_2 + 1


class _GumbelRight(Continuous):
    """Right-skewed Gumbel distribution, of maxima."""

    def _logpdf(self, z):
        return -z - exp(-z)

    def _tail(self, z, lower, log):
        return by_hazard(exp(-z), not lower, log)

    def _quantile(self, p, lower, as_log):
        return -log(hazard_at(p, not lower, as_log))

    def _stats(self):
        return EULER, math.pi**2 / 6, GUMBEL_SKEW, 2.4

    def _entropy(self):
        return EULER + 1


class _GumbelLeft(Continuous):
    """Left-skewed Gumbel distribution, of minima."""

    def _logpdf(self, z):
        return z - exp(z)

    def _tail(self, z, lower, log):
        return by_hazard(exp(z), lower, log)

    def _quantile(self, p, lower, as_log):
        return log(hazard_at(p, lower, as_log))

    def _stats(self):
        return -EULER, math.pi**2 / 6, -GUMBEL_SKEW, 2.4

    def _entropy(self):
        return EULER + 1


class _Uniform(Continuous):
    """Uniform distribution on the interval from ``loc`` to ``loc + scale``."""

    support_ = (0.0, 1.0)

    def _logpdf(self, z):
        return 0 * z

    def _steep(self):
        return False, False

    def _tail(self, z, lower, as_log):
        if as_log:
            return log(z) if lower else log1p(-z)
        return z if lower else 1 - z

    def _quantile(self, p, lower, log):
        p, q = plain(p, log)
        return p if lower else q

    def _stats(self):
        return 0.5, 1 / 12, 0.0, -1.2

    def _entropy(self):
        return 0.0


norm = _Norm("norm")
lognorm = _Lognorm("lognorm", "s")
halfnorm = _Halfnorm("halfnorm")
cauchy = _Cauchy("cauchy")
halfcauchy = _Halfcauchy("halfcauchy")
logistic = _Logistic("logistic")
laplace = _Laplace("laplace")
gumbel_r = _GumbelRight("gumbel_r")
gumbel_l = _GumbelLeft("gumbel_l")
uniform = _Uniform("uniform")

__all__ = "cauchy gumbel_l gumbel_r halfcauchy halfnorm laplace logistic lognorm norm uniform".split()
