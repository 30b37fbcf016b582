"""Cases: reductions and running reductions."""

import hypothesis.strategies as st
import numpy as np
from parity import Case, arrays, inputs, leading, shapes
from scipy import special

AXES = st.sampled_from([None, 0, -1, 1, (0, 1), (-1, 0)])
KEEP = st.booleans()
matrix = shapes(2, 3)


def over(op, reference=None, axis=AXES, shape=matrix, label="", dtype="float64", distinct=False, more=None, **keywords):
    """Return a case of a reduction over any axes, for arrays of at least two dimensions."""
    low, high = (-3, 4) if np.dtype(dtype).kind in "iu" else (-2.0, 2.0)
    x = arrays(shape, 0 if np.dtype(dtype).kind == "u" else low, high, dtype=dtype, distinct=distinct)
    reference = reference or leading(getattr(np, op))
    return Case(
        op, inputs(x=x, axis=axis, **({"keepdims": KEEP} if more is None else more)), reference, label=label, **keywords
    )


def as_int64(function):
    return lambda x, **k: function(x.astype("int64"), **k)


ONE = st.sampled_from([None, 0, 1, -1])
zeros = np.array([[0.0, 2.0, 3.0], [0.0, 0.0, 4.0], [1.5, -2.0, 0.5]])
ties = np.array([[1.0, 3.0, 3.0], [3.0, 0.0, -1.0]])
scalar = {"axis": None, "shape": (), "label": "0-d"}

CASES = [
    *(over(op, gradients=["x"]) for op in ("sum", "mean", "prod", "var")),
    *(over(op, gradients=["x"], distinct=True) for op in ("max", "min", "amax", "amin", "ptp", "std")),
    over("logsumexp", leading(special.logsumexp), gradients=["x"]),
    *(over(op, axis=ONE) for op in ("argmax", "argmin")),
    *(over(op, dtype="int64", label="integers") for op in ("sum", "mean", "prod", "max", "min", "ptp", "var", "std")),
    *(over(op, dtype="int64", label="integers") for op in ("all", "any")),
    *(over(op, dtype="bool") for op in ("all", "any")),
    Case("any", inputs(x=np.zeros((2, 3), bool), axis=AXES), leading(np.any), label="none"),  # each element decides
    Case("all", inputs(x=np.ones((2, 3), bool), axis=AXES), leading(np.all), label="each"),
    *(over(op, as_int64(getattr(np, op)), dtype="uint8", label="uint8") for op in ("sum", "prod")),
    *(over(op, dtype="bool", label="bools") for op in ("sum", "prod", "mean")),
    *(
        over(op, dtype="float32", label="float32", rtol=1e-5, atol=1e-5)
        for op in ("sum", "mean", "prod", "var", "std", "ptp")
    ),
    *(over(op, gradients=["x"], **scalar) for op in ("sum", "mean", "prod", "max", "var")),
    over("argmax", **scalar),
    *(over(op, gradients=["x"], dtype="complex128", label="complex") for op in ("sum", "mean", "prod", "var")),
    *(
        Case(
            op, inputs(x=np.zeros((2, 0, 3)), axis=st.sampled_from([1, None])), leading(getattr(np, op)), label="empty"
        )
        for op in ("sum", "prod", "all", "any")
    ),
    Case("max", inputs(x=np.zeros((2, 0)), axis=1, initial=-3.0), leading(np.max), label="initial"),
    Case(
        "max",
        inputs(x=arrays((3, 4)), axis=1, initial=0.25),
        leading(np.max),
        ["x"],
        label="bound",
    ),
    Case(
        "min",
        inputs(x=arrays((3, 4)), axis=(0, 1), initial=0.25),
        leading(np.min),
        ["x"],
        label="bound",
    ),
    # all frameworks agree: ties share the gradient
    *(
        Case(op, inputs(x=ties, axis=st.sampled_from([0, 1, None])), leading(getattr(np, op)), ["x"], label="ties")
        for op in ("max", "min", "ptp")
    ),
    # TensorFlow's and PyTorch's second derivatives of prod are wrong at several zeros: JAX is the oracle
    Case("prod", inputs(x=zeros, axis=st.sampled_from([0, 1, None])), leading(np.prod), ["x"], label="zeros"),
    Case("prod", inputs(x=zeros, axis=0, keepdims=True, dtype="float32"), leading(np.prod), label="dtype"),
    over("count_nonzero", more={}, dtype="int64", reference=lambda x, axis: np.asarray(np.count_nonzero(x, axis))),
    over(
        "count_nonzero",
        more={},
        dtype="bool",
        label="bools",
        reference=lambda x, axis: np.asarray(np.count_nonzero(x, axis)),
    ),
    *(over(op, axis=ONE, more={}, gradients=["x"]) for op in ("cumsum", "cumprod")),
    *(
        over(op, axis=ONE, more={}, gradients=["x"], dtype="complex128", label="complex")
        for op in ("cumsum", "cumprod")
    ),
    *(over(op, axis=ONE, more={}, dtype="int64", label="integers") for op in ("cumsum", "cumprod")),
    *(
        over(op, as_int64(getattr(np, op)), axis=ONE, more={}, dtype="uint8", label="uint8")
        for op in ("cumsum", "cumprod")
    ),
    *(over(op, axis=None, shape=(), more={}, gradients=["x"], label="0-d") for op in ("cumsum", "cumprod")),
    *(
        over(op, axis=ONE, more={"dtype": "float32"}, rtol=1e-4, atol=1e-5, label="dtype")
        for op in ("cumsum", "cumprod")
    ),
    Case("cumprod", inputs(x=zeros, axis=st.sampled_from([0, 1, None])), leading(np.cumprod), ["x"], label="zeros"),
    Case("cumsum", inputs(x=np.zeros((0, 3)), axis=0), leading(np.cumsum), label="empty"),
    Case("cumprod", inputs(x=np.zeros((0, 3)), axis=0), leading(np.cumprod), label="empty"),
    Case("diff", inputs(a=arrays(shapes(1, 3)), n=st.integers(0, 3), axis=-1), np.diff, ["a"]),
    Case("diff", inputs(a=arrays((4, 3), dtype="complex128"), n=2, axis=0), np.diff, ["a"], label="complex"),
    Case("diff", inputs(a=arrays((4,), -3, 4, dtype="int64")), np.diff, label="integers"),
    Case("diff", inputs(a=arrays((4,), dtype="bool"), n=2), np.diff, label="bools"),
]
