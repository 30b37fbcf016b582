"""Custom gradient rules under every transformation of each library.

Each flow below (a custom, scaled or stopped gradient, a checkpoint) is vectorised, differentiated, compiled and
exported by each library. Unsupported combinations must raise an error.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import threading

import numpy as np
import pytest
import versions
from parity import BACKENDS, numpy, tensors
from versions import ONE_GRAPH

import gradops
from gradops import backends, functional, ops

X = np.array([0.3, -0.7, 1.2])
V = np.array([1.0, -2.0, 0.5])


@gradops.custom_gradient
def own(x):
    e = ops.exp(x)
    return ops.sin(x), lambda upstream: upstream * e * 3.0


@gradops.custom_gradient
def of_its_value(x):
    y = ops.exp(x)
    return y, lambda upstream: upstream * y * 2.0


@gradops.custom_gradient
def several(x):
    return (ops.sin(x), ops.cos(x)), lambda a, b: a * 2.0 + b * x


@gradops.custom_gradient
def of_two(x, y):
    return x * y, lambda upstream: (upstream * 5.0, upstream * x)


def scope(x):
    with gradops.stop_gradient_scope():
        h = ops.exp(x) * x
    return h * x


FLOWS = {
    "custom": (own, 3 * np.exp(X), 3 * np.exp(X)),
    "custom of its value": (of_its_value, 2 * np.exp(X), 2 * np.exp(X)),
    "custom of several": (lambda x: sum(several(x)), 2 + X, 1 + 0 * X),
    "custom of two": (lambda x: of_two(x, x * 2.0), 5 + 2 * X, 2 + 0 * X),
    "custom in custom": (
        lambda x: own(own(x)),
        9 * np.exp(np.sin(X) + X),
        9 * np.exp(np.sin(X) + X) * (3 * np.exp(X) + 1),
    ),
    "scaled": (lambda x: gradops.scaled_gradient(ops.sin(x), -2.0), -2 * np.cos(X), 2 * np.sin(X)),
    "reversed": (lambda x: ops.square(gradops.scaled_gradient(x, -1.0)), -2 * X, 2 + 0 * X),
    "stopped": (lambda x: gradops.stop_gradient(ops.exp(x)) * x, np.exp(X), 0 * X),
    "scope": (scope, np.exp(X) * X, 0 * X),
    "checkpoint": (gradops.checkpoint(own), 3 * np.exp(X), 3 * np.exp(X)),
}
"""Elementwise functions with their declared first and second derivative."""
CUSTOM = frozenset(FLOWS) - {"stopped", "scope"}


def table(ways: dict):
    """Parametrise all flows and transformations; in the short suite nested rules and a fifth of the other flows."""
    cells = [
        pytest.param(flow, way, marks=[] if flow == "custom in custom" or (i + j) % 5 == 0 else pytest.mark.long)
        for i, way in enumerate(ways)
        for j, flow in enumerate(FLOWS)
    ]
    return pytest.mark.parametrize("flow, way", cells, ids=lambda x: x)


def check(ways: dict, flow: str, way: str, backend: str):
    """Check the result of a transformation, a derivative identified by its shape and the vector multiplied with it."""
    run, wanted, *refusal = ways[way]
    f, first, second = FLOWS[flow]
    convert = backends.lookup(backend).convert
    expectation = contextlib.nullcontext()
    for flows, error, message in refusal:
        if flow in flows:
            expectation = pytest.raises(error, match=message)
    with expectation:
        got = np.asarray(ops.convert_to_numpy(run(f, convert(X), convert(V))))
        np.testing.assert_allclose(got, wanted(first, second), rtol=1e-9, atol=1e-12)


def once(first, second):
    return first


def twice(first, second):
    return second


def matrix(first, second):
    return np.diag(first)


def second_matrix(first, second):
    return np.diag(second)


def product(first, second):
    return first * V


def second_product(first, second):
    return second * V


# PyTorch --------------------------------------------------------------------------------------------------------------


def _torch_ways() -> dict:
    import torch
    from torch.autograd import forward_ad
    from torch.func import functional_call, grad, hessian, jacfwd, jacrev, jvp, linearize, vjp, vmap  # noqa: F401

    def backward(f, x, v=None):
        x = x.clone().requires_grad_()
        return torch.autograd.grad(f(x).sum(), x)[0]

    def double_backward(f, x, v=None):
        x = x.clone().requires_grad_()
        g = torch.autograd.grad(f(x).sum(), x, create_graph=True)[0]
        return torch.autograd.grad(g.sum(), x)[0] if g.requires_grad else torch.zeros_like(x)

    def dual(f, x, v):
        with forward_ad.dual_level():
            t = forward_ad.unpack_dual(f(forward_ad.make_dual(x, v))).tangent
            return torch.zeros_like(x) if t is None else t + 0.0

    def dual_of_backward(f, x, v):
        with forward_ad.dual_level():
            z = forward_ad.make_dual(x.clone().requires_grad_(), v)
            g = torch.autograd.grad(f(z).sum(), z, create_graph=True)[0]
            t = forward_ad.unpack_dual(g).tangent
            return torch.zeros_like(x) if t is None else t.detach()

    def backward_of_dual(f, x, v):
        z = x.clone().requires_grad_()
        t = dual(f, z, v)
        return torch.autograd.grad(t.sum(), z)[0] if t.requires_grad else torch.zeros_like(x)

    def without_grad(f, x, v):
        with torch.no_grad():
            return dual(f, x, v)

    def total(f):
        return lambda x: f(x).sum()

    def module(f):
        class Module(torch.nn.Module):
            def forward(self, x):
                return f(x)

        return Module()

    def exported(f, x, v):
        return backward(torch.export.export(module(f), (x.clone().requires_grad_(),)).module(), x)

    def exported_values(f, x, v):
        with torch.no_grad():
            program = torch.export.export(module(f), (x,)).module()
        torch.testing.assert_close(program(x), f(x))
        y = program(x.clone().requires_grad_())
        return y.requires_grad

    def compiled(f, x, v=None):
        torch._dynamo.reset()
        return backward(torch.compile(f, fullgraph=ONE_GRAPH, backend="aot_eager"), x)

    lost = (CUSTOM, gradops.errors.GradientError, "torch.export keeps values")
    return {
        "backward": (backward, once),
        "double backward": (double_backward, twice),
        "func.grad": (lambda f, x, v: grad(total(f))(x), once),
        "func.grad of func.grad": (lambda f, x, v: grad(lambda z: grad(total(f))(z).sum())(x), twice),
        "func.vjp": (lambda f, x, v: vjp(f, x)[1](v)[0], product),
        "func.jvp": (lambda f, x, v: jvp(f, (x,), (v,))[1], product),
        "func.jvp of func.jvp": (
            lambda f, x, v: jvp(lambda z: jvp(f, (z,), (0 * v + 1,))[1], (x,), (v,))[1],
            second_product,
        ),
        "func.linearize": (lambda f, x, v: linearize(f, x)[1](v), product),
        "jacrev": (lambda f, x, v: jacrev(f)(x), matrix),
        "jacfwd": (lambda f, x, v: jacfwd(f)(x), matrix),
        "hessian": (lambda f, x, v: hessian(total(f))(x), second_matrix),
        "jacfwd of jacfwd": (lambda f, x, v: jacfwd(jacfwd(total(f)))(x), second_matrix),
        "jacrev of jacfwd": (lambda f, x, v: jacrev(jacfwd(total(f)))(x), second_matrix),
        "jacrev of jacrev": (lambda f, x, v: jacrev(jacrev(total(f)))(x), second_matrix),
        "backward of vmap": (lambda f, x, v: backward(vmap(f), x), once),
        "double backward of vmap": (lambda f, x, v: double_backward(vmap(f), x), twice),
        "func.grad of vmap": (lambda f, x, v: grad(total(vmap(f)))(x), once),
        "func.grad of vmap of vmap": (lambda f, x, v: grad(total(vmap(vmap(f))))(x[None])[0], once),
        "func.grad of vmap of func.grad": (lambda f, x, v: grad(total(vmap(grad(f))))(x), twice),
        "vmap of func.grad": (lambda f, x, v: vmap(grad(f))(x), once),
        "vmap of func.grad of func.grad": (lambda f, x, v: vmap(grad(grad(f)))(x), twice),
        "vmap of func.jvp": (lambda f, x, v: vmap(lambda a, b: jvp(f, (a,), (b,))[1])(x, v), product),
        "func.jvp of vmap": (lambda f, x, v: jvp(vmap(f), (x,), (v,))[1], product),
        "jacfwd of vmap": (lambda f, x, v: jacfwd(vmap(f))(x), matrix),
        "jacrev of vmap": (lambda f, x, v: jacrev(vmap(f))(x), matrix),
        "backward of ops.vectorized_map": (lambda f, x, v: backward(lambda z: ops.vectorized_map(f, z), x), once),
        "gradops.grad of ops.vectorize": (
            lambda f, x, v: gradops.grad(lambda z: ops.sum(ops.vectorize(f)(z)))(x),
            once,
        ),
        "vmap of gradops.grad": (lambda f, x, v: vmap(gradops.grad(f))(x), once),
        "func.jvp of gradops.grad": (lambda f, x, v: jvp(gradops.grad(total(f)), (x,), (v,))[1], second_product),
        "forward_ad": (dual, product),
        "forward_ad without grad": (without_grad, product),
        "forward_ad of vmap": (lambda f, x, v: dual(vmap(f), x, v), product),
        "forward_ad of backward": (dual_of_backward, second_product),
        "forward_ad of gradops.grad": (lambda f, x, v: dual(gradops.grad(total(f)), x, v), second_product),
        "backward of forward_ad": (backward_of_dual, second_product),
        "jacobian, vectorized": (lambda f, x, v: functional.jacobian(f, x, vectorize=True), matrix),
        "jacobian, forward": (
            lambda f, x, v: functional.jacobian(f, x, vectorize=True, strategy="forward-mode"),
            matrix,
        ),
        "jacobian of vmap": (lambda f, x, v: functional.jacobian(vmap(f), x, vectorize=True), matrix),
        "hessian, forward": (
            lambda f, x, v: functional.hessian(total(f), x, outer_jacobian_strategy="forward-mode"),
            second_matrix,
        ),
        "functional.jvp": (lambda f, x, v: functional.jvp(f, x, v)[1], product),
        "functional.hvp": (lambda f, x, v: functional.hvp(total(f), x, v)[1], second_product),
        "gradops.jit, backward": (lambda f, x, v: backward(gradops.jit(f), x), once),
        "gradops.jit, vmap": (lambda f, x, v: backward(vmap(gradops.jit(f)), x), once),
        "gradops.jit, forward_ad": (lambda f, x, v: dual(gradops.jit(f), x, v), product),
        "gradops.jit of grad": (lambda f, x, v: gradops.jit(gradops.grad(total(f)))(x), once),
        "torch.compile": (compiled, once),
        "torch.export": (exported, once, lost),
        "torch.export of values": (exported_values, lambda first, second: False),
    }


TORCH = _torch_ways() if backends.installed("torch") else {}


@table(TORCH)
def test_torch(flow, way):
    if way.startswith("torch.export") and flow != "stopped" or (way, flow) == ("torch.compile", "scope"):
        versions.needs("torch", "2.9", "what it traces line by line has no custom gradients or scopes")
    if way == "torch.export of values" and flow in (
        "stopped",
        "scope",
        "reversed",
        "custom of two",
        "custom in custom",
    ):
        pytest.skip("its graph has a gradient of another part")
    check(TORCH, flow, way, "torch")


def test_rows_of_another_vmap_are_refused():
    """A gradient function must not close over rows of an outer vmap that PyTorch would confuse with the current one."""
    import torch
    from torch.func import grad, jacrev, vmap

    x, y = torch.tensor(X), torch.tensor(V)

    def row(a, b):
        return gradops.custom_gradient(lambda q: (q * b, lambda upstream: upstream * b * 10.0))(a)

    np.testing.assert_allclose(vmap(grad(row))(x, y), 10 * V)
    np.testing.assert_allclose(grad(lambda z: vmap(row)(z, y).sum())(x), 10 * V)
    with pytest.raises(gradops.errors.GradientError, match="a row of a `vmap` that is not an argument"):
        jacrev(lambda z: vmap(row)(z, y))(x)


@pytest.mark.parametrize("closed", ["vmap", "grad", "jvp", "forward_ad"])
def test_differentiated_closures_of_a_custom_gradient_are_refused(closed):
    import torch
    from torch.autograd import forward_ad
    from torch.func import grad, jvp, vmap

    x, w = torch.tensor(X), torch.tensor(2.0, dtype=torch.float64)

    def f(w):
        return gradops.custom_gradient(lambda q: (q * w, lambda upstream: upstream))

    with contextlib.ExitStack() as stack:
        stack.enter_context(pytest.raises(gradops.errors.GradientError, match="is not an argument"))
        if closed == "forward_ad":
            stack.enter_context(forward_ad.dual_level())
        if closed == "vmap":
            vmap(f(w.requires_grad_()))(x)
        elif closed == "grad":
            grad(lambda w: grad(f(w))(x[0]))(w)
        elif closed == "jvp":
            jvp(lambda w: f(w)(x), (w,), (w,))
        else:
            f(forward_ad.make_dual(w, w))(x)


@pytest.mark.parametrize("randomness", ["same", "different"])
def test_random_numbers_are_drawn_once(randomness):
    import torch

    @gradops.custom_gradient
    def noisy(x):
        noise = torch.randn((), dtype=x.dtype, device=x.device)
        return x * noise, lambda upstream: upstream * noise * 7.0

    x = torch.tensor(X).requires_grad_()
    y = torch.func.vmap(noisy, randomness=randomness)(x)
    after = torch.get_rng_state()
    (g,) = torch.autograd.grad(y.sum(), x)
    np.testing.assert_allclose(g * x.detach(), 7 * y.detach())
    assert torch.equal(after, torch.get_rng_state())


def test_complex_numbers_in_forward_mode():
    import torch

    f = gradops.custom_gradient(lambda z: (z * (1 + 2j), lambda upstream: upstream * (3 - 4j)))
    z, v = torch.tensor([1 + 1j, 2 - 1j]), torch.tensor([0.5 + 0j, 1j])
    np.testing.assert_allclose(torch.func.jvp(f, (z,), (v,))[1], v * (3 + 4j))


# TensorFlow -----------------------------------------------------------------------------------------------------------


def _tensorflow_ways(folder) -> dict:
    import tensorflow as tf

    def backward(f, x, v=None):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(f(x))
        return tape.gradient(y, x, unconnected_gradients="zero")

    def double_backward(f, x, v=None):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(backward(f, x))
        return tape.gradient(y, x, unconnected_gradients="zero")

    def forward(f, x, v):
        with tf.autodiff.ForwardAccumulator(x, v) as accumulator:
            y = f(x)
        return accumulator.jvp(y, unconnected_gradients="zero")

    def graph(f):
        return tf.function(f, autograph=False)

    def total(f):
        return lambda x: tf.reduce_sum(f(x))

    def taped(f, x, vectorized: bool):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = f(x)
        return tape.jacobian(y, x, experimental_use_pfor=vectorized)

    def saved(f, x, v=None):
        module = tf.Module()
        module.f = tf.function(f, input_signature=[tf.TensorSpec([None], tf.float64)], autograph=False)
        tf.saved_model.save(module, str(folder))
        return backward(tf.saved_model.load(str(folder)).f, x)

    def rows(f):
        return lambda x: tf.vectorized_map(f, x, warn=False)

    def own_rows(f):
        return lambda x: ops.vectorized_map(f, x)

    lost = (CUSTOM, LookupError, "gradops: TensorFlow has lost a custom or scaled gradient")
    return {
        "tape": (backward, once),
        "tape of tape": (double_backward, twice),
        "tape of tf.function": (lambda f, x, v: backward(graph(f), x), once),
        "tf.function of tape": (lambda f, x, v: graph(lambda z: backward(f, z))(x), once),
        "tf.function of tape of tape": (lambda f, x, v: graph(lambda z: double_backward(f, z))(x), twice),
        "tf.function with XLA": (
            lambda f, x, v: tf.function(lambda z: backward(f, z), autograph=False, jit_compile=True)(x),
            once,
        ),
        "tf.gradients": (lambda f, x, v: graph(lambda z: tf.gradients(f(z), z)[0])(x), once),
        "accumulator": (forward, product),
        "accumulator of tf.function": (lambda f, x, v: forward(graph(f), x, v), product),
        "accumulator in tf.function": (lambda f, x, v: graph(lambda z: forward(f, z, v))(x), product),
        "accumulator of tape": (lambda f, x, v: forward(lambda z: backward(f, z), x, v), second_product),
        "tape of accumulator": (lambda f, x, v: backward(lambda z: forward(f, z, v), x), second_product),
        "accumulator of tape in tf.function": (
            lambda f, x, v: graph(lambda z: forward(lambda y: backward(f, y), z, v))(x),
            second_product,
        ),
        "tape of accumulator in tf.function": (
            lambda f, x, v: graph(lambda z: backward(lambda y: forward(f, y, v), z))(x),
            second_product,
        ),
        "accumulator of tf.function of tape": (
            lambda f, x, v: forward(graph(lambda z: backward(f, z)), x, v),
            second_product,
        ),
        "accumulator of accumulator": (
            lambda f, x, v: forward(lambda z: forward(f, z, 0 * v + 1), x, v),
            second_product,
        ),
        "tf.vectorized_map of accumulator of tape": (
            lambda f, x, v: rows(lambda z: forward(lambda y: backward(f, y), z, tf.ones_like(z)))(x),
            twice,
        ),
        "tape of tf.vectorized_map": (lambda f, x, v: backward(rows(f), x), once, lost),
        "tape of tf.vectorized_map of tf.function": (lambda f, x, v: backward(rows(graph(f)), x), once, lost),
        "tf.vectorized_map of tape": (lambda f, x, v: rows(lambda z: backward(f, z))(x), once),
        "tape of ops.vectorized_map": (lambda f, x, v: backward(own_rows(f), x), once),
        "tape of ops.vectorized_map in tf.function": (lambda f, x, v: backward(graph(own_rows(f)), x), once),
        "ops.vectorized_map of tape": (lambda f, x, v: own_rows(lambda z: backward(f, z))(x), once),
        "gradops.grad of ops.vectorize": (
            lambda f, x, v: gradops.grad(lambda z: ops.sum(ops.vectorize(f)(z)))(x),
            once,
        ),
        "tape.jacobian": (lambda f, x, v: taped(f, x, False), matrix),
        "tape.jacobian, vectorized": (lambda f, x, v: taped(f, x, True), matrix),
        "jacobian, vectorized": (lambda f, x, v: functional.jacobian(f, x, vectorize=True), matrix),
        "jacobian, forward": (lambda f, x, v: functional.jacobian(f, x, strategy="forward-mode"), matrix),
        "hessian": (lambda f, x, v: functional.hessian(total(f), x), second_matrix),
        "functional.hvp": (lambda f, x, v: functional.hvp(total(f), x, v)[1], second_product),
        "gradops.jit": (lambda f, x, v: backward(gradops.jit(f), x), once),
        "saved_model": (saved, once),
    }


TENSORFLOW = _tensorflow_ways(None) if backends.installed("tensorflow") else {}


@table(TENSORFLOW)
def test_tensorflow(flow, way, tmp_path):
    check(_tensorflow_ways(tmp_path), flow, way, "tensorflow")


# JAX and NumPy --------------------------------------------------------------------------------------------------------


def _jax_ways() -> dict:
    import jax
    from jax import export

    from gradops.backends.jax.traces import tells_forward

    shard_map = getattr(jax, "shard_map", None)
    if shard_map is None:  # before JAX 0.6, which cannot infer replication of custom operations
        older = importlib.import_module("jax.experimental.shard_map").shard_map
        shard_map = functools.partial(older, check_rep=False)
    refused = [] if tells_forward else [(CUSTOM - {"checkpoint"}, TypeError, "custom_vjp function")]

    def total(f):
        return lambda x: f(x).sum()

    def exported(f, x, v):
        program = export.export(jax.jit(f))(jax.ShapeDtypeStruct(x.shape, x.dtype)).serialize(vjp_order=1)
        return jax.grad(total(export.deserialize(program).call))(x)

    def jvp(f):
        return lambda x, v: jax.jvp(f, (x,), (v,))[1]

    def scanned(f):
        return lambda z: jax.lax.map(f, z)

    def sharded(f):
        mesh = jax.sharding.Mesh(jax.devices()[:1], ("rows",))
        rows = jax.sharding.PartitionSpec("rows")
        return shard_map(f, mesh=mesh, in_specs=rows, out_specs=rows)

    return {
        "grad": (lambda f, x, v: jax.grad(total(f))(x), once),
        "grad of grad": (lambda f, x, v: jax.grad(total(jax.grad(total(f))))(x), twice),
        "jit of grad": (lambda f, x, v: jax.jit(jax.grad(total(f)))(x), once),
        "grad of jit": (lambda f, x, v: jax.grad(total(jax.jit(f)))(x), once),
        "grad of vmap": (lambda f, x, v: jax.grad(total(jax.vmap(f)))(x), once),
        "vmap of grad": (lambda f, x, v: jax.vmap(jax.grad(f))(x), once),
        "vmap of grad of grad": (lambda f, x, v: jax.vmap(jax.grad(jax.grad(f)))(x), twice),
        "grad of vmap of vmap": (lambda f, x, v: jax.grad(total(jax.vmap(jax.vmap(f))))(x[None])[0], once),
        "jacrev": (lambda f, x, v: jax.jacrev(f)(x), matrix),
        "jacrev of jacrev": (lambda f, x, v: jax.jacrev(jax.jacrev(total(f)))(x), second_matrix),
        "hessian": (lambda f, x, v: jax.hessian(total(f))(x), second_matrix),
        "grad of ops.vectorized_map": (lambda f, x, v: jax.grad(lambda z: ops.vectorized_map(f, z).sum())(x), once),
        "grad of scan": (lambda f, x, v: jax.grad(lambda z: jax.lax.map(f, z).sum())(x), once),
        "jvp": (lambda f, x, v: jvp(f)(x, v), product),
        "jvp of jvp": (lambda f, x, v: jvp(lambda z: jvp(f)(z, 0 * v + 1))(x, v), second_product),
        "jvp of grad": (lambda f, x, v: jvp(jax.grad(total(f)))(x, v), second_product),
        "grad of jvp": (lambda f, x, v: jax.grad(lambda z: jvp(f)(z, v).sum())(x), second_product),
        "jvp of jit": (lambda f, x, v: jvp(jax.jit(f))(x, v), product),
        "jit of jvp": (lambda f, x, v: jax.jit(jvp(f))(x, v), product),
        "jvp of jit of grad of jit": (lambda f, x, v: jvp(jax.jit(jax.grad(total(jax.jit(f)))))(x, v), second_product),
        "grad of jit of jvp of jit": (
            lambda f, x, v: jax.grad(lambda z: jax.jit(jvp(jax.jit(f)))(z, v).sum())(x),
            second_product,
        ),
        "linearize": (lambda f, x, v: jax.linearize(f, x)[1](v), product, *refused),
        "linearize of jit": (lambda f, x, v: jax.linearize(jax.jit(f), x)[1](v), product),
        "jacfwd": (lambda f, x, v: jax.jacfwd(f)(x), matrix),
        "jacfwd of jacfwd": (lambda f, x, v: jax.jacfwd(jax.jacfwd(total(f)))(x), second_matrix),
        "jacrev of jacfwd": (lambda f, x, v: jax.jacrev(jax.jacfwd(total(f)))(x), second_matrix),
        "hessian of jit": (lambda f, x, v: jax.hessian(jax.jit(total(f)))(x), second_matrix),
        "jit of hessian": (lambda f, x, v: jax.jit(jax.hessian(total(f)))(x), second_matrix),
        "vmap of jvp": (lambda f, x, v: jax.vmap(jvp(f))(x, v), product),
        "jvp of vmap": (lambda f, x, v: jvp(jax.vmap(f))(x, v), product),
        "hessian of vmap": (lambda f, x, v: jax.hessian(total(jax.vmap(f)))(x), second_matrix),
        "vmap of hessian": (lambda f, x, v: jax.vmap(jax.hessian(f))(x), twice),
        "jvp of scan": (lambda f, x, v: jvp(scanned(f))(x, v), product),
        "hessian of scan": (lambda f, x, v: jax.hessian(total(scanned(f)))(x), second_matrix),
        "grad of grad of scan": (lambda f, x, v: jax.grad(total(jax.grad(total(scanned(f)))))(x), twice),
        "hessian of jax.checkpoint": (lambda f, x, v: jax.hessian(total(jax.checkpoint(f)))(x), second_matrix),
        "grad of shard_map": (lambda f, x, v: jax.grad(total(sharded(f)))(x), once),
        "jvp of shard_map": (lambda f, x, v: jvp(sharded(f))(x, v), product),
        "hessian of shard_map": (lambda f, x, v: jax.hessian(total(sharded(f)))(x), second_matrix),
        "jit of hessian of shard_map": (lambda f, x, v: jax.jit(jax.hessian(total(sharded(f))))(x), second_matrix),
        "shard_map of grad": (lambda f, x, v: sharded(jax.grad(total(f)))(x), once),
        "functional.jvp": (lambda f, x, v: functional.jvp(f, x, v)[1], product),
        "functional.hvp": (lambda f, x, v: functional.hvp(total(f), x, v)[1], second_product),
        "jacobian, forward": (lambda f, x, v: functional.jacobian(f, x, strategy="forward-mode"), matrix),
        "hessian, forward": (
            lambda f, x, v: functional.hessian(total(f), x, outer_jacobian_strategy="forward-mode"),
            second_matrix,
        ),
        "gradops.jit": (lambda f, x, v: jax.grad(total(gradops.jit(f)))(x), once),
        "export": (exported, once),
    }


JAX = _jax_ways() if backends.installed("jax") else {}


@pytest.mark.short_cases(66)
@table(JAX)
def test_jax(flow, way):
    check(JAX, flow, way, "jax")


RULES_WITHOUT_TRANSPOSE = {
    "clipped": lambda x, u: ops.clip(u, -1.0, 1.0),
    "shifted": lambda x, u: u * x + 0.5,
    "a number": lambda x, u: 1.0,
    "of its size": lambda x, u: u * ops.abs(u),
    "a sign": lambda x, u: ops.sign(u),
}


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", RULES_WITHOUT_TRANSPOSE)
def test_nonlinear_rules_have_no_forward_mode_on_jax(name, compiled):
    jax = pytest.importorskip("jax")
    rule = RULES_WITHOUT_TRANSPOSE[name]
    f = gradops.custom_gradient(lambda x: (ops.sin(x), lambda upstream: rule(x, upstream)))
    x = backends.lookup("jax").convert(X)
    call = jax.jit(f) if compiled else f
    ways = [
        lambda: jax.jvp(call, (x,), (x,)),
        lambda: jax.jacfwd(call)(x),
        lambda: functional.jvp(call, x, x),
    ]
    if compiled or importlib.import_module("gradops.backends.jax.traces").tells_forward:
        ways.append(lambda: jax.linearize(call, x)[1](x))
    for forward in ways:
        with pytest.raises(gradops.errors.GradientError, match="not linear in the upstream gradient") as caught:
            forward()
        assert "reverse mode" in str(caught.value)
    want = np.broadcast_to(ops.convert_to_numpy(rule(X, np.full(3, 2.0))), 3)
    np.testing.assert_allclose(jax.grad(lambda x: 2 * call(x).sum())(x), want)
    np.testing.assert_allclose(jax.vmap(jax.grad(lambda x: 2 * call(x)))(x), want)
    rows = [np.broadcast_to(ops.convert_to_numpy(rule(X, unit)), 3) for unit in np.eye(3)]
    np.testing.assert_allclose(functional.jacobian(call, x), rows, atol=1e-12)  # uses reverse mode instead


@pytest.mark.parametrize("compiled", [False, True])
def test_forward_mode_of_various_rules_on_jax(compiled):
    """Integer arguments and results, complex numbers, arguments without a gradient, and shared arguments."""
    jax = pytest.importorskip("jax")
    jnp = jax.numpy
    wrap = jax.jit if compiled else lambda f: f

    @gradops.custom_gradient
    def counted(x, n, w):
        return (x * n, ops.cast(x, "int64")), lambda a, b: (a * n * w, None, ops.sum(a * x, 0) * 2.0)

    x, n, w = jnp.asarray(X), jnp.asarray(2), jnp.asarray(1.5)
    f = wrap(lambda x, w: counted(x, n, w)[0])
    np.testing.assert_allclose(jax.jvp(f, (x, w), (x, w))[1], X * 3.0 + 2 * X * 1.5)
    rows = jax.vmap(lambda x: jax.jvp(lambda w: f(x, w), (w,), (w,))[1])(jnp.stack([x, 2 * x]))
    np.testing.assert_allclose(rows, np.stack([3 * X, 6 * X]))
    one = jax.vmap(f, (0, None))(jnp.stack([x, 2 * x]), w)
    pulled = jax.grad(lambda x, w: jax.vmap(f, (0, None))(x, w).sum(), (0, 1))(jnp.stack([x, 2 * x]), w)
    np.testing.assert_allclose(one, np.stack([2 * X, 4 * X]))
    np.testing.assert_allclose(pulled[0], np.full((2, 3), 3.0))
    np.testing.assert_allclose(pulled[1], 6 * X.sum())

    g = wrap(gradops.custom_gradient(lambda z: (z * (1 + 2j), lambda upstream: upstream * (3 - 4j))))
    z, v = jnp.asarray([1 + 1j, 2 - 1j]), jnp.asarray([0.5 + 0j, 1j])
    np.testing.assert_allclose(jax.jvp(g, (z,), (v,))[1], v * (3 + 4j))


@pytest.mark.parametrize("compiled", [False, True])
def test_closures_of_a_rule_in_forward_mode_on_jax(compiled):
    """Constants of any transformation can be used; values with a tangent are refused."""
    jax = pytest.importorskip("jax")
    x, w = jax.numpy.asarray(X), jax.numpy.asarray(2.0)
    wrap = jax.jit if compiled else lambda f: f

    def f(w):
        return wrap(gradops.custom_gradient(lambda q: (q * w, lambda upstream: upstream * w * 10.0)))

    np.testing.assert_allclose(jax.vmap(lambda w: jax.jvp(f(w), (x,), (x,))[1])(jax.numpy.stack([w]))[0], 20 * X)
    np.testing.assert_allclose(jax.jit(lambda w: jax.jvp(f(w), (x,), (x,))[1])(w), 20 * X)
    with pytest.raises(gradops.errors.GradientError, match="is not an argument"):
        jax.jvp(lambda w: f(w)(x), (w,), (w,))


NUMPY = {
    "grad": (lambda f, x, v: gradops.grad(lambda z: ops.sum(f(z)))(x), once),
    "grad of grad": (
        lambda f, x, v: gradops.grad(lambda y: ops.sum(gradops.grad(lambda z: ops.sum(f(z)))(y)))(x),
        twice,
    ),
    "grad of vectorized_map": (lambda f, x, v: gradops.grad(lambda z: ops.sum(ops.vectorized_map(f, z)))(x), once),
    "vectorized_map of grad": (lambda f, x, v: ops.vectorized_map(gradops.grad(f), x), once),
    "grad of vectorize": (lambda f, x, v: gradops.grad(lambda z: ops.sum(ops.vectorize(f)(z)))(x), once),
    "jit of grad": (lambda f, x, v: gradops.jit(gradops.grad(lambda z: ops.sum(f(z))))(x), once),
    "jvp": (lambda f, x, v: functional.jvp(f, x, v)[1], product),
    "hvp": (lambda f, x, v: functional.hvp(lambda z: ops.sum(f(z)), x, v)[1], second_product),
    "jacobian, vectorized": (lambda f, x, v: functional.jacobian(f, x, vectorize=True), matrix),
    "jacobian, forward": (lambda f, x, v: functional.jacobian(f, x, strategy="forward-mode"), matrix),
    "hessian": (lambda f, x, v: functional.hessian(lambda z: ops.sum(f(z)), x), second_matrix),
}


@table(NUMPY)
def test_numpy(flow, way):
    check(NUMPY, flow, way, "numpy")


def elsewhere(f):
    """Run ``f`` on another thread in the state of this one, as R's thread runs R functions for others."""

    def call(*arguments):
        state = backends.backend_of(arguments[0]).derivatives.carried()
        found: list = []

        def work():
            with state():
                found.append(f(*arguments))

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        return found[0]

    return call


@pytest.mark.parametrize(
    ("backend", "compiled"), [("torch", 0), ("tensorflow", 0), ("tensorflow", 1), ("jax", 0), ("jax", 1)]
)
def test_derivatives_work_on_another_thread(backend, compiled):
    backends.lookup(backend).prepare("float64")
    x = backends.lookup(backend).convert(X)

    @elsewhere
    def f(x):
        return ops.multiply(ops.sum(own(x)), ops.power(x, 2.0))

    reverse = np.outer(X**2, 3 * np.exp(X)) + np.diag(2 * X * np.sin(X).sum())
    ways = {"reverse-mode": reverse}
    ways["forward-mode"] = reverse
    for strategy, expected in ways.items():
        jacobian = lambda x, strategy=strategy: functional.jacobian(f, x, strategy=strategy)  # noqa: E731
        if compiled:
            jacobian = gradops.jit(jacobian)
        np.testing.assert_allclose(np.asarray(ops.convert_to_numpy(jacobian(x))), expected, rtol=1e-12)


@pytest.mark.parametrize("function", ["solve", "det", "slogdet", "logdet"])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_derivatives_of_torch_linear_algebra_tangents(function, dtype):
    """PyTorch's tangents treat a factor as constant (issues 196695, 196696, 196697); its gradients are correct."""
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(1)
    a, da, ddb = (torch.tensor(rng.normal(size=(2, 3, 3)), dtype=getattr(torch, dtype)) for _ in range(3))
    a = a * (1 + 0.5j) if a.is_complex() else a
    calls = {
        "solve": lambda t: ops.real(ops.solve(a + t * da, t * t * ddb)),
        "det": lambda t: ops.real(ops.det(a + t * da)),
        "slogdet": lambda t: ops.real(ops.slogdet(a + t * da)[0] + 2 * ops.slogdet(a + t * da)[1]),
        "logdet": lambda t: ops.logdet(a + t * da),
    }

    def f(t):
        return ops.sum(ops.sin(calls[function](t)))

    def tangent(f):
        return lambda t: torch.func.jvp(f, (t,), (torch.ones_like(t),))[1]

    t, grad = torch.tensor(0.3, dtype=torch.float64), torch.func.grad
    want, third = grad(grad(f))(t), tangent(grad(grad(f)))(t)
    for found in (tangent(tangent(f)), grad(tangent(f)), torch.func.jacfwd(torch.func.jacfwd(f))):
        torch.testing.assert_close(found(t), want, rtol=1e-9, atol=1e-9)
    if dtype == "float64":
        torch.testing.assert_close(tangent(tangent(tangent(f)))(t), third, rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(
        torch.func.vmap(tangent(tangent(f)))(torch.stack([t, t + 0.1]))[0], want, rtol=1e-9, atol=1e-9
    )


squared = gradops.custom_gradient(lambda x: (x * x, lambda upstream: upstream * 2.0 * x))


@pytest.mark.short_cases(1, "jax", "tensorflow")
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("order", ["JGJ", "JJJ", "JJG", "GJJ"])
def test_third_derivatives_of_nested_tangents(backend, order):
    """TensorFlow's own accumulators lose terms if nested."""

    def tangent(f):
        return lambda x: gradops.jvp(f, (x,), (ops.ones_like(x),))[1]

    at = tensors(np.array(3.0), backend)
    for f in (lambda x: (x * x) * x * x, lambda x: squared(x) * x * x):
        for transform in reversed(order):
            f = {"J": tangent, "G": gradops.grad}[transform](f)
        np.testing.assert_allclose(numpy(f(at)), 72.0, rtol=1e-12)
