"""Every op under the libraries' vectorization and forward mode, against single rows and the transpose."""

from __future__ import annotations

import numpy as np
import pytest
import vectorized
from test_parity import CASES

import gradops
from gradops import backends, functional, ops

FEW = {  # in the short suite: ops that libraries get wrong
    "torch.func.vmap": ("solve-complex128", "segment_prod"),
    "torch.func.jvp": ("cumprod",),
    "tf.vectorized_map": ("set_at-rows", "window_max-0"),
    "ops.vectorized_map": ("median",),
}


def installed(way: str) -> None:
    backend = vectorized.BACKEND[way.partition(".")[0]]
    if not backends.installed(backend):
        pytest.skip(f"needs {backend}")


@pytest.mark.parametrize("way, name", [(way, name) for way, names in FEW.items() for name in names])
def test_vmap_of_a_sample_of_ops(way, name):
    installed(way)
    vectorized.check(next(c for c in CASES if c.gradients and name in (c.id, c.op)), way)


@pytest.mark.long
@pytest.mark.parametrize("way", vectorized.WAYS)
def test_every_op(way):
    installed(way)
    found = vectorized.tried(way)
    assert set(found) == {"torch.func.jvp": {"polygamma-derivative 1"}}.get(way, set()), found


def test_solve_with_another_rank_in_vmap():
    """PyTorch's own `vmap` of `linalg.solve` pairs the rows with another dimension of equal size."""
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(1)
    a, b = torch.tensor(rng.normal(size=(3, 3, 2, 2))), torch.tensor(rng.normal(size=(3, 2)))
    want = np.stack([[np.linalg.solve(m, v) for m in rows] for rows, v in zip(a.numpy(), b.numpy())])
    np.testing.assert_allclose(torch.func.vmap(ops.solve)(a, b), want)
    got = torch.func.vmap(torch.func.grad(lambda a, b: ops.sum(ops.solve(a, b) ** 2)))(a, b)
    for i in range(3):
        own = gradops.grad(lambda m, i=i: ops.sum(ops.solve(m, b[i]) ** 2))(a[i])
        np.testing.assert_allclose(got[i], own)


def test_values_from_outside_torch_transformations_are_known():
    """Covers labels and indices that a differentiated function closes over."""
    torch = pytest.importorskip("torch")
    ids, x = torch.tensor([0, 1, 1]), torch.tensor([1.0, 2.0, 3.0])
    np.testing.assert_allclose(torch.func.grad(lambda x: (ops.segment_sum(x, ids) ** 2).sum())(x), [2, 10, 10])
    with pytest.raises(gradops.errors.ArgumentError, match="out of range|between"):
        torch.func.grad(lambda x: ops.take(x, torch.tensor([5]), 0).sum())(x)
    half = torch.tensor([1.0, 2.0], dtype=torch.bfloat16)
    torch.func.grad(lambda x: x * float(ops.convert_to_numpy(half).sum()))(torch.tensor(1.0))


def test_pytorch_lacks_forward_mode_of_zeta():
    pytest.importorskip("torch")
    case = next(c for c in CASES if c.id == "polygamma-derivative 1")
    with pytest.raises(gradops.errors.GradopsError, match="`polygamma`.*forward AD"):
        vectorized.check(case, "torch.func.jvp")


# gradops' derivatives in the libraries' transformations ---------------------------------------------------------------

W, ROWS = np.array([0.3, -0.2]), np.array([[1.0, 2.0], [0.5, -1.0], [-0.7, 0.4]])


@gradops.custom_gradient
def own(s):
    return ops.sin(s), lambda upstream: upstream * ops.cos(s) * 3.0


def loss(w, x):
    return own(ops.sum(w * x)) + ops.sum(w * w * x)


def twin(sin):
    """Return plain code with the derivatives of ``loss``."""
    return lambda w, x: 3 * sin((w * x).sum()) + (w * w * x).sum()


def of_gradops(f, v):
    """Return gradops' derivatives of ``f``, a function of ``w``, without the values."""
    forward = {"outer_jacobian_strategy": "forward-mode"}
    return {
        "grad": gradops.grad(f),
        "value_and_grad": lambda w: gradops.value_and_grad(f)(w)[1],
        "jacobian": lambda w: functional.jacobian(f, w),
        "jacobian, forward": lambda w: functional.jacobian(f, w, strategy="forward-mode"),
        "vjp": lambda w: functional.vjp(f, w)[1],
        "jvp": lambda w: functional.jvp(f, w, v)[1],
        "hessian": lambda w: functional.hessian(f, w),
        "hessian, forward": lambda w: functional.hessian(f, w, **forward),
        "hvp": lambda w: functional.hvp(f, w, v)[1],
        "vhp": lambda w: functional.vhp(f, w, v)[1],
    }


def of_library(grad, f, v):
    """Return the same derivatives by a library's own gradient."""
    gradient = grad(f)
    hessian_vector = grad(lambda w: (gradient(w) * v).sum())
    rows = lambda w: [grad(lambda w, i=i: gradient(w)[i])(w) for i in range(2)]  # noqa: E731
    first = dict.fromkeys(("grad", "value_and_grad", "jacobian", "jacobian, forward", "vjp"), gradient)
    second = dict.fromkeys(("hessian", "hessian, forward"), rows)
    return {**first, **second, "jvp": lambda w: (gradient(w) * v).sum(), "hvp": hessian_vector, "vhp": hessian_vector}


def in_transforms(library, vmap) -> dict:
    """Return transformations ``(d, w, xs)`` of ``d(f)(w)``, where ``f`` is a function of ``w`` for a row ``x``."""
    grad, jvp, jacrev, jacfwd = library.grad, library.jvp, library.jacrev, library.jacfwd
    return {
        "vmap": lambda d, w, xs: vmap(lambda x: d(x)(w))(xs),
        "vmap, passed": lambda d, w, xs: vmap(lambda w, x: d(x)(w), (None, 0))(w, xs),
        "vmap of both": lambda d, w, xs: vmap(lambda w, x: d(x)(w * w))(xs * 0.5, xs),
        "vmap of vmap": lambda d, w, xs: vmap(lambda s: vmap(lambda x: d(x * s)(w))(xs))(xs[:, 0]),
        "grad": lambda d, w, xs: grad(lambda w: d(xs[0])(w).sum())(w),
        "grad by x": lambda d, w, xs: grad(lambda x: d(x)(w).sum())(xs[0]),
        "jvp": lambda d, w, xs: jvp(lambda w: d(xs[0])(w), (w,), (w,))[1],
        "jvp by x": lambda d, w, xs: jvp(lambda x: d(x)(w), (xs[0],), (xs[1],))[1],
        "jacrev": lambda d, w, xs: jacrev(lambda w: d(xs[0])(w))(w),
        "jacfwd": lambda d, w, xs: jacfwd(lambda w: d(xs[0])(w))(w),
        "vmap of jacrev": lambda d, w, xs: vmap(lambda x: jacrev(lambda w: d(x)(w))(w))(xs),
        "vmap of jacfwd by x": lambda d, w, xs: vmap(jacfwd(lambda x: d(x)(w)))(xs),
        "vmap of grad": lambda d, w, xs: vmap(lambda x: grad(lambda w: d(x)(w).sum())(w))(xs),
        "vmap of jvp": lambda d, w, xs: vmap(lambda x: jvp(lambda w: d(x)(w), (w,), (x,))[1])(xs),
        "grad of vmap": lambda d, w, xs: grad(lambda w: vmap(lambda x: d(x)(w))(xs).sum())(w),
        "jvp of vmap": lambda d, w, xs: jvp(lambda w: vmap(lambda x: d(x)(w))(xs), (w,), (w,))[1],
        "jacrev of vmap": lambda d, w, xs: jacrev(lambda w: vmap(lambda x: d(x)(w))(xs))(w),
    }


DERIVATIVES = tuple(of_library(lambda f: f, lambda w: w, 0.0))


@pytest.mark.short_cases(5)
@pytest.mark.parametrize("requires", [False, True])
@pytest.mark.parametrize("name", DERIVATIVES)
def test_derivatives_inside_torch_transformations(name, requires):
    """Per-sample derivatives and their derivatives equal those that `torch.func.grad` gives for plain code."""
    torch = pytest.importorskip("torch")
    w, xs = torch.tensor(W, requires_grad=requires), torch.tensor(ROWS)
    v = torch.tensor([1.0, -2.0], dtype=torch.float64)
    plain = twin(torch.sin)
    stacked = lambda y: torch.stack(y) if isinstance(y, list) else y  # noqa: E731
    for way, run in in_transforms(torch.func, torch.func.vmap).items():
        got = run(lambda x: of_gradops(lambda w: loss(w, x), v)[name], w, xs)
        own_way = lambda x: lambda w: stacked(of_library(torch.func.grad, lambda w: plain(w, x), v)[name](w))  # noqa: E731
        want = run(own_way, w, xs)
        torch.testing.assert_close(got, want, rtol=1e-10, atol=1e-12, msg=lambda m, way=way: f"{way}: {m}")
        assert got.requires_grad == want.requires_grad
    got = ops.vectorized_map(lambda x: of_gradops(lambda w: loss(w, x), v)[name](w), xs)
    torch.testing.assert_close(got, in_transforms(torch.func, torch.func.vmap)["vmap"](own_way, w, xs))


def test_aux_output_inside_torch_transformations():
    torch = pytest.importorskip("torch")
    w, xs = torch.tensor(W, requires_grad=True), torch.tensor(ROWS)

    def both(w, x):
        return loss(w, x), {"product": w * x, "name": "loss"}

    def gradient(x):
        g, aux = gradops.grad(both, has_aux=True)(w, x)
        assert aux["name"] == "loss"
        return g, aux["product"]

    g, products = torch.func.vmap(gradient)(xs)
    np.testing.assert_allclose(products.detach(), W * ROWS)
    torch.testing.assert_close(g, torch.func.vmap(lambda x: torch.func.grad(twin(torch.sin))(w, x))(xs))


def test_strict_inside_torch_transformations_is_refused():
    torch = pytest.importorskip("torch")
    for derivative in (functional.jacobian, functional.vjp, functional.hessian):
        with pytest.raises(gradops.errors.GradientError, match="`strict` must be False") as caught:
            torch.func.vmap(lambda x, d=derivative: d(lambda z: ops.sum(z * z), x, strict=True))(torch.tensor(ROWS))
        assert caught.value.argument == "strict"


@pytest.mark.short_cases(1)
@pytest.mark.parametrize(
    "name", [n if n in ("grad", "jvp", "hvp") else pytest.param(n, marks=pytest.mark.long) for n in DERIVATIVES]
)
def test_derivatives_inside_tensorflow_vectorized_map(name):
    tf = pytest.importorskip("tensorflow")
    xs, v = tf.constant(ROWS), tf.constant([1.0, -2.0], tf.float64)
    for w in (tf.constant(W), tf.Variable(W)):

        def derivative(x, w=w):
            return of_gradops(lambda w: loss(w, x), v)[name](tf.convert_to_tensor(w))

        want = np.stack([derivative(x).numpy() for x in xs])
        np.testing.assert_allclose(tf.vectorized_map(derivative, xs, warn=False), want, rtol=1e-10)
        np.testing.assert_allclose(ops.vectorized_map(derivative, xs), want, rtol=1e-10)
        compiled = tf.function(lambda xs, f=derivative: tf.vectorized_map(f, xs, warn=False), autograph=False)
        np.testing.assert_allclose(compiled(xs), want, rtol=1e-10)


PER_SAMPLE = {
    "grad": lambda f, x, v: gradops.grad(f)(x),
    "value_and_grad": lambda f, x, v: gradops.value_and_grad(f)(x),
    "jacobian": lambda f, x, v: gradops.functional.jacobian(lambda x: ops.sin(x) * f(x), x),
    "hessian": lambda f, x, v: gradops.functional.hessian(f, x),
    "hvp": lambda f, x, v: gradops.functional.hvp(f, x, v),
    "vhp": lambda f, x, v: gradops.functional.vhp(f, x, v),
    "vjp": lambda f, x, v: gradops.functional.vjp(lambda x: ops.sin(x) * f(x), x, v),
    "jvp": lambda f, x, v: gradops.functional.jvp(lambda x: ops.sin(x) * f(x), x, v),
}


@pytest.mark.short_cases(4)
@pytest.mark.parametrize("name", PER_SAMPLE)
@pytest.mark.parametrize("shared", [False, True])
def test_jax_vmap_of_each_derivative(name, shared):
    """Results equal a loop over rows, with shared arguments passed or closed over."""
    jax = pytest.importorskip("jax")
    with gradops.config.backend_scope("jax"):
        rng = np.random.default_rng(3)
        xs, vs, w = (jax.numpy.asarray(rng.normal(size=s)) for s in ((4, 3), (4, 3), (3,)))

        def one(x, v, w):
            return PER_SAMPLE[name](lambda x: ops.sum(ops.exp(x * w) * x[0]), x, v)

        if shared:
            moved = jax.vmap(lambda x, v: one(x, v, w))(xs, vs)
        else:
            moved = jax.vmap(one, (0, 0, None))(xs, vs, w)
        looped = [jax.tree_util.tree_leaves(one(x, v, w)) for x, v in zip(xs, vs)]
        for i, leaf in enumerate(jax.tree_util.tree_leaves(moved)):
            np.testing.assert_allclose(leaf, np.stack([row[i] for row in looped]), rtol=1e-6)
