"""Cases: elementwise ops."""

# ruff: noqa: E501  (a table)

import hypothesis.strategies as st
import numpy as np
from parity import Case, arrays, broadcastable
from scipy import special


def unary(op, low=-2.0, high=2.0, reference=None, away=(), label="", dtype="float64", **keywords):
    return Case(
        op,
        st.fixed_dictionaries({"x": arrays(low=low, high=high, away=away, dtype=dtype)}),
        reference or (lambda x: getattr(np, op)(x)),
        label=label,
        **keywords,
    )


def binary(op, low=-2.0, high=2.0, reference=None, away=(), label="", dtype="float64", **keywords):
    return Case(op, broadcastable(low=low, high=high, away=away, dtype=dtype), reference, label=label, **keywords)


smooth = [
    unary(name, low, high, gradients=["x"])
    for name, low, high in [
        ("exp", -2, 2), ("exp2", -2, 2), ("expm1", -2, 2), ("log", 0.2, 3), ("log2", 0.2, 3), ("log10", 0.2, 3),
        ("log1p", -0.7, 2), ("sqrt", 0.2, 3), ("sin", -3, 3), ("cos", -3, 3), ("tan", -1, 1), ("arcsin", -0.8, 0.8),
        ("arccos", -0.8, 0.8), ("arctan", -3, 3), ("sinh", -2, 2), ("cosh", -2, 2), ("tanh", -2, 2),
        ("arcsinh", -2, 2), ("arccosh", 1.2, 3), ("arctanh", -0.8, 0.8), ("reciprocal", 0.3, 2), ("negative", -2, 2),
        ("square", -2, 2),
    ]
]  # fmt: skip
of_complex = [
    unary(name, low, high, gradients=["x"], label="complex", dtype="complex128")
    for name, low, high in [
        ("exp", -1, 1), ("log", 0.3, 2), ("sqrt", 0.3, 2), ("sin", -1, 1), ("cos", -1, 1), ("tanh", 0.1, 0.8),
        ("square", -1, 1), ("negative", -1, 1), ("conj", -1, 1), ("real", -1, 1), ("imag", -1, 1), ("abs", 0.3, 2),
        ("angle", 0.3, 2), ("reciprocal", 0.3, 2),
    ]
] + [unary("sign", 0.3, 2, lambda x: x / np.abs(x), gradients=["x"], label="complex", dtype="complex128")]  # fmt: skip

CASES = [
    *smooth,
    *of_complex,
    *(unary(op, -4, 5, label="integers", dtype="int64", reference=lambda x, op=op: getattr(np, op)(x.astype("float64"))) for op in ("exp", "sin")),
    unary("erf", reference=lambda x: special.erf(x), gradients=["x"]),
    unary("abs", away=[0.0], gradients=["x"]),
    unary("conj", reference=lambda x: np.conj(x), gradients=["x"]),
    unary("real", reference=lambda x: np.real(x), gradients=["x"]),
    unary("imag", reference=lambda x: np.imag(x)),
    unary("angle", away=[0.0]),
    *(unary(op, -3, 3, gradients=["x"]) for op in ("sign", "floor", "ceil", "trunc", "round")),
    unary("real_sign", -3, 3, reference=lambda x: np.sign(x), gradients=["x"]),
    *(unary(op, -3, 3) for op in ("isnan", "isfinite", "isinf", "logical_not")),
    *(binary(op, gradients=["x1", "x2"]) for op in ("add", "subtract", "multiply", "logaddexp")),
    *(binary(op, 0.3, 2, gradients=["x1", "x2"]) for op in ("divide", "power", "arctan2")),
    *(binary(op, gradients=["x1", "x2"], label="complex", dtype="complex128") for op in ("add", "subtract", "multiply", "divide")),
    # TensorFlow gives a tie's whole gradient to the first operand
    *(binary(op, gradients=["x1", "x2"], native=("torch", "jax")) for op in ("maximum", "minimum")),
    binary("floor_divide", 0.5, 3, gradients=["x1", "x2"]),
    binary("mod", 0.5, 3, gradients=["x1", "x2"], native=("torch", "jax")),
    *(binary(op, low, high) for op, low, high in [
        ("equal", -2, 2), ("not_equal", -2, 2), ("less", -2, 2), ("less_equal", -2, 2),
        ("greater", -2, 2), ("greater_equal", -2, 2), ("logical_and", -1, 1), ("logical_or", -1, 1), ("logical_xor", -1, 1),
    ]),
    *(binary(op, -3, 4, dtype="int64", label="integers") for op in ("add", "subtract", "multiply", "maximum", "less")),
    *(binary(op, 1, 4, dtype="int64", label="whole numbers") for op in ("floor_divide", "mod")),
]  # fmt: skip
