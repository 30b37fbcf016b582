"""Cases: diagonals and triangles."""

import numpy as np

from .shaping import shape

CASES = [
    *(shape("diag", (3,), k=k) for k in (0, 2, -1)),
    *(shape("diag", (3, 4), "matrix", k=k) for k in (0, 1, -2, 5)),
    shape("diag", (2,), "integers", dtype="int64", gradients=()),
    shape("diag", (2,), "complex", dtype="complex128"),
    *(shape("diagflat", (2, 2), k=k) for k in (0, 1, -2)),
    shape("diagflat", (), "0-d"),
    shape("diagflat", (0,), "empty"),
    shape("diagonal", (3, 4)),
    shape("diagonal", (2, 3, 4), offset=1, axis1=2, axis2=0),
    shape("diagonal", (2, 3, 4), offset=-1, axis1=-2, axis2=-1),
    shape("diagonal", (2, 2), "off the matrix", offset=3),
    shape("trace", (3, 3)),
    shape("trace", (2, 3, 4), offset=1, axis1=0, axis2=2),
    shape("trace", (2, 2), "integers", dtype="int32", gradients=(), reference=lambda x: np.trace(x, dtype="int64")),
    *(shape(op, (3, 4), k=k) for op in ("tril", "triu") for k in (0, 1, -2)),
    *(shape(op, (2, 3, 3)) for op in ("tril", "triu")),
    *(shape(op, (2, 2), dtype="bool", gradients=()) for op in ("tril", "triu")),
]
