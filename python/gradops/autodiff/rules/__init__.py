"""The derivatives of the ops, a file for each file of ``gradops.ops``."""

from . import (  # noqa: F401
    conversion,
    creation,
    elementwise,
    indexing,
    linalg,
    nn,
    reductions,
    shaping,
)
