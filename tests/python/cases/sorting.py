"""Cases: sorting and searching."""

import hypothesis.strategies as st
import numpy as np
from parity import Case, arrays, inputs, leading, positional, shapes

from .bounds import INF, NAN

AXIS = st.sampled_from([-1, 0, None])
matrix = shapes(2, 3)
order = np.array([[3.0, 1.0, 2.0, 1.0], [0.0, -1.0, 5.0, 5.0], [2.0, 2.0, 2.0, 2.0]])
holes = np.array([[NAN, 1.0, INF, NAN, -INF, INF, 0.0]])


def stable(x, axis):
    return np.argsort(x, axis, kind="stable")


def top_k(x, k, sorted=True, is_stable=True):
    order = np.flip(x.shape[-1] - 1 - np.argsort(np.flip(x, -1), -1, kind="stable"), -1)[..., :k]
    return np.take_along_axis(x, order, -1), order


def in_top_k(targets, predictions, k):
    return np.array([np.isfinite(p[t]) and (p > p[t]).sum() < k for t, p in zip(targets, predictions)])


scores = np.array([[0.1, 0.7, 0.2], [0.5, 0.5, 0.0], [NAN, 1.0, 0.0], [INF, 1.0, 0.0]])
edges = np.array([-1.0, 0.0, 0.0, 1.5])
points = np.array([[-2.0, -1.0, 0.0], [1.5, 9.0, NAN]])

CASES = [
    Case("sort", inputs(x=arrays(matrix, distinct=True), axis=AXIS), positional(np.sort), ["x"]),
    Case("sort", inputs(x=arrays(matrix, -3, 4, dtype="int64"), axis=AXIS), positional(np.sort), label="integers"),
    Case("sort", inputs(x=arrays(matrix, 0, 4, dtype="uint8"), axis=AXIS), positional(np.sort), label="uint8"),
    Case("sort", inputs(x=arrays(matrix, dtype="bool"), axis=AXIS), positional(np.sort), label="bools"),
    Case("sort", inputs(x=arrays(matrix, dtype="float32"), axis=1), positional(np.sort), label="float32"),
    Case("sort", inputs(x=holes), positional(np.sort), label="nan"),
    Case("sort", inputs(x=np.array(2.0), axis=st.sampled_from([-1, 0])), lambda x, axis: x, ["x"], label="0-d"),
    Case("sort", inputs(x=np.zeros((2, 0))), positional(np.sort), label="empty"),
    Case("sort", inputs(x=order, axis=AXIS), positional(np.sort), ["x"], label="ties"),
    Case("argsort", inputs(x=arrays(matrix, -3, 4), axis=AXIS), stable),
    Case("argsort", inputs(x=order, axis=AXIS), stable, label="ties"),
    Case("argsort", inputs(x=arrays(matrix, 0, 3, dtype="uint8"), axis=AXIS), stable, label="uint8"),
    Case("argsort", inputs(x=holes, axis=-1), stable, label="nan"),
    Case(
        "argpartition", inputs(x=order, kth=st.sampled_from([0, 2, -1]), axis=-1), lambda x, kth, axis: stable(x, axis)
    ),
    Case("top_k", inputs(x=arrays((3, 5), distinct=True), k=st.integers(0, 5)), top_k, ["x"]),
    Case(
        "top_k",
        inputs(x=arrays((5,), distinct=True), k=2, sorted=False, is_stable=False),
        top_k,
        ["x"],
        label="unsorted",
    ),
    Case("top_k", inputs(x=order, k=3), top_k, label="ties"),
    Case("top_k", inputs(x=holes, k=5), top_k, label="nan"),
    Case("top_k", inputs(x=arrays((2, 2, 4), -3, 4, dtype="int32"), k=2), top_k, label="integers"),
    Case("in_top_k", inputs(targets=np.array([2, 1, 1, 1]), predictions=scores, k=st.sampled_from([1, 2])), in_top_k),
    Case(
        "in_top_k",
        inputs(targets=np.array([3, -1, 0, 0]), predictions=scores, k=3),
        lambda **k: np.array([False, False, False, False]),
        label="out of range",
    ),
    Case(
        "searchsorted",
        inputs(sorted_sequence=edges, values=points, side=st.sampled_from(["left", "right"])),
        positional(np.searchsorted),
    ),
    Case(
        "searchsorted",
        inputs(sorted_sequence=np.array([1, 3, 5]), values=np.array(3)),
        positional(np.searchsorted),
        label="integers",
    ),
    Case(
        "searchsorted",
        inputs(sorted_sequence=np.array([1, 3, 5]), values=np.array([2.5])),
        positional(np.searchsorted),
        label="mixed",
    ),
    Case(
        "searchsorted",
        inputs(sorted_sequence=np.array([]), values=np.array([2.5])),
        positional(np.searchsorted),
        label="empty",
    ),
    Case("digitize", inputs(x=points, bins=edges), leading(np.digitize)),
    Case("digitize", inputs(x=np.array([0, 1, 2]), bins=np.array([1, 2])), leading(np.digitize), label="integers"),
]
