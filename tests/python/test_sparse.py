"""Sparse Jacobians and Hessians equal dense ones for all values, from few products; clear errors."""

from __future__ import annotations

import functools
import itertools
from unittest.mock import Mock

import numpy as np
import pytest
import scipy.sparse
from parity import BACKENDS, tensors
from random_programs import Program
from seeds import seeds

import gradops
from gradops import Variable, functional, ops
from gradops.errors import ArgumentError, ArgumentTypeError, GradientError
from gradops.functional import hessian, jacobian
from gradops.functional.sparsity import colors as colorings
from gradops.functional.sparsity import patterns
from gradops.jit import JitError, jit

RNG = np.random.default_rng(3)


def banded(x):
    """Couple neighbours of a chain, plus a separate term each."""
    return ops.sum(ops.exp(x[1:] * x[:-1])) + ops.sum(ops.sin(x))


def arrow(x):
    """Couple all elements with the first two."""
    return ops.sum(ops.exp(x[2:] * x[0]) * x[1]) + ops.sum(x**4)


def chain(x):
    """Run a loop of scalars, as in a state space model."""
    total, state = 0.0, x[0]
    for i in range(1, x.shape[0]):
        state = ops.tanh(x[i]) * 0.5 + x[i - 1] * x[i]
        total = total + ops.log(1 + state * state)
    return total


def scattered(x):
    """Use constant indices: gather, add, set, segments, scatter into rows."""
    pairs = ops.take(x, np.array([0, 3, 3, 5, 7])) * ops.take(x, np.array([1, 2, 4, 4, 6]))
    sums = ops.segment_sum(x**3, np.array([0, 0, 1, 1, 2, 2, 3, 3]), 4)
    placed = ops.scatter_update(ops.square(x), np.array([[1], [6]]), x[2:4] * x[0])
    return ops.sum(ops.exp(pairs)) + ops.sum(sums**2) + ops.sum(placed**2)


def masked(x):
    m = ops.reshape(x, (4, 2))
    inside = ops.where(np.array([[True, False]] * 4), m, 2.0)
    return (
        ops.sum(ops.prod(inside, 1)) ** 2 + ops.sum(m[:, 1] * ops.flip(m[:, 1], 0)) + ops.sum(ops.tril(m[:2] * m[2:]))
    )


def accumulated(x):
    return ops.sum(ops.cumsum(x[:3]) ** 3) + ops.sum(ops.exp(x[3:] * np.array([1.0, 0.0, 2.0, 0.0, 1.0]))) + ops.max(x)


def multiplied(x):
    d = np.eye(8) - np.eye(8, k=1)
    return ops.sum(ops.exp(ops.matmul(d, x))) + ops.sum(ops.matmul(x, d) ** 3)


def of_a_stack(x):
    """Apply matrix ops to two matrices of four elements each."""
    m = ops.reshape(x, (2, 2, 2))
    s = ops.matmul(m, ops.transpose(m, (0, 2, 1))) + np.eye(2)
    found = ops.cholesky(s), ops.inv(s), ops.det(s), ops.slogdet(s)[1], ops.eigh(s)[0], ops.expm(s / 4)
    return functools.reduce(ops.add, [ops.sum(ops.square(part)) for part in found])


FUNCTIONS = [banded, arrow, chain, scattered, masked, accumulated, multiplied, of_a_stack]


@pytest.mark.parametrize("f", FUNCTIONS)
def test_sparse_hessian_equals_the_dense_one(f):
    x = RNG.normal(size=8)
    got, want = hessian(f, x, sparse=True), hessian(f, x)
    assert isinstance(got, scipy.sparse.csc_matrix) and got.has_sorted_indices
    np.testing.assert_allclose(got.toarray(), want, rtol=1e-10, atol=1e-12)
    assert (got != got.T).nnz == 0


@pytest.mark.parametrize("strategy", [None, "forward-mode", "reverse-mode"])
@pytest.mark.parametrize("f", FUNCTIONS)
def test_sparse_jacobian_equals_the_dense_one(f, strategy):
    x, gradient = RNG.normal(size=8), gradops.grad(f)
    got, want = jacobian(gradient, x, sparse=True, strategy=strategy), jacobian(gradient, x)
    np.testing.assert_allclose(got.toarray(), want, rtol=1e-10, atol=1e-12)


def of_columns(x):
    d = np.array([[2.0, 0.5], [0.5, 1.0]])
    return ops.sum(ops.square(ops.solve(d, ops.reshape(x, (2, 4)))))


@pytest.mark.parametrize(
    "f, elements",
    [(banded, 22), (arrow, 34), (chain, 22), (multiplied, 22), (of_columns, 16), (of_a_stack, 32)],
)
def test_patterns_are_tight(f, elements):
    assert hessian(f, RNG.normal(size=8), sparse=True).nnz == elements


@pytest.mark.parametrize("seed", range(12))
def test_random_programs(seed):
    program = Program(seed, 15)
    inputs = tuple(program.inputs)
    with np.errstate(all="ignore"):
        got, want = hessian(program.loss, inputs, sparse=True), hessian(program.loss, inputs)
    for row, rows in zip(got, want):
        for part, whole in zip(row, rows):
            largest = max(1.0, np.max(np.abs(whole), initial=0, where=np.isfinite(whole)))  # scale of rounding
            near = {"rtol": 1e-4, "atol": 1e-5 * largest} if program.single else {"rtol": 1e-7, "atol": 1e-9}
            np.testing.assert_allclose(part.toarray(), whole.reshape(part.shape), **near)


@pytest.mark.long
@pytest.mark.parametrize("seed", seeds(200))
def test_many_random_programs(seed):
    test_random_programs(seed)


def test_pattern_holds_for_all_values():
    """Elements are part of the pattern even where the function is flat."""
    compiled = jit(lambda x: ops.sum(ops.relu(x[1:]) * x[:-1] ** 2))
    for x in (-np.ones(5), np.ones(5), np.array([1.0, -2, 3, -4, 5])):
        got = hessian(compiled, x, sparse=True)
        assert got.nnz == 12
        np.testing.assert_allclose(got.toarray(), hessian(compiled.f, x), atol=1e-12)


def test_few_products(monkeypatch):
    seen = []
    compressed = patterns.compressed

    def counted(run, xs, vs, colors):
        seen.append(int(colors.max()) + 1)
        return compressed(run, xs, vs, colors)

    monkeypatch.setattr(patterns, "compressed", counted)
    x = RNG.normal(size=300)
    hessian(banded, x, sparse=True)
    hessian(arrow, x, sparse=True)
    jacobian(lambda x: x[1:] * x[:-1], x, sparse=True)
    jacobian(lambda x: ops.sum(ops.sin(x)), x, sparse=True)
    assert seen == [3, 3, 2, 1]


def test_compiled_function_is_traced_once_until_its_closures_change():
    calls = Mock()
    data = {"w": np.array([1.0, 0.0, 2.0])}

    def f(x):
        calls()
        return ops.sum(data["w"] * ops.exp(x[1:] * x[:-1]))

    compiled = jit(f)
    x = RNG.normal(size=4)
    hessian(compiled, x, sparse=True)
    hessian(compiled, 2 * x, sparse=True)
    assert calls.call_count == 1
    data["w"] = np.array([1.0, 3.0, 2.0])
    second = hessian(compiled, x, sparse=True)
    assert calls.call_count == 2
    np.testing.assert_allclose(second.toarray(), hessian(f, x), atol=1e-12)


# Rules that are not the natural derivative ----------------------------------------------------------------------------


@gradops.custom_gradient
def own_product(x, y):
    """Return x * y, with the declared gradients 2 y and 0."""

    def gradient(*, upstream):
        return upstream * 2 * y, upstream * 0.0

    return x * y, gradient


@gradops.custom_gradient
def shifted(x):
    """Return x, with a gradient shifted to the neighbour."""

    def gradient(*, upstream):
        return ops.roll(upstream, 1)

    return x * 1.0, gradient


def reversed_in_part(x):
    return ops.sum(gradops.scaled_gradient(x[1:], -1.0) * x[:-1] ** 2)


def stopped(x):
    return ops.sum(gradops.stop_gradient(x[1:]) * x[:-1] ** 2)


def recomputed(x):
    return gradops.checkpoint(lambda x: ops.sum(ops.exp(x[1:] * x[:-1])))(x)


def in_scope(x):
    with gradops.gradient_checkpoint_scope():
        y = ops.exp(x[1:] * x[:-1])
    return ops.sum(y * y)


def written(x):
    y = ops.sin(x)
    y[1:3] = x[1:3] * x[0]
    y *= 2.0
    return ops.sum(y**2)


def hooked(x):
    y = x * x
    if hasattr(y, "register_hook"):
        y.register_hook(lambda g: g * ops.roll(x, 1))
    return ops.sum(y)


OWN = [
    lambda x: ops.sum(own_product(x[1:], x[:-1])),
    lambda x: ops.sum(ops.exp(shifted(x)) * x),
    reversed_in_part,
    stopped,
    recomputed,
    in_scope,
    written,
    hooked,
]


@pytest.mark.parametrize("f", OWN)
def test_custom_derivatives_are_preserved(f):
    x = RNG.normal(size=5)
    np.testing.assert_allclose(hessian(f, x, sparse=True).toarray(), hessian(f, x), atol=1e-12)
    gradient = gradops.grad(f)
    got = jacobian(gradient, x, sparse=True)
    np.testing.assert_allclose(got.toarray(), jacobian(gradient, x), atol=1e-12)


def test_nonsymmetric_hessians_of_custom_rules_stay_nonsymmetric():
    got = hessian(OWN[0], np.ones(4), sparse=True).toarray()
    np.testing.assert_allclose(got, np.diag([2.0, 2.0, 2.0], -1))


# Forms ----------------------------------------------------------------------------------------------------------------


def test_several_inputs_and_outputs_give_blocks():
    a, b = RNG.normal(size=(2, 3)), RNG.normal(size=2)
    found = hessian(lambda a, b: ops.sum(ops.exp(a * b[:, None])), (a, b), sparse=True)
    dense = hessian(lambda a, b: ops.sum(ops.exp(a * b[:, None])), (a, b))
    for row, rows in zip(found, dense):
        for part, whole in zip(row, rows):
            np.testing.assert_allclose(part.toarray(), whole.reshape(part.shape), atol=1e-12)
    rows = jacobian(lambda a, b: (a[0] ** 2, ops.sum(b)), (a, b), sparse=True)
    assert [[part.shape for part in row] for row in rows] == [[(3, 6), (3, 2)], [(1, 6), (1, 2)]]
    assert rows[0][1].nnz == rows[1][0].nnz == 0
    np.testing.assert_allclose(rows[0][0].toarray(), np.hstack([np.diag(2 * a[0]), np.zeros((3, 3))]))


def test_dicts_keep_their_structure():
    p = {"w": RNG.normal(size=3), "b": np.array(2.0)}
    found = hessian(lambda p: ops.sum(p["w"] ** 3) * p["b"], p, sparse=True)
    np.testing.assert_allclose(found["w"]["w"].toarray(), np.diag(6 * p["w"] * 2))
    np.testing.assert_allclose(found["b"]["w"].toarray(), 3 * p["w"][None] ** 2)
    assert found["b"]["b"].nnz == 0


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_dtypes_are_preserved(dtype):
    x = np.linspace(0.1, 1, 6).astype(dtype)
    assert hessian(banded, x, sparse=True).dtype == dtype


def test_patterns_of_constants_and_empty_inputs():
    assert hessian(lambda x: ops.sum(x), np.ones(3), sparse=True).nnz == 0
    assert hessian(lambda x: ops.sum(x) * 0 + 1.0, np.ones(3), sparse=True).shape == (3, 3)
    assert jacobian(lambda x: np.ones(2), np.ones(3), sparse=True).shape == (2, 3)
    assert jacobian(lambda x: x, np.ones(0), sparse=True).shape == (0, 0)
    assert hessian(lambda x: x * x, 3.0, sparse=True).toarray() == [[2.0]]


def test_variables_without_gradient():
    x = Variable(np.ones(4))
    np.testing.assert_allclose(hessian(banded, x, sparse=True).toarray(), hessian(banded, np.ones(4)))


# Wrong use ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["torch", "tensorflow", "jax"])
@pytest.mark.parametrize("derivative", [jacobian, hessian])
def test_other_libraries_are_refused(backend, derivative):
    x = tensors(np.ones(3), backend)
    with pytest.raises(ArgumentTypeError, match=f"needs NumPy arrays.*got {backend} tensors"):
        derivative(lambda x: ops.sum(x * x), x, sparse=True)


def test_errors():
    x = np.ones(3)
    with pytest.raises(ArgumentError, match="create_graph"):
        hessian(banded, x, create_graph=True, sparse=True)
    with pytest.raises(GradientError, match="an input requires one"):
        hessian(banded, Variable(x, requires_grad=True), sparse=True)
    with pytest.raises(ArgumentTypeError, match="real inputs"):
        jacobian(lambda x: x * x, x + 1j, sparse=True)
    with pytest.raises(JitError, match="looked at a value"):
        hessian(lambda x: banded(x) if ops.sum(x) > 0 else arrow(x), x, sparse=True)
    with pytest.raises(GradientError, match="scalar"):
        hessian(lambda x: x * x, x, sparse=True)
    with pytest.raises(GradientError, match="output 0 does not depend on input 1"):
        jacobian(lambda x, y: x * x, (x, x), sparse=True, strict=True)
    with pytest.raises(ArgumentError, match="strategy"):
        jacobian(banded, x, sparse=True, strategy="sideways")


# Colourings -----------------------------------------------------------------------------------------------------------


def graphs():
    for n, density in itertools.product((1, 2, 7, 20), (0.0, 0.1, 0.4, 1.0)):
        half = np.random.default_rng(n).random((n, n)) < density
        yield scipy.sparse.csc_array(half | half.T | np.eye(n, dtype=bool))


@pytest.mark.parametrize("pattern", list(graphs()))
def test_colourings_are_valid(pattern):
    dense = pattern.toarray()
    n = len(dense)
    columns = colorings.column_colors(pattern)
    for row in dense:
        assert len(set(columns[row])) == row.sum()
    colors = colorings.star(pattern)
    np.fill_diagonal(dense, False)
    for a, b, c in itertools.product(range(n), repeat=3):
        if not (dense[a, b] and dense[b, c]) or a == c:
            continue
        assert colors[a] != colors[b]
        for d in np.flatnonzero(dense[c]):
            assert d == b or d == a or len({colors[v] for v in (a, b, c, d)}) >= 3


# The Hessian as an object ---------------------------------------------------------------------------------------------


def coupled(x, s, y):
    """Couple a chain, and a vector with each of its elements, by a parameter."""
    return ops.sum(ops.exp(s * x[1:] * x[:-1])) + ops.sum(ops.sin(x[:2] * y)) + ops.sum(s * x**3)


@pytest.mark.parametrize(
    ("backend", "argnums"), [*((b, 0) for b in BACKENDS), ("numpy", (0, 2)), ("numpy", (2, 0)), ("torch", (2, 0))]
)
def test_sparse_hessian_with_respect_to_some_arguments(backend, argnums):
    numbers = RNG.normal(size=6), np.array(0.7), RNG.normal(size=2)
    inputs = tuple(tensors(list(numbers), backend))
    pattern = functional.SparseHessian(coupled, numbers, argnums).pattern
    found = functional.SparseHessian(coupled, inputs, argnums, None if backend == "numpy" else pattern)
    assert found.count == 3 and (found.pattern != pattern).nnz == 0
    chosen = argnums if isinstance(argnums, tuple) else (argnums,)
    moved = [x + 0.3 for x in numbers]
    want = hessian(lambda *xs: coupled(*_put(moved, chosen, xs)), tuple(moved[k] for k in chosen))
    want = np.block([list(row) for row in want])
    np.testing.assert_allclose(found(*tensors(moved, backend)).toarray(), want, rtol=1e-10, atol=1e-12)
    whole = functional.SparseHessian(coupled, inputs, argnums, np.ones(pattern.shape))
    np.testing.assert_allclose(whole(*tensors(moved, backend)).toarray(), want, rtol=1e-10, atol=1e-12)


def _put(numbers, places, xs):
    given = list(numbers)
    for k, x in zip(places, xs):
        given[k] = x
    return given


@pytest.mark.parametrize("backend", BACKENDS)
def test_elements_of_a_sparse_hessian_are_differentiable(backend):
    numbers = RNG.normal(size=6), np.array(0.7), RNG.normal(size=2)
    pattern = functional.SparseHessian(coupled, numbers).pattern
    inputs = tuple(tensors(list(numbers), backend))
    found = functional.SparseHessian(coupled, inputs, pattern=pattern)
    weights = RNG.normal(size=pattern.nnz)
    rows, columns = colorings.positions(pattern)

    def weighted(x, s, y):
        return ops.sum(tensors(weights, backend) * found.values(x, s, y))

    def numerically(k):
        def at(value):
            x, s, y = _put(numbers, (k,), (value,))
            return weights @ hessian(lambda x: coupled(x, s, y), x)[rows, columns]

        each = np.eye(numbers[k].size).reshape(-1, *numbers[k].shape) * 1e-5
        return np.reshape([(at(numbers[k] + e) - at(numbers[k] - e)) / 2e-5 for e in each], numbers[k].shape)

    for k, got in enumerate(gradops.grad(weighted, (0, 1, 2))(*inputs)):
        np.testing.assert_allclose(ops.convert_to_numpy(got), numerically(k), rtol=1e-6, atol=1e-7)


def test_bad_sparse_hessians():
    x = np.ones(3)
    with pytest.raises(ArgumentError, match="`argnums` must be positions among 1 inputs; got 1"):
        functional.SparseHessian(banded, x, 1)
    with pytest.raises(ArgumentError, match=r"`pattern` must have the shape \(3, 3\); got \(2, 2\)"):
        functional.SparseHessian(banded, x, pattern=np.eye(2))
    with pytest.raises(GradientError, match="scalar"):
        functional.SparseHessian(ops.sin, x)
    assert repr(functional.SparseHessian(banded, x)) == "<gradops sparse Hessian, 3 x 3, 7 elements, 2 colours>"


def test_pattern_includes_elements_with_a_zero_coefficient():
    def walk(phi, scale, u):
        return ops.sum((u[1:] - phi * u[:-1]) ** 2 * scale[0])

    u = np.arange(4.0)
    found = functional.SparseHessian(walk, (0.0, np.zeros(1), u), 2)
    wanted = functional.hessian(lambda u: walk(0.5, np.ones(1), u), u)
    np.testing.assert_allclose(found(0.5, np.ones(1), u).toarray(), wanted, 1e-12)
