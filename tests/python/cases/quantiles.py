"""Cases: quantiles."""

import hypothesis.strategies as st
import numpy as np
from parity import Case, arrays, inputs, leading

from .bounds import INF, NAN

AXIS = st.sampled_from([None, 0, -1, (0, 1), (2, 0)])
METHODS = [
    "linear", "lower", "higher", "midpoint", "nearest", "inverted_cdf", "averaged_inverted_cdf", "closest_observation",
    "interpolated_inverted_cdf", "hazen", "weibull", "median_unbiased", "normal_unbiased",
]  # fmt: skip
x = arrays((2, 3, 4), distinct=True)
holes = np.array([[1.0, NAN, 3.0, -2.0, NAN], [NAN, NAN, NAN, NAN, NAN], [5.0, 4.0, NAN, 7.5, 6.0]])
many = np.array([0.0, 0.1, 0.25, 0.5, 0.61, 0.9, 1.0])
fewer = np.array([0.11, 0.3, 0.62])


def like_r(function):
    """NumPy's quantile, with R's rule for ties: of two equally close observations the even one (NumPy < 2.1: the odd
    one).
    """

    def closest(row, q):
        row = np.sort(row[~np.isnan(row)])
        place = row.size * q - 0.5
        below = np.floor(place)
        rank = np.where((place == below) & (below % 2 == 0), below, below + 1)
        return row[np.clip(rank, 1, row.size).astype(int) - 1]

    def reference(x, q, method, axis=0):
        if method == "closest_observation":
            return np.moveaxis(np.apply_along_axis(closest, axis, x, q), axis, 0)
        return function(x, q, axis=axis, method=method)

    return leading(reference)


CASES = [
    Case("median", inputs(x=x, axis=AXIS, keepdims=st.booleans()), leading(np.median), ["x"]),
    Case("median", inputs(x=arrays((3, 5), -9, 9, dtype="int64"), axis=1), leading(np.median), label="integers"),
    Case("median", inputs(x=arrays((3, 4), dtype="float32"), axis=1), leading(np.median), label="float32"),
    Case("median", inputs(x=holes, axis=1), leading(np.median), label="nan"),
    Case("median", inputs(x=np.array([1.0, INF, INF, INF])), leading(np.median), label="infinite"),
    Case("median", inputs(x=np.array(3.0)), leading(np.median), ["x"], label="0-d"),
    Case(
        "quantile",
        inputs(x=x, q=st.sampled_from([0.0, 0.3, 1.0]), axis=AXIS, keepdims=st.booleans()),
        leading(np.quantile),
        ["x"],
    ),
    Case(
        "quantile",
        inputs(x=x, q=fewer, axis=AXIS, keepdims=st.booleans()),
        leading(np.quantile),
        ["x", "q"],
        label="several",
    ),
    Case(
        "quantile", inputs(x=arrays((4,), distinct=True), q=arrays((2, 2), 0, 1)), leading(np.quantile), label="matrix"
    ),
    *(Case("quantile", inputs(x=arrays((9,), -3, 4), q=many, method=m), like_r(np.quantile), label=m) for m in METHODS),
    *(
        Case("quantile", inputs(x=arrays((10,), -3, 4), q=many, method=m), like_r(np.quantile), label=f"even {m}")
        for m in METHODS
    ),
    Case("quantile", inputs(x=holes, q=0.4, axis=1), leading(np.quantile), label="nan"),
    Case("quantile", inputs(x=arrays((5,), -9, 9, dtype="int64"), q=0.3), leading(np.quantile), label="integers"),
    Case("percentile", inputs(x=x, q=30, axis=AXIS), leading(np.percentile), ["x"]),
    Case(
        "percentile",
        inputs(x=x, q=100 * fewer, axis=0, method="hazen"),
        leading(np.percentile),
        ["x", "q"],
        label="several",
    ),
    Case(
        "nanmedian",
        inputs(x=holes, axis=st.sampled_from([0, 1, None]), keepdims=st.booleans()),
        leading(np.nanmedian),
        ["x"],
    ),
    Case("nanmedian", inputs(x=arrays((3, 5), -9, 9, dtype="int64"), axis=1), leading(np.nanmedian), label="integers"),
    Case("nanquantile", inputs(x=holes, q=0.3, axis=st.sampled_from([0, 1, None])), leading(np.nanquantile), ["x"]),
    Case(
        "nanquantile", inputs(x=holes, q=fewer, axis=1, keepdims=True), leading(np.nanquantile), ["x"], label="several"
    ),
    *(
        Case("nanquantile", inputs(x=holes[::2], q=many, axis=1, method=m), like_r(np.nanquantile), label=m)
        for m in METHODS
    ),
    Case("nanpercentile", inputs(x=holes, q=60.0, axis=st.sampled_from([0, 1])), leading(np.nanpercentile), ["x"]),
]
