"""Bridges to other languages: ``gradops.interop.r``."""
