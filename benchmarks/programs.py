"""Times compiled loops and sparse derivatives: the first result, which includes compilation, and later ones.

OMP_NUM_THREADS=1 python benchmarks/programs.py            # both
OMP_NUM_THREADS=1 python benchmarks/programs.py loops      # or: sparse
"""

from __future__ import annotations

import sys
import time
import tracemalloc

import numpy as np
from timing import table

from gradops import grad, jit, ops, value_and_grad
from gradops.functional import hessian

rng = np.random.default_rng(0)


def kalman(n: int):
    """Return the likelihood of a local level model by the Kalman filter (a loop of scalar operations), and a start."""
    observed = list(rng.normal(size=n))

    def loss(p):
        q, r = ops.exp(p[0]), ops.exp(p[1])
        a, variance, total = 0.0, 10.0, 0.0
        for y in observed:
            variance = variance + q
            s = variance + r
            v = y - a
            total = total + ops.log(s) + v**2 / s
            gain = variance / s
            a = a + gain * v
            variance = variance * (1 - gain)
        return total / 2

    return loss, np.array([-1.0, 0.3])


def garch(n: int):
    observed = list(rng.normal(size=n))

    def loss(p):
        omega, alpha, beta = ops.exp(p[0]), ops.sigmoid(p[1]), ops.sigmoid(p[2])
        h, total = omega, 0.0
        for y in observed:
            total = total + ops.log(h) + y**2 / h
            h = omega + alpha * y**2 + beta * h
        return total / 2

    return loss, np.array([-1.0, 0.1, 0.3])


def hidden_markov(n: int, states: int = 20):
    """Return the likelihood of a hidden Markov model (a loop of operations on arrays), and a start."""
    observed = rng.integers(0, 5, n).tolist()

    def loss(p):
        transitions = ops.softmax(ops.reshape(p[: states**2], (states, states)), 1)
        emissions = ops.softmax(ops.reshape(p[states**2 :], (states, 5)), 1)
        a, total = np.full(states, 1 / states), 0.0
        for k in observed:
            a = ops.matmul(a, transitions) * emissions[:, k]
            s = ops.sum(a)
            a, total = a / s, total + ops.log(s)
        return -total

    return loss, rng.normal(size=states**2 + 5 * states) / 10


def kalman_of_vectors(n: int, states: int = 4):
    """Return the likelihood of a state space model by the Kalman filter (a loop of matrix products), and a start."""
    observed, H = rng.normal(size=n).tolist(), np.eye(1, states)

    def loss(p):
        F = 0.9 * np.eye(states) + ops.reshape(p[: states**2], (states, states)) / 10
        Q, r = ops.exp(p[-2]) * np.eye(states), ops.exp(p[-1])
        a, P, total = np.zeros(states), np.eye(states), 0.0
        for y in observed:
            a, P = ops.matmul(F, a), ops.matmul(ops.matmul(F, P), ops.transpose(F)) + Q
            s, v = ops.matmul(ops.matmul(H, P), H.T) + r, y - ops.matmul(H, a)
            gain = ops.matmul(P, H.T) / s
            a, P = a + ops.matmul(gain, v), P - ops.matmul(ops.matmul(gain, H), P)
            total = total + ops.log(s[0, 0]) + v[0] ** 2 / s[0, 0]
        return total / 2

    return loss, rng.normal(size=states**2 + 2) / 10


def states(n: int):
    """Return a loss for a chain of unknown states, which are read one by one, and a start."""

    def loss(x):
        total = x[0] ** 2
        for i in range(1, n):
            total = total + (x[i] - 0.5 * x[i - 1]) ** 2
        return total

    return loss, rng.normal(size=n)


def seconds(f, *arguments, times: int = 1) -> float:
    """Return the processor time of the best of several calls. Other work on the machine does not count."""
    best = float("inf")
    for _ in range(times):
        start = time.process_time()
        f(*arguments)
        best = min(best, time.process_time() - start)
    return best


def made(f, start) -> tuple:
    """Return ``f`` compiled, and the seconds to its first result."""
    compiled = jit(f)
    return compiled, seconds(compiled, start)


def peak(f, start) -> int:
    """Return the peak memory of Python and NumPy up to the first result, in bytes."""
    tracemalloc.start()
    try:
        jit(f)(start)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def sparse_hessian(f, x):
    return hessian(f, x, sparse=True)


def loops() -> None:
    print("\nValue and gradient of a loop: the first result compiled, and later ones\n")
    rows = []
    for name, model, sizes in (
        ("Kalman filter", kalman, (200, 2000, 10_000)),
        ("GARCH(1,1)", garch, (500,)),
        ("chain of states", states, (200, 2000)),
        ("hidden Markov model, 20 states", hidden_markov, (300,)),
        ("Kalman filter, 4 states", kalman_of_vectors, (500,)),
    ):
        for n in sizes:
            loss, start = model(n)
            rounds = 3 if n < 1000 else 1
            first = min(made(value_and_grad(loss), start)[1] for _ in range(rounds - 1)) if rounds > 1 else np.inf
            forward = min(made(loss, start)[1] for _ in range(rounds))
            compiled, once = made(value_and_grad(loss), start)
            first = min(first, once)
            again = seconds(compiled, start, times=5)
            eager = seconds(value_and_grad(loss), start)
            steps = next(iter(compiled.programs.values())).steps
            memory = peak(value_and_grad(loss), start) / steps
            cells = [f"{1e3 * first:.0f}", f"{1e6 * first / steps:.1f}", f"{first / forward:.1f}", f"{memory:.0f}"]
            rows.append([f"{name}, {n}", str(steps), *cells, f"{1e3 * eager:.0f}", f"{1e3 * again:.2f}"])
    header = ["", "steps", "first, ms", "us a step", "over the value's alone", "bytes a step", "eager, ms", "again, ms"]
    table(header, rows)


def banded(x):
    return ops.sum(ops.exp(-((x[1:] - x[:-1]) ** 2))) + ops.sum(x[2:] * x[1:-1] * x[:-2]) + ops.sum(x**4)


def random_effects(x):
    """Return a loss with two parameters and an effect for each group."""
    scale, mean, effects = ops.exp(x[0]), x[1], x[2:]
    return ops.sum(ops.exp(mean + scale * effects) - 2.0 * effects) + ops.sum(effects**2) / 2


def sparse() -> None:
    print("\nSparse Hessians: pattern, colours and products, beside a gradient and the dense Hessian; ms\n")
    rows = []
    for name, f in (("banded, 5 diagonals", banded), ("random effects, an arrow", random_effects)):
        for n in (300, 10_000):
            x = rng.normal(size=n) / 4
            compiled = jit(f)
            first = seconds(sparse_hessian, compiled, x)
            again = seconds(sparse_hessian, compiled, x, times=5)
            gradient, _ = made(grad(f), x)
            one = seconds(gradient, x, times=20)
            dense = f"{1e3 * seconds(hessian, f, x):.0f}" if n < 1000 else ""
            elements = sparse_hessian(compiled, x).nnz
            rows.append([f"{name}, n = {n}", str(elements), f"{1e3 * first:.0f}", f"{1e3 * again:.2f}"])
            rows[-1] += [f"{1e3 * one:.3f}", dense]
    table(["", "elements", "first", "again, of jit(f)", "gradient, compiled", "dense"], rows)


RUNS = {"loops": loops, "sparse": sparse}

if __name__ == "__main__":
    for chosen in sys.argv[1:] or RUNS:
        RUNS[chosen]()
