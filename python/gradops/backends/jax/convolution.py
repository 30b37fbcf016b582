"""JAX kernels: convolution. The gradients are the transposes of the linear function that it is."""

import jax

from .base import floats, promoted


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
