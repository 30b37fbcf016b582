"""An op returns tensors and derivatives of its arguments' library, whichever library is the default."""

from __future__ import annotations

import contextlib
from dataclasses import replace

import numpy as np
import pytest
from parity import BACKENDS, Case, flat, numpy, tensors, weights
from precision import each_array, loss
from test_parity import CASES

import gradops
from gradops import Variable, autodiff, backends, config, ops

OTHERS = {
    "numpy": ("torch", "jax", "tensorflow"),
    "torch": ("jax", "numpy"),
    "tensorflow": ("torch", "numpy"),
    "jax": ("torch", "numpy"),
}
OTHER = {name: next((other for other in others if other in BACKENDS), name) for name, others in OTHERS.items()}
"""The default library to set for tensors of each library: a different one, if installed."""
EACH = {
    case.op: case for case in sorted(CASES, key=lambda case: bool(case.gradients))
}  # with gradients where they exist


def owners(values) -> set[str]:
    found = (backends.backend_of(x.data if isinstance(x, Variable) else x) for x in flat(values))
    return {backend.name for backend in found if backend is not None}


def arrays_of(case: Case, arguments: dict) -> dict[str, list]:
    """Return the arrays among the differentiated arguments, or among all arguments if none is differentiated."""
    found: dict[str, list] = {}
    for name in case.gradients or arguments:
        each_array(arguments[name], found.setdefault(name, []).append)
    return {name: arrays for name, arrays in found.items() if arrays}


def whose(case: Case, backend: str, chosen: str, orders: int = 1, alone: str | None = None) -> dict[str, set[str]]:
    """Return the libraries of a case's results, native gradients and tape gradients under another default library.

    Args:
        alone: the only argument passed as a tensor; the others are lists.
    """
    arguments = case.example()
    arrays = arrays_of(case, arguments)
    fixed = {name: tensors(value, backend) for name, value in arguments.items() if name not in arrays}
    if alone is not None:
        arrays = {alone: arrays[alone]}
        fixed = {name: each_array(value, lambda x: x.tolist()) for name, value in arguments.items() if name != alone}
    found: dict[str, set[str]] = {}

    def results(*values):
        queue = list(values)
        given = {name: each_array(arguments[name], lambda _: queue.pop(0)) for name in arrays}
        return flat(case.function()(**{name: given.get(name, fixed.get(name)) for name in arguments}))

    def scalar(*values):
        made = results(*values)
        return loss(made, weights(made))

    def all_of_them(*values):
        with config.backend_scope(chosen):
            found["results"] = owners(results(*values))
            if not case.gradients:
                return 0.0
            f, every = scalar, tuple(range(len(values)))
            for order in range(orders):
                gradient = gradops.grad(f, every)
                found[f"gradients of order {order + 1}"] = owners(made := list(gradient(*values)))
                f = lambda *xs, g=gradient: loss(made := list(g(*xs)), weights(made, seed=11))  # noqa: E731
            if backend != "torch":  # PyTorch's own tape is the only one for its tensors
                variables = [Variable(x, requires_grad=True) for x in values]
                total = scalar(*variables)
                if total.requires_grad:  # integer results have no gradient
                    made = list(autodiff.grad(total, variables, create_graph=True, materialize_grads=True))
                    found["gradients by the tape"] = owners(made)
        return 0.0

    values = [tensors(x, backend) for several in arrays.values() for x in several]
    if backend == "jax":
        import jax

        with contextlib.suppress(Exception):  # control flow depends on values
            jax.eval_shape(all_of_them, *values)
            return found
        found.clear()
    all_of_them(*values)
    return found


def check(cases, backend: str, orders: int = 1, lists: bool = False) -> None:
    if OTHER[backend] == backend:
        pytest.skip("one library alone")
    wrong = {}
    for case in cases:
        arrays = arrays_of(case, case.example())
        if backend in case.skip or case.op == "convert_to_numpy" or not arrays:
            continue
        for alone in beside_lists(case, arrays) if lists else (None,):
            try:
                found = whose(case, backend, OTHER[backend], orders, alone)
                wrong[case.id, alone] = {what: names for what, names in found.items() if names - {backend}}
            except Exception as error:
                wrong[case.id, alone] = f"{type(error).__name__}: {error}"
    wrong = {k: v for k, v in wrong.items() if v}
    assert not wrong, "\n".join(f"{k}: {v}" for k, v in wrong.items())


def beside_lists(case: Case, arrays: dict) -> list[str]:
    """Return the differentiated arguments that have other array arguments; an empty list has no dtype to infer."""
    arguments = case.example()
    every = [x for value in arrays_of(replace(case, gradients=()), arguments).values() for x in value]
    if len(every) < 2 or not all(x.size for x in every):
        return []
    return [name for name in case.gradients if len(arrays.get(name, ())) == 1]


@pytest.mark.short_cases(0, "jax", "tensorflow")
@pytest.mark.parametrize("backend", BACKENDS)
def test_each_op(backend):
    check(EACH.values(), backend)


@pytest.mark.short_cases(0, "torch", "tensorflow", "jax")
@pytest.mark.parametrize("backend", BACKENDS)
def test_tensors_with_lists(backend):
    check(EACH.values(), backend, lists=True)


@pytest.mark.long
@pytest.mark.parametrize("lists", [False, True])
@pytest.mark.parametrize("backend", BACKENDS)
def test_every_case(backend, lists):
    check(CASES, backend, 2, lists)


@pytest.mark.short_cases(0, "jax")
@pytest.mark.parametrize("backend", BACKENDS)
def test_tensors_with_numbers_and_lists_in_a_list(backend):
    """Values and gradients do not change if tensors are replaced by numbers and lists."""
    x, y = np.array([0.3, -0.7]), np.array([1.5, 2.5])
    functions = {
        "stack": lambda x, y: ops.stack([x, y]),
        "concatenate": lambda x, y: ops.concatenate([y, x]),
        "hstack": lambda x, y: ops.hstack([x, y]),
        "vstack": lambda x, y: ops.vstack([y, x]),
        "dstack": lambda x, y: ops.dstack([y, x]),
        "einsum": lambda x, y: ops.einsum("i,i->i", x, y),
        "einsum, first": lambda x, y: ops.einsum("i,i->i", y, x),
        "meshgrid": lambda x, y: ops.multiply(*ops.meshgrid(x, y)),
        "meshgrid of a number": lambda x, y: ops.multiply(*ops.meshgrid(x, 2.5)),
        "select": lambda x, y: ops.select([[True, False]], [x], y),
        "choice": lambda x, y: ops.select([[True, False]], [y], x),
    }
    tensor, other = tensors(x, backend), tensors(y, backend)
    kinds = [lambda x: x] + ([] if backend == "torch" else [lambda x: Variable(x, requires_grad=True)])
    for name, f in functions.items():
        for kind in kinds:
            g = lambda z, y, f=f, kind=kind: ops.sum(ops.square(f(z, y)))  # noqa: E731
            with config.backend_scope(OTHER[backend]):
                if kind is kinds[0]:
                    got, want = gradops.grad(g)(tensor, y.tolist()), gradops.grad(g)(tensor, other)
                else:
                    v = kind(tensor)
                    got, want = (autodiff.grad(g(v, z), [v])[0].data for z in (y.tolist(), other))
            assert owners([got]) == {backend}, name
            np.testing.assert_allclose(numpy(got), numpy(want), err_msg=name)
