"""JAX kernels: windows of an image as columns and back."""

import jax
import jax.numpy as jnp


def window_columns(x, window, strides, padding, dilation):
    batch, channels, *sizes = x.shape
    x = jnp.pad(x, ((0, 0), (0, 0), *((p, p) for p in padding)))
    places = [
        (n + 2 * p - (k - 1) * d - 1) // s + 1 for n, k, s, p, d in zip(sizes, window, strides, padding, dilation)
    ]
    taps = []
    for i in range(window[0]):
        for j in range(window[1]):
            start = (i * dilation[0], j * dilation[1])
            key = [slice(t, t + (m - 1) * s + 1, s) for t, s, m in zip(start, strides, places)]
            taps.append(x[(slice(None), slice(None), *key)])
    return jnp.stack(taps, 2).reshape(batch, channels * len(taps), places[0] * places[1])


def column_sums(x, sizes, window, strides, padding, dilation):
    shape = (x.shape[0], x.shape[1] // (window[0] * window[1]), *sizes)

    def columns(image):
        return window_columns(image, window, strides, padding, dilation)

    (image,) = jax.linear_transpose(columns, jax.ShapeDtypeStruct(shape, x.dtype))(x)
    return image
