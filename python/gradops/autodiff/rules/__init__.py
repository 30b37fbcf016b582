"""The derivatives of the ops, a file for each theme of ``gradops.ops``."""

from . import elementwise, linalg, products, reductions, shaping, signals  # noqa: F401
