"""Cases: norms and distances."""

import math

import hypothesis.strategies as st
import numpy as np
from parity import Case, arrays
from scipy.spatial import distance


def norm(shape, label="", dtype="float64", away=(0.0,), native=("torch", "jax", "tensorflow"), **options):
    inputs = st.fixed_dictionaries({"x": arrays(shape, dtype=dtype, away=away)}).map(lambda given: {**given, **options})
    words = "-".join(str(v) for v in (*shape, *options.values(), label) if v != "")
    return Case(
        "norm",
        inputs,
        lambda x, **rest: np.linalg.norm(x, **rest),
        gradients=["x"] if options.get("ord") != 0 else [],
        label=words,
        native=native,
    )


def points(first, second, label="", dtype="float64"):
    inputs = st.fixed_dictionaries({"x": arrays(first, dtype=dtype), "y": arrays(second, dtype=dtype)})
    return Case("cdist", inputs, cdist, gradients=["x", "y"], label=label)


def cdist(x, y):
    if np.iscomplexobj(x):
        x, y = (np.concatenate([z.real, z.imag], -1) for z in (x, y))
    batch = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    x, y = np.broadcast_to(x, batch + x.shape[-2:]), np.broadcast_to(y, batch + y.shape[-2:])
    out = np.empty((*batch, x.shape[-2], y.shape[-2]))
    for i in np.ndindex(batch):
        out[i] = distance.cdist(x[i], y[i])
    return out


CASES = [
    norm(()),
    norm((2, 3, 2)),
    norm((3, 2), dtype="complex128", label="complex"),
    norm((2, 3), axis=-1, keepdims=True),
    norm((2, 3), axis=(0, 1), keepdims=True),
    *(norm((2, 3), ord=p, axis=1) for p in (math.inf, -math.inf, 0, 1, 2, 3, -1, 0.5, 1.5)),
    norm((3,), ord=3, dtype="complex128", label="complex"),
    *(norm((2, 3), ord=p) for p in ("fro", "nuc", math.inf, -math.inf, 1, -1, 2, -2)),
    *(norm((2, 2), ord=p, dtype="complex128", label="complex") for p in ("nuc", 1)),
    norm((2, 3, 2), ord=2, axis=(0, 2)),
    norm((2, 3, 2), ord="nuc", axis=(2, 0), keepdims=True),
    norm((2, 3, 2), ord=1, axis=(2, 0)),
    Case("norm", st.just({"x": np.arange(6).reshape(2, 3)}), lambda x: np.linalg.norm(x), label="integers"),
    points((3, 2), (4, 2)),
    points((2, 1, 2, 3), (2, 3), "broadcast"),
    points((2, 2), (2, 2), "complex", "complex128"),
]
