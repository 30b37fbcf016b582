"""Cases: shape."""

import hypothesis.strategies as st
import numpy as np
from parity import Case, arrays


def shape(op, size, *labels, reference=None, dtype="float64", gradients=("x",), name="x", **options):
    """Return a case with one tensor of a given shape; the options are the op's other arguments."""
    label = "-".join([*labels, *(f"{k}={v}" for k, v in options.items())])
    return Case(
        op,
        st.fixed_dictionaries({name: arrays(size, dtype=dtype)}).map(lambda given: {**given, **options}),
        reference or (lambda **given: getattr(np, op)(given.pop(name), *given.values())),
        gradients=(name,) if gradients else (),
        label=label,
    )


def pad(x, pad_width, mode="constant", constant_values=None):
    return np.pad(x, pad_width, mode, **({} if constant_values is None else {"constant_values": constant_values}))


CASES = [
    shape("reshape", (2, 3, 2), newshape=(3, -1)),
    shape("reshape", (), newshape=(1, 1)),
    shape("reshape", (0, 3), "empty", newshape=(3, 0, 2)),
    shape("reshape", (2, 2), "complex", newshape=(4,), dtype="complex128"),
    shape("transpose", (2, 3, 4)),
    shape("transpose", (2, 3, 4), axes=(1, -1, 0)),
    shape("transpose", (), "0-d"),
    shape("swapaxes", (2, 3, 4), axis1=0, axis2=-1),
    shape("moveaxis", (2, 3, 4), source=0, destination=-1),
    shape("moveaxis", (2, 3, 4, 1), source=(0, -1), destination=(2, 0)),
    shape("expand_dims", (2, 3), axis=1),
    shape("expand_dims", (2, 3), axis=(0, -1)),
    shape("squeeze", (1, 3, 1)),
    shape("squeeze", (1, 3, 1), axis=-1),
    shape("squeeze", (1, 3, 1), axis=(0, 2)),
    shape("broadcast_to", (3, 1), shape=(2, 3, 4)),
    shape("broadcast_to", (), shape=(2,)),
    shape("flip", (2, 3)),
    shape("flip", (2, 3), axis=-1),
    shape("flip", (2, 3, 2), axis=(0, 2)),
    shape("fliplr", (2, 3, 2)),
    shape("flipud", (3,)),
    *(shape("rot90", (2, 3, 2), name="array", k=k, axes=axes) for k, axes in [(1, (0, 1)), (-1, (2, 0)), (2, (1, 2))]),
    shape("rot90", (2, 2), "twice around", name="array", k=4),
    shape("roll", (2, 3), shift=4),
    shape("roll", (2, 3), shift=-1, axis=1),
    shape("roll", (2, 3), shift=(1, 2), axis=(0, 1)),
    shape("ravel", (2, 3)),
    shape("ravel", ()),
    shape("tile", (2, 3), repeats=2),
    shape("tile", (2, 3), repeats=(2, 1, 3)),
    shape("tile", (2, 1, 2), repeats=(3,)),
    shape("tile", (2,), repeats=(2, 0)),
    shape("repeat", (2, 3), repeats=2),
    shape("repeat", (2, 3), repeats=3, axis=-1),
    shape("repeat", (2, 3), repeats=[2, 0, 1], axis=1),
    shape("repeat", (2, 2), "integers", repeats=[1, 2], axis=0, dtype="int64", gradients=()),
    *(shape("pad", (3, 2), reference=pad, pad_width=w) for w in (1, (1, 2), ((0, 2), (1, 0)))),
    shape("pad", (2,), "value", reference=pad, pad_width=2, mode="constant", constant_values=1.5),
    shape("pad", (2, 2), "integers", reference=pad, pad_width=1, dtype="int32", gradients=()),
    shape("pad", (2, 2), "complex", reference=pad, pad_width=1, dtype="complex128"),
    *(
        shape("pad", (3, 4), reference=pad, pad_width=((2, 1), (0, 3)), mode=mode)
        for mode in ("edge", "reflect", "symmetric", "wrap", "mean", "maximum", "minimum")
    ),
    shape("pad", (2,), "further than it is long", reference=pad, pad_width=5, mode="reflect"),
    shape("pad", (0, 2), "empty", reference=pad, pad_width=1),
    shape("view", (2, 3), reference=lambda x: x),
    *(
        Case(
            "view",
            st.fixed_dictionaries({"x": arrays((2, 4), -100, 100, dtype=start), "dtype": st.just(to)}),
            lambda x, dtype: x.view(dtype),
            label=f"{start}-{to}",
        )
        for start, to in [
            ("float64", "int64"),
            ("float64", "float32"),
            ("float32", "uint8"),
            ("uint8", "int32"),
            ("float64", "float64"),
        ]
    ),
]
