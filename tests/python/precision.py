"""Every case of ``cases`` in other precisions: values, dtypes and gradients, compared with double precision.

An op returns the dtype of its arguments, with the values of double precision rounded to it. Complex inputs are the
case's own or, for ops without a complex case, its real inputs rotated in the complex plane.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import numpy as np
from parity import Case, flat, numpy, weights
from parity import loss as loss_of_one

import gradops
from gradops import backends, ops
from gradops.errors import ArgumentTypeError

KINDS = {  # precision: its real and complex dtypes, and tolerances of results, gradients and second gradients
    "float16": ("float16", "complex64", (2e-2, 4e-2, 1e-1)),
    "bfloat16": ("bfloat16", "complex64", (1e-1, 2e-1, 4e-1)),
    "complex64": ("float32", "complex64", (1e-4, 1e-3, 1e-2)),
}


def each_array(value, change):
    """Apply a change to every array in a value, also inside lists."""
    if isinstance(value, np.ndarray):
        return change(value)
    if isinstance(value, (list, tuple)) and any(isinstance(v, np.ndarray) for v in value):
        return [each_array(v, change) for v in value]
    return value


def kinds(arguments: dict) -> set[str]:
    found: set[str] = set()
    for value in arguments.values():
        each_array(value, lambda x: found.add(x.dtype.kind))
    return found


def rounded(x: np.ndarray, precision: str) -> np.ndarray:
    """Round an array to what a precision can represent, stored in double precision."""
    if x.dtype.kind not in "fc":
        return x
    real, both, _ = KINDS[precision]
    if x.dtype.kind == "c":
        return np.asarray(x.astype(both), "complex128")
    if real == "bfloat16":
        bits = np.asarray(x, "float32").view("uint32")
        return np.asarray((bits & np.uint32(0xFFFF0000)).view("float32"), "float64")
    return np.asarray(x.astype(real), "float64")


def turned(case: Case, arguments: dict) -> dict:
    """Return the differentiated arguments as complex numbers."""

    def turn(x):
        return np.asarray(x * np.exp(0.3j)) if x.dtype.kind == "f" else x

    return {k: each_array(v, turn) if k in case.gradients else v for k, v in arguments.items()}


def converted(value, backend: str, names: dict):
    owner = backends.lookup(backend)
    return each_array(value, lambda x: owner.convert(x, names.get(x.dtype.kind)))


def outcome(case: Case, arguments: dict, backend: str, names: dict, orders: int = 2) -> tuple[list, list, list]:
    """Return results, gradients and second gradients as tensors. ``names``: dtypes of floats and complex numbers."""
    given = {k: converted(v, backend, names) for k, v in arguments.items()}
    leaves = [x for k in case.gradients for x in (given[k] if isinstance(given[k], list) else [given[k]])]

    def results(*values):
        queue, now = list(values), dict(given)
        for k in case.gradients:
            now[k] = [queue.pop(0) for _ in now[k]] if isinstance(now[k], list) else queue.pop(0)
        return flat(case.function()(**now))

    def scalar(*values):
        found = results(*values)
        return loss(found, weights(found))

    def gradients(*values):
        found = gradops.grad(scalar, argnums=tuple(range(len(values))))(*values)
        return list(found)

    def again(*values):
        found = gradients(*values)
        return loss(found, weights(found, seed=11))

    def all_orders(*values):
        first = gradients(*values) if orders and values else []
        second = list(gradops.grad(again, argnums=tuple(range(len(values))))(*values)) if orders > 1 and values else []
        return results(*values), first, second

    return as_one_program(all_orders, leaves) if backend == "jax" and leaves else all_orders(*leaves)


def as_one_program(f: Callable, leaves: list):
    """Return ``f`` as one JAX program instead of one per operation; eager if control flow depends on values."""
    import jax

    others: list = []

    def tensors(*values):
        found, form = jax.tree_util.tree_flatten(f(*values))
        others[:] = [[None if backends.backend_of(x) is not None else x for x in found], form]
        return [x for x in found if backends.backend_of(x) is not None]

    try:
        found = iter(jax.jit(tensors)(*leaves))
    except Exception:  # any other error also occurs eagerly
        return f(*leaves)
    return jax.tree_util.tree_unflatten(others[1], [next(found) if x is None else x for x in others[0]])


def loss(results: list, ws: list):
    """Return a real scalar loss of results of different dtypes."""
    parts = [loss_of_one([r], [w]) for r, w in zip(results, ws)]
    return ops.sum(ops.stack([part for part in parts if part is not None]))


def _difference(a, b):
    finite = np.isfinite(a) & np.isfinite(b)
    return np.where(finite, a, 0) - np.where(finite, b, 0)


def wide(array) -> np.ndarray:
    """Return a tensor's values in double precision."""
    x = numpy(ops.cast(array, "float32") if ops.dtype(array) == "bfloat16" else array)
    return x.astype("complex128") if np.iscomplexobj(x) else np.asarray(x, "float64")


def check(case: Case, precision: str, backend: str, orders: int = 2) -> list[str]:
    """Return the faults of a case in a precision on a backend."""
    real, both, tolerances = KINDS[precision]
    arguments = {k: each_array(v, lambda x: rounded(x, precision)) for k, v in case.example().items()}
    if precision == "complex64" and "c" not in kinds(arguments):
        arguments = turned(case, arguments)
    try:
        want = outcome(case, arguments, "numpy", {"f": "float64", "c": "complex128"}, orders)
    except ArgumentTypeError:  # complex numbers where the op has no result for them
        with contextlib.suppress(ArgumentTypeError):
            outcome(case, arguments, backend, {"f": real, "c": both}, 0)
            return ["refused on NumPy alone"]
        return []
    got = outcome(case, arguments, backend, {"f": real, "c": both}, orders)
    wrong = []
    for order, (mine, theirs) in enumerate(zip(got, want)):
        for g, w in zip(mine, theirs, strict=True):
            if backends.backend_of(g) is None:
                continue
            name, wide_name = ops.dtype(g), ops.dtype(w)
            expected = {"float64": real, "complex128": both}.get(wide_name, wide_name)
            if case.op == "eig" and precision != "complex64" and expected == real and order == 0:
                expected = "float32"  # eigenvalues of complex64 matrices are float32
            if name != expected and case.using is None and "dtype" not in arguments:
                wrong.append(f"order {order}: {name}, not {expected}")
            a, b = wide(g), wide(w)
            if a.shape != b.shape:
                wrong.append(f"order {order}: shape {a.shape}, not {b.shape}")
                continue
            scale = max(1.0, float(np.max(np.abs(b[np.isfinite(b)]), initial=0.0)))
            off = np.abs(_difference(a, b)) / scale
            if np.max(off, initial=0.0) > tolerances[order] or (np.isfinite(a) != np.isfinite(b)).any():
                wrong.append(f"order {order}: off by {np.max(off, initial=0.0):.2g}")
    return wrong
