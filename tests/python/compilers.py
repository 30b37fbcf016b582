"""The libraries' own compilers: how each handles every op, values and gradients, compared with the op uncompiled.

    python tests/python/compilers.py            record all ops in tools/compiled.csv (some twenty minutes)
    python tests/python/compilers.py det eig    these alone

The record lists the ops that some compiler does not take; every other op is `yes` for each compiler.
`test_engines_compiled.py` holds the record against what happens, and `tools/ops_table.py` puts it into docs/ops.md.
"""

from __future__ import annotations

import csv
import importlib
import os
import pathlib
import pkgutil
import sys
from collections.abc import Callable

import cases
import numpy as np
import parity

from gradops import backends, config

RECORD = pathlib.Path(__file__).resolve().parents[2] / "tools" / "compiled.csv"

REASONS = {
    "bartlett": "its length would be a tensor's value: give a number",
    "bincount": "its length is the largest value: give `minlength`",
    "blackman": "its length would be a tensor's value: give a number",
    "convert_to_numpy": "NumPy's array is on the host",
    "ctc_beams": "a search on the host",
    "det": "TensorFlow has no LU decomposition for XLA",
    "adjugate": "TensorFlow has no LU decomposition for XLA",
    "logdet": "TensorFlow has no LU decomposition for XLA",
    "lu_factor": "TensorFlow has no LU decomposition for XLA",
    "slogdet": "TensorFlow has no LU decomposition for XLA",
    "eig": "TensorFlow has no eigenvalues for XLA",
    "expm": "XLA needs to know how often the scaling is undone to go back through it",
    "gammainc": "it is SciPy's function, on the host, which XLA does not call",
    "gammaincc": "it is SciPy's function, on the host, which XLA does not call",
    "hamming": "its length would be a tensor's value: give a number",
    "hanning": "its length would be a tensor's value: give a number",
    "i0": "TensorFlow has no Bessel functions for XLA",
    "i1": "TensorFlow has no Bessel functions for XLA",
    "image.elastic_transform": "it draws its numbers on the host",
    "kaiser": "its length would be a tensor's value: give a number; TensorFlow has no Bessel functions for XLA",
    "nonzero": "its length follows from the values",
    "unique": "its length follows from the values: give `size`",
}
"""Why an op is not compiled, or why only its values are."""


def _torch(f: Callable) -> Callable:
    import torch

    torch._dynamo.reset()
    return torch.compile(f, fullgraph=True, backend="aot_eager")


def _inductor(f: Callable) -> Callable:
    import torch

    torch._dynamo.reset()
    return torch.compile(f, fullgraph=True)


def _jax(f: Callable) -> Callable:
    import jax

    return jax.jit(f)


def _graph(f: Callable) -> Callable:
    import tensorflow as tf

    return tf.function(f, autograph=False)


def _xla(f: Callable) -> Callable:
    import tensorflow as tf

    return tf.function(f, autograph=False, jit_compile=True)


COMPILERS = {
    "torch.compile": ("torch", _torch),
    "tf.function": ("tensorflow", _graph),
    "tf.function, XLA": ("tensorflow", _xla),
    "jax.jit": ("jax", _jax),
}
"""The backend of each compiler, and how it compiles a function of tensors."""
CODE = "torch.compile, Inductor"
"""`torch.compile` with code generation. The record omits code generation, which takes some seconds per op."""
_ALL = COMPILERS | {CODE: ("torch", _inductor)}
INSTALLED = [name for name, (backend, _) in COMPILERS.items() if backends.installed(backend)]


def results(case, compiler: str, arguments: dict) -> tuple[list, list]:
    """Return a case's results without and with the compiler. All tensors are arguments of the compiled function."""
    backend, compiled = _ALL[compiler]
    function, known = case.function(), {k: parity.tensors(v, backend) for k, v in arguments.items()}
    names = [k for k, v in arguments.items() if any(isinstance(x, np.ndarray) for x in parity.flat(v))]

    def run(*given):
        return [x for x in parity.flat(function(**{**known, **dict(zip(names, given))})) if x is not None]

    given = [known[name] for name in names]
    with config.backend_scope(backend):
        return parity.numpy(run(*given)), parity.numpy(compiled(run)(*given))


def gradients(case, compiler: str, arguments: dict) -> tuple[list, list]:
    """Return the library's own gradient of a case without and with its compiler."""
    backend, compiled = _ALL[compiler]
    xs = parity.differentiated(case, arguments)
    results = parity.results_function(case, arguments, backend)

    def scalar(f: Callable) -> Callable:
        return lambda *values: parity.loss(found := f(*values), parity.weights(found))

    with config.backend_scope(backend):
        want = parity.native_gradient(scalar(results), xs, backend)
        if backend == "torch":  # its compiler takes the function and differentiates it itself
            return want, parity.native_gradient(scalar(compiled(results)), xs, backend)
        given = [parity.tensors(x, backend) for x in xs]
        return want, parity.numpy(list(compiled(_derivative(scalar(results), backend))(*given)))


def _derivative(f: Callable, backend: str) -> Callable:
    if backend == "jax":
        import jax
        import jax.numpy as jnp

        def derivative(*xs):
            return [jnp.conj(g) for g in jax.grad(f, argnums=tuple(range(len(xs))))(*xs)]

        return derivative
    import tensorflow as tf

    def derivative(*xs):
        with tf.GradientTape() as tape:
            tape.watch(xs)
            y = f(*xs)
        return [tf.convert_to_tensor(g) for g in tape.gradient(y, xs, unconnected_gradients="zero")]

    return derivative


def chosen() -> dict:
    """Return for each op the case to compile: its first case with gradients, else its first case."""
    found: dict = {}
    for module in sorted(m.name for m in pkgutil.iter_modules(cases.__path__)):
        for case in importlib.import_module(f"cases.{module}").CASES:
            known = found.setdefault(case.op, case)
            if case.gradients and not case.by_value and (known.by_value or not known.gradients):
                found[case.op] = case
    return found


def cell(case, compiler: str) -> str:
    """Return how an op fares under a compiler: `yes`, `values` if the gradient is lost, or `no`."""
    done = "no"
    for compare in (results, gradients):
        if compare is gradients and not case.gradients:
            break
        try:
            _compared(case, compiler, compare)
        except Exception as error:
            if isinstance(error, AssertionError):  # a wrong value is never excused by the record
                raise
            return done
        done = "values"
    return "yes"


def _compared(case, compiler: str, compare: Callable) -> None:
    want, got = compare(case, compiler, case.example())
    assert len(want) == len(got)
    for w, g in zip(want, got):
        np.testing.assert_allclose(g, w, rtol=10 * case.rtol, atol=10 * case.atol, err_msg=f"{case.id}: {compiler}")
        assert np.asarray(g).dtype == np.asarray(w).dtype, (case.id, compiler)


def exceptions() -> dict[str, dict[str, str]]:
    """Return the rows of the record: the ops that some compiler does not take."""
    with open(RECORD, newline="") as file:
        return {row.pop("op"): row for row in csv.DictReader(file)}


def recorded() -> dict[str, dict[str, str]]:
    return {op: dict.fromkeys(COMPILERS, "yes") for op in chosen()} | exceptions()


def write(rows: dict[str, dict[str, str]]) -> None:
    with open(RECORD, "w", newline="") as file:
        writer = csv.DictWriter(file, ["op", *COMPILERS], lineterminator="\n")
        writer.writeheader()
        writer.writerows({"op": op, **row} for op, row in sorted(rows.items()) if set(row.values()) != {"yes"})


def main(names: list[str]) -> None:
    rows, every = exceptions(), chosen()
    for op in names or every:
        rows[op] = {compiler: cell(every[op], compiler) for compiler in COMPILERS}
        print(op, *rows[op].values(), flush=True)
        write(rows)


if __name__ == "__main__":
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ["JAX_ENABLE_X64"] = "1"
    main(sys.argv[1:])
