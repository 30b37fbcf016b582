"""Cases: special functions."""

import numpy as np
from parity import Case, arrays, broadcastable, inputs, positional
from scipy import special

from .elementwise import binary, unary


def ldexp_inputs(dtype="float64"):
    return inputs(x1=arrays((2, 3), dtype=dtype), x2=arrays((3,), -9, 9, dtype="int64"))


def logaddexp2(x1, x2):
    return np.logaddexp2(x1, x2)


CASES = [
    unary("cbrt", away=[0.0], gradients=["x"]),
    unary("cbrt", dtype="float32", label="float32", reference=positional(np.cbrt)),
    unary("rsqrt", 0.2, 3, lambda x: 1 / np.sqrt(x), gradients=["x"]),
    unary("rsqrt", 0.3, 2, lambda x: 1 / np.sqrt(x), gradients=["x"], dtype="complex128", label="complex"),
    *(unary(op, -400, 400, gradients=["x"]) for op in ("deg2rad", "rad2deg")),
    *(
        unary(op, -9, 9, dtype="int64", label="integers", reference=lambda x, op=op: getattr(np, op)(x.astype(float)))
        for op in ("deg2rad", "cbrt", "sinc")
    ),
    unary("deg2rad", dtype="float32", label="float32", reference=positional(np.deg2rad)),
    unary("erfc", -3, 5, positional(special.erfc), gradients=["x"]),
    # TensorFlow and JAX approximate the inverse
    unary("erfinv", -0.95, 0.95, positional(special.erfinv), gradients=["x"], rtol=1e-5),
    unary("i0", -4, 4, positional(special.i0), gradients=["x"], rtol=1e-5),
    unary("i1", -4, 4, positional(special.i1), gradients=["x"], rtol=1e-5, away=[0.0]),
    unary("lgamma", 0.1, 9, positional(special.gammaln), gradients=["x"], rtol=1e-6),
    unary("lgamma", -2.9, -2.1, positional(special.gammaln), gradients=["x"], rtol=1e-6, label="negative"),
    *(
        Case(
            "polygamma",
            inputs(x=arrays((2, 3), 0.2, 9), n=n),
            lambda x, n: special.polygamma(n, x),
            ["x"],
            label=f"derivative {n}",
        )
        for n in (0, 1, 2)
    ),
    *(
        case
        for op in ("gammainc", "gammaincc")
        for of in [positional(getattr(special, op))]
        for case in [
            Case(op, inputs(x1=arrays((2, 3), 0.3, 9), x2=arrays((3,), 0.3, 9)), of, ["x1", "x2"], native=()),
            Case(op, inputs(x1=np.array([2]), x2=np.array([1, 3])), of, label="integers"),
            Case(op, inputs(x1=np.array([0.0, 2.0, -1.0, 1e8]), x2=np.array([1.0, 0.0, 1.0, 1e8])), of, label="ends"),
        ]
    ),
    unary("sinc", -3, 3, gradients=["x"]),
    Case(
        "sinc",
        inputs(x=np.array([0.0, 1e-9, 0.03, -0.033, 1.0])),
        positional(np.sinc),
        ["x"],
        native=(),
        second=(),
        label="near 0",
    ),
    binary("hypot", 0.1, 2, gradients=["x1", "x2"]),
    Case("hypot", broadcastable(low=-3, high=4, dtype="int64"), positional(np.hypot), label="integers"),
    Case(
        "hypot",
        inputs(x1=np.array([3e200, 3e-200, np.inf]), x2=np.array([4e200, 4e-200, 1.0])),
        positional(np.hypot),
        label="extremes",
    ),
    binary("logaddexp2", -3, 3, gradients=["x1", "x2"]),
    Case(
        "logaddexp2",
        inputs(x1=np.array([2000.0, -2000.0, -np.inf]), x2=np.array([2001.0, -2003.0, 1.0])),
        logaddexp2,
        label="extremes",
    ),
    Case("ldexp", ldexp_inputs(), positional(np.ldexp), ["x1"]),
    Case("ldexp", ldexp_inputs("float32"), positional(np.ldexp), label="float32"),
    Case(
        "ldexp",
        inputs(x1=np.array([1e-300, 2.0**-1000, 1.0]), x2=np.array([1500, 2000, -1060])),
        positional(np.ldexp),
        label="extremes",
    ),
]
