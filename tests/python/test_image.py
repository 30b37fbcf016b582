"""Images: properties that hold on every backend, beyond the parity cases."""

import numpy as np
import pytest
from parity import BACKENDS, numpy, tensors

from gradops import Variable, autodiff, backends, config, errors, ops

image = ops.image
rng = np.random.default_rng(0)
photo = rng.random((2, 6, 5, 3))
KERNELS = ("bilinear", "bicubic", "lanczos3", "lanczos5", "area")
INTERPOLATIONS = ("nearest", *KERNELS)
MODES = ("constant", "nearest", "wrap", "mirror", "reflect")
still = np.array([1.0, 0, 0, 0, 1, 0, 0, 0])
corners = np.array([[0.0, 0], [4, 0], [4, 5], [0, 5]])

on_each_backend = pytest.mark.parametrize("backend", BACKENDS)


@pytest.mark.parametrize("interpolation", INTERPOLATIONS)
@pytest.mark.parametrize("antialias", [False, True])
def test_resampling_invariants(interpolation, antialias):
    """Resizing to the same size is the identity, constants are preserved, and the result is linear in the image."""

    def resized(x, size=(3, 9)):
        return image.resize(x, size, interpolation, antialias)

    np.testing.assert_allclose(resized(photo, (6, 5)), photo, atol=1e-12)
    np.testing.assert_allclose(resized(np.ones_like(photo)), 1.0, rtol=1e-12)
    other = rng.random(photo.shape)
    np.testing.assert_allclose(resized(2 * photo + other), 2 * resized(photo) + resized(other), atol=1e-12)


@pytest.mark.parametrize("size", [(3, 3), (12, 20), (3, 20)])
def test_resize_matches_tensorflow(size):
    """TensorFlow computes antialiasing kernels and area means in float32."""
    import tensorflow as tf

    for interpolation in KERNELS:
        wanted = tf.image.resize(photo, size, interpolation, antialias=True)
        np.testing.assert_allclose(image.resize(photo, size, interpolation, True), wanted, atol=3e-6)


def test_resize_to_proportions():
    """The cropped or padded part is centred."""
    wide = np.arange(24.0).reshape(2, 12, 1)
    np.testing.assert_array_equal(image.resize(wide, (2, 4), crop_to_aspect_ratio=True), wide[:, 4:8])
    padded = image.resize(wide, (6, 12), pad_to_aspect_ratio=True, fill_value=-1.0)
    np.testing.assert_array_equal(padded, np.pad(wide, ((2, 2), (0, 0), (0, 0)), constant_values=-1.0))
    assert image.resize(wide, (5, 7), "bicubic", pad_to_aspect_ratio=True).shape == (5, 7, 1)
    names = {"nearest": "edge", "wrap": "wrap", "mirror": "reflect", "reflect": "symmetric"}
    tall = np.arange(24.0).reshape(12, 2, 1)
    for mode, name in names.items():
        padded = image.resize(tall, (12, 6), pad_to_aspect_ratio=True, fill_mode=mode)
        np.testing.assert_array_equal(padded, np.pad(tall, ((0, 0), (2, 2), (0, 0)), mode=name), err_msg=mode)
    both = image.resize(np.moveaxis(wide, -1, 0), (2, 4), crop_to_aspect_ratio=True, data_format="channels_first")
    np.testing.assert_array_equal(both, np.moveaxis(wide[:, 4:8], -1, 0))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("interpolation", ["nearest", "bilinear"])
def test_identity_transforms(mode, interpolation):
    np.testing.assert_array_equal(image.affine_transform(photo, still, interpolation, mode), photo)
    np.testing.assert_array_equal(image.perspective_transform(photo, corners, corners, interpolation), photo)
    np.testing.assert_array_equal(image.elastic_transform(photo, 0.0, 1.0, interpolation, mode, seed=1), photo)
    places = np.indices(photo.shape)
    np.testing.assert_array_equal(image.map_coordinates(photo, places, int(interpolation == "bilinear"), mode), photo)


def test_affine_with_a_horizon_matches_tensorflow():
    import tensorflow as tf

    transform = np.tile(still, (2, 1)) + rng.normal(size=(2, 8)) * np.array([0.1] * 6 + [0.01] * 2)
    wanted = tf.raw_ops.ImageProjectiveTransformV3(
        images=photo, transforms=transform.astype("float32"), output_shape=[6, 5], fill_value=0.5,
        interpolation="BILINEAR", fill_mode="CONSTANT",
    )  # fmt: skip
    np.testing.assert_allclose(image.affine_transform(photo, transform, fill_value=0.5), wanted, atol=1e-5)


@pytest.mark.short_cases(0, "jax")
@on_each_backend
def test_coordinates_beyond_the_horizon(backend):
    """Coordinates past the horizon, infinite or very large give the fill value, never an error."""
    x = tensors(photo[0], backend)
    at_horizon = tensors(np.array([1.0, 0, 0, 0, 1, 0, -0.5, 0]), backend)
    result = numpy(image.affine_transform(x, at_horizon, fill_value=7.0))
    np.testing.assert_array_equal(result[:, 2], 7.0)
    far = tensors(np.array([[1e300, -1e300, 1e9, np.inf], [0.0, 0, 0, 0]]), backend)
    plane = tensors(photo[0, :, :, 0], backend)
    np.testing.assert_array_equal(numpy(image.map_coordinates(plane, far, 1, "constant", 7.0))[:3], 7.0)
    for mode in MODES:
        for order in (0, 1):
            assert np.isfinite(numpy(image.map_coordinates(plane, far, order, mode)))[:3].all()


def test_perspective_maps_start_points_to_end_points():
    """A pixel at a start point moves to the end point."""
    x = np.zeros((9, 9, 1))
    start = np.array([[1, 1], [6, 2], [7, 7], [1, 6]])
    end = np.array([[0, 2], [7, 0], [8, 8], [2, 7]])
    for (u, v), value in zip(start, (1.0, 2.0, 3.0, 4.0)):
        x[v, u] = value
    y = image.perspective_transform(x, start, end)
    for (u, v), value in zip(end, (1.0, 2.0, 3.0, 4.0)):
        assert y[v, u, 0] == pytest.approx(value, rel=1e-9)


def test_elastic_transform_follows_the_seed():
    one, same, other = (image.elastic_transform(photo, seed=s) for s in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert not np.array_equal(one, other)
    assert not np.array_equal(image.elastic_transform(photo), image.elastic_transform(photo))
    # the two axes are displaced differently, and so is each image
    ramp = np.stack(np.meshgrid(np.arange(8.0), np.arange(8.0), indexing="ij"), -1)
    moved = image.elastic_transform(np.stack([ramp, ramp]), 2.0, 1.0, fill_mode="nearest", seed=3)
    moved = moved - ramp
    assert not np.allclose(moved[0, ..., 0], moved[0, ..., 1])
    assert not np.allclose(moved[0], moved[1])


def test_ssim_matches_tensorflow():
    import tensorflow as tf

    other = np.clip(photo + rng.normal(0, 0.1, photo.shape), 0, 1)
    wanted = tf.image.ssim(tf.constant(photo), tf.constant(other), 1.0, filter_size=5)
    np.testing.assert_allclose(image.ssim(photo, other, filter_size=5), wanted, rtol=1e-5)
    wanted = tf.image.ssim(tf.constant(255 * photo), tf.constant(255 * other), 255.0, 4, 1.0, 0.02, 0.05)
    np.testing.assert_allclose(image.ssim(255 * photo, 255 * other, 255.0, 4, 1.0, 0.02, 0.05), wanted, rtol=1e-5)
    assert image.ssim(photo[0], photo[0], filter_size=5) == pytest.approx(1.0)


def test_constant_images_have_no_edges():
    np.testing.assert_array_equal(image.sobel_edges(np.full((4, 5, 2), 0.7)), 0.0)
    assert image.sobel_edges(np.full((1, 1, 2), 0.7)).shape == (1, 1, 2, 2)


def test_colour_conversions_round_trip():
    np.testing.assert_allclose(image.hsv_to_rgb(image.rgb_to_hsv(photo)), photo, atol=1e-12)
    grey = np.full((1, 2, 3), 0.5)
    grey[0, 1] = 0.0
    np.testing.assert_array_equal(image.rgb_to_hsv(grey), [[[0, 0, 0.5], [0, 0, 0]]])
    v = Variable(grey, requires_grad=True)
    (g,) = autodiff.grad(ops.sum(image.rgb_to_hsv(v)), [v])
    assert np.isfinite(g.data).all()
    one = photo[..., :1]
    np.testing.assert_array_equal(image.rgb_to_grayscale(one), one)


CALLS = {
    "resize": lambda x: image.resize(x, (4, 7), "bicubic"),
    "resize-nearest": lambda x: image.resize(x, (4, 7), "nearest"),
    "scale_and_translate": lambda x: image.scale_and_translate(x, (2, 5, 5, 3), [1.3], [0.2], [1], "cubic"),
    "map_coordinates": lambda x: image.map_coordinates(x, np.full((4, 2), 0.4), 1),
    "affine_transform": lambda x: image.affine_transform(x, still + 0.05, fill_value=1),
    "perspective_transform": lambda x: image.perspective_transform(x, corners, corners + 0.37),
    "elastic_transform": lambda x: image.elastic_transform(x, 3.0, 1.0, seed=1),
    "gaussian_blur": lambda x: image.gaussian_blur(x, 3, 1.0),
    "rgb_to_grayscale": image.rgb_to_grayscale,
    "crop_images": lambda x: image.crop_images(x, 1, 1, 1, 1),
    "pad_images": lambda x: image.pad_images(x, 1, 1, 1, 1),
    "extract_patches": lambda x: image.extract_patches(x, 2),
}  # fmt: skip


@pytest.mark.short_cases(4)
@pytest.mark.parametrize("name", CALLS)
def test_integers_are_rounded(name):
    """Integer results are the float results rounded half to even and clipped to the dtype's range."""
    x = np.where(rng.random(photo.shape) < 0.5, 0, 255).astype("uint8")
    wanted = np.clip(np.round(CALLS[name](x.astype("float64"))), 0, 255)
    for backend in BACKENDS:
        result = numpy(CALLS[name](tensors(x, backend)))
        assert result.dtype == np.uint8, backend
        np.testing.assert_array_equal(result, wanted, err_msg=backend)


@on_each_backend
def test_measures_of_integer_images_are_floats(backend):
    x = np.round(255 * photo).astype("uint8")
    like = numpy(image.ssim(tensors(x, backend), tensors(x // 2, backend), 255.0, 3))
    assert like.dtype == np.float64
    np.testing.assert_allclose(like, image.ssim(x * 1.0, x // 2 * 1.0, 255.0, 3), rtol=1e-10)
    edges = numpy(image.sobel_edges(tensors(x, backend)))
    assert edges.dtype == np.float64
    np.testing.assert_array_equal(edges, image.sobel_edges(x * 1.0))


@on_each_backend
def test_nearest_neighbour_ties(backend):
    """The later of two equally near elements is taken, also before the first element."""
    x, places = tensors(np.arange(4.0), backend), tensors(np.array([[-0.5, 0.5, 1.5, 2.5, 3.5]]), backend)
    np.testing.assert_array_equal(numpy(image.map_coordinates(x, places, 0, "constant", -1.0)), [0, 1, 2, 3, -1])


def test_integers_are_exact_without_interpolation():
    x = np.array([[2**60 + 1, 3], [2**62 - 1, 7]])
    np.testing.assert_array_equal(image.map_coordinates(x, np.indices((2, 2)), 0), x)
    np.testing.assert_array_equal(image.resize(x[..., None], (2, 2), "nearest")[..., 0], x)
    assert image.resize(np.array([[True, False, True]])[..., None], (1, 3)).dtype == bool


@pytest.mark.short_cases(8)
@pytest.mark.parametrize("name", [*CALLS, "sobel_edges", "ssim", "rgb_to_hsv", "hsv_to_rgb"])
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_floats_keep_their_dtype(name, dtype):
    others = {"ssim": lambda x: image.ssim(x, x * x, filter_size=3)}
    call = CALLS.get(name) or others.get(name) or getattr(image, name)
    wanted = call(photo)
    for backend in BACKENDS:
        result = numpy(call(tensors(photo.astype(dtype), backend)))
        assert result.dtype == np.dtype(dtype), backend
        np.testing.assert_allclose(result, wanted, atol=2e-2 if dtype == "float16" else 2e-5, err_msg=backend)


@pytest.mark.parametrize("backend", ["torch", "jax", "tensorflow"])
def test_bfloat16(backend):
    x = backends.lookup(backend).convert(photo, "bfloat16")
    for name in ("resize", "affine_transform", "gaussian_blur"):
        y = CALLS[name](x)
        assert ops.dtype(y) == "bfloat16"
        np.testing.assert_allclose(ops.convert_to_numpy(y), CALLS[name](photo), atol=0.03)


SMOOTH = {
    "resize": lambda x: image.resize(x, (4, 7), "lanczos3", True),
    "scale_and_translate": lambda x: image.scale_and_translate(
        x, (2, 5, 5, 3), 1.2 + x[0, 0, 0, :1], x[1, 0, 0, :1], (1,), "cubic"
    ),
    "map_coordinates": lambda x: image.map_coordinates(x, 4 * x[0, :4, :, 0], 1, "reflect"),
    "affine_transform": lambda x: image.affine_transform(x, ops.add(ops.reshape(x, (-1,))[:8] / 9, still)),
    "perspective_transform": lambda x: image.perspective_transform(x, corners, ops.add(x[0, :4, :2, 1], corners)),
    "elastic_transform": CALLS["elastic_transform"],
    "gaussian_blur": lambda x: image.gaussian_blur(x, (3, 5), 0.5 + x[0, 0, :2, 0]),
    "sobel_edges": image.sobel_edges,
    "ssim": lambda x: image.ssim(x, ops.square(x), filter_size=3),
    "rgb_to_grayscale": image.rgb_to_grayscale,
    "rgb_to_hsv": image.rgb_to_hsv,
    "hsv_to_rgb": image.hsv_to_rgb,
    "crop_images": CALLS["crop_images"],
    "pad_images": CALLS["pad_images"],
    "extract_patches": lambda x: image.extract_patches(x, 3, 1, padding="same"),
    "extract_patches_3d": lambda x: image.extract_patches_3d(x, 2, 1),
}  # fmt: skip


@pytest.mark.short_cases(3)
@pytest.mark.parametrize("name", SMOOTH)
def test_compiled_gradients(name):
    """``jax.jit`` and ``tf.function`` of the native gradient equal the tape's, for images and transforms."""
    import jax
    import tensorflow as tf

    def loss(x):
        return ops.sum(ops.square(SMOOTH[name](x)))

    v = Variable(photo, requires_grad=True)
    (wanted,) = autodiff.grad(loss(v), [v])
    with config.backend_scope("jax"):
        got = jax.jit(jax.grad(loss))(tensors(photo, "jax"))
    np.testing.assert_allclose(got, wanted.data, rtol=1e-5, atol=1e-8)

    @tf.function
    def gradient(x):
        return tf.convert_to_tensor(tf.gradients(loss(x), x)[0])

    np.testing.assert_allclose(gradient(tf.constant(photo)), wanted.data, rtol=1e-5, atol=1e-8)


@on_each_backend
def test_empty_batches(backend):
    """An empty batch gives an empty batch."""
    x = tensors(photo[:0], backend)
    assert tuple(image.resize(x, (3, 4)).shape) == (0, 3, 4, 3)
    assert tuple(image.affine_transform(x, still).shape) == (0, 6, 5, 3)
    assert tuple(image.extract_patches(x, 2).shape) == (0, 3, 2, 12)
    assert tuple(image.gaussian_blur(x).shape) == (0, 6, 5, 3)


def test_non_contiguous_images():
    x = np.asfortranarray(photo)[:, ::-1]
    for name in CALLS:
        np.testing.assert_array_equal(CALLS[name](x), CALLS[name](np.ascontiguousarray(x)), err_msg=name)


plane = photo[0, :, :, 0]
WRONG = [
    ("resize", (plane, (2, 2)), {}, errors.ShapeError),
    ("resize", (photo, (2,)), {}, errors.ArgumentError),
    ("resize", (photo, (2, 0)), {}, errors.ArgumentError),
    ("resize", (photo, (2, 2.5)), {}, errors.ArgumentTypeError),
    ("resize", (photo, (2, 2), "cubicle"), {}, errors.ArgumentError),
    ("resize", (photo, (2, 2)), {"data_format": "channels"}, errors.ArgumentError),
    ("resize", (photo, (2, 2)), {"fill_mode": "edge"}, errors.ArgumentError),
    ("resize", (photo, (2, 2)), {"crop_to_aspect_ratio": True, "pad_to_aspect_ratio": True}, errors.ArgumentError),
    ("resize", (photo[:, :0], (2, 2)), {}, errors.ShapeError),
    ("scale_and_translate", (photo, (2, 3), np.ones(1), np.ones(1), (1,), "cubic"), {}, errors.ArgumentError),
    ("scale_and_translate", (photo, (2, 3, 3, 3), np.ones(1), np.ones(1), (1,), "cubic"), {}, errors.ShapeError),
    ("scale_and_translate", (photo, (2, 3, 5, 3), np.ones(2), np.ones(1), (1,), "cubic"), {}, errors.ShapeError),
    ("scale_and_translate", (photo, (2, 3, 5, 3), np.ones(1), np.ones(1), (4,), "cubic"), {}, errors.AxisError),
    ("scale_and_translate", (photo, (2, 3, 5, 3), np.ones(1), np.ones(1), (1,), "nearest"), {}, errors.ArgumentError),
    ("map_coordinates", (plane, np.ones((3, 2)), 1), {}, errors.ShapeError),
    ("map_coordinates", (plane, np.ones((2, 2)), 3), {}, errors.ArgumentError),
    ("map_coordinates", (plane, np.ones((2, 2)), 1, "edge"), {}, errors.ArgumentError),
    ("affine_transform", (photo, np.ones(6)), {}, errors.ShapeError),
    ("affine_transform", (photo, np.ones((3, 8))), {}, errors.ShapeError),
    ("affine_transform", (photo, still, "bicubic"), {}, errors.ArgumentError),
    ("perspective_transform", (photo, np.ones((3, 2)), corners), {}, errors.ShapeError),
    ("elastic_transform", (photo, 1.0, 0.0), {}, errors.ArgumentError),
    ("gaussian_blur", (photo, (3, 3, 3)), {}, errors.ArgumentError),
    ("gaussian_blur", (photo, (3, 3), np.ones(3)), {}, errors.ShapeError),
    ("sobel_edges", (plane,), {}, errors.ShapeError),
    ("ssim", (photo, photo[:1]), {"filter_size": 3}, errors.ShapeError),
    ("ssim", (photo, photo), {}, errors.ShapeError),
    ("rgb_to_grayscale", (photo[..., :2],), {}, errors.ShapeError),
    ("rgb_to_hsv", (photo[..., :1],), {}, errors.ShapeError),
    ("rgb_to_hsv", (np.ones((2, 2, 3), "uint8"),), {}, errors.ArgumentTypeError),
    ("hsv_to_rgb", (np.ones((2, 2, 3), "int64"),), {}, errors.ArgumentTypeError),
    ("crop_images", (photo, 1, 1, 1), {}, errors.ArgumentError),
    ("crop_images", (photo, 4, 1, 4, 1), {}, errors.ArgumentError),
    ("crop_images", (photo, -1, 1, 1, 1), {}, errors.ArgumentError),
    ("pad_images", (photo, 1, 1), {"target_height": 2, "target_width": 9}, errors.ArgumentError),
    ("pad_images", (photo, 1, 1, 1, 1, 8, 7), {}, errors.ArgumentError),
    ("extract_patches", (photo, 7), {}, errors.ShapeError),
    ("extract_patches", (photo, 2, 0), {}, errors.ArgumentError),
    ("extract_patches", (photo, 2), {"padding": "full"}, errors.ArgumentError),
    ("extract_patches", (photo, (1, 2, 3, 4)), {}, errors.ArgumentError),
    ("extract_patches_3d", (photo[0], 2), {}, errors.ShapeError),
]  # fmt: skip


@on_each_backend
@pytest.mark.parametrize("name, arguments, keywords, error", WRONG)
def test_bad_input(backend, name, arguments, keywords, error):
    arguments = [tensors(a, backend) for a in arguments]
    with pytest.raises(error, match=f"image.{name}"):
        getattr(image, name)(*arguments, **keywords)


def test_tensor_type_selects_the_backend():
    x = backends.lookup("torch").convert(photo)
    for call in SMOOTH.values():
        assert backends.backend_of(call(x)).name == "torch"
