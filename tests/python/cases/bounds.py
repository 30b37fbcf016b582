"""Cases: bounds and exceptions."""

import numpy as np
from parity import Case, arrays, inputs, positional

from .elementwise import binary, unary

NAN, INF = np.nan, np.inf
holes = np.array([1.0, NAN, -INF, INF, NAN, -2.0])
others = np.array([NAN, 3.0, 1.0, 2.0, NAN, -3.0])


def divide_no_nan(x1, x2):
    with np.errstate(all="ignore"):
        return np.where(x2 == 0, 0.0, np.true_divide(x1, x2))


def saturate(x, dtype):
    whole = np.dtype(dtype).kind != "f"
    info = np.iinfo(dtype) if whole else np.finfo(dtype)
    values = [0 if v != v else min(max(int(v) if whole and v - v == 0 else v, info.min), info.max) for v in x.tolist()]
    return np.array(values, dtype)


clip_inputs = inputs(x=arrays((3, 4), -2, 2), x_min=arrays((4,), -1.5, -0.5), x_max=arrays((3, 1), 0.5, 1.5))

CASES = [
    unary("fabs", away=[0.0], gradients=["x"]),
    unary("fabs", -3, 4, dtype="int64", label="integers"),
    unary("fabs", dtype="float32", label="float32"),
    # TensorFlow's own gradient of floormod rounds the quotient differently near integers
    binary("fmod", 0.5, 3, gradients=["x1", "x2"], native=("torch", "jax")),
    Case(
        "fmod",
        inputs(x1=np.array([-5.5, 5.5, -5.5, 0.0]), x2=np.array([2.0, -2.0, -2.0, 3.0])),
        positional(np.fmod),
        label="signs",
    ),
    Case("fmod", inputs(x1=np.array([-5, 5, -5]), x2=np.array([2, -2, -2])), positional(np.fmod), label="integers"),
    *(binary(op, gradients=["x1", "x2"]) for op in ("fmax", "fmin")),
    *(Case(op, inputs(x1=holes, x2=others), label="nan") for op in ("fmax", "fmin")),
    *(binary(op, -3, 4, dtype="int64", label="integers") for op in ("fmax", "fmin")),
    Case("clip", clip_inputs, positional(np.clip), ["x", "x_min", "x_max"]),
    Case("clip", inputs(x=arrays(dtype="float32"), x_min=-1.0, x_max=0.5), positional(np.clip), label="numbers"),
    Case(
        "clip",
        inputs(x=arrays(low=-9, high=9, dtype="int64"), x_min=-4, x_max=None),
        positional(np.clip),
        label="integers",
    ),
    binary("divide_no_nan", 0.3, 2, gradients=["x1", "x2"], reference=divide_no_nan),
    Case(
        "divide_no_nan",
        inputs(x1=np.array([1.0, 0.0, 3.0]), x2=np.array([0.0, 0.0, 2.0])),
        divide_no_nan,
        ["x1", "x2"],
        label="zeros",
    ),
    Case("divide_no_nan", inputs(x1=np.array([1, 0, 3]), x2=np.array([0, 0, 2])), divide_no_nan, label="integers"),
    unary("nan_to_num", gradients=["x"]),
    Case("nan_to_num", inputs(x=holes), label="holes"),
    Case("nan_to_num", inputs(x=holes.astype("float32")), label="float32"),
    Case("nan_to_num", inputs(x=holes + 1j * others), label="complex"),
    Case("nan_to_num", inputs(x=holes, nan=7.0, posinf=8.0, neginf=-8.0), np.nan_to_num, label="given"),
    Case("nan_to_num", inputs(x=np.array([1, 2])), label="integers"),
    Case(
        "heaviside",
        inputs(x1=np.array([[-1.5], [0.0], [2.0]]), x2=np.array([0.5, 0.25])),
        positional(np.heaviside),
        ["x1", "x2"],
    ),
    Case(
        "heaviside",
        inputs(x1=np.array([-1.0, 0.0, INF, -INF, NAN]), x2=np.array(0.5)),
        positional(np.heaviside),
        label="infinite",
    ),
    Case(
        "heaviside", inputs(x1=np.array([-1, 0, 2]), x2=np.array([3, 3, 3])), positional(np.heaviside), label="integers"
    ),
    binary("nextafter"),
    binary("nextafter", dtype="float32", label="float32"),
    *(
        Case(
            "saturate_cast",
            inputs(x=np.array([-1e30, -300.5, -1.0, 0.0, 200.7, NAN, 4e9, 1e30]), dtype=dtype),
            saturate,
            label=f"to {dtype}",
        )
        for dtype in ("int8", "uint8", "int32", "int64")
    ),
    Case("saturate_cast", inputs(x=np.array([-300, -1, 0, 200, 2**40]), dtype="uint8"), saturate, label="integers"),
    Case("saturate_cast", inputs(x=np.array([0, 5, 255], "uint8"), dtype="int8"), saturate, label="unsigned"),
    Case("saturate_cast", inputs(x=np.array([0, 5, 255], "uint8"), dtype="int64"), saturate, label="wider"),
    Case("saturate_cast", inputs(x=np.array([-1e6, 2.0, 1e6]), dtype="float16"), saturate, label="to float16"),
    Case(
        "saturate_cast",
        inputs(x=np.array([-np.inf, -2.0, np.nan, np.inf], "float16"), dtype="int32"),
        saturate,
        label="beyond float16",
    ),
    Case("saturate_cast", inputs(x=arrays(), dtype="float64"), lambda x, dtype: x, ["x"], label="gradient"),
]
