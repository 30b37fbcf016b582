"""Times value and gradient of functions of large arrays: gradops' compiled programs and ``jax.jit``.

python benchmarks/arrays.py              # on all processors
taskset -c 0 python benchmarks/arrays.py [chain softmax ...]    # on one processor: processor time

The last column is the time to copy as many bytes as the arguments have, as a measure of the memory's speed.
"""

from __future__ import annotations

import os
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
from timing import compare, table

from gradops import jit, ops, value_and_grad

jax.config.update("jax_enable_x64", True)
rng = np.random.default_rng(0)


class Names:
    """The functions of a library, under the same names for both libraries."""

    def __init__(self, of, softmax, logsumexp):
        self.of, self.softmax, self.logsumexp = of, softmax, logsumexp

    def __getattr__(self, name):
        return getattr(self.of, name)


def chain(np, x):
    return np.sum(np.log1p(np.exp(-x * x)) * np.sin(x) + np.tanh(x) / 2)


def squares(np, x):
    return np.sum(x * x)


def softmax(np, x):
    return np.sum(np.softmax(x, axis=-1) * x)


def entropy(np, x):
    return np.sum(np.logsumexp(x, axis=-1)) - np.sum(x[:, 0])


def standardised(np, x):
    z = (x - np.mean(x, axis=0)) / np.sqrt(np.mean(x * x, axis=0))
    return np.sum(z**4)


def least_squares(np, b, X, y):
    return np.sum((np.matmul(X, b) - y) ** 2)


def logistic(np, b, X, y):
    eta = np.matmul(X, b)
    return np.sum(np.log1p(np.exp(-np.abs(eta))) + np.maximum(eta, 0.0) - y * eta)


def vectors(*sizes):
    return [(rng.normal(size=n),) for n in sizes]


def tables(*shapes):
    return [(rng.normal(size=shape),) for shape in shapes]


def regressions(*shapes):
    return [(rng.normal(size=k), rng.normal(size=(n, k)), rng.normal(size=n)) for n, k in shapes]


CASES = {
    "chain": (chain, vectors(10, 1000, 4000, 10_000, 100_000, 1_000_000)),
    "squares": (squares, vectors(10, 1000, 10_000, 100_000, 1_000_000)),
    "softmax": (softmax, tables((100, 10), (1000, 10), (1000, 100), (10_000, 100))),
    "entropy": (entropy, tables((1000, 10), (1000, 100), (10_000, 100))),
    "standardised": (standardised, tables((1000, 10), (10_000, 10), (100_000, 10))),
    "least_squares": (least_squares, regressions((1000, 10), (10_000, 10), (100_000, 10), (10_000, 100))),
    "logistic": (logistic, regressions((1000, 10), (10_000, 10), (100_000, 10))),
}


def row(name: str, function, x, *data) -> list[str]:
    """Return a row of the table."""
    compiled = jit(value_and_grad(lambda x, *data: function(Names(ops, ops.softmax, ops.logsumexp), x, *data)))
    there = [jnp.asarray(a) for a in (x, *data)]
    theirs = Names(jnp, jax.nn.softmax, jax.scipy.special.logsumexp)
    jitted = jax.jit(jax.value_and_grad(lambda x, *data: function(theirs, x, *data)))
    for a, b in zip(compiled(x, *data), jitted(*there)):
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-8 * np.abs(a).max())
    moved = np.concatenate([np.ravel(a) for a in (x, *data)])
    room = np.empty_like(moved)
    best = compare(
        {
            "gradops": lambda: compiled(x, *data),
            "jax": lambda: jax.block_until_ready(jitted(*there)),
            "copy": lambda: np.copyto(room, moved),
        },
        repeats=150,
        budget=0.0005,
        # With threads, the process time is too short: the time of a running thread is added only now and then.
        clock=time.process_time if len(os.sched_getaffinity(0)) == 1 else time.perf_counter,
    )
    us = [f"{1e6 * best[key]:.1f}" for key in best]
    size = " x ".join(map(str, (data or [x])[0].shape))
    return [f"{name}, {size}", *us[:2], f"{best['gradops'] / best['jax']:.2f}", us[2]]


def main() -> None:
    rows = [row(name, CASES[name][0], *case) for name in sys.argv[1:] or CASES for case in CASES[name][1]]
    table(["value and gradient", "gradops, us", "jax.jit, us", "ratio", "a copy of the data, us"], rows)


if __name__ == "__main__":
    main()
