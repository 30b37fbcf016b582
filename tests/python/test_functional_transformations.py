"""JAX-style transformations on every backend: identities on random functions, closed forms, nesting, compilation."""

from __future__ import annotations

import functools
import pickle

import numpy as np
import pytest
from parity import numpy, on, tensors

import gradops
from gradops import Variable, _tree, ops
from gradops.errors import ArgumentError, ArgumentTypeError, AxisError, GradientError, ShapeError

SMOOTH = (ops.sin, ops.tanh, ops.softplus, lambda x: x * ops.exp(-x * x), ops.cumsum, lambda x: ops.flip(x, -1))
ROUNDED = gradops.custom_gradient(lambda x: (ops.round(x), lambda upstream: 3.0 * upstream * x))
KEPT = gradops.checkpoint(lambda x: ops.sin(x) * x)
PUSHED = gradops.custom_jvp(ops.sin)
PUSHED.defjvp(lambda primals, tangents: (PUSHED(*primals), 3.0 * tangents[0] * ops.cos(primals[0])))


def random_function(rng):
    """Return a random function from a dict and a vector to a dict, with inputs for it."""
    drawn = rng.choice(len(SMOOTH), size=4)
    matrix = rng.normal(size=(3, 3))

    def f(p, x):
        y = ops.matmul(ops.convert_to_tensor(matrix), p["w"] * x)
        for i in drawn:
            y = SMOOTH[i](y)
        return {"all": KEPT(ROUNDED(y) + ops.logsumexp(x)) + PUSHED(y), "one": [ops.sum(p["b"] * y), p["b"] * 2.0]}

    args = {"w": rng.normal(size=3), "b": rng.normal()}, rng.normal(size=3)
    return f, args, {"all": rng.normal(size=3), "one": [rng.normal(), rng.normal()]}


def drawn_like(rng, tree):
    return _tree.map_leaves(lambda x: rng.normal(size=np.shape(x)), tree)


def product(a, b) -> float:
    return sum(float(np.sum(numpy(x) * numpy(y))) for x, y in zip(_tree.leaves_of(a), _tree.leaves_of(b), strict=True))


def close(found, want):
    """Check that both structures are equal; ``want`` holds plain numbers and lists in place of tensors."""
    if isinstance(found, dict):
        assert set(found) == set(want)
        found, want = found.values(), [want[key] for key in found]
    elif not isinstance(found, (list, tuple)):
        return np.testing.assert_allclose(numpy(found), numpy(want), rtol=1e-9, atol=1e-12)
    for x, y in zip(found, want, strict=True):
        close(x, y)


@pytest.mark.short_cases(1)
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("compiled", [False, True])
def test_vjp_is_the_transpose_of_jvp_and_linearize_is_jvp(backend, seed, compiled):
    rng = np.random.default_rng(seed)
    f, args, cotangent = random_function(rng)
    calls = []

    def counted(*xs):
        calls.append(1)
        return f(*xs)

    def both(args, tangents, cotangents):
        calls.clear()
        value, pullback = gradops.vjp(counted, *args)
        pulled = [pullback(c) for c in cotangents]
        linear, pushforward = gradops.linearize(counted, *args)
        pushed = [pushforward(*t) for t in tangents]
        assert len(calls) == 2
        return value, linear, pulled, pushed, [gradops.jvp(counted, args, t)[1] for t in tangents]

    args, cotangent = (_tree.map_leaves(lambda x: on(backend, x), x) for x in (args, cotangent))
    tangents = [_tree.map_leaves(lambda x: on(backend, x), drawn_like(rng, args)) for _ in range(3)]
    cotangents = [cotangent, _tree.map_leaves(lambda x: 2.0 * x, cotangent)]
    run = gradops.jit(both) if compiled else both
    value, linear, pulled, pushed, products = run(args, tangents, cotangents)
    close(value, f(*args))
    close(linear, value)
    close(pushed, products)
    close(pulled[1], _tree.map_leaves(lambda x: 2.0 * x, pulled[0]))
    for t, moved in zip(tangents, pushed):
        assert product(moved, cotangent) == pytest.approx(product(t, pulled[0]), rel=1e-9)


def test_against_closed_forms(backend):
    x = on(backend, [1.0, 2.0, 3.0])
    value, pullback = gradops.vjp(lambda x, k: k * x**3, x, 2.0)
    close(value, [2.0, 16.0, 54.0])
    close(pullback(on(backend, [1.0, 0.0, 1.0])), ([6.0, 0.0, 54.0], 28.0))
    close(gradops.jvp(lambda x: x**3, (x,), (x,)), ([1.0, 8.0, 27.0], [3.0, 24.0, 81.0]))
    close(gradops.hvp(lambda x: ops.sum(x**3), (x,), (x,)), ([3.0, 12.0, 27.0], [6.0, 24.0, 54.0]))
    first, second = gradops.hvp(lambda x, k: k * ops.sum(x**2), (x, 2.0), (x, 1.0))
    close(first, ([4.0, 8.0, 12.0], 14.0))
    close(second, ([6.0, 12.0, 18.0], 28.0))
    beside = lambda x: (x**2, {"name": "x", "twice": 2 * x})  # noqa: E731
    more = [gradops.vjp(beside, x, has_aux=True), gradops.linearize(beside, x, has_aux=True)]
    for value, moved, aux in (*more, gradops.jvp(beside, (x,), (x,), has_aux=True)):
        close(_tree.leaves_of(moved(x) if callable(moved) else moved), [[2.0, 8.0, 18.0]])
        close([value, aux["twice"]], [[1.0, 4.0, 9.0], [2.0, 4.0, 6.0]])
        assert aux["name"] == "x"


@pytest.mark.parametrize("strategy", [None, "reverse-mode", "forward-mode"])
def test_jacobian_of_a_tree_with_respect_to_a_tree(backend, strategy):
    def f(p, x):
        return {"y": [p["w"] * x[0], ops.sum(p["w"]) * x[1]]}, "more"

    args = {"w": on(backend, [1.0, 2.0])}, [3.0, 4.0]
    found, more = gradops.jacobian(f, (0, 1), has_aux=True, strategy=strategy)(*args)
    assert more == "more"
    close(found["y"][0][0]["w"], 3 * np.eye(2))
    close(found["y"][0][1], [[1.0, 2.0], [0.0, 0.0]])
    close(found["y"][1], ({"w": [4.0, 4.0]}, [0.0, 3.0]))
    by_lists = gradops.jacobian(lambda *a: f(*a)[0], 1)(*args)
    close(by_lists["y"][1], [0.0, 3.0])


@pytest.mark.short_cases(1, "jax", "tensorflow")
@pytest.mark.parametrize("compiled", [False, True])
def test_hessian_of_several_values(backend, compiled):
    """The result is nested like the value, then twice like the argument, as in ``jax.hessian``."""
    a, b = np.array([0.5, -1.0]), 2.0

    def f(p, k):
        return {"y": ops.sin(p["a"]) * p["b"] * k, "s": [ops.sum(p["a"]) ** 2]}, k

    second = gradops.hessian(f, has_aux=True)
    found, aux = (gradops.jit(second) if compiled else second)({"a": on(backend, a), "b": on(backend, b)}, 3.0)
    close(aux, 3.0)
    close(found["y"]["a"]["a"], -3 * b * np.einsum("i,ij,ik->ijk", np.sin(a), np.eye(2), np.eye(2)))
    close(found["y"]["a"]["b"], 3 * np.diag(np.cos(a)))
    close(found["y"]["b"], {"a": 3 * np.diag(np.cos(a)), "b": [0.0, 0.0]})
    close(found["s"][0]["a"], {"a": 2 * np.ones((2, 2)), "b": [0.0, 0.0]})


def test_hessian_of_a_tree(backend):
    found = gradops.hessian(lambda p, k: k * ops.sum(p["w"] ** 2) * p["b"][0])(
        {"w": on(backend, [1, 2]), "b": [3.0]}, 2
    )
    close(found["w"]["w"], 12 * np.eye(2))
    close(found["w"]["b"][0], [4.0, 8.0])
    close(found["b"][0], {"w": [4.0, 8.0], "b": [0.0]})


def test_derivatives_of_pullbacks_and_pushforwards(backend):
    def both(x, c):
        pulled = gradops.vjp(lambda z: ROUNDED(z) * z**2, x)[1](c)[0]
        return ops.sum(pulled * gradops.linearize(ops.sin, x)[1](c))

    x, c = np.array([1.2, 2.0, 2.6]), np.array([1.0, -1.0, 2.0])
    slope = 2 * x * np.round(x) + 3 * x**3  # the derivative by the rule is (2 round + 2x 3x) + 9x^2
    by_x = c**2 * ((2 * np.round(x) + 15 * x**2) * np.cos(x) - slope * np.sin(x))
    derived = gradops.grad(both, (0, 1))
    for run in (derived, gradops.jit(derived)):
        close(run(on(backend, x), on(backend, c)), (by_x, 2 * c * slope * np.cos(x)))
    y = on(backend, 0.5)  # closed over by the function passed to vjp
    close(
        gradops.grad(lambda y: ops.sum(gradops.vjp(lambda z: y * z**2, on(backend, x))[1](on(backend, c))[0]))(y),
        2 * (c @ x),
    )
    close(
        gradops.grad(lambda y: ops.sum(gradops.linearize(lambda z: y * z**2, on(backend, x))[1](on(backend, c))))(y),
        2 * (c @ x),
    )


def test_variables_stay_connected(backend):
    x = on(backend, [1.0, 2.0])
    x = x.requires_grad_() if backend == "torch" else Variable(x, requires_grad=True)
    value, pullback = gradops.vjp(lambda x: x**3, x)
    (g,) = pullback(on(backend, [1.0, 1.0]))
    ops.sum(g + value).backward()
    close(x.grad, [9.0, 24.0])


def test_results_share_no_memory_with_inputs():
    x, c = np.ones(2), np.ones(2)
    value, pullback = gradops.vjp(lambda x: x, x)
    gradops.linearize(lambda x: x, x)[1](c)[:] = 5
    pullback(c)[0][:] = 5
    value[:] = 5
    assert x.tolist() == c.tolist() == [1.0, 1.0]


def test_linear_transpose(backend):
    matrix = np.arange(6.0).reshape(2, 3)

    def f(p, x):
        return ops.matmul(ops.convert_to_tensor(matrix), p["v"]) + 2.0 * x

    args = {"v": on(backend, np.zeros(3))}, on(backend, np.zeros(2))
    for transposed in (
        gradops.linear_transpose(f, *args),
        gradops.jit(lambda c: gradops.linear_transpose(f, *args)(c)),
    ):
        close(transposed(on(backend, [1.0, -1.0])), ({"v": [-3.0, -3.0, -3.0]}, [2.0, -2.0]))
    z = tensors(np.array([1j, 2.0]), backend)
    close(gradops.linear_transpose(lambda z: 1j * z, z)(z), (np.array([-1.0, 2j]),))
    struct = gradops.functional.ShapeDtypeStruct((3,), "float64")
    close(
        gradops.linear_transpose(lambda x, y: 2.0 * x[1:] + y, struct, on(backend, [0.0, 0.0]))(
            on(backend, [1.0, 2.0])
        )[0],
        [0.0, 2.0, 4.0],
    )
    for bent in (ops.square, ops.abs, ops.relu, lambda x: x + 1.0):
        with pytest.raises(GradientError, match="linear"):
            gradops.linear_transpose(bent, on(backend, [1.0, 2.0]))


def test_inside_library_transformations(backend):
    """Covers PyTorch's `torch.func`, `jax.vmap`, and an outer tape."""

    def f(x):
        value, pullback = gradops.vjp(lambda z: ROUNDED(z) * z, x)
        return ops.sum(value * pullback(x)[0]) + ops.sum(gradops.linearize(ops.sin, x)[1](x))

    x = on(backend, [1.2, 2.0])
    r = np.round(numpy(x))
    want = r * numpy(x) ** 2 * (r + 3 * numpy(x) ** 2) + np.cos(numpy(x)) * numpy(x)
    if backend == "torch":
        torch = pytest.importorskip("torch")
        close(torch.func.vmap(f)(x), want)
        close(torch.func.grad(f)(x), gradops.grad(f)(x))
    elif backend == "jax":
        jax = pytest.importorskip("jax")
        close(jax.vmap(f)(x), want)
        close(jax.grad(f)(x), gradops.grad(f)(x))
    elif backend == "tensorflow":
        tf = pytest.importorskip("tensorflow")
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.function(f)(x)
        close(tape.gradient(y, x), gradops.grad(f)(x))
    close(f(x), want.sum())


def test_errors(backend):
    x = on(backend, [1.0, 2.0])
    _, pullback = gradops.vjp(lambda x: {"a": x}, x)
    _, pushforward = gradops.linearize(lambda x: x, x)
    with pytest.raises(ArgumentError, match="`cotangent` must have the structure"):
        pullback(x)
    with pytest.raises(ShapeError, match="`cotangent` must have the shape"):
        pullback({"a": 1.0})
    with pytest.raises(ArgumentError, match="`tangents` must have the structure"):
        pushforward(x, x)
    with pytest.raises(ArgumentTypeError, match="`primals` must be a tuple"):
        gradops.jvp(ops.sin, x, x)
    with pytest.raises(ArgumentTypeError, match="`jacobian\\(f\\)` is a function"):
        gradops.jacobian(ops.sin, x)
    with pytest.raises(ArgumentError, match="strategy"):
        gradops.jacobian(ops.sin, strategy="sideways")
    with pytest.raises(ArgumentTypeError, match="floating"):
        gradops.vjp(ops.sin, ops.cast(x, "int32"))
    with pytest.raises(GradientError, match="`f` must return"):
        gradops.vjp(lambda x: "text", x)


# vmap


def residual(w, x, y):
    return (ops.dot(w, x) - y) ** 2 + ops.sum(ops.tanh(w * x))


def data(backend):
    rng = np.random.default_rng(3)
    return [on(backend, rng.normal(size=size)) for size in ((3,), (4, 3), (4,))]


def by_rows(f, *columns):
    return [numpy(f(*row)) for row in zip(*columns)]


@pytest.mark.short_cases(1, "jax", "tensorflow")
@pytest.mark.parametrize("compiled", [False, True])
def test_vmap_equals_stacked_results(backend, compiled):
    w, xs, ys = data(backend)
    jit = gradops.jit if compiled else lambda f: f
    gradients = jit(gradops.vmap(gradops.grad(residual), in_axes=(None, 0, 0)))(w, xs, ys)
    close(gradients, by_rows(lambda x, y: gradops.grad(residual)(w, x, y), xs, ys))
    second = jit(gradops.vmap(gradops.hessian(lambda x: residual(w, x, 1.0))))(xs)
    close(second, by_rows(gradops.hessian(lambda x: residual(w, x, 1.0)), xs))
    pushed = jit(gradops.vmap(lambda x: gradops.jvp(lambda x: ROUNDED(x) * x, (x,), (w,))[1]))(xs)
    close(pushed, by_rows(lambda x: gradops.jvp(lambda x: ROUNDED(x) * x, (x,), (w,))[1], xs))
    pulled = jit(gradops.vmap(lambda x: gradops.vjp(ops.sin, x)[1](w)[0]))(xs)
    close(pulled, np.cos(numpy(xs)) * numpy(w))


@pytest.mark.short_cases(1, "jax", "tensorflow")
@pytest.mark.parametrize("way", ["value", "vjp", "jvp"])
def test_vmap_of_a_random_function_equals_stacked_results(backend, way):
    """The function contains custom rules and a checkpoint; arguments and results are mapped along random axes."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        f, args, cotangent = random_function(rng)
        leaves, form = _tree.flatten(args)
        axes = [None if rng.random() < 0.3 else int(rng.integers(-np.ndim(x) - 1, np.ndim(x) + 1)) for x in leaves]
        axes[seed] = 0
        many = [np.stack(x + rng.normal(size=(4, *np.shape(x))), 0 if a is None else a) for x, a in zip(leaves, axes)]
        many = [on(backend, x if a is None else y) for x, y, a in zip(leaves, many, axes)]
        cotangent, tangents = (
            _tree.map_leaves(lambda x: on(backend, x), x) for x in (cotangent, drawn_like(rng, args))
        )
        g = {
            "value": f,
            "vjp": lambda *xs: gradops.vjp(f, *xs)[1](cotangent),  # noqa: B023
            "jvp": lambda *xs: gradops.jvp(f, xs, tangents)[1],  # noqa: B023
        }[way]
        rows = [
            g(*_tree.unflatten(form, [x if a is None else ops.take(x, i, axis=a) for x, a in zip(many, axes)]))
            for i in range(4)
        ]
        out_axes = _tree.map_leaves(lambda y: int(rng.integers(-ops.ndim(y) - 1, ops.ndim(y) + 1)), rows[0])  # noqa: B023
        found = gradops.vmap(g, _tree.unflatten(form, axes), out_axes)(*_tree.unflatten(form, many))
        for y, axis, *each in zip(*map(_tree.leaves_of, (found, out_axes, *rows)), strict=True):
            close(y, np.stack([numpy(x) for x in each], axis))


@pytest.mark.short_cases(0, "jax")
@pytest.mark.parametrize("compiled", [False, True])
def test_derivatives_of_vmap(backend, compiled):
    """Covers derivatives with respect to mapped, shared and closed-over tensors."""
    w, xs, ys = data(backend)
    jit = gradops.jit if compiled else lambda f: f
    each = [gradops.grad(residual, (0, 1))(w, x, y) for x, y in zip(xs, ys)]
    total = lambda w, xs: ops.sum(gradops.vmap(residual, (None, 0, 0))(w, xs, ys))  # noqa: E731
    by_w, by_xs = jit(gradops.grad(total, (0, 1)))(w, xs)
    close(by_w, sum(numpy(g) for g, _ in each))
    close(by_xs, [numpy(g) for _, g in each])
    closed = jit(gradops.grad(lambda w: ops.sum(gradops.vmap(lambda x: residual(w, x, 0.0))(xs))))(w)
    close(closed, sum(by_rows(lambda x: gradops.grad(residual)(w, x, 0.0), xs)))
    ruled = jit(gradops.grad(lambda xs: ops.sum(gradops.vmap(lambda x: ROUNDED(x) * x)(xs))))(xs)
    close(ruled, 3 * numpy(xs) ** 2 + np.round(numpy(xs)))
    clipped = jit(gradops.grad(lambda xs: ops.sum(gradops.vmap(gradops.grad(lambda x: ops.sum(x**3)))(xs))))(xs)
    close(clipped, 6 * numpy(xs))


def test_vmap_of_vmap(backend):
    w, xs, ys = data(backend)
    found = gradops.vmap(lambda x: gradops.vmap(lambda y: residual(w, x, y))(ys))(xs)
    close(found, [[numpy(residual(w, x, y)) for y in ys] for x in xs])
    found = gradops.vmap(gradops.vmap(lambda x, y: ops.matmul(x, ops.transpose(y)) + x[0, 0], (None, 0)), (0, None), 1)(
        ops.reshape(xs, (2, 2, 3)), ops.reshape(xs, (2, 2, 3))
    )
    a = numpy(xs).reshape(2, 2, 3)
    close(found, np.stack([[x @ y.T + x[0, 0] for x in a] for y in a]))


def test_axes(backend):
    w, xs, ys = data(backend)

    def f(p, scale, *, y):
        return {"a": p["x"] * scale["k"], "b": [ops.sum(p["x"]) + y, w]}

    args = {"x": ops.transpose(xs), "name": "text"}, {"k": 2.0}
    for axes in (({"x": 1, "name": None}, None), [{"x": -1, "name": None}, {"k": None}]):
        found = gradops.vmap(f, axes, {"a": 1, "b": [0, -1]})(*args, y=ys)
        close(found["a"], 2 * numpy(xs).T)
        close(found["b"][0], numpy(xs).sum(1) + numpy(ys))
        close(found["b"][1], np.stack([numpy(w)] * 4, -1))
    close(gradops.vmap(lambda w: 2.0 * w, None, axis_size=2)(w), [2 * numpy(w)] * 2)
    close(gradops.vmap(lambda x: x * 2.0)(np.ones((0, 2))), np.ones((0, 2)))


def test_value_dependent_functions_are_mapped_row_by_row(backend):
    _, xs, _ = data(backend)
    found = gradops.vmap(lambda x: x if numpy(x)[0] > 0 else ops.negative(x))(xs)
    close(found, np.where(numpy(xs)[:, :1] > 0, numpy(xs), -numpy(xs)))


def test_random_numbers_in_vmap(backend):
    """A NumPy generator draws once for all rows, library generators draw per row, and keys are mapped."""
    _, xs, _ = data(backend)
    drawn = numpy(gradops.vmap(lambda x: x + np.random.default_rng(0).normal())(xs)) - numpy(xs)
    close(drawn, np.full((4, 3), drawn[0, 0]))
    if backend == "jax":
        import jax

        for keys in (jax.random.split(jax.random.key(0), 4), jax.random.split(jax.random.PRNGKey(0), 4)):
            noise = np.stack([np.asarray(jax.random.normal(key, (3,))) for key in keys])
            for g in (
                f := gradops.vmap(gradops.grad(lambda x, k: ops.sum(x * jax.random.normal(k, (3,))))),
                gradops.jit(f),
            ):
                close(g(xs, keys), noise)
        return
    own = {"torch": lambda m: m.randn(3), "tensorflow": lambda m: m.random.normal((3,))}.get(backend)
    if own is not None:
        module = pytest.importorskip(backend)
        drawn = numpy(gradops.vmap(lambda x: x + ops.cast(own(module), "float64"))(xs)) - numpy(xs)
        assert len(np.unique(drawn)) == 12


def test_vmap_calls_f_once_for_all_rows(monkeypatch):
    """On NumPy, for arrays and for traced arrays."""

    def f(x):
        inner = gradops.vmap(lambda y: ops.sum(x) * y)(x)
        return ops.sum(gradops.grad(lambda x: ops.sum(ops.logsumexp(x) * x))(x) + np.maximum(inner, 0.0) @ np.eye(2))

    xs = np.arange(6.0).reshape(3, 2)
    want = [float(f(x)) for x in xs]
    monkeypatch.setattr(ops.mapping, "map", None)
    close(gradops.vmap(f)(xs), want)
    close(gradops.jit(gradops.vmap(f))(xs), want)


def test_errors_of_vmap(backend):
    w, xs, ys = data(backend)
    with pytest.raises(ShapeError, match="one size"):
        gradops.vmap(ops.add)(w, ys)
    with pytest.raises(ShapeError, match="`axis_size` 3"):
        gradops.vmap(ops.sin, axis_size=3)(xs)
    with pytest.raises(ShapeError, match="a number has no dimension"):
        gradops.vmap(ops.add)(xs, 1.0)
    with pytest.raises(ArgumentError, match="`in_axes` must be an axis"):
        gradops.vmap(ops.add, (0, 0, 0))(xs, xs)
    with pytest.raises(ArgumentError, match="`out_axes` must be an axis or"):
        gradops.vmap(ops.sin, out_axes=None)(xs)
    with pytest.raises(ArgumentError, match="nothing is mapped"):
        gradops.vmap(ops.sin, None)(xs)
    with pytest.raises(AxisError):
        gradops.vmap(ops.sin, 2)(xs)
    with pytest.raises(ShapeError):  # raised by the function itself
        gradops.vmap(lambda x: ops.matmul(x, on(backend, np.ones((2, 2)))))(xs)


# custom_jvp


@gradops.custom_jvp
def bent(x, y):
    """Return `x^2 sin(y)`; its declared derivatives are three and two times the natural ones."""
    return ops.square(x) * ops.sin(y)


@bent.defjvp
def bent_rule(primals, tangents):
    (x, y), (s, t) = primals, tangents
    return bent(x, y), 6.0 * x * ops.sin(y) * s + 2.0 * ops.square(x) * ops.cos(y) * t


BY_X, BY_Y = (lambda x, y: 6 * x * np.sin(y)), (lambda x, y: 2 * x**2 * np.cos(y))


@pytest.mark.short_cases(0, "jax")
@pytest.mark.parametrize("compiled", [False, True])
def test_forward_mode_rule(backend, compiled):
    jit = gradops.jit if compiled else lambda f: f
    a, b = np.array([0.5, -1.0]), np.array([0.3, 2.0])
    x, y = on(backend, a), on(backend, b)
    close(jit(bent)(x, y), a**2 * np.sin(b))
    total = lambda x, y: ops.sum(bent(x, y))  # noqa: E731
    close(jit(gradops.grad(total, (0, 1)))(x, y), (BY_X(a, b), BY_Y(a, b)))
    tangent = jit(lambda x, y: gradops.jvp(bent, (x, y), (y, x))[1])(x, y)
    close(tangent, BY_X(a, b) * b + BY_Y(a, b) * a)
    close(jit(lambda x, y: gradops.linearize(bent, x, y)[1](y, x))(x, y), BY_X(a, b) * b + BY_Y(a, b) * a)
    # the rule differentiated again, in every order of modes: by x of 6 x sin(y), by y of it, and by x of 2 x^2 cos(y)
    reverse = jit(gradops.grad(lambda x, y: ops.sum(gradops.grad(total)(x, y)), (0, 1)))(x, y)
    close(reverse, (6 * np.sin(b), 6 * a * np.cos(b)))
    product = jit(lambda x, y: gradops.hvp(lambda x: total(x, y), (x,), (y,))[1])(x, y)
    close(product, 6 * np.sin(b) * b)
    pushed = jit(gradops.grad(lambda x: ops.sum(gradops.jvp(lambda y: bent(x, y), (y,), (y,))[1])))(x)
    close(pushed, 4 * a * np.cos(b) * b)
    third = jit(gradops.grad(lambda y: ops.sum(gradops.hvp(lambda x: total(x, y), (x,), (x,))[1])))(y)
    close(third, 6 * np.cos(b) * a)


def test_rules_in_vmap(backend):
    a = np.array([0.5, -1.0, 2.0])
    x = on(backend, a)
    close(gradops.vmap(gradops.grad(bent), (0, None))(x, 0.3), BY_X(a, 0.3))
    close(gradops.grad(lambda x: ops.sum(gradops.vmap(lambda x: bent(x, x))(x)))(x), BY_X(a, a) + BY_Y(a, a))
    close(gradops.jit(gradops.vmap(gradops.grad(bent), (0, None)))(x, 0.3), BY_X(a, 0.3))


def test_rules_with_structures_and_settings(backend):
    @gradops.custom_jvp
    def f(p, k, names="x"):
        return {"y": p["w"] * k, "n": ops.cast(p["w"], "int32"), "s": ops.sum(p["w"])}

    @f.defjvp
    def rule(primals, tangents):
        (p, k, names), (t, dk, none) = primals, tangents
        assert names == "x" and none is None
        return f(p, k), {"y": 7.0 * t["w"] * k + dk * p["w"], "n": None or f(p, k)["n"], "s": 2.0 * ops.sum(t["w"])}

    x = on(backend, [1.0, 2.0])
    loss = lambda p, k: ops.sum(f(p, k=k)["y"]) + f(p, k)["s"]  # noqa: E731
    close(gradops.grad(loss, (0, 1))({"w": x}, 3.0), ({"w": [23.0, 23.0]}, 3.0))
    close(gradops.grad(lambda p: ops.sum(f(p, 3.0)["y"]))({"w": x})["w"], [21.0, 21.0])

    @functools.partial(gradops.custom_jvp, nondiff_argnums=(0, 2))
    def applied(g, x, n):
        return g(x) * n

    applied.defjvp(lambda g, n, primals, tangents: (applied(g, *primals, n), 10.0 * n * tangents[0]))
    close(gradops.grad(lambda x: ops.sum(applied(ops.sin, x, 2)))(x), [20.0, 20.0])
    by_parts = gradops.custom_jvp(lambda x, y: ops.sin(x) * y)
    by_parts.defjvps(lambda t, value, x, y: 2.0 * t * value, None)
    close(gradops.grad(lambda x, y: ops.sum(by_parts(x, y)), (0, 1))(x, x), (2 * np.sin([1, 2]) * [1, 2], [0.0, 0.0]))
    close(gradops.jvp(by_parts, (x, x), (x, x))[1], 2 * np.sin([1, 2]) * [1, 4])


def test_errors_of_rules(backend):
    x = on(backend, [1.0, 2.0])
    f = gradops.custom_jvp(lambda x: x * 1.0)
    with pytest.raises(GradientError, match="has no rule"):
        f(x)
    for rule, message in (
        (lambda p, t: t[0], "a pair"),
        (lambda p, t: (p[0], ops.sum(t[0])), "a tangent like the value"),
        (lambda p, t: (p[0], {"a": t[0]}), "a tangent like the value"),
    ):
        f.defjvp(rule)
        with pytest.raises(GradientError, match=message):
            gradops.grad(lambda x: ops.sum(f(x)))(x)
    with pytest.raises(ArgumentTypeError, match="`jvp` must be a function"):
        f.defjvp(1)
    with pytest.raises(ArgumentTypeError, match="`fun` must be a function"):
        gradops.custom_jvp(1)
    assert pickle.loads(pickle.dumps(bent)) is bent


def test_rules_in_library_transformations():
    a, b = np.array([0.5, -1.0]), np.array([0.3, 2.0])
    want = (BY_X(a, b), BY_Y(a, b))
    pushed = BY_X(a, b) * b + BY_Y(a, b) * a
    torch = pytest.importorskip("torch")
    x, y = (torch.tensor(v, requires_grad=True) for v in (a, b))
    close(torch.autograd.grad(bent(x, y).sum(), (x, y)), want)
    close(torch.func.jvp(bent, (x.detach(), y.detach()), (y.detach(), x.detach()))[1], pushed)
    close(torch.func.vmap(torch.func.grad(bent))(x.detach(), y.detach()), want[0])
    compiled = torch.compile(lambda x, y: bent(x, y).sum(), backend="eager")
    close(torch.autograd.grad(compiled(x, y), (x, y)), want)
    jax = pytest.importorskip("jax")
    x, y = (jax.numpy.asarray(v) for v in (a, b))
    close(jax.jit(jax.grad(lambda x, y: bent(x, y).sum(), (0, 1)))(x, y), want)
    close(jax.jvp(jax.jit(bent), (x, y), (y, x))[1], pushed)
    close(jax.vmap(jax.jacfwd(bent))(x, y), want[0])
    tf = pytest.importorskip("tensorflow")
    x, y = tf.Variable(a), tf.Variable(b)
    with tf.GradientTape() as tape:
        z = tf.function(bent)(x, y)
    close(tape.gradient(z, (x, y)), want)


PULLED = gradops.custom_gradient(lambda x: (ops.sin(x), lambda upstream: 3.0 * upstream * ops.cos(x)))
TRIPLED = (lambda x: 3 * np.cos(x)), (lambda x: -3 * np.sin(x))
SCALED = (lambda x: -2 * np.cos(x)), (lambda x: -4 * np.sin(x))
RULED = {
    "custom_gradient": (PULLED, *TRIPLED),
    "custom_jvp": (PUSHED, *TRIPLED),
    "scaled": (lambda x: ops.sin(gradops.scaled_gradient(x, -2.0)), *SCALED),
    "stopped": (lambda x: gradops.stop_gradient(PUSHED(x)) * x, np.sin, np.zeros_like),
    "checkpoint": (gradops.checkpoint(ops.sin), np.cos, lambda x: -np.sin(x)),
    "checkpoint-custom_gradient": (gradops.checkpoint(PULLED), *TRIPLED),
    "checkpoint-custom_jvp": (gradops.checkpoint(PUSHED), *TRIPLED),
    "checkpoint-scaled": (gradops.checkpoint(lambda x: ops.sin(gradops.scaled_gradient(x, -2.0))), *SCALED),
}
"""Elementwise functions, the derivative their rule declares, and the derivative of that."""


@pytest.mark.short_cases(2, "jax", "tensorflow")
@pytest.mark.parametrize("name", RULED)
def test_second_derivatives_of_rules_in_every_order_of_modes(backend, name):
    f, first, second = RULED[name]
    a, v = np.array([0.3, -0.7]), np.array([1.0, -2.0])
    x, t = on(backend, a), on(backend, v)
    total = lambda x: ops.sum(f(x))  # noqa: E731
    slope = gradops.grad(total)
    pushed = lambda x: gradops.jvp(total, (x,), (t,))[1]  # noqa: E731
    close([slope(x), gradops.jvp(f, (x,), (t,))[1]], [first(a), first(a) * v])
    for product in (
        gradops.hvp(total, (x,), (t,))[1],
        gradops.linearize(slope, x)[1](t),
        gradops.vjp(slope, x)[1](t)[0],
        gradops.grad(pushed)(x),
        gradops.vmap(lambda x, t: gradops.hvp(f, (x,), (t,))[1])(x, t),
        gradops.jit(lambda x: gradops.hvp(total, (x,), (t,))[1])(x),
    ):
        close(product, second(a) * v)


def test_value_and_linearity_of_a_rule(backend):
    """The value comes from the function itself; a rule that is nonlinear in the tangent is linearised at 0."""
    f = gradops.custom_jvp(lambda x: x * 1.0)
    f.defjvp(lambda primals, tangents: (primals[0] * 100.0, 3.0 * tangents[0] + tangents[0] ** 2))
    value, gradient = gradops.value_and_grad(f)(on(backend, 2.0))
    close([value, gradient], [2.0, 3.0])


@pytest.mark.short_cases(0, "jax")
def test_rule_may_call_its_own_function(backend):
    """Covers calls at the primals, where the rule applies again, and on tangents of a linear function."""
    f = gradops.custom_jvp(ops.exp)
    f.defjvp(lambda primals, tangents: (f(*primals), 3.0 * tangents[0] * f(*primals)))
    first = gradops.grad(f)
    pushed = lambda x: gradops.jvp(f, (x,), (1.0,))[1]  # noqa: E731
    for order, g in enumerate((first, gradops.grad(first), gradops.grad(gradops.grad(first))), 1):
        close(g(on(backend, 0.0)), 3.0**order)
    for g in (gradops.grad(pushed), lambda x: gradops.jvp(pushed, (x,), (1.0,))[1], gradops.hessian(f)):
        close(g(on(backend, 0.0)), 9.0)
    tripled = gradops.custom_jvp(ops.divide)
    tripled.defjvp(lambda primals, tangents: (tripled(*primals), 3.0 * tripled(tangents[0], primals[1])))
    x, y = on(backend, 1.5), on(backend, 2.0)
    by_x = gradops.grad(tripled)
    close(by_x(x, y), 1.5)
    close(gradops.jit(by_x)(x, y), 1.5)
    close(gradops.jvp(tripled, (x, y), (1.0, 5.0))[1], 1.5)
    close(gradops.vmap(by_x, (0, None))(ops.stack([x, x]), y), [1.5, 1.5])
    close(gradops.hessian(tripled, (0, 1))(x, y)[0][1], -0.75)
    close(gradops.grad(gradops.grad(by_x, 1), 1)(x, y), 0.75)
    close(gradops.grad(lambda x: ops.scan(lambda c, _: (tripled(c, y), None), x, None, 2)[0])(x), 2.25)


def test_rule_that_differentiates_itself_is_an_error(backend):
    f = gradops.custom_jvp(ops.exp)
    f.defjvp(lambda primals, tangents: gradops.jvp(f, primals, tangents))
    with pytest.raises(GradientError, match="its own function" if backend != "jax" else "to order 3"):
        gradops.grad(f)(on(backend, 1.0))


def test_second_tangent_of_a_normalization():
    """PyTorch's own kernel gives a wrong one."""
    torch = pytest.importorskip("torch")
    x, v = (torch.tensor([row], dtype=torch.float64) for row in ([0.3, -0.5, 1.2], [1.0, 0.5, -0.2]))

    def tangent(x):
        return torch.func.jvp(lambda x: ops.layer_normalization(x, epsilon=1e-5), (x,), (v,))[1]

    step = 1e-6
    want = (tangent(x + step * v) - tangent(x - step * v)) / (2 * step)
    np.testing.assert_allclose(torch.func.jvp(tangent, (x,), (v,))[1], want, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("backend", ["numpy", "torch", "tensorflow", "jax"])
def test_jvp_is_an_op_by_the_name_of_keras(backend):
    x, v = (gradops.to_backend(np.array(value), backend) for value in ([0.5, 1.0], [2.0, -1.0]))

    def f(x, p):
        return {"a": ops.sin(x) * p[0]}, ops.sum(x)

    for given in (tuple, list):
        arguments = given([x, [v]]), given([v, [x]])
        expected = gradops.jvp(f, *arguments, has_aux=True)
        found = ops.jvp(f, *arguments, has_aux=True)
        assert found[0].keys() == found[1].keys() == {"a"}
        for mine, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(
                *(ops.convert_to_numpy(y["a"] if isinstance(y, dict) else y) for y in (mine, other))
            )
    second = gradops.grad(lambda x: ops.sum(ops.jvp(ops.sin, (x,), (v,))[1]))(x)
    np.testing.assert_allclose(ops.convert_to_numpy(second), -np.sin([0.5, 1.0]) * [2, -1])
    assert ops.linalg.jvp is ops.jvp
    with pytest.raises(ArgumentTypeError, match="`jvp`: `fun` must be a function; got"):
        ops.jvp(x, (x,), (v,))
    with pytest.raises(ArgumentTypeError, match="`jvp`: `primals` must be a tuple"):
        ops.jvp(ops.sin, x, v)
