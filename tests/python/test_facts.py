"""The facts that ops declare (``ops/_facts.py``) as laws (``extend/laws.py``): every declared fact holds, and every
fact that holds is declared. The inputs come from the parity cases, on NumPy.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
import warnings
from collections import defaultdict

import cases
import numpy as np
import pytest

from gradops import backends, config, errors
from gradops.extend import laws
from gradops.ops._dispatch import Op, registry
from gradops.ops._registry import FACTS

CASES_OF = defaultdict(list)
"""The cases of each op, including cases with a custom call."""

BY_OP = defaultdict(list)
for _module in sorted(m.name for m in pkgutil.iter_modules(cases.__path__)):
    for _case in importlib.import_module(f"cases.{_module}").CASES:
        if _case.op in registry:
            CASES_OF[registry[_case.op].name].append(_case)
        if _case.op in registry and _case.function() is registry[_case.op].call:
            BY_OP[registry[_case.op].name].append(_case)


@functools.cache
def examples(name: str) -> list[dict]:
    """Return a few inputs of each of an op's cases."""
    return [arguments for case in BY_OP[name] for arguments in case.examples(3)]


def told(entry: Op, law) -> list:
    """Return the verdicts of a law on all of an op's inputs that it applies to."""
    found = []
    with config.backend_scope("numpy"), warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for arguments in examples(entry.name):
            try:
                found.append(law(entry, arguments))
            except (errors.GradopsError, OverflowError):  # the law's own inputs may be outside the domain
                pass
    return [x for x in found if x is not None]


def is_composed(entry: Op) -> bool:
    """Return True if an op is composed of other ops, whose facts imply its own."""
    return entry.body is not None and backends.lookup("numpy").kernel(entry.name) is None


OPS = sorted(set(BY_OP) - {"convert_to_numpy"})  # its result is not a tensor


def test_all_ops_with_cases_are_included():
    public = {entry.name for entry in registry.values() if not entry.facts == type(entry.facts)()}
    assert len(OPS) > 250 and len(public) > 150


@pytest.mark.parametrize("name", OPS)
def test_facts_about_elements(name):
    entry = registry[name]
    assert set(laws.LAWS) <= set(FACTS)
    for law, holds in laws.LAWS.items():
        said, declared = told(entry, holds), getattr(entry.facts, law)
        if declared:
            where = f"`{law}={declared}` of `{name}` in {entry.call.__module__} does not hold: correct its @op(...)"
            assert all(said), where
        elif law == "elementwise" or law != "exact" and not is_composed(entry):  # a few numbers may be rounded well
            assert not said or not all(said), f"`{law}` holds: declare it in the @op(...) of `{name}`"


SHARING = {"countable", "view", "view_as_complex"}  # their results get memory of their own when they are written


@pytest.mark.parametrize("name", OPS)
def test_views_are_declared(name):
    """A write to the result is one to the argument, or is refused, only where an op says so."""

    def shares(entry, arguments):
        x = laws.first(entry, arguments)
        return None if x is None or not x.size else any(np.shares_memory(x, y) for y in laws.results(entry, arguments))

    entry = registry[name]
    said = told(entry, shares)
    if entry.facts.view:
        assert any(said), f"no result of `{name}` shares memory: it is no view"
    elif name not in SHARING and not is_composed(entry):
        assert not any(said), f"a result of `{name}` shares memory: declare `view`"


@pytest.mark.parametrize("name", [name for name in OPS if registry[name].facts.positions])
def test_positions_are_whole_numbers(name):
    def are_whole(entry, arguments):
        given, found = entry.signature.bind(**arguments), entry.call(**arguments)
        given.apply_defaults()
        which = entry.facts.positions
        chosen = found if which == "all" else [found[i] for i in eval(which, {}, given.arguments)]
        return all(
            np.asarray(y).dtype.kind in "iu" for y in (chosen if isinstance(chosen, (list, tuple)) else [chosen])
        )

    assert all(told(registry[name], are_whole))


@pytest.mark.parametrize("name", OPS)
def test_facts_about_linearity(name):
    entry = registry[name]
    declared = laws.linear_claims(entry)
    for names in declared:
        assert all(told(entry, lambda entry, arguments, names=names: laws.linear_in(entry, arguments, names))), names
    if is_composed(entry):
        return
    known = {one for names in declared for one in names}
    for one in set(entry.tensors) - known:
        said = told(entry, lambda entry, arguments, one=one: laws.linear_in(entry, arguments, (one,)))
        assert not said or not all(said), f"linear in `{one}`, which is not declared"
