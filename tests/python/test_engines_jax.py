"""Flows in JAX models: Flax (NNX and Linen), Equinox, and Optax's optimizers."""

from __future__ import annotations

import numpy as np
import pytest
import surrogates

from gradops import ops

jax = pytest.importorskip("jax")
jnp = pytest.importorskip("jax.numpy")
optax = pytest.importorskip("optax", reason="needs `tools/setup --engines`")

FLOWS = surrogates.FLOWS
TWINS = surrogates.twins(jnp, jax.lax.stop_gradient)
each_flow = pytest.mark.parametrize("flow", FLOWS)
rng = np.random.default_rng(5)
X, Y = rng.normal(size=(16, 3)), rng.normal(size=(16, 2))


def loss_of(outputs):
    return jnp.mean((outputs - Y) ** 2)


def assert_same(got, want):
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-11), got, want)


@pytest.mark.engine("JAX: Flax NNX, Optax")
@each_flow
def test_nnx(flow):
    nnx = pytest.importorskip("flax.nnx", reason="needs `tools/setup --engines`")

    class Model(nnx.Module):
        def __init__(self, f):
            keys = nnx.Rngs(0)
            self.f = f
            self.first = nnx.Linear(3, 4, rngs=keys, param_dtype=jnp.float64)
            self.second = nnx.Linear(4, 2, rngs=keys, param_dtype=jnp.float64)

        def __call__(self, x):
            return self.second(self.f(jnp.tanh(self.first(x))))

    def train(f):
        model = Model(f)
        steps = nnx.Optimizer(model, optax.adam(0.05), wrt=nnx.Param)

        @nnx.jit
        def step(model, steps):
            loss, gradients = nnx.value_and_grad(lambda m: loss_of(m(X)))(model)
            steps.update(model, gradients)
            return loss

        for _ in range(10):
            step(model, steps)
        return nnx.to_pure_dict(nnx.state(model, nnx.Param))

    assert_same(train(FLOWS[flow]), train(TWINS[flow]))


@each_flow
def test_nnx_parameter_acts_as_its_array(flow):
    """Ops and flows accept an ``nnx.Param`` directly."""
    nnx = pytest.importorskip("flax.nnx", reason="needs `tools/setup --engines`")

    class Model(nnx.Module):
        def __init__(self, f):
            self.f, self.weight = f, nnx.Param(jnp.asarray(X[:3, :2]))

        def __call__(self, x):
            return ops.matmul(x, self.f(self.weight))

    def gradient(f):
        gradients = nnx.grad(lambda m: loss_of(m(X)))(Model(f))
        return nnx.to_pure_dict(nnx.state(gradients))

    assert_same(gradient(FLOWS[flow]), gradient(lambda weight: TWINS[flow](weight[...])))


@pytest.mark.engine("JAX: Flax Linen, Optax")
@each_flow
def test_linen(flow):
    linen = pytest.importorskip("flax.linen", reason="needs `tools/setup --engines`")

    class Model(linen.Module):
        f: object

        @linen.compact
        def __call__(self, x):
            x = jnp.tanh(linen.Dense(4, param_dtype=jnp.float64)(x))
            return linen.Dense(2, param_dtype=jnp.float64)(self.f(x))

    def train(f):
        model = Model(f)
        weights = model.init(jax.random.key(0), X)
        steps = optax.chain(optax.clip_by_global_norm(1.0), optax.sgd(0.05, momentum=0.9))
        state = steps.init(weights)

        @jax.jit
        def step(weights, state):
            gradients = jax.grad(lambda w: loss_of(model.apply(w, X)))(weights)
            updates, state = steps.update(gradients, state, weights)
            return optax.apply_updates(weights, updates), state

        for _ in range(10):
            weights, state = step(weights, state)
        return weights

    assert_same(train(FLOWS[flow]), train(TWINS[flow]))


@pytest.mark.engine("JAX: Equinox, Optax")
@each_flow
def test_equinox(flow):
    equinox = pytest.importorskip("equinox", reason="needs `tools/setup --engines`")

    class Model(equinox.Module):
        first: equinox.nn.Linear
        second: equinox.nn.Linear
        f: object

        def __call__(self, x):
            return self.second(self.f(jnp.tanh(self.first(x))))

    def train(f):
        one, two = jax.random.split(jax.random.key(0))
        layers = (
            equinox.nn.Linear(3, 4, key=one, dtype=jnp.float64),
            equinox.nn.Linear(4, 2, key=two, dtype=jnp.float64),
        )
        model = Model(*layers, f)
        steps = optax.adam(0.05)
        state = steps.init(equinox.filter(model, equinox.is_array))

        @equinox.filter_jit
        def step(model, state):
            gradients = equinox.filter_grad(lambda m: loss_of(jax.vmap(m)(X)))(model)
            updates, state = steps.update(gradients, state)
            return equinox.apply_updates(model, updates), state

        for _ in range(10):
            model, state = step(model, state)
        return equinox.filter(model, equinox.is_array)

    mine, other = train(FLOWS[flow]), train(TWINS[flow])
    assert_same(jax.tree.leaves(mine), jax.tree.leaves(other))


def test_per_sample_gradients_with_a_loss_of_ops():
    labels = rng.integers(0, 2, 16)

    def loss(weight, x, label):
        return ops.sparse_categorical_crossentropy(label, ops.matmul(x, weight), from_logits=True)

    weight = jnp.asarray(rng.normal(size=(3, 2)))
    got = jax.jit(jax.vmap(jax.grad(loss), (None, 0, 0)))(weight, X, labels)

    def own(weight, x, label):
        return optax.softmax_cross_entropy_with_integer_labels(x @ weight, label)

    assert_same(got, jax.vmap(jax.grad(own), (None, 0, 0))(weight, X, labels))
