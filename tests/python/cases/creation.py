"""Cases: creation."""

import hypothesis.strategies as st
import numpy as np
from parity import Case, arrays

from gradops import ops


def made(op, reference=None, label="", **options):
    label = label or "-".join(f"{k}={v}" for k, v in options.items())
    return Case(op, st.just(options), reference or getattr(np, op), label=label)


def like(op, reference, **options):
    inputs = st.fixed_dictionaries({"x": arrays((2, 3), dtype="float32")}).map(lambda given: {**given, **options})
    return Case(
        op,
        inputs,
        lambda x, **rest: reference(x, *rest.values()),
        label="-".join(f"{k}={v}" for k, v in options.items()),
    )


def linspace(start, stop, **options):
    inputs = st.fixed_dictionaries({"start": arrays(start), "stop": arrays(stop)})
    inputs = inputs.map(lambda given: {**given, **options})
    label = "-".join([str(start), str(stop), *(f"{k}={v}" for k, v in options.items())])
    return Case("linspace", inputs, np.linspace, gradients=["start", "stop"], label=label)


def grid(*sizes, **options):
    names = [f"x{i}" for i in range(len(sizes))]
    return Case(
        "meshgrid",
        st.fixed_dictionaries({n: arrays(s) for n, s in zip(names, sizes)}),
        lambda **given: list(np.meshgrid(*(given[n] for n in names), **options)),
        gradients=names,
        label="-".join([*map(str, sizes), *options.values()]),
        using=lambda **given: ops.meshgrid(*(given[n] for n in names), **options),
    )


with_zeros = arrays((3,)).map(lambda x: np.where(x > 1, 0.0, x))

CASES = [
    *(made(op, shape=(2, 3)) for op in ("zeros", "ones")),
    *(made(op, shape=(2,), dtype="int32") for op in ("zeros", "ones")),
    made("empty", np.zeros, shape=(2, 0)),
    made("empty", np.zeros, shape=(3,), dtype="float32"),
    made("full", shape=(2, 2), fill_value=3),
    made("full", shape=(2,), fill_value=3, dtype="float32"),
    Case(
        "full",
        st.fixed_dictionaries({"shape": st.just((2, 3)), "fill_value": arrays((3,))}),
        np.full,
        gradients=["fill_value"],
        label="tensor",
    ),
    like("zeros_like", np.zeros_like),
    like("ones_like", np.ones_like, dtype="int64"),
    like("empty_like", np.zeros_like, dtype="bool"),
    like("full_like", np.full_like, fill_value=2),
    like("full_like", np.full_like, fill_value=-np.inf, dtype="float64"),
    made("arange", lambda start: np.arange(start), start=5),
    made("arange", start=2, stop=9, step=3),
    made("arange", start=1.0, stop=0.0, step=-0.3),
    made("arange", start=0, stop=3, dtype="float32"),
    made("arange", start=3, stop=0),
    linspace((), (), num=5),
    linspace((), (), num=4, endpoint=False),
    linspace((2,), (3, 1), num=3, axis=-1),
    linspace((), (), num=3, retstep=True),
    linspace((), (), num=1),
    made("linspace", start=0, stop=1, num=3, dtype="float32"),
    made("eye", N=3),
    made("eye", N=2, M=4, k=1, dtype="int64"),
    made("eye", N=3, k=-1),
    made("identity", n=3),
    made("identity", np.identity, n=2, dtype="bool"),
    made("tri", N=3),
    made("tri", N=2, M=4, k=1, dtype="int32"),
    made("tri", N=3, M=2, k=-1),
    grid((2,), (3,)),
    grid((2,), (3,), indexing="ij"),
    grid((2,), (3,), (1,)),
    grid((), (2, 2)),
    grid((3,)),
    *(
        Case(
            "vander",
            st.fixed_dictionaries({"x": with_zeros}).map(lambda given, o=o: {**given, **o}),
            np.vander,
            gradients=["x"],
            label="-".join(f"{k}={v}" for k, v in o.items()),
        )
        for o in ({}, {"N": 5}, {"N": 2, "increasing": True})
    ),
    Case("vander", st.fixed_dictionaries({"x": arrays((3,)), "N": st.just(0)}), np.vander, label="no columns"),
    Case("vander", st.fixed_dictionaries({"x": arrays((3,), -3, 4, dtype="int64")}), np.vander, label="integers"),
]
