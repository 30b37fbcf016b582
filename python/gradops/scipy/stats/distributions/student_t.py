"""Student's t distribution."""

from __future__ import annotations

import math

from ... import special
from ..._formulas import choose, log, log1p, log_beta, where
from ...special._tails import log_t_density, psi_rise
from ...special.probabilities import F, log_stdtrit
from ._family import Continuous
from ._shared import LOG_2, LOG_ROOT, finite
from .normal import log_normal_density


class _T(Continuous):
    """Student's t distribution with ``df`` degrees of freedom; normal for infinite ``df``."""

    def _logpdf(self, z, df):
        known = where(df < math.inf, df, 1.0)
        return where(df < math.inf, log_t_density(known, z), log_normal_density(z))

    def _tail(self, z, lower, as_log, df):
        q = z if lower else -z
        if not as_log:
            return special.stdtr(df, q)

        def other(of):
            return choose(
                of(q, 0.0) > 1,
                lambda inner: log1p(-special.stdtr(of(df, 1.0), -inner(of(q, 0.0), 2.0))),
                lambda inner: log(special.stdtr(of(df, 1.0), inner(of(q, 0.0), 0.0))),
            )

        return choose(q < -1, lambda of: F[False, True](1.0, of(df, 1.0), of(q, -2.0) ** 2) - LOG_2, other)

    def _quantile(self, p, lower, as_log, df):
        z = log_stdtrit(df, p) if as_log else special.stdtrit(df, p)
        return z if lower else -z

    def _stats(self, df):
        def on(least, value, below):
            return where(df > least, value, below)

        var = finite((df > 2) & (df < math.inf), lambda df: df / (df - 2), df, math.nan)
        kurtosis = finite((df > 4) & (df < math.inf), lambda df: 6 / (df - 4), df, math.nan)
        return (
            on(1, 0.0, math.inf),
            where(df == math.inf, 1.0, where((df > 1) & (df <= 2), math.inf, var)),
            on(3, 0.0, math.nan),
            where(df == math.inf, 0.0, where((df > 2) & (df <= 4), math.inf, kurtosis)),
        )

    def _entropy(self, df):
        known = where(df < math.inf, df, 1.0)
        half = known / 2
        value = (known + 1) / 2 * psi_rise(half, 0.5) + log(known) / 2 + log_beta(half, 0.5)
        return where(df < math.inf, value, LOG_ROOT + 0.5)


t = _T("t", "df")

__all__ = ["t"]
