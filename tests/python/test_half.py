"""The gradient of every op has the dtype of its input, in half precision too: by functions and by the tape, twice."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
from parity import BACKENDS, Case, flat, weights
from precision import KINDS, converted, each_array, example, loss, rounded
from test_chosen import EACH
from test_parity import CASES
from test_precision import PUBLIC

import gradops
from gradops import Variable, autodiff, backends, ops

HALVES = [(b, name) for b in BACKENDS for name in ("float16", "bfloat16") if (b, name) != ("numpy", "bfloat16")]


def gradients_of(case: Case, backend: str, kinds: list[str], orders: int) -> dict[str, tuple]:
    """The dtypes of a case's gradients where the differentiated arrays are of ``kinds``, beside which they should be.

    Args:
        kinds: dtypes, taken in turn by the arrays; other arguments are of the first one.
    """
    half = next(kind for kind in kinds if kind in KINDS)
    arguments = {k: each_array(v, lambda x: rounded(x, half)) for k, v in example(case).items()}
    arrays: list = []
    for name in case.gradients:
        each_array(arguments[name], arrays.append)
    own = {"c": "complex64"}
    leaves = [converted(x, backend, own | {"f": kinds[i % len(kinds)]}) for i, x in enumerate(arrays)]
    fixed = {k: converted(v, backend, own | {"f": kinds[0]}) for k, v in arguments.items() if k not in case.gradients}
    want = tuple(map(ops.dtype, leaves))
    found: dict[str, tuple] = {}

    def results(*values):
        queue = list(values)
        given = {k: each_array(arguments[k], lambda _: queue.pop(0)) for k in case.gradients}
        return flat(case.function()(**{k: given.get(k, fixed.get(k)) for k in arguments}))

    def scalar(*values):
        made = results(*values)
        return loss(made, weights(made))

    def note(what: str, gradients) -> None:
        dtypes = tuple(ops.dtype(g.data if isinstance(g, Variable) else g) for g in gradients)
        if dtypes != want:
            found[what] = (dtypes, want)

    def all_of_them(*values):
        f, every = scalar, tuple(range(len(values)))
        for order in range(1, orders + 1):
            gradient = gradops.grad(f, every)
            note(f"order {order}", gradient(*values))
            f = lambda *xs, g=gradient: loss(made := list(g(*xs)), weights(made, seed=11))  # noqa: E731
        if backend != "torch":  # whose tape is the only one of its tensors
            variables = [Variable(x, requires_grad=True) for x in values]
            total = scalar(*variables)
            for order in range(1, orders + 1):
                if not total.requires_grad:
                    break
                made = list(autodiff.grad(total, variables, create_graph=True, materialize_grads=True))
                note(f"order {order} by the tape", made)
                total = loss(made, weights(made, seed=11))
        return 0.0

    if backend == "jax":
        import jax

        with contextlib.suppress(Exception):  # values decide
            jax.eval_shape(all_of_them, *leaves)
            return found
        found.clear()
    all_of_them(*leaves)
    return found


def check(cases, backend: str, kinds: list[str], orders: int) -> None:
    wrong: dict = {}
    for case in cases:
        if backend in case.skip or not case.gradients:
            continue
        try:
            found: object = gradients_of(case, backend, kinds, orders)
        except Exception as error:
            found = f"{type(error).__name__}: {error}"
        if found:
            wrong[case.id] = found
    assert not wrong, "\n".join(f"{k}: {v}" for k, v in wrong.items())


@pytest.mark.parametrize("backend, name", HALVES)
def test_each_op(backend, name):
    check(EACH.values(), backend, [name], 1)


@pytest.mark.long
@pytest.mark.parametrize("backend, name", HALVES)
def test_every_case_twice(backend, name):
    check(CASES, backend, [name], 2)


@pytest.mark.long
@pytest.mark.parametrize("backend, name", HALVES)
def test_beside_single_precision(backend, name):
    """Each gradient has the dtype of its own input."""
    for kinds in ([name, "float32"], ["float32", name]):
        check((case for op, case in EACH.items() if op in PUBLIC), backend, kinds, 2)


@gradops.custom_gradient
def tripled(x):
    return ops.sin(x), lambda upstream: upstream * 3.0


FLOWS = {
    "custom": tripled,
    "scaled": lambda x: gradops.scaled_gradient(x * x, -2.0),
    "stopped": lambda x: gradops.stop_gradient(x) * x * x,
    "checkpoint": gradops.checkpoint(lambda x: ops.sin(x) * x),
    "custom in a checkpoint": gradops.checkpoint(lambda x: tripled(x) * x),
    "beside numbers": lambda x: (x * 2 + 0.5) / 3 - ops.power(x, 2),
    "divided by an array": lambda x: ops.divide(x * x, np.array([2, 3])),
    "under an array": lambda x: ops.divide(np.array([2, 3]), x + 1),
    "matrix": lambda x: ops.matmul(np.array([[2, 1], [0, 3]]), x * x),
    "arrays at choice": lambda x: ops.where(x > 0, x * x, np.array([2, 3])),
}


@pytest.mark.parametrize("backend, name", HALVES)
def test_flows(backend, name):
    """Also beside whole numbers in NumPy's arrays, which lack bfloat16."""
    x = backends.by_name(backend).convert(np.array([0.5, 1.0]), name)
    found = {}
    for what, f in FLOWS.items():
        first = gradops.grad(lambda v, f=f: ops.sum(f(v) * f(v)))
        dtypes = [first(x), gradops.grad(lambda v, g=first: ops.sum(g(v) * v))(x)]
        if backend != "torch":
            v = Variable(x, requires_grad=True)
            (g,) = autodiff.grad(ops.sum(f(v) * f(v)), [v], create_graph=True)
            dtypes += [g.data, autodiff.grad(ops.sum(g * v), [v])[0].data]
        found[what] = {*map(ops.dtype, dtypes)}
    assert found == dict.fromkeys(FLOWS, {name})
