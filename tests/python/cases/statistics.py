"""Cases: statistics."""

import hypothesis.strategies as st
import numpy as np
from parity import Case, arrays, inputs, leading, positional

AXIS = st.sampled_from([None, 0, 1, -1, (0, 1)])
counts = np.array([[3, 1, 0, 3], [1, 1, 5, 0]])
data = np.array([-1.0, 0.0, 0.25, 0.5, 1.0, 1.0, 2.0, 2.5, -3.0])


def bincount(x, weights=None, minlength=0):
    length = max(minlength, x.max() + 1 if x.size else 0)
    if x.ndim == 2:
        return np.stack([bincount(row, None if weights is None else weights[i], length) for i, row in enumerate(x)])
    y = np.bincount(x, weights, minlength)
    return y if weights is None else y.astype("int64" if weights.dtype.kind in "biu" else weights.dtype)


def histogram(x, bins=10, range=None):
    return list(np.histogram(x, bins, range))


def trapezoid(y, x=None, dx=1.0, axis=-1):
    return np.asarray(np.trapezoid(y, x, dx, axis))


CASES = [
    Case("countable", inputs(x=arrays((5,), 0, 4, dtype="int64"), length=4), lambda x, length: x),
    Case("average", inputs(x=arrays((3, 4)), axis=AXIS), leading(np.average), ["x"]),
    Case(
        "average",
        inputs(x=arrays((3, 4)), axis=AXIS, weights=arrays((3, 4), 0.2, 1)),
        leading(np.average),
        ["x", "weights"],
        label="weights",
    ),
    Case(
        "average",
        inputs(x=arrays((3, 4, 2)), axis=1, weights=arrays((4,), 0.2, 1)),
        leading(np.average),
        ["x", "weights"],
        label="a vector",
    ),
    Case(
        "average",
        inputs(x=arrays((3, 4), -3, 4, dtype="int64"), axis=0, weights=np.array([1, 2, 4])),
        leading(np.average),
        label="integers",
    ),
    Case("bincount", inputs(x=counts[0], minlength=st.sampled_from([0, 2, 7])), bincount),
    Case("bincount", inputs(x=counts, minlength=3), bincount, label="rows"),
    Case("bincount", inputs(x=counts[0], weights=arrays((4,))), bincount, ["weights"], label="weights"),
    Case(
        "bincount",
        inputs(x=counts, weights=arrays((2, 4)), minlength=7),
        bincount,
        ["weights"],
        label="rows of weights",
    ),
    Case("bincount", inputs(x=counts[1].astype("uint8"), weights=np.array([1, 2, 3, 4])), bincount, label="integers"),
    Case("bincount", inputs(x=np.zeros(0, "int64"), minlength=st.sampled_from([0, 2])), bincount, label="empty"),
    Case("histogram", inputs(x=data, bins=st.sampled_from([1, 5, 10])), histogram),
    Case("histogram", inputs(x=data, bins=4, range=(-1.0, 1.0)), histogram, label="range"),
    Case("histogram", inputs(x=data, bins=np.array([-1.0, 0.0, 0.5, 2.5])), histogram, label="edges"),
    Case("histogram", inputs(x=np.array([1, 2, 2, 3]), bins=3), histogram, label="integers"),
    Case("histogram", inputs(x=np.ones((2, 2)), bins=3), histogram, label="constant"),
    Case("histogram", inputs(x=np.zeros(0), bins=3), histogram, label="empty"),
    Case("histogram", inputs(x=np.append(data, np.nan), bins=3, range=(0, 2)), histogram, label="nan"),
    Case("corrcoef", inputs(x=arrays((3, 5))), positional(np.corrcoef), ["x"], rtol=1e-5, atol=1e-7),
    Case(
        "corrcoef",
        inputs(x=arrays((2, 5), dtype="complex128")),
        positional(np.corrcoef),
        ["x"],
        rtol=1e-5,
        atol=1e-7,
        label="complex",
    ),
    Case(
        "corrcoef", inputs(x=arrays((5,), -9, 9, dtype="int64")), lambda x: np.asarray(np.corrcoef(x)), label="vector"
    ),
    *(
        Case(
            "correlate",
            inputs(x1=arrays((n,)), x2=arrays((m,)), mode=st.sampled_from(["valid", "same", "full"])),
            positional(np.correlate),
            ["x1", "x2"],
            label=f"{n} {m}",
        )
        for n, m in ((6, 3), (6, 4), (3, 6), (4, 7), (4, 4), (5, 1), (1, 1))
    ),
    Case(
        "correlate",
        inputs(x1=arrays((5,), dtype="complex128"), x2=arrays((3,), dtype="complex128"), mode="full"),
        positional(np.correlate),
        ["x1", "x2"],
        label="complex",
    ),
    Case(
        "correlate",
        inputs(x1=arrays((5,), -9, 9, dtype="int64"), x2=arrays((2,), -9, 9, dtype="int32"), mode="same"),
        positional(np.correlate),
        label="integers",
    ),
    Case("trapezoid", inputs(y=arrays((3, 4)), axis=st.sampled_from([-1, 0])), trapezoid, ["y"]),
    Case("trapezoid", inputs(y=arrays((3, 4)), x=arrays((3,)), axis=0), trapezoid, ["y", "x"], label="points"),
    Case("trapezoid", inputs(y=arrays((3, 4)), x=arrays((3, 4))), trapezoid, ["y", "x"], label="rows of points"),
    Case("trapezoid", inputs(y=arrays((4,), dtype="complex128"), dx=0.1), trapezoid, ["y"], label="complex"),
    Case("trapezoid", inputs(y=arrays((4,), -9, 9, dtype="int64"), dx=2), trapezoid, label="integers"),
    Case(
        "sliding_product",
        inputs(x=arrays((5,)), window=arrays((3,))),
        lambda x, window: np.correlate(x, window),
        ["x", "window"],
    ),
]
