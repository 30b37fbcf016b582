"""PyTorch kernels: products."""

import torch

from .base import arithmetic, promoted, together


def _of_bools(product):
    """A product; of bools, which PyTorch does not multiply, by way of whole numbers."""

    def kernel(*xs):
        if xs[0].dtype is not torch.bool:
            return product(*xs)
        return product(*(x.to(torch.int32) for x in xs)) != 0

    return kernel


matmul = arithmetic(_of_bools(torch.matmul))


def tensordot(x1, x2, axes=2):
    return _of_bools(lambda x1, x2: torch.tensordot(x1, x2, dims=axes))(*promoted(x1, x2))


def einsum(subscripts, operands):
    return _of_bools(lambda *xs: torch.einsum(subscripts, *xs))(*together(operands))
