"""Every op on tensors that a function closes over has the gradients of passed tensors."""

from __future__ import annotations

import numpy as np
import pytest
from parity import BACKENDS, differentiated, numpy, scalar_function, tensors
from test_parity import CASES, by_id

import gradops
from gradops import config, ops
from gradops.errors import GradientError

WITH_GRADIENTS = [c for c in CASES if c.gradients]
OTHERS = [name for name in BACKENDS if name != "numpy"]


# TensorFlow's own operators refuse float64 times float32, which the op promotes.


def by_rule(value, one):
    """Read the tensors in a gradient function."""
    h = gradops.custom_gradient(lambda z: (z * 1.0, lambda upstream: ops.multiply(upstream, value())))
    return gradops.grad(h)(one)


def by_inner_derivative(value, one):
    return gradops.grad(lambda z: ops.multiply(z, value()))(one)


def by_product(value, one):
    return gradops.functional.vjp(lambda z: ops.multiply(z, value()), one, one)[1]


def by_checkpoint(value, one):
    return gradops.checkpoint(lambda z: ops.multiply(z, value()))(one)


def by_branch(value, one):
    return ops.cond(one > 0, lambda: value(), lambda: value() * 0)


WAYS = [by_rule, by_inner_derivative, by_product, by_checkpoint, by_branch]


def check(case, arguments, backend: str) -> None:
    xs = [tensors(x, backend) for x in differentiated(case, arguments)]
    scalar = scalar_function(case, arguments, backend)
    every = tuple(range(len(xs)))
    with config.backend_scope(backend):
        one = tensors(np.array(1.0), backend)
        wanted = gradops.grad(scalar, every)(*xs)
        for way in WAYS:
            try:
                found = gradops.grad(lambda *xs, way=way: way(lambda: scalar(*xs), one), every)(*xs)
            except GradientError as error:  # a traced rule closes over values of another rule
                assert backend == "jax" and "is not an argument" in str(error), way.__name__
                continue
            for g, w in zip(found, wanted):
                tolerance = {"rtol": case.rtol * 10, "atol": case.atol * 10}
                np.testing.assert_allclose(numpy(g), numpy(w), **tolerance, err_msg=f"{case.id}, {way.__name__}")


@pytest.mark.short_cases(196)
@pytest.mark.parametrize("case", WITH_GRADIENTS, ids=by_id)
def test_captured_on_numpy(case):
    if "numpy" in case.skip:
        pytest.skip(case.skip["numpy"])

    check(case, case.example(), "numpy")


def check_elsewhere(case, backend: str) -> None:
    if backend in case.skip or backend not in case.native:
        pytest.skip("no gradient of its own there")

    check(case, case.example(), backend)


@pytest.mark.short_cases(4, "jax")
@pytest.mark.parametrize("backend", OTHERS)
@pytest.mark.parametrize("case", WITH_GRADIENTS[::40], ids=by_id)
def test_captured_tensors_of_other_libraries(case, backend):
    check_elsewhere(case, backend)


@pytest.mark.long
@pytest.mark.parametrize("backend", OTHERS)
@pytest.mark.parametrize("case", WITH_GRADIENTS, ids=by_id)
def test_captured_tensors_of_other_libraries_long(case, backend):
    check_elsewhere(case, backend)
