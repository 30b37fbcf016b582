"""Cases: complex numbers and their parts."""

import hypothesis.strategies as st
import numpy as np
from parity import Case, arrays, broadcastable


def one(op, inputs, reference, label="", gradients=("x",)):
    return Case(op, st.fixed_dictionaries({"x": inputs}), reference, gradients=gradients, label=label)


CASES = [
    Case(
        "polar",
        broadcastable(names=("abs_", "angle")),
        lambda abs_, angle: abs_ * np.exp(1j * angle),
        gradients=["abs_", "angle"],
    ),
    one("view_as_complex", arrays((3, 2)), lambda x: x[..., 0] + 1j * x[..., 1]),
    one("view_as_complex", arrays((2,), dtype="int64"), lambda x: x[0] + 1j * x[1], "integers", ()),
    one("view_as_real", arrays((2, 3), dtype="complex128"), lambda x: np.stack([x.real, x.imag], -1)),
    one("view_as_real", arrays((2,)), lambda x: np.stack([x, 0 * x], -1), "real"),
]
