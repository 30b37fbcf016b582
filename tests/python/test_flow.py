"""stop, scale, gradient() and set_requires_gradient() on every backend, eager and compiled, to second order."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
from flows import MOST_WAYS, WAYS, derivatives
from flows import constant as like

import gradops
from gradops import Variable, backends, ops
from gradops.errors import AxisError, GradientError, ShapeError

X = np.array([[0.5, -1.5, 2.0], [1.0, 0.25, -0.75]])
S = np.array([[2.0, -3.0, 0.5], [1.0, 4.0, -1.0]])
ALL = pytest.mark.parametrize("way", WAYS, ids="-".join)
MOST = pytest.mark.parametrize("way", MOST_WAYS, ids="-".join)


def check(way, f, *expected):
    found = derivatives(way, f, X, len(expected))
    for order, (got, want) in enumerate(zip(found, expected), 1):
        np.testing.assert_allclose(got, np.broadcast_to(want, X.shape), rtol=1e-9, atol=1e-12, err_msg=f"order {order}")


@ALL
def test_stop_gradient(way):
    check(way, lambda x: gradops.stop_gradient(ops.square(x)) * x, X**2, 0 * X)


@ALL
def test_stop_gradient_of_structures(way):
    def f(x):
        held = gradops.stop_gradient({"a": [ops.square(x)], "b": None})
        return held["a"][0] * x * x

    check(way, f, 2 * X**3, 2 * X**2)


@pytest.mark.short_cases(2)
@ALL
@pytest.mark.parametrize("scale", [-0.5, 0.0, 3], ids=str)
def test_scaled_gradient(way, scale):
    def f(x):
        return gradops.scaled_gradient(x, scale) ** 3

    check(way, f, scale * 3 * X**2, scale**2 * 6 * X)


@MOST
def test_scaled_gradient_of_structures(way):
    def f(x):
        scaled = gradops.scaled_gradient({"a": [ops.square(x)], "b": None, "c": 1.0}, 3)
        return scaled["a"][0] * x

    check(way, f, 7 * X**2, 18 * X)


@pytest.mark.parametrize("backend", backends.NAMES)
@pytest.mark.parametrize("scale", [np.float64(0.1), np.float32(0.1), np.int64(-3)], ids=lambda s: s.dtype.name)
def test_scaled_gradient_by_a_numpy_scalar(backend, scale):
    """Bitwise equal to a Python number's result: training loops compute scales with NumPy."""
    x = backends.lookup(backend).convert(np.linspace(0.1, 0.7, 5, dtype="float32"))

    def gradient(scale):
        return ops.convert_to_numpy(gradops.grad(lambda x: ops.sum(gradops.scaled_gradient(x, scale) ** 3))(x))

    gradients = gradient(scale), gradient(scale.item())
    assert gradients[0].dtype == "float32"
    np.testing.assert_array_equal(*gradients)


@MOST
def test_scaled_gradient_by_a_tensor(way):
    def f(x):
        return gradops.scaled_gradient(x, like(x, S)) ** 3

    check(way, f, S * 3 * X**2, S**2 * 6 * X)


@MOST
def test_scaled_gradient_by_a_tensor_that_broadcasts(way):
    def f(x):
        return gradops.scaled_gradient(x, like(x, S[0])) ** 3

    check(way, f, S[0] * 3 * X**2, S[0] ** 2 * 6 * X)


@pytest.mark.short_cases(3)
@MOST
@pytest.mark.parametrize("tensors", [False, True], ids=["numbers", "tensors"])
@pytest.mark.parametrize("axis", [None, -1, 0, (0, 1)], ids=str)
def test_scaled_gradient_ext(way, axis, tensors):
    """The gradient is ``g * scale + shift * m``; the second derivative applies the same formula to that gradient."""
    scale, shift = (S, S[::-1] / 2) if tensors else (-2.0, 0.75)

    def f(x):
        a, b = (like(x, scale), like(x, shift)) if tensors else (scale, shift)
        return gradops.scaled_gradient_ext(x, scale=a, shift=b, scale_shift_by_sum_over_axis=axis) ** 3

    def back(g):
        m = 1 if axis is None else np.abs(g).sum(axis=axis, keepdims=True)
        return g * scale + shift * m

    first = back(3 * X**2)
    weight = np.broadcast_to(scale, X.shape).astype(float)  # weight of |g| in the sum; g is positive
    if axis is not None:
        weight = weight + np.sum(np.broadcast_to(shift, X.shape), axis=axis, keepdims=True)
    check(way, f, first, back(weight * 6 * X))


@pytest.mark.short_cases(1)
@MOST
def test_scale_zero_stops_the_gradient(way):
    check(way, lambda x: gradops.scaled_gradient_ext(x, scale=0.0) * x, X, 0 * X)
    check(way, lambda x: ops.abs(gradops.scaled_gradient(x, 0)) * np.inf, 0 * X)


@pytest.mark.parametrize("backend", ["numpy", "torch", "tensorflow", "jax"])
@pytest.mark.parametrize("zero", [0, 0.0, "tensor"])
def test_scale_zero_stays_connected(backend, zero):
    """Schedules may start at 0: ``backward()`` runs and gives zeros, also at second order."""
    x = backends.lookup(backend).convert(X)
    scale = backends.lookup(backend).convert(0.0, "float64") if zero == "tensor" else zero
    for v in [Variable(x)] if backend != "torch" else [x]:
        v.requires_grad_()
        y = ops.sum(gradops.scaled_gradient(v, scale) ** 2)
        (g,) = gradops.autodiff.grad(y, [v], create_graph=True)
        ops.sum(g).backward(retain_graph=True)
        y.backward()
        np.testing.assert_array_equal(ops.convert_to_numpy(v.grad.detach()), 0 * X)


@pytest.mark.short_cases(2, "jax")
@pytest.mark.parametrize("scale", [0, 0.0, np.float64(0), np.array(0.0), np.array([0.0, 3.0, 0.0])], ids=repr)
def test_zero_scale_stops_an_infinite_gradient(backend, scale):
    """Covers a constant 0, a 0 in one element, and a 0 passed as an argument; ``0 * inf`` would be NaN."""
    at = np.array([0.0, 4.0, 0.0])
    scales = np.broadcast_to(scale, (3,))
    with np.errstate(divide="ignore", invalid="ignore"):
        first = np.where(scales == 0, 0.0, scales * 0.5 * at**-0.5)
        second = np.where(scales == 0, 0.0, -(scales**2) * 0.25 * at**-1.5)
    library = backends.lookup(backend)
    given = library.convert(scale) if isinstance(scale, np.ndarray) else scale
    x = library.convert(at)

    def f(x, scale):
        return ops.sum(ops.sqrt(gradops.scaled_gradient(x, scale)))

    def alone(x):
        return f(x, given)

    def shifted(x):
        return ops.sum(ops.sqrt(gradops.scaled_gradient_ext(x, scale=2.0, shift=given, scale_shift_by_sum_over_axis=0)))

    found = [gradops.grad(alone)(x), gradops.jit(gradops.grad(alone))(x), gradops.jit(gradops.grad(f))(x, given)]
    found.append(gradops.vmap(gradops.grad(alone))(x[None])[0])
    for g in found:
        np.testing.assert_allclose(ops.convert_to_numpy(g), first)
    np.testing.assert_allclose(ops.convert_to_numpy(ops.diagonal(gradops.hessian(alone)(x))), second)
    by_shift = ops.convert_to_numpy(gradops.grad(shifted)(library.convert(np.array([0.0, 4.0, 9.0]))))
    if not scales.any():
        np.testing.assert_allclose(by_shift[1:], [0.5, 1 / 3])


@ALL
def test_shift_without_scale_still_flows(way):
    check(way, lambda x: gradops.scaled_gradient_ext(x, scale=0.0, shift=2.0) * x, X + 2, 0 * X + 2)


def test_scales_get_no_gradient():
    scale = Variable(np.array(2.0), requires_grad=True)
    x = Variable(X, requires_grad=True)
    ops.sum(gradops.scaled_gradient(x, scale)).backward()
    assert scale.grad is None
    np.testing.assert_allclose(x.grad.data, 2.0 * np.ones(X.shape))


@pytest.mark.parametrize("backend", backends.NAMES)
def test_bad_scales(backend):
    x = backends.lookup(backend).convert(X)
    with pytest.raises(ShapeError, match="`scale` must broadcast") as caught:
        gradops.scaled_gradient(x, like(x, np.ones((4, 2, 3))))
    assert caught.value.argument == "scale"
    with pytest.raises(ShapeError, match="`shift` must broadcast"):
        gradops.scaled_gradient_ext(x, scale=1.0, shift=like(x, np.ones(2)))
    with pytest.raises(AxisError, match="scale_shift_by_sum_over_axis"):
        gradops.scaled_gradient_ext(x, scale=1.0, shift=1.0, scale_shift_by_sum_over_axis=2)


def test_integers_and_numbers_pass_through():
    assert gradops.stop_gradient(3) == 3
    np.testing.assert_array_equal(gradops.stop_gradient(np.arange(3)), np.arange(3))
    assert float(gradops.scaled_gradient(2.0, -1.0)) == 2.0


# --- gradient and set_requires_gradient


def marked(backend, value, variable=False):
    x = backends.lookup(backend).convert(np.asarray(value, float))
    if variable or backend == "numpy":
        x = Variable(x)
    gradops.set_requires_gradient(x)
    return x


def values(g):
    return np.asarray(g.data if isinstance(g, Variable) else g.detach() if hasattr(g, "detach") else g)


@pytest.mark.parametrize("backend, variable", [("numpy", True), ("torch", False), ("jax", True), ("tensorflow", True)])
def test_gradient_to_third_order(backend, variable):
    x = marked(backend, X, variable)
    y = ops.sum(x**4)
    for factor, power in ((4, 3), (12, 2), (24, 1)):
        g = gradops.gradient(y, x)
        np.testing.assert_allclose(values(g), factor * X**power)
        y = ops.sum(g)


def test_gradient_of_structures():
    a, b, c = (Variable(np.array(v), requires_grad=True) for v in (1.0, 2.0, 3.0))
    g = gradops.gradient(a * b, {"a": a, "rest": [b, c]})
    assert (g["a"].item(), g["rest"][0].item(), g["rest"][1]) == (2.0, 1.0, None)


def test_tensorflow_tapes():
    import tensorflow as tf

    x = tf.constant(X)
    with tf.GradientTape(persistent=True) as outer:
        outer.watch(x)
        with tf.GradientTape(persistent=True):
            gradops.set_requires_gradient(x)
            y = tf.reduce_sum(x**3)
            g = gradops.gradient(y, x)
            h = gradops.gradient(tf.reduce_sum(g), [x])[0]
    np.testing.assert_allclose(g, 3 * X**2)
    np.testing.assert_allclose(h, 6 * X)
    np.testing.assert_allclose(outer.gradient(g, x), 6 * X)


def test_tensorflow_tape_keeps_recording():
    import tensorflow as tf

    x, v = tf.constant(2.0), tf.Variable(3.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x * v
        penalty = gradops.gradient(y, x) ** 2
        loss = y + penalty
    assert float(tape.gradient(loss, v)) == 4.0 + 2 * 12.0 * 4.0
    with tf.GradientTape(persistent=True):
        assert float(gradops.gradient(v * v, v)) == 6.0


def test_tensorflow_graphs():
    import tensorflow as tf

    weight = tf.constant(5.0)

    @tf.function
    def f(x):
        y = x**3 * weight
        g = gradops.gradient(y, x)
        return g, gradops.gradient(g, x), gradops.gradient(y, weight)

    assert [float(g) for g in f(tf.constant(2.0))] == [60.0, 60.0, 8.0]


@pytest.mark.parametrize("persistent", [None, False, True])
def test_tensorflow_tapes_that_cannot_be_reused(persistent):
    import contextlib

    import tensorflow as tf

    x = tf.constant(2.0)
    scope = contextlib.nullcontext() if persistent is None else tf.GradientTape(persistent=persistent)
    wanted = {None: "there is none", False: "not persistent", True: "no active tape watches `x`"}[persistent]
    with scope, pytest.raises(GradientError, match=wanted) as caught:
        gradops.gradient(x * x, x)
    assert "gradops." in caught.value.hint
    if persistent is None:
        with pytest.raises(GradientError, match="no `tf.GradientTape` is active"):
            gradops.set_requires_gradient(x)


def test_jax_tracers_in_variables():
    import jax
    import jax.numpy as jnp

    @jax.jit
    def f(x):
        v = Variable(x, requires_grad=True)
        g = gradops.gradient(ops.sum(v**3), v)
        return g.data, gradops.gradient(ops.sum(g), v).data

    g, h = f(jnp.asarray(X))
    np.testing.assert_allclose(g, 3 * X**2, rtol=1e-6)
    np.testing.assert_allclose(h, 6 * X, rtol=1e-6)


@pytest.mark.parametrize("backend", ["numpy", "jax"])
def test_immutable_arrays_raise_with_a_hint(backend):
    x = backends.lookup(backend).convert(X)
    with pytest.raises(GradientError, match="Variable\\(x, requires_grad=True\\)"):
        gradops.set_requires_gradient(x)
    with pytest.raises(GradientError, match="Variable\\(x, requires_grad=True\\)"):
        gradops.gradient(ops.sum(x), x)


@pytest.mark.parametrize("backend", backends.NAMES)
def test_gradient_of_a_non_scalar(backend):
    x = backends.lookup(backend).convert(X)
    with pytest.raises(GradientError, match=r"must be a scalar; got shape \(2, 3\)") as caught:
        gradops.gradient(x, x)
    assert caught.value.argument == "y"


def test_gradient_of_a_torch_constant():
    import torch

    with pytest.raises(GradientError, match="does not require a gradient"):
        gradops.gradient(torch.ones(()), torch.ones((), requires_grad=True))


# --- TensorFlow variables


def _variables():
    import tensorflow as tf

    yield tf.Variable(X)
    keras = pytest.importorskip("keras")
    if keras.backend.backend() == "tensorflow":
        yield keras.Variable(X, dtype="float64")


def _of_variables():
    yield ops.exp, np.exp(X)
    yield lambda w: ops.matmul(np.ones((1, 2)), ops.reshape(w, (2, 3))), np.ones_like(X)
    yield lambda w: ops.get_item(ops.concatenate([w, w]), (slice(0, 2),)), np.ones_like(X)
    yield lambda w: ops.sum(w, axis=0), np.ones_like(X)
    yield lambda w: gradops.scaled_gradient(w, -2.0), np.full_like(X, -2.0)
    yield lambda w: gradops.scaled_gradient_ext(w, scale=-2.0, shift=0.5), np.full_like(X, -1.5)
    yield gradops.checkpoint(ops.exp), np.exp(X)


@pytest.mark.parametrize("case", range(7))
def test_tensorflow_variables_act_as_tensors(case):
    """Applies an op to a variable alone: eagerly, under a tape and in a graph."""
    tf = pytest.importorskip("tensorflow")
    f, expected = list(_of_variables())[case]
    for w in _variables():

        def make(w=w):
            def derivative():
                with tf.GradientTape() as tape:
                    total = tf.reduce_sum(f(w))
                return tape.gradient(total, w if isinstance(w, tf.Variable) else w.value)

            return derivative

        assert isinstance(f(w), tf.Tensor)
        np.testing.assert_allclose(make()(), expected)
        np.testing.assert_allclose(tf.function(make())(), expected)


def test_tensorflow_variables_in_gradient():
    tf = pytest.importorskip("tensorflow")
    w = tf.Variable(X)
    with tf.GradientTape(persistent=True, watch_accessed_variables=False):
        gradops.set_requires_gradient(w)
        np.testing.assert_allclose(gradops.gradient(ops.sum(ops.square(w)), w), 2 * X)
    np.testing.assert_allclose(tf.function(lambda: gradops.gradient(ops.sum(ops.square(w)), w))(), 2 * X)
    np.testing.assert_allclose(gradops.grad(lambda x: ops.sum(ops.square(x)))(w), 2 * X)
    np.testing.assert_allclose(gradops.jit(ops.exp)(w), np.exp(X))
    np.testing.assert_array_equal(ops.convert_to_numpy(w), X)
    assert ops.dtype(w) == "float64" and ops.is_tensor(w) and isinstance(gradops.stop_gradient(w), tf.Tensor)


def test_sparse_upstream_gradients_become_dense():
    """The gradient of ``tf.gather`` is IndexedSlices."""
    tf = pytest.importorskip("tensorflow")
    seen = []

    def double(x):
        def pull(upstream):
            seen.append(isinstance(upstream, tf.Tensor))
            return 2 * upstream

        return x, pull

    def derivative_of(f):
        def derivative(x):
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = tf.reduce_sum(tf.gather(f(x), [0, 0]))
            return tape.gradient(y, x)

        return derivative

    for f, factor in ((lambda x: gradops.scaled_gradient(x, -1.0), -1), (gradops.custom_gradient(double), 2)):
        for run in (derivative_of(f), tf.function(derivative_of(f))):
            np.testing.assert_array_equal(run(tf.constant([1.0, 2.0])), [2 * factor, 0])
    assert seen and all(seen)


GRAPHS = {
    "scaled_gradient": lambda x: gradops.scaled_gradient(x, -1.0),
    "custom_gradient": lambda x: gradops.custom_gradient(ops.sin, lambda x, upstream: upstream)(x),
    "checkpoint": lambda x: gradops.checkpoint(ops.sin)(x),
    "an op with a rule": lambda x: ops.linalg.det(x[:, None] * x),
    "in a loop": lambda x: ops.fori_loop(0, 2, lambda i, x: gradops.scaled_gradient(x, -1.0), x),
}


@pytest.mark.short_cases(3)
@pytest.mark.parametrize("name", GRAPHS)
def test_tensorflow_graphs_are_released(name):
    """TensorFlow's gradient registry would keep the graph and all its constants alive."""
    tf = pytest.importorskip("tensorflow")

    def gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = tf.reduce_sum(GRAPHS[name](x))
        return tape.gradient(loss, x)

    def trace():
        compiled = tf.function(gradient, autograph=False)
        compiled(x)
        return weakref.ref(compiled.get_concrete_function(x).graph)

    x = tf.constant([1.0, 2.0], tf.float64)
    graphs = [trace() for _ in range(3)]
    gc.collect()
    assert [graph() for graph in graphs] == [None] * 3
    inner = tf.function(GRAPHS[name], autograph=False)  # the graph is finished before its derivative is taken
    concrete = inner.get_concrete_function(x)
    del inner
    gc.collect()
    with tf.GradientTape() as tape:
        tape.watch(x)
        loss = tf.reduce_sum(concrete(x))
    np.testing.assert_allclose(tape.gradient(loss, x), gradient(x), rtol=1e-12)
