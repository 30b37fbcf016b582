"""Derivatives of functions on every backend, against closed forms, finite differences and identities."""

from __future__ import annotations

import numpy as np
import pytest
from parity import numpy, on, tensors

import gradops
from gradops import Variable, config, functional, ops
from gradops.errors import ArgumentError, ArgumentTypeError, BackendError, GradientError, ShapeError
from gradops.ops.indexing import add_at, set_at

X = np.array([0.5, 1.0, 1.5])
V = np.array([1.0, -2.0, 3.0])
M = np.arange(6.0).reshape(2, 3) / 5


def energy(x):
    """Return sum(exp(x)) * sum(x^2), which has simple closed-form derivatives."""
    return ops.sum(ops.exp(x)) * ops.sum(ops.square(x))


def energy_gradient(x):
    return np.exp(x) * np.sum(x**2) + 2 * x * np.sum(np.exp(x))


def energy_hessian(x):
    e = np.exp(x)
    return np.diag(e) * np.sum(x**2) + 2 * np.outer(e, x) + 2 * np.outer(x, e) + 2 * np.eye(len(x)) * e.sum()


def curve(x):
    """Return a vector function with a full Jacobian."""
    return ops.sin(ops.matmul(ops.convert_to_tensor(M), x)) * ops.sum(x)


def curve_jacobian(x):
    return np.cos(M @ x)[:, None] * M * x.sum() + np.sin(M @ x)[:, None]


def test_grad_and_value(backend):
    value, gradient = gradops.value_and_grad(energy)(on(backend, X))
    np.testing.assert_allclose(numpy(value), np.exp(X).sum() * (X**2).sum())
    np.testing.assert_allclose(numpy(gradient), energy_gradient(X))
    assert type(gradient) is type(on(backend, X))


def test_structures_numbers_and_keywords(backend):
    def f(p, k, *, scale):
        return ops.sum(p["w"] * p["w"]) * p["b"][0] * k * scale

    gradients = gradops.grad(f, argnums=(0, 1))({"w": on(backend, [1, 2]), "b": [3.0]}, 2.0, scale=10)
    np.testing.assert_allclose(numpy(gradients[0]["w"]), [120, 240])
    np.testing.assert_allclose(numpy(gradients[0]["b"][0]), 100)
    np.testing.assert_allclose(numpy(gradients[1]), 150)


def test_has_aux(backend):
    (value, aux), g = gradops.value_and_grad(lambda x: (ops.sum(x * x), "more"), has_aux=True)(on(backend, X))
    assert aux == "more"
    np.testing.assert_allclose(numpy(g), 2 * X)
    g, aux = gradops.grad(lambda x: (ops.sum(x * x), "more"), has_aux=True)(on(backend, X))
    assert aux == "more"


def test_nested_to_third_order(backend):
    d = gradops.grad(gradops.grad(gradops.grad(lambda x: ops.exp(2 * x))))
    np.testing.assert_allclose(numpy(d(0.3)), 8 * np.exp(0.6))


def test_inner_derivative_keeps_the_outer_one(backend):
    """d/da [d/db a b^2 at b=3] = 6: the inner function's closure is differentiated."""
    f = gradops.grad(lambda a: gradops.grad(lambda b: a * b * b)(3.0))
    np.testing.assert_allclose(numpy(f(2.0)), 6)


def test_closed_over_input_is_constant(backend):
    """Perturbations of two levels are kept apart (Siskind & Pearlmutter 2005)."""
    f = gradops.grad(lambda x: x * gradops.grad(lambda y: x + y)(1.0))
    np.testing.assert_allclose(numpy(f(1.0)), 1)


def test_independent_input_has_zero_gradient(backend):
    g = gradops.grad(lambda x, y: ops.sum(x * x), argnums=1)(on(backend, X), on(backend, V))
    np.testing.assert_array_equal(numpy(g), np.zeros(3))


@pytest.mark.parametrize("strategy", ["reverse-mode", "forward-mode"])
def test_jacobian(backend, strategy):
    j = functional.jacobian(curve, on(backend, X), strategy=strategy)
    np.testing.assert_allclose(numpy(j), curve_jacobian(X))


@pytest.mark.parametrize("strategy", ["reverse-mode", "forward-mode"])
def test_hessian(backend, strategy):
    h = functional.hessian(energy, on(backend, X), outer_jacobian_strategy=strategy)
    np.testing.assert_allclose(numpy(h), energy_hessian(X))


def test_several_inputs_and_outputs(backend):
    j = functional.jacobian(lambda a, b: (ops.sum(a * b), a * ops.sum(b)), (on(backend, X), on(backend, V)))
    np.testing.assert_allclose(numpy(j[0][0]), V)
    np.testing.assert_allclose(numpy(j[0][1]), X)
    np.testing.assert_allclose(numpy(j[1][0]), np.eye(3) * V.sum())
    np.testing.assert_allclose(numpy(j[1][1]), np.outer(X, np.ones(3)))


@pytest.mark.short_cases(2, "jax", "tensorflow")
@pytest.mark.parametrize("options", [{}, {"strategy": "forward-mode"}, {"vectorize": True}, {"create_graph": True}])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_jacobian_of_empty_inputs_and_outputs(backend, dtype, options):
    x, none = (tensors(v.astype(dtype), backend) for v in (X, X[:0]))

    def f(x, none):
        return ops.square(x), x[:0], ops.sum(x) * none, ops.sum(none) + ops.sum(x)

    rows = functional.jacobian(f, (x, none), **options)
    assert [[tuple(block.shape) for block in row] for row in rows] == [
        [(3, 3), (3, 0)], [(0, 3), (0, 0)], [(0, 3), (0, 0)], [(3,), (0,)]
    ]  # fmt: skip
    assert {ops.dtype(block) for row in rows for block in row} == {dtype}
    np.testing.assert_allclose(numpy(rows[0][0]), np.diag(2 * X))
    np.testing.assert_allclose(numpy(rows[3][0]), np.ones(3))
    assert tuple(functional.jacobian(lambda x: x[:0], x, **options).shape) == (0, 3)
    assert tuple(functional.jacobian(lambda x: ops.sum(x), none, **options).shape) == (0,)


def test_hessian_of_empty_inputs(backend):
    x, none = on(backend, X), on(backend, X[:0])
    blocks = functional.hessian(lambda x, none: energy(x) + ops.sum(ops.square(none)), (x, none))
    assert [[tuple(block.shape) for block in row] for row in blocks] == [[(3, 3), (3, 0)], [(0, 3), (0, 0)]]
    np.testing.assert_allclose(numpy(blocks[0][0]), energy_hessian(X))
    assert tuple(functional.hessian(lambda x: ops.sum(ops.square(x)), none).shape) == (0, 0)
    with pytest.raises(GradientError, match="must return a scalar"):
        functional.hessian(lambda x: x, none)


@pytest.mark.parametrize("dtype", ["float64", "float16"])
def test_jacobian_of_outputs_with_another_dtype(backend, dtype):
    x = tensors(X.astype("float32"), backend)
    for options in ({}, {"vectorize": True}):
        rows = functional.jacobian(lambda x: (ops.cast(ops.square(x), dtype), x), x, **options)
        np.testing.assert_allclose(numpy(rows[0]), np.diag(2 * X), rtol=1e-3)
        np.testing.assert_allclose(numpy(rows[1]), np.eye(3))


def test_products_agree_with_matrices(backend):
    u = np.array([2.0, -1.0])
    value, product = functional.vjp(curve, on(backend, X), on(backend, u))
    np.testing.assert_allclose(numpy(value), np.sin(M @ X) * X.sum())
    np.testing.assert_allclose(numpy(product), u @ curve_jacobian(X))
    np.testing.assert_allclose(numpy(functional.jvp(curve, on(backend, X), on(backend, V))[1]), curve_jacobian(X) @ V)
    for product in (functional.hvp, functional.vhp):
        value, result = product(energy, on(backend, X), on(backend, V))
        np.testing.assert_allclose(numpy(value), np.exp(X).sum() * (X**2).sum())
        np.testing.assert_allclose(numpy(result), energy_hessian(X) @ V)


def test_variables_give_variables_with_a_graph():
    x = Variable(X, requires_grad=True)
    j = functional.jacobian(energy, x, create_graph=True)
    assert isinstance(j, Variable) and j.requires_grad
    ops.sum(j).backward()
    np.testing.assert_allclose(x.grad.numpy(), energy_hessian(X).sum(axis=0))


@pytest.mark.parametrize(
    "f",
    [
        lambda x: ops.softmax(x) * ops.sum(x),
        lambda x: ops.cumsum(x) / ops.max(x),
        lambda x: ops.concatenate([ops.flip(x), ops.take(x, [0, 0])]),
        lambda x: ops.split(ops.logsumexp(x, keepdims=True) * x, 3)[1],
        lambda x: gradops.custom_gradient(lambda z: (z * z, lambda u: u * 2 * z))(x),
    ],
)
def test_forward_mode_is_the_transpose_of_reverse(f):
    """On the tape <u, J v> from a forward pass equals <J' u, v> from a backward pass."""
    y, forward = functional.jvp(f, X, V)
    u = np.random.default_rng(1).normal(size=np.shape(y))
    _, backward = functional.vjp(f, X, u)
    np.testing.assert_allclose(np.sum(u * forward), np.sum(backward * V))


def test_strict_detects_independence():
    with pytest.raises(GradientError, match="does not depend"):
        functional.jacobian(lambda x: ops.ones((2,)), X, strict=True)
    np.testing.assert_array_equal(functional.jacobian(lambda x: ops.ones((2,)), X), np.zeros((2, 3)))


def test_bad_input(backend):
    with pytest.raises(GradientError, match="scalar; got shape"):
        gradops.grad(lambda x: x * 2)(on(backend, X))
    with pytest.raises(ArgumentTypeError, match="argument 0 must be floating.*int64"):
        gradops.grad(ops.sum)(tensors(np.arange(3), backend))
    whole = tensors(np.arange(3), backend)
    with pytest.raises(ArgumentTypeError, match="argument 1 must be floating.*int64"):
        gradops.grad(lambda a, b: ops.sum(a), argnums=(0, 1))(on(backend, X), whole)
    with pytest.raises(ArgumentTypeError, match=r"argument 0 \(at \['b'\]\[1\]\) must be floating"):
        gradops.grad(lambda p: ops.sum(p["a"]))({"a": on(backend, X), "b": [on(backend, X), whole]})
    with pytest.raises(ArgumentTypeError, match=r"argument 0 \(at \['b'\]\) must be a tensor.*str"):
        gradops.grad(lambda p: ops.sum(p["a"]))({"a": on(backend, X), "b": "text"})
    with pytest.raises(ArgumentTypeError, match="argument 1 must be floating"):
        functional.jacobian(lambda a, b: a, (on(backend, X), whole))
    with pytest.raises(ArgumentError, match="positions of the 1"):
        gradops.grad(ops.sum, argnums=3)(on(backend, X))
    with pytest.raises(ArgumentTypeError, match="must be a function"):
        gradops.grad(3)
    with pytest.raises(GradientError, match="real scalar"):
        gradops.grad(lambda x: ops.sum(ops.multiply(x, 1j)))(on(backend, X))
    with pytest.raises(ShapeError, match=r"shape \(3,\)"):
        functional.jvp(curve, on(backend, X), on(backend, [1.0]))
    with pytest.raises(ArgumentError, match="strategy"):
        functional.jacobian(curve, on(backend, X), strategy="sideways")


def energy_of_gradient(x):
    return ops.sum(ops.square(gradops.grad(energy)(x)))


def test_inside_native_transforms():
    """Nested to second order, and mixed with the libraries' own transforms in either order."""
    wanted = 2 * energy_hessian(X) @ energy_gradient(X)

    def close(result, expected=wanted):
        np.testing.assert_allclose(numpy(result), expected)

    import jax

    with config.backend_scope("jax"):
        x = tensors(X, "jax")
        close(jax.jit(gradops.grad(energy))(x), energy_gradient(X))
        close(jax.jit(gradops.grad(energy_of_gradient))(x))
        close(jax.grad(energy_of_gradient)(x))
        close(gradops.grad(lambda x: jax.numpy.sum(jax.jit(jax.grad(energy))(x) ** 2))(x))
        close(jax.jacfwd(gradops.grad(energy))(x), energy_hessian(X))
        close(jax.jit(lambda x: functional.hessian(energy, x))(x), energy_hessian(X))
        close(jax.jit(lambda x: functional.hvp(energy, x, x)[1])(x), energy_hessian(X) @ X)
        close(jax.vmap(gradops.grad(energy))(jax.numpy.stack([x, 2 * x]))[1], energy_gradient(2 * X))
    import tensorflow as tf

    x = tensors(X, "tensorflow")
    close(tf.function(gradops.grad(energy))(x), energy_gradient(X))
    close(tf.function(gradops.grad(energy_of_gradient))(x))
    close(tf.function(lambda x: functional.hessian(energy, x))(x), energy_hessian(X))
    variable = tf.Variable(X)
    with tf.GradientTape() as tape:
        y = energy_of_gradient(tf.convert_to_tensor(variable))
    close(tape.gradient(y, variable))
    import torch

    x = tensors(X, "torch")
    close(torch.func.jacrev(gradops.grad(energy))(x), energy_hessian(X))
    close(torch.func.jacfwd(gradops.grad(energy))(x), energy_hessian(X))
    close(torch.func.vmap(gradops.grad(energy))(torch.stack([x, 2 * x]))[1], energy_gradient(2 * X))
    close(gradops.grad(lambda x: torch.sum(torch.func.grad(energy)(x) ** 2))(x))
    leaf = x.clone().requires_grad_()
    energy_of_gradient(leaf).backward()
    close(leaf.grad)


def test_jacobians_and_products_inside_derivatives(backend):
    """A Jacobian or product of a closure over the differentiated variable stays connected on every backend."""
    x = on(backend, X)

    def by(f):
        return numpy(gradops.grad(f)(2.0))

    np.testing.assert_allclose(by(lambda a: ops.sum(functional.jacobian(lambda b: a * b * b, x))), 2 * X.sum())
    np.testing.assert_allclose(by(lambda a: ops.sum(functional.hessian(lambda b: ops.sum(a * b**3), x))), 6 * X.sum())
    for product in (functional.hvp, functional.vhp):
        f = by(lambda a, product=product: ops.sum(product(lambda b: ops.sum(a * b * b * b), x, x)[1]))
        np.testing.assert_allclose(f, 6 * np.sum(X**2))
    for product in (functional.vjp, functional.jvp):
        f = by(lambda a, product=product: ops.sum(product(lambda b: a * b * b, x, x)[1]))
        np.testing.assert_allclose(f, 2 * np.sum(X**2))
    result = gradops.grad(lambda a: ops.sum(functional.jacobian(lambda b: b * b, a)))(x)
    np.testing.assert_allclose(numpy(result), [2, 2, 2])


def test_aux_output_is_an_array(backend):
    (_, aux), _ = gradops.value_and_grad(lambda x: (ops.sum(x * x), {"twice": x * 2}), has_aux=True)(on(backend, X))
    assert type(aux["twice"]) is type(on(backend, X))
    assert not getattr(aux["twice"], "requires_grad", False)
    np.testing.assert_allclose(numpy(aux["twice"]), 2 * X)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("inner", [gradops.grad, gradops.value_and_grad])
def test_aux_output_is_differentiable(backend, inner, compiled):
    """Inside another derivative the auxiliary output stays connected, on variables and NumPy as well."""

    def beside(x):
        found = inner(lambda x: (ops.sum(x**3), {"square": x * x, "itself": [x]}), has_aux=True)(x)
        gradient, aux = found if inner is gradops.grad else (found[1], found[0][1])
        return ops.sum(gradient * aux["square"] * aux["itself"][0])  # 3 x^5

    wrap = gradops.jit if compiled else lambda f: f
    np.testing.assert_allclose(numpy(wrap(gradops.grad(beside))(on(backend, X))), 15 * X**4)
    second = gradops.grad(lambda x: ops.sum(gradops.grad(beside)(x)))
    np.testing.assert_allclose(numpy(wrap(second)(on(backend, X))), 60 * X**3)
    if backend != "torch" and not compiled:
        x = Variable(on(backend, X), requires_grad=True)
        beside(x).backward()
        np.testing.assert_allclose(numpy(x.grad), 15 * X**4)


def test_in_torch_compile():
    import torch

    compiled = torch.compile(gradops.grad(energy), backend="eager")
    np.testing.assert_allclose(numpy(compiled(tensors(X, "torch"))), energy_gradient(X))


def test_jacobian_of_custom_gradients(backend):
    """The default mode must be one that the function supports, and must use the custom rule."""

    @gradops.custom_gradient
    def reversed_sum(x):
        return ops.stack([ops.sum(x)] * 4), lambda upstream: ops.multiply(ops.ones_like(x), -ops.sum(upstream))

    np.testing.assert_allclose(numpy(functional.jacobian(reversed_sum, on(backend, X))), -np.ones((4, 3)))


VECTORS = {
    "float64": np.array([1.0, -2.0, 3.0]),
    "float32": np.array([1.0, -2.0, 3.0], "float32"),
    "int64": np.array([1, -2, 3]),
    "list": [1.0, -2.0, 3.0],
}


@pytest.mark.short_cases(3, "jax", "tensorflow")
@pytest.mark.parametrize("product", [functional.hvp, functional.vhp, functional.jvp, functional.vjp])
@pytest.mark.parametrize("dtype", ["float16", "float32", "complex64"])
def test_vectors_are_converted_to_the_dtype_of_their_inputs(backend, product, dtype):
    """Otherwise NumPy would promote float32 to float64, and other libraries would raise their own errors."""
    x = tensors(X.astype(dtype), backend)
    second = product in (functional.hvp, functional.vhp)
    f = (lambda z: ops.sum(ops.real(z * ops.conj(z)))) if second else (lambda z: z * z)
    want = 2 * V * (1 if second else X)
    for name, v in VECTORS.items():
        for given in (v, v if name == "list" else tensors(v, backend)):
            found = product(f, x, given)[1]
            assert ops.dtype(found) == dtype, name
            np.testing.assert_allclose(numpy(found), want.astype(dtype), rtol=2e-3, err_msg=name)
    if dtype != "complex64":
        with pytest.raises(ArgumentTypeError, match=f"`{product.__name__}`: `v` must be real"):
            product(f, x, tensors(V + 1j, backend))


@pytest.mark.parametrize("product", [functional.hvp, functional.vhp])
def test_second_products_of_complex_values_are_refused(backend, product):
    with pytest.raises(GradientError, match="must return a real scalar"):
        product(lambda z: ops.sum(z * z), tensors(X + 1j, backend), tensors(V + 1j, backend))


def parts(x):
    return {"b": curve(x), "a": [energy(x), (x * 2.0,)]}


PARTS = {"b": curve_jacobian(X), "a": [energy_gradient(X), (2 * np.eye(3),)]}


def same(found, expected):
    assert type(found) is type(expected) or not isinstance(expected, (dict, list, tuple))
    if isinstance(expected, dict):
        assert found.keys() == expected.keys()
        found, expected = (list(map(z.__getitem__, sorted(z))) for z in (found, expected))
    if isinstance(expected, (list, tuple)):
        assert len(found) == len(expected)
        for f, e in zip(found, expected):
            same(f, e)
    else:
        np.testing.assert_allclose(numpy(found), expected, rtol=1e-10, atol=1e-12)


def test_structured_outputs(backend):
    x, v = on(backend, X), on(backend, V)
    same(functional.jacobian(parts, x), PARTS)
    by_w = functional.jacobian(lambda p: {"y": p["w"] * p["b"]}, {"w": x, "b": on(backend, 2.0)})
    same(by_w, {"y": {"w": 2 * np.eye(3), "b": X}})
    value, pushed = functional.jvp(parts, x, v)
    same(pushed, {"b": PARTS["b"] @ V, "a": [PARTS["a"][0] @ V, (2 * V,)]})
    w = {"b": on(backend, [2.0, -1.0]), "a": [on(backend, 3.0), (v,)]}
    again, pulled = functional.vjp(parts, x, w)
    np.testing.assert_allclose(numpy(pulled), [2.0, -1.0] @ PARTS["b"] + 3 * PARTS["a"][0] + 2 * V)
    for y in (value, again):
        same(y, {"b": numpy(curve(x)), "a": [numpy(energy(x)), (2 * X,)]})
    with pytest.raises(ArgumentError, match="structure of the outputs"):
        functional.vjp(parts, x, {"b": v})
    with pytest.raises(GradientError, match="tensors"):
        functional.jacobian(lambda x: {}, x)


def test_hessian_with_aux_output(backend):
    x = on(backend, X)
    found, aux = functional.hessian(lambda x: (energy(x), {"seen": x * 2, "words": "any"}), x, has_aux=True)
    np.testing.assert_allclose(numpy(found), energy_hessian(X))
    np.testing.assert_allclose(numpy(aux["seen"]), 2 * X)
    assert aux["words"] == "any" and type(aux["seen"]) is type(x)
    found, aux = functional.jacobian(lambda p: (curve(p["x"]), p["x"]), {"x": x}, has_aux=True)
    np.testing.assert_allclose(numpy(found["x"]), curve_jacobian(X))
    np.testing.assert_allclose(numpy(aux), X)
    for derivative in (functional.hessian, functional.jacobian):
        with pytest.raises(GradientError, match="has_aux"):
            derivative(energy, x, has_aux=True)


def test_sparse_jacobians_of_structured_outputs():
    for func in (parts, gradops.jit(parts)):
        for _ in range(2):
            found = functional.jacobian(func, X, sparse=True)
            same(found["b"].toarray(), PARTS["b"])
            same(found["a"][1][0].toarray(), PARTS["a"][1][0])


def test_constant_variable_next_to_library_tensors(backend):
    """The result is a variable whose data is recorded by the library."""
    if backend == "torch":
        with pytest.raises(BackendError, match="needs no Variable"):
            Variable(on(backend, V))
        return
    x, c = on(backend, X), Variable(on(backend, V))
    np.testing.assert_allclose(numpy(gradops.grad(lambda x: ops.sum(x * x * c))(x)), 2 * X * V)
    np.testing.assert_allclose(numpy(gradops.hessian(lambda x: ops.sum(x * x * c))(x)), np.diag(2 * V))
    np.testing.assert_allclose(numpy(functional.jacobian(lambda x: x * c, x)), np.diag(V))
    np.testing.assert_allclose(numpy(gradops.jvp(lambda x: (x, x * c), (x,), (x,))[1][1]), X * V)


ONE, OTHER, ALONG_ONE, ALONG_OTHER = np.random.default_rng(0).normal(size=(4, 4))


def jvp_is_the_difference(f, xs, ts):
    value, tangent = functional.jvp(f, xs, ts)
    step = 1e-6
    above, below = (np.asarray(f(*[p + sign * step * t for p, t in zip(xs, ts)])) for sign in (1, -1))
    assert np.shape(tangent) == np.shape(value)
    np.testing.assert_allclose(tangent, (above - below) / (2 * step), atol=1e-8)


@pytest.mark.parametrize("which", [np.array([True, False, True, True]), True, False], ids=["some", "all", "none"])
def test_jvp_of_where(which):
    jvp_is_the_difference(lambda a, b: ops.where(which, a * a, b * b), (ONE, OTHER), (ALONG_ONE, ALONG_OTHER))
    jvp_is_the_difference(lambda a: ops.where(which, a * a, OTHER), (ONE,), (ALONG_ONE,))
    jvp_is_the_difference(lambda a: ops.where(which, OTHER, a * a), (ONE,), (ALONG_ONE,))
    # A scalar input, whose result has the shape of the other operand.
    one, direction = (np.float64(2),), (np.float64(1),)
    jvp_is_the_difference(lambda a: ops.reshape(ops.where(which, a * a, OTHER), (2, 2)), one, direction)
    jvp_is_the_difference(lambda a: ops.reshape(ops.where(which, OTHER, a * a), (2, 2)), one, direction)


@pytest.mark.parametrize("join", [ops.concatenate, ops.stack])
def test_jvp_of_joined_tensors_with_constants(join):
    jvp_is_the_difference(lambda a, b: join([a * a, OTHER, b * a, b]), (ONE, OTHER), (ALONG_ONE, ALONG_OTHER))
    jvp_is_the_difference(lambda a: join([np.arange(4), a * a]), (ONE,), (ALONG_ONE,))
    jvp_is_the_difference(lambda a: join(ops.reshape(a * a, (2, 2))), (ONE,), (ALONG_ONE,))
    jvp_is_the_difference(lambda a: join([ops.reshape(a, (2, 2)), M[:, :2]], axis=-1), (ONE,), (ALONG_ONE,))
    halves = functional.jvp(lambda a: join([a, OTHER]), ONE.astype("float32"), ALONG_ONE.astype("float32"))
    assert [x.dtype for x in halves] == [np.float64, np.float64]


@pytest.mark.parametrize("op", [add_at, set_at])
def test_jvp_of_indexed_writes(op):
    part = slice(1, 3)
    jvp_is_the_difference(lambda a, b: op(a * a, part, b * b), (ONE, OTHER[:2]), (ALONG_ONE, ALONG_OTHER[:2]))
    jvp_is_the_difference(lambda a: op(a * a, part, OTHER[:2]), (ONE,), (ALONG_ONE,))
    jvp_is_the_difference(lambda b: op(ONE, part, b * b), (OTHER[:2],), (ALONG_OTHER[:2],))
    jvp_is_the_difference(lambda b: op(ONE, np.array([1, 1]), b * b), (OTHER[:2],), (ALONG_OTHER[:2],))
    jvp_is_the_difference(lambda b: op(ONE, part, b * b), (np.float64(2),), (np.float64(1),))
