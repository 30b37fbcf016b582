"""``gradops.scipy.interpolate`` against SciPy, closed forms and differences of the results."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
import scipy.interpolate
import scipy.sparse.linalg
from parity import BACKENDS, numpy, tensors
from scipy_checks import agree, in_programs

import gradops
from gradops import functional, ops
from gradops.errors import ArgumentError, ArgumentTypeError, GradientError, GradopsError, JitError, ShapeError
from gradops.scipy import interpolate

RNG = np.random.default_rng(3)
X = np.cumsum(RNG.uniform(0.4, 1.0, 6))
Y = RNG.normal(size=6)
WIDE = RNG.normal(size=(2, 6))
V = RNG.uniform(X[0], X[-1], 4)
OUT = np.array([X[0] - 0.3, X[2] + 0.1, X[-1] + 0.4])
GRID = np.cumsum(RNG.uniform(0.4, 1.0, 5))
SURFACE = RNG.normal(size=(6, 5))
AT = np.column_stack([V, RNG.uniform(GRID[0], GRID[-1], 4)])
FAR = AT + 1.0
DOWN = GRID[::-1].copy()
POINTS = RNG.normal(size=(9, 2))
NEAR = RNG.normal(size=(3, 2)) * 0.4
KNOTS = np.concatenate([X[0] - [0.7, 0.5, 0.2, 0.01], [X[2] + 0.05], X[-1] + [0.01, 0.3, 0.4, 0.6]])
C = RNG.normal(size=(4, 5))
NINE = RNG.normal(size=9)
PADDED = np.append(Y[:5], [0.0] * 4)
ONE = np.array(0.4)


def on_grid(module, x, p, values, at, method="linear", **settings):
    """Interpolate with exact solves: SciPy iterates, see :func:`test_grid_interpolants_are_products_of_splines`."""
    exact = module is scipy.interpolate and method in ("slinear", "cubic", "quintic")
    solver = {"solver": scipy.sparse.linalg.spsolve} if exact else {}
    return module.RegularGridInterpolator((x, p), values, method, **settings, **solver)(at)


def joined(module, x, first=True):
    """Return a vector whose last element is its first."""
    return (ops if module is interpolate else np).concatenate([x, x[:1]])


CASES = {
    "CubicSpline": [
        (lambda m, x, y, v: m.CubicSpline(x, y)(v), (X, Y, V)),
        (lambda m, x, y, v: m.CubicSpline(x, y, 1, ((1, [0.3, 1.0]), "natural"))(v), (X, WIDE, OUT)),
        (lambda m, x, y, v: m.CubicSpline(x, joined(m, y), bc_type="periodic")(v), (X, Y[:5], OUT)),
        (lambda m, x, y, s: m.CubicSpline(x, y, bc_type=("clamped", (2, s))).integrate(1.0, 2.5), (X, Y, ONE)),
        (lambda m, x, y, v: m.CubicSpline(x, y)(v, 1), (X[:3], Y[:3], V)),
    ],
    "CubicHermiteSpline": [(lambda m, x, y, d, v: m.CubicHermiteSpline(x, y, d)(v, 1), (X, Y, np.cos(Y), V))],
    "PchipInterpolator": [
        (lambda m, x, y, v: m.PchipInterpolator(x, y)(v), (X, Y, V)),
        (lambda m, x, y, v: m.PchipInterpolator(x, y)(v), (X, np.cumsum(Y**2), OUT)),
    ],
    "pchip_interpolate": [(lambda m, x, y, v: m.pchip_interpolate(x, y, v, [0, 1]), (X, Y, V))],
    "Akima1DInterpolator": [
        (lambda m, x, y, v, h=h: m.Akima1DInterpolator(x, y, method=h)(v), (X, Y, V)) for h in ("akima", "makima")
    ],
    "PPoly": [
        (lambda m, c, x, v: m.PPoly(c, x)(v, 1), (C, X, OUT)),
        (lambda m, c, x, v: m.PPoly(c, x, "periodic")(v), (C, X, OUT)),
        (lambda m, c, x: m.PPoly(c, x).integrate(X[1] + 0.1, X[3] + 9.0, "periodic"), (C, X)),
        (lambda m, c, x, v: m.PPoly(c, x).antiderivative(2)(v), (C, X, V)),
        (lambda m, c, x, v: m.PPoly(c, x, axis=1)(v), (np.stack([C, C * 2], 1), X, V)),
        (lambda m, c, x, v: m.PPoly.from_bernstein_basis(m.BPoly(c, x))(v), (C, X, V)),
        (lambda m, c, t, v: m.PPoly.from_spline(m.BSpline(t, c, 3))(v), (Y[:5], KNOTS, V)),
    ],
    "BPoly": [
        (lambda m, c, x, v: m.BPoly(c, x)(v, 1), (C, X, OUT)),
        (lambda m, c, x: m.BPoly(c, x).integrate(X[1] + 0.1, X[3] + 0.2), (C, X)),
        (lambda m, c, x, v: m.BPoly.from_power_basis(m.PPoly(c, x))(v), (C, X, V)),
        (lambda m, x, y, v: m.BPoly.from_derivatives(x, y)(v), (X, np.stack([Y, Y**2, Y], 1), V)),
    ],
    "BSpline": [
        (lambda m, t, c, v: m.BSpline(t, c, 3)(v), (KNOTS, Y[:5], OUT)),
        (lambda m, t, c, v: m.BSpline(t, c, 3, axis=1)(v, 2), (KNOTS, WIDE[:, :5], V)),
        (lambda m, t, c, v: m.BSpline(t, c, 3).derivative()(v), (KNOTS, Y[:5], V)),
        (lambda m, t, c, v: m.BSpline(t, c, 3).antiderivative()(v), (KNOTS, Y[:5], V)),
        (lambda m, t, c: m.BSpline(t, c, 3).integrate(X[1], X[3]), (KNOTS, Y[:5])),
        (lambda m, t, c: m.BSpline(t, c, 3).integrate(X[1], X[3] + 9, "periodic"), (KNOTS, Y[:5])),
        (lambda m, t, v: m.BSpline.basis_element(t)(v), (X[:5], V)),
        (lambda m, t, c, v: m.BSpline(t, c, 3).insert_knot(X[3])(v), (KNOTS, Y[:5], V)),
    ],
    "make_interp_spline": [
        (lambda m, x, y, v, k=k: m.make_interp_spline(x, y, k)(v), (X, Y, V)) for k in (1, 2, 3, 5)
    ]
    + [
        (lambda m, x, y, v: m.make_interp_spline(x, y, bc_type="natural", axis=1)(v), (X, WIDE, V)),
        (lambda m, x, y, s: m.make_interp_spline(x, y, bc_type=([(1, s)], [(2, 0.5)]))(V), (X, Y, ONE)),
        (lambda m, x, y, v: m.make_interp_spline(x, joined(m, y), bc_type="periodic")(v), (X, Y[:5], OUT)),
        (lambda m, x, y, v: m.make_interp_spline(x, joined(m, y), 4, bc_type="periodic")(v), (X, Y[:5], V)),
    ],
    "splrep": [
        (lambda m, x, y, k=k: m.splrep(x, y, k=k)[1], (X, Y)) for k in (1, 2, 3)
    ]
    + [
        (lambda m, x, y, b: m.splrep(x, y, xb=b)[1], (X, Y, X[0] - 0.4)),
        (lambda m, x, y, t, w: m.splrep(x, y, w, t=t)[1], (X, Y, X[2:3] + 0.1, np.linspace(0.5, 2.0, 6))),
        (lambda m, x, y, v: m.splev(v, m.splrep(x, joined(m, y), per=1)), (X, Y[:5], V)),
    ],
    "make_splrep": [(lambda m, x, y, v: m.make_splrep(x, y, k=3)(v), (X, Y, OUT))],
    "splev": [
        (lambda m, t, c, v, e=e: m.splev(v, (t, c, 3), e // 2, e), (KNOTS, PADDED, OUT)) for e in (0, 1, 3)
    ],
    "splint": [(lambda m, t, c: m.splint(X[1], X[5] + 3, (t, c, 3)), (KNOTS, PADDED))],
    "splder": [(lambda m, t, c: m.splder((t, c, 3), 2)[1], (KNOTS, PADDED))],
    "splantider": [(lambda m, t, c: m.splantider((t, c, 3), 2)[1], (KNOTS, PADDED))],
    "spalde": [(lambda m, t, c, v: m.spalde(v, (t, c, 3)), (KNOTS, PADDED, V[3]))],
    "insert": [(lambda m, c: m.insert(X[3] + 0.1, (KNOTS, c, 3))[1][:6], (PADDED,))],
    "sproot": [(lambda m, x, y: m.sproot(m.splrep(x, y)), (X, np.cos(3 * X)))],
    "UnivariateSpline": [
        (lambda m, x, y, v: m.UnivariateSpline(x, y, s=0)(v, 1), (X, Y, OUT)),
        (lambda m, x, y: m.UnivariateSpline(x, y, s=0).integral(X[1], X[3]), (X, Y)),
    ],
    "InterpolatedUnivariateSpline": [
        (lambda m, x, y, v: m.InterpolatedUnivariateSpline(x, y, k=4, ext="zeros")(v), (X, Y, OUT)),
        (lambda m, x, y, v: m.InterpolatedUnivariateSpline(x, y).antiderivative().derivative(2)(v), (X, Y, V)),
    ],
    "LSQUnivariateSpline": [
        (lambda m, x, y, t, w: m.LSQUnivariateSpline(x, y, t, w)(V), (X, Y, X[2:3] + 0.1, np.linspace(0.5, 2.0, 6))),
        (lambda m, x, y, t: m.LSQUnivariateSpline(x, y, t).get_residual(), (X, Y, X[2:3] + 0.1)),
    ],
    "make_lsq_spline": [
        (lambda m, x, y, t, w: m.make_lsq_spline(x, y, t, 3, w)(V), (X, Y, KNOTS, np.linspace(0.5, 2.0, 6))),
    ],
    "make_smoothing_spline": [
        (lambda m, x, y, w: m.make_smoothing_spline(x, y, w, 0.3)(V), (X, Y, np.linspace(0.5, 2.0, 6))),
    ],
    "interp1d": [
        (lambda m, x, y, v, how=how: m.interp1d(x, y, how, bounds_error=False, fill_value=(1.0, 2.0))(v), (X, Y, OUT))
        for how in ("linear", "nearest", "nearest-up", "previous", "next", "zero", "slinear", "quadratic", "cubic")
    ]
    + [(lambda m, x, y, v: m.interp1d(x, y, axis=1, fill_value="extrapolate")(v), (X[::-1].copy(), WIDE, OUT))],
    "BarycentricInterpolator": [
        (lambda m, x, y, v: m.BarycentricInterpolator(x, y)(v), (X, Y, V)),
        (lambda m, x, y: m.BarycentricInterpolator(x, y).derivative(X[2] + 0.1), (X, Y)),
    ],
    "barycentric_interpolate": [
        (lambda m, x, y, v: m.barycentric_interpolate(x, y, v, 1, der=[0, 1]), (X, WIDE, V)),
    ],
    "KroghInterpolator": [
        (lambda m, x, y, v: m.KroghInterpolator(x, y)(v), (X, Y, V)),
        (lambda m, y, v: m.KroghInterpolator([0.5, 0.5, 1.0, 2.0, 2.0, 2.0], y).derivative(v), (Y, V)),
    ],
    "krogh_interpolate": [(lambda m, x, y, v: m.krogh_interpolate(x, y, v, [0, 2], 1), (X, WIDE, V))],
    "RegularGridInterpolator": [
        (lambda m, x, p, z, at, how=how: on_grid(m, x, p, z, at, how), (X, GRID, SURFACE, AT))
        for how in ("linear", "nearest", "slinear", "cubic")
    ]
    + [
        (lambda m, x, p, z, at: on_grid(m, x, p, z, at, "pchip"), (X, GRID, np.cumsum(SURFACE**2, 0), AT)),
        (lambda m, x, z, at: m.RegularGridInterpolator((x,), z, "quintic")(at), (X, SURFACE, V)),
        (lambda m, x, p, z, at: on_grid(m, x, p, z, at, bounds_error=False, fill_value=0.5), (X, DOWN, SURFACE, FAR)),
    ],
    "interpn": [
        (lambda m, x, p, z, at: m.interpn((x, p), z, (at[:, 0], at[:, 1])), (X, GRID, SURFACE, AT)),
        (lambda m, x, p, z, at: m.interpn((x, p), z, at, "splinef2d"), (X, GRID, SURFACE, AT)),
    ],
    "RBFInterpolator": [
        (lambda m, y, d, x, k=k: m.RBFInterpolator(y, d, None, 0.1, k, 1.2)(x), (POINTS, NINE, NEAR))
        for k in ("linear", "thin_plate_spline", "cubic", "quintic", "multiquadric", "inverse_multiquadric",
                  "inverse_quadratic", "gaussian")
    ]
    + [(lambda m, y, d, x: m.RBFInterpolator(y, d, 6)(x), (POINTS, RNG.normal(size=9), NEAR))],
    "LinearNDInterpolator": [
        (lambda m, d, x: m.LinearNDInterpolator(POINTS, d, 0.5)(x), (RNG.normal(size=(9, 2)), NEAR)),
    ],
    "NearestNDInterpolator": [(lambda m, d, x: m.NearestNDInterpolator(POINTS, d)(x), (RNG.normal(size=9), NEAR))],
    "griddata": [
        (lambda m, p, d, x: m.griddata(p, d, x), (POINTS, RNG.normal(size=9), NEAR)),
        (lambda m, p, d, x: m.griddata(p, d, x, "cubic"), (X, Y, V)),
    ],
}  # fmt: skip
LOOKS = {"insert", "sproot", "LinearNDInterpolator", "NearestNDInterpolator", "griddata"}
"""Functions whose calls depend on values."""
OF_OTHERS = set(
    "Akima1DInterpolator CubicHermiteSpline InterpolatedUnivariateSpline LSQUnivariateSpline PchipInterpolator"
    " UnivariateSpline barycentric_interpolate interpn krogh_interpolate make_lsq_spline make_smoothing_spline"
    " make_splrep pchip_interpolate spalde splantider splder splev splint splrep".split()
)
"""Functions implemented differently here: the short suite checks every backend and second derivatives."""


def test_each_name_has_a_case():
    assert set(CASES) == set(interpolate.__all__)
    assert set(interpolate.scattered.KERNELS) == set(scipy.interpolate._rbfinterp._AVAILABLE)


PROGRAMS = {
    "CubicSpline": (lambda x, y, v: interpolate.CubicSpline(x, y)(v), (X, Y, V)),
    "KroghInterpolator": (lambda x, y, v: interpolate.KroghInterpolator(x, y)(v), (X, Y, V)),
    "RBFInterpolator": (lambda p, d, v: interpolate.RBFInterpolator(p, d)(v), (POINTS, NINE, NEAR)),
    "RegularGridInterpolator": (
        lambda z, at: interpolate.RegularGridInterpolator((X, GRID), z, bounds_error=False)(at),
        (SURFACE, AT),
    ),
}


NUMBERED = [(name, i) for name, cases in CASES.items() for i in range(len(cases))]


@pytest.mark.short_cases(50)
@pytest.mark.parametrize(
    ("name", "number", "whole"),
    [(name, i, i == 0 and name not in OF_OTHERS) for name, i in NUMBERED]
    + [pytest.param(name, 0, "all", marks=pytest.mark.long) for name in sorted(OF_OTHERS | {*PROGRAMS})],
)
def test_values_and_derivatives(name, number, whole):
    function, arrays = CASES[name][number]
    looks = name in LOOKS or "insert_knot" in inspect.getsource(function) or (name, number) == ("RBFInterpolator", 8)
    each = (whole == "all" or whole and name not in PROGRAMS) and not looks  # those are checked in `test_programs`
    agree(
        lambda *xs: function(interpolate, *xs),
        lambda *xs: function(scipy.interpolate, *xs),
        *arrays,
        over=BACKENDS if each else [b for b in ("numpy", "torch") if b in BACKENDS],
        second=name not in ("make_lsq_spline", "make_smoothing_spline", "LSQUnivariateSpline") and whole,
        compiled=not looks,
        rtol=1e-8,
        gradient_rtol=3e-6,
    )


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "compiled"),
    [(name, name == "KroghInterpolator") for name in PROGRAMS]
    + [pytest.param(name, True, marks=pytest.mark.long) for name in PROGRAMS if name != "KroghInterpolator"],
)
def test_programs(name, compiled):
    """``torch.compile`` takes ten seconds per spline."""
    function, arrays = PROGRAMS[name]
    in_programs(lambda *xs: ops.sum(function(*xs) ** 2), *arrays, compiled=None if compiled else False, rtol=1e-7)


@pytest.mark.long
def test_sites_of_unknown_length_in_a_graph():
    tf = pytest.importorskip("tensorflow")

    def total(x, y):
        steep = interpolate.BPoly.from_derivatives(x[:2], ops.stack([y, y], 1)[:2])(1.0)
        return interpolate.UnivariateSpline(x, y, k=1, s=0)(1.0) * steep

    np.testing.assert_allclose(tf.function(total)(tf.constant(X), tf.constant(Y)), total(X, Y))


@pytest.mark.parametrize("bc_type", ["not-a-knot", "clamped", "natural", "periodic"])
@pytest.mark.parametrize("count", [2, 3, 4, 7])
def test_few_sites(bc_type, count):
    x, y = np.arange(count) ** 1.5, np.cos(np.arange(count))
    y[-1] = y[0] if bc_type == "periodic" else y[-1]
    for module in ("CubicSpline", "make_interp_spline"):
        if module == "CubicSpline" or count > 3:
            ours, theirs = (getattr(m, module)(x, y, bc_type=bc_type) for m in (interpolate, scipy.interpolate))
            np.testing.assert_allclose(ours.c, theirs.c, 1e-10, 1e-12)


def test_interpolation_at_a_site():
    """At a site the interpolating polynomial is smooth, and so are its derivatives."""
    slope = functional.grad(lambda v: interpolate.BarycentricInterpolator(X, Y)(v))
    exact = interpolate.KroghInterpolator(X, Y)
    np.testing.assert_allclose(slope(X[2]), exact.derivative(X[2]))
    np.testing.assert_allclose(functional.grad(slope)(X[2]), exact.derivative(X[2], 2))
    spline = interpolate.CubicSpline(X, Y)
    np.testing.assert_allclose(functional.grad(spline)(X[2]), spline(X[2], 1))
    smooth = interpolate.RBFInterpolator(POINTS, NINE, kernel="cubic")
    bend = functional.hessian(lambda v: ops.sum(smooth(v)), POINTS[:1])
    assert np.isfinite(bend).all()


def test_gradients_of_triangulated_points():
    def value(p):
        return ops.sum(interpolate.LinearNDInterpolator(p, NINE, 0.0)(NEAR) ** 2)

    found = functional.grad(value)(POINTS)
    for i, j in ((0, 0), (3, 1), (5, 0)):
        step = np.zeros_like(POINTS)
        step[i, j] = 1e-6
        np.testing.assert_allclose(found[i, j], (value(POINTS + step) - value(POINTS - step)) / 2e-6, 1e-5, 1e-8)


def test_roots():
    def roots(c):
        return interpolate.PPoly(c, X).roots(discontinuity=False, extrapolate=False)

    np.testing.assert_allclose(roots(C), scipy.interpolate.PPoly(C, X).roots(False, False))
    y = np.array([-1.0, 0.5, 2.0, 1.0, -1.0, -2.0])

    def first(y):
        return interpolate.CubicSpline(X, y).roots(extrapolate=False)[0]

    found, second = functional.grad(first)(y), functional.hessian(first, y)
    for i in range(6):
        step = np.eye(6)[i] * 1e-6
        np.testing.assert_allclose(found[i], (first(y + step) - first(y - step)) / 2e-6, 1e-5, 1e-8)
        change = (functional.grad(first)(y + step) - functional.grad(first)(y - step)) / 2e-6
        np.testing.assert_allclose(second[i], change, 1e-4, 1e-6)
    with pytest.raises(JitError):
        gradops.jit(roots)(C)


def test_roots_have_no_wrong_derivative():
    """Series of every order match the quadratic formula; a fourth derivative is an error."""

    def found(a):
        return interpolate.PPoly([[a], [0.3], [-0.4]], [0.0, 1.0]).roots(extrapolate=False)[0]

    def formula(a):
        return (ops.sqrt(0.09 + 1.6 * a) - 0.3) / (2 * a)

    along = ([1.0, 0.0, 0.0, 0.0, 0.0],)
    np.testing.assert_allclose(functional.jet(found, (1.0,), along)[1], functional.jet(formula, (1.0,), along)[1])
    with pytest.raises(GradientError, match="order above 3"):
        functional.grad(functional.grad(functional.grad(functional.grad(found))))(1.0)


def test_objects_can_be_extended():
    for module in ("PPoly", "BPoly"):
        for x in (X[-1] + np.array([0.5, 1.0]), X[0] - np.array([1.0, 0.5])):
            ours, theirs = (getattr(m, module)(C, X) for m in (interpolate, scipy.interpolate))
            more = C[: 2 if x[0] > X[0] else 4, :2]  # SciPy cannot prepend pieces of lower degree
            ours.extend(more, x)
            theirs.extend(more, x)
            np.testing.assert_allclose(ours.c, theirs.c)
            np.testing.assert_allclose(ours.x, theirs.x)
    grown = interpolate.BarycentricInterpolator(X[:4], Y[:4])
    grown.add_xi(X[4:], Y[4:])
    np.testing.assert_allclose(grown(V), scipy.interpolate.BarycentricInterpolator(X, Y)(V))


def test_design_matrix():
    found = interpolate.BSpline.design_matrix(V, KNOTS, 3)
    np.testing.assert_allclose(found, scipy.interpolate.BSpline.design_matrix(V, KNOTS, 3).toarray(), 1e-12, 1e-14)


def test_complex_values():
    y = Y + 1j * np.sin(X)
    for name in ("CubicSpline", "make_interp_spline", "KroghInterpolator"):
        ours, theirs = (getattr(m, name)(X, y) for m in (interpolate, scipy.interpolate))
        np.testing.assert_allclose(ours(V), theirs(V), 1e-9)


def test_smoothing_by_cross_validation():
    ours, theirs = (m.make_smoothing_spline(X, Y) for m in (interpolate, scipy.interpolate))
    np.testing.assert_array_equal(ours.c, theirs.c)
    with pytest.raises(ArgumentTypeError, match="known numbers"):
        functional.grad(lambda y: interpolate.make_smoothing_spline(X, y)(1.0))(Y)


@pytest.mark.short_cases(0, "jax")
@pytest.mark.parametrize("backend", BACKENDS)
def test_single_precision(backend):
    x, y, v = (tensors(z.astype("float32"), backend) for z in (X, Y, V))
    for made in (interpolate.CubicSpline, interpolate.make_interp_spline, interpolate.KroghInterpolator):
        found = made(x, y)(v)
        assert numpy(found).dtype == "float32"
        np.testing.assert_allclose(numpy(found), made(X, Y)(V), 2e-4)


ERRORS = [
    (lambda: interpolate.CubicSpline(X[::-1], Y), ArgumentError, "strictly increasing"),
    (lambda: interpolate.CubicSpline(X, Y[:4]), ShapeError, "as many as there are sites"),
    (lambda: interpolate.CubicSpline(X, Y, bc_type="free"), ArgumentError, "`bc_type` must be one of"),
    (lambda: interpolate.CubicSpline(X, Y, bc_type="periodic"), ArgumentError, "must be equal"),
    (lambda: interpolate.CubicSpline(X, Y)(1.0, -1), ArgumentError, "`nu` must be at least 0"),
    (lambda: interpolate.PPoly(C, X[:3]), ShapeError, "one more than `c` has pieces"),
    (lambda: interpolate.BSpline(KNOTS, Y[:3], 3), ShapeError, "coefficients"),
    (lambda: interpolate.BSpline(KNOTS, Y[:5], 3).derivative(4), ArgumentError, "at most the degree"),
    (lambda: interpolate.make_interp_spline(X, Y, 2.5), ArgumentTypeError, "`k` must be a whole number; got 2.5"),
    (lambda: interpolate.make_interp_spline(X, Y, 3.0)(X, -1.0), ArgumentError, "`nu` must be at least 0; got -1.0"),
    (lambda: interpolate.make_interp_spline(X[:3], Y[:3]), ArgumentError, "at least 4 sites"),
    (lambda: interpolate.interp1d(X, Y)(X[0] - 1), ArgumentError, "below the range"),
    (lambda: interpolate.interp1d(X, Y, "smooth"), ArgumentError, "`kind` must be one of"),
    (lambda: interpolate.KroghInterpolator([1.0, 2.0, 1.0], Y[:3]), ArgumentError, "next to each other"),
    (lambda: interpolate.BarycentricInterpolator([1.0, 2.0, 1.0], Y[:3]), ArgumentError, "must differ"),
    (lambda: interpolate.RegularGridInterpolator((X, GRID), SURFACE)(AT + 9), ArgumentError, "beyond the grid"),
    (lambda: interpolate.RBFInterpolator(POINTS, NINE, kernel="gaussian"), ArgumentError, "`epsilon` must be given"),
    (lambda: interpolate.LinearNDInterpolator(np.ones((4, 2)), NINE[:4]), ArgumentError, "no triangulation"),
    (lambda: interpolate.griddata(POINTS, NINE, NEAR, "cubic"), ArgumentError, "RBFInterpolator"),
    (lambda: interpolate.UnivariateSpline(X, Y), ArgumentError, "`s` must be 0; got 6: FITPACK chooses the knots"),
    (lambda: interpolate.splrep(X, Y, Y * Y), ArgumentError, "make_smoothing_spline"),
    (lambda: interpolate.splrep(X, Y, k=6), ArgumentError, "`k` must be at most 5"),
    (lambda: interpolate.splev(9.0, interpolate.splrep(X, Y), 0, 2), ArgumentError, "between the ends"),
    (lambda: interpolate.splprep, AttributeError, "make_interp_spline"),
]


@pytest.mark.parametrize(("call", "kind", "words"), ERRORS)
def test_errors(call, kind, words):
    with pytest.raises(kind, match=words) as found:
        call()
    assert isinstance(found.value, (GradopsError, AttributeError))


def test_grid_interpolants_are_products_of_splines():
    """SciPy's iterative solver is accurate to 1e-6 of the right-hand side's norm only."""
    steep = 100 * SURFACE
    rows = scipy.interpolate.make_interp_spline(X, steep)(AT[:, 0])
    want = [scipy.interpolate.make_interp_spline(GRID, row)(at) for row, at in zip(rows, AT[:, 1])]
    ours, theirs = (
        module.RegularGridInterpolator((X, GRID), steep, "cubic")(AT) for module in (interpolate, scipy.interpolate)
    )
    np.testing.assert_allclose(ours, want, 1e-11, 1e-10)
    np.testing.assert_allclose(ours, theirs, 1e-3, 1e-2)


def test_derivatives_by_an_inserted_knot_and_by_a_level():
    tck = scipy.interpolate.splrep(np.arange(7.0), [0.0, 1.0, 2.0, 1.0, 0.0, 3.0, 1.0])
    pieces = scipy.interpolate.PPoly.from_spline(tck)
    agree(
        lambda x: [part[:8] for part in interpolate.insert(x, tck, m=2)[:2]],
        lambda x: [part[:8] for part in scipy.interpolate.insert(float(x), tck, m=2)[:2]],
        np.array(1.6),
        over=("numpy", "torch"),
        compiled=False,
    )
    agree(
        lambda y: interpolate.PPoly(pieces.c, pieces.x).solve(y),
        lambda y: pieces.solve(float(y)),
        np.array(0.7),
        over=("numpy", "torch"),
        compiled=False,
    )


def test_knots_that_sites_do_not_determine_are_refused():
    x = np.linspace(0, 10, 11)
    for t in ([3.0, 5.0], [2.5], [1.1, 1.2, 1.3, 1.4], np.arange(1.0, 10.0), [1.0, 1.0, 1.0, 1.0, 5.0]):
        try:
            want = scipy.interpolate.LSQUnivariateSpline(x, np.sin(x), t)(2.5)
        except ValueError:
            with pytest.raises(ArgumentError, match="Schoenberg"):
                interpolate.LSQUnivariateSpline(x, np.sin(x), t)
        else:
            np.testing.assert_allclose(interpolate.LSQUnivariateSpline(x, np.sin(x), t)(2.5), want, rtol=1e-10)
