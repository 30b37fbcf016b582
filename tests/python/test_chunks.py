"""``chunk_size`` of ``vmap``, ``jacobian`` and ``hessian``: equal results in bounded memory, on every library."""

from __future__ import annotations

import itertools
import tracemalloc

import numpy as np
import pytest
from parity import numpy, on

import gradops
from gradops import errors, functional, ops

RNG = np.random.default_rng(3)
X, ROWS, W = RNG.normal(size=5), RNG.normal(size=(7, 5)), RNG.normal(size=(3, 5))


def of(backend):
    """Return a function of a vector with three results, and the same function of both parts of a dict."""
    w = on(backend, W)

    def f(x):
        return ops.tanh(ops.matmul(w, x)) * ops.sum(x**2)

    return f, lambda p: {"a": f(p["x"]) * p["s"], "b": ops.sum(p["x"]) * p["s"]}


def compilers(backend):
    if backend in ("numpy", "torch"):
        return [gradops.jit]
    return [
        gradops.jit,
        pytest.importorskip("jax").jit if backend == "jax" else pytest.importorskip("tensorflow").function,
    ]


def close(found, want):
    for a, b in zip(_leaves(found), _leaves(want), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


def _leaves(value):
    value = numpy(value)
    if isinstance(value, dict):
        value = list(value.values())
    return itertools.chain.from_iterable(map(_leaves, value)) if isinstance(value, list) else [value]


@pytest.mark.short_cases(0, "tensorflow")
@pytest.mark.short_cases(1, "jax")
@pytest.mark.parametrize("size", (3, 1, 50))
def test_chunks_equal_everything_at_once(backend, size):
    f, g = of(backend)
    x, rows = on(backend, X), on(backend, ROWS)
    p = {"x": x, "s": on(backend, [1.0, 2.0, -1.0])}
    close(gradops.vmap(f, chunk_size=size)(rows), gradops.vmap(f)(rows))
    close(gradops.vmap(f, 1, 1, chunk_size=size)(ops.transpose(rows)), ops.transpose(gradops.vmap(f)(rows)))
    for strategy in ("reverse-mode", "forward-mode"):
        close(gradops.jacobian(g, strategy=strategy, chunk_size=size)(p), gradops.jacobian(g)(p))
    close(functional.jacobian(f, x, strict=True, chunk_size=size), functional.jacobian(f, x))
    both = gradops.hessian(lambda x, y: ops.sum(f(x) * f(y)), (0, 1), chunk_size=size)(x, rows[0])
    close(both, gradops.hessian(lambda x, y: ops.sum(f(x) * f(y)), (0, 1))(x, rows[0]))
    if size == 3:
        close(gradops.hessian(f, chunk_size=size)(x), gradops.hessian(f)(x))


@pytest.mark.short_cases(1, "torch", "tensorflow", "jax")
@pytest.mark.parametrize("size", (3, 1))
def test_compiled_chunks(backend, size):
    f, _ = of(backend)
    x, rows = on(backend, X), on(backend, ROWS)
    for compiled in compilers(backend):
        close(compiled(gradops.vmap(f, chunk_size=size))(rows), gradops.vmap(f)(rows))
        close(compiled(gradops.jacobian(f, chunk_size=size))(x), gradops.jacobian(f)(x))
        close(
            compiled(gradops.hessian(lambda x: ops.sum(f(x)), chunk_size=size))(x),
            gradops.hessian(lambda x: ops.sum(f(x)))(x),
        )


def test_compiled_chunks_are_a_loop(jax):
    """The program of many chunks is as long as that of a few."""
    f, _ = of("jax")

    def length(make, x):
        return len(jax.make_jaxpr(make)(x).eqns)

    rows = on("jax", np.ones((400, 5)))
    assert length(gradops.vmap(f, chunk_size=2), rows) == length(gradops.vmap(f, chunk_size=2), rows[:40])
    g = lambda x: ops.sin(x) * ops.sum(x)  # noqa: E731
    for size in (1, 2):
        jacobian = gradops.jacobian(g, chunk_size=size)
        assert length(jacobian, rows[:, 0]) == length(jacobian, rows[:40, 0])


def test_compiled_derivatives_of_single_passes():
    f = lambda x: ops.sin(x) * ops.sum(x)  # noqa: E731
    total = lambda x, size: ops.sum(gradops.jacobian(f, chunk_size=size)(x) ** 2)  # noqa: E731
    for size in (1, 2):
        close(gradops.jit(gradops.grad(lambda x, size=size: total(x, size)))(X), gradops.grad(total)(X, None))


def test_unknown_number_of_rows(tf):
    f, _ = of("tensorflow")
    call = tf.function(gradops.vmap(f, chunk_size=3), input_signature=[tf.TensorSpec([None, 5], tf.float64)])
    for count in (0, 1, 3, 7):
        close(call(ROWS[:count]), gradops.vmap(f)(on("tensorflow", ROWS[:count])))


@pytest.mark.short_cases(1, "tensorflow", "jax")
@pytest.mark.parametrize("size", (1, 2))
def test_derivatives_through_chunks(backend, size):
    """Enclosing derivatives reach the arguments and what a rule closes over."""
    x, w = on(backend, X), on(backend, [1.0, -2.0, 0.5, 1.5, 2.0])

    def total(w, make, chunk_size):
        own = gradops.custom_gradient(lambda x, w: (x * x, lambda u: (u * 2 * x * ops.cos(w), None)))
        return ops.sum(make(lambda x: own(x, w) * ops.sum(x), chunk_size=chunk_size)(x) ** 2)

    close(gradops.grad(total)(w, gradops.jacobian, size), gradops.grad(total)(w, gradops.jacobian, None))
    smooth = lambda w, size: ops.sum(gradops.vmap(lambda a: ops.sin(a * w), chunk_size=size)(x) ** 2)  # noqa: E731
    close(gradops.grad(smooth)(w, size), gradops.grad(smooth)(w, None))
    cubes = lambda x, size: ops.sum(gradops.hessian(lambda x: ops.sum(x**4) * x[0], chunk_size=size)(x) ** 2)  # noqa: E731
    close(gradops.grad(cubes)(x, size), gradops.grad(cubes)(x, None))
    nested = gradops.vmap(gradops.jacobian(lambda a: ops.sin(a) * a[0], chunk_size=size), chunk_size=2)(
        on(backend, ROWS)
    )
    close(nested, gradops.vmap(gradops.jacobian(lambda a: ops.sin(a) * a[0]))(on(backend, ROWS)))


def test_tensors_around_a_torch_jacobian(torch):
    """A rule that reads a tensor from outside is recorded, also if its passes are batched."""
    w = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64, requires_grad=True)
    own = gradops.custom_gradient(lambda x: (x * x, lambda u: u * 2 * x * torch.cos(w)))
    x = torch.tensor([1.0, -1.0, 0.5], dtype=torch.float64)

    def slope(**how):
        found = functional.jacobian(lambda x: own(x) * x.sum(), x, **how)
        return torch.autograd.grad((found**2).sum(), w)[0]

    for size in (1, 2, 3):
        close(slope(chunk_size=size), slope())
    x.requires_grad_()
    with torch.no_grad():
        assert functional.jacobian(torch.sin, x, create_graph=True, chunk_size=2).requires_grad
        assert not functional.jacobian(torch.sin, x, chunk_size=2).requires_grad


def test_rows_that_read_values(backend):
    f = lambda x: x[0] * x if x[0] > 0 else -x  # noqa: E731
    want = [f(row) for row in ROWS]
    close(gradops.vmap(f, chunk_size=3)(on(backend, ROWS)), np.stack(want))


def test_complex_and_empty(backend):
    z = ops.convert_to_tensor([1.0 + 2.0j, 3.0 - 1.0j])
    close(functional.jacobian(lambda z: z**2, z, chunk_size=1), functional.jacobian(lambda z: z**2, z))
    close(functional.jacobian(lambda z: z**2, z, chunk_size=2), functional.jacobian(lambda z: z**2, z))
    none = on(backend, np.zeros(0))
    assert functional.jacobian(lambda x: ops.sin(x), none, chunk_size=2).shape == (0, 0)
    assert functional.hessian(lambda x: ops.sum(x), none, chunk_size=2).shape == (0, 0)
    assert tuple(gradops.vmap(ops.sin, chunk_size=2)(on(backend, np.zeros((0, 3)))).shape) == (0, 3)


def test_errors(backend):
    x = on(backend, X)
    for make in (gradops.vmap, gradops.jacobian, gradops.hessian):
        with pytest.raises(errors.ArgumentError, match="`chunk_size` must be at least 1; got 0"):
            make(ops.sin, chunk_size=0)
        with pytest.raises(errors.ArgumentTypeError, match="`chunk_size` must be a whole number; got 'two'"):
            make(ops.sin, chunk_size="two")
    with pytest.raises(errors.ArgumentError, match="`chunk_size` must be None with `sparse`"):
        functional.jacobian(ops.sin, x, sparse=True, chunk_size=2)
    for size in (1, 2):
        with pytest.raises(errors.GradientError, match="output.*(depend on|independent of) input 0"):
            functional.jacobian(lambda a, b: (a * b, b), (x, x), strict=True, chunk_size=size)


def test_chunks_bound_the_memory():
    """The passes of a chunk are 1/20 of all; a chunk of 1 makes no batch."""
    w = RNG.normal(size=(200, 200))

    def f(x):
        return ops.sum(ops.sin(w * x), 0)

    def peak(size):
        tracemalloc.start()
        gradops.jacobian(f, strategy="reverse-mode", chunk_size=size)(np.ones(200))
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    whole, part, single = peak(None), peak(10), peak(1)
    assert part < 0.15 * whole and single < 0.5 * part


@pytest.mark.parametrize("size", (1, 2))
def test_torch_jacrev_has_the_same_chunks(torch, size):
    x, rows = on("torch", X), on("torch", ROWS)
    f = lambda x: torch.sin(x) * x.sum()  # noqa: E731
    close(gradops.jacobian(f, chunk_size=size)(x), torch.func.jacrev(f, chunk_size=size)(x))
    close(gradops.vmap(f, chunk_size=size)(rows), torch.func.vmap(f, chunk_size=size)(rows))
    inside = torch.func.vmap(gradops.jacobian(f, chunk_size=size))(rows)
    close(inside, torch.func.vmap(torch.func.jacrev(f))(rows))
