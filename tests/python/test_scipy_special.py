"""Gamma, beta, normal and logarithmic functions of ``gradops.scipy.special`` against SciPy and mpmath."""

import functools
import itertools

import mpmath
import numpy as np
import pytest
from exact import lower_beta, lower_gamma, upper_gamma
from parity import BACKENDS, numpy, tensors
from scipy import special as scipys
from scipy_checks import agree, each_program, in_programs, same

import gradops
from gradops import errors, ops
from gradops.scipy import special
from gradops.scipy.special import gammas, incomplete, logarithms, noncentral, normal, probabilities

rng = np.random.default_rng(36)
A = np.array([0.5, 1.5, 4.0])
B = np.array([2.5, 0.7, 3.0])
X = np.array([[0.3], [2.0], [7.0]])
P = np.array([[0.03], [0.4], [0.95]])
REAL = np.array([-7.3, -1.2, -1e-3, 0.4, 2.0, 31.0])
POSITIVE = np.array([1e-3, 0.4, 1.0, 5.5])
K = np.array([0.0, 2.0, 3.7])
N = np.array([5.0, 7.0, 9.0])

CASES = {
    **dict.fromkeys(["gamma", "loggamma", "digamma", "psi", "gammaln"], [POSITIVE + 0.1]),
    "rgamma": [np.array([-1.4, 0.4, 3.0])],
    "gammasgn": [np.array([-1.4, 0.4])],
    "beta": [A, B],
    "betaln": [A, B],
    "binom": [A + 3, B],
    "poch": [A, B],
    "factorial": [np.array([0.3, 1.0, 5.0])],
    **dict.fromkeys(["comb", "perm"], [N, K + 0.2]),
    **dict.fromkeys(["gammainc", "gammaincc"], [A, X]),
    **dict.fromkeys(["gammaincinv", "gammainccinv"], [A, P]),
    **dict.fromkeys(["betainc", "betaincc", "betaincinv", "betainccinv"], [A, B, P]),
    **dict.fromkeys(
        ["erf", "erfc", "erfcx", "erfi", "dawsn", "ndtr", "log_ndtr"], [np.array([-2.5, -0.3, 0.0, 0.4, 3.0])]
    ),
    "erfinv": [np.array([-0.9, 0.1, 0.5])],
    "erfcinv": [np.array([0.1, 0.5, 1.9])],
    "ndtri": [P],
    "ndtri_exp": [-np.array([1e-3, 0.5, 3.0, 400.0])],
    "owens_t": [np.array([-0.4, 0.3, 2.0]), np.array([0.5, -1.0, 2.0])],
    "voigt_profile": [A, B, B],
    **dict.fromkeys(["cbrt", "exp2", "exp10", "expm1", "cosm1", "exprel", "softplus"], [np.array([-1.2, 0.4, 2.0])]),
    **dict.fromkeys(["expit", "log_expit", "round", "sindg", "cosdg", "tandg"], [REAL]),
    "cotdg": [np.array([-7.3, 30.0])],
    "log1p": [POSITIVE],
    "radian": [A, B, A],
    "logit": [P],
    "xlogy": [A, B],
    "xlog1py": [A, B],
    "entr": [POSITIVE],
    "rel_entr": [A, B],
    "kl_div": [A, B],
    **dict.fromkeys(["boxcox", "boxcox1p"], [A, np.array([[-0.5], [0.0], [1.3]])]),
    **dict.fromkeys(["inv_boxcox", "inv_boxcox1p"], [np.array([0.1, 0.5]), np.array([[-0.5], [0.0], [1.3]])]),
    **dict.fromkeys(["bdtr", "bdtrc", "bdtri"], [K, N, P]),
    **dict.fromkeys(["nbdtr", "nbdtrc", "nbdtri"], [K, N, P]),
    **dict.fromkeys(["pdtr", "pdtrc"], [K, X]),
    "pdtri": [K, P],
    "pdtrik": [P, np.array([4.0, 7.5])],
    **dict.fromkeys(["gdtr", "gdtrc"], [A, B, X]),
    "gdtrix": [A, B, P],
    "gdtria": [P, B, A],
    "gdtrib": [A, P, B],
    **dict.fromkeys(["chdtr", "chdtrc"], [A, X]),
    "chdtri": [A, P],
    "chdtriv": [P, B],
    "btdtria": [P, B, np.array([0.2, 0.5, 0.7])],
    "btdtrib": [A, P, np.array([0.2, 0.5, 0.7])],
    **dict.fromkeys(["fdtr", "fdtrc"], [A, B, X]),
    "fdtri": [A, B, P],
    "fdtridfd": [np.array([3.0]), np.array([0.4, 0.5]), np.array([0.8])],
    "stdtr": [A, np.array([[-3.0], [-0.5], [0.2], [4.0]])],
    "stdtrit": [A, P],
    "stdtridf": [np.array([0.8, 0.75]), np.array([1.2, 0.9])],
    "chndtr": [X, A, B],
    "chndtrix": [P, A, B],
    "chndtridf": [np.array([3.0]), np.array([0.3, 0.4]), np.array([1.2])],
    "chndtrinc": [np.array([3.0]), np.array([1.3]), np.array([0.2, 0.4])],
    "ncfdtr": [A, B, B, X],
    "ncfdtri": [A, B, B, P],
    "ncfdtridfn": [np.array([0.55, 0.6]), np.array([4.0]), np.array([1.2]), np.array([2.0])],
    "ncfdtridfd": [np.array([3.0]), np.array([0.6, 0.65]), np.array([1.2]), np.array([2.0])],
    "ncfdtrinc": [np.array([3.0]), np.array([4.0]), np.array([0.3, 0.4]), np.array([2.0])],
    "nctdtr": [A, B - 2, X - 1],
    "nctdtrit": [A, B - 2, P],
    "nctdtridf": [np.array([0.3, 0.4]), np.array([1.0]), np.array([1.2])],
    "nctdtrinc": [np.array([3.0]), np.array([0.3, 0.4]), np.array([2.0])],
    "nrdtrimn": [P, A, B],
    "nrdtrisd": [B, P, A],
}
COUNTS = {
    **dict.fromkeys(["bdtr", "bdtrc", "bdtri"], [2]),
    **dict.fromkeys(["nbdtr", "nbdtrc", "nbdtri"], [1, 2]),
    **dict.fromkeys(["pdtr", "pdtrc", "pdtri"], [1]),
    **dict.fromkeys(["gammasgn", "round"], []),
}
"""Positions of the differentiable arguments, if not all are."""
DIGITS = {
    "fdtridfd": 1e-7,
    "stdtridf": 1e-7,
    "gdtrib": 1e-9,
    "btdtria": 1e-8,
    "btdtrib": 1e-8,
    "pdtrik": 1e-9,
} | dict.fromkeys(noncentral._STARTS, 1e-4)
"""Tolerances for values and derivatives that SciPy's searches limit."""
OTHERS = {"polygamma", "multigammaln", "logsumexp", "softmax", "log_softmax"}
CONSTANT = {"bernoulli", "euler", "stirling2", "factorial2", "factorialk"}
ON_ALL = ("gammainc", "log_ndtr", "xlogy", "inv_boxcox", "rgamma")


def test_each_name_has_a_case():
    names = {n for home in (gammas, incomplete, logarithms, noncentral, normal, probabilities) for n in home.__all__}
    assert set(CASES) | OTHERS | CONSTANT == names


@pytest.mark.parametrize("name", CASES)
def test_values_match_scipy(name):
    over = ("numpy", "torch", "tensorflow", "jax") if name in ON_ALL else ("numpy", "torch")
    agree(
        getattr(special, name),
        getattr(scipys, name),
        *CASES[name],
        by=COUNTS.get(name),
        rtol=DIGITS.get(name, 1e-12),
        second=name in ON_ALL,
        over=over,
    )


@pytest.mark.long
@pytest.mark.parametrize("name", CASES)
def test_values_match_scipy_on_all_backends(name):
    agree(
        getattr(special, name),
        getattr(scipys, name),
        *CASES[name],
        by=COUNTS.get(name),
        rtol=DIGITS.get(name, 1e-12),
        second="all",
    )


HARD = {
    1: [-np.inf, -30.5, -3.0, -1.0, -1e-300, 0.0, 1e-300, 1e-8, 0.5, 1.0, 2.0, 30.5, 1e8, np.inf, np.nan],
    2: [-np.inf, -3.0, -1.0, 0.0, 1e-8, 0.5, 1.0, 2.0, 30.5, 1e8, np.inf, np.nan],
    3: [-1.0, 0.0, 0.4, 2.0, 1e5, np.inf, np.nan],
    4: [-1.0, 0.0, 0.4, 30.0, np.inf, np.nan],
}


COARSE = {
    "gammaincinv": 1e-5,
    "nctdtr": 1e-5,
    "bdtri": 1e-8,
    "nbdtri": 1e-8,
    "fdtri": 1e-4,
    "stdtr": 1e-8,
    "stdtrit": 1e-8,
    "chdtriv": 1e-4,
}
"""Points at which SciPy's value is inaccurate for large shapes; gradops is compared with mpmath below."""
COMPOSED = {n for n in (*probabilities.__all__, *noncentral.__all__) if not hasattr(getattr(special, n), "op")} | {
    *("betaln", "fdtr", "fdtrc", "fdtri", "stdtr")
}


@pytest.mark.short_cases(42)
@pytest.mark.parametrize("name", [n for n in CASES if n not in DIGITS and n not in ("binom", "poch", "perm", "comb")])
@pytest.mark.filterwarnings("ignore")
def test_hard_points(name):
    """Values match SciPy's, including its NaN; composed functions give NaN for NaN arguments."""
    own, theirs = getattr(special, name), getattr(scipys, name)
    count = len(CASES[name])
    points = np.array(list(itertools.product(*[HARD[count]] * count))).T
    if name == "nctdtr":  # its integral takes a second per value at 1e5
        points[1] = np.where(points[1] == 1e5, 300.0, points[1])
    with np.errstate(all="ignore"):
        want = theirs(*points)
        found = own(*points)
    unlike = ~(
        (found == want) | (np.isnan(found) & np.isnan(want)) | np.isclose(found, want, COARSE.get(name, 1e-12), 0)
    )
    if name == "gammaln":
        unlike &= points[0] > -np.inf  # infinite, as elsewhere in Python
    if name == "stdtrit":
        unlike &= (points[0] > 0.1) & (points[1] > 0)  # SciPy gives Inf at 0, and finite numbers in place of Inf
    if name in COMPOSED:
        unlike &= ~(np.isnan(want) | np.isnan(found)) & (np.min(points, 0) > 0) & np.isfinite(points).all(0)
        assert np.isnan(found[np.isnan(points).any(0)]).all()
    rows = [(*map(float, row), float(f), float(w)) for row, f, w in zip(points.T[unlike], found[unlike], want[unlike])]
    assert not rows, f"{name}: {len(rows)}: {rows[:12]}"
    gradops.grad(lambda *xs: ops.sum(own(*xs)), argnums=tuple(range(count)))(*points)


# Digits ---------------------------------------------------------------------------------------------------------------

SHAPES = (1e-8, 0.05, 1.0, 7.3, 300.0, 1e5)
PARTS = (1e-3, 0.5, 0.99, 1.01, 2.0, 10.0)


def exactly(function, *arguments):
    with mpmath.workdps(120):
        return function(*map(mpmath.mpf, arguments))


def slope(function, by, *arguments):
    """Return the derivative of an mpmath function, relative to the argument's size."""
    with mpmath.workdps(160):
        xs = list(map(mpmath.mpf, arguments))
        step = xs[by] * mpmath.mpf(10) ** -20

        def at(v):
            return function(*xs[:by], v, *xs[by + 1 :])

        return float((at(xs[by] + step) - at(xs[by] - step)) / (2 * step))


def test_gamma_functions_are_accurate():
    points = [(a, a * part) for a in SHAPES for part in PARTS if a * part < 2e3 or part < 1.5]
    points = [p for p in points if p[0] < 1e4 or abs(p[1] / p[0] - 1) < 0.02]
    a, x = np.array(points).T.copy()
    for own, log, exact in (
        (special.gammainc, incomplete.log_gammainc, lower_gamma),
        (special.gammaincc, incomplete.log_gammaincc, upper_gamma),
    ):
        want = np.array([float(exactly(exact, *p)) for p in points])
        logs = np.array([float(exactly(lambda a, x: mpmath.log(exact(a, x)), *p)) for p in points])  # noqa: B023
        same(own(a, x), want, 1e-12, "value", 0)
        same(log(a, x), logs, 1e-12, "logarithm", 1e-16)
        for by in (0, 1):
            found = gradops.grad(lambda a, x: ops.sum(own(a, x)), argnums=by)(a, x)  # noqa: B023
            of_log = gradops.grad(lambda a, x: ops.sum(log(a, x)), argnums=by)(a, x)  # noqa: B023
            want = np.array([slope(exact, by, *p) for p in points])
            want_log = np.array([slope(lambda a, x: mpmath.log(exact(a, x)), by, *p) for p in points])  # noqa: B023
            same(found, want, 1e-9, f"slope by {by}", 1e-300)
            same(of_log, want_log, 1e-9, f"slope of the logarithm by {by}", 1e-300)


def test_beta_functions_are_accurate():
    points = list(itertools.product((1e-3, 0.5, 3.0, 25.0, 400.0), (1e-3, 1.0, 30.0), (1e-3, 0.2, 0.6, 0.99)))
    a, b, x = np.array(points).T.copy()
    want = np.array([float(exactly(lower_beta, *p)) for p in points])
    same(special.betainc(a, b, x), want, 1e-12, "value", 0)
    logs = np.array([float(exactly(lambda *p: mpmath.log(lower_beta(*p)), *p)) for p in points])
    same(incomplete.log_betainc(a, b, x), logs, 1e-12, "logarithm", 1e-16)
    for by in (0, 1, 2):
        found = gradops.grad(lambda *p: ops.sum(special.betainc(*p)), argnums=by)(a, b, x)
        want = np.array([slope(lower_beta, by, *p) for p in points])
        same(found, want, 1e-9, f"slope by {by}", 1e-18)


def test_tails_below_the_smallest_float():
    x = np.array([2000.0, 1e4])
    exact = np.array([float(exactly(lambda a, x: mpmath.log(upper_gamma(a, x)), 3.0, v)) for v in x])
    np.testing.assert_allclose(incomplete.log_gammaincc(3.0, x), exact, 1e-12)
    found = gradops.grad(lambda a: ops.sum(incomplete.log_gammaincc(a, x)))(3.0)
    want = sum(slope(lambda a, x: mpmath.log(upper_gamma(a, x)), 0, 3.0, v) for v in x)
    np.testing.assert_allclose(found, want, 1e-10)
    p = np.array([1e-60, 1e-200, 1e-300])
    found = special.betaincinv(2.5, 3.5, p)
    np.testing.assert_allclose([float(exactly(lower_beta, 2.5, 3.5, v)) for v in found], p, 1e-12)


LOG_INVERSES = {
    "log_gammaincinv": ("log_gammainc", [A]),
    "log_gammainccinv": ("log_gammaincc", [A]),
    "log_betaincinv": ("log_betainc", [A, B]),
    "log_betainccinv": ("log_betaincc", [A, B]),
}


@pytest.mark.parametrize("name", LOG_INVERSES)
def test_quantiles_of_log_probabilities(name):
    inverse, (function, shapes) = getattr(incomplete, name), LOG_INVERSES[name]
    function = getattr(incomplete, function)
    p = -np.array([[1e-9], [0.03], [0.7], [5.0], [300.0]])
    x = inverse(*shapes, p)
    inner = (x < 1 - 1e-9) | ("gamma" in name)
    np.testing.assert_allclose(function(*shapes, x)[inner], np.broadcast_to(p, x.shape)[inner], 1e-7)
    far = -np.array([800.0, 1500.0])
    x = inverse(*[2.5] * len(shapes), far) if name != "log_betainccinv" else np.array([0.9, 0.99])
    if name != "log_betainccinv":
        np.testing.assert_allclose(function(*[2.5] * len(shapes), x), far, 1e-13)
    p = np.array([-0.1, -0.7, -2.0])
    by = range(len(shapes) + 1)
    found = gradops.grad(lambda *v: ops.sum(inverse(*v) * [1.0, 0.5, 2.0]), argnums=tuple(by))(*shapes, p)
    for i in by:
        step = np.zeros((len(by), 1))
        step[i] = 1e-6
        ends = [inverse(*[v + sign * s for v, s in zip((*shapes, p), step)]) for sign in (1, -1)]
        np.testing.assert_allclose(found[i], (ends[0] - ends[1]) / 2e-6 * [1.0, 0.5, 2.0], 1e-7)


def test_student_t_quantiles_of_log_probabilities():
    df = np.array([[1.0], [2.2], [30.0], [1e6]])
    p = np.array([1e-250, 1e-20, 0.1, 0.499999, 0.7, 1 - 1e-10])
    t = special.stdtrit(df, p)
    np.testing.assert_allclose(special.stdtr(df, t)[:, 1:], np.broadcast_to(p, t.shape)[:, 1:], 1e-12)
    np.testing.assert_allclose(probabilities.log_stdtrit(df, np.log(p)), t, 1e-9)
    np.testing.assert_allclose(special.stdtrit(1.0, 1e-300), -1e300 / np.pi, 1e-12)
    found = gradops.grad(lambda df: ops.sum(probabilities.log_stdtrit(df, np.log(p[1:4]))))(3.0)
    exact = gradops.grad(lambda df: ops.sum(special.stdtrit(df, p[1:4])))(3.0)
    np.testing.assert_allclose(found, exact, 1e-10)


def test_third_derivatives_with_respect_to_shapes():
    def third(f):
        return gradops.grad(gradops.grad(gradops.grad(f)))

    for own, exact, point in (
        (lambda a: special.gammainc(a, 2.0), lambda a: lower_gamma(a, 2), 1.7),
        (lambda a: special.betainc(a, 3.0, 0.3), lambda a: lower_beta(a, 3, mpmath.mpf(0.3)), 1.7),
    ):
        with mpmath.workdps(40):
            want = float(mpmath.diff(exact, point, 3))
        np.testing.assert_allclose(third(own)(point), want, 1e-9)


# More than elementwise ------------------------------------------------------------------------------------------------


def test_student_t_probability_at_0_has_second_derivatives():
    found = gradops.hessian(lambda p: special.stdtr(p[0], p[1]))(np.array([2.5, 0.0]))
    middle = mpmath.diff(lambda v: mpmath.gamma((v + 1) / 2) / mpmath.gamma(v / 2) / mpmath.sqrt(v * mpmath.pi), 2.5)
    np.testing.assert_allclose(found, float(middle) * np.array([[0, 1], [1, 0]]), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("at_0", [0.3, 900.0, np.inf, np.nan])
def test_logsumexp_is_differentiable_at_a_zero_weight(backend, at_0):
    a, b = tensors(np.array([0.5, -1.0, at_0]), backend), tensors(np.array([1.0, 2.0, 0.0]), backend)
    y, (by_a, by_b) = gradops.value_and_grad(lambda a, b: special.logsumexp(a, b=b), argnums=(0, 1))(a, b)
    want = np.log(np.exp(0.5) + 2 * np.exp(-1.0))
    np.testing.assert_allclose(numpy(y), want)
    np.testing.assert_allclose(numpy(by_a), [np.exp(0.5 - want), 2 * np.exp(-1.0 - want), 0])
    np.testing.assert_allclose(numpy(by_b)[:2], np.exp(np.array([0.5, -1.0]) - want))
    slope = numpy(by_b)[2]
    assert np.isclose(slope, np.exp(at_0 - want)) if at_0 < 1 else slope > 1e300 / 10
    if at_0 < 1:
        second = gradops.hessian(lambda b: special.logsumexp(a, b=b))(b)
        np.testing.assert_allclose(numpy(second), -np.outer(numpy(by_b), numpy(by_b)))


def test_slopes_where_the_binomial_coefficient_is_0():
    x, k = np.transpose([(3.0, 5.0), (2.0, 3.0), (0.0, 1.0), (2.5, 4.5), (3.0, -1.0), (5.0, 5.0)])
    first = functools.partial(gradops.grad, special.binom)
    for point in zip(x, k):
        for i in range(2):
            found = first(argnums=i)(*point), gradops.grad(first(argnums=i), argnums=i)(*point)
            want = [mpmath.diff(mpmath.binomial, point, (n * (1 - i), n * i)) for n in (1, 2)]
            np.testing.assert_allclose(found, np.array(want, float), 1e-8, 1e-14)
    together = gradops.grad(lambda x, k: ops.sum(special.binom(x, k)), argnums=(0, 1))(x, k)
    alone = [gradops.grad(special.binom, argnums=(0, 1))(a, b) for a, b in zip(x, k)]
    np.testing.assert_allclose(np.transpose(together), alone)


def test_quantiles_of_infinite_degrees_of_freedom_are_normal():
    df, p = np.array([np.inf, 3.0]), np.array([0.3, 0.2])
    normal = special.ndtri(0.3)
    for f, value in ((special.stdtrit, normal), (lambda df, p: special.nctdtrit(df, 0.5, p), normal + 0.5)):
        by_df, by_p = gradops.grad(lambda df, p: ops.sum(f(df, p)), argnums=(0, 1))(df, p)  # noqa: B023
        np.testing.assert_allclose([f(df, p)[0], by_df[0], by_p[0]], [value, 0, gradops.grad(special.ndtri)(0.3)])
        np.testing.assert_allclose(by_p[1], gradops.grad(lambda p: f(3.0, p))(0.2))  # noqa: B023
    np.testing.assert_allclose(special.nctdtrinc(np.inf, 0.3, 0.5), 0.5 - normal, rtol=1e-14)


def test_expm1_of_an_infinite_complex_number():
    z = np.array([complex(np.inf, 0), complex(np.inf, 1), complex(-np.inf, 2), 0.3 + 0.1j])
    np.testing.assert_allclose(special.expm1(z), scipys.expm1(z), rtol=1e-15)


def test_logsumexp():
    a, b = rng.normal(size=(2, 3)), np.array([[1.0, 0.0, -0.5], [2.0, 0.3, 1.0]])
    agree(lambda a: special.logsumexp(a, axis=1), lambda a: scipys.logsumexp(a, axis=1), a)
    agree(
        lambda a, b: special.logsumexp(a, axis=1, b=b, keepdims=True),
        lambda a, b: scipys.logsumexp(a, axis=1, b=b, keepdims=True),
        a,
        np.abs(b) + 0.1,
        over=("numpy", "torch"),
    )
    value, sign = special.logsumexp(a, axis=1, b=-b, return_sign=True)
    want, wanted = scipys.logsumexp(a, axis=1, b=-b, return_sign=True)
    np.testing.assert_allclose(value, want)
    np.testing.assert_array_equal(sign, wanted)
    assert special.logsumexp(np.array([-np.inf, -np.inf])) == -np.inf
    agree(special.softmax, scipys.softmax, a, over=("numpy", "torch"))
    agree(lambda x: special.log_softmax(x, 0), lambda x: scipys.log_softmax(x, 0), a, over=("numpy", "torch"))


def test_polygamma_and_multigammaln():
    agree(lambda x: special.polygamma(2, x), lambda x: scipys.polygamma(2, x), A)
    agree(lambda a: special.multigammaln(a, 3), lambda a: scipys.multigammaln(a, 3), A + 1, over=("numpy", "torch"))


def test_single_and_half_precision():
    for dtype in ("float32", "float16"):
        y = special.gammainc(np.array([2.0], dtype), np.array([1.0], dtype))
        assert y.dtype == dtype
    x = np.array([0.5, 30.0], "float32")
    found = gradops.grad(lambda a, x: ops.sum(special.gammaincc(a, x)), argnums=(0, 1))(x, x)
    want = gradops.grad(lambda a, x: ops.sum(special.gammaincc(a, x)), argnums=(0, 1))(*[x.astype("float64")] * 2)
    for own, exact in zip(found, want):
        assert own.dtype == "float32"
        np.testing.assert_allclose(own, exact, 1e-4)


@pytest.mark.long
@each_program(lambda a, x: ops.sum(special.kv(a, x)))
def test_programs_of_libraries(compiled):
    def f(a, x):
        return ops.sum(special.gammaincinv(a, x))

    in_programs(f, np.array([0.5, 3.0]), np.array([0.3, 0.6]), compiled=compiled)


@pytest.mark.parametrize("backend", ["numpy", "torch", "tensorflow", "jax"])
@pytest.mark.parametrize("name", ["erf", "erfc", "erfi", "dawsn", "wofz"])
def test_error_functions_of_complex_numbers(name, backend):
    """Values match SciPy's on each library; the gradient of the real part is the conjugate of the derivative."""
    z, step = np.array([0.5 + 0.3j, -2.0 + 1.0j, 1e-3j]), 1e-6
    found = gradops.to_backend(z, backend)
    np.testing.assert_allclose(
        ops.convert_to_numpy(getattr(special, name)(found)), getattr(scipys, name)(z), rtol=1e-13
    )
    slope = gradops.grad(lambda z: ops.sum(ops.real(getattr(special, name)(z))))(found)
    wanted = (getattr(scipys, name)(z + step) - getattr(scipys, name)(z - step)) / (2 * step)
    np.testing.assert_allclose(np.conj(ops.convert_to_numpy(slope)), wanted, rtol=1e-6)


def test_errors_name_the_argument():
    for call, argument in (
        (lambda: special.gammainc("a", 1.0), "a"),
        (lambda: special.gdtr(1.0, "b", 1.0), "b"),
        (lambda: special.multigammaln(2.0, 1.5), "d"),
        (lambda: special.multigammaln(2.0, 10**30), "d"),
        (lambda: special.factorial(3.0, extend="no"), "extend"),
        (lambda: special.chdtr(3, 2, df=1), "df"),
    ):
        with pytest.raises(errors.GradopsError) as caught:
            call()
        assert caught.value.argument == argument
