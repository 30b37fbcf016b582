"""Times ``gradops.scipy.sparse.linalg`` and SuperLU on matrices of lattices, on NumPy arrays.

    python benchmarks/scipy_sparse.py

Times are milliseconds of the numeric part. The symbolic part is done once per pattern and has its own column.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import time

import numpy as np
import scipy.sparse
import scipy.sparse.linalg
from timing import compare, table

import gradops
from gradops.scipy import sparse
from gradops.scipy.sparse import _ops
from gradops.scipy.sparse._columns import symbolic_of

SIZES = (32, 100, 316)


def lattice(m: int):
    line = scipy.sparse.diags_array([-np.ones(m - 1)] * 2, offsets=[-1, 1], shape=(m, m))
    found = scipy.sparse.kronsum(line, line, format="csc")
    return (found + scipy.sparse.diags_array(abs(found).sum(0) + 0.1)).tocsc()


def contenders(theirs) -> dict:
    """Return a call without arguments for each column. Each call computes its factors again."""
    A, b = sparse.csc_array(theirs), np.random.default_rng(38).normal(size=theirs.shape[0])
    none, factor = np.zeros((A.nnz, 0)), _ops.cholesky(A.pattern, A.values)
    symbolic = A.pattern.__dict__["symbolic"]
    settings = {"permc_spec": "MMD_AT_PLUS_A", "diag_pivot_thresh": 0.0, "options": {"SymmetricMode": True}}
    superlu = scipy.sparse.linalg.splu(theirs, **settings)
    scale = iter(np.linspace(1.0, 2.0, 100_000))  # new numbers in each call, so that no factor is cached
    value = lambda t: sparse.linalg.logdet(t * A)  # noqa: E731
    slope = gradops.grad(value)
    return {
        "factor": lambda: symbolic.factored(A.values),
        "inverse on the pattern": lambda: factor.inverse(none),
        "solve": lambda: factor.solve(b[:, None]),
        "logdet": lambda: value(next(scale)),
        "logdet with gradient": lambda: slope(next(scale)),
        "SuperLU: factor": lambda: scipy.sparse.linalg.splu(theirs, **settings),
        "SuperLU: solve": lambda: superlu.solve(b),
    }


def main() -> None:
    columns: list[str] = []
    rows = []
    for m in SIZES:
        A = lattice(m)
        pattern = sparse.csc_array(A).pattern
        start = time.perf_counter()
        symbolic_of(pattern)
        symbolic = time.perf_counter() - start
        times = compare(contenders(A), repeats=5)
        columns = list(times)
        rows.append([f"{m * m:,}", f"{symbolic * 1e3:.1f}", *(f"{t * 1e3:.2f}" for t in times.values())])
    table(["rows", "symbolic", *columns], rows)


if __name__ == "__main__":
    main()
