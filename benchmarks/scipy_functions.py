"""Functions of ``gradops.scipy`` beside SciPy's value and beside ``jax.scipy``, jitted, on NumPy's arrays.

    python benchmarks/scipy_functions.py

Each is shown as a ratio: its value over SciPy's, its gradients (of the sum of the values, by the argument and by the
first shape) in SciPy's values, eager and compiled by ``gradops.jit``; JAX's, compiled, where it has the function.
"""

from __future__ import annotations

import functools
import os
from typing import NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.scipy.stats
import numpy as np
import scipy.special
import scipy.stats
from timing import compare, table

import gradops
from gradops import ops

SIZES = (10, 1000, 100_000)


class Case(NamedTuple):
    """A function by its path in SciPy.

    Attributes:
        argument, shape: positions; no shape: None.
    """

    path: str
    given: tuple
    argument: int
    shape: int | None = None


def cases(size: int) -> list[Case]:
    rng = np.random.default_rng(36)
    a, b = rng.uniform(0.5, 20, (2, size))
    x, p, t = rng.gamma(a), rng.beta(a, b), rng.standard_t(5, size)
    return [
        Case("special.gammainc", (a, x), 1, 0),
        Case("special.gammaincinv", (a, p), 1, 0),
        Case("special.betainc", (a, b, p), 2, 0),
        Case("special.stdtr", (a, t), 1, 0),
        Case("special.kv", (a, x + 0.1), 1),
        Case("special.gammaln", (x + 0.1,), 0),
        Case("stats.norm.logpdf", (t, a, b), 0, 1),
        Case("stats.gamma.cdf", (x, a), 0, 1),
        Case("stats.t.ppf", (p, a), 0, 1),
    ]


def found(package, path: str):
    """A function by its path; None where there is none."""
    return functools.reduce(lambda x, name: getattr(x, name, None), path.split("."), package)


def contenders(case: Case) -> dict:
    """By name of a column a call without arguments."""
    own, scipys, given = found(gradops.scipy, case.path), found(scipy, case.path), case.given
    calls = {"SciPy": lambda: scipys(*given), "value": lambda: own(*given)}
    functions = {"jit: value": gradops.jit(lambda *xs: own(*xs))}
    by = {"by the argument": case.argument} | ({} if case.shape is None else {"by a shape": case.shape})
    for column, place in by.items():
        functions[column] = gradops.grad(lambda *xs: ops.sum(own(*xs)), argnums=place)
        functions[f"jit: {column}"] = gradops.jit(functions[column])
    for column, function in functions.items():
        calls[column] = lambda function=function: function(*given)
    theirs = found(jax.scipy, case.path)
    if theirs is not None:
        xs = [jax.numpy.asarray(x) for x in given]
        for column, function in (
            ("JAX: value", jax.jit(theirs)),
            ("JAX: by the argument", jax.jit(jax.grad(lambda *xs: theirs(*xs).sum(), argnums=case.argument))),
        ):
            calls[column] = lambda function=function: function(*xs).block_until_ready()
    return calls


def main() -> None:
    jax.config.update("jax_enable_x64", True)
    eager = ["value", "by the argument", "by a shape"]
    columns = [*eager, *(f"jit: {column}" for column in eager), "JAX: value", "JAX: by the argument"]
    rows = []
    for size in SIZES:
        for case in cases(size):
            times = compare(contenders(case), repeats=7)
            unit = times["SciPy"]
            ratios = [f"{times[c] / unit:.2f}" if c in times else "" for c in columns]
            rows.append([case.path, f"{size:,}", f"{unit * 1e6:.1f}", *ratios])
    table(["function", "numbers", "SciPy, us", *columns], rows)


if __name__ == "__main__":
    main()
