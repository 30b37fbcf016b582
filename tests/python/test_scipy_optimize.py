"""``gradops.scipy.optimize`` against SciPy, closed forms and differences of the solutions."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize
from parity import BACKENDS, finite_difference, numpy, tensors, weights

import gradops
from gradops import functional, ops
from gradops.errors import ArgumentError, ArgumentTypeError, GradientError, JitError
from gradops.scipy import optimize

A = np.array([1.0, 2.0])
X = np.linspace(0.0, 2.0, 9)
Y = 2.0 * np.exp(-1.3 * X) + 0.3 + 0.05 * np.cos(7 * X)
M = np.array([[1.0, 2.0], [3.0, -1.0], [0.5, 1.5]])


def cube(x, a):
    return x**3 - a


def hill(x, a):
    return ops.sum((x - a) ** 2) + x[0] ** 4 + ops.sum(x) ** 2


def well(x, a):
    return (x - a) ** 2 + x**4


def rates(p, y):
    return p[0] * ops.exp(-p[1] * ops.convert_to_tensor(beside(X, y))) + p[2] - y


def beside(x, like):
    return x if isinstance(like, (np.ndarray, gradops.Variable)) else gradops.backends.backend_of(like).convert(x)


def curve(x, a, b, c):
    return a * ops.exp(-b * x) + c


CASES = {
    "bisect": (lambda a: optimize.bisect(cube, 0.0, 5.0, (a,)), 8.0),
    "brenth": (lambda a: optimize.brenth(cube, 0.0, 5.0, (a,)), 8.0),
    "brentq": (lambda a: optimize.brentq(cube, 0.0, 5.0, (a,), full_output=True)[0], 8.0),
    "ridder": (lambda a: optimize.ridder(cube, 0.0, 5.0, (a,)), 8.0),
    "toms748": (lambda a: optimize.toms748(cube, 0.0, 5.0, (a,)), 8.0),
    "newton": (lambda a: optimize.newton(cube, [1.0, 2.0], args=(a,)), [1.5, 8.0]),
    "root_scalar": (lambda a: optimize.root_scalar(cube, (a,), x0=1.0, method="halley").root, 8.0),
    "root": (
        lambda a: optimize.root(lambda x, a: [x[0] * x[1] - a[0], x[0] - x[1] ** 2 + a[1]], [1.0, 2.0], (a,)).x,
        A,
    ),
    "fsolve": (lambda a: optimize.fsolve(cube, [1.0, 1.0], (a,)), A),
    "fixed_point": (lambda a: optimize.fixed_point(lambda x, a: 0.5 * (x + a / x), [1.0, 1.0], (a,)), A),
    "minimize": (lambda a: optimize.minimize(hill, [1.0, 1.0], (a,)).x, A),
    "minimize_scalar": (lambda a: optimize.minimize_scalar(well, args=(a,)).x, 1.2),
    "brent": (lambda a: optimize.brent(well, (a,), full_output=True)[1], 1.2),
    "golden": (lambda a: optimize.golden(well, (a,)), 1.2),
    "fminbound": (lambda a: optimize.fminbound(well, 0.0, 3.0, (a,)), 1.2),
    "fmin": (lambda a: optimize.fmin(hill, [1.0, 1.0], (a,), disp=0), A),
    "fmin_powell": (lambda a: optimize.fmin_powell(hill, [1.0, 1.0], (a,), disp=0), A),
    "fmin_bfgs": (lambda a: optimize.fmin_bfgs(hill, [1.0, 1.0], args=(a,), disp=0), A),
    "fmin_cg": (lambda a: optimize.fmin_cg(hill, [1.0, 1.0], args=(a,), disp=0, full_output=1)[1], A),
    "fmin_ncg": (lambda a: optimize.fmin_ncg(hill, [1.0, 1.0], args=(a,), disp=0), A),
    "fmin_l_bfgs_b": (lambda a: optimize.fmin_l_bfgs_b(hill, [1.0, 1.0], args=(a,))[0], A),
    "fmin_tnc": (lambda a: optimize.fmin_tnc(hill, [1.0, 1.0], args=(a,))[0], A),
    "least_squares": (lambda y: optimize.least_squares(rates, [1.0, 1.0, 0.0], args=(y,), loss="soft_l1").x, Y),
    "leastsq": (lambda y: optimize.leastsq(rates, [1.0, 1.0, 0.0], args=(y,))[0], Y),
    "curve_fit": (lambda y: list(optimize.curve_fit(curve, beside(X, y), y)), Y),
    "nnls": (lambda a: list(optimize.nnls(a, [1.0, -2.0, 0.5])), M),
    "lsq_linear": (lambda a: optimize.lsq_linear(a, [1.0, 2.0, 0.5], ([-1.0, -1.0], [0.4, 3.0])).x, M),
    "isotonic_regression": (lambda y: optimize.isotonic_regression(y, weights=beside(1 + X, y)).x, Y[::-1].copy()),
    "approx_fprime": (lambda a: optimize.approx_fprime(a, lambda x: ops.sum(x**3)), A),
    "check_grad": (lambda a: optimize.check_grad(lambda x: ops.sum(x**3), lambda x: 3 * x**2 + x, a), A),
    "rosen": (optimize.rosen, [1.0, 2.0, 0.5]),
    "rosen_der": (optimize.rosen_der, [1.0, 2.0, 0.5]),
    "rosen_hess": (optimize.rosen_hess, [1.0, 2.0, 0.5]),
    "rosen_hess_prod": (lambda x: optimize.rosen_hess_prod(x, ops.cos(x)), [1.0, 2.0, 0.5]),
}
WITHOUT = {"linear_sum_assignment"}


def test_each_function_has_a_case():
    assert set(optimize.__all__) == set(CASES) | WITHOUT


def total(function):
    def one(a):
        found = function(a)
        parts = found if isinstance(found, list) else [found]
        return sum(ops.sum(p**2 * (1 + i)) for i, p in enumerate(parts))

    return one


@pytest.mark.parametrize("name", CASES)
def test_derivatives_on_the_tape(name):
    function, a = CASES[name]
    one, a = total(function), np.asarray(a, float)
    first = functional.grad(one)(a)
    [expected] = finite_difference(lambda xs: [np.asarray(one(gradops.Variable(xs[0], requires_grad=True)).data)], [a])
    scale = np.sum(weights([a], seed=11)[0][0])  # the weight that finite_difference() applies
    np.testing.assert_allclose(np.asarray(first) * scale, expected, 1e-5, 1e-7 * np.abs(expected).max())
    second = functional.jacobian(functional.grad(one), a)
    step = 1e-5 * np.arange(1, a.size + 1).reshape(a.shape)
    change = (functional.grad(one)(a + step) - functional.grad(one)(a - step)) / 2
    product = np.tensordot(second, step, a.ndim)
    np.testing.assert_allclose(product, change, 1e-4, 1e-6 * np.abs(product).max() + 1e-11)


NATIVE = ("brentq", "root", "minimize", "least_squares", "curve_fit", "nnls", "lsq_linear", "isotonic_regression")


@pytest.mark.short_cases(1, "jax", "tensorflow")
@pytest.mark.parametrize("backend", BACKENDS[1:])
@pytest.mark.parametrize("name", NATIVE)
def test_derivatives_on_libraries(name, backend):
    function, a = CASES[name]
    one, a = total(function), np.asarray(a, float)
    found = functional.grad(one)(tensors(a, backend))
    assert gradops.backends.backend_of(found).name == backend
    np.testing.assert_allclose(numpy(found), functional.grad(one)(a), 1e-8, 1e-10)


@pytest.mark.long
def test_hessians_on_libraries():
    one = total(CASES["minimize"][0])
    expected = functional.hessian(one, A)
    for backend in BACKENDS[1:]:
        if backend != "jax":  # JAX's own Hessian is tested below
            np.testing.assert_allclose(numpy(functional.hessian(one, tensors(A, backend))), expected, 1e-8, 1e-10)
    if "torch" in BACKENDS:
        import torch

        for transform in (torch.func.hessian, lambda f: torch.func.jacrev(torch.func.grad(f))):
            np.testing.assert_allclose(transform(one)(torch.tensor(A)).numpy(), expected, 1e-8, 1e-10)
        x = torch.tensor(A)
        _, tangent = torch.func.jvp(one, (x,), (torch.ones_like(x),))
        np.testing.assert_allclose(tangent, functional.grad(one)(A).sum(), 1e-10)
    if "jax" in BACKENDS:
        import jax

        np.testing.assert_allclose(jax.hessian(one)(tensors(A, "jax")), expected, 1e-8, 1e-10)


def test_closed_forms():
    """Includes the third derivative: for a cube root it is 10/27 a^(-8/3)."""
    root = CASES["brentq"][0]
    third = functional.grad(functional.grad(functional.grad(root)))(8.0)
    np.testing.assert_allclose(third, 10 / 27 * 8 ** (-8 / 3), 1e-10)
    bound = functional.grad(lambda a: ops.sum(optimize.lsq_linear(M, a, lsq_solver="exact").x))
    np.testing.assert_allclose(bound(np.ones(3)), np.linalg.pinv(M).sum(0))


def test_values_without_a_gradient_match_scipy():
    ours = optimize.minimize(hill, [1.0, 1.0], (A,), method="BFGS")
    theirs = scipy.optimize.minimize(lambda x: float(hill(x, A)), [1.0, 1.0], method="BFGS")
    np.testing.assert_allclose(ours.x, theirs.x, 1e-5, 1e-6)
    assert ours.nfev < theirs.nfev
    assert optimize.brentq(cube, 0, 5, (8.0,)) == scipy.optimize.brentq(cube, 0, 5, (8.0,))
    popt, pcov = optimize.curve_fit(curve, X, Y)
    for got, want in zip((popt, pcov), scipy.optimize.curve_fit(lambda x, a, b, c: a * np.exp(-b * x) + c, X, Y)):
        np.testing.assert_allclose(got, want, 1e-5)
    rows, columns = optimize.linear_sum_assignment([[4.0, 1, 3], [2, 0, 5], [3, 2, 2]])
    assert list(columns) == [1, 0, 2]


def test_closures_affect_the_solution():
    gradient = functional.grad(lambda a: ops.sum(optimize.fsolve(lambda x: x**3 - a, np.ones(2))))(A)
    np.testing.assert_allclose(gradient, A ** (-2 / 3) / 3)


METHODS = (
    "Nelder-Mead Powell CG BFGS Newton-CG L-BFGS-B TNC SLSQP COBYLA dogleg trust-ncg trust-krylov trust-exact "
    "trust-constr"
).split()


@pytest.mark.parametrize("method", METHODS)
def test_methods(method):
    one = total(CASES["minimize"][0])
    found = functional.grad(total(lambda a: optimize.minimize(hill, [1.0, 1.0], (a,), method=method).x))(A)
    np.testing.assert_allclose(found, functional.grad(one)(A), 1e-8)


@pytest.mark.parametrize("backend", BACKENDS)
def test_operators_between_the_unknown_and_closed_over_tensors(backend):
    """The unknown belongs to the library of the tensors that a function, or one it calls, closes over."""
    a = tensors(np.array(2.0), backend)

    def total(a):
        def far(x):
            return x - a

        root = optimize.brentq(lambda x: x**3 + a * x - 5, 0.0, 4.0, xtol=1e-14)
        least = optimize.minimize(lambda x: ops.sum(far(x) ** 2), np.ones(2)).x
        return root + ops.sum(least) + optimize.minimize_scalar(lambda x: far(x) ** 2).x

    x = scipy.optimize.brentq(lambda x: x**3 + 2 * x - 5, 0.0, 4.0)
    np.testing.assert_allclose(numpy(gradops.grad(total)(a)), 3 - x / (3 * x**2 + 2), 1e-9)


def test_fit_of_a_linear_model():
    """Parameters and covariance match closed forms, with standard deviations and with a covariance matrix."""
    design = np.stack([X, np.ones_like(X)], 1)
    deviations = 0.1 + X / 10

    def fit(y, s):
        return optimize.curve_fit(lambda x, a, b: a * x + b, X, y, sigma=s, absolute_sigma=True)

    for sigma, weight in ((deviations, np.diag(deviations**-2)), (np.diag(deviations**2), np.diag(deviations**-2))):
        covariance = np.linalg.inv(design.T @ weight @ design)
        p, c = fit(Y, sigma)
        np.testing.assert_allclose(p, covariance @ design.T @ weight @ Y, 1e-7)
        np.testing.assert_allclose(c, covariance, 1e-6)
        moves = functional.jacobian(lambda y, sigma=sigma: fit(y, sigma)[0], Y)
        np.testing.assert_allclose(moves, covariance @ design.T @ weight, 1e-8)
    by_deviations = functional.grad(lambda s: ops.sum(fit(Y, s)[1]))(deviations)
    step = 1e-6

    def closed(s):
        return np.linalg.inv(design.T @ np.diag(s**-2) @ design).sum()

    change = [(closed(deviations + e) - closed(deviations - e)) / (2 * step) for e in step * np.eye(len(X))]
    np.testing.assert_allclose(by_deviations, change, 1e-6)


def test_bounds_that_depend_on_parameters():
    def found(a):
        return optimize.minimize(hill, [0.1, 0.1], (beside(A, a) + 1,), bounds=[(None, a / 10), (0.0, None)]).x

    moves = functional.jacobian(found, np.asarray(1.0))
    np.testing.assert_allclose(moves, [0.1, -0.05], 1e-10)  # from 2 (x - a) + 2 (x + bound) = 0 for the second unknown
    assert optimize.fminbound(well, 0.0, gradops.Variable(0.5, requires_grad=True), (1.2,)).data == 0.5
    assert functional.grad(lambda a: optimize.fminbound(well, 0.0, a, (1.2,)))(0.5) == 1.0


def test_constraints():
    """Finds the nearest point of a plane, of a disc, and of a half space whose constraint is inactive."""

    def nearest(a, **more):
        return optimize.minimize(lambda x, a: ops.sum((x - a) ** 2), [0.5, 0.5], (a,), constraints=more, tol=1e-10).x

    def on_plane(a):
        return nearest(a, type="eq", fun=lambda x: x[0] + x[1] - 1)

    def in_disc(a):
        return nearest(a, type="ineq", fun=lambda x: 1 - ops.sum(x**2))

    def in_half(a):
        return nearest(a, type="ineq", fun=lambda x: 10 - x[0])

    np.testing.assert_allclose(functional.jacobian(on_plane, A), np.eye(2) - 0.5, atol=1e-9)
    norm = np.linalg.norm(A)
    expected = (np.eye(2) - np.outer(A, A) / norm**2) / norm
    np.testing.assert_allclose(functional.jacobian(in_disc, A), expected, atol=1e-8)
    np.testing.assert_allclose(functional.jacobian(in_half, A), np.eye(2), atol=1e-8)
    limit = scipy.optimize.LinearConstraint([[1.0, 1.0]], -np.inf, 1.0)

    def linear(a):
        return optimize.minimize(
            lambda x: ops.sum((x - a) ** 2), [0.1, 0.1], constraints=limit, bounds=[(0.3, 0.8), (None, None)]
        ).x

    np.testing.assert_allclose(functional.jacobian(linear, A), np.zeros((2, 2)), atol=1e-8)


def test_single_precision():
    for backend in BACKENDS:
        a = tensors(A.astype("float32"), backend)
        found = functional.grad(total(lambda a: optimize.root(cube, ops.ones_like(a), (a,)).x))(a)
        assert numpy(found).dtype == "float32"
        np.testing.assert_allclose(numpy(found), 2 / 3 * A ** (-1 / 3), 1e-5)


def test_undefined_derivatives():
    for function in (
        lambda a: optimize.bisect(lambda x: (x - a) ** 3, 0.0, 5.0),
        lambda a: optimize.minimize_scalar(lambda x: (x - a) ** 4).x,
        lambda a: optimize.fsolve(lambda x: (x - a) ** 2, [0.5]),
    ):
        with pytest.raises(GradientError, match="has no derivative"):
            functional.grad(lambda a, f=function: ops.sum(f(a)))(2.0)


class Broken(Exception):
    pass


def test_errors():
    def broken(x, *_):
        raise Broken("mine")

    for call in (
        lambda: optimize.brentq(broken, 0, 1),
        lambda: optimize.root(broken, [1.0]),
        lambda: optimize.minimize(broken, [1.0]),
        lambda: optimize.curve_fit(broken, X, Y, p0=[1.0]),
    ):
        with pytest.raises(Broken, match="mine"):
            call()
    with pytest.raises(ArgumentError, match=r"scipy.optimize.brentq.*different signs"):
        optimize.brentq(cube, 3, 5, (1.0,))
    with pytest.raises(ArgumentTypeError, match="`f` must be a function"):
        optimize.brentq(3, 0, 1)
    with pytest.raises(ArgumentTypeError, match="cannot be called"):
        optimize.root(cube, [1.0])
    with pytest.raises(GradientError, match="converge"):
        optimize.newton(lambda x: x**2 + 1, 1.0)
    with pytest.raises(ArgumentError, match="pair for each of the 2"):
        optimize.minimize(hill, A, (A,), bounds=[(0, 1)])
    with pytest.raises(AttributeError, match="jumps from corner"):
        optimize.linprog  # noqa: B018
    with pytest.raises(JitError, match="not known in a compiled function"):
        gradops.jit(CASES["brentq"][0])(np.array(8.0))


def test_errors_in_compilers():
    pytest.importorskip("jax")
    import jax

    for transform in (jax.jit, lambda f: lambda a: jax.vmap(f)(a[None])):
        with pytest.raises(JitError, match="not known in a compiled function"):
            transform(lambda a: optimize.newton(cube, 1.0, args=(a,)))(tensors(np.asarray(8.0), "jax"))
