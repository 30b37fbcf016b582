"""Second derivatives where a root of squares is 0 are correct or NaN, never the 0 of a lost factor.

The first derivative there is 0, the subgradient of least norm. The chain rule gives 0 times infinity for the second
derivative of ``f(norm(x))``: NaN, whatever ``f`` is. Oracles are closed forms and finite differences.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.ndimage
from parity import BACKENDS, differentiated, numpy, on, results_function
from test_parity import CASES, by_id

import gradops
import gradops.numpy as gnp
from gradops import functional, ops
from gradops.scipy import linalg, ndimage, stats
from gradops.scipy.interpolate import RBFInterpolator
from gradops.scipy.spatial import distance, distance_matrix, minkowski_distance

ZEROS, ONES, MATRIX = np.zeros(3), np.ones(3), np.zeros((2, 2))
POINT = np.array([1.0, 2.0, 3.0])
SPREAD = np.eye(3) - 1 / 3
"""1.5 times the Hessian of the variance of three numbers."""
SLOPE = scipy.ndimage.gaussian_filter1d(np.eye(3), 1.0, 0, 1)[1]
"""The Gaussian derivative at the second of three numbers, as a linear function of them."""
METRIC = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 3.0]])


def rows(x, y):
    return ops.expand_dims(x, 0), ops.reshape(y, (1, -1)) if hasattr(y, "shape") else y


LENGTHS = {
    # a function that is 0 at a point, the point, and the Hessian of the squared function there
    "norm": (ops.norm, ZEROS, 2 * np.eye(3)),
    "norm of an axis": (lambda x: ops.sum(ops.norm(x, axis=0)), np.zeros((3, 1)), 2 * np.eye(3)),
    "norm 2 of vectors": (lambda x: ops.norm(x, 2), ZEROS, 2 * np.eye(3)),
    "Frobenius": (lambda x: ops.norm(x, "fro"), MATRIX, 2 * np.eye(4)),
    "norm 3": (lambda x: ops.norm(x, 3), ZEROS, None),
    "norm 1.5": (lambda x: ops.norm(x, 1.5), ZEROS, None),
    "nuclear": (lambda x: ops.norm(x, "nuc"), MATRIX, None),
    "spectral": (lambda x: ops.norm(x, 2), MATRIX, None),
    "complex norm": (lambda x: ops.norm(ops.view_as_complex(x)), np.zeros((2, 2)), 2 * np.eye(4)),
    "complex abs": (lambda x: ops.abs(ops.view_as_complex(x)), np.zeros(2), 2 * np.eye(2)),
    "hypot": (lambda x: ops.hypot(x[0], x[1]), np.zeros(2), 2 * np.eye(2)),
    "std": (ops.std, ONES, 2 / 3 * SPREAD),
    "nanstd": (ops.nanstd, ONES, 2 / 3 * SPREAD),
    "cdist": (lambda x: ops.cdist(ops.reshape(x, (1, 3)), POINT[None])[0, 0], POINT, 2 * np.eye(3)),
    "scipy.linalg.norm": (linalg.norm, ZEROS, 2 * np.eye(3)),
    "euclidean": (lambda x: distance.euclidean(x, POINT), POINT, 2 * np.eye(3)),
    "weighted": (lambda x: distance.euclidean(x, POINT, np.array([1.0, 2.0, 0.0])), POINT, np.diag([2.0, 4.0, 0.0])),
    "seuclidean": (lambda x: distance.seuclidean(x, POINT, np.array([1.0, 2.0, 4.0])), POINT, np.diag([2.0, 1.0, 0.5])),
    "mahalanobis": (lambda x: distance.mahalanobis(x, POINT, METRIC), POINT, 2 * METRIC),
    "minkowski": (lambda x: distance.minkowski(x, POINT, 3), POINT, None),
    "minkowski 1.5": (lambda x: distance.minkowski(x, POINT, 1.5), POINT, None),
    "jensenshannon": (lambda x: distance.jensenshannon(x, POINT), POINT, (np.diag(6 / POINT) - 1) / 144),
    "scipy cdist": (lambda x: distance.cdist(ops.reshape(x, (1, 3)), POINT[None])[0, 0], POINT, 2 * np.eye(3)),
    "pdist": (lambda x: distance.pdist(ops.stack([x, ops.stop_gradient(x)]))[0], POINT, 2 * np.eye(3)),
    "distance_matrix": (lambda x: distance_matrix(ops.reshape(x, (1, 3)), POINT[None])[0, 0], POINT, 2 * np.eye(3)),
    "minkowski_distance": (lambda x: minkowski_distance(x, POINT), POINT, 2 * np.eye(3)),
    "hausdorff": (
        lambda x: distance.directed_hausdorff(ops.reshape(x, (1, 3)), POINT[None])[0],
        POINT,
        2 * np.eye(3),
    ),
    "tstd": (stats.tstd, ONES, SPREAD),
    "circstd": (stats.circstd, ZEROS, 2 / 3 * SPREAD),
    "gaussian_gradient_magnitude": (
        lambda x: ndimage.gaussian_gradient_magnitude(x, 1.0)[1],
        ZEROS,
        2 * np.outer(SLOPE, SLOPE),
    ),
    "standard_deviation": (lambda x: ndimage.standard_deviation(x), ONES, 2 / 3 * SPREAD),
}
NUMPYS = {
    "gradops.numpy.linalg.norm": (gnp.linalg.norm, ZEROS),
    "numpy.linalg.norm": (np.linalg.norm, ZEROS),
    "numpy.hypot": (lambda x: np.hypot(x[0], x[1]), np.zeros(2)),
    "numpy.std": (np.std, ONES),
    "gradops.numpy.std": (gnp.std, ONES),
    "numpy.abs": (lambda x: np.abs(x[0] + 1j * x[1]), np.zeros(2)),
}
SQUARED = {
    "square": lambda y: ops.square(y),
    "power": lambda y: y**2,
    "product": lambda y: y * y,
    "squared exponential": lambda y: 1 - ops.exp(-y * y),
    "Matern 5/2": lambda y: 1.2 - (1 + 5**0.5 * y + 5 / 3 * y * y) * ops.exp(-(5**0.5) * y),
}


def flat(x) -> np.ndarray:
    return np.asarray(numpy(x)).reshape(-1)


def is_undefined(h) -> None:
    """Check for NaN on the diagonal: the function has a kink in some direction."""
    h = np.asarray(numpy(h), float)
    size = int(h.size**0.5)
    assert np.isnan(np.diagonal(h.reshape(size, size))).any(), h
    assert np.isnan(h[np.nonzero(h)]).all(), h


def is_right_or_nan(h, want) -> None:
    h = np.asarray(numpy(h), float).reshape(np.shape(want))
    assert np.isnan(h[~np.isclose(h, want, rtol=1e-9, atol=1e-12)]).all(), (h, want)


def is_right(h, want, backend: str) -> None:
    """Check for the exact result on variables, which record a square as a sum of squares; libraries may give NaN."""
    if backend == "numpy":
        np.testing.assert_allclose(np.reshape(numpy(h), np.shape(want)), want, rtol=1e-9, atol=1e-12)
    else:
        is_right_or_nan(h, want)


def hessian(f, x, how: str):
    if how == "compiled":
        return gradops.jit(lambda x: functional.hessian(f, x))(x)
    return functional.hessian(f, x, outer_jacobian_strategy=how)


@pytest.mark.short_cases(1, "jax")
@pytest.mark.short_cases(2, "tensorflow")
@pytest.mark.parametrize("how", ["reverse-mode", "forward-mode", "compiled"])
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", LENGTHS)
def test_first_derivatives_are_0_and_second_ones_correct_or_nan(name, backend, how):
    if how == "compiled" and backend == "torch":
        pytest.skip("torch.compile has no second derivatives")
    f, x, want = LENGTHS[name]
    x = on(backend, x)
    if name not in ("nuclear", "spectral"):  # undefined for some libraries, which use singular vectors
        np.testing.assert_array_equal(flat(gradops.grad(f)(x)), 0.0)
    is_undefined(hessian(f, x, how))
    squares = hessian(lambda x: f(x) ** 2, x, how)
    is_undefined(squares) if want is None else is_right(squares, want, backend)


@pytest.mark.short_cases(1, "jax")
@pytest.mark.short_cases(2, "tensorflow")
@pytest.mark.parametrize("squared", SQUARED)
@pytest.mark.parametrize("backend", BACKENDS)
def test_smooth_functions_of_a_norm(backend, squared):
    """The second derivative of ``f(norm(x))`` with ``f'(0) = 0`` is ``f''(0)``; NaN is accepted."""
    want = {"Matern 5/2": 5 / 3}.get(squared, 2.0) * np.eye(3)
    for how in ("reverse-mode", "forward-mode"):
        h = hessian(lambda x: SQUARED[squared](ops.norm(x)), on(backend, ZEROS), how)
        is_right_or_nan(h, want) if squared == "Matern 5/2" else is_right(h, want, backend)


@pytest.mark.parametrize("name", NUMPYS)
def test_numpy_functions(name):
    f, x = NUMPYS[name]
    is_undefined(functional.hessian(f, x))
    want = 2 / 3 * SPREAD if "std" in name else 2 * np.eye(x.size)
    for square in (lambda y: y**2, lambda y: y * y, np.square, lambda y: np.power(y, 2.0)):
        is_right(functional.hessian(lambda x, square=square: square(f(x)), x), want, "numpy")


@pytest.mark.parametrize("backend", BACKENDS)
def test_products_in_each_mode(backend):
    """Covers forward over forward, reverse over forward, Hessian products and Taylor mode."""
    x, t = on(backend, ZEROS), on(backend, POINT)
    square = lambda x: ops.norm(x) ** 2  # noqa: E731
    along = lambda s: square(x + s * t)  # noqa: E731
    slope = lambda x: functional.jvp(square, (x,), (t,))[1]  # noqa: E731
    np.testing.assert_array_equal(flat(slope(x)), 0.0)
    is_right(functional.jvp(slope, (x,), (t,))[1], 28.0, backend)
    is_right(gradops.grad(slope)(x), 2 * POINT, backend)
    is_right(functional.hvp(square, x, t)[1], 2 * POINT, backend)
    is_right(gradops.grad(gradops.grad(along))(on(backend, 0.0)), 28.0, backend)
    is_right(gradops.grad(gradops.grad(gradops.grad(along)))(on(backend, 0.0)), 0.0, backend)
    if backend == "numpy":
        series = functional.jet(square, (x,), ([t, 0 * t],))[1]
        assert series[0] == 0 and np.isnan(series[1])


@pytest.mark.parametrize("backend", BACKENDS)
def test_nonzero_rows_keep_their_derivatives(backend):
    x = np.array([[0.0, 0.0], [3.0, 4.0]])
    f = lambda x: ops.sum(ops.norm(x, axis=1) ** 2)  # noqa: E731
    for how in ("reverse-mode", "forward-mode"):
        h = np.asarray(numpy(hessian(f, on(backend, x), how)))
        is_right(h[0, :, 0], 2 * np.eye(2), backend)
        np.testing.assert_allclose(h[1, :, 1], 2 * np.eye(2), atol=1e-12)
        np.testing.assert_array_equal(h[0, :, 1], 0.0)


SCALED = {
    # squares of products with a norm, and of elements of norms
    "quotient": lambda x: (ops.norm(x[:2]) / x[2]) ** 2,
    "multiple": lambda x: ops.square(3 * ops.norm(x[:2]) / x[2] / 3),
    "negative": lambda x: -(lambda y: -y * y)(ops.norm(x[:2])) / x[2] ** 2,
    "product": lambda x: (lambda y: 3 * y * y / 3)(ops.norm(x[:2] / x[2])),
    "element": lambda x: (ops.norm(ops.reshape(x[:2] / x[2], (1, 2)), axis=1)[0]) ** 2,
    "absolute value": lambda x: ops.sum(ops.abs(x[:2]) ** 2) / x[2] ** 2,
    "product of absolute values": lambda x: ops.sum(ops.abs(x[:2]) * ops.abs(x[:2])) / x[2] ** 2,
    "NumPy's": lambda x: np.sum((np.abs(x[:2]) / x[2]) ** 2),
}


@pytest.mark.parametrize("how", ["reverse-mode", "forward-mode", "compiled"])
@pytest.mark.parametrize("name", SCALED)
def test_squares_of_products(name, how):
    want = np.diag([0.5, 0.5, 0.0])
    np.testing.assert_allclose(hessian(SCALED[name], np.array([0.0, 0.0, 2.0]), how), want, atol=1e-12)
    x = np.array([0.3, -0.4, 2.0])
    smooth = hessian(lambda x: (x[0] * x[0] + x[1] * x[1]) / (x[2] * x[2]), x, how)
    np.testing.assert_allclose(hessian(SCALED[name], x, how), smooth, rtol=1e-12)


@pytest.mark.parametrize("backend", BACKENDS)
def test_squares_of_absolute_values(backend):
    """2 on variables; 0 on library tensors, as in PyTorch: stated in docs/differences.md."""
    want = 2.0 if backend == "numpy" else 0.0
    for square in (lambda y: y**2, lambda y: y * y, ops.square):
        h = hessian(lambda x, square=square: ops.sum(square(ops.abs(x))), on(backend, ZEROS), "reverse-mode")
        np.testing.assert_array_equal(numpy(h), want * np.eye(3))


def test_gradient_of_a_square_itself():
    """The square is a separate operation; its gradient does not include what the norm receives."""
    x = gradops.Variable(np.array([3.0, 4.0]), requires_grad=True)
    y = ops.norm(x)
    z = y**2
    z.retain_grad()
    (z + 5 * y).backward()
    assert z.grad.data == 1.0
    np.testing.assert_allclose(x.grad.data, 2 * x.data + x.data, rtol=1e-15)


@pytest.mark.short_cases(1, "jax")
@pytest.mark.short_cases(1, "tensorflow")
@pytest.mark.parametrize("how", ["reverse-mode", "forward-mode"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_direction_that_does_not_move_a_point_has_derivatives(backend, how):
    """The distance of a point to itself is 0 for every length scale, so kernels keep their Hessians in the scale."""
    points = on(backend, np.array([[0.0, 1.0], [2.0, 0.5], [-1.0, 0.3]]))

    def kernel(log_scale, squares):
        z = points / ops.exp(log_scale)
        if squares:
            return ops.sum(ops.exp(-0.5 * distance.cdist(z, z, "sqeuclidean")))
        return ops.sum(ops.exp(-0.5 * ops.cdist(z, points / ops.exp(log_scale)) ** 2))

    def deviation(x):
        return ops.std(ops.stack([x[0] + x[1], x[0] + x[1]]))

    scales = on(backend, [0.3, -0.2])
    got = hessian(lambda s: kernel(s, False), scales, how)
    want = hessian(lambda s: kernel(s, True), scales, how)
    np.testing.assert_allclose(numpy(got), numpy(want), rtol=1e-9)
    np.testing.assert_array_equal(numpy(hessian(deviation, on(backend, [1.0, 2.0]), how)), 0.0)


@pytest.mark.parametrize("backend", BACKENDS)
def test_variances_of_equal_complex_numbers_are_smooth(backend):
    want = np.kron(2 / 3 * SPREAD, np.eye(2))
    for f in (ops.var, ops.nanvar):
        h = functional.hessian(lambda x, f=f: f(ops.view_as_complex(x)), on(backend, np.ones((3, 2))))
        np.testing.assert_allclose(np.asarray(numpy(h)).reshape(6, 6), want, atol=1e-12)


@pytest.mark.parametrize("backend", BACKENDS)
def test_circular_variance_of_equal_angles(backend):
    """For small angles it is half their variance; the mean's length of 1 is an upper bound, not a tie."""
    np.testing.assert_allclose(numpy(functional.hessian(stats.circvar, on(backend, ZEROS))), SPREAD / 3, atol=1e-12)


@pytest.mark.short_cases(1, "jax")
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("kernel", ["linear", "thin_plate_spline", "cubic", "gaussian"])
def test_radial_functions_at_their_nodes(backend, kernel):
    """``-r`` and ``r**2 * log(r)`` have no second derivative there; ``r**3`` and ``exp(-r**2)`` have one."""
    values = RBFInterpolator([[0.0], [1.0]], on(backend, [1.0, 3.0]), kernel=kernel, epsilon=1.0)
    f = lambda x: values(ops.reshape(x, (1, 1)))[0]  # noqa: E731
    second = flat(gradops.grad(gradops.grad(f))(on(backend, 0.0)))
    assert np.isnan(second).all() if kernel in ("linear", "thin_plate_spline") else np.isfinite(second).all()


@pytest.mark.parametrize("compiled", [None, pytest.param(False, marks=pytest.mark.long), True])
def test_tensorflow_tapes_around_graphs(compiled):
    tf = pytest.importorskip("tensorflow")
    f = lambda x: ops.norm(x, axis=-1) ** 2  # noqa: E731
    f, x = f if compiled is None else tf.function(f, jit_compile=compiled), on("tensorflow", np.zeros((2, 3)))
    with tf.GradientTape() as outer, tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)) as forward:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = f(x)
        g = inner.gradient(y, x)
    np.testing.assert_array_equal(numpy(g), 0.0)
    np.testing.assert_array_equal(numpy(forward.jvp(y)), 0.0)
    assert np.isnan(numpy(outer.gradient(g, x))).all() and np.isnan(numpy(forward.jvp(g))).all()


@pytest.mark.short_cases(1, "jax")
@pytest.mark.parametrize("inner", ["jacfwd", "jacrev"])
@pytest.mark.parametrize("outer", ["jacfwd", "jacrev"])
@pytest.mark.parametrize("backend", [name for name in BACKENDS if name in ("torch", "jax")])
def test_library_transformations(backend, outer, inner):
    if backend == "torch":
        from torch import func as library
    else:
        import jax as library
    f = lambda x: ops.norm(x) ** 2  # noqa: E731
    second = getattr(library, outer)(getattr(library, inner)(f))
    assert np.isnan(numpy(second(on(backend, ZEROS)))).all()
    rows = library.vmap(second)(on(backend, np.array([[0.0, 0.0], [3.0, 4.0]])))
    assert np.isnan(numpy(rows[0])).all()
    np.testing.assert_allclose(numpy(rows[1]), 2 * np.eye(2), atol=1e-12)
    first = library.vmap(library.grad(f))(on(backend, np.zeros((2, 3))))
    np.testing.assert_array_equal(numpy(first), 0.0)
    if backend == "jax":
        assert np.isnan(numpy(library.jit(second)(on(backend, ZEROS)))).all()


def test_compiled_torch_programs_have_first_derivatives_only():
    """Their graphs cannot differentiate a custom gradient: stated in docs/differences.md."""
    torch = pytest.importorskip("torch")
    f = lambda x: ops.norm(x) ** 2  # noqa: E731
    x = on("torch", np.zeros(2))
    compiled = torch.compile(lambda x: torch.func.hessian(f)(x), backend="eager")
    np.testing.assert_array_equal(compiled(x), 0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        traced = torch.jit.trace(f, (torch.ones_like(x),))
    np.testing.assert_array_equal(torch.func.hessian(traced)(x), 0.0)
    assert np.isnan(numpy(torch.func.hessian(f)(x))).all()


def test_tensorflow_vectorized_map_has_first_derivatives_only():
    """Stated in docs/differences.md; ``ops.vectorized_map`` gives NaN."""
    tf = pytest.importorskip("tensorflow")
    f, x = lambda x: ops.norm(x) ** 2, on("tensorflow", np.zeros((2, 3)))

    def second(f, x):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = f(x)
            g = inner.gradient(y, x)
        return numpy(outer.gradient(g, x))

    np.testing.assert_array_equal(second(lambda x: tf.vectorized_map(f, x), x), 0.0)
    assert np.isnan(second(lambda x: ops.vectorized_map(f, x), x)).all()


# Every op ------------------------------------------------------------------------------------------------------------

POINTS = {"zeros": np.zeros_like, "equal": np.ones_like}
PIECEWISE = {
    # Piecewise linear with a kink at 0 and second derivative 0 in all libraries: docs/differences.md.
    *(f"norm-2-3-{ord}" for ord in ("inf-1", "-inf-1", "1-1", "-1-1", "inf", "-inf", "1", "-1", "2-1-(2, 0)")),
    *"median nanmedian ptp ptp-ties unique".split(),
}
STEP = 1e-3


def differences(phi) -> tuple[float, float] | None:
    """Return the second derivative at 0 of a scalar function and its error, or None if it does not exist."""
    at = {k: float(phi(k * STEP)) for k in range(-3, 4)}
    if not np.isfinite(list(at.values())).all():
        return None
    scale = max(map(abs, at.values()))
    slopes = [s * (-11 * at[0] + 18 * at[s] - 9 * at[2 * s] + 2 * at[3 * s]) / (6 * STEP) for s in (1, -1)]
    seconds = [(2 * at[0] - 5 * at[s] + 4 * at[2 * s] - at[3 * s]) / STEP**2 for s in (1, -1)]
    if abs(slopes[0] - slopes[1]) > 1e-5 * (1 + scale) or abs(seconds[0] - seconds[1]) > 1e-3 * (1 + scale):
        return None
    return sum(seconds) / 2, 5e-2 * (1 + scale + abs(sum(seconds)))


@pytest.mark.parametrize("kind", POINTS)
@pytest.mark.parametrize("case", [c for c in CASES if c.gradients], ids=by_id)
def test_squares_of_every_op_have_correct_second_derivatives_or_nan(case, kind):
    """On a line through zero or equal inputs, an op may have a kink that its square has not: no factor may be lost."""
    if case.id in PIECEWISE:
        pytest.skip("linear on each side")
    arguments = case.example()
    change = lambda x: POINTS[kind](x) if isinstance(x, np.ndarray) and x.dtype.kind in "fc" else x  # noqa: E731
    for name in case.gradients:
        value = arguments[name]
        arguments[name] = [change(x) for x in value] if isinstance(value, list) else change(value)
    xs = differentiated(case, arguments)
    rng = np.random.default_rng(3)
    lines = [rng.uniform(0.5, 1.5, np.shape(x)) * rng.choice([-1.0, 1.0], np.shape(x)) for x in xs]
    f = results_function(case, arguments, "numpy")

    def phi(s):
        moved = [x + s * t if np.asarray(x).dtype.kind in "fc" else x for x, t in zip(xs, lines)]
        results = [y for y in f(*moved) if "float" in ops.dtype(y) or "complex" in ops.dtype(y)]
        return sum(ops.sum(ops.real(y) ** 2 + ops.imag(y) ** 2) for y in results)

    with np.errstate(all="ignore"):
        try:
            found = differences(phi)
            if found is None:
                pytest.skip("no second derivative there")
            got = float(numpy(gradops.grad(gradops.grad(phi))(0.0)))
        except gradops.errors.GradopsError as error:
            pytest.skip(f"refused: {type(error).__name__}")
    want, allowed = found
    assert np.isnan(got) or np.isinf(got) or abs(got - want) <= allowed, (got, want)
