"""``Function``: one definition for variables and torch tensors."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import gradops
from gradops import Variable, backends, ops
from gradops.autodiff import Function, grad, no_grad, once_differentiable
from gradops.errors import ArgumentTypeError, GradientError, ShapeError

torch = pytest.importorskip("torch")


def of(kind, values, **kwargs):
    values = np.asarray(values, float)
    return torch.tensor(values, requires_grad=True) if kind == "torch" else Variable(values.copy(), requires_grad=True)


def values(x):
    return np.asarray(x.detach().numpy())


class Cube(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * x**2 * g


class SplitStyle(Function):
    """x * y and x + y, with a separate ``setup_context``."""

    @staticmethod
    def forward(x, y, factor):
        return x * y * factor, x + y

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, y, ctx.factor = inputs
        ctx.save_for_backward(x, y)

    @staticmethod
    def backward(ctx, g1, g2):
        x, y = ctx.saved_tensors
        return g1 * y * ctx.factor + g2, g1 * x * ctx.factor + g2, None


class Exp(Function):
    @staticmethod
    def forward(ctx, x):
        y = ops.exp(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g * y


class TwoExp(Function):
    @staticmethod
    def forward(ctx, x):
        y, z = ops.exp(x), ops.exp(2 * x)
        ctx.save_for_backward(y, z)
        return y, z

    @staticmethod
    def backward(ctx, g1, g2):
        y, z = ctx.saved_tensors
        return g1 * y + 2 * g2 * z


both = pytest.mark.parametrize("kind", ["numpy", "torch"])


@both
def test_derivatives_to_third_order(kind):
    for function, wanted in (
        (Cube.apply, lambda v: [3 * v**2, 6 * v, 6 + 0 * v]),
        (Exp.apply, lambda v: [np.exp(v)] * 3),
        (lambda x: sum(TwoExp.apply(x)), lambda v: [np.exp(v) + 2**k * np.exp(2 * v) for k in (1, 2, 3)]),
    ):
        x = of(kind, [1.0, -2, 0.5])
        y = function(x)
        for want in wanted(values(x)):
            (y,) = grad(y.sum(), x, create_graph=True)
            np.testing.assert_allclose(values(y), want, rtol=1e-10)


@both
def test_setup_context_and_several_outputs(kind):
    x, y = of(kind, [1.0, 2]), of(kind, [3.0, 4])
    product, total = SplitStyle.apply(x, y, 10)
    assert isinstance(product, type(x)) and product.grad_fn is not None
    (product * total).sum().backward()
    np.testing.assert_allclose(values(x.grad), 10 * (2 * values(x) * values(y) + values(y) ** 2))
    x.grad = y.grad = None
    product, total = SplitStyle.apply(x, y, 10)
    total.sum().backward()
    np.testing.assert_allclose(values(x.grad), 1)


@both
def test_setup_context_receives_defaults(kind):
    class Scaled(Function):
        @staticmethod
        def forward(x, factor=3.0, shift=1.0):
            return x * factor + shift

        @staticmethod
        def setup_context(ctx, inputs, output):
            _, ctx.factor, _ = inputs

        @staticmethod
        def backward(ctx, g):
            return 10 * g * ctx.factor, None, None

    x = of(kind, [1.0, 2])
    for y, factor in ((Scaled.apply(x), 3), (Scaled.apply(x, 2.0), 2), (Scaled.apply(x, shift=0.0), 3)):
        (g,) = grad(y.sum(), x)
        np.testing.assert_allclose(values(g), [10 * factor] * 2)


def test_returned_view_of_an_input_gets_its_own_memory():
    """Otherwise a differentiable write to the result would change the input without recording a gradient."""

    class Part(Function):
        @staticmethod
        def forward(ctx, x):
            return x[:1], ops.reshape(x, (2, 1))

        @staticmethod
        def backward(ctx, g, h):
            return ops.zeros((2,))

    x, w = Variable(np.array([1.0, 2])), of("variable", [5.0])
    for part in Part.apply(x):
        part += w
        part[0] = w[0]
        assert part.requires_grad
    np.testing.assert_array_equal(x.data, [1, 2])


@both
def test_needs_input_grad(kind):
    seen = []

    class Product(Function):
        @staticmethod
        def forward(ctx, x, y, n):
            seen.append(tuple(ctx.needs_input_grad))
            ctx.save_for_backward(x, y)
            return x * y

        @staticmethod
        def backward(ctx, g):
            seen.append(tuple(ctx.needs_input_grad))
            x, y = ctx.saved_tensors
            return g * y, None, None

    x = of(kind, [1.0, 2])
    y = x.detach()
    Product.apply(x, y, 3).sum().backward()
    assert seen == [(True, False, False)] * 2
    np.testing.assert_allclose(values(x.grad), values(y))
    out = Product.apply(y, y, 3)
    assert not out.requires_grad and out.grad_fn is None
    with no_grad():
        assert not Product.apply(x, y, 3).requires_grad


@both
def test_materialized_gradients(kind):
    seen = []

    def make(materialize):
        class Two(Function):
            @staticmethod
            def forward(ctx, x):
                ctx.set_materialize_grads(materialize)
                return x * 2, x * 3

            @staticmethod
            def backward(ctx, g1, g2):
                seen.append((g1, g2))
                return g2 * 3

        return Two

    for materialize in (True, False):
        x = of(kind, [1.0, 2])
        make(materialize).apply(x)[1].sum().backward()
        np.testing.assert_allclose(values(x.grad), 3)
    np.testing.assert_allclose(values(seen[0][0]), 0)
    assert seen[1][0] is None


@both
def test_non_differentiable_outputs(kind):
    class Sort(Function):
        @staticmethod
        def forward(ctx, x):
            order = np.argsort(values(x))
            y = x[order]
            rank = y * 0 + 1
            ctx.mark_non_differentiable(rank)
            ctx.order = order
            return y, rank

        @staticmethod
        def backward(ctx, g, g_rank):
            assert float(g_rank.sum()) == 0
            return g[np.argsort(ctx.order)]

    x = of(kind, [3.0, 1, 2])
    y, rank = Sort.apply(x)
    assert y.requires_grad and not rank.requires_grad and rank.grad_fn is None
    (y * y.detach()).sum().backward()
    np.testing.assert_allclose(values(x.grad), values(x))


@both
def test_mark_dirty(kind):
    class Double(Function):
        @staticmethod
        def forward(ctx, x):
            x *= 2
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx, g):
            return 2 * g

    x = of(kind, [1.0, 2])
    y = x * 3
    before = y._version
    z = Double.apply(y)
    assert z is y and y._version > before
    np.testing.assert_allclose(values(y), [6, 12])
    (y * y).sum().backward()
    np.testing.assert_allclose(values(x.grad), [72, 144])
    with pytest.raises(RuntimeError, match="leaf"):
        Double.apply(of(kind, [1.0]))
    y = x * 3
    w = y * y
    Double.apply(y)
    with pytest.raises(RuntimeError, match="version"):
        w.sum().backward()


@both
def test_once_differentiable(kind):
    class Once(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @once_differentiable
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return 2 * x * g

    x = of(kind, [1.0, 2])
    Once.apply(x).sum().backward()
    np.testing.assert_allclose(values(x.grad), [2, 4])
    (g,) = grad(Once.apply(x).sum(), x, create_graph=True)
    np.testing.assert_allclose(values(g), [2, 4])
    with pytest.raises(RuntimeError, match="once_differentiable|does not require a? ?grad"):
        grad(g.sum(), x)


@both
def test_wrong_number_of_gradients(kind):
    class Wrong(Function):
        @staticmethod
        def forward(ctx, x, y):
            return x * y

        @staticmethod
        def backward(ctx, g):
            return g

    with pytest.raises(RuntimeError, match="gradients"):
        Wrong.apply(of(kind, [1.0]), of(kind, [1.0])).sum().backward()

    class Extra(Function):
        @staticmethod
        def forward(ctx, x, n):
            return x * n

        @staticmethod
        def backward(ctx, g):
            return g, g

    with pytest.raises(RuntimeError):
        Extra.apply(of(kind, [1.0]), 3).sum().backward()

    class Missing(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

    with pytest.raises(NotImplementedError):
        Missing.apply(of(kind, [1.0])).sum().backward()


def test_wrong_shape_and_type():
    def returning(value):
        class Wrong(Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2

            @staticmethod
            def backward(ctx, g):
                return value

        x = of("numpy", [1.0, 2])
        Wrong.apply(x).sum().backward()
        return x.grad.data

    with pytest.raises(gradops.errors.ShapeError, match=r"shape \(3,\) for input 0 of shape \(2,\)"):
        returning(np.ones(3))
    with pytest.raises(gradops.errors.ArgumentTypeError, match="got object"):
        returning(object())
    np.testing.assert_allclose(returning(5), [5, 5])
    np.testing.assert_allclose(returning(np.ones((4, 2))), [4, 4])
    with pytest.raises(TypeError, match="apply"):
        Cube()
    with pytest.raises(RuntimeError, match="during"):
        from gradops.autodiff.function import Context

        _ = Context().saved_tensors


@both
def test_overwritten_saved_tensor_is_refused(kind):
    x = of(kind, [1.0, 2])
    y = x * 1
    z = Cube.apply(y)
    y += 1
    with pytest.raises(RuntimeError, match="version"):
        z.sum().backward()


@both
def test_second_backward_pass(kind):
    x = of(kind, [1.0, 2])
    y = Cube.apply(x).sum()
    y.backward(retain_graph=True)
    y.backward()
    np.testing.assert_allclose(values(x.grad), 6 * values(x) ** 2)
    with pytest.raises(RuntimeError):
        y.backward()


@both
def test_saved_none_and_intermediate(kind):
    class Half(Function):
        @staticmethod
        def forward(ctx, x):
            inner = x * x
            ctx.save_for_backward(None, inner)
            return inner * x

        @staticmethod
        def backward(ctx, g):
            none, inner = ctx.saved_tensors
            assert none is None
            return 3 * inner * g

    x = of(kind, [1.0, 2])
    Half.apply(x).sum().backward()
    np.testing.assert_allclose(values(x.grad), 3 * values(x) ** 2)


@both
def test_input_returned_unchanged(kind):
    class Reverse(Function):
        @staticmethod
        def forward(ctx, x):
            return x.view_as(x) if kind == "torch" else x

        @staticmethod
        def backward(ctx, g):
            return -g

    x = of(kind, [1.0, 2])
    y = Reverse.apply(x * 1)
    (y * y).sum().backward()
    np.testing.assert_allclose(values(x.grad), -2 * values(x))


def test_plain_numpy_inside():
    class Sin(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return np.sin(x.data)

        @staticmethod
        def backward(ctx, g):
            return np.cos(ctx.saved_tensors[0].data) * g.data

    x = of("numpy", [1.0, 2])
    Sin.apply(x).sum().backward()
    np.testing.assert_allclose(x.grad.data, np.cos(x.data))


@pytest.mark.parametrize("library", ["jax", "tensorflow"])
def test_arrays_of_other_libraries(library):
    pytest.importorskip(library)
    gradops.config.set_backend(library)
    x = backends.lookup(library).convert(np.array([1.0, 2]))
    for f, want in (
        (lambda x: ops.sum(Cube.apply(x)), lambda v: (3 * v**2, 6 * v)),
        (lambda x: ops.sum(SplitStyle.apply(x, x, 10)[0]), lambda v: (20 * v, 20 + 0 * v)),
    ):
        first, second = want(np.array([1.0, 2]))
        np.testing.assert_allclose(np.asarray(gradops.grad(f)(x)), first, rtol=1e-6)
        g = gradops.grad(lambda x, f=f: ops.sum(gradops.grad(f)(x)))(x)
        np.testing.assert_allclose(np.asarray(g), second, rtol=1e-6)
    v = Variable(x, requires_grad=True)
    Cube.apply(v).sum().backward()
    np.testing.assert_allclose(values(v.grad), [3, 12], rtol=1e-6)
    if library == "jax":
        import jax

        np.testing.assert_allclose(jax.jit(jax.grad(lambda x: Cube.apply(x).sum()))(x), [3, 12], rtol=1e-6)


def made(backward, outputs=lambda ctx, x, n: x * 2.0):
    """Return a function of a tensor and a number with the given backward."""

    class Made(Function):
        @staticmethod
        def forward(ctx, x, n):
            return outputs(ctx, x, n)

    Made.backward = staticmethod(backward)
    return Made


def _dirty(ctx, x, n):
    ctx.mark_dirty(x)
    return x


def _constant(ctx, x, n):
    y = x * 3.0
    ctx.mark_non_differentiable(y)
    return x * 2.0, y


@pytest.mark.parametrize("library", ["numpy", "jax", "tensorflow"])
def test_backward_is_checked_on_arrays_as_on_variables(library):
    pytest.importorskip(library)
    gradops.config.set_backend(library)
    x = backends.lookup(library).convert(np.array([1.0, 2.0]))

    def slope(kind):
        if library == "numpy":
            leaf = Variable(x, requires_grad=True)
            kind.apply(leaf, 3).sum().backward()
            return leaf.grad.numpy()
        return np.asarray(gradops.grad(lambda v: ops.sum(kind.apply(v, 3)))(x))

    np.testing.assert_allclose(slope(made(lambda ctx, g: (5.0, None))), [5, 5])
    for backward, error, words in (
        (lambda ctx, g: g, GradientError, "must return 2 gradients"),
        (lambda ctx, g: (g, g), GradientError, "input 1, which is not a variable"),
        (lambda ctx, g: (ops.zeros((3,)), None), ShapeError, r"shape \(3,\) for input 0"),
        (lambda ctx, g: ("g", None), ArgumentTypeError, "tensors or None"),
    ):
        with pytest.raises(error, match=words):
            slope(made(backward))


@pytest.mark.parametrize("library", ["jax", "tensorflow"])
def test_context_methods_on_plain_arrays(library):
    pytest.importorskip(library)
    gradops.config.set_backend(library)
    x = backends.lookup(library).convert(np.array([1.0, 2.0]))
    with pytest.raises(GradientError, match="mark_dirty"):
        made(lambda ctx, g: (g, None), _dirty).apply(x, 3)
    both = made(lambda ctx, g, h: (g + h * 100.0, None), _constant)
    np.testing.assert_allclose(np.asarray(gradops.grad(lambda v: ops.sum(sum(both.apply(v, 3))))(x)), [1, 1])
    once = made(gradops.autodiff.once_differentiable(lambda ctx, g: (g * 7.0, None)))
    first = gradops.grad(lambda v: ops.sum(once.apply(v, 3) * v))
    np.testing.assert_allclose(np.asarray(first(x)), 9 * np.array([1.0, 2.0]))
    with pytest.raises(GradientError, match="once_differentiable"):
        gradops.grad(lambda v: ops.sum(first(v)))(x)


def test_text():
    class Ask(Function):
        """A stand-in for a language model."""

        @staticmethod
        def forward(ctx, prompt, n):
            ctx.save_for_backward(prompt)
            ctx.n = n
            return Variable(f"answer to [{prompt}]", role="answer")

        @staticmethod
        def backward(ctx, feedback):
            (prompt,) = ctx.saved_tensors
            return f"[{prompt}] led to an answer that was: {feedback}", None

    class Length(Function):
        @staticmethod
        def forward(ctx, text):
            return float(len(text))

        @staticmethod
        def backward(ctx, g):
            return "make it shorter" if g.item() > 0 else "make it longer"

    question = Variable("why?", role="question", requires_grad=True)
    answer = Ask.apply(question, 3)
    assert answer.role == "answer" and answer.data == "answer to [why?]"
    answer.backward("rude")
    assert list(question.grad.data) == ["[why?] led to an answer that was: rude"]
    assert question.grad.data[0].role == "question"

    weight = Variable(2.0, requires_grad=True)
    question.zero_grad()
    loss = Length.apply(Ask.apply(question, 3)) * weight
    loss.backward()
    assert str(question.grad) == "[why?] led to an answer that was: make it shorter"
    assert weight.grad.item() == len("answer to [why?]")
    with no_grad():
        assert not Ask.apply(question, 1).requires_grad


def test_no_reference_cycles():
    gc.disable()
    try:
        x = of("numpy", [1.0, 2])
        y = Exp.apply(x)
        node = weakref.ref(y.grad_fn)
        y.sum().backward()
        del y
        assert node() is None
    finally:
        gc.enable()


@both
def test_mixed_with_ops(kind):
    x = of(kind, [1.0, 2])
    y = Cube.apply(x * 2)[0] + ops.sum(Exp.apply(x))
    y.backward()
    np.testing.assert_allclose(values(x.grad), [2 * 3 * 4 + np.e, np.exp(2)])


# Intermediate values


class SavesSlope(Function):
    @staticmethod
    def forward(ctx, x):
        slope = 3 * x**2
        ctx.save_for_backward(slope)
        return x**3

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0]


class KeepsSlope(Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return x**3

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.slope = 3 * inputs[0] ** 2

    @staticmethod
    def backward(ctx, g):
        return g * ctx.slope


class RoundsSlope(Function):
    """Saves an input, an intermediate value, an output with this class' own rule, and a draw independent of inputs."""

    draws = np.random.default_rng(0)

    @staticmethod
    def forward(ctx, x):
        y = ops.round(x)
        drawn = ops.zeros_like(x) + RoundsSlope.draws.uniform()
        ctx.save_for_backward(x, y, x + 1, drawn / drawn)
        ctx.drawn = drawn
        return y

    @staticmethod
    def backward(ctx, g):
        x, y, after, one = ctx.saved_tensors
        return g * x * y * after * one * ctx.drawn / ctx.drawn


@pytest.mark.parametrize("function", [SavesSlope, KeepsSlope])
def test_intermediate_value_is_differentiated(backend, function):
    """``forward`` runs without recording on variables and PyTorch, so the derivative must be recovered."""
    x = backends.lookup(backend).convert(2.0, "float64")
    f = function.apply
    second = gradops.grad(gradops.grad(f))
    found = {
        "first": gradops.grad(f)(x),
        "second": second(x),
        "hessian": gradops.hessian(f)(x),
        "forward over reverse": gradops.jvp(gradops.grad(f), (x,), (x / 2,))[1],
        "compiled": gradops.jit(second)(x),
    }
    if function is KeepsSlope:
        found["vmap"] = gradops.vmap(second)(x[None])[0]
    assert {name: float(ops.convert_to_numpy(g)) for name, g in found.items()} == dict.fromkeys(found, 12.0)
    assert float(ops.convert_to_numpy(gradops.grad(second)(x))) == 6.0
    if backend != "torch":
        v = Variable(x, requires_grad=True)
        (g,) = grad(f(v), [v], create_graph=True)
        assert float(ops.convert_to_numpy(grad(g, [v])[0].data)) == 12.0


def test_saved_values_of_each_kind_work_together(backend):
    """Expected by hand: ``x * y * (x + 1)``, with ``y`` itself differentiated by this rule."""
    x = backends.lookup(backend).convert(2.2, "float64")
    first = gradops.grad(RoundsSlope.apply)(x)
    second = gradops.grad(gradops.grad(RoundsSlope.apply))(x)
    slope = 2.2 * 2 * 3.2
    np.testing.assert_allclose(float(ops.convert_to_numpy(first)), slope)
    np.testing.assert_allclose(float(ops.convert_to_numpy(second)), 2 * (2 * 2.2 + 1) + slope * 2.2 * 3.2)


@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_intermediate_value_that_cannot_be_recomputed(kind):
    draws = np.random.default_rng(0)

    class Draws(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x * draws.uniform())
            return x * x

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0]

    class Writes(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x * 2)
            ctx.mark_dirty(x)
            x *= 1.0
            return x

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0]

    for function, message in ((Draws, "gives another value"), (Writes, "writes to an input")):
        x = of(kind, 2.0)
        f = lambda x, function=function: function.apply(x * 1.0)  # noqa: E731
        y = f(x)
        y.backward()  # the first derivative exists
        assert np.isfinite(values(x.grad))
        with pytest.raises(GradientError, match=message):
            grad(f(x), [x], create_graph=True)


def test_numpy_scalar_is_no_gradient_of_an_array():
    class Sums(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2.0

        @staticmethod
        def backward(ctx, g):
            return np.sum(g.numpy())

    with pytest.raises(ShapeError, match=r"shape \(\) for input 0 of shape \(3,\)"):
        ops.sum(Sums.apply(of("numpy", [1.0, 2.0, 3.0]))).backward()
