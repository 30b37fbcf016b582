"""Each public name of SciPy's modules is covered, or refused with a reason; coverage exceeds ``jax.scipy``."""

import importlib
import pathlib
import pkgutil

import numpy as np
import pytest
from scipy_checks import modules, scipys

from gradops.scipy import _names

pytestmark = pytest.mark.documents


@pytest.mark.parametrize("module", modules())
def test_each_name_is_covered_or_refused(module):
    ours = importlib.import_module(f"gradops.scipy.{module}")
    refused = set(_names.REFUSED[ours.__name__])
    assert scipys(module) - set(ours.__all__) - refused == set()
    assert refused & set(ours.__all__) == set()


@pytest.mark.parametrize("module", modules())
def test_the_tables_of_places_name_all_that_the_modules_define(module):
    ours = importlib.import_module(f"gradops.scipy.{module}")
    places = getattr(ours, "_PLACES", {})
    for place in set(places.values()):
        below = importlib.import_module(f"{ours.__name__}.{place}")
        assert sorted(below.__all__) == sorted(name for name in places if places[name] == place)
    if places:
        found = {info.name for info in pkgutil.iter_modules(ours.__path__) if info.name[0] != "_"}
        assert found - {place.partition(".")[0] for place in places.values()} <= set(ours.__all__)


TOOLS = pathlib.Path(__file__).parents[2] / "tools"


@pytest.mark.skipif(not (TOOLS / "scipy_table.py").exists(), reason="the tools are not part of the source distribution")
@pytest.mark.parametrize("package", ["jax", "autograd"])
def test_more_is_covered_than_by_other_libraries(package, monkeypatch):
    pytest.importorskip("jax")
    pytest.importorskip("autograd")
    monkeypatch.syspath_prepend(str(TOOLS))
    scipy_table = importlib.import_module("scipy_table")
    for module in modules():
        names = scipy_table.others(f"{package}.scipy", module)
        ours = set(importlib.import_module(f"gradops.scipy.{module}").__all__) & scipys(module)
        assert names - ours == set()
        assert len(ours) > len(names), module
    if f"of {scipy_table.VERSIONS}," in (shown := scipy_table.PAGE.read_text()):
        assert shown == scipy_table.page(), "run tools/scipy_table.py"


LISTS = [2.0, 3.0, 5.0], [[2.0, 1.0], [1.0, 3.0]]
NUMBERS = (3.0,), (0.3,), (1, 0.3), (1.5, 0.3), (2.0, 0.3, 0.4), (1, 2, 0.3), (2.0, 3.0, 0.4, 0.5)
CALLS = (*NUMBERS, (LISTS[0],), (LISTS[0], [1.0, 2.0, 4.0]), (LISTS[1],))


def without_dimensions(results) -> list[bool]:
    """Return for each result whether it is a zero-dimensional array instead of a scalar."""
    parts = results if isinstance(results, (list, tuple)) else [results]
    return [isinstance(part, np.ndarray) and not part.ndim for part in parts]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("module", modules())
def test_scalars_of_scipy_are_scalars_here(module):
    ours, theirs = (importlib.import_module(f"{package}.{module}") for package in ("gradops.scipy", "scipy"))
    wrong, seen = [], 0
    for name in ours.__all__:
        own, scipys, calls = getattr(ours, name), getattr(theirs, name, None), CALLS
        if hasattr(own, "pdf"):
            own, scipys, calls = own.pdf, getattr(scipys, "pdf", None), NUMBERS
        for given in calls:
            try:
                expected, got = scipys(*given), own(*given)
            except Exception:  # a function with other arguments
                continue
            seen += 1
            if any(a and not b for a, b in zip(without_dimensions(got), without_dimensions(expected))):
                wrong.append((name, given))
    assert wrong == []
    assert seen or module in ("optimize", "sparse", "sparse.linalg")
    if module == "stats":
        assert type(ours.uniform.ppf(0.3)) is type(ours.norm.cdf(0.3)) is type(ours.gamma.mean(2)) is np.float64
