"""The derivatives of the ops, a file for each file of ``gradops.ops``."""

from . import (  # noqa: F401
    activations,
    blocks,
    bounds,
    conversion,
    convolution,
    creation,
    elementwise,
    fourier,
    indexing,
    joining,
    linalg,
    pooling,
    products,
    reductions,
    scattering,
    shaping,
    sorting,
    special,
    statistics,
    systems,
)
