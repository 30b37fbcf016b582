"""NumPy kernels: products."""

import numpy as np

from .base import arithmetic, promoted, together

matmul = arithmetic(np.matmul)
dot = arithmetic(np.dot)


def tensordot(x1, x2, axes=2):
    return np.tensordot(*promoted(x1, x2), axes)


def outer(x1, x2):
    return np.outer(*promoted(x1, x2))


def einsum(subscripts, operands):
    return np.einsum(subscripts, *together(operands), optimize=len(operands) > 2)
