"""Cases: bitwise ops on integers."""

import numpy as np
from parity import Case, arrays, broadcastable, inputs

xy = ("x", "y")


def shifts(dtype):
    return inputs(x=arrays((2, 3), -90 if dtype[0] == "i" else 0, 90, dtype=dtype), y=arrays((3,), 0, 6, dtype=dtype))


CASES = [
    *(
        Case(op, broadcastable(names=xy, low=-99, high=99, dtype="int64"))
        for op in ("bitwise_and", "bitwise_or", "bitwise_xor")
    ),
    *(
        Case(op, broadcastable(names=xy, dtype="bool"), label="bools")
        for op in ("bitwise_and", "bitwise_or", "bitwise_xor")
    ),
    *(
        Case(op, broadcastable(names=xy, low=0, high=99, dtype="uint8"), label="uint8")
        for op in ("bitwise_and", "bitwise_or", "bitwise_xor")
    ),
    Case("bitwise_and", inputs(x=np.array([1, 7, 12], "int32"), y=5), label="number"),
    Case("bitwise_not", inputs(x=arrays(low=-99, high=99, dtype="int64"))),
    Case("bitwise_not", inputs(x=arrays(dtype="bool")), label="bools"),
    Case("bitwise_not", inputs(x=arrays(low=0, high=99, dtype="uint8")), label="uint8"),
    *(
        Case(op, shifts(dtype), label=dtype)
        for op in ("left_shift", "right_shift")
        for dtype in ("int64", "int32", "uint8")
    ),
    *(Case(op, broadcastable(low=-30, high=30, dtype="int64")) for op in ("gcd", "lcm")),
    *(Case(op, broadcastable(low=0, high=9, dtype="uint8"), label="uint8") for op in ("gcd", "lcm")),
]
