"""Ops of other packages through ``gradops.extend``. The declared rules always differ from the natural derivatives."""

from __future__ import annotations

import copy
import pickle
import warnings

import numpy as np
import pytest
from parity import BACKENDS, numpy, tensors
from scipy import special

import gradops
from gradops import Variable, autodiff, backends, errors, extend, functional, ops

X = np.array([0.5, 2.0])


@extend.op(elementwise=True)
def soft_tanh(x):
    """A tanh with thicker tails, whose declared derivative is three times its value."""
    return x / (1 + ops.abs(x))


extend.derivative(soft_tanh, x=lambda g, y: 3 * g * y)


@extend.op
def weighted(x: extend.Tensor, w: extend.Operand, k=2):
    """Sum the products of two arguments, scaled by a setting; there is no gradient with respect to ``w``."""
    return ops.sum(x * w, axis=-1) * k


extend.derivative(weighted, x=lambda g, w, k, shape: ops.broadcast_to(5 * ops.expand_dims(g, -1) * w * k, shape))


@extend.op
def joined(xs: extend.Tensors):
    return ops.sum(ops.stack(xs), axis=0)


extend.derivative(joined, xs=lambda g, xs, shapes: [g * (i + 2) * x for i, x in enumerate(xs)])


@extend.op
def pair(x, n: extend.Integer = 2):
    return ops.sin(x), x**n


extend.derivative(pair, several=True, x=lambda g, x, y: g[0] * y[1] + 7 * g[1] * x)


@extend.op(elementwise=True)
def lower_gamma(a: extend.Tensor, x: extend.Tensor):
    """Compute the regularised lower incomplete gamma function with kernels in C alone."""
    ...


extend.derivative(lower_gamma, x=lambda g, a, x: g * ops.exp((a - 1) * ops.log(x) - x - ops.special.lgamma(a)))
extend.kernel(lower_gamma, "numpy", special.gammainc)


@extend.kernel(lower_gamma, "torch")
def _lower_gamma_in_torch(a, x):
    import torch

    return torch.special.gammainc(a, x)


@extend.kernel(lower_gamma, "jax")
def _lower_gamma_in_jax(a, x):
    import jax

    return jax.scipy.special.gammainc(a, x)


@extend.kernel(lower_gamma, "tensorflow")
def _lower_gamma_in_tensorflow(a, x):
    import tensorflow as tf

    return tf.math.igamma(a, x)


def total(f):
    return lambda *xs: ops.sum(f(*xs))


@pytest.mark.short_cases(2, "jax")
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    "f, value, slope, curvature",
    [
        (soft_tanh, X / (1 + X), 3 * X / (1 + X), 9 * X / (1 + X)),
        (lambda x: weighted(x, 3.0), 6 * X.sum(), 30 + 0 * X, 0 * X),
        (lambda x: weighted(x, X, k=1), X @ X, 5 * X, 0 * X),
        (lambda x: joined([x, 2 * x]), 3 * X, 14 * X, [14.0, 14.0]),
        (lambda x: pair(x)[0], np.sin(X), X**2, 7 * X),
        (lambda x: pair(x, 3)[1], X**3, 7 * X, [7.0, 7.0]),
        (lambda x: lower_gamma(2.0, x), 1 - np.exp(-X) * (1 + X), X * np.exp(-X), (1 - X) * np.exp(-X)),
    ],
)
def test_rule_is_the_derivative_to_any_order(f, value, slope, curvature, backend):
    x = tensors(X, backend)
    first = gradops.grad(total(f))
    for way in (lambda f: f, gradops.jit):
        if backend == "tensorflow" and way is gradops.jit:
            warnings.simplefilter("ignore")
        np.testing.assert_allclose(numpy(way(f)(x)) if f(x) is not None else 0, value, rtol=1e-6)
        np.testing.assert_allclose(numpy(way(first)(x)), slope, rtol=1e-6)
        np.testing.assert_allclose(numpy(way(gradops.grad(total(first)))(x)), curvature, rtol=1e-6)


@pytest.mark.parametrize("backend", BACKENDS)
def test_transformations(backend):
    x = tensors(X, backend)
    slopes = 3 * X / (1 + X)
    _, product = functional.jvp(soft_tanh, x, x)
    np.testing.assert_allclose(numpy(product), slopes * X, rtol=1e-6)
    for strategy in ("reverse-mode", "forward-mode"):
        for vectorize in (False, True):
            found = functional.jacobian(soft_tanh, x, strategy=strategy, vectorize=vectorize)
            np.testing.assert_allclose(numpy(found), np.diag(slopes), rtol=1e-6)
    np.testing.assert_allclose(numpy(functional.hessian(total(soft_tanh), x)), np.diag(3 * slopes), rtol=1e-6)
    found = gradops.grad(total(gradops.checkpoint(soft_tanh)))(x)
    np.testing.assert_allclose(numpy(found), slopes, rtol=1e-6)


@pytest.mark.parametrize("backend", [b for b in BACKENDS if b != "jax"])  # JAX differentiates what it traces
def test_kernel_may_be_any_function(backend):
    """The rule is the derivative, so the library need not trace the kernel."""

    @extend.op(elementwise=True)
    def foreign(x): ...

    extend.derivative(foreign, x=lambda g, x, y: g * x * y)
    owner = backends.lookup(backend)
    extend.kernel(foreign, backend, lambda x: owner.convert(special.i0(owner.to_numpy(x))))
    x, value = tensors(X, backend), special.i0(X)
    np.testing.assert_allclose(numpy(gradops.grad(total(foreign))(x)), X * value)
    again = numpy(gradops.grad(total(gradops.grad(total(foreign))))(x))
    np.testing.assert_allclose(again, value + X * X * value)


def test_torch_transformations():
    torch = pytest.importorskip("torch")
    x, slopes = torch.tensor(X), 3 * X / (1 + X)
    np.testing.assert_allclose(torch.func.vmap(torch.func.grad(soft_tanh))(x), slopes)
    np.testing.assert_allclose(torch.func.vmap(torch.func.grad(torch.func.grad(soft_tanh)))(x), 3 * slopes)
    np.testing.assert_allclose(torch.func.jvp(soft_tanh, (x,), (x,))[1], slopes * X)
    leaf = x.clone().requires_grad_()
    compiled = torch.compile(total(soft_tanh), fullgraph=True, backend="aot_eager")
    compiled(leaf).backward()
    np.testing.assert_allclose(leaf.grad, slopes)
    seen = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: (seen.append(t), t)[1], lambda t: t):
        y = soft_tanh(leaf)
    assert len(seen) == 1  # the result, and no tensor of the body
    np.testing.assert_allclose(torch.autograd.grad(y.sum(), leaf)[0], slopes)


def test_torch_saves_only_what_a_rule_names():
    torch = pytest.importorskip("torch")
    x, w = (torch.tensor(v, requires_grad=True) for v in (X[:, None] * X, X))
    for y, saved in ((soft_tanh(x), [(2, 2)]), (weighted(x, w), [(2,)]), (joined([x, x]), [(2, 2), (2, 2)])):
        assert [tuple(t.shape) for t in y.grad_fn.saved_tensors if t is not None] == saved
        y.sum().backward()


def test_jax_transformations():
    jax = pytest.importorskip("jax")
    x, slopes = tensors(X, "jax"), 3 * X / (1 + X)
    np.testing.assert_allclose(jax.vmap(jax.grad(soft_tanh))(x), slopes, rtol=1e-6)
    np.testing.assert_allclose(jax.jit(jax.vmap(jax.grad(jax.grad(soft_tanh))))(x), 3 * slopes, rtol=1e-6)
    np.testing.assert_allclose(jax.jacfwd(jax.grad(total(soft_tanh)))(x), np.diag(3 * slopes), rtol=1e-6)


def test_jax_traces_a_rule_only_when_differentiating():
    jax = pytest.importorskip("jax")
    traced = 0

    @extend.op(elementwise=True, name="test.traced_later")
    def product(x1: extend.Tensor, x2: extend.Tensor):
        return x1 * x2

    def rule(g, x1, x2):
        nonlocal traced
        traced += 1
        return g * x2

    extend.derivative(product, x1=rule, x2=lambda g, x1, x2: g * ops.exp(x1))
    x = tensors(np.array([0.5, 1.5]), "jax")
    jax.jit(product)(x, x)
    jax.vmap(jax.jit(product))(x, x)
    assert not traced
    by_second = jax.make_jaxpr(jax.jit(jax.grad(lambda a, b: product(a, b).sum(), 1)))(x, x)
    assert traced
    assert "exp" in str(by_second)
    np.testing.assert_allclose(jax.jit(jax.vmap(jax.grad(product, 1)))(x, x), np.exp(x))
    slope = jax.vmap(jax.jit(lambda a, b: jax.grad(product)(a, b)))
    np.testing.assert_allclose(jax.jit(jax.vmap(jax.grad(lambda a: slope(a[None], 2 * a[None])[0])))(x), 2 * np.ones(2))


@pytest.mark.parametrize("around", ["jit", "grad"])
def test_rule_that_closes_over_a_jax_tracer(around):
    jax = pytest.importorskip("jax")

    def scaled(c, x):
        @extend.op(elementwise=True, name="test.closes_over")
        def sine(x: extend.Tensor):
            return ops.sin(x)

        extend.derivative(sine, x=lambda g, x: g * ops.cos(x) * c)
        return ops.sum(sine(x))

    c, x = tensors(np.array(3.0), "jax"), tensors(np.array([0.5, 1.5]), "jax")
    by_x = jax.jit(jax.grad(scaled, 1)) if around == "jit" else jax.grad(jax.jit(scaled), 1)
    np.testing.assert_allclose(by_x(c, x), 3 * np.cos(x))
    assert jax.jit(jax.grad(scaled))(c, x) == 0  # the value does not depend on c, its slope does
    slope = jax.grad(lambda c: jax.numpy.sum(by_x(c, x)))
    np.testing.assert_allclose([slope(c), jax.jit(slope)(c)], np.sum(np.cos(x)))


def test_tensorflow_transformations():
    tf = pytest.importorskip("tensorflow")

    @tf.function
    def curvature(x):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = soft_tanh(x)
            slope = tape.gradient(y, x)
        return outer.gradient(slope, x)

    np.testing.assert_allclose(curvature(tf.constant(X)), 9 * X / (1 + X))


@pytest.mark.parametrize("backend", BACKENDS)
def test_without_a_rule_the_body_or_library_is_differentiated(backend):
    @extend.op(elementwise=True)
    def cubed(x):
        return x * x * x

    x = tensors(X, backend)
    np.testing.assert_allclose(numpy(gradops.grad(total(cubed))(x)), 3 * X**2, rtol=1e-6)
    extend.kernel(cubed, backend, lambda x: x**3)
    np.testing.assert_allclose(numpy(gradops.grad(total(cubed))(x)), 3 * X**2, rtol=1e-6)
    np.testing.assert_allclose(numpy(cubed(x)), X**3, rtol=1e-6)


@pytest.mark.parametrize("backend", BACKENDS)
def test_rule_may_read_a_view_of_its_argument(backend):
    @extend.op
    def halved(x):
        return x / 2

    extend.derivative(halved, x=lambda g, x: g * ops.take(ops.reshape(x, (2, 1)), np.array([0, 1]), 0)[:, 0])
    value, slope = gradops.value_and_grad(total(halved))(tensors(X, backend))
    np.testing.assert_allclose(numpy(value), 1.25)
    np.testing.assert_allclose(numpy(slope), X)


@pytest.mark.parametrize("backend", BACKENDS)
def test_complex_numbers(backend):
    """The rule is that of a holomorphic function, on the tape and in the libraries' autodiff."""

    @extend.op(elementwise=True)
    def rotated(x):
        return x * (1 + 2j)

    extend.derivative(rotated, x=lambda g: g * (3 + 2j))
    z = tensors(np.array([1 + 1j, 2 - 1j]), backend)
    found = gradops.grad(lambda z: ops.sum(ops.real(rotated(z))))(z)
    np.testing.assert_allclose(numpy(found), [3 - 2j] * 2, rtol=1e-6)


def test_declared_facts_are_used():
    """Elementwise ops get sparsity patterns, batching and labels without further declarations."""
    shapes = []

    @extend.op(elementwise=True)
    def noted(x): ...

    extend.derivative(noted, x=lambda g, x: g * x)
    extend.kernel(noted, "numpy", lambda x: (shapes.append(x.shape), x + 1)[1])
    found = functional.jacobian(noted, np.arange(1.0, 5.0), sparse=True)
    assert found.nnz == 4
    np.testing.assert_array_equal(found.toarray(), np.diag([1.0, 2.0, 3.0, 4.0]))
    shapes.clear()
    rows = functional.jacobian(lambda x: noted(ops.matmul(np.ones((3, 2)), x)), X, vectorize=True)
    np.testing.assert_allclose(rows, np.full((3, 2), 2.5))
    assert shapes == [(3,)]
    pandas = pytest.importorskip("pandas")
    series = pandas.Series([1.0, 2.0], index=["a", "b"])
    with pytest.raises(errors.ArgumentError, match="label|index"):
        weighted_pair(Variable(X, requires_grad=True) * series, series[::-1])


@extend.op(elementwise=True)
def weighted_pair(x1: extend.Tensor, x2: extend.Tensor):
    return x1 * x2


def test_messages_name_the_op_and_its_arguments():
    with pytest.raises(errors.ArgumentTypeError, match="`test_extend.soft_tanh`.*`x`"):
        soft_tanh(object())
    with pytest.raises(errors.BackendError, match="test_extend.alone.*not available on the backend"):

        @extend.op
        def alone(x): ...

        alone(X)
    with pytest.raises(errors.GradientError, match="no derivative"):
        extend.kernel(alone, "numpy", np.sin)
        autodiff.grad(alone(Variable(1.0, requires_grad=True)), [])


@pytest.mark.parametrize(
    "make, argument, words",
    [
        (lambda: extend.op(3), "function", "must be a Python function; got"),
        (lambda: extend.op(lambda x: x, name="exp"), "name", "gradops has an op"),
        (lambda: extend.op(lambda x: x, name="my op"), "name", "must be a Python name"),
        (lambda: extend.op(lambda x: x, name="t.f", smooth=True), "smooth", "no fact 'smooth'"),
        (lambda: extend.op(lambda x: x, name="t.f", linear=("z",)), "facts", "no tensor argument `z`"),
        (lambda: extend.op(lambda x=1: x, name="t.f"), "function", "no tensor argument"),
        (lambda: extend.derivative(ops.exp, x=lambda g: g), "op", "extend.op"),
        (lambda: extend.kernel(np.exp, "numpy", np.exp), "op", "extend.op"),
        (lambda: extend.kernel(soft_tanh, "numpy", 3), "function", "must be a function"),
        (lambda: extend.derivative(soft_tanh, z=lambda g: g), "z", "no tensor argument `z`"),
        (lambda: extend.derivative(soft_tanh, x=3), "x", "must be a function"),
        (lambda: extend.derivative(soft_tanh, x=lambda g, w: g), "x", "asks for `w`"),
    ],
)
def test_bad_input(make, argument, words):
    with pytest.raises(errors.GradopsError, match=words) as caught:
        make()
    assert caught.value.argument == argument


def test_ops_can_be_redefined():
    def define(power):
        @extend.op(name="test_extend.again")
        def again(x):
            return x**power

        return again

    first = define(2)
    extend.kernel(first, "numpy", lambda x: 0 * x)
    extend.derivative(first, x=lambda g: 11 * g)
    assert float(first(3.0)) == 0 and float(gradops.grad(first)(3.0)) == 11
    second = define(3)
    assert float(second(3.0)) == 27 and float(gradops.grad(second)(3.0)) == 27


def test_kernels_are_added_to_backends_loaded_later():
    backends.add_kernel("later", "test_extend.soft_tanh", "kernel")
    try:
        made = backends.Backend.__new__(backends.Backend)
        made._kernels, made._later = type("Kernels", (), {})(), {}
        for op, kernel in backends._extending["later"].items():
            made.add_kernel(op, kernel)
        assert made.kernel("test_extend.soft_tanh") == "kernel"
    finally:
        del backends._extending["later"]


def test_ops_are_ordinary_functions():
    assert pickle.loads(pickle.dumps(soft_tanh)) is soft_tanh and copy.deepcopy(soft_tanh) is soft_tanh
    assert soft_tanh.__doc__.startswith("A tanh") and soft_tanh.__name__ == "soft_tanh"
    assert "soft_tanh" not in dir(ops) and "extend" in dir(gradops)
    keras = pytest.importorskip("keras")
    inputs = keras.Input((2,))
    model = keras.Model(inputs, soft_tanh(inputs))
    np.testing.assert_allclose(keras.ops.convert_to_numpy(model(np.array([X], "float32"))), [X / (1 + X)], rtol=1e-6)


@pytest.mark.parametrize("backend", [b for b in BACKENDS if b != "numpy"])
def test_saved_result_of_a_function_has_its_custom_derivative(backend):
    """`backward` reads the saved result, whose derivative is `backward` as well, not that of the operations inside."""

    class Odd(autodiff.Function):
        @staticmethod
        def forward(ctx, x):
            y = ops.tanh(x)
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, g):
            (y,) = ctx.saved_tensors
            return 3 * g * y

    x = tensors(X, backend)
    first = gradops.grad(total(Odd.apply))
    for way in (lambda f: f, gradops.jit):
        np.testing.assert_allclose(numpy(way(gradops.grad(total(first)))(x)), 9 * np.tanh(X), rtol=1e-6)


def test_check_reports_false_declarations():
    x = np.array([0.5, 2.0, -1.5])
    for name in BACKENDS:
        backends.lookup(name)
    extend.check(weighted_pair, x, x[::-1] + 0.25)
    extend.check(soft_tanh, x, natural=False)
    extend.check(joined, [x, 2 * x], natural=False)
    extend.check(weighted, x, x + 1, k=3, natural=False)
    with pytest.raises(errors.GradientError, match="Jacobian|gradient"):
        extend.check(soft_tanh, x)
    for facts, words in (
        ({"elementwise": True}, "is not `elementwise`"),
        ({"moves": True}, "is not `moves`"),
        ({"linear": ("x",)}, "is not linear in `x`"),
    ):

        @extend.op(**facts)
        def turned(x):
            return x[::-1] * x

        with pytest.raises(errors.ArgumentError, match=words):
            extend.check(turned, x)

    @extend.op
    def halved(x):
        return x / 2

    extend.check(halved, x)
    for backend in BACKENDS[1:]:
        extend.kernel(halved, backend, lambda x: x / 3)
        with pytest.raises(errors.BackendError, match=f"the values on {backend}"):
            extend.check(halved, x)
        extend.kernel(halved, backend, lambda x: x / 2)


def test_composed_op_with_a_rule_works_on_each_library_in_turn():
    """All libraries share the body as kernel; each attaches the rule by its own mechanism."""

    @extend.op(elementwise=True)
    def product_of_logs(a, b):
        return ops.log(a) * ops.log(b)

    extend.derivative(product_of_logs, a=lambda g, a, b: g * ops.log(b) / a, b=lambda g, a, b: g * ops.log(a) / b)
    ruled = product_of_logs.op.with_rule
    made = {b: ruled(product_of_logs.op.body, backends.lookup(b).derivatives) for b in BACKENDS if b != "numpy"}
    assert len(set(map(id, made.values()))) == len(made)


def test_tensorflow_functions_keep_watched_tensors():
    """The backward function adds a TensorFlow tensor to what it saved."""
    tf = pytest.importorskip("tensorflow")

    class Cube(autodiff.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x * x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * 5 * (tf.constant([1.0, 2.0], tf.float64) + x) * x

    x = tf.constant(X)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = Cube.apply(x)
        slope = inner.gradient(y, x)
    np.testing.assert_allclose(slope, 5 * (np.array([1.0, 2.0]) + X) * X)
    np.testing.assert_allclose(outer.gradient(slope, x), 5 * (np.array([1.0, 2.0]) + 2 * X))
    with pytest.raises(errors.ArgumentTypeError, match="a function of TensorFlow got a variable"):
        tf.convert_to_tensor(Variable(x, requires_grad=True))
