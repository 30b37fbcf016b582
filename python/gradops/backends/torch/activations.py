"""PyTorch kernels: activations."""

import math

import torch

from .base import axes_of, floating, floats

sigmoid = floating(torch.sigmoid)


def relu(x):
    return torch.relu(x) if x.dtype is not torch.bool else x


@floating
def normal_cdf(x):
    if x.dtype.itemsize == 2:  # of which the argument's rounding is the tail's error
        return normal_cdf(x.float()).to(x.dtype)
    return 0.5 * torch.erfc(x * -math.sqrt(0.5))  # torch.special.ndtr is 0 far below 0


def softplus(x):
    return torch.nn.functional.softplus(floats(x), threshold=40)  # beyond, of float64 too, it is x


def softmax(x, axis=-1):
    x = floats(x)
    if isinstance(axis, int):
        return torch.softmax(x, axis)
    axes = axes_of(x, axis)
    return torch.exp(x - torch.logsumexp(x, axes, keepdim=True))


def log_softmax(x, axis=-1):
    x = floats(x)
    if isinstance(axis, int):
        return torch.log_softmax(x, axis)
    axes = axes_of(x, axis)
    return x - torch.logsumexp(x, axes, keepdim=True)


# Native where the derivative at the kinks is the one that gradops documents.


def relu6(x):
    return torch.nn.functional.relu6(x if x.dtype is not torch.bool else x.to(torch.int64))


log_sigmoid = floating(torch.nn.functional.logsigmoid)
softsign = floating(torch.nn.functional.softsign)


@floating
def silu(x):
    return x * torch.sigmoid(x) if x.is_complex() else torch.nn.functional.silu(x)


def leaky_relu(x, negative_slope=0.2):
    return torch.nn.functional.leaky_relu(floats(x), negative_slope)


def gelu(x, approximate=True):
    x = floats(x)
    return torch.nn.functional.gelu(x, approximate="tanh") if approximate else x * normal_cdf(x)
