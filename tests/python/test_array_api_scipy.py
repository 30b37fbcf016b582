"""SciPy and scikit-learn functions written to the array API standard differentiate through gradops' arrays."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys

import pytest
import scipy

VERSION = tuple(map(int, scipy.__version__.split(".")[:2]))


@pytest.fixture(scope="module")
def found() -> dict:
    """Return the derivative of each function and its finite difference, or its error."""
    if VERSION < (1, 17):
        pytest.skip("an earlier SciPy has fewer functions that are written to the standard")
    file = pathlib.Path(__file__).with_name("scipy_array_api.py")
    run = subprocess.run([sys.executable, str(file)], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def check(found: dict) -> None:
    wrong = {name: f for name, f in found.items() if isinstance(f, str) or f[0] != pytest.approx(f[1], 1e-5, 1e-8)}
    assert not wrong


def test_scipy_functions_differentiate(found):
    refused = found["signal.detrend"]
    assert "requires a gradient" in refused and "`gradops.scipy.signal.detrend` keeps" in refused
    check({name: f for name, f in found.items() if not name.startswith("sklearn") and name != "signal.detrend"})


def test_scikit_learn_functions_differentiate(found):
    pytest.importorskip("sklearn")
    learned = {name: f for name, f in found.items() if name.startswith("sklearn")}
    assert len(learned) == 5
    check(learned)
