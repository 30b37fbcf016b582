"""Each public name of SciPy's modules: covered, or refused with a reason; more are covered than by ``jax.scipy``."""

import importlib
import types

import numpy as np
import pytest
from scipy_checks import modules

from gradops.scipy import _names


def scipys(module: str) -> set[str]:
    """The functions and classes that a module of SciPy shows."""
    found = importlib.import_module(f"scipy.{module}")
    return {
        name
        for name in getattr(found, "__all__", dir(found))
        if not name.startswith("_") and not isinstance(getattr(found, name, None), types.ModuleType)
    } - {"test"}


@pytest.mark.parametrize("module", modules())
def test_each_name_is_covered_or_refused(module):
    ours = importlib.import_module(f"gradops.scipy.{module}")
    refused = set(_names.REFUSED[ours.__name__])
    assert scipys(module) - set(ours.__all__) - refused == set()
    assert refused & set(ours.__all__) == set()


@pytest.mark.parametrize("module", modules())
def test_more_is_covered_than_by_jax(module):
    pytest.importorskip("jax")
    try:
        theirs = importlib.import_module(f"jax.scipy.{module}")
    except ImportError:
        return
    names = {name for name in dir(theirs) if not name.startswith("_")} & scipys(module)
    lacking = names - set(importlib.import_module(f"gradops.scipy.{module}").__all__)
    assert lacking == set()


LISTS = [2.0, 3.0, 5.0], [[2.0, 1.0], [1.0, 3.0]]
NUMBERS = (3.0,), (0.3,), (1, 0.3), (1.5, 0.3), (2.0, 0.3, 0.4), (1, 2, 0.3), (2.0, 3.0, 0.4, 0.5)
CALLS = (*NUMBERS, (LISTS[0],), (LISTS[0], [1.0, 2.0, 4.0]), (LISTS[1],))


def without_dimensions(results) -> list[bool]:
    """Of a result, or of each of several, True for an array that is no number."""
    parts = results if isinstance(results, (list, tuple)) else [results]
    return [isinstance(part, np.ndarray) and not part.ndim for part in parts]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("module", modules())
def test_where_scipy_gives_a_number_an_array_without_dimensions_is_none(module):
    ours, theirs = (importlib.import_module(f"{package}.{module}") for package in ("gradops.scipy", "scipy"))
    wrong, seen = [], 0
    for name in ours.__all__:
        own, scipys, calls = getattr(ours, name), getattr(theirs, name, None), CALLS
        if hasattr(own, "pdf"):
            own, scipys, calls = own.pdf, getattr(scipys, "pdf", None), NUMBERS
        for given in calls:
            try:
                expected, got = scipys(*given), own(*given)
            except Exception:  # a function of something else
                continue
            seen += 1
            if any(a and not b for a, b in zip(without_dimensions(got), without_dimensions(expected))):
                wrong.append((name, given))
    assert wrong == []
    assert seen or module in ("optimize", "sparse", "sparse.linalg")
    if module == "stats":
        assert type(ours.uniform.ppf(0.3)) is type(ours.norm.cdf(0.3)) is type(ours.gamma.mean(2)) is np.float64
