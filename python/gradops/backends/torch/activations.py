"""PyTorch kernels: activations."""

import torch

from .base import axes_of, floating, floats

sigmoid = floating(torch.sigmoid)
relu = torch.relu


def softplus(x):
    x = floats(x)
    return torch.logaddexp(x, torch.zeros((), dtype=x.dtype, device=x.device))


def softmax(x, axis=-1):
    x = floats(x)
    axes = axes_of(x, axis)
    if len(axes) == 1:
        return torch.softmax(x, axes[0])
    return torch.exp(x - torch.logsumexp(x, axes, keepdim=True))


def log_softmax(x, axis=-1):
    x = floats(x)
    axes = axes_of(x, axis)
    if len(axes) == 1:
        return torch.log_softmax(x, axes[0])
    return x - torch.logsumexp(x, axes, keepdim=True)
