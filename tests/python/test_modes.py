"""Gradient modes: scopes, decorators, threads and tasks."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading

import numpy as np
import pytest

import gradops
from gradops import Parameter, Variable, functional
from gradops.autodiff import enable_grad, inference_mode, is_grad_enabled, no_grad, set_grad_enabled

torch = pytest.importorskip("torch")


def leaf():
    return Variable(np.arange(3.0), requires_grad=True)


def states():
    """Return the current mode, after checking that the tape and torch agree."""
    native = (torch.ones(1, requires_grad=True) * 2).requires_grad
    assert is_grad_enabled() == native == (leaf() * 2).requires_grad
    return native


@pytest.mark.parametrize(
    ("mode", "wanted"),
    [
        (no_grad, False),
        (enable_grad, True),
        (inference_mode, False),
        (lambda: inference_mode(False), True),
        (lambda: set_grad_enabled(False), False),
        (lambda: set_grad_enabled(True), True),
    ],
)
def test_scope(mode, wanted):
    for outside in (True, False):
        with set_grad_enabled(outside):
            with mode():
                assert states() is wanted
            assert states() is outside
            with pytest.raises(KeyError), mode():
                raise KeyError
            assert states() is outside
    assert states()


@pytest.mark.parametrize("make", [lambda: no_grad, lambda: no_grad(), lambda: inference_mode, lambda: inference_mode()])
def test_decorator_with_and_without_parentheses(make):
    @make()
    def function(x, *, y=1):
        """Its docstring."""
        return states(), x, y

    assert function(3, y=4) == (False, 3, 4)
    assert function.__name__ == "function" and function.__doc__ == "Its docstring."
    assert states()

    @make()
    def failing():
        raise KeyError

    with pytest.raises(KeyError):
        failing()
    assert states()


def test_set_grad_enabled_as_statement_and_decorator():
    set_grad_enabled(False)
    assert not states()
    set_grad_enabled(True)
    assert states()

    @set_grad_enabled(False)
    def function():
        return states()

    assert states()
    assert function() is False
    assert states()


def test_recursive_decorated_function():
    @no_grad()
    def down(n):
        assert not states()
        return 0 if n == 0 else 1 + down(n - 1)

    assert down(5) == 5
    assert states()


def test_generator_applies_the_mode_only_while_it_runs():
    seen = []

    @no_grad
    def generator():
        try:
            got = yield states()
            seen.append((got, states()))
            try:
                yield "second"
            except KeyError:
                seen.append(("thrown", states()))
            yield "third"
        finally:
            seen.append(("closed", states()))
        return "never"

    g = generator()
    assert next(g) is False
    assert states()
    assert g.send("hello") == "second"
    assert states()
    assert g.throw(KeyError()) == "third"
    g.close()
    assert seen == [("hello", False), ("thrown", False), ("closed", False)]
    assert states()

    @enable_grad
    def returning():
        yield 1
        return states()

    def outer():
        return (yield from returning())

    with no_grad():
        g = outer()
        next(g)
        with pytest.raises(StopIteration) as stop:
            next(g)
    assert stop.value.value is True


def test_threads_are_independent():
    barrier, seen = threading.Barrier(2), {}
    shared = no_grad()

    def work(name, inside):
        if inside:
            with shared:
                barrier.wait()
                seen[name] = states()
                barrier.wait()
        else:
            barrier.wait()
            seen[name] = states()
            barrier.wait()

    with no_grad():
        threads = [threading.Thread(target=work, args=a) for a in (("a", True), ("b", False))]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    assert seen == {"a": False, "b": True}


def test_tasks_are_independent():
    seen = []
    shared = no_grad()

    @no_grad
    async def quiet(n):
        await asyncio.sleep(0)
        for _ in range(3):
            seen.append(("quiet", states()))
            await asyncio.sleep(0)
        return n

    async def loud(n):
        for _ in range(4):
            seen.append(("loud", states()))
            await asyncio.sleep(0)
        return n

    async def scoped(first, second):
        with shared:  # torch's mode belongs to the thread, so check the tape alone
            await asyncio.sleep(first)
            assert not is_grad_enabled()
        assert is_grad_enabled()
        await asyncio.sleep(second)

    async def main():
        assert await asyncio.gather(quiet(1), loud(2), quiet(3)) == [1, 2, 3]

    asyncio.run(main())
    assert set(seen) == {("quiet", False), ("loud", True)}

    async def interleaved():
        await asyncio.gather(scoped(0.002, 0), scoped(0.001, 0.002), scoped(0.003, 0))

    asyncio.run(interleaved())
    torch.set_grad_enabled(True)


def test_async_generator():
    @no_grad
    async def numbers():
        yield states()
        await asyncio.sleep(0)
        yield states()

    async def main():
        found = []
        async for value in numbers():
            found.append(value)
            assert states()
        return found

    assert asyncio.run(main()) == [False, False]


def test_factory_calls_are_not_affected():
    with no_grad():
        assert Parameter("xyz").requires_grad
        assert Parameter(1.0).requires_grad
        assert Variable(np.ones(2), requires_grad=True).requires_grad
        v = Variable(np.ones(2))
        gradops.set_requires_gradient(v)
        assert v.requires_grad and v.is_leaf


def test_results_inside_are_leaves_without_gradient():
    v = leaf()
    with no_grad():
        y = v * 2
    assert not y.requires_grad and y.grad_fn is None and y.is_leaf
    with no_grad(), enable_grad():
        assert (v * 2).grad_fn is not None


def test_backward_inside_no_grad():
    v = leaf()
    y = (v * v).sum()
    with no_grad():
        y.backward()
    np.testing.assert_allclose(v.grad.data, 2 * v.data)
    assert not v.grad.requires_grad


def test_modes_do_not_affect_tensorflow_and_jax():
    """They record regardless of the mode; `stop_gradient` stops gradients there."""
    tf, jax = pytest.importorskip("tensorflow"), pytest.importorskip("jax")

    def f(x, mode):
        with mode:
            return gradops.ops.square(x)

    for mode, wanted in ((no_grad(), 6.0), (gradops.stop_gradient_scope(), 0.0)):
        x = tf.Variable(3.0)
        with tf.GradientTape() as tape:
            y = f(x, mode)
        assert float(tf.convert_to_tensor(tape.gradient(y, x) or 0.0)) == wanted
    assert float(jax.grad(lambda x: f(x, no_grad()))(3.0)) == 6.0
    assert float(jax.grad(lambda x: f(x, gradops.stop_gradient_scope()))(3.0)) == 0.0


# Derivatives in forward mode, and in inference mode


def cubed(scope, inner=lambda x: x * x):
    """Return a function ``x * inner(x)``, whose second factor is made constant by a scope."""

    def f(x):
        with scope():
            c = inner(x)
        return x * c

    return f


CONSTANT = {
    "no_grad": no_grad,
    "set_grad_enabled": lambda: set_grad_enabled(False),
    "stop_gradient_scope": gradops.stop_gradient_scope,
    "torch.no_grad": torch.no_grad,
    "torch.set_grad_enabled": lambda: torch.set_grad_enabled(False),
}


def tangent(f, x):
    """Return the tangent of ``f`` by PyTorch's own forward mode."""
    with torch.autograd.forward_ad.dual_level():
        found = torch.autograd.forward_ad.unpack_dual(f(torch.autograd.forward_ad.make_dual(x, torch.ones_like(x))))
        return torch.zeros_like(x) if found.tangent is None else found.tangent


def vmapped(derivative):
    return lambda f, x: gradops.vmap(lambda y: derivative(f, y))(x[None])[0]


FORWARD = {
    "jacobian": lambda f, x: functional.jacobian(f, x, strategy="forward-mode"),
    "jvp": lambda f, x: gradops.jvp(f, (x,), (x * 0 + 1,))[1],
    "linearize": lambda f, x: gradops.linearize(f, x)[1](x * 0 + 1),
}
FORWARD |= {f"{name} in vmap": vmapped(FORWARD[name]) for name in ("jacobian", "jvp")}
SECOND = {
    "hvp": lambda f, x: gradops.hvp(f, (x,), (x * 0 + 1,))[1],
    "hessian": lambda f, x: functional.hessian(f, x, outer_jacobian_strategy="forward-mode"),
    "jacobian of grad": lambda f, x: FORWARD["jacobian"](gradops.grad(f), x),
    "jvp of jvp in vmap": vmapped(lambda f, x: FORWARD["jvp"](lambda y: FORWARD["jvp"](f, y), x)),
}


@pytest.mark.parametrize("scope", CONSTANT)
@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_forward_mode_respects_the_modes(library, scope):
    if library == "numpy" and scope.startswith("torch"):
        pytest.skip("PyTorch's modes are those of its tensors")
    x = np.array(2.0) if library == "numpy" else torch.tensor(2.0, dtype=torch.float64)
    f = cubed(CONSTANT[scope])
    for outside in (True, False):
        with set_grad_enabled(outside):
            for name, derivative in FORWARD.items():
                assert float(derivative(f, x)) == 4.0, name
            for name, derivative in SECOND.items():
                assert float(derivative(f, x)) == 0.0, name
    assert states()


@pytest.mark.parametrize("scope", [no_grad, lambda: set_grad_enabled(False), inference_mode])
def test_modes_in_torch_forward_mode(scope):
    x = torch.tensor(2.0, dtype=torch.float64)
    assert float(tangent(cubed(scope), x)) == 4.0
    assert float(torch.func.jvp(cubed(scope), (x,), (torch.ones_like(x),))[1]) == 4.0
    if scope is not inference_mode:  # inference mode records nothing
        again = cubed(scope, enable_grad(lambda x: x * x))
        assert float(torch.func.jvp(again, (x,), (torch.ones_like(x),))[1]) == 12.0
    assert float(tangent(lambda x: x * x, x)) == 4.0 and states()


INNER = {
    "grad": lambda x: gradops.grad(lambda y: y**3)(x),
    "torch.func.grad": lambda x: torch.func.grad(lambda y: y**3)(x),
    "jacobian": lambda x: functional.jacobian(lambda y: y**3, x),
    "grad of a closure": lambda x: gradops.grad(lambda y: 3 * x**2 * y)(x.detach()),
    "custom_gradient": gradops.custom_gradient(lambda x: (3 * x**2, lambda upstream: upstream * 6 * x)),
    "scaled_gradient": lambda x: 3 * gradops.scaled_gradient(x, 2.0) ** 2,
    "checkpoint": gradops.checkpoint(lambda x: 3 * x**2),
}


@pytest.mark.parametrize("inner", INNER)
@pytest.mark.parametrize("scope", [no_grad, torch.no_grad])
def test_derivatives_taken_under_a_mode_are_constant_in_forward_mode(scope, inner):
    x = torch.tensor(2.0, dtype=torch.float64)
    for name in ("jacobian", "jacobian in vmap"):
        assert float(FORWARD[name](cubed(scope, INNER[inner]), x)) == 12.0, name
    if scope is no_grad:
        assert float(tangent(cubed(scope, INNER[inner]), x)) == 12.0


@pytest.mark.parametrize("scope", [no_grad, torch.no_grad, gradops.stop_gradient_scope])
def test_rule_that_reads_a_constant_is_differentiated_forward(scope):
    @gradops.custom_gradient
    def f(x):
        def rule(upstream):
            with scope():
                c = 3 * x**2
            return upstream * x * c

        return x * x, rule

    x = torch.tensor(2.0, dtype=torch.float64)
    assert float(gradops.hessian(f)(x)) == 12.0
    assert float(SECOND["hessian"](f, x)) == 12.0
    assert float(SECOND["jacobian of grad"](f, x)) == 12.0


def test_nested_statements_and_modes_in_forward_mode():
    def statements(x):
        torch.set_grad_enabled(False)
        c = x * x
        torch.set_grad_enabled(True)
        return x * c

    def left(x):
        c = x * x
        torch.set_grad_enabled(False)
        return x * c

    def again(x):
        with torch.no_grad():
            with torch.enable_grad():
                c = x * x
            d = x * 1
        return x * c * d

    class Recording(torch.autograd.Function):
        @staticmethod
        def forward(x):
            with torch.enable_grad():
                return (x * 2).detach()

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def backward(ctx, upstream):
            return 2 * upstream

        @staticmethod
        def jvp(ctx, t):
            return 2 * t

    def twice(x):
        y = Recording.apply(x)
        with torch.no_grad():
            c = x * x
        return Recording.apply(y * c)

    x = torch.tensor(2.0, dtype=torch.float64)
    for f, wanted in ((statements, 4.0), (left, 0.0), (again, 24.0), (twice, 16.0)):
        assert float(functional.jacobian(f, x)) == wanted
        assert float(FORWARD["jacobian"](f, x)) == wanted
        assert states()


@pytest.mark.parametrize("mode", [inference_mode, torch.inference_mode])
@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_derivatives_in_inference_mode(library, mode):
    """A derivative taken inside inference mode must record its own operations."""

    def tensor(value):
        return np.array(value) if library == "numpy" else torch.tensor(value, dtype=torch.float64)

    def f(x):
        return x**3

    outside = tensor(2.0)
    with mode():
        for x in (outside, tensor(2.0)):
            one = x * 0 + 1
            found = {
                "grad": gradops.grad(f)(x),
                "grad of grad": gradops.grad(gradops.grad(f))(x),
                "jacobian": functional.jacobian(f, x),
                "forward": FORWARD["jacobian"](f, x),
                "vjp": functional.vjp(f, x, one)[1],
                "pullback": gradops.vjp(f, x)[1](one)[0],
                "jvp": functional.jvp(f, x, one)[1],
                "pushforward": gradops.linearize(f, x)[1](one),
                "hessian": functional.hessian(f, x),
                "hvp": functional.hvp(f, x, one)[1],
                "vhp": functional.vhp(f, x, one)[1],
                "jet": functional.jet(f, (x,), ([one],))[1][0],
                "vmap": gradops.vmap(gradops.grad(f))(x[None])[0],
            }
            assert {name: float(g) for name, g in found.items()} == dict.fromkeys(found, 12.0)
            assert not is_grad_enabled() or mode is torch.inference_mode


def test_gradops_can_be_imported_in_inference_mode():
    code = "import numpy as np, torch; t = torch.inference_mode(); t.__enter__(); import gradops; " + (
        "print(float(gradops.grad(lambda x: x**3)(torch.tensor(2.0))))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "12.0"
