"""Cases: images. References are SciPy, JAX and closed forms, one channel and image at a time.

JAX compiles each op again for each shape, which takes seconds. Its gradients are therefore compared in test_image,
compiled as one function.
"""

import colorsys

import hypothesis.strategies as st
import numpy as np
from parity import Case, arrays, inputs
from scipy import ndimage

MODES = {
    "constant": "grid-constant",
    "nearest": "nearest",
    "wrap": "grid-wrap",
    "mirror": "mirror",
    "reflect": "reflect",
}
"""Fill modes by the names SciPy uses."""


@st.composite
def pictures(draw, channels=2, low=0.0, high=1.0, least=2, name="images", dtype="float64", **keywords):
    """Draw one image or a batch, in either layout, with further keyword arguments."""
    shape, data_format = draw(st.sampled_from([
        ((2, least + 1, least, channels), None), ((least, least + 2, channels), "channels_last"),
        ((channels, least, least + 1), "channels_first"), ((2, channels, least + 2, least), "channels_first"),
    ]))  # fmt: skip
    given = {name: draw(arrays(shape, low, high, dtype=dtype, salt=0)), "data_format": data_format}
    return {**given, **{k: draw(v) if isinstance(v, st.SearchStrategy) else v for k, v in keywords.items()}}


def case(op, inputs, reference, gradients=(), **keywords):
    return Case(op, inputs, reference, gradients, native=("torch", "tensorflow"), second=("torch",), **keywords)


def canonical(function):
    """Turn a reference for channels-last batches into one for any layout."""

    def reference(images, data_format=None, **keywords):
        first, single = data_format == "channels_first", images.ndim == 3
        x = images[None] if single else images
        y = function(np.moveaxis(x, 1, -1) if first else x, **keywords)
        y = np.moveaxis(y, 3, 1) if first else y
        return (y[0] if single else y).astype(images.dtype)

    return reference


def each_plane(function):
    """Turn a reference for a single-channel image and its index into one for channels-last batches."""

    def reference(x, **keywords):
        return np.stack(
            [np.stack([function(x[b, ..., c], b, **keywords) for c in range(x.shape[-1])], -1) for b in range(len(x))]
        )

    return canonical(reference)


def jax_image(name):
    import jax

    from gradops import config

    with config.backend_scope("jax"):
        return getattr(jax.image, name)


@canonical
def resized(x, size, interpolation="bilinear", antialias=False):
    return np.asarray(jax_image("resize")(x, (len(x), *size, x.shape[-1]), interpolation, antialias))


def scaled(images, output_shape, scale, translation, spatial_dims, method, antialias=True):
    return np.asarray(
        jax_image("scale_and_translate")(images, output_shape, spatial_dims, scale, translation, method, antialias)
    )


def mapped(inputs, coordinates, order, fill_mode="constant", fill_value=0.0):
    return ndimage.map_coordinates(inputs, coordinates, order=order, mode=MODES[fill_mode], cval=fill_value)


@each_plane
def affine(x, b, transform, interpolation="bilinear", fill_mode="constant", fill_value=0.0):
    a0, a1, a2, b0, b1, b2, c0, c1 = transform[b % len(transform)] if transform.ndim == 2 else transform
    rows, columns = np.indices(x.shape)
    k = c0 * columns + c1 * rows + 1
    places = [(b0 * columns + b1 * rows + b2) / k, (a0 * columns + a1 * rows + a2) / k]
    return mapped(x, places, int(interpolation == "bilinear"), fill_mode, fill_value)


@each_plane
def perspective(x, b, start_points, end_points, interpolation="bilinear", fill_value=0.0):
    start, end = (p[b % len(p)] if p.ndim == 3 else p for p in (start_points, end_points))
    lines = []
    for (u, v), (x1, y1) in zip(start, end):
        lines += [[x1, y1, 1, 0, 0, 0, -u * x1, -u * y1], [0, 0, 0, x1, y1, 1, -v * x1, -v * y1]]
    h = np.append(np.linalg.solve(lines, start.ravel()), 1.0).reshape(3, 3)
    rows, columns = np.indices(x.shape)
    u, v, k = np.tensordot(h, np.stack([columns, rows, np.ones_like(rows)]), 1)
    return mapped(x, [v / k, u / k], int(interpolation == "bilinear"), "constant", fill_value)


@canonical
def elastic(x, alpha=20.0, sigma=5.0, fill_mode="reflect", seed=None):
    field = np.random.default_rng(seed).standard_normal((2, *x.shape[:3])) * sigma
    field = alpha * ndimage.gaussian_filter(field, sigma, mode="constant", radius=int(6 * sigma) // 2, axes=(2, 3))
    places = field + np.indices(x.shape[1:3])[:, None]
    planes = [[mapped(x[b, ..., c], places[:, b], 1, fill_mode) for c in range(x.shape[-1])] for b in range(len(x))]
    return np.stack([np.stack(p, -1) for p in planes])


@canonical
def blurred(x, kernel_size=(3, 3), sigma=(1.0, 1.0)):
    return ndimage.gaussian_filter(x, sigma, mode="constant", radius=[k // 2 for k in kernel_size], axes=(1, 2))


@canonical
def sobel(x):
    def edges(steep, smooth):
        return ndimage.correlate1d(
            ndimage.correlate1d(x, [-1, 0, 1], steep, mode="mirror"), [1, 2, 1], smooth, mode="mirror"
        )

    return np.stack([edges(1, 2), edges(2, 1)], -1)


def similarity(image1, image2, filter_size, data_format=None, max_val=1.0):
    bell = np.exp(-0.5 * ((np.arange(filter_size) - (filter_size - 1) / 2) / 1.5) ** 2)
    window = np.outer(bell, bell) / bell.sum() ** 2

    def index(a, b):
        means = [np.vdot(window, v) for v in (a, b)]
        variances = [np.vdot(window, v * v) - m * m for v, m in zip((a, b), means)]
        covariance = np.vdot(window, a * b) - means[0] * means[1]
        c1, c2 = (0.01 * max_val) ** 2, (0.03 * max_val) ** 2
        lower = (means[0] ** 2 + means[1] ** 2 + c1) * (variances[0] + variances[1] + c2)
        return (2 * means[0] * means[1] + c1) * (2 * covariance + c2) / lower

    axes = (-2, -1) if data_format == "channels_first" else (-3, -2)
    x, y = (np.lib.stride_tricks.sliding_window_view(v, (filter_size, filter_size), axes) for v in (image1, image2))
    values = np.reshape(
        [index(a, b) for a, b in zip(*(v.reshape(-1, filter_size, filter_size) for v in (x, y)))], x.shape[:-2]
    )
    return values.mean((-3, -2, -1))


def coloured(function):
    @canonical
    def reference(x):
        return np.apply_along_axis(lambda p: function(*p), 3, x)

    return reference


@canonical
def grey(x):
    return (x @ [0.2989, 0.5870, 0.1140])[..., None]


@canonical
def cropped(x, top_cropping=0, left_cropping=0, target_height=None, target_width=None):
    return x[:, top_cropping : top_cropping + target_height, left_cropping : left_cropping + target_width]


@canonical
def bordered(x, bottom_padding, right_padding, target_height, target_width):
    y = np.zeros((len(x), target_height, target_width, x.shape[-1]))
    top, left = target_height - bottom_padding - x.shape[1], target_width - right_padding - x.shape[2]
    y[:, top : top + x.shape[1], left : left + x.shape[2]] = x
    return y


def patched(spatial, name):
    """Reference that cuts out each patch separately."""

    def reference(size, strides=None, dilation_rate=1, padding="valid", data_format=None, **images):
        x = images[name]
        first, single = data_format == "channels_first", x.ndim == spatial + 1
        x = x[None] if single else x
        x = np.moveaxis(x, 1, -1) if first else x
        strides, (r,) = size if strides is None else strides, {dilation_rate}
        if padding == "same":
            counts = [-(-n // s) for n, s in zip(x.shape[1:], strides)]
            short = [
                max((c - 1) * s + (k - 1) * r + 1 - n, 0) for c, s, k, n in zip(counts, strides, size, x.shape[1:])
            ]
            x = np.pad(x, [(0, 0), *((s // 2, s - s // 2) for s in short), (0, 0)])
        else:
            counts = [(n - (k - 1) * r - 1) // s + 1 for n, s, k in zip(x.shape[1:], strides, size)]
        y = np.zeros((len(x), *counts, int(np.prod(size)) * x.shape[-1]), x.dtype)
        for at in np.ndindex(*counts):
            window = tuple(slice(i * s, i * s + (k - 1) * r + 1, r) for i, s, k in zip(at, strides, size))
            y[(slice(None), *at)] = x[(slice(None), *window)].reshape(len(x), -1)
        y = np.moveaxis(y, -1, 1) if first else y
        return y[0] if single else y

    return reference


def near(values, by=0.1):
    """Arrays close to ``values``."""
    return arrays(np.shape(values), -by, by).map(lambda noise: np.asarray(values) + noise)


def boxes(by):
    """Draw four corner points close to the corners of a small image, for one image or two."""
    corners = np.array([[0.0, 0.0], [0.0, 4.0], [5.0, 0.0], [5.0, 4.0]])
    return near(corners, by)


still = [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]
sizes = st.sampled_from([(2, 7), (6, 1)])
interpolations = ("nearest", "bilinear", "bicubic", "lanczos3", "lanczos5")


def joined_patches(patches, size, output_size, padding, data_format):
    """Reference that adds the patches one by one at their positions."""
    if data_format == "channels_first":
        first = joined_patches(
            np.moveaxis(patches, len(patches.shape) - len(size) - 1, -1), size, output_size, padding, ""
        )
        return np.moveaxis(first, -1, len(patches.shape) - len(size) - 1)
    lead, counts = patches.shape[: -len(size) - 1], patches.shape[-len(size) - 1 : -1]
    whole = np.zeros((*lead, *np.multiply(counts, size), patches.shape[-1] // np.prod(size)))
    for place in np.ndindex(*counts):
        at = tuple(slice(i * n, (i + 1) * n) for i, n in zip(place, size))
        one = patches[(..., *place, slice(None))]
        whole[(..., *at, slice(None))] = one.reshape(*lead, *size, -1)
    starts = [(n * c - m) // 2 for n, c, m in zip(size, counts, output_size)]
    return whole[(..., *[slice(s, s + m) for s, m in zip(starts, output_size)], slice(None))]


CASES = [
    *(
        case(
            "image.resize", pictures(size=sizes, interpolation=m, antialias=st.booleans()), resized, ["images"], label=m
        )
        for m in interpolations
    ),
    case(
        "image.resize",
        st.fixed_dictionaries(
            {"images": arrays((2, 4, 6, 2)), "size": st.just((2, 2)), "interpolation": st.just("area")}
        ),
        lambda images, size, interpolation: images.reshape(2, 2, 2, 2, 3, 2).mean((2, 4)),
        ["images"],
        label="area",
    ),
    *(
        case(
            "image.scale_and_translate",
            st.fixed_dictionaries(
                {
                    "images": arrays((4, 2, 5)),
                    "output_shape": st.just((3, 2, 7)),
                    "scale": arrays((2,), 0.55, 1.8, away=[1.0]),
                    "translation": arrays((2,), -0.9, 0.9),
                    "spatial_dims": st.just((0, -1)),
                    "method": st.just(method),
                    "antialias": st.booleans(),
                }
            ),
            lambda spatial_dims, **k: scaled(spatial_dims=(0, 2), **k),
            ["images", "scale", "translation"],
            # JAX sets a Lanczos kernel to 1 within 0.001 of its centre
            rtol=1e-5 if method == "lanczos3" else 1e-6,
            atol=1e-5 if method == "lanczos3" else 1e-8,
            label=method,
        )
        for method in ("linear", "cubic", "lanczos3")
    ),
    *(
        case(
            "image.map_coordinates",
            st.fixed_dictionaries(
                {
                    "inputs": arrays((4, 3)),
                    "coordinates": arrays((2, 2, 5), -9, 12),
                    "order": st.just(order),
                    "fill_mode": st.just(mode),
                    "fill_value": st.just(0.7),
                }
            ),
            mapped,
            ["inputs", "coordinates"],
            label=f"{mode}-{order}",
        )
        for mode in MODES
        for order in (0, 1)
    ),
    *(
        case(
            "image.affine_transform",
            pictures(transform=near(transform, 0.05), interpolation=interpolation, fill_mode=mode, fill_value=0.5),
            affine,
            ["images", "transform"],
            label=f"{interpolation}-{mode}",
        )
        for transform, interpolation, mode in [
            (still, "bilinear", "constant"),
            (still, "bilinear", "mirror"),
            ([[1.5, 0.2, -1, 0.1, 0.8, 0.6, 0, 0]], "nearest", "wrap"),
        ]
    ),
    case(
        "image.perspective_transform",
        pictures(least=4, start_points=boxes(0.5), end_points=boxes(0.9), fill_value=0.3),
        perspective,
        ["images", "start_points", "end_points"],
        rtol=1e-5,
    ),
    case(
        "image.elastic_transform",
        pictures(least=4, alpha=3.0, sigma=1.5, fill_mode=st.sampled_from(list(MODES)), seed=4),
        elastic,
        ["images"],
    ),
    case(
        "image.gaussian_blur",
        pictures(kernel_size=st.sampled_from([(3, 3), (5, 3)]), sigma=arrays((2,), 0.5, 2.0)),
        blurred,
        ["images", "sigma"],
    ),
    case("image.sobel_edges", pictures(), sobel, ["images"]),
    case(
        "image.ssim",
        pictures(least=5, name="image1", filter_size=4).flatmap(
            lambda k: arrays(k["image1"].shape, 0.0, 1.0, salt=1).map(lambda other: {**k, "image2": other})
        ),
        similarity,
        ["image1", "image2"],
    ),
    case("image.rgb_to_grayscale", pictures(3), grey, ["images"]),
    case("image.rgb_to_hsv", pictures(3, 0.05, 0.95), coloured(colorsys.rgb_to_hsv), ["images"], rtol=1e-5),
    case("image.hsv_to_rgb", pictures(3, 0.05, 0.95), coloured(colorsys.hsv_to_rgb), ["images"]),
    case(
        "image.crop_images",
        pictures(least=4, top_cropping=1, left_cropping=0, target_height=2, target_width=3),
        cropped,
        ["images"],
    ),
    case(
        "image.pad_images",
        pictures(bottom_padding=1, right_padding=0, target_height=8, target_width=7),
        bordered,
        ["images"],
    ),
    *(
        case(
            "image.extract_patches",
            pictures(
                least=4, size=(3, 2), strides=strides, dilation_rate=rate, padding=padding, dtype=dtype, low=0, high=9
            ),
            patched(2, "images"),
            ["images"] if dtype == "float64" else (),
            label=f"{padding}-{rate}-{dtype}",
        )
        for strides, rate, padding, dtype in [
            (None, 1, "valid", "float64"),
            ((1, 2), 1, "valid", "float64"),
            ((2, 1), 1, "same", "float64"),
            ((2, 1), 2, "same", "float64"),
            ((1, 1), 1, "valid", "uint8"),
        ]
    ),
    *(
        Case(
            "image.reconstruct_patches",
            inputs(patches=arrays(patched), size=size, output_size=whole, padding=padding, data_format=layout),
            joined_patches,
            ["patches"],
            label=f"{padding}-{len(size)}d",
        )
        for patched, size, whole, padding, layout in [
            ((2, 2, 3, 12), (3, 2), (6, 6), "valid", None),
            ((12, 2, 3), (3, 2), (4, 5), "same", "channels_first"),
            ((1, 2, 2, 8), (2, 1, 2), (2, 2, 3), "same", "channels_last"),
        ]
    ),
    case(
        "image.extract_patches_3d",
        st.fixed_dictionaries(
            {
                "volumes": st.sampled_from([(4, 3, 5, 2), (2, 4, 4, 3, 2)]).flatmap(
                    lambda shape: arrays(shape, salt=0)
                ),
                "size": st.just((2, 2, 3)),
                "strides": st.sampled_from([None, (1, 2, 1)]),
                "padding": st.sampled_from(["valid", "same"]),
                "data_format": st.sampled_from([None, "channels_last"]),
            }
        ),
        patched(3, "volumes"),
        ["volumes"],
    ),
    case(
        "image.extract_patches_3d",
        st.fixed_dictionaries(
            {"volumes": arrays((2, 2, 4, 3, 5)), "size": st.just((2, 2, 3)), "data_format": st.just("channels_first")}
        ),
        patched(3, "volumes"),
        ["volumes"],
        label="channels-first",
    ),
]
