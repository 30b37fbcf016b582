"""Digits of functions that SciPy's own kernels lose, by the references that docs/digits.md is made with."""

from __future__ import annotations

import pathlib
import re
import sys

import numpy as np
import pytest

pytest.importorskip("mpmath")
TOOLS = pathlib.Path(__file__).parents[2] / "tools"
sys.path.insert(0, str(TOOLS))
if not (TOOLS / "digits.py").exists():
    pytest.skip("the tools are not part of the source distribution", allow_module_level=True)

import digits  # noqa: E402
import exact  # noqa: E402

from gradops.scipy import special, stats  # noqa: E402
from gradops.scipy.stats._family import Distribution  # noqa: E402

AT_AIM = "beta betaln binom powm1 gammainc gammaincc chdtr chdtrc stdtrit logit ndtri log_ndtr boxcox".split()


@pytest.mark.parametrize("name", AT_AIM)
@pytest.mark.filterwarnings("ignore")
def test_values_and_slopes_have_their_digits(name, monkeypatch):
    """Ten times the aim: a number may be another in its last digits on another machine."""
    monkeypatch.setattr(digits, "BACKENDS", ("numpy",))
    with np.errstate(all="ignore"):
        row = digits.special_row(name, 10)
    assert row.count >= 6 and row.at[0] < 10, row.at


@pytest.mark.filterwarnings("ignore")
def test_scipys_kernels_are_mended():
    """Large shapes far in the tail, whole shapes, the neighbourhood of the median."""
    for own, reference, point in (
        (special.gammainc, exact.lower_gamma, (1e8, 9.9944e7)),
        (special.gammaincc, exact.upper_gamma, (2e6, 2.01e6)),
        (special.betainc, exact.lower_beta, (9.0, 1e8 - 8, 1e-7)),
        (special.stdtr, exact.lower_t, (3.3, float(special.stdtrit(3.3, 0.5 - 1e-9)))),
    ):
        (want,) = exact.exactly(reference, point, [])
        np.testing.assert_allclose(own(*point), want.value, 1e-12)


@pytest.mark.repository
def test_each_reference_and_each_family_is_on_the_page():
    text = digits.PAGE.read_text()
    known = [*exact.SPECIAL, *exact.CONTINUOUS, *exact.COUNTS]
    assert sorted(re.findall(r"^\| `(\w+)` \|", text, re.M)) == sorted(known)
    families = {name for name in stats.__all__ if isinstance(getattr(stats, name), Distribution)}
    assert not [name for name in families if f"`{name}`" not in text]
