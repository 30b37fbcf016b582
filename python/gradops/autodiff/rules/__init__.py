"""The derivative rules of the ops, in one file for each theme of ``gradops.ops``."""

from . import elementwise, linalg, reductions, shaping, signals  # noqa: F401
