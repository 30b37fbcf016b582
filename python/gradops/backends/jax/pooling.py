"""JAX kernels: pooling."""

import jax
import numpy as np


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
