"""Every op in the libraries' vectorization and forward mode, against the op on single rows.

PYTHONPATH=python python tests/python/vectorized.py torch.func.vmap ...     what fails, of all cases
"""

from __future__ import annotations

import re
import sys
import warnings

import numpy as np
import precision
from parity import flat, numpy

import gradops
from gradops import backends, ops

WAYS = ("torch.func.vmap", "torch.func.jvp", "jax.vmap", "jax.jvp", "tf.vectorized_map", "ops.vectorized_map")
OF_VALUES = re.compile("inside a trace|values of `segment_ids` are not known|one known number|StagingError")
"""The error of an op whose result shape depends on values, which a transformation does not have."""
BACKEND = {"torch": "torch", "jax": "jax", "tf": "tensorflow", "ops": "numpy"}


def rows_of(value):
    """Return two rows of a differentiated argument: itself and a slightly smaller copy with the same structure."""
    return precision.each_array(value, lambda x: np.stack([x, 0.97 * x]).astype(x.dtype))


def row(value, i: int):
    return [x[i] for x in value] if isinstance(value, list) else value[i]


def parts_of(case, arguments: dict, backend: str):
    """Return the op as a function of its differentiated arguments, and these arguments."""
    given = {k: precision.converted(v, backend, {}) for k, v in arguments.items()}

    def run(moving):
        results = flat(case.function()(**(given | moving)))
        return [r for r in results if backends.backend_of(r) is not None]

    return run, {k: arguments[k] for k in case.gradients}


def check(case, way: str) -> None:
    """Raise if a transformation gives a different result than the op alone."""
    library, backend = way.partition(".")[0], BACKEND[way.partition(".")[0]]
    backends.lookup(backend).prepare("float64")
    run, moving = parts_of(case, case.example(), backend)
    once = precision.as_one_program if library == "jax" else lambda f, values: f(*values)
    convert = lambda v: precision.converted(v, backend, {})  # noqa: E731
    if way.endswith("jvp"):
        return _forward(run, {k: convert(v) for k, v in moving.items()}, library, once)

    def all_ways(both):
        singles = [run({k: row(v, i) for k, v in both.items()}) for i in range(2)]
        return _mapped(way)(run, both), *singles

    got, *want = once(all_ways, [{k: convert(rows_of(v)) for k, v in moving.items()}])
    assert len(got) == len(want[0])
    for g, *singles in zip(got, *want):
        rtol = 1e-9 if ops.dtype(g) in ("float64", "complex128") else 1e-5
        np.testing.assert_allclose(numpy(g), np.stack([numpy(s) for s in singles]), rtol=rtol, atol=rtol / 100)


def _mapped(way: str):
    if way == "ops.vectorized_map":
        return lambda f, xs: ops.vectorized_map(f, xs)
    if way == "tf.vectorized_map":
        import tensorflow as tf

        return lambda f, xs: tf.vectorized_map(f, xs, warn=False)
    if way == "jax.vmap":
        import jax

        return lambda f, xs: jax.vmap(f)(xs)
    from torch.func import vmap

    return lambda f, xs: vmap(f, randomness="same")(xs)


def _forward(run, moving: dict, library: str, once) -> None:
    """Check forward mode against the transpose: for random ``w``, ``<w, J t>`` is ``<J' w, t>``."""
    names = list(moving)
    leaves = [x for k in names for x in (moving[k] if isinstance(moving[k], list) else [moving[k]])]
    tangents = weights_for(leaves, 7)

    def of_leaves(*xs):
        queue = list(xs)
        filled = {k: [queue.pop(0) for _ in moving[k]] if isinstance(moving[k], list) else queue.pop(0) for k in names}
        return tuple(r for r in run(filled) if "float" in ops.dtype(r) or "complex" in ops.dtype(r))

    def both_ways(*xs):
        if library == "jax":
            from jax import jvp
        else:
            from torch.func import jvp
        values, pushed = jvp(of_leaves, xs, tuple(tangents))
        ws = weights_for(values, 8)

        def weighted(*xs):
            return sum(ops.sum(ops.real(ops.multiply(ops.conj(w), y))) for w, y in zip(ws, of_leaves(*xs)))

        return ws, pushed, gradops.grad(weighted, argnums=tuple(range(len(xs))))(*xs)

    def inner(xs, ys):
        return sum(np.sum(np.real(np.conj(numpy(x)) * numpy(y))) for x, y in zip(xs, ys, strict=True))

    ws, pushed, pulled = once(both_ways, leaves)
    np.testing.assert_allclose(inner(ws, pushed), inner(pulled, tangents), rtol=1e-6, atol=1e-8)


def weights_for(tensors, seed: int) -> list:
    """Return random tensors of the same shapes and dtypes."""
    rng = np.random.default_rng(seed)
    return [backends.backend_of(x).convert(rng.normal(size=tuple(x.shape)).astype(ops.dtype(x))) for x in tensors]


def tried(way: str) -> dict[str, str]:
    from test_parity import CASES

    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for case in CASES:
            if not case.gradients or BACKEND[way.partition(".")[0]] in case.skip:
                continue
            try:
                check(case, way)
            except Exception as error:
                message = f"{type(error).__name__}: {error}"
                if OF_VALUES.search(message):
                    continue
                found[case.id] = message[:300]
                print(way, case.id, found[case.id].replace("\n", " ")[:220], flush=True)
    return found


if __name__ == "__main__":
    for name in sys.argv[1:] or WAYS:
        print(name, len(tried(name)), "of", "all cases")
