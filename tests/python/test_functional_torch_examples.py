"""The documented examples of torch.autograd.functional: structure and values, on every backend.

PyTorch's documented functions are written with gradops ops; the oracle is torch.autograd.functional.
"""

from __future__ import annotations

import numpy as np
import pytest
from parity import BACKENDS, numpy, tensors

from gradops import Variable, config, functional, ops

torch = pytest.importorskip("torch")
RNG = np.random.default_rng(0)
SQUARE, PAIR = RNG.random((2, 2)), (RNG.random(2), RNG.random(2))
LARGE, VECTOR, UPSTREAM = RNG.random((4, 4)), RNG.random((4, 4)), np.ones(4)
TANGENTS = (np.ones(2), np.zeros(2))


@pytest.fixture(params=[*BACKENDS, "variable"])
def backend(request):
    name = "numpy" if request.param == "variable" else request.param
    with config.backend_scope(name):
        yield request.param


def on(backend, value):
    if isinstance(value, tuple):
        return tuple(on(backend, v) for v in value)
    return Variable(value.copy()) if backend == "variable" else tensors(value, backend)


def exp_reducer(x):
    return ops.sum(ops.exp(x), axis=1)


def exp_adder(x, y):
    return 2 * ops.exp(x) + 3 * y


def adder(x, y):
    return 2 * x + 3 * y


def pow_reducer(x):
    return ops.sum(ops.power(x, 3))


def pow_adder_reducer(x, y):
    return ops.sum(2 * ops.power(x, 2) + 3 * ops.power(y, 2))


def same_form(result, wanted):
    """Check for equal values in equally nested tuples."""
    if isinstance(wanted, tuple):
        assert isinstance(result, tuple) and len(result) == len(wanted)
        for r, w in zip(result, wanted):
            same_form(r, w)
    else:
        assert not isinstance(result, tuple)
        np.testing.assert_allclose(numpy(result), wanted.detach().numpy(), rtol=1e-12)


def check(name, backend, f, inputs, *vectors, **keywords):
    result = getattr(functional, name)(f, on(backend, inputs), *[on(backend, v) for v in vectors], **keywords)
    native = {k: v for k, v in keywords.items() if k not in ("vectorize", "strategy", "outer_jacobian_strategy")}
    wanted = getattr(torch.autograd.functional, name)(
        f, on("torch", inputs), *[on("torch", v) for v in vectors], **native
    )
    same_form(result, wanted)
    return result


@pytest.mark.short_cases(3, "jax", "tensorflow")
@pytest.mark.parametrize("f, inputs", [(exp_reducer, SQUARE), (exp_adder, PAIR)])
@pytest.mark.parametrize(
    "how",
    [
        {},
        {"vectorize": True},
        {"strategy": "reverse-mode"},
        {"vectorize": True, "strategy": "forward-mode"},
    ],
    ids=str,
)
def test_jacobian(backend, f, inputs, how):
    check("jacobian", backend, f, inputs, **how)


@pytest.mark.short_cases(2, "jax", "tensorflow")
@pytest.mark.parametrize("f, inputs", [(pow_reducer, SQUARE), (pow_adder_reducer, PAIR)])
@pytest.mark.parametrize(
    "how",
    [{}, {"vectorize": True}, {"vectorize": True, "outer_jacobian_strategy": "forward-mode"}],
    ids=str,
)
def test_hessian(backend, f, inputs, how):
    check("hessian", backend, f, inputs, **how)


def test_vjp(backend):
    check("vjp", backend, exp_reducer, LARGE, UPSTREAM)
    check("vjp", backend, adder, PAIR, np.ones(2))
    check("vjp", backend, pow_reducer, LARGE)  # a scalar needs no v


def test_jvp(backend):
    check("jvp", backend, exp_reducer, LARGE, np.ones((4, 4)))
    check("jvp", backend, adder, PAIR, (np.ones(2), np.ones(2)))


@pytest.mark.parametrize("name", ["vhp", "hvp"])
def test_products_with_the_hessian(backend, name):
    check(name, backend, pow_reducer, SQUARE, np.ones((2, 2)))
    check(name, backend, pow_adder_reducer, PAIR, TANGENTS)


@pytest.mark.parametrize("backend", ["torch", "variable"])
def test_create_graph(backend):
    """The documentation shows a ``grad_fn``: results with ``create_graph=True`` can be differentiated."""
    x = torch.tensor(SQUARE, requires_grad=True) if backend == "torch" else Variable(SQUARE, requires_grad=True)
    total = ops.sum(functional.jacobian(exp_reducer, x, create_graph=True))
    assert total.requires_grad and total.grad_fn is not None
    total.backward()
    np.testing.assert_allclose(numpy(x.grad), np.exp(SQUARE))
    for name, arguments in [("hessian", ()), ("vhp", (x,)), ("hvp", (x,))]:
        result = getattr(functional, name)(pow_reducer, x, *arguments, create_graph=True)
        assert (result[1] if isinstance(result, tuple) else result).requires_grad, name
    for name, v in [("vjp", np.ones(2)), ("jvp", np.ones((2, 2)))]:
        value, product = getattr(functional, name)(exp_reducer, x, on(backend, v), create_graph=True)
        assert value.requires_grad and product.requires_grad, name


@pytest.mark.parametrize("name", ["jacobian", "hessian", "vjp", "jvp", "hvp", "vhp"])
def test_strict(backend, name):
    inputs = on(backend, PAIR)
    f = {
        "jacobian": lambda x, y: ops.exp(x),
        "vjp": lambda x, y: ops.exp(x),
        "jvp": lambda x, y: ops.ones((2,)),
    }.get(name, lambda x, y: ops.sum(x * x) + ops.sum(y))
    vectors = {"vjp": (on(backend, np.ones(2)),), "jacobian": (), "hessian": ()}.get(name, (on(backend, TANGENTS),))
    with pytest.raises(RuntimeError, match="independent|does not depend|does not require gradients"):
        getattr(functional, name)(f, inputs, *vectors, strict=True)
    result = getattr(functional, name)(f, inputs, *vectors)
    assert result is not None
