"""Cases: conversion."""

import hypothesis.strategies as st
import numpy as np
from parity import Case, arrays, inputs


def converted(x, dtype=None):
    x = np.asarray(x)
    if dtype is not None and x.dtype.kind == "c" and np.dtype(dtype).kind in "iuf":
        x = x.real
    return x if dtype is None else x.astype(dtype)


KINDS = st.sampled_from(["bool", "int8", "uint16", "int64", "float32", "float64", "complex64"])
real = arrays((2, 3), 0, 3)
whole = arrays((2, 3), 0, 3, dtype="int64")
complex_ = arrays((2, 3), 0, 3, dtype="complex128")

CASES = [
    *(
        case
        for op in ("convert_to_tensor", "array")
        for case in (
            Case(op, inputs(x=real), converted, ["x"]),
            Case(op, inputs(x=real, dtype="float32"), converted, ["x"], label="float32", rtol=1e-5),
            Case(op, inputs(x=[[1, 2], [3, 4]]), converted, label="a list"),
            Case(op, inputs(x=[[1.5, 2], [3, 4]], dtype="float32"), converted, label="a list to float32"),
            Case(op, inputs(x=st.sampled_from([True, 3, 2.5, 1j])), converted, label="a number"),
        )
    ),
    *(Case("cast", inputs(x=x, dtype=KINDS), converted, label=str(i)) for i, x in enumerate((real, whole, complex_))),
    Case("cast", inputs(x=arrays((2, 3), dtype="bool"), dtype=KINDS), converted, label="bools"),
    Case("cast", inputs(x=real, dtype=st.sampled_from(["float64", "complex128"])), converted, ["x"]),
    Case("cast", inputs(x=real, dtype="float32"), converted, ["x"], label="narrower", rtol=1e-5),
    Case("cast", inputs(x=complex_, dtype="float64"), converted, ["x"], label="to real"),
    Case("copy", inputs(x=arrays()), lambda x: x, ["x"]),
    Case("copy", inputs(x=whole), lambda x: x, label="integers"),
    *(Case("convert_to_numpy", inputs(x=x), lambda x: x, label=str(i)) for i, x in enumerate((real, whole, complex_))),
]
