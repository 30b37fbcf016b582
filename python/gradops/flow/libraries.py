"""What is known of the libraries without importing them."""

from __future__ import annotations

import sys

from ..ops._dispatch import _compiling as compiling


def in_use(name: str) -> bool:
    """Whether a library is loaded to the end: only then can its tensors exist."""
    spec = getattr(sys.modules.get(name), "__spec__", None)
    return spec is not None and not getattr(spec, "_initializing", False)


__all__ = ["compiling", "in_use"]
