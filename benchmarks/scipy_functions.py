"""Times functions of ``gradops.scipy`` on NumPy arrays, compared with SciPy and with compiled ``jax.scipy``.

    python benchmarks/scipy_functions.py
    python benchmarks/scipy_functions.py --jax    every function of jax.scipy.special and jax.scipy.stats, compiled
    python benchmarks/scipy_functions.py --jax special.i1 stats.t.logpdf    only these functions

Times are ratios to the time of SciPy's value: of the value, and of gradients of its sum with respect to the argument
and to the first shape parameter, eager and compiled by ``gradops.jit``, and of compiled JAX if it has the function.
"""

from __future__ import annotations

import functools
import os
import sys
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
    """A function, by its path in SciPy, with its arguments.

    Attributes:
        argument, shape: positions of the argument and of the shape parameter to differentiate with respect to; the
            second is None without a shape parameter.
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


def found_in(package, path: str):
    """Return a function by its path, or None if the package lacks it."""
    return functools.reduce(lambda x, name: getattr(x, name, None), path.split("."), package)


def contenders(case: Case) -> dict:
    """Return a call without arguments for each column."""
    own, scipys, given = found_in(gradops.scipy, case.path), found_in(scipy, case.path), case.given
    calls = {"SciPy": lambda: scipys(*given), "value": lambda: own(*given)}
    functions = {"jit: value": gradops.jit(lambda *xs: own(*xs))}
    by = {"by the argument": case.argument} | ({} if case.shape is None else {"by a shape": case.shape})
    for column, place in by.items():
        functions[column] = gradops.grad(lambda *xs: ops.sum(own(*xs)), argnums=place)
        functions[f"jit: {column}"] = gradops.jit(functions[column])
    for column, function in functions.items():
        calls[column] = lambda function=function: function(*given)
    theirs = found_in(jax.scipy, case.path)
    if theirs is not None:
        xs = [jax.numpy.asarray(x) for x in given]
        for column, function in (
            ("JAX: value", jax.jit(theirs)),
            ("JAX: by the argument", jax.jit(jax.grad(lambda *xs: theirs(*xs).sum(), argnums=case.argument))),
        ):
            calls[column] = lambda function=function: function(*xs).block_until_ready()
    return calls


def every_one(size: int = 1000) -> list[Case]:
    """Return a case for each function in ``jax.scipy.special`` and each distribution method in ``jax.scipy.stats``."""
    rng = np.random.default_rng(36)
    a, b = rng.uniform(0.5, 20, (2, size))
    x, p, t, k = rng.gamma(a), rng.beta(a, b), rng.standard_t(5, size), rng.poisson(5, size).astype("float64")
    u, s, n = rng.uniform(1.1, 4, size), np.abs(t) + 0.1, np.full(size, 20.0)
    functions = [
        ((t,), "dawsn erf erfc erfcx expit fresnel i0 i0e i1 i1e log_ndtr log_softmax logsumexp ndtr softmax"),
        ((s,), "entr exp1 expi sici spence"),
        ((x + 0.1,), "digamma factorial gamma gammaln loggamma"),
        ((p,), "logit ndtri"),
        ((2 * p - 1,), "erfinv"),
        ((s, u), "boxcox boxcox1p kl_div rel_entr xlog1py xlogy"),
        ((a, b), "beta betaln"),
        ((a, u), "poch"),
        ((t, s), "owens_t"),
    ]
    found = [Case(f"special.{name}", given, 0) for given, names in functions for name in names.split()]
    for name, given, place in (
        ("betainc", (a, b, p), 2),
        ("gammainc", (a, x), 1),
        ("gammaincc", (a, x), 1),
        ("hyp1f1", (a, b, t), 2),
        ("hyp2f1", (a, b, a + b + 1, p / 2), 3),
        ("zeta", (u + 0.1, s), 1),
    ):
        found.append(Case(f"special.{name}", given, place))
    families = [
        ((t,), "cauchy gumbel_l gumbel_r laplace logistic norm"),
        ((x,), "expon"),
        ((p,), "uniform"),
        ((x, a), "chi2 gamma"),
        ((t, u), "gennorm vonmises"),
        ((t, a), "t"),
        ((u, a), "pareto"),
        ((p, a, b), "beta"),
        ((np.clip(t, -1, 1), 0 * t - 1.5, 0 * t + 1.5), "truncnorm"),
        ((np.mod(s, 6), p), "wrapcauchy"),
        ((np.round(p), p), "bernoulli"),
        ((k, n, a, b), "betabinom"),
        ((k, n, p), "binom"),
        ((k + 1, p), "geom"),
        ((k, a, p), "nbinom"),
        ((k, x), "poisson"),
    ]
    for given, names in families:
        for name in names.split():
            for method in sorted({"pdf", "pmf", "logpdf", "logpmf", "cdf", "sf", "logcdf", "logsf", "ppf", "isf"}):
                if found_in(jax.scipy, f"stats.{name}.{method}"):
                    of = (p, *given[1:]) if method in ("ppf", "isf") else given
                    counted = method.endswith("pmf") or found_in(jax.scipy, f"stats.{name}.pmf")
                    found.append(Case(f"stats.{name}.{method}", of, len(of) - 1 if counted else 0))
    return found


def beside_jax(paths: list[str]) -> None:
    """Print times of compiled values and gradients in gradops and JAX, the worst ratio first.

    Gradients are with respect to the argument or, for distributions of counts, the last parameter.
    """
    rows = []
    for case in every_one():
        if paths and case.path not in paths:
            continue
        own, theirs = found_in(gradops.scipy, case.path), found_in(jax.scipy, case.path)
        calls = {}
        for name, function, total, package in (
            ("value", own, ops.sum, gradops),
            ("JAX: value", theirs, jax.numpy.sum, jax),
        ):
            given = case.given if package is gradops else [jax.numpy.asarray(x) for x in case.given]

            def first(*xs, function=function):
                y = function(*xs)
                return y[0] if isinstance(y, tuple) else y

            slope = package.grad(lambda *xs, f=first, total=total: total(f(*xs)), argnums=case.argument)
            for column, f in ((name, first), (name.replace("value", "gradient"), slope)):
                program = package.jit(f)
                calls[column] = lambda program=program, given=given: jax.block_until_ready(program(*given))
        try:
            times = compare(calls, repeats=40, budget=0.002)
        except Exception as error:  # JAX lacks gradients of some functions
            print(f"{case.path}: {type(error).__name__}")
            continue
        ratios = [times[c] / times[f"JAX: {c}"] for c in ("value", "gradient")]
        shown = [f"{times[c] * 1e6:.0f}" for c in ("value", "JAX: value", "gradient", "JAX: gradient")]
        rows.append((max(ratios), [case.path, *(f"{r:.2f}" for r in ratios), *shown]))
    header = ["function", "value", "gradient", "value, us", "JAX", "gradient, us", "JAX"]
    table(header, [row for _, row in sorted(rows, key=lambda pair: -pair[0])])


def main() -> None:
    jax.config.update("jax_enable_x64", True)
    if "--jax" in sys.argv:
        beside_jax(sys.argv[2:])
        return
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
