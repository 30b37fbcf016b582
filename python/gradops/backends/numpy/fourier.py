"""NumPy kernels: Fourier transforms, by SciPy's, which keep single precision; and complex numbers."""

import numpy as np

from ... import _scipy
from .base import floats


def _full(x):
    x = floats(x)
    return x.astype(np.float32) if x.dtype == np.float16 else x


def view_as_complex(x):
    x = np.ascontiguousarray(_full(x))
    return x.view(np.result_type(x.dtype, np.complex64))[..., 0]


def fft_complex(x, dimensions=1, inverse=False):
    function = _scipy.fft.ifftn if inverse else _scipy.fft.fftn
    return function(_full(x), axes=tuple(range(-dimensions, 0)))


def rfft_complex(x, fft_length):
    return _scipy.fft.rfft(_full(x), fft_length)


def irfft_complex(x, fft_length):
    return _scipy.fft.irfft(_full(x), fft_length)
