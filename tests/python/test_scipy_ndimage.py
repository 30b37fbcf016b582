"""``gradops.scipy.ndimage`` against SciPy."""

import functools

import numpy as np
import pytest
import scipy.ndimage
from scipy_checks import QUICK, agree, compare, complex_of, each_case, each_program, in_programs, refused

import gradops
from gradops import ops
from gradops.errors import GradopsError
from gradops.scipy import ndimage
from gradops.scipy.ndimage import filters, measurements

rng = np.random.default_rng(36)
LINE, PLANE, CUBE = rng.normal(size=7), rng.normal(size=(4, 5)), rng.normal(size=(2, 3, 4))
WEIGHTS, KERNEL = rng.normal(size=3), rng.normal(size=(2, 3))
LABELS = np.array([[0, 1, 1, 2, 2], [0, 1, 3, 3, 2], [3, 3, 1, 0, 0], [1, 2, 2, 3, 3]])
PLACES = rng.uniform(-2, 6, size=(2, 6))
SPECTRUM = np.fft.fft2(PLANE)

# The function, its arrays (floating ones are differentiated), settings, and further arguments of `agree()`.
CASES = [
    *[("correlate1d", (PLANE, WEIGHTS), {"axis": 0, "mode": mode, "cval": 1.5}, {}) for mode in filters.MODES],
    ("convolve1d", (LINE, KERNEL.ravel()), {"origin": -1}, {"every": True}),
    *[("correlate", (PLANE, KERNEL), {"mode": mode}, {}) for mode in filters.MODES],
    ("convolve", (CUBE, KERNEL), {"axes": (2, 0), "origin": (1, -1), "mode": "wrap"}, {}),
    ("convolve", (PLANE, KERNEL), {"cval": 2.0, "mode": "constant"}, {"every": True}),
    ("prewitt", (CUBE,), {"axis": 1}, {}),
    ("sobel", (PLANE,), {"mode": "nearest"}, {}),
    ("laplace", (CUBE,), {}, {}),
    ("gaussian_filter1d", (LINE,), {"sigma": 1.2}, {}),
    ("gaussian_filter1d", (LINE, np.array(1.2)), {"order": 3, "radius": 4}, {"keys": (0, "sigma")}),
    ("gaussian_filter", (PLANE, np.array([0.7, 1.1])), {"order": (0, 1), "radius": 3}, {"every": True}),
    ("gaussian_laplace", (PLANE, np.array(0.8)), {"radius": 3}, {}),
    ("gaussian_gradient_magnitude", (PLANE,), {"sigma": 0.8}, {}),
    ("uniform_filter", (PLANE,), {"size": (2, 3)}, {}),
    ("uniform_filter1d", (LINE,), {"size": 4, "origin": -1}, {}),
    *[(name, (PLANE,), {"size": (2, 3), "origin": (-1, 0)}, {}) for name in ("minimum_filter", "maximum_filter")],
    *[(name, (PLANE,), {"size": 3, "axis": 0}, {}) for name in ("minimum_filter1d", "maximum_filter1d")],
    ("median_filter", (CUBE,), {"footprint": np.array([[0, 1, 1], [1, 1, 0]]), "axes": (1, 2)}, {"every": True}),
    ("rank_filter", (PLANE,), {"rank": -2, "size": 3}, {}),
    ("percentile_filter", (PLANE,), {"percentile": 30, "size": 3, "mode": "wrap"}, {}),
    *[
        (name, (PLANE, KERNEL), {}, {"keys": (0, "structure")})
        for name in "grey_erosion grey_dilation grey_opening grey_closing morphological_gradient".split()
    ],
    *[
        (name, (PLANE,), {"footprint": np.array([[0, 1], [1, 1]])}, {})
        for name in "grey_dilation morphological_laplace white_tophat black_tophat".split()
    ],
    *[("map_coordinates", (PLANE, PLACES), {"mode": mode, "order": 3}, {}) for mode in filters.MODES],
    *[("map_coordinates", (PLANE, PLACES), {"mode": "reflect", "order": order}, {}) for order in (1, 2, 4, 5)],
    ("map_coordinates", (PLANE, PLACES), {"mode": "nearest", "order": 0}, {"by": (0,)}),
    ("map_coordinates", (PLANE, PLACES), {"prefilter": False, "mode": "mirror"}, {"every": True, "second": True}),
    ("spline_filter", (PLANE,), {"order": 4}, {}),
    ("spline_filter1d", (PLANE,), {"axis": 0, "mode": "reflect"}, {}),
    ("affine_transform", (PLANE, np.array([[0.8, 0.2], [-0.1, 1.1]]), np.array([0.3, -0.2])), {"mode": "mirror"}, {}),
    ("affine_transform", (PLANE, np.array([0.8, 1.1]), np.array(0.3)), {"output_shape": (3, 6), "mode": "wrap"}, {}),
    ("affine_transform", (PLANE, np.array([[0.8, 0.2, 0.3], [-0.1, 1.1, 0.1]])), {"mode": "mirror"}, {}),
    ("shift", (PLANE, np.array([0.7, -1.3])), {"mode": "nearest"}, {}),
    ("shift", (PLANE,), {"shift": 1.5, "order": 1}, {}),
    ("zoom", (PLANE,), {"zoom": (1.7, 0.6)}, {}),
    ("zoom", (PLANE,), {"zoom": 2, "grid_mode": True, "mode": "grid-constant"}, {}),
    ("rotate", (PLANE, np.array(30.0)), {"reshape": False, "mode": "mirror"}, {}),
    ("rotate", (CUBE,), {"angle": 90, "axes": (0, 2)}, {}),
    ("rotate", (PLANE,), {"angle": 20}, {}),
    ("fourier_gaussian", (PLANE, np.array([0.7, 1.1])), {}, {}),
    ("fourier_uniform", (PLANE, np.array(2.3)), {}, {}),
    *[
        (name, (PLANE,), {"labels": LABELS, "index": [1, 3]}, {})
        for name in "sum sum_labels mean variance standard_deviation minimum maximum median".split()
    ],
    ("mean", (PLANE,), {"labels": LABELS}, {}),
    ("sum", (PLANE,), {"labels": LABELS, "index": 2}, {}),
    ("center_of_mass", (np.abs(PLANE),), {}, {}),
    ("center_of_mass", (np.abs(PLANE),), {"labels": LABELS, "index": [1, 2]}, {}),
]


@each_case(CASES)
def test_agrees_with_scipy(name, arrays, settings, how):
    compare(ndimage, scipy.ndimage, name, arrays, settings, how)


@pytest.mark.long
@each_case(CASES)
def test_agrees_with_scipy_on_all_backends(name, arrays, settings, how):
    compare(ndimage, scipy.ndimage, name, arrays, settings, how, everywhere=True)


def test_each_name_has_a_case():
    cases = {name for name, *_ in CASES} | set(measurements.KNOWN)
    assert cases | {"generic_laplace", "generic_gradient_magnitude", "fourier_shift"} == set(ndimage.__all__)


def test_constants():
    for found, want in zip(ndimage.label(LABELS == 1), scipy.ndimage.label(LABELS == 1)):
        np.testing.assert_array_equal(found, want)
    found = ndimage.distance_transform_edt(LABELS)
    np.testing.assert_array_equal(found, scipy.ndimage.distance_transform_edt(LABELS))


@pytest.mark.parametrize("dtype", ["bool", "int64", "float32"])
def test_metric_of_numbers_of_any_dtype(dtype):
    # SciPy reads the bytes of the metric as truth values.
    x = np.pad(np.ones((5, 7)), 1)
    metric = scipy.ndimage.generate_binary_structure(2, 1)
    want = scipy.ndimage.distance_transform_cdt(x, "taxicab")
    np.testing.assert_array_equal(ndimage.distance_transform_cdt(x, metric.astype(dtype)), want)


@pytest.mark.parametrize("metric", [-1, [0, 1, 0], np.ones((3, 3, 3)), np.full((3, 3), "a"), object()])
def test_metric_of_another_rank_is_an_error(metric):
    # SciPy reads and writes outside its memory.
    with pytest.raises(GradopsError, match=r"`metric` must be 'chessboard'.* of the shape \(3, 3\)"):
        ndimage.distance_transform_cdt(np.ones((4, 5)), metric)


@pytest.mark.parametrize("name", ["generic_laplace", "generic_gradient_magnitude"])
def test_user_defined_functions(name):
    def second(module, input, axis, output, mode, cval):
        return module.correlate1d(input, [1.0, -2.0, 1.0], axis, output, mode, cval)

    agree(
        lambda x: getattr(ndimage, name)(x, functools.partial(second, ndimage)),
        lambda x: getattr(scipy.ndimage, name)(x, functools.partial(second, scipy.ndimage)),
        PLANE,
        **QUICK,
    )


def test_shifts_of_spectra():
    def ours(x, shift):
        z = ndimage.fourier_shift(complex_of(x, 0 * x), shift)
        return ops.real(z), ops.imag(z)

    def theirs(x, shift):
        z = scipy.ndimage.fourier_shift(x + 0j, shift)
        return z.real, z.imag

    agree(ours, theirs, PLANE, np.array([0.7, -1.2]), **QUICK)


def test_integers_stay_integers():
    x = rng.integers(0, 200, size=(5, 6)).astype("uint8")
    for name, settings in (
        ("uniform_filter", {"size": 3}),
        ("median_filter", {"size": 3}),
        ("grey_dilation", {"size": 3}),
        ("convolve", {"weights": [[1.0, 0.5]]}),
    ):
        found, want = getattr(ndimage, name)(x, **settings), getattr(scipy.ndimage, name)(x, **settings)
        np.testing.assert_array_equal(found, want)
        assert found.dtype == want.dtype
    assert ndimage.gaussian_filter(x, 1.0, output="float32").dtype == "float32"


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int16", "int64"])
def test_images_of_integers(dtype):
    """SciPy rounds sampled values, and stores the derivatives of a filter in the image's dtype."""
    x = (rng.integers(0, 90, size=(6, 7)) % (3 if dtype == "bool" else 90)).astype(dtype)
    calls = [
        ("zoom", (1.7,), {"order": 1}),
        ("zoom", (1.0,), {}),
        ("shift", (0.3,), {}),
        ("rotate", (33,), {"order": 2}),
        ("affine_transform", ([0.8, 1.1], 0.3), {}),
        ("map_coordinates", (PLACES,), {"order": 5, "mode": "reflect"}),
    ]
    if dtype.startswith("int"):  # SciPy's unsigned integers wrap around
        calls += [("gaussian_laplace", (0.8,), {}), ("gaussian_gradient_magnitude", (0.8,), {}), ("laplace", (), {})]
    for name, arguments, settings in calls:
        found, want = (getattr(module, name)(x, *arguments, **settings) for module in (ndimage, scipy.ndimage))
        np.testing.assert_array_equal(found, want, err_msg=name)
        assert found.dtype == want.dtype


@pytest.mark.parametrize("name", ["correlate", "convolve"])
def test_complex_weights(name):
    weights = rng.normal(size=(3, 2)) + 1j * rng.normal(size=(3, 2))
    for x in (PLANE, PLANE * (1 + 0.5j)):
        for end, given in (("", weights), ("1d", weights[:, 0])):
            found, want = (getattr(module, name + end)(x, given, output=complex) for module in (ndimage, scipy.ndimage))
            np.testing.assert_allclose(found, want, rtol=1e-12)


def test_precision_is_kept_on_torch():
    torch = pytest.importorskip("torch")
    x = torch.ones((4, 5), dtype=torch.float32, requires_grad=True)
    for y in (ndimage.gaussian_filter(x, 1.0), ndimage.zoom(x, 2), ndimage.rotate(x, 30), ndimage.sobel(x)):
        assert y.dtype == torch.float32 and torch.autograd.grad(y.sum(), x)[0].dtype == torch.float32


@pytest.mark.long
@each_program(lambda x, at: ops.sum(ndimage.map_coordinates(x, at, mode="grid-wrap") ** 2))
def test_programs_of_libraries(compiled):
    def f(x, at):
        y = ndimage.gaussian_filter(x, 0.8) + ndimage.median_filter(x, 3) + ndimage.grey_closing(x, 3)
        y = y + ndimage.rotate(x, 20, reshape=False, order=1) + ndimage.uniform_filter(x, 2)
        turned = 6 * ops.sum(ndimage.rotate(x, 90, order=1))
        return ops.sum(y * y) + ops.sum(ndimage.map_coordinates(x, at, mode="grid-wrap") ** 2) + turned

    in_programs(f, PLANE, PLACES, compiled=compiled)


def test_hard_points():
    flat = np.zeros((3, 3))
    for function in (lambda x: ndimage.gaussian_gradient_magnitude(x, 1.0), ndimage.standard_deviation):
        np.testing.assert_array_equal(gradops.grad(lambda x, f=function: ops.sum(f(x)))(flat), 0)
    inside = gradops.grad(lambda at: ops.sum(ndimage.map_coordinates(PLANE, at, cval=7.0)))(np.array([[-3.0], [2.0]]))
    np.testing.assert_array_equal(inside, 0)
    np.testing.assert_allclose(ndimage.rotate(PLANE, 90), np.rot90(PLANE), rtol=1e-12)
    ties = gradops.grad(lambda x: ops.sum(ndimage.maximum_filter(x, 3)))(flat)
    np.testing.assert_allclose(ties.sum(), 9)


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: ndimage.convolve1d(LINE, PLANE), "weights"),
        (lambda: ndimage.convolve(PLANE, LINE), "weights"),
        (lambda: ndimage.correlate1d(LINE, WEIGHTS, mode="some"), "mode"),
        (lambda: ndimage.correlate1d(LINE, WEIGHTS, axis=1), "axis"),
        (lambda: ndimage.correlate1d(LINE, WEIGHTS, origin=2), "origin"),
        (lambda: ndimage.correlate1d("a", WEIGHTS), "input"),
        (lambda: ndimage.correlate1d(LINE, WEIGHTS, output=LINE), "output"),
        (lambda: ndimage.gaussian_filter(PLANE, (1.0, 2.0, 3.0)), "sigma"),
        (lambda: ndimage.gaussian_filter1d(LINE, 1.0, order=-1), "order"),
        (lambda: ndimage.uniform_filter(PLANE, 0), "size"),
        (lambda: ndimage.median_filter(PLANE), "size"),
        (lambda: ndimage.rank_filter(PLANE, 9, 3), "rank"),
        (lambda: ndimage.percentile_filter(PLANE, 101, 3), "percentile"),
        (lambda: ndimage.map_coordinates(PLANE, PLACES[:1]), "coordinates"),
        (lambda: ndimage.map_coordinates(PLANE, PLACES, order=6), "order"),
        (lambda: ndimage.affine_transform(PLANE, CUBE), "matrix"),
        (lambda: ndimage.zoom(PLANE, 0.01), "zoom"),
        (lambda: ndimage.rotate(CUBE, 20, axes=(0,)), "axes"),
        (lambda: ndimage.sum(PLANE, LINE), "labels"),
        (lambda: ndimage.label(gradops.Variable(PLANE, requires_grad=True)), "input"),
    ],
)
def test_errors_name_the_argument(call, argument):
    refused(call, argument)


def test_refused_functions_name_alternatives():
    with pytest.raises(AttributeError, match="map_coordinates"):
        ndimage.geometric_transform  # noqa: B018
