"""PyTorch kernels: diagonals and triangles."""

import torch


def diagonal(x, offset=0, axis1=0, axis2=1):
    return torch.diagonal(x, offset, axis1, axis2)


def tril(x, k=0):
    return torch.tril(x, k)


def triu(x, k=0):
    return torch.triu(x, k)
