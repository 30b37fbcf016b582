"""Random programs on NumPy: value and gradient, compiled as without, and against finite differences."""

from __future__ import annotations

import os

import numpy as np
import pytest
from parity import numpy
from random_programs import Program

from gradops import value_and_grad
from gradops.jit import jit

LONG = round(300 * float(os.environ.get("GRADOPS_LONG") or 1))


def derivative(program: Program):
    return value_and_grad(program.loss, argnums=tuple(range(len(program.inputs))))


def same(got, wanted, program: Program, rtol: float = 1e-7) -> None:
    rtol = 1e-3 if program.single else rtol
    for g, w in zip((got[0], *got[1]), (wanted[0], *wanted[1])):
        np.testing.assert_allclose(
            numpy(g), numpy(w), rtol=rtol, atol=rtol, err_msg=f"Program({program.seed}): {program.steps}"
        )


def check_compiled(program: Program) -> None:
    """The gradient, and a program that was traced with other inputs."""
    f = derivative(program)
    wanted = f(*program.inputs)
    compiled = jit(f)
    compiled(*[np.array(x[::-1] if x.ndim else x / 2) for x in program.inputs])
    same(compiled(*program.inputs), wanted, program)
    if not program.single:
        check_slope(program, wanted[1])


def check_slope(program: Program, gradients) -> None:
    """Along a random direction, against central differences; not where two step sizes disagree, near a kink."""
    rng = np.random.default_rng(program.seed)
    direction = [rng.normal(size=x.shape) for x in program.inputs]

    def slope(step):
        ends = [program.loss(*[x + s * d for x, d in zip(program.inputs, direction)]) for s in (step, -step)]
        return (ends[0] - ends[1]) / (2 * step)

    rough, fine = slope(1e-5), slope(1e-6)
    if abs(rough - fine) < 1e-4 * (1 + abs(fine)):
        got = sum(np.sum(g * d) for g, d in zip(gradients, direction))
        assert abs(got - rough) < 1e-3 * (1 + abs(rough)), f"Program({program.seed}): {got} for {rough}"


@pytest.mark.parametrize("seed", range(15))
def test_compiled(seed):
    check_compiled(Program(seed))


@pytest.mark.long
@pytest.mark.parametrize("seed", range(1000, 1000 + LONG))
def test_many_compiled(seed):
    check_compiled(Program(seed))
