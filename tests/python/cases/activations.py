"""Cases: activations, against SciPy or their definitions in plain NumPy."""

import math

import hypothesis.strategies as st
import numpy as np
from parity import Case, arrays, shapes
from scipy import optimize, special


def elementwise(op, reference, away=(), low=-4.0, high=4.0, label="", dtype="float64", gradients=("x",), **keywords):
    fixed = {k: st.just(v) for k, v in keywords.items()}
    return Case(
        op,
        st.fixed_dictionaries({"x": arrays(low=low, high=high, away=away, dtype=dtype), **fixed}),
        reference,
        gradients=list(gradients),
        label=label,
    )


def along(op, reference, **keywords):
    """Return a case of an activation along a random axis, for tensors of at least one dimension."""

    @st.composite
    def inputs(draw):
        x = draw(arrays(shapes(min_rank=1), low=-2, high=2, salt=0))
        return {"x": x, "axis": draw(st.integers(-x.ndim, x.ndim - 1))}

    return Case(op, inputs(), reference, gradients=["x"], **keywords)


def sigmoid(x):
    return special.expit(x)


def glu(x, axis):
    first, second = np.split(x, 2, axis)
    return first * sigmoid(second)


def sparsemax(x, axis):
    """Sparsemax with the threshold found by root finding instead of sorting."""

    def row(z):
        if z.size == 1:
            return np.ones(1)
        level = optimize.brentq(lambda t: np.maximum(z - t, 0).sum() - 1, z.max() - 1, z.max(), xtol=1e-15)
        return np.maximum(z - level, 0)

    return np.apply_along_axis(row, axis, x)


below_zero = arrays((2, 3), -1, 0).map(lambda x: x - x.max(1, keepdims=True))
over_two = st.fixed_dictionaries({"x": arrays((2, 3, 2)), "axis": st.just((0, 2))})

CASES = [
    elementwise("sigmoid", sigmoid),
    elementwise("relu", lambda x: np.maximum(x, 0), away=[0]),
    elementwise("relu", lambda x: np.maximum(x, 0), label="integers", dtype="int64", gradients=()),
    elementwise("relu6", lambda x: np.clip(x, 0, 6), away=[0, 6], high=8),
    elementwise(
        "leaky_relu", lambda x, negative_slope: np.where(x > 0, x, negative_slope * x), away=[0], negative_slope=0.1
    ),
    elementwise("elu", lambda x, alpha: np.where(x > 0, x, alpha * np.expm1(x)), away=[0], alpha=1.5),
    elementwise("selu", lambda x: np.where(x > 0, 1.05070098735548 * x, 1.758099340847376 * np.expm1(x)), away=[0]),
    elementwise("celu", lambda x, alpha: np.where(x > 0, x, alpha * np.expm1(x / alpha)), away=[0], alpha=0.5),
    elementwise("silu", lambda x: x * sigmoid(x)),
    elementwise("silu", lambda x: x * sigmoid(x), label="integers", dtype="int64", gradients=()),
    elementwise("gelu", lambda x, approximate: x * special.ndtr(x), label="exact", approximate=False),
    elementwise("gelu", lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))),
    elementwise("normal_cdf", lambda x: special.ndtr(x)),
    elementwise("softplus", lambda x: np.logaddexp(x, 0)),
    elementwise("log_sigmoid", lambda x: special.log_expit(x)),
    elementwise("softsign", lambda x: x / (1 + np.abs(x)), away=[0]),
    elementwise("squareplus", lambda x: (x + np.sqrt(x**2 + 4)) / 2, away=[0]),
    elementwise("squareplus", lambda x, b: (x + np.sqrt(x**2 + b)) / 2, away=[0], label="b", b=0.5),
    elementwise("hard_sigmoid", lambda x: np.clip(x / 6 + 0.5, 0, 1), away=[-3, 3]),
    elementwise("hard_silu", lambda x: x * np.clip(x / 6 + 0.5, 0, 1), away=[-3, 3]),
    elementwise("hard_tanh", lambda x: np.clip(x, -1, 1), away=[-1, 1]),
    elementwise("tanh_shrink", lambda x: x - np.tanh(x)),
    elementwise("hard_shrink", lambda x: np.where(np.abs(x) > 0.5, x, 0), away=[-0.5, 0.5]),
    elementwise("soft_shrink", lambda x: np.sign(x) * np.maximum(np.abs(x) - 0.5, 0), away=[-0.5, 0.5]),
    elementwise("sparse_plus", lambda x: np.where(x >= 1, x, np.maximum(x + 1, 0) ** 2 / 4), away=[-1, 1]),
    elementwise("sparse_sigmoid", lambda x: np.clip((x + 1) / 2, 0, 1), away=[-1, 1]),
    elementwise(
        "threshold",
        lambda x, threshold, default_value: np.where(x > threshold, x, default_value),
        away=[0.3],
        threshold=0.3,
        default_value=-2.0,
    ),
    along("softmax", special.softmax),
    along("log_softmax", special.log_softmax),
    along("sparsemax", sparsemax),
    Case(
        "sparsemax_support",
        st.fixed_dictionaries({"x": below_zero, "axis": st.just(1)}),
        lambda x, axis: sparsemax(x, axis) > 0,
    ),
    Case("softmax", over_two, special.softmax, gradients=["x"], label="axes"),
    Case("log_softmax", over_two, special.log_softmax, gradients=["x"], label="axes"),
    Case(
        "glu",
        st.fixed_dictionaries({"x": arrays((3, 4, 2)), "axis": st.sampled_from([-2, -1, 1])}),
        glu,
        gradients=["x"],
    ),
]
