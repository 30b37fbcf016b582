"""A loop around any op is native, except for unsupported dtypes: checks all ops of `native_loops`."""

from __future__ import annotations

import numpy as np
import pytest
from native_loops import CALLED, explained, met
from test_facts import CASES_OF
from test_native import needs_machine
from test_rules import PUBLIC, quietly

from gradops import ops
from gradops.jit import jit
from gradops.jit.native import loops
from gradops.jit.native import registry as rules
from gradops.ops._dispatch import registry

WALKED = sorted({*filter(CASES_OF.get, registry), *(name for name in PUBLIC if name.startswith("scipy.special."))})

OF_OTHERS = {"attention_forward": "dot_product_attention"}
"""Ops that enter a loop only through calls of other ops."""


def explanations(name: str) -> list:
    """Return the explanations of loops around each case of an op."""
    entry, calls = registry[name], []
    if name.startswith("scipy."):
        arguments = {p: np.array([0.3, 0.6, 0.45]) + 0.01 * i for i, p in enumerate(entry.parameters)}
        calls = [(entry.call, arguments, ()), (entry.call, arguments, tuple(arguments))]
    for case in CASES_OF[name]:
        calls.append((case.function(), case.example(), case.gradients))
    return [x for x in (explained(*call) for call in calls) if x is not None]


@pytest.mark.short_cases(80)
@needs_machine
@pytest.mark.parametrize("name", WALKED)
@quietly
def test_loop_around_an_op_is_native(name):
    for explanation in explanations(name):
        called, left = met(explanation)
        of_scipy = {n for n in called if n.startswith("scipy.")}
        assert called - of_scipy <= {*CALLED}, str(explanation)
        assert all(rules.rule_of(n) is None or rules.known_of(n).limits for n in of_scipy), str(explanation)
        assert all("dtype" in reason for reason in left), str(explanation)


@pytest.mark.short_cases(3)
@needs_machine
@pytest.mark.parametrize("name", sorted(CALLED))
@quietly
def test_ops_listed_as_numpy_calls_are_not_native(name):
    found = explanations(OF_OTHERS.get(name, name))
    assert any(name in met(explanation)[0] for explanation in found), "it is native: take it off the list"


@needs_machine
def test_many_steps_that_native_code_refuses_are_found_in_few_rounds(monkeypatch):
    """A body is lowered as often for sixty refused steps as for six, so long bodies compile in linear time."""
    lowered = loops.Inner.lowered
    rounds = []
    monkeypatch.setattr(loops.Inner, "lowered", lambda self, body: rounds.append(1) or lowered(self, body))

    def count(refused: int) -> int:
        def step(state, _):
            for i in range(refused):  # native code has no rule for sorts of so many numbers
                state = ops.sort(state * (1.0 + i)) if i % 2 else ops.cumsum(state) / 300.0
            return state, ()

        def f(x):
            return ops.scan(step, x, length=5)[0]

        rounds.clear()
        x = np.linspace(-1.0, 1.0, 300)
        np.testing.assert_allclose(jit(f)(x), f(x), rtol=1e-12)
        assert rounds
        return len(rounds)

    assert count(60) == count(6) <= 4


@needs_machine
@pytest.mark.parametrize("shape", [(1, 1), (1, 9), (9, 1), (3, 2), (2, 3), (5, 5)])
def test_outer_products(shape):
    a, b = np.linspace(-1, 1, shape[0])[:, None], np.linspace(0.5, 2, shape[1])[None]
    for product in (lambda x: ops.matmul(x, b), lambda x: ops.tensordot(x, b, 1)):
        np.testing.assert_array_equal(jit(product)(a), product(a))
