"""Times what it costs to compare compiled programs with the reference executor, in first and in later calls.

    python benchmarks/verification.py

It compares the mode "sample", the default, with "off"; both take turns, in process time. A first call compiles.
"""

from __future__ import annotations

import time
from statistics import median

import numpy as np
from timing import table

import gradops
from gradops import config, ops

SECONDS = 0.3
"""Time spent on later calls of a program."""
ROUNDS = 7

rng = np.random.default_rng(0)
DATA = rng.normal(size=(2000, 10))
RESPONSE = rng.random(2000) < 0.5


def expression(x):
    return ops.sum(ops.exp(x) * ops.log(x) / (1 + x**2) - ops.sin(x))


def loop(x):
    total = 0.0
    for i in range(300):
        total = total + ops.sin(x[i % 20] * total + i) * 0.5
    return total


def scan(x):
    return ops.scan(lambda carry, row: (carry * 0.5 + ops.sin(row), carry), x[0], x)[0]


def logistic(beta):
    predictor = DATA @ beta
    return ops.sum(ops.softplus(predictor) - RESPONSE * predictor)


MODELS = {
    "expression of 20 numbers": (expression, rng.random(20) + 0.1),
    "loop of 300 scalar steps": (loop, rng.random(20) + 0.1),
    "scan of 1,000 rows": (scan, rng.random(1000) + 0.1),
    "logistic regression, 2,000 x 10": (logistic, rng.normal(size=10)),
    "arrays of 200,000": (expression, rng.random(200_000) + 0.1),
}


def costs(f, x) -> tuple[float, float]:
    """Return the seconds of a first call and of a later one."""
    compiled = gradops.jit(gradops.value_and_grad(lambda x: f(x)))
    start = time.process_time()
    compiled(x)
    first = time.process_time() - start
    calls, start = 0, time.process_time()
    while time.process_time() - start < SECONDS:
        for _ in range(10):
            compiled(x)
        calls += 10
    return first, (time.process_time() - start) / calls


rows = []
for name, (f, x) in MODELS.items():
    found: dict[str, list] = {"off": [], "sample": []}
    for _ in range(ROUNDS):
        for mode, times in found.items():
            config.set_check(mode)
            times.append(costs(f, x))
    off, sample = (list(zip(*found[mode])) for mode in ("off", "sample"))
    rows.append(
        [
            name,
            f"{1000 * min(off[0]):.1f} ms",
            f"{min(sample[0]) / min(off[0]):.2f}",
            f"{1e6 * min(off[1]):.0f} us",
            f"{median(sample[1]) / median(off[1]):.3f}",
        ]
    )
table(["value and gradient of", "first, off", "with checks", "later, off", "with checks"], rows)
