"""Cases: sets."""

import hypothesis.strategies as st
import numpy as np
from parity import Case, arrays, inputs, leading, positional

from .bounds import NAN

repeated = np.array([[2.0, 1.0, 2.0], [5.0, 1.0, -3.0]])
rows = np.array([[1, 0], [0, 1], [1, 0], [0, 0]])
full = {"return_index": True, "return_inverse": True, "return_counts": True}


def in_order(x):
    return x.ravel()[np.sort(np.unique(x, return_index=True)[1])]


CASES = [
    Case(
        "isin",
        inputs(x1=arrays((3, 4), 0, 9, dtype="int64"), x2=arrays((4, 3), 0, 9, dtype="int64")),
        positional(np.isin),
    ),
    Case(
        "isin",
        inputs(x1=repeated, x2=np.array([1.0, NAN, 5.0]), assume_unique=False, invert=True),
        positional(np.isin),
        label="few",
    ),
    Case("isin", inputs(x1=np.array([1.0, NAN]), x2=np.array([1.0, NAN] * 6)), positional(np.isin), label="nan"),
    Case("isin", inputs(x1=np.array(1.5), x2=np.array([])), positional(np.isin), label="empty"),
    Case("isin", inputs(x1=np.array([1, 2]), x2=np.arange(0.5, 12, 0.5)), positional(np.isin), label="mixed"),
    Case("unique", inputs(x=repeated), leading(np.unique), ["x"], by_value=True),
    Case(
        "unique",
        inputs(x=repeated, sorted=st.just(True), **full),
        lambda x, sorted, **k: list(np.unique(x, **k)),
        label="all",
    ),
    Case("unique", inputs(x=np.array([NAN, 1.0, NAN])), leading(np.unique), label="nan"),
    Case(
        "unique", inputs(x=rows, axis=0, **full), lambda x, axis, **k: list(np.unique(x, axis=axis, **k)), label="rows"
    ),
    Case("unique", inputs(x=repeated, sorted=False), lambda x, sorted: in_order(x), label="unsorted"),
    Case(
        "unique",
        inputs(x=repeated, size=6, fill_value=9.0),
        lambda x, **k: np.array([-3, 1, 2, 5, 9, 9.0]),
        label="filled",
    ),
    Case(
        "unique",
        inputs(x=repeated, size=5),
        lambda x, **k: np.array([-3, 1, 2, 5, -3.0]),
        label="filled with the first",
    ),
    Case(
        "unique",
        inputs(x=repeated, size=2, return_counts=True),
        lambda x, **k: [np.array([-3, 1.0]), np.array([1, 2])],
        label="cut",
    ),
    Case("unique", inputs(x=np.zeros((0,))), leading(np.unique), label="empty"),
]
