"""Gradient flows inside and around control flow, on every backend, for captured and for passed values.

Programs nest flows (stops, scales, custom gradients, checkpoints) and control flow (of gradops, of the library, of
Python) over an elementwise function. The oracle is mathematics: values with first and second derivatives.
"""

from __future__ import annotations

import functools
import random
import re

import numpy as np
import pytest
from seeds import seeds

import gradops
from gradops import Variable, backends, ops

X = np.array([0.4, -0.3, 0.9])

# The oracle -----------------------------------------------------------------------------------------------------------


class Jet:
    """Values of an elementwise function of ``x`` with first and second derivatives."""

    def __init__(self, v, d=0.0, dd=0.0):
        self.v, self.d, self.dd = v, d, dd

    def __mul__(self, other):
        o = other if isinstance(other, Jet) else Jet(other)
        dd = self.dd * o.v + 2 * self.d * o.d + self.v * o.dd
        return Jet(self.v * o.v, self.d * o.v + self.v * o.d, dd)

    def __add__(self, other):
        o = other if isinstance(other, Jet) else Jet(other)
        return Jet(self.v + o.v, self.d + o.d, self.dd + o.dd)


def sin(z):
    if not isinstance(z, Jet):
        return ops.sin(z)
    return Jet(np.sin(z.v), np.cos(z.v) * z.d, np.cos(z.v) * z.dd - np.sin(z.v) * z.d**2)


def with_slope(value: Jet, slope: Jet, z: Jet) -> Jet:
    """Return a function of ``z`` whose declared slope is not its own."""
    return Jet(value.v, slope.v * z.d, slope.d * z.d + slope.v * z.dd)


# Flows: what each does to a function, and its mathematical counterpart ----------------------------------------------


def scope(f):
    def g(z):
        with gradops.stop_gradient_scope():
            h = f(z)
        return h * z

    return g


def scope_in_scope(f):
    def g(z):
        with gradops.stop_gradient_scope():
            with gradops.stop_gradient_scope():
                h = f(z)
            k = h * z
        return k * z + h

    return g


def decorated(f):
    inner = gradops.stop_gradient_scope(f)
    return lambda z: inner(z) * z


def of_its_value(f):
    def g(z):
        y = f(z)
        return y, lambda upstream: upstream * y * 2.0

    return gradops.custom_gradient(g)


def of_two(f):
    g = gradops.custom_gradient(lambda a, b: (f(a) * b, lambda upstream: (upstream * b, upstream * 3.0)))
    return lambda z: g(z, z * 0.5)


FLOWS = {
    "nothing": (lambda f: f, lambda f: f),
    "scope": (scope, lambda f: lambda z: z * f(z).v),
    "scope in scope": (scope_in_scope, lambda f: lambda z: z * (f(z).v * z.v) + f(z).v),
    "decorated": (decorated, lambda f: lambda z: z * f(z).v),
    "stop": (lambda f: lambda z: gradops.stop_gradient(f(z)) * z, lambda f: lambda z: z * f(z).v),
    "scaled": (
        lambda f: lambda z: gradops.scaled_gradient(f(z), -2.0),
        lambda f: lambda z: with_slope(f(z), Jet(-2.0), f(z)),
    ),
    "scaled by a tensor": (
        lambda f: lambda z: gradops.scaled_gradient(f(z), gradops.stop_gradient(z)),
        lambda f: lambda z: with_slope(f(z), Jet(z.v), f(z)),
    ),
    "custom": (
        lambda f: gradops.custom_gradient(lambda z: (f(z), lambda upstream: upstream * 5.0)),
        lambda f: lambda z: with_slope(f(z), Jet(5.0), z),
    ),
    "custom of its value": (of_its_value, lambda f: lambda z: with_slope(f(z), f(z) * 2.0, z)),
    "custom of two": (
        of_two,
        lambda f: lambda z: with_slope(f(z) * (z.v * 0.5), z * 0.5, z) + with_slope(Jet(0.0), Jet(3.0), z * 0.5),
    ),
    "checkpoint": (gradops.checkpoint, lambda f: f),
}

# Control flow: each applies a function at least once, to captured or passed values -----------------------------------


def true_of(z):
    return ops.sum(z) > -100.0


def python_if(f, captured):
    def g(z):
        if true_of(z):
            y = f(z)
        else:
            y = z * 0.3
        return y

    return g


def both_of(z):
    return ops.stack([z, z * 0.5])


def over_rows(run):
    """Build control flow over rows: ``z`` and its half, or 1 and 0.5 with ``z`` captured."""

    def make(f, captured):
        def g(z):
            rows = ops.stack([ops.ones_like(z), ops.ones_like(z) * 0.5]) if captured else both_of(z)
            return ops.sum(run(lambda row: f(z * row) if captured else f(row), rows), 0)

        return g

    return make


def operand(run):
    """Build a branch whose functions take ``z`` as an operand or capture it."""

    def make(f, captured):
        def g(z):
            if captured:
                return run(true_of(z), lambda _: f(z), lambda _: z * 0.3, z * 0.0)
            return run(true_of(z), f, lambda a: a * 0.3, z)

        return g

    return make


def loop(run):
    """Build a loop of two steps ``s * 0.5 + f(s)``, or ``s * 0.5 + f(z)`` with ``z`` captured."""

    def make(f, captured):
        return lambda z: run(lambda s: s * 0.5 + (f(z) if captured else f(s)), z)

    return make


def of_branch(f, captured):
    return f


def of_rows(f, captured):
    return lambda z: f(z) + f(z * 0.5)


def of_loop(f, captured):
    def g(z):
        s = z
        for _ in range(2):
            s = s * 0.5 + (f(z) if captured else f(s))
        return s

    return g


OPS = {
    "if": (python_if, of_branch),
    "ops.cond": (operand(lambda p, a, b, z: ops.cond(p, lambda: a(z), lambda: b(z))), of_branch),
    "ops.cond, false": (
        operand(lambda p, a, b, z: ops.cond(ops.logical_not(p), lambda: b(z), lambda: a(z))),
        of_branch,
    ),
    "ops.switch": (operand(lambda p, a, b, z: ops.switch(ops.cast(p, "int64"), [b, a, b], z)), of_branch),
    "ops.fori_loop": (loop(lambda f, z: ops.fori_loop(0, 2, lambda i, s: f(s), z)), of_loop),
    "ops.while_loop": (
        loop(lambda f, z: ops.while_loop(lambda i, s: i < 2, lambda i, s: (i + 1, f(s)), (0, z), 3)[1]),
        of_loop,
    ),
    "ops.scan": (loop(lambda f, z: ops.scan(lambda s, row: (f(s), None), z, None, 2)[0]), of_loop),
    "ops.map": (over_rows(ops.map), of_rows),
    "ops.vectorized_map": (over_rows(ops.vectorized_map), of_rows),
}


def _tensorflow() -> dict:
    import tensorflow as tf

    def nested(f, captured):
        if captured:
            return lambda z: tf.function(lambda: f(z), autograph=False)()
        return tf.function(f, autograph=False)

    def autograph(f, captured):
        def g(z):
            if tf.reduce_sum(z) > -100.0:
                y = f(z)
            else:
                y = z * 0.3
            return y

        return tf.function(g, autograph=True)

    def autograph_for(f, captured):
        def g(z):
            s = z
            for _ in tf.range(2):
                s = s * 0.5 + (f(z) if captured else f(s))
            return s

        return tf.function(g, autograph=True)

    def cond(p, a, b, z):
        return tf.cond(p, lambda: a(z), lambda: b(z))

    def while_loop(f, z):
        return tf.while_loop(lambda i, s: i < 2, lambda i, s: (i + 1, f(s)), (0, z))[1]

    return {
        "tf.cond": (operand(cond), of_branch),
        "tf.switch_case": (
            operand(lambda p, a, b, z: tf.switch_case(tf.cast(p, tf.int32), [lambda: b(z), lambda: a(z)])),
            of_branch,
        ),
        "tf.while_loop": (loop(while_loop), of_loop),
        "tf.map_fn": (over_rows(lambda f, rows: tf.map_fn(f, rows)), of_rows),
        "tf.scan": (loop(lambda f, z: tf.scan(lambda s, _: f(s), tf.range(2), z)[-1]), of_loop),
        "tf.function": (nested, of_branch),
        "autograph if": (autograph, of_branch),
        "autograph for": (autograph_for, of_loop),
    }


def _jax() -> dict:
    import jax

    def called(transform):
        return lambda f, captured: lambda z: transform(lambda _: f(z))(0.0) if captured else transform(f)(z)

    return {
        "lax.cond": (operand(lambda p, a, b, z: jax.lax.cond(p, a, b, z)), of_branch),
        "lax.switch": (operand(lambda p, a, b, z: jax.lax.switch(ops.cast(p, "int32"), [b, a], z)), of_branch),
        "lax.fori_loop": (loop(lambda f, z: jax.lax.fori_loop(0, 2, lambda i, s: f(s), z)), of_loop),
        "lax.scan": (loop(lambda f, z: jax.lax.scan(lambda s, _: (f(s), None), z, None, 2)[0]), of_loop),
        "lax.map": (over_rows(jax.lax.map), of_rows),
        "vmap": (over_rows(lambda f, rows: jax.vmap(f)(rows)), of_rows),
        "jit": (called(jax.jit), of_branch),
        "jax.checkpoint": (called(jax.checkpoint), of_branch),
    }


def _torch() -> dict:
    import torch

    return {"vmap": (over_rows(lambda f, rows: torch.func.vmap(f)(rows)), of_rows)}


def control(backend: str) -> dict:
    own = {"tensorflow": _tensorflow, "jax": _jax, "torch": _torch}.get(backend, dict)
    return OPS | own()


# How the derivatives are taken ----------------------------------------------------------------------------------------


def derivatives_by(grad, f, x):
    """Return the first and second derivative of the elementwise ``f`` by a given gradient transformation."""
    first = grad(lambda z: ops.sum(f(z)))
    return first(x), grad(lambda z: ops.sum(first(z)))(x)


def by_gradops(f, x):
    return derivatives_by(gradops.grad, f, x)


def by_jit(f, x):
    return derivatives_by(lambda g: gradops.jit(gradops.grad(g)), f, x)


def of_jit(f, x):
    return derivatives_by(gradops.grad, gradops.jit(f), x)


def on_variables(f, x):
    v = Variable(x, requires_grad=True)
    first = gradops.gradient(ops.sum(f(v)), v)
    second = gradops.gradient(ops.sum(first), v) if first.requires_grad else None
    return first.data, np.zeros(3) if second is None else second.data


def by_torch(f, x):
    import torch

    x = x.clone().requires_grad_()
    (first,) = torch.autograd.grad(f(x).sum(), x, create_graph=True)
    if not first.requires_grad:
        return first, torch.zeros(3)
    return first, torch.autograd.grad(first.sum(), x, materialize_grads=True)[0]


def by_torch_func(f, x):
    import torch

    return derivatives_by(torch.func.grad, f, x)


def tf_gradient(f):
    import tensorflow as tf

    def g(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(f(x))
        return tape.gradient(y, x, unconnected_gradients="zero")

    return g


def by_tape(f, x):
    return derivatives_by(tf_gradient, f, x)


def graph(f):
    import tensorflow as tf

    return tf.function(f, autograph=False)


def by_tape_of_graph(f, x):
    return derivatives_by(tf_gradient, graph(f), x)


def by_graph_of_tape(f, x):
    return derivatives_by(lambda g: graph(tf_gradient(g)), f, x)


def by_tf_gradients(f, x):
    import tensorflow as tf

    zero = tf.UnconnectedGradients.ZERO
    return derivatives_by(lambda g: graph(lambda z: tf.gradients(g(z), z, unconnected_gradients=zero)[0]), f, x)


def by_jax(f, x):
    import jax

    return derivatives_by(jax.grad, f, x)


def by_jax_jit(f, x):
    import jax

    return derivatives_by(lambda g: jax.jit(jax.grad(g)), f, x)


def of_jax_jit(f, x):
    import jax

    return derivatives_by(jax.grad, jax.jit(f), x)


WAYS = {
    "numpy": ("numpy", by_gradops),
    "numpy, jit of grad": ("numpy", by_jit),
    "numpy, grad of jit": ("numpy", of_jit),
    "variables": ("numpy", on_variables),
    "torch": ("torch", by_torch),
    "torch.func": ("torch", by_torch_func),
    "tensorflow": ("tensorflow", by_tape),
    "tensorflow, tape of graph": ("tensorflow", by_tape_of_graph),
    "tensorflow, graph of tape": ("tensorflow", by_graph_of_tape),
    "tensorflow, tf.gradients": ("tensorflow", by_tf_gradients),
    "jax": ("jax", by_jax),
    "jax, jit of grad": ("jax", by_jax_jit),
    "jax, grad of jit": ("jax", of_jax_jit),
}
TRACED = {"numpy, jit of grad", "numpy, grad of jit", *(w for w in WAYS if "graph" in w or "tf." in w or "jit" in w)}
ACCESS = ("captured", "computed", "passed")

REFUSED = re.compile("looked at a value|^vmap: It looks like|a row of a `vmap` that is not an argument")
"""Errors that are acceptable: a value-dependent branch under tracing or vectorisation, a row that a rule uses."""

# Programs -------------------------------------------------------------------------------------------------------------


def built(steps: tuple, kinds: dict, side: int):
    """Build the function that ``steps`` make of ``z * sin(z)``, innermost first; ``side``: 0 gradops, 1 mathematics."""
    f = lambda z: z * sin(z)  # noqa: E731
    for name, access in steps:
        if access is None:
            f = FLOWS[name][side](f)
        else:
            f = kinds[name][side](f, access != "passed")
            if access == "computed":
                f = functools.partial(lambda g, z: g(sin(z) * 0.7), f)
    return f


def check(way: str, steps: tuple) -> None:
    backend, derive = WAYS[way]
    kinds = control(backend)
    want = built(steps, kinds, 1)(Jet(X, 1.0, 0.0))
    found = derive(built(steps, kinds, 0), backends.lookup(backend).convert(X))
    for order, (got, expected) in enumerate(zip(found, (want.d, want.dd)), 1):
        got = np.asarray(ops.convert_to_numpy(got))
        np.testing.assert_allclose(got, expected + 0 * X, rtol=1e-9, atol=1e-11, err_msg=f"order {order} of {steps}")


def applies(way: str, steps: tuple) -> bool:
    """Return False for Python's `if` in traced programs, which have no values to branch on."""
    return not (way in TRACED and not way.startswith("numpy") and any(name == "if" for name, _ in steps))


def grid(way: str) -> list:
    """Return each flow inside and around each kind of control flow, with captured and passed values."""
    if not backends.installed(WAYS[way][0]):
        return []
    pairs = [((flow, None), (kind, access)) for kind in control(WAYS[way][0]) for access in ACCESS for flow in FLOWS]
    return [steps for a, b in pairs for steps in ((a, b), (b, a)) if applies(way, steps)]


def drawn(way: str, seed: int) -> tuple:
    rng = random.Random(f"{way} {seed}")
    kinds = sorted(control(WAYS[way][0]))
    steps: list = []
    for i in range(2 if way in TRACED else rng.randint(2, 4)):  # tracing repeats work at every level
        steps.append((rng.choice(sorted(FLOWS)), None))
        if i < 2 and rng.random() < 0.7:
            steps.append((rng.choice(kinds), rng.choice(ACCESS)))
    return tuple(steps) if applies(way, tuple(steps)) else drawn(way, seed + 100_000)


@pytest.mark.short_cases(0, "jax")
@pytest.mark.parametrize("way", WAYS)
def test_sample_of_the_grid(way):
    """Checks a few programs of the grid."""
    if not backends.installed(WAYS[way][0]):
        pytest.skip("not installed")
    for steps in random.Random(way).sample(grid(way), 4 if way in TRACED else 20):
        check(way, steps)


@pytest.mark.long
@pytest.mark.parametrize("way", WAYS)
def test_the_whole_grid(way):
    found = grid(way)
    assert found
    for steps in found:
        check(way, steps)


@pytest.mark.long
@pytest.mark.parametrize("seed", seeds(20))
@pytest.mark.parametrize("way", WAYS)
def test_nests(way, seed):
    try:
        check(way, drawn(way, seed))
    except (gradops.errors.GradopsError, RuntimeError) as error:
        if not REFUSED.search(str(error)):
            raise


@pytest.mark.short_cases(2)
@pytest.mark.parametrize("access", ACCESS)
@pytest.mark.parametrize("flow", ["scope", "decorated"])
def test_scope_in_every_tensorflow_control_flow(flow, access):
    """One graph holds all of TensorFlow's control flow: values captured by a branch or loop in a scope are not saved by
    it.
    """
    pytest.importorskip("tensorflow")
    kinds = {name: kind for name, kind in control("tensorflow").items() if name != "if"}
    parts = [((flow, None), (name, access)) for name in kinds]
    jet = sum((built(steps, kinds, 1)(Jet(X, 1.0)) for steps in parts), Jet(0.0))
    x = backends.lookup("tensorflow").convert(X)
    whole = graph(lambda z: sum(built(steps, kinds, 0)(z) for steps in parts))
    np.testing.assert_allclose(tf_gradient(whole)(x), jet.d, rtol=1e-12)


def test_vectorized_map_in_a_torch_checkpoint_is_recomputed():
    """The exception that ends the checkpoint's second run must pass `vectorized_map`, which catches errors to fall
    back.
    """
    torch = pytest.importorskip("torch")
    x = torch.tensor(X, requires_grad=True)
    gradops.checkpoint(lambda z: ops.vectorized_map(lambda row: ops.sin(row) * row, z))(x).sum().backward()
    np.testing.assert_allclose(x.grad, np.sin(X) + X * np.cos(X))
