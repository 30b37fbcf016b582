"""Cases: comparison of floating numbers."""

import numpy as np
from parity import Case, broadcastable, inputs, positional

from .bounds import INF, NAN, holes
from .elementwise import unary

near = np.array([1.0, 1.0, NAN, INF, INF, -INF, 1.0, 0.0])
close = np.array([1.0 + 1e-9, 1.01, NAN, INF, -INF, 1.0, INF, 1e-9])

CASES = [
    Case("isclose", inputs(x1=near, x2=close)),
    Case(
        "isclose",
        inputs(x1=near, x2=close, equal_nan=True),
        lambda x1, x2, equal_nan: np.isclose(x1, x2, equal_nan=equal_nan),
        label="nan",
    ),
    Case("isclose", inputs(x1=near, x2=close, rtol=0.1, atol=0.0), positional(np.isclose), label="tolerance"),
    Case("isclose", broadcastable(low=0, high=3, dtype="int64"), label="integers"),
    Case("isclose", broadcastable(low=0, high=3, dtype="uint8"), label="unsigned"),
    Case("allclose", inputs(x1=near, x2=close), lambda x1, x2: np.asarray(np.allclose(x1, x2))),
    Case(
        "allclose",
        inputs(x1=np.ones((2, 3)), x2=np.ones(3) + 1e-9),
        lambda x1, x2: np.asarray(np.allclose(x1, x2)),
        label="close",
    ),
    *(Case(op, inputs(x=holes)) for op in ("isneginf", "isposinf")),
    *(unary(op, -2, 3, dtype="int64", label="integers") for op in ("isneginf", "isposinf", "isreal")),
    Case("isreal", inputs(x=np.array([1 + 0j, 1j, 2]))),
    Case("signbit", inputs(x=np.array([-0.0, 0.0, -1.0, INF, -INF, -NAN, NAN]))),
    Case("signbit", inputs(x=np.array([-0.0, 0.0, -1.0, 2.0], "float32")), label="float32"),
    Case("signbit", inputs(x=np.array([-1, 0, 2])), positional(np.signbit), label="integers"),
    Case("signbit", inputs(x=np.array([1, 0, 255], "uint8")), positional(np.signbit), label="unsigned"),
]
