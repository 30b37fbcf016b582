"""The derivatives of the ops, a file for each file of ``gradops.ops``."""

from . import (  # noqa: F401
    activations,
    bounds,
    pooling,
    blocks,
    conversion,
    convolution,
    creation,
    elementwise,
    fourier,
    indexing,
    joining,
    linalg,
    products,
    reductions,
    scattering,
    shaping,
    sorting,
    special,
    statistics,
    systems,
)
