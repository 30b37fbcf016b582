"""Accuracy where SciPy's kernels lose digits, against the references used for docs/digits.md."""

from __future__ import annotations

import pathlib
import sys

import numpy as np
import pytest

mpmath = pytest.importorskip("mpmath")
TOOLS = pathlib.Path(__file__).parents[2] / "tools"
sys.path.insert(0, str(TOOLS))
if not (TOOLS / "digits.py").exists():
    pytest.skip("the tools are not part of the source distribution", allow_module_level=True)

import digits  # noqa: E402
import exact  # noqa: E402

import gradops  # noqa: E402
from gradops.scipy import special, stats  # noqa: E402
from gradops.scipy.stats.distributions._family import Distribution  # noqa: E402

AT_AIM = (
    "beta betaln binom powm1 gammainc gammaincc chdtr chdtrc stdtrit logit ndtri log_ndtr boxcox inv_boxcox hyp0f1"
    " voigt_profile"
).split()


@pytest.mark.parametrize("name", AT_AIM)
@pytest.mark.filterwarnings("ignore")
def test_values_and_slopes_reach_their_digits(name, monkeypatch):
    """The tolerance is ten times the aim, since last digits differ between machines."""
    monkeypatch.setattr(digits, "BACKENDS", ("numpy",))
    with np.errstate(all="ignore"):
        row = digits.special_row(name, 10)
    assert row.count >= 6 and row.at[0] < 10, row.at


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
def test_corrected_scipy_kernels():
    """Large shapes far in the tail, integer shapes, and the neighbourhood of the median."""
    for own, reference, point in (
        (special.gammainc, exact.lower_gamma, (1e8, 9.9944e7)),
        (special.gammaincc, exact.upper_gamma, (2e6, 2.01e6)),
        (special.betainc, exact.lower_beta, (9.0, 1e8 - 8, 1e-7)),
        (special.stdtr, exact.lower_t, (3.3, float(special.stdtrit(3.3, 0.5 - 1e-9)))),
        (special.stdtr, exact.lower_t, (1e5, -30.0)),
        (special.expn, mpmath.expint, (60.0, 30.0)),
        (special.ker, lambda x: mpmath.ker(0, x), (10.0,)),
        (special.keip, lambda x: mpmath.diff(lambda x: mpmath.kei(0, x), x), (10.0,)),
        (special.inv_boxcox1p, lambda v, lmbda: mpmath.expm1(mpmath.log1p(lmbda * v) / lmbda), (3.0, 1e-300)),
        (special.nctdtr, _normal_above_chi, (1e8, 1e5, 99992.0)),
    ):
        (want,) = exact.exactly(reference, point, [])
        np.testing.assert_allclose(own(*point), want.value, 1e-12)


def _normal_above_chi(df, nc, t):
    """Return the noncentral t distribution function as a mean over the chi distribution."""

    def part(s):
        return mpmath.exp(df * mpmath.log(s) - df * (s * s - 1) / 2) / s * mpmath.ncdf(t * s - nc)

    scale = mpmath.log(2) + df / 2 * mpmath.log(df / 2) - mpmath.loggamma(df / 2) - df / 2
    width = 1 / mpmath.sqrt(2 * df)
    places = sorted([*(1 + k * width for k in range(-14, 15)), *((nc + k) / t for k in range(-9, 10, 2))])
    return mpmath.exp(scale) * mpmath.quad(part, places)


def _slope(function, at):
    return float(gradops.grad(function)(at))


def _extreme_slope(q, c):
    """Return the derivative of ``(1 - (-log(q))**c) / c``."""
    with mpmath.workdps(60):
        return float((-mpmath.log(q)) ** (mpmath.mpf(c) - 1) / q)


def test_slopes_where_values_saturate():
    """Quantiles that round to an end point, densities that overflow or underflow, and sums that round to 1."""
    with mpmath.workdps(60):
        want = float(mpmath.diff(lambda a: -mpmath.zeta(a, 500_001) / mpmath.zeta(a), 5.5))
        by_order = float(mpmath.diff(lambda v: mpmath.besseli(v, 30), 0))
        density = float(mpmath.npdf(-40) / (mpmath.ncdf(-30) - mpmath.ncdf(-40)))
    (of_shape,) = exact.exactly(exact.lower_beta, (300.0, 0.05, 0.7), [0], 2, float(stats.beta.ppf(0.7, 300.0, 0.05)))
    np.testing.assert_allclose(_slope(lambda a: stats.beta.ppf(0.7, a, 0.05), 300.0), of_shape.slopes[0], 1e-11)
    (of_many,) = exact.exactly(exact.lower_t, (1e8, -1.5), [0])
    np.testing.assert_allclose(_slope(lambda df: special.stdtr(df, -1.5), 1e8), of_many.slopes[0], 1e-11)
    np.testing.assert_allclose(
        _slope(lambda q: stats.genextreme.ppf(q, -7.3), 1e-20), _extreme_slope(1e-20, -7.3), 1e-12
    )
    np.testing.assert_allclose(_slope(lambda a: stats.zipf.cdf(500_000.0, a), 5.5), want, 1e-11)
    np.testing.assert_allclose(_slope(lambda v: special.iv(v, 30.0), 0.0), by_order, 1e-11)
    np.testing.assert_allclose(_slope(lambda q: stats.truncnorm.ppf(q, -40.0, -30.0), 1e-300), 1 / density, 1e-11)
    np.testing.assert_allclose(_slope(lambda q: stats.truncnorm.isf(q, 30.0, 40.0), 1e-300), -1 / density, 1e-11)
    assert _slope(lambda a: stats.truncnorm.ppf(1e-300, a, -30.0), -40.0) == 1

    def by_distance(df):  # t**-df times a constant dominates the tail there
        constant = mpmath.gamma((df + 1) / 2) / mpmath.sqrt(mpmath.pi) / mpmath.gamma(df / 2) * df ** (df / 2 - 1)
        return -((constant / mpmath.mpf(1e-300)) ** (1 / df))

    with mpmath.workdps(60):
        want = float(mpmath.diff(by_distance, 7.3))
    np.testing.assert_allclose(_slope(lambda df: special.stdtrit(df, 1e-300), 7.3), want, 1e-9)
    np.testing.assert_allclose(_slope(lambda df: stats.t.ppf(1e-300, df), 7.3), want, 1e-9)


@pytest.mark.repository
def test_page_lists_every_reference_and_family():
    text = digits.PAGE.read_text()
    for key, known in (("special", exact.SPECIAL), ("stats", exact.CONTINUOUS | exact.COUNTS)):
        if stale := digits.table(key)[1].keys() ^ known.keys():
            pytest.fail(f"run tools/digits.py {' '.join(sorted(stale))}")
    families = {name for name in stats.__all__ if isinstance(getattr(stats, name), Distribution)}
    if missing := [name for name in families if f"`{name}`" not in text]:
        pytest.fail(f"add the formulas of {', '.join(missing)} to tests/python/exact.py")


@pytest.mark.parametrize("p", [1e-9, 0.5, 1 - 1e-9])
def test_quantiles_of_large_shapes_match_the_other_tail(p):
    """Covers probabilities near 1, where SciPy's quantiles lose digits."""
    a = np.array([1e5, 1e6, 1e8])
    np.testing.assert_allclose(special.gammaincinv(a, p), special.gammainccinv(a, 1 - p), 1e-10)
    np.testing.assert_allclose(special.gammaincc(a, special.gammainccinv(a, p)), p, 1e-8)
