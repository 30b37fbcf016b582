"""Random nests of scopes, custom gradients, checkpoints and writes, against the slow interpreter of ``nests``."""

from __future__ import annotations

import numpy as np
import pytest
from nests import loss, nest, slow_derivatives, weighted
from parity import numpy, tensors
from seeds import seeds

import gradops
from gradops import Variable, autodiff, ops

INPUTS = [np.array([0.3, -0.7, 1.1]), np.array([-0.4, 0.9, 0.2])]


def leaves_of(library: str) -> list:
    if library == "torch":
        return [tensors(x, library).requires_grad_() for x in INPUTS]
    return [Variable(tensors(x, library), requires_grad=True) for x in INPUTS]


def of_leaves(library: str):
    def derivatives(program):
        leaves = leaves_of(library)
        y = loss(program, leaves)
        return y, *twice(y, leaves, autodiff.grad)

    return derivatives


def twice(y, leaves, grad):
    none = [ops.zeros_like(x) for x in leaves]
    options = {"allow_unused": True, "materialize_grads": True}
    first = grad(y, leaves, create_graph=True, **options) if y.requires_grad else none
    total = weighted(list(first), ops.sum)
    return first, grad(total, leaves, **options) if total.requires_grad else none


def of_functions(library: str, compiled: bool = False):
    """Return the derivatives by ``gradops.grad`` on the library's own tensors."""

    def derivatives(program):
        inputs = [tensors(x, library) for x in INPUTS]
        every = (0, 1)
        both = gradops.value_and_grad(lambda *xs: loss(program, list(xs)), every)
        second = gradops.grad(lambda *xs: weighted(list(both(*xs)[1]), ops.sum), every)
        if compiled:
            both, second = gradops.jit(both), gradops.jit(second)
        return *both(*inputs), second(*inputs)

    return derivatives


WAYS = {
    "variables": (of_leaves("numpy"), ("write", "no_grad", "checkpoint")),
    "torch": (of_leaves("torch"), ("write", "no_grad", "checkpoint")),
    "jax": (of_functions("jax"), ("checkpoint",)),
    "tensorflow": (of_functions("tensorflow"), ()),
    "numpy": (of_functions("numpy"), ("write", "checkpoint")),
    "numpy, compiled": (of_functions("numpy", compiled=True), ("write", "checkpoint")),
    "variables on JAX": (of_leaves("jax"), ("no_grad", "checkpoint")),
    "variables on TensorFlow": (of_leaves("tensorflow"), ("no_grad", "checkpoint")),
}
QUICK = {"variables": 30, "torch": 15, "numpy": 10, "numpy, compiled": 8}
STALE = ("in place", "in-place", "inplace")


def check(way: str, seed: int) -> bool:
    """Compare the loss and both derivatives; return False if a write made a saved value stale, which is an error."""
    derivatives, features = WAYS[way]
    program = nest(seed, features=features)
    with np.errstate(all="ignore"):
        want = slow_derivatives(program, INPUTS)
        try:
            got = derivatives(program)
        except Exception as error:
            if "write" in features and any(word in str(error) for word in STALE):
                return False
            raise AssertionError(f"nest({seed}) on {way}: {program}") from error
    for g, w, what in zip(got, want, ("value", "gradient", "second gradient")):
        for part, wanted in zip(g if isinstance(g, (list, tuple)) else [g], w if isinstance(w, list) else [w]):
            np.testing.assert_allclose(
                _numbers(part), wanted, rtol=1e-8, atol=1e-8, err_msg=f"nest({seed}) on {way}, {what}: {program}"
            )
    return True


def _numbers(x):
    return x.detach().numpy() if hasattr(x, "detach") and not isinstance(x, Variable) else numpy(x)


@pytest.mark.parametrize("way", QUICK)
def test_nests(way):
    if way == "torch":
        pytest.importorskip("torch")
    ran = [check(way, seed) for seed in range(QUICK[way])]
    assert sum(ran) * 3 >= len(ran)  # most writes overwrite no saved value
    assert autodiff.is_grad_enabled()


@pytest.mark.long
@pytest.mark.parametrize("way", WAYS)
def test_many_nests(way):
    count = 300 if way in ("variables", "torch", "numpy", "numpy, compiled") else 30
    ran = [check(way, seed) for seed in seeds(count)]
    assert sum(ran) * 3 >= len(ran)
