"""What a compiled function closes over: where it changed, the function is traced again."""

from __future__ import annotations

import array
import collections
import functools
import random
import types

import numpy as np
import pytest
import scipy.sparse

from gradops import Variable, config, ops, to, value_and_grad
from gradops.jit import JitError, jit

X = np.array([0.5, 1.0, 1.5])


class Net:
    rate = 1.0

    def __init__(self):
        self.w = np.ones(3)
        self.seen = 0

    def weights(self):
        return self.w * self.rate

    def predict(self, x):
        return ops.multiply(x, self.weights())

    def loss(self, x):
        return ops.sum(self.predict(x))


class Derived(Net):
    def loss(self, x):
        return super().loss(x) * 2


class Slotted:
    __slots__ = ("w",)

    def __init__(self):
        self.w = np.ones(3)

    @property
    def scaled(self):
        return 2 * self.w

    def __getitem__(self, name):
        return getattr(self, "w")  # noqa: B009  by name, as over a list of names

    def loss(self, x):
        return ops.sum(x * self.scaled * self["w"])


class Boxed:
    def __init__(self):
        self.w, self.rate = np.ones(3), 1.0

    def __array__(self, dtype=None, copy=None):
        return self.w

    def scaled(self):
        return self.w * self.rate


class Unpicklable(Boxed):
    def __reduce_ex__(self, protocol):
        raise ValueError


def check(f, *changes):
    """``jit(f)`` gives what ``f`` gives, before and after each change, and the change was not without effect."""
    compiled = jit(f)
    np.testing.assert_allclose(compiled(X), f(X))
    for change in changes:
        before = f(X)
        change()
        assert not np.allclose(f(X), before)
        np.testing.assert_allclose(compiled(X), f(X))


def put(where, name, value):
    return functools.partial(setattr, where, name, value)


@pytest.mark.parametrize("kind", [Net, Derived])
def test_attributes_read_in_helper_methods(kind, monkeypatch):
    net = kind()
    monkeypatch.setattr(Net, "rate", 1.0)
    monkeypatch.setattr(Net, "weights", Net.weights)  # put back what the changes below set
    check(
        net.loss,
        put(net, "w", net.w * 5),
        lambda: np.multiply(net.w, 3, out=net.w),
        put(Net, "rate", 2.0),
        put(net, "rate", 3.0),
        put(Net, "weights", lambda self: self.w - 7),
    )


def test_slots_properties_special_methods_and_names_as_text():
    slotted = Slotted()
    check(slotted.loss, put(slotted, "w", np.full(3, 2.0)), lambda: slotted.w.fill(3))


def test_class_attributes(monkeypatch):
    monkeypatch.setattr(Net, "rate", 1.0)
    check(lambda x: x * Net.rate, put(Net, "rate", 4.0))


def test_names():
    settings = types.SimpleNamespace(k=2.0)
    check(lambda x: x * settings.k, put(settings, "k", 3.0))


def test_partial_arguments():
    c, d = [2.0], {"k": np.ones(3)}
    f = functools.partial(lambda c, x, d: x * c[0] * d["k"], c, d=d)
    check(f, lambda: c.__setitem__(0, 9.0), lambda: d.update(k=np.full(3, 2.0)), lambda: d["k"].fill(7))


def test_items_bound_anew():
    p, layers = {"w": np.ones(3)}, [[1.0], (np.ones(3), {"b": 1.0})]
    check(
        lambda x: ops.sum(x * p["w"] * layers[0][0] * layers[1][0] * layers[1][1]["b"] * len(layers)),
        lambda: p.update(w=p["w"] + 1),
        lambda: layers[0].__setitem__(0, 3.0),
        lambda: layers[1][1].update(b=5.0),
        lambda: layers.append(None),
    )


def test_what_libraries_hold():
    """Numbers in objects of Python's and SciPy's own that are written in place."""
    numbers, raw, queue = array.array("d", [1.0, 2.0]), bytearray(b"ab"), collections.deque([1.0])
    sparse, objects = scipy.sparse.csr_matrix(np.eye(3)), np.array([1.0, [2.0]], object)
    around, chained = collections.UserDict(a=1.0), collections.ChainMap({"a": 1.0})
    looked_at = memoryview(array.array("d", [1.0]))
    check(lambda x: x * sum(numbers), lambda: numbers.__setitem__(0, 7.0), lambda: numbers.append(1.0))
    check(lambda x: x * sum(raw), lambda: raw.__setitem__(0, 0), lambda: raw.extend(b"c"))
    check(lambda x: x * looked_at[0], lambda: looked_at.__setitem__(0, 7.0))
    check(lambda x: x * sum(queue), lambda: queue.append(5.0), lambda: queue.__setitem__(0, 3.0))
    check(lambda x: x * around["a"], lambda: around.update(a=3.0))
    check(lambda x: x * chained["a"], lambda: chained.update(a=3.0))
    check(lambda x: x * objects[0], lambda: objects.__setitem__(0, 3.0))
    check(lambda x: x * sum(objects[1]), lambda: objects[1].append(3.0))
    check(
        lambda x: x * sparse.sum() + sparse @ np.ones(3),
        lambda: sparse.data.__setitem__(0, 5.0),
        lambda: sparse.__setitem__((0, 0), 2.0),
    )


def test_data_frames():
    pd = pytest.importorskip("pandas")
    s, frame = pd.Series([1.0, 2.0, 3.0]), pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": [3.0, 4.0, 5.0], "n": list("uvw")})
    check(lambda x: x * s, lambda: s.__setitem__(0, 10.0), lambda: s.iloc.__setitem__(slice(None), 3.0))
    check(lambda x: x * s.sum(), lambda: s.__setitem__(0, 10.0))
    check(
        lambda x: x * frame["a"].sum() + frame.b,
        lambda: frame.loc.__setitem__((0, "a"), 50.0),
        lambda: frame.__setitem__("a", [7.0, 8.0, 9.0]),
        lambda: frame.rename(columns={"a": "b", "b": "a"}, inplace=True),
    )
    check(lambda x: x * (frame.n == "u").sum(), lambda: frame.loc.__setitem__((1, "n"), "u"))


@pytest.mark.parametrize("kind", [Boxed, Unpicklable])
def test_an_object_that_is_an_array_and_has_attributes(kind):
    box = kind()
    check(lambda x: ops.multiply(x, box), lambda: box.w.__setitem__(0, 5.0), put(box, "w", np.full(3, 2.0)))
    check(lambda x: x * box.scaled(), put(box, "rate", 3.0), lambda: box.w.__setitem__(0, 7.0))


class Holder:
    """Holds a tensor as Keras's variables and ``nnx.Param`` do."""

    def __init__(self, value):
        self.value = value

    def __array__(self, dtype=None, copy=None):
        raise AssertionError("taken for an array")


@pytest.mark.parametrize("backend", ["numpy", "torch", "jax"])
def test_what_holds_a_tensor(backend):
    pytest.importorskip(backend)
    with config.use_backend(backend):
        x, held = to(X, backend), Holder(ops.ones((3,)))
        f = jit(lambda x: ops.sum(ops.multiply(x, held)))
        for value in (1.0, 2.0, 5.0):
            held.value = ops.full((3,), value)
            np.testing.assert_allclose(float(f(x)), value * X.sum())


def test_unchanged_tables_do_not_trace_again():
    traces = []
    numbers, sparse = array.array("d", [1.0, 2.0]), scipy.sparse.csr_matrix(np.eye(3))

    @jit
    def f(x):
        traces.append(1)
        return x * sum(numbers) * sparse.sum()

    for _ in range(5):
        f(X)
    count = len(traces)
    for _ in range(5):
        f(X)
    assert len(traces) == count


def test_a_training_loop_over_a_dict():
    p = {"w": np.zeros(3)}
    step = jit(value_and_grad(lambda x: ops.sum(ops.square(ops.multiply(x, x) - p["w"]))))
    for _ in range(3):
        value, gradient = step(X)
        np.testing.assert_allclose(value, np.sum((X**2 - p["w"]) ** 2))
        np.testing.assert_allclose(gradient, 4 * X * (X**2 - p["w"]))
        p["w"] = p["w"] + 1


def test_data_of_variables():
    v = Variable(np.ones(3))
    compiled = jit(lambda x: ops.sum(x * v))
    assert float(compiled(X)) == X.sum()
    v.data = np.full(3, 4.0)
    assert float(compiled(X)) == 4 * X.sum()


@pytest.mark.parametrize("backend", ["numpy", "jax", "tensorflow"])
def test_variables_that_require_a_gradient_are_an_error(backend):
    with config.use_backend(backend):
        v = Variable(np.ones(3), requires_grad=True)
        with pytest.raises(JitError, match="(?s)requires a gradient.*pass the variable as an argument"):
            jit(lambda x: ops.sum(x * v))(X)
        assert float(jit(lambda x: ops.sum(x * v.detach()).data)(X)) == X.sum()


def test_own_variables_of_arguments_are_none():
    def f(x):
        own = Variable(x).requires_grad_()
        loss = ops.sum(own * own)
        loss.backward()
        return loss, own.grad

    loss, gradient = jit(f)(X)
    np.testing.assert_allclose(loss, np.sum(X**2))
    np.testing.assert_allclose(gradient, 2 * X)


def test_own_changes_do_not_trace_again():
    net, history, calls = Net(), [], 0

    def f(x):
        nonlocal calls
        calls += 1
        net.seen += 1
        history.append(1)
        return net.loss(x)

    compiled = jit(f)
    for _ in range(3):
        compiled(X)
    assert calls == net.seen == len(history) == 1
    net.w = net.w * 2
    assert float(compiled(X)) == 2 * X.sum()
    assert calls == 2


def test_other_attributes_do_not_trace_again():
    net, calls = Net(), []

    def f(x):
        calls.append(1)
        return net.loss(x)

    compiled = jit(f)
    for _ in range(3):
        compiled(X)
        net.steps = len(calls)  # nothing that `f` calls reads it
        net.seen += 1
    assert len(calls) == 1


def test_chains_of_objects_of_any_length():
    first = last = {"value": 1.0}
    for _ in range(5000):
        last["next"] = {"value": 1.0}
        last = last["next"]
    last["self"] = first
    compiled = jit(lambda x: x * first["value"])
    np.testing.assert_allclose(compiled(X), X)
    first["value"] = 2.0
    np.testing.assert_allclose(compiled(X), 2 * X)


def test_generators_in_objects_that_methods_read():
    class Noisy:
        def __init__(self):
            self.generator = random.Random(1)

        def draw(self):
            return self.generator.random()

        def __call__(self, x):
            return x + self.draw()

    with pytest.raises(JitError, match="random numbers"):
        jit(Noisy())(X)


# PyTorch --------------------------------------------------------------------------------------------------------------


def test_torch_modes_are_seen():
    import torch

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.drop = torch.nn.Dropout(0.5)
            self.k = 1.0

        def forward(self, x):
            return self.scaled(self.drop(x))

        def scaled(self, x):
            return x * self.k * (2 if self.training else 1)

    for model, scale in ((torch.nn.Sequential(torch.nn.Dropout(0.5)), 1), (Model(), 1)):
        x = torch.ones(200, dtype=torch.float64)
        compiled = jit(lambda x, model=model: model(x))
        assert (compiled(x) == 0).any()
        model.eval()
        assert (compiled(x) == scale).all()
        model.train()
        assert (compiled(x) == 0).any()
    model.eval()
    model.k = 3.0
    assert (compiled(x) == 3).all()
    model.drop = torch.nn.Identity()
    model.train()
    assert (compiled(x) == 6).all()


def test_torch_parameters_are_seen():
    import torch

    layer = torch.nn.Linear(3, 1, bias=False, dtype=torch.float64)
    x = torch.tensor(X)
    compiled = jit(lambda x: layer(x) * torch.exp(layer.weight.detach()).sum())

    def check():
        wanted = layer(x) * torch.exp(layer.weight.detach()).sum()
        np.testing.assert_allclose(compiled(x).detach().numpy(), wanted.detach().numpy())

    check()
    layer.weight = torch.nn.Parameter(torch.ones(1, 3, dtype=torch.float64))
    check()
    layer.weight.data = torch.full((1, 3), 2.0, dtype=torch.float64)
    check()
    with torch.no_grad():
        layer.weight.mul_(2)
    check()
    layer.register_forward_hook(lambda module, inputs, result: -result)
    check()
