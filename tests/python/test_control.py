"""Control flow and mapping: equal results and gradients on every backend, eager, traced and on the tape."""

from collections import namedtuple

import numpy as np
import pytest
from parity import BACKENDS, numpy, tensors

import gradops
from gradops import Variable, autodiff, ops
from gradops.errors import ArgumentError, ArgumentTypeError, GradientError, ShapeError

KINDS = (*BACKENDS, "tape", "tape over jax", "jax.jit", "tf.function")
State = namedtuple("State", "total count")


def evaluate(kind, f, *arrays):
    """Return ``f`` of the arrays as tensors of a kind, eager or traced, as NumPy results."""
    if kind.startswith("tape"):
        return numpy(f(*[Variable(tensors(x, "jax" if "jax" in kind else "numpy")) for x in arrays]))
    if kind == "jax.jit":
        import jax

        return numpy(jax.jit(f)(*[tensors(x, "jax") for x in arrays]))
    if kind == "tf.function":
        import tensorflow as tf

        return numpy(tf.function(f, autograph=False)(*[tensors(x, "tensorflow") for x in arrays]))
    return numpy(f(*[tensors(x, kind) for x in arrays]))


def gradients(kind, f, *arrays, second=False):
    """Return the gradients of a scalar function; with ``second``, of the sum of squared gradients."""
    if kind.startswith("tape"):
        xs = [Variable(tensors(x, "jax" if "jax" in kind else "numpy"), requires_grad=True) for x in arrays]
        gs = autodiff.grad(f(*xs), xs, create_graph=second)
        return numpy(autodiff.grad(sum(ops.sum(g * g) for g in gs), xs) if second else gs)
    if kind in ("jax", "jax.jit"):
        import jax

        every = tuple(range(len(arrays)))
        f = jax.jit(f) if kind == "jax.jit" else f
        g = jax.grad(f, argnums=every)
        if second:
            g = jax.grad(lambda *xs: sum((h * h).sum() for h in jax.grad(f, argnums=every)(*xs)), argnums=every)
        return numpy(g(*[tensors(x, "jax") for x in arrays]))
    if kind == "torch":
        import torch

        xs = [tensors(x, "torch").requires_grad_() for x in arrays]
        gs = torch.autograd.grad(f(*xs), xs, create_graph=second)
        return numpy(torch.autograd.grad(sum((g * g).sum() for g in gs), xs) if second else gs)
    import tensorflow as tf

    xs = [tensors(x, "tensorflow") for x in arrays]
    f = tf.function(f, autograph=False) if kind == "tf.function" else f

    def run():
        with tf.GradientTape() as outer:
            outer.watch(xs)
            with tf.GradientTape() as tape:
                tape.watch(xs)
                y = f(*xs)
            gs = tape.gradient(y, xs)
            loss = sum(tf.reduce_sum(g * g) for g in gs)
        return outer.gradient(loss, xs) if second else gs

    return numpy(tf.function(run, autograph=False)() if second and kind == "tf.function" else run())


def same_everywhere(f, *arrays, second=False):
    """Check values, gradients and optionally second gradients against the tape's, on every backend, also traced."""
    value = evaluate("numpy", f, *arrays)
    first = gradients("tape", f, *arrays)
    again = gradients("tape", f, *arrays, second=True) if second else None
    for kind in KINDS:
        np.testing.assert_allclose(evaluate(kind, f, *arrays), value, rtol=1e-9, err_msg=kind)
        if kind == "numpy":
            continue
        for g, w in zip(gradients(kind, f, *arrays), first):
            np.testing.assert_allclose(g, w, rtol=1e-8, err_msg=kind)
        if second:
            for g, w in zip(gradients(kind, f, *arrays, second=True), again):
                np.testing.assert_allclose(g, w, rtol=1e-8, err_msg=kind)
    return value, first


x3 = np.array([0.5, -1.2, 2.0])
W = np.array([[0.2, -0.3, 0.5], [0.7, 0.1, -0.4], [-0.6, 0.3, 0.2]])
rows = np.linspace(-1, 1, 12).reshape(4, 3)


@pytest.mark.long
def test_scan_of_a_recurrent_net():
    """State, rows and closed-over weights all get gradients; the result equals that of a Python loop."""

    def f(h, xs, w):
        last, ys = ops.scan(lambda h, x: (ops.tanh(ops.matmul(w, h) + x), ops.sum(h * x)), h, xs)
        return ops.sum(last) + ops.sum(ys * ys)

    value, (dh, _, _) = same_everywhere(f, x3, rows[:3], W, second=True)

    def by_hand(h):
        total = 0.0
        for x in rows[:3]:
            total += np.sum(h * x) ** 2
            h = np.tanh(W @ h + x)
        return np.sum(h) + total

    np.testing.assert_allclose(value, by_hand(x3))
    step = 1e-6 * np.eye(3)
    np.testing.assert_allclose(dh, [(by_hand(x3 + s) - by_hand(x3 - s)) / 2e-6 for s in step], rtol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_scan_structures_reverse_and_length(kind):
    def f(xs):
        start = State(xs[0] * 0, {"n": 0})

        def step(state, x):
            total = state.total + x["x"]
            return State(total, {"n": state.count["n"] + 1}), (total, None, [state.count["n"]])

        last, (totals, nothing, counts) = ops.scan(step, start, {"x": xs}, reverse=True)
        assert nothing is None
        count = ops.scan(lambda c, x: (c * 2, None), 1, length=5)[0]
        return [last.total, last.count["n"], totals, counts[0], count]

    total, n, totals, counts, count = evaluate(kind, f, rows)
    np.testing.assert_allclose(total, rows.sum(0))
    np.testing.assert_allclose(totals, rows[::-1].cumsum(0)[::-1])
    np.testing.assert_array_equal(counts, [3, 2, 1, 0])
    assert n == 4 and count == 32


@pytest.mark.parametrize("kind", KINDS)
def test_scan_of_empty_input(kind):
    last, ys = evaluate(kind, lambda xs: ops.scan(lambda c, x: (c + x, c * x), 1.0, xs), np.zeros(0))
    assert last == 1.0 and ys.shape == (0,) and ys.dtype == np.float64
    assert evaluate(kind, lambda xs: ops.map(lambda x: ops.stack([x, x]), xs), np.zeros((0, 2))).shape == (0, 2, 2)


@pytest.mark.parametrize("backend", BACKENDS)
def test_scan_errors(backend):
    xs = tensors(rows, backend)
    zero = xs[0] * 0

    def scan(f, init=zero, **keywords):
        return ops.scan(f, init, **{"xs": xs, **keywords})

    with pytest.raises(ShapeError, match="keep its shapes"):
        scan(lambda c, x: (x[:2], None))
    with pytest.raises(ArgumentError, match="int64 became.*float64"):
        scan(lambda c, x: (ops.add(c, x[0]), None), 0)
    with pytest.raises(ArgumentError, match="structure"):
        scan(lambda c, x: ((c, x), None))
    with pytest.raises(ArgumentError, match="pair"):
        scan(lambda c, x: c)
    with pytest.raises(ArgumentError, match="`length` must be 4"):
        scan(lambda c, x: (c, None), length=3)
    with pytest.raises(ArgumentError, match="`length` is needed"):
        scan(lambda c, x: (c, None), xs=None)
    with pytest.raises(ShapeError, match="first dimension"):
        scan(lambda c, x: (c, None), xs=[xs, xs[:2]])
    with pytest.raises(ArgumentTypeError, match="must be a function"):
        scan(1)
    with pytest.raises(ZeroDivisionError):
        scan(lambda c, x: 1 / 0)


def test_while_loop():
    """Newton's iteration for a square root, with a bound; the derivative is that of the steps taken."""

    def f(a):
        def improve(i, x):
            return i + 1, (x + a / x) / 2

        _, x = ops.while_loop(lambda i, x: ops.sum(ops.abs(x * x - a)) > 1e-12, improve, (0, a), 30)
        return ops.sum(x)

    value, (da,) = same_everywhere(f, np.array([2.0, 9.0]), second=True)
    np.testing.assert_allclose(value, np.sqrt(2) + 3)
    np.testing.assert_allclose(da, [0.5 / np.sqrt(2), 1 / 6], rtol=1e-6)


@pytest.mark.parametrize("kind", [k for k in KINDS if not k.startswith("tape")])
def test_while_loop_bounds_and_structures(kind):
    def f(x):
        start = {"n": 0, "x": x}
        several = ops.while_loop(lambda s: s["n"] < 5, lambda s: {"n": s["n"] + 2, "x": s["x"] * x}, start)
        bounded = [ops.while_loop(lambda n: n < 100, lambda n: n + 1, 0, b) for b in (0, 1, 7, 10, 200)]
        counted = ops.while_loop(lambda n: ops.less(n, x), lambda n: (n + 1,), [0.0])[0]
        return [several["n"], several["x"], *bounded, counted]

    n, x, *bounded, counted = evaluate(kind, f, np.array(1.5))
    assert n == 6 and np.isclose(x, 1.5**4) and counted == 2
    assert [int(b) for b in bounded] == [0, 1, 7, 10, 100]


def test_fori_loop():
    def f(x):
        return ops.sum(ops.fori_loop(1, 4, lambda i, s: s * x + ops.cast(i, "float64"), x))

    value, _ = same_everywhere(f, x3)
    np.testing.assert_allclose(value, np.sum(((x3 * x3 + 1) * x3 + 2) * x3 + 3))


@pytest.mark.parametrize("kind", KINDS)
def test_fori_loop_over_tensor_bounds(kind):
    def f(n):
        return ops.fori_loop(0, n, lambda i, s: s + i, 0)

    if kind.startswith("tape over"):
        n = Variable(tensors(np.array(5), "jax"))
        assert numpy(f(n)) == 10
        return
    assert evaluate(kind, f, np.array(5)) == 10


def test_cond():
    def f(x):
        y = ops.cond(ops.sum(x) > 1, lambda: {"y": x * x}, lambda: {"y": ops.sin(x)})
        z = ops.cond(ops.sum(x) > 100, lambda: x * x, lambda: ops.sin(x))
        return ops.sum(y["y"] * z)

    value, _ = same_everywhere(f, x3, second=True)
    np.testing.assert_allclose(value, np.sum(x3**2 * np.sin(x3)))


@pytest.mark.parametrize("backend", BACKENDS)
def test_cond_calls_only_the_chosen_branch(backend):
    called = []
    ops.cond(tensors(np.array(True), backend), lambda: called.append(1), lambda: called.append(2))
    ops.cond(False, lambda: called.append(3), lambda: called.append(4))
    assert called == [1, 4]
    with pytest.raises(ShapeError, match="single"):
        ops.cond(tensors(np.array([True, False]), backend), lambda: 1, lambda: 2)
    with pytest.raises(ArgumentTypeError, match="`false_fn` must be a function"):
        ops.cond(True, lambda: 1, 2)


def test_cond_passes_operands():
    def f(x):
        return ops.cond(ops.sum(x) > 1, lambda x, by: ops.sum(x**by), lambda x, by: -x[0], x, 3)

    for transformed in (gradops.grad(f), gradops.jit(gradops.grad(f))):
        np.testing.assert_allclose(transformed(np.array([1.0, 2.0])), [3, 12])
        np.testing.assert_allclose(transformed(np.array([0.5, 0.1])), [-1, 0])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("index, wanted", [(-3, 3.0), (0, 3.0), (1, 2.0), (2, 1.0), (9, 1.0)])
def test_switch(kind, index, wanted):
    def f(i, x, y):
        return ops.switch(i, [lambda x, y: x + y, lambda x, y: x * y, lambda x, y: x - y], x, y)

    if kind.startswith("tape"):
        i, (x, y) = np.array(index), (Variable(np.array(v), requires_grad=True) for v in (2.0, 1.0))
        assert numpy(f(i, x, y)) == wanted
        return
    assert evaluate(kind, f, np.array(index), np.array(2.0), np.array(1.0)) == wanted


def test_switch_inside_a_trace_is_differentiable():
    def f(x):
        i = ops.cast(ops.sum(x), "int64")
        return ops.sum(ops.switch(i, [lambda: x, lambda: x * x, lambda: ops.exp(x)]))

    same_everywhere(f, x3)
    with pytest.raises(ArgumentError, match="at least one"):
        ops.switch(0, [])


def test_variables_in_a_trace():
    """The tape records inside ``jax.jit``, including results of a traced condition."""
    import jax

    def f(x):
        v = Variable(x, requires_grad=True)
        y = ops.cond(ops.sum(x) > 1, lambda: v * v, lambda: ops.sin(v))
        z = ops.switch(ops.cast(ops.sum(x), "int64"), [lambda: v, lambda: v * v * v])
        last, _ = ops.scan(lambda c, r: (c * r, None), v, x)
        return autodiff.grad(ops.sum(y) + ops.sum(z) + ops.sum(last), v)[0].data

    np.testing.assert_allclose(jax.jit(f)(x3), 2 * x3 + 3 * x3**2 + np.prod(x3), rtol=1e-6)


def test_closed_over_variables():
    """A variable that only the function closes over gets its gradient, whatever the arguments' library."""
    for backend in ("numpy", "jax", "tensorflow"):
        v = Variable(tensors(np.array(3.0), backend), requires_grad=True)
        xs = tensors(x3, backend)
        last, ys = ops.scan(lambda c, x, v=v: (c + v * x, v * x), tensors(np.array(0.0), backend), xs)
        mapped = ops.vectorized_map(lambda x, v=v: x * v, xs)
        (g,) = autodiff.grad(last + ops.sum(ys) + ops.sum(mapped), v)
        np.testing.assert_allclose(numpy(g), 3 * x3.sum())


def test_map():
    def f(xs, w):
        ys = ops.map(lambda x: {"y": ops.matmul(w, x["x"]), "z": ops.sum(x["x"])}, {"x": xs})
        return ops.sum(ys["y"] * ys["y"]) + ops.sum(ops.exp(ys["z"]))

    value, _ = same_everywhere(f, rows, W)
    np.testing.assert_allclose(value, np.sum((rows @ W.T) ** 2) + np.exp(rows.sum(1)).sum())


def test_vectorized_map():
    def f(xs, w):
        ys = ops.vectorized_map(lambda x: (ops.matmul(w, x[0]), ops.sum(x[0] * x[1])), (xs, xs))
        return ops.sum(ys[0] * ys[0]) + ops.sum(ops.exp(ys[1]))

    value, _ = same_everywhere(f, rows, W)
    np.testing.assert_allclose(value, np.sum((rows @ W.T) ** 2) + np.exp((rows**2).sum(1)).sum())


@pytest.mark.parametrize("kind", [k for k in KINDS if k not in ("jax.jit", "tf.function")])
def test_vectorized_map_of_a_value_dependent_function(kind):
    def f(xs):
        return ops.vectorized_map(lambda x: x * 2 if float(ops.convert_to_numpy(ops.sum(x))) > 0 else -x, xs)

    wanted = np.where(rows.sum(1, keepdims=True) > 0, 2 * rows, -rows)
    np.testing.assert_allclose(evaluate(kind, f, rows), wanted)
    with pytest.raises(KeyError):
        evaluate(kind, lambda xs: ops.vectorized_map(lambda x: {}["missing"], xs), rows)


@pytest.mark.short_cases(3, "jax", "tensorflow")
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("count", [0, 1, 2, 3, 5, 8, 13])
@pytest.mark.parametrize("reverse", [False, True])
def test_associative_scan_of_matrices(backend, count, reverse):
    """Products of matrices do not commute, so a wrong order would be noticed."""
    a = np.random.default_rng(count).normal(size=(2, count, 2, 2))
    got = ops.associative_scan(lambda x, y: ops.matmul(x, y), tensors(a, backend), reverse=reverse, axis=-3)
    wanted = np.zeros_like(a)
    running = np.eye(2)
    for i in range(count)[:: -1 if reverse else 1]:
        running = running @ a[:, i]
        wanted[:, i] = running
    np.testing.assert_allclose(numpy(got), wanted, rtol=1e-10)


def test_associative_scan_of_a_linear_recurrence():
    def f(a, b):
        def combine(left, right):
            return {"a": left["a"] * right["a"], "b": left["b"] * right["a"] + right["b"]}

        return ops.sum(ops.square(ops.associative_scan(combine, {"a": a, "b": b})["b"]))

    value, _ = same_everywhere(f, np.linspace(0.5, 1.2, 5), np.linspace(-1, 1, 5))
    h, total = 0.0, 0.0
    for a, b in zip(np.linspace(0.5, 1.2, 5), np.linspace(-1, 1, 5)):
        h = a * h + b
        total += h * h
    np.testing.assert_allclose(value, total)


def test_lists_of_numbers_are_tensors():
    np.testing.assert_array_equal(ops.associative_scan(lambda a, b: a + b, [1, 2, 3]), [1, 3, 6])
    np.testing.assert_array_equal(ops.map(lambda x: x * 2, [[1, 2], [3, 4]]), [[2, 4], [6, 8]])
    np.testing.assert_array_equal(ops.scan(lambda c, x: (c + x, c), 0, [1, 2, 3])[1], [0, 1, 3])


@pytest.mark.parametrize("kind", KINDS)
def test_vectorize(kind):
    """Covers numpy.vectorize's features: scalars, broadcasting, keywords, excluded arguments."""

    def f(x, y):
        plain = ops.vectorize(lambda a, b: ops.maximum(a, b) - a * b)(x, y)
        kept = ops.vectorize(lambda a, p: ops.sum(a * p), excluded={1})(y, x)
        named = ops.vectorize(lambda a, *, scale, by: a * scale + by, excluded={"by"})(x, scale=y, by=2.0)
        return [plain, kept, named, ops.vectorize(lambda a, b: (a + b, a))(x, 1.0)]

    x, y = x3[:, None], np.array([0.1, 2.0])
    plain, kept, named, pair = evaluate(kind, f, x, y)
    np.testing.assert_allclose(plain, np.vectorize(lambda a, b: max(a, b) - a * b)(x, y))
    np.testing.assert_allclose(kept, y * x.sum())
    np.testing.assert_allclose(named, x * y + 2)
    np.testing.assert_allclose(pair[0], x + 1)
    np.testing.assert_allclose(pair[1], x)


def test_vectorize_signature():
    def f(a, b):
        product = ops.vectorize(ops.matmul, signature="(m,n),(n)->(m)")
        both = ops.vectorize(lambda v: (ops.sum(v), v * 2), signature="(n)->(),(n)")
        return ops.sum(ops.square(product(a, b))) + ops.sum(both(b)[0]) * ops.sum(both(a)[1])

    a, b = np.linspace(-1, 1, 12).reshape(2, 1, 2, 3), np.linspace(0, 1, 9).reshape(3, 3)
    value, _ = same_everywhere(f, a, b)
    np.testing.assert_allclose(value, np.sum(np.einsum("abij,cj->aci", a, b) ** 2) + b.sum() * 2 * a.sum())


@pytest.mark.parametrize("backend", BACKENDS)
def test_vectorize_errors(backend):
    x = tensors(rows, backend)
    with pytest.raises(ArgumentError, match="must be like"):
        ops.vectorize(lambda x: x, signature="n->n")
    with pytest.raises(ShapeError, match="do not fit"):
        ops.vectorize(ops.matmul, signature="(m,n),(n)->(m)")(x, x[0, :2])
    with pytest.raises(ArgumentError, match="2 arguments; got 1"):
        ops.vectorize(ops.matmul, signature="(m,n),(n)->(m)")(x)
    with pytest.raises(ShapeError, match="broadcast"):
        ops.vectorize(lambda a, b: a + b)(x, x[:2])


def test_text_states_are_refused():
    with pytest.raises(ArgumentTypeError, match="must be a number"):
        ops.scan(lambda c, x: (c, x), "state", np.zeros(2))


def test_traced_jax_loops_need_a_bound_for_reverse_mode():
    """If only the running program knows the number of iterations, reverse mode needs an upper bound."""
    import jax

    def f(x, bound):
        return ops.while_loop(lambda y: y < 100, lambda y: y * x, x, bound)

    with pytest.raises(ValueError, match="Reverse-mode differentiation does not work"):
        jax.jit(jax.grad(lambda x: f(x, None)))(3.0)
    np.testing.assert_allclose(jax.jit(jax.grad(lambda x: f(x, 50)))(3.0), 5 * 3.0**4)
    with pytest.raises(ValueError, match="Reverse-mode differentiation does not work"):
        jax.jit(jax.grad(lambda x, n: ops.fori_loop(0, n, lambda i, y: y * x, x)))(3.0, 2)


def doubled(x):
    return ops.while_loop(lambda x: ops.sum(x) < 10.0, lambda x: (x * 2.0,), (x,))[0]


def doubled_in_a_scope(x):
    def step(x):
        with gradops.gradient_checkpoint_scope():
            return (x * 2.0,)

    return ops.while_loop(lambda x: ops.sum(x) < 10.0, step, (x,))[0]


def doubled_times(x, n):
    return ops.fori_loop(0, n, lambda i, x: x * 2.0, x)


UNBOUNDED = {
    "jit": lambda x: gradops.jit(gradops.grad(lambda x: ops.sum(doubled(x))))(x),
    "scope": lambda x: gradops.grad(lambda x: ops.sum(doubled_in_a_scope(x)))(x),
    "jit in vjp": lambda x: gradops.vjp(gradops.jit(doubled), x)[1](x),
    "jit in jacobian": lambda x: gradops.jacobian(gradops.jit(doubled), strategy="reverse-mode")(x),
    "bounds": lambda x: gradops.jit(gradops.grad(lambda x, n: ops.sum(doubled_times(x, n))))(
        x, tensors(np.array(3), "jax")
    ),
}


@pytest.mark.parametrize("name", UNBOUNDED)
def test_unbounded_traced_loop_error_names_alternatives(name):
    pytest.importorskip("jax")
    x = tensors(np.ones(2), "jax")
    with pytest.raises(GradientError, match="use `ops.fori_loop\\(\\)` between numbers, `ops.scan"):
        UNBOUNDED[name](x)
    np.testing.assert_array_equal(numpy(gradops.jvp(gradops.jit(doubled), (x,), (x,))[1]), [8, 8])
