"""Cases: scattering and segments."""

import hypothesis.strategies as st
import numpy as np
from parity import Case, arrays


def scatter(indices, values, shape, label=""):
    indices = np.array(indices)

    def reference(indices, values, shape):
        out = np.zeros(shape)
        np.add.at(out, tuple(np.moveaxis(indices, -1, 0)), values)
        return out

    inputs = {"indices": st.just(indices), "values": arrays(values), "shape": st.just(shape)}
    return Case("scatter", st.fixed_dictionaries(inputs), reference, gradients=["values"], label=label)


def scatter_update(indices, shape, updates, reduction, label=""):
    indices = np.array(indices)
    at = {"add": np.add.at, "max": np.maximum.at, "min": np.minimum.at, "mul": np.multiply.at}

    def reference(inputs, indices, updates, reduction):
        out, key = inputs.copy(), tuple(np.moveaxis(indices, -1, 0))
        if reduction is None:
            out[key] = updates
        else:
            at[reduction](out, key, updates)
        return out

    inputs = {"inputs": arrays(shape, distinct=True), "indices": st.just(indices), "updates": arrays(updates)}
    return Case(
        "scatter_update",
        st.fixed_dictionaries(inputs | {"reduction": st.just(reduction)}),
        reference,
        gradients=["inputs", "updates"],
        label=f"{label}{reduction}",
    )


def block(op, shape, start, sizes, tensor=False):
    start = np.array(start) if tensor else start

    def reference(inputs, start_indices, shape=None, updates=None):
        sizes = updates.shape if shape is None else shape
        key = tuple(slice(s, None if n == -1 else s + n) for s, n in zip(start_indices, sizes))
        if updates is None:
            return inputs[key]
        out = inputs.copy()
        out[key] = updates
        return out

    inputs = {"inputs": arrays(shape), "start_indices": st.just(start)}
    inputs |= {"shape": st.just(sizes)} if op == "slice" else {"updates": arrays(sizes)}
    return Case(
        op,
        st.fixed_dictionaries(inputs),
        reference,
        gradients=["inputs"] if op == "slice" else ["inputs", "updates"],
        label=f"{start}-{sizes}" + "-tensor" * tensor,
    )


IDS = np.array([2, 0, 2, 5, -1, 0, 2])
AT = {
    "segment_sum": (np.add.at, 0.0),
    "segment_prod": (np.multiply.at, 1.0),
    "segment_max": (np.maximum.at, -np.inf),
    "segment_min": (np.minimum.at, np.inf),
}


def segment(op, label="", data=(7, 2), ids=IDS, count=4, dtype="float64", empty=None, zeros=False):
    at, start = AT[op]
    start = start if empty is None else empty

    def reference(data, segment_ids, num_segments=None):
        total = segment_ids.max() + 1 if num_segments is None else num_segments
        inside = (segment_ids >= 0) & (segment_ids < total)
        out = np.full((total, *data.shape[1:]), start, data.dtype)
        at(out, segment_ids[inside], data[inside])
        return out

    rows = arrays(data, distinct=not zeros, dtype=dtype, low=-3, high=4)
    inputs = {"data": rows.map(lambda x: np.where(x > 1, 0.0, x)) if zeros else rows, "segment_ids": st.just(ids)}
    if count is not None:
        inputs["num_segments"] = st.just(count)
    floating = dtype == "float64"
    return Case(op, st.fixed_dictionaries(inputs), reference, gradients=["data"] if floating else (), label=label)


CASES = [
    scatter([[0], [2], [0]], (3,), (4,)),
    scatter([[1, 2], [0, -1], [1, 2]], (3,), (2, 3), label="pairs"),
    scatter([[[1], [0]], [[1], [1]]], (2, 2, 3), (3, 3), label="rows"),
    scatter([[0], [2], [0]], (), (4,), label="number"),
    scatter(np.zeros((0, 1), int), (0, 2), (3, 2), label="none"),
    *(scatter_update([[0, 1], [2, 2], [0, 1]], (3, 4), (3,), r) for r in (None, "add", "max", "min", "mul")),
    *(scatter_update([[2], [0], [-1]], (3, 2), (3, 2), r, "rows ") for r in (None, "add", "max", "min", "mul")),
    block("slice", (3, 4), [1, 0], [2, 3]),
    block("slice", (3, 4), (0, 2), (-1, -1)),
    block("slice", (3, 4), (1, 1), (1, 2), tensor=True),
    block("slice", (3,), (3,), (0,)),
    block("slice_update", (3, 4), [1, 0], (2, 3)),
    block("slice_update", (3, 4), [1, 2], (1, 2), tensor=True),
    *(segment(op) for op in AT),
    *(segment(op, "counted", data=(4,), ids=np.array([0, 1, 1, 3]), count=None) for op in AT),
    *(segment(op, "one segment", data=(5,), ids=np.zeros(5, int), count=1) for op in AT),
    *(segment(op, "of nothing", data=(0, 2), ids=np.zeros(0, int), count=2) for op in AT),
    segment("segment_prod", "with zeros", zeros=True),
    segment("segment_sum", "integers", dtype="int64"),
    segment("segment_prod", "integers", dtype="int64"),
    segment("segment_max", "integers", dtype="int64", empty=np.iinfo("int64").min),
    segment("segment_min", "integers", dtype="int32", empty=np.iinfo("int32").max),
]
