"""SciPy solvers in compiled functions, with unknown values: results and derivatives match uncompiled ones."""

import numpy as np
import pytest
from parity import BACKENDS, tensors

import gradops
from gradops import ops
from gradops.scipy import integrate, optimize

VECTOR, NUMBER = np.array([1.0, 2.0]), np.array(2.0)


def cubic(x, a):
    return x**3 + x - a


SOLVERS = {
    "minimize": (
        lambda a: optimize.minimize(lambda x, a: ops.sum((x - a) ** 2 + x**4), np.zeros(2), args=(a,)).x,
        VECTOR,
    ),
    "root": (lambda a: optimize.root(cubic, np.ones(2), args=(a,)).x, VECTOR),
    "brentq": (lambda a: optimize.brentq(cubic, 0.0, 5.0, args=(a,)), NUMBER),
    "closed over": (lambda a: optimize.bisect(lambda x: cubic(x, a), 0.0, 5.0), NUMBER),
    "root_scalar": (lambda a: optimize.root_scalar(cubic, args=(a,), bracket=(0.0, 5.0)).root, NUMBER),
    "quad": (lambda a: integrate.quad(lambda x, a: ops.exp(-x * a), 0.0, np.inf, args=(a,))[0], NUMBER),
}


def compiled(function, backend):
    if backend == "jax":
        return pytest.importorskip("jax").jit(function)
    if backend == "tensorflow":
        return pytest.importorskip("tensorflow").function(function)
    return gradops.jit(function)


SLOW = [(name, "torch") for name in ("minimize", "root", "closed over", "root_scalar")]
"""Solvers whose steps PyTorch traces one by one; the short suite runs one of them."""
CASES = [
    pytest.param(name, backend, marks=[pytest.mark.long] if (name, backend) in SLOW else [])
    for name in SOLVERS
    for backend in BACKENDS
]


@pytest.mark.short_cases(2, "jax", "tensorflow")
@pytest.mark.short_cases(0, "torch")
@pytest.mark.parametrize("name, backend", CASES)
def test_solvers_run_in_programs(name, backend):
    function, at = SOLVERS[name]
    slope = gradops.grad(lambda a: ops.sum(function(a)))
    value, slopes = compiled(function, backend), compiled(slope, backend)
    for x in (at, 1.2 * at):
        np.testing.assert_allclose(np.asarray(value(tensors(x, backend))), function(x), 1e-6)
        np.testing.assert_allclose(np.asarray(slopes(tensors(x, backend))), slope(x), 1e-6)


OUTSIDE = SOLVERS | {
    "newton": (lambda a: optimize.newton(cubic, np.ones(2), args=(a,)), VECTOR),
    "fixed_point": (lambda a: optimize.fixed_point(lambda x, a: ops.sqrt(a + x), np.ones(2), args=(a,)), VECTOR),
    "least_squares": (
        lambda a: (
            optimize.least_squares(lambda x, a: ops.stack([x[0] - a, x[0] * x[1] - 1, x[1] - 1]), VECTOR, args=(a,)).x
        ),
        NUMBER,
    ),
}


@pytest.mark.short_cases(1)
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            name, marks=[] if name in ("minimize", "root_scalar", "least_squares", "quad") else pytest.mark.long
        )
        for name in OUTSIDE
    ],
)
def test_solvers_run_outside_a_torch_compile_graph(name, torch):
    function, at = OUTSIDE[name]
    torch._dynamo.reset()
    graph = torch.compile(lambda a: ops.sum(3 * function(2 * a)), backend="eager")
    slope = gradops.grad(lambda a: ops.sum(3 * function(2 * a)))
    for x in (at, 1.2 * at):
        given = torch.tensor(x, requires_grad=True)
        value = graph(given)
        value.backward()
        np.testing.assert_allclose(value.item(), np.sum(3 * function(2 * x)), 1e-6)
        np.testing.assert_allclose(given.grad, slope(x), 1e-6)
    with pytest.raises(torch._dynamo.exc.Unsupported):
        torch.compile(lambda a: function(2 * a), backend="eager", fullgraph=True)(torch.tensor(at))


def test_value_dependent_solvers_raise_in_programs():
    function = gradops.jit(lambda a: optimize.newton(cubic, 1.0, args=(a,)))
    with pytest.raises(gradops.errors.JitError, match=r"`scipy.optimize.newton` looks at values"):
        function(NUMBER)
