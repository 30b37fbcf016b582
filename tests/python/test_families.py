"""Families of ops, one R manual page each. An op's position in its module determines its family."""

import importlib.util
import re
import sys
import types
from pathlib import Path

import pytest

from gradops import ops

TOOL = Path(__file__).parents[2] / "tools" / "families.py"

pytestmark = [
    pytest.mark.documents,
    pytest.mark.repository,
    pytest.mark.skipif(not TOOL.exists(), reason="the tools are not part of the source distribution"),
]

FIRST = '''"""A module of two families."""

__family__ = """Waves.

That go up and down.
"""

def rise(x): ...


__family__ = """Falls.

That go down.
"""

def fall(x): ...
'''
SECOND = '''"""Waves."""

def ebb(x): ...
'''


@pytest.fixture(scope="module")
def families():
    spec = importlib.util.spec_from_file_location("families", TOOL)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def functions(tmp_path, monkeypatch, families, **sources) -> list:
    """Return the functions of temporary modules with the given sources."""
    families.heads.cache_clear()
    found = []
    for name, source in sources.items():
        path = tmp_path / f"{name}.py"
        path.write_text(source)
        spec = importlib.util.spec_from_file_location(name, path)
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, name, module)
        spec.loader.exec_module(module)
        found += [value for value in vars(module).values() if callable(value) and value.__module__ == name]
    return found


def test_op_belongs_to_the_preceding_family_head_across_modules(tmp_path, monkeypatch, families):
    found = families.gathered(functions(tmp_path, monkeypatch, families, of_waves=SECOND, waves_and_falls=FIRST))
    assert {title: [f.__name__ for f in members] for title, (_, members) in found.items()} == {
        "Falls": ["fall"],
        "Waves": ["rise", "ebb"],  # members in the module with the description come first
    }
    assert found["Waves"][0] == "That go up and down."
    assert families.slug("Order of dimensions") == "ops_order_of_dimensions"


@pytest.mark.parametrize("second", [SECOND, FIRST])
def test_family_has_one_description(tmp_path, monkeypatch, families, second):
    first = SECOND if second is SECOND else FIRST.replace("That go up", "Those that go up")
    found = functions(tmp_path, monkeypatch, families, of_waves_too=second, more_waves=first)
    with pytest.raises(ValueError, match="the family 'Waves' has"):
        families.gathered(found)


def test_every_op_is_in_a_family_that_lists_its_neighbours(families):
    found = [getattr(module, name) for module in (ops, ops.image) for name in dir(module)]
    found = [f for f in found if isinstance(f, types.FunctionType) and f.__module__.startswith("gradops.ops.")]
    gathered = families.gathered(found)
    assert 60 < len(gathered) < 90
    assert [title for title, (text, _) in gathered.items() if "\nSee Also:\n" not in text] == []
    assert sum(len(members) for _, members in gathered.values()) == len(set(found)) > 300


def test_op_without_see_also_refers_to_its_family(families):
    found = families.gathered([getattr(ops, name) for name in ops.__all__ if hasattr(getattr(ops, name), "op")])
    related = {f.__name__: re.findall(r"`(\w+)`", f.__doc__.partition("See Also:\n")[2]) for f in (ops.isnan, ops.tanh)}
    for names in ([f.__name__ for f in members] for _, members in found.values()):
        for name, others in related.items():
            if name in names:
                place = names.index(name)
                assert set(others) <= set(names[max(place - 3, 0) : place + 4]) - {name} and len(others) == 3
    assert related["isnan"] == ["isfinite", "isinf", "isneginf"]
    assert ops.exp.__doc__.count("See Also:") == 1 and ":func:`logsumexp`" in ops.exp.__doc__  # written by hand
