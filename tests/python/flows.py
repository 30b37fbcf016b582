"""Native derivatives on each backend, eager and compiled, for the tests of gradient flow."""

from __future__ import annotations

import numpy as np
import pytest
from versions import ONE_GRAPH

import gradops
from gradops import Variable, backends

WAYS = [
    ("numpy", "eager"),
    ("numpy", "compiled"),
    ("torch", "eager"),
    ("torch", "compiled"),
    ("torch", "func"),
    ("jax", "eager"),
    ("jax", "compiled"),
    ("jax", "inner"),
    ("jax", "variable"),
    ("tensorflow", "eager"),
    ("tensorflow", "compiled"),
    ("tensorflow", "inner"),
    ("tensorflow", "variable"),
]
"""``compiled`` is the derivative compiled, ``inner`` the derivative of the compiled function, ``variable`` the tape."""
MOST_WAYS = [
    pytest.param(way, marks=pytest.mark.long) if way[1] == "inner" or way == ("torch", "compiled") else way
    for way in WAYS
]
"""``WAYS`` with ways that compile for each function marked long; two or three tests of each file run all ways."""


def derivatives(way: tuple[str, str], f, x, orders: int) -> list[np.ndarray]:
    """Return the first ``orders`` derivatives of ``sum(f)`` at ``x``, each of the sum of the previous one."""
    backend, mode = way
    convert = backends.lookup(backend).convert
    if backend == "numpy" or mode == "variable":
        return _on_tape(f, convert(np.asarray(x, float)), orders, mode == "compiled")
    run = {"torch": _torch, "jax": _jax, "tensorflow": _tensorflow}[backend]
    return run(f, convert(np.asarray(x, float)), orders, mode)


def _on_tape(f, x, orders, compiled):
    def total(order):
        if order == 0:
            return lambda v: gradops.ops.sum(f(v))
        return lambda v: gradops.ops.sum(gradops.grad(total(order - 1))(v))

    if compiled:
        return [np.asarray(gradops.jit(gradops.grad(total(i)))(x)) for i in range(orders)]
    v = Variable(x, requires_grad=True)
    y, found = gradops.ops.sum(f(v)), []
    for _ in range(orders):
        g = gradops.gradient(y, v) if y.requires_grad else None
        found.append(np.zeros(x.shape) if g is None else np.asarray(g.data))
        if g is None or not g.requires_grad:
            break
        y = gradops.ops.sum(g)
    return found + [np.zeros(x.shape)] * (orders - len(found))


def _torch(f, x, orders, mode):
    import torch

    if mode == "func":

        def total(order):
            if order == 0:
                return lambda v: f(v).sum()
            return lambda v: torch.func.grad(total(order - 1))(v).sum()

        return [torch.func.grad(total(i))(x).detach().numpy() for i in range(orders)]
    if mode == "compiled":
        torch._dynamo.reset()
        orders = 1  # torch has no second derivatives of compiled functions
    call = compiled(f) if mode == "compiled" else f
    x = x.clone().requires_grad_()
    y, found = call(x).sum(), []
    for _ in range(orders):
        g = torch.autograd.grad(y, x, create_graph=True, allow_unused=True)[0] if y.requires_grad else None
        found.append(np.zeros(x.shape) if g is None else g.detach().numpy())
        if g is None:
            break
        y = g.sum()
    return found + [np.zeros(x.shape)] * (orders - len(found))


def compiled(f):
    import torch

    return torch.compile(f, fullgraph=ONE_GRAPH, backend="aot_eager")


def constant(x, value):
    """Return ``value`` as a tensor of the library of ``x``."""
    data = x.data if isinstance(x, Variable) else x
    if backends.backend_of(data).name == "torch":
        import torch

        return torch.as_tensor(value, dtype=torch.float64)
    return backends.backend_of(data).convert(np.asarray(value, float))


def _jax(f, x, orders, mode):
    import jax

    inner = jax.jit(f) if mode == "inner" else f

    def total(order):
        if order == 0:
            return lambda v: inner(v).sum()
        return lambda v: jax.grad(total(order - 1))(v).sum()

    outer = jax.jit if mode == "compiled" else lambda g: g
    return [np.asarray(outer(jax.grad(total(i)))(x)) for i in range(orders)]


def _tensorflow(f, x, orders, mode):
    import tensorflow as tf

    inner = tf.function(f, autograph=False) if mode == "inner" else f

    def total(order, v):
        if order == 0:
            return tf.reduce_sum(inner(v))
        return tf.reduce_sum(derive(order - 1, v))

    def derive(order, v):
        with tf.GradientTape() as tape:
            tape.watch(v)
            y = total(order, v)
        return tape.gradient(y, v, unconnected_gradients=tf.UnconnectedGradients.ZERO)

    outer = (lambda g: tf.function(g, autograph=False)) if mode == "compiled" else lambda g: g
    return [outer(lambda v, i=i: derive(i, v))(x).numpy() for i in range(orders)]
