"""The derivatives of the ops, a file for each theme of ``gradops.ops``."""

from . import elementwise, linalg, reductions, shaping, signals  # noqa: F401
