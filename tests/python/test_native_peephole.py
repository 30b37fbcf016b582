"""Peephole optimization of straight-line native code: the same bits from fewer instructions."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from seeds import seeds
from test_native import assert_same_bits, both, needs_machine

from gradops.jit.native import instructions, peephole

NUMBERS = instructions.NUMBERS
NAMES = list(NUMBERS)
FIRST = 8
"""Number of cells before the results."""


def operands(words):
    number, _, *cells = words
    return cells[: instructions.OPERATIONS[NAMES[number]].operands]


def run(code, given, size):
    memory = [*given, *[None] * size]
    with np.errstate(all="ignore"):
        for words in code.tolist():
            meaning = instructions.OPERATIONS[NAMES[words[0]]].meaning
            memory[words[1]] = np.float64(meaning(*[memory[cell] for cell in operands(words)]))
    return memory


def random_code(rng, count):
    """Return random instructions that mostly read recent results."""

    def cell(k):
        return int(rng.integers(max(0, k - 6), k)) if rng.random() < 0.8 else int(rng.integers(0, k))

    rows = []
    for k in range(FIRST, FIRST + count):
        name = rng.choice([*instructions.OF_TWO, "negative", "negative", "maximum", "square"])
        x = cell(k)
        y = 0 if name == "negative" else x if name == "square" else cell(k)
        rows.append((NUMBERS["multiply" if name == "square" else name], k, x, y, 0))
    return np.array(rows, np.intc)


def check(seed):
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 150))
    code = random_code(rng, count)
    read = np.bincount([c for words in code.tolist() for c in set(operands(words))], minlength=FIRST + count)[FIRST:]
    wanted = rng.integers(0, count, 3)
    once = read == 1
    once[wanted] = False
    short = peephole.Shortened(code.copy(), FIRST, once)
    given = rng.normal(size=FIRST)
    given[:3] = rng.choice([0.0, -0.0, np.inf, 1.0, 1e-300], 3)
    was, now = run(code, given, count), run(short.words, given, count)
    kept = [k for k in range(count) if not once[k]]
    assert_same_bits([now[short.cells[k]] for k in kept], [was[FIRST + k] for k in kept])
    return count - len(short.words)


def test_random_code():
    assert sum(map(check, range(200))) > 500


@pytest.mark.long
def test_more_random_code():
    assert sum(map(check, seeds(5000))) > 10_000


@pytest.mark.parametrize(
    ("code", "shorter"),
    [
        ("t = -a; r = b + t", ["subtract"]),
        ("t = -a; r = t + b", ["subtract"]),
        ("t = -a; r = b - t", ["add"]),
        ("t = -a; r = t - b", ["negative", "subtract"]),
        ("t = -a; u = t * b; r = u + c", ["multiply_subtract_right"]),
        ("t = -a; u = t / b; r = c - u", ["divide_add_left"]),
        ("t = -a; u = t * b; v = -c; w = v * d; r = u + w", ["negative", "multiply", "multiply_subtract_right"]),
        ("t = a * b; r = t - c", ["multiply_subtract_left"]),
        ("t = a * b; r = c / t", ["multiply_divide_right"]),
        ("t = a * b; r = t * t", ["multiply", "multiply"]),
        ("t = a + b; u = t + c; v = u + d; r = v + a", ["add_add_left", "add_add_left"]),
    ],
)
def test_patterns_that_are_shortened(code, shorter):
    names = {"+": "add", "-": "subtract", "*": "multiply", "/": "divide"}
    cells = {name: i for i, name in enumerate("abcd")}
    rows = []
    for k, line in enumerate(code.split("; ")):
        result, _, *terms = line.split()
        cells[result] = FIRST + k
        if len(terms) == 1:
            rows.append((NUMBERS["negative"], FIRST + k, cells[terms[0][1:]], 0, 0))
        else:
            x, sign, y = terms
            rows.append((NUMBERS[names[sign]], FIRST + k, cells[x], cells[y], 0))
    read = np.bincount([c for words in rows for c in operands(words)], minlength=FIRST + len(rows))[FIRST:]
    short = peephole.Shortened(np.array(rows, np.intc), FIRST, read == 1)
    found = [NAMES[number] for number in short.words[:, 0].tolist()]
    assert sorted(found) == sorted(shorter)


def loop(x):
    """Compute a loop of the maximum length that the peephole pass handles, with results read inside and after it."""
    level, total, seen = x[0], x[1], []
    for k in range(60):
        error = 0.1 * k - level
        total = total - error * error / x[2]
        level = level + error * x[3]
        if k % 20 == 0:
            seen.append(level)
    return total, level, seen


@needs_machine
@pytest.mark.parametrize("x", [[0.3, 1.0, 2.0, 0.1], [0.0, -0.0, 1e-308, 1.0], [np.inf, 1.0, 2.0, 0.5]])
def test_unrolled_loop_is_bitwise_equal(x):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        natively, by_numpy, explained = both(loop, np.array(x))
    assert_same_bits(natively, by_numpy)
    assert not explained.refused


@needs_machine
def test_squares_of_negated_values():
    def squares(x):
        total, left = x[0], x[1]
        for _ in range(100):
            total, left = total + (-left) ** 2, left * 0.9
        return total

    natively, by_numpy, explained = both(squares, np.array([0.3, 1.7]))
    assert_same_bits(natively, by_numpy)
    np.testing.assert_allclose(natively, 0.3 + 1.7**2 * (1 - 0.81**100) / 0.19, rtol=1e-13)
    assert not explained.refused


@needs_machine
def test_warnings_match_numpy():
    with pytest.warns(RuntimeWarning, match="divide by zero"):
        both(loop, np.array([0.3, 1.0, 0.0, 0.1]))
