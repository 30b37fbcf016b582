"""Random programs: compiled against uncompiled, against finite differences, and other libraries against the tape."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from parity import numpy, tensors
from random_programs import Program
from seeds import seeds

from gradops import value_and_grad
from gradops.jit import jit


def derivative(program: Program, loss=None):
    return value_and_grad(loss or program.loss, argnums=tuple(range(len(program.inputs))))


def same(got, wanted, program: Program, rtol: float = 1e-7) -> None:
    rtol = 1e-3 if program.single else rtol
    for g, w in zip((got[0], *got[1]), (wanted[0], *wanted[1])):
        np.testing.assert_allclose(
            numpy(g), numpy(w), rtol=rtol, atol=rtol, err_msg=f"Program({program.seed}): {program.steps}"
        )


def check_compiled(program: Program) -> None:
    """Check the gradient, and a program that was traced with other inputs."""
    f = derivative(program)
    wanted = f(*program.inputs)
    compiled = jit(f)
    compiled(*[np.array(x[::-1] if x.ndim else x / 2) for x in program.inputs])
    same(compiled(*program.inputs), wanted, program)
    if not program.single:
        check_slope(program, wanted[1])


def check_slope(program: Program, gradients) -> None:
    """Check a random directional derivative by central differences, unless two step sizes disagree (near a kink)."""
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
@pytest.mark.parametrize("seed", seeds(300))
def test_many_compiled(seed):
    check_compiled(Program(seed))
    check_large(seed)


def check_large(seed: int) -> None:
    """Check arrays of hundreds of rows, with inputs that overflow or are NaN, against uncompiled code."""
    program = Program(seed, length=8, rows=400)
    f = derivative(program, program.last)
    compiled = jit(f)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # not errstate(), so that a NumPy warning makes compiled code repeat the run
        for inputs in (program.inputs, program.spoiled(), program.spoiled()):
            same(compiled(*inputs), f(*inputs), program)


@pytest.mark.parametrize("seed", range(40))
def test_compiled_of_large_arrays(seed):
    check_large(seed)


def compiled_derivative(library: str, program: Program):
    """Return the derivative by the library's compiler; for PyTorch of the compiled loss, whose guards hold."""
    if library != "torch":
        return jit(derivative(program))
    import torch

    torch._dynamo.reset()
    loss = torch.compile(program.loss, fullgraph=True, backend="aot_eager")

    def value_and_gradients(*inputs):
        leaves = [x.requires_grad_() for x in inputs]
        y = loss(*leaves)
        return y.detach(), torch.autograd.grad(y, leaves, allow_unused=True, materialize_grads=True)

    return value_and_gradients


def check_elsewhere(library: str, program: Program, compiled: bool = True) -> None:
    """Check the library's own derivatives, eager and compiled, against the tape's."""
    f = derivative(program)
    with np.errstate(all="ignore"):
        wanted = f(*program.inputs)
    inputs = [tensors(x, library) for x in program.inputs]
    same(f(*inputs), wanted, program)
    if compiled and not (library == "jax" and _has_extremes_of_products(program)):
        same(compiled_derivative(library, program)(*inputs), wanted, program)


def _has_extremes_of_products(program: Program) -> bool:
    """Return True if an extreme of complex products occurs, which XLA may compute twice with different bits.

    `jax.numpy.max` then finds no element equal to its result, and the gradient is infinite.
    """
    kinds = [step[0] for step in program.steps]
    extremes = [step[0] == "top" or step[:2] in (("reduce", "max"), ("reduce", "min")) for step in program.steps]
    return "complex" in kinds and any(extremes[kinds.index("complex") :])


@pytest.mark.short_cases(0, "torch")
@pytest.mark.parametrize("library, count", [("torch", 10), ("tensorflow", 2)])
def test_elsewhere(library, count):
    for seed in range(count):
        check_elsewhere(library, Program(seed), compiled=seed == 1)


MANY = {"torch": 100, "tensorflow": 100, "jax": 25}  # JAX compiles each op for each shape: ten seconds per program


@pytest.mark.long
@pytest.mark.parametrize("library, seed", [(library, seed) for library, count in MANY.items() for seed in seeds(count)])
def test_many_elsewhere(library, seed):
    """PyTorch's compiler also takes ten seconds, so it runs every fourth program."""
    check_elsewhere(library, Program(seed), compiled=library != "torch" or seed % 4 == 0)
