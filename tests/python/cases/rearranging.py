"""Cases: rearranging by named dimensions. The reference is reshape and transpose, written out by hand."""

import hypothesis.strategies as st
import numpy as np
from parity import Case, arrays

from gradops import ops


def pattern(text, size, reference, **lengths):
    return Case(
        "rearrange",
        st.fixed_dictionaries({"x": arrays(size)}),
        reference,
        gradients=["x"],
        label=text,
        using=lambda x: ops.rearrange(x, text, **lengths),
    )


def blocks(x):
    return x.reshape(2, 2, 2, 3).transpose(0, 2, 1, 3).reshape(4, 6)


CASES = [
    pattern("b h w c -> b c h w", (2, 3, 4, 2), lambda x: x.transpose(0, 3, 1, 2)),
    pattern("b (h p) -> b p h", (2, 6), lambda x: x.reshape(2, 2, 3).transpose(0, 2, 1), p=3),
    pattern("... c -> c ...", (2, 3, 4), lambda x: x.transpose(2, 0, 1)),
    pattern("b ... -> (b ...)", (2, 3, 4), lambda x: x.reshape(24)),
    pattern("a ... b -> (a b) ...", (2, 3, 4), lambda x: x.transpose(0, 2, 1).reshape(8, 3)),
    pattern("... -> ...", (2, 3), lambda x: x),
    pattern("a b -> a 1 b ()", (2, 3), lambda x: x.reshape(2, 1, 3, 1)),
    pattern("a 1 () b -> b a", (2, 1, 1, 3), lambda x: x.reshape(2, 3).T),
    pattern("(a b) (c d) -> (a c) (b d)", (4, 6), blocks, a=2, d=3),
    pattern("->", (), lambda x: x),
    Case(
        "rearrange",
        st.fixed_dictionaries({"xs": st.tuples(arrays((2, 3)), arrays((2, 3))).map(list)}),
        lambda xs: np.concatenate([x[:, None] for x in xs], 1).reshape(4, 3),
        gradients=["xs"],
        label="a list",
        using=lambda xs: ops.rearrange(xs, "n a b -> (a n) b"),
    ),
]
