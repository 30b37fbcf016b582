"""Taylor mode against closed forms, JAX's jet, and nested forward mode."""

from __future__ import annotations

import math
import time
import warnings

import numpy as np
import pytest
from parity import tensors
from test_facts import CASES_OF

import gradops
from gradops import _tree, autodiff, config, ops, scipy
from gradops.errors import ArgumentError, ArgumentTypeError, GradientError, ShapeError
from gradops.functional import jet, root
from gradops.ops._dispatch import registry


def numbers(tree):
    return _tree.map_leaves(lambda x: ops.convert_to_numpy(x), tree)


def derivatives(f, x, v, order):
    """Return the derivatives of ``f`` at ``x`` along ``v``."""
    return numbers(jet(f, (x,), ([v, *[ops.zeros_like(x)] * (order - 1)],))[1])


def along(f, primals, series, order):
    """Return the value and derivatives of ``f`` along a curve, by nested forward mode."""
    one = ops.ones_like(ops.sum(primals[0]))

    def curve(t):
        moved = [
            sum(s * (math.prod([t] * (k + 1)) * (1 / math.factorial(k + 1))) for k, s in enumerate(p)) for p in series
        ]
        return f(*map(ops.add, primals, moved))

    found = []
    for _ in range(order + 1):
        found.append(curve(one * 0))
        curve = (lambda f: lambda t: gradops.jvp(f, (t,), (one,))[1])(curve)
    return found


CLOSED = {
    "exp": (ops.exp, [1, 1, 1, 1, 1, 1]),
    "sin": (ops.sin, [0, 1, 0, -1, 0, 1]),
    "tanh": (ops.tanh, [0, 1, 0, -2, 0, 16]),
    "log1p": (ops.log1p, [0, 1, -1, 2, -6, 24]),
    "sqrt": (lambda x: ops.sqrt(1 + x), [1, 1 / 2, -1 / 4, 3 / 8, -15 / 16, 105 / 32]),
    "divide": (lambda x: (1 + x) / (1 - x), [1, 2, 4, 12, 48, 240]),
    "power": (lambda x: x**3, [0, 0, 0, 6, 0, 0]),
    "exponent": (lambda x: 2.0**x, [math.log(2) ** k for k in range(6)]),
    "arctan": (ops.arctan, [0, 1, 0, -2, 0, 24]),
    "constant": (lambda x: 2.0, [2, 0, 0, 0, 0, 0]),
    "choice": (lambda x: ops.maximum(x + x**2, -1.0) if x > -1 else x, [0, 1, 2, 0, 0, 0]),
    "stop": (lambda x: (1 + x) * gradops.stop_gradient(2 + x), [2, 2, 0, 0, 0, 0]),
}


@pytest.mark.short_cases(4, "jax")
@pytest.mark.parametrize("name", CLOSED)
def test_closed_forms_to_order_5(backend, name):
    f, wanted = CLOSED[name]
    x, one, zero = (tensors(np.array(float(v)), backend) for v in (0, 1, 0))
    value, found = jet(f, (x,), ([one] + [zero] * 4,))
    np.testing.assert_allclose(numbers([value, *found]), wanted, atol=1e-12)


def matrices(x):
    """Apply ops of each kind: linear, products, decompositions, and selections by order."""
    a = ops.matmul(x, ops.transpose(x)) + 2 * ops.eye(3, dtype="float64")
    parts = [ops.solve(a, x), ops.cholesky(a), ops.eigh(a)[0], ops.softmax(x), ops.sort(x, axis=0), ops.max(x, axis=1)]
    parts += [ops.where(x > 0, x**2, ops.sin(x)), ops.take(x, [2, 0], axis=0), ops.slogdet(a)[1]]
    return ops.stack([ops.sum(part) for part in parts])


@pytest.mark.short_cases(0, "jax")
def test_matrix_ops_agree_on_all_libraries(backend):
    rng = np.random.default_rng(0)
    x, series = rng.normal(size=(3, 3)), list(rng.normal(size=(3, 3, 3)))
    with config.backend_scope("numpy"):
        value, *found = along(matrices, (x,), (series,), 3)
    x, series = _tree.map_leaves(lambda x: tensors(x, backend), (x, series))
    got = numbers(jet(matrices, (x,), (series,)))
    np.testing.assert_allclose([got[0], *got[1]], [value, *found], rtol=1e-6, atol=1e-6)


REFUSED = {"eig": "complex", "unique": "trace"}
"""Ops that raise an error for series."""


WITH_DERIVATIVE = {name: found for name in sorted(CASES_OF) if (found := [c for c in CASES_OF[name] if c.gradients])}


@pytest.mark.short_cases(98)
@pytest.mark.parametrize("name", WITH_DERIVATIVE)
def test_all_ops_with_a_derivative(name):
    rng = np.random.default_rng(0)
    for case in WITH_DERIVATIVE[name]:
        inputs = case.examples(3)[-1]
        leaves, form = _tree.flatten([inputs[k] for k in case.gradients])
        if not all(isinstance(x, np.ndarray) and x.dtype == np.float64 for x in leaves):
            continue
        rest = {k: v for k, v in inputs.items() if k not in case.gradients}
        series = [[rng.normal(size=x.shape) * 0.3 for _ in range(2)] for x in leaves]

        def f(*xs, case=case, rest=rest, form=form):
            y = case.function()(**rest, **dict(zip(case.gradients, _tree.unflatten(form, xs))))
            parts = [part for part in _tree.leaves_of(y) if np.dtype(ops.dtype(part)).kind in "fc"]
            return [ops.convert_to_tensor(part) for part in parts]

        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            if name in REFUSED:
                with pytest.raises((GradientError, ArgumentError), match=REFUSED[name]):
                    jet(f, leaves, series)
                continue
            value, found = jet(f, leaves, series)
            wanted = along(f, leaves, series, 2)
        for i, parts in enumerate(zip(value, *zip(*found))):
            for got, part in zip(parts, [values[i] for values in wanted]):
                assert (got.shape, got.dtype) == (part.shape, part.dtype)
                np.testing.assert_allclose(got, part, rtol=1e-6, atol=1e-8 * np.nanmax(np.abs(part), initial=1))


def elementwise_of_one_argument():
    for entry in {registry[name].name: registry[name] for name in registry}.values():
        needed = [p for p in entry.signature.parameters.values() if p.default is p.empty]
        own = not entry.name.startswith(("test", "main"))  # not defined by other tests or pages
        if own and entry.facts.elementwise and entry.differentiable and len(entry.tensors) == len(needed) == 1:
            yield entry


@pytest.mark.long
@pytest.mark.parametrize("order", [2, pytest.param(3, marks=pytest.mark.long)])
def test_all_elementwise_ops_of_one_argument(order):
    assert scipy.special and sum(1 for _ in elementwise_of_one_argument()) > 150
    v, zero = np.ones(1), np.zeros(1)
    for entry in elementwise_of_one_argument():
        x = np.array([1.3 if entry.facts.domain is not None and entry.facts.domain[0] == 1 else 0.37])
        with np.errstate(all="ignore"):
            try:
                _, *wanted = along(entry.call, (x,), ([v],), order)
            except GradientError as error:  # entropies have no known third derivative
                assert "beyond order 2" in str(error)
                continue
            found = jet(entry.call, (x,), ([v, zero, zero][:order],))[1]
        np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-12, err_msg=entry.name)


@pytest.mark.parametrize("name", ["i1e", "k1e", "loggamma", "erfcx", "spence"])
def test_cost_does_not_grow_exponentially_with_the_order(name):
    """Nested forward mode of order 12 would cost hundreds of times order 4: 12 s where rules share no results."""
    f, x, zeros = getattr(scipy.special, name), np.array([0.7]), [np.zeros(1)] * 11

    def seconds(order):
        start = time.perf_counter()
        jet(f, (x,), ([np.ones(1), *zeros[: order - 1]],))
        return time.perf_counter() - start

    assert min(seconds(12) for _ in range(3)) < 60 * min(seconds(4) for _ in range(3))


def test_matches_jax_jet():
    pytest.importorskip("jax")
    import jax.numpy as jnp
    from jax.experimental import jet as theirs

    rng = np.random.default_rng(0)
    w, x = (jnp.asarray(rng.normal(size=shape)) for shape in ((4, 3), (3,)))
    series = [jnp.asarray(s) for s in rng.normal(size=(5, 3))], [jnp.asarray(s) for s in rng.normal(size=(5, 4, 3))]

    def model(np):
        return lambda x, w: {"y": np.tanh(np.matmul(w, x)), "z": np.sum(np.exp(-x) / (1 + x**2))}

    value, found = jet(model(ops), (x, w), series)
    wanted = theirs.jet(model(jnp), (x, w), series)
    for got, part in zip((value, found), wanted):
        for a, b in zip(_tree.leaves_of(got), _tree.leaves_of(part)):
            np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10)


def loss(x):
    return ops.sum(ops.sin(x) * ops.exp(x[0]) / (1 + x**2))


def scoped(x):
    with gradops.stop_gradient_scope():
        y = x * x
    return ops.sum(x * y)


class Square(autodiff.Function):
    @staticmethod
    def forward(ctx, x):
        return x * x

    @staticmethod
    def backward(ctx, g):
        return g


def sines(x):
    return ops.sum(ops.sin(x))


hundredfold = gradops.custom_gradient(lambda x: (ops.sin(x), lambda upstream: 100 * upstream))

INSIDE = {
    "grad": (lambda x: ops.sum(gradops.grad(loss)(x) * x), None),
    "grad of what it closes over": (lambda x: ops.sum(gradops.grad(lambda y: loss(y * x) * x[0])(x)), None),
    "jvp": (lambda x: gradops.jvp(loss, (x,), (x * x,))[1], None),
    "jet": (lambda x: jet(lambda y: loss(y * x), (x,), ([x, 0 * x],))[1][1], lambda x: second(x)),
    "jit": (lambda x: gradops.jit(loss)(x), loss),
    "vmap": (
        lambda x: ops.sum(gradops.vmap(lambda y: ops.sin(y) * y * x[0])(x)),
        lambda x: ops.sum(ops.sin(x) * x * x[0]),
    ),
    "checkpoint": (gradops.checkpoint(loss), loss),
    "stop": (lambda x: ops.sum(x * gradops.stop_gradient(x * x)), None),
    "scope": (scoped, None),
    "custom_gradient": (lambda x: ops.sum(hundredfold(x)), sines),
    "scaled_gradient": (lambda x: sines(gradops.scaled_gradient(x, 2.0)), sines),
    "Function": (lambda x: ops.sum(Square.apply(x)), lambda x: ops.sum(x * x)),
    "fori_loop": (lambda x: ops.sum(ops.fori_loop(0, 3, lambda i, y: ops.sin(y) + y, x)), None),
    "scan": (lambda x: ops.sum(ops.scan(lambda s, y: (s * y, s + y), x[0], x)[1]), None),
    "cond": (lambda x: ops.cond(x[0] > 0, lambda: ops.sum(x**3), lambda: ops.sum(x)), None),
    "root": (lambda x: ops.sum(root(lambda y: y**3 + y - x, x)), None),
}


def second(x):
    return gradops.jvp(lambda y: gradops.jvp(lambda z: loss(z * x), (y,), (x,))[1], (x,), (x,))[1]


@pytest.mark.short_cases(4, "jax")
@pytest.mark.parametrize("name", INSIDE)
def test_features_allowed_in_a_function(backend, name):
    f, plain = INSIDE[name]
    x, v = (tensors(np.array(x), backend) for x in ([0.3, 0.7], [1.0, -0.5]))
    wanted = along(plain or f, (np.array([0.3, 0.7]),), ([np.array([1.0, -0.5])],), 2)[1:]
    np.testing.assert_allclose(derivatives(f, x, v, 2), wanted, rtol=1e-8)


def test_results_computed_in_a_scope_are_not_reused_outside(backend):
    """The result of a call under stop-gradient must not serve the same call after it."""

    def f(x, hidden):
        with hidden():
            ops.exp(x)
        return ops.sum(ops.exp(x))

    x, v = (tensors(np.array(x), backend) for x in ([0.0, 0.0], [1.0, 2.0]))
    for hidden in (gradops.stop_gradient_scope, autodiff.no_grad):
        np.testing.assert_allclose(derivatives(lambda x, hidden=hidden: f(x, hidden), x, v, 2), [3, 5])
        found = gradops.grad(lambda a, hidden=hidden: jet(lambda x: f(a * x, hidden), (v,), ([v],))[1][0])
        np.testing.assert_allclose(numbers(found(x[0] * 0 + 1.0)), 2 * np.exp(1) + 6 * np.exp(2))


CONSTANT = {
    "no_grad": autodiff.no_grad,
    "set_grad_enabled": lambda: autodiff.set_grad_enabled(False),
    "inference_mode": autodiff.inference_mode,
    "stop_gradient_scope": gradops.stop_gradient_scope,
}


def scope_with_constant(scope, inner=ops.square):
    def f(x):
        with scope():
            c = inner(x)
        return x * c

    return f


@pytest.mark.short_cases(1, "jax")
@pytest.mark.parametrize("scope", CONSTANT)
def test_results_under_no_grad_modes_are_constant(backend, scope):
    f = scope_with_constant(CONSTANT[scope])
    x, one = tensors(np.array(2.0), backend), tensors(np.array(1.0), backend)
    for outside in (True, False):
        with autodiff.set_grad_enabled(outside):
            np.testing.assert_allclose(derivatives(f, x, one, 2), [4, 0])
            nested = derivatives(lambda x: jet(f, (x,), ([one],))[1][0], x, one, 1)
            np.testing.assert_allclose([*nested, *derivatives(gradops.grad(f), x, one, 1)], [0, 0])
    each = gradops.vmap(lambda x: jet(f, (x,), ([one],))[1][0])(x[None])
    compiled = gradops.jit(lambda x: jet(f, (x,), ([one],))[1][0])(x)
    np.testing.assert_allclose([*numbers(each), numbers(compiled)], [4, 4])

    def inside(x):
        with CONSTANT[scope]():
            return jet(ops.square, (x,), ([one],))[1][0]

    np.testing.assert_allclose(derivatives(lambda x: x * inside(x), x, one, 1), 4)

    def inner(x):
        with autodiff.enable_grad():
            return x * x

    recorded = scope != "inference_mode"  # inference mode records nothing
    np.testing.assert_allclose(
        derivatives(scope_with_constant(CONSTANT[scope], inner), x, one, 1), 12 if recorded else 4
    )
    for derived in (gradops.grad(lambda y: y**3 / 3), lambda x: Square.apply(x)):
        np.testing.assert_allclose(derivatives(scope_with_constant(CONSTANT[scope], derived), x, one, 1), 4)


def test_pytorch_grad_modes(torch):
    x = torch.tensor(2.0, dtype=torch.float64)
    for scope in (torch.no_grad, lambda: torch.set_grad_enabled(False)):
        f = scope_with_constant(scope)
        for outside in (True, False):
            with torch.set_grad_enabled(outside):
                np.testing.assert_allclose(derivatives(f, x, x / 2, 2), [4, 0])
                np.testing.assert_allclose(derivatives(gradops.grad(f), x, x / 2, 1), 0)
        np.testing.assert_allclose(derivatives(scope_with_constant(scope, gradops.grad(ops.square)), x, x / 2, 1), 4)
    with pytest.raises(GradientError, match="records nothing here"):
        derivatives(scope_with_constant(torch.inference_mode), x, x / 2, 1)
    leaf = x.clone().requires_grad_()
    with torch.no_grad():
        assert not any(y.requires_grad for y in jet(ops.square, (leaf,), ([x],))[1])
    assert jet(ops.square, (leaf,), ([x],))[1][0].requires_grad


def test_variable_made_inside_the_function(backend):
    """A variable holds the series; stopping it stops all derivatives of the enclosing levels."""
    if backend == "torch":
        return  # no variable holds torch tensors
    x, one = tensors(np.array(2.0), backend), tensors(np.array(1.0), backend)
    for stop in (gradops.stop_gradient, lambda v: v.detach() if isinstance(v, gradops.Variable) else v):
        np.testing.assert_allclose(derivatives(lambda x, s=stop: (v := gradops.Variable(x)) * s(v * v), x, one, 1), 4)
    np.testing.assert_allclose(derivatives(gradops.grad(lambda x: x * gradops.stop_gradient(x * x)), x, one, 1), 0)


def test_solutions_of_equations_to_order_6():
    """The number of recorded steps equals the order; y**3 + y = x has a known series by Lagrange inversion."""
    found = derivatives(lambda x: root(lambda y: y**3 + y - x, x), np.array(0.0), np.array(1.0), 6)
    np.testing.assert_allclose(found, [1, 0, -6, 0, 360, 0], atol=1e-9)


def test_differentiated_and_compiled(backend):
    x, v = (tensors(np.array(x), backend) for x in ([0.3, 0.7], [1.0, -0.5]))

    def f(x, a=1.0):
        return jet(lambda y: loss(a * y), (x,), ([v, ops.zeros_like(v)],))[1][1]

    def curvature(x, a=1.0):
        h = 1e-4
        return (loss(a * (x + h * direction)) + loss(a * (x - h * direction)) - 2 * loss(a * x)) / h**2

    at, direction = np.array([0.3, 0.7]), np.array([1.0, -0.5])
    one = tensors(np.array(1.0), backend)
    np.testing.assert_allclose(numbers(gradops.grad(f)(x)), gradops.grad(curvature)(at), rtol=1e-5)
    by_scale = gradops.grad(curvature, 1)(at, np.array(1.0))
    np.testing.assert_allclose(numbers(gradops.grad(f, 1)(x, one)), by_scale, rtol=1e-5)
    np.testing.assert_allclose(numbers(gradops.jit(f)(x)), numbers(f(x)), rtol=1e-10)
    np.testing.assert_allclose(numbers(gradops.jit(gradops.grad(f))(x)), numbers(gradops.grad(f)(x)), rtol=1e-10)
    each = gradops.vmap(lambda y: jet(lambda t: ops.sin(t) * t, (y,), ([one, 0 * one],))[1][1])
    np.testing.assert_allclose(numbers(each(x)), 2 * np.cos(at) - at * np.sin(at), rtol=1e-10)


def test_errors(backend):
    x = tensors(np.array([0.3, 0.7]), backend)
    with pytest.raises(ArgumentTypeError, match="`primals` must be a tuple"):
        jet(ops.sin, x, ([x],))
    with pytest.raises(ArgumentTypeError, match="`series` must be a tuple"):
        jet(ops.sin, (x,), ([x], [x]))
    with pytest.raises(ArgumentError, match="all of one length"):
        jet(ops.add, (x, x), ([x], [x, x]))
    with pytest.raises(ShapeError):
        jet(ops.sin, (x,), ([x[:1]],))
    with pytest.raises(ArgumentTypeError, match="has no series"):
        jet(lambda x: ops.sum(x) * float(x[0]), (x,), ([x],))
    with pytest.raises(ArgumentTypeError, match="has no series"):
        jet(lambda x: np.asarray(x) + x, (x,), ([x],))
    with pytest.raises(GradientError):
        jet(ops.argmax, (x,), ([x],))

    def written(x):
        x[0] = 1.0
        return x

    with pytest.raises(GradientError, match="in-place writes"):
        jet(written, (x,), ([x],))


def test_integers_beyond_64_bits(backend):
    x = ops.array(1.0)
    assert float(ops.convert_to_numpy(jet(ops.negative, (x,), ([10**30],))[1][0])) == -1e30
    assert float(ops.convert_to_numpy(gradops.jvp(ops.negative, (x,), (10**30,))[1])) == -1e30
    with np.errstate(over="ignore"):
        assert np.isinf(ops.convert_to_numpy(jet(ops.exp, (ops.cast(x, "float16"),), ([10**30],))[1][0]))
