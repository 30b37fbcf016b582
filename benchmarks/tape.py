"""Measures time and memory of gradients by the tape, by HIPS autograd and by PyTorch, on one thread.

    python benchmarks/tape.py                  # everything
    python benchmarks/tape.py chain memory     # some of: chain mlp rnn gp memory length

Each library computes the value and all gradients; ratios are to the forward pass in plain NumPy. The libraries take
turns, and the best round counts. Memory is measured in a separate process for each.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

import numpy as np  # noqa: E402
from timing import compare, table  # noqa: E402

NAMES = ("gradops", "autograd", "torch")
SIZES = (8, 32, 128, 512)


def setups(loss, arrays: list) -> dict:
    """Return a function for each library that computes ``loss(np, *arrays)`` and its gradients."""
    import autograd
    import autograd.numpy as anp
    import torch

    from gradops import Variable

    torch.set_num_threads(1)
    variables = [Variable(a.copy(), requires_grad=True) for a in arrays]
    tensors = [torch.tensor(a, requires_grad=True) for a in arrays]
    gradient = autograd.value_and_grad(lambda xs: loss(anp, *xs))

    def gradops_step():
        loss(np, *variables).backward()
        result = [v.grad.data for v in variables]
        for v in variables:
            v.zero_grad()
        return result

    def torch_step():
        loss(TorchNames, *tensors).backward()
        result = [t.grad for t in tensors]
        for t in tensors:
            t.grad = None
        return result

    steps = {
        "forward": lambda: loss(np, *arrays),
        "gradops": gradops_step,
        "autograd": lambda: gradient(arrays)[1],
        "torch": torch_step,
    }
    want = [np.asarray(g) for g in steps["torch"]()]
    for name in ("gradops", "autograd"):
        for got, w in zip(steps[name](), want):
            np.testing.assert_allclose(np.asarray(got), w, rtol=1e-6, atol=1e-8)
    return steps


class TorchNames:
    """PyTorch's functions under NumPy's names."""

    def __getattr__(self, name):
        import torch

        return getattr(torch, name)

    @staticmethod
    def sum(x, axis=None):
        return x.sum() if axis is None else x.sum(dim=axis)

    class linalg:
        @staticmethod
        def cholesky(x):
            import torch

            return torch.linalg.cholesky(x)

        @staticmethod
        def solve(a, b):
            import torch

            return torch.linalg.solve(a, b)

    @staticmethod
    def eye(n):
        import torch

        return torch.eye(n, dtype=torch.float64)


TorchNames = TorchNames()  # type: ignore[assignment, misc]


def chain(np, x):
    """Return the result of a chain of 151 operations on 3 numbers."""
    y = x
    for _ in range(50):
        y = np.sin(y) * 1.01 + x
    return np.sum(y)


def mlp(np, x, w1, b1, w2, b2):
    h = np.tanh(np.matmul(x, w1) + b1)
    h = np.tanh(np.matmul(h, w2) + b2)
    return np.sum(h * h)


def rnn(np, x, w, u, b):
    h = x
    for _ in range(20):
        h = np.tanh(np.matmul(h, w) + np.matmul(x, u) + b)
    return np.sum(h * h)


def gp(np, x, y, length, noise):
    """Return the negative log marginal likelihood of a Gaussian process, up to a constant."""
    n = x.shape[0]
    gap = x.reshape(n, 1) - x.reshape(1, n)
    kernel = np.exp(-0.5 * gap * gap / length**2) + noise**2 * np.eye(n)
    factor = np.linalg.cholesky(kernel)
    fit = np.linalg.solve(kernel, y.reshape(n, 1))
    return 0.5 * np.sum(y.reshape(n, 1) * fit) + np.sum(np.log(np.sum(factor * np.eye(n), axis=1)))


def timed(title: str, rows: list) -> None:
    print(f"\n{title}\n")
    cells = []
    for label, loss, arrays in rows:
        found = compare(setups(loss, arrays))
        base = found["forward"]
        cells.append([label, f"{1e6 * base:.1f} us", *(f"{found[n] / base:.2f}" for n in NAMES)])
        cells[-1].append(f"{found['autograd'] / found['gradops']:.1f} / {found['torch'] / found['gradops']:.1f}")
    table(["", "NumPy forward", *(f"{n} / forward" for n in NAMES), "gradops faster than autograd / torch"], cells)


def run_chain() -> None:
    timed("A chain of 151 operations on 3 numbers", [("chain", chain, [np.array([0.1, 0.2, 0.3])])])


def run_mlp() -> None:
    rng = np.random.default_rng(0)
    rows = []
    for n in SIZES:
        arrays = [rng.standard_normal(s) / n**0.5 for s in ((n, n), (n, n), (n,), (n, n), (n,))]
        rows.append((f"n = {n}", mlp, arrays))
    timed("MLP step: two tanh layers, batch and width n", rows)


def run_rnn() -> None:
    rng = np.random.default_rng(0)
    rows = []
    for n in SIZES:
        arrays = [rng.standard_normal(s) / n**0.5 for s in ((n, n), (n, n), (n, n), (n,))]
        rows.append((f"n = {n}", rnn, arrays))
    timed("RNN step: 20 time steps, batch and width n", rows)


def run_gp() -> None:
    rng = np.random.default_rng(0)
    rows = []
    for n in (16, 64, 256):
        x = np.sort(rng.uniform(0, 10, n))
        rows.append((f"n = {n}", gp, [x, np.sin(x), np.array(1.3), np.array(0.3)]))
    timed("Gaussian process likelihood of n points", rows)


CHILD = """
import json, os, sys, time
sys.path.insert(0, os.path.dirname(sys.argv[0]) or ".")
import numpy as np
name, n, size = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])

def peak():
    for line in open("/proc/self/status"):
        if line.startswith("VmHWM"):
            return int(line.split()[1]) * 1024

def finish(y):
    if name == "gradops":
        y.sum().backward()
    elif name == "torch":
        y.sum().backward()

def build(n):
    if name == "gradops":
        from gradops import Variable
        x = Variable(np.ones(size), requires_grad=True)
    elif name == "torch":
        import torch
        torch.set_num_threads(1)
        x = torch.ones(size, dtype=torch.float64, requires_grad=True)
    y = x
    for _ in range(n // 2):
        y = (y * 0.999).tanh() if name == "torch" else np.tanh(y * 0.999)
    return y

if name == "autograd":
    import autograd, autograd.numpy as anp
    def f(x):
        y = x
        for _ in range(n // 2):
            y = anp.tanh(y * 0.999)
        return anp.sum(y)
    sys.setrecursionlimit(10**6)
    autograd.grad(lambda x: anp.sum(anp.tanh(x * 1.0)))(np.ones(size))
    before, start = peak(), time.perf_counter()
    autograd.grad(f)(np.ones(size))
    times = [time.perf_counter() - start, None, None]
else:
    finish(build(10))
    before, t0 = peak(), time.perf_counter()
    y = build(n)
    t1 = time.perf_counter()
    finish(y)
    t2 = time.perf_counter()
    del y
    times = [t1 - t0, t2 - t1, time.perf_counter() - t2]
print(json.dumps({"peak": peak() - before, "times": times}))
"""


def child(name: str, n: int, size: int) -> dict | None:
    done = subprocess.run([sys.executable, "-c", CHILD, name, str(n), str(size)], capture_output=True, text=True)
    return json.loads(done.stdout) if done.returncode == 0 else None


def run_memory() -> None:
    print("\nPeak memory of forward and backward pass, above the process before\n")
    rows = []
    for n, size in ((1000, 100_000), (10_000, 1000), (100_000, 3)):
        cells = [f"{n} operations on {size} numbers"]
        for name in NAMES:
            found = child(name, n, size)
            cells.append("failed" if found is None else f"{found['peak'] / 1e6:.1f} MB")
        rows.append(cells)
    table(["", *NAMES], rows)


def run_length() -> None:
    print("\nTime and memory by length: a chain of operations on 3 numbers\n")
    rows = []
    for name in NAMES:
        for n in (100, 1000, 10_000, 100_000, 1_000_000):
            if name != "gradops" and n > 100_000:
                continue
            found = child(name, n, 3)
            if found is None:
                rows.append([name, f"{n:.0e}", "failed", "", "", ""])
                continue
            per = [f"{1e6 * t / n:.2f} us" if t is not None else "(in one)" for t in found["times"]]
            rows.append([name, f"{n:.0e}", *per, f"{found['peak'] / n:.0f} B"])
    table(["", "operations", "build, each", "backward, each", "free, each", "peak memory, each"], rows)


RUNS = {"chain": run_chain, "mlp": run_mlp, "rnn": run_rnn, "gp": run_gp, "memory": run_memory, "length": run_length}

if __name__ == "__main__":
    for chosen in sys.argv[1:] or RUNS:
        RUNS[chosen]()
