"""Small matrices in native code against NumPy calls: values, derivatives, errors, and fallbacks to NumPy."""

import numpy as np
import pytest
from test_native import both, needs_machine, padding

from gradops import functional, ops, value_and_grad
from gradops.errors import ArgumentError
from gradops.jit import jit

rng = np.random.default_rng(0)
pytestmark = needs_machine


def every(a, b):
    s = a @ ops.swapaxes(a, -1, -2) + np.eye(a.shape[-1], dtype=a.dtype)
    factor = ops.cholesky(s)
    found = [ops.solve(a, b), ops.inv(a), ops.det(a), *ops.slogdet(a), factor, ops.cholesky(s, upper=True)]
    return [padding(a), *found, ops.solve_triangular(factor, b, lower=True), ops.solve_triangular(s, b)]


def of_stacks(a, b):
    return [padding(a), ops.solve(a, b), ops.inv(a), ops.det(a), *ops.slogdet(a)]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(
    "shapes", [((1, 1), (1, 2)), ((2, 2), (2,)), ((3, 3), (3, 2)), ((3, 3), (3, 9)), ((8, 8), (8,)), ((2, 3, 3),) * 2]
)
def test_numbers(shapes, dtype):
    a, b = (rng.normal(size=shape).astype(dtype) for shape in shapes)
    got, wanted, explained = both(every if a.ndim == 2 else of_stacks, a, b)
    assert explained.native == explained.steps, str(explained)
    for x, y in zip(got, wanted, strict=True):
        assert x.dtype == y.dtype and np.shape(x) == np.shape(y)
        np.testing.assert_allclose(
            x, y, rtol=1e-4 if dtype == "float32" else 1e-10, atol=1e-5 if dtype == "float32" else 1e-13
        )


def test_derivatives():
    def f(a, b):
        s = a @ ops.transpose(a) + np.eye(3)
        L = ops.cholesky(s)
        return (
            ops.sum(b * ops.solve(s, b))
            + ops.slogdet(s)[1]
            + ops.sum(ops.solve_triangular(L, b, lower=True)) * ops.det(a)
        )

    a, b = rng.normal(size=(3, 3)), rng.normal(size=3)
    for g in (value_and_grad(f, argnums=(0, 1)), lambda a, b: functional.hessian(lambda b: f(a, b), b)):
        compiled = jit(g)
        for x, y in zip(
            np.hstack([np.ravel(v) for v in _flat(compiled(a, b))]), np.hstack([np.ravel(v) for v in _flat(g(a, b))])
        ):
            np.testing.assert_allclose(x, y, rtol=1e-8, atol=1e-10)


def _flat(x):
    return [leaf for part in x for leaf in _flat(part)] if isinstance(x, (list, tuple)) else [x]


def test_multivariate_filter_is_native():
    ys = rng.normal(size=(40, 2))

    def f(p):
        q, r = ops.exp(p[0]) * np.eye(2), ops.exp(p[1]) * np.array([[1.0, 0.3], [0.3, 2.0]])

        def step(state, y):
            a, P = state
            P = P + q
            S = P + r
            K = ops.transpose(ops.solve(S, P))
            v = y - a
            return (a + K @ v, P - K @ P), ops.slogdet(S)[1] + ops.sum(v * ops.solve(S, v))

        return ops.sum(ops.scan(step, (np.zeros(2), np.eye(2) * 9.0), ys)[1])

    x = np.array([-0.5, 0.2])
    compiled = jit(value_and_grad(f))
    for got, wanted in zip(compiled(x), value_and_grad(f)(x)):
        np.testing.assert_allclose(got, wanted, rtol=1e-9)
    assert "native in 1 run" in compiled.explain() and "scan" not in compiled.explain()


A = np.array([[2.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 1.0]])


@pytest.mark.parametrize(
    "f, bad",
    [
        (lambda a: ops.solve(a, a[0]), np.ones((3, 3))),
        (lambda a: ops.solve(a, a[0]), np.outer([0.1, 0.2, 0.7], [0.1, 0.3, 0.9])),
        (ops.inv, np.zeros((3, 3))),
        (lambda a: ops.solve_triangular(a, a[0]), np.diag([1.0, 0.0, 2.0])),
        (ops.cholesky, -A),
        (ops.cholesky, np.ones((3, 3))),
        (ops.cholesky, A + np.triu(A)),
        (ops.cholesky, A * np.nan),
        (ops.det, np.ones((3, 3))),
        (ops.slogdet, np.zeros((3, 3))),
        (ops.det, A * np.nan),
        (ops.inv, A + np.where(np.eye(3) > 0, np.nan, 0.0)),
        (ops.cholesky, A + 1e-9 * np.triu(A)),
    ],
)
def test_doubtful_results_are_left_to_numpy(f, bad):
    """The outcome is NumPy's error, zero or NaN."""
    compiled = jit(lambda a: [padding(a), f(a)])
    compiled(A)
    for given in (bad, A, bad):
        try:
            wanted = f(given)
        except ArgumentError as error:
            with pytest.raises((ArgumentError, ValueError), match=str(error).split(":")[1].split("(")[0].strip()):
                compiled(given)
            continue
        got = compiled(given)[1]
        for x, y in zip(_flat(got), _flat(wanted), strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-12)


@pytest.mark.parametrize(
    ("f", "most"),
    [
        (lambda a: ops.solve(a, a), 64),
        (ops.inv, 64),
        (ops.cholesky, 12),
        (lambda a: ops.solve_triangular(a, a[:, 0]), 24),
        (lambda a: ops.solve_triangular(a, a[:, :2], lower=True), 24),
    ],
)
def test_larger_matrices_use_lapack(f, most):
    for n in (most, most + 1):
        a = np.eye(n) + 0.1 * np.diag(np.ones(n - 1), 1) + 0.1 * np.diag(np.ones(n - 1), -1)
        got, wanted, explained = both(lambda a: [padding(a), f(a)], a)
        assert (explained.native < explained.steps) == (n > most), str(explained)
        for x, y in zip(got, wanted, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-15)


LARGE = A[0, 0] * np.eye(12) + np.cos(np.arange(144.0)).reshape(12, 12)


def of_one_factor(a, b):
    """Return solutions that share a LAPACK factor, for the transpose and several right-hand sides as well."""
    sign, log = ops.slogdet(a)
    found = [sign, log, ops.solve(a, b), ops.solve(a, b[:, 0]), ops.solve(ops.transpose(a), b), ops.inv(a), ops.det(a)]
    return [padding(b), *found, ops.inv(a[::-1]), ops.slogdet(a[::-1])[0]]


def test_lapack_called_by_address():
    b = rng.normal(size=(12, 3))
    got, wanted, explained = both(of_one_factor, LARGE, b)
    assert explained.native == explained.steps, str(explained)
    for x, y in zip(got, wanted, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-11, atol=1e-13)


def test_lapack_in_loops_and_fallbacks():
    """Each iteration factors again; singular matrices and other warnings are left to NumPy."""

    def f(p):
        def step(total, x):
            matrix = LARGE * p[0] + x * np.eye(12)
            solved = ops.solve(matrix, p * x)
            return total + ops.slogdet(matrix)[1] + ops.sum(ops.solve(ops.transpose(matrix), solved)), ops.sum(solved)

        total, rows = ops.scan(step, 0.0, np.array([0.5, -1.5, 2.5]))
        return total + ops.sum(rows * rows)

    p = np.linspace(0.5, 1.5, 12)
    compiled = jit(value_and_grad(f))
    for _ in range(2):
        for got, wanted in zip(compiled(p), value_and_grad(f)(p)):
            np.testing.assert_allclose(got, wanted, rtol=1e-8)
    singular = jit(lambda a: [padding(a), a @ (a * 0.5), ops.slogdet(a)[1], ops.log(ops.abs(a[0]))])
    for given in (LARGE, np.ones((12, 12)) - 1, LARGE):
        with np.errstate(all="ignore"):
            wanted = [padding(given), given @ (given * 0.5), np.linalg.slogdet(given)[1], np.log(abs(given[0]))]
            for x, y in zip(singular(given), wanted, strict=True):
                np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-13)
    with pytest.warns(RuntimeWarning, match="divide by zero"):
        singular(LARGE * (np.arange(12) > 0))
    inverse = jit(lambda a: [padding(a), ops.inv(a)])
    inverse(LARGE)
    with pytest.raises(ValueError, match="singular"):
        inverse(np.ones((12, 12)))


@pytest.mark.parametrize(
    "shapes",
    [
        ((9, 1), (1, 9)),
        ((3, 1), (1, 2)),
        ((1, 1), (1, 1)),
        ((10, 10), (10, 10)),
        ((8, 36), (36, 16)),
        ((33, 40), (40,)),
        ((40,), (40, 33)),
        ((1, 40), (40, 33)),
        ((40, 33), (33, 1)),
    ],
)
def test_products(shapes):
    x1, x2 = (rng.normal(size=shape) for shape in shapes)
    got, wanted, explained = both(lambda x1, x2: [padding(x1), ops.matmul(x1, x2)], x1, x2)
    assert explained.native == explained.steps, str(explained)
    for x, y in zip(got, wanted, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-12)


def test_products_of_strided_matrices():
    """Covers transposes, slices and reversed rows, in straight-line code, in a loop, and in a run repeated by NumPy."""

    def f(x, y):
        found = [
            x @ y,
            ops.transpose(y) @ ops.transpose(x),
            ops.transpose(x)[:, ::-1] @ x,
            x[:, 3:] @ y[3:],
            x[::2] @ y,
        ]
        powers = ops.fori_loop(0, 3, lambda _, z: ops.tanh(z @ y), x * 0.1)
        return [padding(x), *found, powers, ops.log(x[0] * 0.0)]

    x, y = rng.normal(size=(20, 20)), rng.normal(size=(20, 20))
    with np.errstate(all="ignore"):
        got, wanted, explained = both(f, x, y)
    assert explained.native == explained.steps, str(explained)
    for a, b in zip(got, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-12)
    compiled = jit(f)
    compiled(x, y)
    with pytest.warns(RuntimeWarning, match="divide by zero"):
        again = compiled(x, y)
    for a, b in zip(again, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-12)
