"""PyTorch kernels: joining and splitting."""

import itertools

import torch

from .._keys import cuts
from .base import together


def concatenate(xs, axis=0):
    return torch.cat(together(xs), axis)


def stack(xs, axis=0):
    return torch.stack(together(xs), axis)


def split(x, indices_or_sections, axis=0):
    size = x.shape[axis]
    if isinstance(indices_or_sections, int):
        if indices_or_sections < 1 or size % indices_or_sections:
            raise ValueError(f"{indices_or_sections} sections do not divide a dimension of {size}")
        sizes = [size // indices_or_sections] * indices_or_sections
    else:
        places = [0, *cuts(indices_or_sections, size), size]
        sizes = [end - start for start, end in itertools.pairwise(places)]
    return list(torch.split(x, sizes, axis))  # whose gradient is one copy of the pieces'


def unstack(x, num=None, axis=0):
    return list(torch.unbind(x, axis))
