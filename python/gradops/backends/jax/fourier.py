"""JAX kernels: Fourier transforms and complex numbers."""

import jax
import jax.numpy as jnp

from .base import floats


def _full(x):
    x = floats(x)
    return x.astype(jnp.float32) if x.dtype.itemsize == 2 else x


def view_as_complex(x):
    x = _full(x)
    return jax.lax.complex(x[..., 0], x[..., 1])


def fft_complex(x, dimensions=1, inverse=False):
    function = jnp.fft.ifftn if inverse else jnp.fft.fftn
    return function(_full(x), axes=tuple(range(-dimensions, 0)))


def rfft_complex(x, fft_length):
    return jnp.fft.rfft(_full(x), fft_length)


def irfft_complex(x, fft_length):
    return jnp.fft.irfft(_full(x), fft_length)
