"""JAX kernels: convolutions, pooling, Fourier transforms."""

import math

import jax
import jax.numpy as jnp
import numpy as np

from ..array.shaping import taps
from .base import floats, promoted

# Convolution. Its gradients are transposes of a linear function.


def conv_to_output(inputs, kernel, strides, padding, dilation, groups, channels_first):
    x, kernel = (floats(t) for t in promoted(inputs, kernel))
    letters = "DHW"[5 - x.ndim :]
    layout = "NC" + letters if channels_first else "N" + letters + "C"
    return jax.lax.conv_general_dilated(
        x,
        kernel,
        strides,
        padding,
        rhs_dilation=dilation,
        dimension_numbers=(layout, letters + "IO", layout),
        feature_group_count=groups,
    )


def conv_to_inputs(outputs, kernel, sizes, strides, padding, dilation, groups, channels_first):
    y, kernel = (floats(t) for t in promoted(outputs, kernel))
    channels = kernel.shape[-2] * groups
    shape = (y.shape[0], channels, *sizes) if channels_first else (y.shape[0], *sizes, channels)

    def forward(x):
        return conv_to_output(x, kernel, strides, padding, dilation, groups, channels_first)

    (x,) = jax.linear_transpose(forward, jax.ShapeDtypeStruct(shape, y.dtype))(y)
    return x


def conv_to_kernel(inputs, outputs, sizes, strides, padding, dilation, groups, channels_first):
    x, y = (floats(t) for t in promoted(inputs, outputs))
    axis = 1 if channels_first else -1

    def forward(kernel):
        return conv_to_output(x, kernel, strides, padding, dilation, groups, channels_first)

    shape = (*sizes, x.shape[axis] // groups, y.shape[axis])
    (kernel,) = jax.linear_transpose(forward, jax.ShapeDtypeStruct(shape, x.dtype))(y)
    return kernel


# Pooling, and blocks as columns.


def _full(values, one, channels_first):
    return (one, one, *values) if channels_first else (one, *values, one)


def _reduced(x, start, combine, window, strides, padding, channels_first):
    return jax.lax.reduce_window(
        x,
        np.array(start, x.dtype),
        combine,
        _full(window, 1, channels_first),
        _full(strides, 1, channels_first),
        _full(padding, (0, 0), channels_first),
    )


def window_max(x, window, strides, padding, channels_first):
    return _reduced(x, -np.inf, jax.lax.max, window, strides, padding, channels_first)


def window_sum(x, window, strides, padding, channels_first):
    return _reduced(x, 0, jax.lax.add, window, strides, padding, channels_first)


def window_spread(y, sizes, window, strides, padding, channels_first):
    shape = (*y.shape[:2], *sizes) if channels_first else (y.shape[0], *sizes, y.shape[-1])

    def forward(x):
        return window_sum(x, window, strides, padding, channels_first)

    (x,) = jax.linear_transpose(forward, jax.ShapeDtypeStruct(shape, y.dtype))(y)
    return x


def window_columns(x, window, strides, padding, dilation):
    x = jnp.pad(x, ((0, 0), (0, 0), *((p, p) for p in padding)))
    found = taps(x, window, strides, dilation)
    return jnp.stack(found, 2).reshape(x.shape[0], x.shape[1] * len(found), math.prod(found[0].shape[2:]))


def column_sums(x, sizes, window, strides, padding, dilation):
    shape = (x.shape[0], x.shape[1] // (window[0] * window[1]), *sizes)

    def columns(image):
        return window_columns(image, window, strides, padding, dilation)

    (image,) = jax.linear_transpose(columns, jax.ShapeDtypeStruct(shape, x.dtype))(x)
    return image


# Fourier transforms and complex numbers.


def _not_half(x):
    x = floats(x)
    return x.astype(jnp.float32) if x.dtype.itemsize == 2 else x


def view_as_complex(x):
    x = _not_half(x)
    return jax.lax.complex(x[..., 0], x[..., 1])
