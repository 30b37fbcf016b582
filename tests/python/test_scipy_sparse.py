"""``gradops.scipy.sparse`` against SciPy: each operation and constructor as an expression evaluated by both."""

import inspect

import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.linalg
from parity import BACKENDS, numpy, tensors
from scipy_checks import agree

import gradops
from gradops import functional, ops
from gradops.errors import ArgumentError, ArgumentTypeError, AxisError, GradientError, ShapeError
from gradops.jit.native.machine import machine
from gradops.scipy import sparse
from gradops.scipy.sparse import _columns, _factor, _ops

RNG = np.random.default_rng(38)
ROWS, COLUMNS = np.array([2, 0, 1, 3, 1, 2, 0, 3, 2]), np.array([0, 0, 1, 3, 3, 2, 2, 0, 3])
OTHERS = np.array([0, 1, 2, 3, 3]), np.array([1, 1, 0, 0, 3])
A, B = RNG.uniform(0.5, 2.0, len(ROWS)) + 2.0 * (ROWS == COLUMNS), RNG.uniform(0.5, 2.0, 5)
X, M = RNG.normal(size=4), RNG.uniform(1.0, 2.0, (4, 4))

OPERATIONS = """
A + B | A - B | -A | A + M | M + A | M - A | A - M | 3.0 * A | A * x[0] | x[1] * A | A / 4.0 | A / M | A * B
A.multiply(B) | A.multiply(A) | A.multiply(M) | A.multiply(x) | A.multiply(M[:, :1]) | M * A | abs(A) | A @ x
x @ A | A @ M | M @ A | A @ B | A.T @ B | A.dot(x) | A.T | A.T.T | A.transpose() | A.tocsr() | A.tocsc()
A.tocoo() | A.asformat("csc").data | A.tocsr().data | A.data | A.diagonal() | A.diagonal(1) | A.diagonal(-3)
A.diagonal(9) | A.trace() | A.trace(2) | A.sum() | A.sum(0) | A.sum(axis=1) | A.sum(-1) | A.mean() | A.mean(0)
A.toarray() | A.todense() | A ** 2 | A.power(1.5) | A.sqrt() | A.sin() | A.tan() | A.arctan() | A.sinh()
A.tanh() | A.arcsinh() | A.expm1() | A.log1p() | A.deg2rad() | A.rad2deg() | A.copy() | A.conj() | A.real
A[0, 2] | A[0, 1] | A[1:3] | A[:, ::2] | A[[3, 0]] | A[[2, 3], :2] | A[1:, [0, 3]] | sp.tril(A)
sp.triu(A, 1) | sp.hstack([A, B]) | sp.vstack([A, B, A]) | sp.block_diag([A, M[:2, :3], B])
sp.bmat([[A, None], [B, A]]) | sp.block_array([[A], [B]]) | sp.kron(A, B) | sp.kron(B, A) | sp.kronsum(A, B)
sp.diags([x, x[:2]], [0, -2]) | sp.diags_array([x[:3], x], offsets=[1, 0]) | sp.diags_array(x) | sp.diags(x)
sp.diags_array([x[:1], x[1:2]], offsets=[0, 1], shape=(3, 4)) | sp.spdiags(M[:2], [0, 1], 4, 4)
A + sp.eye_array(4) | sp.eye(4) @ A | sp.identity(4) - A | sp.eye_array(4, 4, k=1) * A | sp.find(A)[2]
sp.csr_array(A).data | sp.csc_array(A) + A | sp.csr_matrix(A) * x | sp.csr_matrix(A) * sp.csr_matrix(B)
sp.csc_matrix(A) ** 3 | sp.csr_matrix(A).sum(1) | x * sp.csr_matrix(A)
sp.csr_array((A.tocsr().data, [1, 0, 3, 2, 2, 1, 0, 3, 3], [0, 2, 4, 7, 9]))
sp.csc_array((A.tocsc().data, [1, 0, 3, 2, 2, 1, 0, 3, 3], [0, 2, 4, 7, 9]), shape=(5, 4))
sp.coo_array((x, ([0, 1, 1, 0], [2, 2, 2, 0]))) | sp.csr_array(M * (M > 1.5)) | sp.coo_matrix(A).tocsc() @ x
la.spsolve(A, x) | la.spsolve(A.tocsc(), M) | la.spsolve(S, x) | la.spsolve(S, M)
la.splu(A.tocsc()).solve(x) | la.splu(A.tocsc()).solve(M, "T") | la.splu(S.tocsc()).solve(x, "T")
la.factorized(S.tocsc())(x) | la.spsolve_triangular(sp.tril(A).tocsr(), x)
la.spsolve_triangular(sp.triu(A).tocsr(), M, lower=False)
la.spsolve_triangular(sp.tril(A).tocsr(), x, unit_diagonal=True) | la.norm(A) | la.norm(A, "fro")
la.norm(A, 1) | la.norm(A, -1) | la.norm(A, np.inf) | la.norm(A, -np.inf) | la.norm(A, axis=0)
la.norm(A, 1, axis=1) | la.norm(A, np.inf, 0) | la.expm_multiply(A, x) | la.expm_multiply(-A, M)
la.matrix_power(A, 3) | la.matrix_power(A, 1) | la.cg(S, x, rtol=1e-13)[0] | la.minres(S, x, rtol=1e-13)[0]
la.gmres(A, x, rtol=1e-13)[0] | la.bicg(A, x, rtol=1e-13)[0] | la.bicgstab(S, x, rtol=1e-13)[0]
la.cgs(S, x, rtol=1e-13)[0] | la.qmr(S, x, rtol=1e-13)[0] | la.tfqmr(S, x, rtol=1e-13)[0]
la.lgmres(S, x, rtol=1e-13)[0] | la.gcrotmk(S, x, rtol=1e-13)[0]"""
OPERATIONS = [text.strip() for line in OPERATIONS.strip().splitlines() for text in line.split(" | ")]
EVERYWHERE = "A + B | A @ x | x @ A | A @ B | sp.kron(A, B) | x[1] * A | la.spsolve(A, x) | la.spsolve(S, M)".split(
    " | "
)
HAS_RTOL = "rtol" in inspect.signature(scipy.sparse.linalg.cg).parameters


def of(sp, text: str):
    """Return the expression as a function of the values of ``A`` and ``B``, a vector and a matrix."""

    def function(a, b, x, M):
        names = {"sp": sp, "la": sp.linalg, "x": x, "M": M, "np": np}
        names["A"] = sp.csr_array((a, (ROWS, COLUMNS)), shape=(4, 4))
        names["B"] = sp.csr_array((b, OTHERS), shape=(4, 4))
        names["S"] = names["A"] + names["A"].T + 4.0 * sp.eye_array(4)
        found = eval(text if HAS_RTOL or sp is sparse else text.replace("rtol", "tol"), names)
        found = found.toarray() if sp.issparse(found) else found
        return found if sp is sparse else np.asarray(found)

    return function


@pytest.mark.parametrize("text", OPERATIONS)
def test_operations(text):
    loose = "rtol=" in text
    over = BACKENDS if text in EVERYWHERE else ("numpy",)
    agree(
        of(sparse, text), of(scipy.sparse, text), A, B, X, M,
        over=over, second=text in EVERYWHERE, compiled=text in EVERYWHERE,
        rtol=1e-8 if loose else 1e-11, gradient_rtol=1e-5 if loose else 1e-6,
    )  # fmt: skip


# The determinant and the inverse -------------------------------------------------------------------------------------


def lattice(m: int):
    """Return the precision matrix of a lattice."""
    line = scipy.sparse.diags_array([-np.ones(m - 1)] * 2, offsets=[-1, 1], shape=(m, m))
    found = scipy.sparse.kronsum(line, line, format="coo")
    return (found + scipy.sparse.diags_array(abs(found).sum(0) + 0.3)).tocsc()


def dense_of(A) -> np.ndarray:
    return numpy(A.toarray())


def bordered():
    found = np.eye(9) * 9 + np.diag(np.ones(6), 3) + np.diag(np.ones(6), -3)
    found[-1], found[:, -1] = 1, 1
    found[-1, -1] = 9
    return found


def chain(n: int):
    return scipy.sparse.diags_array([-1.0, 2.1, -1.0], offsets=[-1, 0, 1], shape=(n, n)).tocsr()


def tree(n: int):
    """Return the precision matrix of a random walk along a random tree."""
    child = np.arange(1, n)
    parent = RNG.integers(0, child)
    step = scipy.sparse.coo_array((np.ones(n - 1), (child, parent)), (n, n)).tocsr() - scipy.sparse.eye_array(n)
    return (step.T @ step + 0.3 * scipy.sparse.eye_array(n)).tocsr()


DEFINITE = {
    "one": np.array([[2.0]]),
    "diagonal": np.diag([1.0, 2.0, 3.0]),
    "dense": M @ M.T,
    "bordered": bordered(),
    "blocks": scipy.sparse.block_diag([M @ M.T, [[3.0]], chain(40)]),
    "chain": chain(400),
    "lattice": lattice(22),
    "second": chain(300) @ chain(300),
    "tree": tree(500),
}


def filled(A) -> tuple[np.ndarray, list[set[int]] | None, np.ndarray]:
    """Return an elimination order, the rows it predicts to be filled per column, and the fill of dense elimination."""
    order, _, reached = _factor.ordered(A.pattern)
    there = dense_of(A) != 0
    there = there[np.ix_(np.argsort(order), np.argsort(order))]
    for k in range(len(there)):
        below = k + 1 + np.flatnonzero(there[k + 1 :, k])
        there[np.ix_(below, below)] = True
    return order, reached, np.tril(there, -1)


@pytest.mark.parametrize("name", DEFINITE)
def test_elimination_orders(name, monkeypatch):
    A = sparse.csc_array(DEFINITE[name])
    order, reached, below = filled(A)
    np.testing.assert_array_equal(np.sort(order), np.arange(len(order)))
    assert [sorted(order[list(rows)]) for rows in reached] == [np.flatnonzero(column).tolist() for column in below.T]
    monkeypatch.setattr(_factor, "MIN_ROWS_FOR_SUPERLU_ORDER", 0)
    of_superlu, nothing, less = filled(A)
    np.testing.assert_array_equal(np.sort(of_superlu), np.arange(len(order)))
    assert nothing is None or name != "lattice"
    assert below.sum() <= 1.2 * less.sum()
    A.pattern.__dict__.pop("symbolic", None)
    A.pattern.last = None
    np.testing.assert_allclose(sparse.linalg.logdet(A), np.linalg.slogdet(dense_of(A))[1], 1e-12)
    A.pattern.__dict__.pop("symbolic", None)


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("name", DEFINITE)
def test_factors(name, native, monkeypatch):
    """Column by column in native code, and by frontal matrices."""
    if not native:
        monkeypatch.setattr(_columns, "machine", lambda: None)
    A = sparse.csc_array(DEFINITE[name])
    A.pattern.__dict__.pop("symbolic", None)
    A.pattern.last = None
    full = dense_of(A)
    whole = np.linalg.inv(full)
    np.testing.assert_allclose(sparse.linalg.logdet(A), np.linalg.slogdet(full)[1], 1e-12)
    found = sparse.linalg.selected_inverse(A)
    assert found.pattern is A.pattern
    np.testing.assert_allclose(found.values, whole[A.pattern.rows, A.pattern.columns], 1e-10, 1e-14)
    b = RNG.normal(size=(len(full), 3))
    np.testing.assert_allclose(sparse.linalg.spsolve(A, b), whole @ b, 1e-9, 1e-12)
    factor = _ops.cholesky(A.pattern, A.values)
    assert isinstance(factor, _columns.ColumnFactor) == (native and machine() is not None)
    for right in (b, b[:, :0]):
        np.testing.assert_allclose(factor.solve(right), whole @ right, 1e-9, 1e-12, strict=True)
    spread = factor.spread(np.eye(len(full)))
    np.testing.assert_allclose(spread @ spread.T, whole, 1e-9, 1e-12)
    # second derivative of the inverse: sums over both orders of inverse, direction, inverse, ...
    first, second = (A.with_values(RNG.normal(size=A.nnz)) for _ in range(2))
    first, second = (d + d.T for d in (first, second))
    wanted = sum(whole @ p @ whole @ q @ whole for p, q in ((d, e) for d, e in two_orders(first, second)))

    def along(s, t):
        return sparse.linalg.selected_inverse(A + s * first + t * second).values

    at = np.zeros(2)
    moved = functional.jvp(lambda s: functional.jvp(lambda t: along(s, t), at[0], 1.0)[1], at[0], 1.0)[1]
    np.testing.assert_allclose(moved, wanted[A.pattern.rows, A.pattern.columns], 1e-8, 1e-10 * abs(wanted).max())


def two_orders(first, second):
    first, second = dense_of(first), dense_of(second)
    return (first, second), (second, first)


def definite(values):
    """Return a symmetric positive definite matrix with the pattern of a lattice."""
    A = sparse.csr_array((values, (ROWS, COLUMNS)), shape=(4, 4))
    return A + A.T + (6.0 * sparse.eye_array(4)).astype(ops.dtype(A.values))


def of_scipy(values):
    A = scipy.sparse.csr_array((values, (ROWS, COLUMNS)), shape=(4, 4)).toarray()
    return A + A.T + 6.0 * np.eye(4)


def test_log_determinant_and_selected_inverse_on_each_backend():
    agree(lambda a: sparse.linalg.logdet(definite(a)), lambda a: np.linalg.slogdet(of_scipy(a))[1], A)
    pattern = definite(A).pattern
    agree(
        lambda a: sparse.linalg.selected_inverse(definite(a)).values,
        lambda a: np.linalg.inv(of_scipy(a))[pattern.rows, pattern.columns],
        A,
    )
    agree(lambda a: sparse.linalg.splu(definite(a)).logdet(), lambda a: np.linalg.slogdet(of_scipy(a))[1], A)


def test_third_and_fourth_derivatives():
    direction = RNG.normal(size=len(A))

    def along(t):
        return sparse.linalg.logdet(definite(A + t * direction))

    root = np.linalg.solve(of_scipy(A), sparse.csr_array((direction, (ROWS, COLUMNS)), (4, 4)).toarray() * 2)
    root = np.linalg.solve(of_scipy(A), (lambda d: d + d.T)(dense_of(sparse.csr_array((direction, (ROWS, COLUMNS))))))
    function = along
    for order, factor in enumerate((1, -1, 2, -6), 1):
        function = functional.grad(function)
        np.testing.assert_allclose(function(0.0), factor * np.trace(np.linalg.matrix_power(root, order)), 1e-9)


def test_field():
    """The log density of a Gaussian Markov random field, by parameters and values, to second order."""
    Q0, u = lattice(5), RNG.normal(size=25)

    def ours(theta, u):
        Q = ops.exp(theta[0]) * sparse.csc_array(Q0) + theta[1] * sparse.eye_array(25)
        return 0.5 * sparse.linalg.logdet(Q) - 0.5 * ops.sum(u * (Q @ u))

    def theirs(theta, u):
        Q = np.exp(theta[0]) * Q0.toarray() + theta[1] * np.eye(25)
        return 0.5 * np.linalg.slogdet(Q)[1] - 0.5 * u @ Q @ u

    agree(ours, theirs, np.array([0.2, 0.7]), u)


# Programs, precision, other kinds ------------------------------------------------------------------------------------


def program(a, x):
    S = definite(a)
    return ops.sum(x * sparse.linalg.spsolve(S, S @ (x * x))) + sparse.linalg.logdet(S) + ops.sum((x @ S) ** 2)


@pytest.mark.short_cases(0, "jax")
@pytest.mark.parametrize("backend", BACKENDS)
def test_single_and_half_precision(backend):
    for dtype, rtol in (("float32", 1e-5), ("float16", 1e-2)):
        a, x = (tensors(v.astype(dtype), backend) for v in (A, X))
        found = functional.grad(program)(a, x)
        assert numpy(found).dtype == dtype
        np.testing.assert_allclose(numpy(found).astype(float), functional.grad(program)(A, X), rtol * 10, rtol)


def squared(values):
    A = sparse.csr_array((values, (ROWS, COLUMNS)), shape=(4, 4))
    return ops.sum((A @ values[:4]) ** 2)


@pytest.mark.long
@pytest.mark.parametrize(
    "compiled",
    [squared, pytest.param(lambda a: sparse.linalg.logdet(definite(a)), marks=pytest.mark.long, id="logdet")],
)
def test_programs_of_libraries(compiled):
    wanted = functional.grad(program)(A, X)
    np.testing.assert_allclose(gradops.jit(functional.grad(program))(A, X), wanted)
    if "torch" in BACKENDS:
        import torch

        a, x = (torch.tensor(v) for v in (A, X))
        np.testing.assert_allclose(torch.func.grad(program)(a, x), wanted)
        a.requires_grad_()
        torch.compile(compiled, backend="aot_eager")(a).backward()
        np.testing.assert_allclose(a.grad, functional.grad(compiled)(A))
    if "tensorflow" in BACKENDS:
        import tensorflow as tf

        a, x = (tf.constant(v) for v in (A, X))

        @tf.function
        def gradient(a, x):
            with tf.GradientTape() as tape:
                tape.watch(a)
                y = program(a, x)
            return tf.convert_to_tensor(tape.gradient(y, a))

        np.testing.assert_allclose(gradient(a, x), wanted)
    if "jax" in BACKENDS:
        import jax

        a, x = (tensors(v, "jax") for v in (A, X))
        np.testing.assert_allclose(jax.jit(jax.grad(program))(a, x), wanted)
        np.testing.assert_allclose(jax.vmap(jax.grad(program), (0, None))(jax.numpy.stack([a, a]), x)[1], wanted)


def test_batches():
    found = ops.vectorized_map(lambda a: functional.grad(program)(a, X), np.stack([A, A + 0.1]))
    np.testing.assert_allclose(found[1], functional.grad(program)(A + 0.1, X))


def test_scipy_matrices_can_be_mixed_in():
    ours, theirs = sparse.csr_array((A, (ROWS, COLUMNS))), scipy.sparse.csr_array((A, (ROWS, COLUMNS)))
    full = theirs.toarray()
    for found in (ours + theirs, theirs + ours, sparse.hstack([ours, theirs])[:, :4] + theirs):
        np.testing.assert_allclose(dense_of(found), 2 * full)
    for found in (ours @ theirs, theirs @ ours):
        np.testing.assert_allclose(dense_of(found), full @ full)
    assert sparse.issparse(theirs) and sparse.issparse(ours) and not sparse.issparse(full)
    assert sparse.isspmatrix(sparse.csr_matrix(ours)) and not sparse.isspmatrix(ours)
    assert sparse.csr_array(theirs).pattern is ours.pattern  # equal patterns are one object with one symbolic factor


def test_ops_of_sparse_matrices():
    A_, v = sparse.csr_array((A, (ROWS, COLUMNS))), gradops.Variable(2.0, requires_grad=True)
    np.testing.assert_allclose(numpy((v * A_).toarray().detach()), 2 * dense_of(A_))
    np.testing.assert_allclose(dense_of(ops.sqrt(A_)), np.sqrt(dense_of(A_)))
    np.testing.assert_allclose(ops.matmul(A_, X), A_ @ X)
    with pytest.raises(ArgumentTypeError, match="takes no sparse matrix"):
        ops.exp(A_)


def test_complex():
    a, x = A + 0.3j * RNG.normal(size=len(A)), X + 0.5j

    def solved(sp, a):
        return sp.linalg.spsolve(sp.csc_array((a, (ROWS, COLUMNS))), x)

    np.testing.assert_allclose(solved(sparse, a), solved(scipy.sparse, a))
    full = functional.grad(lambda a: ops.sum(ops.abs(ops.solve(a, x[:, None])) ** 2))(
        scipy.sparse.csc_array((a, (ROWS, COLUMNS))).toarray()
    )
    found = functional.grad(lambda a: ops.sum(ops.abs(solved(sparse, a)) ** 2))(a)
    np.testing.assert_allclose(found, full[ROWS, COLUMNS])
    adjoint = sparse.linalg.splu(sparse.csc_array((a, (ROWS, COLUMNS)))).solve(x, "H")
    theirs = scipy.sparse.linalg.splu(scipy.sparse.csc_array((a, (ROWS, COLUMNS)))).solve(x, "H")
    np.testing.assert_allclose(adjoint, theirs)


def test_attributes():
    ours, theirs = (sp.csr_array((A, (ROWS, COLUMNS)), shape=(5, 4)) for sp in (sparse, scipy.sparse))
    for kind in ("tocsr", "tocsc"):
        one, other = getattr(ours, kind)(), getattr(theirs, kind)()
        other.sort_indices()
        for name in ("data", "indices", "indptr", "shape", "nnz", "ndim", "format"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert ours.T.format == "csc" and ours.dtype == float and "csr_array of shape (5, 4)" in repr(ours)
    coo = ours.tocoo()
    np.testing.assert_array_equal(
        scipy.sparse.coo_array((coo.data, (coo.row, coo.col)), coo.shape).toarray(), theirs.toarray()
    )
    assert sparse.csr_array((3, 2)).toarray().shape == (3, 2)
    assert ours.astype("float32").dtype == np.float32
    for name in ("find", "eye"):
        assert name in dir(sparse)
    np.testing.assert_array_equal(sparse.linalg.spbandwidth(ours), (3, 2))
    assert sparse.linalg.is_sptriangular(sparse.tril(ours)) == (True, False)


def test_sparse_hessians_can_be_used_as_matrices():
    """A sparse result of `functional.hessian` is a constant matrix here, with one symbolic factor."""
    hessian = functional.hessian(lambda u: ops.sum(ops.exp(u)) + ops.sum((u[1:] - u[:-1]) ** 2), X, sparse=True)
    found = functional.grad(lambda t: sparse.linalg.logdet(t * sparse.csc_array(hessian)))(1.0)
    np.testing.assert_allclose(found, 4.0)


# Eigenvalues and singular values --------------------------------------------------------------------------------------

PLACES = RNG.integers(0, 9, (2, 20))
ELEMENTS, OTHER = RNG.normal(size=20), RNG.normal(size=(9, 3))


def symmetric(values, module=sparse):
    A = module.csr_array((values, (ROWS, COLUMNS)), shape=(4, 4))
    return A + A.T


def spread(values, module=sparse):
    """Return a symmetric matrix of nine rows with eigenvalues of both signs."""
    A = module.csr_array((values, PLACES), shape=(9, 9))
    return A + A.T + module.diags_array(np.arange(-3.0, 6.0))


PAIRS = [{}, {"which": "SA"}, {"which": "BE"}, {"which": "SM"}, {"sigma": 0.4}, {"which": "LA", "k": 1}]


@pytest.mark.parametrize("settings", PAIRS)
def test_eigenpairs(settings):
    """Values equal SciPy's up to signs, and derivatives equal the dense matrix's."""
    settings = {"k": 3, **settings}
    w, v = sparse.linalg.eigsh(spread(ELEMENTS), **settings)
    want, vectors = scipy.sparse.linalg.eigsh(spread(ELEMENTS, scipy.sparse), **settings)
    np.testing.assert_allclose(w, want, 1e-9)
    np.testing.assert_allclose(abs(v), abs(vectors), 1e-7, 1e-9)
    alone = sparse.linalg.eigsh(spread(ELEMENTS), return_eigenvectors=False, **settings)
    np.testing.assert_allclose(np.sort(alone), np.sort(want), 1e-9)
    among = np.linalg.eigvalsh(spread(ELEMENTS, scipy.sparse).toarray())
    chosen = [int(np.argmin(abs(among - x))) for x in w]
    count, weights = len(w), OTHER[:, : len(w)]

    def loss(values, dense=False):
        if dense:
            found, columns = ops.eigh(spread(values).toarray())
            found, columns = found[np.array(chosen)], columns[:, np.array(chosen)]
        else:
            found, columns = sparse.linalg.eigsh(spread(values), **settings)
        return ops.sum(found**2 * np.arange(1.0, count + 1)) + ops.sum((columns * columns) ** 2 * weights)

    np.testing.assert_allclose(functional.grad(loss)(ELEMENTS), functional.grad(lambda x: loss(x, True))(ELEMENTS))
    second, expected = (functional.hvp(lambda x, d=d: loss(x, d), ELEMENTS, PLACES[0] - 4.0)[1] for d in (False, True))
    np.testing.assert_allclose(second, expected, 1e-6, 1e-8)


def test_gradients_of_eigenvectors_against_differences():
    def vector(values):
        w, v = sparse.linalg.eigsh(spread(values), 2)
        return ops.concatenate([w, ops.reshape(v, (-1,))])

    assert gradops.autodiff.gradcheck(vector, (ELEMENTS,), atol=1e-5)
    assert gradops.autodiff.gradgradcheck(vector, (ELEMENTS,), atol=1e-3, rtol=1e-3)


def singular_loss(values, module=sparse):
    u, s, vh = module.linalg.svds(module.csr_array((values, (PLACES[0] % 6, PLACES[1])), shape=(6, 9)), 3)
    return ops.sum(s**3) + ops.sum(OTHER[:6] * u**2) + ops.sum(OTHER.T * vh**2) + ops.sum(u[0] * s * vh[:, 1])


def test_singular_vectors():
    A = scipy.sparse.csr_array((ELEMENTS, (PLACES[0] % 6, PLACES[1])), shape=(6, 9))
    u, s, vh = sparse.linalg.svds(sparse.csr_array(A), 3)
    np.testing.assert_allclose(s, scipy.sparse.linalg.svds(A, 3)[1], 1e-10)
    best = np.linalg.svd(A.toarray())
    np.testing.assert_allclose(u * s @ vh, best[0][:, :3] * best[1][:3] @ best[2][:3], 1e-8, 1e-9)
    np.testing.assert_allclose(singular_loss(ELEMENTS), singular_loss(ELEMENTS, scipy.sparse))
    assert gradops.autodiff.gradcheck(singular_loss, (ELEMENTS,), atol=1e-5)
    alone = sparse.linalg.svds(sparse.csr_array(A), 3, return_singular_vectors=False)
    np.testing.assert_allclose(alone, s)
    left = sparse.linalg.svds(sparse.csr_array(A), 3, return_singular_vectors="u")
    np.testing.assert_allclose(left[0], u)
    assert left[2] is None and sparse.linalg.svds(sparse.csr_array(A), 3, return_singular_vectors="vh")[0] is None


def pairs_loss(values):
    w, v = sparse.linalg.eigsh(spread(values), 2)
    return ops.sum(w * w) + ops.sum(v[0] ** 2)


@pytest.mark.short_cases(1, "jax")
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_eigenpairs_on_libraries(backend, dtype):
    found = functional.grad(pairs_loss)(tensors(ELEMENTS.astype(dtype), backend))
    assert ops.dtype(found) == dtype and gradops.backends.backend_of(found).name == backend
    rtol, atol = {"float64": (1e-9, 1e-12), "float32": (1e-3, 1e-5)}[dtype]
    np.testing.assert_allclose(numpy(found), functional.grad(pairs_loss)(ELEMENTS), rtol, atol)


@pytest.mark.parametrize("backend", [pytest.param(x, marks=[] if x == "numpy" else pytest.mark.long) for x in BACKENDS])
def test_eigenpairs_in_programs(backend):
    x = tensors(ELEMENTS, backend)
    want = functional.grad(pairs_loss)(ELEMENTS)
    np.testing.assert_allclose(numpy(gradops.jit(gradops.grad(pairs_loss))(x)), want, 1e-9, 1e-12)
    rows = gradops.vmap(gradops.grad(pairs_loss))(tensors(np.stack([ELEMENTS, ELEMENTS * 1.1]), backend))
    np.testing.assert_allclose(numpy(rows)[1], functional.grad(pairs_loss)(ELEMENTS * 1.1), 1e-9, 1e-12)
    if backend != "jax":
        tangent = gradops.jvp(pairs_loss, (x,), (x,))[1]
        np.testing.assert_allclose(numpy(tangent), want @ ELEMENTS, 1e-9)


def test_repeated_eigenvalues():
    """The eigenvalues have derivatives; an eigenvector has none, also if its twin was not asked for."""
    diagonal = np.array([1.0, 2.0, 3.0, 3.0, -1.0])

    def pairs(values, k):
        return sparse.linalg.eigsh(sparse.diags_array(values), k, which="LA")

    found = functional.grad(lambda x: ops.sum(pairs(x, 2)[0]))(diagonal)
    np.testing.assert_allclose(found, [0, 0, 1, 1, 0], 0, 1e-12)
    for k in (1, 2):
        with pytest.raises(GradientError, match="repeated eigenvalue 3 has no derivative"):
            functional.grad(lambda x, k=k: ops.sum(pairs(x, k)[1][0]))(diagonal)
    with pytest.raises(GradientError, match="has no derivative"):  # rank 1
        functional.grad(lambda x: ops.sum(sparse.linalg.svds(ops.outer(x, x), 2)[0][0]))(diagonal)


# Bad input ------------------------------------------------------------------------------------------------------------


def test_indefinite_and_singular_matrices():
    A = sparse.csc_array(np.array([[1.0, 2.0], [2.0, 1.0]]))
    assert np.isnan(sparse.linalg.logdet(A)) and np.isnan(sparse.linalg.selected_inverse(A).values).all()
    np.testing.assert_allclose(sparse.linalg.spsolve(A, np.ones(2)), np.ones(2) / 3)
    lacking = sparse.csc_array(np.array([[0.0, 2.0], [2.0, 1.0]]))
    assert np.isnan(sparse.linalg.logdet(lacking))
    singular = sparse.csc_array(np.ones((2, 2)))
    with pytest.warns(scipy.sparse.linalg.MatrixRankWarning):
        assert np.isnan(sparse.linalg.spsolve(singular, np.ones(2))).all()
    with pytest.raises(ArgumentError, match="exactly singular"):
        sparse.linalg.splu(singular)
    assert sparse.linalg.cg(A @ A.T, np.ones(2), maxiter=1)[1] == 1


def test_errors():
    A_ = sparse.csr_array((A, (ROWS, COLUMNS)))
    for call, error, match in (
        (lambda: A_ @ X[:3], ShapeError, "do not fit a product"),
        (lambda: A_ + sparse.eye_array(3), ShapeError, "differ"),
        (lambda: A_ + 1.0, ArgumentTypeError, "leaves no zeros"),
        (lambda: A_ * X[:3], ShapeError, "not of"),
        (lambda: A_[1], ArgumentError, "vectors are not supported"),
        (lambda: A_ / A_, ArgumentTypeError, "quotient"),
        (lambda: A_.sum(2), AxisError, "axis"),
        (lambda: A_**-1, ArgumentError, "must be positive"),
        (lambda: sparse.csr_matrix(A_) ** -1, ArgumentError, "negative"),
        (lambda: sparse.csr_array(X), ShapeError, "two dimensions"),
        (lambda: sparse.csr_array((A, (ROWS[:2], COLUMNS))), ShapeError, "as many"),
        (lambda: sparse.csr_array((A, (ROWS, COLUMNS)), (3, 3)), ShapeError, "beyond"),
        (lambda: sparse.csr_array((A, ROWS, [0, 2])), ShapeError, "must rise"),
        (lambda: sparse.csr_array("a"), ArgumentTypeError, "arg1"),
        (lambda: sparse.tril("a"), ArgumentTypeError, "A"),
        (lambda: sparse.hstack([A_, np.ones((3, 1))]), ShapeError, "do not fit"),
        (lambda: sparse.eye(3, format="lil"), ArgumentError, "format"),
        (lambda: sparse.linalg.spsolve(A_[:3], X), ShapeError, "square"),
        (lambda: sparse.linalg.spsolve(A_, X[:3]), ShapeError, "4 rows"),
        (lambda: sparse.linalg.logdet(A_), ArgumentError, "symmetric"),
        (lambda: sparse.linalg.norm(A_, 2), ArgumentError, "spectral"),
        (lambda: sparse.linalg.cg(A_, X, M=A_), ArgumentError, "takes no `M`"),
        (lambda: gradops.jit(sparse.csr_array)(np.eye(2)), ArgumentTypeError, "known numbers"),
        (lambda: A_.setdiag(1.0), AttributeError, "pattern is constant"),
        (lambda: sparse.lil_array, AttributeError, "the formats are CSC"),
        (lambda: sparse.linalg.eigs, AttributeError, "`eigsh` for a symmetric matrix"),
        (lambda: sparse.linalg.eigsh(A_, 2), ArgumentError, "symmetric"),
        (lambda: sparse.linalg.eigsh(symmetric(A), 4), ArgumentError, "less than 4"),
        (lambda: sparse.linalg.eigsh(symmetric(A), 2, M=A_), ArgumentError, "takes no `M`"),
        (lambda: sparse.linalg.eigsh(symmetric(A), 2, v0=X[:3]), ShapeError, "4 elements"),
        (lambda: sparse.linalg.eigsh(symmetric(A) * 1j, 2), ArgumentError, "real"),
        (lambda: sparse.linalg.eigsh(sparse.csr_array(chain(90)), 3, maxiter=1, ncv=4), ArgumentError, "onvergence"),
        (lambda: sparse.linalg.svds(A_, 2, which="SM"), ArgumentError, "which"),
        (lambda: sparse.linalg.svds(A_, 5), ArgumentError, "at most 4"),
    ):
        with pytest.raises(error, match=match):
            call()


@pytest.mark.parametrize("dtype", ["bool", "int8", "int32", "uint8", "float32"])
@pytest.mark.filterwarnings("ignore")
def test_dtypes_match_scipy(dtype):
    """Sums and products of booleans are boolean; sums of small integers are int64."""
    whole = np.array([[1, 0, 2], [0, 3, 0], [4, 0, 5]]).astype(dtype)
    repeated = (np.ones(3, dtype), ([0, 0, 1], [1, 1, 0]))
    for text in (
        "A.toarray() | A @ A | A + A | A + A.T | abs(A) | A.multiply(A) | A.multiply(A.T) | sp.kron(A, A) | A.sum()"
        " | A.sum(0) | sp.csr_matrix(A) ** 2 | sp.csr_matrix(A) ** 0 | A.mean(1) | A.trace() | sp.coo_array(R).tocsr()"
    ).split(" | "):
        of_numbers = {}
        for name, module in (("own", sparse), ("theirs", scipy.sparse)):
            found = eval(text, {"sp": module, "A": module.csr_array(whole), "R": repeated})
            of_numbers[name] = np.asarray(found.toarray() if hasattr(found, "toarray") else found)
        own, theirs = of_numbers["own"], of_numbers["theirs"]
        np.testing.assert_allclose(own, theirs, 1e-6, err_msg=text)
        if theirs.dtype != "uint64":  # not all libraries compute with uint64: sums are int64
            assert own.dtype == theirs.dtype or "sum" in text and dtype == "uint8", text


@pytest.mark.filterwarnings("ignore")
def test_diagonals_of_integers_and_of_nested_variables():
    for given, settings in (
        ([1, 2, 3], {}),
        ([[1, 2], [3]], {"offsets": [0, 1]}),
        ([1, -2], {"offsets": [0, 1], "shape": (3, 3)}),
    ):
        want, found = (module.diags_array(given, **settings) for module in (scipy.sparse, sparse))
        np.testing.assert_array_equal(found.toarray(), want.toarray())
        assert found.dtype == want.dtype
    assert sparse.diags_array([1, 2], dtype="int32").dtype == "int32"
    slope = gradops.grad(lambda v: ops.sum(sparse.diags_array([[v, v * v], [3.0 * v]], offsets=[0, 1]).toarray()))(2.0)
    assert slope == 1 + 4 + 3
