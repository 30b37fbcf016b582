"""Cases: numbers spaced on a logarithmic scale."""

import hypothesis.strategies as st
import numpy as np
from parity import Case, arrays, inputs

END = st.booleans()


def logspace(start, stop, num=50, endpoint=True, base=10, dtype=None, axis=0):
    return np.logspace(start, stop, num, endpoint, base, dtype, axis)


def geomspace(start, stop, num=50, endpoint=True, dtype=None, axis=0):
    return np.geomspace(start, stop, num, endpoint, dtype, axis)


pair = {"start": arrays((), 0.5, 2), "stop": arrays((), 2.5, 4)}
rows = {"start": arrays((3,), 0.5, 2), "stop": arrays((2, 1), 2.5, 4)}

CASES = [
    Case("logspace", inputs(**pair, num=5, endpoint=END), logspace, ["start", "stop"]),
    Case(
        "logspace",
        inputs(**rows, num=4, endpoint=END, base=arrays((), 1.5, 3), axis=st.sampled_from([0, 1, -1])),
        logspace,
        ["start", "stop", "base"],
        label="rows",
    ),
    Case("logspace", inputs(start=0, stop=3, num=st.sampled_from([0, 1, 4])), logspace, label="numbers"),
    Case("logspace", inputs(start=0, stop=1, num=3, dtype="float32"), logspace, label="dtype"),
    Case("geomspace", inputs(**pair, num=5, endpoint=END), geomspace, ["start", "stop"]),
    Case(
        "geomspace",
        inputs(**rows, num=4, endpoint=END, axis=st.sampled_from([0, 1, -1])),
        geomspace,
        ["start", "stop"],
        label="rows",
    ),
    Case("geomspace", inputs(start=-1, stop=-1000, num=st.sampled_from([0, 1, 4])), geomspace, label="negative"),
    Case("geomspace", inputs(start=np.array(1j), stop=np.array(-4.0 + 0j), num=4), geomspace, label="complex"),
]
