"""Cases: products of tensors."""

import hypothesis.strategies as st
import numpy as np
from parity import Case, arrays


def two(op, first, second, label="", gradients=("x1", "x2"), dtype="float64", reference=None, **options):
    inputs = st.fixed_dictionaries({"x1": arrays(first, dtype=dtype), "x2": arrays(second, dtype=dtype)})
    if options:
        inputs = inputs.map(lambda given: {**given, **options})
    return Case(
        op,
        inputs,
        reference or (lambda x1, x2, **rest: getattr(np, op)(x1, x2, **rest)),
        gradients=gradients,
        label=label,
    )


def cross(x1, x2, **axes):
    """NumPy's cross product, with vectors of length 2 extended by a zero (NumPy has dropped this)."""
    axis = axes.pop("axis", None)
    if axis is not None:
        axes = {"axisa": axis, "axisb": axis, "axisc": axis}
    first = np.moveaxis(x1, axes.get("axisa", -1), -1)
    second = np.moveaxis(x2, axes.get("axisb", -1), -1)
    flat = first.shape[-1] == second.shape[-1] == 2
    first, second = (np.concatenate([v, np.zeros((*v.shape[:-1], 3 - v.shape[-1]))], -1) for v in (first, second))
    y = np.cross(first, second)
    return y[..., 2] if flat else np.moveaxis(y, -1, axes.get("axisc", -1))


def contraction(subscripts, *shapes):
    """A case of ``einsum``, whose operands are not named arguments."""
    from gradops import ops

    class Einsum(Case):
        def function(self):
            return lambda **operands: ops.einsum(subscripts, *(operands[n] for n in names))

    names = [f"x{i}" for i in range(len(shapes))]
    return Einsum(
        "einsum",
        st.fixed_dictionaries({n: arrays(s) for n, s in zip(names, shapes)}),
        lambda **operands: np.einsum(subscripts, *(operands[n] for n in names)),
        gradients=names,
        label=subscripts,
    )


CASES = [
    two("matmul", (3, 2), (2, 4)),
    two("matmul", (2, 1, 3, 2), (3, 2, 4), "broadcast"),
    two("matmul", (2,), (2,), "vectors"),
    two("matmul", (3, 2), (2,), "matrix-vector"),
    two("matmul", (2,), (3, 2, 2), "vector-matrices"),
    two("matmul", (3, 2), (2, 2), "complex", dtype="complex128"),
    two("matmul", (3, 2), (2, 2), "integers", gradients=(), dtype="int64"),
    two("dot", (2, 3), (4, 3, 2)),
    two("dot", (3,), (3,), "vectors"),
    two("dot", (), (3,), "scalar"),
    two("tensordot", (2, 3, 2), (3, 2, 2), axes=2, label="last"),
    two("tensordot", (2, 3, 2), (2, 4, 3), axes=[[1, 2], [2, 0]], label="named"),
    two("tensordot", (2,), (3,), axes=0, label="outer"),
    two("outer", (2, 2), (3,)),
    two("inner", (2, 3), (4, 3)),
    two("inner", (), (2, 3), "scalar"),
    two("inner", (2,), (3, 2), "complex", dtype="complex128"),
    two("vdot", (2, 3), (3, 2)),
    two("vdot", (3,), (3,), "complex", dtype="complex128"),
    two("vdot", (3,), (3,), "integers", gradients=(), dtype="int64"),
    two("kron", (2, 3), (2, 2)),
    two("kron", (2,), (2, 1, 2), "ranks"),
    two("kron", (), (2,), "scalar"),
    two("kron", (2, 2), (2,), "complex", dtype="complex128"),
    two("cross", (3,), (3,), reference=cross),
    two("cross", (2, 1, 3), (4, 3), "broadcast", reference=cross),
    two("cross", (4, 2), (4, 3), "two-three", reference=cross),
    two("cross", (3,), (2,), "three-two", reference=cross),
    two("cross", (4, 2), (2,), "two-two", reference=cross),
    two("cross", (3, 4), (4, 3), "axes", reference=cross, axisa=0, axisb=1, axisc=0),
    two("cross", (3, 4), (3, 1), "axis", reference=cross, axis=0),
    two("cross", (3,), (3,), "complex", reference=lambda x1, x2: np.cross(x1, x2), dtype="complex128"),
    two("cross", (3,), (3,), "integers", gradients=(), dtype="int64"),
    contraction("ij,jk->ik", (2, 3), (3, 2)),
    contraction("...i,i", (2, 2, 3), (3,)),
    contraction("ii->i", (3, 3)),
    contraction("ij->", (2, 3)),
    contraction("iij,jk,k->i", (2, 2, 3), (3, 2), (2,)),
]
