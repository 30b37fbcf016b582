"""Cases: joining and splitting."""

import hypothesis.strategies as st
import numpy as np
from parity import Case, arrays

from .shaping import shape


def join(op, *sizes, label="", dtypes=(), name="xs", gradients=True, **options):
    """Return a case that joins several tensors of one dtype, or each of its own dtype (the last is the result's)."""
    kinds = dtypes or ("float64",) * len(sizes)
    parts = st.tuples(*(arrays(size, -3, 4, dtype=kind) for size, kind in zip(sizes, kinds))).map(list)
    return Case(
        op,
        st.fixed_dictionaries({name: parts}).map(lambda given: {**given, **options}),
        lambda **given: getattr(np, op)(given.pop(name), **given).astype(kinds[-1]),
        gradients=(name,) if gradients else (),
        label="-".join([label, *(f"{k}={v}" for k, v in options.items()), *map(str, sizes)]).strip("-"),
    )


def append(first, second, **axis):
    inputs = st.fixed_dictionaries({"x1": arrays(first), "x2": arrays(second)}).map(lambda given: {**given, **axis})
    return Case("append", inputs, np_append, gradients=("x1", "x2"), label=str(axis))


def np_append(x1, x2, **axis):
    return np.append(x1, x2, **axis)


CASES = [
    join("concatenate", (2, 3), (1, 3), (0, 3)),
    join("concatenate", (2, 3), (2, 1), axis=-1),
    join("concatenate", (2,)),
    join("concatenate", (2,), (1,), label="dtypes", dtypes=("int32", "float32"), gradients=False),
    join("stack", (2, 3), (2, 3), name="x"),
    join("stack", (2, 3), (2, 3), name="x", axis=-1),
    join("stack", (), (), (), name="x"),
    join("stack", (2,), (2,), name="x", label="complex", dtypes=("complex128", "complex128")),
    *(join(op, *[size] * 2) for op in ("hstack", "vstack", "dstack", "column_stack") for size in [(), (2,), (2, 3)]),
    join("hstack", (2, 3), (2, 1)),
    join("column_stack", (2, 3), (2,)),
    join("vstack", (2, 3), (3,)),
    join("dstack", (2, 3, 1), (2, 3)),
    append((2, 3), (2,)),
    append((2, 3), (1, 3), axis=0),
    append((2, 3), (2, 2), axis=-1),
    shape("split", (4, 3), indices_or_sections=2),
    shape("split", (2, 6), indices_or_sections=3, axis=-1),
    shape("split", (5, 2), indices_or_sections=[1, 3, 7]),
    shape("split", (0, 2), "nothing", indices_or_sections=3),
    shape("split", (5,), "from the end", indices_or_sections=[1, -3, -1]),
    shape("array_split", (7, 2), indices_or_sections=3),
    shape("array_split", (2, 3), indices_or_sections=5, axis=1),
    shape("array_split", (4,), indices_or_sections=[1, 2]),
    shape("hsplit", (2, 4), indices_or_sections=2),
    shape("hsplit", (4,), indices_or_sections=[1]),
    shape("vsplit", (4, 2), indices_or_sections=2),
    shape("dsplit", (1, 2, 4), indices_or_sections=[1, 3]),
    shape("unstack", (3, 2), reference=lambda x: list(x)),
    shape("unstack", (2, 3), reference=lambda x, num, axis: list(np.moveaxis(x, axis, 0)), num=3, axis=-1),
    shape("unstack", (2,), "numbers", reference=lambda x: list(x)),
    shape("unstack", (0, 3), "empty", reference=lambda x: list(x), gradients=()),
]
