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
    operands = together(operands)
    if operands[0].dtype == np.float16:  # in which sums stop growing
        return np.asarray(einsum(subscripts, [x.astype(np.float32) for x in operands])).astype(np.float16)
    return np.einsum(subscripts, *operands, optimize=len(operands) > 2)
