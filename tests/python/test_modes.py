"""The modes: scopes, decorators, threads and tasks."""

from __future__ import annotations

import asyncio
import threading

import numpy as np
import pytest

import gradops
from gradops import Parameter, Variable
from gradops.autodiff import enable_grad, inference_mode, is_grad_enabled, no_grad, set_grad_enabled

torch = pytest.importorskip("torch")


def leaf():
    return Variable(np.arange(3.0), requires_grad=True)


def states():
    """The modes of the tape and of torch just now."""
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


def test_generator_holds_the_mode_only_while_it_runs():
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
        with shared:  # of torch only the thread knows the mode, so ask the tape alone
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


def test_no_mode_of_tensorflows_or_jaxs():
    """They record what they record: `stop_gradient` stops it."""
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
