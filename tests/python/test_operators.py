"""One table of operators, methods and NumPy functions for variables and for traced arrays."""

from __future__ import annotations

import traceback

import numpy as np
import pytest
from parity import numpy, tensors
from test_variable import FUNCTIONS

from gradops import Variable, autodiff, grad, ops, value_and_grad
from gradops.errors import ArgumentTypeError, JitError
from gradops.functional.batched import Batched
from gradops.functional.batched import register as register_batches
from gradops.jit import jit
from gradops.jit.array import Traced
from gradops.jit.backend import register
from gradops.ops import operators

register()
register_batches()
X = np.array([0.7, 1.9, 2.3])
M = np.array([[4.0, 1.0, 0.5], [0.2, 5.0, 1.3], [0.9, 0.1, 6.0]])
I = np.array([6, 3, 12])  # noqa: E741
J = np.array([2, 3, 1])

EXPRESSIONS = {
    "arithmetic": lambda x, m, i: 2 - x + x * m / 3 - 1.5 * x + m @ x + x @ m,
    "powers and remainders": lambda x, m, i: x**2 + 2**x + x % 0.6 + 5 % x + x // 0.4 + 7 // x,
    "signs": lambda x, m, i: -x + +x - abs(-x),
    "comparisons": lambda x, m, i: ((x < 1) == (x != 0.7), x <= 1.9, 2 > x, x >= m),
    "and": lambda x, m, i: (x > 1) & (x < 2),
    "or": lambda x, m, i: (x > 2) | (x < 1),
    "xor": lambda x, m, i: (x > 1) ^ (x < 2),
    "not": lambda x, m, i: ~(x > 1),
    "bits": lambda x, m, i: (i & J, i | 1, 5 ^ i, ~i, i << J, i >> 1, 1 << i, 64 >> i),
    "getitem": lambda x, m, i: (x[0] * m[1:, ::2], x[None, ..., -1], m[[0, 2], 1], m[np.array([2, 0])], x[..., 1:]),
    "sums": lambda x, m, i: (m.sum(), m.sum(axis=1), m.sum(0, keepdims=True), m.mean(0), m.prod(axis=-1)),
    "extremes": lambda x, m, i: (m.max(), m.min(axis=0), m.argmax(), m.argmin(axis=1), x.clip(1, 2)),
    "spread": lambda x, m, i: (m.var(), m.std(axis=0)),
    "truth": lambda x, m, i: ((m > 1).all(axis=0), (m > 5).any()),
    "scans": lambda x, m, i: (x.cumsum(), m.cumprod(axis=1)),
    "shapes": lambda x, m, i: (m.reshape(9), m.reshape((1, 9)), m.reshape(3, 1, -1), x[None].squeeze(), m.flatten()),
    "orders": lambda x, m, i: (m.T, m.transpose(), m.transpose(1, 0), m.transpose((1, 0)), m.swapaxes(0, 1), m.ravel()),
    "choices": lambda x, m, i: (m.take(np.array([0, 2]), axis=1), x.repeat(2), m.diagonal(), m.trace(), x.argsort()),
    "products": lambda x, m, i: (m.dot(x), x.dot(x)),
    "dtypes": lambda x, m, i: (x.astype("float32"), x.astype("int64"), x.round(), x.round(1), x.copy(), x.conj()),
    "parts": lambda x, m, i: ((x * 1j + 1).real, (x * 1j + 1).imag),
    "attributes": lambda x, m, i: (x * x.size, x * m.ndim, x * len(m), np.ones(m.shape) * x),
    "iteration": lambda x, m, i: sum(row * k for k, row in enumerate(m)) + [*x][1],
    "NumPy's numbers": lambda x, m, i: np.float64(2) * x + x * np.float32(2) + np.array([1.0, 2.0, 3.0]) * x,
}


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_operators_and_methods(name):
    """Checks variables over three libraries and compiled code against NumPy."""
    f = EXPRESSIONS[name]
    wanted = f(X, M, I)
    for library in ("numpy", "jax", "tensorflow"):
        agree(f(*[Variable(tensors(value, library)) for value in (X, M, I)]), wanted, library)
    agree(jit(f)(X, M, I), wanted, "compiled")
    agree(jit(f)(X + 1, M + 1, I + 1), f(X + 1, M + 1, I + 1), "compiled, other values")


def agree(got, wanted, where: str):
    for g, w in zip(
        tuple(got) if isinstance(wanted, tuple) else (got,), wanted if isinstance(wanted, tuple) else (wanted,)
    ):
        np.testing.assert_allclose(numpy(g), w, rtol=1e-6, err_msg=where)
        assert numpy(g).shape == np.shape(w), where
        assert numpy(g).dtype.kind == np.asarray(w).dtype.kind, where


@pytest.mark.parametrize(
    "name",
    [
        "arithmetic",
        "powers and remainders",
        "getitem",
        "sums",
        "extremes",
        "spread",
        "scans",
        "shapes",
        "orders",
        "choices",
        "products",
        "iteration",
        "parts",
    ],
)
def test_gradients_compiled(name):
    def f(x, m):
        result = EXPRESSIONS[name](x, m, I)
        parts = [p for p in (result if isinstance(result, tuple) else (result,)) if "float" in ops.dtype(p)]
        return sum(ops.sum(p * p) for p in parts)

    wanted = value_and_grad(f, argnums=(0, 1))(X, M)
    got = jit(value_and_grad(f, argnums=(0, 1)))(X, M)
    np.testing.assert_allclose(got[0], wanted[0])
    for g, w in zip(got[1], wanted[1]):
        np.testing.assert_allclose(g, w)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_numpy_functions_are_compiled(name):
    f = FUNCTIONS[name]
    for x, m in ((X, M), (X + 0.3, M.T + 0.1)):
        np.testing.assert_allclose(jit(f)(x, m), f(x, m), rtol=1e-12)
        loss = value_and_grad(lambda x, m: ops.sum(f(x, m) ** 2), argnums=(0, 1))
        (value, gradients), (wanted, wanted_gradients) = jit(loss)(x, m), loss(x, m)
        np.testing.assert_allclose(value, wanted, rtol=1e-12)
        for g, w in zip(gradients, wanted_gradients):
            np.testing.assert_allclose(g, w, rtol=1e-10, atol=1e-12)


def test_every_class_implements_the_whole_table():
    for kind in (Variable, Traced, Batched):
        for name in (*operators.METHODS, *operators.PROPERTIES, "__array_ufunc__", "__array_function__"):
            assert callable(getattr(kind, name)) or isinstance(getattr(kind, name), property), (kind, name)
        for name in operators.BINARY:
            assert hasattr(kind, f"__{name}__") and hasattr(kind, f"__r{name}__"), (kind, name)
        assert {kind.__hash__ is None for kind in (Variable, Traced, Batched)} == {False}


def test_numpy_functions_without_an_op_and_values_are_refused():
    for f in (
        np.packbits,
        np.flatnonzero,
        lambda x: np.exp(x, where=[True, False, True]),
        np.array_equiv,
        np.array_str,
    ):
        with pytest.raises((JitError, TypeError)):
            jit(f)(X) if f is not np.array_equiv else jit(lambda x: np.array_equiv(x, x))(X)
    with pytest.raises(JitError, match=r"numpy\.packbits is not recorded"):
        jit(np.packbits)(X)
    with pytest.raises(ArgumentTypeError, match=r"numpy\.packbits is not recorded"):
        np.packbits(Variable(X))
    with pytest.raises(ArgumentTypeError, match="bitwise_and.*integers or bools"):
        Variable(X) & 1
    agree(jit(lambda x: x * np.size(x) + np.ndim(x) * np.shape(x)[0])(X), 3 * X + 3, "shapes are known")


# In-place writes -------------------------------------------------------------------------------------------------

WRITES = {
    "sums": lambda x, y: [y := x * 2, y := y.__iadd__(x), y][-1],
    "numbers": lambda x, y: accumulated(x),
    "items": lambda x, y: written(x * 2, slice(1, None), y[0]),
    "one item": lambda x, y: written(x * 2, 1, y[2]),
    "out": lambda x, y: np.exp(x, out=x * 2) + 1,
    "at": lambda x, y: added_at(x * 2, np.array([0, 0, 2]), y),
    "copyto": lambda x, y: copied(x * 2, y),
    "the same twice": lambda x, y: twins(x),
    "times one": lambda x, y: of_ones(x),
    "views of twins": lambda x, y: views_of_twins(x),
    "several": lambda x, y: several(x, y),
}


def accumulated(x):
    total = 0.0
    for i in range(3):
        before = total
        total += x[i] * 2
    return x * total + before


def written(y, key, value):
    y[key] = value
    return y * 3


def added_at(y, key, value):
    np.add.at(y, key, value)
    return y


def copied(y, value):
    np.copyto(y, value)
    return y * 2


def twins(x):
    a, b = np.sin(x), np.sin(x)
    a += 1
    return a * b


def of_ones(x):
    a = np.exp(x)
    b = a * np.ones(3)
    b *= 2
    return a + b


def views_of_twins(x):
    a, b = np.sin(x), np.sin(x)
    part = a[1:]
    b[1:] += 1
    b += a
    return b * ops.sum(part)


def several(x, y):
    z = x * y
    z -= y
    z *= z
    z /= 3
    z **= 2
    z[0] = x[1]
    z[1:] += y[1:]
    return z


@pytest.mark.parametrize("name", WRITES)
def test_in_place_writes_are_compiled(name):
    f, y = WRITES[name], np.array([0.5, -1.0, 2.0])
    np.testing.assert_allclose(jit(f)(X, y), f(X, y))
    loss = grad(lambda x, y: ops.sum(f(x, y) ** 2), argnums=(0, 1))
    for got, wanted in zip(jit(loss)(X, y), loss(X, y)):
        np.testing.assert_allclose(got, wanted)


def test_writes_visible_elsewhere_are_refused():
    w = np.zeros(3)

    def into_view(x):
        part = (y := x * 2)[1:]
        part += 1
        return y

    def into_source(x):
        part = (y := x * 2)[1:]
        y[0] = 1.0
        return part

    def to_another_place(x):
        part = (y := x * 2)[1:]
        part += 1
        y[:2] = part
        return y

    def into_captured(x):
        w[0] = x[0]
        return x

    for f in (lambda x: x.__iadd__(1.0), lambda x: x.__setitem__(0, 1.0), lambda x: x[1:].__iadd__(1.0)):
        with pytest.raises(JitError, match="wrote in place to an argument"):
            jit(f)(X)
    for f in (into_view, into_source, to_another_place):
        with pytest.raises(JitError, match="wrote in place to a view"):
            jit(f)(X)
        with pytest.raises(JitError, match="wrote in place to a view"):
            jit(grad(lambda x, f=f: ops.sum(f(x) ** 2)))(X)
    for f in (into_captured, lambda x: np.add(x, 1, out=w), lambda x: np.copyto(w, x)):
        with pytest.raises(JitError, match="looked at a value"):
            jit(f)(X)
    with pytest.raises(ArgumentTypeError, match="in place"):
        jit(lambda x: (x * 2).__iadd__(np.ones((2, 3))))(X)
    np.testing.assert_array_equal(w, 0)


# Where an error comes from --------------------------------------------------------------------------------------------


def test_generated_source_appears_in_tracebacks():
    with pytest.raises(ArgumentTypeError) as caught:
        ops.exp(object())
    shown = "".join(traceback.format_tb(caught.value.__traceback__))
    assert '"<gradops op exp>"' in shown and "raise failure" in shown

    compiled = jit(lambda m: ops.inv(m) * 2)
    compiled(np.eye(2))
    with pytest.raises(Exception) as caught:
        compiled(np.zeros((2, 2)))
    shown = "".join(traceback.format_tb(caught.value.__traceback__))
    assert "<gradops program" in shown and "k0(v0" in shown


def test_source_is_dropped_with_its_function():
    import gc
    import linecache

    before = {name for name in linecache.cache if name.startswith("<gradops program")}
    for _ in range(3):
        jit(lambda x: x * 2)(X)
    gc.collect()
    assert {name for name in linecache.cache if name.startswith("<gradops program")} <= before


def test_gradcheck_of_operators():
    assert autodiff.gradcheck(EXPRESSIONS["arithmetic"], (Variable(X, True), Variable(M, True), Variable(I)))


LOOK_UPS = [
    lambda x: ops.sum(x) if x[0] in {1.0, 2.0} else 10 * ops.sum(x),
    lambda x: ops.sum(x) * {1.0: 5.0}.get(x[0], 100.0),
    lambda x: ops.sum(x) * len({x[0], x[1]}),
]


@pytest.mark.parametrize("f", LOOK_UPS)
def test_lookup_by_value_is_an_error(f):
    """The lookup would be by identity and so take the wrong branch."""
    for derived in (grad(f), grad(lambda x: grad(f)(x)[0] * x[1])):
        with pytest.raises(ArgumentTypeError, match=r"cannot be looked up in a set or dict(.|\n)*x.item\(\)"):
            derived(X)
    with pytest.raises(JitError, match="looked up a traced array in a set or dict"):
        jit(f)(X)
    with pytest.raises((ArgumentTypeError, JitError), match="looked up"):
        jit(grad(f))(X)


def test_leaves_are_hashed_by_identity():
    a, b = Variable(1.0, requires_grad=True), Variable(1.0, requires_grad=True)
    steps = {a: 0.1, b: 0.2}
    assert steps[a] == 0.1 and steps[b] == 0.2 and len({a, b, a}) == 2
    (a * b).backward()
    assert grad(lambda x: x * steps[b])(2.0) == 0.2
