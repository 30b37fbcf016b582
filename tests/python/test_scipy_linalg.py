"""``gradops.scipy.linalg`` against SciPy."""

import functools

import numpy as np
import pytest
import scipy.linalg
from parity import flat
from scipy_checks import agree, beside, refused

import gradops
from gradops import errors, ops
from gradops.scipy import linalg

rng = np.random.default_rng(36)
GENERAL = rng.normal(size=(3, 3))
OTHER = rng.normal(size=(3, 3))
SMALL = rng.normal(size=(2, 2)) + 3 * np.eye(2)
TALL, WIDE = rng.normal(size=(4, 3)), rng.normal(size=(3, 4))
COLUMNS, VECTOR = rng.normal(size=(3, 2)), rng.normal(size=3)
SKEWED = 0.1 * COLUMNS[:, ::-1]
DEFINITE = GENERAL @ GENERAL.T + 2 * np.eye(3)
UNEVEN = DEFINITE + np.triu(rng.normal(size=(3, 3)), 1)  # the upper triangle belongs to another matrix
UNEVEN_BELOW = UNEVEN.T.copy()
STABLE = -(GENERAL @ GENERAL.T) - np.eye(3) + np.array([[0, 1, 0], [-1, 0, 2], [0, -2, 0]])
REGULAR = DEFINITE + 0.5 * (GENERAL - GENERAL.T)  # eigenvalues right of the imaginary axis, not symmetric
BAND = rng.normal(size=(4, 5)) + np.array([0, 0, 5, 0])[:, None]
HERMITIAN_BAND = rng.normal(size=(2, 4)) + np.array([0, 5])[:, None]
RIGHT = rng.normal(size=(5, 2))
BATCH = rng.normal(size=(2, 3, 3)) + 3 * np.eye(3)
POSITIVE = rng.uniform(0.5, 1.5, size=4)


def named(name, **settings):
    return lambda module, *xs: getattr(module, name)(*xs, **settings)


def projector(module, a, **settings):
    """Return eigenvalues and a projector, which does not depend on the sign of eigenvectors."""
    w, v = module.eigh(a, **settings)
    return w, v[..., :1] @ (v[..., :1].conj().swapaxes(-1, -2) if isinstance(v, np.ndarray) else adjoint(v[..., :1]))


def adjoint(x):
    return ops.conj(ops.swapaxes(x, -1, -2))


def of_pencil(type):
    def function(module, a, b):
        w, v = module.eigh(a, b, type=type)
        return w, v[..., :1] * v[..., :1] / v[..., 1:2] ** 2

    return function


def sum_of_eigenvalues(module, *xs):
    w = module.eigvals(*xs)
    return ops.sum(w * w * w) if module is linalg else np.sum(w * w * w)


def of_vectors(module, a):
    """Return a function of left and right eigenvectors that is invariant to phases and order."""
    w, left, right = module.eig(a, left=True)
    if module is linalg:
        return ops.real(
            ops.sum(w * w * ops.sum(ops.conj(left) * right, 0) * ops.conj(ops.sum(ops.conj(left) * right, 0)))
        )
    inner = (left.conj() * right).sum(0)
    return np.real((w * w * inner * inner.conj()).sum())


def squares(name, **settings):
    """Return the squared elements of factors, whose signs are arbitrary."""

    def function(module, *xs):
        y = getattr(module, name)(*xs, **settings)
        return tuple(z * z for z in y)

    return function


def once(name, of, **settings):
    """Return a function that computes one part of the results."""
    return lambda module, *xs: of(getattr(module, name)(*xs, **settings))


def real(x):
    """Return the real part of a result that SciPy makes complex with zero imaginary part."""
    return x.real if isinstance(x, np.ndarray) else ops.real(x)


def riccati(name):
    """Return a Riccati solver that symmetrises ``q`` and ``r``."""

    def function(module, a, b, q, r, *more):
        q, r = (x @ (x.conj().T if module is scipy.linalg else adjoint(x)) for x in (q, r))
        return getattr(module, name)(a, b, q, r + beside(np.eye(2), r), *more)

    return function


CASES = [
    ("inv", named("inv"), (GENERAL,)),
    ("inv", named("inv", assume_a="pos", lower=True), (UNEVEN_BELOW,)),
    ("solve", named("solve"), (GENERAL, VECTOR)),
    ("solve", named("solve", transposed=True), (GENERAL, COLUMNS)),
    ("solve", named("solve", assume_a="sym"), (GENERAL, VECTOR)),
    ("solve", named("solve", assume_a="sym", lower=True), (GENERAL, VECTOR)),
    ("solve", named("solve", assume_a="pos"), (UNEVEN, COLUMNS)),
    ("solve", named("solve", assume_a="her", lower=True), (GENERAL, VECTOR)),
    ("solve", named("solve", assume_a="upper triangular"), (GENERAL, VECTOR)),
    ("solve", named("solve", assume_a="lower triangular"), (GENERAL, VECTOR)),
    ("solve", named("solve", assume_a="tridiagonal"), (GENERAL, VECTOR)),
    ("solve", named("solve", assume_a="diagonal"), (GENERAL, VECTOR)),
    ("solve", named("solve"), (BATCH, COLUMNS)),
    ("solve_triangular", named("solve_triangular"), (GENERAL, VECTOR)),
    ("solve_triangular", named("solve_triangular", lower=True, trans="T"), (GENERAL, COLUMNS)),
    ("solve_triangular", named("solve_triangular", unit_diagonal=True, trans=2), (GENERAL, COLUMNS)),
    ("solve_banded", lambda m, ab, b: m.solve_banded((1, 2), ab, b), (BAND, RIGHT)),
    ("solve_banded", lambda m, ab, b: m.solve_banded((1, 2), ab, b), (BAND, RIGHT[:, 0])),
    ("solveh_banded", named("solveh_banded"), (HERMITIAN_BAND, RIGHT[:4])),
    ("solveh_banded", named("solveh_banded", lower=True), (HERMITIAN_BAND[::-1].copy(), RIGHT[:4, 0])),
    ("cholesky_banded", lambda m, ab: m.cholesky_banded(ab)[..., 1:], (HERMITIAN_BAND,)),
    ("cholesky_banded", lambda m, ab: m.cholesky_banded(ab, lower=True)[..., :-1], (HERMITIAN_BAND[::-1].copy(),)),
    ("cho_solve_banded", lambda m, ab, b: m.cho_solve_banded((ab, False), b), (HERMITIAN_BAND, RIGHT[:4])),
    (
        "cho_solve_banded",
        lambda m, ab, b: m.cho_solve_banded((ab, True), b),
        (HERMITIAN_BAND[::-1].copy(), RIGHT[:4, 0]),
    ),
    ("solve_toeplitz", named("solve_toeplitz"), (POSITIVE + [3, 0, 0, 0], RIGHT[:4])),
    (
        "solve_toeplitz",
        lambda m, c, r, b: m.solve_toeplitz((c, r), b),
        (POSITIVE + [3, 0, 0, 0], POSITIVE, RIGHT[:4, 0]),
    ),
    ("matmul_toeplitz", lambda m, c, r, x: m.matmul_toeplitz((c, r), x), (POSITIVE, VECTOR, COLUMNS)),
    ("matmul_toeplitz", named("matmul_toeplitz"), (VECTOR, VECTOR)),
    ("solve_circulant", named("solve_circulant"), (VECTOR, COLUMNS)),
    ("det", named("det"), (GENERAL,)),
    ("det", named("det"), (np.outer(VECTOR, VECTOR),)),
    ("lstsq", once("lstsq", lambda y: (y[0], y[1], y[3])), (TALL, RIGHT[:4])),
    ("lstsq", once("lstsq", lambda y: (y[0], y[1], y[3])), (WIDE, VECTOR)),
    ("pinv", named("pinv"), (TALL,)),
    ("pinvh", named("pinvh"), (GENERAL,)),
    ("norm", named("norm"), (GENERAL,)),
    ("norm", named("norm", ord=2, axis=(0, 1), keepdims=True), (TALL,)),
    ("khatri_rao", named("khatri_rao"), (TALL, COLUMNS[:2].repeat(2, 1)[:, :3])),
    ("lu", named("lu"), (TALL,)),
    ("lu", named("lu", permute_l=True), (WIDE,)),
    ("lu_factor", once("lu_factor", lambda y: y[0]), (GENERAL,)),
    ("lu_solve", lambda m, a, b: m.lu_solve(m.lu_factor(a), b), (GENERAL, VECTOR)),
    ("lu_solve", lambda m, a, b: m.lu_solve(m.lu_factor(a), b, trans=1), (GENERAL, COLUMNS)),
    ("qr", squares("qr", mode="economic"), (TALL,)),
    ("qr", squares("qr", mode="r"), (WIDE,)),
    ("qr", lambda m, a: [z * z for z in m.qr(a, mode="economic", pivoting=True)[:2]], (TALL,)),
    ("rq", squares("rq", mode="economic"), (WIDE,)),
    ("rq", squares("rq", mode="economic"), (TALL,)),
    ("rq", squares("rq"), (WIDE[:, :3],)),
    ("qr_multiply", lambda m, a, c: [z * z for z in m.qr_multiply(a, c)], (TALL, WIDE)),
    ("qr_multiply", lambda m, a, c: m.qr_multiply(a, c, "left", pivoting=True)[0] ** 2, (TALL, COLUMNS[:, :1])),
    ("svd", lambda m, a: [z * z for z in m.svd(a, full_matrices=False)], (TALL,)),
    ("svdvals", named("svdvals"), (WIDE,)),
    ("cholesky", named("cholesky"), (UNEVEN,)),
    ("cholesky", named("cholesky", lower=True), (UNEVEN_BELOW,)),
    ("cho_factor", lambda m, a: m.cho_factor(a)[0][0], (UNEVEN,)),
    ("cho_solve", lambda m, c, b: m.cho_solve((c, False), b), (np.triu(DEFINITE), VECTOR)),
    ("cho_solve", lambda m, a, b: m.cho_solve(m.cho_factor(a, lower=True), b), (UNEVEN_BELOW, COLUMNS)),
    ("eig", of_vectors, (GENERAL,)),
    ("eigvals", sum_of_eigenvalues, (GENERAL,)),
    ("eigvals", sum_of_eigenvalues, (GENERAL, REGULAR)),
    ("eigh", projector, (GENERAL,)),
    ("eigh", functools.partial(projector, lower=False), (GENERAL,)),
    ("eigh", of_pencil(1), (GENERAL, UNEVEN_BELOW)),
    ("eigh", of_pencil(2), (GENERAL, UNEVEN_BELOW)),
    ("eigh", of_pencil(3), (GENERAL, UNEVEN_BELOW)),
    ("eigvalsh", named("eigvalsh"), (GENERAL,)),
    ("eigvalsh", named("eigvalsh", subset_by_index=[1, 2]), (GENERAL, UNEVEN_BELOW)),
    ("eigvalsh", named("eigvalsh", subset_by_value=[-0.5, 50.0]), (DEFINITE,)),
    ("eig_banded", once("eig_banded", lambda y: (y[0], y[1] ** 2)), (HERMITIAN_BAND,)),
    ("eigvals_banded", named("eigvals_banded", lower=True, select="i", select_range=(1, 2)), (HERMITIAN_BAND,)),
    ("eigh_tridiagonal", once("eigh_tridiagonal", lambda y: (y[0], y[1] ** 2)), (POSITIVE, VECTOR)),
    ("eigvalsh_tridiagonal", named("eigvalsh_tridiagonal"), (POSITIVE, VECTOR)),
    ("polar", named("polar"), (TALL,)),
    ("polar", named("polar", side="left"), (WIDE,)),
    ("polar", named("polar", side="left"), (GENERAL,)),
    ("polar", named("polar"), (np.eye(3),)),
    ("orthogonal_procrustes", named("orthogonal_procrustes"), (TALL, RIGHT[:4].repeat(2, 1)[:, :3] + TALL)),
    ("subspace_angles", named("subspace_angles"), (TALL[:, :2], RIGHT[:4])),
    ("expm", named("expm"), (GENERAL,)),
    ("expm_frechet", named("expm_frechet"), (GENERAL, OTHER)),
    ("expm_frechet", named("expm_frechet", compute_expm=False), (GENERAL, OTHER)),
    ("logm", named("logm"), (REGULAR,)),
    ("logm", named("logm"), (BATCH,)),
    ("sqrtm", named("sqrtm"), (REGULAR,)),
    ("sqrtm", named("sqrtm"), (BATCH,)),
    ("sqrtm", named("sqrtm"), (np.eye(2),)),
    ("signm", named("signm"), (GENERAL,)),
    *[(name, named(name), (GENERAL,)) for name in ("cosm", "sinm", "tanm", "coshm", "sinhm", "tanhm")],
    ("fractional_matrix_power", once("fractional_matrix_power", real, t=0.3), (REGULAR,)),
    ("fractional_matrix_power", named("fractional_matrix_power", t=-3), (REGULAR,)),
    ("funm", lambda m, a: m.funm(a, (ops if m is linalg else np).exp), (GENERAL,)),
    ("solve_sylvester", named("solve_sylvester"), (REGULAR, SMALL, COLUMNS)),
    ("solve_continuous_lyapunov", named("solve_continuous_lyapunov"), (STABLE, OTHER)),
    ("solve_lyapunov", named("solve_lyapunov"), (STABLE, OTHER)),
    ("solve_discrete_lyapunov", named("solve_discrete_lyapunov"), (GENERAL, OTHER)),
    ("solve_discrete_lyapunov", named("solve_discrete_lyapunov", method="bilinear"), (GENERAL, OTHER)),
    ("solve_continuous_are", riccati("solve_continuous_are"), (GENERAL, COLUMNS, OTHER, SMALL, REGULAR, SKEWED)),
    ("solve_discrete_are", riccati("solve_discrete_are"), (GENERAL, COLUMNS, OTHER, SMALL, REGULAR, SKEWED)),
    ("solve_continuous_are", riccati("solve_continuous_are"), (GENERAL, COLUMNS, OTHER, SMALL)),
    ("solve_discrete_are", riccati("solve_discrete_are"), (GENERAL, COLUMNS, OTHER, SMALL)),
    ("block_diag", named("block_diag"), (TALL, VECTOR, SMALL)),
    ("toeplitz", named("toeplitz"), (VECTOR, POSITIVE)),
    ("toeplitz", named("toeplitz"), (VECTOR,)),
    ("circulant", named("circulant"), (POSITIVE,)),
    ("hankel", named("hankel"), (VECTOR, POSITIVE)),
    ("hankel", named("hankel"), (VECTOR,)),
    ("companion", named("companion"), (POSITIVE,)),
    ("leslie", named("leslie"), (POSITIVE, VECTOR)),
    ("fiedler", named("fiedler"), (POSITIVE,)),
    ("fiedler_companion", named("fiedler_companion"), (POSITIVE,)),
    ("fiedler_companion", named("fiedler_companion"), (rng.uniform(1, 2, 7),)),
    *[
        ("convolution_matrix", named("convolution_matrix", n=5, mode=mode), (VECTOR,))
        for mode in ("full", "valid", "same")
    ],
    ("convolution_matrix", named("convolution_matrix", n=2, mode="same"), (POSITIVE,)),
    ("convolution_matrix", named("convolution_matrix", n=2, mode="valid"), (POSITIVE,)),
    ("diagsvd", named("diagsvd", M=3, N=5), (VECTOR,)),
]
CONSTANT = {
    "bandwidth": (GENERAL,),
    "dft": (3,),
    "hadamard": (4,),
    "helmert": (4,),
    "hessenberg": (GENERAL,),
    "hilbert": (3,),
    "invhilbert": (3,),
    "invpascal": (3,),
    "ishermitian": (DEFINITE,),
    "issymmetric": (GENERAL,),
    "pascal": (4,),
    "rsf2csf": (np.triu(GENERAL), np.eye(3)),
    "schur": (GENERAL,),
}
EVERYWHERE = ("solve_banded", "sqrtm", "logm", "polar", "solve_sylvester", "solve_discrete_are", "eigh_tridiagonal")


def checked(function, arrays, **settings):
    agree(
        functools.partial(function, linalg), functools.partial(function, scipy.linalg), *arrays, rtol=1e-10, **settings
    )


@pytest.mark.parametrize(("name", "function", "arrays"), CASES, ids=[f"{i}-{c[0]}" for i, c in enumerate(CASES)])
def test_agrees_with_scipy(name, function, arrays):
    checked(function, arrays, over=("numpy", "torch"), second=False, compiled=False, gradient_rtol=1e-5)


@pytest.mark.short_cases(2)
@pytest.mark.parametrize("name", EVERYWHERE)
def test_agrees_with_scipy_everywhere(name):
    _, function, arrays = next(case for case in CASES if case[0] == name)
    checked(function, arrays, gradient_rtol=1e-5)


@pytest.mark.long
@pytest.mark.parametrize(("name", "function", "arrays"), CASES, ids=[f"{i}-{c[0]}" for i, c in enumerate(CASES)])
def test_agrees_with_scipy_to_second_order(name, function, arrays):
    try:
        checked(function, arrays, gradient_rtol=1e-5)
    except errors.ArgumentError as error:  # pivots and eigenvalue intervals must be known in programs
        assert "known" in str(error)
        checked(function, arrays, gradient_rtol=1e-5, over=("numpy", "torch", "tensorflow"), compiled=False)


def test_each_name_has_a_case():
    assert {case[0] for case in CASES} | set(CONSTANT) == set(linalg.__all__)


@pytest.mark.parametrize("name", CONSTANT)
def test_constants_match_scipy(name):
    for ours, theirs in zip(
        np.atleast_1d(getattr(linalg, name)(*CONSTANT[name])),
        np.atleast_1d(getattr(scipy.linalg, name)(*CONSTANT[name])),
    ):
        np.testing.assert_array_equal(ours, theirs)


COMPLEX = ("inv", "solve", "solve_triangular", "solve_banded", "solveh_banded", "cholesky_banded", "cho_solve_banded")
COMPLEX += ("solve_toeplitz", "matmul_toeplitz", "solve_circulant", "det", "pinv", "pinvh", "norm", "lu", "lu_solve")
COMPLEX += ("svdvals", "cholesky", "cho_solve", "eigvals", "eigvalsh", "polar", "orthogonal_procrustes", "expm")
COMPLEX += ("expm_frechet", "logm", "sqrtm", "signm", "cosm", "tanm", "sinhm", "solve_sylvester", "toeplitz", "hankel")
COMPLEX += ("solve_continuous_lyapunov", "solve_discrete_lyapunov", "solve_continuous_are", "solve_discrete_are")
COMPLEX += ("companion", "fiedler_companion", "convolution_matrix", "khatri_rao", "block_diag", "circulant")


@pytest.mark.parametrize("place", [i for i, case in enumerate(CASES) if case[0] in COMPLEX])
def test_complex_matrices(place):
    """Values match SciPy's; the gradient matches a directional difference."""
    name, function, arrays = CASES[place]
    draw = np.random.default_rng(place)
    arrays = [x + 0.2j * draw.normal(size=x.shape) for x in arrays]
    turns = [draw.normal(size=x.shape) + 1j * draw.normal(size=x.shape) for x in arrays]
    try:
        wanted = flat(function(scipy.linalg, *arrays))
    except NotImplementedError:
        pytest.skip("SciPy refuses it")
    for got, want in zip(flat(function(linalg, *arrays)), wanted):
        np.testing.assert_allclose(got, want, 1e-9, 1e-11)
    weights = [draw.normal(size=np.shape(y)) + 1j * draw.normal(size=np.shape(y)) for y in wanted]

    def scalar(*xs):
        return sum(
            ops.sum(ops.real(y * beside(w if np.iscomplexobj(want) else w.real, y)))
            for y, w, want in zip(flat(function(linalg, *xs)), weights, wanted)
        )

    found = gradops.grad(scalar, tuple(range(len(arrays))))(*arrays)
    along = sum(np.sum(np.conj(g) * d).real for g, d in zip(found, turns))
    high, low = (scalar(*[x + h * d for x, d in zip(arrays, turns)]) for h in (1e-6, -1e-6))
    np.testing.assert_allclose(along, (high - low) / 2e-6, 1e-5, 1e-6)


SINGLE = ("logm", "sqrtm", "solve_sylvester", "solve_banded", "polar", "solve_discrete_lyapunov", "lu", "pinv")


@pytest.mark.parametrize("name", SINGLE)
def test_single_precision_is_preserved(name):
    _, function, arrays = next(case for case in CASES if case[0] == name)
    single = [x.astype("float32") for x in arrays]
    for got, want in zip(flat(function(linalg, *single)), flat(function(linalg, *arrays))):
        assert got.dtype == np.float32
        np.testing.assert_allclose(got, want, 1e-3, 1e-4)

    def total(*xs):
        return sum(ops.sum(y) for y in flat(function(linalg, *xs)))

    assert {g.dtype.name for g in gradops.grad(total, tuple(range(len(single))))(*single)} == {"float32"}


def doubled(function):
    return lambda a: ops.sum(ops.square(function(a)))


IN_PROGRAMS = {
    "sqrtm": linalg.sqrtm,
    "banded": lambda a: linalg.solve_banded((1, 1), a, a[:, 0]),
    "cholesky": lambda a: linalg.cho_solve(linalg.cho_factor(a), a[:, 0]),
}


@pytest.mark.short_cases(1)
@pytest.mark.parametrize("name", IN_PROGRAMS)
def test_torch_programs(name):
    """Covers eager calls, a compiled graph and batches."""
    torch = pytest.importorskip("torch")
    function = IN_PROGRAMS[name]
    x = torch.tensor(REGULAR, requires_grad=True)
    expected = gradops.grad(doubled(function))(REGULAR)
    torch._dynamo.reset()
    whole = tuple(map(int, torch.__version__.split(".")[:2])) >= (2, 12)  # before, a rule broke the graph
    torch.compile(doubled(function), fullgraph=whole, backend="aot_eager")(x).backward()
    np.testing.assert_allclose(x.grad, expected, 1e-9)
    batch = torch.stack([x.detach(), x.detach() + 0.1])
    found = torch.func.vmap(torch.func.grad(doubled(function)))(batch)
    np.testing.assert_allclose(found[0], expected, 1e-9)
    np.testing.assert_allclose(found[1], gradops.grad(doubled(function))(batch[1].numpy()), 1e-9)


def test_jax_batches_and_tensorflow_graphs():
    jax, tf = pytest.importorskip("jax"), pytest.importorskip("tensorflow")
    batch = np.stack([REGULAR, REGULAR + 0.1])
    expected = [gradops.grad(doubled(linalg.sqrtm))(x) for x in batch]
    np.testing.assert_allclose(jax.jit(jax.vmap(jax.grad(doubled(linalg.sqrtm))))(batch), expected, 1e-9)

    @tf.function(autograph=False)
    def gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = doubled(linalg.sqrtm)(x)
        return tape.gradient(y, x)

    np.testing.assert_allclose(gradient(tf.constant(REGULAR)), expected[0], 1e-9)


def test_complex_roots_and_logarithms_of_real_matrices():
    a = -REGULAR
    for name in ("sqrtm", "logm"):
        want = getattr(scipy.linalg, name)(a)
        np.testing.assert_allclose(getattr(linalg, name)(a), want, 1e-10, 1e-12)
        assert np.iscomplexobj(want)


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_logarithm_of_a_matrix_that_is_not_finite_is_nan(value):
    # SciPy's loop has no end for an infinite element.
    assert np.isnan(linalg.logm(np.array([[1.0, value], [0.0, 2.0]]))).all()
    assert np.isnan(gradops.grad(lambda x: ops.sum(linalg.logm([[x]])))(value))


def test_matrix_power_has_a_derivative_by_the_exponent():
    y = gradops.grad(lambda t: ops.sum(linalg.fractional_matrix_power(REGULAR, t)))(0.3)
    want = np.sum(scipy.linalg.logm(REGULAR) @ scipy.linalg.fractional_matrix_power(REGULAR, 0.3)).real
    np.testing.assert_allclose(y, want, 1e-12)


def test_global_random_state_is_preserved():
    np.random.seed(1)
    first = np.random.random()
    np.random.seed(1)
    linalg.logm(REGULAR)
    assert np.random.random() == first


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: linalg.inv(TALL), "a"),
        (lambda: linalg.solve(GENERAL, np.ones(4)), "b"),
        (lambda: linalg.solve(GENERAL, VECTOR, assume_a="odd"), "assume_a"),
        (lambda: linalg.det(GENERAL * np.nan), "a"),
        (lambda: linalg.solve_sylvester(GENERAL, SMALL, GENERAL), "q"),
        (lambda: linalg.solve_banded((1, 1), BAND, RIGHT), "ab"),
        (lambda: linalg.polar(GENERAL, side="up"), "side"),
        (lambda: linalg.leslie(VECTOR, VECTOR), "s"),
        (lambda: linalg.cho_solve(3, VECTOR), "c_and_lower"),
        (lambda: linalg.sqrtm("a"), "A"),
    ],
)
def test_errors_name_the_argument(call, argument):
    assert "`scipy.linalg." in str(refused(call, argument))


@pytest.mark.parametrize("name", "cholesky circulant expm fiedler toeplitz".split())
def test_scalars_act_as_matrices_of_one_element(name):
    np.testing.assert_allclose(getattr(linalg, name)(2.0), getattr(scipy.linalg, name)(2.0))


def test_matrix_equations_of_scalars():
    four = 2.0, 1.0, 3.0, 1.5
    found = linalg.solve_continuous_are(*four)
    np.testing.assert_allclose(found, scipy.linalg.solve_continuous_are(*four))
    np.testing.assert_allclose(linalg.solve_discrete_are(*four), scipy.linalg.solve_discrete_are(*four))
    gradops.autodiff.gradcheck(linalg.solve_continuous_are, tuple(gradops.Variable(x, True) for x in four))


AT_REPEATED_VALUES = {
    "expm": lambda a: ops.sum(OTHER * ops.expm(a)),
    "inv": lambda a: ops.sum(OTHER * ops.inv(a)),
    "logdet": ops.logdet,
    "sum of squares": lambda a: ops.sum(ops.square(a)),
    "sqrtm": lambda a: ops.sum(OTHER * linalg.sqrtm(a)),
    "logm": lambda a: ops.sum(OTHER * linalg.logm(a)),
    "fractional_matrix_power": lambda a: ops.sum(OTHER * linalg.fractional_matrix_power(a, 0.3)),
    "cosm": lambda a: ops.sum(OTHER * linalg.cosm(a)),
    "signm": lambda a: ops.sum(OTHER * linalg.signm(a)),
    "polar": lambda a: ops.sum(OTHER * linalg.polar(a)[0]),
    "nuclear norm": lambda a: ops.trace(linalg.polar(a)[1]),
}
"""Functions that the docstrings of ``eigh``, ``svd`` and ``funm`` recommend."""


@pytest.mark.parametrize("values", [(2.0, 2.0, 2.0), (2.0, 2.0, 3.0)])
@pytest.mark.parametrize("name", AT_REPEATED_VALUES)
def test_functions_with_derivatives_at_repeated_values(name, values):
    """Slope and curvature along lines match finite differences."""
    f, a = AT_REPEATED_VALUES[name], np.diag(values)
    slope = gradops.grad(f)
    for line in (OTHER, OTHER.T @ OTHER):
        along = lambda s, line=line: f(a + s * line)  # noqa: E731
        want = (along(1e-5) - along(-1e-5)) / 2e-5
        np.testing.assert_allclose(np.sum(slope(a) * line), want, rtol=1e-6, atol=1e-7)
        curvature = np.sum((slope(a + 1e-5 * line) - slope(a - 1e-5 * line)) * line) / 2e-5
        _, product = gradops.functional.hvp(f, a, line)
        np.testing.assert_allclose(np.sum(product * line), curvature, rtol=1e-6, atol=1e-6)
