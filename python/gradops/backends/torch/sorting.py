"""PyTorch kernels: sorting and searching."""

import torch

from .base import promoted


def _ordered(x, axis):
    if axis is None:
        x, axis = x.reshape(-1), 0
    return torch.sort(x, dim=axis, stable=True)


def sort(x, axis=-1):
    return _ordered(x, axis)[0]


def argsort(x, axis=-1):
    return _ordered(x, axis)[1]


def searchsorted(sorted_sequence, values, side="left"):
    sequence, values = promoted(sorted_sequence, values)
    if sequence.dtype is torch.bool:
        sequence, values = sequence.to(torch.uint8), values.to(torch.uint8)
    return torch.searchsorted(sequence.contiguous(), values.contiguous(), side=side)
