"""Times what the dispatch of gradops and of Keras adds to a native call, on each backend.

    python benchmarks/dispatch.py            # a table for all backends
    python benchmarks/dispatch.py --backend torch

Keras has one backend per process, so each backend is measured in a separate process.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys

NAMES = ("numpy", "torch", "jax", "tensorflow")


def measure(backend: str) -> None:
    os.environ.update(KERAS_BACKEND=backend, TF_CPP_MIN_LOG_LEVEL="3")
    import keras
    from timing import compare

    from gradops import backends, ops

    owner = backends.lookup(backend)
    x = owner.convert([[0.1 * i + 0.01 * j for j in range(10)] for i in range(10)], "float32")
    if backend == "numpy":
        import numpy as np

        native = {"exp": lambda: np.exp(x), "add": lambda: np.add(x, x), "sum": lambda: np.add.reduce(x, axis=0)}
        native["reshape"] = lambda: np.reshape(x, (4, 25))
    elif backend == "torch":
        import torch

        torch.set_num_threads(1)
        native = {"exp": lambda: torch.exp(x), "add": lambda: torch.add(x, x), "sum": lambda: torch.sum(x, dim=0)}
        native["reshape"] = lambda: torch.reshape(x, (4, 25))
    elif backend == "jax":
        import jax.numpy as jnp

        native = {"exp": lambda: jnp.exp(x), "add": lambda: jnp.add(x, x), "sum": lambda: jnp.sum(x, axis=0)}
        native["reshape"] = lambda: jnp.reshape(x, (4, 25))
    else:
        import tensorflow as tf

        native = {"exp": lambda: tf.exp(x), "add": lambda: tf.add(x, x), "sum": lambda: tf.reduce_sum(x, axis=0)}
        native["reshape"] = lambda: tf.reshape(x, (4, 25))
    result = {}
    for name, call in native.items():
        extra = {"sum": {"axis": 0}, "reshape": {"newshape": (4, 25)}}.get(name, {})
        args = (x, x) if name == "add" else (x,)
        mine, theirs = getattr(ops, name), getattr(keras.ops, name)
        result[name] = compare(
            {
                "native": call,
                "gradops": lambda f=mine, a=args, k=extra: f(*a, **k),
                "keras": lambda f=theirs, a=args, k=extra: f(*a, **k),
            }
        )
    print("RESULT" + json.dumps(result))


def main() -> None:
    from timing import table

    rows = []
    for backend in NAMES:
        command = [sys.executable, __file__, "--backend", backend]
        out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        found = json.loads(next(line for line in out.splitlines() if line.startswith("RESULT"))[6:])
        for op, t in found.items():
            mine, theirs = t["gradops"] - t["native"], t["keras"] - t["native"]
            cells = [f"{1e6 * v:.2f}" for v in (t["native"], mine, theirs)]
            rows.append([backend, op, *cells, f"{mine / theirs:.2f}" if theirs > 0 else "-"])
    table(["backend", "op", "native, us", "gradops adds, us", "Keras adds, us", "gradops / Keras"], rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--backend", choices=NAMES)
    chosen = parser.parse_args().backend
    measure(chosen) if chosen else main()
