"""PyTorch kernels: products."""

import torch

from .base import arithmetic, promoted, together

matmul = arithmetic(torch.matmul)


def tensordot(x1, x2, axes=2):
    return torch.tensordot(*promoted(x1, x2), dims=axes)


def einsum(subscripts, operands):
    return torch.einsum(subscripts, *together(operands))
