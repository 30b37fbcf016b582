"""stop_gradient_scope: every library, eager and compiled, nested, in threads, with errors, in generators."""

from __future__ import annotations

import asyncio
import threading

import numpy as np
import pytest
import versions
from flows import MOST_WAYS, WAYS, derivatives

import gradops
from gradops import Variable, autodiff, backends, ops, stop_gradient_scope

X = np.array([0.5, -1.5, 2.0])
ALL = pytest.mark.parametrize("way", WAYS, ids="-".join)
MOST = pytest.mark.parametrize("way", MOST_WAYS, ids="-".join)


def check(way, f, *expected):
    if way == ("torch", "compiled"):
        versions.needs("torch", "2.9", "its compiler fails at scopes")
    found = derivatives(way, f, X, len(expected))
    for order, (got, want) in enumerate(zip(found, expected), 1):
        np.testing.assert_allclose(got, np.broadcast_to(want, X.shape), rtol=1e-9, atol=1e-12, err_msg=f"order {order}")


@ALL
def test_results_computed_inside_are_constants(way):
    def f(x):
        with stop_gradient_scope():
            h = ops.exp(x) * x
        return h * x

    check(way, f, np.exp(X) * X, 0 * X)


@ALL
def test_as_decorator(way):
    @stop_gradient_scope
    def with_none(x):
        return ops.exp(x)

    @stop_gradient_scope()
    def with_some(x):
        return {"e": [ops.exp(x)]}

    check(way, lambda x: with_none(x) * with_some(x)["e"][0] * x, np.exp(2 * X), 0 * X)


@MOST
def test_nested_and_after_it(way):
    def f(x):
        with stop_gradient_scope():
            a = ops.sin(x)
            with stop_gradient_scope():
                b = a * x
            c = b + x
        return (a + b + c) * x + ops.square(x)

    check(way, f, np.sin(X) * (1 + 2 * X) + X + 2 * X, 2 + 0 * X)


@MOST
def test_a_custom_gradient_inside_and_outside(way):
    own = gradops.custom_gradient(lambda x: (x * 2.0, lambda upstream: upstream * 7.0))

    def f(x):
        with stop_gradient_scope():
            h = own(x)
        return h * own(x)

    check(way, f, 14 * X, 0 * X)


@pytest.mark.parametrize("way", [w for w in WAYS if w[0] == "jax" and w[1] != "variable"], ids="-".join)
def test_every_jax_numpy_function(way):
    import jax
    import jax.numpy as jnp

    def inside(x):
        parts = [
            jnp.sin(x) * 2,
            jax.nn.relu(x),
            jax.jit(jnp.cos)(x),
            jnp.linalg.norm(x),
            jax.lax.scan(lambda c, u: (c + u * x[0], u), x[0], x)[0],
            jax.lax.while_loop(lambda v: v < 10, lambda v: v * 2 + 1, jnp.abs(x[0])),
            jax.grad(lambda q: (q**3 * x).sum())(x),
            jax.vmap(lambda q: q * x[1])(x),
            jax.nn.logsumexp(x),
            jax.lax.cond(x[0] > 0, lambda q: q * 2, lambda q: q, x),
            jnp.concatenate([x[1:], x[:1]]).at[0].set(x[2]),
        ]
        return sum(parts)

    def f(x):
        with stop_gradient_scope():
            h = inside(x)
        return h * x

    check(way, f, np.asarray(inside(jnp.asarray(X))), 0 * X)


@pytest.mark.parametrize("transform", ["jacfwd", "hessian", "vmap", "checkpoint"])
def test_under_jax_transforms(transform):
    import jax
    import jax.numpy as jnp

    x = jnp.asarray(X)

    def f(x):
        with stop_gradient_scope():
            h = jnp.exp(x)
        return (h * x).sum()

    if transform == "vmap":
        found, wanted = jax.vmap(jax.grad(f))(jnp.stack([x, x]))[1], np.exp(X)
    elif transform == "hessian":
        found, wanted = jax.hessian(f)(x), np.zeros((3, 3))
    else:
        found, wanted = (jax.jacfwd(f) if transform == "jacfwd" else jax.grad(jax.checkpoint(f)))(x), np.exp(X)
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_unsupported_jax_version_allows_decorators_only(monkeypatch):
    import jax
    import jax.numpy as jnp

    from gradops.backends import lookup
    from gradops.backends.jax import _private, traces
    from gradops.errors import BackendError

    assert traces.supported  # the installed version is supported
    monkeypatch.setitem(_private.private.lacking, _private.SCOPES, ["jax._src.core.gone"])
    monkeypatch.setattr(traces, "supported", False)
    monkeypatch.setattr(traces, "_older", False)
    monkeypatch.setattr(lookup("jax").derivatives, "cuts_results", True)

    def with_statement(x):
        with stop_gradient_scope():
            return jnp.exp(x)

    with pytest.raises(BackendError, match="does not work with JAX .*, which lacks jax._src.core.gone"):
        jax.grad(with_statement)(1.0)
    assert float(jax.grad(lambda x: stop_gradient_scope(jnp.exp)(x) * x)(1.0)) == pytest.approx(np.e)


@pytest.mark.parametrize("way", [w for w in WAYS if w[0] == "tensorflow" and w[1] != "variable"], ids="-".join)
def test_every_tensorflow_operation(way):
    import tensorflow as tf

    v = tf.Variable(3.0, dtype=tf.float64)
    called = tf.function(lambda x: tf.sin(x) * v)

    def inside(x):
        total = called(x) + tf.cond(x[0] > 0, lambda: x * 2, lambda: x) + v
        return total + tf.while_loop(lambda i, s: i < 3, lambda i, s: (i + 1, s * x), (0, x))[1]

    def f(x):
        with stop_gradient_scope():
            h = inside(x)
        return h * x

    check(way, f, inside(tf.constant(X)).numpy(), 0 * X)


def test_every_active_tape_and_accumulator():
    import tensorflow as tf

    x, v = tf.constant(2.0), tf.Variable(3.0)
    with (
        tf.GradientTape() as a,
        tf.GradientTape(persistent=True) as b,
        tf.autodiff.ForwardAccumulator(x, tf.ones(())) as c,
    ):
        a.watch(x), b.watch(x)
        with stop_gradient_scope():
            h = x * x * v
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = x**3
            slope = inner.gradient(y, x)
        z = (h + slope) * x
    assert float(slope) == 12.0
    assert [g if g is None else float(g) for g in a.gradient(z, [x, v])] == [24.0, None]
    assert float(b.gradient(z, x)) == 24.0
    assert float(c.jvp(z)) == 24.0


def test_functions_traced_inside_the_scope_keep_their_gradients():
    """A tf.function that computes gradients itself, first traced inside the scope, still computes them outside."""
    import tensorflow as tf

    @tf.function
    def f(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x * x
        return y, tape.gradient(y, x)

    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        with stop_gradient_scope():
            first = f(x)
        second = f(x)[0]
    assert [float(part) for part in first] == [9.0, 6.0]
    assert float(tape.gradient(second, x)) == 6.0


@pytest.mark.long
def test_tapes_opened_before_the_first_use_of_gradops(tf):
    """Runs in a separate process, because the observer is installed already in this one."""
    import subprocess
    import sys

    program = """
import tensorflow as tf
x = tf.constant(2.0)
with tf.GradientTape() as tape:
    tape.watch(x)
    import gradops
    with gradops.stop_gradient_scope():
        y = x * x
    z = y * x
assert float(tape.gradient(z, x)) == 4.0
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=300)


def test_torch_forward_mode():
    import torch

    def f(x):
        with stop_gradient_scope():
            h = x * x
        return h * x

    x = torch.tensor(3.0)
    assert float(torch.func.jvp(f, (x,), (torch.ones(()),))[1]) == 9.0
    assert float(torch.func.grad(f)(x)) == 9.0
    assert float(torch.func.vmap(torch.func.grad(f))(x[None])[0]) == 9.0


def test_derivatives_taken_inside_are_constants_outside():
    import torch

    w = Variable(np.array(3.0), requires_grad=True)
    v = torch.tensor(3.0, requires_grad=True)
    with stop_gradient_scope():
        g = gradops.grad(lambda x: x * x * w)(w)
        h = gradops.grad(lambda x: x * x * v)(v)
    assert (g.item(), g.requires_grad) == (18.0, False)
    assert (h.item(), h.requires_grad) == (18.0, False)
    y = w * w
    with stop_gradient_scope():
        assert not gradops.gradient(y, w).requires_grad


def recording():
    import torch

    return autodiff.is_grad_enabled(), torch.is_grad_enabled(), (Variable(X, requires_grad=True) * 2).requires_grad


def test_errors_restore_all_state():
    with pytest.raises(ZeroDivisionError), stop_gradient_scope(), stop_gradient_scope():
        assert recording() == (False, False, False)
        raise ZeroDivisionError
    assert recording() == (True, True, True)


def test_scope_can_be_reentered():
    scope = stop_gradient_scope()
    for _ in range(2):
        with scope:
            with scope:
                assert recording() == (False, False, False)
            assert recording() == (False, False, False)
        assert recording() == (True, True, True)


def test_threads():
    inside, done, seen = threading.Event(), threading.Event(), {}

    def other():
        inside.wait(10)
        seen["other"] = recording()
        with stop_gradient_scope():
            seen["in other"] = recording()
        done.set()

    thread = threading.Thread(target=other)
    thread.start()
    with stop_gradient_scope():
        inside.set()
        done.wait(10)
        assert recording() == (False, False, False)
    thread.join()
    assert seen == {"other": (True, True, True), "in other": (False, False, False)}
    assert recording() == (True, True, True)


def test_generators():
    @stop_gradient_scope
    def decorated():
        yield recording()
        yield recording()

    found = []
    for state in decorated():
        found.append((state, recording()))
    assert found == [((False,) * 3, (True,) * 3)] * 2

    def held():
        with stop_gradient_scope():
            yield

    first, second = held(), held()
    next(first), next(second)
    first.close()  # closes the outer one first
    assert recording() == (False, False, False)
    second.close()
    assert recording() == (True, True, True)


def test_coroutines():
    @stop_gradient_scope
    async def inside():
        before = recording()
        await asyncio.sleep(0.01)
        return before, recording()

    async def outside():
        await asyncio.sleep(0.005)
        return recording()

    async def both():
        return await asyncio.gather(inside(), outside())

    assert asyncio.run(both()) == [((False,) * 3, (False,) * 3), (True,) * 3]


@pytest.mark.parametrize("backend", ["numpy", "variable", "torch", "jax", "tensorflow"])
def test_inputs_returned_unchanged_in_a_scope_are_detached(backend):
    """Without recording, custom and scaled gradients return their input; inside a scope they return a constant."""

    def f(x):
        with gradops.stop_gradient_scope():
            scaled = gradops.scaled_gradient(x, 3.0)
            own = gradops.custom_gradient(lambda v: (v, lambda upstream: upstream * 5.0))(x)
        return ops.sum(scaled * x) + ops.sum(own)

    if backend == "variable":
        x = gradops.Variable(np.array([1.0, 2.0]), requires_grad=True)
        f(x).backward()
        got = x.grad.data
    else:
        got = gradops.grad(f)(backends.lookup(backend).convert(np.array([1.0, 2.0])))
    np.testing.assert_allclose(ops.convert_to_numpy(got), [1, 2])
