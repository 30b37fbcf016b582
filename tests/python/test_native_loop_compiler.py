"""Hot loops compiled by LLVM against the interpreter: the same bits, warnings and errors."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from random_loops import Loops

from gradops import jit, ops, value_and_grad
from gradops._tree import items
from gradops.jit.native import loop_compiler, machine

pytestmark = pytest.mark.skipif(machine.machine() is None, reason="llvmlite is not installed")


@pytest.fixture
def made(monkeypatch):
    """Return the list of compiled loops, with the threshold lowered to one run."""
    found, compiled = [], loop_compiler.compiled
    monkeypatch.setattr(loop_compiler, "WORTH", 1)
    monkeypatch.setattr(loop_compiler, "compiled", lambda *given: found.append(compiled(*given)) or found[-1])
    return found


def assert_same_bits(compiled, *arguments) -> None:
    by_machine = [np.copy(x) for x in items(compiled(*arguments))]
    for a, b in zip(items(compiled(*arguments)), by_machine, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.short_cases(2)
@pytest.mark.parametrize("seed", [0, 4, 9, 11, 14])
def test_random_loops(seed, made):
    loops = Loops(seed)
    assert_same_bits(jit(value_and_grad(loops, argnums=(0, 1))), *loops.inputs)
    assert any(made)


def filtered(p, y):
    def step(state, value):
        level, variance = state
        s = variance + ops.exp(p[1])
        k = (variance + ops.exp(p[0])) / s
        return (level + k * (value - level), s * (1 - k) + 1.0), ops.log(s) + (value - level) ** 2 / s

    _, terms = ops.scan(step, (p[0] * 0.0, p[0] * 0.0 + 10.0), y)
    return ops.sum(terms)


def test_filter_with_its_gradient(made):
    compiled = jit(value_and_grad(filtered))
    assert_same_bits(compiled, np.array([-1.0, 0.3]), np.random.default_rng(0).normal(size=300))
    assert made and all(made)


def at_positions(x, i):
    def inner(j, s):
        return s + ops.cond(s > 0.5, lambda: -s * x[j], lambda: ops.sin(x[i[j]]))

    return ops.fori_loop(0, 4, lambda k, s: ops.fori_loop(0, 3, inner, s * 0.5), x[0])


def test_nested_loops_branches_and_indexing(made):
    x, i = np.random.default_rng(1).normal(size=5), np.array([4, 0, -2])
    assert_same_bits(jit(value_and_grad(at_positions)), x, i)
    compiled = jit(at_positions)
    assert_same_bits(compiled, x, i)
    assert made[-1]
    with pytest.raises(IndexError, match="index 5 is out of bounds for axis 0 with size 5"):
        compiled(np.zeros(5), np.array([4, 5, 0]))
    np.testing.assert_array_equal(compiled(x, i), jit(at_positions)(x, i))


@pytest.mark.parametrize("first", [0.0, np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("size", [1, 3, 5])
def test_exponentials_of_rows(size, first, made):
    def f(moves, rows):
        def step(state, row):
            state = ops.logsumexp(ops.reshape(state, (size, 1)) + moves, 0) + row
            return ops.log_softmax(state), ops.softmax(state)

        last, shares = ops.scan(step, moves[0], rows)
        return ops.sum(last * moves[-1]) + ops.sum(shares[:, 0] ** 2)

    rng = np.random.default_rng(size)
    moves, rows = rng.normal(size=(size, size)), rng.normal(size=(40, size))
    moves[0, 0] = first
    with np.errstate(all="ignore"):
        assert_same_bits(jit(value_and_grad(f, argnums=(0, 1))), moves, rows)
    assert made and all(made)


@pytest.mark.parametrize("size", [1, 5, 17])
def test_sums_of_negative_zeros_match_numpy(size, made):
    f = jit(lambda rows: ops.scan(lambda total, row: (total + 1.0, ops.sum(row * total)), 0.0, rows)[1])
    rows = np.full((40, size), -0.0)
    by_machine, compiled = (np.copy(f(rows)) for _ in range(2))
    assert not np.signbit(by_machine).any() and not np.signbit(compiled).any() and not np.signbit(np.sum(rows[0]))
    assert made and all(made)


def test_while_loops(made):
    def f(x):
        return ops.while_loop(lambda s: s < 100.0, lambda s: s * x + 1.0, x, maximum_iterations=1000)

    assert_same_bits(jit(f), np.float64(1.5))
    assert made and all(made)


def test_warnings_match_numpy(made):
    compiled, x = jit(lambda x: ops.scan(lambda s, v: (s + ops.log(v), s / v), x[0], x)), np.linspace(1.0, 2.0, 300)
    assert_same_bits(compiled, x)
    x[1] = 0.0
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        last, rows = compiled(x)
    assert np.isneginf(last) and np.isinf(rows[1])
    messages = {str(w.message).replace("scalar ", "") for w in found}
    assert {"divide by zero encountered in log", "divide by zero encountered in divide"} <= messages
    assert made and all(made)
