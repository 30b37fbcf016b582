"""Bridges to other languages: ``gradops.interop.r``."""

from .._names import namespace

__all__ = ["r"]
__dir__, __getattr__ = namespace(__name__)
