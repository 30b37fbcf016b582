"""Linear algebra at hard inputs (singular, repeated, rectangular), and identities that results must satisfy."""

import cases.linalg as shared
import numpy as np
import pytest
from parity import (
    BACKENDS,
    Case,
    finite_difference,
    loss,
    native_gradient,
    numpy,
    scalar_function,
    tape_gradient,
    tape_second,
    tensors,
    weights,
)

import gradops
from gradops import Variable, autodiff, ops
from gradops.errors import ArgumentError, ArgumentTypeError, AxisError, GradopsError, ShapeError

rng = np.random.default_rng(1)
GENERAL = rng.uniform(-1, 1, (3, 3))
POSITIVE = GENERAL @ GENERAL.T + np.eye(3)
SINGULAR = np.array([[1.0, 2.0], [2.0, 4.0]])


def gradient(f, *xs):
    variables = [Variable(x, requires_grad=True) for x in xs]
    return [g.data for g in autodiff.grad(f(*variables), variables)]


def numeric(f, x, step=1e-6):
    g = np.zeros_like(x)
    for i in np.ndindex(*x.shape):
        high, low = x.copy(), x.copy()
        high[i] += step
        low[i] -= step
        g[i] = (float(f(high)) - float(f(low))) / (2 * step)
    return g


# Closed forms (Petersen & Pedersen, The Matrix Cookbook) -------------------------------------------------------------


def test_closed_forms():
    a, b = GENERAL, rng.uniform(-1, 1, (3, 3))
    inverse = np.linalg.inv(a)
    np.testing.assert_allclose(gradient(ops.logdet, a)[0], inverse.T, rtol=1e-10)
    np.testing.assert_allclose(gradient(ops.det, a)[0], np.linalg.det(a) * inverse.T, rtol=1e-10)
    trace_of_inverse = gradient(lambda x: ops.sum(ops.multiply(ops.inv(x), np.eye(3))), a)[0]
    np.testing.assert_allclose(trace_of_inverse, -(inverse @ inverse).T, rtol=1e-10)
    np.testing.assert_allclose(gradient(lambda x: ops.norm(x), a)[0], a / np.linalg.norm(a), rtol=1e-12)
    u, _, vh = np.linalg.svd(a)
    np.testing.assert_allclose(gradient(lambda x: ops.norm(x, "nuc"), a)[0], u @ vh, rtol=1e-10)
    np.testing.assert_allclose(gradient(lambda x: ops.norm(x, 2), a)[0], np.outer(u[:, 0], vh[0]), rtol=1e-9)
    largest = gradient(lambda x: ops.eigh(x)[0][-1], POSITIVE)[0]
    v = np.linalg.eigh(POSITIVE)[1][:, -1]
    np.testing.assert_allclose(largest, np.outer(v, v), atol=1e-10)
    left, right = gradient(lambda x, y: ops.sum(ops.solve(x, y)), a, b)
    np.testing.assert_allclose(right, inverse.T @ np.ones((3, 3)), rtol=1e-10)
    np.testing.assert_allclose(left, -inverse.T @ np.ones((3, 3)) @ (inverse @ b).T, rtol=1e-9)


def test_identities():
    """Transposition and linearity relate values and gradients, whatever the algorithm."""
    a, b = GENERAL, rng.uniform(-1, 1, 3)
    for f in (ops.det, ops.logdet, lambda x: ops.norm(x, "nuc"), lambda x: ops.norm(x, 2)):
        np.testing.assert_allclose(gradient(f, a)[0], gradient(f, a.T)[0].T, atol=1e-10)
    np.testing.assert_allclose(
        gradient(lambda x: ops.norm(x, 1), a)[0], gradient(lambda x: ops.norm(x, np.inf), a.T)[0].T
    )
    once = gradient(lambda y: ops.sum(ops.solve(a, y)), b)[0]
    np.testing.assert_allclose(gradient(lambda y: ops.sum(ops.solve(a, y)), 5 * b)[0], once)
    by_factor = ops.cholesky_inverse(ops.cholesky(POSITIVE))
    np.testing.assert_allclose(by_factor, np.linalg.inv(POSITIVE), rtol=1e-10)
    through = gradient(lambda x: ops.sum(ops.cholesky_inverse(ops.cholesky(x))), POSITIVE)[0]
    direct = gradient(lambda x: ops.sum(ops.inv(x)), POSITIVE)[0]
    np.testing.assert_allclose(through, direct, rtol=1e-9)
    np.testing.assert_allclose(ops.kron(a, np.eye(2)) @ ops.kron(np.eye(3), SINGULAR), ops.kron(a, SINGULAR))
    np.testing.assert_allclose(ops.cross(a, b), -ops.cross(b, a))


# Singular, repeated, rectangular -------------------------------------------------------------------------------------


@pytest.mark.parametrize("x", [SINGULAR, np.zeros((2, 2)), np.diag([0.0, 3.0, 0.0]), np.eye(3), np.zeros((3, 3))])
def test_determinant_of_singular_matrices(x):
    """The determinant is a polynomial: its derivatives exist everywhere and consist of cofactors."""
    case = Case("det", None, gradients=["x"])
    f = scalar_function(case, {"x": x}, "numpy")
    np.testing.assert_allclose(tape_gradient(f, [x])[0], numeric(f, x), atol=1e-8)
    want = finite_difference(lambda points: tape_gradient(f, points), [x])
    np.testing.assert_allclose(tape_second(f, [x])[0], want[0], atol=1e-6)


@pytest.mark.short_cases(0, "jax")
@pytest.mark.parametrize("backend", BACKENDS[1:])
def test_determinant_of_singular_matrices_on_libraries(backend):
    """PyTorch's own gradient is 0 for them; TensorFlow's raises."""
    for x in (
        SINGULAR,
        np.diag([0.0, 3.0, 0.0]),
        np.zeros((3, 3)),
        np.stack([SINGULAR, np.eye(2)]),
        np.diag([0, 3 + 1j, 0]),
        (1 + 1j) * SINGULAR,
    ):
        f, g = (scalar_function(Case("det", None, gradients=["x"]), {"x": x}, b) for b in ("numpy", backend))
        np.testing.assert_allclose(native_gradient(g, [x], backend)[0], tape_gradient(f, [x])[0], atol=1e-8)
        second = native_gradient(g, [x], backend, second=True)[0]
        np.testing.assert_allclose(second, tape_second(f, [x])[0], atol=1e-7)


@pytest.mark.short_cases(0, "torch")
@pytest.mark.parametrize("backend", BACKENDS)
def test_determinant_of_singular_matrices_in_transformations(backend):
    """A graph cannot know which matrices are singular, so it must be correct for all of them."""
    gradient = gradops.grad(ops.det)
    compiled = gradops.jit(gradient)
    for x in (np.array([[1.0, 0.5], [4.0, 3.0]]), SINGULAR, np.zeros((2, 2))):
        t, cofactors = tensors(x, backend), np.array([[x[1, 1], -x[1, 0]], [-x[0, 1], x[0, 0]]])
        for found in (gradient(t), compiled(t), gradops.vmap(gradient)(t[None])[0]):
            np.testing.assert_allclose(np.asarray(found), cofactors, atol=1e-12)
        np.testing.assert_allclose(gradops.jvp(ops.det, [t], [t + 1])[1], np.sum(cofactors * (x + 1)), atol=1e-12)
        second = gradops.jit(gradops.hessian(ops.det))(t)
        np.testing.assert_allclose(np.asarray(second).reshape(4, 4), np.fliplr(np.diag([1.0, -1, -1, 1])), atol=1e-12)


@pytest.mark.parametrize("backend", BACKENDS)
def test_log_determinants_of_singular_matrices_have_no_gradient(backend):
    """The gradient is NaN or infinite, depending on the library, never finite."""
    case = Case("slogdet", None, gradients=["x"])
    with np.errstate(all="ignore"):
        f = scalar_function(case, {"x": SINGULAR}, backend)
        found = tape_gradient(f, [SINGULAR]) if backend == "numpy" else native_gradient(f, [SINGULAR], backend)
    assert not np.isfinite(found[0]).any()


@pytest.mark.short_cases(1, "jax")
@pytest.mark.parametrize("backend", BACKENDS[1:])
@pytest.mark.parametrize("x", [np.eye(2), SINGULAR, np.ones((2, 3))])
def test_equal_and_zero_singular_values(x, backend):
    """Functions that do not depend on singular vectors have the same gradient everywhere."""
    for op, options in [("pinv", {}), ("norm", {"ord": "nuc"}), ("norm", {"ord": 2})]:
        given = {"x": x, **options}
        case = Case(op, None, gradients=["x"])
        want = tape_gradient(scalar_function(case, given, "numpy"), [x])[0]
        got = native_gradient(scalar_function(case, given, backend), [x], backend)[0]
        np.testing.assert_allclose(got, want, atol=1e-8, err_msg=op)


@pytest.mark.parametrize("backend", BACKENDS)
def test_logarithm_of_a_negative_determinant(backend):
    x = tensors(np.array([[0.0, 2.0], [1.0, 0.0]]), backend)
    np.testing.assert_allclose(numpy(ops.logdet(x)), np.log(2))


def test_differences_between_backends():
    """The frameworks' own gradients where the tape has chosen differently: ``docs/differences.md``."""

    def native(op, x, backend):
        return native_gradient(scalar_function(Case(op, None, gradients=["x"]), {"x": x}, backend), [x], backend)[0]

    assert np.isnan(native("logdet", SINGULAR, "tensorflow")).all()
    assert np.isinf(native("logdet", SINGULAR, "torch")).all()


def test_logarithm_of_a_determinant_of_zero():
    x = np.stack([SINGULAR, np.eye(2)])
    sign, log = ops.slogdet(x)
    assert sign.tolist() == [0.0, 1.0] and log.tolist() == [-np.inf, 0.0]
    g = gradient(lambda x: ops.sum(ops.logdet(x)), x)[0]
    assert np.isnan(g[0]).all()
    np.testing.assert_allclose(g[1], np.eye(2))


REPEATED = {"apart": [0.5, 2.0, 3.0], "pair": [1.0, 1.0, 3.0], "all": [2.0, 2.0, 2.0], "zeros": [0.0, 0.0, 3.0]}
REPEATED |= {"nothing": [0.0, 0.0, 0.0], "zero": [0.0, 1.0, 3.0], "zero and pair": [0.0, 2.0, 2.0]}


def with_values(values, turned, symmetric):
    """Return a matrix with these eigenvalues or singular values, in a random or in the standard basis."""
    rng = np.random.default_rng(8)
    q, p = (np.linalg.qr(rng.normal(size=(3, 3)))[0] if turned else np.eye(3) for _ in range(2))
    x = (q * values) @ (q if symmetric else p).T
    return (x + x.T) / 2 if symmetric else x


def halved(x):
    return (x + ops.swapaxes(x, 0, 1)) * 0.5


def transposed(x):
    return ops.swapaxes(x, 0, 1)


def of_eigen(function, x):
    w, v = ops.eigh(halved(x))
    return ops.matmul(v * function(w), transposed(v))


def of_singular(function, x):
    u, s, vh = ops.svd(x, False)
    return ops.matmul(u * function(s), vh)


def half_cubed(x):
    return ops.matmul(ops.matmul(x, x), x) * 0.5


SMOOTH = {  # a function by values and vectors, the same in closed form, and whether it takes symmetric matrices
    "v w v^T": (lambda x: of_eigen(lambda w: w, x), halved, True),
    "v exp(w) v^T": (lambda x: of_eigen(ops.exp, x), lambda x: ops.expm(halved(x)), True),
    "v w^3 v^T": (lambda x: of_eigen(lambda w: w**3 * 0.5, x), lambda x: half_cubed(halved(x)), True),
    "sum exp(w)": (lambda x: ops.sum(ops.exp(ops.eigh(halved(x))[0])), lambda x: ops.trace(ops.expm(halved(x))), True),
    "sum w^3": (lambda x: ops.sum(ops.eigh(halved(x))[0] ** 3) * 0.5, lambda x: ops.trace(half_cubed(halved(x))), True),
    "sum eig": (
        lambda x: ops.real(ops.sum(ops.exp(ops.eig(x)[0]))),
        lambda x: ops.trace(ops.expm(x)),
        True,
    ),
    "u s vh": (lambda x: of_singular(lambda s: s, x), lambda x: x, False),
    "u s^3 vh": (lambda x: of_singular(lambda s: s**3, x), lambda x: x @ transposed(x) @ x, False),
    "sum s^2": (lambda x: ops.sum(ops.svd(x, False, False) ** 2), lambda x: ops.sum(x * x), False),
    "sum s^2 of svd": (lambda x: ops.sum(ops.svd(x)[1] ** 2), lambda x: ops.sum(x * x), False),
    "sum s^4 of wide": (
        lambda x: ops.sum(ops.svd(x[:2], False)[1] ** 4),
        lambda x: ops.sum((x[:2] @ transposed(x[:2])) ** 2),
        False,
    ),
    "det": (ops.det, lambda x: ops.sum(x[0] * ops.cross(x[1], x[2])), False),
}


def orders(f, x, directions):
    """Return the gradient, and the second and third derivatives along directions."""
    first = lambda x: gradops.grad(f)(x)  # noqa: E731
    along = lambda x: ops.sum(first(x) * directions[0])  # noqa: E731
    further = lambda x: ops.sum(gradops.grad(along)(x) * directions[1])  # noqa: E731
    found = [first(x), gradops.grad(along)(x), gradops.hvp(f, (x,), (directions[0],))[1], gradops.grad(further)(x)]
    return [numpy(y[0] if isinstance(y, tuple) else y) for y in found]


@pytest.mark.short_cases(14, "numpy")
@pytest.mark.short_cases(7, "torch")
@pytest.mark.short_cases(1, "tensorflow", "jax")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("values", REPEATED)
@pytest.mark.parametrize("name", SMOOTH)
def test_repeated_values_give_the_derivative_or_nan(name, values, turned, backend):
    """Compares smooth functions by eigenvalues or singular values with polynomials and exponentials, to third order."""
    f, smooth, symmetric = SMOOTH[name]
    x = with_values(REPEATED[values], turned, symmetric)
    rng = np.random.default_rng(5)
    weight, *directions = (rng.normal(size=(3, 3)) for _ in range(3))

    def scalar(function, weight):
        def total(x):
            y = function(x)
            return ops.sum(y * weight) if len(y.shape) else y

        return total

    with np.errstate(all="ignore"):
        want = orders(scalar(smooth, weight), x, directions)
        t, weight, *directions = (tensors(v, backend) for v in (x, weight, *directions))
        got = orders(scalar(f, weight), t, directions)
    for order, (y, z) in enumerate(zip(got, want)):
        finite = np.isfinite(y)
        np.testing.assert_allclose(y[finite], z[finite], rtol=1e-6, atol=1e-6, err_msg=f"derivative {order}")
    if values == "apart":
        assert all(np.isfinite(y).all() for y in got)
    if name == "det" or name.startswith("sum "):
        assert np.isfinite(got[0]).all()
    if name == "det":
        assert all(np.isfinite(y).all() for y in got[:3])


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("op", ["eigh", "svd"])
@pytest.mark.parametrize("values", [[1.0, 1.0, 4.0], [0.0, 0.0, 4.0]])
def test_vectors_of_simple_values_next_to_repeated_ones(values, op, backend):
    """Covers the vector of a simple value, and functions that do not depend on the repeated values' vectors."""

    def f(x, weight):
        if op == "svd":
            u, s, vh = ops.svd(x, False)
            return ops.sum(ops.matmul(u[:, :1] * s[:1], vh[:1]) * weight)
        v = ops.eigh(halved(x))[1][:, 2:]
        return ops.sum(ops.matmul(v, transposed(v)) * weight)

    x, weight = with_values(values, True, True), GENERAL + GENERAL.T
    got = gradops.grad(f)(tensors(x, backend), tensors(weight, backend))
    np.testing.assert_allclose(numpy(got), numeric(lambda x: f(x, weight), x), atol=1e-6)


@pytest.mark.parametrize("backend", BACKENDS)
def test_repeated_values_without_a_derivative(backend):
    """Results that depend on the choice of vectors, or order repeated values, are not finite; norms share ties."""
    for op in (ops.eigh, ops.eig, ops.svd):
        for matrix in (np.eye(3), np.zeros((3, 3)), with_values([1.0, 1.0, 0.0], True, True)):
            x = tensors(matrix, backend)
            weight = [tensors(w, backend) for w in weights([numpy(p) for p in op(x)])]
            g = numpy(gradops.grad(lambda x, op=op, weight=weight: loss(list(op(x)), weight))(x))
            assert not np.isfinite(g).all(), op
    t = tensors(with_values([2.0, 2.0, 5.0], False, True), backend)
    assert not np.isfinite(numpy(gradops.grad(lambda x: ops.eigh(x)[0][0])(t))).all()
    np.testing.assert_allclose(numpy(gradops.grad(lambda x: ops.sum(ops.eigh(x)[0]))(t)), np.eye(3), atol=1e-12)
    identity = tensors(np.eye(3), backend)
    np.testing.assert_allclose(numpy(gradops.grad(lambda x: ops.norm(x, "nuc"))(identity)), np.eye(3), atol=1e-12)
    np.testing.assert_allclose(numpy(gradops.grad(lambda x: ops.norm(x, 2))(identity)), np.eye(3) / 3, atol=1e-12)


@pytest.mark.short_cases(2, "jax")
@pytest.mark.parametrize("backend", ["torch", "tensorflow", "jax"])
@pytest.mark.parametrize("scale, gap", [(1.0, 1e-10), (1e-12, 0.5)])
@pytest.mark.parametrize("op", ["eig", "eigh", "svd"])
def test_close_values_and_small_matrices(op, scale, gap, backend):
    """The slope of a projection depends on the gaps in closed form; TensorFlow's own formula caps it at 1e10."""
    rng = np.random.default_rng(3)
    q, p = (np.linalg.qr(rng.normal(size=(3, 3)))[0] for _ in range(2))
    x = scale * q @ np.diag([1.0, 1.0 + gap, 3.0]) @ (p.T if op == "svd" else q.T)
    w = q[:, :1] @ q[:, 1:2].T

    def f(x):
        vectors = getattr(ops, op)(x)[0 if op == "svd" else 1]
        values = ops.real(getattr(ops, op)(x)[1 if op == "svd" else 0])
        first = ops.real(vectors)[:, int(np.argsort(np.asarray(numpy(values)))[0])][:, None]
        return ops.sum(ops.multiply(ops.matmul(first, ops.swapaxes(first, 0, 1)), w + w.T))

    got = native_gradient(f, [x], backend)[0]
    along = q[:, 1:2] @ p[:, :1].T if op == "svd" else w + w.T
    slope = np.sum(got * along)
    values = scale * np.array([1.0, 1.0 + gap])
    expected = 2 * values[0] / (values[0] ** 2 - values[1] ** 2) if op == "svd" else 2 / (values[0] - values[1])
    np.testing.assert_allclose(slope, expected, rtol=1e-4)


@pytest.mark.parametrize("shape", [(3, 2), (2, 3), (4, 2)])
@pytest.mark.parametrize("op", ["svd", "qr"])
def test_complete_factors_of_rectangular_matrices(op, shape):
    """The additional vectors have a gradient through their span. The frameworks have none."""
    x = rng.uniform(-1, 1, shape)
    options = {"full_matrices": True} if op == "svd" else {"mode": "complete"}
    through = shared.through_svd if op == "svd" else shared.through_qr
    case = shared.Through(op, None, gradients=["x"], through=through)
    f = scalar_function(case, {"x": x, **options}, "numpy")
    np.testing.assert_allclose(tape_gradient(f, [x])[0], numeric(f, x), atol=1e-7)
    want = finite_difference(lambda points: tape_gradient(f, points), [x])
    np.testing.assert_allclose(tape_second(f, [x])[0], want[0], atol=1e-5)


@pytest.mark.short_cases(0, "jax")
@pytest.mark.parametrize("backend", ["torch", "jax"])
@pytest.mark.parametrize("shape", [(3, 2), (2, 3)])
def test_thin_singular_vectors(backend, shape):
    x = rng.uniform(-1, 1, shape) + 1j * rng.uniform(-1, 1, shape)
    case = shared.Through("svd", None, gradients=["x"], through=shared.through_svd)
    given = {"x": x, "full_matrices": False}
    got = tape_gradient(scalar_function(case, given, "numpy"), [x])[0]
    want = native_gradient(scalar_function(case, given, backend), [x], backend)[0]
    np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("backend", BACKENDS)
def test_rectangular_shapes(backend):
    for shape in [(2, 4, 3), (2, 3, 4)]:
        x = tensors(rng.uniform(-1, 1, shape), backend)
        m, n = shape[-2:]
        u, s, vh = ops.svd(x)
        assert [tuple(p.shape) for p in (u, s, vh)] == [(2, m, m), (2, 3), (2, n, n)]
        u, s, vh = ops.svd(x, full_matrices=False)
        assert [tuple(p.shape) for p in (u, s, vh)] == [(2, m, 3), (2, 3), (2, 3, n)]
        np.testing.assert_allclose(numpy(u) * numpy(s)[:, None] @ numpy(vh), numpy(x), atol=1e-10)
        np.testing.assert_allclose(numpy(ops.svd(x, compute_uv=False)), numpy(s), atol=1e-10)
        q, r = ops.qr(x, mode="complete")
        assert tuple(q.shape) == (2, m, m) and tuple(r.shape) == shape
        np.testing.assert_allclose(numpy(q) @ numpy(r), numpy(x), atol=1e-10)


@pytest.mark.parametrize("backend", BACKENDS)
def test_factors_of_singular_matrices(backend):
    x = tensors(np.stack([SINGULAR, np.zeros((2, 2)), SINGULAR.T]), backend)
    lu, pivots = (numpy(p) for p in ops.lu_factor(x))
    assert pivots.dtype == np.int64 and pivots.tolist() == [[1, 1], [0, 1], [1, 1]]
    assert lu[0].tolist() == [[2.0, 4.0], [0.5, 0.0]]
    assert numpy(ops.matrix_rank(x)).tolist() == [1, 0, 1]
    assert numpy(ops.matrix_rank(x, 10.0)).tolist() == [0, 0, 0]
    np.testing.assert_allclose(numpy(ops.pinv(x))[0], SINGULAR / 25, atol=1e-12)
    assert numpy(ops.pinv(x, 2.0)).any() == np.False_
    shortest = ops.lstsq(x[0], tensors(np.array([1.0, 2.0]), backend))
    np.testing.assert_allclose(numpy(shortest), [0.2, 0.4], atol=1e-12)


OF_ONE_MATRIX = ["det", "slogdet", "logdet", "inv", "pinv", "cholesky", "qr", "svd", "eigh", "eig", "expm", "adjugate"]
OF_ONE_MATRIX += ["lu_factor", "trace", "diagonal"]


@pytest.mark.short_cases(3, "jax")
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("shape", [(0, 0), (2, 0, 0), (0, 2, 2)])
@pytest.mark.parametrize("name", OF_ONE_MATRIX)
def test_gradients_of_empty_matrices(backend, name, shape):
    op, options = getattr(ops, name), {"axis1": -2, "axis2": -1} if name in ("trace", "diagonal") else {}

    def total(x):
        y = op(x, **options)
        floating = [z for z in (y if isinstance(y, tuple) else (y,)) if "int" not in ops.dtype(z)]
        return sum(ops.sum(ops.abs(z)) for z in floating)

    x = tensors(np.zeros(shape), backend)
    value, gradient = gradops.value_and_grad(total)(x)
    assert tuple(gradient.shape) == shape and ops.dtype(gradient) == "float64"
    ones = max(int(np.prod(shape[:-2])), 0) if shape[-1] == 0 and name in ("det", "slogdet") else 0
    assert float(numpy(value)) == ones


@pytest.mark.parametrize("backend", BACKENDS)
def test_empty(backend):
    x = tensors(np.zeros((2, 0, 0)), backend)
    assert numpy(ops.det(x)).tolist() == [1.0, 1.0]
    for name in ("inv", "cholesky", "pinv", "adjugate"):
        assert tuple(getattr(ops, name)(x).shape) == (2, 0, 0), name
    assert numpy(ops.matrix_rank(x)).tolist() == [0, 0]
    assert tuple(ops.solve(tensors(np.zeros((0, 2, 2)), backend), tensors(np.zeros((0, 2, 1)), backend)).shape) == (
        0,
        2,
        1,
    )
    assert tuple(ops.cdist(tensors(np.zeros((0, 2)), backend), tensors(np.zeros((3, 2)), backend)).shape) == (0, 3)
    assert numpy(ops.norm(tensors(np.zeros((0,)), backend))) == 0.0


# Dtypes, errors, tracing ---------------------------------------------------------------------------------------------


@pytest.mark.short_cases(1, "jax")
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    "given, wanted", [("float32", "float32"), ("float16", "float16"), ("int64", "float64"), ("bool", "float64")]
)
def test_dtypes(backend, given, wanted):
    x = tensors(np.eye(2).astype(given), backend)
    for name in ("cholesky", "det", "inv", "pinv", "logdet", "adjugate", "norm", "cholesky_inverse"):
        assert ops.dtype(getattr(ops, name)(x)) == wanted, name
    for name in ("eigh", "qr", "svd", "slogdet"):
        assert {ops.dtype(part) for part in getattr(ops, name)(x)} == {wanted}, name
    assert ops.dtype(ops.solve(x, x)) == ops.dtype(ops.lstsq(x, x)) == ops.dtype(ops.cdist(x, x)) == wanted
    kind = "complex128" if wanted == "float64" else "complex64"
    assert {ops.dtype(part) for part in ops.eig(x)} == {kind}
    assert [ops.dtype(part) for part in ops.lu_factor(x)] == [wanted, "int64"]


@pytest.mark.parametrize("backend", BACKENDS)
def test_bad_input(backend):
    def t(x):
        return tensors(np.asarray(x), backend)

    square = "cholesky cholesky_inverse det slogdet logdet adjugate eig eigh inv".split()
    for name in square:
        with pytest.raises(ShapeError, match=f"`{name}`.*square"):
            getattr(ops, name)(t(np.ones((2, 3))))
    for name in [*square, "lu_factor", "qr", "svd", "pinv", "matrix_rank"]:
        with pytest.raises(ShapeError, match=f"`{name}`.*dimensions"):
            getattr(ops, name)(t(np.ones(3)))
    for name in ("cholesky", "eigh"):
        with pytest.raises(ArgumentError, match=f"`{name}`.*symmetric"):
            getattr(ops, name)(t([[1.0, 5.0], [0.0, 1.0]]))
    for x in (-np.eye(2), [[1.0, 2.0], [2.0, 1.0]], np.full((2, 2), np.nan)):
        with pytest.raises(ArgumentError, match="`cholesky`.*positive definite"):
            ops.cholesky(t(x))
    with pytest.raises(ArgumentError, match="`inv`.*singular"):
        ops.inv(t(SINGULAR))
    with pytest.raises(ArgumentError, match="`solve`.*singular"):
        ops.solve(t(SINGULAR), t([1.0, 2.0]))
    with pytest.raises(ArgumentError, match="`solve_triangular`.*singular"):
        ops.solve_triangular(t(np.diag([1.0, 0.0])), t([1.0, 2.0]))
    for name in ("eig", "eigh", "svd"):
        with pytest.raises(ArgumentError, match=f"`{name}`.*finite"):
            getattr(ops, name)(t(np.full((2, 2), np.inf)))
    for name in ("solve", "solve_triangular", "lstsq"):
        with pytest.raises(ShapeError, match=f"`{name}`.*rows"):
            getattr(ops, name)(t(np.eye(2)), t(np.ones(3)))
        with pytest.raises(ShapeError, match=f"`{name}`.*broadcast"):
            getattr(ops, name)(t(np.ones((2, 2, 2))), t(np.ones((3, 2, 1))))
    with pytest.raises(ArgumentError, match="`qr`: `mode`"):
        ops.qr(t(np.eye(2)), mode="full")
    with pytest.raises(ShapeError, match="`inner`"):
        ops.inner(t(np.ones(2)), t(np.ones(3)))
    with pytest.raises(ShapeError, match="`vdot`"):
        ops.vdot(t(np.ones(2)), t(np.ones(3)))
    with pytest.raises(ShapeError, match="`cross`.*2 or 3"):
        ops.cross(t(np.ones(4)), t(np.ones(3)))
    with pytest.raises(AxisError, match="`cross`"):
        ops.cross(t(np.ones(3)), t(np.ones(3)), axisb=1)
    with pytest.raises(ShapeError, match="`cdist`.*coordinates"):
        ops.cdist(t(np.ones((2, 2))), t(np.ones((2, 3))))
    for options, error in [
        ({"ord": "fro", "axis": 0}, ArgumentError),
        ({"ord": 3}, ArgumentError),
        ({"ord": "max"}, ArgumentError),
        ({"axis": 2}, AxisError),
        ({"axis": (0, 0)}, AxisError),
    ]:
        with pytest.raises(error, match="`norm`"):
            ops.norm(t(np.ones((2, 2))), **options)
    with pytest.raises(ShapeError, match="`norm`"):
        ops.norm(t(np.ones((2, 2, 2))), ord=2)
    with pytest.raises(ArgumentTypeError, match="`inv`"):
        ops.inv("text")


@pytest.mark.short_cases(0, "jax")
@pytest.mark.parametrize("backend", BACKENDS)
def test_norms_at_zero(backend):
    """The gradient of every norm at 0 is 0, and so is that of a distance of 0."""
    zero = np.zeros((2, 2))
    for ord, axis in [(None, None), (1, 0), (2, 0), (3, 0), (np.inf, 0), ("fro", None), ("nuc", None), (2, None)]:
        case = Case("norm", None, gradients=["x"])
        given = {"x": zero, "ord": ord, "axis": axis}
        f = scalar_function(case, given, backend)
        got = tape_gradient(f, [zero])[0] if backend == "numpy" else native_gradient(f, [zero], backend)[0]
        if backend == "numpy" or ord not in ("nuc",) and (ord, axis) != (2, None):
            np.testing.assert_array_equal(got, 0.0, err_msg=f"{ord} {axis}")
    points = np.array([[1.0, 2.0], [1.0, 2.0]])
    case = Case("cdist", None, gradients=["x"])
    f = scalar_function(case, {"x": points, "y": points[:1]}, backend)
    got = tape_gradient(f, [points])[0] if backend == "numpy" else native_gradient(f, [points], backend)[0]
    np.testing.assert_array_equal(got, 0.0)


@pytest.mark.parametrize("op", ["det", "slogdet", "lu_factor"])
def test_custom_gradients_on_tensorflow(op):
    """TensorFlow's gradient is wrong for complex determinants and missing for LU; ours has second derivatives."""
    for x in (GENERAL, *([GENERAL + 1j * GENERAL.T] if op != "lu_factor" else [])):
        f = scalar_function(Case(op, None, gradients=["x"]), {"x": x}, "tensorflow")
        want = tape_second(scalar_function(Case(op, None, gradients=["x"]), {"x": x}, "numpy"), [x])[0]
        got = native_gradient(f, [x], "tensorflow", second=True)[0]
        np.testing.assert_allclose(got, want, rtol=1e-8, atol=1e-12)


def test_linalg_in_graphs():
    """Covers JAX's ``jit`` and TensorFlow's graphs, where values are unknown."""
    import jax
    import tensorflow as tf

    names = (
        "cholesky det slogdet logdet inv pinv eigh lu_factor qr svd cholesky_inverse adjugate matrix_rank norm".split()
    )
    for name in names:
        op = getattr(ops, name)
        want = numpy(op(POSITIVE))
        compiled = numpy(jax.jit(lambda x, op=op: op(x))(tensors(POSITIVE, "jax")))
        graph = numpy(tf.function(lambda x, op=op: op(x))(tensors(POSITIVE, "tensorflow")))
        for other in (compiled, graph):
            for w, o in zip(*([v] if not isinstance(v, list) else v for v in (want, other))):
                np.testing.assert_allclose(np.abs(o), np.abs(w), atol=1e-8, err_msg=name)
    a, b = tensors(GENERAL, "tensorflow"), tensors(GENERAL[0], "tensorflow")
    for op in (ops.solve, ops.solve_triangular, ops.lstsq):
        np.testing.assert_allclose(tf.function(op)(a, b).numpy(), op(GENERAL, GENERAL[0]), atol=1e-8)
    unknown = jax.jit(ops.cholesky)(tensors(-np.eye(2), "jax"))
    assert np.isnan(np.asarray(unknown)).any()


def test_linalg_of_non_contiguous_arrays():
    x = np.asfortranarray(rng.uniform(-1, 1, (4, 6)))[::2, ::3]
    y = np.ascontiguousarray(x)
    for name in ("det", "inv", "qr", "svd", "lu_factor", "eig"):
        for got, want in zip(
            *(np.atleast_1d(getattr(ops, name)(z)) if name in ("det", "inv") else getattr(ops, name)(z) for z in (x, y))
        ):
            np.testing.assert_allclose(got, want)


def test_namespace():
    factors = "det svd qr eig eigh cholesky cholesky_inverse lu_factor slogdet logdet"
    for name in f"{factors} norm inv solve lstsq pinv matrix_rank solve_triangular".split():
        assert getattr(ops.linalg, name) is getattr(ops, name)
    assert issubclass(ShapeError, GradopsError)


@pytest.mark.parametrize("backend", ["numpy", "torch", "tensorflow", "jax"])
def test_non_string_subscripts(backend):
    pytest.importorskip(backend)
    with gradops.config.backend_scope(backend):
        x = ops.ones((2, 2))
    with pytest.raises(gradops.errors.ArgumentTypeError, match="`subscripts` must be a string; got 1.5"):
        ops.einsum(1.5, x)


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "tf.function"])
@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 3)], ids=str)
def test_second_derivative_of_complex_svd_on_tensorflow(shape, compiled):
    """Phase-invariant functions against differences of the first derivative: ``tf.linalg.svd``'s own is wrong."""
    tf = pytest.importorskip("tensorflow")
    rng = np.random.default_rng(0)
    x, d = (rng.normal(size=shape) + 1j * rng.normal(size=shape) for _ in range(2))

    def loss_of(x):
        u, s, vh = ops.svd(x, False)
        weights = np.arange(1.0, s.shape[-1] + 1) + 0j
        y = ops.add(
            ops.sum(ops.matmul(u * weights, vh) ** 3), ops.matmul(u * weights, ops.conj(ops.transpose(u)))[0, 1]
        )
        return tf.math.real(y) + tf.math.imag(y)

    def first(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = loss_of(x)
        return tape.gradient(loss, x)

    def second(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            slope = tf.reduce_sum(tf.math.real(first(x) * np.conj(d)))
        return tape.gradient(slope, x)

    step = 1e-6
    wanted = (first(tf.constant(x + step * d)) - first(tf.constant(x - step * d))) / (2 * step)
    got = (tf.function(second, autograph=False) if compiled else second)(tf.constant(x))
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128"])
@pytest.mark.parametrize("lower", [True, False])
def test_batched_triangular_solves_equal_single_ones(lower, dtype):
    a = (rng.uniform(1, 2, (5, 8, 3, 3)) * (1j if dtype == "complex128" else 1)).astype(dtype)
    tolerance = 1e-5 if dtype == "float32" else 1e-13
    for b in (rng.uniform(-1, 1, (8, 3, 2)), rng.uniform(-1, 1, (5, 8, 3, 1)), rng.uniform(-1, 1, (3, 2))):
        got = ops.solve_triangular(a, b.astype(dtype), lower=lower)
        want = np.linalg.solve(np.tril(a) if lower else np.triu(a), np.broadcast_to(b, got.shape))
        assert got.dtype == dtype
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)
