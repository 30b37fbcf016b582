"""Random loops and branches in compiled functions, against the unrolling tape, to second order."""

from __future__ import annotations

import numpy as np
import pytest
from random_loops import Loops
from seeds import seeds

from gradops import functional, value_and_grad
from gradops.jit import jit


def check(loops: Loops) -> None:
    first = value_and_grad(loops, argnums=(0, 1))
    second = lambda x, v: functional.hvp(lambda z: loops(z, loops.inputs[1]), x, v)[1]  # noqa: E731
    compiled, compiled_second = jit(first), jit(second)
    for scale in (1.0, -0.6):
        inputs = [scale * x for x in loops.inputs]
        wanted, got = first(*inputs), compiled(*inputs)
        for a, b in zip((wanted[0], *wanted[1]), (got[0], *got[1]), strict=True):
            np.testing.assert_allclose(b, a, rtol=1e-8, atol=1e-9, err_msg=f"Loops({loops.seed})")
        wanted, got = second(inputs[0], inputs[0]), compiled_second(inputs[0], inputs[0])
        np.testing.assert_allclose(got, wanted, rtol=1e-7, atol=1e-8, err_msg=f"Loops({loops.seed}), second")


@pytest.mark.short_cases(2)
@pytest.mark.parametrize("seed", [0, 4, 9, 17, 26])
def test_loops(seed):
    check(Loops(seed))


@pytest.mark.long
@pytest.mark.parametrize("seed", seeds(300))
def test_many_loops(seed):
    check(Loops(seed))
