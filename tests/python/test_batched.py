"""Unit vectors that go through the tape together, against the same one by one: for every op's cases."""

from __future__ import annotations

import importlib
import pkgutil

import cases
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from parity import differentiated, flat

from gradops import functional, ops
from gradops.functional import on_tape

CASES = [
    case
    for module in sorted(m.name for m in pkgutil.iter_modules(cases.__path__))
    for case in importlib.import_module(f"cases.{module}").CASES
    if case.gradients
]
once = settings(max_examples=1, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck), database=None)


@pytest.fixture
def fall_backs(monkeypatch):
    """How often a batch was refused."""
    found = []
    together = on_tape._together

    def counted(*arguments):
        try:
            return together(*arguments)
        except Exception as error:
            found.append(error)
            raise

    monkeypatch.setattr(on_tape, "_together", counted)
    return found


def by_id(case):
    return case.id


def floating(case, arguments):
    """The op as a function of what it is differentiated by, to its floating results."""

    def f(*values):
        given, queue = dict(arguments), list(values)
        for name in case.gradients:
            several = isinstance(arguments[name], list)
            given[name] = [queue.pop(0) for _ in arguments[name]] if several else queue.pop(0)
        return tuple(y for y in flat(case.function()(**given)) if "float" in ops.dtype(y))

    return f


@pytest.mark.parametrize("strategy", ["reverse-mode", "forward-mode"])
@pytest.mark.parametrize("case", CASES, ids=by_id)
def test_batches_equal_single_rows(case, strategy, monkeypatch):
    @once
    @given(case.inputs)
    def check(arguments):
        inputs = tuple(differentiated(case, arguments))
        if any(map(np.iscomplexobj, inputs)):
            return
        f = floating(case, arguments)
        together = functional.jacobian(f, inputs, strategy=strategy)
        with monkeypatch.context() as patch:
            patch.setattr(on_tape, "_TOGETHER", 1)
            one_by_one = functional.jacobian(f, inputs, strategy=strategy)
        for a, b in zip(flat(together), flat(one_by_one)):
            np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)

    check()
