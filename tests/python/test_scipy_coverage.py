"""Each public name of SciPy's modules: covered, or refused with a reason; more are covered than by ``jax.scipy``."""

import importlib
import types

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
