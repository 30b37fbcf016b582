"""Cases: indexing."""

import hypothesis.strategies as st
import numpy as np
from parity import Case, arrays

MASK = np.array([[True, False, True, False], [False, True, True, False], [False, False, False, True]])
KEYS = {
    "int": 1,
    "last": -1,
    "slices": (slice(None, 2), slice(-3, None, 2)),
    "negative step": (slice(None, None, -1), slice(3, 0, -2)),
    "new dimensions": (None, ..., None, 0),
    "rows": [2, 0, 2],
    "negative rows": np.array([-1, 0]),
    "matrix of rows": np.array([[0, 1], [2, 1]]),
    "pairs": ([0, 2, 0], [1, 1, 1]),
    "crossed": ([[0], [2]], [1, 3]),
    "array after slice": (slice(None), [3, 0, 0]),
    "arrays apart": ([0, 1], None, [1, 2]),
    "int apart": (0, slice(None), [1, 0]),
    "int beside": (slice(None), 0, [1, 0]),
    "array and negative step": ([1, 0], slice(None, None, -2)),
    "mask": MASK,
    "mask of a dimension": (slice(None), [True, False, False, True]),
    "mask and negative step": (MASK.tolist(), slice(None, None, -1)),
    "none chosen": np.zeros((3, 4), bool),
    "empty list": [],
    "truth": True,
    "dots apart": (slice(None, None, -1), 0, ..., [1, 0]),
    "nothing of an empty part": (slice(0, 0), [1, 0], 0),
}
DEEP = {
    "int apart", "int beside", "mask and negative step", "dots apart", "nothing of an empty part",
}  # fmt: skip  # keys that need three dimensions


def size(name):
    return (3, 4, 2) if name in DEEP else (3, 4)


def at(function):
    """Turn NumPy's in-place update into a function that updates a copy."""

    def update(x, key, updates):
        out = x.copy()
        function(out, key, updates)
        return out

    return update


def keyed(op, reference, updating=False):
    for name, key in KEYS.items():
        inputs = {"x": arrays(size(name)), "key": st.just(key)}
        if updating:
            inputs["updates"] = arrays(np.empty(size(name))[key].shape)
        yield Case(
            op,
            st.fixed_dictionaries(inputs),
            reference,
            gradients=("x", "updates") if updating else ("x",),
            label=name,
        )


def np_take(x, indices, axis):
    return np.take(x, indices, axis)


def np_where(condition, **choices):
    return np.where(condition, choices["x1"], choices["x2"]) if choices else np.where(condition)


def take(shape, indices, axis=None, op="take", reference=None, label=""):
    inputs = st.fixed_dictionaries({"x": arrays(shape), "indices": st.just(np.array(indices)), "axis": st.just(axis)})
    return Case(op, inputs, reference or np_take, gradients=["x"], label=f"{label}{shape}-{indices}-{axis}")


def take_along(shape, indices, axis):
    """Return a case whose reference flattens the array for ``axis=None``."""

    def reference(x, indices, axis):
        if axis is None:
            return np.take_along_axis(x.ravel(), indices.ravel(), 0)
        return np.take_along_axis(x, indices, axis)

    return take(shape, indices, axis, "take_along_axis", reference)


def where(label="", dtype="float64", shapes=((2, 3), (3,), (2, 1)), **keywords):
    inputs = {"condition": arrays(shapes[0], dtype="bool")}
    inputs |= {name: arrays(s, dtype=dtype) for name, s in zip(("x1", "x2"), shapes[1:])}
    return Case("where", st.fixed_dictionaries(inputs), np_where, gradients=["x1", "x2"], label=label, **keywords)


def select(**options):
    inputs = {"condlist": st.tuples(arrays((2, 3), dtype="bool"), arrays((3,), dtype="bool")).map(list)}
    inputs |= {"choicelist": st.tuples(arrays((2, 3)), arrays((2, 1))).map(list)}
    inputs |= {name: st.just(value) for name, value in options.items()}
    label = "-".join(f"{k}={v}" for k, v in options.items())
    return Case("select", st.fixed_dictionaries(inputs), np.select, gradients=["choicelist"], label=label)


CASES = [
    *keyed("get_item", lambda x, key: x[key]),
    *keyed("add_at", at(np.add.at), updating=True),
    *keyed("set_at", at(lambda out, key, updates: out.__setitem__(key, updates)), updating=True),
    take((3, 4), [[0, -1], [2, 5]]),
    take((3, 4), [1, 1, -1], 1),
    take((3, 4), 2, 0),
    take((3, 4), [[0, 2]], -2),
    take((3,), np.zeros((0,), int), 0),
    take_along((3, 4), [[0, -1], [1, 1], [2, 2]], 1),
    take_along((3, 4), [[0, -1, 2, 0]], 0),
    take_along((3, 1), [[0, 1, 2]], 0),
    take_along((2, 3), [[0, 5]], None),
    where(),
    where("0-d", shapes=((), (), ())),
    where("complex", dtype="complex128"),
    Case(
        "where",
        st.fixed_dictionaries(
            {"condition": arrays((2, 3), dtype="bool"), "x1": arrays((3,), dtype="float32"), "x2": st.just(0)}
        ),
        np_where,
        label="a weak number",
    ),
    Case("where", st.fixed_dictionaries({"condition": arrays((2, 3), -1, 2, dtype="int64")}), np_where, label="alone"),
    Case("nonzero", st.fixed_dictionaries({"x": arrays((3, 2), -1, 2, dtype="int64")})),
    Case("nonzero", st.fixed_dictionaries({"x": arrays((4,), dtype="bool")}), label="vector"),
    select(),
    select(default=2.5),
    Case(
        "unravel_index",
        st.fixed_dictionaries({"indices": arrays((2, 3), 0, 24, dtype="int64"), "shape": st.just((2, 3, 4))}),
        np.unravel_index,
    ),
    Case(
        "unravel_index",
        st.fixed_dictionaries({"indices": arrays((2,), -24, 0, dtype="int64"), "shape": st.just((2, 3, 4))}),
        lambda indices, shape: np.unravel_index(indices + 24, shape),
        label="negative",
    ),
]
