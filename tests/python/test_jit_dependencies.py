"""Closures of compiled functions: any change leads to a new trace."""

from __future__ import annotations

import array
import builtins
import collections
import concurrent.futures
import contextlib
import contextvars
import dataclasses
import enum
import functools
import importlib
import operator
import os
import random
import re
import sys
import threading
import types
import weakref
from typing import NamedTuple
from unittest.mock import Mock

import numpy as np
import pytest
import scipy.sparse

from gradops import Variable, autodiff, config, custom_gradient, ops, to_backend, value_and_grad
from gradops.jit import JitError, jit
from gradops.jit.dependencies import Captured

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
    """Check that ``jit(f)`` equals ``f`` before and after each change, and that each change has an effect."""
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
    monkeypatch.setattr(Net, "weights", Net.weights)  # restores attributes that the changes below set
    check(
        net.loss,
        put(net, "w", net.w * 5),
        lambda: np.multiply(net.w, 3, out=net.w),
        put(Net, "rate", 2.0),
        put(net, "rate", 3.0),
        put(Net, "weights", lambda self: self.w - 7),
    )


def test_slots_properties_special_methods_and_string_names():
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


def test_rebound_items():
    p, layers = {"w": np.ones(3)}, [[1.0], (np.ones(3), {"b": 1.0})]
    check(
        lambda x: ops.sum(x * p["w"] * layers[0][0] * layers[1][0] * layers[1][1]["b"] * len(layers)),
        lambda: p.update(w=p["w"] + 1),
        lambda: layers[0].__setitem__(0, 3.0),
        lambda: layers[1][1].update(b=5.0),
        lambda: layers.append(None),
    )


@pytest.mark.parametrize(
    "held",
    [np.array(["2020-01-01", "NaT"], "M8[D]"), np.array([1, np.nan], np.longdouble), np.array([1, np.nan], complex)],
    ids=str,
)
def test_missing_dates_and_nan_are_not_changes(held):
    compiled = jit(lambda x: x * len(held[held == held]))
    np.testing.assert_array_equal(compiled(X), X)
    np.testing.assert_array_equal(compiled(X), X)
    assert len(compiled.programs) == 1


def test_signs_of_complex_zeros_are_compared():
    z = np.array([complex(-1.0, -0.0)])
    compiled = jit(lambda x: ops.imag(ops.sqrt(z)) * x)
    np.testing.assert_array_equal(compiled(np.ones(1)), [-1.0])
    z.imag = 0.0
    np.testing.assert_array_equal(compiled(np.ones(1)), [1.0])


def test_values_held_by_library_objects():
    """Covers objects of Python and SciPy whose numbers are written in place."""
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
def test_array_like_object_with_attributes(kind):
    box = kind()
    check(lambda x: ops.multiply(x, box), lambda: box.w.__setitem__(0, 5.0), put(box, "w", np.full(3, 2.0)))
    check(lambda x: x * box.scaled(), put(box, "rate", 3.0), lambda: box.w.__setitem__(0, 7.0))


class Holder:
    """Holds a tensor like a Keras variable or ``nnx.Param``."""

    def __init__(self, value):
        self.value = value

    def __array__(self, dtype=None, copy=None):
        raise AssertionError("taken for an array")


@pytest.mark.parametrize("backend", ["numpy", "torch", "jax"])
def test_tensor_holders(backend):
    pytest.importorskip(backend)
    with config.backend_scope(backend):
        x, held = to_backend(X, backend), Holder(ops.ones((3,)))
        f = jit(lambda x: ops.sum(ops.multiply(x, held)))
        for value in (1.0, 2.0, 5.0):
            held.value = ops.full((3,), value)
            np.testing.assert_allclose(float(f(x)), value * X.sum())


def test_unchanged_containers_do_not_retrace():
    traces = Mock()
    numbers, sparse = array.array("d", [1.0, 2.0]), scipy.sparse.csr_matrix(np.eye(3))

    @jit
    def f(x):
        traces()
        return x * sum(numbers) * sparse.sum()

    for _ in range(5):
        f(X)
    count = traces.call_count
    for _ in range(5):
        f(X)
    assert traces.call_count == count


def test_training_loop_over_a_dict():
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
    with config.backend_scope(backend):
        v = Variable(np.ones(3), requires_grad=True)
        with pytest.raises(JitError, match="(?s)requires a gradient.*pass the variable as an argument"):
            jit(lambda x: ops.sum(x * v))(X)
        assert float(jit(lambda x: ops.sum(x * v.detach()).data)(X)) == X.sum()


def test_local_variables_over_arguments_are_allowed():
    def f(x):
        own = Variable(x).requires_grad_()
        loss = ops.sum(own * own)
        loss.backward()
        return loss, own.grad

    loss, gradient = jit(f)(X)
    np.testing.assert_allclose(loss, np.sum(X**2))
    np.testing.assert_allclose(gradient, 2 * X)


COUNT = 0


def count_globally():
    global COUNT
    COUNT += 1


def own_changes() -> dict:
    """Return functions that modify what they read, by the name of the modified object."""
    net, history, calls, mean, buffer, layer = Net(), [], 0, {"mean": np.zeros(3)}, np.zeros(3), Variable(np.ones(3))

    def attribute(x):
        net.seen += 1
        return net.loss(x)

    def items(x):
        history.append(1)
        return x * len(history)

    def closure(x):
        nonlocal calls
        calls += 1
        return x

    def globally(x):
        count_globally()
        return x * COUNT

    def moving_mean(x):
        mean["mean"] = 0.9 * mean["mean"] + 0.1 * x
        return x - mean["mean"]

    def memory(x):
        buffer[0] += 1
        return x + buffer

    def data(x):
        layer.data = layer.data * 0.5
        return x * layer.data

    def in_a_rule(x):
        def rule(upstream):
            net.seen += 1
            return upstream * net.seen * ops.ones_like(x)

        return value_and_grad(custom_gradient(lambda x: (ops.sum(x), rule)))(x)

    def rule_beside(x, upstream):
        net.seen += 1
        return upstream * net.seen + 0 * x

    beside = custom_gradient(lambda x: ops.sum(x), rule_beside)
    return {
        "Net.seen": attribute,
        "history[...]": items,
        "calls": closure,
        "COUNT": globally,
        "mean[...]": moving_mean,
        "buffer": memory,
        "layer": data,
        "Net.seen, in a rule": in_a_rule,
        "Net.seen, in a rule beside": lambda x: value_and_grad(beside)(x),
    }


@pytest.mark.parametrize("what", own_changes())
def test_side_effects_are_an_error_that_names_them(what):
    with pytest.raises(JitError, match=re.escape(f"changed what it reads, or others may read: `{what.split(',')[0]}`")):
        jit(own_changes()[what])(X)


@pytest.mark.parametrize("backend", ["torch", "jax", "tensorflow"])
def test_side_effects_are_an_error_on_every_backend(backend):
    pytest.importorskip(backend)
    seen = []

    def f(x):
        seen.append(1)
        return x * len(seen)

    with config.backend_scope(backend), pytest.raises(JitError, match="changed what it reads.*`seen"):
        jit(f)(to_backend(X, backend))


class Lazy:
    tables: dict = {}
    scale = None

    @functools.cached_property
    def weights(self):
        return np.full(3, 2.0)

    def table(self, n):
        if n not in self.tables:
            self.tables[n] = np.arange(n)
        return self.tables[n]

    def __call__(self, x):
        if self.scale is None:
            self.scale = 3.0
        return x * self.weights * self.table(3) * self.scale


def test_lazily_created_values_are_not_side_effects():
    lazy, traces = Lazy(), Mock()

    def f(x):
        traces()
        return lazy(x)

    compiled = jit(f)
    for _ in range(3):
        np.testing.assert_allclose(compiled(X), X * 6 * np.arange(3))
    assert traces.call_count == 2
    lazy.scale = 5.0
    np.testing.assert_allclose(compiled(X), X * 10 * np.arange(3))


def test_unread_attributes_do_not_retrace():
    net, calls = Net(), Mock()

    def f(x):
        calls()
        return net.loss(x)

    compiled = jit(f)
    for _ in range(3):
        compiled(X)
        net.steps = calls.call_count  # never read by functions that `f` calls
        net.seen += 1
    assert calls.call_count == 1


# State that Python keeps elsewhere -----------------------------------------------------------------------------------


def test_views_of_changing_arrays():
    base, whole, raw = np.array([1.0]), np.ones((2, 3)), bytearray(np.ones(3))
    spread, rows = np.broadcast_to(base, 3), whole[:]
    rows.flags.writeable = False
    part, of_bytes = rows[1], np.frombuffer(raw)
    of_bytes.flags.writeable = False
    check(lambda x: x * spread, lambda: base.__setitem__(0, 5.0))
    check(lambda x: x * part, lambda: whole.__setitem__((1, 2), 5.0))
    check(lambda x: x * of_bytes, lambda: raw.__setitem__(slice(0, 8), np.float64(7.0).tobytes()))
    fixed = np.ones(3)
    fixed.flags.writeable = False
    for w in (fixed, fixed[1:], np.frombuffer(bytes(8))):
        assert not Captured(lambda x, w=w: x * w).contents


def test_masked_arrays():
    masked = np.ma.array([1.0, 2.0, 3.0], mask=[False, False, True])
    check(lambda x: x * masked.sum(), lambda: masked.mask.__setitem__(0, True))


GLOBAL = 2.0


class Made:
    def __init__(self, k=1.0):
        self.k = k * GLOBAL


class Base:
    def __post_init__(self):
        self.k = self.k * GLOBAL


@dataclasses.dataclass
class Data(Base):
    k: float = 1.0

    def doubled(self):
        return dataclasses.replace(self, k=2.0).k


class Rule(autodiff.Function):
    @staticmethod
    def forward(ctx, x):
        return x * GLOBAL

    @staticmethod
    def backward(ctx, upstream):
        return upstream * GLOBAL * 3


def inside(x):
    class Own:
        def __init__(self):
            self.k = GLOBAL

    return x * Own().k


data = Data()


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x * Made().k,
        inside,
        lambda x: x * Data().k,
        lambda x: x * data.doubled(),
        lambda x: x * type(data)(1.0).k,
        Rule.apply,
        lambda x: value_and_grad(lambda x: ops.sum(Rule.apply(x)))(x)[1],
        lambda x: x * globals()["GLOBAL"],
    ],
)
def test_globals_read_by_created_objects_and_hooks(f, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "GLOBAL", 2.0)
    check(f, put(sys.modules[__name__], "GLOBAL", 3.0))


def test_imports_inside_a_function(tmp_path, monkeypatch):
    for name in ("settings_of_test", "package_of_test/__init__", "package_of_test/part", "package_of_test/user"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        text = "def f(x):\n    from . import part\n    from .part import k\n    return x * k * part.k\n"
        (tmp_path / f"{name}.py").write_text(text if name.endswith("user") else "k = 2.0\n")
    monkeypatch.syspath_prepend(str(tmp_path))

    def f(x):
        import settings_of_test
        from settings_of_test import k

        return x * k * settings_of_test.k

    def by_name(x):
        return x * importlib.import_module("package_of_test.part").k

    compiled = jit(f)
    np.testing.assert_allclose(compiled(X), X * 4)  # imported during the trace
    sys.modules["settings_of_test"].k = 3.0
    np.testing.assert_allclose(compiled(X), X * 9)
    relative = jit(importlib.import_module("package_of_test.user").f)
    np.testing.assert_allclose(relative(X), X * 4)
    sys.modules["package_of_test.part"].k = 3.0
    np.testing.assert_allclose(relative(X), X * 9)
    check(by_name, lambda: setattr(sys.modules["package_of_test.part"], "k", 5.0))
    monkeypatch.setitem(sys.modules, "settings_of_test", types.SimpleNamespace(k=1.0))
    np.testing.assert_allclose(compiled(X), X)


def scaled(x, k=2.0, *, shift=1.0):
    return x * k + shift


def shifted(x, k=2.0, *, shift=1.0):
    return x * k + shift + 5


def test_redefined_functions(monkeypatch):
    for name in ("__defaults__", "__kwdefaults__", "__code__"):
        monkeypatch.setattr(scaled, name, getattr(scaled, name))
    keywords = {"shift": 3.0}
    check(
        lambda x: scaled(x),
        put(scaled, "__defaults__", (3.0,)),
        put(scaled, "__kwdefaults__", keywords),
        lambda: keywords.update(shift=4.0),
        put(scaled, "__code__", shifted.__code__),
    )
    check(
        scaled,
        put(scaled, "__defaults__", (9.0,)),
        put(scaled, "__code__", scaled.__code__.replace(co_consts=(None, 7))),
    )


def test_attributes_with_computed_names():
    net, name = types.SimpleNamespace(k1=2.0, k2=1.0), ["k1"]
    check(
        lambda x: x * getattr(net, "k" + str(1)) * getattr(net, "k3", 1.0),
        put(net, "k1", 3.0),
        put(net, "k3", 3.0),
    )
    check(lambda x: x * getattr(net, name[0]), put(net, "k1", 4.0), lambda: name.__setitem__(0, "k2"))
    check(lambda x: x * sum(vars(net).values()), put(net, "k2", 5.0), put(net, "k4", 5.0))
    check(lambda x: x * net.__dict__["k1"], put(net, "k1", 7.0))
    check(lambda x: x * operator.attrgetter("k1")(net), put(net, "k1", 8.0))
    get = operator.attrgetter("k1")
    check(lambda x: x * get(net), put(net, "k1", 9.0))


def test_constant_attribute_names_do_not_capture_other_attributes():
    net, big = types.SimpleNamespace(k=2.0), types.SimpleNamespace(k=1.0, data=np.ones(3))
    assert not Captured(lambda x: x * getattr(net, "k") * getattr(big, "k", 1.0)).contents  # noqa: B009
    assert Captured(lambda x: x * getattr(big, f"{x}k")).contents


def test_computed_names_do_not_capture_installed_packages():
    found = Captured(lambda x: x * getattr(pytest, f"{x}k"))
    assert len(found._seen) < 3000  # all of pytest's attributes would lead to every loaded module


def test_context_variables_thread_locals_and_the_environment(monkeypatch):
    variable, local, monkey = contextvars.ContextVar("variable"), threading.local(), "GRADOPS_TEST_OF_JIT"
    variable.set(2.0)
    local.k = 2.0
    compiled = jit(lambda x: x * local.k)
    check(lambda x: x * variable.get(), lambda: variable.set(3.0) and None)
    check(lambda x: x * local.k, put(local, "k", 3.0))
    compiled(X)

    def elsewhere():
        local.k = 5.0
        return compiled(X)

    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        np.testing.assert_allclose(pool.submit(elsewhere).result(), 5 * X)
    monkeypatch.setenv(monkey, "2")
    check(lambda x: x * float(os.environ[monkey]), lambda: monkeypatch.setenv(monkey, "3"))
    check(lambda x: x * float(os.getenv(monkey, "1")), lambda: monkeypatch.delenv(monkey))


class Local(threading.local):
    def __init__(self):
        self.k = 2.0

    def value(self):
        return self.k


def test_thread_local_methods_are_not_side_effects():
    local, name = Local(), "k"
    check(lambda x: x * local.value() * getattr(local, name), put(local, "k", 3.0))


class Settings(dict):
    scale = 2.0

    def value(self):
        return self["k"] * self.scale


def test_proxies_and_bound_methods(monkeypatch):
    monkeypatch.setattr(Settings, "scale", 2.0)
    table, numbers, settings = {"k": 2.0}, [2.0], Settings(k=1.0)
    get, item, shown = table.get, numbers.__getitem__, types.MappingProxyType(table)
    values, reference = table.values(), weakref.ref(settings)
    again = functools.partial(lambda x, k: x * k[0], k=numbers)
    check(lambda x: x * get("k") * item(0), lambda: table.update(k=3.0), lambda: numbers.__setitem__(0, 3.0))
    check(lambda x: x * shown["k"] * sum(values), lambda: table.update(k=4.0))
    check(lambda x: x * settings.value(), lambda: settings.update(k=5.0), put(Settings, "scale", 3.0))
    check(lambda x: x * reference().value(), lambda: settings.update(k=6.0))
    check(lambda x: again(x), lambda: numbers.__setitem__(0, 4.0))


def test_random_numbers_of_other_libraries_are_an_error():
    torch = pytest.importorskip("torch")
    generator = torch.Generator()
    for draw in (lambda: torch.rand(()), lambda: torch.rand((), generator=generator)):
        with pytest.raises(JitError, match="random numbers"):
            jit(lambda x, draw=draw: x * float(draw()))(X)
    compiled = jit(lambda x: x * torch.rand(3))  # PyTorch's own graph draws at each call
    x = torch.ones(3)
    assert not torch.equal(compiled(x), compiled(x))


def test_long_chains_of_objects():
    first = last = {"value": 1.0}
    for _ in range(5000):
        last["next"] = {"value": 1.0}
        last = last["next"]
    last["self"] = first
    compiled = jit(lambda x: x * first["value"])
    np.testing.assert_allclose(compiled(X), X)
    first["value"] = 2.0
    np.testing.assert_allclose(compiled(X), 2 * X)


def test_generators_in_objects_read_by_methods():
    class Noisy:
        def __init__(self):
            self.generator = random.Random(1)

        def draw(self):
            return self.generator.random()

        def __call__(self, x):
            return x + self.draw()

    with pytest.raises(JitError, match="random numbers"):
        jit(Noisy())(X)


# Every kind of object that a function can read -----------------------------------------------------------------------


class Color(enum.Enum):
    RED = 1.0


class Point(NamedTuple):
    at: list
    k: float = 1.0


@dataclasses.dataclass
class Record:
    k: float = 1.0
    parts: list = dataclasses.field(default_factory=lambda: [1.0])

    @property
    def product(self):
        return self.k * self.parts[0]

    @functools.cached_property
    def once(self):
        return self.k


@dataclasses.dataclass(frozen=True)
class Frozen:
    parts: list = dataclasses.field(compare=False)


class Scale:
    def __get__(self, instance, owner):
        return GLOBAL


class Kind(type):
    @property
    def scale(cls):
        return GLOBAL


class Special(metaclass=Kind):
    by_descriptor = Scale()
    by_partial = functools.partialmethod(lambda self, k: k * GLOBAL, 2.0)

    @classmethod
    def by_class(cls):
        return GLOBAL

    @staticmethod
    def by_nothing():
        return GLOBAL

    @functools.singledispatchmethod
    def by_type(self, k):
        return k * GLOBAL

    @functools.cache  # noqa: B019
    def remembered(self):
        return GLOBAL

    def __call__(self):
        return GLOBAL

    def __iter__(self):
        return iter([GLOBAL])

    def __contains__(self, k):
        return GLOBAL > 2.5

    def __enter__(self):
        return GLOBAL

    def __exit__(self, *error):
        pass

    def __add__(self, other):
        return other + GLOBAL

    def __getattr__(self, name):
        if name != "anything":
            raise AttributeError(name)
        return GLOBAL


@functools.singledispatch
def of_type(k):
    return k


@of_type.register
def _(k: int):
    return k * GLOBAL


@contextlib.contextmanager
def opened():
    yield GLOBAL


def decorated(f):
    @functools.wraps(f)
    def call(*arguments):
        return f(*arguments) * GLOBAL

    return call


def generated():
    yield GLOBAL


@functools.lru_cache(maxsize=1)
def newest(k):
    return k * GLOBAL


special = Special()
BY_GLOBAL = {
    "classmethod": lambda x: x * special.by_class(),
    "staticmethod": lambda x: x * special.by_nothing(),
    "partialmethod": lambda x: x * special.by_partial(),
    "singledispatchmethod": lambda x: x * special.by_type(3.0),
    "singledispatch": lambda x: x * of_type(3),
    "descriptor": lambda x: x * special.by_descriptor,
    "metaclass": lambda x: x * Special.scale,
    "__call__": lambda x: x * special(),
    "__iter__": lambda x: x * sum(special),
    "__contains__": lambda x: x * (2.0 if 1 in special else 1.0),
    "__add__": lambda x: x * (special + 1.0),
    "__getattr__": lambda x: x * special.anything,
    "decorator": decorated(lambda x: x),
    "generator": lambda x: x * next(generated()),
    "map": lambda x: x * sum(map(lambda k: k * GLOBAL, [1.0, 2.0])),  # noqa: C417
    "vectorize": lambda x: x * np.vectorize(lambda k: k * GLOBAL)(np.ones(3)),
}


def within(x):
    with special as k, opened() as other:
        return x * k * other


@pytest.mark.parametrize("f", [*BY_GLOBAL.values(), within], ids=[*BY_GLOBAL, "with"])
def test_every_way_to_read_a_global(f, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "GLOBAL", 2.0)
    check(f, put(sys.modules[__name__], "GLOBAL", 3.0))


def mutations() -> dict:
    """Return functions that read an object, with mutations of it, by the kind of object."""
    record, point, cell = Record(), Point([1.0]), [types.SimpleNamespace(point=Point([1.0]))]
    of_type_too = functools.singledispatch(lambda k: 1.0)
    of_type_too.register(int, lambda k: 2.0)
    local, ordered = {"k": 1.0}, collections.OrderedDict(a=1.0, b=2.0)
    counts, missing, numbers = collections.Counter("a"), collections.defaultdict(float), {1.0, 2.0}
    names, queue = {"a": 1.0, "b": 2.0}, collections.deque([1.0, 2.0])

    def rebind(k):
        local["k"] = k

    return {
        "property": (lambda x: x * record.product, put(record, "k", 2.0), lambda: record.parts.__setitem__(0, 3.0)),
        "cached property": (lambda x: x * record.once, lambda: (vars(record).pop("once"), put(record, "k", 9.0)())),
        "dataclass": (lambda x: x * dataclasses.asdict(record)["k"], put(record, "k", 5.0)),
        "named tuple": (lambda x: x * point.at[0] * cell[0].point.k, lambda: point.at.__setitem__(0, 2.0),
                        put(cell[0], "point", Point([], 7.0))),
        "enum": (lambda x: x * Color.RED.value * Color.RED.weight, put(Color.RED, "weight", 3.0)),
        "singledispatch": (lambda x: x * of_type_too(1), lambda: of_type_too.register(int, lambda k: 3.0) and None),
        "dict": (lambda x: x * local["k"], lambda: rebind(2.0)),
        "order of a dict": (lambda x: x * next(iter(names.values())), lambda: names.update(a=names.pop("a"))),
        "order": (lambda x: x * next(iter(ordered.values())), lambda: ordered.move_to_end("a")),
        "counter": (lambda x: x * counts["a"], lambda: counts.update("a")),
        "default": (lambda x: x * (1.0 + missing["z"]), lambda: missing.__setitem__("z", 3.0)),
        "set": (lambda x: x * sum(numbers), lambda: numbers.add(7.0)),
        "deque": (lambda x: x * queue[0], lambda: queue.rotate(1)),
        "floatx": (lambda x: x * ops.ones((3,)) * (2.0 if config.floatx() == "float32" else 1.0),
                   lambda: config.set_floatx("float32")),
        "epsilon": (lambda x: x * config.epsilon(), lambda: config.set_epsilon(1e-3)),
        "errstate": (lambda x: x * (2.0 if np.geterr()["divide"] == "ignore" else 1.0),
                     lambda: np.seterr(divide="ignore")),
        "printoptions": (lambda x: x * np.get_printoptions()["precision"], lambda: np.set_printoptions(precision=3)),
    }  # fmt: skip


@pytest.mark.parametrize("kind", mutations())
def test_every_kind_of_object(kind, monkeypatch):
    monkeypatch.setattr(Color.RED, "weight", 1.0, raising=False)
    with contextlib.ExitStack() as restored:
        restored.callback(config.set_floatx, "float64")
        restored.callback(config.set_epsilon, config.epsilon())
        restored.enter_context(np.errstate(divide="warn"))
        restored.enter_context(np.printoptions())
        f, *changes = mutations()[kind]
        check(f, *changes)


def test_global_that_shadows_a_builtin():
    f = types.FunctionType((lambda x: x * abs(-2.0)).__code__, {"__name__": __name__, "__builtins__": builtins})
    check(f, lambda: f.__globals__.update(abs=lambda k: 5.0))


@pytest.mark.parametrize("backend", ["numpy", "torch", "jax", "tensorflow"])
def test_cached_functions(backend, monkeypatch):
    """Covers a global and a closure read by a cached function, and a cleared cache."""
    pytest.importorskip(backend)
    monkeypatch.setattr(sys.modules[__name__], "GLOBAL", 2.0)
    kept = [1.0]

    @functools.cache
    def table(k):
        return k * GLOBAL * kept[0]

    def f(x):
        return x * table(3.0) * special.remembered()

    with config.backend_scope(backend):
        x = to_backend(X, backend)
        compiled = jit(f)

        def check_same():
            np.testing.assert_allclose(np.asarray(compiled(x)), np.asarray(f(x)))

        special.__class__.remembered.cache_clear()
        for change in (
            lambda: monkeypatch.setattr(sys.modules[__name__], "GLOBAL", 5.0),
            table.cache_clear,
            lambda: (table.cache_clear(), f(x)),
            lambda: (special.__class__.remembered.cache_clear(), f(x)),
            lambda: (kept.__setitem__(0, 7.0), table.cache_clear(), f(x)),
            lambda: monkeypatch.setattr(sys.modules[__name__], "GLOBAL", 6.0),
            lambda: (table.cache_clear(), table(3.0)),  # as many calls and hits as before
        ):
            check_same()
            change()
            check_same()


def test_evicting_caches_do_not_retrace_at_each_call(monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "GLOBAL", 2.0)
    traces = Mock()

    def f(x):
        traces()
        return x * newest(1.0) * newest(2.0)  # the second call evicts the first

    compiled = jit(f)
    np.testing.assert_allclose(compiled(X), f(X))
    count = traces.call_count
    for _ in range(3):
        compiled(X)
    assert traces.call_count <= count + 1


class Boxes:
    def __init__(self):
        self.k = [1.0]


def given_statically() -> dict:
    """Return static arguments, functions of them, and mutations of what they hold, by the kind of argument."""
    net, slotted, lists, frozen = Net(), Slotted(), Boxes(), Frozen([1.0])
    partial = functools.partial(lambda x, c: x * c[0], c=[3.0])
    k = 1.0

    def closure(x):
        return x * k

    def rebind():
        nonlocal k
        k = 5.0

    return {
        "attribute": (net, lambda x, a: a.loss(x), put(net, "w", np.full(3, 2.0)), lambda: net.w.fill(7.0)),
        "class attribute": (net, lambda x, a: x * a.rate, put(net, "rate", 3.0)),
        "slots": (slotted, lambda x, a: x * float(a.w[0]), put(slotted, "w", np.full(3, 2.0))),
        "item of an attribute": (lists, lambda x, a: x * a.k[0], lambda: lists.k.__setitem__(0, 2.0)),
        "frozen": (frozen, lambda x, a: x * a.parts[0], lambda: frozen.parts.__setitem__(0, 2.0)),
        "in a tuple": ((net, 1), lambda x, a: x * a[0].rate, put(net, "rate", 4.0)),
        "in a dict": ({"net": net}, lambda x, a: x * a["net"].rate, put(net, "rate", 5.0)),
        "closure": (closure, lambda x, a: a(x), rebind),
        "partial": (partial, lambda x, a: a(x), lambda: partial.keywords["c"].__setitem__(0, 4.0)),
        "method": (net.loss, lambda x, a: a(x), put(net, "rate", 6.0)),
    }  # fmt: skip


@pytest.mark.parametrize("backend", ["numpy", "torch", "jax", "tensorflow"])
@pytest.mark.parametrize("kind", given_statically())
def test_mutated_static_arguments(kind, backend):
    pytest.importorskip(backend)
    static, f, *changes = given_statically()[kind]
    with config.backend_scope(backend):
        x = to_backend(X, backend)
        compiled = jit(f, static_argnums=1)
        other = Net()  # its program is the most recent one
        for change in (lambda: None, *changes):
            change()
            np.testing.assert_allclose(np.asarray(compiled(x, static)), np.asarray(f(x, static)))
            if isinstance(static, Net):
                np.testing.assert_allclose(np.asarray(compiled(x, other)), np.asarray(f(x, other)))
                np.testing.assert_allclose(np.asarray(compiled(x, static)), np.asarray(f(x, static)))
        count = len(compiled.programs)
        compiled(x, static)
        assert len(compiled.programs) == count


# PyTorch --------------------------------------------------------------------------------------------------------------


def test_torch_train_and_eval_modes_are_detected():
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


def test_torch_parameter_updates_are_detected():
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
