"""Bridges to other languages. The only one is ``gradops.interop.r``, the bridge to R."""

from .._names import namespace

__all__ = ["r"]
__dir__, __getattr__ = namespace(__name__)
