"""custom_gradient on every backend, eager and compiled, to third order; every form and every bad input."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
import versions
from flows import MOST_WAYS, WAYS, constant, derivatives

import gradops
from gradops import Variable, autodiff, backends, custom_gradient, ops
from gradops.errors import ArgumentTypeError, GradientError, MixedBackendsError, ShapeError

X = np.array([0.5, -1.5, 2.0])
ALL = pytest.mark.parametrize("way", WAYS, ids="-".join)
MOST = pytest.mark.parametrize("way", MOST_WAYS, ids="-".join)
EACH = pytest.mark.parametrize("backend", backends.NAMES)


def check(way, f, *expected):
    found = derivatives(way, f, X, len(expected))
    for order, (got, want) in enumerate(zip(found, expected), 1):
        np.testing.assert_allclose(got, np.broadcast_to(want, X.shape), rtol=1e-9, atol=1e-12, err_msg=f"order {order}")


def on(backend, value):
    x = backends.lookup(backend).convert(np.asarray(value, float))
    return Variable(x, requires_grad=True) if backend == "numpy" else x


def grads(f, *arguments):
    """Return the gradients of ``sum(f)`` with respect to all arguments, as NumPy arrays."""
    found = gradops.grad(lambda *xs: ops.sum(f(*xs)), argnums=tuple(range(len(arguments))))(*arguments)
    return [np.asarray(g.data if isinstance(g, Variable) else g.detach() if hasattr(g, "detach") else g) for g in found]


# --- orders


@ALL
def test_closed_over_value_is_differentiated_to_third_order(way):
    @custom_gradient
    def f(x):
        e = ops.exp(x)
        return e, lambda upstream: upstream * e * 5.0

    e = np.exp(X)
    check(way, f, 5 * e, 5 * e, 5 * e)


@MOST
def test_rule_applies_at_every_order(way):
    """In ``f(x)**3`` the derivative of the power uses f's value, which is differentiated by the rule again."""

    @custom_gradient
    def f(x):
        return x * 1.0, lambda upstream: upstream * 2.0

    check(way, lambda x: f(x) ** 3, 6 * X**2, 24 * X, 48 + 0 * X)


@MOST
def test_gradient_function_calls_its_own_function(way):
    @custom_gradient
    def f(x):
        return ops.exp(x), lambda upstream: 2.0 * upstream * f(x)

    e = np.exp(X)
    check(way, f, 2 * e, 4 * e, 8 * e)


def test_jax_compiles_third_order_gradients():
    jax = pytest.importorskip("jax")

    @custom_gradient
    def f(x):
        return ops.exp(x), lambda upstream: 2.0 * upstream * f(x)

    third = jax.grad(jax.grad(jax.grad(f)))
    assert float(jax.jit(third)(0.0)) == 8
    with pytest.raises(GradientError, match="to order 3"):
        jax.jit(jax.grad(third))(0.0)


@MOST
def test_nested_custom_gradients(way):
    @custom_gradient
    def inner(x):
        return ops.sin(x), lambda upstream: upstream * 3.0 * ops.cos(x)

    @custom_gradient
    def outer(x):
        return inner(x) * 2.0, lambda upstream: upstream * inner(x)

    check(way, outer, np.sin(X), 3 * np.cos(X), -3 * np.sin(X))


@MOST
def test_log1pexp(way):
    @custom_gradient
    def log1pexp(x):
        e = ops.exp(x)
        return ops.log(1 + e), lambda upstream: upstream * (1 - 1 / (1 + e))

    s = 1 / (1 + np.exp(-X))
    check(way, log1pexp, s, s * (1 - s), s * (1 - s) * (1 - 2 * s))


@MOST
def test_structures_keywords_and_non_tensor_values(way):
    @custom_gradient
    def f(pair, name, *, power, table):
        assert (name, power) == ("square", 2)
        value = {"kept": pair[0] ** power * table["w"], "unused": [pair[1], None]}

        def gradient(upstream):
            assert upstream["unused"][1] is None
            g = upstream["kept"] * 2 * pair[0] * table["w"]
            return [g, upstream["unused"][0] * 100.0], None, None, {"w": None}

        return value, gradient

    def whole(x):
        return f((x, x * 2), "square", power=2, table={"w": constant(x, [1.0, 2.0, 3.0])})["kept"]

    w = np.array([1.0, 2, 3])
    check(way, whole, 2 * X * w, 2 * w)


@ALL
def test_several_outputs_and_integers(way):
    @custom_gradient
    def f(x):
        value = (ops.square(x), ops.argmax(x), x * 3.0)
        return value, lambda a, i, b: a * 2 * x + b * 30.0

    check(way, lambda x: f(x)[0], 2 * X, 2 + 0 * X)
    check(way, lambda x: f(x)[2] * x, 30 * X + 3 * X, 60 + 0 * X)


@MOST
def test_the_two_function_form(way):
    f = custom_gradient(lambda x, y: x * y, lambda x, y, upstream: (upstream * y * 10.0, upstream * x * 100.0))
    check(way, lambda x: f(x, x), 110 * X, 110 + 0 * X)


@ALL
def test_none_is_no_gradient(way):
    f = custom_gradient(lambda x, y: (x * y, lambda upstream: (None, upstream * x)))
    check(way, lambda x: f(x, x) + x, X + 1, 1 + 0 * X)


@MOST
def test_methods(way):
    class Layer:
        def __init__(self, scale):
            self.scale = scale

        @custom_gradient
        def call(self, x):
            return x * self.scale, lambda upstream: upstream * self.scale * 10.0

    check(way, Layer(2.0).call, 20 + 0 * X, 0 * X)


# --- upstream's forms

FORMS = {
    "upstream": lambda x, y: lambda upstream: (upstream * 2.0, upstream * 3.0),
    "any name": lambda x, y: lambda dy: (dy * 2.0, dy * 3.0),
    "*args, upstream": lambda x, y: lambda *args, upstream=None: (args[0] * 2.0, upstream * 3.0),
    "*args": lambda x, y: lambda *args: (args[0] * 2.0, args[0] * 3.0),
    "inputs, upstream": lambda x, y: lambda x, y, upstream: (upstream * 2.0, upstream * 3.0),
    "inputs, any name": lambda x, y: lambda x, y, dz: (dz * 2.0, dz * 3.0),
    "keyword": lambda x, y: lambda *, upstream: (upstream * 2.0, upstream * 3.0),
    "a list": lambda x, y: lambda upstream: [upstream * 2.0, upstream * 3.0],
    "by name": lambda x, y: lambda upstream: {"y": upstream * 3.0, "x": upstream * 2.0},
    "numbers": lambda x, y: lambda upstream: (2.0, 3),
    "nested lists": lambda x, y: lambda upstream: ([2.0] * 3, np.full(3, 3.0)),
    "broadcast": lambda x, y: lambda upstream: (ops.stack([upstream, upstream]), upstream * 3.0),
}


@EACH
@pytest.mark.parametrize("form", FORMS)
def test_forms(backend, form):
    f = custom_gradient(lambda x, y: (x * y, FORMS[form](x, y)))
    a, b = grads(f, on(backend, X), on(backend, X + 1))
    np.testing.assert_allclose(a, np.full(3, 2.0))
    np.testing.assert_allclose(b, np.full(3, 3.0))


@EACH
def test_callable_with_its_own_signature(backend):
    """R functions look like this in Python."""

    class Callback:
        __signature__ = inspect.Signature(
            [inspect.Parameter(n, inspect.Parameter.POSITIONAL_OR_KEYWORD) for n in ("x", "upstream")]
        )

        def __call__(self, *args, **kwargs):
            return kwargs["upstream"] * args[0]

    def plain(*args, **kwargs):
        return kwargs["upstream"] * args[0]

    plain.__signature__ = Callback.__signature__
    for gradient in (Callback(), plain):
        f = custom_gradient(lambda x, gradient=gradient: (x * 1.0, gradient))
        np.testing.assert_allclose(grads(f, on(backend, X))[0], X)


@EACH
def test_upstreams_of_several_outputs(backend):
    for gradient in (
        lambda a, b: a + b * 10,
        lambda upstream: upstream[0] + upstream[1] * 10,
        lambda *args, upstream=None: args[0] + upstream[1] * 10,
        lambda x, a, b: a + b * 10,
    ):
        f = custom_gradient(lambda x, gradient=gradient: ((x * 1.0, x * 2.0), gradient))
        found = grads(lambda x, f=f: f(x)[0] * 3.0 + f(x)[1], on(backend, X))[0]
        np.testing.assert_allclose(found, np.full(3, 13.0))


@EACH
def test_integer_inputs_and_numbers(backend):
    @custom_gradient
    def f(x, index, k):
        return ops.take(x, index) * k, lambda upstream: (upstream * ops.one_hot(index, 3) * k, None, None)

    index = backends.lookup(backend).convert([1])
    np.testing.assert_allclose(grads(lambda x: f(x, index, 4), on(backend, X))[0], [0, 4, 0])


def test_call_without_tensors():
    assert custom_gradient(lambda x: (x + 1, lambda upstream: upstream))(2) == 3


@EACH
def test_complex(backend):
    """The gradient of a real loss is dL/dRe + i dL/dIm; for a holomorphic value that is g * conj(f')."""
    z = backends.lookup(backend).convert(np.array([1.0 + 2.0j, -0.5j]))
    own = custom_gradient(lambda z: (z * z, lambda upstream: upstream * ops.conj(2 * z)))

    def loss(f):
        return lambda z: ops.sum(ops.square(ops.abs(f(z))))

    np.testing.assert_allclose(
        np.asarray(gradops.grad(loss(own))(z)), np.asarray(gradops.grad(loss(lambda z: z * z))(z))
    )


# --- how often


@EACH
def test_gradient_function_runs_once_per_pass_and_only_if_needed(backend):
    calls = []

    def gradient(a, b):
        calls.append(1)
        return a * 2.0 + b

    f = custom_gradient(lambda x: ((x * 2.0, x * 3.0), gradient))
    x = on(backend, X)
    f(x)
    assert calls == []
    gradops.grad(lambda x: ops.sum(f(x)[0] + f(x)[1] * 0.0 + x))(x)
    assert len(calls) == 2
    calls.clear()
    gradops.grad(lambda x: (lambda y: ops.sum(y[0] * y[1] + y[0]))(f(x)))(x)
    assert len(calls) == 1
    if backend == "jax" and versions.older("jax", "0.10"):
        return  # it also runs gradient functions for zero upstream gradients
    calls.clear()
    gradops.grad(lambda x: ops.sum(x) + 0 * ops.sum(gradops.stop_gradient(f(x)[0])))(x)
    assert calls == []


# --- closures


@EACH
@pytest.mark.parametrize("where", ["function", "gradient function"])
def test_value_dependent_decisions(backend, where):
    """An eager derivative passes arrays with values, which R functions need."""
    if where == "gradient function" and backend == "jax":
        versions.needs("jax", "0.7", "what a gradient function computes has no value")

    @custom_gradient
    def f(x):
        positive = lambda: float(ops.sum(x)) > 0  # noqa: E731
        decided = positive() if where == "function" else None
        return ops.sin(x), lambda upstream: upstream * (2.0 if (positive() if decided is None else decided) else 3.0)

    np.testing.assert_array_equal(grads(f, on(backend, X)), [[2.0, 2.0, 2.0]])
    np.testing.assert_array_equal(grads(f, on(backend, -X)), [[3.0, 3.0, 3.0]])


@EACH
def test_closures_are_correct_or_refused(backend):
    """The closed-over tensor needs a gradient itself: every backend reports it."""
    f = {"numpy": gradops.grad, "torch": gradops.grad, "tensorflow": gradops.grad, "jax": gradops.grad}[backend]

    def loss(w):
        return ops.sum(custom_gradient(lambda x: (x * w, lambda upstream: upstream * w))(on(backend, X)))

    with pytest.raises(GradientError, match="not an argument") as caught:
        f(loss)(on(backend, X))
    assert "argument" in caught.value.hint


@EACH
def test_returning_a_closed_over_tensor_is_refused(backend):
    """The closed-over leaf is returned unchanged, so no recorded operation leads to it."""
    with pytest.raises(GradientError, match="not an argument"):
        gradops.grad(lambda w: ops.sum(custom_gradient(lambda x: (w, lambda upstream: upstream))(on(backend, X))))(
            on(backend, X)
        )
    if backend == "torch":
        import torch

        w, x = (torch.ones(3, requires_grad=True) for _ in range(2))
        with pytest.raises(GradientError, match="not an argument"):
            custom_gradient(lambda x: (w, lambda upstream: upstream))(x)

        class Product(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, w):
                ctx.variable = x  # as graph nodes of leaves have it
                return x * w

        for f in (Product.apply, torch.mul, lambda x, w: x + 2 * w, lambda x, w: 2 * x + w):
            for inner in (f, lambda x, w, f=f: 1 + f(x, w)):
                with pytest.raises(GradientError, match="not an argument"):
                    custom_gradient(lambda x, f=inner: (f(x, w), lambda upstream: upstream))(x)


@EACH
def test_constant_closures_are_allowed(backend):
    w = backends.lookup(backend).convert(np.array([1.0, 2.0, 3.0]))
    f = custom_gradient(lambda x: (x * w, lambda upstream: upstream * w * 10.0))
    np.testing.assert_allclose(grads(f, on(backend, X))[0], [10, 20, 30])
    stopped = custom_gradient(lambda x: (x * gradops.stop_gradient(w), lambda upstream: upstream * w * 10.0))
    np.testing.assert_allclose(grads(stopped, on(backend, X))[0], [10, 20, 30])


def test_python_numbers_under_jax_grad():
    import jax

    triple = custom_gradient(lambda x: (x * x, lambda upstream: upstream * x * 3.0))
    for compile in (lambda f: f, jax.jit):
        assert float(compile(jax.grad(triple))(2.0)) == 6.0
        assert float(compile(jax.grad(lambda x: triple(triple(x))))(2.0)) == 72.0
        assert float(compile(jax.grad(jax.grad(triple)))(2.0)) == 3.0


def test_inference_tensors():
    """Inference tensors have no version counter."""
    torch = pytest.importorskip("torch")
    with torch.inference_mode():
        c = torch.tensor(3.0)
        assert custom_gradient(lambda x: 2 * x, lambda x, upstream: upstream * x)(c) == 6
    x = torch.tensor(1.0, requires_grad=True)
    custom_gradient(lambda x: (2 * x, lambda upstream: upstream * c.clone()))(x).backward()
    assert x.grad == 3


@pytest.mark.parametrize("recorded", [False, True])
def test_closure_with_a_tangent_is_refused(recorded):
    """Holds whether or not the argument is recorded for a backward pass."""
    torch = pytest.importorskip("torch")
    from torch.autograd import forward_ad

    x = torch.tensor(2.0, requires_grad=recorded)
    with forward_ad.dual_level():
        c = forward_ad.make_dual(torch.tensor(3.0), torch.tensor(1.0))
        f = custom_gradient(lambda x: (x * c, lambda upstream: upstream * 3.0))
        with pytest.raises(GradientError, match="is not an argument"):
            f(x)


def test_upstream_gradients_and_integer_gradients_of_jax():
    """``jax.vjp`` passes Python numbers unconverted; the gradient of an integer is an empty float0 array."""
    import jax

    @custom_gradient
    def f(x, n):
        return (x * n, x + 1), lambda g, h: (3 * g + h, np.zeros((), jax.dtypes.float0))

    x, n = jax.numpy.asarray(2.0), jax.numpy.asarray(3)
    (g,) = jax.vjp(lambda x: f(x, n), x)[1]((1.0, 10.0))
    np.testing.assert_allclose(g, 13)
    assert g.dtype == x.dtype
    for wrap in (lambda f: f, jax.jit):
        g, of_n = wrap(jax.grad(lambda x, n: f(x, n)[0], argnums=(0, 1), allow_int=True))(x, n)
        np.testing.assert_allclose(g, 3)
        assert of_n.dtype == jax.dtypes.float0

    def looped(x, n):
        return jax.lax.scan(lambda carry, _: ((f(*carry)[0], carry[1]), None), (x, n), None, length=2)[0][0]

    np.testing.assert_allclose(jax.grad(looped)(x, n), 9)


def test_closures_in_jax_programs():
    import jax
    import jax.numpy as jnp

    x = jnp.asarray(X, float)

    def own(z, u):
        return custom_gradient(lambda z: (z * u, lambda upstream: upstream * 7.0 * u))(z)

    def loop(x, us):
        return jax.lax.scan(lambda c, u: (own(c, u), None), x, us)[0].sum()

    us = jnp.array([2.0, 3.0])
    for f in (loop, jax.jit(loop)):
        np.testing.assert_allclose(jax.grad(f)(x, us), np.full(3, 49.0 * 6), rtol=1e-6)
        np.testing.assert_allclose(jax.jit(jax.grad(f))(x, us), np.full(3, 49.0 * 6), rtol=1e-6)
        with pytest.raises(GradientError, match="not an argument"):
            jax.grad(f, 1)(x, us)
    rows = jnp.stack([x, x + 1])
    np.testing.assert_allclose(jax.vmap(jax.grad(loop), (0, None))(rows, us), np.full((2, 3), 294.0), rtol=1e-6)
    summed = jax.grad(lambda x: jax.vmap(lambda r: own(r, us[0]).sum())(x).sum())
    np.testing.assert_allclose(summed(rows), 14 + 0 * rows)


@pytest.mark.long
def test_second_derivative_in_a_jax_loop():
    """`jax.custom_gradient` and, in loops, `jax.custom_jvp` lose the value's rule in the first derivative."""
    import jax
    import jax.numpy as jnp

    @custom_gradient
    def spike(x):
        return ops.cast(x > 1.0, x.dtype), lambda upstream: upstream / (ops.abs(x - 1.0) + 1.0) ** 2

    inputs = jnp.array([1.0, 2.5, -0.5, 3.0])

    def step(carry, u):
        v = 0.9 * carry[0] + carry[1] * u
        z = spike(v)
        return (v - z, carry[1]), z

    def scanned(w):
        z = jax.lax.scan(step, (jnp.zeros(()), w), inputs)[1]
        return (z * inputs).sum() + w * (z * z).sum()

    def unrolled(w):
        carry, zs = (jnp.zeros(()), w), []
        for u in inputs:
            carry, z = step(carry, u)
            zs.append(z)
        z = jnp.stack(zs)
        return (z * inputs).sum() + w * (z * z).sum()

    def second(f):
        return jax.grad(lambda w: jax.grad(f)(w) ** 2)

    def by_hand(w):  # the first derivative written out with the spike's rule
        v, z = jnp.zeros(()), jnp.zeros(())
        dv = dz = d2v = d2z = jnp.zeros(())
        first = derivative = 0.0
        for u in inputs:
            v, dv, d2v = 0.9 * (v - z) + w * u, 0.9 * (dv - dz) + u, 0.9 * (d2v - d2z)
            slope = 1 / (jnp.abs(v - 1) + 1) ** 2
            bend = -2 * jnp.sign(v - 1) / (jnp.abs(v - 1) + 1) ** 3
            z, dz, d2z = jnp.where(v > 1, 1.0, 0.0), slope * dv, bend * dv**2 + slope * d2v
            first += u * dz + z * z + w * 2 * z * dz
            derivative += u * d2z + 4 * z * dz + w * 2 * (dz**2 + z * d2z)
        return 2 * first * derivative

    w = jnp.array(0.7)
    for f in (scanned, unrolled):
        np.testing.assert_allclose(second(f)(w), by_hand(w), rtol=1e-5)
        np.testing.assert_allclose(jax.jit(second(f))(w), by_hand(w), rtol=1e-5)
        np.testing.assert_allclose(jax.vmap(second(f))(w[None]), by_hand(w), rtol=1e-5)


def test_closures_in_tensorflow():
    import tensorflow as tf

    x, w, v = tf.constant(2.0), tf.constant(3.0), tf.Variable(3.0)

    def closing_over(w):
        return custom_gradient(lambda x: (x * w, lambda upstream: upstream * w))

    for f in map(closing_over, (w, v)):
        for call in (f, tf.function(f)):
            with tf.GradientTape() as tape, pytest.raises(GradientError, match="not an argument"):
                tape.watch([x, w])
                tape.gradient(call(x), x)

    @tf.function(autograph=False)
    def from_the_function(x, w):
        return custom_gradient(lambda x: (x * w, lambda upstream: upstream * w))(x)

    with pytest.raises(GradientError, match="not an argument"):
        from_the_function(x, w)

    @tf.function(autograph=False)
    def constants(x, n):
        size = tf.cast(tf.shape(n)[0], tf.float32)
        return custom_gradient(lambda x: (x * w * size, lambda upstream: upstream * w * size))(x)

    with tf.GradientTape() as tape:
        tape.watch(x)
        y = constants(x, tf.ones(5))
    assert float(tape.gradient(y, x)) == 15.0


def test_gradient_function_closures_are_differentiated():
    import tensorflow as tf
    import torch

    def g(x, w):
        return custom_gradient(lambda x: (x * 1.0, lambda upstream: upstream * x * w))(x)

    x, w = tf.constant(2.0), tf.constant(3.0)
    with tf.GradientTape() as outer:
        outer.watch([x, w])
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = g(x, w)
        first = inner.gradient(y, x)
    assert [float(d) for d in outer.gradient(first, [x, w])] == [3.0, 2.0]
    x, w = (torch.tensor(v, requires_grad=True) for v in (2.0, 3.0))
    (first,) = torch.autograd.grad(g(x, w), x, create_graph=True)
    assert [float(d) for d in torch.autograd.grad(first, [x, w])] == [3.0, 2.0]
    x, w = (Variable(np.array(v), requires_grad=True) for v in (2.0, 3.0))
    (first,) = autodiff.grad(g(x, w), x, create_graph=True)
    assert [d.item() for d in autodiff.grad(first, [x, w])] == [3.0, 2.0]


# --- inside the libraries


def test_tensorflow_variables():
    import tensorflow as tf

    v = tf.Variable([1.0, 2.0])
    f = custom_gradient(lambda x, w: (x * w, lambda upstream: (upstream * w, upstream * x * 10.0)))

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(f(x, v))
        return tape.gradient(y, v)

    np.testing.assert_allclose(step(tf.constant([3.0, 4.0])), [30, 40])
    with tf.GradientTape() as tape:
        y = f(tf.constant([3.0, 4.0]), v)
    np.testing.assert_allclose(tape.gradient(y, v), [30, 40])


def takes_variables(custom, w, b):
    """A function with a gradient for its two variables that is not its derivative."""
    import tensorflow as tf

    @custom
    def f(x):
        y = tf.exp(x * w) * b

        def gradient(upstream, variables=None):
            found = {w.ref(): 3 * upstream * x * y, b.ref(): upstream * x * y / b}
            return 2 * upstream * w * y, [found[v.ref()] for v in variables]

        return y, gradient

    return f


@pytest.mark.parametrize("compiled", [None, False, True], ids=["eager", "graph", "XLA"])
def test_gradients_of_tensorflow_variables_match_tensorflow(compiled):
    import tensorflow as tf

    def found(custom):
        w, b, x = tf.Variable(0.3, name="w"), tf.Variable(2.0, name="b"), tf.constant(0.7)
        f = takes_variables(custom, w, b)

        def derivatives():
            with tf.GradientTape(persistent=True) as second:
                second.watch(x)
                with tf.GradientTape() as first:
                    first.watch(x)
                    y = f(x) ** 2
                once = first.gradient(y, [x, w, b])
            return y, once, [second.gradient(g, [x, w, b]) for g in once]

        run = derivatives if compiled is None else tf.function(derivatives, jit_compile=compiled)
        return [tf.nest.flatten(run()) for _ in range(2)]

    for mine, other in zip(found(custom_gradient), found(tf.custom_gradient), strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-5)


def test_gradients_of_variables_without_arguments_and_of_rows():
    import tensorflow as tf

    w, table = tf.Variable(3.0), tf.Variable(np.ones((4, 2)))
    without = custom_gradient(lambda: (w * w, lambda upstream, variables: ([], [upstream * 7.0])))

    @custom_gradient
    def rows(places, scale):
        with tf.GradientTape() as tape:
            y = tf.gather(table, places) * scale
        return y, lambda upstream, *, variables=None: ((None, upstream), tape.gradient(y, variables, upstream))

    def step(f, *xs):
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(f(*xs))
        return tape.gradient(y, w if f is without else table)

    for run in (step, lambda *xs: tf.function(lambda: step(*xs))()):
        assert float(run(without)) == 7
        np.testing.assert_array_equal(run(rows, tf.constant([0, 2, 2]), 2.0), [[2, 2], [0, 0], [4, 4], [0, 0]])


def test_tangents_of_tensorflow_variables():
    """``tf.custom_gradient`` ignores the gradient function in forward mode."""
    import tensorflow as tf

    w, b, x = tf.Variable(0.3), tf.Variable(2.0), tf.constant(0.7)

    def tangent(f):
        with tf.autodiff.ForwardAccumulator([w, b], [tf.constant(1.0), tf.constant(0.5)]) as accumulator:
            y = f(x)
        return accumulator.jvp(y)

    y = np.exp(0.7 * 0.3) * 2
    for _ in range(2):
        for run in (tangent, lambda f: tf.function(lambda: tangent(f))()):
            np.testing.assert_allclose(run(takes_variables(custom_gradient, w, b)), 3 * 0.7 * y + 0.5 * 0.7 * y / 2)
    f = custom_gradient(lambda x: (x * w, lambda upstream: upstream * 10.0))
    for run in (tangent, lambda f: tf.function(lambda: tangent(f), autograph=False)()):
        with pytest.raises(GradientError, match="not an argument"):
            run(f)


def test_a_gradient_function_with_variables_loses_no_other_gradient():
    import tensorflow as tf

    w, x, c = tf.Variable(0.3), tf.constant(0.7), tf.constant(3.0)
    f = custom_gradient(lambda x: (x * w * c, lambda upstream, variables=None: (upstream, [upstream])))

    def step(f):
        with tf.GradientTape() as tape:
            tape.watch([x, c])
            y = f(x)
        return tape.gradient(y, w)

    for run in (step, step, lambda f: tf.function(lambda: step(f), autograph=False)()):
        with pytest.raises(GradientError, match="not an argument"):
            run(f)
    for returned in (lambda u: u, lambda u: (u, u), lambda u: (u, [u, u])):
        g = custom_gradient(lambda x, r=returned: (x * w, lambda upstream, variables=None: r(upstream)))
        with pytest.raises(GradientError, match="(?s)a list of 1 gradients.*return gradients, variable_gradients"):
            step(g)
    calls = iter([True, False])  # the second gradient function returns no gradient of `w`

    def changing(x):
        if next(calls, False):
            return x * w, lambda upstream, variables: (upstream, [upstream])
        return x * w, lambda upstream: upstream

    g = custom_gradient(changing)
    with pytest.raises(GradientError, match="not an argument"):
        step(g), step(g)


@pytest.mark.parametrize("backend", ["numpy", "torch", "tensorflow", "jax"])
def test_a_gradient_function_that_takes_variables_works_everywhere(backend):
    x = gradops.to_backend(np.array(2.0), backend)
    optional = custom_gradient(lambda x: (x * 2, lambda upstream, variables=None: upstream * 5))
    needed = custom_gradient(lambda x: (x * 2, lambda upstream, variables: (upstream * 5, variables)))
    given = custom_gradient(lambda x, variables: (x, lambda upstream: (upstream * 5, None)))  # an argument of this name
    of_inputs = custom_gradient(lambda v: v * 1, lambda variables, upstream: upstream * 5 * variables / variables)
    for f in (optional, needed, lambda x: given(x, 1.0), of_inputs):
        assert float(gradops.grad(f)(x)) == 5


def test_torch_func():
    import torch

    f = custom_gradient(lambda x: (x * x, lambda upstream: upstream * x * 5.0))
    x = torch.tensor([2.0, 3.0])
    np.testing.assert_allclose(torch.func.grad(lambda x: f(x).sum())(x), [10, 15])
    np.testing.assert_allclose(torch.func.vmap(torch.func.grad(f))(x), [10, 15])
    np.testing.assert_allclose(torch.func.vmap(f)(x), [4, 9])
    np.testing.assert_allclose(torch.func.jacrev(f)(x), np.diag([10, 15]))


@pytest.mark.parametrize("wrapped", [gradops.jit, lambda f: custom_gradient(f, lambda upstream: upstream)])
def test_signature_introspection_of_a_wrapped_function(wrapped):
    """Keras' `Lambda` uses `inspect.getfullargspec`, which does not follow `__wrapped__`."""

    def f(x, k=2.0):
        return x * k

    assert inspect.getfullargspec(wrapped(f)) == inspect.getfullargspec(f)
    assert inspect.signature(wrapped(f)) == inspect.signature(f)


def test_torch_compile():
    import torch

    versions.needs("torch", "2.12", "a custom gradient breaks the graph")
    f = custom_gradient(lambda x: (x * x, lambda upstream: upstream * x * 5.0))
    x = torch.tensor([2.0, 3.0], requires_grad=True)
    torch._dynamo.reset()
    torch.compile(lambda x: f(x).sum(), fullgraph=True, backend="aot_eager")(x).backward()
    np.testing.assert_allclose(x.grad, [10, 15])
    torch._dynamo.reset()
    whole = torch.func.grad(lambda x: f(x).sum())
    with pytest.raises(torch._dynamo.exc.Unsupported):  # torch would ignore the custom gradient there
        torch.compile(whole, fullgraph=True, backend="aot_eager")(x.detach())
    torch._dynamo.reset()
    np.testing.assert_allclose(torch.compile(whole, backend="aot_eager")(x.detach()), [10, 15])


@pytest.mark.parametrize("compiled", [False, True])
def test_torch_training(compiled):
    """A module with a custom gradient trains: with an optimizer, under autocast, with a closed-over constant."""
    import torch

    @custom_gradient
    def relu_that_leaks(x):
        return torch.relu(x), lambda upstream: upstream * torch.where(x > 0, 1.0, 0.1)

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.last = torch.nn.Linear(2, 16), torch.nn.Linear(16, 1)

        def forward(self, x):
            return self.last(relu_that_leaks(self.first(x)))

    torch.manual_seed(0)
    torch._dynamo.reset()
    net, x = Net(), torch.randn(64, 2)
    y = x[:, :1] * x[:, 1:]
    call = torch.compile(net, backend="aot_eager") if compiled else net
    optimizer = torch.optim.Adam(net.parameters(), 0.02)
    losses = []
    for _ in range(60):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = ((call(x).float() - y) ** 2).mean()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < 0.3 * losses[0]


def test_in_place_after_torch_custom_gradient():
    import torch

    x = torch.tensor([2.0, 3.0], requires_grad=True)
    y = custom_gradient(lambda x: (x * x, lambda upstream: upstream * x * 5.0))(x)
    y.add_(1.0)
    y.sum().backward()
    np.testing.assert_allclose(x.grad, [10, 15])


def test_non_tensor_arguments_pass_through():
    f = custom_gradient(lambda x: (x * 2.0, lambda upstream: upstream * 5.0))
    x = Variable(X, requires_grad=True)
    with autodiff.no_grad():
        assert not f(x).requires_grad
    assert not f(Variable(X)).requires_grad
    ops.sum(f(x)).backward()
    np.testing.assert_allclose(x.grad.data, np.full(3, 5.0))


def test_attributes_are_kept():
    @custom_gradient
    def named(x):
        """Its docstring."""
        return x, lambda upstream: upstream

    assert (named.__name__, named.__doc__) == ("named", "Its docstring.")
    assert "named" in repr(named)


# --- bad input


@EACH
def test_missing_gradient_function(backend):
    with pytest.raises(GradientError, match="pair of its value and a gradient function; got a") as caught:
        custom_gradient(lambda x: x * 2.0)(on(backend, X))
    assert caught.value.argument == "f"
    with pytest.raises(GradientError, match="got a tuple of 3"):
        custom_gradient(lambda x: (x, x, x))(on(backend, X))
    with pytest.raises(ArgumentTypeError, match="`f` must be a function; got int"):
        custom_gradient(3)
    with pytest.raises(ArgumentTypeError, match="`gradient` must be a function; got int"):
        custom_gradient(lambda x: x, 3)


@EACH
@pytest.mark.parametrize(
    "returned, error, message",
    [
        (lambda g: (g, g, g), GradientError, r"must return 2 gradients, one for each argument; got 3"),
        (lambda g: g, GradientError, r"must return 2 gradients, one for each argument; got 1"),
        (lambda g: {"x": g, "z": g}, GradientError, r"named 'z'; the arguments are x, y"),
        (lambda g: (ops.stack([g, g], -1), g), ShapeError, r"shape \(3, 2\) for an input of shape \(3,\)"),
        (lambda g: (np.ones(2), g), ShapeError, r"shape \(2,\) for an input of shape \(3,\)"),
        (lambda g: (ops.sum(g), g), ShapeError, r"shape \(\) for an input of shape \(3,\)"),
        (lambda g: (np.float64(1.0), g), ShapeError, r"shape \(\) for an input of shape \(3,\)"),
        (lambda g: ("text", g), ArgumentTypeError, "must return tensors, numbers or None; got str"),
        (lambda g: (object(), g), ArgumentTypeError, "must return tensors, numbers or None; got object"),
    ],
    ids=["too many", "too few", "unknown name", "shape", "array", "sum", "number of NumPy", "text", "object"],
)
def test_bad_gradients(backend, returned, error, message):
    f = custom_gradient(lambda x, y: (x * y, lambda upstream: returned(upstream)))
    with pytest.raises(error, match=message):
        grads(f, on(backend, X), on(backend, X))
    np.testing.assert_allclose(grads(lambda x, y: x * y, on(backend, X), on(backend, X))[0], X)  # no state is left


@EACH
@pytest.mark.parametrize("form", ["alone", "with inputs", "dict", "compiled", "rows"])
def test_scalar_gradient_for_an_array_is_refused(backend, form):
    """Sums of plain arrays are NumPy scalars and count as mistakes; a Python number is a constant gradient."""
    x = backends.lookup(backend).convert(X)
    f = {
        "with inputs": custom_gradient(lambda x: x * x, lambda x, upstream: ops.sum(upstream * x)),
        "dict": lambda x: custom_gradient(lambda d: (d["a"] * 2, lambda u: {"a": ops.sum(u)}))({"a": x}),
    }.get(form, custom_gradient(lambda x: (x * x, lambda upstream: ops.sum(upstream))))
    derivative = gradops.grad(lambda x: ops.sum(f(x)))
    derivative = {"compiled": gradops.jit(derivative), "rows": lambda x: autodiff_rows(f, x)}.get(form, derivative)
    with pytest.raises(ShapeError, match=r"shape \(\) for an input of shape \(3,\)"):
        derivative(x)
    (constant_gradient,) = grads(custom_gradient(lambda x: (x * x, lambda upstream: 2.0)), x)
    np.testing.assert_allclose(constant_gradient, [2.0, 2.0, 2.0])


def autodiff_rows(f, x):
    return gradops.jacobian(lambda x: f(x) * 1.0, strategy="reverse-mode")(x)


@EACH
def test_gradient_function_with_too_many_arguments(backend):
    f = custom_gradient(lambda x: (x * 1.0, lambda a, b, c, d: a))
    with pytest.raises(GradientError, match=r"takes 4 arguments \(a, b, c, d\)"):
        grads(f, on(backend, X))


@EACH
def test_callback_errors_keep_their_message(backend):
    def fail(upstream):
        raise RuntimeError("the user's own message")

    f, x = custom_gradient(lambda x: (x * 1.0, fail)), on(backend, X)
    with pytest.raises(RuntimeError, match="the user's own message"):
        grads(f, x)
    assert autodiff.is_grad_enabled()


def test_tensors_of_two_frameworks():
    f = custom_gradient(lambda x, y: (x, lambda upstream: upstream))
    with pytest.raises(MixedBackendsError, match="custom_gradient.*torch"):
        f(on("torch", X), on("jax", X))


@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_gradient_function_reading_an_overwritten_tensor_is_refused(library):
    """The gradient would use the new values. Gradient functions that read a copy, or nothing, are allowed."""

    def leaf():
        x = backends.lookup(library).convert(np.array([1.0, 2.0]))
        return x.requires_grad_() if library == "torch" else gradops.Variable(x, requires_grad=True)

    def outcome(make):
        x = leaf()
        z = ops.copy(x)
        y = make(z)
        z += 10.0
        (ops.sum(y) + ops.sum(z) * 0.0).backward()
        return np.asarray(x.grad.tolist())

    reads = gradops.custom_gradient(lambda v: (ops.sin(v), lambda upstream: upstream * v))
    takes = gradops.custom_gradient(ops.sin, lambda v, upstream: upstream * v)
    for refused in (reads, takes):
        with pytest.raises(GradientError, match="written in place after the operation"):
            outcome(refused)

    def copying(v):
        own = ops.copy(v)
        return ops.sin(v), lambda upstream: upstream * own

    np.testing.assert_allclose(outcome(gradops.custom_gradient(copying)), [1, 2])
    np.testing.assert_allclose(outcome(lambda v: gradops.scaled_gradient(v, -2.0)), [-2, -2])
