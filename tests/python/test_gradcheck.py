"""``gradcheck`` and ``gradgradcheck`` accept correct derivatives and report wrong ones."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import gradops
from gradops import Variable, ops
from gradops.autodiff import Function, gradcheck, gradgradcheck
from gradops.errors import ArgumentError

torch = pytest.importorskip("torch")

KINDS = ["variable", "numpy", "torch", "jax", "tensorflow"]


def make(kind, values, dtype="float64"):
    values = np.asarray(values, dtype)
    if kind == "variable":
        return Variable(values, requires_grad=True)
    if kind == "numpy":
        return values
    if kind == "torch":
        return torch.tensor(values, requires_grad=True)
    pytest.importorskip(kind)
    return gradops.backends.lookup(kind).convert(values)


REAL = [[0.3, -1.2, 2.0], [1.1, 0.7, -0.4]]
COMPLEX = [0.3 + 1j, -1.2 - 0.2j, 2.0 + 0.1j]


def two(x, y):
    return ops.exp(x) * y, ops.sum(x * y, axis=0)


@pytest.mark.short_cases(0, "jax")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("fast", [False, True])
def test_correct_derivatives_pass(kind, fast):
    x, y = make(kind, REAL), make(kind, REAL[::-1])
    assert gradcheck(two, (x, y), fast_mode=fast)
    assert gradgradcheck(two, (x, y), fast_mode=fast)
    assert gradcheck(ops.tanh, x, fast_mode=fast)


@pytest.mark.short_cases(1, "jax")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "f",
    [
        lambda z: z * z,
        lambda z: ops.abs(z),
        lambda z: ops.conj(z) * z,
        lambda z: ops.sum(ops.exp(z)),
        lambda z: ops.real(z) * ops.imag(z),
    ],
)
def test_complex(kind, f):
    z = make(kind, COMPLEX, "complex128")
    assert gradcheck(f, z)
    assert gradgradcheck(f, z)


@pytest.mark.parametrize("kind", ["variable", "torch"])
@pytest.mark.parametrize("dtype", ["float32", "complex64", "float16"])
def test_tolerance_by_dtype(kind, dtype):
    x = make(kind, [0.5, -1.0], dtype)
    assert gradcheck(lambda x: x * x + x, x)
    with pytest.raises(RuntimeError):
        gradcheck(lambda x: wrong(kind, 1.5).apply(x), x)


def wrong(kind, factor=2.0, offset=0.0):
    class Wrong(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return g * factor + offset

    del kind
    return Wrong


@pytest.mark.parametrize("kind", ["variable", "torch", "jax", "tensorflow"])
def test_error_shows_analytic_and_numeric_gradients(kind):
    x = make(kind, [1.0, 2.0])
    f = gradops.custom_gradient(lambda x: (x * 1, lambda g: g * 2.5))
    with pytest.raises(RuntimeError, match="wrong at 2 of 4 places") as error:
        gradcheck(f, x)
    text = str(error.value)
    assert "analytic" in text and "numeric" in text and "2.5" in text and "[1]" in text
    assert gradcheck(f, x, raise_exception=False) is False
    with pytest.raises(RuntimeError, match="analytic .* numeric"):
        gradcheck(f, x, fast_mode=True)


def test_wrong_second_gradient():
    class Detached(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * 3 * x.detach() ** 2

    for kind in ("variable", "torch"):
        x = make(kind, [1.0, 2.0])
        assert gradcheck(Detached.apply, x)
        with pytest.raises(RuntimeError, match="wrong"):
            gradgradcheck(Detached.apply, x)


def test_error_names_the_complex_part():
    z = make("variable", COMPLEX, "complex128")
    with pytest.raises(RuntimeError, match="Im"):
        gradcheck(wrong("variable").apply, z)


@pytest.mark.parametrize("kind", ["variable", "torch"])
def test_nondeterministic_functions_are_reported(kind):
    rng = np.random.default_rng(0)
    x = make(kind, [1.0, 2.0])
    with pytest.raises(RuntimeError, match="not deterministic"):
        gradcheck(lambda x: x * float(rng.standard_normal()), x)

    class Noisy(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return g * (1 + 1e-6 * float(rng.standard_normal()))

    with pytest.raises(RuntimeError, match="differs from pass to pass"):
        gradcheck(Noisy.apply, x)
    assert gradcheck(Noisy.apply, x, nondet_tol=1e-4)


@pytest.mark.parametrize("kind", ["variable", "torch"])
def test_undefined_gradients(kind):
    class Careless(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, g1, g2):
            if g1 is None or g2 is None:
                return (g1 if g2 is None else g2) * 7
            return g1 * 2 + g2 * 3

    x = make(kind, [1.0])
    with pytest.raises(RuntimeError):
        gradcheck(Careless.apply, x)

    class Careful(Careless):
        @staticmethod
        def backward(ctx, g1, g2):
            return (0 if g1 is None else g1 * 2) + (0 if g2 is None else g2 * 3)

    assert gradcheck(Careful.apply, x)

    class Together(Function):
        """Correct with one output gradient at a time, but not if exactly one of two is undefined."""

        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return x * 2, x * 3, x * 4

        @staticmethod
        def backward(ctx, *gs):
            known = [g * n for g, n in zip(gs, (2, 3, 4)) if g is not None]
            return sum(known) if len(known) != 2 else sum(known) * 2

    with pytest.raises(RuntimeError, match="undefined gradient"):
        gradcheck(Together.apply, x)
    assert gradcheck(Together.apply, x, check_undefined_grad=False)


def test_only_inputs_that_require_a_gradient_are_checked():
    x, c = make("variable", [1.0, 2.0]), Variable(np.array([3.0, 4.0]))
    assert gradcheck(lambda x, c, n: ops.floor(c) * x**n, (x, c, 2))
    with pytest.raises(ArgumentError, match="no input requires a gradient"):
        gradcheck(ops.exp, c)
    with pytest.raises(ArgumentError, match="no input"):
        gradcheck(ops.exp, 3.0)
    with pytest.raises(ArgumentError, match="shares memory"):
        gradcheck(ops.exp, Variable(np.broadcast_to(1.0, (3,)), requires_grad=True))


def test_functions_without_gradient():
    x = make("variable", [1.2, 2.7])
    assert gradcheck(lambda x: ops.argmax(x), x)
    assert gradcheck(lambda x: ops.sign(x), x)
    with pytest.raises(RuntimeError, match="wrong"):
        gradcheck(lambda x: gradops.stop_gradient(x) * 2, x)


@pytest.mark.parametrize("kind", KINDS)
def test_nan_is_not_accepted_as_a_gradient(kind):
    with pytest.raises(RuntimeError, match="NaN is not a gradient"), np.errstate(invalid="ignore"):
        gradcheck(ops.sqrt, make(kind, [-1.0]))


@pytest.mark.parametrize("kind", ["variable", "numpy", "torch", "tensorflow"])
@pytest.mark.parametrize("leave", [lambda x: ops.sum(x * x).item(), lambda x: 3 * data(x)], ids=["number", "array"])
def test_output_that_left_the_tape_fails(kind, leave):
    x = make(kind, [1.0, 2.0])
    if kind == "tensorflow":
        leave = (lambda leave: lambda x: leave(x.numpy()))(leave)
    for f in (leave, lambda x: (ops.exp(x), leave(x))):
        with pytest.raises(RuntimeError, match="as.numeric"):
            gradcheck(f, x)
        assert not gradcheck(f, x, fast_mode=True, raise_exception=False)
    assert gradcheck(lambda x: (ops.exp(x), 2.0, 3), x)


def data(x):
    return ops.convert_to_numpy(x.detach() if hasattr(x, "detach") else x)


def test_grad_outputs():
    x = make("variable", [1.2, 2.7])
    g = Variable(np.array([1.0, -1.0]), requires_grad=True)
    assert gradgradcheck(ops.exp, x, g)
    assert gradgradcheck(lambda x: ops.exp(x) * ops.sum(x), x, gen_non_contig_grad_outputs=True)
    assert gradcheck(ops.exp, x, check_grad_dtypes=True)


@pytest.mark.parametrize("rich", [True, False])
def test_progress(rich, monkeypatch, capsys):
    if not rich:
        monkeypatch.setitem(sys.modules, "rich.progress", None)
    else:
        pytest.importorskip("rich")
    assert gradcheck(ops.exp, make("variable", np.ones(20)), progress=True)
    if not rich:
        assert "gradcheck: 100%" in capsys.readouterr().err
