"""The derivatives of the ops, a file for each file of ``gradops.ops``."""

from . import (  # noqa: F401
    activations,
    conversion,
    creation,
    elementwise,
    indexing,
    joining,
    products,
    reductions,
    shaping,
)
