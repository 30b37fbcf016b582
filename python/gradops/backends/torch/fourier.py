"""PyTorch kernels: Fourier transforms and complex numbers."""

import torch

from .base import floats


def _full(x):
    x = floats(x)
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


def view_as_complex(x):
    x = _full(x)
    return torch.complex(x[..., 0], x[..., 1])


def _of_any(function, x, dimensions=1):
    """A transform, of batches of none too, which MKL refuses: beside a row of zeros that is taken off again."""
    x = _full(x)
    none = [i for i, n in enumerate(x.shape[:-dimensions]) if not n]
    for i in none:
        x = torch.cat([x, x.new_zeros([1 if j == i else n for j, n in enumerate(x.shape)])], i)
    y = function(x)
    for i in none:
        y = y.narrow(i, 0, 0)
    return y


def fft_complex(x, dimensions=1, inverse=False):
    function = torch.fft.ifftn if inverse else torch.fft.fftn
    return _of_any(lambda x: function(x, dim=tuple(range(-dimensions, 0))), x, dimensions)


def rfft_complex(x, fft_length):
    return _of_any(lambda x: torch.fft.rfft(x, fft_length), x)


def irfft_complex(x, fft_length):
    return _of_any(lambda x: torch.fft.irfft(x, fft_length), x)
