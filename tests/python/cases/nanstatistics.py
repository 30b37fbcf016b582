"""Cases: reductions that ignore NaN."""

import hypothesis.strategies as st
import numpy as np
from parity import Case, arrays, inputs, leading

from .bounds import INF, NAN

AXES = st.sampled_from([None, 0, 1, (0, 1)])
ONE = st.sampled_from([None, 0, 1])
KEEP = st.booleans()
holes = np.array([[1.0, NAN, 3.0, -2.0], [NAN, 0.5, -1.5, 2.0], [5.0, 4.0, NAN, 7.5]])
empty = np.array([[NAN, NAN], [1.0, NAN], [-INF, NAN]])
whole = arrays((3, 4), -5, 6, dtype="int64")
REDUCTIONS = ("nansum", "nanprod", "nanmean", "nanvar", "nanstd", "nanmax", "nanmin")


def of(op):
    return leading(getattr(np, op))


def gone(op):
    """Return a reference for the position of the extreme element that is not NaN, -1 if all are NaN."""

    def row(v):
        left = np.flatnonzero(~np.isnan(v))
        return left[getattr(np, op)(v[left])] if left.size else -1

    return lambda x, axis: np.array([row(v) for v in x])


CASES = [
    *(Case(op, inputs(x=holes, axis=AXES, keepdims=KEEP), of(op), ["x"]) for op in REDUCTIONS),
    *(
        Case(op, inputs(x=empty, axis=1), of(op), label="all nan")
        for op in ("nansum", "nanprod", "nanmean", "nanmax", "nanmin")
    ),
    *(Case(op, inputs(x=whole, axis=AXES), of(op), label="integers") for op in REDUCTIONS),
    *(
        Case(op, inputs(x=holes + 1j * holes[::-1], axis=1), of(op), label="complex")
        for op in ("nansum", "nanprod", "nanmean", "nanvar", "nanstd")
    ),
    *(Case(op, inputs(x=holes.astype("float32"), axis=1), of(op), label="float32") for op in REDUCTIONS),
    *(Case(op, inputs(x=holes, axis=ONE), of(op), ["x"]) for op in ("nancumsum", "nancumprod")),
    *(Case(op, inputs(x=whole, axis=ONE), of(op), label="integers") for op in ("nancumsum", "nancumprod")),
    *(Case(op, inputs(x=holes, axis=ONE, keepdims=KEEP), of(op)) for op in ("nanargmax", "nanargmin")),
    *(Case(op, inputs(x=whole, axis=ONE), of(op), label="integers") for op in ("nanargmax", "nanargmin")),
    *(
        Case(op, inputs(x=np.vstack([empty, [[NAN, INF]]]), axis=1), gone(op[3:]), label="all nan")
        for op in ("nanargmax", "nanargmin")
    ),
]
