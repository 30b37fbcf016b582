"""High-precision references by mpmath for functions of ``gradops.scipy``, and the hard points to evaluate them at.

One table for the tests and for ``tools/digits.py``, which writes docs/digits.md.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import signal
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import mpmath
import numpy as np
from mpmath import mp
from scipy import special as scipys
from scipy import stats as scipys_stats

COUNT = 30
"""Number of points sampled per function."""

# Incomplete functions -------------------------------------------------------------------------------------------------


def _series(numerator, denominator, x):
    """Sum ``1 + x n / d + x**2 n (n + 1) / (d (d + 1)) + ...``, positive terms; without ``numerator`` ``1 + x / d +
    ...``.
    """
    bits = mp.prec + 40
    one = 1 << bits
    x, d = int(x * one), int(denominator * one)
    n = None if numerator is None else int(numerator * one)
    total = term = one
    while term:
        term = term * x // d if n is None else (term * n // d) * x >> bits
        d += one
        n = None if n is None else n + one
        total += term
    return mp.mpf(total) / one


def lower_gamma(a, x):
    """Return the regularised lower incomplete gamma function."""
    return _gamma_below(a, x) if x <= a + 1 else 1 - _gamma_above(a, x)


def upper_gamma(a, x):
    """Return the regularised upper incomplete gamma function."""
    return 1 - _gamma_below(a, x) if x <= a + 1 and a > 0.01 else _gamma_above(a, x)


def _gamma_below(a, x):
    if x == 0:
        return mp.mpf(0)
    return mp.exp(a * mp.log(x) - x - mp.loggamma(a + 1)) * _series(None, a + 1, x)


def _gamma_above(a, x):
    if a < 50:
        return mp.gammainc(a, x, mp.inf, regularized=True)
    if x < a + 3 * mp.sqrt(a):
        return 1 - _gamma_below(a, x)
    top, last = mp.inf, 1 / (x + 1 - a)  # Legendre's continued fraction, by Lentz' method
    front = mp.exp(a * mp.log(x) - x - mp.loggamma(a)) * last
    for n in itertools.count(1):
        part, step = n * (a - n), x + 2 * n + 1 - a
        last, top = 1 / (step + part * last), step + part / top
        factor = top * last
        front *= factor
        if abs(factor - 1) < mp.eps:
            return front


def lower_beta(a, b, x):
    """Return the regularised incomplete beta function."""
    return _beta_below(a, b, x) if x * (a + b) <= a else 1 - _beta_below(b, a, 1 - x)


def upper_beta(a, b, x):
    """Return the complement of the regularised incomplete beta function."""
    return 1 - _beta_below(a, b, x) if x * (a + b) <= a else _beta_below(b, a, 1 - x)


def _beta_below(a, b, x):
    if x == 0:
        return mp.mpf(0)
    front = a * mp.log(x) - mp.log(a) + mp.loggamma(a + b) - mp.loggamma(a) - mp.loggamma(b)
    if b < 100:
        return mp.exp(front) * mp.hyp2f1(a, 1 - b, a + 1, x)
    return mp.exp(front + b * mp.log1p(-x)) * _series(a + b, a + 1, x)


def lower_t(df, t):
    """Return Student's t distribution function."""
    tail = lower_beta(df / 2, mp.mpf(1) / 2, df / (df + t * t)) / 2
    return tail if t < 0 else 1 - tail


def lower_f(m, n, x):
    """Return the F distribution function."""
    if m * x > n:
        return upper_beta(n / 2, m / 2, n / (m * x + n))
    return lower_beta(m / 2, n / 2, m * x / (m * x + n))


def upper_f(m, n, x):
    """Return the upper tail of the F distribution."""
    return lower_f(n, m, 1 / x)


def _log_beta(a, b):
    return mp.loggamma(a) + mp.loggamma(b) - mp.loggamma(a + b)


# Points ---------------------------------------------------------------------------------------------------------------

SIZES = (1e-8, 1e-3, 0.05, 0.7, 3.3, 30.0, 300.0, 1e5, 1e8)
SOME = (1e-8, 0.05, 0.7, 7.3, 300.0)
REAL = tuple(sign * x for sign in (-1, 1) for x in (1e-8, 0.05, 0.7, 2.9, 7.3, 25.0))
ANY = tuple(sign * x for sign in (-1, 1) for x in (1e-300, 1e-8, 0.05, 0.7, 2.9, 7.3, 25.0, 300.0, 1e5))
INSIDE = (-0.999999, -0.9, -0.5, -1e-8, 1e-300, 1e-8, 0.05, 0.3, 0.7, 0.999, 1 - 1e-12)
PROBABILITIES = (1e-300, 1e-20, 1e-8, 0.01, 0.3, 0.5, 0.7, 0.99, 1 - 1e-12)
ORDERS = (0.0, 0.3, 1.0, 2.7, 25.5, 120.0)


def _places(quantile: Callable, *grids) -> Callable[[], list]:
    """Return a function that lists points whose last argument is the quantile of a probability."""

    def points():
        with np.errstate(all="ignore"):
            rows = [(*row[:-1], float(quantile(*row))) for row in itertools.product(*grids, PROBABILITIES)]
        return [row for row in rows if 1e-300 < abs(row[-1]) < 1e300]

    return points


class Function(NamedTuple):
    """A reference function.

    Attributes:
        exact: function of mpmath numbers; returns one number, which may be complex, or several.
        points: the grids of the arguments, integers as ``int``; or a function that returns the points.
        by: positions of the differentiated arguments; by default all that are not integers.
        inverse: the position of the argument that the tested function solves for: ``exact`` is the function to
            invert.
    """

    exact: Callable
    points: Sequence[Sequence[float]] | Callable[[], list]
    inverse: int | None = None
    by: Sequence[int] | None = None

    def sample(self, count: int = COUNT) -> list[tuple]:
        """Return at most ``count`` of the points."""
        found = self.points() if callable(self.points) else list(itertools.product(*self.points))
        if len(found) <= count:
            return found
        chosen = np.random.default_rng(36).permutation(len(found))[:count]
        return [found[i] for i in sorted(chosen)]


def _one(exact, *grids, inverse=None, by=None):
    return Function(exact, grids, inverse, by)


def _student_points():
    return [
        (df, float(t))
        for df in SIZES[1:]
        for t in (*scipys_stats.t.ppf(PROBABILITIES[:3], df), -1.5, -1e-8, 1e-8, 0.7, 25.0)
        if np.isfinite(t)
    ]


def _half():
    return mp.mpf(1) / 2


def _scaled_airy(x):
    scale = mp.exp(2 * mp.sqrt(x) ** 3 / 3)
    return (
        mp.airyai(x) * scale,
        mp.airyai(x, derivative=1) * scale,
        mp.airybi(x) / scale,
        mp.airybi(x, derivative=1) / scale,
    )


def _log_expit(x):
    return -mp.log1p(mp.exp(-x))


def _boxcox(x, power):
    return mp.expm1(power * mp.log(x)) / power if power else mp.log(x)


def _inv_boxcox(x, power):
    return mp.exp(mp.log1p(power * x) / power) if power else mp.exp(x)


def _multigammaln(a):
    return 3 * mp.log(mp.pi) / 2 + sum(mp.loggamma(a - j * _half()) for j in range(3))


def _owens_t(h, a):
    scale = min(1, 2 / (abs(h) * abs(a)) if h else 1)  # where the integrand falls
    cuts = [a * part for part in sorted({mp.mpf(0), scale / 4, scale, min(4 * scale, 1), mp.mpf(1)})]
    whole = mp.quad(lambda t: mp.exp(-h * h * t * t / 2) / (1 + t * t), cuts)
    return mp.exp(-h * h / 2) * whole / (2 * mp.pi)


def _voigt(x, sigma, gamma):
    z = (x + 1j * gamma) / (sigma * mp.sqrt(2))
    return mp.re(mp.exp(-z * z) * mp.erfc(-1j * z)) / (sigma * mp.sqrt(2 * mp.pi))


_POSITIVE = (1e-300, *SIZES, 1e-5, 1.0 + 1e-9, 2.0)
_X = (1e-8, 0.05, 0.7, 2.3, 7.5, 30.0, 300.0, 1e5)
_DEGREES = (0, 1, 4, 30)
_P = PROBABILITIES

SPECIAL: dict[str, Function] = {
    # gamma
    "gamma": _one(mp.gamma, (*REAL, 1e-300, 30.0, 170.5)),
    "gammaln": _one(lambda x: mp.log(abs(mp.gamma(x))), (*_POSITIVE, -0.3, -7.3, -2.6)),
    "loggamma": _one(mp.loggamma, _POSITIVE),
    "digamma": _one(mp.digamma, (*_POSITIVE, -0.3, -7.3)),
    "psi": _one(mp.digamma, (*_POSITIVE, -0.3, -7.3)),
    "rgamma": _one(mp.rgamma, (*REAL, 1e-300, 30.0, 170.5)),
    "polygamma": _one(lambda n, x: mp.polygamma(n, x), (1, 2, 5), SIZES),
    "multigammaln": _one(lambda a, d: _multigammaln(a), (1.0 + 1e-8, 1.05, 2.0, 30.0, 1e5, 1e8), (3,)),
    "beta": _one(lambda a, b: mp.exp(_log_beta(a, b)), SIZES, SIZES),
    "betaln": _one(_log_beta, SIZES, SIZES),
    "binom": _one(lambda n, k: mp.binomial(n, k), (0.7, 7.3, 30.0, 300.0, 1e5, 1e8), (1e-8, 0.05, 0.7, 3.3, 25.0)),
    "poch": _one(lambda z, m: mp.gammaprod([z + m], [z]), SIZES, (1e-8, 0.05, 0.7, 3.3, 25.0)),
    "factorial": _one(mp.factorial, SIZES[:6]),
    "comb": _one(mp.binomial, (7.3, 30.0, 300.0), (2.0, 5.0, 6.7)),
    "perm": _one(lambda n, k: mp.gammaprod([n + 1], [n - k + 1]), (7.3, 30.0, 300.0), (2.0, 5.0, 6.7)),
    # incomplete
    "gammainc": Function(lower_gamma, _places(scipys.gammaincinv, SIZES)),
    "gammaincc": Function(upper_gamma, _places(scipys.gammainccinv, SIZES)),
    "gammaincinv": _one(lower_gamma, SIZES, _P, inverse=1),
    "gammainccinv": _one(upper_gamma, SIZES, _P, inverse=1),
    "betainc": Function(lower_beta, _places(scipys.betaincinv, SIZES, SIZES)),
    "betaincc": Function(upper_beta, _places(scipys.betainccinv, SIZES, SIZES)),
    "betaincinv": _one(lower_beta, SIZES, SIZES, _P, inverse=2),
    "betainccinv": _one(upper_beta, SIZES, SIZES, _P, inverse=2),
    "gdtr": _one(lambda a, b, x: lower_gamma(b, a * x), (0.7, 3.3), SOME, (0.05, 0.7, 7.3)),
    "gdtrc": _one(lambda a, b, x: upper_gamma(b, a * x), (0.7, 3.3), SOME, (0.05, 0.7, 7.3)),
    "gdtrix": _one(lambda a, b, x: lower_gamma(b, a * x), (0.7, 3.3), SOME, _P, inverse=2),
    "gdtria": _one(lambda a, b, x: lower_gamma(b, a * x), _P, SOME, (0.7, 3.3), inverse=0),
    "gdtrib": _one(lambda a, b, x: lower_gamma(b, a * x), (0.7, 3.3), (0.01, 0.5, 0.99), (0.7, 7.3, 30.0), inverse=1),
    "chdtr": Function(lambda v, x: lower_gamma(v / 2, x / 2), _places(lambda v, p: scipys.chdtri(v, 1 - p), SIZES)),
    "chdtrc": Function(lambda v, x: upper_gamma(v / 2, x / 2), _places(scipys.chdtri, SIZES)),
    "chdtri": _one(lambda v, x: upper_gamma(v / 2, x / 2), SIZES, _P, inverse=1),
    "chdtriv": _one(lambda v, x: lower_gamma(v / 2, x / 2), (0.01, 0.5, 0.99), (0.7, 7.3, 30.0), inverse=0),
    "pdtr": _one(lambda k, m: upper_gamma(k + mp.mpf(1), m), (0, 3, 30, 300), (1e-8, 0.7, 7.3, 30.0, 300.0)),
    "pdtrc": _one(lambda k, m: lower_gamma(k + mp.mpf(1), m), (0, 3, 30, 300), (1e-8, 0.7, 7.3, 30.0, 300.0)),
    "pdtri": _one(lambda k, m: upper_gamma(k + mp.mpf(1), m), (0, 3, 30, 300), _P, inverse=1),
    "pdtrik": _one(lambda k, m: upper_gamma(k + 1, m), (0.3, 0.5, 0.99), (7.3, 30.0, 300.0), inverse=0),
    "bdtr": _one(lambda k, n, p: upper_beta(k + mp.mpf(1), n - mp.mpf(k), p), (0, 3, 30), (40, 300), _P[2:8]),
    "bdtrc": _one(lambda k, n, p: lower_beta(k + mp.mpf(1), n - mp.mpf(k), p), (0, 3, 30), (40, 300), _P[2:8]),
    "bdtri": _one(lambda k, n, p: upper_beta(k + mp.mpf(1), n - mp.mpf(k), p), (0, 3, 30), (40, 300), _P, inverse=2),
    "nbdtr": _one(lambda k, n, p: lower_beta(mp.mpf(n), k + mp.mpf(1), p), (0, 3, 30), (4, 300), _P[2:8]),
    "nbdtrc": _one(lambda k, n, p: upper_beta(mp.mpf(n), k + mp.mpf(1), p), (0, 3, 30), (4, 300), _P[2:8]),
    "nbdtri": _one(lambda k, n, p: lower_beta(mp.mpf(n), k + mp.mpf(1), p), (0, 3, 30), (4, 300), _P, inverse=2),
    "btdtria": _one(lower_beta, (0.1, 0.5, 0.9), (0.7, 7.3), (0.2, 0.5, 0.7), inverse=0),
    "btdtrib": _one(lower_beta, (0.7, 7.3), (0.1, 0.5, 0.9), (0.2, 0.5, 0.7), inverse=1),
    "fdtr": _one(lower_f, SIZES[2:], SIZES[2:], (1e-8, 0.05, 0.7, 1.1, 30.0)),
    "fdtrc": _one(upper_f, SIZES[2:], SIZES[2:], (1e-8, 0.05, 0.7, 1.1, 30.0)),
    "fdtri": _one(lower_f, SIZES[2:], SIZES[2:], _P, inverse=2),
    "fdtridfd": _one(lower_f, (3.0, 0.7), (0.4, 0.5), (0.8, 0.7), inverse=1),
    "stdtr": Function(lower_t, _student_points),
    "stdtrit": _one(lower_t, SIZES[2:], _P, inverse=1),
    "stdtridf": _one(lower_t, (0.8, 0.75), (1.2, 0.9), inverse=0),
    "nrdtrimn": _one(lambda m, s, x: mp.ncdf((x - m) / s), _P, (0.7, 7.3), (0.3, 2.0), inverse=0),
    "nrdtrisd": _one(lambda m, s, x: mp.ncdf((x - m) / s), (0.3, 2.0), (0.6, 0.7, 0.99), (3.0, 7.0), inverse=1),
    # errors
    "erf": _one(mp.erf, REAL),
    "erfc": _one(mp.erfc, REAL),
    "erfcx": _one(lambda x: mp.exp(x * x) * mp.erfc(x), (*REAL[2:], 30.0, 1e5)),
    "erfi": _one(mp.erfi, REAL),
    "dawsn": _one(lambda x: mp.sqrt(mp.pi) / 2 * mp.exp(-x * x) * mp.erfi(x), (*REAL, 30.0, 1e5)),
    "erfinv": _one(mp.erf, INSIDE, inverse=0),
    "erfcinv": _one(mp.erfc, (1e-300, 1e-8, 0.1, 0.5, 1 - 1e-9, 1 + 1e-9, 1.9, 2 - 1e-12), inverse=0),
    "ndtr": _one(mp.ncdf, (*REAL, -37.0)),
    "log_ndtr": _one(lambda x: mp.log(mp.ncdf(x)), (*REAL, -37.0, -300.0, -1e5, 12.0, 30.0)),
    "ndtri": _one(mp.ncdf, _P, inverse=0),
    "ndtri_exp": _one(
        lambda x: mp.log(mp.ncdf(x)), (-1e-300, -1e-20, -1e-8, -0.01, -0.5, -0.9, -3.0, -400.0, -1e8), inverse=0
    ),
    "owens_t": _one(_owens_t, (-0.4, 0.05, 0.3, 2.0, 7.0), (1e-3, 0.5, 0.99, 2.0, 30.0)),
    "voigt_profile": _one(_voigt, (-300.0, -2.0, 0.05, 7.3), (0.05, 0.7, 7.3), (1e-8, 0.05, 0.7, 30.0)),
    # elementary
    "cbrt": _one(lambda x: mp.sign(x) * mp.cbrt(abs(x)), ANY),
    "exp2": _one(lambda x: mp.mpf(2) ** x, REAL),
    "exp10": _one(lambda x: mp.mpf(10) ** x, REAL),
    "expm1": _one(mp.expm1, REAL),
    "log1p": _one(mp.log1p, (*INSIDE, *SIZES)),
    "cosm1": _one(lambda x: mp.cos(x) - 1, REAL),
    "exprel": _one(lambda x: mp.expm1(x) / x, ANY[4:-2]),
    "softplus": _one(lambda x: mp.log1p(mp.exp(x)), (*REAL, -300.0, 300.0)),
    "expit": _one(lambda x: 1 / (1 + mp.exp(-x)), (*REAL, -300.0, 300.0)),
    "log_expit": _one(_log_expit, (*REAL, -300.0, 300.0)),
    "logit": _one(lambda p: mp.log(p) - mp.log1p(-p), _P),
    "sindg": _one(lambda x: mp.sin(x * mp.pi / 180), REAL),
    "cosdg": _one(lambda x: mp.cos(x * mp.pi / 180), REAL),
    "tandg": _one(lambda x: mp.tan(x * mp.pi / 180), REAL),
    "cotdg": _one(lambda x: mp.cot(x * mp.pi / 180), (-7.3, 0.05, 0.7, 25.0)),
    "radian": _one(lambda d, m, s: (d + m / 60 + s / 3600) * mp.pi / 180, (0.7, 30.0), (0.05, 7.3), (0.3, 3.0)),
    "xlogy": _one(lambda x, y: x * mp.log(y), SIZES, SIZES),
    "xlog1py": _one(lambda x, y: x * mp.log1p(y), SIZES, (*INSIDE, *SIZES)),
    "entr": _one(lambda x: -x * mp.log(x), _POSITIVE),
    "rel_entr": _one(lambda x, y: x * mp.log(x / y), SIZES, SIZES),
    "kl_div": _one(lambda x, y: x * mp.log(x / y) - x + y, (*SIZES, 1 + 1e-8), (*SIZES, 1 + 1e-3)),
    "boxcox": _one(_boxcox, (*SIZES, 1 + 1e-8), (-7.3, -0.5, -1e-8, 1e-300, 1e-20, 1e-8, 1e-3, 1.3)),
    "boxcox1p": _one(
        lambda x, power: _boxcox(1 + x, power), (*INSIDE[:8], *SIZES), (-7.3, -1e-8, 1e-300, 1e-8, 1e-3, 1.3)
    ),
    "inv_boxcox": _one(
        _inv_boxcox, (1e-300, 1e-8, 0.1, 0.5, 7.3, 300.0), (-1e-3, -1e-8, 1e-300, 1e-20, 1e-8, 1e-3, 1.3)
    ),
    "inv_boxcox1p": _one(
        lambda x, power: _inv_boxcox(x, power) - 1,
        (1e-8, 0.1, 0.5, 7.3, 300.0),
        (-1e-3, -1e-8, 1e-300, 1e-8, 1e-3, 1.3),
    ),
    "diric": _one(lambda x, n: mp.sin(n * x / 2) / (n * mp.sin(x / 2)), (1e-8, 0.4, 2.3, 7.5), (2, 5)),
    "huber": _one(lambda d, r: r * r / 2 if abs(r) <= d else d * (abs(r) - d / 2), (0.7, 2.2), REAL),
    "pseudo_huber": _one(lambda d, r: d * d * (mp.sqrt(1 + (r / d) ** 2) - 1), (0.05, 0.7, 30.0), REAL),
    "powm1": _one(lambda x, p: mp.expm1(p * mp.log(x)), (1e-8, 0.7, 1 + 1e-9, 7.3), (-1e-9, 1e-300, 0.3, 2.9)),
    "sinc": _one(mp.sincpi, (*REAL[:-3], 1e-4)),
    # Bessel
    **{
        f"{kind}{n}": _one(functools.partial(f, n), _X)
        for kind, f in (("j", mp.besselj), ("y", mp.bessely))
        for n in (0, 1)
    },
    **{
        f"{kind}{n}": _one(functools.partial(f, n), _X[:-1])
        for kind, f in (("i", mp.besseli), ("k", mp.besselk))
        for n in (0, 1)
    },
    **{f"i{n}e": _one(lambda x, n=n: mp.besseli(n, x) * mp.exp(-x), _X) for n in (0, 1)},
    **{f"k{n}e": _one(lambda x, n=n: mp.besselk(n, x) * mp.exp(x), _X) for n in (0, 1)},
    "jv": _one(mp.besselj, ORDERS, _X),
    "yv": _one(mp.bessely, ORDERS, _X),
    "iv": _one(mp.besseli, ORDERS, _X[:-1]),
    "kv": _one(mp.besselk, ORDERS, _X[:-1]),
    "jve": _one(mp.besselj, ORDERS, _X),
    "yve": _one(mp.bessely, ORDERS, _X),
    "ive": _one(lambda v, x: mp.besseli(v, x) * mp.exp(-x), ORDERS, _X),
    "kve": _one(lambda v, x: mp.besselk(v, x) * mp.exp(x), ORDERS, _X),
    "jn": _one(mp.besselj, ORDERS, _X),
    "yn": _one(mp.bessely, (0, 1, 25), _X),
    "kn": _one(mp.besselk, (0, 1, 25), _X[:-1]),
    "hankel1": _one(mp.hankel1, ORDERS[:4], _X[1:-1]),
    "hankel2": _one(mp.hankel2, ORDERS[:4], _X[1:-1]),
    "hankel1e": _one(lambda v, x: mp.hankel1(v, x) * mp.exp(-1j * x), ORDERS[:4], _X[1:-1]),
    "hankel2e": _one(lambda v, x: mp.hankel2(v, x) * mp.exp(1j * x), ORDERS[:4], _X[1:-1]),
    "jvp": _one(lambda v, x: (mp.besselj(v - 1, x) - mp.besselj(v + 1, x)) / 2, ORDERS[:4], _X[1:-1]),
    "yvp": _one(lambda v, x: (mp.bessely(v - 1, x) - mp.bessely(v + 1, x)) / 2, ORDERS[:4], _X[1:-1]),
    "ivp": _one(lambda v, x: (mp.besseli(v - 1, x) + mp.besseli(v + 1, x)) / 2, ORDERS[:4], _X[1:-1]),
    "kvp": _one(lambda v, x: -(mp.besselk(v - 1, x) + mp.besselk(v + 1, x)) / 2, ORDERS[:4], _X[1:-1]),
    "h1vp": _one(lambda v, x: (mp.hankel1(v - 1, x) - mp.hankel1(v + 1, x)) / 2, ORDERS[:4], _X[1:-1]),
    "h2vp": _one(lambda v, x: (mp.hankel2(v - 1, x) - mp.hankel2(v + 1, x)) / 2, ORDERS[:4], _X[1:-1]),
    "spherical_jn": _one(lambda n, x: mp.sqrt(mp.pi / 2 / x) * mp.besselj(n + _half(), x), _DEGREES, _X[1:]),
    "spherical_yn": _one(lambda n, x: mp.sqrt(mp.pi / 2 / x) * mp.bessely(n + _half(), x), _DEGREES, _X[1:]),
    "spherical_in": _one(lambda n, x: mp.sqrt(mp.pi / 2 / x) * mp.besseli(n + _half(), x), _DEGREES, _X[1:-1]),
    "spherical_kn": _one(lambda n, x: mp.sqrt(mp.pi / 2 / x) * mp.besselk(n + _half(), x), _DEGREES, _X[1:-1]),
    "airy": _one(
        lambda x: (mp.airyai(x), mp.airyai(x, derivative=1), mp.airybi(x), mp.airybi(x, derivative=1)),
        (-30.0, -7.3, -0.7, 1e-8, 0.4, 2.3, 7.5, 25.0),
    ),
    "airye": _one(_scaled_airy, (0.4, 2.3, 7.5, 25.0, 300.0)),
    "ber": _one(lambda x: mp.ber(0, x), _X[:-2]),
    "bei": _one(lambda x: mp.bei(0, x), _X[:-2]),
    "ker": _one(lambda x: mp.ker(0, x), _X[:-2]),
    "kei": _one(lambda x: mp.kei(0, x), _X[:-2]),
    # integrals
    "exp1": _one(mp.e1, _X[:-1]),
    "expi": _one(mp.ei, (-30.0, -0.7, *_X[:-1])),
    "expn": _one(mp.expint, (0, 1, 4, 60), _X[:-1]),
    "sici": _one(lambda x: (mp.si(x), mp.ci(x)), _X),
    "shichi": _one(lambda x: (mp.shi(x), mp.chi(x)), _X[:-1]),
    "fresnel": _one(lambda x: (mp.fresnels(x), mp.fresnelc(x)), _X[:-1]),
    "wofz": _one(lambda x: mp.exp(-x * x) * mp.erfc(-1j * x), _X[:6]),
    "spence": _one(lambda x: mp.polylog(2, 1 - x), (0.05, 0.4, 0.999, 1.001, 2.3, 7.5, 300.0)),
    "struve": _one(mp.struveh, (0, 1, 5), _X[:-2]),
    "modstruve": _one(mp.struvel, (0, 1, 5), _X[:-2]),
    "zeta": _one(mp.zeta, (1 + 1e-6, 1.3, 2.5, 8.0, 60.0), (0.05, 1.0, 2.6, 30.0)),
    "zetac": _one(lambda x: mp.zeta(x) - 1, (-7.3, -3.4, 0.3, 1.0001, 2.5, 30.0, 60.0)),
    "lambertw": _one(mp.lambertw, (-0.36, 1e-8, 0.4, 2.3, 7.5, 1e5)),
    "wrightomega": _one(lambda x: mp.lambertw(mp.exp(x)), (-30.0, -2.0, 0.3, 6.0, 300.0)),
    # elliptic
    "ellipk": _one(mp.ellipk, (-300.0, *INSIDE)),
    "ellipkm1": _one(lambda p: mp.ellipk(1 - p), (1e-300, 1e-8, 0.05, 0.5, 1.5)),
    "ellipe": _one(mp.ellipe, (-300.0, *INSIDE)),
    "ellipkinc": _one(mp.ellipf, (-0.4, 1e-8, 0.9, 5.0), INSIDE[:-1]),
    "ellipeinc": _one(mp.ellipe, (-0.4, 1e-8, 0.9, 5.0), INSIDE[:-1]),
    "ellipj": _one(
        lambda u, m: tuple(mp.ellipfun(k, u, m) for k in ("sn", "cn", "dn")), (-0.4, 0.9, 5.0), (0.05, 0.5, 0.95)
    ),
    "agm": _one(mp.agm, SOME, SOME),
    "elliprc": _one(mp.elliprc, (0.05, 0.7, 7.3), (0.06, 0.8, 30.0)),
    **{
        f"ellipr{kind}": _one(getattr(mp, f"ellipr{kind}"), (0.05, 0.7), (0.3, 30.0), (0.9, 3.1))
        for kind in ("d", "f", "g")
    },
    "elliprj": _one(mp.elliprj, (0.05, 0.7), (0.3, 30.0), (0.9, 3.1), (0.4, 7.5)),
    # hypergeometric
    "hyp0f1": _one(mp.hyp0f1, (0.5, 2.0, 25.5), (-30.0, -0.7, *_X[:-2]), by=[1]),
    "hyp1f1": _one(mp.hyp1f1, (0.7, 2.0, 30.5), (1.3, 3.0, 60.5), (-30.0, -0.7, 0.4, 7.5, 300.0), by=[2]),
    "hyp2f1": _one(mp.hyp2f1, (0.7, 2.0, 30.5), (1.3, 3.0, -7.3), (2.6, 4.0), (-30.0, -0.7, 0.1, 0.6, 0.95), by=[3]),
    "hyperu": _one(mp.hyperu, (0.7, 2.0), (1.3, 3.0), (0.4, 2.3, 7.5, 300.0), by=[2]),
    # polynomials
    "eval_legendre": _one(mp.legendre, _DEGREES, (-0.99, -0.7, 0.1, 0.6)),
    "eval_chebyt": _one(mp.chebyt, _DEGREES, (-0.99, -0.7, 0.1, 0.6, 1.5)),
    "eval_chebyu": _one(mp.chebyu, _DEGREES, (-0.99, -0.7, 0.1, 0.6, 1.5)),
    "eval_laguerre": _one(lambda n, x: mp.laguerre(n, 0, x), _DEGREES, (0.1, 2.3, 7.5)),
    "eval_hermite": _one(mp.hermite, _DEGREES, (-0.7, 0.1, 2.3)),
    "eval_jacobi": _one(mp.jacobi, _DEGREES, (1,), (2,), (-0.7, 0.1, 0.6)),
    "eval_gegenbauer": _one(mp.gegenbauer, _DEGREES, (2,), (-0.7, 0.1, 0.6)),
    "eval_genlaguerre": _one(mp.laguerre, _DEGREES, (2,), (0.1, 2.3, 7.5)),
}
"""References by name in ``special``. Degrees and other integers are not differentiated."""

# Families -------------------------------------------------------------------------------------------------------------


class Family(NamedTuple):
    """A family of distributions in standard form.

    Attributes:
        density, lower, upper: functions of mpmath numbers: the position and the shapes; ``upper`` defaults to 1 -
            ``lower``.
        shapes: the shape parameters to test.
    """

    density: Callable
    lower: Callable
    upper: Callable | None
    shapes: Sequence[Sequence[float]]

    def log_and_tails(self, *xs):
        """Return the values of the :data:`METHODS` at a point."""
        f, lower = self.density(*xs), self.lower(*xs)
        upper = 1 - lower if self.upper is None else self.upper(*xs)
        return f, mp.log(f), lower, upper, mp.log(lower), mp.log(upper)


METHODS = ("pdf", "logpdf", "cdf", "sf", "logcdf", "logsf")
"""Names of the results of :meth:`Family.log_and_tails`; discrete families have ``pmf`` and ``logpmf`` first."""


def _normal(x):
    return mp.npdf(x)


def _by_hazard(hazard: Callable, density: Callable):
    """Return density and tails from a cumulative hazard."""
    return density, lambda *xs: -mp.expm1(-hazard(*xs)), lambda *xs: mp.exp(-hazard(*xs))


def _genpareto_hazard(x, c):
    return mp.log1p(c * x) / c


def _extreme(x, c):
    return mp.log1p(-c * x) / c


def _concentrated(t, k):
    return mp.exp(k * (mp.cos(t) - 1)) / (2 * mp.pi * mp.besseli(0, k) * mp.exp(-k))


def _gauss_tail(x, mu):
    root = mp.sqrt(x)
    return mp.ncdf(-(x / mu - 1) / root) - mp.exp(2 / mu) * mp.ncdf(-(x / mu + 1) / root)


def _skew_density(x, a):
    return 2 * _normal(x) * mp.ncdf(a * x)


def _skew_above(x, a):
    """Upper tail by Owen's function, or by integration where that cancels: `quad` stops at an absolute error."""
    if a * x > -1:
        return mp.ncdf(-x) + 2 * _owens_t(x, a)
    first, cuts = _skew_density(x, a), [x + k / (x + 1) for k in (0, 2, 8, 24, 72, 200)]
    return first * mp.quad(lambda t: _skew_density(t, a) / first, cuts)


def _ones(values) -> list[tuple]:
    return [(x,) for x in values]


_gamma = (
    lambda x, a: mp.exp((a - 1) * mp.log(x) - x - mp.loggamma(a)),
    lambda x, a: lower_gamma(a, x),
    lambda x, a: upper_gamma(a, x),
)
_loguniform = (
    lambda x, a, b: 1 / (x * mp.log(b / a)),
    lambda x, a, b: mp.log(x / a) / mp.log(b / a),
    lambda x, a, b: mp.log(b / x) / mp.log(b / a),
    [(0.7, 4.0), (1e-8, 1e8)],
)
_MANY = _ones((1e-3, 0.05, 0.7, 7.3, 300.0, 1e5, 1e8))
_FEW = _ones((0.05, 0.7, 3.3, 30.0))
_PAIRS = [(0.05, 0.7), (0.7, 7.3), (7.3, 300.0), (300.0, 0.05), (1e5, 30.0), (1e8, 3.3)]

CONTINUOUS: dict[str, Family] = {
    "norm": Family(_normal, mp.ncdf, lambda x: mp.ncdf(-x), [()]),
    "lognorm": Family(
        lambda x, s: _normal(mp.log(x) / s) / (x * s),
        lambda x, s: mp.ncdf(mp.log(x) / s),
        lambda x, s: mp.ncdf(-mp.log(x) / s),
        _ones((1e-3, 0.05, 0.7, 7.3)),
    ),
    "halfnorm": Family(
        lambda x: 2 * _normal(x), lambda x: mp.erf(x / mp.sqrt(2)), lambda x: mp.erfc(x / mp.sqrt(2)), [()]
    ),
    "cauchy": Family(
        lambda x: 1 / (mp.pi * (1 + x * x)),
        lambda x: mp.atan2(1, -x) / mp.pi,
        lambda x: mp.atan2(1, x) / mp.pi,
        [()],
    ),
    "halfcauchy": Family(
        lambda x: 2 / (mp.pi * (1 + x * x)),
        lambda x: 2 * mp.atan(x) / mp.pi,
        lambda x: 2 * mp.atan(1 / x) / mp.pi,
        [()],
    ),
    "logistic": Family(
        lambda x: 1 / (2 + mp.exp(x) + mp.exp(-x)), lambda x: 1 / (1 + mp.exp(-x)), lambda x: 1 / (1 + mp.exp(x)), [()]
    ),
    "laplace": Family(
        lambda x: mp.exp(-abs(x)) / 2,
        lambda x: mp.exp(x) / 2 if x < 0 else 1 - mp.exp(-x) / 2,
        lambda x: mp.exp(-x) / 2 if x > 0 else 1 - mp.exp(x) / 2,
        [()],
    ),
    "gumbel_r": Family(
        lambda x: mp.exp(-x - mp.exp(-x)), lambda x: mp.exp(-mp.exp(-x)), lambda x: -mp.expm1(-mp.exp(-x)), [()]
    ),
    "gumbel_l": Family(
        lambda x: mp.exp(x - mp.exp(x)), lambda x: -mp.expm1(-mp.exp(x)), lambda x: mp.exp(-mp.exp(x)), [()]
    ),
    "uniform": Family(lambda x: 1 + 0 * x, lambda x: x, lambda x: 1 - x, [()]),
    "gamma": Family(*_gamma, _MANY),
    "erlang": Family(*_gamma, _MANY),
    "chi2": Family(
        lambda x, v: _gamma[0](x / 2, v / 2) / 2,
        lambda x, v: lower_gamma(v / 2, x / 2),
        lambda x, v: upper_gamma(v / 2, x / 2),
        _MANY,
    ),
    "invgamma": Family(
        lambda x, a: _gamma[0](1 / x, a) / x**2,
        lambda x, a: upper_gamma(a, 1 / x),
        lambda x, a: lower_gamma(a, 1 / x),
        _MANY,
    ),
    "gennorm": Family(
        lambda x, b: b / 2 * mp.exp(-(abs(x) ** b) - mp.loggamma(1 / b)),
        lambda x, b: upper_gamma(1 / b, (-x) ** b) / 2 if x < 0 else 1 - upper_gamma(1 / b, x**b) / 2,
        lambda x, b: upper_gamma(1 / b, x**b) / 2 if x > 0 else 1 - upper_gamma(1 / b, (-x) ** b) / 2,
        _ones((0.3, 0.7, 2.0, 7.3, 30.0)),
    ),
    "beta": Family(
        lambda x, a, b: mp.exp((a - 1) * mp.log(x) + (b - 1) * mp.log1p(-x) - _log_beta(a, b)),
        lambda x, a, b: lower_beta(a, b, x),
        lambda x, a, b: upper_beta(a, b, x),
        _PAIRS,
    ),
    "t": Family(
        lambda x, v: mp.exp(-_log_beta(v / 2, _half()) - mp.log(v) / 2 - (v + 1) / 2 * mp.log1p(x * x / v)),
        lambda x, v: lower_t(v, x),
        lambda x, v: lower_t(v, -x),
        _MANY,
    ),
    "f": Family(
        lambda x, m, n: mp.exp(
            m / 2 * mp.log(m * x / (m * x + n)) + n / 2 * mp.log(n / (m * x + n)) - mp.log(x) - _log_beta(m / 2, n / 2)
        ),
        lambda x, m, n: lower_f(m, n, x),
        lambda x, m, n: upper_f(m, n, x),
        _PAIRS,
    ),
    "expon": Family(*_by_hazard(lambda x: x, lambda x: mp.exp(-x)), [()]),
    "rayleigh": Family(*_by_hazard(lambda x: x * x / 2, lambda x: x * mp.exp(-x * x / 2)), [()]),
    "weibull_min": Family(*_by_hazard(lambda x, c: x**c, lambda x, c: c * x ** (c - 1) * mp.exp(-(x**c))), _FEW),
    "exponweib": Family(
        lambda x, a, c: a * c * x ** (c - 1) * mp.exp(-(x**c)) * (-mp.expm1(-(x**c))) ** (a - 1),
        lambda x, a, c: (-mp.expm1(-(x**c))) ** a,
        lambda x, a, c: -mp.expm1(a * mp.log(-mp.expm1(-(x**c)))),
        [(0.05, 0.7), (1.9, 1.3), (300.0, 7.3)],
    ),
    "pareto": Family(*_by_hazard(lambda x, b: b * mp.log(x), lambda x, b: b * x ** (-b - 1)), _FEW),
    "genpareto": Family(
        *_by_hazard(_genpareto_hazard, lambda x, c: mp.exp(-_genpareto_hazard(x, c) - mp.log1p(c * x))),
        _ones((-0.7, -1e-8, 1e-300, 1e-8, 1e-3, 0.7, 7.3)),
    ),
    "genextreme": Family(
        lambda x, c: mp.exp(_extreme(x, c) - mp.log1p(-c * x) - mp.exp(_extreme(x, c))),
        lambda x, c: mp.exp(-mp.exp(_extreme(x, c))),
        lambda x, c: -mp.expm1(-mp.exp(_extreme(x, c))),
        _ones((-7.3, -0.7, -1e-8, 1e-8, 1e-3, 0.7)),
    ),
    "loguniform": Family(*_loguniform),
    "reciprocal": Family(*_loguniform),
    "exponnorm": Family(
        lambda x, k: mp.exp(1 / (2 * k * k) - x / k) * mp.ncdf(x - 1 / k) / k,
        lambda x, k: mp.ncdf(x) - mp.exp(1 / (2 * k * k) - x / k) * mp.ncdf(x - 1 / k),
        lambda x, k: mp.ncdf(-x) + mp.exp(1 / (2 * k * k) - x / k) * mp.ncdf(x - 1 / k),
        _ones((0.05, 0.7, 3.3, 30.0)),
    ),
    "invgauss": Family(
        lambda x, mu: mp.exp(-((x / mu - 1) ** 2) / (2 * x)) / mp.sqrt(2 * mp.pi * x**3),
        lambda x, mu: mp.ncdf((x / mu - 1) / mp.sqrt(x)) + mp.exp(2 / mu) * mp.ncdf(-(x / mu + 1) / mp.sqrt(x)),
        _gauss_tail,
        _ones((0.05, 0.7, 3.3, 300.0)),
    ),
    "skewnorm": Family(
        _skew_density,
        lambda x, a: _skew_above(-x, -a) if x < 0 else 1 - _skew_above(x, a),
        lambda x, a: 1 - _skew_above(-x, -a) if x < 0 else _skew_above(x, a),
        _ones((-0.7, 0.05, 3.3)),
    ),
    "truncnorm": Family(
        lambda x, a, b: _normal(x) / (mp.ncdf(b) - mp.ncdf(a)),
        lambda x, a, b: (mp.ncdf(x) - mp.ncdf(a)) / (mp.ncdf(b) - mp.ncdf(a)),
        lambda x, a, b: (mp.ncdf(-x) - mp.ncdf(-b)) / (mp.ncdf(b) - mp.ncdf(a)),
        [(-40.0, -30.0), (-0.9, 1.7), (5.0, 30.0), (-10.0, 0.05)],
    ),
    **dict.fromkeys(
        ("vonmises", "vonmises_line"),
        Family(
            _concentrated,
            lambda x, k: mp.quad(lambda t: _concentrated(t, k), [-mp.pi, (x - mp.pi) / 2, x]),
            lambda x, k: mp.quad(lambda t: _concentrated(t, k), [x, (x + mp.pi) / 2, mp.pi]),
            _ones((0.05, 3.3, 30.0)),
        ),
    ),
    "wrapcauchy": Family(
        lambda x, c: (1 - c * c) / (2 * mp.pi * (1 + c * c - 2 * c * mp.cos(x))),
        lambda x, c: mp.atan((1 + c) / (1 - c) * mp.tan(x / 2)) / mp.pi + (x > mp.pi),
        None,
        _ones((0.05, 0.4, 0.999)),
    ),
}

PROBABILITY = {
    "bernoulli": lambda k, p: p if k == 1 else 1 - p,
    "betabinom": lambda k, n, a, b: mp.binomial(n, k) * mp.beta(k + a, n - k + b) / mp.beta(a, b),
    "betanbinom": lambda k, n, a, b: mp.binomial(n + k - 1, k) * mp.beta(a + n, b + k) / mp.beta(a, b),
    "binom": lambda k, n, p: mp.binomial(n, k) * p**k * (1 - p) ** (n - k),
    "boltzmann": lambda k, t, n: (1 - mp.exp(-t)) * mp.exp(-t * k) / (1 - mp.exp(-t * n)),
    "dlaplace": lambda k, a: mp.tanh(a / 2) * mp.exp(-a * abs(k)),
    "geom": lambda k, p: (1 - p) ** (k - 1) * p,
    "hypergeom": lambda k, m, n, d: mp.binomial(n, k) * mp.binomial(m - n, d - k) / mp.binomial(m, d),
    "logser": lambda k, p: -(p**k) / k / mp.log(1 - p),
    "nbinom": lambda k, n, p: mp.gamma(n + k) / mp.gamma(n) / mp.factorial(k) * p**n * (1 - p) ** k,
    "planck": lambda k, t: (1 - mp.exp(-t)) * mp.exp(-t * k),
    "poisson": lambda k, mu: mu**k * mp.exp(-mu) / mp.factorial(k),
    "randint": lambda k, low, high: 1 / (high - low),
    "skellam": lambda k, m, n: mp.exp(-m - n) * (m / n) ** (mp.mpf(k) / 2) * mp.besseli(abs(k), 2 * mp.sqrt(m * n)),
    "zipf": lambda k, a: mp.mpf(k) ** -a / mp.zeta(a),
    "zipfian": lambda k, a, n: mp.mpf(k) ** -a / sum(mp.mpf(j) ** -a for j in range(1, int(n) + 1)),
}
"""References of discrete families."""


def _sum(name: str):
    """Return the lower tail of a discrete family as a sum from the start of its support."""

    def lower(k, *shapes):
        first = {
            "skellam": -150,
            "dlaplace": -400,
            "randint": shapes[0],
            **dict.fromkeys(("geom", "logser", "zipf", "zipfian"), 1),
        }
        start = int(first.get(name, max(0, shapes[2] + shapes[1] - shapes[0]) if name == "hypergeom" else 0))
        return mp.fsum(PROBABILITY[name](j, *shapes) for j in range(start, int(k) + 1))

    return lower


_LOWER = {
    "poisson": (lambda k, mu: upper_gamma(k + 1, mu), lambda k, mu: lower_gamma(k + 1, mu)),
    "binom": (lambda k, n, p: upper_beta(k + 1, n - k, p), lambda k, n, p: lower_beta(k + 1, n - k, p)),
    "nbinom": (lambda k, n, p: lower_beta(n, k + 1, p), lambda k, n, p: upper_beta(n, k + 1, p)),
    "randint": (lambda k, low, high: (k + 1 - low) / (high - low), lambda k, low, high: (high - k - 1) / (high - low)),
    "geom": (lambda k, p: -mp.expm1(k * mp.log1p(-p)), lambda k, p: (1 - p) ** k),
    "planck": (lambda k, t: -mp.expm1(-t * (k + 1)), lambda k, t: mp.exp(-t * (k + 1))),
    "zipf": (lambda k, a: 1 - mp.zeta(a, k + 1) / mp.zeta(a), lambda k, a: mp.zeta(a, k + 1) / mp.zeta(a)),
}
_SHAPES = {
    "bernoulli": [(1e-10,), (0.3,)],
    "betabinom": [(12, 1.7, 2.3), (50, 1e-3, 0.1), (30, 1e5, 3e5)],
    "betanbinom": [(4, 6.5, 2.3), (7, 2.5, 0.05)],
    "binom": [(12, 0.3), (1000, 0.01), (100, 1e-9), (10**8, 1e-7)],
    "boltzmann": [(0.3, 15), (1e-9, 30)],
    "dlaplace": [(0.3,), (3.3,)],
    "geom": [(1e-8,), (0.3,), (0.999,)],
    "hypergeom": [(40, 17, 12), (1000, 500, 300)],
    "logser": [(0.01,), (0.7,), (0.999,)],
    "nbinom": [(3.7, 0.3), (0.01, 0.3), (1e7, 1 - 1e-6)],
    "planck": [(1e-8,), (0.3,), (7.3,)],
    "poisson": [(1e-8,), (1e-3,), (0.7,), (60.0,), (1e5,), (1e8,)],
    "randint": [(-3, 9)],
    "skellam": [(0.01, 1e-6), (4.7, 2.3), (20.0, 30.0)],
    "zipf": [(1.3,), (5.5,)],
    "zipfian": [(0.0, 50), (1.3, 60)],
}
COUNTS = {
    name: Family(PROBABILITY[name], *_LOWER.get(name, (_sum(name), None)), shapes) for name, shapes in _SHAPES.items()
}

# Many digits ----------------------------------------------------------------------------------------------------------


class Late(Exception):
    """Raised when a reference takes too long."""


@contextlib.contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Run a block that raises :class:`Late` after ``seconds`` of processor time; main thread only."""

    def late(*_):
        raise Late

    previous = signal.signal(signal.SIGVTALRM, late)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds, 0.2)  # again, as callbacks swallow exceptions
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, previous)


class Result(NamedTuple):
    """One real result of a function at a point.

    Attributes:
        slopes, curvatures: first and second derivatives with respect to each differentiated argument.
    """

    value: float
    slopes: tuple[float, ...]
    curvatures: tuple[float, ...]


def _real(results) -> list:
    """Return the real numbers that make up a function's results."""
    results = list(results) if isinstance(results, (tuple, list)) else [results]
    return [part for y in results for part in ((y.real, y.imag) if isinstance(y, mpmath.mpc) else (mp.mpf(y),))]


def _with_slopes(exact: Callable, point: Sequence, by: Sequence[int]) -> list:
    """Return the numbers of :class:`Result` in a row, by central differences with a third of the digits."""
    xs = [x if isinstance(x, int) else mp.mpf(x) for x in point]
    middle, slopes, curvatures = _real(exact(*xs)), [], []
    for i in by:
        step = (abs(xs[i]) or 1) * mp.mpf(10) ** (-mp.dps // 3)
        up, down = [_real(exact(*xs[:i], xs[i] + h, *xs[i + 1 :])) for h in (step, -step)]
        slopes.append([(u - d) / (2 * step) for u, d in zip(up, down)])
        curvatures.append([(u - 2 * m + d) / step**2 for u, m, d in zip(up, middle, down)])
    return [middle, *slopes, *curvatures]


def _of_inverse(exact: Callable, point: Sequence, by: Sequence[int], place: int, start: float) -> list:
    """Return value and slopes of the inverse, by Newton's method on logarithms from ``start``; no curvatures."""
    xs = [x if isinstance(x, int) else mp.mpf(x) for x in point]
    target, x = xs[place], mp.mpf(start)
    for _ in range(60):
        xs[place] = x
        (value,), (slope,), _ = _with_slopes(exact, xs, [place])
        if value * target > 0 and abs(value / target - 1) > 1e-3:
            step = (mp.log(value) - mp.log(target)) * value / slope
        else:
            step = (value - target) / slope
        x -= mp.sign(step) * min(abs(step), abs(x) / 2) if abs(step) > abs(x) * 1e-6 and x else step
        if abs(step) <= abs(x) * mp.mpf(10) ** (-mp.dps // 4):
            break
    else:
        raise ArithmeticError("Newton's method did not converge")
    xs[place] = x
    found = _with_slopes(exact, xs, sorted({*by, place}))[1 : 2 + len({*by, place})]
    slopes = dict(zip(sorted({*by, place}), (row[0] for row in found)))
    by_target = 1 / slopes[place]
    return [[x], *[[by_target if i == place else -slopes[i] * by_target] for i in by], *[[mp.mpf(0)]] * len(by)]


def exactly(
    exact: Callable, point: Sequence, by: Sequence[int], inverse: int | None = None, start: float = 0.0
) -> list[Result]:
    """Return results with slopes with respect to the arguments ``by``, with enough digits that two computations agree.

    Args:
        inverse, start: the position of the argument to solve for and a starting value; ``point`` holds the value of
            the function at that position.

    Raises:
        ArithmeticError: two computations disagree even with 400 digits.
    """
    before = None
    for digits in (45, 90, 400):
        with mp.workdps(digits):
            try:
                rows = (
                    _with_slopes(exact, point, by) if inverse is None else _of_inverse(exact, point, by, inverse, start)
                )
            except (ZeroDivisionError, ValueError):
                if digits == 400:
                    raise ArithmeticError("the result is not a number") from None
                continue
            firm = rows[: 1 + len(by)]
            if before is not None and all(
                abs(new - old) <= 1e-16 * abs(new) for one, two in zip(firm, before) for new, old in zip(one, two)
            ):
                each = zip(*rows)
                n = len(by)
                return [Result(float(y), tuple(map(float, s[:n])), tuple(map(float, s[n:]))) for y, *s in each]
            before = firm
    raise ArithmeticError("the computations disagree with 400 digits")
