"""gradient_checkpoint_scope and checkpoint: gradients are unchanged, nothing is stored, values are recomputed once."""

from __future__ import annotations

import contextlib
import gc
import sys
import threading
import tracemalloc
import weakref

import numpy as np
import pytest
from flows import MOST_WAYS, WAYS, derivatives

import gradops
from gradops import Variable, autodiff, checkpoint, gradient_checkpoint_scope, ops
from gradops.errors import ArgumentError, ArgumentTypeError, BackendError, GradientError

X = np.array([0.5, -1.5, 2.0])
ALL = pytest.mark.parametrize("way", WAYS, ids="-".join)
MOST = pytest.mark.parametrize("way", MOST_WAYS, ids="-".join)
NATIVE_TF = [w for w in WAYS if w[0] == "tensorflow" and w[1] != "variable"]


def body(x):
    return ops.sin(ops.exp(x) * x) + ops.square(x)


def body_derivatives(x):
    e = np.exp(x)
    u, v, w = e * x, e * (x + 1), e * (x + 2)
    return np.cos(u) * v + 2 * x, -np.sin(u) * v**2 + np.cos(u) * w + 2


def check(way, f, *expected):
    found = derivatives(way, f, X, len(expected))
    for order, (got, want) in enumerate(zip(found, expected), 1):
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-12, err_msg=f"order {order}")


@ALL
def test_checkpoint_preserves_values_and_derivatives(way):
    check(way, gradops.checkpoint(body), *body_derivatives(X))


@ALL
def test_nested_checkpoints(way):
    @gradops.checkpoint
    def outer(x):
        return gradops.checkpoint(body)(x) * 2.0

    check(way, lambda x: outer(x) * 0.5, *body_derivatives(X))


@MOST
def test_scope_preserves_gradients(way):
    if way == ("torch", "compiled"):
        pytest.skip("torch.compile runs the frame of a scope uncompiled: test_torch_compile")
    if way == ("torch", "func"):
        pytest.skip("torch.func takes no saved-tensor hooks: test_torch_func")

    def f(x):
        with gradient_checkpoint_scope():
            y = ops.exp(x) * x
        return ops.sin(y) + ops.square(x)

    if way in NATIVE_TF:
        pytest.importorskip("tensorflow")
        with pytest.raises(BackendError, match="TensorFlow stores what it records") as caught:
            check(way, f, *body_derivatives(X))
        assert "gradops.checkpoint(f)" in caught.value.hint
    else:
        check(way, f, *body_derivatives(X))


@MOST
def test_structures_keywords_and_non_tensor_values(way):
    @gradops.checkpoint
    def f(pair, name, *, power):
        assert name == "power"
        return {"y": pair[0] ** power * pair[1], "n": None}

    check(way, lambda x: f((x, x), "power", power=2)["y"], 3 * X**2, 6 * X)


# --- what is stored


def variables(*values):
    return [Variable(np.asarray(v, float), requires_grad=True) for v in values]


def test_tape_frees_tensors_that_the_caller_drops():
    a, b, c = variables(X, X + 1, X + 2)
    with gradient_checkpoint_scope():
        x = ops.exp(a) * b
        x = ops.reshape(x, (3, 1))
    y = ops.sum(ops.reshape(x, (3,)) * c)
    alive = weakref.ref(x.data), weakref.ref(x.data.base)
    del x
    assert [ref() is None for ref in alive] == [True, True]
    y.backward()
    e = np.exp(X)
    np.testing.assert_allclose(c.grad.data, e * (X + 1))
    np.testing.assert_allclose(a.grad.data, e * (X + 1) * (X + 2))
    np.testing.assert_allclose(b.grad.data, e * (X + 2))


def torch_leaves():
    import torch

    return [torch.tensor(X + i, requires_grad=True) for i in range(3)]


def storage_of(x):
    from torch.multiprocessing.reductions import StorageWeakRef

    return StorageWeakRef(x.untyped_storage())


def test_torch_frees_tensors_that_the_caller_drops():
    import torch

    a, b, c = torch_leaves()
    with gradient_checkpoint_scope():
        x = torch.exp(a) * b
        inner = storage_of(torch.sin(x))
    y = (x.reshape(3, 1).T * c).sum()
    alive = storage_of(x)
    del x
    assert alive.expired() and inner.expired()
    y.backward()
    e = np.exp(X)
    np.testing.assert_allclose(c.grad, e * (X + 1))
    np.testing.assert_allclose(a.grad, e * (X + 1) * (X + 2))
    np.testing.assert_allclose(b.grad, e * (X + 2))


@pytest.mark.parametrize("kind", ["tape", "torch"])
def test_tensors_that_the_caller_holds_stay_alive(kind):
    if kind == "tape":
        (a,) = variables(X)
        with gradient_checkpoint_scope():
            x = ops.exp(a)
        y = ops.sum(x * x)
        y.backward()
        np.testing.assert_allclose(x.data, np.exp(X))
        np.testing.assert_allclose(a.grad.data, 2 * np.exp(2 * X))
    else:
        a = torch_leaves()[0]
        with gradient_checkpoint_scope():
            x = a.exp()
        (x * x).sum().backward()
        np.testing.assert_allclose(x.detach(), np.exp(X))
        np.testing.assert_allclose(a.grad, 2 * np.exp(2 * X))


def test_jax_saves_only_its_inputs():
    import jax
    import jax.numpy as jnp

    def f(a, b, c):
        with gradient_checkpoint_scope():
            x = jnp.exp(a) * b
            x = jax.nn.silu(ops.sin(x))
        return jnp.sum(jnp.sin(x * c))

    args = [jnp.asarray(X + i) for i in range(3)]

    def saved(f):
        return [str(aval) for aval, _ in jax._src.ad_checkpoint.saved_residuals(f, *args)]

    assert len(saved(jax.checkpoint(f, policy=gradops.checkpoint_policy))) == 4  # a, b, c and the last cosine
    assert len(saved(f)) > 6
    plain = jax.grad(f, (0, 1, 2))(*args)
    for found in (
        jax.grad(jax.checkpoint(f, policy=gradops.checkpoint_policy), (0, 1, 2))(*args),
        gradops.grad(f, (0, 1, 2))(*args),
        jax.jit(gradops.grad(f, (0, 1, 2)))(*args),
        gradops.grad(gradops.checkpoint(f), (0, 1, 2))(*args),
    ):
        for got, want in zip(found, plain):
            np.testing.assert_allclose(got, want, rtol=1e-5)


def test_gradops_grad_applies_the_policy():
    import jax.numpy as jnp

    traced = []

    def f(x):
        with gradient_checkpoint_scope():
            y = jnp.exp(x)
        traced.append(type(y).__name__)
        return jnp.sum(y * y), {"aux": y, "n": 3}

    (value, aux), g = gradops.value_and_grad(f, has_aux=True)(jnp.asarray(X))
    assert len(traced) == 1 and aux["n"] == 3
    np.testing.assert_allclose(aux["aux"], np.exp(X), rtol=1e-6)
    np.testing.assert_allclose(g, 2 * np.exp(2 * X), rtol=1e-6)


# --- how often


def test_tape_recomputes_once_per_backward_pass():
    (a,) = variables(X)
    calls = []
    own = gradops.custom_gradient(lambda x: (x, lambda upstream: upstream))
    with gradient_checkpoint_scope():
        x = ops.exp(own(a))
        y, z = x * x, ops.sin(x)
    total = ops.sum(y * z * x)

    from gradops.backends import checkpoint_plan as plan

    original = plan.Step.run

    def run(self, results):
        calls.append(self.function)
        return original(self, results)

    plan.Step.run = run
    try:
        del x, y, z
        total.backward(retain_graph=True)
        once = len(calls)
        assert once == len(set(map(id, calls))) == 3
        total.backward()
        assert len(calls) == 2 * once
    finally:
        plan.Step.run = original


def test_torch_recomputes_once_per_backward_pass():
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    calls = []

    class Count(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            calls.append(func.overloadpacket.__name__)
            return func(*args, **(kwargs or {}))

    from gradops.backends import checkpoint_plan as plan

    a, b, c = torch_leaves()
    with gradient_checkpoint_scope():
        x = torch.erf(a) * b
        y, z = x * x, torch.sin(x)
    total = (y * z * x * c).sum()
    del x, y, z
    original = plan.Step.run

    def run(self, results):
        calls.append(self.function.overloadpacket.__name__)
        return original(self, results)

    plan.Step.run = run
    try:
        total.backward(retain_graph=True)
        assert sorted(calls) == ["erf", "mul", "mul", "sin"]
        total.backward()
        assert len(calls) == 8
    finally:
        plan.Step.run = original


@pytest.mark.parametrize("kind", ["tape", "torch", "tensorflow", "jax"])
def test_checkpoint_reruns_the_function_only_for_a_gradient(kind):
    calls = []

    @gradops.checkpoint
    def f(x):
        calls.append(1)
        return ops.exp(x) * x

    x = gradops.backends.lookup("numpy" if kind == "tape" else kind).convert(X)
    gradops.grad(lambda x: ops.sum(f(x)))(x)
    assert len(calls) == {"tape": 1, "torch": 2, "tensorflow": 2, "jax": 1}[kind]  # the tape and JAX run a program
    calls.clear()
    f(x)
    assert len(calls) == 1


# --- policies

OFFLOAD = gradops.save_and_offload_only_these_names
POLICIES = {
    "nothing": ["exp", "matmul", "sin"],
    "everything": [],
    "products": ["exp", "sin"],
    gradops.save_only_these_names("exp"): ["sin"],
    gradops.save_only_these_names("product", "exp"): ["sin"],
    gradops.save_only_these_names("sin"): ["exp", "matmul"],
    gradops.save_anything_except_these_names("exp"): ["exp"],
    gradops.save_anything_except_these_names("sin"): ["sin"],
    gradops.save_anything_except_these_names("exp", "sin"): ["exp", "sin"],
    gradops.save_anything_except_these_names("unknown"): [],
    gradops.save_from_both_policies("products", gradops.save_only_these_names("exp")): ["sin"],
    gradops.save_from_both_policies(
        gradops.save_anything_except_these_names("exp", "sin"), gradops.save_only_these_names("sin")
    ): ["exp"],
    gradops.save_from_both_policies(
        OFFLOAD(names_which_can_be_saved=[], names_which_can_be_offloaded=["product"]),
        gradops.save_anything_except_these_names("product", "sin"),
    ): ["sin"],
    OFFLOAD(names_which_can_be_saved=["sin"], names_which_can_be_offloaded=["exp"]): [],
}
"""The part of :func:`named_layer` that each policy recomputes."""


def named_layer(x, w):
    y = gradops.checkpoint_name(ops.matmul(x, w), "product")
    y = gradops.checkpoint_name(ops.exp(y), "exp")
    y = gradops.checkpoint_name(ops.sin(y), "sin")
    return ops.sum(y * y * y)


@pytest.mark.parametrize("policy", POLICIES, ids=str)
@pytest.mark.parametrize("kind", ["numpy", "torch", "tensorflow", "jax"])
def test_policies_select_what_is_recomputed(kind, policy, monkeypatch):
    """Counted in the recomputation plan, on JAX in the program of the gradient."""
    backend = gradops.backends.lookup(kind)
    x, w = backend.convert(np.ones((2, 2)) / 3), backend.convert(np.eye(2))
    f, expected = gradops.checkpoint(named_layer, policy), POLICIES[policy]
    if kind == "jax":
        import jax
        import jax.extend

        jaxprs_in_params = getattr(jax.extend.core, "jaxprs_in_params", None) or jax.core.jaxprs_in_params  # JAX 0.4
        names = {"dot_general": "matmul", "exp": "exp", "sin": "sin"}

        def count(f):
            def of(jaxpr):
                for e in jaxpr.eqns:
                    yield names.get(e.primitive.name)
                    for inner in jaxprs_in_params(e.params):
                        yield from of(inner)

            return sorted(filter(None, of(jax.make_jaxpr(jax.grad(f, (0, 1)))(x, w).jaxpr)))

        assert sorted(count(named_layer) + expected) == count(f)
        return
    from gradops.backends import checkpoint_plan as plan

    if kind == "torch":
        import torch

        names = {torch.ops.aten.mm: "matmul", torch.ops.aten.exp: "exp", torch.ops.aten.sin: "sin"}
    else:
        names = {backend.kernel(name): name for name in ("matmul", "exp", "sin")}
    calls: list = []
    original = plan.Step.run

    def run(self, results):
        calls.append(names.get(getattr(self.function, "overloadpacket", self.function)))
        return original(self, results)

    monkeypatch.setattr(plan.Step, "run", run)
    if kind == "torch":
        leaves = [t.requires_grad_() for t in (x, w)]
    else:
        leaves = [Variable(t, requires_grad=True) for t in (x, w)]
    f(*leaves).backward()
    if policy == "nothing" and kind == "torch":  # uses torch's own checkpoint, without a plan
        return
    assert sorted(filter(None, calls)) == expected


OFFLOADED = gradops.save_and_offload_only_these_names(
    names_which_can_be_saved=["product"], names_which_can_be_offloaded=["exp"]
)


@pytest.mark.parametrize("policy", [OFFLOADED, gradops.save_from_both_policies("products", OFFLOADED)], ids=str)
@pytest.mark.parametrize("kind", ["numpy", "torch", "jax"])
def test_offloaded_values_move_and_come_back(kind, policy, monkeypatch):
    backend = gradops.backends.lookup(kind)
    x, w = backend.convert(np.ones((2, 2)) / 3), backend.convert(np.eye(2))
    f = gradops.checkpoint(named_layer, policy)
    wanted = gradops.grad(named_layer)(x, w)
    if kind == "jax":
        import jax

        np.testing.assert_allclose(gradops.grad(f)(x, w), wanted, rtol=1e-6)
        program = str(jax.make_jaxpr(jax.grad(f))(x, w))
        assert program.count("MemorySpace.Host") == program.count("MemorySpace.Device") == 1
        return
    moves = []

    def moved_to_cpu(array):
        moves.append("there")
        return array * 1, lambda copy: moves.append("back") or copy

    from gradops.backends.torch.checkpoint_plan import TorchPlan

    for plan in (TorchPlan, gradops.flow.checkpointing.tape.TapePlan):
        monkeypatch.setattr(plan, "moved_to_cpu", staticmethod(moved_to_cpu))
    x = x.requires_grad_() if kind == "torch" else Variable(x, requires_grad=True)
    y = f(x, w)
    assert moves == ["there"]
    y.backward()
    assert "back" in moves and moves.count("there") == 1
    np.testing.assert_allclose(np.asarray(x.grad.detach()), np.asarray(wanted), rtol=1e-12)


def test_policies_name_themselves_and_their_errors():
    names = gradops.save_only_these_names("a")
    both = gradops.save_from_both_policies("products", names)
    assert repr(both) == "save_from_both_policies('products', save_only_these_names('a'))"
    assert repr(gradops.save_from_both_policies(names, "everything")) == "'everything'"
    with pytest.raises(ArgumentError, match="`policy` must be"):
        gradops.save_from_both_policies("dots", names)
    offload = gradops.save_and_offload_only_these_names
    with pytest.raises(ArgumentError, match="one list only; both have 'a'"):
        offload(names_which_can_be_saved=["a"], names_which_can_be_offloaded=["a"])
    with pytest.raises(ArgumentTypeError, match="`names_which_can_be_saved` must be a list of strings; got"):
        offload(names_which_can_be_saved="a", names_which_can_be_offloaded=[])
    with pytest.raises(ArgumentTypeError, match="`names_which_can_be_offloaded` must be a string"):
        offload(names_which_can_be_saved=[], names_which_can_be_offloaded=[1])


@MOST
def test_policies_preserve_gradients(way):
    """Checked around a custom gradient, to second order, and compiled."""
    twice = gradops.custom_gradient(lambda y: (y * 1.0, lambda upstream: upstream * 2.0))

    def f(x):
        y = gradops.checkpoint_name(ops.exp(x), "exp")
        y = gradops.checkpoint_name(y * x, "product")
        return ops.sin(twice(y)) + ops.square(x)

    u, v, w = np.exp(X) * X, np.exp(X) * (X + 1), np.exp(X) * (X + 2)
    expected = 2 * np.cos(u) * v + 2 * X, 2 * (-2 * np.sin(u) * v**2 + np.cos(u) * w) + 2
    for policy in ("products", "everything", *[p for p in POLICIES if not isinstance(p, str)][-3:-1]):
        named = not isinstance(policy, str)
        if way in NATIVE_TF and policy != "everything" or way == ("torch", "compiled") and named:
            with pytest.raises(RuntimeError, match="polic.* do(es)? not work"):
                derivatives(way, gradops.checkpoint(f, policy), X, 1)
        else:
            check(way, gradops.checkpoint(f, policy), *expected)


# --- random numbers


def both_ways(f, seed):
    """Return the gradient with and without the scope, from the same random numbers."""
    import contextlib

    found = []
    for scope in (gradient_checkpoint_scope, contextlib.nullcontext):
        seed()
        found.append(f(scope))
    return found


def test_torch_random_numbers_are_replayed_and_the_stream_continues():
    import torch

    own = torch.Generator()

    def f(scope):
        a, b, c = torch_leaves()
        own.manual_seed(3)
        with scope():
            x = torch.nn.functional.dropout(a.exp(), 0.5)
            torch.rand(3)
            x = x + torch.randn(3, dtype=x.dtype, generator=own) * b
            noise = torch.from_numpy(np.random.rand(3))
            x = x * noise
        y = (torch.rand(3, dtype=x.dtype) * x * c).sum()
        y.backward()
        return [*(t.grad.numpy() for t in (a, b, c)), torch.rand(2).numpy(), np.random.rand(2)]

    first, second = both_ways(f, lambda: (torch.manual_seed(1), np.random.seed(1)))
    for got, want in zip(first, second):
        np.testing.assert_array_equal(got, want)


def test_numpy_random_numbers_in_the_scope():
    def f(scope):
        a, b = variables(X, X + 1)
        with scope():
            x = ops.exp(a) * np.random.rand(3)
        y = ops.sum(x * b) + np.random.rand()
        y.backward()
        return [a.grad.data, b.grad.data, np.random.rand(2)]

    for got, want in zip(*both_ways(f, lambda: np.random.seed(1))):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("kind", ["tape", "torch"])
def test_checkpoint_restores_generators(kind):
    import torch

    def noisy(x):
        noise = np.random.rand(3)
        if kind == "tape":
            return ops.exp(x) * noise
        return torch.exp(torch.nn.functional.dropout(x, 0.5)) * torch.from_numpy(noise)

    found = []
    for f in (gradops.checkpoint(noisy), noisy):
        np.random.seed(1), torch.manual_seed(1)
        x = variables(X)[0] if kind == "tape" else torch_leaves()[0]
        ops.sum(f(x)).backward()
        found.append((np.asarray(x.grad.data), np.random.rand(), float(torch.rand(()))))
    np.testing.assert_array_equal(found[0][0], found[1][0])
    assert found[0][1:] == found[1][1:]


@pytest.mark.parametrize("bits", [np.random.MT19937, np.random.PCG64])
def test_numpy_normal_numbers_are_drawn_again(bits):
    """The legacy generator draws two normals at once and stores the second outside of its versioned state."""
    import torch

    before, found = np.random.get_bit_generator(), []
    noisy = lambda x: torch.exp(x * np.random.normal())  # noqa: E731
    try:
        for f in (gradops.checkpoint(noisy), noisy):
            np.random.set_bit_generator(bits(1))
            x = torch_leaves()[0]
            y = sum(f(x) * float(np.random.normal(size=k).sum()) for k in (1, 2, 1))
            found.append((torch.autograd.grad(y.sum(), x)[0].tolist(), np.random.normal(), np.random.normal()))
    finally:
        np.random.set_bit_generator(before)
    assert found[0] == found[1]


def test_registered_generators_are_restored():
    """Like R's generator, a pair of functions to read and set the state."""
    state = [0]

    def draw():
        state[0] += 1
        return state[0]

    pair = (lambda: state[0], lambda value: state.__setitem__(0, value))
    module_generators = __import__("sys").modules["gradops.flow.checkpointing"].generators
    module_generators.append(pair)
    try:
        x = torch_leaves()[0]
        drawn = []

        @gradops.checkpoint
        def f(x):
            drawn.append(draw())
            return x.exp() * drawn[-1]

        f(x).sum().backward()
        assert drawn == [1, 1] and state == [1]
    finally:
        module_generators.remove(pair)


@pytest.mark.parametrize("compiled", [False, True])
def test_tensorflow_random_numbers(compiled):
    import tensorflow as tf

    @gradops.checkpoint
    def noisy(x):
        kept = tf.random.uniform((3,), 1.0, 2.0) * tf.random.get_global_generator().uniform((3,), 1.0, 2.0)
        return tf.sin(x) * kept

    call = tf.function(noisy) if compiled else noisy
    x = tf.constant([0.5, 1.0, 1.5])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = call(x)
    np.testing.assert_allclose(tape.gradient(y, x) / tf.cos(x), y / tf.sin(x), rtol=1e-5)


# --- closures of checkpoint(f)


@pytest.mark.parametrize("way", [("numpy", "eager"), *NATIVE_TF, ("torch", "eager"), ("jax", "eager")], ids="-".join)
def test_closures_of_a_checkpoint_get_gradients(way):
    def f(x):
        return gradops.checkpoint(lambda y: ops.sin(x * y))(x * 1.0) * x

    check(way, f, np.sin(X**2) + 2 * X**2 * np.cos(X**2), 6 * X * np.cos(X**2) - 4 * X**3 * np.sin(X**2))
    with_itself = lambda x: gradops.checkpoint(lambda y: ops.sin(x * y))(x)  # noqa: E731
    check(way, with_itself, 2 * X * np.cos(X**2), 2 * np.cos(X**2) - 4 * X**2 * np.sin(X**2))


@pytest.mark.parametrize("compiled", [False, True])
def test_checkpoint_with_tensorflow_variables(compiled):
    import tensorflow as tf

    v, w, x = tf.Variable(3.0), tf.constant(0.7), tf.constant(2.0)
    plain = lambda x: tf.sin(x * w) * v  # noqa: E731
    found = []
    for f in (gradops.checkpoint(plain), plain):
        call = tf.function(f) if compiled else f
        with tf.GradientTape() as outer:
            outer.watch([x, w])
            with tf.GradientTape() as tape:
                tape.watch([x, w])
                y = call(x)
            g = tape.gradient(y, [x, w, v])
        found.append([float(d) for d in (*g, *outer.gradient(g[0], [x, w, v]))])
    np.testing.assert_allclose(found[0], found[1], rtol=1e-6)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("use", ["recurrent", "decay before", "decay after", "layer before"])
def test_tensorflow_variable_read_before_the_checkpoint(use, compiled):
    """A `tf.Variable` the tape has already recorded, as in a recurrent cell, must not be counted twice."""
    import tensorflow as tf

    w = tf.Variable([[0.5, -0.2], [0.3, 0.4]])
    cell = lambda h: tf.tanh(h @ w + 1.0)  # noqa: E731

    def loss(cell, x):
        if use == "recurrent":
            return tf.reduce_sum(cell(cell(cell(x))))
        if use == "layer before":
            return tf.reduce_sum(cell(x @ w))
        decay = [tf.reduce_sum(w**2)] if use == "decay before" else []
        found = tf.reduce_sum(cell(x))
        return found + sum(decay or [tf.reduce_sum(w**2)])

    def gradient(cell):
        def of(x):
            with tf.GradientTape() as outer:
                with tf.GradientTape() as tape:
                    y = loss(cell, x)
                first = tape.gradient(y, w)
            return first, outer.gradient(first, w)

        return (tf.function(of) if compiled else of)(tf.constant([[1.0, 2.0], [0.5, -1.0]]))

    for found, expected in zip(gradient(gradops.checkpoint(cell)), gradient(cell)):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("compiled", [False, True])
def test_batch_norm_runs_twice(compiled):
    """Compared with PyTorch's own checkpoint: equal gradients, and in eager mode twice as many tracked batches."""
    import torch
    from torch.utils.checkpoint import checkpoint

    def run(wrap):
        torch.manual_seed(0)
        norm, linear = torch.nn.BatchNorm1d(6), torch.nn.Linear(8, 6)
        layer = wrap(lambda x: torch.relu(norm(linear(x))))
        f = lambda x: layer(x).sum() + layer(2 * x).square().mean()  # noqa: E731
        torch._dynamo.reset()
        (torch.compile(f, backend="aot_eager") if compiled else f)(torch.randn(16, 8)).backward()
        return linear.weight.grad, norm.running_mean, int(norm.num_batches_tracked)

    own, native = run(gradops.checkpoint), run(lambda f: lambda x: checkpoint(f, x, use_reentrant=False))
    torch.testing.assert_close(own, native)
    torch.testing.assert_close(own[0], run(lambda f: f)[0])
    assert own[2] == (2 if compiled else 4)


def test_checkpoint_of_a_torch_module():
    import torch

    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Dropout(0.5), torch.nn.Linear(4, 1))
    x = torch.randn(5, 3)
    found = []
    for f in (gradops.checkpoint(net), net):
        torch.manual_seed(1)
        net.zero_grad()
        f(x).square().sum().backward()
        found.append([p.grad.clone() for p in net.parameters()])
    for a, b in zip(*found):
        torch.testing.assert_close(a, b)


# --- several scopes


@pytest.mark.parametrize("kind", ["tape", "torch"])
def test_several_live_scopes(kind):
    import torch

    if kind == "tape":
        exp, sin, a, b = ops.exp, ops.sin, *variables(X, X + 1)
    else:
        exp, sin, (a, b, _) = torch.exp, torch.sin, torch_leaves()

    def grad_of(t):
        return np.asarray(t.grad.data)

    def made(f, x):
        with gradient_checkpoint_scope():
            return f(x) * x

    one, two = made(exp, a), made(sin, b)
    with gradient_checkpoint_scope():
        three = made(exp, one) + two
        with gradient_checkpoint_scope():
            four = sin(three)
    y = (four * one * two * three).sum() if kind == "torch" else ops.sum(four * one * two * three)
    del one, two, three, four
    y.backward()
    found = grad_of(a), grad_of(b)

    a2, b2 = (torch.tensor(v, requires_grad=True) for v in (X, X + 1))
    one, two = torch.exp(a2) * a2, torch.sin(b2) * b2
    three = torch.exp(one) * one + two
    (torch.sin(three) * one * two * three).sum().backward()
    np.testing.assert_allclose(found[0], a2.grad, rtol=1e-10)
    np.testing.assert_allclose(found[1], b2.grad, rtol=1e-10)


def nothing_left():
    import torch

    from gradops.autodiff import state
    from gradops.backends.torch import _private
    from gradops.backends.torch import checkpointing as native
    from gradops.flow.checkpointing import tape

    gc.collect()
    assert tape.current.get() is None
    assert not tape._made and not state.packers
    assert native._local.plan is None and not native._passes
    assert native._local.lasting is None and _private.top_saved_hooks(False) is None
    torch.func.grad(lambda x: x * x)(torch.tensor(2.0))


def test_finished_scopes_release_all_state():
    import torch

    a, b, c = torch_leaves()
    v, w = variables(X, X)
    for _ in range(3):
        with gradient_checkpoint_scope():
            x, u = a.exp() * b, ops.exp(v) * w
        y, z = (x * c).sum(), ops.sum(u * w)
        del x, u
        y.backward(), z.backward()
        del y, z
    with pytest.raises(ZeroDivisionError), gradient_checkpoint_scope(), gradient_checkpoint_scope():
        kept = torch.exp(a)
        raise ZeroDivisionError
    del kept
    nothing_left()


def test_dropped_backward_pass_releases_all_state():
    import torch

    class Kept(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.kept = x
            return x * 2

        @staticmethod
        def backward(ctx, upstream):
            del ctx.kept
            return upstream * 2

    a, _, _ = torch_leaves()
    with gradient_checkpoint_scope():
        x = a.exp()
    y = Kept.apply(x).sum()
    del x
    y.backward()
    torch.testing.assert_close(a.grad, 2 * a.detach().exp())
    torch.sin(a)
    nothing_left()


@pytest.mark.parametrize("result", [ops.sin, lambda x: ops.stack([x]), lambda x: ops.concatenate([x, x])])
def test_grad_frees_saved_values_while_it_runs(result):
    # The gradient functions of `stack` read no variables, so the pass need not keep the graph for another one.
    def block(x):
        for _ in range(10):
            x = ops.sin(x) + x
        return x

    def loss(x):
        for _ in range(20):
            x = checkpoint(block)(x)
        return ops.sum(result(x))

    x = np.linspace(0.0, 1.0, 2_000)
    gradops.grad(loss)(x)
    tracemalloc.start()
    gradops.grad(loss)(x)
    peak = tracemalloc.get_traced_memory()[1] / x.nbytes
    tracemalloc.stop()
    assert peak < 60  # 20 inputs, and 20 values of one block; all blocks have 200


def test_scope_cost_is_independent_of_other_live_scopes():
    import torch

    a, _, _ = torch_leaves()
    kept = []

    def calls() -> int:
        """Return how many Python functions a scope calls."""
        seen = [0]

        def count(frame, event, argument):
            seen[0] += event == "call"

        before = sys.getprofile()
        sys.setprofile(count)
        try:
            with gradient_checkpoint_scope():
                kept.append(torch.sin(a) * a)
        finally:
            sys.setprofile(before)
        return seen[0]

    gc.collect()
    gc.disable()
    try:
        counts = [calls() for _ in range(50)]
    finally:
        gc.enable()
    assert counts[-1] == counts[5]
    kept.clear()
    nothing_left()


def test_threads():
    import torch

    failures = []

    def work(seed):
        try:
            generator = np.random.default_rng(seed)
            for _ in range(5):
                value = generator.normal(size=4)
                a = torch.tensor(value, requires_grad=True)
                v = Variable(value, requires_grad=True)
                with gradient_checkpoint_scope():
                    x, u = torch.sin(a.exp()) * a, ops.sin(ops.exp(v)) * v
                y, z = (x * x).sum(), ops.sum(u * u)
                del x, u
                y.backward(), z.backward()
                reference = torch.tensor(value, requires_grad=True)
                (torch.sin(reference.exp()) * reference).square().sum().backward()
                np.testing.assert_allclose(a.grad, reference.grad, rtol=1e-10)
                np.testing.assert_allclose(v.grad.data, reference.grad, rtol=1e-10)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures


def test_generators_and_decorators():
    @gradient_checkpoint_scope
    def make(x):
        return ops.exp(x) * x

    @gradient_checkpoint_scope()
    def steps(x):
        for _ in range(2):
            x = ops.exp(x * 0.1)
            yield x

    (a,) = variables(X)
    x = make(a)
    alive = weakref.ref(x.data)
    y = x * a
    del x
    assert alive() is None
    *_, y = steps(make(a))
    ops.sum(y).backward()
    e = np.exp(X)
    one = np.exp(0.1 * e * X)
    np.testing.assert_allclose(a.grad.data, np.exp(0.1 * one) * 0.1 * one * 0.1 * e * (X + 1))


# --- writes in place, statistics, autocast, hooks


def test_in_place_inside_the_scope():
    import torch

    def f(scope):
        a, b, c = torch_leaves()
        with scope():
            x = a * b
            x.mul_(2.0).add_(b)
            x[0] = 0.0
            z = torch.relu_(x - 1)
        ((x * c).sum() + (z * b).sum()).backward()
        return [t.grad.numpy() for t in (a, b, c)]

    for got, want in zip(*both_ways(f, lambda: None)):
        np.testing.assert_array_equal(got, want)


def test_writes_after_the_scope_are_correct_or_refused():
    import torch

    a, b, c = torch_leaves()
    with gradient_checkpoint_scope():
        x = a * b
    x.add_(1.0)
    (x * c).sum().backward()
    np.testing.assert_allclose(c.grad, X * (X + 1) + 1)

    a, b, c = torch_leaves()
    with gradient_checkpoint_scope():
        x = a.exp() * b
    y = (x * c).sum()
    del x
    with torch.no_grad():
        a.add_(1.0)
    with pytest.raises(RuntimeError, match="inplace operation"):
        y.backward()


def test_write_through_an_alias_is_detected():
    import torch

    a, alias = (base := torch.ones(3)), base.detach()
    c = torch.ones(3, requires_grad=True)
    with gradient_checkpoint_scope():
        x = torch.exp(a * 2)
    y = (x * c).sum()
    del x, a, base
    alias.add_(1.0)
    with pytest.raises(RuntimeError, match="inplace operation"):
        y.backward()


@pytest.mark.parametrize("what", ["argument", "constant", "parameter", "view"])
def test_write_between_checkpoint_and_backward_is_refused(what):
    import torch

    a = torch.ones(3, requires_grad=True)
    b = torch.full((4,), 2.0)
    w = torch.nn.Parameter(b.clone())
    used = {"argument": b, "constant": b, "parameter": w, "view": b}[what]
    if what == "argument":
        y = checkpoint(lambda a, b: torch.exp(a * b[1:]))(a, b)
    else:
        y = checkpoint(lambda a: torch.exp(a * used[1:].view(3)))(a)
    with torch.no_grad():
        used.view(2, 2).add_(1.0) if what == "view" else used.add_(1.0)
    with pytest.raises(RuntimeError, match="inplace operation"):
        y.sum().backward()


def readers():
    """Return ways to read a tensor ``c`` of ones in a function of ``a``."""
    import torch

    class Times(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a, c):
            ctx.save_for_backward(a, c)
            return a * c

        @staticmethod
        def backward(ctx, u):
            a, c = ctx.saved_tensors
            return u * c, None

    def into(a, c):
        room = torch.empty(3)
        room[:] = c
        return a * room

    return {
        "attribute": lambda a, c: a * c[None].mT[:, 0],
        "list": lambda a, c: torch.stack([a, c]).prod(0),
        "number": lambda a, c: a * c[0].item(),
        "numpy": lambda a, c: a * float(c.numpy()[1]),
        "function": Times.apply,
        "custom": gradops.custom_gradient(lambda a, c: (a * c, lambda u: (u * c, None))),
        "vmap": lambda a, c: torch.vmap(lambda x: x * c.sum() / 3)(a),
        "rows": lambda a, c: torch.vmap(torch.mul)(a, c),
        "compiled": lambda a, c: torch.compile(lambda a: a * c, backend="aot_eager")(a),
        "operator": torch.ops.aten.mul,
        "into": into,
        "checkpoint": lambda a, c: checkpoint(lambda a: a * c)(a),
        "shape": lambda a, c: a * torch.ones(c.shape) * c.dim() * len(c) / 3,
    }


READERS = "attribute list number numpy function custom vmap rows compiled operator into checkpoint shape".split()


@pytest.mark.parametrize("how", READERS)
def test_write_to_a_constant_is_refused_however_it_was_read(how):
    import torch

    c, read, made = torch.ones(3), readers()[how], []

    def f(a):
        made.append(weakref.ref(h := torch.exp(a)))
        return read(h[None].mT[:, 0], c).sin()

    a = torch.tensor(X, requires_grad=True)
    y = checkpoint(f)(a)
    assert made[0]() is None or how == "custom"  # custom functions keep their arguments
    y.sum().backward()
    np.testing.assert_allclose(a.grad, np.cos(np.exp(X)) * np.exp(X))
    y = checkpoint(f)(a)
    c.add_(1.0)
    with pytest.raises(RuntimeError, match="inplace operation") if how != "shape" else contextlib.nullcontext():
        y.sum().backward()


def test_writes_by_the_checkpointed_function_itself_are_allowed():
    import torch

    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Dropout(0.5), torch.nn.Tanh())
    again, x = checkpoint(net), torch.randn(5, 3)

    def slopes(f):
        torch.manual_seed(1)
        first = f(x)
        total = (first + f(x + 1)).sum()
        return torch.autograd.grad(total, list(net.parameters()))

    for got, want in zip(slopes(again), slopes(net)):
        np.testing.assert_allclose(got, want)


def test_inference_mode():
    import torch

    with torch.inference_mode(), gradient_checkpoint_scope():
        x = torch.exp(torch.ones(3))
    np.testing.assert_allclose(x, np.exp(np.ones(3)), rtol=1e-6)


def test_tensors_stored_by_the_next_scope_are_not_recomputed(monkeypatch):
    import torch

    from gradops.backends import checkpoint_plan as plan

    weights = [torch.full((2, 2), 0.1 * i, requires_grad=True) for i in range(1, 7)]

    def chain(scope):
        h = torch.ones(3, 2)
        for part in (weights[:2], weights[2:4], weights[4:]):
            with scope():
                for w in part:
                    h = torch.tanh(h @ w)
        return torch.autograd.grad(h.sum(), weights)

    want, run, steps = chain(contextlib.nullcontext), plan.Step.run, []
    monkeypatch.setattr(plan.Step, "run", lambda self, *a: steps.append(self.function) or run(self, *a))
    for got, expected in zip(chain(gradient_checkpoint_scope), want):
        np.testing.assert_array_equal(got, expected)
    assert len(steps) == 6  # of 12: the last layer of each scope is stored by the next one or by the caller


def test_torch_version_check_still_applies_to_other_tensors():

    a, b, c = torch_leaves()
    with gradient_checkpoint_scope():
        kept = a * 2
    y = b.exp()
    z = y * c
    y.add_(1.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()
    assert kept is not None


def test_tape_refuses_overwritten_tensors():
    a, b = variables(X, X + 1)
    with gradient_checkpoint_scope():
        x = ops.exp(a) * b
    y = ops.sum(x * x)
    del x
    with autodiff.no_grad():
        a[0] = 5.0
    with pytest.raises(GradientError, match="written in place|in place|modified"):
        y.backward()


def test_batch_norm_statistics_are_updated_once():
    import torch

    def f(scope):
        torch.manual_seed(0)
        net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Tanh())
        x = torch.randn(6, 3)
        with scope():
            y = net(x)
        y.square().sum().backward()
        return [t.detach().numpy() for t in (*net.buffers(), *(p.grad for p in net.parameters()))]

    for got, want in zip(*both_ways(f, lambda: None)):
        np.testing.assert_allclose(got, want, rtol=1e-6)


def test_autocast():
    import torch

    def f(scope):
        torch.manual_seed(0)
        net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2))
        x = torch.randn(6, 3)
        with torch.autocast("cpu", dtype=torch.bfloat16), scope():
            y = net(x)
        y.float().square().sum().backward()
        return [p.grad.numpy() for p in net.parameters()]

    for got, want in zip(*both_ways(f, lambda: None)):
        np.testing.assert_array_equal(got, want)


def test_user_hooks_and_user_checkpoints():
    from torch.autograd.graph import saved_tensors_hooks
    from torch.utils.checkpoint import checkpoint

    a, b, c = torch_leaves()
    packed = []
    with saved_tensors_hooks(lambda t: packed.append(1) or t.detach(), lambda t: t):
        with gradient_checkpoint_scope():
            x = a.exp() * b
        before = len(packed)
        y = x * c
        assert (before, len(packed)) == (0, 2)
    assert len(packed) == 2
    y.sum().backward()
    np.testing.assert_allclose(a.grad, np.exp(X) * (X + 1) * (X + 2))

    a, b, c = torch_leaves()

    def block(a, b):
        with gradient_checkpoint_scope():
            x = a.exp() * b
        return x * b

    (checkpoint(block, a, b, use_reentrant=False) * c).sum().backward()
    np.testing.assert_allclose(a.grad, np.exp(X) * (X + 1) ** 2 * (X + 2))


@pytest.mark.parametrize("hooks", ["the caller's", "another scope's"])
def test_custom_gradients_of_leaves_that_hooks_saved(hooks):
    """For a leaf, a hook returns a different tensor at the same node of the graph."""
    import torch

    @gradops.custom_gradient
    def tripled(x):
        return ops.sin(x), lambda upstream: upstream * 3.0

    @gradops.custom_gradient
    def itself(x):
        return x, lambda upstream: upstream * 5.0

    other = torch.tensor([0.2, 0.4], requires_grad=True)

    @gradops.custom_gradient
    def of_another(x):
        return x * other, lambda upstream: upstream

    x = torch.tensor([0.5, -1.0], requires_grad=True)
    with contextlib.ExitStack() as stack:
        if hooks == "the caller's":
            stack.enter_context(torch.autograd.graph.save_on_cpu())
        else:
            with gradient_checkpoint_scope():
                kept = ops.exp(x)  # the scope's hooks stay while it lives
            assert kept.requires_grad
        both = gradops.checkpoint(lambda v: ops.exp(tripled(v)) * itself(v))
        (g,) = torch.autograd.grad(both(x).sum(), x)
        v = x.detach()
        np.testing.assert_allclose(g, torch.sin(v).exp() * (3 * v + 5), rtol=1e-6)
        with pytest.raises(GradientError, match="not an argument"):
            gradops.checkpoint(lambda v: ops.exp(of_another(v)))(x)


def test_torch_func():
    import torch

    def f(x):
        with gradient_checkpoint_scope():
            return x.exp()

    with pytest.raises(GradientError, match="torch.func"):
        torch.func.grad(f)(torch.tensor(1.0))


def test_torch_compile():
    import torch

    torch._dynamo.reset()

    @torch.compile(backend="aot_eager")
    def f(a, b, c):
        with gradient_checkpoint_scope():
            x = a.exp() * b
        return (x * c).sum()

    a, b, c = torch_leaves()
    f(a, b, c).backward()
    np.testing.assert_allclose(a.grad, np.exp(X) * (X + 1) * (X + 2))


def test_non_tensor_values_pass_through():
    with gradient_checkpoint_scope():
        assert float(ops.exp(0.0)) == 1.0


def test_tensorflow_variables_on_the_tape():
    import tensorflow as tf

    a, c = (Variable(tf.constant(v), requires_grad=True) for v in (X, X + 2))
    with gradient_checkpoint_scope():
        x = ops.exp(a) * a
    y = ops.sum(x * c)
    alive = weakref.ref(x.data)
    del x
    gc.collect()
    assert alive() is None
    y.backward()
    np.testing.assert_allclose(a.grad.data, np.exp(X) * (X + 1) * (X + 2))


def test_bad_input():
    with pytest.raises(ArgumentTypeError, match="`f` must be a function; got int"):
        gradops.checkpoint(3)


# --- layers whose kernels write to what they saved, or to their own buffers


def same_gradients(make):
    """Return the gradients and buffers of a module or function, with and without the scope around it."""
    import torch

    def run(scope):
        torch.manual_seed(1)
        parameters, f, buffers = make()
        torch.manual_seed(2)
        with scope():
            y = f()
        total = y.square().sum()
        del y
        return [*torch.autograd.grad(total, parameters), *buffers, torch.rand(2)]

    for got, want in zip(*both_ways(run, lambda: None)):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-7)


def of_module(make, shape, pick=lambda y: y):
    import torch

    def made():
        net, x = make(), torch.randn(*shape)
        return list(net.parameters()), lambda: pick(net(x)), list(net.buffers())

    return made


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
def test_recurrent_layers(kind, bidirectional):
    import torch

    def make():
        return getattr(torch.nn, kind)(3, 4, num_layers=2, dropout=0.5, bidirectional=bidirectional)

    same_gradients(of_module(make, (5, 2, 3), lambda y: y[0]))


def test_tensor_moves_to_another_storage():
    """cuDNN's recurrent layers do this to their weights. Here: outside storage, a slice of it, and storage of the
    scope.
    """
    import torch

    outside = torch.arange(1.0, 5.0)

    def make():
        x = torch.randn(4, requires_grad=True)

        def f():
            first, second, third = torch.empty(0), torch.empty(0), torch.ones(3)
            first.set_(outside)
            second.set_(outside.untyped_storage(), 2, (2,), (1,))
            third.set_(x.detach() * 3)
            return (x.sin() * first * third).exp() + (x.view(2, 2).cos() * second).view(4)

        return [x], f, []

    same_gradients(make)


@pytest.mark.parametrize("kind", ["RNNCell", "GRUCell", "LSTMCell"])
def test_recurrent_cells(kind):
    import torch

    def make():
        return getattr(torch.nn, kind)(3, 4)

    same_gradients(of_module(make, (2, 3), lambda y: y[0] if isinstance(y, tuple) else y))


def test_packed_sequences():
    import torch

    def make():
        net = torch.nn.LSTM(3, 4)
        x = torch.nn.utils.rnn.pack_padded_sequence(torch.randn(5, 2, 3), [5, 3])
        return list(net.parameters()), lambda: net(x)[0].data, []

    same_gradients(make)


@pytest.mark.parametrize("inplace", [False, True])
def test_rrelu(inplace):
    import torch

    def make():
        w = torch.randn(50, requires_grad=True)
        return [w], lambda: torch.nn.functional.rrelu(w * 2, training=True, inplace=inplace), []

    same_gradients(make)


@pytest.mark.parametrize("old", [False, True])
@pytest.mark.parametrize("times", [1, 2])
def test_spectral_norm(old, times):
    import torch

    def make():
        wrap = torch.nn.utils.spectral_norm if old else torch.nn.utils.parametrizations.spectral_norm
        net = wrap(torch.nn.Linear(3, 3))
        return torch.nn.Sequential(*[net] * times)

    same_gradients(of_module(make, (2, 3)))


def test_instance_norm_statistics():
    import torch

    def make():
        norm = torch.nn.InstanceNorm2d(3, affine=True, track_running_stats=True)
        return torch.nn.Sequential(torch.nn.Conv2d(2, 3, 3), norm, norm)

    same_gradients(of_module(make, (2, 2, 8, 8)))


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("lengths", ["tensors", "lists"])
def test_ctc_loss(reduction, lengths):
    """For lengths given as lists, torch creates a tensor and fills it without going through the dispatcher."""
    import torch

    def make():
        x = torch.randn(6, 2, 5, requires_grad=True)
        targets, sizes = torch.tensor([[1, 2], [3, 4]]), ([6, 5], [2, 1])
        given = sizes if lengths == "lists" else map(torch.tensor, sizes)

        def loss():
            rows = torch.log_softmax(x, -1)
            return torch.nn.functional.ctc_loss(rows, targets, *given, reduction=reduction) * 2.0

        return [x], loss, []

    same_gradients(make)


def test_tensors_filled_by_numpy_are_stored():
    torch = pytest.importorskip("torch")

    def f(scope):
        a, b, _ = torch_leaves()
        with scope():
            noise = torch.empty(3, dtype=a.dtype)
            noise.numpy()[...] = [7.0, 8.0, 9.0]
            first = torch.empty(4, dtype=a.dtype)[1:]
            first.fill_(3.0)
            y = (a * noise).exp() * b * noise * first
        total = (y * b).sum()
        del y, noise, first
        torch.full((1000,), -1.0)
        total.backward()
        return [a.grad.numpy(), b.grad.numpy()]

    for got, want in zip(*both_ways(f, lambda: None)):
        np.testing.assert_array_equal(got, want)


def test_slices_of_a_storage_are_tracked_separately():
    import torch

    from gradops.backends.torch.checkpoint_plan import layout_of, overlap

    base = torch.zeros(4, 6)
    views = [*base.split(2, 1), *base.split(2, 0), base[::2], base[1::2], base[:, 1:3], base.T, base[0], base[:0]]
    views += [base.view(-1)[3:9], base.as_strided((3, 4), (5, 2), 1), base.view(2, 2, 6)[:, 1], base[2:3, 1:4]]
    for one in views:
        for other in views:
            base.zero_()
            one.fill_(1.0)
            shared = bool((other == 1).any())
            assert overlap(layout_of(one), layout_of(other)) >= shared  # never missed
    halves = [layout_of(x) for x in base.split(2, 1)]
    assert not overlap(halves[0], halves[1]) and overlap(halves[0], halves[0])


@pytest.mark.parametrize("inner", [True, False])
@pytest.mark.parametrize("outer", [True, False])
def test_scopes_in_checkpoints_in_scopes_to_second_order(inner, outer):
    import torch

    nothing = contextlib.nullcontext

    def slopes(scope, again):
        x, w, _ = torch_leaves()

        def part(a):
            with scope() if inner else nothing():
                b = torch.exp(a * w * 0.1) * a
            return torch.sin(b)

        with scope() if outer else nothing():
            z = again(part)(x * w) ** 2
        first = torch.autograd.grad((z * x).sum(), [x, w], create_graph=True)
        return [*first, *torch.autograd.grad((first[0] * first[1]).sum(), [x, w])]

    for got, want in zip(slopes(gradient_checkpoint_scope, checkpoint), slopes(nothing, lambda f: f)):
        np.testing.assert_allclose(got.detach(), want.detach(), rtol=1e-10)


# --- under an active GradientTape


def test_torch_and_variables_under_an_active_gradient_tape(tf):
    a, b, c = torch_leaves()
    (v,) = variables(X)
    with tf.GradientTape(), gradient_checkpoint_scope():
        x, u = a.exp() * b, ops.exp(v) * v
    ((x * c).sum()).backward(), ops.sum(u * v).backward()
    np.testing.assert_allclose(a.grad, np.exp(X) * (X + 1) * (X + 2))
    np.testing.assert_allclose(v.grad.data, np.exp(X) * X * (X + 2))


@pytest.mark.parametrize("own", [False, True])
def test_tensorflow_operations_under_a_tape_are_refused(own):
    import tensorflow as tf

    x, square = tf.constant(X), ops.square if own else tf.square
    with tf.GradientTape() as tape:
        tape.watch(x)
        with pytest.raises(BackendError, match="TensorFlow stores what it records"), gradient_checkpoint_scope():
            square(x)
    with gradient_checkpoint_scope(), tf.GradientTape() as tape:
        tape.watch(x)
        with pytest.raises(BackendError, match="under an active"):
            square(x)
    with gradient_checkpoint_scope():
        np.testing.assert_allclose(square(x), X**2)

    @tf.function(autograph=False)
    def graph(x):
        with gradient_checkpoint_scope():
            return square(x)

    with pytest.raises(BackendError, match="in a TensorFlow graph"):
        graph(x)
    np.testing.assert_allclose(square(x), X**2)  # no state is left behind


@pytest.mark.parametrize("change", ["nothing", "other values", "transposed", "other strides", "written"])
def test_outside_torch_tensor_is_recomputed_with_its_value_at_each_use(change):
    torch = pytest.importorskip("torch")

    def changed(c):
        if change == "other values":
            c.data = c.data * 3
        elif change == "transposed":
            c.t_()
        elif change == "other strides":
            c.as_strided_((3, 3), (1, 3))
        elif change == "written":
            c.mul_(2)

    def gradient(scope):
        x, c = torch.arange(9.0).reshape(3, 3).div(9).requires_grad_(), torch.arange(9.0).reshape(3, 3).sin()
        with scope:
            first = torch.sin(torch.tanh(x) + c)
            changed(c)
            y = (first * torch.cos(torch.tanh(x) + c)).sum()
        return torch.autograd.grad(y, x)[0]

    assert torch.equal(gradient(gradient_checkpoint_scope()), gradient(contextlib.nullcontext()))
