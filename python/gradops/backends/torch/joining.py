"""PyTorch kernels: joining and splitting."""

import torch

from .._keys import cuts
from .base import together


def concatenate(xs, axis=0):
    return torch.cat(together(xs), axis)


def stack(xs, axis=0):
    return torch.stack(together(xs), axis)


def split(x, indices_or_sections, axis=0):
    return list(torch.tensor_split(x, _even(x, indices_or_sections, axis), dim=axis))


def _even(x, sections, axis):
    if isinstance(sections, int):
        if sections < 1 or x.shape[axis] % sections:
            raise ValueError(f"{sections} sections do not divide a dimension of {x.shape[axis]}")
        return sections
    return cuts(sections, x.shape[axis])


def unstack(x, num=None, axis=0):
    return list(torch.unbind(x, axis))
