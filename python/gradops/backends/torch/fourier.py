"""PyTorch kernels: Fourier transforms and complex numbers."""

import torch

from .base import floats


def _full(x):
    x = floats(x)
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


def view_as_complex(x):
    x = _full(x)
    return torch.complex(x[..., 0], x[..., 1])


def fft_complex(x, dimensions=1, inverse=False):
    function = torch.fft.ifftn if inverse else torch.fft.fftn
    return function(_full(x), dim=tuple(range(-dimensions, 0)))


def rfft_complex(x, fft_length):
    return torch.fft.rfft(_full(x), fft_length)


def irfft_complex(x, fft_length):
    return torch.fft.irfft(_full(x), fft_length)
