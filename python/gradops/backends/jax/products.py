"""JAX kernels: products."""

import jax.numpy as jnp

from .base import arithmetic, promoted, together

matmul = arithmetic(jnp.matmul)


def tensordot(x1, x2, axes=2):
    return jnp.tensordot(*promoted(x1, x2), axes=axes)


def einsum(subscripts, operands):
    return jnp.einsum(subscripts, *together(operands))
